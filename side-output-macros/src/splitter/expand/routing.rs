//! What the runtime needs: the traits of a splitter and its lanes.

use crate::splitter::model::{Output, Splitter};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;

/// ```text
/// #[diagnostic::do_not_recommend]
/// impl Splitter for Orders {
///     const NAME: &'static str = "Orders";
///     const OUTPUTS: &'static [OutputSpec] = &[<Self as OutputAt<0>>::SPEC, …];
///     const SLOTS: usize = 2;
///     fn index(&self) -> usize { match self { Self::Valid { .. } => 0, … } }
/// }
/// impl Streamed for Orders {
///     type Lanes = __OrdersLanes;
///     type Streams<__H: Outlet<Self>> = OrdersStreams<__H>;
///     fn open<__D: Driver<Self>>(hub: &Arc<Hub<Self, __D>>) -> OrdersStreams<Typed<__D>> {
///         OrdersStreams { valid: Hub::stream::<0>(hub), … }
///     }
/// }
/// ```
pub(super) fn splitter_impl(splitter: &Splitter) -> TokenStream {
    let Splitter { so, ty, .. } = splitter;
    let (lanes, streams) = (splitter.hidden("Lanes"), &splitter.streams);
    let name = splitter.item.ident.unraw().to_string();
    let (impl_generics, ty_generics, where_clause) = splitter.generics.split_for_impl();
    let of_outlet = splitter.arguments_and(&quote!(__H));
    let of_driver = splitter.arguments_and(&quote!(#so::Typed<__D>));
    let slots = splitter.outputs.len();
    let specs = splitter.outputs.iter().map(|output| {
        let (cfg, index) = (&output.cfg, output.literal());
        quote!(#cfg <Self as #so::OutputAt<#index>>::SPEC)
    });
    let arms = splitter.outputs.iter().map(|output| {
        let (cfg, variant, index) = (&output.cfg, &output.ident, output.literal());
        quote!(#cfg Self::#variant { .. } => #index)
    });
    let fields = splitter.outputs.iter().map(|output| {
        let (cfg, field, index) = (&output.cfg, &output.field, output.literal());
        quote!(#cfg #field: #so::Hub::stream::<#index>(hub))
    });
    // Where an enum lacks `#[splitter]`, the other splitters are not what was meant.
    quote! {
        #[diagnostic::do_not_recommend]
        impl #impl_generics #so::Splitter for #ty #where_clause {
            const NAME: &'static ::core::primitive::str = #name;
            const OUTPUTS: &'static [#so::OutputSpec] = &[#(#specs),*];
            const SLOTS: ::core::primitive::usize = #slots;

            #[inline]
            fn index(&self) -> ::core::primitive::usize {
                match self { #(#arms,)* }
            }
        }

        #[diagnostic::do_not_recommend]
        impl #impl_generics #so::Streamed for #ty #where_clause {
            type Lanes = #lanes #ty_generics;
            type Streams<__H: #so::Outlet<Self>> = #streams #of_outlet;

            fn open<__D: #so::Driver<Self>>(
                hub: &#so::Arc<#so::Hub<Self, __D>>,
            ) -> #streams #of_driver {
                #streams { #(#fields,)* }
            }
        }
    }
}

/// For each variant, and `TapAt` for taps:
///
/// ```text
/// impl OutputAt<1> for Orders {
///     type Payload = RawOrder;
///     const SPEC: OutputSpec = OutputSpec::new(1, "invalid");
///     fn wrap(payload: RawOrder) -> Self { … }
///     fn take(self) -> Result<RawOrder, Self> { … }
/// }
/// impl StreamAt<1> for Orders {
///     fn lane(lanes: &mut __OrdersLanes) -> &mut Lane<RawOrder> { &mut lanes.invalid }
///     fn stream<__H: Outlet<Self>>(streams: &mut OrdersStreams<__H>) -> &mut DataStream<…> { … }
/// }
/// ```
pub(super) fn outputs(splitter: &Splitter) -> TokenStream {
    let Splitter { so, ty, .. } = splitter;
    let (lanes, streams) = (splitter.hidden("Lanes"), &splitter.streams);
    let (impl_generics, ty_generics, where_clause) = splitter.generics.split_for_impl();
    let of_outlet = splitter.arguments_and(&quote!(__H));
    splitter
        .outputs
        .iter()
        .map(|output| {
            let (cfg, index, name, field) =
                (&output.cfg, output.literal(), &output.name, &output.field);
            let payload = &output.payload;
            let (variant, bound) = output.conversion();
            let main = output.main.is_some().then(|| quote!(.main()));
            let tap = output.tap.is_some().then(|| quote!(.tap()));
            let capacity = output.capacity.as_ref().map(|capacity| {
                // Of its span, so that a constant that is zero is reported there.
                quote_spanned!(capacity.span()=> .capacity(#capacity))
            });
            let overflow = output.overflow.as_ref().map(|overflow| {
                let policy = match overflow.value().as_str() {
                    "drop_oldest" => quote!(DropOldest),
                    "drop_newest" => quote!(DropNewest),
                    "unbounded" => quote!(Unbounded),
                    _ => quote!(Block),
                };
                quote!(.overflow(#so::Overflow::#policy))
            });
            let tap_impl = output.tap.is_some().then(|| {
                quote! {
                    #cfg
                    impl #impl_generics #so::TapAt<#index> for #ty #where_clause {}
                }
            });
            quote! {
                #cfg
                impl #impl_generics #so::OutputAt<#index> for #ty #where_clause {
                    type Payload = #payload;

                    const SPEC: #so::OutputSpec = #so::OutputSpec::new(#index, #name)
                        #main #tap #capacity #overflow;

                    #[inline]
                    fn wrap(#bound: #payload) -> Self {
                        #variant
                    }

                    #[inline]
                    fn take(self) -> ::core::result::Result<#payload, Self> {
                        match self {
                            #variant => ::core::result::Result::Ok(#bound),
                            other => ::core::result::Result::Err(other),
                        }
                    }

                }

                #cfg
                impl #impl_generics #so::StreamAt<#index> for #ty #where_clause {
                    fn lane<'__l>(lanes: &'__l mut #lanes #ty_generics) -> &'__l mut #so::Lane<#payload> {
                        &mut lanes.#field
                    }

                    fn stream<'__s, __H: #so::Outlet<Self>>(
                        streams: &'__s mut #streams #of_outlet,
                    ) -> &'__s mut #so::DataStream<#payload, <__H as #so::Outlet<Self>>::Source<#index>> {
                        &mut streams.#field
                    }
                }

                #tap_impl
            }
        })
        .collect()
}

