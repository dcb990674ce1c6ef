//! What the running example expands to, and what repairs look like.

#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes them")]

use crate::attribute;
use expect_test::{Expect, expect};
use proc_macro2::TokenStream;
use quote::quote;

/// The items of the expansion whose text contains `part`, as `rustfmt` would print them.
#[track_caller]
fn check(args: TokenStream, item: TokenStream, part: &str, expected: Expect) {
    let tokens = attribute(args, item);
    let file = syn::parse2::<syn::File>(tokens).expect("the expansion is a list of items");
    let mut items = Vec::new();
    for item in file.items {
        match item {
            // The hidden part: look inside.
            syn::Item::Const(item) => {
                let syn::Expr::Block(block) = *item.expr else { panic!("`const _` has a block") };
                items.extend(block.block.stmts.into_iter().filter_map(|stmt| match stmt {
                    syn::Stmt::Item(item) => Some(item),
                    _ => None,
                }));
            }
            item => items.push(item),
        }
    }
    let printed = items.into_iter().map(|item| {
        prettyplease::unparse(&syn::File {
            shebang: None,
            frontmatter: None,
            attrs: vec![],
            items: vec![item],
        })
    });
    let found: Vec<_> = printed.filter(|item| item.contains(part)).collect();
    // Short paths: the full one is in every line.
    let text = found.join("\n").replace("::side_output::__private::", "so::");
    expected.assert_eq(&text);
}

fn orders() -> TokenStream {
    quote! {
        /// Where an order goes.
        #[derive(Debug)]
        pub enum Orders {
            /// Passed validation.
            #[main]
            Valid(Order),
            /// Kept as received.
            #[output(capacity = 16, overflow = "drop_oldest")]
            Invalid { raw: RawOrder },
            #[cfg(feature = "late")]
            #[tap]
            Late(Order, Duration),
        }
    }
}

