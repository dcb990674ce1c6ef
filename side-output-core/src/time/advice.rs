use super::Timestamp;
use super::timestamp::saturating_millis;
use std::fmt;
use std::time::Duration;

/// How far behind the records of a stream came; made by
/// [`Watermarks::advise`](super::Watermarks::advise).
///
/// # Examples
///
/// ```
/// use side_output::{Timestamp, Tumbling, Watermarks};
/// use std::time::Duration;
///
/// let seconds = [1, 2, 9, 3, 10, 8, 11, 12, 13, 14];
/// let advice = Watermarks::advise(seconds.map(Timestamp::from_secs));
/// assert_eq!(advice.records(), 10);
/// assert_eq!(advice.out_of_order(), 2);
/// // Nine records in ten come at most two seconds behind; one came six seconds behind.
/// assert_eq!(advice.percentile(0.9), Duration::from_secs(2));
/// assert_eq!(advice.percentile(1.0), Duration::from_secs(6));
/// // With a bound of two seconds, that one can be late.
/// assert_eq!(advice.late(Duration::from_secs(2), Duration::ZERO), 1);
/// // A window of five seconds had closed for it.
/// let window = Tumbling::of(Duration::from_secs(5));
/// assert_eq!(advice.lost(window, Duration::from_secs(2), Duration::ZERO), 1);
/// assert_eq!(advice.lost(window, Duration::from_secs(2), Duration::from_secs(4)), 0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Advice {
    records: usize,
    /// Records without a timestamp.
    unstamped: usize,
    /// Of each record behind the highest timestamp before it: its own, and how far, ascending.
    behind: Vec<(i64, Timestamp)>,
}

impl FromIterator<Timestamp> for Advice {
    fn from_iter<It: IntoIterator<Item = Timestamp>>(timestamps: It) -> Self {
        let mut advice = Self::default();
        let mut highest = Timestamp::MIN;
        for at in timestamps {
            advice.records += 1;
            if at == Timestamp::MIN {
                advice.unstamped += 1;
            } else if at < highest {
                advice.behind.push((highest.millis_since(at), at));
            }
            highest = highest.max(at);
        }
        advice.behind.sort_unstable();
        advice
    }
}

impl Advice {
    /// How many records there were.
    #[must_use]
    pub const fn records(&self) -> usize {
        self.records
    }

    /// How many had no timestamp.
    #[must_use]
    pub const fn without_timestamp(&self) -> usize {
        self.unstamped
    }

    /// How many came behind a higher timestamp.
    #[must_use]
    pub const fn out_of_order(&self) -> usize {
        self.behind.len()
    }

    /// How far behind the highest timestamp so far records came, so that `share` of all records
    /// (0.0 to 1.0) came no further behind: the bound that would have been enough for them.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Duration {
        let stamped = self.records - self.unstamped;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a rank below the number of records, exact up to 2^53 of them"
        )]
        let rank = (share.clamp(0.0, 1.0) * stamped as f64).ceil() as usize;
        let in_order = stamped - self.behind.len();
        match rank.checked_sub(in_order + 1) {
            Some(index) => self.behind.get(index).map_or(Duration::ZERO, |(by, _)| millis(*by)),
            None => Duration::ZERO,
        }
    }

    /// How many records would have come more than `lateness` behind the watermark of `bound`:
    /// no window, however short, loses more.
    #[must_use]
    pub fn late(&self, bound: Duration, lateness: Duration) -> usize {
        let enough = saturating_millis(bound).saturating_add(saturating_millis(lateness));
        self.behind.len() - self.behind.partition_point(|(by, _)| *by <= enough)
    }

    /// The records that came behind: how far, in milliseconds, and their timestamps.
    pub(crate) fn behind(&self) -> &[(i64, Timestamp)] {
        &self.behind
    }
}

fn millis(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

impl fmt::Display for Advice {
    /// A table: how far behind records came, and how many a bound of that length would leave late.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} records, {} behind a higher timestamp", self.records, self.behind.len())?;
        if self.unstamped > 0 {
            writeln!(f, "{} without a timestamp", self.unstamped)?;
        }
        write!(f, "{:>8}  {:>16}  {:>10}", "share", "at most behind", "late then")?;
        for share in [0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
            let bound = self.percentile(share);
            let late = self.late(bound, Duration::ZERO);
            write!(f, "\n{:>7.1}%  {:>16}  {late:>10}", share * 100.0, format!("{bound:?}"))?;
        }
        Ok(())
    }
}
