//! Does the number of outputs matter? One record in ten leaves through another output than main.

use super::records::{Consumer as _, Counting};
use crate::common::{Table, splitmix};
use futures::executor::block_on;
use futures::future::{FutureExt as _, LocalBoxFuture, join_all};
use futures::{StreamExt as _, stream};
use side_output::prelude::*;
use std::sync::OnceLock;

const TABLE_LEN: usize = 1 << 16;

/// Random numbers, and which of `outputs` each goes to.
fn numbers(len: usize, outputs: usize) -> impl Iterator<Item = (usize, i64)> {
    static TABLE: OnceLock<Vec<u64>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut state = 3;
        (0..TABLE_LEN).map(|_| splitmix(&mut state)).collect()
    });
    let places: Vec<_> = table
        .iter()
        .map(|random| match random % 100 {
            0..90 => (0, *random as i64),
            _ => (1 + (random >> 32) as usize % (outputs - 1), *random as i64),
        })
        .collect();
    (0..len).map(move |index| places[index & (TABLE_LEN - 1)])
}

/// Records and sum over all outputs.
type Out = (u64, i64);

fn total(counts: impl IntoIterator<Item = Counting>) -> Out {
    let results = counts.into_iter().map(|count| count.result());
    results.fold((0, 0), |all, one| (all.0 + one.0, all.1.wrapping_add(one.1)))
}

macro_rules! outputs {
    ($module:ident $len:literal: $($variant:ident $field:ident,)+) => {
        mod $module {
            use super::*;

            #[splitter]
            enum Many {
                $($variant(i64),)+
            }

            #[inline]
            fn route((place, value): (usize, i64)) -> Many {
                const PLACES: [fn(i64) -> Many; $len] = [$(Many::$variant),+];
                PLACES[place](value)
            }

            pub(super) async fn hand_loop(n: usize) -> Out {
                $(let mut $field = Counting::default();)+
                let mut numbers = stream::iter(numbers(n, $len));
                while let Some(number) = numbers.next().await {
                    match route(number) {
                        $(Many::$variant(value) => $field.eat(value),)+
                    }
                }
                total([$($field),+])
            }

            pub(super) async fn wired(n: usize) -> Out {
                $(let mut $field = Counting::default();)+
                stream::iter(numbers(n, $len))
                    .split_with(route)
                    .wire()
                    $(.$field(each(|value| $field.eat(value))))+
                    .run()
                    .await
                    .expect("the input cannot fail");
                total([$($field),+])
            }

            pub(super) async fn for_each(n: usize) -> Out {
                let ManyStreams { $($field),+ } =
                    stream::iter(numbers(n, $len)).split_with(route);
                let readers: Vec<LocalBoxFuture<'_, _>> =
                    vec![$($field.fold(Counting::default(), Counting::eat).boxed_local()),+];
                let counts = join_all(readers).await;
                total(counts.into_iter().map(|count| count.expect("the input cannot fail")))
            }
        }
    };
}

outputs! { two 2:
    O0 o0, O1 o1,
}

outputs! { eight 8:
    O0 o0, O1 o1, O2 o2, O3 o3, O4 o4, O5 o5, O6 o6, O7 o7,
}

outputs! { sixty_four 64:
    O0 o0, O1 o1, O2 o2, O3 o3, O4 o4, O5 o5, O6 o6, O7 o7,
    O8 o8, O9 o9, O10 o10, O11 o11, O12 o12, O13 o13, O14 o14, O15 o15,
    O16 o16, O17 o17, O18 o18, O19 o19, O20 o20, O21 o21, O22 o22, O23 o23,
    O24 o24, O25 o25, O26 o26, O27 o27, O28 o28, O29 o29, O30 o30, O31 o31,
    O32 o32, O33 o33, O34 o34, O35 o35, O36 o36, O37 o37, O38 o38, O39 o39,
    O40 o40, O41 o41, O42 o42, O43 o43, O44 o44, O45 o45, O46 o46, O47 o47,
    O48 o48, O49 o49, O50 o50, O51 o51, O52 o52, O53 o53, O54 o54, O55 o55,
    O56 o56, O57 o57, O58 o58, O59 o59, O60 o60, O61 o61, O62 o62, O63 o63,
}

pub(crate) fn table() -> Table<Out> {
    let mut table = Table::new("outputs", "2, 8 and 64 outputs");
    table.run("2 outputs, wired", |n| block_on(two::wired(n)));
    table.run("8 outputs, wired", |n| block_on(eight::wired(n)));
    table.run("64 outputs, wired", |n| block_on(sixty_four::wired(n)));
    table.run("2 outputs, for_each", |n| block_on(two::for_each(n)));
    table.run("8 outputs, for_each", |n| block_on(eight::for_each(n)));
    table.run("64 outputs, for_each", |n| block_on(sixty_four::for_each(n)));
    table.run("2 outputs, hand loop", |n| block_on(two::hand_loop(n)));
    table.run("8 outputs, hand loop", |n| block_on(eight::hand_loop(n)));
    table.run("64 outputs, hand loop", |n| block_on(sixty_four::hand_loop(n)));
    table
}
