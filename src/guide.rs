//! Chapters of the guide that go further than the [crate documentation](crate).

#[doc = include_str!("../docs/event-time.md")]
pub mod event_time {}
