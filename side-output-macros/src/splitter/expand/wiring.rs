//! The wiring builder: a method for each output, and `run` once each has a destination.
//!
//! What is wired is written in one type parameter: `(Line<Order, Sink>, Unwired)`. Each method
//! names its own place and those around it. With many outputs that would be quadratic, so they
//! stand in groups: a method names the places of its group, and the other groups.

use crate::splitter::model::{Output, Splitter};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Index;
use syn::ext::IdentExt as _;

/// Most outputs that stand in one group.
const FLAT: usize = 12;

/// ```text
/// /// Gives each output of [`Orders`] a destination.
/// pub struct OrdersWiring<__D, __L> { wiring: Wiring<Orders, __D>, lines: __L }
/// ```
pub(super) fn builder(splitter: &Splitter) -> TokenStream {
    let Splitter { so, ty, vis, cfg, attrs, .. } = splitter;
    let wiring = &splitter.wiring;
    // Without defaults, which cannot stand before a parameter that has none.
    let parameters = splitter.parameters();
    let (_, _, where_clause) = splitter.generics.split_for_impl();
    let link = splitter.link();
    let doc = format!(
        "Gives each output of {link} a destination.\n\n`run` exists once every output has one; \
         `discard()` is one too."
    );
    let allow_private = splitter.allow_private();
    quote! {
        #cfg
        #[doc = #doc]
        #[must_use = "a wiring does nothing unless it is run"]
        #[allow(
            dead_code,
            deprecated,
            explicit_outlives_requirements,
            reason = "the bounds are the enum's, and not every splitter is wired"
        )]
        #attrs
        #allow_private
        #vis struct #wiring<#parameters __D, __L> #where_clause {
            wiring: #so::Wiring<#ty, __D>,
            lines: __L,
        }
    }
}

/// For each group of outputs an `impl` with their methods, and one with `run`:
///
/// ```text
/// impl<__D, __0, __1> OrdersWiring<__D, (__0, __1,)> {
///     pub fn invalid<__M, __K: IntoDestination<RawOrder, __M>>(self, destination: __K)
///         -> OrdersWiring<__D, (__0, Line<RawOrder, __K::Destination>,)>
///     where __1: NotWired { … }
///     pub fn invalid_with<__Fut, __F: FnOnce(DataStream<RawOrder>) -> __Fut + IntoDestination<…>>
///         (self, destination: __F) -> OrdersWiring<__D, (__0, Line<RawOrder, …>,)>
///     where __1: NotWired, … { … }
/// }
/// impl<__D: Driver<Orders>, __0: Slot<Orders, 0>, …> OrdersWiring<__D, (__0, __1,)> {
///     pub fn run(self) -> Run<Orders, __D, (__0, __1,)>
///     where __0: ValidIsWired, __1: InvalidIsWired { … }
/// }
/// ```
pub(super) fn methods(splitter: &Splitter) -> TokenStream {
    let Splitter { so, ty, vis, .. } = splitter;
    let wiring = &splitter.wiring;
    let wiring_name = wiring.to_string();
    let (parameters, arguments) = (splitter.parameters(), splitter.arguments());
    let (_, _, where_clause) = splitter.generics.split_for_impl();
    let states = states(splitter);
    let all = Splitter::lines(&states);
    let slots = slots(splitter, &states);
    // Of the variants' spans: the note of the error then points at the variant.
    let wired = splitter.outputs.iter().map(|output| {
        let (state, mark) = (state(output.index), is_wired(splitter, output.index));
        let span = output.ident.span();
        let (state, mark) =
            (Ident::new(&state.to_string(), span), Ident::new(&mark.to_string(), span));
        quote_spanned!(span=> #state: #mark)
    });
    let groups = groups(splitter).map(|(number, outputs)| group(splitter, number, outputs));
    let marks = splitter.outputs.iter().map(|output| mark(splitter, output));
    let predicates = splitter.predicates();
    quote! {
        #(#marks)*

        #(#groups)*

        impl<#parameters __D: #so::Driver<#ty>, #slots> #wiring<#arguments __D, #all>
        #where_clause
        {
            /// Drives all outputs into their destinations.
            ///
            /// The future evaluates to the ledger, or to the first error of the input, the
            /// function or a destination. Dropped before its end, it cancels.
            #vis fn run(self) -> #so::Run<#ty, __D, #all>
            where
                #(#wired,)*
            {
                self.wiring.run(self.lines)
            }
        }

        impl<#parameters __D, __L> #wiring<#arguments __D, __L> #where_clause {
            /// Reads the ledger: before it runs, while it does, and afterwards.
            #[must_use]
            #[allow(dead_code, reason = "not every splitter is wired")]
            #vis fn ledger_handle(&self) -> #so::LedgerHandle {
                #so::Wiring::ledger_handle(&self.wiring)
                    .unwrap_or_else(#so::LedgerHandle::empty)
            }
        }

        impl<#parameters __D, __L> ::core::fmt::Debug for #wiring<#arguments __D, __L>
        where #predicates
        {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(#wiring_name).finish_non_exhaustive()
            }
        }
    }
}

