//! The declared outputs: what `expand` may rely on.

use super::args::{self, EnumArgs, OutputArgs};
use super::attributes;
use super::derives::derives;
use super::generics::WithoutSelf;
use super::shape::{Shape, shape};
use super::spans::located;
use crate::case;
use crate::errors::Errors;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::visit_mut::VisitMut as _;
use syn::{Attribute, Expr, Generics, ItemEnum, LitStr, Meta, Path, Type, Variant, Visibility};

/// An enum with `#[splitter]`.
pub(super) struct Splitter {
    /// The enum as the user wrote it, without our attributes.
    pub(super) item: ItemEnum,
    /// The enum's generics, with `Self` replaced, so that they can stand at other items.
    pub(super) generics: Generics,
    /// `Orders<'a, T>`.
    pub(super) ty: TokenStream,
    /// Visibility of the companions.
    pub(super) vis: Visibility,
    /// Whether that is another one than the enum's.
    pub(super) vis_differs: bool,
    /// `::side_output::__private`.
    pub(super) so: TokenStream,
    /// `#[cfg(…)]` of the enum itself.
    pub(super) cfg: TokenStream,
    /// What the companions have of the enum's other attributes.
    pub(super) attrs: TokenStream,
    /// `OrdersStreams`.
    pub(super) streams: Ident,
    /// `OrdersWiring`.
    pub(super) wiring: Ident,
    /// `OrdersTag`.
    pub(super) tag: Ident,
    pub(super) outputs: Vec<Output>,
}

/// A variant of it.
pub(super) struct Output {
    /// Position among all variants, whatever their `cfg` says.
    pub(super) index: usize,
    /// `Late`.
    pub(super) ident: Ident,
    /// `late`; `type` for `r#type`.
    pub(super) name: String,
    /// `late`, of the variant's span.
    pub(super) field: Ident,
    /// `LATE_TAG`.
    pub(super) tag: Ident,
    /// The variant's doc comment.
    pub(super) docs: Vec<Attribute>,
    /// What the output's tag, field and method have of the variant's other attributes.
    pub(super) attrs: TokenStream,
    /// The predicate of its `cfg` attributes.
    pub(super) predicate: Option<TokenStream>,
    /// `#[cfg(predicate)]` or nothing.
    pub(super) cfg: TokenStream,
    pub(super) shape: Shape,
    /// What the output carries.
    pub(super) payload: Type,
    pub(super) main: Option<Attribute>,
    pub(super) tap: Option<Attribute>,
    pub(super) capacity: Option<Expr>,
    pub(super) overflow: Option<LitStr>,
    /// `name = "…"`, if given.
    pub(super) renamed: Option<LitStr>,
}

