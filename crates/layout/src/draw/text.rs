//! Drawings as aligned text.
//!
//! ```text
//! layout (8, 8) -> 64: i * 8 + (i % 8 ^ j)
//!       0  1  2  3  4  5  6  7
//!  0    0  1  2  3  4  5  6  7
//!  1    9  8 11 10 13 12 15 14
//!  …
//! ```

use super::formula::{fragment_formula, layout_formula};
use super::{Grid, shown};
use tilewright_form::Tuple;

use crate::Fragment;
use crate::Layout;

/// Rows, columns and grids shown at most; larger tensors are elided in the middle.
const MAX_ROWS: i64 = 32;
const MAX_COLS: i64 = 16;
const MAX_GRIDS: usize = 4;

/// The place of every element, as its row-major number.
pub fn layout(layout: &Layout) -> String {
    let mut head = format!("layout {} -> ", Tuple(layout.shape()));
    match layout.codomain() {
        [span] => head += &span.to_string(),
        codomain => head += &Tuple(codomain).to_string(),
    }
    if let Some(formula) = layout_formula(layout) {
        head += &format!(": {formula}");
    }
    let cells = |index: &[i64]| layout.offset(index).to_string();
    draw(head, layout.shape(), cells)
}

/// `thread:slot` of every element's first copy.
pub fn fragment(fragment: &Fragment) -> String {
    let mut head = format!(
        "fragment {} -> {} threads x {} slots",
        Tuple(fragment.shape()),
        fragment.threads(),
        fragment.slots()
    );
    let copies = fragment.replicas();
    if copies > 1 {
        head += &format!(", {copies} copies");
    }
    if let Some(formula) = fragment_formula(fragment) {
        head += &format!(": {formula}");
    }
    if copies > 1 {
        let first = fragment.holders(&vec![0; fragment.shape().len()]);
        let threads: Vec<String> = first.iter().take(8).map(|h| h.thread.to_string()).collect();
        let more = if first.len() > 8 { ", …" } else { "" };
        head += &format!("\nfirst element in threads {}{more}", threads.join(", "));
    }
    let cells = |index: &[i64]| {
        let holder = fragment.holder(index, 0);
        format!("{}:{}", holder.thread, holder.slot)
    };
    draw(head, fragment.shape(), cells)
}

fn draw(head: String, shape: &[i64], cell: impl Fn(&[i64]) -> String) -> String {
    let mut out = head;
    out.push('\n');
    let (grids, count) = Grid::all(shape, MAX_GRIDS);
    for grid in &grids {
        if let Some(title) = grid.title() {
            out += &title;
            out.push('\n');
        }
        draw_grid(&mut out, grid, &cell);
    }
    if count > grids.len() as i64 {
        out += &format!("… {} more\n", count - grids.len() as i64);
    }
    out
}

fn draw_grid(out: &mut String, grid: &Grid, cell: impl Fn(&[i64]) -> String) {
    let rows = shown(grid.rows, MAX_ROWS);
    let cols = shown(grid.cols, MAX_COLS);
    let dots = || "…".to_owned();
    let mut lines: Vec<Vec<String>> = Vec::with_capacity(rows.len() + 1);
    let headers = cols.iter().map(|c| c.map_or_else(dots, |c| c.to_string()));
    lines.push([String::new()].into_iter().chain(headers).collect());
    for row in &rows {
        let label = row.map_or_else(dots, |r| grid.row_label(r).to_string());
        let cells = cols.iter().map(|col| match (row, col) {
            (Some(r), Some(c)) => grid.index(*r, *c).map_or_else(String::new, |i| cell(&i)),
            _ => dots(),
        });
        lines.push([label].into_iter().chain(cells).collect());
    }
    let width = |s: &String| s.chars().count();
    let columns = cols.len() + 1;
    let widths: Vec<usize> = (0..columns)
        .map(|c| lines.iter().map(|l| width(&l[c])).max().unwrap_or(0))
        .collect();
    for line in &lines {
        let mut text = String::new();
        for (i, (cell, &w)) in line.iter().zip(&widths).enumerate() {
            let gap = match i {
                0 => 1,
                1 => 3,
                _ => 1,
            };
            text += &" ".repeat(gap + w - width(cell));
            text += cell;
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radix::Digit;
    use crate::swizzle;

    #[test]
    fn a_swizzle() {
        let xor = swizzle::row_xor(&[4, 8], 2, &[(0, 0), (1, 1)]).unwrap();
        let expected = "\
layout (4, 8) -> 32: i * 8 + (i ^ j // 2) * 2 + j % 2
      0  1  2  3  4  5  6  7
 0    0  1  2  3  4  5  6  7
 1   10 11  8  9 14 15 12 13
 2   20 21 22 23 16 17 18 19
 3   30 31 28 29 26 27 24 25
";
        assert_eq!(layout(&xor), expected);
    }

    #[test]
    fn a_lane_map_with_copies() {
        let c = Fragment::from_digits(
            &[4, 4],
            2,
            &[
                Digit::new(1, 2, 2),
                Digit::new(0, 1, 4),
                Digit::new(2, 1, 2),
            ],
            &[Digit::new(1, 1, 2)],
        );
        let expected = "\
fragment (4, 4) -> 16 threads x 2 slots, 2 copies: thread = rep * 8 + i * 2 + j // 2, slot = j % 2
first element in threads 0, 8
       0   1   2   3
 0   0:0 0:1 1:0 1:1
 1   2:0 2:1 3:0 3:1
 2   4:0 4:1 5:0 5:1
 3   6:0 6:1 7:0 7:1
";
        assert_eq!(fragment(&c.unwrap()), expected);
    }

    #[test]
    fn vectors_fold_and_large_tensors_are_elided() {
        let vector = fragment(&Fragment::partition(&[229], 128, 1).unwrap());
        assert_eq!(vector.lines().count(), 2 + 15);
        assert!(
            vector.ends_with("  96:1  97:1  98:1  99:1 100:1\n"),
            "{vector}"
        );
        let large = layout(&Layout::linear(&[6, 100, 100]).unwrap());
        assert!(large.ends_with("… 2 more\n"));
        assert!(large.lines().any(|l| l.trim_start().starts_with('…')));
        assert!(large.lines().all(|l| l.chars().count() < 120));
    }
}
