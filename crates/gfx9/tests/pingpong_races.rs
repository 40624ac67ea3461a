//! The 8-wave order of two groups one barrier apart, as it was published and as it was repaired, in
//! machine code: the emulator finds the race of the one and none in the others.
//!
//! The file is the order with B of the next tile waited for at the end of the loop and before it; as
//! published both waits leave two copies more under way, and the leading group reads a tile that
//! nothing says has arrived. Nothing in the result shows it.

use tilewright_gfx9::asm::{Function, parse};
use tilewright_gfx9::emu::{Arch, Argument, Buffer, Finding, Kind, Landing, Launch, run};

const REPAIRED: &str = include_str!("asm/pingpong.s");

/// The lines of the two waits, and of the barrier in the third phase.
const PROLOGUE: usize = 170;
const LOOP_END: usize = 691;
const THIRD_PHASE: usize = 459;

/// The text with lines replaced: what stands there, and what is to.
fn with(changes: &[(usize, &str, &str)]) -> String {
    let mut lines: Vec<String> = REPAIRED.lines().map(str::to_owned).collect();
    for (line, old, new) in changes {
        assert_eq!(lines[line - 1].trim(), *old, "line {line}");
        lines[line - 1] = (*new).to_owned();
    }
    lines.join("\n")
}

fn findings(text: &str, landing: Landing) -> (Function, Vec<Finding>) {
    let k = 512u32;
    let function = parse(text).unwrap().functions[0].clone();
    let operand = |name: &str| Buffer {
        name: name.to_owned(),
        bytes: vec![0; 256 * k as usize * 2],
        element: 2,
        writable: false,
        holds: None,
    };
    let result = Buffer {
        name: "C".to_owned(),
        bytes: vec![0; 256 * 256 * 4],
        element: 4,
        writable: true,
        holds: Some(vec![false; 256 * 256]),
    };
    let mut launch = Launch::new([1, 1, 1], [512, 1, 1]);
    launch.buffers = vec![operand("A"), operand("B"), result];
    launch.arguments = (0..3)
        .map(|index| Argument::Buffer { index, offset: 0 })
        .chain([256, 256, k].map(|n| Argument::Bytes(n.to_le_bytes().to_vec())))
        .collect();
    launch.landing = landing;
    let outcome = run(&function, Arch::Gfx950, launch).unwrap();
    (function, outcome.findings)
}

const PUBLISHED: [(usize, &str, &str); 2] = [
    (PROLOGUE, "s_waitcnt vmcnt(4)", "s_waitcnt vmcnt(6)"),
    (LOOP_END, "s_waitcnt vmcnt(4)", "s_waitcnt vmcnt(6)"),
];

#[test]
fn as_published_a_read_races_with_a_copy() {
    for landing in [Landing::Early, Landing::Late, Landing::Random] {
        let (function, found) = findings(&with(&PUBLISHED), landing);
        let races: Vec<&Finding> = found.iter().filter(|f| f.kind == Kind::Race).collect();
        assert!(!races.is_empty(), "{landing:?}");
        for race in races {
            let code = &function.instructions;
            let pair = [code[race.at].clone(), code[race.other.unwrap()].clone()];
            let read = pair.iter().any(|i| i.is_lds_read());
            let copy = pair.iter().any(|i| i.is_lds_copy());
            assert!(read && copy, "{}", race.show(&function));
        }
    }
}

#[test]
fn repaired_by_a_stricter_wait_nothing_races() {
    for landing in [Landing::Early, Landing::Late, Landing::Random] {
        let (function, found) = findings(REPAIRED, landing);
        let shown: Vec<String> = found.iter().map(|f| f.show(&function)).collect();
        assert_eq!(shown, Vec::<String>::new());
    }
}

#[test]
fn repaired_by_one_more_wait_nothing_races() {
    let late = (THIRD_PHASE, "s_barrier", "s_waitcnt vmcnt(10)\n\ts_barrier");
    let text = with(&[PUBLISHED[0], PUBLISHED[1], late]);
    for landing in [Landing::Early, Landing::Late, Landing::Random] {
        let (function, found) = findings(&text, landing);
        let shown: Vec<String> = found.iter().map(|f| f.show(&function)).collect();
        assert_eq!(shown, Vec::<String>::new());
    }
}
