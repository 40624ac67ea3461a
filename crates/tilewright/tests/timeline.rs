//! Timelines of pipelined loops against what their device IR says.

use tilewright::frontend::stage;
use tilewright::ir::{Block, DeviceOp, Func, SourceMap, StmtKind, Target, visit};
use tilewright::passes::schedules::ask_for_schedule;
use tilewright::timeline::{Event, Kind, Timeline, timelines, to_svg};

const GEMM: &str = include_str!("../../../examples/gemm.py");

fn lowered(target: Target) -> Func {
    lowered_by("auto", target)
}

fn lowered_by(schedule: &str, target: Target) -> Func {
    let mut sources = SourceMap::new();
    let file = sources.add("gemm.py", GEMM);
    let mut staged = stage(&sources, file, None, &[]).expect("it is staged");
    if schedule != "auto" {
        ask_for_schedule(&mut staged.func, schedule);
    }
    tilewright::lower(&staged.func, target).expect("it is lowered")
}

fn drawn(target: Target) -> Timeline {
    drawn_by("auto", target)
}

fn drawn_by(schedule: &str, target: Target) -> Timeline {
    let mut all = timelines(&lowered_by(schedule, target), target);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Every copy of an iteration is complete before a read of the same tile for that iteration.
#[test]
fn copies_land_before_they_are_read() {
    for target in [Target::Sm80, Target::Gfx950] {
        let timeline = drawn(target);
        let [stream] = &timeline.streams[..] else {
            panic!("{target}: {} streams", timeline.streams.len());
        };
        let lane = |name: &str| {
            let found = stream.lanes.iter().position(|l| l.name == name);
            found.unwrap_or_else(|| panic!("{target} has no lane `{name}`: {:?}", stream.lanes))
        };
        for tile in ["A_shared", "B_shared"] {
            let (copy, read) = (lane(&format!("copy {tile}")), lane(&format!("read {tile}")));
            let mut compared = 0;
            for e in stream.events.iter().filter(|e| e.lane == read) {
                let same = |c: &&Event| c.lane == copy && c.iteration == e.iteration;
                if let Some(copied) = stream.events.iter().find(same) {
                    let landed = copied.until.expect("a wait is for it");
                    assert!(
                        copied.step < landed && landed < e.step,
                        "{target}: {copied:?} {e:?}"
                    );
                    compared += 1;
                }
            }
            assert!(compared >= 4, "{target}: {compared} reads of `{tile}`");
        }
    }
}

/// A product comes behind the reads of its iteration, and is complete at once where warps multiply.
#[test]
fn products_follow_their_reads() {
    for (schedule, target) in [("auto", Target::Sm80), ("plain", Target::Gfx950)] {
        let timeline = drawn_by(schedule, target);
        let stream = &timeline.streams[0];
        let kind = |e: &Event| stream.lanes[e.lane].kind;
        // Behind the gap there are reads that were left out.
        let gap = stream.sections.iter().find(|s| s.1.starts_with('…'));
        let gap = gap.expect("it is cut short").0;
        let mut products = 0;
        for p in stream
            .events
            .iter()
            .filter(|e| kind(e) == Kind::Product && e.step < gap)
        {
            let before = &stream.events[..p.step];
            let read = |e: &Event| kind(e) == Kind::Read && e.iteration == p.iteration;
            assert!(before.iter().any(read), "{target}: {p:?}");
            assert_eq!(p.until, None, "{target}");
            products += 1;
        }
        assert!(products >= 4, "{target}: {products} products");
    }
}

/// Producer and consumer are streams of their own.
#[test]
fn warp_groups_are_streams() {
    let timeline = drawn_by("producer_consumer", Target::Sm90a);
    let names: Vec<&str> = timeline.streams.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["warp group 0", "warp group 1"]);
    let has = |at: usize, kind: Kind| timeline.streams[at].lanes.iter().any(|l| l.kind == kind);
    assert!(has(0, Kind::Product) && !has(0, Kind::Copy));
    assert!(has(1, Kind::Copy) && !has(1, Kind::Product));
}

/// A dropped wait is seen: what it was for stays in flight.
#[test]
fn without_its_wait_a_copy_stays_in_flight() {
    let mut func = lowered(Target::Sm80);
    fn drop_waits(body: &mut Block) {
        body.retain(|s| !matches!(s.kind, StmtKind::Device(DeviceOp::Wait { .. })));
        for stmt in body {
            visit::child_blocks_mut(stmt)
                .into_iter()
                .for_each(drop_waits);
        }
    }
    drop_waits(&mut func.kernels[0].body);
    let timeline = &timelines(&func, Target::Sm80)[0];
    let stream = &timeline.streams[0];
    let copies = stream
        .events
        .iter()
        .filter(|e| stream.lanes[e.lane].kind == Kind::Copy);
    let behind = |s: &&(usize, String)| s.1 == "behind the loop";
    let behind = stream.sections.iter().find(behind).expect("it ends").0;
    for copy in copies {
        assert_eq!(copy.until, Some(behind), "{copy:?}");
    }
}

#[test]
fn pictures_are_whole() {
    for target in [Target::Sm80, Target::Sm90a, Target::Gfx942] {
        let svg = to_svg(&drawn(target));
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(svg.contains("k = 0") && svg.contains("in flight"));
    }
}
