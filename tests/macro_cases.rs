//! The cases of the routing macro that are about what it generates; each test carries the id of
//! its case. `names.rs`, `hygiene.rs` and `lints.rs` have the others.

#![allow(
    unreachable_pub,
    unnameable_types,
    dead_code,
    clippy::non_minimal_cfg,
    reason = "visibilities and `cfg` are what some of the cases are about"
)]

use futures::executor::block_on;
use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use side_output::prelude::*;
use side_output::{Overflow, UnknownTag};
use std::collections::HashMap;

/// Where a number goes.
#[splitter]
#[derive(Debug, Clone, PartialEq)]
enum Numbers {
    /// Even ones.
    #[main]
    Even(u32),
    #[output(capacity = 2, overflow = "drop_oldest")]
    #[output(name = "uneven")]
    Odd(String),
    #[tap]
    Seen {
        /// The number.
        number: u32,
        text: &'static str,
    },
    Pair(u8, u16),
    Nothing,
    Empty(),
}

#[splitter(Numbers)]
fn by_parity(n: u32, cx: &mut Context<Numbers>) -> Numbers {
    cx.output(Numbers::SEEN_TAG, NumbersSeen { number: n, text: "seen" });
    match n {
        100 => Numbers::Pair(1, 2),
        101 => Numbers::Nothing,
        102 => Numbers::Empty(),
        _ if n.is_multiple_of(2) => Numbers::Even(n),
        _ => Numbers::Odd(n.to_string()),
    }
}

#[test]
fn every_shape_of_variant_is_an_output() {
    let (mut even, mut uneven, mut seen, mut pair, mut nothing, mut empty) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let ledger = block_on(
        stream::iter([1, 2, 100, 101, 102])
            .split_with(by_parity)
            .wire()
            .even(&mut even)
            .uneven(&mut uneven)
            .seen(&mut seen)
            .pair(&mut pair)
            .nothing(&mut nothing)
            .empty(&mut empty)
            .run(),
    )
    .unwrap();
    assert!(ledger.is_balanced(), "{ledger}");
    assert_eq!((even, uneven, pair), (vec![2], vec!["1".to_owned()], vec![(1, 2)]));
    assert_eq!((nothing, empty), (vec![()], vec![()]));
    assert_eq!(seen[4], NumbersSeen { number: 102, text: "seen" });
}

#[test]
fn attributes_reach_the_specification() {
    let spec = Numbers::OUTPUTS;
    assert_eq!(
        spec.iter().map(|spec| spec.name).collect::<Vec<_>>(),
        ["even", "uneven", "seen", "pair", "nothing", "empty"]
    );
    assert!(spec[0].main && !spec[0].tap && spec[2].tap);
    assert_eq!((spec[1].capacity.get(), spec[1].overflow), (2, Overflow::DropOldest));
    assert_eq!(spec[3].overflow, Overflow::Block);
}

#[test]
fn streams_have_a_ledger_and_can_be_printed() {
    let streams = stream::iter([1, 2]).split_with(by_parity).fail_on_stall();
    assert!(format!("{streams:?}").starts_with("NumbersStreams { even: DataStream"));
    let handle = streams.ledger_handle();
    assert_eq!(streams.ledger().received, 0);
    let NumbersStreams { even, uneven, seen, pair, nothing, empty } = streams;
    drop((uneven, seen, pair, nothing, empty));
    assert_eq!(block_on(even.collect::<Vec<_>>()), [2]);
    assert_eq!(handle.read().received, 2);
    let wiring = stream::iter([1, 2]).split_with(by_parity).wire();
    assert_eq!(format!("{wiring:?}"), "NumbersWiring { .. }");
}

#[test]
fn a_stream_is_taken_by_its_tag() {
    let mut streams = stream::iter([1, 2, 3]).split_with(by_parity);
    let uneven: DataStream<String> = streams.get_side_output(Numbers::UNEVEN_TAG);
    let NumbersStreams { even, seen, pair, nothing, empty, .. } = streams.boxed();
    drop((even, seen, pair, nothing, empty));
    assert_eq!(block_on(uneven.collect::<Vec<_>>()), ["1", "3"]);
}

