//! Drawings as SVG: one coloured cell an element.
//!
//! Fragments are coloured by thread (a hue a lane, a shade a warp), places in shared memory by
//! bank. Small tensors have their numbers written in the cells; large ones are colour alone.

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
const GRIDS: usize = 4;
const MARGIN: f64 = 24.0;

/// One element in the drawing.
struct Cell {
    fill: Colour,
    large: String,
    small: String,
    hover: String,
}

/// A fragment, coloured by thread; `lanes` is the size of a warp.
pub fn fragment(fragment: &Fragment, lanes: i64) -> String {
    let mut title = format!(
        "{} on {} threads, {} slots",
        Tuple(fragment.shape()),
        fragment.threads(),
        fragment.slots()
    );
    if fragment.replicas() > 1 {
        title += &format!(", {} copies", fragment.replicas());
    }
    let subtitle = fragment_formula(fragment);
    let warps = (fragment.threads() + lanes - 1) / lanes;
    let cell = |index: &[i64]| {
        let holder = fragment.holder(index, 0);
        let (lane, warp) = (holder.thread % lanes, holder.thread / lanes);
        let hue = 360.0 * lane as f64 / lanes as f64;
        // Warps step from light to dark, so neighbours of one hue stay apart.
        let light = 84.0 - 40.0 * warp as f64 / (warps.max(2) - 1) as f64;
        Cell {
            fill: hsl(hue, 62.0, light),
            large: format!("T{}", holder.thread),
            small: format!("r{}", holder.slot),
            hover: format!(
                "{} thread {} slot {}",
                Tuple(index),
                holder.thread,
                holder.slot
            ),
        }
    };
    page(&title, subtitle.as_deref(), fragment.shape(), cell)
}

/// A place in shared memory, coloured by the bank of the element's first byte.
pub fn layout(layout: &Layout, element_bits: i64, banks: i64) -> String {
    let title = format!(
        "{} in {} places of {element_bits} bits, {banks} banks",
        Tuple(layout.shape()),
        layout.span()
    );
    let subtitle = layout_formula(layout).map(|f| format!("place = {f}"));
    let cell = |index: &[i64]| {
        let place = layout.offset(index);
        let bank = place * element_bits / 32 % banks;
        let light = if bank % 2 == 0 { 80.0 } else { 70.0 };
        Cell {
            fill: hsl(360.0 * bank as f64 / banks as f64, 60.0, light),
            large: place.to_string(),
            small: format!("b{bank}"),
            hover: format!("{} place {place} bank {bank}", Tuple(index)),
        }
    };
    page(&title, subtitle.as_deref(), layout.shape(), cell)
}

fn page(
    title: &str,
    subtitle: Option<&str>,
    shape: &[i64],
    cell: impl Fn(&[i64]) -> Cell,
) -> String {
    let (grids, count) = Grid::all(shape, GRIDS);
    let mut body = String::new();
    let mut y = MARGIN + 20.0;
    text(&mut body, (MARGIN, y), "title", title);
    // Roughly the width of a glyph at each size; the page must hold the headings too.
    let mut width = MARGIN + title.chars().count() as f64 * 9.5;
    if let Some(subtitle) = subtitle {
        y += 20.0;
        text(&mut body, (MARGIN, y), "formula", subtitle);
        width = width.max(MARGIN + subtitle.chars().count() as f64 * 7.5);
    }
    y += 16.0;
    for grid in &grids {
        if let Some(title) = grid.title() {
            y += 18.0;
            text(&mut body, (MARGIN, y), "formula", &title);
            y += 4.0;
        }
        let (w, h) = draw_grid(&mut body, grid, (MARGIN, y), &cell);
        width = width.max(MARGIN + w);
        y += h + 12.0;
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
text {{ font-family: "Inter", "Helvetica Neue", Helvetica, Arial, sans-serif; fill: #1d2433 }}
.title {{ font-size: 17px; font-weight: 600 }}
.formula {{ font-size: 12.5px; font-family: "JetBrains Mono", "DejaVu Sans Mono", Menlo, monospace; fill: #5b6476 }}
.axis {{ font-size: 10px; text-anchor: middle; fill: #8a93a5 }}
.large {{ font-size: 11px; font-weight: 600; text-anchor: middle }}
.small {{ font-size: 8.5px; text-anchor: middle; fill-opacity: 0.72 }}
.dark {{ fill: #ffffff }}
</style>
<rect width="100%" height="100%" fill="#ffffff"/>
{body}</svg>
"##
    )
}

/// Draws a grid at a point and returns its width and height.
fn draw_grid(
    out: &mut String,
    grid: &Grid,
    (x0, y0): (f64, f64),
    cell: impl Fn(&[i64]) -> Cell,
) -> (f64, f64) {
    let written = grid.rows * grid.cols <= WRITTEN && grid.cols <= WRITTEN_COLS;
    let (w, h, gap) = if written {
        (38.0, 30.0, 1.5)
    } else {
        (8.0, 8.0, 0.0)
    };
    let radius = if written { 3.0 } else { 0.0 };
    let (rows, cols) = (shown(grid.rows, DRAWN), shown(grid.cols, DRAWN));
    let (left, top) = (x0 + 30.0, y0 + 20.0);
    // Label every cell, or every 16th of a dense drawing.
    let labelled = |i: i64| written || i % 16 == 0;
    for (c, col) in cols.iter().enumerate() {
        let x = left + (c as f64 + 0.5) * w;
        match col {
            Some(col) if labelled(*col) => text(out, (x, top - 6.0), "axis", &col.to_string()),
            Some(_) => {}
            None => text(out, (x, top - 6.0), "axis", "…"),
        }
    }
    for (r, row) in rows.iter().enumerate() {
        let y = top + r as f64 * h;
        let middle = (left - 15.0, y + h / 2.0 + 3.5);
        let Some(row) = row else {
            text(out, middle, "axis", "…");
            continue;
        };
        if labelled(*row) {
            text(out, middle, "axis", &grid.row_label(*row).to_string());
        }
        for (c, col) in cols.iter().enumerate() {
            let Some(index) = col.and_then(|col| grid.index(*row, col)) else {
                continue;
            };
            let x = left + c as f64 * w;
            let Cell {
                fill,
                large,
                small,
                hover,
            } = cell(&index);
            let (cw, ch) = (w - gap, h - gap);
            let _ = write!(
                out,
                r#"<rect x="{x}" y="{y}" width="{cw}" height="{ch}" rx="{radius}" fill="{fill}"><title>{hover}</title></rect>"#
            );
            if written {
                let ink = if fill.is_dark() { " dark" } else { "" };
                let middle = x + cw / 2.0;
                text(out, (middle, y + 13.5), &format!("large{ink}"), &large);
                text(out, (middle, y + 24.0), &format!("small{ink}"), &small);
            }
            out.push('\n');
        }
    }
    (30.0 + cols.len() as f64 * w, 20.0 + rows.len() as f64 * h)
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
        let svg = fragment(&c.unwrap(), 32);
        assert_eq!(svg.matches("<rect x=").count(), 128);
        assert_eq!(
            svg.matches("<rect").count(),
            svg.matches("</rect>").count() + 1
        );
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(svg.contains(">T31<") && svg.contains("thread = i % 8 * 4 + j // 2, "));
        let large = layout(&Layout::linear(&[300, 64]).unwrap(), 16, 32);
        assert_eq!(large.matches("<rect x=").count(), 192 * 64);
    }
}