impl Splitter {
    pub(super) fn new(args: EnumArgs, mut item: ItemEnum, errors: &mut Errors) -> Self {
        let read: Vec<_> =
            item.variants.iter().map(|variant| OutputArgs::parse(&variant.attrs, errors)).collect();
        for variant in &mut item.variants {
            variant
                .attrs
                .retain(|attribute| !args::is_ours(attribute) && !args::is_conditional(attribute));
        }

        let ident = &item.ident;
        let (_, ty_generics, _) = item.generics.split_for_impl();
        let ty = quote!(#ident #ty_generics);
        let mut without_self = WithoutSelf { ty: syn::parse_quote!(#ty) };
        let mut generics = item.generics.clone();
        without_self.visit_generics_mut(&mut generics);
        let derives = derives(&item.attrs);
        let outputs = item
            .variants
            .iter()
            .zip(read)
            .enumerate()
            .map(|(index, (variant, args))| {
                let mut variant = variant.clone();
                without_self.visit_fields_mut(&mut variant.fields);
                Output::new(index, &variant, args, ident, &generics, &derives, errors)
            })
            .collect();

        let vis_differs = args.vis.is_some();
        let vis = located(args.vis.as_ref().unwrap_or(&item.vis));
        let so = crate::private_path(args.krate.as_ref());
        let cfg = args::cfg_predicate(&item.attrs);
        let cfg = cfg.map_or_else(TokenStream::new, |predicate| quote!(#[cfg(#predicate)]));
        let ident = &item.ident;
        // Of the span of the enum's name: messages that name one of them point there.
        let companion = |name: Option<Ident>, suffix: &str| {
            name.unwrap_or_else(|| format_ident!("{}{suffix}", ident.unraw(), span = ident.span()))
        };
        let streams = companion(args.streams, "Streams");
        let wiring = companion(args.wiring, "Wiring");
        let tag = companion(args.tag, "Tag");
        let attrs = attributes::inherited(&item.attrs);
        Self { item, generics, ty, vis, vis_differs, so, cfg, attrs, streams, wiring, tag, outputs }
    }

    /// An identifier that users do not meet: `__OrdersLanes`.
    pub(super) fn hidden(&self, suffix: &str) -> Ident {
        format_ident!("__{}{suffix}", self.item.ident.unraw(), span = Span::call_site())
    }

    /// A link to the enum, where its documentation is as visible as what links to it.
    pub(super) fn link(&self) -> String {
        let ident = self.item.ident.unraw();
        if self.vis_differs { format!("`{ident}`") } else { format!("[`{ident}`]") }
    }
}

impl Output {
    fn new(
        index: usize,
        variant: &Variant,
        args: OutputArgs,
        splitter: &Ident,
        generics: &Generics,
        derives: &[Path],
        errors: &mut Errors,
    ) -> Self {
        let ident = variant.ident.clone();
        let name = match &args.name {
            Some(name) => name.value(),
            None => case::snake(&ident.unraw().to_string()),
        };
        let predicate = args::cfg_predicate(&variant.attrs);
        let cfg = match &predicate {
            Some(predicate) => quote!(#[cfg(#predicate)]),
            None => TokenStream::new(),
        };
        let (shape, payload) =
            shape(variant, args.payload.as_ref(), splitter, generics, derives, errors);
        let docs = variant.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
        Self {
            index,
            field: case::ident(&name, ident.span()),
            tag: case::tag_constant(&name, ident.span()),
            name,
            docs: docs.cloned().collect(),
            attrs: attributes::inherited(&variant.attrs),
            predicate,
            cfg,
            shape,
            payload,
            main: args.main,
            tap: args.tap,
            capacity: args.capacity,
            overflow: args.overflow,
            renamed: args.name,
            ident,
        }
    }

    /// The index as it stands in a type: `1`, not `1usize`.
    pub(super) fn literal(&self) -> Literal {
        Literal::usize_unsuffixed(self.index)
    }

    /// Gives the output another name, where the one it has is taken.
    pub(super) fn rename(&mut self, name: String) {
        self.field = case::ident(&name, self.ident.span());
        self.tag = case::tag_constant(&name, self.ident.span());
        self.name = name;
    }

    /// Gives its struct another name, where the one it has is taken.
    pub(super) fn rename_payload(&mut self, name: &str) {
        if let Shape::Struct(payload) = &mut self.shape {
            payload.ident = Ident::new(name, Span::call_site());
            self.payload = payload.ty();
        }
    }

    /// The method that takes a closure as the destination: `invalid_with`.
    pub(super) fn with(&self) -> Ident {
        quote::format_ident!("{}_with", self.name, span = self.ident.span())
    }

    /// `first`, and the variant's doc comment behind it.
    pub(super) fn docs_after(&self, first: &str) -> TokenStream {
        let docs = &self.docs;
        let gap = (!docs.is_empty()).then(|| quote!(#[doc = ""]));
        quote!(#[doc = #first] #gap #(#docs)*)
    }

    /// The variant's doc comment, and where it has none: `default`.
    pub(super) fn docs_or(&self, default: &str) -> TokenStream {
        let docs = &self.docs;
        // `#[doc(hidden)]` and the like have no text.
        let has_text = docs.iter().any(|doc| matches!(doc.meta, Meta::NameValue(_)));
        let default = (!has_text).then(|| quote!(#[doc = #default]));
        quote!(#default #(#docs)*)
    }
}
