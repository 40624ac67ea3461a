//! Layouts: `layout=…`.

use tilewright_form::{Family, Layout, Place, index_names};

use super::Printer;
use crate::buffer::LayoutAttr;
use crate::dtype::DType;

impl Printer<'_> {
    /// ` layout=…`
    pub(super) fn layout_attr(&mut self, layout: &LayoutAttr) {
        self.put(" layout=");
        match layout {
            LayoutAttr::Linear => self.put("linear"),
            LayoutAttr::Swizzled => self.put("swizzled"),
            LayoutAttr::Map(map) => {
                self.names.open();
                self.put("map(");
                self.list(&map.inputs, |p, v| p.new_var(*v, Some(DType::I32)));
                self.put(") -> (");
                self.list(&map.outputs, |p, e| p.expr(e));
                self.put(")");
                self.names.close();
            }
            LayoutAttr::FragmentMap(map) => {
                self.names.open();
                self.put("fragment(");
                self.list(&map.inputs, |p, v| p.new_var(*v, Some(DType::I32)));
                if let Some(replica) = map.replica {
                    self.put("; ");
                    self.new_var(replica, Some(DType::I32));
                    self.put_fmt(format_args!(" in {}", map.replicas));
                } else if map.replicas != 1 {
                    self.put_fmt(format_args!("; {}", map.replicas));
                }
                self.put(") -> (");
                self.expr(&map.thread);
                self.put("; ");
                self.list(&map.slots, |p, e| p.expr(e));
                self.put(")");
                self.names.close();
            }
            LayoutAttr::Placed(place) => self.place(place),
            LayoutAttr::Held(fragment) => {
                self.put("fragment");
                self.closed(fragment.layout(), true);
            }
        }
    }

    fn place(&mut self, place: &Place) {
        match place.family() {
            Family::Linear => self.put("linear"),
            Family::Padded(by) => self.put_fmt(format_args!("padded({by})")),
            Family::Swizzle(rows) => {
                self.put_fmt(format_args!("swizzle({}; ", rows.chunk));
                self.list(&rows.pairs, |p, (row, chunk)| {
                    p.put_fmt(format_args!("{row} -> {chunk}"));
                });
                self.put(")");
            }
            Family::Panels(swizzle) => self.put_fmt(format_args!("panels({})", swizzle.span)),
            Family::Other => {
                self.put("map");
                self.closed(place.layout(), false);
            }
        }
    }

    /// `[64, 64](i, j) -> [4096](i * 64 + j)`, and for fragments, which have copies and two
    /// outputs, `[64; 2](i; rep) -> [128; 1](rep * 64 + i; 0)`.
    fn closed(&mut self, layout: &Layout, fragment: bool) {
        let shape = layout.shape();
        let own = layout.form();
        let last = if fragment { "; " } else { ", " };
        let (dims, copies) = shape.split_at(shape.len() - usize::from(fragment));
        let copied = copies.iter().any(|&n| n != 1);
        self.put("[");
        self.list(dims, |p, n| p.put(&n.to_string()));
        if copied {
            self.put_fmt(format_args!("; {}", copies[0]));
        }
        self.put("]");
        let mut names = index_names(shape.len());
        if let Some(form) = own.as_ref().or(layout.raw_form()) {
            self.put("(");
            if own.is_some() {
                names.truncate(dims.len());
                self.put(&names.join(", "));
                if fragment {
                    names.push("rep".to_string());
                }
                if copied {
                    self.put("; rep");
                }
            } else {
                // Digits of another box with the same order.
                let extents = form.radix.shape();
                names = index_names(extents.len());
                let long = extents.iter().zip(&names).filter(|(n, _)| **n != 1);
                let long: Vec<_> = long.map(|(n, name)| format!("{name} < {n}")).collect();
                self.put(&long.join(", "));
            }
            self.put(")");
        }
        let extents: Vec<String> = layout.codomain().iter().map(i64::to_string).collect();
        self.put_fmt(format_args!(" -> [{}](", extents.join(last)));
        if let Some(form) = own.as_ref().or(layout.raw_form()) {
            let outs = form.formulas();
            let outs = outs.iter().map(|f| f.text(&names, form.radix.shape()));
            self.put(&outs.collect::<Vec<_>>().join(last));
        } else {
            let places = layout.listed().unwrap_or_default();
            let runs = places.chunk_by(|a, b| *b == a + 1);
            let runs: Vec<&[i64]> = runs.collect();
            self.list(&runs, |p, run| match run.len() {
                1 => p.put(&run[0].to_string()),
                n => p.put_fmt(format_args!("{} +: {n}", run[0])),
            });
        }
        self.put(")");
    }
}
