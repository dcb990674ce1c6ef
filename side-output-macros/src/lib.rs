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
                let error = error.into_compile_error();
                quote::quote!(#error #item)
            }
        },
    }
}
