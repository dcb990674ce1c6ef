use super::rfc3339::Rfc3339;
use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// An instant of event time: milliseconds since 1970-01-01T00:00:00Z, before it if negative.
///
/// Arithmetic saturates at [`Timestamp::MIN`] and [`Timestamp::MAX`]; it never wraps or panics.
///
/// [`Timestamp::MIN`] doubles as the mark of a record without a timestamp and as the watermark
/// before the first one, exactly as in Apache Flink, whose traces this library follows.
///
/// # Examples
///
/// ```
/// use side_output::Timestamp;
/// use std::time::Duration;
///
/// let noon = Timestamp::from_millis(43_200_000);
/// assert_eq!((noon + Duration::from_secs(1)).as_millis(), 43_201_000);
/// assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
/// assert_eq!(noon.to_string(), "43200000 (1970-01-01T12:00:00Z)");
/// assert_eq!(format!("{noon:?}"), "43200000");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Timestamp(i64);

impl Timestamp {
    /// The lowest instant; also "no timestamp" and "no watermark yet".
    pub const MIN: Self = Self(i64::MIN);
    /// The highest instant; as a watermark, the end of the input.
    pub const MAX: Self = Self(i64::MAX);
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);

    /// The instant `millis` milliseconds after the epoch.
    #[inline]
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// The instant `seconds` seconds after the epoch, saturating.
    #[inline]
    #[must_use]
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// The instant `micros` microseconds after the epoch, rounded down to a millisecond.
    #[inline]
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.div_euclid(1000))
    }

    /// The instant `nanos` nanoseconds after the epoch, rounded down to a millisecond.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos.div_euclid(1_000_000))
    }

    /// Milliseconds since the epoch.
    #[inline]
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This instant `millis` milliseconds later (earlier if negative), saturating.
    #[inline]
    #[must_use]
    pub const fn saturating_add_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// This instant `millis` milliseconds earlier (later if negative), saturating.
    #[inline]
    #[must_use]
    pub const fn saturating_sub_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_sub(millis))
    }

    /// Milliseconds from `earlier` to this instant, negative if it is later, saturating.
    #[inline]
    #[must_use]
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This instant as RFC 3339 has it; `None` outside of the years 0 to 9999.
    ///
    /// # Examples
    ///
    /// ```
    /// use side_output::Timestamp;
    ///
    /// let at = Timestamp::from_millis(1_359_641_100_250);
    /// assert_eq!(at.to_rfc3339().as_deref(), Some("2013-01-31T14:05:00.250Z"));
    /// assert_eq!(Timestamp::MAX.to_rfc3339(), None);
    /// ```
    #[must_use]
    pub fn to_rfc3339(self) -> Option<String> {
        Rfc3339::new(self).map(|text| text.to_string())
    }

    /// `None` for the mark of a record without a timestamp.
    #[inline]
    #[must_use]
    pub const fn known(self) -> Option<Self> {
        if self.0 == i64::MIN { None } else { Some(self) }
    }
}

/// Whole milliseconds, saturating: a duration of more than 292 million years is the longest one.
#[inline]
pub(crate) fn saturating_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    #[inline]
    fn add(self, duration: Duration) -> Self {
        self.saturating_add_millis(saturating_millis(duration))
    }
}

impl AddAssign<Duration> for Timestamp {
    #[inline]
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    #[inline]
    fn sub(self, duration: Duration) -> Self {
        self.saturating_sub_millis(saturating_millis(duration))
    }
}

impl SubAssign<Duration> for Timestamp {
    #[inline]
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl fmt::Display for Timestamp {
    /// The number, and the instant as RFC 3339 has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Rfc3339::new(*self) {
            Some(text) => f.pad(&format!("{} ({text})", self.0)),
            None => fmt::Debug::fmt(self, f),
        }
    }
}

impl fmt::Debug for Timestamp {
    /// The number alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MIN => f.pad("min"),
            Self::MAX => f.pad("max"),
            Self(millis) => fmt::Display::fmt(&millis, f),
        }
    }
}
