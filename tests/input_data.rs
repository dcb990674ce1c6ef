//! Parsing: bad input is a value with its bytes, its position and a reason. The cases DATA-01 to
//! DATA-09, and SINK-13, which is about the same.

mod common;

use common::{Log, assert_balanced};
use futures::executor::block_on;
use futures::{StreamExt as _, future, stream};
use serde::Deserialize;
use side_output::operator::StampedStreams;
use side_output::prelude::*;
use side_output::{Count, Element, Mark, TestClock};
use std::fmt;
use std::io::{BufRead, Cursor};
use std::time::Duration;

/// A line, and where it was in the input.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    /// Without the line feed.
    raw: Vec<u8>,
    /// Counted from one.
    number: u64,
    /// Of its first byte.
    offset: u64,
}

/// The lines of an input of bytes, whatever the bytes are.
fn lines(mut input: impl BufRead) -> impl Iterator<Item = Line> {
    let (mut number, mut next) = (0, 0);
    std::iter::from_fn(move || {
        let mut raw = Vec::new();
        let read = input.read_until(b'\n', &mut raw).expect("bytes in memory");
        if read == 0 {
            return None;
        }
        let offset = next;
        next += read as u64;
        number += 1;
        if raw.ends_with(b"\n") {
            raw.pop();
        }
        Some(Line { raw, number, offset })
    })
}

/// A stream of the lines of a text.
fn text(text: &str) -> DataStream<Line> {
    DataStream::from_stream(stream::iter(lines(Cursor::new(text.to_owned()))))
}

/// What is wrong with a line, with everything that is needed to hand it back.
#[derive(Clone, Debug, PartialEq)]
struct Malformed {
    line: Line,
    reason: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, byte {}: {}", self.line.number, self.line.offset, self.reason)
    }
}

impl std::error::Error for Malformed {}

#[derive(Clone, Debug, Deserialize, PartialEq)]
struct Person {
    id: u32,
    name: String,
}

#[splitter]
#[derive(Debug, PartialEq)]
enum People {
    #[main]
    Person(Person),
    Malformed(Malformed),
}

#[splitter(People)]
fn parse_person(line: Line) -> People {
    match serde_json::from_slice(&line.raw) {
        Ok(person) => People::Person(person),
        Err(error) => People::Malformed(Malformed { line, reason: error.to_string() }),
    }
}

