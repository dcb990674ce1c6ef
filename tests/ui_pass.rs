//! The correct twin of each fixture in `tests/ui`: what the message says to do, done.
//!
//! They are modules of one crate, so that all of them compile in one go.

#![allow(
    dead_code,
    clippy::all,
    clippy::pedantic,
    missing_debug_implementations,
    unreachable_pub,
    unnameable_types,
    clippy::allow_attributes_without_reason,
    reason = "the fixtures are as short as their mistakes"
)]

#[path = "ui_pass/declare"]
mod declare {
    mod capacity_out_of_range;
    mod companions_hidden;
    mod conditional_main;
    mod main_and_tap;
    mod misplaced_option;
    mod name_not_snake_case;
    mod name_taken_by_run;
    mod no_implicit_prelude;
    mod no_outputs;
    mod not_an_enum;
    mod one_mistake_one_message;
    mod payload_without_fields;
    mod repeated_option;
    mod same_field;
    mod same_name;
    mod same_tag;
    mod same_type;
    mod two_main;
    mod unbounded_with_capacity;
    mod unknown_option;
    mod unknown_overflow;
    mod unknown_splitter_option;
}

#[path = "ui_pass/keyed"]
mod keyed {
    mod config_is_read_only;
    mod key_of_another_type;
    mod keyed_function_without_key;
    mod timer_without_key;
}

#[path = "ui_pass/read"]
mod read {
    mod boxed_missing;
    mod deprecated_output;
    mod foreign_tag;
    mod output_left_out;
    mod route_where_payloads_differ;
    mod stream_taken_twice;
    mod timeout_without_timer;
    mod unknown_tag;
}

#[path = "ui_pass/split"]
mod split {
    mod async_function;
    mod closure_evaluates_to_unit;
    mod closure_of_enum_without_splitter;
    mod context_replaced;
    mod enum_not_named;
    mod enum_without_splitter;
    mod exclusive_output_emitted;
    mod foreign_tag_emitted;
    mod forgotten_return;
    mod forgotten_return_behind_drop;
    mod forgotten_return_behind_let_underscore;
    mod forgotten_return_behind_map;
    mod forgotten_return_in_async_block;
    mod forgotten_return_in_closure;
    mod forgotten_return_in_if;
    mod forgotten_return_in_match_arm;
    mod forgotten_return_in_method;
    mod forgotten_return_in_vec;
    mod forgotten_return_of_a_helper;
    mod forgotten_return_of_a_moved_record;
    mod forgotten_return_of_a_variable;
    mod forgotten_return_of_an_imported_variant;
    mod forgotten_return_of_an_option;
    mod path_routes_nothing;
    mod returns_nothing;
    mod undeclared_variant;
    mod wrong_payload;
    mod wrong_return_type;
    mod wrong_tap_payload;
}

#[path = "ui_pass/window"]
mod window {
    mod late_not_routed;
    mod late_undecided;
    mod late_undecided_process;
    mod trigger_does_not_merge;
}

#[path = "ui_pass/wire"]
mod wire {
    mod error_is_no_error;
    mod not_a_destination;
    mod output_not_wired;
    mod output_wired_twice;
    mod sink_of_another_type;
    mod two_outputs_not_wired;
    mod unknown_output;
    mod vec_by_value;
    mod wiring_left_alone;
}

#[cfg(feature = "job")]
#[path = "ui_pass/job"]
mod job {
    mod key_that_cannot_be_saved;
    mod sink_that_is_none;
    mod state_that_cannot_be_saved;
}

#[test]
fn every_fixture_has_a_twin() {
    let listed = include_str!("ui_pass.rs");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut count = 0;
    for area in std::fs::read_dir(root.join("ui")).unwrap() {
        for fixture in std::fs::read_dir(area.unwrap().path()).unwrap() {
            let path = fixture.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let twin = path.strip_prefix(root.join("ui")).unwrap();
                assert!(root.join("ui_pass").join(twin).exists(), "{} has no twin", twin.display());
                let twin = twin.to_str().unwrap().replace('\\', "/");
                let (_, name) = twin.trim_end_matches(".rs").rsplit_once('/').unwrap();
                assert!(listed.contains(&format!("mod {name};")), "{twin} is not listed here");
                count += 1;
            }
        }
    }
    assert!(count > 40, "only {count} fixtures");
}

/// The table of compile errors shows messages that exist.
#[test]
fn the_table_of_compile_errors_is_true() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut messages = String::new();
    for area in std::fs::read_dir(root.join("tests/ui")).unwrap() {
        for fixture in std::fs::read_dir(area.unwrap().path()).unwrap() {
            let path = fixture.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "stderr") {
                messages += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    // rustc's own messages are shortened in the table, and positions differ.
    let rustc =
        ["mismatched types", "`{closure@", "`if` may be missing", "no variant", "there is a"];
    let table = include_str!("../docs/compile-errors.md");
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with('|')).skip(2).collect();
    assert!(rows.len() > 10, "only {} rows", rows.len());
    for row in rows {
        let said = row.rsplit(" | ").next().unwrap().trim_end_matches(" |");
        for line in said.split("<br>") {
            let line = line.replace("Invalid(order);`", "Invalid(…);`");
            assert!(
                messages.contains(&line) || rustc.iter().any(|start| line.starts_with(start)),
                "no fixture says: {line}"
            );
        }
    }
}
