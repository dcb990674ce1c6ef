//! Each misuse is a compile error that says what to do: a fixture for each.
//!
//! `ui_pass.rs` compiles their correct twins.
//!
//! After a change of messages: `TRYBUILD=overwrite cargo test --all-features --test ui`, then read the diff.

#[test]
fn mistakes_are_errors() {
    let cases = trybuild::TestCases::new();
    for topic in ["declare", "keyed", "read", "split", "window", "wire"] {
        cases.compile_fail(format!("tests/ui/{topic}/*.rs"));
    }
    #[cfg(feature = "job")]
    cases.compile_fail("tests/ui/job/*.rs");
}
