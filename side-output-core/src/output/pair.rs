/// Declares the splitter of a built-in operator with two outputs, as `#[splitter]` would.
macro_rules! pair {
    (
        $(#[$doc:meta])*
        $Route:ident<$($P:ident),*>, $Lanes:ident, $Streams:ident:
        $(#[$first_doc:meta])* $First:ident($first:ident: $FirstTy:ty),
        $(#[$second_doc:meta])* $Second:ident($second:ident: $SecondTy:ty)
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $Route<$($P),*> {
            $(#[$first_doc])*
            $First($FirstTy),
            $(#[$second_doc])*
            $Second($SecondTy),
        }

        #[doc = concat!("The lanes of [`", stringify!($Route), "`].")]
        #[derive(Debug)]
        pub struct $Lanes<$($P),*> {
            $first: Lane<$FirstTy>,
            $second: Lane<$SecondTy>,
        }

        #[doc = concat!("The streams of [`", stringify!($Route), "`].")]
        #[must_use = "streams that are not read hold up the others"]
        pub struct $Streams<$($P,)* H: Outlet<$Route<$($P),*>> = Boxed> {
            $(#[$first_doc])*
            pub $first: DataStream<$FirstTy, H::Source<0>>,
            $(#[$second_doc])*
            pub $second: DataStream<$SecondTy, H::Source<1>>,
        }

        impl<$($P,)* H: Outlet<$Route<$($P),*>>> $Streams<$($P,)* H>
        where
            $($P: Send + 'static,)*
            H::Source<0>: Send + 'static,
            H::Source<1>: Send + 'static,
        {
            /// The same streams, with a type that names only what they carry.
            pub fn boxed(self) -> $Streams<$($P),*> {
                $Streams { $first: self.$first.boxed(), $second: self.$second.boxed() }
            }
        }

        impl<$($P,)* D: Driver<$Route<$($P),*>>> $Streams<$($P,)* Typed<D>> {
            /// Reads the operator's ledger at any time, also after the streams were taken apart.
            #[must_use]
            pub fn ledger_handle(&self) -> LedgerHandle {
                self.$first.ledger_handle()
            }

            /// The operator's ledger at this moment.
            #[must_use]
            pub fn ledger(&self) -> Ledger {
                self.ledger_handle().read()
            }
        }

        impl<$($P,)* H: Outlet<$Route<$($P),*>>> fmt::Debug for $Streams<$($P,)* H> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Streams))
                    .field(stringify!($first), &self.$first)
                    .field(stringify!($second), &self.$second)
                    .finish()
            }
        }

        impl<$($P),*> Default for $Lanes<$($P),*> {
            fn default() -> Self {
                Self { $first: Lane::new(), $second: Lane::new() }
            }
        }

        impl<$($P),*> Lanes<$Route<$($P),*>> for $Lanes<$($P),*> {
            #[inline]
            fn push(&mut self, route: $Route<$($P),*>, at: Timestamp) {
                match route {
                    $Route::$First(value) => self.$first.push(value, at),
                    $Route::$Second(value) => self.$second.push(value, at),
                }
            }

            #[inline]
            fn visit<Vis: LaneVisitor>(&mut self, visitor: &mut Vis) {
                visitor.lane(0, &mut self.$first);
                visitor.lane(1, &mut self.$second);
            }

            #[inline]
            fn visit_pairs<Vis: LanePairVisitor>(&mut self, other: &mut Self, visitor: &mut Vis) {
                visitor.pair(0, &mut self.$first, &mut other.$first);
                visitor.pair(1, &mut self.$second, &mut other.$second);
            }
        }

        impl<$($P),*> Splitter for $Route<$($P),*> {
            type Lanes = $Lanes<$($P),*>;
            type Streams<H: Outlet<Self>> = $Streams<$($P,)* H>;

            const NAME: &'static str = stringify!($Route);
            const OUTPUTS: &'static [OutputSpec] =
                &[<Self as OutputAt<0>>::SPEC, <Self as OutputAt<1>>::SPEC];
            const SLOTS: usize = 2;

            #[inline]
            fn index(&self) -> usize {
                match self {
                    Self::$First(_) => 0,
                    Self::$Second(_) => 1,
                }
            }

            fn open<D: Driver<Self>>(hub: &Arc<Hub<Self, D>>) -> Self::Streams<Typed<D>> {
                $Streams { $first: hub.stream(), $second: hub.stream() }
            }
        }

        impl<$($P),*> OutputAt<0> for $Route<$($P),*> {
            type Payload = $FirstTy;
            const SPEC: OutputSpec = OutputSpec::new(0, stringify!($first)).main();

            #[inline]
            fn wrap(value: $FirstTy) -> Self {
                Self::$First(value)
            }

            #[inline]
            fn take(self) -> Result<$FirstTy, Self> {
                match self {
                    Self::$First(value) => Ok(value),
                    other => Err(other),
                }
            }

            #[inline]
            fn lane(lanes: &mut $Lanes<$($P),*>) -> &mut Lane<$FirstTy> {
                &mut lanes.$first
            }
        }

        impl<$($P),*> OutputAt<1> for $Route<$($P),*> {
            type Payload = $SecondTy;
            const SPEC: OutputSpec = OutputSpec::new(1, stringify!($second));

            #[inline]
            fn wrap(value: $SecondTy) -> Self {
                Self::$Second(value)
            }

            #[inline]
            fn take(self) -> Result<$SecondTy, Self> {
                match self {
                    Self::$Second(value) => Ok(value),
                    other => Err(other),
                }
            }

            #[inline]
            fn lane(lanes: &mut $Lanes<$($P),*>) -> &mut Lane<$SecondTy> {
                &mut lanes.$second
            }
        }
    };
}

pub(crate) use pair;
