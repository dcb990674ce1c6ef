//! Tags: the typed constants, and the plain enum of the outputs' names.

use crate::splitter::attributes;
use crate::splitter::model::Splitter;
use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::Type;
use syn::ext::IdentExt as _;

/// ```text
/// impl Orders {
///     /// Kept as received.
///     pub const INVALID_TAG: Tag<Self, 1> = Tag::new();
/// }
/// ```
pub(super) fn tags(splitter: &Splitter) -> TokenStream {
    let Splitter { so, ty, vis, cfg: splitter_cfg, .. } = splitter;
    let tag_enum = &splitter.tag;
    let allowed = attributes::allowed(&splitter.item.attrs);
    let (impl_generics, _, where_clause) = splitter.generics.split_for_impl();
    let constants = splitter.outputs.iter().map(|output| {
        let (cfg, tag, index) = (&output.cfg, &output.tag, output.literal());
        let attrs = &output.attrs;
        let docs = output.docs_or(&format!("The tag of the output `{}`.", output.ident));
        quote! {
            #cfg
            #docs
            #attrs
            #vis const #tag: #so::Tag<Self, #index> = #so::Tag::new();
        }
    });
    let arms = splitter.outputs.iter().map(|output| {
        let (cfg, variant) = (&output.cfg, &output.ident);
        quote!(#cfg Self::#variant { .. } => #tag_enum::#variant)
    });
    quote! {
        #splitter_cfg
        #[allow(
            dead_code,
            deprecated,
            single_use_lifetimes,
            reason = "generated for every output alike"
        )]
        #allowed
        impl #impl_generics #ty #where_clause {
            #(#constants)*

            /// The output that this route takes.
            #[must_use]
            #vis const fn tag(&self) -> #tag_enum {
                match self { #(#arms,)* }
            }
        }
    }
}

/// ```text
/// /// The outputs of [`Orders`], by name: for configuration, metrics and dead letters.
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
/// pub enum OrdersTag { Valid, Invalid }
/// ```
pub(super) fn tag_enum(splitter: &Splitter) -> TokenStream {
    let Splitter { vis, cfg: splitter_cfg, attrs: splitter_attrs, .. } = splitter;
    let tag_enum = &splitter.tag;
    let non_exhaustive = attributes::non_exhaustive(&splitter.item.attrs);
    let link = splitter.link();
    let doc =
        format!("The outputs of {link}, by name: for configuration, metrics and dead letters.");
    let variants = splitter.outputs.iter().map(|output| {
        let (cfg, attrs, variant) = (&output.cfg, &output.attrs, &output.ident);
        let docs = output.docs_or(&format!("The output `{}`.", output.name));
        quote!(#cfg #docs #attrs #variant)
    });
    quote! {
        #splitter_cfg
        #[doc = #doc]
        #[::core::prelude::v1::derive(
            ::core::clone::Clone,
            ::core::marker::Copy,
            ::core::fmt::Debug,
            ::core::cmp::PartialEq,
            ::core::cmp::Eq,
            ::core::cmp::PartialOrd,
            ::core::cmp::Ord,
            ::core::hash::Hash,
        )]
        #[allow(
            dead_code,
            deprecated,
            ambiguous_associated_items,
            non_camel_case_types,
            reason = "the variants are the outputs, whatever they are called"
        )]
        #splitter_attrs
        #non_exhaustive
        #vis enum #tag_enum { #(#variants,)* }
    }
}

