//! Grammar of `#[splitter(…)]` on a function.

use crate::errors::Errors;
use crate::suggest;
use proc_macro2::TokenStream;
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Ident, ItemFn, Path, ReturnType, Token};

/// `#[splitter(Orders, crate = path)]`.
pub(super) struct FnArgs {
    pub(super) splitter: Path,
    pub(super) krate: Option<Path>,
}

impl FnArgs {
    pub(super) fn parse(
        tokens: TokenStream,
        function: &ItemFn,
        errors: &mut Errors,
    ) -> Option<Self> {
        if tokens.is_empty() {
            let name = match &function.sig.output {
                ReturnType::Type(_, ty) => ty.to_token_stream().to_string(),
                ReturnType::Default => "Orders".to_owned(),
            };
            let message = format!(
                "name the enum whose outputs the function routes to; write `#[splitter({name})]`"
            );
            errors.push(syn::Error::new(proc_macro2::Span::call_site(), message));
            return None;
        }
        let parser = |input: ParseStream<'_>| {
            if input.peek(Ident::peek_any) && input.peek2(Token![=]) {
                return Err(input.error("name the enum first, as in `#[splitter(Orders)]`"));
            }
            let splitter = input.call(path)?;
            let mut krate = None;
            while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
                krate = Some(option(input)?);
            }
            if input.is_empty() {
                Ok(Self { splitter, krate })
            } else {
                Err(input.error("expected one enum, as in `#[splitter(Orders)]`"))
            }
        };
        errors.take(parser.parse2(tokens))
    }
}

/// A path with or without generics: of `Orders<T>` only `Orders` matters.
fn path(input: ParseStream<'_>) -> syn::Result<Path> {
    let mut path: Path = input.parse()?;
    for segment in &mut path.segments {
        segment.arguments = syn::PathArguments::None;
    }
    Ok(path)
}

/// `crate = path`.
fn option(input: ParseStream<'_>) -> syn::Result<Path> {
    let option = input.call(Ident::parse_any)?;
    let word = option.to_string();
    if word != "crate" {
        let hint = suggest::hint(&word, &["crate"]);
        return Err(syn::Error::new(option.span(), format!("unknown option `{word}`{hint}")));
    }
    input.parse::<Token![=]>()?;
    Path::parse_mod_style(input)
}

/// The path as a user writes it.
pub(super) fn display(path: &Path) -> String {
    path.to_token_stream().to_string().replace(' ', "")
}