/// ```text
/// pub struct __OrdersLanes { valid: Lane<Order>, … }
/// impl Default for __OrdersLanes { … }
/// impl Lanes<Orders> for __OrdersLanes {
///     fn push(&mut self, route: Orders, at: Timestamp) { … }
///     fn visit<__V: LaneVisitor>(&mut self, visitor: &mut __V) { … }
///     fn visit_pairs<__V: LanePairVisitor>(&mut self, other: &mut Self, visitor: &mut __V) { … }
/// }
/// ```
pub(super) fn lanes(splitter: &Splitter) -> TokenStream {
    let Splitter { so, ty, generics, .. } = splitter;
    let lanes = splitter.hidden("Lanes");
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    let outputs = &splitter.outputs;
    let cfgs: Vec<_> = outputs.iter().map(|output| &output.cfg).collect();
    let fields: Vec<_> = outputs.iter().map(|output| &output.field).collect();
    let indexes: Vec<_> = outputs.iter().map(Output::literal).collect();
    let payloads = outputs.iter().map(|output| &output.payload);
    let arms = splitter.route_arms(|output, payload| {
        let field = &output.field;
        quote!(self.#field.push(#payload, at))
    });
    quote! {
        pub struct #lanes #generics #where_clause {
            #(#cfgs #fields: #so::Lane<#payloads>,)*
        }

        impl #impl_generics ::core::default::Default for #lanes #ty_generics #where_clause {
            fn default() -> Self {
                Self { #(#cfgs #fields: #so::Lane::new(),)* }
            }
        }

        impl #impl_generics #so::Lanes<#ty> for #lanes #ty_generics #where_clause {
            #[inline]
            fn push(&mut self, route: #ty, at: #so::Timestamp) {
                match route { #arms }
            }

            #[inline]
            fn visit<__V: #so::LaneVisitor>(&mut self, visitor: &mut __V) {
                #(#cfgs #so::LaneVisitor::lane(visitor, #indexes, &mut self.#fields);)*
            }

            #[inline]
            fn visit_pairs<__V: #so::LanePairVisitor>(
                &mut self,
                other: &mut Self,
                visitor: &mut __V,
            ) {
                #(#cfgs
                    #so::LanePairVisitor::pair(
                        visitor,
                        #indexes,
                        &mut self.#fields,
                        &mut other.#fields,
                    );
                )*
            }
        }
    }
}

impl Splitter {
    /// Arms of a `match` over the enum; `body` gets the payload.
    pub(super) fn route_arms(
        &self,
        body: impl Fn(&Output, &TokenStream) -> TokenStream,
    ) -> TokenStream {
        let ident = &self.item.ident;
        self.outputs
            .iter()
            .map(|output| {
                let cfg = &output.cfg;
                let (variant, payload) = output.conversion();
                // `Self` is the lanes here, or the destinations.
                let variant: TokenStream = variant
                    .into_iter()
                    .enumerate()
                    .map(|(at, token)| if at == 0 { ident.clone().into() } else { token })
                    .collect();
                let body = body(output, &payload);
                quote!(#cfg #variant => #body,)
            })
            .collect()
    }
}
