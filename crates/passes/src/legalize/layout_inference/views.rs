//! Views of fragments: other shapes for the same registers.
//!
//! A view that keeps the element type can stay in registers where the placement of what it is a
//! view of has a closed form under the view's shape too.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tilewright_ir::{Buffer, Func, Scope, StmtKind, visit};
use tilewright_layout::Fragment;

use super::infer::Problem;
use super::uses::const_shape;

/// A fragment that is another shape of a fragment.
#[derive(Debug)]
pub struct View {
    pub buffer: Buffer,
    pub shape: Vec<i64>,
    pub of: Buffer,
    pub shape_of: Vec<i64>,
}

/// The views of fragments in a kernel, each with what it is a view of in the end. One with
/// elements of another type cannot stay in registers.
pub fn of_fragments(func: &Func, kernel: usize) -> Result<Rc<[View]>, Problem> {
    let mut found = Vec::new();
    let mut problem = None;
    visit::walk_stmts(&func.kernels[kernel].body, &mut |stmt| {
        let StmtKind::Alloc(buffer) = stmt.kind else {
            return;
        };
        let of = func.root(buffer);
        let (data, base) = (&func.buffers[buffer], &func.buffers[of]);
        if of == buffer || base.scope != Scope::Fragment {
            return;
        }
        let shapes = const_shape(&data.shape).zip(const_shape(&base.shape));
        match shapes.filter(|_| data.dtype == base.dtype) {
            Some((shape, shape_of)) => found.push(View {
                buffer,
                shape,
                of,
                shape_of,
            }),
            None => {
                problem.get_or_insert(Problem::Demote {
                    buffer: of,
                    why: "a view of it has elements of another type".into(),
                    span: data.span,
                });
            }
        }
    });
    problem.map_or_else(|| Ok(found.into()), Err)
}

/// A view and what it is a view of have one place; whichever is known decides. Whether something
/// was decided.
pub fn place(views: &[View], fragments: &mut FxHashMap<Buffer, Arc<Fragment>>) -> bool {
    let mut changed = false;
    for view in views {
        let sides = (fragments.get(&view.buffer), fragments.get(&view.of));
        let (buffer, placed) = match sides {
            (Some(known), None) => (view.of, reshaped(known, &view.shape_of)),
            (None, Some(known)) => (view.buffer, reshaped(known, &view.shape)),
            _ => continue,
        };
        if let Some(placed) = placed {
            fragments.insert(buffer, Arc::new(placed));
            changed = true;
        }
    }
    changed
}

/// What views and their buffers were given must be the same places.
pub fn check(
    func: &Func,
    views: &[View],
    fragments: &FxHashMap<Buffer, Arc<Fragment>>,
) -> Result<(), Problem> {
    for view in views {
        let fits = match (fragments.get(&view.buffer), fragments.get(&view.of)) {
            (Some(one), Some(of)) => {
                reshaped(of, &view.shape).is_some_and(|placed| placed.same_placement(one))
            }
            (None, None) => true,
            _ => false,
        };
        if !fits {
            return Err(Problem::Demote {
                buffer: view.of,
                why: "its layout has no closed form in the shape of a view of it".into(),
                span: func.buffers[view.buffer].span,
            });
        }
    }
    Ok(())
}

/// The same placement under another shape, where that has a closed form.
fn reshaped(fragment: &Fragment, shape: &[i64]) -> Option<Fragment> {
    let placed = fragment.reshape(shape).ok()?;
    placed.layout().form()?;
    placed.inverse().map(|_| placed)
}
