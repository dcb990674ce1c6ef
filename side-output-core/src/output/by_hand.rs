//! What `#[splitter]` generates, for the splitters that the library itself has.

/// Declares a splitter: number, variant, payload, field and the rest of its declaration.
macro_rules! splitter {
    (
        $(#[$meta:meta])*
        $name:ident<$($param:ident),*>, $lanes:ident, $streams:ident, $wiring:ident {
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

            /// Asks every stream for an error, where it would wait for ever because another output
            /// is full and nobody reads that one.
            pub fn fail_on_stall(self) -> Self {
                Self { $($field: self.$field.fail_on_stall()),* }
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

        // Nobody means this one where an enum lacks `#[splitter]`.
        #[diagnostic::do_not_recommend]
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

        $crate::output::by_hand::wiring! {
            [$name] [$name<$($param),*>] [$lanes<$($param),*>] [$streams] [$wiring] [$($param),*]
            $($index $variant $field;)*
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

/// The wiring: a destination for each output, in a tuple. A type parameter has the name of the
/// variant whose destination it is, so payloads are named by the output, not by their types.
macro_rules! wiring {
    (
        [$enum:ident] [$name:ty] [$lanes:ty] [$streams:ident] [$wiring:ident] [$($param:ident),*]
        $($index:literal $variant:ident $field:ident;)*
    ) => {
        #[doc = concat!("The outputs of [`", stringify!($streams), "`] on their way to destinations.")]
        ///
        /// Each output has a method that takes its destination; when all have one, `run` drives
        /// them together.
        #[must_use = "a wiring does nothing until it is run"]
        pub struct $wiring<$($param,)* D, W> {
            wiring: $crate::stream::wiring::Wiring<$name, D>,
            lines: W,
        }

        impl<$($param,)* D, W> std::fmt::Debug for $wiring<$($param,)* D, W> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($wiring))
                    .field("wiring", &self.wiring)
                    .finish_non_exhaustive()
            }
        }

        impl<$($param,)* D: $crate::stream::Driver<$name>>
            $streams<$($param,)* $crate::stream::Typed<D>>
        {
            /// Leads every output to a destination, so that none can be forgotten.
            pub fn wire(
                self,
            ) -> $wiring<
                $($param,)*
                D,
                ($($crate::output::by_hand::unwired!($variant),)*),
            > {
                let mut wiring = $crate::stream::wiring::Wiring::new();
                $(wiring.attach::<$index>(self.$field);)*
                let lines = ($({
                    let $field = $crate::stream::wiring::Unwired::new();
                    $field
                },)*);
                $wiring { wiring, lines }
            }
        }

        impl<$($param,)* $($variant),*> $crate::stream::wiring::Destinations<$name>
            for ($($crate::stream::wiring::Line<
                <$name as $crate::output::OutputAt<$index>>::Payload,
                $variant,
            >,)*)
        where
            $($variant: $crate::stream::wiring::Destination<
                <$name as $crate::output::OutputAt<$index>>::Payload,
            >,)*
        {
            #[inline]
            fn push(&mut self, route: $name, at: $crate::time::Timestamp) -> bool {
                let ($($field,)*) = self;
                match route {
                    $($enum::$variant(payload) => $field.push(payload, at),)*
                }
            }

            fn take_lanes(&mut self, lanes: &mut $lanes) {
                let ($($field,)*) = self;
                $($field.take_lane(&mut lanes.$field);)*
            }

            fn visit<Vis: $crate::stream::wiring::DestinationVisitor>(
                &mut self,
                visitor: &mut Vis,
            ) {
                let ($($field,)*) = self;
                $(visitor.line($field);)*
            }
        }

        impl<$($param,)* D, $($variant),*> $wiring<$($param,)* D, ($(
            $crate::stream::wiring::Line<
                <$name as $crate::output::OutputAt<$index>>::Payload,
                $variant,
            >,
        )*)>
        where
            D: $crate::stream::Driver<$name>,
            $($variant: $crate::stream::wiring::Destination<
                <$name as $crate::output::OutputAt<$index>>::Payload,
            >,)*
        {
            /// Drives the input and all destinations, to the end.
            pub fn run(self) -> $crate::stream::wiring::Run<$name, D, ($(
                $crate::stream::wiring::Line<
                    <$name as $crate::output::OutputAt<$index>>::Payload,
                    $variant,
                >,
            )*)> {
                self.wiring.run(self.lines)
            }
        }

        $crate::output::by_hand::lines! {
            [$name] [$wiring] [$($param),*] []
            $($index $variant $field;)*
        }
    };
}

macro_rules! unwired {
    ($variant:ident) => {
        $crate::stream::wiring::Unwired
    };
}

/// The methods of a wiring, each with what stands before and after its output.
macro_rules! lines {
    ([$name:ty] [$wiring:ident] $params:tt [$($before:tt)*]) => {};
    (
        [$name:ty] [$wiring:ident] [$($param:ident),*] [$($bvariant:ident $bfield:ident;)*]
        $index:literal $variant:ident $field:ident;
        $($aindex:literal $avariant:ident $afield:ident;)*
    ) => {
        impl<$($param,)* D, $($bvariant,)* $($avariant,)*> $wiring<
            $($param,)*
            D,
            ($($bvariant,)* $crate::stream::wiring::Unwired, $($avariant,)*),
        > {
            #[doc = concat!("Leads the output `", stringify!($field), "` to `destination`.")]
            pub fn $field<How, To>(
                self,
                destination: To,
            ) -> $wiring<
                $($param,)*
                D,
                (
                    $($bvariant,)*
                    $crate::stream::wiring::Line<
                        <$name as $crate::output::OutputAt<$index>>::Payload,
                        To::Destination,
                    >,
                    $($avariant,)*
                ),
            >
            where
                To: $crate::stream::wiring::IntoDestination<
                    <$name as $crate::output::OutputAt<$index>>::Payload,
                    How,
                >,
            {
                let ($($bfield,)* _, $($afield,)*) = self.lines;
                let $field = $crate::stream::wiring::Line::new::<$name, How, $index>(destination);
                $wiring { wiring: self.wiring, lines: ($($bfield,)* $field, $($afield,)*) }
            }
        }

        $crate::output::by_hand::lines! {
            [$name] [$wiring] [$($param),*] [$($bvariant $bfield;)* $variant $field;]
            $($aindex $avariant $afield;)*
        }
    };
}

pub(crate) use {lines, output, outputs, splitter, unwired, wiring};
