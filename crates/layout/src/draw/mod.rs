//! Drawings of layouts and fragments, as text and as SVG.
//!
//! A tensor is drawn as grids of its last two dimensions, one for each index of the others. A
//! vector is folded into lines.

mod formula;
pub mod svg;
pub mod text;

use crate::radix::{indices, unflatten};

/// Columns of a folded vector.
const FOLD: i64 = 16;

/// One grid of a tensor: how its cells are indices.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Grid {
    /// The indices of the leading dimensions.
    leading: Vec<i64>,
    rows: i64,
    cols: i64,
    /// The length of a vector folded into the grid.
    folded: Option<i64>,
}

impl Grid {
    /// The grids of a shape, at most `limit` of them, and how many there are.
    fn all(shape: &[i64], limit: usize) -> (Vec<Grid>, i64) {
        match shape {
            [] => (Vec::new(), 0),
            [length] => {
                let grid = Grid {
                    leading: Vec::new(),
                    rows: (length + FOLD - 1) / FOLD,
                    cols: FOLD.min(*length),
                    folded: Some(*length),
                };
                (vec![grid], 1)
            }
            [leading @ .., rows, cols] => {
                let grids = indices(leading).take(limit).map(|leading| Grid {
                    leading,
                    rows: *rows,
                    cols: *cols,
                    folded: None,
                });
                (grids.collect(), leading.iter().product())
            }
        }
    }

    /// The element in a cell; a folded vector may end before its last line does.
    fn index(&self, row: i64, col: i64) -> Option<Vec<i64>> {
        match self.folded {
            Some(length) => {
                let at = row * FOLD + col;
                (at < length).then(|| unflatten(at, &[length]))
            }
            None => Some([self.leading.as_slice(), &[row, col]].concat()),
        }
    }

    /// The label of a row.
    fn row_label(&self, row: i64) -> i64 {
        if self.folded.is_some() {
            row * FOLD
        } else {
            row
        }
    }

    /// `[2, :, :]`, or nothing for a matrix.
    fn title(&self) -> Option<String> {
        if self.leading.is_empty() {
            return None;
        }
        let leading: Vec<String> = self.leading.iter().map(i64::to_string).collect();
        Some(format!("[{}, :, :]", leading.join(", ")))
    }
}

/// Which of `count` lines to show when only `limit` fit: all, or the first and the last few
/// around a gap (`None`).
fn shown(count: i64, limit: i64) -> Vec<Option<i64>> {
    if count <= limit {
        return (0..count).map(Some).collect();
    }
    let tail = limit / 4;
    let head = (0..limit - tail).map(Some);
    head.chain([None])
        .chain((count - tail..count).map(Some))
        .collect()
}
