//! The flights example: its numbers, and what damage to its input does.

#[path = "../examples/flights.rs"]
#[allow(dead_code, reason = "the example's own `main` is not used")]
mod flights;

use flights::advise::{advise, report};
use flights::job::{Job, Outcome};
use flights::lines::{Line, MAX_LINE};
use flights::options::Options;
use flights::record::{Malformed, Row};
use flights::report::{Counts, json};
use flights::time;
use proptest::prelude::*;
use serde_json::Value;
use side_output::Timestamp;
use std::fs;
use std::path::{Path, PathBuf};

const JANUARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/flights-2013-01.csv");

/// A directory of its own for each test.
fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flights").join(test);
    fs::create_dir_all(&path).unwrap();
    path
}

fn run(job: Job) -> Result<Outcome, String> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(job.run())
}

/// The job for the file `content`.
fn job(test: &str, content: &[u8]) -> Job {
    let directory = directory(test);
    let flights = directory.join("flights.csv");
    fs::write(&flights, content).unwrap();
    // A few planes are enough for a few flights.
    let planes = directory.join("planes.csv");
    let all = fs::read_to_string(Job::default().planes).unwrap();
    fs::write(&planes, all.lines().take(300).collect::<Vec<_>>().join("\n")).unwrap();
    Job { flights, planes, out: directory.join("out") }
}

/// All that the job writes, by file. Whether a flight or its plane is read first is a matter of
/// timing, and so is the order of the lines where both come together; it is not compared.
fn written(job: &Job) -> Vec<(String, Vec<String>)> {
    let mut files: Vec<_> = fs::read_dir(&job.out)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(path).unwrap();
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            (name, lines)
        })
        .collect();
    files.sort();
    files
}

