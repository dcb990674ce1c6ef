//! `window` and `window_all`.

use super::{Bare, Collected, Kind, Saved, Traces, feed};
#[cfg(feature = "job")]
use super::{group_of, key_in};
use crate::fan::{Fan, SIDES};
use crate::model::{self, time_value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use side_output::operator::{Operator, Windowed, Windows};
use side_output::output::Single;
#[cfg(feature = "job")]
use side_output::state::Snapshot;
use side_output::stream::Source;
use side_output::window::TriggerOf;
use side_output::{
    Aggregate, Assigner, ContinuousEventTime, DataStream, Element, EventTime, EveryCount, Global,
    Late, MergingTrigger, Purging, RouteLate, Routes, Session, Sliding, Timestamp, Trigger,
    TriggerContext, Tumbling, Verdict, Window, WindowContext, WindowProcess, WindowResult,
    WindowStreams,
};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    key: Option<String>,
    assigner: AnyAssigner,
    trigger: Option<AnyTrigger>,
    evictor: Option<AnyEvictor>,
    #[serde(default, deserialize_with = "model::time")]
    allowed_lateness_ms: Timestamp,
    late_tag: Option<String>,
    function: Function,
    #[serde(skip)]
    outputs: Vec<String>,
}

#[derive(Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum AnyAssigner {
    Tumbling {
        size_ms: u64,
        #[serde(default)]
        offset_ms: i64,
    },
    Sliding {
        size_ms: u64,
        slide_ms: u64,
        #[serde(default)]
        offset_ms: i64,
    },
    Session {
        gap_ms: u64,
    },
    Global,
}

#[derive(Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum AnyTrigger {
    EventTime,
    Count { n: u64 },
    ContinuousEventTime { interval_ms: u64 },
    Purging { inner: Box<AnyTrigger> },
}

#[derive(Clone, Copy, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum AnyEvictor {
    Count { n: usize },
}

