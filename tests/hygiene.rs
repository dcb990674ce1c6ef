//! Whatever names the user's scope has, generated code means its own.
//!
//! The root of this crate has modules called like crates, and every test module shadows what
//! generated code could name by accident.

#![allow(dead_code, unused_macros, reason = "shadows are there to be in the way")]

extern crate side_output as so;

/// MACRO-16: modules called like crates.
mod core {}
mod std {}
mod alloc {}
mod futures {}
mod tokio {}
mod serde {}

mod macro_16 {
    use super::*;
    use so::prelude::*;

    #[splitter]
    #[derive(Debug)]
    enum Orders {
        #[main]
        Valid(u8),
        #[output(capacity = 3, overflow = "drop_newest")]
        Invalid { text: &'static str },
    }

    #[test]
    fn macro_16_modules_called_core_and_std() {
        assert_eq!(Orders::Valid(1).tag().name(), "valid");
        assert_eq!(Orders::OUTPUTS[1].capacity.get(), 3);
        assert_eq!(OrdersInvalid { text: "a" }.text, "a");
    }
}

mod macro_14 {
    use super::so::prelude::splitter as split;

    // As if the dependency were called `so` in the manifest, and a path of another module.
    #[split(crate = so)]
    enum Renamed {
        A(u8),
    }

    mod vendored {
        pub(super) use crate::so as renamed;
    }

    #[split(crate = vendored::renamed)]
    enum Behind {
        A(u8),
    }

    #[split(Behind, crate = vendored::renamed)]
    fn function(n: u8) -> Behind {
        Behind::A(n)
    }

    macro_rules! front {
        ($name:ident) => {
            #[split(crate = $crate::so)]
            enum $name {
                A(u8),
            }
        };
    }
    front!(Fronted);

    #[test]
    fn macro_14_a_renamed_dependency() {
        assert_eq!(Renamed::A(1).tag().name(), "a");
        assert_eq!(BehindTag::of(&function(1)).name(), "a");
        assert!(matches!(FrontedTag::A.route(2), Fronted::A(2)));
    }
}

mod macro_15 {
    use ::side_output::splitter;

    type Result<T> = (T,);
    struct Option;
    struct Some;
    struct Box;
    struct Vec;
    struct String;
    struct Arc;
    struct Lane;
    struct Tag;
    struct Typed;
    struct Orders2Lanes;
    trait Send {}
    trait Sync {}
    trait Iterator {}
    trait Default {}
    trait Debug {}
    trait Clone {}
    trait From {}
    trait Splitter {}
    trait Outlet {}
    trait Drop {}
    fn drop() {}
    macro_rules! vec {
        () => {
            compile_error!("mine")
        };
    }
    macro_rules! panic {
        () => {
            compile_error!("mine")
        };
    }
    macro_rules! write {
        () => {
            compile_error!("mine")
        };
    }
    macro_rules! matches {
        () => {
            compile_error!("mine")
        };
    }
    macro_rules! unreachable {
        () => {
            compile_error!("mine")
        };
    }
    macro_rules! assert {
        () => {
            compile_error!("mine")
        };
    }
    macro_rules! impl_tag_serde {
        ($t:ident) => {
            compile_error!("mine")
        };
    }

    /// Methods that every type has here, in the way of those that are called.
    trait Everything: Sized {
        fn push(&mut self) {}
        fn take(&mut self) {}
        fn stream(&self) {}
        fn lane(&mut self) {}
        fn boxed(self) {}
        fn attach(&mut self) {}
        fn run(self) {}
        fn name(self) {}
        fn tag(&self) {}
        fn field(&mut self) {}
        fn finish(&mut self) {}
        fn ledger_handle(&self) {}
        fn pad(&mut self) {}
    }
    impl<T> Everything for T {}

    #[splitter]
    enum Orders {
        #[main]
        Valid(Vec),
        #[tap]
        Invalid(Option),
        Some {
            result: Result<String>,
        },
        Option(Box),
        Many(Arc, Lane, Tag, Typed, Orders2Lanes),
    }

    #[splitter(Orders)]
    fn split(n: u8) -> Orders {
        match n {
            0 => Orders::Valid(Vec),
            1 => Orders::Option(Box),
            _ => Orders::Many(Arc, Lane, Tag, Typed, Orders2Lanes),
        }
    }

    #[test]
    fn macro_15_std_names_are_shadowed() {
        ::std::assert_eq!(split(0).tag(), OrdersTag::Valid);
        ::std::assert_eq!(split(1).tag(), OrdersTag::Option);
        let OrdersSome { result } = OrdersSome { result: (String,) };
        let _: (String,) = result;
    }
}

/// MACRO-17: nothing is imported, not even the prelude.
///
/// The enum itself stands in a module that has a prelude: without it the compiler does not know
/// `#[diagnostic]`, which the generated code needs for its messages. That is documented, and
/// `tests/ui/declare/no_implicit_prelude.rs` shows the error.
mod macro_17 {
    mod outputs {
        use super::super::so::splitter;

        #[splitter]
        #[derive(Debug, PartialEq)]
        pub(super) enum Orders {
            #[main]
            Valid(u8),
            #[tap]
            Invalid(u8),
        }
    }

    mod without {
        #![no_implicit_prelude]
        use super::outputs::{Orders, OrdersTag};

        #[::side_output::splitter(Orders)]
        fn split(n: u8) -> ::core::option::Option<Orders> {
            if n == 0 {
                return ::core::option::Option::None;
            }
            ::core::option::Option::Some(Orders::Valid(n))
        }

        #[::core::prelude::v1::test]
        fn macro_17_without_a_prelude() {
            use ::side_output::SplitExt;
            let streams = SplitExt::split_with(::futures::stream::iter([0, 1]), split);
            let wiring = streams.wire().valid(::side_output::discard());
            let run = wiring.invalid(::side_output::discard()).run();
            ::std::assert!(::futures::executor::block_on(run).unwrap().is_balanced());
            ::std::assert_eq!(OrdersTag::Valid.route(1), Orders::Valid(1));
        }
    }
}

mod fault_43 {
    #![allow(non_camel_case_types, reason = "names are what the case is about")]

    use super::so::prelude::*;

    // Called like primitive types.
    #[derive(Debug)]
    struct str;
    #[derive(Debug)]
    struct usize;
    #[derive(Debug)]
    struct bool;

    #[splitter]
    #[derive(Debug)]
    enum R {
        #[output(capacity = 2)]
        A(str),
        B {
            b: bool,
        },
        #[tap]
        C(usize),
    }

    #[splitter(R)]
    fn split(n: u8, cx: &mut Context<R>) -> R {
        cx.output(R::C_TAG, usize);
        if n == 0 { R::A(str) } else { R::B { b: bool } }
    }

    #[test]
    fn fault_43_types_called_like_primitive_ones() {
        let mut cx = Context::new();
        assert!(matches!(split(0, &mut cx), R::A(str)));
        assert!(matches!(split(1, &mut cx), R::B { b: bool }));
        assert_eq!(cx.taps().count(), 2);
        assert_eq!(R::OUTPUTS[0].capacity.get(), 2);
        assert_eq!("b".parse::<RTag>().unwrap().name(), "b");
    }
}
