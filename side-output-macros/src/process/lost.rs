//! Finds routes that are built and lost: `Orders::Invalid(order);`, `let _ = …`, `drop(…)`.
//!
//! The lint that the attribute adds sees types and macros, and this does not; but the lint says
//! nothing about `let _ =` and `drop`, and advises to write the former. What neither finds is in
//! `docs/compile-errors.md`.

use super::advice::{shortened, wrapped};
use super::args::display;
use super::scope::Scope;
use crate::errors::Errors;
use quote::quote;
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, Item, ItemFn, Local, Macro, Pat, Path, ReturnType, Stmt, Token, Type};

/// Methods that do nothing but make a value of the function that they are given, or of the value.
const OF_FUNCTIONS: [&str; 11] = [
    "map",
    "map_or",
    "map_or_else",
    "map_err",
    "and_then",
    "or_else",
    "ok_or_else",
    "unwrap_or_else",
    "then",
    "filter_map",
    "flat_map",
];
const OF_VALUES: [&str; 5] = ["ok_or", "or", "and", "unwrap_or", "then_some"];
/// Methods that do nothing but hand on what they are called on.
const HANDING_ON: [&str; 10] =
    ["filter", "clone", "cloned", "copied", "into", "unwrap", "expect", "ok", "err", "as_ref"];

/// Records each lost route; says whether there was one.
///
/// It also puts a `return` before them, where the function returns the enum itself: a record that
/// was moved into a lost route would be reported a second time where it is used afterwards.
pub(super) fn check(splitter: &Path, function: &mut ItemFn, errors: &mut Errors) -> bool {
    let scope = Scope::of(function, splitter);
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
    let mut lost =
        Lost { splitter, returns_enum, returned, scope, errors, nested: 0, found: false };
    lost.visit_block_mut(&mut function.block);
    lost.found
}

struct Lost<'a> {
    splitter: &'a Path,
    /// The function returns the enum itself.
    returns_enum: bool,
    /// How a route is returned: `{}`, or `Some({})`.
    returned: String,
    /// How many closures and blocks with a `return` of their own are around.
    nested: usize,
    scope: Scope,
    errors: &'a mut Errors,
    found: bool,
}

