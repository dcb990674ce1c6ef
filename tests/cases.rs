//! The table of cases, `tests/CASES.md`, says the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The ids: a prefix, and how many there are.
const AREAS: [(&str, usize); 11] = [
    ("SPLIT", 16),
    ("MACRO", 19),
    ("TIME", 16),
    ("WIN", 12),
    ("KEY", 9),
    ("JOIN", 8),
    ("FLOW", 17),
    ("SINK", 14),
    ("DATA", 9),
    ("FAULT", 47),
    ("API", 15),
];

fn ids() -> Vec<String> {
    let area = |(prefix, count)| (1..=count).map(move |number| format!("{prefix}-{number:02}"));
    AREAS.into_iter().flat_map(area).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A row of the table.
struct Row {
    tests: Vec<String>,
    remark: String,
}

/// The rows by id; an id that stands there twice is an error.
fn table() -> BTreeMap<String, Row> {
    let text = fs::read_to_string(root().join("tests/CASES.md")).unwrap();
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [id, tests, remark] = cells[..] else { panic!("three columns: {line}") };
        if id == "case" || id.starts_with("---") {
            continue;
        }
        let tests = tests.split("<br>").filter(|test| !test.is_empty());
        let tests = tests.map(|test| test.trim_matches('`').to_owned()).collect();
        let row = Row { tests, remark: remark.to_owned() };
        assert!(rows.insert(id.to_owned(), row).is_none(), "{id} is in the table twice");
    }
    rows
}

/// The names of the test functions of a file.
fn tests_in(file: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_test = false;
    for line in fs::read_to_string(file).unwrap().lines().map(str::trim) {
        let attribute = line.starts_with("#[") && line.ends_with(']');
        if attribute && (line.contains("test]") || line.starts_with("#[tokio::test")) {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ") {
            // The macro of property tests writes the attribute as ordinary tests do.
            let name = rest.split(['(', '<']).next().unwrap_or(rest);
            if std::mem::take(&mut is_test) {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

#[test]
fn every_case_is_in_the_table_once() {
    let ids = ids();
    assert_eq!(ids.len(), 182);
    let rows = table();
    let missing: Vec<_> = ids.iter().filter(|id| !rows.contains_key(*id)).collect();
    let unknown: Vec<_> = rows.keys().filter(|id| !ids.contains(id)).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing {missing:?}, unknown {unknown:?}");
}

#[test]
fn every_case_has_a_test_or_says_what_it_waits_for() {
    for (id, row) in table() {
        let waits = row.remark.starts_with("waits for ");
        assert!(row.tests.is_empty() == waits, "{id}: {:?}, {:?}", row.tests, row.remark);
    }
}

#[test]
fn every_test_in_the_table_exists() {
    for (id, row) in table() {
        for test in &row.tests {
            let (file, name) = match test.split_once("::") {
                Some((file, name)) => (file, Some(name)),
                None => (test.as_str(), None),
            };
            let path = root().join(file);
            assert!(path.is_file(), "{id}: there is no file {file}");
            if let Some(name) = name {
                assert!(tests_in(&path).contains(name), "{id}: there is no test {name} in {file}");
            } else {
                let fixture = file.starts_with("tests/ui/") || file.starts_with("tests/ui_pass/");
                assert!(fixture, "{id}: {file} is no fixture; which test of it?");
            }
        }
    }
}

#[test]
fn every_test_of_a_case_is_in_the_table() {
    let listed: BTreeSet<_> = table().into_values().flat_map(|row| row.tests).collect();
    let prefixes: Vec<_> =
        AREAS.iter().map(|(prefix, _)| format!("{}_", prefix.to_lowercase())).collect();
    let is_of_a_case = |name: &str| {
        prefixes.iter().any(|prefix| {
            let number = name.strip_prefix(prefix.as_str()).and_then(|rest| rest.get(..2));
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    for entry in fs::read_dir(root().join("tests")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let file = format!("tests/{}", path.file_name().unwrap().display());
        for name in tests_in(&path).into_iter().filter(|name| is_of_a_case(name)) {
            let test = format!("{file}::{name}");
            assert!(listed.contains(&test), "tests/CASES.md does not have {test}");
        }
    }
}
