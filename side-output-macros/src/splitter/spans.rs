//! Spans of tokens that are copied from the user's code.

use proc_macro2::{Span, TokenTree};
use quote::ToTokens as _;
use syn::Visibility;

/// The visibility as if the macro had written it, so that lints do not see the user's code.
///
/// `pub(in path)` stays as it is: the path may hold a `$crate`.
pub(super) fn located(vis: &Visibility) -> Visibility {
    let span = Span::call_site();
    match vis {
        Visibility::Restricted(restricted) if restricted.in_token.is_some() => vis.clone(),
        _ => {
            let tokens = vis.to_token_stream().into_iter().map(|token| respan(token, span));
            syn::parse2(tokens.collect()).unwrap_or_else(|_| vis.clone())
        }
    }
}

/// The token as if the macro had written it.
pub(super) fn respan(mut token: TokenTree, span: Span) -> TokenTree {
    if let TokenTree::Group(group) = &token {
        let stream = group.stream().into_iter().map(|token| respan(token, span));
        token = TokenTree::Group(proc_macro2::Group::new(group.delimiter(), stream.collect()));
    }
    // `$crate` means the crate of its span.
    if token.to_string() != "$crate" {
        token.set_span(token.span().resolved_at(span));
    }
    token
}
