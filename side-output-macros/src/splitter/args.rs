//! Grammar of `#[splitter(…)]` on an enum, and of the attributes of its variants.

use crate::errors::Errors;
use crate::suggest;
use proc_macro2::TokenStream;
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Ident, Lit, LitStr, Meta, Path, Token, Visibility};

/// `#[splitter(crate = path, vis = pub(super), streams = Name)]`.
#[derive(Default)]
pub(crate) struct EnumArgs {
    pub(crate) krate: Option<Path>,
    pub(crate) vis: Option<Visibility>,
    pub(crate) streams: Option<Ident>,
    pub(crate) wiring: Option<Ident>,
    pub(crate) tag: Option<Ident>,
}

/// The options that an attribute knows.
struct Grammar {
    attribute: &'static str,
    options: &'static [&'static str],
}

const ENUM: Grammar =
    Grammar { attribute: "splitter", options: &["crate", "vis", "streams", "wiring", "tag"] };
const OUTPUT: Grammar =
    Grammar { attribute: "output", options: &["capacity", "overflow", "name", "payload"] };
const OVERFLOWS: &[&str] = &["block", "drop_oldest", "drop_newest", "unbounded"];

impl EnumArgs {
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        let parser = |input: ParseStream<'_>| {
            options(input, &ENUM, &mut Vec::new(), errors, &mut |option, input, errors| {
                match option {
                    "crate" => args.krate = Some(Path::parse_mod_style(input)?),
                    "streams" => args.streams = type_name(input, errors),
                    "wiring" => args.wiring = type_name(input, errors),
                    "tag" => args.tag = type_name(input, errors),
                    _ => {
                        let vis: Visibility = input.parse()?;
                        if matches!(vis, Visibility::Inherited) {
                            errors.push(input.error("expected a visibility such as `pub(crate)`"));
                            skip(input);
                        }
                        args.vis = Some(vis);
                    }
                }
                Ok(())
            })
        };
        if let Err(error) = parser.parse2(tokens) {
            errors.push(error);
        }
        args
    }
}

/// What the attributes of one variant say.
#[derive(Default)]
pub(super) struct OutputArgs {
    pub(super) main: Option<Attribute>,
    pub(super) tap: Option<Attribute>,
    pub(super) capacity: Option<Expr>,
    pub(super) overflow: Option<LitStr>,
    pub(super) name: Option<LitStr>,
    pub(super) payload: Option<Ident>,
}

/// Whether the attribute is one of those that the macro reads, and removes from the enum.
pub(super) fn is_ours(attribute: &Attribute) -> bool {
    ["main", "tap", "output"].iter().any(|name| attribute.path().is_ident(name))
}

impl OutputArgs {
    pub(super) fn parse(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut args = Self::default();
        let mut seen = Vec::new();
        for attribute in attributes {
            if attribute.path().is_ident("main") {
                args.main = Some(marker(attribute, "main", args.main, errors));
            } else if attribute.path().is_ident("tap") {
                args.tap = Some(marker(attribute, "tap", args.tap, errors));
            } else if attribute.path().is_ident("output") {
                args.output(attribute, &mut seen, errors);
            } else if attribute.path().is_ident("cfg_attr") {
                check_not_conditional(attribute, errors);
            }
        }
        args
    }

    /// `#[output(capacity = 4096, overflow = "block", name = "late", payload = LateOrder)]`.
    fn output(&mut self, attribute: &Attribute, seen: &mut Vec<String>, errors: &mut Errors) {
        let Meta::List(list) = &attribute.meta else {
            let message = "expected options, such as `#[output(capacity = 4096)]`";
            errors.at(attribute, message);
            return;
        };
        let parser = |input: ParseStream<'_>| {
            options(input, &OUTPUT, seen, errors, &mut |option, input, errors| {
                if option == "payload" {
                    self.payload = type_name(input, errors);
                    return Ok(());
                }
                let value: Expr = input.parse()?;
                match option {
                    "capacity" => self.capacity = capacity(value, errors),
                    "overflow" => self.overflow = overflow(&value, errors),
                    _ => self.name = name(&value, errors),
                }
                Ok(())
            })
        };
        if let Err(error) = parser.parse2(list.tokens.clone()) {
            errors.push(error);
        }
    }
}

