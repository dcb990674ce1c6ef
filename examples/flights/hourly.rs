//! Flights and delays by airport and hour of scheduled departure, and those too late to count.

use super::job::Flown;
use super::json_lines::JsonLines;
use super::record::as_date;
use serde::{Deserialize, Serialize};
use side_output::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR: Duration = Duration::from_hours(1);

/// How far flights may stand behind one that was scheduled later.
pub(crate) const BOUND: Duration = Duration::from_hours(2);

/// For how long after its end an hour still takes flights.
pub(crate) const LATENESS: Duration = Duration::from_hours(4);

/// The windows that flights are counted in.
pub(crate) fn windows() -> Tumbling {
    Tumbling::of(HOUR)
}

/// Counts `flights`, and writes those that are too late to `late`.
pub(crate) async fn count(
    flights: DataStream<Flown>,
    late: JsonLines<LateFlight>,
) -> Result<Hours, StreamError> {
    let counted = flights
        .key_by(|flown| flown.flight.origin.clone())
        .window(windows())
        .allowed_lateness(LATENESS)
        .side_output_late_data()
        .aggregate(TotalDelay);
    let ledger = counted.ledger_handle();
    let results = counted.results.fold(Hours::default(), Hours::update);
    let late = counted.late.map(LateFlight::from).forward(late);
    let (mut hours, ()) = futures::try_join!(results, late)?;
    hours.late = ledger.read()["late"].routed;
    Ok(hours)
}

/// A flight that came when its hour was over, and the time to amend it as well.
#[derive(Debug, Serialize)]
pub(crate) struct LateFlight {
    #[serde(flatten)]
    flown: Flown,
    #[serde(serialize_with = "as_date")]
    watermark: Timestamp,
    minutes_behind: u64,
    reason: String,
}

impl From<Late<Flown>> for LateFlight {
    fn from(late: Late<Flown>) -> Self {
        Self {
            watermark: late.watermark,
            minutes_behind: late.behind().as_secs() / 60,
            reason: late.to_string(),
            flown: late.value,
        }
    }
}

/// Number of flights, and the sum of their departure delays.
#[derive(Debug)]
pub(crate) struct TotalDelay;

/// What an airport's hour comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Total {
    pub(crate) flights: u64,
    /// Minutes; flights that left early count below zero.
    pub(crate) dep_delay: i64,
}

impl Aggregate for TotalDelay {
    type In = Flown;
    type Accumulator = Total;
    type Output = Total;

    fn create(&mut self) -> Total {
        Total::default()
    }

    fn add(&mut self, total: &mut Total, flown: &Flown) {
        total.flights += 1;
        total.dep_delay += i64::from(flown.dep_delay);
    }

    fn merge(&mut self, total: &mut Total, other: Total) {
        total.flights += other.flights;
        total.dep_delay += other.dep_delay;
    }

    fn result(&mut self, total: &Total) -> Total {
        *total
    }
}

/// The latest result of every airport's hour.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hours {
    hours: BTreeMap<(Timestamp, String), Hour>,
    late: u64,
}

/// An airport's hour.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hour {
    /// After the last update.
    pub(crate) total: Total,
    /// What the result at the end of the hour said; `None` if every flight of it was late.
    pub(crate) on_time: Option<Total>,
    pub(crate) late_updates: u64,
}

impl Hours {
    /// A later result of a window replaces what an earlier one said.
    fn update(&mut self, result: WindowResult<String, Total>) {
        let hour = self.hours.entry((result.window.start(), result.key)).or_default();
        hour.total = result.value;
        match result.pane {
            Pane::OnTime => hour.on_time = Some(result.value),
            Pane::Early(_) | Pane::Final => {}
            Pane::Late(_) => hour.late_updates += 1,
        }
    }

    /// Hours that are still to be put in, and so many flights that were too late for any.
    #[cfg(feature = "job")]
    pub(crate) fn with_late(late: u64) -> Self {
        Self { hours: BTreeMap::new(), late }
    }

    #[cfg(feature = "job")]
    pub(crate) fn insert(&mut self, start: Timestamp, origin: String, hour: Hour) {
        self.hours.insert((start, origin), hour);
    }

    /// Each hour's start and airport, in that order, with what it came to.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Timestamp, &str, &Hour)> {
        self.hours.iter().map(|((start, origin), hour)| (*start, &**origin, hour))
    }

    /// Flights that were too late for any of them.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    pub(crate) fn len(&self) -> u64 {
        self.hours.len() as u64
    }

    pub(crate) fn flights(&self) -> u64 {
        self.hours.values().map(|hour| hour.total.flights).sum()
    }

    pub(crate) fn dep_delay(&self) -> i64 {
        self.hours.values().map(|hour| hour.total.dep_delay).sum()
    }

    pub(crate) fn on_time_panes(&self) -> u64 {
        self.hours.values().filter(|hour| hour.on_time.is_some()).count() as u64
    }

    pub(crate) fn late_updates(&self) -> u64 {
        self.hours.values().map(|hour| hour.late_updates).sum()
    }
}
