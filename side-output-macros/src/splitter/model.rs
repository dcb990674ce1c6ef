//! The declared outputs: what `expand` may rely on.

use super::args::{self, EnumArgs, OutputArgs};
use crate::case;
use crate::errors::Errors;
use proc_macro2::{Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote};
use std::collections::HashSet;
use syn::ext::IdentExt as _;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Expr, Fields, GenericParam, Generics, ItemEnum, LitStr, Meta, Path, Token, Type,
    Variant, Visibility, WherePredicate,
};

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
    pub(super) fields: Vec<PayloadField>,
    /// The derives of the enum that a struct can have too.
    pub(super) derives: Vec<Path>,
}

pub(super) struct PayloadField {
    pub(super) attrs: Vec<Attribute>,
    pub(super) cfg: TokenStream,
    pub(super) ident: Ident,
    pub(super) ty: Type,
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
        Self { item, generics, ty, vis, vis_differs, so, cfg, streams, wiring, tag, outputs }
    }

    /// The enum's generics and `params`, at the end.
    pub(super) fn generics_and(&self, params: impl IntoIterator<Item = GenericParam>) -> Generics {
        let mut generics = self.generics.clone();
        generics.params.extend(params);
        generics
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
        let (shape, payload) = shape(variant, splitter, generics, derives, errors);
        let docs = variant.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"));
        Self {
            index,
            field: case::ident(&name, ident.span()),
            tag: case::tag_constant(&name, ident.span()),
            name,
            docs: docs.cloned().collect(),
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

fn shape(
    variant: &Variant,
    splitter: &Ident,
    generics: &Generics,
    derives: &[Path],
    errors: &mut Errors,
) -> (Shape, Type) {
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
            let ident = format_ident!(
                "{}{}",
                splitter.unraw(),
                pascal(&variant.ident.unraw().to_string()),
                span = variant.ident.span()
            );
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
            let (_, arguments, _) = generics.split_for_impl();
            let payload = syn::parse_quote!(#ident #arguments);
            let derives = derives.to_vec();
            let shape = Shape::Struct(Box::new(Payload { ident, generics, fields, derives }));
            (shape, payload)
        }
    }
}

/// `late` is `Late`; a variant is normally in that form.
fn pascal(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// The derives that mean the same for a struct as for the enum, and need no further attributes.
fn derives(attributes: &[Attribute]) -> Vec<Path> {
    const KNOWN: [&str; 10] = [
        "Clone",
        "Copy",
        "Debug",
        "PartialEq",
        "Eq",
        "PartialOrd",
        "Ord",
        "Hash",
        "Serialize",
        "Deserialize",
    ];
    let mut derives = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        let Meta::List(list) = &attribute.meta else { continue };
        let parser = syn::punctuated::Punctuated::<Path, Token![,]>::parse_terminated;
        let paths = list.parse_args_with(parser).unwrap_or_default();
        derives.extend(paths.into_iter().filter(|path| {
            path.segments.last().is_some_and(|last| KNOWN.iter().any(|known| last.ident == known))
        }));
    }
    derives
}

fn is_serde(path: &Path) -> bool {
    path.segments
        .last()
        .is_some_and(|last| last.ident == "Serialize" || last.ident == "Deserialize")
}

/// The parameters that `fields` mention, with the bounds that mention no other.
///
/// A struct must not have a parameter that no field uses.
fn used_generics(generics: &Generics, fields: &[PayloadField]) -> Generics {
    let mut used = Mentioned::default();
    for field in fields {
        used.visit_type(&field.ty);
    }
    let mut unused = Mentioned::default();
    let mut kept = Generics::default();
    for param in &generics.params {
        if used.param(param) {
            kept.params.push(param.clone());
        } else {
            unused.insert(param);
        }
    }
    for param in &mut kept.params {
        if let GenericParam::Type(param) = param {
            param.bounds = param
                .bounds
                .iter()
                .filter(|bound| !unused.any_in(|mentioned| mentioned.visit_type_param_bound(bound)))
                .cloned()
                .collect();
        }
    }
    let predicates = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let predicates: Vec<&WherePredicate> = predicates
        .filter(|predicate| !unused.any_in(|mentioned| mentioned.visit_where_predicate(predicate)))
        .collect();
    if !predicates.is_empty() {
        kept.make_where_clause().predicates.extend(predicates.into_iter().cloned());
    }
    kept
}

/// Lifetimes and identifiers that occur in a piece of syntax.
#[derive(Default)]
struct Mentioned(HashSet<String>);

impl Mentioned {
    fn key(param: &GenericParam) -> String {
        match param {
            GenericParam::Lifetime(param) => param.lifetime.to_string(),
            GenericParam::Type(param) => param.ident.to_string(),
            GenericParam::Const(param) => param.ident.to_string(),
        }
    }

    fn param(&self, param: &GenericParam) -> bool {
        self.0.contains(&Self::key(param))
    }

    fn insert(&mut self, param: &GenericParam) {
        self.0.insert(Self::key(param));
    }

    /// Whether `collect` finds anything that is in here.
    fn any_in(&self, collect: impl FnOnce(&mut Self)) -> bool {
        let mut mentioned = Self::default();
        collect(&mut mentioned);
        !self.0.is_disjoint(&mentioned.0)
    }
}

impl<'ast> Visit<'ast> for Mentioned {
    fn visit_ident(&mut self, ident: &'ast Ident) {
        self.0.insert(ident.to_string());
    }

    fn visit_lifetime(&mut self, lifetime: &'ast syn::Lifetime) {
        self.0.insert(lifetime.to_string());
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        fn tokens(mentioned: &mut Mentioned, stream: TokenStream) {
            for token in stream {
                match token {
                    TokenTree::Ident(ident) => {
                        mentioned.0.insert(ident.to_string());
                    }
                    TokenTree::Group(group) => tokens(mentioned, group.stream()),
                    _ => {}
                }
            }
        }
        tokens(self, mac.tokens.clone());
        visit::visit_macro(self, mac);
    }
}

/// Replaces `Self` by the enum's type, which it means inside of the enum only.
struct WithoutSelf {
    ty: Type,
}

impl VisitMut for WithoutSelf {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::Path(path) = ty
            && path.qself.is_none()
            && path.path.is_ident("Self")
        {
            *ty = self.ty.clone();
            return;
        }
        visit_mut::visit_type_mut(self, ty);
    }

    fn visit_type_path_mut(&mut self, path: &mut syn::TypePath) {
        self.visit_self_path(&mut path.qself, &mut path.path);
        visit_mut::visit_type_path_mut(self, path);
    }

    fn visit_expr_path_mut(&mut self, path: &mut syn::ExprPath) {
        self.visit_self_path(&mut path.qself, &mut path.path);
        visit_mut::visit_expr_path_mut(self, path);
    }
}

