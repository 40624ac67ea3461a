//! Orders to text.

use std::fmt::Write;

use super::arrange::{Called, Named};
use super::{ClusterText, EntryText, Stream};
use crate::optimize::common::inject_software_pipeline::arrangement::{Arrangement, Entry, place};
use crate::optimize::common::inject_software_pipeline::pieces::Pieces;
use crate::optimize::common::inject_software_pipeline::steps::Within;
use tilewright_ir::Func;

/// An arrangement as text, with what is `derived` of each cluster behind it as comments.
pub fn print(
    func: &Func,
    pieces: &Pieces,
    (name, of_loop): (&str, &str),
    order: &Arrangement,
    derived: &dyn Fn(usize) -> Vec<String>,
) -> String {
    let clusters = clusters(func, pieces, order);
    let mut out = String::new();
    let _ = writeln!(out, "schedule {name} for {of_loop}");
    let opened = |e: Entry| {
        let steps = pieces.list[e.piece].steps.as_ref()?;
        steps.along_k(e.part?.step).map(|_| steps.count)
    };
    let parts = [
        ("m", Some(order.split.m)),
        ("n", Some(order.split.n)),
        ("k", order.entries().find_map(opened)),
        ("p", Some(order.split.p)),
    ];
    let parts = parts.iter().filter_map(|(axis, parts)| {
        let parts = parts.filter(|parts| *axis == "k" || *parts > 1)?;
        Some(format!("{axis} {parts}"))
    });
    let parts: Vec<String> = parts.collect();
    if !parts.is_empty() {
        let _ = writeln!(out, "split {}", parts.join(", "));
    }
    let stream = match (order.producer, order.lag) {
        (true, _) => Stream::Producer,
        (false, 0) => Stream::All,
        (false, lag) => Stream::Halves { lag },
    };
    match stream {
        Stream::All => out.push_str("stream all\n"),
        Stream::Halves { lag } => {
            let _ = writeln!(out, "stream halves lag {lag}");
        }
        Stream::Producer => out.push_str("stream producer\n"),
    }
    if order.spare > 0 {
        let _ = writeln!(out, "spare {}", order.spare);
    }
    for (at, cluster) in clusters.iter().enumerate() {
        for line in derived(at) {
            let _ = writeln!(out, "  # {line}");
        }
        let _ = writeln!(out, "  {}", cluster_text(cluster));
    }
    out
}

fn cluster_text(cluster: &ClusterText) -> String {
    let bar = if cluster.bar { " bar" } else { "" };
    let priority = match cluster.priority {
        0 => String::new(),
        n => format!(" prio {n}"),
    };
    let woven = if cluster.woven { " woven" } else { "" };
    let entries: Vec<String> = cluster.entries.iter().map(entry_text).collect();
    let (name, entries) = (&cluster.name, entries.join("; "));
    format!("cluster {name}{bar}{priority}{woven} {{ {entries} }}")
}

pub(super) fn entry_text(entry: &EntryText) -> String {
    let mut text = entry.label.clone();
    if entry.ordinal != 1 {
        let _ = write!(text, "({})", entry.ordinal);
    }
    let within = Within {
        m: entry.m,
        n: entry.n,
        p: entry.p,
    };
    text += &place(within, entry.k);
    if entry.ahead > 0 {
        let _ = write!(text, " ahead {}", entry.ahead);
    }
    text
}

/// The clusters as they are written.
fn clusters(func: &Func, pieces: &Pieces, order: &Arrangement) -> Vec<ClusterText> {
    let named = Named::of(func, pieces);
    let along_k = |piece: usize, step: u32| pieces.list[piece].steps.as_ref()?.along_k(step);
    let entry = |entry: &Entry| {
        let called = match entry.part {
            None => Called::Whole(entry.piece),
            Some(part) => Called::Op(entry.piece, part.op),
        };
        let (label, ordinal) = named.name(called);
        let within = named.within(called);
        EntryText {
            label,
            ordinal,
            m: within.m,
            n: within.n,
            k: entry.part.and_then(|part| along_k(entry.piece, part.step)),
            p: within.p,
            ahead: entry.ahead,
        }
    };
    let clusters = order.clusters.iter().map(|cluster| ClusterText {
        name: cluster.name.clone(),
        bar: cluster.meet,
        priority: cluster.priority,
        woven: cluster.woven,
        entries: cluster.entries.iter().map(entry).collect(),
    });
    clusters.collect()
}
