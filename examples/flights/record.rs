//! A line of the data becomes a flight, or a value that says why it does not.

use super::lines::Line;
use super::time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use side_output::Timestamp;
use std::ops::RangeInclusive;
use std::time::Duration;

const COLUMNS: [&str; 19] = [
    "year",
    "month",
    "day",
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "air_time",
    "distance",
    "hour",
    "minute",
    "time_hour",
];

/// New York is behind UTC by so many hours, in winter and in summer.
const BEHIND_UTC: RangeInclusive<i64> = 4..=5;

const DELAY: RangeInclusive<i32> = -1440..=14_400;

/// Whether the line holds the names of the columns.
pub(crate) fn is_header(line: &Line) -> bool {
    line.number == 1 && line.bytes.split(|&byte| byte == b',').eq(COLUMNS.map(str::as_bytes))
}

/// What every flight has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Flight {
    pub(crate) carrier: String,
    #[serde(rename = "flight")]
    pub(crate) number: i32,
    pub(crate) tailnum: Option<String>,
    pub(crate) origin: String,
    pub(crate) dest: String,
    /// Scheduled departure: the event time.
    #[serde(serialize_with = "as_date", deserialize_with = "from_date")]
    pub(crate) scheduled: Timestamp,
    /// Miles.
    pub(crate) distance: i32,
}

/// What a line says, before it is decided where it goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) flight: Flight,
    /// Minutes; a cancelled flight has none.
    pub(crate) dep_delay: Option<i32>,
    /// A diverted flight has none.
    pub(crate) arrival: Option<Arrival>,
}

/// The end of a flight, in minutes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Arrival {
    pub(crate) air_time: i32,
    pub(crate) arr_delay: i32,
}

/// A line that is no flight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Malformed {
    pub(crate) line: u64,
    pub(crate) reason: String,
    /// The line as text; bytes that are none are shown as U+FFFD.
    pub(crate) raw: String,
    /// The line as it was, where `raw` is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<Vec<u8>>,
}

impl Row {
    pub(crate) fn parse(line: Line) -> Result<Self, Malformed> {
        let parsed = if line.is_cut() {
            Err(format!("longer than {} bytes", line.bytes.len()))
        } else {
            Columns::split(&line.bytes).and_then(|columns| columns.row())
        };
        parsed.map_err(|reason| Malformed::new(line, reason))
    }
}

impl Malformed {
    pub(crate) fn new(line: Line, reason: String) -> Self {
        let (raw, bytes) = match String::from_utf8(line.bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let bytes = error.into_bytes();
                (String::from_utf8_lossy(&bytes).into_owned(), Some(bytes))
            }
        };
        Self { line: line.number, reason, raw, bytes }
    }
}

/// The cells of a line, taken by the names of their columns.
struct Columns<'a>([&'a str; COLUMNS.len()]);

impl<'a> Columns<'a> {
    fn split(line: &'a [u8]) -> Result<Self, String> {
        let text = str::from_utf8(line)
            .map_err(|error| format!("not UTF-8 from byte {}", error.valid_up_to() + 1))?;
        if text.is_empty() {
            return Err("empty line".to_owned());
        }
        if let Some(control) = text.chars().find(|char| char.is_control()) {
            return Err(format!("control character {control:?}"));
        }
        let mut cells = [""; COLUMNS.len()];
        let mut count = 0;
        for cell in text.split(',') {
            if let Some(place) = cells.get_mut(count) {
                *place = cell;
            }
            count += 1;
        }
        if count != COLUMNS.len() {
            return Err(format!("{} columns expected, found {count}", COLUMNS.len()));
        }
        Ok(Self(cells))
    }

    fn row(&self) -> Result<Row, String> {
        let row = Row {
            flight: Flight {
                carrier: self.code("carrier")?,
                number: self.number("flight", 0..=9999)?,
                tailnum: self.unless_missing("tailnum", Self::code)?,
                origin: self.code("origin")?,
                dest: self.code("dest")?,
                scheduled: self.scheduled()?,
                distance: self.number("distance", 1..=20_000)?,
            },
            dep_delay: self.departure()?,
            arrival: self.arrival()?,
        };
        if row.dep_delay.is_none() && row.arrival.is_some() {
            return Err("`dep_delay` is missing for a flight that arrived".to_owned());
        }
        Ok(row)
    }

