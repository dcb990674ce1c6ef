//! The enum's generics, as they stand at other items.

use super::args::{self, EnumArgs};
use super::model::Splitter;
use super::shape::PayloadField;
use crate::errors::Errors;
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use std::collections::HashSet;
use std::{mem, slice};
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{
    ConstParam, GenericParam, Generics, ItemEnum, LifetimeParam, Path, Type, TypeParam,
    WherePredicate,
};

/// An enum with a parameter behind a `cfg` is two enums, with the parameter and without it:
///
/// ```text
/// #[cfg(p)]
/// #[splitter(args)]
/// enum R<T, U> { … }
/// #[cfg(not(p))]
/// #[splitter(args)]
/// enum R<U> { … }
/// ```
///
/// A `cfg` cannot stand in a list of arguments, so one enum could not name its own type.
pub(super) fn by_cfg(args: &TokenStream, item: &ItemEnum) -> Option<TokenStream> {
    let (index, predicate) =
        item.generics.params.iter().enumerate().find_map(|(index, param)| {
            let (GenericParam::Lifetime(LifetimeParam { attrs, .. })
            | GenericParam::Type(TypeParam { attrs, .. })
            | GenericParam::Const(ConstParam { attrs, .. })) = param;
            Some((index, args::cfg_predicate(attrs)?))
        })?;
    let mut errors = Errors::new();
    let so = crate::private_path(EnumArgs::parse(args.clone(), &mut errors).krate.as_ref());
    // Mistakes in the arguments are reported where one of the two is expanded.
    drop(errors.finish());
    let (mut with, mut without) = (item.clone(), item.clone());
    let (GenericParam::Lifetime(LifetimeParam { attrs, .. })
    | GenericParam::Type(TypeParam { attrs, .. })
    | GenericParam::Const(ConstParam { attrs, .. })) = &mut with.generics.params[index];
    attrs.retain(|attribute| args::cfg_predicate(slice::from_ref(attribute)).is_none());
    let params = mem::take(&mut without.generics.params).into_iter().enumerate();
    without.generics.params =
        params.filter(|(at, _)| *at != index).map(|(_, param)| param).collect();
    Some(quote! {
        #[cfg(#predicate)]
        #[#so::splitter(#args)]
        #with
        #[cfg(not(#predicate))]
        #[#so::splitter(#args)]
        #without
    })
}

impl Splitter {
    /// `<'a, T, more>`: the enum's arguments, and more behind them.
    pub(super) fn arguments_and(&self, more: &TokenStream) -> TokenStream {
        let arguments = self.arguments();
        quote!(<#arguments #more>)
    }

    /// `'a, T,`.
    pub(super) fn arguments(&self) -> TokenStream {
        self.generics
            .params
            .iter()
            .map(|param| {
                let argument = match param {
                    GenericParam::Lifetime(param) => param.lifetime.to_token_stream(),
                    GenericParam::Type(param) => param.ident.to_token_stream(),
                    GenericParam::Const(param) => param.ident.to_token_stream(),
                };
                quote!(#argument,)
            })
            .collect()
    }

    /// `'a, T: Clone,`: the enum's parameters without defaults, as an `impl` declares them.
    pub(super) fn parameters(&self) -> TokenStream {
        self.generics
            .params
            .iter()
            .map(|param| {
                let mut param = param.clone();
                match &mut param {
                    GenericParam::Type(param) => param.default = None,
                    GenericParam::Const(param) => param.default = None,
                    GenericParam::Lifetime(_) => {}
                }
                quote!(#param,)
            })
            .collect()
    }

    /// The enum's `where` predicates, each with a comma.
    pub(super) fn predicates(&self) -> TokenStream {
        let clause = self.generics.where_clause.iter();
        clause.flat_map(|clause| &clause.predicates).map(|predicate| quote!(#predicate,)).collect()
    }
}

/// The parameters that `fields` mention, with the bounds that mention no other.
///
/// A struct must not have a parameter that no field uses.
pub(super) fn used_generics(generics: &Generics, fields: &[PayloadField]) -> Generics {
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
        match param {
            GenericParam::Type(param) => {
                let bounds = mem::take(&mut param.bounds).into_iter().filter(|bound| {
                    !unused.any_in(|mentioned| mentioned.visit_type_param_bound(bound))
                });
                param.bounds = bounds.collect();
            }
            GenericParam::Lifetime(param) => {
                let bounds = mem::take(&mut param.bounds)
                    .into_iter()
                    .filter(|bound| !unused.any_in(|mentioned| mentioned.visit_lifetime(bound)));
                param.bounds = bounds.collect();
            }
            GenericParam::Const(_) => {}
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
pub(super) struct WithoutSelf {
    pub(super) ty: Type,
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
