//! What a launch takes of memory is known before it starts, and what grows is counted.

use std::fs;

use tilewright_gfx9::asm::{Function, parse};
use tilewright_gfx9::emu::{
    Arch, Argument, Buffer, Finding, Kind, Landing, Launch, Needs, Refused, run,
};

const LDS: u32 = 32 << 10;

/// Reads the tensor's address.
const START: &str = "k:
    s_load_dwordx2 s[8:9], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
";

fn kernel(body: &str) -> Function {
    let program = parse(&format!("{START}{body}\ns_endpgm\n")).unwrap();
    program.functions[0].clone()
}

fn launch(blocks: u32) -> Launch {
    let mut launch = Launch::new([blocks, 1, 1], [256, 1, 1]);
    launch.dynamic_lds = LDS;
    launch.workers = 2;
    launch.buffers = vec![Buffer {
        name: "O".to_owned(),
        bytes: vec![0; 4096],
        element: 4,
        writable: true,
        holds: None,
    }];
    launch.arguments = vec![Argument::Buffer {
        index: 0,
        offset: 0,
    }];
    launch
}

fn with_room(function: &Function, blocks: u32, room: u64) -> Result<Vec<Finding>, Refused> {
    let mut launch = launch(blocks);
    launch.room = Some(room);
    run(function, Arch::Gfx950, launch).map(|outcome| outcome.findings)
}

fn needs(function: &Function, blocks: u32) -> Needs {
    match with_room(function, blocks, 0) {
        Err(Refused::NoRoom { needs, room: 0 }) => needs,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_launch_is_run_where_there_is_just_room_for_it() {
    let function = kernel("");
    let bytes = needs(&function, 8).bytes();
    assert_eq!(with_room(&function, 8, bytes), Ok(Vec::new()));
    let refused = with_room(&function, 8, bytes - 1).unwrap_err();
    let want = format!(
        "the launch takes {bytes} bytes of memory, and {} are left",
        bytes - 1
    );
    assert_eq!(refused.to_string(), want);
}

#[test]
fn blocks_that_wait_for_each_other_are_all_alive() {
    let waits = [
        "s_sleep 1",
        "global_atomic_add v2, v1, v1, s[8:9] sc0\ns_waitcnt vmcnt(0)",
    ];
    for (body, alive) in [("", 2), (waits[0], 1000), (waits[1], 1000)] {
        let needs = needs(&kernel(body), 1000);
        assert_eq!(
            (needs.alive, needs.all_alive),
            (alive, alive == 1000),
            "{body}"
        );
        // Of each byte of LDS who wrote it, and which of the four waves read it.
        assert!(
            needs.block > u64::from(LDS) * (1 + 16 + 4 * 12),
            "{needs:?}"
        );
        // Of each word of the tensor who wrote it and who read it, and a copy.
        assert_eq!(needs.buffers, 4096 + 1024 * 40);
    }
    let mut one = launch(1000);
    (one.only, one.room) = (Some(7), Some(0));
    match run(&kernel(waits[0]), Arch::Gfx950, one) {
        Err(Refused::NoRoom { needs, .. }) => assert_eq!(needs.alive, 1),
        other => panic!("{other:?}"),
    }
}

/// What the process has had at most, in bytes.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(number << 10)
}

#[test]
fn a_launch_takes_what_was_said() {
    let function = kernel("s_sleep 1");
    let bytes = needs(&function, 48).bytes();
    let Some(before) = peak() else { return };
    assert_eq!(with_room(&function, 48, bytes), Ok(Vec::new()));
    let taken = peak().unwrap_or(0).saturating_sub(before);
    // Memory that the process had before may be used again.
    assert!(
        (bytes / 2..bytes + (8 << 20)).contains(&taken),
        "{taken} of {bytes}"
    );
}

/// All waves read the same words: each is one to remember.
#[test]
fn readers_are_counted() {
    let function = kernel("global_load_dword v2, v1, s[8:9]\ns_waitcnt vmcnt(0)");
    let needs = needs(&function, 200).bytes();
    assert_eq!(
        with_room(&function, 200, needs + (64 << 20)),
        Ok(Vec::new())
    );
    let found = with_room(&function, 200, needs + (64 << 10)).unwrap();
    // Blocks that run at the same time may each say so.
    let only = found.iter().all(|f| f.kind == Kind::OutOfMemory);
    assert!(only && !found.is_empty(), "{found:?}");
}

/// A wave that has issued as many loads as are counted goes on when the first one is done.
#[test]
fn a_full_counter_holds_a_wave_back() {
    for (load, most) in [
        ("global_load_dword v{}, v1, s[8:9]", 63),
        ("ds_read_b32 v{}, v1", 15),
    ] {
        for (more, found) in [(most - 1, true), (most, false)] {
            let loads = |register: &str| load.replace("{}", register) + "\n";
            let body = format!(
                "ds_write_b32 v1, v1\ns_waitcnt lgkmcnt(0)\n{}{}v_mov_b32_e32 v4, v2",
                loads("2"),
                loads("3").repeat(more)
            );
            for landing in [Landing::Early, Landing::Late] {
                let mut launch = launch(1);
                launch.landing = landing;
                let outcome = run(&kernel(&body), Arch::Gfx950, launch).unwrap();
                let pending = outcome.findings.iter().any(|f| f.kind == Kind::Pending);
                assert_eq!(pending, found, "{load}, {more} more");
            }
        }
    }
}

#[test]
fn scalar_loads_that_are_never_waited_for_stop() {
    let body = "s_load_dword s4, s[8:9], 0x0\n".repeat(200);
    let outcome = run(&kernel(&body), Arch::Gfx950, launch(1)).unwrap();
    let fault = outcome.findings.iter().find(|f| f.kind == Kind::Fault);
    assert!(fault.is_some_and(|f| f.reason.contains("never waited for")));
}
