//! Rules across variants, one function per rule. Each repairs what it complains about.

use super::model::Splitter;
use crate::errors::Errors;
use std::collections::HashMap;
use syn::Visibility;

pub(super) fn check(splitter: &mut Splitter, errors: &mut Errors) {
    check_not_empty(splitter, errors);
    check_one_main(splitter, errors);
    check_main_is_no_tap(splitter, errors);
    check_unbounded_has_no_capacity(splitter, errors);
    check_names(splitter, errors);
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
    let mut taken = HashMap::from([("run".to_owned(), None)]);
    for output in &mut splitter.outputs {
        let name = output.name.clone();
        let message = match taken.get(&name) {
            Some(None) => format!(
                "an output cannot be called `{name}`, because the wiring has a method of that \
                 name; rename it with `#[output(name = \"…\")]`"
            ),
            // Variants that exclude each other by `cfg` may share a name.
            Some(Some((_, true))) if output.predicate.is_some() => continue,
            Some(Some((first, _))) => format!(
                "`{}` and `{first}` are both called `{name}`; rename one with \
                 `#[output(name = \"…\")]`",
                output.ident
            ),
            None => {
                let entry = (output.ident.clone(), output.predicate.is_some());
                taken.insert(name, Some(entry));
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
