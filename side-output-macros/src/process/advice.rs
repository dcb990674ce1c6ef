//! How a lost route is written where it is returned.

use quote::ToTokens as _;
use syn::{Expr, GenericArgument, Path, PathArguments, Type};

/// How a value is returned as `ty`: `Some({})` for an `Option`, and so on inwards.
pub(super) fn wrapped(ty: &Type, inner: &str) -> String {
    let Type::Path(path) = ty else { return inner.to_owned() };
    let Some(last) = path.path.segments.last() else { return inner.to_owned() };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return inner.to_owned() };
    let Some(GenericArgument::Type(argument)) = arguments.args.first() else {
        return inner.to_owned();
    };
    match last.ident.to_string().as_str() {
        "Option" => format!("Some({})", wrapped(argument, inner)),
        "Result" => format!("Ok({})", wrapped(argument, inner)),
        "Vec" => format!("vec![{}]", wrapped(argument, inner)),
        _ => inner.to_owned(),
    }
}

/// The route as it may be written, without the arguments if they are long.
pub(super) fn shortened(expr: &Expr, splitter: &str) -> String {
    let variant = |path: &Path| {
        let variant = path.segments.last().map(|last| last.ident.to_string());
        format!("{splitter}::{}", variant.unwrap_or_default())
    };
    match expr {
        Expr::Call(call) => {
            let arguments: Option<Vec<_>> = call.args.iter().map(simple).collect();
            let arguments = arguments.map(|arguments| arguments.join(", "));
            let arguments = arguments.filter(|text| text.len() <= 32).unwrap_or("…".to_owned());
            match &*call.func {
                Expr::Path(path) => format!("{}({arguments})", variant(&path.path)),
                _ => splitter.to_owned(),
            }
        }
        Expr::Struct(structure) => format!("{} {{ … }}", variant(&structure.path)),
        Expr::Path(path) => variant(&path.path),
        _ => splitter.to_owned(),
    }
}

/// A variable or a number, as it is written.
fn simple(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Path(path) if path.path.get_ident().is_some() => {
            Some(path.to_token_stream().to_string())
        }
        Expr::Lit(literal) => Some(literal.to_token_stream().to_string()),
        _ => None,
    }
}
