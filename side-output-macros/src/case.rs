use proc_macro2::{Ident, Span};

/// `LateOrder` is `late_order`, `HTTPError` is `http_error`, `r#type` is `type`.
pub(crate) fn snake(name: &str) -> String {
    let letters: Vec<char> = name.trim_start_matches("r#").chars().collect();
    let mut snake = String::with_capacity(name.len() + 4);
    for (index, &letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(index + 1);
        if letter.is_uppercase()
            && before.is_some_and(|before| {
                let starts_word = !before.is_uppercase();
                // The last capital of `HTTPError` starts a word; the `s` of `IDs` does not.
                let ends_acronym = before.is_uppercase()
                    && after.is_some_and(|after| after.is_lowercase())
                    && letters.get(index + 1..) != Some(&['s']);
                before != '_' && (starts_word || ends_acronym)
            })
        {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// `late_order` is `LATE_ORDER_TAG`.
pub(crate) fn tag_constant(name: &str, span: Span) -> Ident {
    Ident::new(&format!("{}_TAG", name.to_uppercase()), span)
}

/// An identifier for a field or method called `name`: raw if it is a keyword, and with `_` behind
/// it if it is one of those that cannot be raw.
pub(crate) fn ident(name: &str, span: Span) -> Ident {
    match name {
        "self" | "super" | "crate" | "_" => Ident::new(&format!("{name}_"), span),
        // A keyword since the edition 2024; the parser has that of no edition.
        "gen" => Ident::new_raw(name, span),
        _ if syn::parse_str::<Ident>(name).is_ok() => Ident::new(name, span),
        _ => Ident::new_raw(name, span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_become_snake_case() {
        for (variant, expected) in [
            ("LateOrder", "late_order"),
            ("Late", "late"),
            ("HTTPError", "http_error"),
            ("URL", "url"),
            ("IDs", "ids"),
            ("Foo_Bar", "foo_bar"),
            ("fooBar", "foo_bar"),
            ("V2Order", "v2_order"),
            ("r#type", "type"),
            ("_Hidden", "_hidden"),
            ("Übergröße", "übergröße"),
            ("A", "a"),
        ] {
            assert_eq!(snake(variant), expected, "{variant}");
        }
    }

    #[test]
    fn keywords_become_raw_where_they_can() {
        for (name, expected) in [
            ("late", "late"),
            ("type", "r#type"),
            ("async", "r#async"),
            ("gen", "r#gen"),
            ("super", "super_"),
        ] {
            assert_eq!(ident(name, Span::call_site()).to_string(), expected, "{name}");
        }
    }

    #[test]
    fn tags_are_constants() {
        assert_eq!(tag_constant("late_order", Span::call_site()).to_string(), "LATE_ORDER_TAG");
    }
}
