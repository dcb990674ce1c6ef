//! The hours as a table, `hourly.csv`, and as a picture, `hourly.html`.

use super::hourly::{Hour, Hours};
use super::time;
use side_output::Timestamp;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const HOUR: i64 = 3_600_000;

/// Pixels of an hour.
const STEP: i64 = 2;
const LEFT: i64 = 48;
const RIGHT: i64 = 16;

/// Where the panels are, and how high.
const FLIGHTS: Panel = Panel { top: 34, height: 230 };
const DELAYS: Panel = Panel { top: 334, height: 190 };
const BOTTOM: i64 = 560;

/// Writes both into `out`.
pub(crate) fn write(out: &Path, hours: &Hours) -> Result<(), String> {
    write_file(&out.join("hourly.csv"), &csv(hours))?;
    write_file(&out.join("hourly.html"), &html(hours))
}

fn write_file(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn csv(hours: &Hours) -> String {
    let mut csv = String::from(
        "hour,origin,flights,total_dep_delay,mean_dep_delay,flights_on_time,late_updates\n",
    );
    for (start, origin, hour) in hours.iter() {
        let Hour { total, on_time, late_updates } = hour;
        let (flights, delay) = (total.flights, total.dep_delay);
        let mean = mean(delay, flights);
        let on_time = on_time.map_or(0, |total| total.flights);
        let hour = time::format(start);
        line(
            &mut csv,
            format_args!("{hour},{origin},{flights},{delay},{mean:.1},{on_time},{late_updates}"),
        );
    }
    csv
}

/// An hour over all airports.
#[derive(Clone, Copy, Debug, Default)]
struct Bar {
    flights: u64,
    /// Counted in the results at the end of the hour.
    on_time: u64,
    dep_delay: i64,
    late_updates: u64,
}

impl Bar {
    fn mean(&self) -> f64 {
        mean(self.dep_delay, self.flights)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean with one decimal")]
fn mean(sum: i64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

fn bars(hours: &Hours) -> BTreeMap<i64, Bar> {
    let mut bars: BTreeMap<i64, Bar> = BTreeMap::new();
    for (start, _, hour) in hours.iter() {
        let bar = bars.entry(start.as_millis()).or_default();
        bar.flights += hour.total.flights;
        bar.on_time += hour.on_time.map_or(0, |total| total.flights);
        bar.dep_delay += hour.total.dep_delay;
        bar.late_updates += hour.late_updates;
    }
    bars
}

#[derive(Clone, Copy)]
struct Panel {
    top: i64,
    height: i64,
}

impl Panel {
    const fn bottom(self) -> i64 {
        self.top + self.height
    }
}

/// Where an hour and its numbers are in the picture.
struct Scale {
    first: i64,
    width: i64,
    flights: i64,
    delay: f64,
}

impl Scale {
    fn of(bars: &BTreeMap<i64, Bar>) -> Self {
        let first = bars.keys().next().copied().unwrap_or_default();
        let last = bars.keys().next_back().copied().unwrap_or_default();
        let flights = bars.values().map(|bar| bar.flights).max().unwrap_or(0).max(1);
        let delay = bars.values().map(Bar::mean).fold(1.0, f64::max);
        Self {
            first,
            // A file may hold two hours that are centuries apart; the picture stops somewhere.
            width: ((last - first) / HOUR + 1).min(20_000) * STEP,
            flights: i64::try_from(flights).unwrap_or(i64::MAX),
            delay,
        }
    }

    fn x(&self, start: i64) -> i64 {
        LEFT + ((start - self.first) / HOUR * STEP).min(self.width)
    }

    fn flights(&self, flights: u64) -> i64 {
        FLIGHTS.height * i64::try_from(flights).unwrap_or(i64::MAX) / self.flights
    }

    #[expect(clippy::cast_precision_loss, reason = "a few hundred pixels")]
    fn delay(&self, mean: f64) -> f64 {
        let height = DELAYS.height as f64;
        (DELAYS.bottom() as f64 - height * mean / self.delay).min(DELAYS.bottom() as f64 + 12.0)
    }
}

fn html(hours: &Hours) -> String {
    let bars = bars(hours);
    let scale = Scale::of(&bars);
    let width = LEFT + scale.width + RIGHT;
    let mut page = String::from(HEAD);
    let (flights, windows) = (hours.flights(), hours.len());
    let (updates, late) = (hours.late_updates(), hours.late());
    let mean = mean(hours.dep_delay(), flights);
    line(
        &mut page,
        format_args!(
            "<p>{flights} flights in {windows} windows of an airport's hour; \
             {mean:.1} minutes of departure delay on average. {updates} late updates; {late} \
             flights came when even those were over, and are not shown.</p>\n\
             <p><i class=\"on-time\"></i> counted at the end of the hour \
             <i class=\"update\"></i> added by late updates \
             <i class=\"mean\"></i> mean departure delay</p>\n\
             <div><svg viewBox=\"0 0 {width} {BOTTOM}\" width=\"{width}\" height=\"{BOTTOM}\" \
             role=\"img\" aria-label=\"Flights and mean departure delay by hour\">"
        ),
    );
    days(&mut page, &scale);
    axes(&mut page, &scale);
    line(&mut page, format_args!("<g>"));
    for (start, bar) in &bars {
        hour(&mut page, &scale, *start, bar);
    }
    line(&mut page, format_args!("</g>"));
    delays(&mut page, &scale, &bars);
    page.push_str("</svg></div>\n");
    page
}

/// A line at each midnight, in UTC as the hours are.
fn days(page: &mut String, scale: &Scale) {
    let days = scale.width / STEP / 24 + 1;
    let midnight = scale.first.div_euclid(24 * HOUR) * 24 * HOUR;
    for day in 0..=days {
        let start = midnight + day * 24 * HOUR;
        if start < scale.first || scale.x(start) >= LEFT + scale.width {
            continue;
        }
        let x = scale.x(start);
        let date = time::format(Timestamp::from_millis(start));
        let date = date.get(5..10).unwrap_or_default();
        let (top, bottom) = (FLIGHTS.top, DELAYS.bottom());
        line(
            page,
            format_args!(
                "<path class=\"day\" d=\"M{x} {top}V{bottom}\"/>\
                 <text x=\"{x}\" y=\"{}\">{date}</text>",
                DELAYS.bottom() + 26
            ),
        );
    }
}

fn axes(page: &mut String, scale: &Scale) {
    let right = LEFT + scale.width;
    for (panel, title, highest) in [
        (FLIGHTS, "flights per hour", scale.flights.to_string()),
        (DELAYS, "mean departure delay per hour, minutes", format!("{:.0}", scale.delay)),
    ] {
        let (top, bottom) = (panel.top, panel.bottom());
        line(
            page,
            format_args!(
                "<text x=\"{LEFT}\" y=\"{}\" class=\"title\">{title}</text>\
                 <path class=\"axis\" d=\"M{LEFT} {top}V{bottom}H{right}\"/>\
                 <text x=\"{}\" y=\"{}\" class=\"value\">{highest}</text>\
                 <text x=\"{}\" y=\"{bottom}\" class=\"value\">0</text>",
                top - 12,
                LEFT - 6,
                top + 8,
                LEFT - 6
            ),
        );
    }
}

/// The bar of an hour: what was counted in time at the bottom, what came late on top.
fn hour(page: &mut String, scale: &Scale, start: i64, bar: &Bar) {
    let Bar { flights, on_time, late_updates, .. } = *bar;
    let x = scale.x(start);
    let (full, low) = (scale.flights(flights), scale.flights(on_time));
    let title = time::format(Timestamp::from_millis(start));
    let mean = bar.mean();
    line(
        page,
        format_args!(
            "<g><title>{title}: {flights} flights, {on_time} of them in time, {late_updates} late \
             updates, {mean:.1} min</title>\
             <rect class=\"on-time\" x=\"{x}\" y=\"{}\" width=\"{STEP}\" height=\"{low}\"/>\
             <rect class=\"update\" x=\"{x}\" y=\"{}\" width=\"{STEP}\" height=\"{}\"/></g>",
            FLIGHTS.bottom() - low,
            FLIGHTS.bottom() - full,
            full - low
        ),
    );
}

/// The delays as one line for each stretch of hours that had flights: nights have none.
fn delays(page: &mut String, scale: &Scale, bars: &BTreeMap<i64, Bar>) {
    let mut path = String::new();
    let mut previous = None;
    for (start, bar) in bars {
        let command = if previous == Some(start - HOUR) { 'L' } else { 'M' };
        let (x, y) = (scale.x(*start) + STEP / 2, scale.delay(bar.mean()));
        append(&mut path, format_args!("{command}{x} {y:.1}"));
        previous = Some(*start);
    }
    line(page, format_args!("<path class=\"mean\" d=\"{path}\"/>"));
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    append(text, arguments);
    text.push('\n');
}

fn append(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a string takes all that is written to it");
}

const HEAD: &str = r#"<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Flights by hour</title>
<style>
:root { color-scheme: light dark; --ink: light-dark(#222, #ddd); --line: light-dark(#ddd, #444);
  --on-time: light-dark(#4a7ab5, #6f9fd8); --update: light-dark(#e08a1e, #f0a848);
  --mean: light-dark(#b03a48, #e8707e); }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); margin: 24px; }
h1 { font-size: 22px; }
p { max-width: 70ch; }
div { overflow-x: auto; }
i { display: inline-block; width: 12px; height: 12px; margin: 0 4px 0 12px; }
i.on-time { background: var(--on-time); margin-left: 0; }
i.update { background: var(--update); }
i.mean { background: var(--mean); height: 3px; vertical-align: middle; }
text { font-size: 12px; fill: var(--ink); text-anchor: start; }
text.title { font-weight: 600; }
text.value { text-anchor: end; }
rect.on-time { fill: var(--on-time); }
rect.update { fill: var(--update); }
path { fill: none; stroke: var(--line); }
path.mean { stroke: var(--mean); stroke-width: 1.5; stroke-linejoin: round; }
path.axis { stroke: var(--ink); }
</style>
<h1>Flights from New York by hour of scheduled departure, UTC</h1>
"#;