#[test]
fn tags_are_names() {
    let odd = Numbers::Odd("1".to_owned());
    assert_eq!(odd.tag(), NumbersTag::Odd);
    assert_eq!(NumbersTag::of(&odd), NumbersTag::Odd);
    assert_eq!(format!("[{:>8}] {:?}", NumbersTag::Odd, NumbersTag::Odd), "[  uneven] Odd");
    assert_eq!("uneven".parse(), Ok(NumbersTag::Odd));
    let error: UnknownTag = "odd".parse::<NumbersTag>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown output `odd`; expected one of `even`, `uneven`, `seen`, `pair`, `nothing`, `empty`"
    );
    assert!(NumbersTag::Even < NumbersTag::Odd);
    for tag in NumbersTag::ALL {
        assert_eq!(tag.name().parse(), Ok(*tag));
    }
}

/// Configuration-driven routing.
#[test]
fn tags_route_where_all_payloads_agree() {
    #[splitter]
    #[derive(Debug, PartialEq)]
    enum Alerts {
        Team(String),
        Pager(String),
    }

    let config: HashMap<String, AlertsTag> =
        serde_json::from_str(r#"{"disk": "team", "fire": "pager"}"#).unwrap();
    assert_eq!(config["fire"].route("up".to_owned()), Alerts::Pager("up".to_owned()));
    let error = serde_json::from_str::<HashMap<String, AlertsTag>>(r#"{"disk": "teem"}"#);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("unknown output `teem`; expected one of `team`, `pager`"), "{error}");
    let counts: HashMap<AlertsTag, u8> = serde_json::from_str(r#"{"team": 3}"#).unwrap();
    assert_eq!(counts[&AlertsTag::Team], 3);
}

mod macro_04 {
    use super::*;

    #[splitter]
    #[derive(Debug, PartialEq)]
    enum Conditional {
        #[cfg(any())]
        Gone(NotExisting),
        Here(u8),
        #[cfg(not(test))]
        NotInTests(AlsoNotExisting),
        #[cfg_attr(all(), cfg(all()))]
        #[cfg(not(any()))]
        Two(u16),
        #[cfg_attr(all(), cfg(any()))]
        #[tap]
        #[output(capacity = 1)]
        Gone2 {
            field: NotExisting,
        },
        #[cfg(all())]
        #[main]
        Twin(u32),
        #[cfg(any())]
        #[main]
        Twin(u64),
        Braces {
            #[cfg(any())]
            gone: NotExisting,
            #[cfg(all())]
            here: u8,
        },
    }

    fn split(n: u8) -> Conditional {
        match n {
            0 => Conditional::Here(n),
            1 => Conditional::Two(u16::from(n)),
            2 => Conditional::Twin(u32::from(n)),
            _ => Conditional::Braces { here: n },
        }
    }

    #[test]
    fn macro_04_variants_behind_cfg() {
        let (mut two, mut braces) = (Vec::new(), Vec::new());
        // Nothing has to be said about outputs that are not there.
        let wiring = stream::iter(0..4).split_with(split).wire();
        let wiring = wiring.here(discard()).two(&mut two).twin(discard()).braces(&mut braces);
        let ledger = block_on(wiring.run()).unwrap();
        assert!(ledger.is_balanced(), "{ledger}");
        assert_eq!(ledger.outputs.len(), 4);
        assert_eq!((two, braces[0].here), (vec![1], 3));

        let ConditionalStreams { here, two, twin, braces } = stream::iter(0..4).split_with(split);
        drop((here, two, twin));
        assert_eq!(block_on(braces.count()), 1);
        assert_eq!(ConditionalTag::ALL.len(), 4);
        assert_eq!(Conditional::SLOTS, 8);
        assert_eq!(Conditional::OUTPUTS[1].index, 3);
        assert_eq!(Conditional::TWIN_TAG.name(), "twin");
        let error = "gone".parse::<ConditionalTag>().unwrap_err().to_string();
        assert_eq!(error, "unknown output `gone`; expected one of `here`, `two`, `twin`, `braces`");
    }

    #[splitter]
    #[cfg(any())]
    enum Never {
        A(NotExisting),
        B { b: NotExisting },
    }

    #[splitter]
    #[cfg(all())]
    enum Always {
        #[cfg(feature = "serde")]
        WithSerde(u8),
        #[cfg(not(feature = "serde"))]
        WithoutSerde(u8),
    }

    #[test]
    fn macro_04_features_choose_outputs() {
        assert_eq!(AlwaysTag::ALL.len(), 1);
        assert!(matches!(AlwaysTag::ALL[0].route(1).index(), 0 | 1));
    }
}

mod macro_07 {
    pub mod public {
        mod private {
            use side_output::prelude::*;

            #[splitter]
            pub(crate) enum InCrate {
                A(u8),
            }

            #[splitter(vis = pub)]
            pub(crate) enum Widened {
                A(u8),
            }

            #[splitter(vis = pub(super))]
            enum ToParent {
                A(u8),
            }

            #[splitter(vis = pub(in crate::macro_07))]
            enum ToModule {
                A { field: u8 },
            }
        }
        // Exactly as visible as was said.
        pub(crate) use private::{InCrateStreams, InCrateTag};
        pub(in crate::macro_07) use private::{ToModuleA, ToModuleStreams, ToModuleTag};
        use private::{ToParentStreams, ToParentTag};
        pub use private::{WidenedStreams, WidenedTag};

        /// A public function may return the companion of an enum that is not.
        #[must_use]
        pub const fn widened() -> WidenedTag {
            WidenedTag::A
        }

        #[test]
        fn macro_07_the_parent_sees_them() {
            assert_eq!(ToParentTag::A.name(), "a");
            assert!(size_of::<Option<ToParentStreams>>() > 0);
        }
    }

    #[test]
    fn macro_07_the_visibility_can_be_chosen() {
        assert_eq!(public::widened().name(), "a");
        assert_eq!(public::InCrateTag::A.name(), "a");
        assert_eq!(public::ToModuleTag::ALL[0].name(), "a");
        assert_eq!(public::ToModuleA { field: 1 }.field, 1);
        assert!(size_of::<(public::InCrateStreams, public::ToModuleStreams)>() > 0);
        assert!(size_of::<(public::WidenedStreams, public::WidenedTag)>() > 0);
    }
}

mod macro_08 {
    mod a {
        use side_output::prelude::*;

        #[splitter]
        #[derive(Debug)]
        pub enum Routes {
            Left(u8),
            Right(u8),
        }

        #[splitter(Routes)]
        pub fn split(n: u8) -> Routes {
            if n == 0 { Routes::Left(n) } else { Routes::Right(n) }
        }
    }

    mod b {
        use super::a;
        use futures::executor::block_on;
        use side_output::{SplitExt as _, discard};

        #[test]
        fn macro_08_usable_from_another_module() {
            let mut streams = futures::stream::iter([0, 1]).split_with(a::split);
            drop(streams.get_side_output(a::Routes::LEFT_TAG));
            let a::RoutesStreams { left, right } = streams;
            drop((left, right));
            let wiring = futures::stream::iter([0, 1]).split_with(a::split).wire();
            let run = wiring.left(discard()).right(discard()).run();
            assert!(block_on(run).unwrap().is_balanced());
            assert_eq!(a::RoutesTag::ALL[1].route(2).tag().name(), "right");
        }
    }
}

mod macro_18 {
    use super::*;

    #[splitter]
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "t", rename_all = "snake_case")]
    enum Below {
        #[main]
        FirstOne { value: u8 },
        #[serde(rename = "x")]
        #[tap]
        Second { value: u8 },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[splitter]
    #[serde(tag = "t", rename_all = "snake_case")]
    enum Above {
        #[main]
        FirstOne { value: u8 },
        #[serde(rename = "x")]
        #[tap]
        Second { value: u8 },
    }

    #[test]
    fn macro_18_derives_above_and_below() {
        let below = [Below::FirstOne { value: 1 }, Below::Second { value: 2 }];
        let above = [Above::FirstOne { value: 1 }, Above::Second { value: 2 }];
        let json = serde_json::to_string(&below).unwrap();
        assert_eq!(json, r#"[{"t":"first_one","value":1},{"t":"x","value":2}]"#);
        assert_eq!(json, serde_json::to_string(&above).unwrap());
        assert_eq!(serde_json::from_str::<[Below; 2]>(&json).unwrap(), below);

        let NumbersCount(first, second) = count(above);
        assert_eq!((first, second), (1, 1));
        // The derives below are the payload's too.
        let payload = BelowFirstOne { value: 1 };
        assert_eq!(serde_json::to_string(&payload).unwrap(), r#"{"value":1}"#);
    }

    struct NumbersCount(usize, usize);

    fn count(routes: [Above; 2]) -> NumbersCount {
        let (mut first, mut second) = (0, 0);
        let wiring = stream::iter(routes).split_with(|route: Above| route).wire();
        block_on(wiring.first_one(each(|_| first += 1)).second(each(|_| second += 1)).run())
            .unwrap();
        NumbersCount(first, second)
    }
}

mod what_a_function_may_return {
    use super::*;

    #[splitter(Numbers)]
    fn option(n: u32) -> Option<Numbers> {
        (n > 1).then_some(Numbers::Even(n))
    }

    #[splitter(Numbers)]
    fn array(n: u32) -> [Numbers; 2] {
        [Numbers::Even(n), Numbers::Nothing]
    }

    #[splitter(Numbers)]
    fn result(text: &str) -> Result<Numbers, std::num::ParseIntError> {
        Ok(Numbers::Even(text.parse()?))
    }

    #[splitter(Numbers, crate = ::side_output)]
    fn routes(n: u32) -> impl Routes<Numbers> + use<> {
        vec![Numbers::Even(n); 3]
    }

    struct Rules {
        limit: u32,
    }

    impl Rules {
        #[splitter(Numbers)]
        fn method(&self, n: u32) -> Numbers {
            if n > self.limit { Numbers::Nothing } else { Numbers::Even(n) }
        }
    }

    macro_rules! even {
        ($streams:expr) => {{
            let mut even = Vec::new();
            let wiring = $streams.wire().uneven(discard()).seen(discard()).pair(discard());
            let run = wiring.nothing(discard()).empty(discard()).even(&mut even).run();
            block_on(run).map(|ledger| (even, ledger.is_balanced()))
        }};
    }

    #[test]
    fn all_routes_arrive() {
        let numbers = || stream::iter([1, 2]);
        assert_eq!(even!(numbers().split_with(option)).unwrap(), (vec![2], true));
        assert_eq!(even!(numbers().split_with(array)).unwrap(), (vec![1, 2], true));
        assert_eq!(even!(numbers().split_with(routes)).unwrap(), (vec![1, 1, 1, 2, 2, 2], true));
        let rules = Rules { limit: 1 };
        assert_eq!(even!(numbers().split_with(|n| rules.method(n))).unwrap(), (vec![1], true));
        assert_eq!(even!(stream::iter(["7"]).split_with(result)).unwrap(), (vec![7], true));
        assert!(even!(stream::iter(["seven"]).split_with(result)).is_err());
    }
}

mod macro_08_and_14 {
    use super::*;
    use side_output_tests_renamed::{
        Orders, OrdersInvalid, OrdersStreams, OrdersTag, split_order, two_sides,
    };

    #[test]
    fn macro_08_a_splitter_of_another_crate() {
        let texts = || stream::iter(["1", "x"]);
        let OrdersStreams { valid, invalid, audited } = texts().split_with(split_order);
        drop((valid, audited));
        let invalid: Vec<OrdersInvalid> = block_on(invalid.collect());
        assert_eq!(invalid, [OrdersInvalid { text: "x" }]);
        let mut streams = texts().split_with(split_order);
        drop(streams.get_side_output(Orders::AUDITED_TAG));
        let wiring = texts().split_with(split_order).wire();
        let run = wiring.valid(discard()).invalid(discard()).audited(discard()).run();
        assert!(block_on(run).unwrap().is_balanced());
        assert_eq!(split_order("7").tag(), OrdersTag::Valid);
    }

    two_sides!(pub(super) enum Sides: Vec<(u8, &'static str)>);

    #[test]
    fn macro_14_and_19_a_splitter_by_the_macro_of_another_crate() {
        assert!(matches!(SidesTag::Right.route(vec![(1, "a")]), Sides::Right(_)));
        assert_eq!(Sides::Left(vec![]).tag().name(), "left");
    }
}
