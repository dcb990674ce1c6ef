use side_output::prelude::*;

#[splitter]
#[derive(Debug)]
enum Sensors {
    #[main]
    Reading(f64),
    Broken(String),
    #[tap]
    Freezing(String),
}

#[splitter(Sensors)]
fn split_reading(degrees: f64, cx: &mut Context<Sensors>) -> Sensors {
    cx.output(Sensors::BROKEN_TAG, "cold".to_owned());
    Sensors::Reading(degrees)
}

fn main() {
    drop(split_reading(1.0, &mut Context::new()));
}
