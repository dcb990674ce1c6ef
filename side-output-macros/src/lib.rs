//! The `#[splitter]` attribute of `side-output`.

mod case;
mod errors;
mod process;
mod splitter;
mod suggest;

use proc_macro::TokenStream;

/// Declares the outputs of a splitter, on an enum; or marks a function that routes to them.
///
/// # On an enum
///
/// Each variant is an output, and its fields are what the output carries: one field is the
/// payload itself, several are a tuple, none is `()`, and named fields become a struct.
///
/// ```
/// use futures::executor::block_on;
/// use futures::{StreamExt as _, stream};
/// use side_output::prelude::*;
///
/// /// Where a line goes.
/// #[splitter]
/// #[derive(Debug, PartialEq)]
/// enum Lines {
///     /// A number.
///     #[main]
///     Number(i64),
///     /// Not a number.
///     Invalid { line: usize, text: String },
///     /// A copy of every large number, for the one on call.
///     #[tap]
///     #[output(capacity = 64, overflow = "drop_oldest")]
///     Large(i64),
/// }
///
/// #[splitter(Lines)]
/// fn split_line((line, text): (usize, &str), cx: &mut Context<Lines>) -> Lines {
///     let Ok(number) = text.parse() else {
///         return Lines::Invalid { line, text: text.to_owned() };
///     };
///     if number > 1000 {
///         cx.output(Lines::LARGE_TAG, number);
///     }
///     Lines::Number(number)
/// }
///
/// // A split function is a function.
/// assert_eq!(split_line((1, "7"), &mut Context::new()), Lines::Number(7));
///
/// let lines = || stream::iter(["7", "x", "5000"]).enumerate();
///
/// // The streams are a struct: an output that is left out does not compile.
/// let LinesStreams { number, invalid, large } = lines().split_with(split_line);
/// # drop((number, invalid, large));
///
/// // One of them by its tag.
/// let mut streams = lines().split_with(split_line);
/// let invalid: DataStream<LinesInvalid> = streams.get_side_output(Lines::INVALID_TAG);
/// # drop(streams);
/// assert_eq!(block_on(invalid.map(|invalid| invalid.line).collect::<Vec<_>>()), [1]);
///
/// // Or each has a destination: `run` does not compile before.
/// let (mut number, mut large) = (Vec::new(), Vec::new());
/// let wiring = lines().split_with(split_line).wire();
/// let run = wiring.number(&mut number).invalid(discard()).large(&mut large).run();
/// assert_eq!(block_on(run)?["invalid"].discarded, 1);
/// assert_eq!((number, large), (vec![7, 5000], vec![5000]));
/// # Ok::<(), StreamError>(())
/// ```
///
/// ## What it generates
///
/// Names come from the variants by one rule: `LateOrder` gives the constant `LATE_ORDER_TAG`, and
/// the field and the method `late_order`. For an enum `Orders`:
///
/// | item | what it is |
/// | --- | --- |
/// | `Orders::LATE_ORDER_TAG` | the typed tag of the output, for `get_side_output` and `Context::output` |
/// | `OrdersStreams` | the streams, a field for each output; with `get_side_output`, `boxed`, `wire`, `ledger`, `ledger_handle`, `fail_on_stall` |
/// | `OrdersWiring` | what `wire` returns: a method for each output, and `run` |
/// | `OrdersTag` | a plain enum of the outputs' names, with `ALL`, `name`, `of`, `Display`, `FromStr`, and serde's traits |
/// | `Orders::tag` | the `OrdersTag` of a route |
/// | `OrdersTag::route` | the route of a value, where all outputs carry the same type |
/// | `OrdersLateOrder` | the payload of a variant with named fields; it has those derives of the enum that stand below this attribute and come with the standard library or serde, except `Default` |
///
/// `Orders` also implements `Splitter`, and gets a `#[must_use]` if it has none. The enum stays an
/// ordinary enum; derives and other attributes work above and below this one.
///
/// ## Options
///
/// On the enum:
///
/// - `crate = path`: where the library is, if not at `::side_output`. A `macro_rules` macro passes
///   `crate = $crate`, or the path of its own re-export.
/// - `vis = pub(crate)`: the visibility of what is generated, by default the enum's. It can be
///   wider than the enum's, and not narrower.
/// - `streams = Name`, `wiring = Name`, `tag = Name`: other names for `OrdersStreams`,
///   `OrdersWiring` and `OrdersTag`.
///
/// On a variant, in any combination:
///
/// - `#[main]`: the main output; at most one.
/// - `#[tap]`: the output receives records beside the returned route, through `Context::output`.
/// - `#[output(capacity = 4096)]`: how many records its buffer holds, a number or a constant.
/// - `#[output(overflow = "block")]`: what happens when it is full: `block`, `drop_oldest`,
///   `drop_newest` or `unbounded`.
/// - `#[output(name = "late")]`: another name than the variant's for the output, its field, its
///   method and its tag.
/// - `#[output(payload = LateOrder)]`: another name than `OrdersLate` for the struct of a variant
///   with named fields.
///
/// `#[deprecated]` and allowed lints of the enum or of a variant hold for what is generated from
/// it too, and `#[non_exhaustive]` for `OrdersTag` or for the struct of the variant. Where a variant
/// is called `ALL`, `OrdersTag::ALL` is that output.
///
/// A variant may have a `cfg`: without it, there is no such output.
///
/// ```
/// use side_output::prelude::*;
///
/// #[splitter(vis = pub(crate))]
/// enum Alerts {
///     #[output(overflow = "unbounded")]
///     Pager(String),
///     #[output(name = "chat")]
///     TeamChat(String),
///     #[cfg(feature = "mail")]
///     Mail(Mailbox),
/// }
///
/// // From a configuration; an unknown name is an error here, and not at the first record.
/// let tag: AlertsTag = "chat".parse().unwrap();
/// assert!(matches!(tag, AlertsTag::TeamChat));
/// assert!("char".parse::<AlertsTag>().is_err());
/// ```
///
/// # On a function
///
/// `#[splitter(Orders)]` on a function or method makes a route that is built and not returned an
/// error, whether it stands in a statement, behind `let _ =` or in `drop(…)`:
///
/// ```compile_fail
/// # use side_output::prelude::*;
/// # #[splitter]
/// # enum Orders { Valid(u32), Invalid(u32) }
/// #[splitter(Orders)]
/// fn split_order(order: u32) -> Orders {
///     if order == 0 {
///         Orders::Invalid(order); // `return` is missing
///     }
///     Orders::Valid(order)
/// }
/// ```
///
/// It may return the enum, an `Option`, array, `Vec` or `Result` of it, or any `impl
/// Routes<Orders>`. It takes `crate = path` too.
///
/// ```
/// # use side_output::prelude::*;
/// # #[splitter]
/// # enum Orders { Valid(u32), Invalid(u32) }
/// #[splitter(Orders)]
/// fn split_order(order: &str) -> Result<Option<Orders>, std::num::ParseIntError> {
///     Ok(match order.parse()? {
///         0 => None,
///         order if order > 999 => Some(Orders::Invalid(order)),
///         order => Some(Orders::Valid(order)),
///     })
/// }
/// # assert!(split_order("7").unwrap().is_some());
/// ```
///
/// Without this attribute the guarantee is the same, because only what a function returns is ever
/// emitted; a forgotten `return` is then a warning.
///
/// # Limits
///
/// In a module with `#![no_implicit_prelude]` the compiler does not know `#[diagnostic]`, which
/// the generated code needs: declare the enum in another module. The attribute on functions works
/// there.
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
