use super::{OutputAt, Splitter, TapAt};
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;

/// The tag of output `I` of the splitter `S`: what Flink's `OutputTag` is, with its type.
///
/// Tags are the constants that `#[splitter]` generates, such as `Orders::INVALID_TAG`.
///
/// # Examples
///
/// ```
/// use side_output::prelude::*;
///
/// #[splitter]
/// enum Orders {
///     #[main]
///     Valid(u32),
///     Invalid(String),
/// }
///
/// assert_eq!(Orders::INVALID_TAG.name(), "invalid");
/// assert_eq!(format!("{:?}", Orders::INVALID_TAG), "Tag(Orders::invalid)");
/// ```
pub struct Tag<S, const I: usize>(PhantomData<fn() -> S>);

impl<S, const I: usize> Tag<S, I> {
    /// The tag; the constants of the splitter are what a program uses.
    #[doc(hidden)]
    #[must_use]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<S: OutputAt<I>, const I: usize> Tag<S, I> {
    /// Name of the output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        S::SPEC.name
    }
}

impl<S, const I: usize> Default for Tag<S, I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S, const I: usize> Clone for Tag<S, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, const I: usize> Copy for Tag<S, I> {}

impl<S: OutputAt<I>, const I: usize> fmt::Debug for Tag<S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({}::{})", <S as Splitter>::NAME, S::SPEC.name)
    }
}

/// A tag of the splitter `S`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tag of the splitter `{S}`",
    label = "expected a tag of `{S}`",
    note = "the tags of `{S}` are its constants: a variant `Late` would have `{S}::LATE_TAG`"
)]
pub trait TagOf<S: Splitter> {
    /// What the output carries.
    type Payload;

    /// Name of the output.
    const NAME: &'static str;
}

impl<S: OutputAt<I>, const I: usize> TagOf<S> for Tag<S, I> {
    type Payload = S::Payload;
    const NAME: &'static str = S::SPEC.name;
}

/// A tag of whatever splitter.
///
/// The payload stands here, so that the tag of an exclusive output or of another splitter is
/// reported once, and at the tag.
pub trait AnyTag {
    /// What the output carries.
    type Payload;
}

impl<S: OutputAt<I>, const I: usize> AnyTag for Tag<S, I> {
    type Payload = S::Payload;
}

/// A tag of one of `S`'s taps.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the tag of a tap of `{S}`",
    label = "expected the tag of an output of `{S}` that is marked `#[tap]`",
    note = "only a tap is emitted beside the returned route; the route through any other output is returned"
)]
pub trait TapTagOf<S: Splitter>: AnyTag {
    /// The route of `payload` through the tap.
    #[doc(hidden)]
    fn wrap(payload: Self::Payload) -> S;
}

impl<S: TapAt<I>, const I: usize> TapTagOf<S> for Tag<S, I> {
    fn wrap(payload: S::Payload) -> S {
        <S as OutputAt<I>>::wrap(payload)
    }
}

/// What all outputs of `S` carry; implemented by nothing.
///
/// It stands on `route` where the payloads differ, so that calling it says why it cannot work.
#[diagnostic::on_unimplemented(
    message = "a tag cannot route a `{Self}`: the outputs of `{S}` carry different types",
    label = "`route` needs outputs that all carry the same type",
    note = "match on the tag, and build the variant that belongs to it"
)]
pub trait PayloadOfAll<S>: Sized {
    /// Never called: there is no implementation.
    #[doc(hidden)]
    fn route(self) -> S;
}

/// A name that is none of the outputs, found when a configuration is parsed.
///
/// # Examples
///
/// ```
/// use side_output::prelude::*;
///
/// #[splitter]
/// enum Numbers {
///     Even(u32),
///     Odd(u32),
/// }
///
/// let error = "oddd".parse::<NumbersTag>().unwrap_err();
/// assert_eq!(error.to_string(), "unknown output `oddd`; expected one of `even`, `odd`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTag {
    name: String,
    what: &'static str,
    expected: &'static [&'static str],
}

impl UnknownTag {
    /// An error for `name`, which is none of `expected`.
    #[doc(hidden)]
    #[must_use]
    pub fn new(name: &str, what: &'static str, expected: &'static [&'static str]) -> Self {
        Self { name: name.to_owned(), what, expected }
    }

    /// The unknown name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for UnknownTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} `{}`; expected one of ", self.what, self.name)?;
        for (index, name) in self.expected.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}`{name}`")?;
        }
        Ok(())
    }
}

impl Error for UnknownTag {}

/// Implements serde's traits for a generated enum of tags, as the tag's name.
///
/// It is a macro of this crate because only this crate knows whether its feature `serde` is on,
/// and so that the crate of the splitter needs no dependency on serde.
#[cfg(feature = "serde")]
#[doc(hidden)]
#[macro_export]
macro_rules! __impl_tag_serde {
    ($tag:ident) => {
        impl $crate::__private::Serialize for $tag {
            fn serialize<S: $crate::__private::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                // Not by path, which would find a variant called `name`.
                serializer.serialize_str((*self).name())
            }
        }

        impl<'de> $crate::__private::Deserialize<'de> for $tag {
            fn deserialize<D: $crate::__private::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                $crate::__private::deserialize_tag(deserializer)
            }
        }
    };
}

/// Implements nothing: the feature `serde` is off.
#[cfg(not(feature = "serde"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __impl_tag_serde {
    ($tag:ident) => {};
}

/// Reads the name of a tag.
#[cfg(feature = "serde")]
#[doc(hidden)]
pub fn deserialize_tag<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: std::str::FromStr<Err = UnknownTag>,
    D: serde::Deserializer<'de>,
{
    struct Name<T>(PhantomData<T>);

    impl<T: std::str::FromStr<Err = UnknownTag>> serde::de::Visitor<'_> for Name<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the name of an output")
        }

        fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<T, E> {
            name.parse().map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Name(PhantomData))
}