/// ```text
/// impl<__0: Slot<Orders, 0>, __1: Slot<Orders, 1>> Destinations<Orders> for (__0, __1,) {
///     fn push(&mut self, route: Orders, at: Timestamp) -> bool { … }
///     fn take_lanes(&mut self, lanes: &mut __OrdersLanes) { … }
///     fn visit<__V: DestinationVisitor>(&mut self, visitor: &mut __V) { … }
/// }
/// ```
pub(super) fn destinations(splitter: &Splitter) -> TokenStream {
    let Splitter { so, ty, .. } = splitter;
    let lanes = splitter.hidden("Lanes");
    let parameters = splitter.parameters();
    let (_, ty_generics, where_clause) = splitter.generics.split_for_impl();
    let states = states(splitter);
    let all = Splitter::lines(&states);
    let slots = slots(splitter, &states);
    let slot = |output: &Output| {
        let (state, index) = (&states[output.index], output.literal());
        quote!(<#state as #so::Slot<#ty, #index>>)
    };
    let arms = splitter.route_arms(|output, payload| {
        let (slot, place) = (slot(output), splitter.place(output.index));
        quote!(#slot::push(&mut self #place, #payload, at))
    });
    let lanes_taken = splitter.outputs.iter().map(|output| {
        let (cfg, field) = (&output.cfg, &output.field);
        let (slot, place) = (slot(output), splitter.place(output.index));
        quote!(#cfg #slot::take_lane(&mut self #place, &mut lanes.#field);)
    });
    let visits = splitter.outputs.iter().map(|output| {
        let (cfg, slot, place) = (&output.cfg, slot(output), splitter.place(output.index));
        quote!(#cfg #slot::visit(&mut self #place, visitor);)
    });
    quote! {
        impl<#parameters #slots> #so::Destinations<#ty> for #all #where_clause {
            #[inline]
            fn push(&mut self, route: #ty, at: #so::Timestamp) -> ::core::primitive::bool {
                match route { #arms }
            }

            fn take_lanes(&mut self, lanes: &mut #lanes #ty_generics) {
                #(#lanes_taken)*
            }

            #[inline]
            fn visit<__V: #so::DestinationVisitor>(&mut self, visitor: &mut __V) {
                #(#visits)*
            }
        }
    }
}

/// The methods of the outputs of one group.
fn group(splitter: &Splitter, number: usize, outputs: &[Output]) -> TokenStream {
    let Splitter { so, vis, .. } = splitter;
    let wiring = &splitter.wiring;
    let (parameters, arguments) = (splitter.parameters(), splitter.arguments());
    let (_, _, where_clause) = splitter.generics.split_for_impl();
    let own: Vec<_> = outputs.iter().map(|output| state(output.index)).collect();
    let others: Vec<_> =
        groups(splitter).map(|(other, _)| other).filter(|other| *other != number).collect();
    let other_params = others.iter().map(|other| format_ident!("__G{other}"));
    // The lines as a type, or as a pattern or value: of this group, and around it.
    let around = |inner: TokenStream| {
        if groups(splitter).len() == 1 {
            return inner;
        }
        let all = groups(splitter).map(|(other, _)| {
            let other_param = format_ident!("__G{other}");
            if other == number { inner.clone() } else { quote!(#other_param) }
        });
        quote!((#(#all,)*))
    };
    let before = around(quote!((#(#own,)*)));
    let methods = outputs.iter().map(|output| {
        let Output { cfg, attrs, field, payload, .. } = output;
        let (this, index) = (state(output.index), output.literal());
        let line = quote!(
            #so::Line<#payload, <__K as #so::IntoDestination<#payload, __M>>::Destination>
        );
        let replaced = |by: TokenStream| {
            let all =
                own.iter().map(|state| if *state == this { by.clone() } else { quote!(#state) });
            around(quote!((#(#all,)*)))
        };
        let after = replaced(line);
        let old = replaced(quote!(_));
        let through = quote!(
            <__F as #so::IntoDestination<#payload, (#so::IntoThrough, __Fut)>>::Destination
        );
        let after_closure = replaced(quote!(#so::Line<#payload, #through>));
        let with = output.with();
        let with_docs = output.docs_after(&format!(
            "Gives the output `{}` a closure, from its stream to a future, as its destination.\n\n\
             It is as if it were given to `{field}`, but the type of its stream need not be \
             written.",
            output.ident
        ));
        let new = replaced(
            quote!(#so::Line::new(#so::Wiring::spec::<#index>(&self.wiring), destination)),
        );
        let docs =
            output.docs_after(&format!("Gives the output `{}` its destination.", output.ident));
        quote! {
            #cfg
            #docs
            #attrs
            #vis fn #field<__M, __K: #so::IntoDestination<#payload, __M>>(
                self,
                destination: __K,
            ) -> #wiring<#arguments __D, #after>
            where
                #this: #so::NotWired,
            {
                let #old = self.lines;
                #wiring { lines: #new, wiring: self.wiring }
            }

            #cfg
            #with_docs
            #attrs
            #vis fn #with<__Fut, __F>(self, destination: __F)
                -> #wiring<#arguments __D, #after_closure>
            where
                #this: #so::NotWired,
                __Fut: ::core::future::Future,
                __F: ::core::ops::FnOnce(#so::DataStream<#payload>) -> __Fut
                    + #so::IntoDestination<#payload, (#so::IntoThrough, __Fut)>,
            {
                let #old = self.lines;
                #wiring { lines: #new, wiring: self.wiring }
            }
        }
    });
    quote! {
        #[allow(non_snake_case, reason = "places are bound to the names of their types")]
        impl<#parameters __D, #(#other_params,)* #(#own,)*> #wiring<#arguments __D, #before>
        #where_clause
        {
            #(#methods)*
        }
    }
}

/// The bound of one output on `run`, which names it:
///
/// ```text
/// #[diagnostic::on_unimplemented(message = "output `Invalid` of the splitter `Orders` …", …)]
/// pub trait InvalidIsWired {}
/// #[diagnostic::do_not_recommend]
/// impl<T, K> InvalidIsWired for Line<T, K> {}
/// ```
fn mark(splitter: &Splitter, output: &Output) -> TokenStream {
    let so = &splitter.so;
    let mark = is_wired(splitter, output.index);
    let ident = &splitter.item.ident;
    let (variant, method) = (&output.ident, &output.field);
    let message = format!("output `{variant}` of the splitter `{ident}` has no destination");
    let label = format!("`{variant}` must be wired before `run`");
    let note =
        format!("wire it with `.{method}(…)`, or drop it on purpose with `.{method}(discard())`");
    // Where a `cfg` removes the variant, nothing has to be wired.
    let absent = output.predicate.as_ref().map(|predicate| {
        let alias = format_ident!("__State{}", output.index, span = Span::call_site());
        quote! {
            impl #mark for #so::Absent {}
            #[cfg(#predicate)]
            pub type #alias = #so::Unwired;
            #[cfg(not(#predicate))]
            pub type #alias = #so::Absent;
        }
    });
    quote! {
        #[diagnostic::on_unimplemented(message = #message, label = #label, note = #note)]
        pub trait #mark {}
        #[diagnostic::do_not_recommend]
        impl<__T, __K> #mark for #so::Line<__T, __K> {}
        #absent
    }
}

/// `InvalidIsWired`; with a number where two variants, each behind a `cfg`, have one name.
fn is_wired(splitter: &Splitter, index: usize) -> Ident {
    let variant = splitter.outputs[index].ident.unraw();
    let span = Span::call_site();
    if splitter.outputs[..index].iter().any(|other| other.ident.unraw() == variant) {
        format_ident!("{variant}{index}IsWired", span = span)
    } else {
        format_ident!("{variant}IsWired", span = span)
    }
}

/// The parameter for the state of output `index`.
fn state(index: usize) -> Ident {
    format_ident!("__{index}", span = Span::call_site())
}

fn states(splitter: &Splitter) -> Vec<Ident> {
    splitter.outputs.iter().map(|output| state(output.index)).collect()
}

/// `__0: Slot<Orders, 0>, …`.
fn slots(splitter: &Splitter, states: &[Ident]) -> TokenStream {
    let Splitter { so, ty, .. } = splitter;
    let indexes = splitter.outputs.iter().map(Output::literal);
    quote!(#(#states: #so::Slot<#ty, #indexes>),*)
}

/// The state of each output when nothing is wired.
pub(super) fn unwired_states(splitter: &Splitter) -> Vec<TokenStream> {
    let so = &splitter.so;
    let states = splitter.outputs.iter().map(|output| {
        let alias = format_ident!("__State{}", output.index, span = Span::call_site());
        if output.predicate.is_some() { quote!(#alias) } else { quote!(#so::Unwired) }
    });
    states.collect()
}

pub(super) fn unwired_values(splitter: &Splitter) -> Vec<TokenStream> {
    unwired_states(splitter).iter().map(|state| quote!(<#state>::new())).collect()
}

/// The outputs in groups of about the same size.
fn groups(splitter: &Splitter) -> impl ExactSizeIterator<Item = (usize, &[Output])> {
    splitter.outputs.chunks(group_size(splitter.outputs.len())).enumerate()
}

fn group_size(outputs: usize) -> usize {
    if outputs <= FLAT { outputs } else { outputs.isqrt() }
}

impl Splitter {
    /// `(A, B,)`, or `((A, B,), (C, D,),)` for many outputs: a type, or a value.
    pub(super) fn lines(states: &[impl quote::ToTokens]) -> TokenStream {
        let mut groups = states.chunks(group_size(states.len())).map(|group| quote!((#(#group,)*)));
        if groups.len() == 1 {
            return groups.next().unwrap_or_default();
        }
        quote!((#(#groups,)*))
    }

    /// `.1`, or `.2.1` for many outputs.
    fn place(&self, index: usize) -> TokenStream {
        let size = group_size(self.outputs.len());
        let (group, place) = (Index::from(index / size), Index::from(index % size));
        if self.outputs.len() <= size { quote!(.#place) } else { quote!(.#group.#place) }
    }
}
