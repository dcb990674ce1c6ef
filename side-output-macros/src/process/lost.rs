//! Finds routes that are built and lost: `Orders::Invalid(order);`, `let _ = …`, `drop(…)`.
//!
//! The lint that the attribute adds sees types and macros, and this does not; but the lint says
//! nothing about `let _ =` and `drop`, and advises to write the former.

use super::args::display;
use crate::errors::Errors;
use quote::ToTokens as _;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Local, Pat, Path, Stmt};

/// Records each lost route; says whether there was one.
pub(super) fn check(splitter: &Path, body: &Block, errors: &mut Errors) -> bool {
    let mut lost = Lost { splitter, errors, found: false };
    lost.visit_block(body);
    lost.found
}

struct Lost<'a> {
    splitter: &'a Path,
    errors: &'a mut Errors,
    found: bool,
}

impl<'ast> Visit<'ast> for Lost<'_> {
    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        match statement {
            Stmt::Expr(expr, Some(_)) => self.discarded(expr),
            Stmt::Local(Local { pat: Pat::Wild(_), init: Some(init), .. }) => {
                self.discarded(&init.expr);
            }
            Stmt::Local(Local { pat: Pat::Type(typed), init: Some(init), .. })
                if matches!(*typed.pat, Pat::Wild(_)) =>
            {
                self.discarded(&init.expr);
            }
            _ => {}
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            // `_ = route`
            Expr::Assign(assign) if matches!(*assign.left, Expr::Infer(_)) => {
                self.discarded(&assign.right);
            }
            // `drop(route)`
            Expr::Call(call) if call.args.len() == 1 && is_drop(&call.func) => {
                self.discarded(&call.args[0]);
            }
            _ => {}
        }
        visit::visit_expr(self, expr);
    }
}

impl Lost<'_> {
    /// Looks for routes among the values that `expr`, whose value nobody uses, may have.
    fn discarded(&mut self, expr: &Expr) {
        match expr {
            Expr::Paren(paren) => self.discarded(&paren.expr),
            Expr::Group(group) => self.discarded(&group.expr),
            Expr::Block(block) => self.discarded_tail(&block.block),
            Expr::If(branches) => {
                self.discarded_tail(&branches.then_branch);
                if let Some((_, other)) = &branches.else_branch {
                    self.discarded(other);
                }
            }
            Expr::Match(matched) => {
                for arm in &matched.arms {
                    self.discarded(&arm.body);
                }
            }
            Expr::Tuple(tuple) => tuple.elems.iter().for_each(|element| self.discarded(element)),
            Expr::Array(array) => array.elems.iter().for_each(|element| self.discarded(element)),
            // `Some(route)` and the like. `drop(route)` is found where it stands.
            Expr::Call(call) if is_wrapper(&call.func) => {
                call.args.iter().for_each(|argument| self.discarded(argument));
            }
            _ if self.is_route(expr) => self.report(expr),
            _ => {}
        }
    }

    fn discarded_tail(&mut self, block: &Block) {
        if let Some(Stmt::Expr(tail, None)) = block.stmts.last() {
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
        before.ident == enum_name.ident
            && variant.starts_with(char::is_uppercase)
            && !variant.ends_with("_TAG")
    }

    fn report(&mut self, expr: &Expr) {
        self.found = true;
        let route = shortened(expr, &display(self.splitter));
        let message = format!(
            "this route is built but not returned; the record would go nowhere\nreturn it: \
             `return {route};`"
        );
        self.errors.at(expr, message);
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