impl VisitMut for Lost<'_> {
    fn visit_stmt_mut(&mut self, statement: &mut Stmt) {
        match statement {
            Stmt::Expr(expr, Some(_)) => self.discarded(expr),
            Stmt::Macro(statement) if statement.semi_token.is_some() => {
                self.discarded_macro(&mut statement.mac);
            }
            Stmt::Local(Local { pat, init: Some(init), .. }) => self.bound(pat, &mut init.expr),
            _ => {}
        }
        visit_mut::visit_stmt_mut(self, statement);
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Assign(assign) => self.assigned(&assign.left, &mut assign.right),
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
            Expr::Reference(reference) => self.discarded(&mut reference.expr),
            Expr::Try(tried) => self.discarded(&mut tried.expr),
            Expr::Macro(invocation) => self.discarded_macro(&mut invocation.mac),
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
            Expr::MethodCall(call) => {
                let is_one_of = |names: &[&str]| names.iter().any(|name| call.method == name);
                let of_functions = is_one_of(&OF_FUNCTIONS);
                if of_functions || is_one_of(&OF_VALUES) {
                    self.discarded(&mut call.receiver);
                    for argument in &mut call.args {
                        self.discarded_argument(argument, of_functions);
                    }
                } else if is_one_of(&HANDING_ON) {
                    self.discarded(&mut call.receiver);
                }
            }
            _ if self.is_route(expr) => self.report(expr),
            _ => {}
        }
    }

    /// `Orders::Invalid` or `|order| Orders::Invalid(order)` in a call whose value nobody uses.
    fn discarded_argument(&mut self, argument: &mut Expr, is_function: bool) {
        match argument {
            Expr::Closure(closure) => {
                self.nested += 1;
                self.discarded(&mut closure.body);
                self.nested -= 1;
            }
            Expr::Path(path) if is_function => {
                if self.is_variant(&path.path) {
                    let route = format!("{}(…)", shortened(argument, &display(self.splitter)));
                    self.say(argument, &route);
                }
            }
            _ => self.discarded(argument),
        }
    }

    /// `vec![Orders::Invalid(order)]` and `dbg!(Orders::Invalid(order))`.
    fn discarded_macro(&mut self, mac: &mut Macro) {
        let last = mac.path.segments.last();
        if !last.is_some_and(|last| last.ident == "vec" || last.ident == "dbg") {
            return;
        }
        let parser = |input: ParseStream<'_>| {
            let elements = Punctuated::<Expr, Token![,]>::parse_separated_nonempty(input)?;
            if input.is_empty() || input.peek(Token![,]) || input.peek(Token![;]) {
                return Ok((elements, input.parse::<proc_macro2::TokenStream>()?));
            }
            Err(input.error("not a list of expressions"))
        };
        if let Ok((mut elements, rest)) = parser.parse2(mac.tokens.clone()) {
            elements.iter_mut().for_each(|element| self.discarded(element));
            mac.tokens = quote!(#elements #rest);
        }
    }

    /// Looks for routes in what is bound to names that nobody reads.
    fn bound(&mut self, pat: &Pat, expr: &mut Expr) {
        match (pat, expr) {
            (Pat::Wild(_), expr) => self.discarded(expr),
            (Pat::Type(typed), expr) => self.bound(&typed.pat, expr),
            (Pat::Paren(paren), expr) => self.bound(&paren.pat, expr),
            (Pat::Ident(name), expr)
                if name.subpat.is_none() && self.scope.is_never_read(&name.ident) =>
            {
                self.discarded(expr);
            }
            (Pat::Tuple(pats), Expr::Tuple(exprs)) => {
                self.bound_each(&pats.elems, &mut exprs.elems);
            }
            (Pat::Slice(pats), Expr::Array(exprs)) => {
                self.bound_each(&pats.elems, &mut exprs.elems);
            }
            (Pat::TupleStruct(pats), Expr::Call(call)) if is_wrapper(&call.func) => {
                self.bound_each(&pats.elems, &mut call.args);
            }
            _ => {}
        }
    }

    fn bound_each(
        &mut self,
        pats: &Punctuated<Pat, Token![,]>,
        exprs: &mut Punctuated<Expr, Token![,]>,
    ) {
        if pats.len() == exprs.len() && !pats.iter().any(|pat| matches!(pat, Pat::Rest(_))) {
            pats.iter().zip(exprs).for_each(|(pat, expr)| self.bound(pat, expr));
        }
    }

    /// Looks for routes in what is assigned to places that nobody reads.
    fn assigned(&mut self, place: &Expr, expr: &mut Expr) {
        match (place, expr) {
            (Expr::Infer(_), expr) => self.discarded(expr),
            (Expr::Path(path), expr)
                if path.path.get_ident().is_some_and(|name| self.scope.is_never_read(name)) =>
            {
                self.discarded(expr);
            }
            (Expr::Tuple(places), Expr::Tuple(exprs))
                if places.elems.len() == exprs.elems.len() =>
            {
                for (place, expr) in places.elems.iter().zip(&mut exprs.elems) {
                    self.assigned(place, expr);
                }
            }
            _ => {}
        }
    }

    fn discarded_tail(&mut self, block: &mut Block) {
        match block.stmts.last_mut() {
            Some(Stmt::Expr(tail, None)) => self.discarded(tail),
            Some(Stmt::Macro(tail)) if tail.semi_token.is_none() => {
                self.discarded_macro(&mut tail.mac);
            }
            _ => {}
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
        if let Some(name) = path.get_ident() {
            return self.scope.imports(name);
        }
        let mut segments = path.segments.iter().rev();
        let (Some(variant), Some(before)) = (segments.next(), segments.next()) else {
            return false;
        };
        let variant = variant.ident.to_string();
        (before.ident == enum_name.ident || self.scope.returns_self && before.ident == "Self")
            && variant.starts_with(char::is_uppercase)
            && !variant.ends_with("_TAG")
    }

    fn report(&mut self, expr: &mut Expr) {
        let route = shortened(expr, &display(self.splitter));
        self.say(expr, &route);
        if self.nested == 0 && self.returns_enum {
            *expr = syn::parse_quote!(return #expr);
        }
    }

    /// The error at `expr`, with the advice to return `route`.
    fn say(&mut self, expr: &Expr, route: &str) {
        self.found = true;
        let route = match self.nested {
            0 => self.returned.replace("{}", route),
            _ => route.to_owned(),
        };
        let message = format!(
            "this route is built but not returned; the record would go nowhere\nreturn it: \
             `return {route};`"
        );
        self.errors.at(expr, message);
    }
}

fn is_drop(function: &Expr) -> bool {
    ends_in(function, &["drop", "forget", "black_box"])
}

fn is_wrapper(function: &Expr) -> bool {
    let is_box = |path: &Path| {
        let mut last = path.segments.iter().rev().map(|segment| segment.ident.to_string());
        last.next().is_some_and(|name| name == "new")
            && last.next().is_some_and(|name| ["Box", "Rc", "Arc"].contains(&&*name))
    };
    ends_in(function, &["Some", "Ok", "Err"])
        || matches!(function, Expr::Path(path) if is_box(&path.path))
}

fn ends_in(function: &Expr, names: &[&str]) -> bool {
    let Expr::Path(path) = function else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|last| names.iter().any(|name| last.ident == name))
}
