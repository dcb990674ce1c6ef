//! `#[splitter(Orders)]` on a function: a route that is built must be returned.
//!
//! The guarantee is in the types: only what the function returns is ever emitted. What is added
//! here makes a route that is lost on the way an error, with a message that says what to do.

mod advice;
mod args;
mod lost;
mod scope;

use self::args::FnArgs;
use crate::errors::Errors;
use proc_macro2::TokenStream;
use quote::quote;
use syn::visit::Visit;
use syn::{
    GenericArgument, ItemFn, Path, PathArguments, ReturnType, Signature, Type, TypeParamBound,
};

/// What `#[splitter(args)]` on `function` expands to: the function with a lint.
///
/// ```text
/// #[deny(unused_must_use)]
/// fn split_order(order: RawOrder) -> Orders {
///     const _: fn(&Orders) -> usize = <Orders as Splitter>::index;
///     …
/// }
/// ```
pub(crate) fn process(args: TokenStream, mut function: ItemFn) -> TokenStream {
    let mut errors = Errors::new();
    let args = FnArgs::parse(args, &function, &mut errors);
    let mut silent = args.is_none();
    if let Some(FnArgs { splitter, krate }) = &args {
        silent |= check_not_async(&mut function, &mut errors);
        check_returns(splitter, &function, &mut errors);
        function.block.stmts.splice(0..0, assert_splitter(splitter, krate.as_ref(), &function.sig));
        silent |= lost::check(splitter, &mut function, &mut errors);
    }
    // Last, because an `allow` of the user would win if it came after it. Where our own message
    // has been given, the lint would only repeat it.
    function.attrs.push(if silent {
        syn::parse_quote!(#[allow(unused, unreachable_code)])
    } else {
        syn::parse_quote!(#[deny(unused_must_use)])
    });
    let mut tokens = errors.finish();
    tokens.extend(quote!(#function));
    tokens
}

/// Says that the enum has no `#[splitter]`, if it has none, at the function and not where it is
/// used.
///
/// Only where the name alone is a type: an item in a function cannot use its generics.
fn assert_splitter(
    splitter: &Path,
    krate: Option<&Path>,
    signature: &Signature,
) -> Option<syn::Stmt> {
    let mut returned = Returned { splitter, found: false };
    returned.visit_return_type(&signature.output);
    if !returned.found || splitter.is_ident("Self") {
        return None;
    }
    let so = crate::private_path(krate);
    Some(syn::parse_quote! {
        const _: fn(&#splitter) -> ::core::primitive::usize =
            <#splitter as #so::Splitter>::index;
    })
}

/// Looks for the enum, without generics of its own, in a type.
struct Returned<'a> {
    splitter: &'a Path,
    found: bool,
}

impl<'ast> Visit<'ast> for Returned<'_> {
    fn visit_path(&mut self, path: &'ast Path) {
        self.found |= path == self.splitter;
        syn::visit::visit_path(self, path);
    }
}

/// A record is routed before the next one is read; there is nothing that would poll a future.
///
/// The function loses its body, so that `await` and the uses of the function are no mistakes too.
fn check_not_async(function: &mut ItemFn, errors: &mut Errors) -> bool {
    let message = "a split function cannot be `async`: it routes each record at once\n\
                   do asynchronous work on the stream before it is split, with `map_async`, and split its results";
    let output = match &function.sig.output {
        ReturnType::Type(_, ty) => future_output(ty),
        ReturnType::Default => None,
    };
    match (&function.sig.asyncness, &output) {
        (Some(asyncness), _) => errors.at(asyncness, message),
        (None, Some(_)) => errors.at(&function.sig.output, message),
        (None, None) => return false,
    }
    function.sig.asyncness = None;
    if let Some(output) = output {
        function.sig.output = syn::parse_quote!(-> #output);
    }
    function.block = syn::parse_quote!({ ::core::unreachable!() });
    function.attrs.push(syn::parse_quote!(#[allow(unused_variables, unused_mut)]));
    true
}

/// `Orders` of `impl Future<Output = Orders>`.
fn future_output(ty: &Type) -> Option<Type> {
    let Type::ImplTrait(ty) = ty else { return None };
    ty.bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let last = bound.path.segments.last().filter(|last| last.ident == "Future")?;
        let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
        arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(output) if output.ident == "Output" => {
                Some(output.ty.clone())
            }
            _ => None,
        })
    })
}

/// A split function that returns nothing can route nothing.
fn check_returns(splitter: &Path, function: &ItemFn, errors: &mut Errors) {
    let name = args::display(splitter);
    let message = format!("a split function returns its route; declare `-> {name}`");
    match &function.sig.output {
        ReturnType::Default => errors.at(&function.sig, message),
        ReturnType::Type(_, ty) if matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty()) => {
            errors.at(ty, message);
        }
        ReturnType::Type(..) => {}
    }
}

#[cfg(test)]
mod tests;
