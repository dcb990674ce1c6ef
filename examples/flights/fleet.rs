//! Flights and planes, reconciled by tail number.

use super::job::Flown;
use super::json_lines::JsonLines;
use super::lines::Line;
use super::record::Malformed;
use serde::{Deserialize, Serialize};
use side_output::prelude::*;
use side_output::{KeyedCoProcess, KeyedContext};
use std::path::Path;

/// Where a line of the planes goes.
#[splitter]
pub(crate) enum Planes {
    #[main]
    Plane(Plane),
    Malformed(Malformed),
}

/// What is known of a plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plane {
    pub(crate) tailnum: String,
    pub(crate) manufacturer: String,
    pub(crate) model: String,
    pub(crate) seats: u32,
}

#[splitter(Planes)]
pub(crate) fn split_plane(line: Line) -> Planes {
    match Plane::parse(&line.bytes) {
        Ok(plane) => Planes::Plane(plane),
        Err(reason) => Planes::Malformed(Malformed::new(line, reason)),
    }
}

impl Plane {
    const COLUMNS: &str = "tailnum,year,type,manufacturer,model,engines,seats,speed,engine";

    fn parse(line: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(line).map_err(|error| error.to_string())?;
        let cells: Vec<_> = text.split(',').collect();
        let [tailnum, _, _, manufacturer, model, _, seats, _, _] = cells[..] else {
            return Err(format!("9 columns expected, found {}", cells.len()));
        };
        if tailnum.is_empty() {
            return Err("no tail number".to_owned());
        }
        Ok(Self {
            tailnum: tailnum.to_owned(),
            manufacturer: manufacturer.to_owned(),
            model: model.to_owned(),
            seats: seats.parse().map_err(|_| format!("`seats` is no number: {seats:?}"))?,
        })
    }
}

/// Whether the line holds the names of the columns.
pub(crate) fn is_header(line: &Line) -> bool {
    line.number == 1 && line.bytes == Plane::COLUMNS.as_bytes()
}

/// Where the flights and planes go once they have met, or cannot any more.
#[splitter]
pub(crate) enum Fleet {
    #[main]
    Matched(Flight),
    /// A flight whose plane nobody knows.
    NoPlane(Flown),
    /// A plane that has not flown.
    NoFlight(Plane),
    /// A plane whose tail number had been there before.
    Duplicate(Plane),
}

/// A flight with its plane.
#[derive(Debug, Serialize)]
pub(crate) struct Flight {
    #[serde(flatten)]
    flown: Flown,
    plane: Plane,
}

/// What is known of a tail number.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Known {
    plane: Option<Plane>,
    /// Flights that came before the plane did.
    waiting: Vec<Flown>,
    has_flown: bool,
}

pub(crate) struct Reconcile;

impl KeyedCoProcess for Reconcile {
    /// Some flights have no tail number, and so no plane.
    type Key = Option<String>;
    type Left = Flown;
    type Right = Plane;
    type State = Known;
    type Out = Fleet;

    fn on_left(
        &mut self,
        flown: Flown,
        known: &mut Known,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Fleet> {
        known.has_flown = true;
        if let Some(plane) = known.plane.clone() {
            return Some(Fleet::Matched(Flight { flown, plane }));
        }
        // The time of both inputs is that of the slower one: this timer does not fire before all
        // planes have come.
        cx.set_timer(flown.flight.scheduled);
        known.waiting.push(flown);
        None
    }

    fn on_right(
        &mut self,
        plane: Plane,
        known: &mut Known,
        cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Fleet> {
        if known.plane.is_some() {
            return vec![Fleet::Duplicate(plane)];
        }
        cx.set_timer(Timestamp::MAX);
        known.plane = Some(plane.clone());
        let matched = |flown| Fleet::Matched(Flight { flown, plane: plane.clone() });
        known.waiting.drain(..).map(matched).collect::<Vec<_>>()
    }

    fn on_timer(
        &mut self,
        at: Timestamp,
        known: &mut Known,
        _cx: &mut KeyedContext<Self>,
    ) -> impl Routes<Fleet> {
        let at_the_end = at == Timestamp::MAX;
        let never_flown = known.plane.take_if(|_| at_the_end && !known.has_flown);
        let waiting = known.waiting.drain(..).map(Fleet::NoPlane);
        waiting.chain(never_flown.map(Fleet::NoFlight)).collect::<Vec<_>>()
    }
}

/// The files that the outcome goes to.
pub(crate) struct Files {
    matched: JsonLines<Flight>,
    no_plane: JsonLines<Flown>,
    no_flight: JsonLines<Plane>,
    duplicate: JsonLines<Plane>,
    malformed: JsonLines<Malformed>,
}

impl Files {
    pub(crate) fn create(out: &Path) -> Result<Self, String> {
        Ok(Self {
            matched: JsonLines::create(out, "matched.jsonl")?,
            no_plane: JsonLines::create(out, "no_plane.jsonl")?,
            no_flight: JsonLines::create(out, "no_flight.jsonl")?,
            duplicate: JsonLines::create(out, "duplicate_planes.jsonl")?,
            malformed: JsonLines::create(out, "malformed_planes.jsonl")?,
        })
    }
}

/// Finds the plane of every flight; the ledger says how many were found.
///
/// The planes carry no timestamps: they were there before the first flight.
pub(crate) async fn reconcile(
    flights: DataStream<Flown>,
    planes: DataStream<Line>,
    files: Files,
) -> Result<Ledger, StreamError> {
    let PlanesStreams { plane, malformed } =
        planes.filter(|line| !is_header(line)).split_with(split_plane);
    let reconciled = flights
        .key_by(|flown| flown.flight.tailnum.clone())
        .connect(plane.key_by(|plane| Some(plane.tailnum.clone())))
        .process(Reconcile)
        .wire()
        .matched(files.matched)
        .no_plane(files.no_plane)
        .no_flight(files.no_flight)
        .duplicate(files.duplicate)
        .run();
    let (ledger, ()) = futures::try_join!(reconciled, malformed.forward(files.malformed))?;
    Ok(ledger)
}