/// ```text
/// impl OrdersTag {
///     pub const ALL: &'static [OrdersTag] = &[OrdersTag::Valid, …];
///     pub const fn name(self) -> &'static str { match self { Self::Valid => "valid", … } }
///     pub fn of(route: &Orders) -> OrdersTag { route.tag() }
///     pub fn route(self, value: Order) -> Orders { … }
/// }
/// impl Display for OrdersTag { … }
/// impl FromStr for OrdersTag { … }
/// impl_tag_serde!(OrdersTag);
/// ```
pub(super) fn tag_impls(splitter: &Splitter) -> TokenStream {
    let Splitter { so, ty, vis, .. } = splitter;
    let tag_enum = &splitter.tag;
    let link = splitter.link();
    let (impl_generics, _, where_clause) = splitter.generics.split_for_impl();
    let outputs = &splitter.outputs;
    let cfgs: Vec<_> = outputs.iter().map(|output| &output.cfg).collect();
    let variants: Vec<_> = outputs.iter().map(|output| &output.ident).collect();
    let names: Vec<_> = outputs.iter().map(|output| &output.name).collect();
    let of_doc =
        format!("The output that the route takes: [`tag`]({0}::tag).", splitter.item.ident.unraw());
    let of_doc = if splitter.vis_differs { "The output that the route takes." } else { &*of_doc };
    let route = route(splitter, &link);
    quote! {
        impl #tag_enum {
            /// All outputs, in the order of declaration.
            #vis const ALL: &'static [#tag_enum] = &[#(#cfgs #tag_enum::#variants),*];

            /// The output's name in `snake_case`.
            #[must_use]
            #vis const fn name(self) -> &'static ::core::primitive::str {
                match self { #(#cfgs #tag_enum::#variants => #names,)* }
            }

            #[doc = #of_doc]
            #[must_use]
            #vis const fn of #impl_generics (route: &#ty) -> #tag_enum #where_clause {
                route.tag()
            }

            #route
        }

        impl ::core::fmt::Display for #tag_enum {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad((*self).name())
            }
        }

        impl ::core::str::FromStr for #tag_enum {
            type Err = #so::UnknownTag;

            fn from_str(
                name: &::core::primitive::str,
            ) -> ::core::result::Result<#tag_enum, #so::UnknownTag> {
                match name {
                    #(#cfgs #names => ::core::result::Result::Ok(#tag_enum::#variants),)*
                    _ => ::core::result::Result::Err(#so::UnknownTag::new(
                        name,
                        "output",
                        &[#(#cfgs #names),*],
                    )),
                }
            }
        }

        #so::impl_tag_serde!(#tag_enum);
    }
}

/// `route` exists for every splitter; where the payloads differ, its bound has no implementation
/// and says so.
fn route(splitter: &Splitter, link: &str) -> TokenStream {
    let Splitter { so, ty, vis, .. } = splitter;
    let tag_enum = &splitter.tag;
    let parameters = splitter.parameters();
    let (_, _, where_clause) = splitter.generics.split_for_impl();
    let doc = format!("The route of `value` through this output of {link}.");
    if let Some(payload) = one_payload(splitter) {
        let arms = splitter.outputs.iter().map(|output| {
            let (cfg, variant, index) = (&output.cfg, &output.ident, output.literal());
            quote! {
                #cfg
                #tag_enum::#variant => <#ty as #so::OutputAt<#index>>::wrap(value)
            }
        });
        quote! {
            #[doc = #doc]
            #vis fn route<#parameters>(self, value: #payload) -> #ty #where_clause {
                match self { #(#arms,)* }
            }
        }
    } else {
        quote! {
            #[doc = #doc]
            ///
            /// It cannot be called, because the outputs carry different types.
            #vis fn route<#parameters __T: #so::PayloadOfAll<#ty>>(self, value: __T) -> #ty
            #where_clause
            {
                #so::PayloadOfAll::route(value)
            }
        }
    }
}

/// The payload of all outputs, if it is written the same everywhere.
fn one_payload(splitter: &Splitter) -> Option<&Type> {
    let mut payloads = splitter.outputs.iter().map(|output| &output.payload);
    let first = payloads.next()?;
    let written = ungrouped(first).to_token_stream().to_string();
    payloads.all(|other| ungrouped(other).to_token_stream().to_string() == written).then_some(first)
}

/// Without the invisible group that a `macro_rules` fragment brings.
fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungrouped(&group.elem),
        Type::Paren(paren) => ungrouped(&paren.elem),
        _ => ty,
    }
}