/// `#[main]` or `#[tap]`: once, without options.
fn marker(
    attribute: &Attribute,
    name: &str,
    before: Option<Attribute>,
    errors: &mut Errors,
) -> Attribute {
    if !matches!(attribute.meta, Meta::Path(_)) {
        let message = format!("`#[{name}]` takes no options; they go into `#[output(…)]`");
        errors.at(attribute, message);
    } else if before.is_some() {
        errors.at(attribute, format!("`#[{name}]` is repeated; remove one of them"));
    }
    before.unwrap_or_else(|| attribute.clone())
}

/// The attribute runs before `cfg_attr` is evaluated, so it cannot know what is inside.
fn check_not_conditional(attribute: &Attribute, errors: &mut Errors) {
    if let Some(meta) = conditional(attribute) {
        let name = meta.path().to_token_stream();
        let message = format!(
            "`{name}` cannot be conditional; declare the variant twice, with a `cfg` on each"
        );
        errors.at(meta, message);
    }
}

/// Whether one of our attributes is behind a `cfg_attr`: that is an error already.
pub(super) fn is_conditional(attribute: &Attribute) -> bool {
    conditional(attribute).is_some()
}

/// `main` in `#[cfg_attr(feature = "x", main)]`.
fn conditional(attribute: &Attribute) -> Option<Meta> {
    let Meta::List(list) = &attribute.meta else { return None };
    if !attribute.path().is_ident("cfg_attr") {
        return None;
    }
    let parser = Punctuated::<Meta, Token![,]>::parse_terminated;
    let metas = list.parse_args_with(parser).ok()?;
    metas
        .into_iter()
        .skip(1)
        .find(|meta| ["main", "tap", "output"].iter().any(|name| meta.path().is_ident(name)))
}

/// Reads the value of the option of that name.
type Value<'a> = dyn FnMut(&str, ParseStream<'_>, &mut Errors) -> syn::Result<()> + 'a;