#[test]
fn the_enum_stays_what_it_was() {
    check(
        quote!(),
        orders(),
        "enum Orders ",
        expect![[r##"
        #[must_use = "a value of `Orders` routes the record only when it is returned; write `return` before it"]
        /// Where an order goes.
        #[derive(Debug)]
        pub enum Orders {
            /// Passed validation.
            Valid(Order),
            /// Kept as received.
            Invalid { raw: RawOrder },
            #[cfg(feature = "late")]
            Late(Order, Duration),
        }
    "##]],
    );
}

#[test]
fn streams_are_a_struct() {
    check(
        quote!(),
        orders(),
        "struct OrdersStreams",
        expect![[r#"
            /**The streams of [`Orders`], one for each output.

            Whichever is read drives the splitter for all of them.*/
            #[must_use = "streams do nothing unless they are read, wired or discarded"]
            #[allow(
                dead_code,
                deprecated,
                explicit_outlives_requirements,
                reason = "the bounds are the enum's, and not every splitter splits a stream"
            )]
            pub struct OrdersStreams<
                __H: so::Outlet<Orders> = so::Boxed,
            > {
                /// Passed validation.
                pub valid: so::DataStream<
                    Order,
                    <__H as so::Outlet<Orders>>::Source<0>,
                >,
                /// Kept as received.
                pub invalid: so::DataStream<
                    OrdersInvalid,
                    <__H as so::Outlet<Orders>>::Source<1>,
                >,
                #[cfg(feature = "late")]
                ///The output `Late`.
                pub late: so::DataStream<
                    (Order, Duration),
                    <__H as so::Outlet<Orders>>::Source<2>,
                >,
            }
        "#]],
    );
}

#[test]
fn payloads_of_struct_variants_are_structs() {
    check(
        quote!(),
        orders(),
        "struct OrdersInvalid",
        expect![[r#"
            ///Payload of the output `Invalid` of [`Orders`].
            ///
            /// Kept as received.
            #[::core::prelude::v1::derive(Debug)]
            #[allow(
                dead_code,
                deprecated,
                explicit_outlives_requirements,
                reason = "the fields and bounds are the variant's"
            )]
            pub struct OrdersInvalid {
                ///Field `raw` of `Invalid`.
                pub raw: RawOrder,
            }
        "#]],
    );
}

#[test]
fn tags_are_constants() {
    check(
        quote!(),
        orders(),
        "INVALID_TAG",
        expect![[r##"
        #[allow(
            dead_code,
            deprecated,
            single_use_lifetimes,
            reason = "generated for every output alike"
        )]
        impl Orders {
            /// Passed validation.
            pub const VALID_TAG: so::Tag<Self, 0> = so::Tag::new();
            /// Kept as received.
            pub const INVALID_TAG: so::Tag<Self, 1> = so::Tag::new();
            #[cfg(feature = "late")]
            ///The tag of the output `Late`.
            pub const LATE_TAG: so::Tag<Self, 2> = so::Tag::new();
            /// The output that this route takes.
            #[must_use]
            pub const fn tag(&self) -> OrdersTag {
                match self {
                    Self::Valid { .. } => OrdersTag::Valid,
                    Self::Invalid { .. } => OrdersTag::Invalid,
                    #[cfg(feature = "late")]
                    Self::Late { .. } => OrdersTag::Late,
                }
            }
        }
    "##]],
    );
}

#[test]
fn tags_are_an_enum() {
    check(
        quote!(vis = pub(crate)),
        quote!(
            enum Orders {
                Valid(Order),
            }
        ),
        "OrdersTag",
        expect![[r##"
            #[allow(
                dead_code,
                deprecated,
                single_use_lifetimes,
                reason = "generated for every output alike"
            )]
            impl Orders {
                ///The tag of the output `Valid`.
                pub(crate) const VALID_TAG: so::Tag<Self, 0> = so::Tag::new();
                /// The output that this route takes.
                #[must_use]
                pub(crate) const fn tag(&self) -> OrdersTag {
                    match self {
                        Self::Valid { .. } => OrdersTag::Valid,
                    }
                }
            }

            ///The outputs of `Orders`, by name: for configuration, metrics and dead letters.
            #[::core::prelude::v1::derive(
                ::core::clone::Clone,
                ::core::marker::Copy,
                ::core::fmt::Debug,
                ::core::cmp::PartialEq,
                ::core::cmp::Eq,
                ::core::cmp::PartialOrd,
                ::core::cmp::Ord,
                ::core::hash::Hash,
            )]
            #[allow(
                dead_code,
                deprecated,
                ambiguous_associated_items,
                non_camel_case_types,
                reason = "the variants are the outputs, whatever they are called"
            )]
            pub(crate) enum OrdersTag {
                ///The output `valid`.
                Valid,
            }

            impl OrdersTag {
                /// All outputs, in the order of declaration.
                pub(crate) const ALL: &'static [OrdersTag] = &[OrdersTag::Valid];
                /// The output's name in `snake_case`.
                #[must_use]
                pub(crate) const fn name(self) -> &'static ::core::primitive::str {
                    match self {
                        OrdersTag::Valid => "valid",
                    }
                }
                ///The output that the route takes.
                #[must_use]
                pub(crate) const fn of(route: &Orders) -> OrdersTag {
                    route.tag()
                }
                ///The route of `value` through this output of `Orders`.
                pub(crate) fn route(self, value: Order) -> Orders {
                    match self {
                        OrdersTag::Valid => {
                            <Orders as so::OutputAt<0>>::wrap(value)
                        }
                    }
                }
            }

            impl ::core::fmt::Display for OrdersTag {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.pad((*self).name())
                }
            }

            impl ::core::str::FromStr for OrdersTag {
                type Err = so::UnknownTag;
                fn from_str(
                    name: &::core::primitive::str,
                ) -> ::core::result::Result<OrdersTag, so::UnknownTag> {
                    match name {
                        "valid" => ::core::result::Result::Ok(OrdersTag::Valid),
                        _ => {
                            ::core::result::Result::Err(
                                so::UnknownTag::new(name, "output", &["valid"]),
                            )
                        }
                    }
                }
            }
        "##]],
    );
}

