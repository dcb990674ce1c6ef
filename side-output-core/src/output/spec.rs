use std::num::NonZeroUsize;

/// What happens when a record is routed to an output whose buffer is full.
///
/// # Examples
///
/// ```
/// use side_output::Overflow;
///
/// assert_eq!("drop_oldest".parse(), Ok(Overflow::DropOldest));
/// assert_eq!(Overflow::default(), Overflow::Block);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// The splitter stops reading until there is room.
    #[default]
    Block,
    /// The oldest buffered record makes room; it is counted.
    DropOldest,
    /// The new record is dropped; it is counted.
    DropNewest,
    /// The buffer grows.
    Unbounded,
}

impl std::str::FromStr for Overflow {
    type Err = super::UnknownTag;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "block" => Ok(Self::Block),
            "drop_oldest" => Ok(Self::DropOldest),
            "drop_newest" => Ok(Self::DropNewest),
            "unbounded" => Ok(Self::Unbounded),
            _ => Err(super::UnknownTag::new(
                name,
                "overflow policy",
                &["block", "drop_oldest", "drop_newest", "unbounded"],
            )),
        }
    }
}

/// The declaration of one output, as `#[splitter]` read it.
///
/// # Examples
///
/// ```
/// use side_output::prelude::*;
/// use side_output::{Overflow, Splitter};
///
/// #[splitter]
/// enum Orders {
///     #[main]
///     Valid(u32),
///     #[output(capacity = 16, overflow = "drop_oldest")]
///     Alert(String),
/// }
///
/// let alert = &Orders::OUTPUTS[1];
/// assert_eq!(alert.name, "alert");
/// assert_eq!(alert.capacity.get(), 16);
/// assert_eq!(alert.overflow, Overflow::DropOldest);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputSpec {
    /// Index of the output: the position of its variant.
    pub index: usize,
    /// The output's name in `snake_case`, as in the struct of streams.
    pub name: &'static str,
    /// Marked `#[main]`.
    pub main: bool,
    /// Marked `#[tap]`.
    pub tap: bool,
    /// How many records its buffer holds.
    pub capacity: NonZeroUsize,
    /// What happens when the buffer is full.
    pub overflow: Overflow,
}

impl OutputSpec {
    /// Capacity of an output that declares none.
    pub const DEFAULT_CAPACITY: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

    /// An exclusive output with the default capacity that blocks when it is full.
    #[must_use]
    pub const fn new(index: usize, name: &'static str) -> Self {
        Self {
            index,
            name,
            main: false,
            tap: false,
            capacity: Self::DEFAULT_CAPACITY,
            overflow: Overflow::Block,
        }
    }

    /// Marks the main output.
    #[must_use]
    pub const fn main(mut self) -> Self {
        self.main = true;
        self
    }

    /// Marks a tap.
    #[must_use]
    pub const fn tap(mut self) -> Self {
        self.tap = true;
        self
    }

    /// Sets the capacity of the buffer.
    ///
    /// # Panics
    ///
    /// If `capacity` is zero; in a constant, at compile time.
    #[must_use]
    pub const fn capacity(mut self, capacity: usize) -> Self {
        match NonZeroUsize::new(capacity) {
            Some(capacity) => self.capacity = capacity,
            None => panic!("the capacity of an output must be at least 1"),
        }
        self
    }

    /// Sets what happens when the buffer is full.
    #[must_use]
    pub const fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }
}
