//! The direction of dependencies within core: a layer knows those below it, and nothing above.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each layer with the modules that it may name, itself included. `error` and `sync` belong to all.
const MAY_NAME: [(&str, &[&str]); 7] = [
    ("time", &["time"]),
    ("output", &["output", "time"]),
    ("state", &["state", "time"]),
    ("window", &["window", "output", "time"]),
    ("operator", &["operator", "window", "state", "output", "time"]),
    ("checkpoint", &["checkpoint", "state", "output", "time"]),
    ("stream", &["stream", "checkpoint", "operator", "window", "state", "output", "time"]),
];

/// The crates that only the runtime may name.
const RUNTIME_CRATES: [&str; 3] = ["futures_core", "futures_sink", "futures"];

fn sources(path: &Path, into: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            sources(&entry.unwrap().path(), into);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        into.push(path.to_owned());
    }
}

/// The code of a file: without comments and documentation, and without its unit tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The modules of this crate that are named in `code`, in paths and in nested imports.
fn named(code: &str) -> BTreeSet<String> {
    let identifier = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut modules = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        if let Some(group) = after.strip_prefix('{') {
            let (mut depth, mut start) = (0, true);
            for (index, c) in group.char_indices() {
                if start && depth == 0 {
                    modules.insert(identifier(&group[index..]));
                    start = false;
                }
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => start = true,
                    _ => {}
                }
            }
        } else {
            modules.insert(identifier(after));
        }
    }
    modules
}

#[test]
fn no_layer_knows_one_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let layers: BTreeSet<_> = MAY_NAME.iter().map(|(layer, _)| *layer).collect();
    let mut read = 0;
    for (layer, may_name) in MAY_NAME {
        let mut files = vec![root.join(format!("{layer}.rs"))];
        sources(&root.join(layer), &mut files);
        for file in files {
            read += 1;
            let code = code(&file);
            for module in named(&code).iter().filter(|module| layers.contains(module.as_str())) {
                assert!(
                    may_name.contains(&module.as_str()),
                    "{}: `{layer}` names `{module}`",
                    file.display(),
                );
            }
            for name in RUNTIME_CRATES.iter().filter(|_| layer != "stream") {
                assert!(!code.contains(name), "{}: `{layer}` names `{name}`", file.display());
            }
        }
    }
    assert!(read > 80, "only {read} files were read");
}

#[test]
fn imports_are_found_however_they_are_written() {
    let names = |code| named(code).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(names("use crate::stream::{Hub, Port};"), "stream");
    assert_eq!(names("use crate::{time::{Mark, Timestamp}, window};"), "time window");
    assert_eq!(names("fn f(_: crate::output::Tag) {}"), "output");
}