    /// The date and time stand there three times. A damaged one must not pass: one flight in the
    /// far future would make all that come after it late.
    fn scheduled(&self) -> Result<Timestamp, String> {
        let hour = self.number("hour", 0..=23)?;
        let minute = self.number("minute", 0..=59)?;
        if self.time_of_day("sched_dep_time")? != hour * 60 + minute {
            return Err("`sched_dep_time` is not `hour` and `minute`".to_owned());
        }
        let date = [
            self.number("year", 1..=9999)?,
            self.number("month", 1..=12)?,
            self.number("day", 1..=31)?,
        ];
        let [year, month, day] = date;
        let local = time::instant(year, month.unsigned_abs(), day.unsigned_abs(), 0, 0)
            .ok_or_else(|| format!("there is no day {year}-{month}-{day}"))?
            .saturating_add_millis(i64::from(hour) * 3_600_000);
        let text = self.cell("time_hour");
        let time_hour =
            time::parse_hour(text).ok_or_else(|| format!("`time_hour` is no hour: {text:?}"))?;
        let behind = time_hour.millis_since(local);
        if !BEHIND_UTC.map(|hours| hours * 3_600_000).any(|offset| offset == behind) {
            return Err("`time_hour` is not the hour of the other columns".to_owned());
        }
        Ok(time_hour + Duration::from_mins(1) * minute.unsigned_abs())
    }

    fn departure(&self) -> Result<Option<i32>, String> {
        let time = self.unless_missing("dep_time", Self::time_of_day)?;
        let delay =
            self.unless_missing("dep_delay", |columns, name| columns.number(name, DELAY))?;
        if time.is_some() != delay.is_some() {
            return Err("only one of `dep_time` and `dep_delay` is missing".to_owned());
        }
        Ok(delay)
    }

    fn arrival(&self) -> Result<Option<Arrival>, String> {
        self.time_of_day("sched_arr_time")?;
        self.unless_missing("arr_time", Self::time_of_day)?;
        let air_time =
            self.unless_missing("air_time", |columns, name| columns.number(name, 1..=1440))?;
        let arr_delay =
            self.unless_missing("arr_delay", |columns, name| columns.number(name, DELAY))?;
        match (air_time, arr_delay) {
            (Some(air_time), Some(arr_delay)) => Ok(Some(Arrival { air_time, arr_delay })),
            (None, None) => Ok(None),
            _ => Err("only one of `air_time` and `arr_delay` is missing".to_owned()),
        }
    }

    fn cell(&self, name: &str) -> &'a str {
        let index = COLUMNS.iter().position(|column| *column == name);
        index.map_or("", |index| self.0[index])
    }

    fn unless_missing<V>(
        &self,
        name: &str,
        read: impl FnOnce(&Self, &str) -> Result<V, String>,
    ) -> Result<Option<V>, String> {
        if self.cell(name) == "NA" { Ok(None) } else { read(self, name).map(Some) }
    }

    /// Only digits behind an optional minus: `parse` alone would take `+5` too.
    fn number(&self, name: &str, range: RangeInclusive<i32>) -> Result<i32, String> {
        let text = self.cell(name);
        let digits = text.strip_prefix('-').unwrap_or(text);
        let number = if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            text.parse().ok().filter(|number| range.contains(number))
        } else {
            None
        };
        number.ok_or_else(|| {
            let (low, high) = range.into_inner();
            format!("`{name}` is no number from {low} to {high}: {text:?}")
        })
    }

    /// Minutes after midnight of a time like `1745`.
    fn time_of_day(&self, name: &str) -> Result<i32, String> {
        let time = self.number(name, 0..=2400)?;
        if time % 100 < 60 {
            Ok(time / 100 * 60 + time % 100)
        } else {
            Err(format!("`{name}` is no time of day: {:?}", self.cell(name)))
        }
    }

    fn code(&self, name: &str) -> Result<String, String> {
        let text = self.cell(name);
        let alphanumeric =
            text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        if alphanumeric && (2..=6).contains(&text.len()) && text != "NA" {
            Ok(text.to_owned())
        } else {
            Err(format!("`{name}` is no code: {text:?}"))
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(crate) fn as_date<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time::format(*at))
}

fn from_date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    time::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("no date: {text:?}")))
}