#[test]
fn data_01_one_bad_byte_is_one_record_with_its_position() {
    use std::io::Write as _;
    let (mut input, mut bad, mut offset) = (Vec::with_capacity(20_000_000), Vec::new(), 0);
    for number in 1..=1_000_000 {
        let start = input.len();
        writeln!(input, r#"{{"id":{number},"name":""}}"#).unwrap();
        if number == 500_000 {
            input[start] = 0xff;
            bad = input[start..input.len() - 1].to_vec();
            offset = start as u64;
        }
    }
    let (mut people, mut malformed) = (0_u32, Vec::new());
    let ledger = block_on(
        stream::iter(lines(Cursor::new(input)))
            .split_with(parse_person)
            .wire()
            .person(each(|_| people += 1))
            .malformed(&mut malformed)
            .run(),
    )
    .unwrap();
    assert_eq!(people, 999_999);
    let [Malformed { line, reason }] = &malformed[..] else { panic!("{malformed:?}") };
    assert_eq!(*line, Line { raw: bad, number: 500_000, offset });
    assert_eq!(reason, "expected value at line 1 column 1");
    assert_eq!(ledger["malformed"].delivered, 1);
    assert_balanced(&ledger);
}

const INSTANT: i64 = 1_772_452_800;

#[test]
fn data_02_the_unit_is_said_where_the_number_is_read() {
    let same = [
        Timestamp::from_secs(INSTANT),
        Timestamp::from_millis(INSTANT * 1000),
        Timestamp::from_micros(INSTANT * 1_000_000),
        Timestamp::from_nanos(INSTANT * 1_000_000_000),
    ];
    assert!(same.iter().all(|at| *at == same[0]), "{same:?}");
    // Fractions of a millisecond are cut off towards the past, on both sides of 1970.
    assert_eq!(Timestamp::from_micros(-1), Timestamp::from_millis(-1));
    assert_eq!(Timestamp::from_nanos(1_999_999), Timestamp::from_millis(1));
}

#[test]
fn data_02_microseconds_taken_for_milliseconds_do_not_move_the_watermark() {
    let day = Duration::from_hours(24);
    let clock = TestClock::at(Timestamp::from_secs(INSTANT));
    let millis = [INSTANT * 1000, INSTANT * 1_000_000, INSTANT * 1000 + 5];
    let StampedStreams { records, future_skew: implausible_time } =
        DataStream::from_stream(stream::iter(millis)).assign_timestamps(
            |millis: &i64| Timestamp::from_millis(*millis),
            Watermarks::monotonous().max_future_skew(day, clock),
        );
    let (elements, implausible) = block_on(future::join(
        records.elements().map(Result::unwrap).collect::<Vec<_>>(),
        implausible_time.collect::<Vec<_>>(),
    ));
    assert_eq!(implausible, [INSTANT * 1_000_000]);
    let watermarks: Vec<_> = elements
        .iter()
        .filter_map(|element| match element {
            Element::Mark(Mark::Watermark(at)) => Some(*at),
            _ => None,
        })
        .collect();
    let at = Timestamp::from_millis;
    assert_eq!(watermarks, [at(INSTANT * 1000 - 1), at(INSTANT * 1000 + 4), Timestamp::MAX]);
}

#[test]
fn data_03_zero_is_a_time_and_a_missing_one_is_not() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Event {
        ts: Option<i64>,
    }
    #[splitter]
    enum Events {
        #[main]
        Timed((Timestamp, Event)),
        NoTime(Event),
    }
    let EventsStreams { timed, no_time } =
        text("{\"ts\":0}\n{}\n{\"ts\":null}\n").split_with(|line: Line| {
            serde_json::from_slice(&line.raw).map(|event: Event| match event.ts {
                Some(millis) => Events::Timed((Timestamp::from_millis(millis), event)),
                None => Events::NoTime(event),
            })
        });
    let windows = timed
        .assign_timestamps(|(at, _): &(Timestamp, Event)| *at, Watermarks::monotonous())
        .window_all(Tumbling::of(Duration::from_secs(1)))
        .drop_late_data()
        .aggregate(Count::new());
    let (windows, no_time) =
        block_on(future::join(windows.collect::<Vec<_>>(), no_time.collect::<Vec<_>>()));
    let first = Window::new(Timestamp::from_millis(0), Timestamp::from_millis(1000));
    assert_eq!(windows.iter().map(|w| (w.window, w.value)).collect::<Vec<_>>(), [(first, 1)]);
    assert_eq!(no_time, [Event { ts: None }, Event { ts: None }]);
}

/// The fields of a line of CSV, strictly: quotes enclose a whole field or none of it.
fn fields(line: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let (field, after) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted_field(quoted, fields.len() + 1)?
        } else {
            let (field, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
            if field.contains('"') {
                return Err(format!("a quote inside of field {}", fields.len() + 1));
            }
            (field.to_owned(), after)
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Ok(fields),
        }
    }
}

/// What is before the closing quote, and what is behind it: a comma or nothing.
fn quoted_field(text: &str, number: usize) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let Some((before, after)) = rest.split_once('"') else {
            return Err(format!("the quote of field {number} is never closed"));
        };
        field.push_str(before);
        match after.chars().next() {
            None | Some(',') => return Ok((field, after)),
            Some('"') => {
                field.push('"');
                rest = &after[1..];
            }
            Some(other) => {
                return Err(format!("`{other}` behind the closing quote of field {number}"));
            }
        }
    }
}

#[splitter]
#[derive(Debug)]
enum Rows {
    #[main]
    Row([String; 3]),
    Malformed(Malformed),
}

