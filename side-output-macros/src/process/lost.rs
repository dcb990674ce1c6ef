//! Finds routes that are built and lost: `Orders::Invalid(order);`, `let _ = …`, `drop(…)`.
//!
//! The lint that the attribute adds sees types and macros, and this does not; but the lint says
//! nothing about `let _ =` and `drop`, and advises to write the former.

use super::args::display;
use crate::errors::Errors;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use std::collections::HashMap;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Block, Expr, GenericArgument, Item, ItemFn, Local, Pat, Path, PathArguments, ReturnType, Stmt,
    Type,
};

/// Records each lost route; says whether there was one.
///
/// It also puts a `return` before them, where the function returns the enum itself: a record that
/// was moved into a lost route would be reported a second time where it is used afterwards.
pub(super) fn check(splitter: &Path, function: &mut ItemFn, errors: &mut Errors) -> bool {
    let mut words = Words::default();
    words.visit_return_type(&function.sig.output);
    let returns_self = words.0.contains_key("Self");
    words.visit_tokens(function.block.to_token_stream());
    let returned = match &function.sig.output {
        ReturnType::Type(_, ty) => wrapped(ty, "{}"),
        ReturnType::Default => "{}".to_owned(),
    };
    let name = |path: &Path| path.segments.last().map(|last| last.ident.clone());
    let returns_enum = match &function.sig.output {
        ReturnType::Type(_, ty) => match &**ty {
            Type::Path(ty) => ty.path.is_ident("Self") || name(&ty.path) == name(splitter),
            _ => false,
        },
        ReturnType::Default => false,
    };
    let mut lost = Lost {
        splitter,
        returns_self,
        returns_enum,
        returned,
        words,
        errors,
        nested: 0,
        found: false,
    };
    lost.visit_block_mut(&mut function.block);
    lost.found
}

struct Lost<'a> {
    splitter: &'a Path,
    /// The function returns `Self`, so that is the enum.
    returns_self: bool,
    /// The function returns the enum itself.
    returns_enum: bool,
    /// How a route is returned: `{}`, or `Some({})`.
    returned: String,
    /// How many closures and blocks with a `return` of their own are around.
    nested: usize,
    /// How often each word stands in the function.
    words: Words,
    errors: &'a mut Errors,
    found: bool,
}

#[derive(Default)]
struct Words(HashMap<String, usize>);

impl Words {
    fn visit_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => *self.0.entry(ident.to_string()).or_default() += 1,
                TokenTree::Group(group) => self.visit_tokens(group.stream()),
                // `format!("{_route}")` uses it too.
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    for word in
                        text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
                    {
                        *self.0.entry(word.to_owned()).or_default() += 1;
                    }
                }
                TokenTree::Punct(_) => {}
            }
        }
    }

    fn visit_return_type(&mut self, output: &ReturnType) {
        self.visit_tokens(output.to_token_stream());
    }
}

impl VisitMut for Lost<'_> {
    fn visit_stmt_mut(&mut self, statement: &mut Stmt) {
        match statement {
            Stmt::Expr(expr, Some(_)) => self.discarded(expr),
            Stmt::Local(Local { pat, init: Some(init), .. }) if self.is_unused(pat) => {
                self.discarded(&mut init.expr);
            }
            _ => {}
        }
        visit_mut::visit_stmt_mut(self, statement);
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            // `_ = route`
            Expr::Assign(assign) if matches!(*assign.left, Expr::Infer(_)) => {
                self.discarded(&mut assign.right);
            }
            // `drop(route)`
            Expr::Call(call) if call.args.len() == 1 && is_drop(&call.func) => {
                self.discarded(&mut call.args[0]);
            }
            _ => {}
        }
        let nested = matches!(expr, Expr::Closure(_) | Expr::Async(_) | Expr::TryBlock(_));
        self.nested += usize::from(nested);
        visit_mut::visit_expr_mut(self, expr);
        self.nested -= usize::from(nested);
    }

    fn visit_item_mut(&mut self, item: &mut Item) {
        self.nested += 1;
        visit_mut::visit_item_mut(self, item);
        self.nested -= 1;
    }
}

