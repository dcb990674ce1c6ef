//! What the README says is so: the messages it quotes are those of the compiler.

use std::fs;
use std::path::Path;

/// All that the compiler says about the fixtures.
fn messages() -> String {
    let mut text = String::new();
    for area in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui")).unwrap() {
        let area = area.unwrap().path();
        if !area.is_dir() {
            continue;
        }
        for file in fs::read_dir(area).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|extension| extension == "stderr") {
                text.push_str(&fs::read_to_string(file).unwrap());
            }
        }
    }
    text
}

/// The text between the backticks of a table's cell.
fn quoted(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix("``")
        .and_then(|cell| cell.strip_suffix("``"))
        .or_else(|| cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')))
        .unwrap_or_else(|| panic!("{cell} is not in backticks"))
        .trim()
}

#[test]
fn the_messages_in_the_readme_are_those_of_the_compiler() {
    let messages = messages();
    let readme = include_str!("../README.md");
    let table = readme.split_once("| mistake | message |").expect("the table of messages").1;
    let rows: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 10);
    for row in rows {
        let (_, cell) = row.trim_matches('|').rsplit_once(" | ").expect("two cells");
        let message = quoted(cell);
        assert!(messages.contains(message), "no fixture says: {message}");
    }
}

/// `.ci/run` runs exactly what the README tells to run.
#[test]
fn the_commands_of_the_readme_are_those_that_are_checked() {
    let readme = include_str!("../README.md");
    let checks = include_str!("../.ci/run");
    let commands: Vec<_> = readme
        .split("```sh\n")
        .skip(1)
        .filter_map(|block| block.split_once("\n```"))
        .map(|(command, _)| command)
        .collect();
    // The last one is the job, which CI runs without the limit of its rate.
    assert_eq!(commands.len(), 3);
    let (job, commands) = commands.split_last().expect("three commands");
    let job = job.split(" --job ").next().expect("a command");
    assert!(checks.contains(&format!("$({job} --job")), "{job} is not checked");
    for command in commands {
        assert!(checks.contains(&format!("='{command}'\n")), "{command} is not checked");
    }
}
