//! What the benchmarks share: interleaved rounds, medians, and the table.

#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::fmt::{Debug, Write as _};
use std::fs;
use std::io::{Write as _, stdout};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};

/// One way to do the work of a [`Table`].
pub(crate) struct Contestant<R> {
    pub(crate) name: &'static str,
    run: Box<dyn Fn(usize) -> R>,
    /// Runs on a part of the records, because it is that much slower.
    part: usize,
    /// Known to lose records: its result is not compared, and the loss is shown.
    lossy: Option<fn(&R) -> u64>,
}

impl<R> Contestant<R> {
    pub(crate) fn new(name: &'static str, run: impl Fn(usize) -> R + 'static) -> Self {
        Self { name, run: Box::new(run), part: 1, lossy: None }
    }

    pub(crate) fn on_a_part(self, part: usize) -> Self {
        Self { part, ..self }
    }

    /// `count` says how many records arrived.
    pub(crate) fn lossy(self, count: fn(&R) -> u64) -> Self {
        Self { lossy: Some(count), ..self }
    }
}

/// Contestants that do the same work; the first one is the base of all ratios.
pub(crate) struct Table<R> {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) contestants: Vec<Contestant<R>>,
    /// Only times are compared, not results.
    pub(crate) unchecked: bool,
}

impl<R> Table<R> {
    pub(crate) fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about, contestants: Vec::new(), unchecked: false }
    }

    pub(crate) fn add(&mut self, contestant: Contestant<R>) {
        self.contestants.push(contestant);
    }

    pub(crate) fn run(&mut self, name: &'static str, run: impl Fn(usize) -> R + 'static) {
        self.add(Contestant::new(name, run));
    }
}

/// What the command line says.
pub(crate) struct Options {
    pub(crate) n: usize,
    pub(crate) rounds: usize,
    json: bool,
    /// Runs this contestant once and reports the peak memory of the process.
    alone: Option<(String, String)>,
    /// Runs this contestant once and reports nothing.
    once: Option<(String, String)>,
    list: bool,
    filter: Vec<String>,
}

impl Options {
    pub(crate) fn from_args(n: usize) -> Self {
        let mut options = Self {
            n,
            rounds: 7,
            json: false,
            alone: None,
            once: None,
            list: false,
            filter: Vec::new(),
        };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
            match arg.as_str() {
                "--n" => options.n = value().replace('_', "").parse().expect("a number"),
                "--rounds" => options.rounds = value().parse().expect("a number"),
                "--json" => options.json = true,
                "--list" => options.list = true,
                "--alone" => options.alone = Some((value(), value())),
                "--once" => options.once = Some((value(), value())),
                // Cargo passes it.
                "--bench" => {}
                option if option.starts_with("--") => panic!("unknown option {option}"),
                _ => options.filter.push(arg),
            }
        }
        options
    }

    fn wants(&self, table: &str, contestant: &str) -> bool {
        self.filter.is_empty()
            || self
                .filter
                .iter()
                .any(|f| table.contains(f.as_str()) || contestant.contains(f.as_str()))
    }
}

