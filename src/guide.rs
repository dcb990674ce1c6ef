//! Chapters that go further than the [crate documentation](crate). Their examples are tests.

#[doc = include_str!("guide/asynchronous.md")]
pub mod asynchronous {}

#[doc = include_str!("guide/errors.md")]
pub mod errors {}

#[doc = include_str!("guide/event_time.md")]
pub mod event_time {}

#[doc = include_str!("guide/selection.md")]
pub mod selection {}