impl WithoutSelf {
    /// `Self::LENGTH` becomes `<Orders>::LENGTH`.
    fn visit_self_path(&self, qself: &mut Option<syn::QSelf>, path: &mut Path) {
        let first = path.segments.first();
        if qself.is_none()
            && path.segments.len() > 1
            && first.is_some_and(|first| first.ident == "Self")
        {
            let ty = &self.ty;
            let rest = path.segments.iter().skip(1);
            let replaced: syn::ExprPath = syn::parse_quote!(<#ty>::#(#rest)::*);
            *qself = replaced.qself;
            *path = replaced.path;
        }
    }
}

/// The visibility as if the macro had written it, so that lints do not see the user's code.
///
/// `pub(in path)` stays as it is: the path may hold a `$crate`.
fn located(vis: &Visibility) -> Visibility {
    let span = Span::call_site();
    match vis {
        Visibility::Restricted(restricted) if restricted.in_token.is_some() => vis.clone(),
        _ => {
            let tokens = vis.to_token_stream().into_iter().map(|token| respan(token, span));
            syn::parse2(tokens.collect()).unwrap_or_else(|_| vis.clone())
        }
    }
}

fn respan(mut token: TokenTree, span: Span) -> TokenTree {
    if let TokenTree::Group(group) = &token {
        let stream = group.stream().into_iter().map(|token| respan(token, span));
        token = TokenTree::Group(proc_macro2::Group::new(group.delimiter(), stream.collect()));
    }
    // `$crate` means the crate of its span.
    if token.to_string() != "$crate" {
        token.set_span(token.span().resolved_at(span));
    }
    token
}
