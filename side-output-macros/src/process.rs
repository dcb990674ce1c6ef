//! `#[splitter(Orders)]` on a function: a route that is built must be returned.

use proc_macro2::TokenStream;
use quote::ToTokens as _;

/// What `#[splitter(args)]` on `function` expands to.
pub(crate) fn process(_args: TokenStream, mut function: syn::ItemFn) -> TokenStream {
    // Last, so that an `allow` of the user does not follow it.
    function.attrs.push(syn::parse_quote!(#[deny(unused_must_use)]));
    function.into_token_stream()
}
