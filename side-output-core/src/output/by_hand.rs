//! What `#[splitter]` generates, for the splitters that the library itself has.

/// Declares a splitter: number, variant, payload, field and the rest of its declaration.
macro_rules! splitter {
    (
        $(#[$meta:meta])*
        $name:ident<$($param:ident),*>, $lanes:ident, $streams:ident {
            $($(#[$doc:meta])* $index:literal $variant:ident($payload:ty) $field:ident $tag:ident
                $(.$spec:ident())?;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[must_use = "a route leads nowhere unless it is returned"]
        pub enum $name<$($param),*> {
            $($(#[$doc])* $variant($payload),)*
        }

        impl<$($param),*> $name<$($param),*> {
            $(
                #[doc = concat!("The tag of [`", stringify!($variant), "`](Self::", stringify!($variant), ").")]
                pub const $tag: $crate::output::Tag<Self, $index> = $crate::output::Tag::new();
            )*
        }

        #[doc = concat!("The streams of [`", stringify!($name), "`], one for each output.")]
        #[must_use = "an output that is not read holds up the others; read or discard it"]
        pub struct $streams<$($param,)* H = $crate::stream::Boxed>
        where
            H: $crate::stream::Outlet<$name<$($param),*>>,
        {
            $(
                $(#[$doc])*
                pub $field: $crate::stream::DataStream<
                    $payload,
                    H::Source<$index>,
                >,
            )*
        }

        impl<$($param,)* H> $streams<$($param,)* H>
        where
            H: $crate::stream::Outlet<$name<$($param),*>>,
        {
            /// Takes the stream of the output with this tag; what stays behind fails when it is read.
            pub fn get_side_output<G>(&mut self, _tag: G) -> $crate::stream::DataStream<G::Payload>
            where
                G: $crate::output::TagOf<$name<$($param),*>>,
                H: $crate::stream::SendOutlet<$name<$($param),*>>,
            {
                G::take::<H>(self)
            }

            /// The same streams, with types that name only what they carry.
            pub fn boxed(self) -> $streams<$($param),*>
            where
                H: $crate::stream::SendOutlet<$name<$($param),*>>,
            {
                $streams { $($field: H::boxed(self.$field)),* }
            }

            /// The ledger of the operator behind the streams.
            pub fn ledger_handle(&self) -> $crate::stream::LedgerHandle {
                [$(self.$field.ledger_handle()),*]
                    .into_iter()
                    .flatten()
                    .next()
                    .unwrap_or_else($crate::stream::LedgerHandle::empty)
            }

            /// The ledger of the operator behind the streams, at this moment.
            pub fn ledger(&self) -> $crate::output::Ledger {
                self.ledger_handle().read()
            }
        }

        impl<$($param,)* H> std::fmt::Debug for $streams<$($param,)* H>
        where
            H: $crate::stream::Outlet<$name<$($param),*>>,
        {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($streams))
            }
        }

        #[doc = concat!("The buffers of [`", stringify!($name), "`].")]
        #[doc(hidden)]
        #[derive(Debug)]
        pub struct $lanes<$($param),*> {
            $($field: $crate::output::Lane<$payload>,)*
        }

        impl<$($param),*> Default for $lanes<$($param),*> {
            fn default() -> Self {
                Self { $($field: $crate::output::Lane::new(),)* }
            }
        }

        impl<$($param),*> $crate::output::Lanes<$name<$($param),*>> for $lanes<$($param),*> {
            #[inline]
            fn push(&mut self, route: $name<$($param),*>, at: $crate::time::Timestamp) {
                match route {
                    $($name::$variant(payload) => self.$field.push(payload, at),)*
                }
            }

            #[inline]
            fn visit<Vis: $crate::output::LaneVisitor>(&mut self, visitor: &mut Vis) {
                $(visitor.lane($index, &mut self.$field);)*
            }

            #[inline]
            fn visit_pairs<Vis: $crate::output::LanePairVisitor>(
                &mut self,
                other: &mut Self,
                visitor: &mut Vis,
            ) {
                $(visitor.pair($index, &mut self.$field, &mut other.$field);)*
            }
        }

        impl<$($param),*> $crate::output::Splitter for $name<$($param),*> {
            type Lanes = $lanes<$($param),*>;
            type Streams<H: $crate::stream::Outlet<Self>> = $streams<$($param,)* H>;

            const NAME: &'static str = stringify!($name);
            const OUTPUTS: &'static [$crate::output::OutputSpec] =
                &[$(<Self as $crate::output::OutputAt<$index>>::SPEC),*];
            const SLOTS: usize = Self::OUTPUTS.len();

            #[inline]
            fn index(&self) -> usize {
                match self {
                    $(Self::$variant(_) => $index,)*
                }
            }

            fn open<D: $crate::stream::Driver<Self>>(
                hub: &std::sync::Arc<$crate::stream::Hub<Self, D>>,
            ) -> $streams<$($param,)* $crate::stream::Typed<D>> {
                $streams { $($field: hub.stream::<$index>(),)* }
            }
        }

        $crate::output::by_hand::outputs! {
            [$name<$($param),*>] [$lanes<$($param),*>] [$streams] [$($param),*]
            $($index $variant($payload) $field $(.$spec())?;)*
        }
    };
}

/// The outputs one by one: the list of parameters cannot be repeated inside of that of outputs.
macro_rules! outputs {
    (
        $name:tt $lanes:tt $streams:tt $params:tt
        $($index:literal $variant:ident($payload:ty) $field:ident $(.$spec:ident())?;)*
    ) => {
        $($crate::output::by_hand::output! {
            $name $lanes $streams $params
            $index $variant($payload) $field $(.$spec())?;
        })*
    };
}

macro_rules! output {
    (
        [$name:ty] [$lanes:ty] [$streams:ident] [$($param:ident),*]
        $index:literal $variant:ident($payload:ty) $field:ident $(.$spec:ident())?;
    ) => {
        impl<$($param),*> $crate::output::OutputAt<$index> for $name {
            type Payload = $payload;
            const SPEC: $crate::output::OutputSpec =
                $crate::output::OutputSpec::new($index, stringify!($field))$(.$spec())?;

            #[inline]
            fn wrap(payload: $payload) -> Self {
                Self::$variant(payload)
            }

            #[inline]
            fn take(self) -> Result<$payload, Self> {
                match self {
                    Self::$variant(payload) => Ok(payload),
                    other => Err(other),
                }
            }

            #[inline]
            fn lane(lanes: &mut $lanes) -> &mut $crate::output::Lane<$payload> {
                &mut lanes.$field
            }

            #[inline]
            fn stream<H: $crate::stream::Outlet<Self>>(
                streams: &mut $streams<$($param,)* H>,
            ) -> &mut $crate::stream::DataStream<$payload, H::Source<$index>> {
                &mut streams.$field
            }
        }
    };
}

pub(crate) use {output, outputs, splitter};
