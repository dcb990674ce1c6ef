//! The guide, chapter by chapter. Its examples are tests.

#[doc = include_str!("guide/event_time.md")]
pub mod event_time {}
