use super::Timestamp;
use super::timestamp::saturating_millis;
use std::time::Duration;

/// Says how far time has come, from the records that come by.
///
/// What it proposes is emitted only if it is higher than everything before: watermarks that leave
/// a strategy strictly increase.
///
/// # Examples
///
/// A marker record that carries the watermark:
///
/// ```
/// use side_output::{Timestamp, WatermarkGenerator};
///
/// struct Markers;
///
/// impl WatermarkGenerator<Option<i64>> for Markers {
///     fn on_record(&mut self, marker: &Option<i64>, _at: Timestamp) -> Option<Timestamp> {
///         marker.map(Timestamp::from_millis)
///     }
/// }
/// ```
pub trait WatermarkGenerator<T> {
    /// Takes note of a record, and may propose a watermark to follow it at once.
    fn on_record(&mut self, value: &T, at: Timestamp) -> Option<Timestamp>;

    /// Proposes a watermark when a period is over: after each record, or as often as
    /// [`Watermarks::emit_every`](super::Watermarks::emit_every) says.
    fn on_period(&mut self) -> Option<Timestamp> {
        None
    }

    /// What it has to remember of the records, as numbers of its own choice, for the checkpoints of
    /// a job.
    ///
    /// By default nothing: after a restore such a generator proposes as if no record had come yet.
    /// What was emitted is remembered for it, so that watermarks never go back.
    ///
    /// # Examples
    ///
    /// A generator that counts:
    ///
    /// ```
    /// use side_output::{Timestamp, WatermarkGenerator};
    ///
    /// struct EveryTenth {
    ///     records: i64,
    /// }
    ///
    /// impl<T> WatermarkGenerator<T> for EveryTenth {
    ///     fn on_record(&mut self, _record: &T, at: Timestamp) -> Option<Timestamp> {
    ///         self.records += 1;
    ///         (self.records % 10 == 0).then_some(at)
    ///     }
    ///
    ///     fn seen(&self) -> Vec<i64> {
    ///         vec![self.records]
    ///     }
    ///
    ///     fn resume(&mut self, seen: &[i64]) -> bool {
    ///         let [records] = seen else { return false };
    ///         self.records = *records;
    ///         true
    ///     }
    /// }
    /// ```
    fn seen(&self) -> Vec<i64> {
        Vec::new()
    }

    /// Goes on after what another one had [`seen`](Self::seen); `false` if that is not what this
    /// one remembers, which is an error.
    fn resume(&mut self, seen: &[i64]) -> bool {
        seen.is_empty()
    }
}

/// The generator of [`Watermarks::bounded_out_of_orderness`](super::Watermarks::bounded_out_of_orderness).
///
/// # Examples
///
/// ```
/// use side_output::{BoundedOutOfOrderness, Timestamp, WatermarkGenerator};
/// use std::time::Duration;
///
/// let mut generator = BoundedOutOfOrderness::new(Duration::from_secs(5));
/// generator.on_record(&"a", Timestamp::from_secs(60));
/// generator.on_record(&"b", Timestamp::from_secs(20));
/// let watermark = WatermarkGenerator::<&str>::on_period(&mut generator);
/// assert_eq!(watermark, Some(Timestamp::from_millis(54_999)));
/// ```
#[derive(Clone, Debug)]
pub struct BoundedOutOfOrderness {
    /// How far the watermark is behind the highest timestamp: milliseconds.
    behind: i64,
    highest: Timestamp,
    watermark: Timestamp,
}

impl BoundedOutOfOrderness {
    /// Records come at most `bound` behind the highest timestamp so far.
    #[must_use]
    pub fn new(bound: Duration) -> Self {
        // One more, because records with the same timestamp may follow.
        let behind = saturating_millis(bound).saturating_add(1);
        Self { behind, highest: Timestamp::MIN, watermark: Timestamp::MIN }
    }
}

impl<T> WatermarkGenerator<T> for BoundedOutOfOrderness {
    #[inline]
    fn on_record(&mut self, _value: &T, at: Timestamp) -> Option<Timestamp> {
        // It rarely is: what follows from it is not computed for each record.
        if at > self.highest {
            self.highest = at;
            self.watermark = at.saturating_sub_millis(self.behind);
        }
        None
    }

    #[inline]
    fn on_period(&mut self) -> Option<Timestamp> {
        Some(self.watermark)
    }

    fn seen(&self) -> Vec<i64> {
        vec![self.highest.as_millis()]
    }

    fn resume(&mut self, seen: &[i64]) -> bool {
        let [highest] = seen else { return false };
        self.highest = Timestamp::from_millis(*highest);
        self.watermark = self.highest.saturating_sub_millis(self.behind);
        true
    }
}

/// The generator of [`Watermarks::punctuated`](super::Watermarks::punctuated).
#[derive(Clone, Debug)]
pub struct Punctuated<F>(pub(super) F);

impl<T, F: FnMut(&T, Timestamp) -> Option<Timestamp>> WatermarkGenerator<T> for Punctuated<F> {
    fn on_record(&mut self, value: &T, at: Timestamp) -> Option<Timestamp> {
        (self.0)(value, at)
    }
}
