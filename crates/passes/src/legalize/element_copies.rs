//! Parallel loops that write whole fragments, and those among them that copy a tile element by element:
//! these are seen as the copy that they are.

use tilewright_arith::Analyzer;
use tilewright_ir::{
    Axis, Buffer, CopyHints, CopyKind, CopyOp, Expr, ExprKind, Func, Loop, LoopKind, Region,
    RegionDim, Scope, StmtKind, Var,
};

/// A parallel loop that writes every element of a fragment, each at its own point.
pub struct Written<'a> {
    pub fragment: Buffer,
    pub indices: &'a [Expr],
    pub value: &'a Expr,
}

impl<'a> Written<'a> {
    pub fn of(func: &Func, l: &'a Loop) -> Option<Written<'a>> {
        let ([stmt], LoopKind::Parallel { .. }) = (&l.body[..], &l.kind) else {
            return None;
        };
        let StmtKind::Store {
            buffer,
            indices,
            value,
        } = &stmt.kind
        else {
            return None;
        };
        let data = &func.buffers[*buffer];
        let own = |(axis, extent): (&Axis, &Expr)| {
            axis.start.is_int(0) && axis.step.is_int(1) && axis.stop.as_int() == extent.as_int()
        };
        let at_point = |(axis, index): (&Axis, &Expr)| {
            index.as_var() == Some(axis.var) || (axis.stop.is_int(1) && index.is_int(0))
        };
        let whole = data.scope == Scope::Fragment
            && data.const_shape().is_some()
            && l.axes.len() == data.shape.len()
            && l.axes.len() == indices.len()
            && l.axes.iter().zip(&data.shape).all(own)
            && l.axes.iter().zip(indices).all(at_point);
        whole.then_some(Written {
            fragment: *buffer,
            indices,
            value,
        })
    }
}

/// The copy of a tile of global memory to a fragment that a loop does element by element, if it does.
pub fn as_copy(func: &Func, analyzer: &mut Analyzer, l: &Loop) -> Option<CopyOp> {
    let Written {
        fragment, value, ..
    } = Written::of(func, l)?;
    let load = match value.kind() {
        ExprKind::Cast(inner) => inner,
        _ => value,
    };
    let ExprKind::Load { buffer, indices } = load.kind() else {
        return None;
    };
    let data = &func.buffers[*buffer];
    if data.scope != Scope::Global || load.dtype().lanes != 1 || indices.len() != data.shape.len() {
        return None;
    }
    analyzer.enter_loop(func, l);
    let dims = dims(analyzer, l, indices);
    analyzer.pop();
    Some(CopyOp {
        src: Region {
            buffer: *buffer,
            dims: dims?,
        },
        dst: Region::whole(fragment, &func.buffers[fragment]),
        kind: CopyKind::Sync,
        hints: CopyHints::default(),
    })
}

/// Where the tile starts and how far it goes, where each axis of more than one point moves it along one
/// dimension, by one, and in the order of the dimensions.
fn dims(analyzer: &mut Analyzer, l: &Loop, indices: &[Expr]) -> Option<Vec<RegionDim>> {
    let moving: Vec<_> = l.axes.iter().filter(|axis| !axis.stop.is_int(1)).collect();
    let mut left = moving.iter();
    let mut dims = Vec::new();
    for index in indices {
        let start = index.rewrite(&mut |node| {
            let var = node.as_var()?;
            let of_loop = l.axes.iter().any(|axis| axis.var == var);
            of_loop.then(|| Expr::zero(node.dtype()))
        });
        let start = analyzer.simplify(&start);
        let moves = |var: Var| {
            let mut found = false;
            index.walk(&mut |node| found |= node.as_var() == Some(var));
            found
        };
        let extent = match moving.iter().any(|axis| moves(axis.var)) {
            false => Expr::int(1, index.dtype()),
            true => {
                let axis = left.next()?;
                let var = Expr::var(axis.var, axis.stop.dtype()).cast_to(index.dtype());
                let same = analyzer.prove_eq(index, &(start.clone() + var));
                same.is_yes().then(|| axis.stop.clone())?
            }
        };
        dims.push(RegionDim { start, extent });
    }
    left.next().is_none().then_some(dims)
}