#[derive(Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Function {
    Collect {
        field: String,
        #[serde(default)]
        sort: bool,
        #[serde(default)]
        with_watermark: bool,
        count_firings: Option<Firings>,
        side: Option<Side>,
    },
    Sum {
        field: String,
        #[serde(default)]
        with_watermark: bool,
        count_firings: Option<Firings>,
        side: Option<Side>,
    },
    Count {
        #[serde(default)]
        with_watermark: bool,
        count_firings: Option<Firings>,
        side: Option<Side>,
    },
    ReduceSum,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Firings {
    Window,
    Global,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Side {
    tag: String,
    min: i64,
}

/// The output of what nobody reads.
const UNREAD: usize = SIDES;

pub fn parse(operator: &Map<String, Value>, outputs: Vec<String>) -> Result<Box<dyn Kind>, String> {
    if operator.contains_key("key") != (operator["kind"] == "window") {
        return Err("`window` has a key, `window_all` has none".into());
    }
    if outputs.len() > UNREAD {
        return Err("too many side outputs".into());
    }
    let mut fields = operator.clone();
    fields.entry("allowed_lateness_ms").or_insert(json!(0));
    let mut description: Description = model::operator(&fields)?;
    description.outputs = outputs;
    Ok(Box::new(description))
}

impl Kind for Description {
    fn bare(&self) -> Box<dyn Bare> {
        self.build(BuildBare)
    }

    fn streams(&self, mut inputs: Vec<DataStream<Value>>) -> BTreeMap<String, DataStream<Value>> {
        let mut streams = self.build(BuildStreams(inputs.remove(0)));
        let names = self.outputs.iter().cloned();
        let read = names.zip(streams.drain(..self.outputs.len())).collect();
        streams.into_iter().for_each(DataStream::discard);
        read
    }

    #[cfg(feature = "job")]
    fn group(&self, _input: usize, record: &Value) -> Option<u8> {
        self.key.as_ref().map(|field| group_of(&record[field]))
    }

    #[cfg(feature = "job")]
    fn key_of_output(&self, record: &Value) -> String {
        key_in(record, &["key", self.key.as_deref().unwrap_or("key")])
    }
}

/// What is built of a description, once the types of assigner and trigger are known.
trait Build {
    type Built;

    fn build<A, Tr>(self, description: &Description, assigner: A, trigger: Tr) -> Self::Built
    where
        A: Assigner + Send + 'static,
        Tr: TriggerOf<Value, A::Merging, State: TriggerState> + Send + 'static;
}

/// What a trigger remembers, and can be sent and saved.
trait TriggerState: Send + Serialize + DeserializeOwned {}
impl<TS: Send + Serialize + DeserializeOwned> TriggerState for TS {}

impl Description {
    fn build<B: Build>(&self, build: B) -> B::Built {
        let millis = Duration::from_millis;
        match self.assigner {
            AnyAssigner::Tumbling { size_ms, offset_ms } => {
                let tumbling = Tumbling::of(millis(size_ms)).offset_millis(offset_ms);
                self.with_assigner(tumbling, build)
            }
            AnyAssigner::Sliding { size_ms, slide_ms, offset_ms } => {
                let sliding = Sliding::of(millis(size_ms)).every(millis(slide_ms));
                self.with_assigner(sliding.offset_millis(offset_ms), build)
            }
            AnyAssigner::Session { gap_ms } => {
                self.with_assigner(Session::with_gap(millis(gap_ms)), build)
            }
            AnyAssigner::Global => self.with_assigner(Global, build),
        }
    }

    fn with_assigner<A, B: Build>(&self, assigner: A, build: B) -> B::Built
    where
        A: Assigner + Send + 'static,
        A::Trigger: TriggerOf<Value, A::Merging, State: TriggerState> + Send + 'static,
        AnyTrigger: TriggerOf<Value, A::Merging>,
    {
        match self.trigger.clone() {
            None => build.build(self, assigner, A::Trigger::default()),
            Some(trigger) => build.build(self, assigner, trigger),
        }
    }

    /// How many records a window keeps.
    fn keep(&self) -> usize {
        self.evictor.map_or(usize::MAX, |AnyEvictor::Count { n }| n)
    }

    fn lateness(&self) -> Duration {
        Duration::from_millis(self.allowed_lateness_ms.as_millis().unsigned_abs())
    }

    /// Whether the function has neither state nor outputs of its own nor a look at the watermark,
    /// and needs no more than what `aggregate`, `reduce` or `apply` give.
    fn is_plain(&self) -> bool {
        let late_only = |name: &String| self.late_tag.as_ref() == Some(name);
        if !self.outputs.iter().skip(1).all(late_only) {
            return false;
        }
        match &self.function {
            Function::ReduceSum | Function::Sum { .. } if self.evictor.is_some() => false,
            Function::ReduceSum => true,
            Function::Collect { with_watermark, count_firings, side, .. }
            | Function::Sum { with_watermark, count_firings, side, .. }
            | Function::Count { with_watermark, count_firings, side } => {
                !with_watermark && count_firings.is_none() && side.is_none()
            }
        }
    }

    fn key(&self) -> impl FnMut(&Value) -> Value + Send + 'static {
        let field = self.key.clone();
        move |record| field.as_ref().map_or(Value::Null, |field| record[field].clone())
    }

    /// Where late records go.
    fn late_output(&self) -> usize {
        let tag = self.late_tag.as_ref();
        tag.and_then(|tag| self.outputs.iter().position(|name| name == tag)).unwrap_or(UNREAD)
    }

    /// The beginning of a result.
    fn result(&self) -> impl Fn(&Value, Window) -> Map<String, Value> + Send + 'static {
        let (keyed, global) = (self.key.is_some(), matches!(self.assigner, AnyAssigner::Global));
        move |key, window| {
            let mut result = Map::new();
            if keyed {
                result.insert("key".into(), key.clone());
            }
            if !global {
                result.insert("start".into(), time_value(window.start()));
                result.insert("end".into(), time_value(window.end()));
            }
            result
        }
    }

    fn sum(&self) -> impl FnMut(WindowResult<Value, i64>) -> Value + Send + 'static {
        let begin = self.result();
        move |WindowResult { key, window, value, .. }| {
            let mut result = begin(&key, window);
            result.insert("sum".into(), json!(value));
            Value::Object(result)
        }
    }

    fn collect(&self) -> impl FnMut(&Value, Window, &[Value]) -> Value + Send + 'static {
        let begin = self.result();
        let function = self.function.clone();
        move |key, window, records| {
            let mut result = begin(key, window);
            function.value(records, &mut result);
            Value::Object(result)
        }
    }

    fn process(&self) -> Process {
        Process {
            function: self.function.clone(),
            begin: Box::new(self.result()),
            outputs: self.outputs.clone(),
            late: self.late_output(),
        }
    }
}

