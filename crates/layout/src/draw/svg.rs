//! Drawings as SVG: one coloured cell an element.
//!
//! Fragments are coloured by thread (a hue a lane, a shade a warp), places in shared memory by
//! bank; a legend shows the colours. Small tensors have their numbers written in the cells. Large ones
//! are colour, with lines around what each warp holds, and a part of them is drawn again with its
//! numbers.

use std::fmt::{self, Write};

use super::formula::{fragment_formula, layout_formula};
use super::{Grid, shown};
use tilewright_form::Tuple;

use crate::Fragment;
use crate::Layout;

/// Elements of a grid, and along its width, that still get their numbers written.
const WRITTEN: i64 = 1024;
const WRITTEN_COLS: i64 = 64;
/// Elements along a side that are drawn at all; beyond, the middle is left out.
const DRAWN: i64 = 192;
/// Elements along a side of the part of a large tensor that is drawn with numbers.
const DETAIL: i64 = 16;
const GRIDS: usize = 4;
const MARGIN: f64 = 24.0;
/// Room for the labels of rows.
const LABELS: f64 = 42.0;

/// One element in the drawing.
struct Cell {
    fill: Colour,
    large: String,
    small: String,
    hover: String,
    /// The warp; lines are drawn between elements of different ones.
    group: Option<i64>,
}

/// What the colours mean: colours with their labels, a line each.
struct Legend {
    what: String,
    colours: Vec<(Colour, String)>,
}

/// A fragment, coloured by thread; `lanes` is the size of a warp. `name` says whose it is.
pub fn fragment(name: &str, fragment: &Fragment, lanes: i64) -> String {
    let mut about = format!(
        "{} on {} threads, {} slots",
        Tuple(fragment.shape()),
        fragment.threads(),
        fragment.slots()
    );
    if fragment.replicas() > 1 {
        about += &format!(", {} copies, the first one drawn", fragment.replicas());
    }
    let formula = fragment_formula(fragment);
    let warps = (fragment.threads() + lanes - 1) / lanes;
    // Warps step from light to dark, so neighbours of one hue stay apart.
    let colour = |lane: i64, warp: i64| {
        let light = 84.0 - 40.0 * warp as f64 / (warps.max(2) - 1) as f64;
        hsl(360.0 * lane as f64 / lanes as f64, 62.0, light)
    };
    let cell = |index: &[i64]| {
        let holder = fragment.holder(index, 0);
        let (lane, warp) = (holder.thread % lanes, holder.thread / lanes);
        Cell {
            fill: colour(lane, warp),
            large: format!("T{}", holder.thread),
            small: format!("r{}", holder.slot),
            hover: format!(
                "{} thread {} slot {}",
                Tuple(index),
                holder.thread,
                holder.slot
            ),
            group: Some(warp),
        }
    };
    let legend = (0..warps.min(8)).map(|warp| Legend {
        what: format!("warp {warp}"),
        colours: (0..lanes)
            .map(|lane| (colour(lane, warp), (warp * lanes + lane).to_string()))
            .collect(),
    });
    let mut lines = vec![about];
    lines.extend(formula);
    lines.push("colour: thread (hue: lane, shade: warp); T thread, r register".to_string());
    page(
        name,
        &lines,
        &legend.collect::<Vec<_>>(),
        fragment.shape(),
        cell,
    )
}

/// A place in shared memory, coloured by the bank of the element's first byte.
pub fn layout(name: &str, layout: &Layout, element_bits: i64, banks: i64) -> String {
    let about = format!(
        "{} in {} places of {element_bits} bits, {banks} banks",
        Tuple(layout.shape()),
        layout.span()
    );
    let colour = |bank: i64| {
        let light = if bank % 2 == 0 { 80.0 } else { 70.0 };
        hsl(360.0 * bank as f64 / banks as f64, 60.0, light)
    };
    let cell = |index: &[i64]| {
        let place = layout.offset(index);
        let bank = place * element_bits / 32 % banks;
        Cell {
            fill: colour(bank),
            large: place.to_string(),
            small: format!("b{bank}"),
            hover: format!("{} place {place} bank {bank}", Tuple(index)),
            group: None,
        }
    };
    let legend = Legend {
        what: "bank".to_string(),
        colours: (0..banks).map(|b| (colour(b), b.to_string())).collect(),
    };
    let mut lines = vec![about];
    lines.extend(layout_formula(layout).map(|f| format!("place = {f}")));
    lines.push("colour: bank of shared memory; in the cells the place and b bank".to_string());
    page(name, &lines, &[legend], layout.shape(), cell)
}

