//! A timing as trace events for Chrome's and Perfetto's viewers: a process a SIMD, a thread a
//! wave. A microsecond of the viewer is a cycle.

use std::fmt::Write as _;
use std::ops::Range;

use crate::asm::Function;

use super::plan::Kind;
use super::{Issued, Timing};

/// The events of a window of cycles, as JSON.
pub fn chrome(timing: &Timing, function: &Function, window: Range<u64>) -> String {
    let mut events: Vec<String> = Vec::new();
    for (wave, timed) in timing.waves.iter().enumerate() {
        let (simd, name) = (timed.simd, format!("wave {wave}"));
        events.push(format!(
            r#"{{"ph":"M","pid":{simd},"name":"process_name","args":{{"name":"SIMD {simd}"}}}}"#
        ));
        events.push(format!(
            r#"{{"ph":"M","pid":{simd},"tid":{wave},"name":"thread_name","args":{{"name":"{name}"}}}}"#
        ));
        for (at, issued) in timed.issued.iter().enumerate() {
            let until = timed
                .issued
                .get(at + 1)
                .map_or(issued.end, |next| next.since);
            if issued.since >= window.end || until <= window.start {
                continue;
            }
            events.push(event(timing, function, simd, wave, issued, until));
        }
    }
    let mut out = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    out.push_str(&events.join(",\n"));
    out.push_str("\n]}\n");
    out
}

/// An instruction from when it is the wave's next until the one behind it is.
fn event(
    timing: &Timing,
    function: &Function,
    simd: usize,
    wave: usize,
    issued: &Issued,
    until: u64,
) -> String {
    let index = issued.instruction as usize;
    let kind = timing.kinds.get(index).copied().unwrap_or(Kind::Control);
    let (text, line) = match function.instructions.get(index) {
        Some(instruction) => (instruction.text.as_str(), instruction.line),
        None => ("", 0),
    };
    let mut out = String::new();
    let _ = write!(
        out,
        r#"{{"ph":"X","pid":{simd},"tid":{wave},"ts":{},"dur":{},"cat":"{}","name":{},"args":{{"line":{line},"issue":{},"end":{}"#,
        issued.since,
        until - issued.since,
        kind.name(),
        quoted(text),
        issued.issue,
        issued.end,
    );
    if let Some(stall) = issued.stall {
        let _ = write!(out, r#","waits":"{stall}","waited":{}"#, issued.waited());
    }
    out.push_str("}}");
    out
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
