use side_output::prelude::*;

#[splitter]
pub enum Orders {}

fn main() {}
