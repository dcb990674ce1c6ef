//! Dates as they stand in the data, `2013-01-31T23:00:00Z`, and back.

use side_output::Timestamp;

const DAY: i64 = 86_400;

/// The instant of a date and a time of day in UTC, if there is such a date.
pub(crate) fn instant(
    year: i32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
) -> Option<Timestamp> {
    let valid = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60;
    let days = days_before_year(year)
        + (1..month).map(|month| i64::from(days_in(year, month))).sum::<i64>()
        + i64::from(day)
        - 1;
    let seconds = days * DAY + i64::from(hour) * 3600 + i64::from(minute) * 60;
    valid.then(|| Timestamp::from_secs(seconds))
}

/// Reads an instant, `2013-01-31T23:15:00Z`.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    let (hour, rest) = text.split_at_checked(13)?;
    let (minute, second) = rest.strip_prefix(':')?.strip_suffix('Z')?.split_once(':')?;
    let [year, month, day, hour] = split(hour)?;
    let (minute, second) = (digits(minute, 2)?, digits(second, 2)?);
    let at = instant(i32::try_from(year).ok()?, month, day, hour, minute)?;
    (second < 60).then(|| at.saturating_add_millis(i64::from(second) * 1000))
}

/// Reads a full hour, `2013-01-31T23:00:00Z`.
pub(crate) fn parse_hour(text: &str) -> Option<Timestamp> {
    let date = text.strip_suffix(":00:00Z")?;
    let [year, month, day, hour] = split(date)?;
    instant(i32::try_from(year).ok()?, month, day, hour, 0)
}

fn split(date: &str) -> Option<[u32; 4]> {
    let (date, hour) = date.split_once('T')?;
    let (year, rest) = date.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    Some([digits(year, 4)?, digits(month, 2)?, digits(day, 2)?, digits(hour, 2)?])
}

/// A number of so many digits, and nothing else: `parse` alone would take `+1` too.
fn digits(text: &str, count: usize) -> Option<u32> {
    let only_digits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if only_digits { text.parse().ok() } else { None }
}

/// The instant as `2013-01-31T23:00:00Z`.
pub(crate) fn format(at: Timestamp) -> String {
    let seconds = at.as_millis().div_euclid(1000);
    let (mut days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    // A guess by the mean length of a year, which is never too early.
    let mut year = i32::try_from(1971 + (days * 400).div_euclid(146_097)).unwrap_or(i32::MAX);
    while days_before_year(year) > days {
        year -= 1;
    }
    days -= days_before_year(year);
    let mut month = 1;
    while days >= i64::from(days_in(year, month)) {
        days -= i64::from(days_in(year, month));
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

/// Days from 1970-01-01 to the first day of `year`.
fn days_before_year(year: i32) -> i64 {
    let leap_days = |year: i64| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let before = i64::from(year) - 1;
    365 * (i64::from(year) - 1970) + leap_days(before) - leap_days(1969)
}

const fn days_in(year: i32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}
