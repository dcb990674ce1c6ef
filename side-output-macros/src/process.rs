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
use syn::{ItemFn, ReturnType, Type};

/// What `#[splitter(args)]` on `function` expands to: the function with a lint.
///
/// ```text
/// #[deny(unused_must_use)]
/// fn split_order(order: RawOrder) -> Orders { … }
/// ```
pub(crate) fn process(args: TokenStream, mut function: ItemFn) -> TokenStream {
    let mut errors = Errors::new();
    let args = FnArgs::parse(args, &function, &mut errors);
    let mut silent = args.is_none();
    if let Some(FnArgs { splitter }) = &args {
        check_returns(splitter, &function, &mut errors);
        silent |= lost::check(splitter, &function.block, &mut errors);
    }
    // Last, because an `allow` of the user would win if it came after it. Where our own message
    // has been given, the lint would only repeat it.
    function.attrs.push(if silent {
        syn::parse_quote!(#[allow(unused_must_use)])
    } else {
        syn::parse_quote!(#[deny(unused_must_use)])
    });
    let mut tokens = errors.finish();
    tokens.extend(quote!(#function));
    tokens
}

/// A split function that returns nothing can route nothing.
fn check_returns(splitter: &syn::Path, function: &ItemFn, errors: &mut Errors) {
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
