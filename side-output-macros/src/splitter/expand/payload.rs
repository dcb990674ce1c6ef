//! The structs of variants with named fields, and how a payload becomes a variant and back.

use crate::splitter::attributes;
use crate::splitter::model::{Output, Splitter};
use crate::splitter::shape::Shape;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// For `Late { order: Order, by: Duration }`:
///
/// ```text
/// /// Payload of the output `Late` of [`Orders`].
/// #[derive(Debug)]
/// pub struct OrdersLate { pub order: Order, pub by: Duration }
/// ```
pub(super) fn structs(splitter: &Splitter) -> TokenStream {
    let (vis, splitter_cfg) = (&splitter.vis, &splitter.cfg);
    let splitter_allowed = attributes::allowed(&splitter.item.attrs);
    let structs = splitter.outputs.iter().filter_map(|output| {
        let Shape::Struct(payload) = &output.shape else { return None };
        let (ident, cfg, derives) = (&payload.ident, &output.cfg, &payload.derives);
        let attrs = &payload.attrs;
        let generics = &payload.generics;
        let (_, _, where_clause) = generics.split_for_impl();
        let (link, variant) = (splitter.link(), output.ident.to_string());
        let doc = format!("Payload of the output `{variant}` of {link}.");
        let docs = output.docs_after(&doc);
        let fields = payload.fields.iter().map(|field| {
            let (cfg, attrs, ident, ty) = (&field.cfg, &field.attrs, &field.ident, &field.ty);
            let default = field.attrs.iter().all(|attribute| !attribute.path().is_ident("doc"));
            let text = format!("Field `{ident}` of `{variant}`.");
            let doc = default.then(|| quote!(#[doc = #text]));
            quote!(#cfg #doc #(#attrs)* #vis #ident: #ty)
        });
        let derive =
            (!derives.is_empty()).then(|| quote!(#[::core::prelude::v1::derive(#(#derives),*)]));
        Some(quote! {
            #splitter_cfg
            #cfg
            #docs
            #derive
            #[allow(
                dead_code,
                deprecated,
                explicit_outlives_requirements,
                reason = "the fields and bounds are the variant's"
            )]
            #splitter_allowed
            #attrs
            #vis struct #ident #generics #where_clause { #(#fields,)* }
        })
    });
    quote!(#(#structs)*)
}

impl Output {
    /// The pattern of the variant, and the payload that it binds:
    /// `Self::Late { order: __0, by: __1 }` and `OrdersLate { order: __0, by: __1 }`.
    ///
    /// The pattern is an expression too, and the payload a pattern, so this serves both ways.
    pub(super) fn conversion(&self) -> (TokenStream, TokenStream) {
        let variant = &self.ident;
        match &self.shape {
            Shape::Unit => (quote!(Self::#variant), quote!(())),
            Shape::One => (quote!(Self::#variant(__0)), quote!(__0)),
            Shape::Tuple(count) => {
                let binds = binds(*count);
                (quote!(Self::#variant(#(#binds),*)), quote!((#(#binds),*)))
            }
            Shape::Struct(payload) => {
                let binds = binds(payload.fields.len());
                let fields = payload.fields.iter().zip(&binds).map(|(field, bind)| {
                    let (cfg, ident) = (&field.cfg, &field.ident);
                    quote!(#cfg #ident: #bind)
                });
                let fields = quote!({ #(#fields),* });
                let ident = &payload.ident;
                (quote!(Self::#variant #fields), quote!(#ident #fields))
            }
        }
    }
}

fn binds(count: usize) -> Vec<Ident> {
    (0..count).map(|index| format_ident!("__{index}")).collect()
}
