use side_output::prelude::*;

#[splitter]
pub enum Orders {
    FooBar(u8),
    #[allow(non_camel_case_types)]
    Foo_Bar(u8),
}

fn main() {}
