//! The scripted input: as elements, and as streams that deliver them in the order of the script.

use crate::model::{Input, Scenario};
use futures::Stream;
use serde_json::Value;
use side_output::{DataStream, Element, Mark};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

/// The elements of a script, each with the number of its input, counted from zero.
pub fn elements(scenario: &Scenario) -> Vec<(usize, Element<Value>)> {
    let mut idle = vec![false; inputs(scenario)];
    let mut elements = Vec::new();
    for element in &scenario.input {
        let input = element.number.map_or(0, |input| input - 1);
        if std::mem::replace(&mut idle[input], element.idle) {
            elements.push((input, Element::Mark(Mark::Active)));
        }
        elements.push((input, element.element()));
    }
    elements
}

/// How many inputs there are.
pub fn inputs(scenario: &Scenario) -> usize {
    scenario.input.iter().filter_map(|element| element.number).max().unwrap_or(1)
}

impl Input {
    fn element(&self) -> Element<Value> {
        match (&self.record, self.watermark) {
            (Some(record), _) => Element::Record { value: record.clone(), at: self.ts.known() },
            (None, Some(watermark)) => Element::watermark(watermark),
            (None, None) => Element::Mark(Mark::Idle),
        }
    }
}

/// A script that is let through piece by piece.
#[derive(Clone)]
pub struct Gate(Arc<Mutex<Script>>);

struct Script {
    elements: VecDeque<(usize, Element<Value>)>,
    open: usize,
}

impl Gate {
    pub fn new(elements: Vec<(usize, Element<Value>)>) -> Self {
        Self(Arc::new(Mutex::new(Script { elements: elements.into(), open: 0 })))
    }

    /// Lets up to `count` more elements through.
    pub fn open(&self, count: usize) {
        self.0.lock().unwrap().open = count;
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().unwrap().elements.is_empty()
    }

    /// The stream of one input.
    pub fn stream(&self, input: usize) -> DataStream<Value> {
        DataStream::from_elements(GateStream { gate: self.clone(), input })
    }
}

struct GateStream {
    gate: Gate,
    input: usize,
}

impl Stream for GateStream {
    type Item = Element<Value>;

    fn poll_next(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // Everything is polled again after each opening of the gate, so no waker is kept.
        let mut script = self.gate.0.lock().unwrap();
        if !script.elements.iter().any(|(input, _)| *input == self.input) {
            return Poll::Ready(None);
        }
        let mine = script.elements.front().is_some_and(|(input, _)| *input == self.input);
        if !mine || script.open == 0 {
            return Poll::Pending;
        }
        script.open -= 1;
        Poll::Ready(script.elements.pop_front().map(|(_, element)| element))
    }
}
