//! What an output carries: how the fields of a variant become one payload.

use super::derives::is_serde;
use super::generics::used_generics;
use super::{args, attributes};
use crate::errors::Errors;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::{Attribute, Fields, Generics, Path, Type, Variant};

/// How the variant's fields become one payload.
pub(super) enum Shape {
    /// `Late`, with `()`.
    Unit,
    /// `Late(T)`, with `T`.
    One,
    /// `Late()` or `Late(A, B)`, with a tuple of so many elements.
    Tuple(usize),
    /// `Late { a: A }`, with a generated struct.
    Struct(Box<Payload>),
}

/// The generated struct `OrdersLate`.
pub(super) struct Payload {
    pub(super) ident: Ident,
    /// The parameters that its fields mention.
    pub(super) generics: Generics,
    /// What it has of the variant's other attributes.
    pub(super) attrs: TokenStream,
    pub(super) fields: Vec<PayloadField>,
    /// The derives of the enum that a struct can have too.
    pub(super) derives: Vec<Path>,
}

impl Payload {
    /// `OrdersLate<T>`.
    pub(super) fn ty(&self) -> Type {
        let ident = &self.ident;
        let (_, arguments, _) = self.generics.split_for_impl();
        syn::parse_quote!(#ident #arguments)
    }
}

pub(super) struct PayloadField {
    pub(super) attrs: Vec<Attribute>,
    pub(super) cfg: TokenStream,
    pub(super) ident: Ident,
    pub(super) ty: Type,
}

pub(super) fn shape(
    variant: &Variant,
    renamed: Option<&Ident>,
    splitter: &Ident,
    generics: &Generics,
    derives: &[Path],
    errors: &mut Errors,
) -> (Shape, Type) {
    if let (Some(renamed), Fields::Unit | Fields::Unnamed(_)) = (renamed, &variant.fields) {
        let message = "only a variant with named fields has a struct to name; remove `payload`";
        errors.at(renamed, message);
    }
    match &variant.fields {
        Fields::Unit => (Shape::Unit, syn::parse_quote!(())),
        Fields::Unnamed(fields) => {
            for field in &fields.unnamed {
                if let Some(cfg) = field.attrs.iter().find(|field| field.path().is_ident("cfg")) {
                    let message = "a field of a tuple variant cannot have a `cfg`, because it is \
                                   part of the output's type; put it on the variant";
                    errors.at(cfg, message);
                }
            }
            let types = fields.unnamed.iter().map(|field| &field.ty);
            match fields.unnamed.len() {
                1 => (Shape::One, fields.unnamed[0].ty.clone()),
                count => (Shape::Tuple(count), syn::parse_quote!((#(#types),*))),
            }
        }
        Fields::Named(fields) => {
            let pascal = pascal(&variant.ident.unraw().to_string());
            let default =
                || format_ident!("{}{pascal}", splitter.unraw(), span = variant.ident.span());
            let ident = renamed.cloned().unwrap_or_else(default);
            let with_serde = derives.iter().any(is_serde);
            let fields: Vec<_> = fields
                .named
                .iter()
                .map(|field| {
                    let attrs = field.attrs.iter().filter(|attribute| {
                        let path = attribute.path();
                        path.is_ident("doc") || with_serde && path.is_ident("serde")
                    });
                    let cfg = args::cfg_predicate(&field.attrs)
                        .map_or_else(TokenStream::new, |predicate| quote!(#[cfg(#predicate)]));
                    PayloadField {
                        attrs: attrs.cloned().collect(),
                        cfg,
                        ident: field.ident.clone().expect("fields in braces have names"),
                        ty: field.ty.clone(),
                    }
                })
                .collect();
            let generics = used_generics(generics, &fields);
            let (mut attrs, derives) = (attributes::allowed(&variant.attrs), derives.to_vec());
            attrs.extend(attributes::non_exhaustive(&variant.attrs));
            let payload = Payload { ident, generics, attrs, fields, derives };
            let ty = payload.ty();
            (Shape::Struct(Box::new(payload)), ty)
        }
    }
}

/// `late` is `Late`; a variant is normally in that form.
fn pascal(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
