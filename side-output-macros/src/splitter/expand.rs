//! Tokens from the model. Nothing here can fail.
//!
//! What users name stands beside their enum; the rest is in `const _`, where it cannot meet
//! their names. Tokens are of the macro's span, which lints skip, except the names of fields,
//! methods and constants: those are of the variant's span, so that messages point there.

mod accessors;
mod payload;
mod routing;
mod tags;
mod wiring;

use super::attributes;
use super::model::Splitter;
use proc_macro2::TokenStream;
use quote::quote;

pub(super) fn expand(splitter: &Splitter) -> TokenStream {
    let item = &splitter.item;
    if splitter.outputs.is_empty() {
        return quote!(#item);
    }
    let must_use = must_use(splitter);
    let cfg = &splitter.cfg;
    let allowed = attributes::allowed(&item.attrs);
    let payloads = payload::structs(splitter);
    let tags = tags::tags(splitter);
    let tag_enum = tags::tag_enum(splitter);
    let streams = accessors::streams(splitter);
    let wiring = wiring::builder(splitter);
    let hidden = [
        routing::splitter_impl(splitter),
        routing::outputs(splitter),
        routing::lanes(splitter),
        accessors::methods(splitter),
        tags::tag_impls(splitter),
        wiring::methods(splitter),
        wiring::destinations(splitter),
    ];
    quote! {
        #must_use
        #item

        #payloads
        #tags
        #tag_enum
        #streams
        #wiring

        #cfg
        #[allow(
            dead_code,
            deprecated,
            explicit_outlives_requirements,
            single_use_lifetimes,
            unreachable_patterns,
            unused_variables,
            unused_mut,
            reason = "generated for every output alike"
        )]
        #allowed
        const _: () = {
            #(#hidden)*
        };
    }
}

/// `#[must_use = "…"]`, unless the enum has one: a second one is a warning.
fn must_use(splitter: &Splitter) -> TokenStream {
    if splitter.item.attrs.iter().any(|attribute| attribute.path().is_ident("must_use")) {
        return TokenStream::new();
    }
    let ident = &splitter.item.ident;
    let text = format!(
        "a value of `{ident}` routes the record only when it is returned; write `return` before it"
    );
    quote!(#[must_use = #text])
}
