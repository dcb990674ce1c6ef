use futures::stream;
use side_output::prelude::*;

#[splitter]
#[derive(Debug)]
enum Orders {
    #[main]
    Valid(u32),
    Invalid(String),
}

struct Rules {
    longest: usize,
}

impl Rules {
    #[splitter(Orders)]
    fn split(&self, order: &str) -> Orders {
        if order.len() > self.longest {
            return Orders::Invalid(order.to_owned());
        }
        Orders::Valid(0)
    }
}

fn main() {
    let rules = Rules { longest: 3 };
    let split = move |order| rules.split(order);
    drop(stream::iter(["1", "x"]).split_with(split));
}
