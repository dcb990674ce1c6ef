use super::Timestamp;
use std::fmt;

const DAY: i64 = 86_400_000;

/// An instant as text: `2013-01-31T14:05:00Z`, with milliseconds where there are some.
pub(super) struct Rfc3339 {
    year: i64,
    month: i64,
    day: i64,
    millis: i64,
}

impl Rfc3339 {
    /// `None` outside of the years 0 to 9999, for which the format has no text.
    pub(super) fn new(at: Timestamp) -> Option<Self> {
        let (days, millis) = (at.as_millis().div_euclid(DAY), at.as_millis().rem_euclid(DAY));
        // Years begin in March here, so that a leap day is the last of its year, and eras of 400 years
        // are all alike. Day 0 of the calendar is 719,468 days before that of the epoch.
        let days = days + 719_468;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        // Months of 31 and 30 days in turns, five of which have 153.
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        let year = era * 400 + year + next;
        (0..=9999).contains(&year).then_some(Self { year, month, day, millis })
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, millis } = self;
        let (seconds, millis) = (millis / 1000, millis % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if millis > 0 {
            write!(f, ".{millis:03}")?;
        }
        f.write_str("Z")
    }
}