impl Lost<'_> {
    /// Looks for routes among the values that `expr`, whose value nobody uses, may have.
    fn discarded(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Paren(paren) => self.discarded(&mut paren.expr),
            Expr::Group(group) => self.discarded(&mut group.expr),
            Expr::Block(block) => self.discarded_tail(&mut block.block),
            Expr::If(branches) => {
                self.discarded_tail(&mut branches.then_branch);
                if let Some((_, other)) = &mut branches.else_branch {
                    self.discarded(other);
                }
            }
            Expr::Match(matched) => {
                for arm in &mut matched.arms {
                    self.discarded(&mut arm.body);
                }
            }
            Expr::Tuple(tuple) => {
                tuple.elems.iter_mut().for_each(|element| self.discarded(element));
            }
            Expr::Array(array) => {
                array.elems.iter_mut().for_each(|element| self.discarded(element));
            }
            // `Some(route)` and the like. `drop(route)` is found where it stands.
            Expr::Call(call) if is_wrapper(&call.func) => {
                call.args.iter_mut().for_each(|argument| self.discarded(argument));
            }
            _ if self.is_route(expr) => self.report(expr),
            _ => {}
        }
    }

    /// `_`, or `_route` that is named nowhere else.
    fn is_unused(&self, pat: &Pat) -> bool {
        match pat {
            Pat::Wild(_) => true,
            Pat::Type(typed) => self.is_unused(&typed.pat),
            Pat::Ident(name) if name.subpat.is_none() => {
                let name = name.ident.to_string();
                name.starts_with('_') && self.words.0.get(&name) == Some(&1)
            }
            _ => false,
        }
    }

    fn discarded_tail(&mut self, block: &mut Block) {
        if let Some(Stmt::Expr(tail, None)) = block.stmts.last_mut() {
            self.discarded(tail);
        }
    }

    /// `Orders::Invalid(order)`, `Orders::Late { … }`, `Orders::Skipped`.
    fn is_route(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Call(call) => match &*call.func {
                Expr::Path(path) => self.is_variant(&path.path),
                _ => false,
            },
            Expr::Struct(structure) => self.is_variant(&structure.path),
            Expr::Path(path) => self.is_variant(&path.path),
            _ => false,
        }
    }

    /// Whether the path leads to a variant, as far as its looks tell: other functions of the enum
    /// start with a small letter, and constants have no small letters.
    fn is_variant(&self, path: &Path) -> bool {
        let Some(enum_name) = self.splitter.segments.last() else { return false };
        let mut segments = path.segments.iter().rev();
        let (Some(variant), Some(before)) = (segments.next(), segments.next()) else {
            return false;
        };
        let variant = variant.ident.to_string();
        (before.ident == enum_name.ident || self.returns_self && before.ident == "Self")
            && variant.starts_with(char::is_uppercase)
            && !variant.ends_with("_TAG")
    }

    fn report(&mut self, expr: &mut Expr) {
        self.found = true;
        let mut route = shortened(expr, &display(self.splitter));
        if self.nested == 0 {
            route = self.returned.replace("{}", &route);
        }
        let message = format!(
            "this route is built but not returned; the record would go nowhere\nreturn it: \
             `return {route};`"
        );
        self.errors.at(&*expr, message);
        if self.nested == 0 && self.returns_enum {
            *expr = syn::parse_quote!(return #expr);
        }
    }
}

/// How a value is returned as `ty`: `Some({})` for an `Option`, and so on inwards.
fn wrapped(ty: &Type, inner: &str) -> String {
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
fn shortened(expr: &Expr, splitter: &str) -> String {
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

fn is_drop(function: &Expr) -> bool {
    ends_in(function, &["drop", "forget", "black_box"])
}

fn is_wrapper(function: &Expr) -> bool {
    ends_in(function, &["Some", "Ok", "Err"])
}

fn ends_in(function: &Expr, names: &[&str]) -> bool {
    let Expr::Path(path) = function else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|last| names.iter().any(|name| last.ident == name))
}
