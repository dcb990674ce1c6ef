//! Which derives of the enum a struct of a variant's fields can have too.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Path, Token};

/// The derives that mean the same for a struct as for the enum, and need no further attributes.
pub(super) fn derives(attributes: &[Attribute]) -> Vec<Path> {
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
        let parser = Punctuated::<Path, Token![,]>::parse_terminated;
        let paths = list.parse_args_with(parser).unwrap_or_default();
        derives.extend(paths.into_iter().filter(|path| {
            path.segments.last().is_some_and(|last| KNOWN.iter().any(|known| last.ident == known))
        }));
    }
    derives
}

pub(super) fn is_serde(path: &Path) -> bool {
    path.segments
        .last()
        .is_some_and(|last| last.ident == "Serialize" || last.ident == "Deserialize")
}
