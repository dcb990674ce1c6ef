//! Each misuse is a compile error that says what to do: a fixture for each, and its correct twin.
//!
//! After a change of messages: `TRYBUILD=overwrite cargo test --test ui`, then read the diff.

#[test]
fn mistakes_are_errors() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*/*.rs");
    cases.pass("tests/ui_pass/*/*.rs");
}