#[test]
fn an_output_is_a_stream_by_another_impl() {
    check(
        quote!(crate = so),
        orders(),
        "StreamAt<1> for Orders",
        expect![[r#"
        impl so::__private::StreamAt<1> for Orders {
            fn lane<'__l>(
                lanes: &'__l mut __OrdersLanes,
            ) -> &'__l mut so::__private::Lane<OrdersInvalid> {
                &mut lanes.invalid
            }
            fn stream<'__s, __H: so::__private::Outlet<Self>>(
                streams: &'__s mut OrdersStreams<__H>,
            ) -> &'__s mut so::__private::DataStream<
                OrdersInvalid,
                <__H as so::__private::Outlet<Self>>::Source<1>,
            > {
                &mut streams.invalid
            }
        }
    "#]],
    );
}

#[test]
fn an_output_is_an_impl() {
    check(
        quote!(crate = so),
        orders(),
        "OutputAt<1> for Orders",
        expect![[r#"
            impl so::__private::OutputAt<1> for Orders {
                type Payload = OrdersInvalid;
                const SPEC: so::__private::OutputSpec = so::__private::OutputSpec::new(1, "invalid")
                    .capacity(16)
                    .overflow(so::__private::Overflow::DropOldest);
                #[inline]
                fn wrap(OrdersInvalid { raw: __0 }: OrdersInvalid) -> Self {
                    Self::Invalid { raw: __0 }
                }
                #[inline]
                fn take(self) -> ::core::result::Result<OrdersInvalid, Self> {
                    match self {
                        Self::Invalid { raw: __0 } => {
                            ::core::result::Result::Ok(OrdersInvalid { raw: __0 })
                        }
                        other => ::core::result::Result::Err(other),
                    }
                }
            }
        "#]],
    );
}

#[test]
fn routes_go_into_lanes() {
    check(
        quote!(),
        orders(),
        "Lanes<Orders> for __OrdersLanes",
        expect![[r#"
            impl so::Lanes<Orders> for __OrdersLanes {
                #[inline]
                fn push(&mut self, route: Orders, at: so::Timestamp) {
                    match route {
                        Orders::Valid(__0) => self.valid.push(__0, at),
                        Orders::Invalid { raw: __0 } => {
                            self.invalid.push(OrdersInvalid { raw: __0 }, at)
                        }
                        #[cfg(feature = "late")]
                        Orders::Late(__0, __1) => self.late.push((__0, __1), at),
                    }
                }
                #[inline]
                fn visit<__V: so::LaneVisitor>(&mut self, visitor: &mut __V) {
                    so::LaneVisitor::lane(visitor, 0, &mut self.valid);
                    so::LaneVisitor::lane(visitor, 1, &mut self.invalid);
                    #[cfg(feature = "late")]
                    so::LaneVisitor::lane(visitor, 2, &mut self.late);
                }
                #[inline]
                fn visit_pairs<__V: so::LanePairVisitor>(
                    &mut self,
                    other: &mut Self,
                    visitor: &mut __V,
                ) {
                    so::LanePairVisitor::pair(
                        visitor,
                        0,
                        &mut self.valid,
                        &mut other.valid,
                    );
                    so::LanePairVisitor::pair(
                        visitor,
                        1,
                        &mut self.invalid,
                        &mut other.invalid,
                    );
                    #[cfg(feature = "late")]
                    so::LanePairVisitor::pair(
                        visitor,
                        2,
                        &mut self.late,
                        &mut other.late,
                    );
                }
            }
        "#]],
    );
}

#[test]
fn a_wiring_has_a_method_for_each_output() {
    let orders = quote!(
        enum Orders {
            Valid(Order),
            Invalid(RawOrder),
        }
    );
    check(
        quote!(),
        orders,
        "OrdersWiring<__D, (__0, __1)>",
        expect![[r##"
            #[allow(non_snake_case, reason = "places are bound to the names of their types")]
            impl<__D, __0, __1> OrdersWiring<__D, (__0, __1)> {
                ///Gives the output `Valid` its destination.
                fn valid<__M, __K: so::IntoDestination<Order, __M>>(
                    self,
                    destination: __K,
                ) -> OrdersWiring<
                    __D,
                    (
                        so::Line<
                            Order,
                            <__K as so::IntoDestination<
                                Order,
                                __M,
                            >>::Destination,
                        >,
                        __1,
                    ),
                >
                where
                    __0: so::NotWired,
                {
                    let (_, __1) = self.lines;
                    OrdersWiring {
                        lines: (
                            so::Line::new(
                                so::Wiring::spec::<0>(&self.wiring),
                                destination,
                            ),
                            __1,
                        ),
                        wiring: self.wiring,
                    }
                }
                /**Gives the output `Valid` a closure, from its stream to a future, as its destination.

            It is as if it were given to `valid`, but the type of its stream need not be written.*/
                fn valid_with<__Fut, __F>(
                    self,
                    destination: __F,
                ) -> OrdersWiring<
                    __D,
                    (
                        so::Line<
                            Order,
                            <__F as so::IntoDestination<
                                Order,
                                (so::IntoThrough, __Fut),
                            >>::Destination,
                        >,
                        __1,
                    ),
                >
                where
                    __0: so::NotWired,
                    __Fut: ::core::future::Future,
                    __F: ::core::ops::FnOnce(so::DataStream<Order>) -> __Fut
                        + so::IntoDestination<
                            Order,
                            (so::IntoThrough, __Fut),
                        >,
                {
                    let (_, __1) = self.lines;
                    OrdersWiring {
                        lines: (
                            so::Line::new(
                                so::Wiring::spec::<0>(&self.wiring),
                                destination,
                            ),
                            __1,
                        ),
                        wiring: self.wiring,
                    }
                }
                ///Gives the output `Invalid` its destination.
                fn invalid<__M, __K: so::IntoDestination<RawOrder, __M>>(
                    self,
                    destination: __K,
                ) -> OrdersWiring<
                    __D,
                    (
                        __0,
                        so::Line<
                            RawOrder,
                            <__K as so::IntoDestination<
                                RawOrder,
                                __M,
                            >>::Destination,
                        >,
                    ),
                >
                where
                    __1: so::NotWired,
                {
                    let (__0, _) = self.lines;
                    OrdersWiring {
                        lines: (
                            __0,
                            so::Line::new(
                                so::Wiring::spec::<1>(&self.wiring),
                                destination,
                            ),
                        ),
                        wiring: self.wiring,
                    }
                }
                /**Gives the output `Invalid` a closure, from its stream to a future, as its destination.

            It is as if it were given to `invalid`, but the type of its stream need not be written.*/
                fn invalid_with<__Fut, __F>(
                    self,
                    destination: __F,
                ) -> OrdersWiring<
                    __D,
                    (
                        __0,
                        so::Line<
                            RawOrder,
                            <__F as so::IntoDestination<
                                RawOrder,
                                (so::IntoThrough, __Fut),
                            >>::Destination,
                        >,
                    ),
                >
                where
                    __1: so::NotWired,
                    __Fut: ::core::future::Future,
                    __F: ::core::ops::FnOnce(so::DataStream<RawOrder>) -> __Fut
                        + so::IntoDestination<
                            RawOrder,
                            (so::IntoThrough, __Fut),
                        >,
                {
                    let (__0, _) = self.lines;
                    OrdersWiring {
                        lines: (
                            __0,
                            so::Line::new(
                                so::Wiring::spec::<1>(&self.wiring),
                                destination,
                            ),
                        ),
                        wiring: self.wiring,
                    }
                }
            }

            impl<
                __D: so::Driver<Orders>,
                __0: so::Slot<Orders, 0>,
                __1: so::Slot<Orders, 1>,
            > OrdersWiring<__D, (__0, __1)> {
                /// Drives all outputs into their destinations.
                ///
                /// The future evaluates to the ledger, or to the first error of the input, the
                /// function or a destination. Dropped before its end, it cancels.
                fn run(self) -> so::Run<Orders, __D, (__0, __1)>
                where
                    __0: ValidIsWired,
                    __1: InvalidIsWired,
                {
                    self.wiring.run(self.lines)
                }
            }
        "##]],
    );
}

#[test]
fn what_is_not_wired_has_a_name() {
    check(
        quote!(),
        orders(),
        "trait LateIsWired",
        expect![[r##"
        #[diagnostic::on_unimplemented(
            message = "output `Late` of the splitter `Orders` has no destination",
            label = "`Late` must be wired before `run`",
            note = "wire it with `.late(…)`, or drop it on purpose with `.late(discard())`"
        )]
        pub trait LateIsWired {}
    "##]],
    );
    check(
        quote!(),
        orders(),
        "type __State2",
        expect![[r##"
        #[cfg(feature = "late")]
        pub type __State2 = so::Unwired;

        #[cfg(not(feature = "late"))]
        pub type __State2 = so::Absent;
    "##]],
    );
}

#[test]
fn mistakes_leave_the_enum_and_its_companions() {
    let orders = quote! {
        enum Orders {
            #[main]
            Valid(Order),
            #[main]
            #[output(capacity = 0)]
            Invalid(RawOrder),
        }
    };
    check(
        quote!(),
        orders.clone(),
        "compile_error",
        expect![[r#"
        ::core::compile_error! {
            "the capacity of an output must be at least 1"
        }

        ::core::compile_error! {
            "only one output can be the main one; `Valid` already is, so remove this `#[main]`"
        }
    "#]],
    );
    check(
        quote!(),
        orders,
        "enum Orders ",
        expect![[r##"
        #[must_use = "a value of `Orders` routes the record only when it is returned; write `return` before it"]
        enum Orders {
            Valid(Order),
            Invalid(RawOrder),
        }
    "##]],
    );
}

#[test]
fn outputs_that_differ_only_in_case_get_other_names() {
    let orders = quote!(
        enum R {
            FooBar(u8),
            Foo_Bar(u8),
        }
    );
    check(
        quote!(),
        orders,
        "struct RStreams",
        expect![[r#"
            /**The streams of [`R`], one for each output.

            Whichever is read drives the splitter for all of them.*/
            #[must_use = "streams do nothing unless they are read, wired or discarded"]
            #[allow(
                dead_code,
                deprecated,
                explicit_outlives_requirements,
                reason = "the bounds are the enum's, and not every splitter splits a stream"
            )]
            struct RStreams<
                __H: so::Outlet<R> = so::Boxed,
            > {
                ///The output `FooBar`.
                foo_bar: so::DataStream<
                    u8,
                    <__H as so::Outlet<R>>::Source<0>,
                >,
                ///The output `Foo_Bar`.
                foo_bar_1: so::DataStream<
                    u8,
                    <__H as so::Outlet<R>>::Source<1>,
                >,
            }
        "#]],
    );
}

/// MACRO-14, 15, 16, 17: a renamed library, and names that users shadow.
#[test]
fn generated_code_names_only_the_library_and_core() {
    let item = quote!(
        enum Orders<'a, T: Clone> {
            #[main]
            Valid(&'a T),
            #[tap]
            Invalid {
                raw: T,
            },
            #[cfg(any())]
            Late(T, T),
            Never,
        }
    );
    let expansion = attribute(quote!(crate = so), item).to_string();
    assert!(!expansion.contains(":: side_output"));
    for name in ["Option", "Some", "None", "Result", "Ok", "Err", "Default", "Debug", "Clone"] {
        for (before, _) in expansion.match_indices(&format!(" {name} ")) {
            let path = expansion[..before].trim_end();
            // The bound on `T` is the user's, and `type Err` declares one.
            let fine = path.ends_with("::") || path.ends_with("T :") || path.ends_with("type");
            assert!(fine, "`{name}` without a path: …{}", &path[path.len().saturating_sub(60)..]);
        }
    }
    for path in [":: std ::", ":: alloc ::"] {
        assert!(!expansion.contains(path), "{path}");
    }
}

#[test]
fn fault_44_attributes_reach_what_is_generated() {
    let item = quote! {
        #[non_exhaustive]
        #[allow(clippy::doc_markdown)]
        #[cfg_attr(test, expect(missing_docs))]
        enum R {
            #[deprecated]
            Old(u8),
            #[non_exhaustive]
            #[cfg_attr(test, deprecated(note = "gone"), doc(hidden))]
            #[expect(missing_docs)]
            Older { x: u8 },
        }
    };
    check(
        quote!(),
        item.clone(),
        "enum RTag",
        expect![[r#"
        ///The outputs of [`R`], by name: for configuration, metrics and dead letters.
        #[::core::prelude::v1::derive(
            ::core::clone::Clone,
            ::core::marker::Copy,
            ::core::fmt::Debug,
            ::core::cmp::PartialEq,
            ::core::cmp::Eq,
            ::core::cmp::PartialOrd,
            ::core::cmp::Ord,
            ::core::hash::Hash,
        )]
        #[allow(
            dead_code,
            deprecated,
            ambiguous_associated_items,
            non_camel_case_types,
            reason = "the variants are the outputs, whatever they are called"
        )]
        #[allow(clippy::doc_markdown)]
        #[cfg_attr(test, allow(missing_docs))]
        #[non_exhaustive]
        enum RTag {
            ///The output `old`.
            #[deprecated]
            Old,
            ///The output `older`.
            #[cfg_attr(test, deprecated(note = "gone"))]
            #[allow(missing_docs)]
            Older,
        }
    "#]],
    );
    check(
        quote!(),
        item.clone(),
        "struct ROlder",
        expect![[r#"
        ///Payload of the output `Older` of [`R`].
        #[allow(
            dead_code,
            deprecated,
            explicit_outlives_requirements,
            reason = "the fields and bounds are the variant's"
        )]
        #[allow(clippy::doc_markdown)]
        #[cfg_attr(test, allow(missing_docs))]
        #[allow(missing_docs)]
        #[non_exhaustive]
        struct ROlder {
            ///Field `x` of `Older`.
            x: u8,
        }
    "#]],
    );
    check(
        quote!(),
        item.clone(),
        "struct RStreams",
        expect![[r#"
        /**The streams of [`R`], one for each output.

        Whichever is read drives the splitter for all of them.*/
        #[must_use = "streams do nothing unless they are read, wired or discarded"]
        #[allow(
            dead_code,
            deprecated,
            explicit_outlives_requirements,
            reason = "the bounds are the enum's, and not every splitter splits a stream"
        )]
        #[allow(clippy::doc_markdown)]
        #[cfg_attr(test, allow(missing_docs))]
        struct RStreams<
            __H: so::Outlet<R> = so::Boxed,
        > {
            ///The output `Old`.
            #[deprecated]
            old: so::DataStream<
                u8,
                <__H as so::Outlet<R>>::Source<0>,
            >,
            ///The output `Older`.
            #[cfg_attr(test, deprecated(note = "gone"))]
            #[allow(missing_docs)]
            older: so::DataStream<
                ROlder,
                <__H as so::Outlet<R>>::Source<1>,
            >,
        }
    "#]],
    );
    check(
        quote!(),
        item,
        "impl R {",
        expect![[r##"
        #[allow(
            dead_code,
            deprecated,
            single_use_lifetimes,
            reason = "generated for every output alike"
        )]
        #[allow(clippy::doc_markdown)]
        #[cfg_attr(test, allow(missing_docs))]
        impl R {
            ///The tag of the output `Old`.
            #[deprecated]
            const OLD_TAG: so::Tag<Self, 0> = so::Tag::new();
            ///The tag of the output `Older`.
            #[cfg_attr(test, deprecated(note = "gone"))]
            #[allow(missing_docs)]
            const OLDER_TAG: so::Tag<Self, 1> = so::Tag::new();
            /// The output that this route takes.
            #[must_use]
            const fn tag(&self) -> RTag {
                match self {
                    Self::Old { .. } => RTag::Old,
                    Self::Older { .. } => RTag::Older,
                }
            }
        }
    "##]],
    );
}
