use side_output::prelude::*;

#[splitter]
pub enum Orders {
    FooBar(u8),
    #[allow(non_camel_case_types)]
    #[output(name = "other_bar")]
    Foo_Bar(u8),
}

fn main() {}
