//! Rules across variants, one function per rule. Each repairs what it complains about.

use super::model::Splitter;
use super::shape::Shape;
use crate::errors::Errors;
use proc_macro2::Span;
use quote::format_ident;
use std::collections::{HashMap, HashSet};
use syn::Visibility;
use syn::ext::IdentExt as _;

pub(super) fn check(splitter: &mut Splitter, errors: &mut Errors) {
    check_not_empty(splitter, errors);
    check_one_main(splitter, errors);
    check_main_is_no_tap(splitter, errors);
    check_unbounded_has_no_capacity(splitter, errors);
    check_names(splitter, errors);
    check_companions(splitter, errors);
    check_visibility(splitter, errors);
}

/// Without outputs there is no way for a record to leave.
fn check_not_empty(splitter: &Splitter, errors: &mut Errors) {
    if splitter.outputs.is_empty() {
        let ident = &splitter.item.ident;
        let message = format!(
            "the splitter `{ident}` has no outputs; declare each as a variant, such as `Valid(Order)`"
        );
        errors.at(ident, message);
    }
}

/// The main output is the one that goes on; with two, the choice would depend on their order.
fn check_one_main(splitter: &mut Splitter, errors: &mut Errors) {
    let mut first = None;
    for output in &mut splitter.outputs {
        let Some(main) = &output.main else { continue };
        // Variants that exclude each other by `cfg` may both be the main output.
        if output.predicate.is_some() {
            continue;
        }
        match &first {
            Some(first) => {
                let message = format!(
                    "only one output can be the main one; `{first}` already is, so remove this \
                     `#[main]`"
                );
                errors.at(main, message);
                output.main = None;
            }
            None => first = Some(output.ident.clone()),
        }
    }
}

/// A tap stands beside the route of a record; the main output is where it goes.
fn check_main_is_no_tap(splitter: &mut Splitter, errors: &mut Errors) {
    for output in &mut splitter.outputs {
        if let (Some(_), Some(tap)) = (&output.main, &output.tap) {
            let message = format!(
                "`{}` cannot be both `#[main]` and `#[tap]`; a tap receives records beside the \
                 returned route",
                output.ident
            );
            errors.at(tap, message);
            output.main = None;
        }
    }
}

/// One of the two would be ignored.
fn check_unbounded_has_no_capacity(splitter: &mut Splitter, errors: &mut Errors) {
    for output in &mut splitter.outputs {
        if let (Some(capacity), Some(overflow)) = (&output.capacity, &output.overflow)
            && overflow.value() == "unbounded"
        {
            errors.at(capacity, "an unbounded output has no capacity; remove one of the two");
            output.capacity = None;
        }
    }
}

/// The names of fields, methods and constants come from the variants, and must differ.
fn check_names(splitter: &mut Splitter, errors: &mut Errors) {
    let variants: HashSet<_> =
        splitter.outputs.iter().map(|output| output.ident.unraw().to_string()).collect();
    let mut taken = HashMap::from(["run", "ledger_handle"].map(|name| (name.to_owned(), None)));
    for output in &mut splitter.outputs {
        let conditional = output.predicate.is_some();
        // `super` and `super_` are both the field `super_`, and `ß` and `ss` both `SS_TAG`.
        let names = [
            output.field.unraw().to_string(),
            output.tag.to_string(),
            output.with().unraw().to_string(),
        ];
        let message = match names.iter().find_map(|name| Some((name, taken.get(name)?))) {
            Some((name, None)) => format!(
                "an output cannot be called `{name}`, because the wiring has a method of that \
                 name; rename it with `#[output(name = \"…\")]`"
            ),
            // Variants that exclude each other by `cfg` may share a name.
            Some((_, Some((_, true)))) if conditional => continue,
            Some((name, Some((first, _)))) => format!(
                "`{}` and `{first}` are both called `{name}`; rename one with \
                 `#[output(name = \"…\")]`",
                output.ident
            ),
            None if variants.contains(&names[1]) => format!(
                "the tag of `{}` is called `{}`, and so is a variant; rename the output with \
                 `#[output(name = \"…\")]`",
                output.ident, names[1]
            ),
            None => {
                let entry = Some((output.ident.clone(), conditional));
                taken.extend(names.map(|name| (name, entry.clone())));
                continue;
            }
        };
        match &output.renamed {
            Some(renamed) => errors.at(renamed, message),
            None => errors.at(&output.ident, message),
        }
        output.rename(format!("{}_{}", output.name, output.index));
    }
}

/// The types that are generated stand beside each other, and beside the enum.
fn check_companions(splitter: &mut Splitter, errors: &mut Errors) {
    let enum_name = splitter.item.ident.unraw().to_string();
    let mut taken =
        HashMap::from([(enum_name.clone(), (format!("the enum `{enum_name}`"), false))]);
    let companions = [
        (&mut splitter.streams, "streams"),
        (&mut splitter.wiring, "wiring"),
        (&mut splitter.tag, "tag"),
    ];
    for (ident, option) in companions {
        let what = format!("the {option} of `{enum_name}`");
        let name = ident.unraw().to_string();
        if let Some((first, _)) = taken.get(&name) {
            let message = format!(
                "{what} and {first} are both called `{name}`; rename one with \
                 `#[splitter({option} = …)]`"
            );
            errors.at(&*ident, message);
            *ident = format_ident!("__{name}_{option}", span = Span::call_site());
        } else {
            taken.insert(name, (what, false));
        }
    }
    for output in &mut splitter.outputs {
        let Shape::Struct(payload) = &output.shape else { continue };
        let conditional = output.predicate.is_some();
        let name = payload.ident.unraw().to_string();
        match taken.get(&name) {
            Some((_, true)) if conditional => {}
            Some((first, _)) => {
                let message = format!(
                    "the struct of `{}` and {first} are both called `{name}`; rename it with \
                     `#[output(payload = …)]`",
                    output.ident
                );
                errors.at(&payload.ident, message);
                output.rename_payload(&format!("__{name}_{}", output.index));
            }
            None => {
                taken.insert(name, (format!("the struct of `{}`", output.ident), conditional));
            }
        }
    }
}

/// `Orders` as a splitter names its companions, so they cannot be hidden from those who see it.
fn check_visibility(splitter: &mut Splitter, errors: &mut Errors) {
    let public = matches!(splitter.item.vis, Visibility::Public(_));
    if splitter.vis_differs && public && !matches!(splitter.vis, Visibility::Public(_)) {
        let message = format!(
            "the companions of `{}` cannot be less visible than it is; remove `vis`",
            splitter.item.ident
        );
        errors.at(&splitter.item.vis, message);
        splitter.vis = splitter.item.vis.clone();
    }
}