/// The lines of one output, as JSON.
fn records(job: &Job, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(job.out.join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The header and the first lines of January.
fn sample(lines: usize) -> Vec<Vec<u8>> {
    let text = fs::read(JANUARY).unwrap();
    text.split(|&byte| byte == b'\n').take(lines + 1).map(<[u8]>::to_vec).collect()
}

fn file_of(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

fn parse(bytes: &[u8]) -> Result<Row, Malformed> {
    Row::parse(Line { number: 7, bytes: bytes.to_vec(), length: bytes.len() as u64 + 1 })
}

fn reason(bytes: &[u8]) -> String {
    parse(bytes).expect_err("damaged").reason
}

#[test]
fn january_has_the_known_numbers() {
    let job = Job { out: directory("january"), ..Job::default() };
    let outcome = run(job.clone()).unwrap();
    assert!(outcome.split.is_balanced() && outcome.reconciled.is_balanced());
    assert_eq!(
        serde_json::from_str::<Value>(&json(&outcome).unwrap()).unwrap(),
        serde_json::from_str::<Value>(include_str!("../examples/data/january.json")).unwrap(),
    );
    let counts = Counts::of(&outcome);
    assert_eq!(counts.flown, counts.matched + counts.no_plane);
    assert_eq!(counts.flown, counts.flights_in_windows + counts.late);
    assert_eq!(counts.lines, counts.flown + counts.cancelled + counts.diverted + counts.malformed);
    for (file, count) in [
        ("flown.jsonl", counts.flown),
        ("cancelled.jsonl", counts.cancelled),
        ("diverted.jsonl", counts.diverted),
        ("malformed.jsonl", counts.malformed),
        ("long_delay.jsonl", counts.long_delay),
        ("late.jsonl", counts.late),
        ("matched.jsonl", counts.matched),
        ("no_plane.jsonl", counts.no_plane),
        ("no_flight.jsonl", counts.no_flight),
    ] {
        assert_eq!(records(&job, file).len() as u64, count, "{file}");
    }
    let first = &records(&job, "flown.jsonl")[0];
    assert_eq!(first["scheduled"], "2013-01-01T10:59:00Z");
    assert_eq!(first["tailnum"], "N708JB");
    assert!(
        records(&job, "long_delay.jsonl")
            .iter()
            .all(|flown| flown["dep_delay"].as_i64() >= Some(180))
    );
}

#[test]
fn a_late_flight_says_why_it_is_late() {
    let job = Job { out: directory("late"), ..Job::default() };
    run(job.clone()).unwrap();
    let late = &records(&job, "late.jsonl")[0];
    assert_eq!(late["scheduled"], "2013-01-01T14:00:00Z");
    assert_eq!(late["watermark"], "2013-01-01T22:34:59Z");
    assert_eq!(late["minutes_behind"], 514);
    let reason = late["reason"].as_str().unwrap();
    assert!(reason.ends_with("had been complete for 27300000 ms"), "{reason}");
}

#[test]
fn the_table_and_the_picture_show_every_hour() {
    let job = Job { out: directory("picture"), ..Job::default() };
    let outcome = run(job.clone()).unwrap();
    let csv = fs::read_to_string(job.out.join("hourly.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len() as u64, outcome.hours.len());
    let sum =
        |column: usize| rows.iter().map(|row| row[column].parse::<i64>().unwrap()).sum::<i64>();
    assert_eq!((sum(2), sum(3), sum(6)), (26_263, 247_852, 8_236));
    assert_eq!(rows[0], ["2013-01-01T10:00:00Z", "EWR", "2", "-2", "-1.0", "1", "1"]);

    let html = fs::read_to_string(job.out.join("hourly.html")).unwrap();
    let hours: std::collections::BTreeSet<_> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(html.matches("<rect class=\"on-time\"").count(), hours.len());
    assert_eq!(html.matches("<rect class=\"update\"").count(), hours.len());
    assert!(!html.contains("http"), "the page needs nothing from elsewhere");
}

#[test]
fn the_advice_agrees_with_the_run() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let advice = runtime.block_on(advise(&Job::default())).unwrap();
    assert_eq!(advice.records(), 27_004);
    let report = report(&advice);
    assert!(report.ends_with("a bound of 2 h and a lateness of 4 h: 135 lost."), "{report}");
}

/// Every class of damage says what it is.
#[test]
fn a_damaged_line_says_why() {
    let good =
        "2013,1,1,559,559,0,702,706,-4,B6,1806,N708JB,JFK,BOS,44,187,5,59,2013-01-01T10:00:00Z";
    assert!(parse(good.as_bytes()).is_ok());
    let cases: [(&str, &str, &str); 25] = [
        (good, "", "empty line"),
        (
            "2013-01-01T10:00:00Z",
            "2013-01-01T10:00:0",
            "`time_hour` is no hour: \"2013-01-01T10:00:0\"",
        ),
        (",59,2013-01-01T10:00:00Z", "", "19 columns expected, found 17"),
        ("10:00:00Z", "10:00:00Z,", "19 columns expected, found 20"),
        ("10:00:00Z", "10:00:00Z\r", "control character '\\r'"),
        ("B6", "B\0", "control character '\\0'"),
        ("B6", "\"B6\"", "`carrier` is no code: \"\\\"B6\\\"\""),
        ("B6", "", "`carrier` is no code: \"\""),
        ("B6", "NA", "`carrier` is no code: \"NA\""),
        ("N708JB", "N708J\u{e9}", "`tailnum` is no code: \"N708J\u{e9}\""),
        (",44,", ",44.5,", "`air_time` is no number from 1 to 1440: \"44.5\""),
        (",44,", ",,", "`air_time` is no number from 1 to 1440: \"\""),
        (",44,", ",NA,", "only one of `air_time` and `arr_delay` is missing"),
        (",0,702", ",+0,702", "`dep_delay` is no number from -1440 to 14400: \"+0\""),
        (
            ",0,702",
            ",99999999999999999999,702",
            "`dep_delay` is no number from -1440 to 14400: \"99999999999999999999\"",
        ),
        (",0,702", ",NA,702", "only one of `dep_time` and `dep_delay` is missing"),
        ("559,559,0,", "NA,559,NA,", "`dep_delay` is missing for a flight that arrived"),
        ("1806", "18 06", "`flight` is no number from 0 to 9999: \"18 06\""),
        (",702,", ",760,", "`arr_time` is no time of day: \"760\""),
        ("559,559", "559,558", "`sched_dep_time` is not `hour` and `minute`"),
        ("2013,1,1,", "2013,2,30,", "there is no day 2013-2-30"),
        ("2013-01-01T", "2013-02-30T", "`time_hour` is no hour: \"2013-02-30T10:00:00Z\""),
        ("2013-01-01T", "9013-01-01T", "`time_hour` is not the hour of the other columns"),
        ("T10:00", "T18:00", "`time_hour` is not the hour of the other columns"),
        ("T10:00:00Z", "T10:07:00Z", "`time_hour` is no hour: \"2013-01-01T10:07:00Z\""),
    ];
    for (from, to, expected) in cases {
        assert_eq!(good.matches(from).count(), 1, "{from}");
        assert_eq!(reason(good.replace(from, to).as_bytes()), expected);
    }
    let mut bytes = good.as_bytes().to_vec();
    bytes[33] = 0xFF;
    let malformed = parse(&bytes).unwrap_err();
    assert_eq!(malformed.reason, "not UTF-8 from byte 34");
    assert_eq!(malformed.bytes.as_deref(), Some(&bytes[..]));
    assert!(malformed.raw.contains('\u{FFFD}'));
}

/// At every place of a line, whatever is no digit and no capital letter is noticed.
#[test]
fn a_damaged_byte_is_noticed_wherever_it_is() {
    for line in &sample(60)[1..] {
        assert!(parse(line).is_ok());
        for at in 0..line.len() {
            assert!(parse(&line[..at]).is_err(), "cut at {at}: {}", line.escape_ascii());
            for byte in
                [0x00, 0x0B, b'\r', b' ', b'"', b'+', b',', b'.', b'x', 0x7F, 0x80, 0xC3, 0xFF]
            {
                let mut damaged = line.clone();
                damaged[at] = byte;
                if damaged != *line {
                    assert!(parse(&damaged).is_err(), "{}", damaged.escape_ascii());
                }
                let mut longer = line.clone();
                longer.insert(at, byte);
                assert!(parse(&longer).is_err(), "{}", longer.escape_ascii());
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Damage {
    Cut(prop::sample::Index),
    Byte(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index),
    Replace(Vec<u8>),
    Twice,
}

impl Damage {
    fn apply(&self, line: &[u8]) -> Vec<u8> {
        let mut damaged = line.to_vec();
        match self {
            Self::Cut(at) => damaged.truncate(at.index(line.len())),
            Self::Byte(at, byte) => damaged[at.index(line.len())] = *byte,
            Self::Insert(at, bytes) => {
                let at = at.index(line.len() + 1);
                damaged.splice(at..at, bytes.iter().copied());
            }
            Self::Remove(comma) => {
                let commas: Vec<_> = (0..line.len()).filter(|at| line[*at] == b',').collect();
                damaged.remove(*comma.get(&commas));
            }
            Self::Replace(bytes) => damaged.clone_from(bytes),
            Self::Twice => damaged.extend_from_slice(line),
        }
        damaged
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    // A line end in it would make two lines of one; any other byte may come.
    let byte = || any::<u8>().prop_filter("line end", |byte| *byte != b'\n');
    prop_oneof![
        at().prop_map(Damage::Cut),
        (at(), byte()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        (at(), prop::collection::vec(byte(), 1..20))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        at().prop_map(Damage::Remove),
        prop::collection::vec(byte(), 0..200).prop_map(Damage::Replace),
        Just(Damage::Twice),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// A damaged line goes to `malformed.jsonl`, and all else is as if it were not there.
    #[test]
    fn a_damaged_line_changes_nothing_else(victim in 1..=40_usize, damage in damage()) {
        let mut lines = sample(40);
        let damaged = damage.apply(&lines[victim]);
        // Some damage cannot be seen: another digit where there was one.
        prop_assume!(parse(&damaged).is_err());

        let without = {
            let mut lines = lines.clone();
            lines.remove(victim);
            let job = job("property_without", &file_of(&lines));
            run(job.clone()).unwrap();
            written(&job)
        };
        lines[victim].clone_from(&damaged);
        let job = job("property", &file_of(&lines));
        let outcome = run(job.clone()).unwrap();
        prop_assert!(outcome.split.is_balanced());
        prop_assert_eq!(outcome.split.received, 40);
        let malformed = records(&job, "malformed.jsonl");
        prop_assert_eq!(malformed.len(), 1);
        prop_assert_eq!(malformed[0]["line"].as_u64(), Some(victim as u64 + 1));
        prop_assert_eq!(malformed[0]["raw"].as_str().unwrap(), String::from_utf8_lossy(&damaged));
        let others = |files: Vec<(String, Vec<String>)>| {
            files.into_iter().filter(|(name, _)| name != "malformed.jsonl").collect::<Vec<_>>()
        };
        prop_assert_eq!(others(written(&job)), others(without));
    }
}

#[test]
fn a_damaged_header_is_a_malformed_line() {
    let mut lines = sample(10);
    lines[0].truncate(20);
    let outcome = run(job("header", &file_of(&lines))).unwrap();
    assert_eq!(outcome.split["malformed"].routed, 1);
    assert_eq!(outcome.split.received, 11);
}

#[test]
fn a_line_without_end_is_cut_and_the_next_one_is_read() {
    let mut lines = sample(3);
    lines.insert(2, vec![b'x'; 5 * MAX_LINE + 3]);
    let mut content = file_of(&lines);
    content.pop();
    let job = job("endless", &content);
    let outcome = run(job.clone()).unwrap();
    assert_eq!(outcome.split.received, 4);
    let malformed = records(&job, "malformed.jsonl");
    assert_eq!(malformed[0]["line"], 3);
    assert_eq!(malformed[0]["reason"], "longer than 65536 bytes");
    assert_eq!(malformed[0]["raw"].as_str().unwrap().len(), MAX_LINE);
}

#[test]
fn an_empty_file_is_no_error() {
    for content in [&b""[..], &sample(0)[0], &file_of(&sample(0))] {
        let outcome = run(job("empty", content)).unwrap();
        assert_eq!(outcome.split.received, 0);
        assert_eq!(outcome.split["malformed"].routed, 0);
    }
}

#[test]
fn what_cannot_be_read_or_written_is_one_error() {
    let directory = directory("errors");
    let missing = Job {
        flights: directory.join("nowhere.csv"),
        out: directory.join("out"),
        ..Job::default()
    };
    let error = run(missing).unwrap_err();
    assert!(error.starts_with("cannot read ") && error.contains("nowhere.csv: "), "{error}");

    let missing =
        Job { planes: directory.join("nowhere.csv"), out: directory.join("out"), ..Job::default() };
    assert!(run(missing).unwrap_err().contains("nowhere.csv: "));

    let folder = Job { flights: directory.clone(), out: directory.join("out"), ..Job::default() };
    let error = run(folder).unwrap_err();
    assert!(error.starts_with("cannot read "), "{error}");

    fs::write(directory.join("file"), "").unwrap();
    let under_a_file = Job { out: directory.join("file/out"), ..Job::default() };
    let error = run(under_a_file).unwrap_err();
    assert!(error.starts_with("cannot create "), "{error}");

    // A folder stands where an output is to be written.
    fs::create_dir_all(directory.join("taken/diverted.jsonl")).unwrap();
    let error = run(Job { out: directory.join("taken"), ..Job::default() }).unwrap_err();
    assert!(error.starts_with("cannot create ") && error.contains("diverted.jsonl"), "{error}");
}

#[test]
fn arguments_are_read_strictly() {
    let parse = |arguments: &[&str]| Options::parse(arguments.iter().map(Into::into));
    let options = parse(&["--json", "some.csv", "--out", "there"]).unwrap().unwrap();
    assert!(options.json);
    assert_eq!(options.job.flights, Path::new("some.csv"));
    assert_eq!(options.job.out, Path::new("there"));
    assert!(parse(&["--help"]).unwrap().is_none());
    assert_eq!(parse(&["--jsno"]).unwrap_err(), "unknown option `--jsno`");
    assert_eq!(parse(&["--out"]).unwrap_err(), "`--out` needs a directory");
    assert_eq!(parse(&["a", "b"]).unwrap_err(), "more than one PATH");
}

#[test]
fn a_damaged_plane_is_a_line_of_its_own_file() {
    let directory = directory("planes");
    let planes = directory.join("damaged.csv");
    let header = "tailnum,year,type,manufacturer,model,engines,seats,speed,engine";
    let plane = "N708JB,2008,Fixed wing multi engine,AIRBUS,A320-232,2,200,NA,Turbo-fan";
    let content = format!("{header}\n{plane}\n{}\n\n{plane}\n", plane.replace("200", "many"));
    fs::write(&planes, content).unwrap();
    let job = Job { planes, ..job("planes", &file_of(&sample(40))) };
    let outcome = run(job.clone()).unwrap();
    let malformed = records(&job, "malformed_planes.jsonl");
    assert_eq!(malformed.len(), 2);
    assert_eq!(malformed[0]["reason"], "`seats` is no number: \"many\"");
    assert_eq!(malformed[1]["reason"], "9 columns expected, found 1");
    assert_eq!(records(&job, "duplicate_planes.jsonl").len(), 1);
    let counts = Counts::of(&outcome);
    assert_eq!((counts.matched, counts.no_flight), (1, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// From the year 1 to the year 9999.
    #[test]
    fn dates_are_read_as_they_are_written(hour in -17_259_888..70_389_528_i64) {
        let at = Timestamp::from_secs(hour * 3600);
        prop_assert_eq!(time::parse_hour(&time::format(at)), Some(at));
    }
}

#[test]
fn known_dates() {
    for (text, seconds) in [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:00:00Z", -3600),
        ("2000-02-29T12:00:00Z", 951_825_600),
        ("2013-01-01T11:00:00Z", 1_357_038_000),
        ("2100-03-01T00:00:00Z", 4_107_542_400),
    ] {
        assert_eq!(time::parse_hour(text), Some(Timestamp::from_secs(seconds)), "{text}");
        assert_eq!(time::format(Timestamp::from_secs(seconds)), text);
    }
    for text in [
        "2013-02-29T00:00:00Z",
        "2013-01-01T24:00:00Z",
        "2013-1-01T10:00:00Z",
        "+013-01-01T10:00:00Z",
    ] {
        assert_eq!(time::parse_hour(text), None, "{text}");
    }
}
