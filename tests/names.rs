//! Whatever variants, fields, parameters and enums are called, and wherever they stand.

#![deny(warnings, ambiguous_associated_items)]
#![allow(
    clippy::many_single_char_names,
    clippy::multiple_bound_locations,
    clippy::upper_case_acronyms,
    reason = "names are what the cases are about"
)]

use futures::executor::block_on;
use futures::stream;
use side_output::prelude::*;

/// Wires every output of five or so into vectors and returns what came.
macro_rules! collect {
    ($streams:expr; $($output:ident),*) => {{
        $(let mut $output = Vec::new();)*
        let ledger = block_on($streams.wire()$(.$output(&mut $output))*.run()).unwrap();
        assert!(ledger.is_balanced(), "{ledger}");
        ($($output,)*)
    }};
}

mod macro_01 {
    use super::*;

    #[splitter]
    #[derive(Debug, Clone, PartialEq)]
    enum R {
        #[main]
        Main(u8),
        None(u8),
        Some(u8),
        Ok(u8),
        Err(u8),
    }

    mod glob {
        use super::R;
        use R::*;

        pub(super) fn split(n: u8) -> R {
            match n % 5 {
                0 => Main(n),
                1 => None(n),
                2 => Some(n),
                3 => Ok(n),
                _ => Err(n),
            }
        }
    }

    // The macro under a glob import of such variants.
    mod inside {
        mod names {
            pub(super) enum Shadow {
                None,
                Some,
                Ok,
                Err,
            }
        }
        use super::*;
        use names::Shadow::*;

        #[splitter]
        #[derive(Debug)]
        enum Inside {
            A(u8),
            B(u8),
        }

        #[test]
        fn macro_01_under_a_glob_import() {
            let (a, b) = collect!(
                stream::iter(0..4).split_with(|n: u8| if n < 2 { Inside::A(n) } else { Inside::B(n) });
                a, b
            );
            assert_eq!((a, b), (vec![0, 1], vec![2, 3]));
            let shadows = [None, Some, Ok, Err];
            assert_eq!(shadows.len(), InsideTag::ALL.len() * 2);
        }
    }

    #[test]
    fn macro_01_variants_called_none_some_ok_err() {
        let (main, none, some, ok, err) = collect!(
            stream::iter(0..10).split_with(glob::split); main, none, some, ok, err
        );
        assert_eq!([main, none, some, ok, err], [[0, 5], [1, 6], [2, 7], [3, 8], [4, 9]]);
        assert_eq!("err".parse(), Ok(RTag::Err));
        assert!("error".parse::<RTag>().is_err());
        assert_eq!(RTag::None.route(3), R::None(3));
    }
}

mod macro_02 {
    use super::*;

    #[splitter]
    #[derive(Debug)]
    enum Kinds {
        Error(u8),
        Item(u8),
        Output(u8),
        Future(u8),
        Sink(u8),
        Stream(u8),
        Payload(u8),
        Lanes(u8),
        Streams(u8),
        Err(u8),
        Default(u8),
        ALL(u8),
    }

    #[test]
    fn macro_02_variants_called_like_associated_types() {
        let split = stream::iter(0..6).split_with(|n: u8| match n {
            0 => Kinds::Error(n),
            1 => Kinds::Item(n),
            2 => Kinds::Output(n),
            3 => Kinds::Future(n),
            4 => Kinds::Sink(n),
            _ => Kinds::Stream(n),
        });
        let all = collect!(
            split; error, item, output, future, sink, stream, payload, lanes, streams, err,
            default, all
        );
        assert_eq!((all.0, all.3, all.5), (vec![0], vec![3], vec![5]));
        assert_eq!("stream".parse::<KindsTag>(), Ok(KindsTag::Stream));
        assert_eq!(serde_json::to_string(&KindsTag::Error).unwrap(), "\"error\"");
    }
}

#[allow(non_camel_case_types, reason = "raw identifiers are in lower case")]
mod macro_03 {
    use super::*;