fn page(
    title: &str,
    lines: &[String],
    legend: &[Legend],
    shape: &[i64],
    cell: impl Fn(&[i64]) -> Cell,
) -> String {
    let (grids, count) = Grid::all(shape, GRIDS);
    let mut body = String::new();
    let mut y = MARGIN + 20.0;
    text(&mut body, (MARGIN, y), "title", title);
    // Roughly the width of a glyph at each size; the page must hold the headings too.
    let mut width = MARGIN + title.chars().count() as f64 * 9.5;
    for line in lines {
        y += 19.0;
        text(&mut body, (MARGIN, y), "formula", line);
        width = width.max(MARGIN + line.chars().count() as f64 * 7.8);
    }
    y += 10.0;
    for line in legend {
        width = width.max(MARGIN + draw_legend(&mut body, line, (MARGIN, y)));
        y += 22.0;
    }
    y += 8.0;
    for grid in &grids {
        if let Some(title) = grid.title() {
            y += 18.0;
            text(&mut body, (MARGIN, y), "formula", &title);
            y += 4.0;
        }
        let written = grid.rows * grid.cols <= WRITTEN && grid.cols <= WRITTEN_COLS;
        let part = Part {
            rows: shown(grid.rows, DRAWN),
            cols: shown(grid.cols, DRAWN),
            written,
        };
        let (w, h) = draw_grid(&mut body, grid, &part, (MARGIN, y), &cell);
        width = width.max(MARGIN + w);
        y += h + 12.0;
        if !written {
            let (rows, cols) = (grid.rows.min(DETAIL), grid.cols.min(DETAIL));
            y += 18.0;
            let says = format!("the first {rows} by {cols} elements of it");
            text(&mut body, (MARGIN, y), "formula", &says);
            y += 4.0;
            let part = Part {
                rows: (0..rows).map(Some).collect(),
                cols: (0..cols).map(Some).collect(),
                written: true,
            };
            let (w, h) = draw_grid(&mut body, grid, &part, (MARGIN, y), &cell);
            width = width.max(MARGIN + w);
            y += h + 12.0;
        }
    }
    if count > grids.len() as i64 {
        y += 14.0;
        let more = format!("… {} more", count - grids.len() as i64);
        text(&mut body, (MARGIN, y), "formula", &more);
    }
    let (width, height) = (width + MARGIN, y + MARGIN);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}">