impl Function {
    /// Adds what the function says of the records; gives their number or sum.
    fn value(&self, records: &[Value], result: &mut Map<String, Value>) -> i64 {
        let count = i64::try_from(records.len()).expect("few records");
        match self {
            Self::Collect { field, sort, .. } => {
                let mut values: Vec<Value> =
                    records.iter().map(|record| record[field].clone()).collect();
                if *sort {
                    values.sort_by_key(|value| value.as_str().map(str::to_owned));
                }
                result.insert("values".into(), values.into());
                count
            }
            Self::Sum { field, .. } => {
                let sum = records.iter().filter_map(|record| record[field].as_i64()).sum();
                result.insert("sum".into(), json!(sum));
                sum
            }
            Self::Count { .. } => {
                result.insert("count".into(), json!(count));
                count
            }
            Self::ReduceSum => unreachable!("a reduce has no function"),
        }
    }
}

/// Adds the field `v`.
fn add_v(sum: &mut Value, next: Value) {
    sum["v"] = json!(sum["v"].as_i64().unwrap_or(0) + next["v"].as_i64().unwrap_or(0));
}

struct Sum {
    field: String,
}

impl Aggregate for Sum {
    type In = Value;
    type Accumulator = i64;
    type Output = i64;

    fn create(&mut self) -> i64 {
        0
    }

    fn add(&mut self, sum: &mut i64, record: &Value) {
        *sum += record[&self.field].as_i64().unwrap_or(0);
    }

    fn merge(&mut self, sum: &mut i64, other: i64) {
        *sum += other;
    }

    fn result(&mut self, sum: &i64) -> i64 {
        *sum
    }
}

/// Begins a result.
type Begin = Box<dyn Fn(&Value, Window) -> Map<String, Value> + Send>;

/// A function with state and outputs.
struct Process {
    function: Function,
    begin: Begin,
    outputs: Vec<String>,
    late: usize,
}

impl WindowProcess for Process {
    type Key = Value;
    type In = Value;
    type State = u64;
    type KeyState = u64;
    type Out = Fan;

    fn process(
        &mut self,
        key: &Value,
        records: &[Value],
        cx: &mut WindowContext<'_, Self>,
    ) -> impl Routes<Fan> {
        let window = cx.window();
        if matches!(self.function, Function::ReduceSum) {
            let mut sum = records[0].clone();
            records[1..].iter().for_each(|record| add_v(&mut sum, record.clone()));
            return vec![Fan { output: 0, record: sum }];
        }
        let mut result = (self.begin)(key, window);
        let n = self.function.value(records, &mut result);
        let (Function::Collect { with_watermark, count_firings, side, .. }
        | Function::Sum { with_watermark, count_firings, side, .. }
        | Function::Count { with_watermark, count_firings, side }) = &self.function
        else {
            unreachable!("a reduce has no function")
        };
        if *with_watermark {
            result.insert("wm".into(), time_value(cx.watermark()));
        }
        if let Some(count) = count_firings {
            let firing = match count {
                Firings::Window => cx.state(),
                Firings::Global => cx.key_state().get_or_insert_default(),
            };
            *firing += 1;
            result.insert("firing".into(), json!(*firing));
        }
        let mut routes = vec![Fan { output: 0, record: Value::Object(result) }];
        if let Some(Side { tag, min }) = side
            && n >= *min
        {
            let mut record = (self.begin)(key, window);
            record.insert("n".into(), json!(n));
            let output = self.outputs.iter().position(|name| name == tag).unwrap_or(UNREAD);
            routes.push(Fan { output, record: Value::Object(record) });
        }
        routes
    }
}

