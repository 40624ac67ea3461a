//! A timeline as a picture: a row a lane, program order to the right, a colour an iteration.

use std::fmt::Write as _;

use super::{Event, Kind, Stream, Timeline};

const STEP: f64 = 30.0;
const ROW: f64 = 26.0;
const LEFT: f64 = 190.0;
const MARGIN: f64 = 24.0;
/// Iterations that have colours of their own; then they begin again.
const COLOURS: [&str; 8] = [
    "#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2", "#9d755d", "#72b7b2", "#d4a106",
];

pub fn to_svg(timeline: &Timeline) -> String {
    let steps = timeline.streams.iter().map(|s| s.steps).max().unwrap_or(0);
    let width = LEFT + steps as f64 * STEP + 2.0 * MARGIN;
    let mut body = String::new();
    let mut y = MARGIN + 18.0;
    text(&mut body, (MARGIN, y), "title", &timeline.title);
    y += 20.0;
    let about = "program order to the right; a box is what is issued, numbered by its iteration";
    text(&mut body, (MARGIN, y), "about", about);
    y += 16.0;
    let wide = legend(&mut body, (MARGIN, y));
    y += 30.0;
    for stream in &timeline.streams {
        if !stream.name.is_empty() {
            y += 16.0;
            text(&mut body, (MARGIN, y), "stream", &stream.name);
            y += 8.0;
        }
        y = draw(&mut body, stream, y) + 24.0;
    }
    let (width, height) = (width.max(wide), y + MARGIN);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}">
<style>
text {{ font-family: "Inter", "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", "DejaVu Sans Mono", sans-serif; fill: #1d2433 }}
.title {{ font-size: 17px; font-weight: 600 }}
.about {{ font-size: 12.5px; fill: #5b6476 }}
.stream {{ font-size: 14px; font-weight: 600 }}
.lane {{ font-size: 12px; text-anchor: end }}
.section {{ font-size: 11.5px; fill: #5b6476 }}
.box {{ font-size: 11px; font-weight: 600; text-anchor: middle; fill: #ffffff }}
.plain {{ font-size: 11px; font-weight: 600; text-anchor: middle }}
</style>
<rect width="100%" height="100%" fill="#ffffff"/>
{body}</svg>
"##
    )
}

/// Draws what the marks mean, and says where that ends.
fn legend(out: &mut String, (x, y): (f64, f64)) -> f64 {
    let mut x = x;
    let entries: [(&str, &str, f64, &str); 5] = [
        (COLOURS[0], "2", 22.0, "issued for iteration 2"),
        ("flight", "", 34.0, "in flight, until a wait is for it"),
        (
            "#3b4252",
            "0",
            22.0,
            "wait: how many may be left, or which barrier",
        ),
        ("#8a93a5", "1", 22.0, "arrival at a barrier"),
        ("line", "", 12.0, "barrier of the block"),
    ];
    for (fill, number, width, says) in entries {
        match fill {
            "flight" => rect(out, (x, y + 8.0), (width, 4.0), COLOURS[0], 0.55),
            "line" => rect(out, (x + 4.0, y), (3.0, 20.0), "#1d2433", 1.0),
            fill => rect(out, (x, y), (width, 20.0), fill, 1.0),
        }
        text(out, (x + width / 2.0, y + 14.5), "box", number);
        text(out, (x + width + 6.0, y + 14.5), "about", says);
        x += width + 24.0 + says.chars().count() as f64 * 6.4;
    }
    x
}

/// Draws a stream below `top`, and says where it ends.
fn draw(out: &mut String, stream: &Stream, top: f64) -> f64 {
    let x = |step: usize| LEFT + step as f64 * STEP;
    let rows = top + 22.0;
    let bottom = rows + stream.lanes.len() as f64 * ROW;
    for (at, (start, name)) in stream.sections.iter().enumerate() {
        let end = stream.sections.get(at + 1).map_or(stream.steps, |s| s.0);
        if end == *start {
            continue;
        }
        let shade = if at % 2 == 0 { "#f4f6fa" } else { "#e9edf4" };
        let size = (x(end) - x(*start), bottom - top);
        rect(out, (x(*start), top), size, shade, 1.0);
        // A name that does not fit is left out: its neighbours say what it is.
        if name.chars().count() as f64 * 6.0 < size.0 + 6.0 {
            text(out, (x(*start) + 4.0, top + 14.0), "section", name);
        }
    }
    for (row, lane) in stream.lanes.iter().enumerate() {
        let y = rows + row as f64 * ROW;
        text(out, (LEFT - 10.0, y + 17.0), "lane", &lane.name);
        let _ = writeln!(
            out,
            r##"<line x1="{LEFT}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}" stroke="#d5dbe6" stroke-width="1"/>"##,
            x(stream.steps)
        );
    }
    for event in &stream.events {
        if let Some(until) = event.until
            && until > event.step + 1
        {
            // Those of iterations that follow each other lie below each other.
            let place = event.iteration.unwrap_or(0).rem_euclid(3) as f64;
            let y = rows + event.lane as f64 * ROW + 5.0 + place * 6.0;
            let from = x(event.step) + STEP - 3.0;
            let size = (x(until) - from, 4.0);
            rect(out, (from, y), size, colour(event), 0.55);
        }
    }
    for event in &stream.events {
        let y = rows + event.lane as f64 * ROW;
        if stream.lanes[event.lane].kind == Kind::Barrier {
            let at = x(event.step) + STEP / 2.0 - 1.5;
            rect(out, (at, rows), (3.0, bottom - rows), "#1d2433", 0.85);
            continue;
        }
        let fill = match stream.lanes[event.lane].kind {
            Kind::Wait => "#3b4252",
            Kind::Signal => "#8a93a5",
            _ => colour(event),
        };
        rect(
            out,
            (x(event.step) + 2.0, y + 3.0),
            (STEP - 4.0, ROW - 6.0),
            fill,
            1.0,
        );
        let label = event
            .iteration
            .map_or(event.label.clone(), |i| i.to_string());
        text(out, (x(event.step) + STEP / 2.0, y + 17.0), "box", &label);
    }
    bottom
}

fn colour(event: &Event) -> &'static str {
    let number = event
        .iteration
        .map_or(0, |i| i.rem_euclid(COLOURS.len() as i128));
    match event.iteration {
        Some(_) => COLOURS[number as usize],
        None => "#5b6476",
    }
}

fn rect(out: &mut String, (x, y): (f64, f64), (w, h): (f64, f64), fill: &str, opacity: f64) {
    let _ = writeln!(
        out,
        r#"<rect x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}" rx="3" fill="{fill}" fill-opacity="{opacity}"/>"#
    );
}

fn text(out: &mut String, (x, y): (f64, f64), class: &str, content: &str) {
    if content.is_empty() {
        return;
    }
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        r#"<text x="{x:.1}" y="{y:.1}" class="{class}">{content}</text>"#
    );
}
