//! The struct of streams and its methods.

use crate::splitter::model::Splitter;
use proc_macro2::TokenStream;
use quote::quote;

/// ```text
/// /// The streams of [`Orders`], one for each output.
/// pub struct OrdersStreams<__H: Outlet<Orders> = Boxed> {
///     /// Passed validation.
///     pub valid: DataStream<Order, <__H as Outlet<Orders>>::Source<0>>,
///     …
/// }
/// ```
pub(super) fn streams(splitter: &Splitter) -> TokenStream {
    let Splitter { so, ty, vis, cfg: splitter_cfg, attrs: splitter_attrs, .. } = splitter;
    let streams = &splitter.streams;
    let mut generics = splitter.generics.clone();
    generics.params.push(syn::parse_quote!(__H: #so::Outlet<#ty> = #so::Boxed));
    let (_, _, where_clause) = generics.split_for_impl();
    let link = splitter.link();
    let doc = format!(
        "The streams of {link}, one for each output.\n\nWhichever is read drives the splitter for \
         all of them."
    );
    let fields = splitter.outputs.iter().map(|output| {
        let (cfg, attrs, field, payload, index) =
            (&output.cfg, &output.attrs, &output.field, &output.payload, output.literal());
        let docs = output.docs_or(&format!("The output `{}`.", output.ident));
        quote! {
            #cfg
            #docs
            #attrs
            #vis #field: #so::DataStream<#payload, <__H as #so::Outlet<#ty>>::Source<#index>>
        }
    });
    let allow_private = splitter.allow_private();
    quote! {
        #splitter_cfg
        #[doc = #doc]
        #[must_use = "streams do nothing unless they are read, wired or discarded"]
        #[allow(
            dead_code,
            deprecated,
            explicit_outlives_requirements,
            reason = "the bounds are the enum's, and not every splitter splits a stream"
        )]
        #splitter_attrs
        #allow_private
        #vis struct #streams #generics #where_clause { #(#fields,)* }
    }
}

/// ```text
/// impl<__H: Outlet<Orders>> OrdersStreams<__H> {
///     pub fn get_side_output<__G: TagOf<Orders>>(&mut self, tag: __G) -> DataStream<__G::Payload>;
///     pub fn boxed(self) -> OrdersStreams;
///     pub fn ledger(&self) -> Ledger;
///     pub fn ledger_handle(&self) -> LedgerHandle;
///     pub fn fail_on_stall(self) -> Self;
/// }
/// impl<__D: Driver<Orders>> OrdersStreams<Typed<__D>> {
///     pub fn wire(self) -> OrdersWiring<__D, (Unwired, Unwired,)>;
/// }
/// impl<__H: Outlet<Orders>> Debug for OrdersStreams<__H> { … }
/// ```
pub(super) fn methods(splitter: &Splitter) -> TokenStream {
    let Splitter { so, ty, vis, .. } = splitter;
    let (streams, wiring) = (&splitter.streams, &splitter.wiring);
    let (parameters, arguments) = (splitter.parameters(), splitter.arguments());
    let (_, _, where_clause) = splitter.generics.split_for_impl();
    let link = splitter.link();
    let outputs = &splitter.outputs;
    let cfgs: Vec<_> = outputs.iter().map(|output| &output.cfg).collect();
    let fields: Vec<_> = outputs.iter().map(|output| &output.field).collect();
    let names: Vec<_> = outputs.iter().map(|output| &output.name).collect();
    let streams_name = streams.to_string();

    let unwired = Splitter::lines(&super::wiring::unwired_states(splitter));
    let unwired_value = Splitter::lines(&super::wiring::unwired_values(splitter));

    let take_doc = format!(
        "Takes the stream of one output by its tag, one of the constants of {link}.\n\nA stream \
         that was taken already ends with an error when it is read."
    );
    let wire_doc = "Gives each output a destination; `run` then drives them all.\n\nThe builder has \
                    a method for each output.";
    quote! {
        impl<#parameters __H: #so::Outlet<#ty>> #streams<#arguments __H> #where_clause {
            #[doc = #take_doc]
            #vis fn get_side_output<__G: #so::StreamTagOf<#ty>>(
                &mut self,
                tag: __G,
            ) -> #so::DataStream<<__G as #so::StreamTagOf<#ty>>::Payload>
            where
                __H: #so::SendOutlet<#ty>,
            {
                <__G as #so::StreamTagOf<#ty>>::take::<__H>(self)
            }

            /// The same streams, with a type that does not name what they read from.
            #vis fn boxed(self) -> #streams<#arguments #so::Boxed>
            where
                __H: #so::SendOutlet<#ty>,
            {
                #streams { #(#cfgs #fields: <__H as #so::SendOutlet<#ty>>::boxed(self.#fields),)* }
            }

            /// Where the records went, at this moment.
            #[must_use]
            #vis fn ledger(&self) -> #so::Ledger {
                self.ledger_handle().read()
            }

            /// Reads the ledger later, also when the streams are gone.
            #[must_use]
            #vis fn ledger_handle(&self) -> #so::LedgerHandle {
                #(#cfgs
                    if let ::core::option::Option::Some(handle) = self.#fields.ledger_handle() {
                        return handle;
                    }
                )*
                #so::LedgerHandle::empty()
            }

            /// Asks every stream for an error, where it would wait for ever because another
            /// output is full and nobody reads that one.
            #vis fn fail_on_stall(self) -> Self {
                Self { #(#cfgs #fields: self.#fields.fail_on_stall(),)* }
            }
        }

        impl<#parameters __D: #so::Driver<#ty>> #streams<#arguments #so::Typed<__D>> #where_clause {
            #[doc = #wire_doc]
            #vis fn wire(self) -> #wiring<#arguments __D, #unwired> {
                let mut wiring = #so::Wiring::new();
                #(#cfgs wiring.attach(self.#fields);)*
                #wiring { wiring, lines: #unwired_value }
            }
        }

        impl<#parameters __H: #so::Outlet<#ty>> ::core::fmt::Debug for #streams<#arguments __H>
        #where_clause
        {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut debug = f.debug_struct(#streams_name);
                #(#cfgs debug.field(#names, &self.#fields);)*
                debug.finish()
            }
        }
    }
}

impl Splitter {
    /// A companion with a wider visibility than the enum's mentions it: that was asked for.
    pub(super) fn allow_private(&self) -> Option<TokenStream> {
        self.vis_differs.then(
            || quote!(#[allow(private_bounds, private_interfaces, reason = "`vis` asks for it")]),
        )
    }
}