impl RouteLate for Process {
    fn on_late(&mut self, late: Late<Value>) -> impl Routes<Fan> {
        Fan { output: self.late, record: late.value }
    }
}

/// Any trigger of a description.
impl Trigger<Value> for AnyTrigger {
    type State = (u64, Option<Timestamp>);

    fn on_record(
        &mut self,
        record: &Value,
        at: Timestamp,
        state: &mut Self::State,
        cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        match self {
            Self::EventTime => EventTime.on_record(record, at, &mut (), cx),
            Self::Count { n } => EveryCount::new(*n).on_record(record, at, &mut state.0, cx),
            Self::ContinuousEventTime { interval_ms } => {
                continuous(*interval_ms).on_record(record, at, &mut state.1, cx)
            }
            Self::Purging { inner } => Purging((**inner).clone()).on_record(record, at, state, cx),
        }
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        state: &mut Self::State,
        cx: &mut TriggerContext<'_>,
    ) -> Verdict {
        match self {
            Self::EventTime => Trigger::<Value>::on_timer(&mut EventTime, at, &mut (), cx),
            Self::Count { n } => {
                Trigger::<Value>::on_timer(&mut EveryCount::new(*n), at, &mut state.0, cx)
            }
            Self::ContinuousEventTime { interval_ms } => {
                Trigger::<Value>::on_timer(&mut continuous(*interval_ms), at, &mut state.1, cx)
            }
            Self::Purging { inner } => Purging((**inner).clone()).on_timer(at, state, cx),
        }
    }
}

impl MergingTrigger<Value> for AnyTrigger {
    fn on_merge(
        &mut self,
        state: &mut Self::State,
        other: Self::State,
        cx: &mut TriggerContext<'_>,
    ) {
        match self {
            Self::EventTime => MergingTrigger::<Value>::on_merge(&mut EventTime, &mut (), (), cx),
            Self::Count { n } => {
                let count = &mut EveryCount::new(*n);
                MergingTrigger::<Value>::on_merge(count, &mut state.0, other.0, cx);
            }
            Self::ContinuousEventTime { interval_ms } => {
                let trigger = &mut continuous(*interval_ms);
                MergingTrigger::<Value>::on_merge(trigger, &mut state.1, other.1, cx);
            }
            Self::Purging { inner } => {
                MergingTrigger::<Value>::on_merge(
                    &mut Purging((**inner).clone()),
                    state,
                    other,
                    cx,
                );
            }
        }
    }
}

fn continuous(interval_ms: u64) -> ContinuousEventTime {
    ContinuousEventTime::every(Duration::from_millis(interval_ms))
}

/// Builds streams: main, then the side outputs, then what nobody reads.
struct BuildStreams(DataStream<Value>);

impl Build for BuildStreams {
    type Built = Vec<DataStream<Value>>;

    fn build<A, Tr>(self, description: &Description, assigner: A, trigger: Tr) -> Self::Built
    where
        A: Assigner + Send + 'static,
        Tr: TriggerOf<Value, A::Merging, State: TriggerState> + Send + 'static,
    {
        let windows = self
            .0
            .key_by(description.key())
            .window(assigner)
            .trigger(trigger)
            .allowed_lateness(description.lateness());
        let late = description.late_tag.is_some();
        if !description.is_plain() {
            let function = description.process();
            return match (late, description.evictor) {
                (true, None) => windows.side_output_late_data().process(function).into_vec(),
                (false, None) => windows.drop_late_data().process(function).into_vec(),
                (true, Some(AnyEvictor::Count { n })) => {
                    windows.keep_last(n).side_output_late_data().process(function).into_vec()
                }
                (false, Some(AnyEvictor::Count { n })) => {
                    windows.keep_last(n).drop_late_data().process(function).into_vec()
                }
            };
        }
        let (results, late) = match &description.function {
            Function::ReduceSum if late => {
                let WindowStreams { results, late } = windows.side_output_late_data().reduce(add_v);
                (map(results, |result| result.value), Some(late.boxed()))
            }
            Function::ReduceSum => {
                let results = windows.drop_late_data().reduce(add_v);
                (map(results, |result| result.value), None)
            }
            Function::Sum { field, .. } => {
                let sum = Sum { field: field.clone() };
                if late {
                    let WindowStreams { results, late } =
                        windows.side_output_late_data().aggregate(sum);
                    (map(results, description.sum()), Some(late.boxed()))
                } else {
                    (map(windows.drop_late_data().aggregate(sum), description.sum()), None)
                }
            }
            _ => {
                let keep = description.keep();
                let windows = windows.keep_last(keep);
                let collect = description.collect();
                if late {
                    let WindowStreams { results, late } =
                        windows.side_output_late_data().apply(collect);
                    (map(results, |result| result.value), Some(late.boxed()))
                } else {
                    let results = windows.drop_late_data().apply(collect);
                    (map(results, |result| result.value), None)
                }
            }
        };
        let mut streams = vec![results];
        streams.extend(late.map(|late| map(late, |late| late.value)));
        streams
    }
}

