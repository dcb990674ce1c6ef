//! Attributes of the enum and of its variants that what is generated from them has too.

use super::spans::respan;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// `#[deprecated]`, and the lints that the user allows.
pub(super) fn inherited(attributes: &[Attribute]) -> TokenStream {
    copied(attributes, &|meta| {
        meta.path().is_ident("deprecated").then(|| quote!(#meta)).or_else(|| lints(meta))
    })
}

/// The lints that the user allows. What is expected of the user's item may not come true of others,
/// so it is allowed there.
pub(super) fn allowed(attributes: &[Attribute]) -> TokenStream {
    copied(attributes, &lints)
}

/// `#[non_exhaustive]`.
pub(super) fn non_exhaustive(attributes: &[Attribute]) -> TokenStream {
    copied(attributes, &|meta| meta.path().is_ident("non_exhaustive").then(|| quote!(#meta)))
}

fn lints(meta: &Meta) -> Option<TokenStream> {
    let Meta::List(list) = meta else { return None };
    let tokens = &list.tokens;
    let allows = list.path.is_ident("allow") || list.path.is_ident("expect");
    allows.then(|| quote!(allow(#tokens)))
}

/// What `copy` makes of the attributes, also of those behind a `cfg_attr`; as if the macro had
/// written it, so that lints on attributes are not reported twice.
fn copied(attributes: &[Attribute], copy: &dyn Fn(&Meta) -> Option<TokenStream>) -> TokenStream {
    let copies = attributes.iter().filter_map(|attribute| {
        if !attribute.path().is_ident("cfg_attr") {
            return copy(&attribute.meta);
        }
        let Meta::List(list) = &attribute.meta else { return None };
        let metas = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
        let predicate = metas.first()?;
        let copies: Vec<_> = metas.iter().skip(1).filter_map(copy).collect();
        (!copies.is_empty()).then(|| quote!(cfg_attr(#predicate, #(#copies),*)))
    });
    let tokens = quote!(#(#[#copies])*);
    tokens.into_iter().map(|token| respan(token, Span::call_site())).collect()
}