<style>
text {{ font-family: "Inter", "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", "DejaVu Sans Mono", sans-serif; fill: #1d2433 }}
.title {{ font-size: 17px; font-weight: 600 }}
.formula {{ font-size: 12.5px; font-family: "JetBrains Mono", "DejaVu Sans Mono", Menlo, monospace; fill: #5b6476 }}
.axis {{ font-size: 10px; text-anchor: middle; fill: #8a93a5 }}
.key {{ font-size: 9px; text-anchor: middle }}
.warp {{ font-size: 15px; font-weight: 700; text-anchor: middle }}
.large {{ font-size: 11px; font-weight: 600; text-anchor: middle }}
.small {{ font-size: 8.5px; text-anchor: middle; fill-opacity: 0.72 }}
.dark {{ fill: #ffffff }}
</style>
<rect width="100%" height="100%" fill="#ffffff"/>
{body}</svg>
"##
    )
}

/// Draws a line of the legend and returns its width.
fn draw_legend(out: &mut String, legend: &Legend, (x0, y): (f64, f64)) -> f64 {
    const WIDTH: f64 = 20.0;
    text(out, (x0, y + 13.0), "formula", &legend.what);
    let left = x0 + 64.0;
    for (at, (fill, label)) in legend.colours.iter().enumerate() {
        let x = left + at as f64 * WIDTH;
        let _ = writeln!(
            out,
            r#"<path d="M{x} {y}h{WIDTH}v18h-{WIDTH}z" fill="{fill}"/>"#
        );
        let ink = if fill.is_dark() { "key dark" } else { "key" };
        text(out, (x + WIDTH / 2.0, y + 12.5), ink, label);
    }
    left + legend.colours.len() as f64 * WIDTH
}

/// Which rows and columns of a grid are drawn, and whether with their numbers.
struct Part {
    rows: Vec<Option<i64>>,
    cols: Vec<Option<i64>>,
    written: bool,
}

/// Draws a part of a grid at a point and returns its width and height.
fn draw_grid(
    out: &mut String,
    grid: &Grid,
    part: &Part,
    (x0, y0): (f64, f64),
    cell: impl Fn(&[i64]) -> Cell,
) -> (f64, f64) {
    let Part {
        rows,
        cols,
        written,
    } = part;
    let (w, h, gap) = match written {
        true => (38.0, 30.0, 1.5),
        false => (8.0, 8.0, 0.0),
    };
    let radius = if *written { 3.0 } else { 0.0 };
    let (left, top) = (x0 + LABELS, y0 + 32.0);
    // Label every cell, or every 16th of a dense drawing.
    let labelled = |i: i64| *written || i % 16 == 0;
    let (down, across) = match grid.folded {
        Some(_) => ("from", "element"),
        None => ("row", "column"),
    };
    text(out, (left + 22.0, top - 20.0), "axis", across);
    text(out, (x0 + LABELS / 2.0 - 6.0, top - 6.0), "axis", down);
    for (c, col) in cols.iter().enumerate() {
        let x = left + (c as f64 + 0.5) * w;
        match col {
            Some(col) if labelled(*col) => text(out, (x, top - 6.0), "axis", &col.to_string()),
            Some(_) => {}
            None => text(out, (x, top - 6.0), "axis", "…"),
        }
    }
    // The warp of every cell that is drawn, for the lines between them.
    let mut groups: Vec<Vec<Option<i64>>> = Vec::new();
    for (r, row) in rows.iter().enumerate() {
        let y = top + r as f64 * h;
        let middle = (left - 15.0, y + h / 2.0 + 3.5);
        let Some(row) = row else {
            text(out, middle, "axis", "…");
            groups.push(vec![None; cols.len()]);
            continue;
        };
        if labelled(*row) {
            text(out, middle, "axis", &grid.row_label(*row).to_string());
        }
        let mut line = Vec::with_capacity(cols.len());
        for (c, col) in cols.iter().enumerate() {
            let Some(index) = col.and_then(|col| grid.index(*row, col)) else {
                line.push(None);
                continue;
            };
            let x = left + c as f64 * w;
            let Cell {
                fill,
                large,
                small,
                hover,
                group,
            } = cell(&index);
            line.push(group);
            let (cw, ch) = (w - gap, h - gap);
            let _ = write!(
                out,
                r#"<rect x="{x}" y="{y}" width="{cw}" height="{ch}" rx="{radius}" fill="{fill}"><title>{hover}</title></rect>"#
            );
            if *written {
                let ink = if fill.is_dark() { " dark" } else { "" };
                let middle = x + cw / 2.0;
                text(out, (middle, y + 13.5), &format!("large{ink}"), &large);
                text(out, (middle, y + 24.0), &format!("small{ink}"), &small);
            }
            out.push('\n');
        }
        groups.push(line);
    }
    if !written {
        outline(out, &groups, (left, top), (w, h));
    }
    (LABELS + cols.len() as f64 * w, 32.0 + rows.len() as f64 * h)
}

/// Lines between elements of different warps, and the warp's number in each rectangle that is large
/// enough for it.
fn outline(
    out: &mut String,
    groups: &[Vec<Option<i64>>],
    (left, top): (f64, f64),
    (w, h): (f64, f64),
) {
    let mut path = String::new();
    let at = |r: usize, c: usize| {
        groups
            .get(r)
            .and_then(|line| line.get(c))
            .copied()
            .flatten()
    };
    for (r, line) in groups.iter().enumerate() {
        for c in 0..line.len() {
            let (x, y) = (left + c as f64 * w, top + r as f64 * h);
            let own = at(r, c);
            if c > 0 && own != at(r, c - 1) {
                let _ = write!(path, "M{x} {y}v{h}");
            }
            if r > 0 && own != at(r - 1, c) {
                let _ = write!(path, "M{x} {y}h{w}");
            }
        }
    }
    if !path.is_empty() {
        let _ = writeln!(
            out,
            r##"<path d="{path}" stroke="#1d2433" stroke-width="1.5" fill="none"/>"##
        );
    }
    // A rectangle is found at its first element; those of one warp may lie apart.
    const LABEL: (usize, usize) = (4, 8);
    let mut taken = vec![vec![false; groups.first().map_or(0, Vec::len)]; groups.len()];
    for r in 0..groups.len() {
        for c in 0..groups[r].len() {
            let Some(own) = at(r, c).filter(|_| !taken[r][c]) else {
                continue;
            };
            let cols = (c..groups[r].len())
                .take_while(|&c| at(r, c) == Some(own))
                .count();
            let whole = |r: &usize| (c..c + cols).all(|c| at(*r, c) == Some(own));
            let rows = (r..groups.len()).take_while(whole).count();
            for line in &mut taken[r..r + rows] {
                line[c..c + cols].fill(true);
            }
            if rows < LABEL.0 || cols < LABEL.1 {
                continue;
            }
            let x = left + (c as f64 + cols as f64 / 2.0) * w;
            let y = top + (r as f64 + rows as f64 / 2.0) * h;
            let _ = writeln!(
                out,
                r##"<path d="M{:.1} {:.1}h68v22h-68z" fill="#ffffff" fill-opacity="0.85"/>"##,
                x - 34.0,
                y - 11.0
            );
            text(out, (x, y + 5.0), "warp", &format!("warp {own}"));
        }
    }
}

/// Writes a line of text. Nothing that is drawn needs escaping but `&` and `<`.
fn text(out: &mut String, (x, y): (f64, f64), class: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        r#"<text x="{x:.1}" y="{y:.1}" class="{class}">{content}</text>"#
    );
}

/// Red, green and blue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Colour([u8; 3]);

impl Colour {
    /// Whether white reads better on it than black.
    fn is_dark(self) -> bool {
        let [r, g, b] = self.0.map(f64::from);
        // The weights of perceived brightness (ITU-R BT.601).
        0.299 * r + 0.587 * g + 0.114 * b < 125.0
    }
}

/// Written out, since some viewers do not know `hsl()`.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [r, g, b] = self.0;
        write!(f, "#{r:02x}{g:02x}{b:02x}")
    }
}

/// The colour of a hue in degrees, saturation and lightness in percent.
fn hsl(hue: f64, saturation: f64, lightness: f64) -> Colour {
    let (s, l) = (saturation / 100.0, lightness / 100.0);
    let reach = s * l.min(1.0 - l);
    let channel = |n: f64| {
        let k = (n + hue / 30.0) % 12.0;
        let value = l - reach * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    };
    Colour([channel(0.0), channel(8.0), channel(4.0)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radix::Digit;

    #[test]
    fn colours() {
        assert_eq!(hsl(0.0, 100.0, 50.0).to_string(), "#ff0000");
        assert_eq!(hsl(120.0, 100.0, 25.0).to_string(), "#008000");
        assert!(hsl(240.0, 60.0, 40.0).is_dark() && !hsl(60.0, 60.0, 50.0).is_dark());
        assert_eq!(hsl(0.0, 0.0, 100.0).to_string(), "#ffffff");
    }

    #[test]
    fn every_element_has_a_cell_and_tags_are_closed() {
        let c = Fragment::from_digits(
            &[16, 8],
            1,
            &[Digit::new(1, 2, 4), Digit::new(0, 1, 8)],
            &[Digit::new(1, 1, 2), Digit::new(0, 8, 2)],
        );
        let svg = fragment("acc, fragment float32[16, 8]", &c.unwrap(), 32);
        assert!(svg.contains(">acc, fragment float32[16, 8]<") && svg.contains(">warp 0<"));
        assert_eq!(svg.matches("<rect x=").count(), 128);
        assert_eq!(
            svg.matches("<rect").count(),
            svg.matches("</rect>").count() + 1
        );
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(svg.contains(">T31<") && svg.contains("thread = i % 8 * 4 + j // 2, "));
        // Large ones are drawn once whole, and a part of them with numbers.
        let large = layout("tile", &Layout::linear(&[300, 64]).unwrap(), 16, 32);
        assert_eq!(large.matches("<rect x=").count(), 192 * 64 + 16 * 16);
        assert!(large.contains("the first 16 by 16 elements") && large.contains(">31<"));
    }
}
