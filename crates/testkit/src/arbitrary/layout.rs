//! Layouts of every kind.

use std::sync::Arc;

use tilewright_form::swizzle::{RowXor, Swizzle};
use tilewright_form::{Family, Fragment, Layout, Place};

use super::Gen;
use tilewright_ir::buffer::{FragmentMap, IndexMap, LayoutAttr, Scope};
use tilewright_ir::dtype::DType;
use tilewright_ir::func::{Level, VarKind};
use tilewright_ir::ids::{Buffer, Var};

impl Gen<'_> {
    pub(super) fn layout(&mut self, scope: Scope, buffer: Buffer) -> Option<LayoutAttr> {
        let rank = self.func.buffers[buffer].shape.len();
        if !matches!(scope, Scope::Shared | Scope::Fragment) || rank == 0 {
            return None;
        }
        let bound = |g: &mut Self| -> Vec<Var> {
            (0..rank)
                .map(|_| g.var(DType::I32, VarKind::Bound))
                .collect()
        };
        Some(if scope == Scope::Fragment {
            if self.func.level != Level::Tile || self.chance(2) {
                return self.held(buffer);
            }
            let inputs = bound(self);
            let replica = self.optional(|g| g.var(DType::I32, VarKind::Bound));
            let first = self.func.var_expr(inputs[0]);
            let thread = match replica {
                Some(r) => first.clone() * 2 + self.func.var_expr(r),
                None => first.clone(),
            };
            LayoutAttr::FragmentMap(FragmentMap {
                inputs,
                replica,
                replicas: self.small(),
                thread,
                slots: vec![first.floor_div(2)],
            })
        } else {
            match self.pick(if self.func.level == Level::Tile { 4 } else { 2 }) {
                0 => LayoutAttr::Linear,
                1 => return self.placed(buffer),
                2 => LayoutAttr::Swizzled,
                _ => {
                    let inputs = bound(self);
                    let outputs = inputs.iter().map(|v| self.func.var_expr(*v) ^ 1).collect();
                    LayoutAttr::Map(IndexMap { inputs, outputs })
                }
            }
        })
    }

    /// A place of some family, where the shape has one.
    fn placed(&mut self, buffer: Buffer) -> Option<LayoutAttr> {
        let data = &self.func.buffers[buffer];
        let (shape, bits) = (data.const_shape()?, i64::from(data.dtype.bits()));
        let swizzle = |pairs: &[(u32, u32)]| {
            let (chunk, pairs) = (16, pairs.to_vec());
            Family::Swizzle(RowXor { chunk, pairs })
        };
        let place = match self.pick(6) {
            0 => Place::new(Family::Padded(self.small()), &shape, bits),
            1 => Place::new(swizzle(&[(0, 0), (2, 1), (1, 1)]), &shape, bits),
            2 => Place::new(swizzle(&[]), &shape, bits),
            3 => Place::new(Family::Panels(Swizzle::B32), &shape, bits),
            4 => {
                // From the end, every second place.
                let mut layout = Layout::padded(&shape, 1).ok()?.raw_form()?.clone();
                let most = 2 * Layout::padded(&shape, 1).ok()?.span();
                for term in &mut layout.outs[0].terms {
                    term.weight *= -2;
                }
                layout.outs[0].offset = most;
                Layout::new(&shape, &[most + 1], layout).and_then(Place::other)
            }
            _ => {
                let mut next = 0;
                let space = [shape
                    .iter()
                    .product::<i64>()
                    .saturating_mul(3)
                    .saturating_add(9)];
                let listed = Layout::tabulate(&shape, &space, |_| {
                    next += if next % 5 == 0 { 3 } else { 1 };
                    Ok(vec![next])
                });
                listed.and_then(Place::other)
            }
        };
        place.ok().map(LayoutAttr::from)
    }

    /// Elements dealt out to threads, perhaps with copies.
    fn held(&mut self, buffer: Buffer) -> Option<LayoutAttr> {
        let shape = self.func.buffers[buffer].const_shape()?;
        let run = 1 << self.pick(3);
        let mut fragment = Fragment::partition(&shape, 32, run).ok()?;
        if self.chance(2) {
            fragment = fragment.replicate(self.small().into()).ok()?;
        }
        Some(LayoutAttr::Held(Arc::new(fragment)))
    }
}
