//! What must not be a destination, though it is a sink: records that go into a collection that is
//! given away are gone.

use super::destination::{Discard, IntoDestination};
use crate::output::OutputSpec;
use std::collections::VecDeque;

/// Marks a second way in which a collection would be a destination: so it is none, since the compiler
/// cannot choose. It names both ways, and so the name of this type says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub struct LendItAsMutableReference;

/// A collection that would be gone with the wiring, and the records in it.
pub trait OwnedCollection<T> {}

impl<T> OwnedCollection<T> for Vec<T> {}
impl<T> OwnedCollection<T> for VecDeque<T> {}

#[diagnostic::do_not_recommend]
impl<T, K: OwnedCollection<T>> IntoDestination<T, LendItAsMutableReference> for K {
    type Destination = Discard;

    fn into_destination(self, _spec: OutputSpec) -> Discard {
        super::discard()
    }
}
