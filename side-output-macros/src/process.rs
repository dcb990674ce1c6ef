//! `#[splitter(Orders)]` on a function: a route that is built must be returned.
//!
//! The guarantee is in the types: only what the function returns is ever emitted. What is added
//! here makes a route that is lost on the way an error, with a message that says what to do.

mod args;
mod lost;

use self::args::FnArgs;
use crate::errors::Errors;
use proc_macro2::TokenStream;
use quote::quote;
use syn::visit::Visit;
use syn::{ItemFn, Path, ReturnType, Signature, Type};

/// What `#[splitter(args)]` on `function` expands to: the function with a lint.
///
/// ```text
/// #[deny(unused_must_use)]
/// fn split_order(order: RawOrder) -> Orders {
///     const _: fn(&Orders) -> usize = <Orders as Splitter>::index;
///     …
/// }
/// ```
pub(crate) fn process(args: TokenStream, mut function: ItemFn) -> TokenStream {
    let mut errors = Errors::new();
    let args = FnArgs::parse(args, &function, &mut errors);
    let mut silent = args.is_none();
    if let Some(FnArgs { splitter, krate }) = &args {
        check_returns(splitter, &function, &mut errors);
        function.block.stmts.splice(0..0, assert_splitter(splitter, krate.as_ref(), &function.sig));
        silent |= lost::check(splitter, &mut function, &mut errors);
    }
    // Last, because an `allow` of the user would win if it came after it. Where our own message
    // has been given, the lint would only repeat it.
    function.attrs.push(if silent {
        syn::parse_quote!(#[allow(unused_must_use, unreachable_code)])
    } else {
        syn::parse_quote!(#[deny(unused_must_use)])
    });
    let mut tokens = errors.finish();
    tokens.extend(quote!(#function));
    tokens
}

/// Says that the enum has no `#[splitter]`, if it has none, at the function and not where it is
/// used.
///
/// Only where the name alone is a type: an item in a function cannot use its generics.
fn assert_splitter(
    splitter: &Path,
    krate: Option<&Path>,
    signature: &Signature,
) -> Option<syn::Stmt> {
    let mut returned = Returned { splitter, found: false };
    returned.visit_return_type(&signature.output);
    if !returned.found || splitter.is_ident("Self") {
        return None;
    }
    let so = crate::private_path(krate);
    Some(syn::parse_quote! {
        const _: fn(&#splitter) -> ::core::primitive::usize =
            <#splitter as #so::Splitter>::index;
    })
}

/// Looks for the enum, without generics of its own, in a type.
struct Returned<'a> {
    splitter: &'a Path,
    found: bool,
}

impl<'ast> Visit<'ast> for Returned<'_> {
    fn visit_path(&mut self, path: &'ast Path) {
        self.found |= path == self.splitter;
        syn::visit::visit_path(self, path);
    }
}

/// A split function that returns nothing can route nothing.
fn check_returns(splitter: &Path, function: &ItemFn, errors: &mut Errors) {
    let name = args::display(splitter);
    let message = format!("a split function returns its route; declare `-> {name}`");
    match &function.sig.output {
        ReturnType::Default => errors.at(&function.sig, message),
        ReturnType::Type(_, ty) if matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty()) => {
            errors.at(ty, message);
        }
        ReturnType::Type(..) => {}
    }
}

#[cfg(test)]
mod tests;
