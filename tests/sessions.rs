//! Sessions have an engine of their own; any trigger takes windows out of it. Whatever comes, the
//! general one says the same with a trigger that does what sessions do.

mod common;

use common::OneByOne;
use proptest::prelude::*;
use side_output::operator::{Turn, Windows};
use side_output::output::Account;
use side_output::prelude::*;
use side_output::window::Merged;
use side_output::{
    Assigner, Collect, EventTime, Late, Mark, MergingTrigger, RouteLate, Window, WindowContext,
    WindowProcess,
};
use std::time::Duration;

/// Key, number of the record.
type Record = (u8, usize);

#[splitter]
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    /// Key, window, the records, and what is kept beside them.
    Fired(u8, Window, Vec<usize>, Vec<usize>, Pane),
    Late(usize, Vec<Window>),
    #[tap]
    Watermark(Timestamp),
}

/// Says all that a function of windows can know.
struct Say;

impl WindowProcess for Say {
    type Key = u8;
    type In = Record;
    type State = Vec<usize>;
    type KeyState = usize;
    type Out = Said;

    fn process(
        &mut self,
        key: &u8,
        records: &[Record],
        cx: &mut WindowContext<'_, Self>,
    ) -> impl Routes<Said> {
        cx.output(Said::WATERMARK_TAG, cx.watermark());
        let firings = cx.key_state().get_or_insert_default();
        *firings += 1;
        let firings = *firings;
        cx.state().push(firings);
        let numbers = records.iter().map(|record| record.1).collect();
        let fired = Said::Fired(*key, cx.window(), numbers, cx.state().clone(), cx.pane());
        // More than one route for a firing, of which `room` knows nothing before.
        if firings % 3 == 0 { vec![fired.clone(), fired] } else { vec![fired] }
    }

    fn merge(&mut self, state: &mut Vec<usize>, mut other: Vec<usize>) {
        state.append(&mut other);
    }
}

impl RouteLate for Say {
    fn on_late(&mut self, late: Late<Record>) -> impl Routes<Said> {
        Said::Late(late.value.1, late.windows.to_vec())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Said(Said, Timestamp),
    Mark(Mark),
    /// What a step came to, and how many windows were kept after it.
    Step(bool, Account, usize),
}

#[derive(Default)]
struct Events {
    events: Vec<Event>,
}

impl Collect<Said> for Events {
    fn emit(&mut self, route: Said, at: Timestamp) {
        self.events.push(Event::Said(route, at));
    }

    fn mark(&mut self, mark: Mark) {
        self.events.push(Event::Mark(mark));
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Record(u8, i64),
    /// With so much room in each turn.
    Watermark(i64, usize),
}

/// Sessions whose gap depends on the time, so that one record can bridge many; some records are in
/// two, and some in none.
#[derive(Clone, Copy, Debug)]
struct Uneven {
    gap: i64,
    wild: bool,
}

impl Assigner for Uneven {
    type Windows = std::vec::IntoIter<Window>;
    type Trigger = EventTime;
    type Merging = Merged;

    fn assign(&self, at: Timestamp) -> Self::Windows {
        let from =
            |at: Timestamp, length: i64| Window::through(at, at.saturating_add_millis(length - 1));
        let window = from(at, self.gap);
        let windows = match at.as_millis().rem_euclid(11) {
            _ if !self.wild => vec![window],
            0 => vec![],
            1 => vec![from(at, 5 * self.gap)],
            2 => vec![from(at.saturating_add_millis(50), self.gap), window],
            _ => vec![window],
        };
        windows.into_iter()
    }
}

fn run<Tr: MergingTrigger<Record>>(
    windows: Windows<Uneven, Tr>,
    lateness: u64,
    finals: bool,
    steps: &[Step],
) -> Vec<Event> {
    let windows = windows.allowed_lateness(Duration::from_millis(lateness)).side_output_late_data();
    let windows = if finals { windows.with_final_panes() } else { windows };
    let mut operator = windows.process(|record: &Record| record.0, Say);
    let (mut out, mut account) = (Events::default(), Account::new());
    let end = [Step::Watermark(i64::MAX, 1)];
    for (number, step) in steps.iter().chain(&end).enumerate() {
        match *step {
            Step::Record(key, time) => {
                let at = Timestamp::from_millis(time);
                let mut turn = Turn::new(&mut out, &mut account, 1);
                turn.record(&mut operator, (key, number), at).unwrap();
                drop(turn);
                out.events.push(Event::Step(true, account, operator.windows_kept()));
            }
            Step::Watermark(watermark, room) => {
                let mark = Mark::Watermark(Timestamp::from_millis(watermark));
                loop {
                    let mut turn = Turn::new(&mut out, &mut account, room);
                    let done = turn.mark(&mut operator, mark).unwrap();
                    drop(turn);
                    out.events.push(Event::Step(done, account, operator.windows_kept()));
                    if done {
                        break;
                    }
                }
            }
        }
    }
    assert_eq!(operator.windows_kept(), 0);
    out.events
}

fn near(time: i64) -> impl Strategy<Value = i64> {
    (-80..80i64).prop_map(move |by| time.saturating_add(by))
}

/// Times around one place: the epoch, one of the ends of time, or anywhere.
fn around() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![4 => Just(0i64), 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => any::<i64>()]
        .prop_flat_map(|place| {
            let step = prop_oneof![
                5 => (0..3u8, near(place)).prop_map(|(key, time)| Step::Record(key, time)),
                1 => (near(place), 1..4usize)
                    .prop_map(|(time, room)| Step::Watermark(time, room)),
            ];
            prop::collection::vec(step, 0..100)
        })
}

/// Time that goes on, with records around it and a watermark behind it.
fn going_on() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..4u8, 0..8i64, -60..10i64, prop::bool::weighted(0.2), 1..4usize);
    (1..400i64, prop::collection::vec(step, 0..200)).prop_map(|(pace, steps)| {
        let mut now = 0;
        let step = |(key, by, off, is_mark, room)| {
            now += by * pace / 20;
            if is_mark { Step::Watermark(now - 20, room) } else { Step::Record(key, now + off) }
        };
        steps.into_iter().map(step).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn both_engines_say_the_same(
        steps in prop_oneof![around(), going_on()], gap in 1..40i64, wild in any::<bool>(),
        lateness in prop_oneof![Just(0u64), 0..60u64, Just(u64::MAX)], finals in any::<bool>(),
    ) {
        let assigner = Uneven { gap, wild };
        let general = run(Windows::new(assigner).trigger(OneByOne), lateness, finals, &steps);
        let events = run(Windows::new(assigner), lateness, finals, &steps);
        prop_assert_eq!(events, general);
    }
}

/// Each round leaves dead timers, in the end more than are kept.
#[test]
fn sessions_that_fire_again_and_again() {
    let assigner = Uneven { gap: 10, wild: false };
    let round = |round: i64| {
        let records = (0..3).map(move |key| Step::Record(key, 10 * round));
        records.chain([Step::Watermark(10 * round + 9, 100)])
    };
    let steps: Vec<_> = (0..1500).flat_map(round).collect();
    let general = run(Windows::new(assigner).trigger(OneByOne), 1_000_000, true, &steps);
    assert_eq!(run(Windows::new(assigner), 1_000_000, true, &steps), general);
}
