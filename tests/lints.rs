//! Generated code is silent under every lint that a strict crate may deny.
//!
//! It compiles: that is the test. `cargo clippy --all-targets` runs the lints of clippy.

#![forbid(unsafe_code)]
#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    missing_copy_implementations,
    unused_qualifications,
    unused_lifetimes,
    unused_import_braces,
    unreachable_pub,
    unnameable_types,
    single_use_lifetimes,
    elided_lifetimes_in_paths,
    explicit_outlives_requirements,
    let_underscore_drop,
    meta_variable_misuse,
    redundant_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    unused_results,
    variant_size_differences,
    ambiguous_negative_literals,
    non_ascii_idents,
    rust_2018_idioms,
    rust_2021_compatibility,
    rust_2024_compatibility,
    future_incompatible,
    keyword_idents,
    nonstandard_style,
    rustdoc::broken_intra_doc_links,
    rustdoc::private_intra_doc_links,
    rustdoc::unescaped_backticks,
    rustdoc::missing_crate_level_docs,
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    clippy::impl_trait_in_params,
    clippy::missing_docs_in_private_items,
    clippy::missing_inline_in_public_items,
    clippy::missing_trait_methods,
    clippy::multiple_inherent_impl,
    clippy::partial_pub_fields,
    clippy::pattern_type_mismatch,
    clippy::same_name_method,
    clippy::shadow_reuse,
    clippy::shadow_same,
    clippy::shadow_unrelated,
    clippy::single_char_lifetime_names,
    clippy::undocumented_unsafe_blocks,
    clippy::unreachable,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm
)]

/// Shapes of all kinds, as a library would declare them.
#[expect(clippy::redundant_pub_crate, reason = "`unreachable_pub` wants the contrary")]
mod routes {
    use side_output::splitter;

    /// Where an order goes.
    #[splitter]
    #[non_exhaustive]
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) enum Orders<'order, Order>
    where
        Order: Clone + Send,
    {
        /// Passed validation. See [`Orders::Invalid`].
        #[main]
        Valid(Order),
        /// Kept as received.
        Invalid {
            /// What came.
            text: &'order str,
            /// How often.
            count: usize,
        },
        /// A copy of it.
        #[tap]
        #[output(capacity = 16, overflow = "drop_oldest")]
        Seen(Order, u8),
        /// Nothing to say.
        Empty,
        /// Behind a `cfg`.
        #[cfg(any())]
        Gone(NotExisting),
        /// Not to be used any more.
        #[deprecated]
        Old(u8),
    }

    /// Deprecated as a whole, and so is what is generated.
    #[splitter]
    #[deprecated]
    #[derive(Debug, Clone)]
    pub(crate) enum Retired {
        /// A field.
        Field {
            /// A number.
            number: u64,
        },
        /// A number.
        Number(u64),
    }

    /// The same for all.
    #[splitter]
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum Sides {
        /// Left.
        Left(u64),
        /// Right.
        Right(u64),
    }

    /// Used nowhere: that is no reason for a warning about what it generates.
    #[splitter(vis = pub)]
    #[derive(Debug, Clone, Copy)]
    enum Unused {
        /// A field.
        Field {
            /// A number.
            number: u64,
        },
    }
}

use futures::stream;
use routes::{Orders, OrdersInvalid, Sides, SidesTag};
use side_output::{Context, SplitExt as _, discard, splitter};

/// Splits by length.
#[splitter(Orders)]
fn split_order<'order>(
    order: &'order str,
    cx: &mut Context<Orders<'order, String>>,
) -> Orders<'order, String> {
    cx.output(Orders::SEEN_TAG, (order.to_owned(), 1));
    if order.is_empty() {
        return Orders::Invalid { text: order, count: 1 };
    }
    Orders::Valid(order.to_owned())
}

/// Splits by size.
#[splitter(Sides)]
const fn split_side(number: u64) -> Sides {
    if number > 9 { Sides::Right(number) } else { Sides::Left(number) }
}

#[test]
fn macro_05_and_06_generated_code_is_silent() {
    let streams = stream::iter(["a", ""]).split_with(split_order).wire();
    let wiring = streams.valid(discard()).invalid(discard()).seen(discard()).empty(discard());
    #[expect(deprecated, reason = "it is used up to its end")]
    let old = Orders::<'_, String>::Old(1);
    assert_eq!(old.tag().name(), "old");
    #[expect(deprecated, reason = "its method is as deprecated as the variant")]
    let run = wiring.old(discard()).run();
    let ledger = futures::executor::block_on(run).expect("no error");
    assert!(ledger.is_balanced());
    assert_eq!(OrdersInvalid { text: "a", count: 1 }.count, 1);
    drop(stream::iter([1]).split_with(split_side));
    assert!(matches!(SidesTag::Left.route(1), Sides::Left(1)));
}
