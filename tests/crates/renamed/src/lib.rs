//! A library without the standard library's prelude that knows `side-output` as `so`, and
//! declares splitters for others: cases MACRO-05, 08, 14 and 17.

#![no_std]
#![deny(warnings, missing_docs)]

use so::splitter;

/// Where an order goes.
#[splitter(crate = so)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Orders {
    /// Passed validation.
    #[main]
    Valid(u32),
    /// Kept as received.
    Invalid {
        /// What came.
        text: &'static str,
    },
    /// A copy for the audit.
    #[tap]
    Audited(u32),
}

/// Splits by what can be read.
#[splitter(Orders, crate = so)]
pub fn split_order(text: &'static str) -> Orders {
    match text.parse() {
        Ok(order) => Orders::Valid(order),
        Err(_) => Orders::Invalid { text },
    }
}

/// Declares a splitter for whoever calls it, who needs no dependency on `side-output`.
#[macro_export]
macro_rules! two_sides {
    ($vis:vis enum $name:ident: $payload:ty) => {
        /// Two sides.
        #[$crate::__splitter(crate = $crate::__so)]
        #[derive(Debug)]
        $vis enum $name {
            /// Left.
            Left($payload),
            /// Right.
            Right($payload),
        }
    };
}

#[doc(hidden)]
pub use so as __so;
#[doc(hidden)]
pub use so::splitter as __splitter;