/// Rows of three fields.
fn row(line: &Line) -> Result<[String; 3], String> {
    let text = str::from_utf8(&line.raw).map_err(|error| error.to_string())?;
    let wrong = |fields: Vec<String>| format!("{} fields instead of 3", fields.len());
    fields(text)?.try_into().map_err(wrong)
}

#[splitter(Rows)]
fn parse_row(line: Line) -> Rows {
    match row(&line) {
        Ok(row) => Rows::Row(row),
        Err(reason) => Rows::Malformed(Malformed { line, reason }),
    }
}

/// Both outputs of a table.
fn read_rows(table: &str) -> (Vec<[String; 3]>, Vec<Malformed>) {
    let RowsStreams { row, malformed } = text(table).split_with(parse_row);
    common::read2(row, malformed)
}

#[test]
fn data_04_rows_with_a_wrong_number_of_fields_do_not_end_the_file() {
    let table: String = (1..=10)
        .map(|number| match number {
            4 => "4,short\n".to_owned(),
            7 => "7,too,long,by\n".to_owned(),
            _ => format!("{number},\"a \"\"b\"\", c\",\n"),
        })
        .collect();
    let (rows, malformed) = read_rows(&table);
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|row| row[1] == "a \"b\", c" && row[2].is_empty()));
    let bad: Vec<_> = malformed.iter().map(|bad| (bad.line.number, bad.reason.as_str())).collect();
    assert_eq!(bad, [(4, "2 fields instead of 3"), (7, "4 fields instead of 3")]);
}

#[test]
fn data_05_the_whole_row_the_reason_and_the_number_are_handed_back() {
    let (rows, malformed) = read_rows("1,2,3\n1,\"a\"b,c\n1,a\"b,c\n1,\"a,c\n");
    assert_eq!(rows.len(), 1);
    let bad: Vec<_> = malformed
        .iter()
        .map(|bad| (bad.line.number, str::from_utf8(&bad.line.raw).unwrap(), bad.reason.as_str()))
        .collect();
    assert_eq!(
        bad,
        [
            (2, "1,\"a\"b,c", "`b` behind the closing quote of field 2"),
            (3, "1,a\"b,c", "a quote inside of field 2"),
            (4, "1,\"a,c", "the quote of field 2 is never closed"),
        ]
    );
}

#[test]
fn data_06_bad_rows_are_counted_and_nothing_is_logged() {
    let table: String =
        (0..100).map(|number| if number % 10 == 3 { "?\n" } else { "1,2,3\n" }).collect();
    let (ledger, log) = Log::capture(|| {
        let mut malformed = Vec::new();
        let run = text(&table).split_with(parse_row).wire();
        block_on(run.row(each(drop)).malformed(&mut malformed).run()).unwrap()
    });
    assert_eq!((ledger["row"].delivered, ledger["malformed"].delivered), (90, 10));
    assert_balanced(&ledger);
    assert_eq!(log.above_debug(), 0, "{:?}", log.texts());
}

#[test]
fn data_07_what_does_not_fit_the_type_is_collected_with_the_reason() {
    let input = "{\"id\":1,\"name\":\"Ada\"}\n{\"id\":2}\n{\"id\":-1,\"name\":\"Eve\"}\n";
    let PeopleStreams { person, malformed } = text(input).split_with(parse_person);
    let (people, malformed) = common::read2(person, malformed);
    assert_eq!(people, [Person { id: 1, name: "Ada".to_owned() }]);
    let reasons: Vec<_> = malformed.iter().map(ToString::to_string).collect();
    assert_eq!(
        reasons,
        [
            "line 2, byte 22: missing field `name` at line 1 column 8",
            "line 3, byte 31: invalid value: integer `-1`, expected u32 at line 1 column 8",
        ]
    );
}

