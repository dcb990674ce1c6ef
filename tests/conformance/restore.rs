//! Saves the state in the middle of a script, builds new operators from it, and goes on: nothing of
//! that may be seen in a trace.

use crate::kinds::{Bare, Kind, Traces};
use crate::model::{Item, Scenario};
use crate::run::compare;
use serde_json::Value;
use side_output::Element;
use side_output::state::{KEY_GROUPS, SavedState, StateChanges};
use std::collections::BTreeMap;

type Script = [(usize, Element<Value>)];

pub fn check(
    scenario: &Scenario,
    graph: &dyn Kind,
    script: &Script,
    outputs: &[String],
) -> Result<(), String> {
    at_every_position(scenario, graph, script, outputs)?;
    for stride in [1, 3] {
        again_and_again(scenario, graph, script, outputs, stride)?;
    }
    if graph.group(0, &Value::Null).is_some() {
        for (from, to) in [(2, 3), (2, 1), (1, 2)] {
            among_partitions(graph, script, outputs, from, to)?;
        }
    }
    Ok(())
}

/// The states of the operators of a graph.
type States = Vec<SavedState>;

/// Saves everything, or what has changed, in addition to `saved`.
fn save(bare: &mut dyn Bare, full: bool, saved: &mut States) -> Result<(), String> {
    let states = bare.states();
    saved.resize_with(states.len(), SavedState::new);
    for (state, saved) in states.into_iter().zip(saved) {
        let mut changes = StateChanges::new(full);
        state.save(&mut changes).map_err(|error| error.to_string())?;
        saved.apply(&changes);
    }
    Ok(())
}

fn load(graph: &dyn Kind, saved: &[SavedState]) -> Result<Box<dyn Bare>, String> {
    let mut bare = graph.bare();
    for (state, saved) in bare.states().into_iter().zip(saved) {
        state.load(saved).map_err(|error| error.to_string())?;
    }
    Ok(bare)
}

fn feed(bare: &mut dyn Bare, script: &Script, traces: &mut Traces) -> Result<(), String> {
    script.iter().try_for_each(|(input, element)| bare.feed(*input, element.clone(), traces))
}

/// One crash, at each position; and each time what is saved again is the same.
fn at_every_position(
    scenario: &Scenario,
    graph: &dyn Kind,
    script: &Script,
    outputs: &[String],
) -> Result<(), String> {
    let mut bare = graph.bare();
    let mut traces = Traces::new(outputs);
    for position in 0..=script.len() {
        let how = format!("restored at {position}");
        let (before, after) = script.split_at(position);
        if let Some(last) = before.last() {
            feed(&mut *bare, std::slice::from_ref(last), &mut traces)?;
        }
        let mut saved = States::new();
        save(&mut *bare, true, &mut saved)?;
        let mut restored = load(graph, &saved).map_err(|error| format!("{how}: {error}"))?;
        let mut again = States::new();
        save(&mut *restored, true, &mut again)?;
        if again != saved {
            return Err(format!("{how}: saved again, {again:#?} is not {saved:#?}"));
        }
        let mut traces = traces.clone();
        feed(&mut *restored, after, &mut traces)?;
        compare(scenario, traces.into_map(), &how)?;
    }
    Ok(())
}

/// A save of the changes after each `stride` elements, each compared with a full one; and the same
/// with a crash after each.
fn again_and_again(
    scenario: &Scenario,
    graph: &dyn Kind,
    script: &Script,
    outputs: &[String],
    stride: usize,
) -> Result<(), String> {
    let (mut one, mut other, mut crashing) = (graph.bare(), graph.bare(), graph.bare());
    let (mut ignored, mut traces) = (Traces::new(&[]), Traces::new(outputs));
    let (mut saved, mut before_crash) = (States::new(), States::new());
    for (index, part) in script.chunks(stride).enumerate() {
        let how = format!("saved {} times, each {stride} elements", index + 1);
        feed(&mut *one, part, &mut ignored)?;
        feed(&mut *other, part, &mut ignored)?;
        save(&mut *one, index == 0, &mut saved)?;
        let mut full = States::new();
        save(&mut *other, true, &mut full)?;
        if saved != full {
            return Err(format!("{how}: with its changes, {saved:#?} is not {full:#?}"));
        }
        feed(&mut *crashing, part, &mut traces)?;
        save(&mut *crashing, index == 0, &mut before_crash)?;
        crashing = load(graph, &before_crash).map_err(|error| format!("{how}: {error}"))?;
    }
    compare(scenario, traces.into_map(), &format!("restored after each {stride} elements"))
}

