//! The formulas over drawings: `i * 64 + (i % 8 ^ j // 8) * 8 + j % 8`.

use tilewright_form::index_names;

use crate::{Fragment, Layout};

/// `thread = …, slot = …`. `None` without a closed form over the shape.
pub(super) fn fragment_formula(fragment: &Fragment) -> Option<String> {
    let mut names = index_names(fragment.shape().len());
    names.push("rep".to_string());
    let [thread, slot] = formulas(fragment.layout(), &names)?.try_into().ok()?;
    Some(format!("thread = {thread}, slot = {slot}"))
}

/// The place of a layout, all outputs in a row.
pub(super) fn layout_formula(layout: &Layout) -> Option<String> {
    let names = index_names(layout.shape().len());
    Some(formulas(layout, &names)?.join(", "))
}

fn formulas(layout: &Layout, names: &[String]) -> Option<Vec<String>> {
    let form = layout.form()?;
    let outs = form.formulas().into_iter();
    Some(outs.map(|f| f.text(names, layout.shape())).collect())
}
