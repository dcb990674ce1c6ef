//! The `#[splitter]` attribute of `side-output`.

mod case;
mod errors;
mod process;
mod splitter;
mod suggest;

use proc_macro::TokenStream;

/// Declares the outputs of a splitter, or marks the function that routes records to them.
#[proc_macro_attribute]
pub fn splitter(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(args.into(), item.into()).into()
}

/// The error for an item that can be neither an enum of outputs nor a split function.
fn misplaced(item: &proc_macro2::TokenStream) -> Option<syn::Error> {
    let message = "`#[splitter]` goes on an enum, whose variants are the outputs; \
                   `#[splitter(Orders)]` goes on a function with a body, which routes to them";
    let item = syn::parse2::<syn::Item>(item.clone()).ok()?;
    let name = match &item {
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Mod(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Fn(_) => return None,
        _ => return Some(syn::Error::new_spanned(item, message)),
    };
    Some(syn::Error::new_spanned(name, message))
}

/// `::side_output::__private`, or where `crate = path` says.
fn private_path(krate: Option<&syn::Path>) -> proc_macro2::TokenStream {
    let default = || quote::quote!(::side_output::__private);
    krate.map_or_else(default, |path| quote::quote!(#path::__private))
}

/// The attribute on whatever item it stands.
fn attribute(
    args: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    match syn::parse2::<syn::Item>(item.clone()) {
        Ok(syn::Item::Enum(item)) => splitter::splitter(args, item),
        _ => match syn::parse2::<syn::ItemFn>(item.clone()) {
            Ok(function) => process::process(args, function),
            Err(error) => {
                let error = misplaced(&item).unwrap_or(error).into_compile_error();
                quote::quote!(#error #item)
            }
        },
    }
}