/// What one element causes on an output, by key; the order between keys is that of partitions.
type Step = BTreeMap<String, Vec<Item>>;

/// Several partitions by key, each with the key groups that it has.
struct Partitions(Vec<Box<dyn Bare>>);

impl Partitions {
    fn of(group: u8, count: usize) -> usize {
        usize::from(group) * count / usize::from(KEY_GROUPS)
    }

    fn feed(
        &mut self,
        graph: &dyn Kind,
        (input, element): &(usize, Element<Value>),
        outputs: &[String],
    ) -> Result<BTreeMap<String, Step>, String> {
        let count = self.0.len();
        let mut steps: BTreeMap<String, Step> = BTreeMap::new();
        for (number, bare) in self.0.iter_mut().enumerate() {
            let mut traces = Traces::new(outputs);
            let is_mine = match element {
                Element::Record { value, .. } => {
                    graph.group(*input, value).is_some_and(|group| Self::of(group, count) == number)
                }
                Element::Mark(_) => true,
            };
            if !is_mine {
                continue;
            }
            bare.feed(*input, element.clone(), &mut traces)?;
            for (output, items) in traces.into_map() {
                let step = steps.entry(output).or_default();
                let mut marks = Vec::new();
                for item in items {
                    match &item {
                        Item::Record { record, .. } => {
                            step.entry(graph.key_of_output(record)).or_default().push(item);
                        }
                        Item::Mark(_) => marks.push(item),
                    }
                }
                // Each partition forwards the same.
                let known = step.entry("marks".into()).or_insert_with(|| marks.clone());
                if *known != marks {
                    return Err(format!("marks of partitions differ: {known:?} and {marks:?}"));
                }
            }
        }
        // Records that do not tell their key.
        for unknown in steps.values_mut().filter_map(|step| step.get_mut("")) {
            unknown.sort_by_key(|item| format!("{item:?}"));
        }
        Ok(steps)
    }
}

/// Saved by `from` partitions at each position, and loaded by `to`.
fn among_partitions(
    graph: &dyn Kind,
    script: &Script,
    outputs: &[String],
    from: usize,
    to: usize,
) -> Result<(), String> {
    let mut alone = Partitions(vec![graph.bare()]);
    let mut expected = Vec::new();
    for element in script {
        expected.push(alone.feed(graph, element, outputs)?);
    }
    let mut running = Partitions((0..from).map(|_| graph.bare()).collect());
    for position in 0..=script.len() {
        let how = format!("{from} partitions restored as {to} at {position}");
        if let Some(last) = position.checked_sub(1) {
            running.feed(graph, &script[last], outputs)?;
        }
        let mut all = States::new();
        for bare in &mut running.0 {
            let mut saved = States::new();
            save(&mut **bare, true, &mut saved)?;
            all.resize_with(saved.len(), SavedState::new);
            for (all, saved) in all.iter_mut().zip(&saved) {
                for (name, value) in saved.values() {
                    all.insert_value(name, value.to_owned());
                }
                for entry in saved.entries() {
                    let value = entry.value.expect("an entry that is there").to_owned();
                    all.insert_entry(entry.table, entry.group, entry.key.to_owned(), value);
                }
            }
        }
        let partition = |number| {
            let mine = |group| Partitions::of(group, to) == number;
            let saved: States = all.iter().map(|saved| saved.of_groups(mine)).collect();
            load(graph, &saved).map_err(|error| format!("{how}: {error}"))
        };
        let mut restored = Partitions((0..to).map(partition).collect::<Result<_, _>>()?);
        for (element, expected) in script.iter().zip(&expected).skip(position) {
            let actual = restored.feed(graph, element, outputs)?;
            let records = |steps: &BTreeMap<String, Step>| -> BTreeMap<String, Step> {
                let filled = |step: &Step| {
                    let step = step.iter().filter(|(_, items)| !items.is_empty());
                    step.map(|(key, items)| (key.clone(), items.clone())).collect::<Step>()
                };
                steps.iter().map(|(output, step)| (output.clone(), filled(step))).collect()
            };
            let (expected, actual) = (records(expected), records(&actual));
            if expected != actual {
                return Err(format!(
                    "{how}, at {element:?}:\n  expected {expected:?}\n  actual   {actual:?}"
                ));
            }
        }
    }
    Ok(())
}
