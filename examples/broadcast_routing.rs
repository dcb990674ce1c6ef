//! A stream of JSON configurations decides which output takes the orders of a country.
//!
//! An output that does not exist is an error when the configuration is parsed, not when the first
//! order meets it, and the configuration before stays in force.

use futures::executor::block_on;
use futures::stream;
use side_output::prelude::*;
use side_output::{BroadcastContext, BroadcastProcess, Configuration};
use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Write};

/// All payloads have one type, so there is `OrdersTag::route`.
#[splitter]
enum Orders {
    #[main]
    Standard(String),
    Express(String),
    Review(String),
    /// What is wrong with a configuration.
    BadConfig(String),
}

/// Which output takes the orders of a country.
type Rules = HashMap<String, OrdersTag>;

struct RouteByCountry;

impl BroadcastProcess for RouteByCountry {
    type In = (&'static str, u32);
    type Update = &'static str;
    type Config = Rules;
    type Out = Orders;

    fn on_record(
        &mut self,
        (country, number): (&'static str, u32),
        rules: &Rules,
        cx: &mut BroadcastContext<Orders>,
    ) -> impl Routes<Orders> {
        let tag = rules.get(country).copied().unwrap_or(OrdersTag::Standard);
        tag.route(format!("order {number} ({country}), by configuration {}", cx.config_version()))
    }

    fn on_update(
        &mut self,
        json: &'static str,
        rules: &mut Configuration<Rules>,
        _cx: &mut Context<Orders>,
    ) -> impl Routes<Orders> {
        match serde_json::from_str(json) {
            Ok(parsed) => {
                rules.replace(parsed);
                None
            }
            Err(error) => Some(Orders::BadConfig(error.to_string())),
        }
    }

    /// Orders for which there never was a configuration.
    fn on_unconfigured(
        &mut self,
        (country, number): (&'static str, u32),
        _cx: &mut Context<Orders>,
    ) -> impl Routes<Orders> {
        Orders::Review(format!("order {number} ({country}), without a configuration"))
    }
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let orders = [("DE", 1), ("US", 2), ("FR", 3), ("BR", 4)];
    let configurations = [
        r#"{"US": "review"}"#,
        r#"{"US": "express", "FR": "review"}"#,
        r#"{"US": "expres"}"#, // No such output.
    ];
    let lists: &mut [Vec<String>; 4] = &mut Default::default();
    let [standard, express, review, bad_config] = lists;
    block_on(
        DataStream::from_stream(stream::iter(orders))
            .connect_broadcast(DataStream::from_stream(stream::iter(configurations)))
            .config_first()
            .process(RouteByCountry)
            .wire()
            .standard(standard)
            .express(express)
            .review(review)
            .bad_config(bad_config)
            .run(),
    )?;
    for (tag, texts) in OrdersTag::ALL.iter().zip(lists) {
        for text in texts {
            writeln!(out, "{:<11} {text}", tag.name())?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}
