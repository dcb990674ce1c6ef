//! What a split function becomes, and which routes count as lost.

#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes them")]

use crate::attribute;
use expect_test::{Expect, expect};
use proc_macro2::TokenStream;
use quote::quote;

#[track_caller]
fn check(args: TokenStream, function: TokenStream, expected: Expect) {
    let file = syn::parse2(attribute(args, function)).expect("the expansion is a list of items");
    expected.assert_eq(&prettyplease::unparse(&file));
}

#[test]
fn the_lint_comes_last() {
    check(
        quote!(Orders),
        quote! {
            #[allow(unused_must_use)]
            fn split(order: RawOrder) -> Orders {
                Orders::Valid(order)
            }
        },
        expect![[r#"
            #[allow(unused_must_use)]
            #[deny(unused_must_use)]
            fn split(order: RawOrder) -> Orders {
                const _: fn(&Orders) -> ::core::primitive::usize = <Orders as ::side_output::__private::Splitter>::index;
                Orders::Valid(order)
            }
        "#]],
    );
}

#[test]
fn generics_are_left_alone() {
    check(
        quote!(Orders<T>, crate = so),
        quote! {
            fn split<T>(order: T) -> Orders<T> {
                Orders::Valid(order)
            }
        },
        expect![[r#"
            #[deny(unused_must_use)]
            fn split<T>(order: T) -> Orders<T> {
                Orders::Valid(order)
            }
        "#]],
    );
}

#[test]
fn our_message_replaces_the_lint() {
    check(
        quote!(orders::Orders),
        quote! {
            fn split(order: RawOrder) -> orders::Orders {
                Orders::Invalid(order);
                Orders::Valid(order)
            }
        },
        expect![[r#"
            ::core::compile_error! {
                "this route is built but not returned; the record would go nowhere\nreturn it: `return orders::Orders::Invalid(order);`"
            }
            #[allow(unused, unreachable_code)]
            fn split(order: RawOrder) -> orders::Orders {
                const _: fn(&orders::Orders) -> ::core::primitive::usize = <orders::Orders as ::side_output::__private::Splitter>::index;
                return Orders::Invalid(order);
                Orders::Valid(order)
            }
        "#]],
    );
}

/// How many lost routes there are in a body.
fn lost(body: &str) -> usize {
    let function: TokenStream =
        format!("fn split(order: u8) -> Orders {{ {body} }}").parse().expect("a function");
    attribute(quote!(Orders), function).to_string().matches("compile_error").count()
}

#[test]
fn fault_45_lost_routes_are_found_and_others_are_not() {
    for (expected, body) in [
        (1, "Orders::Invalid(order); Orders::Valid(order)"),
        (1, "let _ = Orders::Invalid(order); Orders::Valid(order)"),
        (1, "let _: Orders = Orders::Invalid(order); Orders::Valid(order)"),
        (1, "_ = Orders::Invalid(order); Orders::Valid(order)"),
        (1, "drop(Orders::Invalid(order)); Orders::Valid(order)"),
        (1, "::core::mem::forget(Orders::Invalid(order)); Orders::Valid(order)"),
        (1, "let _ = drop(Orders::Invalid(order)); Orders::Valid(order)"),
        (1, "Orders::Skipped; Orders::Valid(order)"),
        (1, "Orders::Late { order, by: 1 }; Orders::Valid(order)"),
        (1, "(Orders::Invalid(order)); Orders::Valid(order)"),
        (1, "Some(Orders::Invalid(order)); Orders::Valid(order)"),
        (2, "let _ = [Orders::Invalid(order), Orders::Skipped]; Orders::Valid(order)"),
        (1, "if order > 1 { Orders::Invalid(order); } Orders::Valid(order)"),
        (2, "match order { 0 => Orders::Skipped, _ => { Orders::Invalid(order) } }; x()"),
        (2, "let _ = if order > 1 { Orders::Skipped } else { Orders::Invalid(order) }; x()"),
        (1, "let f = || { Orders::Invalid(order); }; Orders::Valid(order)"),
        (1, "let f = async move { Orders::Invalid(order); }; Orders::Valid(order)"),
        (1, "for x in y { while z { loop { Orders::Skipped; } } } Orders::Valid(order)"),
        (1, "let Some(x) = order else { Orders::Skipped; return x(); }; x()"),
        (1, "routing::Orders::Invalid(order); Orders::Valid(order)"),
        (1, "let _route = Orders::Invalid(order); Orders::Valid(order)"),
        (0, "let _route = Orders::Invalid(order); if x { return _route; } Orders::Valid(order)"),
        (0, "let _route = Orders::Skipped; println!(\"{_route:?}\"); _other()"),
        (1, "Some(order).map(Orders::Invalid); Orders::Valid(order)"),
        (1, "let _ = order.ok_or(Orders::Skipped); Orders::Valid(order)"),
        (1, "order.map(|order| Orders::Invalid(order)); Orders::Valid(order)"),
        (1, "order.then(|| { log(); Orders::Skipped }); Orders::Valid(order)"),
        (1, "Some(Orders::Invalid(order)).filter(|_| true); Orders::Valid(order)"),
        (1, "Box::new(Orders::Invalid(order)); Orders::Valid(order)"),
        (1, "&Orders::Invalid(order); Orders::Valid(order)"),
        (2, "vec![Orders::Invalid(order), Orders::Skipped]; Orders::Valid(order)"),
        (1, "let _ = vec![Orders::Skipped; 3]; Orders::Valid(order)"),
        (1, "std::dbg!(Orders::Skipped); Orders::Valid(order)"),
        (1, "let route = Orders::Invalid(order); Orders::Valid(order)"),
        (1, "let (_a, b) = (Orders::Invalid(order), 1); Orders::Valid(b)"),
        (1, "let [_, b] = [Orders::Invalid(order), 1]; Orders::Valid(b)"),
        (1, "(_, x) = (Orders::Invalid(order), 1); Orders::Valid(x)"),
        (1, "let Some(_) = Some(Orders::Invalid(order)) else { return x() }; x()"),
        (1, "let mut r = None; r = Some(Orders::Invalid(order)); Orders::Valid(order)"),
        (2, "let mut r = Orders::Skipped; r = Orders::Invalid(order); Orders::Valid(order)"),
        (1, "let r; r = Orders::Invalid(order); Orders::Valid(order)"),
        (1, "use Orders::*; let _ = Invalid(order); Valid(order)"),
        (1, "use crate::Orders::{Invalid, Skipped as S}; drop(S); Invalid(order)"),
        (0, "use Orders::*; let _ = Some(order); drop(Ok(1)); let _ = helper(order); Valid(order)"),
        (0, "use Others::*; let _ = Invalid(order); Orders::Valid(order)"),
        (0, "let mut r = Orders::Skipped; if x { r = Orders::Invalid(order); } r"),
        (0, "let (_a, b) = (1, Orders::Invalid(order)); b"),
        (0, "routes.extend(order.map(Orders::Invalid)); Orders::Valid(order)"),
        (0, "order.map(Orders::Invalid).for_each(|r| keep(r)); Orders::Valid(order)"),
        (0, "self.route = Orders::Skipped; Orders::Valid(order)"),
        (0, "slot[0] = Orders::Skipped; *place = Orders::Skipped; Orders::Valid(order)"),
        (
            0,
            "println!(\"{:?}\", Orders::Skipped); assert!(x != Orders::Skipped); Orders::Valid(order)",
        ),
        (0, "let route = Orders::Invalid(order); println!(\"{route:?}\"); route"),
        (0, "order.map(Others::Invalid); order.map(|r| { keep(Orders::Skipped); }); x()"),
        (0, "order.map(|r| Orders::check(r)); Orders::Valid(order)"),
        (0, "Self::Invalid(order); Orders::Valid(order)"),
        (0, "Orders::Valid(order)"),
        (0, "return Orders::Valid(order);"),
        (0, "let route = Orders::Valid(order); route"),
        (0, "if order > 1 { return Orders::Skipped; } Orders::Valid(order)"),
        (0, "match order { 0 => Orders::Skipped, _ => Orders::Valid(order) }"),
        (0, "routes.push(Orders::Skipped); Orders::Valid(order)"),
        (0, "cx.output(Orders::SEEN_TAG, order); Orders::Valid(order)"),
        (0, "Orders::check(order); Orders::LIMIT_TAG; Orders::Valid(order)"),
        (0, "drop(order); let _ = order; Others::Invalid(order); Orders::Valid(order)"),
        (0, "break_all(|| Orders::Skipped); Orders::Valid(order)"),
    ] {
        assert_eq!(lost(body), expected, "{body}");
    }
}

#[test]
fn a_method_of_the_enum_may_call_it_self() {
    let method = quote! {
        fn split(order: u8) -> Option<Self> {
            let _ = Self::Invalid(order);
            Some(Self::Valid(order))
        }
    };
    let expansion = attribute(quote!(Self), method).to_string();
    assert_eq!(expansion.matches("compile_error").count(), 1);
    assert!(expansion.contains("return it: `return Some(Self::Invalid(order));`"), "{expansion}");
}

#[test]
fn the_advice_fits_the_return_type() {
    for (output, advice) in [
        ("Orders", "return Orders::Invalid(order);"),
        ("Option<Orders>", "return Some(Orders::Invalid(order));"),
        ("Result<Option<Orders>, Error>", "return Ok(Some(Orders::Invalid(order)));"),
        ("io::Result<Vec<Orders>>", "return Ok(vec![Orders::Invalid(order)]);"),
        ("impl Routes<Orders>", "return Orders::Invalid(order);"),
    ] {
        let function: TokenStream =
            format!("fn split(order: u8) -> {output} {{ Orders::Invalid(order); x() }}")
                .parse()
                .expect("a function");
        let expansion = attribute(quote!(Orders), function).to_string();
        assert!(expansion.contains(advice), "{output}: {expansion}");
    }
}
