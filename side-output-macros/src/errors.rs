use proc_macro2::TokenStream;
use quote::ToTokens;

/// Collects mistakes, so that one compiler run shows them all.
#[must_use]
pub(crate) struct Errors {
    errors: Option<Vec<syn::Error>>,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self { errors: Some(Vec::new()) }
    }

    /// Records a mistake at `tokens`.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Records a mistake that the parser found.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.errors.as_mut().expect("errors are recorded before they are finished").push(error);
    }

    /// Turns a `syn::Result` into an `Option`, and goes on.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// `compile_error!` for each mistake; empty if there was none.
    pub(crate) fn finish(mut self) -> TokenStream {
        let errors = self.errors.take().unwrap_or_default();
        errors.into_iter().map(syn::Error::into_compile_error).collect()
    }
}

impl Drop for Errors {
    /// A forgotten `finish` would lose messages: it fails a test instead.
    fn drop(&mut self) {
        assert!(
            self.errors.is_none() || std::thread::panicking(),
            "the errors of a macro were not reported"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "the errors of a macro were not reported")]
    fn forgotten_errors_panic() {
        let mut errors = Errors::new();
        errors.at(quote::quote!(x), "a mistake");
        drop(errors);
    }
}
