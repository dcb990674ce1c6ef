//! `#[splitter]` on an enum: parse, check, expand.

mod args;
mod attributes;
mod check;
mod derives;
mod expand;
mod generics;
mod model;
mod shape;
mod spans;

use crate::errors::Errors;
use proc_macro2::TokenStream;

pub(crate) use self::args::EnumArgs;

/// What `#[splitter(args)]` on the enum `item` expands to.
///
/// Mistakes do not stop the expansion: the model is repaired where it is wrong, so that uses of
/// what would have been generated do not become errors of their own.
pub(crate) fn splitter(args: TokenStream, item: syn::ItemEnum) -> TokenStream {
    if let Some(both) = generics::by_cfg(&args, &item) {
        return both;
    }
    let mut errors = Errors::new();
    let args = EnumArgs::parse(args, &mut errors);
    let mut splitter = model::Splitter::new(args, item, &mut errors);
    check::check(&mut splitter, &mut errors);
    let mut tokens = errors.finish();
    tokens.extend(expand::expand(&splitter));
    tokens
}

#[cfg(test)]
mod tests;
