use super::{Assigner as _, Tumbling};
use crate::time::{Advice, Timestamp, saturating_millis};
use std::time::Duration;

impl Advice {
    /// How many records `windows` would have lost to the late output.
    #[must_use]
    pub fn lost(&self, windows: Tumbling, bound: Duration, lateness: Duration) -> usize {
        let (bound, lateness) = (saturating_millis(bound), saturating_millis(lateness));
        let lost = |(by, at): &&(i64, Timestamp)| {
            let highest = at.saturating_add_millis(*by);
            let watermark = highest.saturating_sub_millis(bound).saturating_sub_millis(1);
            let mut windows = windows.assign(*at);
            windows
                .all(|window| window.max_timestamp().saturating_add_millis(lateness) <= watermark)
        };
        self.behind().iter().filter(lost).count()
    }
}