/// `option = value, …`; a wrong option is recorded and skipped, so that the next one is read too.
fn options(
    input: ParseStream<'_>,
    grammar: &Grammar,
    seen: &mut Vec<String>,
    errors: &mut Errors,
    value: &mut Value<'_>,
) -> syn::Result<()> {
    while !input.is_empty() {
        if !input.peek(Ident::peek_any) {
            return Err(
                input.error(format!("expected an option: {}", suggest::list(grammar.options)))
            );
        }
        let option = input.call(Ident::parse_any)?;
        let word = option.to_string();
        if !grammar.options.contains(&word.as_str()) {
            errors.at(&option, unknown(&word, grammar));
            skip(input);
        } else if seen.contains(&word) {
            errors.at(&option, format!("option `{word}` is repeated; remove one of them"));
            skip(input);
        } else {
            seen.push(word.clone());
            if input.peek(Token![=]) {
                input.parse::<Token![=]>()?;
                value(&word, input, errors)?;
            } else {
                errors.at(&option, format!("option `{word}` needs a value: `{word} = …`"));
                skip(input);
            }
        }
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

fn unknown(word: &str, grammar: &Grammar) -> String {
    let Grammar { attribute, options } = *grammar;
    match word {
        "main" | "tap" if attribute == "output" => {
            format!("`{word}` is an attribute of its own; write `#[{word}]`")
        }
        "main" | "tap" => format!("`{word}` belongs to a variant; write `#[{word}]` there"),
        "capacity" | "overflow" | "name" | "payload" => {
            format!("`{word}` belongs to a variant; write `#[output({word} = …)]` there")
        }
        _ if word.starts_with(char::is_uppercase) && attribute == "splitter" => {
            format!("`{word}` is named at functions only; write `#[splitter]` on the enum")
        }
        _ => format!("unknown option `{word}`{}", suggest::hint(word, options)),
    }
}

/// The name of a type that is generated.
fn type_name(input: ParseStream<'_>, errors: &mut Errors) -> Option<Ident> {
    let name = input.parse().ok();
    if name.is_none() {
        errors.push(input.error("expected the name of a type, such as `OrderStreams`"));
        skip(input);
    }
    name
}

/// Skips to the next comma.
fn skip(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        if input.parse::<proc_macro2::TokenTree>().is_err() {
            return;
        }
    }
}

/// A literal is checked here; any other constant when the enum's `OutputSpec` is evaluated.
fn capacity(value: Expr, errors: &mut Errors) -> Option<Expr> {
    match literal(&value) {
        Some(Lit::Int(number)) => match number.base10_parse::<usize>() {
            Ok(0) => {
                errors.at(&value, "the capacity of an output must be at least 1");
                None
            }
            Ok(_) => Some(value),
            Err(_) => {
                errors.at(&value, "the capacity of an output must fit into a `usize`");
                None
            }
        },
        None if !matches!(value, Expr::Unary(_)) => Some(value),
        _ => {
            errors.at(&value, "expected a number of records, such as `capacity = 4096`");
            None
        }
    }
}

fn overflow(value: &Expr, errors: &mut Errors) -> Option<LitStr> {
    let Some(Lit::Str(text)) = literal(value) else {
        let list = suggest::list(OVERFLOWS);
        errors.at(value, format!("expected a policy in quotes: {list}"));
        return None;
    };
    let word = text.value();
    if OVERFLOWS.contains(&word.as_str()) {
        return Some(text.clone());
    }
    let hint = suggest::hint(&word, OVERFLOWS);
    errors.at(text, format!("unknown overflow policy `{word}`{hint}"));
    None
}

fn name(value: &Expr, errors: &mut Errors) -> Option<LitStr> {
    let Some(Lit::Str(text)) = literal(value) else {
        errors.at(value, "expected a name in quotes, such as `name = \"late\"`");
        return None;
    };
    let name = text.value();
    let mut letters = name.chars();
    let first = letters.next().is_some_and(|letter| letter.is_lowercase() || letter == '_');
    let rest =
        letters.all(|letter| letter.is_alphanumeric() && !letter.is_uppercase() || letter == '_');
    if first && rest && name != "_" && syn::parse_str::<Ident>(&format!("x{name}")).is_ok() {
        return Some(text.clone());
    }
    errors.at(
        text,
        format!("`{name}` is not a `snake_case` name; the output's field and method get it"),
    );
    None
}

/// A literal, also where a `macro_rules` fragment wraps it in an invisible group.
fn literal(value: &Expr) -> Option<&Lit> {
    match value {
        Expr::Lit(literal) => Some(&literal.lit),
        Expr::Group(group) => literal(&group.expr),
        _ => None,
    }
}

/// The predicate under which the item is compiled, if it has `cfg` attributes.
///
/// `#[cfg(a)] #[cfg_attr(p, cfg(b))]` gives `all(a, any(not(p), b))`.
pub(super) fn cfg_predicate(attributes: &[Attribute]) -> Option<TokenStream> {
    let mut all = Vec::new();
    for attribute in attributes {
        let Meta::List(list) = &attribute.meta else { continue };
        if attribute.path().is_ident("cfg") {
            all.push(list.tokens.clone());
        } else if attribute.path().is_ident("cfg_attr") {
            let Ok(metas) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            else {
                continue;
            };
            let mut metas = metas.iter();
            let predicate = metas.next().map(quote::ToTokens::to_token_stream);
            for meta in metas {
                if let (Meta::List(inner), true) = (meta, meta.path().is_ident("cfg")) {
                    let inner = &inner.tokens;
                    all.push(quote::quote!(any(not(#predicate), #inner)));
                }
            }
        }
    }
    match all.as_slice() {
        [] => None,
        [one] => Some(one.to_token_stream()),
        _ => Some(quote::quote!(all(#(#all),*))),
    }
}