    #[splitter]
    #[derive(Debug, PartialEq)]
    enum r#enum {
        r#type(u8),
        r#async { r#fn: u8 },
        r#match,
    }

    #[splitter(r#enum)]
    fn split(n: u8) -> r#enum {
        match n {
            0 => r#enum::r#type(n),
            1 => r#enum::r#async { r#fn: n },
            _ => r#enum::r#match,
        }
    }

    #[test]
    fn macro_03_raw_identifiers() {
        let (r#type, r#async, r#match) =
            collect!(stream::iter(0..3).split_with(split); r#type, r#async, r#match);
        assert_eq!(r#type, [0]);
        assert_eq!(r#async[0].r#fn, 1);
        assert_eq!(r#match, [()]);
        let names: Vec<_> = enumTag::ALL.iter().map(|tag| tag.name()).collect();
        assert_eq!(names, ["type", "async", "match"]);
        assert_eq!(r#enum::TYPE_TAG.name(), "type");
        assert_eq!(<r#enum as Splitter>::NAME, "enum");
        assert_eq!(enumTag::r#type.to_string(), "type");
    }
}

mod macro_10 {
    use super::*;

    #[splitter]
    #[derive(Debug, Clone, PartialEq)]
    enum Fields {
        Many {
            item: u8,
            this: u8,
            cx: u8,
            main: u8,
            side: u8,
            self_: u8,
            stream: u8,
            output: u8,
            state: u8,
            name: u8,
            value: u8,
            __x: u8,
            __self: u8,
            __0: u8,
            payload: u8,
            route: u8,
            at: u8,
        },
        Other {
            at: u8,
        },
    }

    #[test]
    fn macro_10_fields_called_like_locals() {
        let route = Fields::Many {
            item: 1,
            this: 2,
            cx: 3,
            main: 4,
            side: 5,
            self_: 6,
            stream: 7,
            output: 8,
            state: 9,
            name: 10,
            value: 11,
            __x: 12,
            __self: 13,
            __0: 14,
            payload: 15,
            route: 16,
            at: 17,
        };
        let sent = route;
        let (many, other) = collect!(
            stream::iter([0, 1]).split_with(move |n: u8| {
                if n == 0 { sent.clone() } else { Fields::Other { at: 99 } }
            });
            many, other
        );
        let FieldsMany {
            item,
            this,
            cx,
            main,
            side,
            self_,
            stream,
            output,
            state,
            name,
            value,
            __x,
            __self,
            __0,
            payload,
            route,
            at,
        } = many[0].clone();
        let back = [
            item, this, cx, main, side, self_, stream, output, state, name, value, __x, __self,
            __0, payload, route, at,
        ];
        assert_eq!(back.to_vec(), (1..=17).collect::<Vec<u8>>());
        assert_eq!(other, [FieldsOther { at: 99 }]);
    }
}

mod macro_11 {
    use super::*;

    struct Host;

    impl Host {
        fn run() -> (Vec<u8>, usize) {
            const N: usize = 3;
            #[derive(Debug)]
            struct P(u8);

            #[splitter]
            #[derive(Debug)]
            enum R {
                A(P),
                B([u8; N]),
            }

            let (a, b) = collect!(
                stream::iter(0..4_u8).split_with(|n| if n < 3 { R::A(P(n)) } else { R::B([n; N]) });
                a, b
            );
            (a.into_iter().map(|p: P| p.0).collect(), b.len())
        }
    }

    #[test]
    fn macro_11_inside_functions() {
        assert_eq!(Host::run(), (vec![0, 1, 2], 1));

        let in_closure = || {
            struct P;
            #[splitter]
            enum R {
                A(P),
                B { p: P },
            }
            #[splitter(R)]
            fn split(n: u8) -> R {
                if n == 0 { R::A(P) } else { R::B { p: P } }
            }
            let (a, b) = collect!(stream::iter([0, 1, 2]).split_with(split); a, b);
            (a.len(), b.into_iter().map(|RB { p: P }| ()).count())
        };
        assert_eq!(in_closure(), (1, 2));
    }
}

mod macro_12 {
    use super::*;
    use std::marker::PhantomData;

    /// All kinds of parameters.
    #[allow(explicit_outlives_requirements, reason = "a bound that a user may write")]
    #[splitter]
    #[derive(Debug, Clone)]
    enum R<'a, T: Clone = u8, const N: usize = 4>
    where
        T: 'a + Send,
    {
        A(&'a T),
        #[tap]
        B([T; N]),
        C(PhantomData<fn() -> T>),
        D {
            only: &'a str,
        },
        E {
            all: [&'a T; N],
            me: Option<Box<Self>>,
        },
        F,
    }

    #[splitter(R)]
    fn split<'a>(n: &'a u8, cx: &mut Context<R<'a>>) -> R<'a> {
        cx.output(R::B_TAG, [*n; 4]);
        match n {
            0 => R::A(n),
            1 => R::C(PhantomData),
            2 => R::D { only: "two" },
            3 => R::E { all: [n; 4], me: None },
            _ => R::F,
        }
    }

    #[test]
    fn macro_12_parameters_defaults_and_where_clauses() {
        static NUMBERS: [u8; 5] = [0, 1, 2, 3, 4];
        let local = NUMBERS;
        let (a, b, c, d, e, f) =
            collect!(stream::iter(local.iter()).split_with(split); a, b, c, d, e, f);
        let a: Vec<&u8> = a;
        let b: Vec<[u8; 4]> = b;
        assert_eq!((a, b.len(), c.len(), d[0].only, f), (vec![&0], 5, 1, "two", vec![()]));
        let e: &RE<'_, u8, 4> = &e[0];
        assert!(e.me.is_none());
        assert_eq!(e.all, [&3; 4]);
        // Boxed streams name the enum and nothing else.
        let streams: RStreams<'static> = stream::iter(NUMBERS.iter()).split_with(split).boxed();
        drop(streams);
        let tag: RTag = RTag::of::<u8, 4>(&R::F);
        assert_eq!(tag, RTag::F);
    }

    #[splitter]
    enum Unbounded<T> {
        Left(T),
        Right(T),
    }

    #[test]
    fn macro_12_a_plain_parameter() {
        let (left, right) = collect!(
            stream::iter(["a", "bb"])
                .split_with(|s: &'static str| if s.len() == 1 { Unbounded::Left(s) } else { Unbounded::Right(s) });
            left, right
        );
        assert_eq!((left, right), (vec!["a"], vec!["bb"]));
        assert!(matches!(UnboundedTag::Left.route(7), Unbounded::Left(7)));
    }
}

mod macro_19 {
    use super::*;

    macro_rules! mk {
        ($v:vis $n:ident { $($x:ident($t:ty) = $d:literal),* $(,)? } capacity $c:literal) => {
            #[splitter]
            #[derive(Debug)]
            #[repr(u8)]
            $v enum $n {
                $(#[output(capacity = $c)] $x($t) = $d,)*
            }
        };
    }

    mod inner {
        use super::*;
        mk!(pub(crate) Made { One(Vec<(u8, &'static str)>) = 1, Two(Vec<(u8, &'static str)>) = 2 } capacity 7);
        mk!(pub(super) Other { One(Vec<(u8, &'static str)>) = 1, Two(u8) = 2 } capacity 1);
    }
    use inner::{Made, MadeStreams, MadeTag, Other};

    #[test]
    fn macro_19_an_enum_made_by_macro_rules() {
        let streams =
            stream::iter([vec![(1, "a")], vec![]]).split_with(|v: Vec<(u8, &'static str)>| {
                if v.is_empty() { Made::Two(v) } else { Made::One(v) }
            });
        let MadeStreams { one, two } = streams.boxed();
        let one: DataStream<Vec<(u8, &'static str)>> = one;
        drop((one, two));
        assert!(matches!(MadeTag::Two.route(vec![]), Made::Two(_)));
        assert_eq!(Made::OUTPUTS[1].capacity.get(), 7);
        assert_eq!(Other::Two(1).tag().name(), "two");
        assert_eq!(Other::One(vec![]).index(), 0);
    }
}

mod fault_41_types {
    use super::*;

    struct RStreams;
    struct RWiring;
    struct RTag;

    #[splitter(streams = Streams, wiring = Wiring, tag = Tag)]
    #[derive(Debug)]
    enum R {
        A(u8),
        B(u8),
    }

    #[test]
    fn fault_41_companions_have_the_names_that_they_are_given() {
        let split = |n: u8| if n < 2 { R::A(n) } else { R::B(n) };
        let streams: Streams = stream::iter(0..4).split_with(split).boxed();
        assert!(format!("{streams:?}").starts_with("Streams {"));
        let wiring: Wiring<_, _> = stream::iter(0..4).split_with(split).wire();
        assert_eq!(format!("{wiring:?}"), "Wiring { .. }");
        let (mut a, mut b) = (Vec::new(), Vec::new());
        assert!(block_on(wiring.a(&mut a).b(&mut b).run()).unwrap().is_balanced());
        assert_eq!((a, b), (vec![0, 1], vec![2, 3]));
        assert_eq!(R::A(1).tag(), Tag::A);
        let (RStreams, RWiring, RTag) = (RStreams, RWiring, RTag);
    }
}

mod fault_40 {
    use super::*;

    #[splitter]
    #[derive(Debug)]
    enum E {
        Gen(u8),
        #[output(name = "try")]
        B {
            r#gen: u8,
        },
    }

    #[test]
    fn fault_40_an_output_called_like_a_keyword_of_the_edition() {
        let (r#gen, r#try) = collect!(
            stream::iter(0..2).split_with(|n: u8| if n == 0 { E::Gen(n) } else { E::B { r#gen: n } });
            r#gen, r#try
        );
        assert_eq!((r#gen, r#try[0].r#gen), (vec![0], 1));
        assert_eq!(E::GEN_TAG.name(), "gen");
    }
}

mod fault_41 {
    use super::*;

    #[splitter(streams = Taken, wiring = Wire, tag = Name)]
    #[derive(Debug, PartialEq)]
    #[allow(non_camel_case_types, reason = "names are what the cases are about")]
    enum R {
        Streams {
            a: u8,
        },
        Wiring {
            a: u8,
        },
        #[output(payload = Tagged)]
        Tag {
            a: u8,
        },
        ALL,
        name(u8),
        of(u8),
        route(u8),
        from_str(u8),
    }

    struct RTag;

    #[test]
    fn fault_41_variants_called_like_companions_and_their_methods() {
        let split = |n: u8| match n {
            0 => R::Streams { a: n },
            1 => R::Tag { a: n },
            2 => R::ALL,
            3 => R::name(n),
            _ => R::Wiring { a: n },
        };
        let (streams, wiring, tag, all, name, of, route, from_str) = collect!(
            stream::iter(0..5).split_with(split);
            streams, wiring, tag, all, name, of, route, from_str
        );
        let (RStreams { a: first }, RWiring { a: last }) = (&streams[0], &wiring[0]);
        assert_eq!((*first, *last, tag[0].a, all.len(), name[0]), (0, 4, 1, 1, 3));
        let rest: [Vec<u8>; 3] = [of, route, from_str];
        assert!(rest.iter().all(Vec::is_empty));
        let _: &Tagged = &tag[0];
        let streams: Taken = stream::iter(0..5).split_with(split).boxed();
        drop(streams);
        assert_eq!("all".parse::<Name>(), Ok(Name::ALL));
        assert_eq!(serde_json::to_string(&Name::name).unwrap(), "\"name\"");
        let RTag = RTag;
    }
}

mod fault_42 {
    use super::*;

    #[splitter]
    #[derive(Debug)]
    #[allow(single_use_lifetimes, reason = "the cases are about parameters")]
    enum R<#[cfg(any())] 'a, 'b, #[cfg(any())] T, #[cfg(not(loom))] U, #[cfg(any())] const N: usize> {
        A(&'b U),
        B { text: &'b str },
    }

    #[splitter]
    #[derive(Debug)]
    #[allow(explicit_outlives_requirements, reason = "a bound that a user may write")]
    enum Lt<'a, 'b: 'a> {
        A(&'a &'b str),
        B { x: &'b str },
    }

    #[test]
    fn fault_42_parameters_behind_a_cfg() {
        static NUMBERS: [u8; 2] = [0, 1];
        let (a, b) = collect!(
            stream::iter(NUMBERS.iter())
                .split_with(|n: &'static u8| if *n == 0 { R::A(n) } else { R::B { text: "b" } });
            a, b
        );
        assert_eq!((a, b[0].text), (vec![&0], "b"));
    }

    #[test]
    fn fault_42_a_lifetime_that_outlives_another_one() {
        let text = String::from("text");
        let borrowed = text.as_str();
        let (a, b) = collect!(
            stream::iter([0, 1]).split_with(|n: u8| match n {
                0 => Lt::A(&borrowed),
                _ => Lt::B { x: borrowed },
            });
            a, b
        );
        assert_eq!((*a[0], b[0].x), ("text", "text"));
    }
}
