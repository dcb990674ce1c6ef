//! The window operator.
//!
//! Four engines keep its state. Windows that neither merge nor have a trigger of their own share
//! one table per window ([`aligned`]), or one per slice of time where they overlap ([`sliced`]);
//! those that merge have a list for each key ([`sessions`]); windows with a trigger of their own
//! are kept one by one ([`general`]).

mod aligned;
mod body;
mod general;
mod sessions;
mod sliced;
#[cfg(feature = "job")]
mod snapshot;
mod spec;

pub use self::body::{
    Aggregated, Applied, Elements, Firing, Processed, Reduced, Share, WindowBody,
};
#[cfg(feature = "job")]
pub use self::snapshot::SaveBody;
pub use self::spec::{
    Evictor, KeepAll, KeepLast, LateDecided, LateDropped, LatePolicy, LateToOutput, LateUndecided,
    ProcessLate, WindowStreams, WindowTag, WindowWiring, Windowed, Windows,
};

use self::aligned::Aligned;
use self::general::General;
use self::sessions::Sessions;
use self::sliced::Sliced;
use super::{AtEnd, Operator};
use crate::error::StreamError;
use crate::output::{Collect, Collector};
use crate::state::KeyHash;
use crate::time::{Mark, Timestamp};
use crate::window::{Assigner, Late, Trigger, TriggerOf};
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

/// The operator behind windows.
///
/// It fires the windows that a watermark completes before it forwards that watermark, in order of
/// their ends, and keys in the order in which they first came to the window. State is freed when
/// the watermark reaches the last instant of the window plus the allowed lateness. A watermark
/// that is not higher than the one before is dropped.
pub struct WindowOperator<T, K, F, A, Tr, B>
where
    A: Assigner,
    Tr: Trigger<T>,
    B: WindowBody<K, T>,
{
    key: F,
    parts: Parts<A, Tr, B>,
    engine: Engine<K, B::Contents, B::Side, Tr::State>,
    /// A watermark was begun and is not forwarded yet.
    due: bool,
    types: PhantomData<fn(T)>,
}

/// What the engines work with.
struct Parts<A, Tr, B> {
    assigner: A,
    trigger: Tr,
    body: B,
    /// Milliseconds.
    lateness: i64,
    /// Emit a final pane when a window is freed.
    finals: bool,
    watermark: Timestamp,
    at_end: AtEnd,
    /// Timers beyond this are dropped at the end of the input, but for those at the end of windows.
    horizon: Timestamp,
    hash: KeyHash,
}

/// Whether an engine is done with a watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Everything that the watermark causes was emitted.
    Done,
    /// There is more to do, in another call with the same watermark.
    More,
}

#[expect(clippy::large_enum_variant, reason = "one for each operator; a box costs each record")]
enum Engine<K, C, S, TS> {
    Aligned(Aligned<K, C, S>),
    Sessions(Box<Sessions<K, C, S>>),
    Sliced(Sliced<K, C>),
    General(General<K, C, S, TS>),
}

impl<T, K, F, A, Tr, B> WindowOperator<T, K, F, A, Tr, B>
where
    K: Hash + Eq + Clone,
    F: FnMut(&T) -> K,
    A: Assigner,
    Tr: TriggerOf<T, A::Merging>,
    B: WindowBody<K, T>,
{
    fn new<Ev, L>(key: F, windows: Windows<A, Tr, Ev, L>, body: B) -> Self {
        let Windows { assigner, trigger, lateness, finals, at_end, .. } = windows;
        let engine = if Tr::AT_END && !A::MERGES && A::ENDS {
            if B::SHARES && !A::DISJOINT && assigner.has_slices() {
                Engine::Sliced(Sliced::new())
            } else {
                Engine::Aligned(Aligned::new())
            }
        } else if Tr::AT_END && A::MERGES && A::ENDS {
            Engine::Sessions(Box::new(Sessions::new()))
        } else {
            Engine::General(General::new())
        };
        let (watermark, horizon, hash) = (Timestamp::MIN, Timestamp::MAX, KeyHash::default());
        let parts =
            Parts { assigner, trigger, body, lateness, finals, watermark, at_end, horizon, hash };
        Self { key, parts, engine, due: false, types: PhantomData }
    }

    /// How many windows are kept, counted for each key; where windows share slices of time, how
    /// many slices.
    pub fn windows_kept(&self) -> usize {
        match &self.engine {
            Engine::Aligned(aligned) => aligned.len(),
            Engine::Sessions(sessions) => sessions.len(),
            Engine::Sliced(sliced) => sliced.len(),
            Engine::General(general) => general.len(),
        }
    }
}