/// Times of one contestant, in nanoseconds per record.
#[derive(Default)]
struct Times {
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

/// Runs all contestants of `table` in turns and prints the table.
pub(crate) fn compete<R: PartialEq + Debug>(mut table: Table<R>, options: &Options) {
    for (asked, measure) in [(&options.alone, true), (&options.once, false)] {
        let Some((name, contestant)) = asked else { continue };
        if *name == table.name
            && let Some(found) = table.contestants.iter().find(|c| c.name == *contestant)
        {
            drop((found.run)(options.n));
            if measure {
                print(&format!("{}\n", peak_kib().unwrap_or(0)));
            }
        }
    }
    if options.alone.is_some() || options.once.is_some() {
        return;
    }
    let base = table.contestants[0].name;
    table.contestants.retain(|c| c.name == base || options.wants(table.name, c.name));
    let chosen = table.contestants.len() > 1 || options.wants(table.name, base);
    if !chosen {
        return;
    }
    if options.list {
        for contestant in &table.contestants {
            print(&format!("{}\t{}\n", table.name, contestant.name));
        }
        return;
    }

    let peaks: Vec<_> =
        table.contestants.iter().map(|c| peak_alone(table.name, c.name, options.n)).collect();
    let mut times: Vec<Times> = table.contestants.iter().map(|_| Times::default()).collect();
    let mut notes = vec![String::new(); table.contestants.len()];
    for round in 0..=options.rounds {
        let mut results: Vec<(usize, R)> = Vec::new();
        for (index, contestant) in table.contestants.iter().enumerate() {
            // The first round warms up.
            let n = if round == 0 { options.n / 10 } else { options.n } / contestant.part;
            let (cpu, start) = (cpu_nanos(), Instant::now());
            let result = (contestant.run)(n);
            let wall = start.elapsed();
            let cpu = cpu_nanos() - cpu;
            if let Some(count) = contestant.lossy {
                let lost = 1.0 - count(&result) as f64 / n as f64;
                notes[index] = format!("lost {:.0} % of the records", lost * 100.0);
            } else if !table.unchecked {
                let same = results.iter().find(|(other, _)| *other == n);
                if let Some((_, expected)) = same {
                    assert_eq!(*expected, result, "{}: a wrong result", contestant.name);
                } else {
                    results.push((n, result));
                }
            }
            if round > 0 {
                times[index].wall.push(wall.as_nanos() as f64 / n as f64);
                times[index].cpu.push(cpu as f64 / n as f64);
            }
        }
    }
    if options.json {
        json(&table, options, &times, &peaks);
    } else {
        text(&table, options, &times, &peaks, &notes);
    }
}

fn text<R>(
    table: &Table<R>,
    options: &Options,
    times: &[Times],
    peaks: &[Option<u64>],
    notes: &[String],
) {
    let mut out = format!(
        "\n## {}: {}\n\n{} records, {} interleaved rounds\n\n",
        table.name, table.about, options.n, options.rounds
    );
    out.push_str(
        "| contestant | ns/record | CPU ns/record | ratio | CPU ratio | peak MiB | |\n\
         | :--- | ---: | ---: | ---: | ---: | ---: | :--- |\n",
    );
    for (index, contestant) in table.contestants.iter().enumerate() {
        let peak =
            peaks[index].map_or_else(String::new, |kib| format!("{:.1}", kib as f64 / 1024.0));
        writeln!(
            out,
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {peak} | {} |",
            contestant.name,
            median(&times[index].wall),
            median(&times[index].cpu),
            ratio(&times[index].wall, &times[0].wall),
            ratio(&times[index].cpu, &times[0].cpu),
            notes[index],
        )
        .expect("writing to a string");
    }
    print(&out);
}

fn json<R>(table: &Table<R>, options: &Options, times: &[Times], peaks: &[Option<u64>]) {
    for (index, contestant) in table.contestants.iter().enumerate() {
        let line = serde_json::json!({
            "table": table.name,
            "contestant": contestant.name,
            "records": options.n / contestant.part,
            "rounds": options.rounds,
            "ns_per_record": median(&times[index].wall),
            "cpu_ns_per_record": median(&times[index].cpu),
            "ratio": ratio(&times[index].wall, &times[0].wall),
            "cpu_ratio": ratio(&times[index].cpu, &times[0].cpu),
            "peak_kib": peaks[index],
        });
        print(&format!("{line}\n"));
    }
}

fn print(text: &str) {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).expect("standard output is open");
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// Median of the ratios within each round: what disturbs a round disturbs both sides.
fn ratio(values: &[f64], base: &[f64]) -> f64 {
    median(&values.iter().zip(base).map(|(value, base)| value / base).collect::<Vec<_>>())
}

/// CPU time of the process, where the system tells; zero elsewhere.
#[cfg(unix)]
fn cpu_nanos() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec.unsigned_abs() * 1_000_000_000 + used.tv_nsec.unsigned_abs()
}

#[cfg(not(unix))]
const fn cpu_nanos() -> u64 {
    0
}

/// Most memory that this process ever had, in KiB, where the system tells.
fn peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Peak memory of a process that runs this contestant alone: within one process, what one
/// contestant frees the next one gets.
fn peak_alone(table: &str, contestant: &str, n: usize) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let n = (n / 10).to_string();
    let output =
        Command::new(program).args(["--alone", table, contestant, "--n", &n]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok().filter(|kib| *kib > 0)
}

/// One thread.
pub(crate) fn one_thread() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_current_thread().build().expect("a runtime"))
}

/// Two worker threads, which live as long as the process: their CPU time can be read at any time.
pub(crate) fn two_threads() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME
        .get_or_init(|| Builder::new_multi_thread().worker_threads(2).build().expect("a runtime"))
}

#[inline]
pub(crate) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number of a table that is gone through again: another one in each round.
#[inline]
pub(crate) const fn again(random: u64, round: usize) -> u64 {
    random ^ (round as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
