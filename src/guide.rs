//! Chapters that go further than the [crate documentation](crate). Their examples are tests.

#[doc = include_str!("guide/asynchronous.md")]
pub mod asynchronous {}

#[cfg_attr(not(feature = "tokio"), doc = "Build the documentation with the feature `tokio`.")]
#[cfg_attr(feature = "tokio", doc = include_str!("guide/destinations.md"))]
pub mod destinations {}

#[doc = include_str!("guide/errors.md")]
pub mod errors {}

#[doc = include_str!("guide/event_time.md")]
pub mod event_time {}

#[doc = include_str!("guide/from_channels.md")]
pub mod from_channels {}

#[doc = include_str!("guide/from_flink.md")]
pub mod from_flink {}

#[cfg_attr(not(feature = "job"), doc = "Build the documentation with the feature `job`.")]
#[cfg_attr(feature = "job", doc = include_str!("guide/jobs.md"))]
pub mod jobs {}

#[doc = include_str!("guide/selection.md")]
pub mod selection {}

#[doc = include_str!("guide/shutdown.md")]
pub mod shutdown {}