impl<T, K, F, A, Tr, B> Operator for WindowOperator<T, K, F, A, Tr, B>
where
    K: Hash + Eq + Clone,
    F: FnMut(&T) -> K,
    A: Assigner,
    Tr: TriggerOf<T, A::Merging>,
    B: WindowBody<K, T>,
{
    type In = T;
    type Out = B::Out;

    #[inline(always)]
    fn on_record<C: Collect<B::Out>>(
        &mut self,
        value: T,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        if at == Timestamp::MIN && A::ENDS {
            // No window can take a record without a timestamp.
            return out.pass(|out| self.parts.late(value, at, out));
        }
        let key = (self.key)(&value);
        let parts = &mut self.parts;
        // What the types rule out is not compiled for them.
        match &mut self.engine {
            Engine::Aligned(aligned) if !A::MERGES => aligned.on_record(parts, key, value, at, out),
            Engine::Sliced(sliced) if B::SHARES && !A::MERGES && !A::DISJOINT => {
                sliced.on_record(parts, key, value, at, out)
            }
            Engine::Sessions(sessions) if A::MERGES => {
                sessions.on_record(parts, key, value, at, out)
            }
            Engine::General(general) if !Tr::AT_END || !A::ENDS => {
                general.on_record(parts, key, value, at, out)
            }
            _ => unreachable!("the types say which engine there is"),
        }
    }

    #[inline(always)]
    fn on_mark<C: Collect<B::Out>>(
        &mut self,
        mark: Mark,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError> {
        if let Mark::Watermark(watermark) = mark {
            if watermark <= self.parts.watermark && !self.due {
                out.swallow();
                return Ok(());
            }
            if watermark == Timestamp::MAX && !self.due {
                self.parts.horizon = self.parts.at_end.horizon(self.parts.watermark);
            }
            self.parts.watermark = watermark;
            let (engine, parts) = (&mut self.engine, &mut self.parts);
            let progress = match engine {
                Engine::Aligned(aligned) => aligned.on_watermark(parts, out),
                Engine::Sessions(sessions) => sessions.on_watermark(parts, out),
                Engine::Sliced(sliced) => sliced.on_watermark(parts, out),
                Engine::General(general) => general.on_watermark(parts, out),
            }?;
            self.due = progress == Progress::More;
            if self.due {
                return Ok(());
            }
        }
        out.mark(mark);
        Ok(())
    }

    fn held(&self) -> u64 {
        self.windows_kept() as u64
    }
}

impl<A: Assigner, Tr, B> Parts<A, Tr, B> {
    /// Whether the watermark has reached the end of what is kept of `window`.
    #[inline]
    fn is_gone(&self, window: crate::window::Window) -> bool {
        A::ENDS && window.cleanup(self.lateness) <= self.watermark
    }

    /// A record that no window took: late, or in a gap between windows and on time.
    #[cold]
    #[inline(never)]
    fn late<K, T, C>(
        &mut self,
        value: T,
        at: Timestamp,
        out: &mut Collector<'_, C>,
    ) -> Result<(), StreamError>
    where
        B: WindowBody<K, T>,
        C: Collect<B::Out>,
    {
        let windows = if at == Timestamp::MIN {
            std::iter::empty().collect()
        } else if at.saturating_add_millis(self.lateness) <= self.watermark {
            self.assigner.assign(at).collect()
        } else {
            return Ok(());
        };
        let late = Late { value, timestamp: at, watermark: self.watermark, windows };
        self.body.late(late, out)
    }
}

impl<T, K, F, A, Tr, B> fmt::Debug for WindowOperator<T, K, F, A, Tr, B>
where
    A: Assigner,
    Tr: Trigger<T>,
    B: WindowBody<K, T>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowOperator")
            .field("watermark", &self.parts.watermark)
            .finish_non_exhaustive()
    }
}
