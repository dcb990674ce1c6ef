use side_output::checkpoint::{MemorySource, MemoryStore};
use side_output::job::Job;

pub fn main() {
    let _run = Job::open("numbers", MemoryStore::new()).run(|job| {
        let numbers = job.source("numbers", MemorySource::new(vec![1, 2, 3]));
        job.sink("numbers", numbers, side_output::checkpoint::MemorySink::new());
        Ok(())
    });
}
