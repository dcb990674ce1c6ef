//! The `#[splitter]` attribute of `side-output`.
