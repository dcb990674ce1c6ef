use side_output::KeyContext;
use side_output::checkpoint::{MemorySource, MemoryStore};
use side_output::job::Job;
use side_output::prelude::*;

#[splitter]
enum Seen {
    First(u32),
    Again(u32),
}

#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Visits(u32);

pub fn main() {
    let _run = Job::open("visits", MemoryStore::new()).run(|job| {
        let SeenStreams { first, again } = job
            .source("visitors", MemorySource::new(vec![1, 2, 1]))
            .key_by(|visitor: &u32| *visitor)
            .uid("visits")
            .process_with(|visitor, visits: &mut Visits, _: &mut KeyContext<u32, Seen>| {
                visits.0 += 1;
                if visits.0 == 1 { Seen::First(visitor) } else { Seen::Again(visitor) }
            });
        first.discard();
        again.discard();
        Ok(())
    });
}
