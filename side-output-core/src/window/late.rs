use super::Window;
use crate::time::Timestamp;
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

/// A record that came after its windows were gone, and why it is late.
///
/// # Examples
///
/// ```
/// use side_output::{Late, LateWindows, Timestamp, Window};
/// use std::time::Duration;
///
/// let at = Timestamp::from_millis;
/// let windows = LateWindows::from(Window::new(at(0), at(100)));
/// let late = Late { value: 'x', timestamp: at(40), watermark: at(1000), windows };
/// assert_eq!(late.behind(), Duration::from_millis(960));
/// assert_eq!(late.since_end(), Some(Duration::from_millis(901)));
/// assert_eq!(
///     late.to_string(),
///     "at 40 (1970-01-01T00:00:00.040Z), 960 ms behind the watermark 1000 (1970-01-01T00:00:01Z); \
///      window [0, 100) (1970-01-01T00:00:00Z to 1970-01-01T00:00:00.100Z) \
///      had been complete for 901 ms",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late<T> {
    /// The record, as it came.
    pub value: T,
    /// Its timestamp; [`Timestamp::MIN`] if it has none, which no window can take.
    pub timestamp: Timestamp,
    /// The watermark when it came.
    pub watermark: Timestamp,
    /// The windows it would have belonged to. None if it fell into a gap between windows.
    pub windows: LateWindows,
}

impl<T> Late<T> {
    /// How far its timestamp was behind the watermark.
    #[must_use]
    pub fn behind(&self) -> Duration {
        millis(self.watermark.millis_since(self.timestamp))
    }

    /// How long ago, in watermarks, the last of its windows had been complete; the allowed
    /// lateness would have had to be longer than this. `None` if it had no window.
    #[must_use]
    pub fn since_end(&self) -> Option<Duration> {
        let last = self.windows.iter().max()?.max_timestamp();
        Some(millis(self.watermark.millis_since(last)))
    }
}

fn millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

impl<T> fmt::Display for Late<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.timestamp == Timestamp::MIN {
            return f.write_str("without a timestamp; `assign_timestamps` gives it one");
        }
        let (at, watermark) = (self.timestamp, self.watermark);
        write!(f, "at {at}, {} ms behind the watermark {watermark}; ", self.behind().as_millis())?;
        let Some(since) = self.since_end() else {
            return f.write_str("in a gap between windows");
        };
        f.write_str(if self.windows.len() == 1 { "window " } else { "windows " })?;
        for (index, window) in self.windows.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{window}")?;
            let times = (window.start().to_rfc3339(), window.end().to_rfc3339());
            if let (Some(start), Some(end)) = times {
                write!(f, " ({start} to {end})")?;
            }
        }
        write!(f, " had been complete for {} ms", since.as_millis())
    }
}

/// The windows of a late record, the newest first; a slice of them.
///
/// # Examples
///
/// ```
/// use side_output::{LateWindows, Timestamp, Window};
///
/// let window = Window::new(Timestamp::EPOCH, Timestamp::from_secs(60));
/// let windows: LateWindows = [window].into_iter().collect();
/// assert_eq!(windows[..], [window]);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct LateWindows(Windows);

/// One window, as most late records have, takes no allocation.
#[derive(Clone, PartialEq, Eq)]
enum Windows {
    One([Window; 1]),
    Many(Vec<Window>),
}

impl From<Window> for LateWindows {
    fn from(window: Window) -> Self {
        Self(Windows::One([window]))
    }
}

impl FromIterator<Window> for LateWindows {
    fn from_iter<It: IntoIterator<Item = Window>>(windows: It) -> Self {
        let mut windows = windows.into_iter();
        match (windows.next(), windows.next()) {
            (Some(one), None) => one.into(),
            (first, second) => {
                let first = first.into_iter().chain(second);
                Self(Windows::Many(first.chain(windows).collect()))
            }
        }
    }
}

impl Deref for LateWindows {
    type Target = [Window];

    fn deref(&self) -> &[Window] {
        match &self.0 {
            Windows::One(window) => window,
            Windows::Many(windows) => windows,
        }
    }
}

impl fmt::Debug for LateWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