#[test]
fn data_08_too_large_records_are_routed_before_the_sink() {
    #[splitter]
    #[derive(Debug, PartialEq)]
    enum Sized {
        #[main]
        Fits(Vec<u8>),
        TooLarge {
            record: Vec<u8>,
            size: usize,
        },
    }
    fn by_size(limit: usize) -> impl Fn(Vec<u8>) -> Sized {
        move |record| match record.len() {
            size if size > limit => Sized::TooLarge { record, size },
            _ => Sized::Fits(record),
        }
    }
    let records = [1023, 1024, 1025].map(|size| vec![b'x'; size]);
    let SizedStreams { fits, too_large } = stream::iter(records).split_with(by_size(1024));
    let (fits, too_large) = common::read2(fits, too_large);
    assert_eq!(fits.iter().map(Vec::len).collect::<Vec<_>>(), [1023, 1024]);
    let too_large: Vec<_> =
        too_large.iter().map(|large| (large.record.len(), large.size)).collect();
    assert_eq!(too_large, [(1025, 1025)]);
}

const THREE_GOOD_ONE_BAD: &str = "1,2,3\n4,5,6\n?\n7,8,9\n";

/// The rows alone: bad lines fail or are skipped, as the return type says.
#[splitter]
#[derive(Debug)]
enum GoodRows {
    #[main]
    Row([String; 3]),
}

#[test]
fn data_09_a_parser_that_returns_a_result_fails_with_the_position() {
    let GoodRowsStreams { row: rows } = text(THREE_GOOD_ONE_BAD).split_with(|line: Line| {
        row(&line).map(GoodRows::Row).map_err(|reason| Malformed { line, reason })
    });
    let handle = rows.ledger_handle().unwrap();
    let mut read = Vec::new();
    let error = block_on(rows.for_each(|row| read.push(row))).unwrap_err();
    assert_eq!(error.to_string(), "the stream failed: line 3, byte 12: 1 fields instead of 3");
    let StreamError::Failed(cause) = &error else { panic!("{error:?}") };
    assert_eq!(cause.downcast_ref::<Malformed>().unwrap().line.number, 3);
    assert_eq!((read.len(), handle.read().failed), (2, 1));
    assert_balanced(&handle.read());
}

#[test]
fn data_09_a_parser_that_returns_an_option_skips_and_counts() {
    let GoodRowsStreams { row: rows } =
        text(THREE_GOOD_ONE_BAD).split_with(|line: Line| row(&line).map(GoodRows::Row).ok());
    let handle = rows.ledger_handle().unwrap();
    assert_eq!(block_on(rows.count()), 3);
    assert_eq!(handle.read().unrouted, 1);
    assert_balanced(&handle.read());
}

#[test]
fn data_09_a_parser_that_returns_the_enum_routes() {
    let (rows, malformed) = read_rows(THREE_GOOD_ONE_BAD);
    assert_eq!((rows.len(), malformed.len()), (3, 1));
    assert_eq!(malformed[0].line.number, 3);
}

#[test]
fn sink_13_the_reason_is_of_a_type() {
    #[derive(Debug, PartialEq)]
    enum Rule {
        Required,
        Positive,
    }
    #[splitter]
    #[derive(Debug, PartialEq)]
    enum Orders {
        #[main]
        Valid(u32),
        Failed {
            line: Line,
            field: &'static str,
            rule: Rule,
        },
    }
    #[derive(Deserialize)]
    struct Raw {
        amount: Option<i64>,
    }
    fn check(line: Line) -> Result<Orders, serde_json::Error> {
        let raw: Raw = serde_json::from_slice(&line.raw)?;
        Ok(match raw.amount.map(u32::try_from) {
            Some(Ok(amount)) => Orders::Valid(amount),
            Some(Err(_)) => Orders::Failed { line, field: "amount", rule: Rule::Positive },
            None => Orders::Failed { line, field: "amount", rule: Rule::Required },
        })
    }
    let OrdersStreams { valid, failed } =
        text("{\"amount\":7}\n{}\n{\"amount\":-1}").split_with(check);
    let (valid, failed) = common::read2(valid, failed);
    assert_eq!(valid, [7]);
    let failed: Vec<_> =
        failed.into_iter().map(|bad| (bad.line.number, bad.field, bad.rule)).collect();
    assert_eq!(failed, [(2, "amount", Rule::Required), (3, "amount", Rule::Positive)]);
}