fn map<T, Src>(
    stream: DataStream<T, Src>,
    mut function: impl FnMut(T) -> Value + Send + 'static,
) -> DataStream<Value>
where
    T: Send + 'static,
    Src: Source<T> + Send + 'static,
{
    stream.split_with(move |value: T| Single(function(value))).boxed()
}

/// Builds the bare operator.
struct BuildBare;

impl Build for BuildBare {
    type Built = Box<dyn Bare>;

    fn build<A, Tr>(self, description: &Description, assigner: A, trigger: Tr) -> Self::Built
    where
        A: Assigner + Send + 'static,
        Tr: TriggerOf<Value, A::Merging, State: TriggerState> + Send + 'static,
    {
        let windows = Windows::new(assigner)
            .trigger(trigger)
            .allowed_lateness(description.lateness())
            .side_output_late_data();
        let (key, late) = (description.key(), description.late_output());
        let outputs = description.outputs.clone();
        if !description.is_plain() {
            let function = description.process();
            return match description.evictor {
                None => bare(windows.process(key, function), outputs, |fan| fan),
                Some(AnyEvictor::Count { n }) => {
                    bare(windows.keep_last(n).process(key, function), outputs, |fan| fan)
                }
            };
        }
        match &description.function {
            Function::ReduceSum => {
                bare(windows.reduce(key, add_v), outputs, fan(late, |result| result.value))
            }
            Function::Sum { field, .. } => {
                let sum = Sum { field: field.clone() };
                bare(windows.aggregate(key, sum), outputs, fan(late, description.sum()))
            }
            _ => {
                let keep = description.keep();
                let windows = windows.keep_last(keep);
                let operator = windows.apply(key, description.collect());
                bare(operator, outputs, fan(late, |result| result.value))
            }
        }
    }
}

fn fan<V>(
    late: usize,
    mut value: impl FnMut(WindowResult<Value, V>) -> Value,
) -> impl FnMut(Windowed<Value, V, Value>) -> Fan {
    move |route| match route {
        Windowed::Result(result) => Fan { output: 0, record: value(result) },
        Windowed::Late(record) => Fan { output: late, record: record.value },
    }
}

fn bare<Op>(
    operator: Op,
    outputs: Vec<String>,
    fan: impl FnMut(Op::Out) -> Fan + 'static,
) -> Box<dyn Bare>
where
    Op: Operator<In = Value> + Saved + 'static,
{
    Box::new(BareWindow { operator, outputs, fan })
}

struct BareWindow<Op, F> {
    operator: Op,
    outputs: Vec<String>,
    fan: F,
}

impl<Op, F> Bare for BareWindow<Op, F>
where
    Op: Operator<In = Value> + Saved,
    F: FnMut(Op::Out) -> Fan,
{
    fn feed(
        &mut self,
        _input: usize,
        element: Element<Value>,
        traces: &mut Traces,
    ) -> Result<(), String> {
        let Self { operator, outputs, fan } = self;
        let name = |route| {
            let Fan { output, record } = fan(route);
            (outputs.get(output).cloned().unwrap_or_default(), record)
        };
        feed(operator, element, &mut Collected { traces, name })
    }

    #[cfg(feature = "job")]
    fn states(&mut self) -> Vec<&mut dyn Snapshot> {
        vec![&mut self.operator]
    }
}
