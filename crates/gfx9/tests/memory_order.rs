//! What orders accesses of memory, and which of those that nothing orders do harm: small kernels of
//! two waves or two blocks, and what the emulator finds in each, in every mode of landing.

use tilewright_gfx9::asm::parse;
use tilewright_gfx9::emu::{Arch, Argument, Buffer, Kind, Landing, Launch, run};

/// Every kernel starts so: the tensor, the thread's place in it, the number of the wave.
const START: &str = "k:
    s_load_dwordx2 s[8:9], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    v_lshrrev_b32_e32 v2, 6, v0
    v_readfirstlane_b32 s10, v2
    v_mov_b32_e32 v4, 0
    s_waitcnt lgkmcnt(0)
";

/// Runs a kernel in blocks of some threads and gives the rules that it breaks, the same in every
/// mode. The tensor has 512 words that hold zeros.
fn broken(body: &str, blocks: u32, threads: u32) -> Vec<Kind> {
    broken_in(body, blocks, threads, 4, 100_000)
}

/// The same in so many orders of waves, of so many steps at most.
fn broken_in(body: &str, blocks: u32, threads: u32, orders: u64, steps: u64) -> Vec<Kind> {
    let program = parse(&format!("{START}{body}\ns_endpgm\n")).unwrap();
    let function = &program.functions[0];
    let mut all: Option<Vec<Kind>> = None;
    for landing in [Landing::Early, Landing::Late, Landing::Random] {
        for seed in 0..orders {
            let mut launch = Launch::new([blocks, 1, 1], [threads, 1, 1]);
            launch.buffers = vec![Buffer {
                name: "O".to_owned(),
                bytes: vec![0; 2048],
                element: 4,
                writable: true,
                holds: None,
            }];
            launch.arguments = vec![Argument::Buffer {
                index: 0,
                offset: 0,
            }];
            launch.dynamic_lds = 64;
            launch.landing = landing;
            launch.seed = seed;
            launch.steps = steps;
            let outcome = run(function, Arch::Gfx950, launch).unwrap();
            let mut kinds: Vec<Kind> = outcome.findings.iter().map(|f| f.kind).collect();
            kinds.sort();
            kinds.dedup();
            let shown: Vec<String> = outcome.findings.iter().map(|f| f.show(function)).collect();
            let before = all.get_or_insert_with(|| kinds.clone());
            assert_eq!(
                *before, kinds,
                "{body}\n{landing:?}, seed {seed}: {shown:#?}"
            );
        }
    }
    all.unwrap()
}

/// Wave 1 does this to `v5`, which it loaded while wave 0 may have been writing it.
fn after_a_race(then: &str) -> Vec<Kind> {
    let body = format!(
        "v_mov_b32_e32 v3, 7
        s_cmp_lg_u32 s10, 0
        s_cbranch_scc1 .Lload
        ds_write_b32 v4, v3
        s_waitcnt lgkmcnt(0)
        s_barrier
        ds_write_b32 v4, v3
        s_endpgm
        .Lload:
        s_barrier
        ds_read_b32 v5, v4
        s_waitcnt lgkmcnt(0)
        {then}
        .Lend:"
    );
    broken(&body, 1, 128)
}

/// What is done with what a load gave that nothing orders and a write, and whether it shows.
const USES: &[(&str, bool)] = &[
    ("", false),
    ("global_store_dword v1, v5, s[8:9]", true),
    ("ds_write_b32 v4, v5 offset:16", true),
    (
        "v_mov_b32_e32 v5, 1\n global_store_dword v1, v5, s[8:9]",
        false,
    ),
    (
        "v_add_u32_e32 v6, 1, v5\n global_store_dword v1, v6, s[8:9]",
        true,
    ),
    // Bits that are cut off, and bits that are not.
    (
        "v_and_b32_e32 v6, 0xff, v5\n v_lshrrev_b32_e32 v6, 8, v6
        global_store_dword v1, v6, s[8:9]",
        false,
    ),
    (
        "v_and_b32_e32 v6, 0x1ff, v5\n v_lshrrev_b32_e32 v6, 8, v6
        global_store_dword v1, v6, s[8:9]",
        true,
    ),
    // Another value is chosen, or this one, or the choice itself is not known.
    (
        "s_mov_b64 vcc, 0\n v_cndmask_b32_e32 v6, v0, v5, vcc
        global_store_dword v1, v6, s[8:9]",
        false,
    ),
    (
        "s_mov_b64 vcc, 1\n v_cndmask_b32_e32 v6, v0, v5, vcc
        global_store_dword v1, v6, s[8:9]",
        true,
    ),
    (
        "v_cmp_eq_u32_e32 vcc, 0, v5\n v_cndmask_b32_e32 v6, v0, v1, vcc
        global_store_dword v1, v6, s[8:9]",
        true,
    ),
    // Lanes run by it, or only where the rest says no.
    (
        "v_cmp_eq_u32_e32 vcc, 0, v5\n s_and_saveexec_b64 s[12:13], vcc",
        true,
    ),
    (
        "v_cmp_eq_u32_e32 vcc, 0, v5\n s_and_b64 vcc, vcc, 0
        s_and_saveexec_b64 s[12:13], vcc\n s_cbranch_execz .Lend",
        false,
    ),
    ("v_cmpx_eq_u32_e32 vcc, 0, v5", true),
    // One value for the wave, and a branch by it.
    ("v_readfirstlane_b32 s11, v5\n s_add_i32 s11, s11, 1", false),
    (
        "v_readfirstlane_b32 s11, v5\n s_cmp_eq_u32 s11, 0\n s_cbranch_scc1 .Lend",
        true,
    ),
    (
        "v_readfirstlane_b32 s11, v5\n s_or_b32 s11, s11, 1\n s_cbranch_scc1 .Lend",
        false,
    ),
    // An address, of a load too.
    (
        "v_and_b32_e32 v6, 4, v5\n global_load_dword v7, v6, s[8:9]\n s_waitcnt vmcnt(0)",
        true,
    ),
    // Lanes that load it are not those that go on.
    (
        "s_mov_b64 exec, 1\n v_mov_b32_e32 v5, 0\n global_store_dword v1, v5, s[8:9]",
        false,
    ),
    (
        "s_mov_b64 exec, 1\n v_mov_b32_e32 v5, 0\n s_mov_b64 exec, 2
        global_store_dword v1, v5, s[8:9]",
        true,
    ),
    // Another lane's.
    (
        "v_mov_b32_e32 v6, 0\n ds_bpermute_b32 v7, v6, v5\n s_waitcnt lgkmcnt(0)
        global_store_dword v1, v7, s[8:9]",
        true,
    ),
    (
        "s_mov_b64 exec, 2\n v_mov_b32_e32 v5, 0\n s_mov_b64 exec, -1\n v_mov_b32_e32 v6, 4
        ds_bpermute_b32 v7, v6, v5\n s_waitcnt lgkmcnt(0)\n global_store_dword v1, v7, s[8:9]",
        false,
    ),
];

#[test]
fn a_load_that_nothing_orders_is_wrong_where_it_is_used() {
    for (then, shows) in USES {
        let wanted: &[Kind] = if *shows { &[Kind::Race] } else { &[] };
        assert_eq!(after_a_race(then), wanted, "{then}");
    }
}

#[test]
fn so_is_one_of_what_nothing_wrote() {
    let load = "ds_read_b32 v5, v1\n s_waitcnt lgkmcnt(0)\n";
    let store = "global_store_dword v1, v5, s[8:9]";
    assert_eq!(broken(load, 1, 8), []);
    assert_eq!(broken(&format!("{load}{store}"), 1, 8), [Kind::Unwritten]);
}

/// Each thread stores, and after `between` loads what a thread of the other wave stored.
fn exchanged(between: &str, load: &str) -> Vec<Kind> {
    let body = format!(
        "global_store_dword v1, v0, s[8:9]
        {between}
        v_xor_b32_e32 v6, 0x100, v1
        {load}
        s_waitcnt vmcnt(0) lgkmcnt(0)
        global_store_dword v1, v7, s[8:9] offset:1024"
    );
    broken(&body, 1, 128)
}

#[test]
fn waves_of_a_block_reach_memory_through_one_cache() {
    let vector = "global_load_dword v7, v6, s[8:9]";
    assert_eq!(exchanged("s_barrier", vector), []);
    assert_eq!(exchanged("", vector), [Kind::Race]);
    // Scalar loads have a cache of their own.
    let scalar = "v_readfirstlane_b32 s12, v6
        s_load_dword s13, s[8:9], s12
        s_waitcnt lgkmcnt(0)
        v_mov_b32_e32 v7, s13";
    assert_eq!(exchanged("s_barrier", scalar), [Kind::Race]);
    assert_eq!(exchanged("s_waitcnt vmcnt(0)\n s_barrier", scalar), []);
}

#[test]
fn a_store_behind_a_barrier_comes_after_loads_before_it() {
    let body = |between: &str| {
        format!(
            "v_xor_b32_e32 v6, 0x100, v1
            global_load_dword v7, v6, s[8:9]
            {between}
            global_store_dword v1, v0, s[8:9]
            s_waitcnt vmcnt(0)
            global_store_dword v1, v7, s[8:9] offset:1024"
        )
    };
    assert_eq!(broken(&body("s_barrier"), 1, 128), []);
    assert_eq!(broken(&body(""), 1, 128), [Kind::Race]);
}

/// Block 0 stores and raises a flag, block 1 waits for the flag and loads. Of each pair of lines one
/// is left out to see that it is needed.
const HANDED: &[(&str, Needed)] = &[
    ("s_cmp_lg_u32 s2, 0", Needed::Always),
    ("s_cbranch_scc1 .Lpoll", Needed::Always),
    ("global_store_dword v1, v0, s[8:9]", Needed::Always),
    ("s_waitcnt vmcnt(0)", Needed::ForOrder),
    ("s_barrier", Needed::ForOrder),
    ("s_cmp_lg_u32 s10, 0", Needed::Always),
    ("s_cbranch_scc1 .Lend", Needed::Always),
    ("buffer_wbl2 sc1", Needed::ForOrder),
    ("s_waitcnt vmcnt(0)", Needed::ForOrder),
    ("v_mov_b32_e32 v5, 1", Needed::Always),
    (
        "global_atomic_add v4, v5, s[8:9] offset:1024",
        Needed::Always,
    ),
    ("s_endpgm", Needed::Always),
    (".Lpoll:", Needed::Always),
    (
        "global_load_dword v6, v4, s[8:9] offset:1024 sc1",
        Needed::Always,
    ),
    ("s_waitcnt vmcnt(0)", Needed::Always),
    ("v_readfirstlane_b32 s11, v6", Needed::Always),
    ("s_cmp_lg_u32 s11, 64", Needed::Always),
    ("s_cbranch_scc1 .Lpoll", Needed::Always),
    ("buffer_inv sc1", Needed::ForOrder),
    ("global_load_dword v7, v1, s[8:9]", Needed::Always),
    ("s_waitcnt vmcnt(0)", Needed::Always),
    (
        "global_store_dword v1, v7, s[8:9] offset:1536",
        Needed::Always,
    ),
    (".Lend:", Needed::Always),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    Always,
    ForOrder,
}

fn handed(without: Option<usize>, in_place: &str) -> Vec<Kind> {
    let lines = HANDED.iter().enumerate();
    let lines = lines.map(|(number, (line, _))| match Some(number) == without {
        true => in_place,
        false => line,
    });
    broken(&lines.collect::<Vec<_>>().join("\n"), 2, 128)
}

/// A wave asks LDS again and again until another has counted there, which waits for nothing but to
/// meet the first.
#[test]
fn what_a_wave_has_under_way_is_done_some_time() {
    let body = |counted: &str| {
        format!(
            "v_mov_b32_e32 v5, 1
            s_cmp_lg_u32 s10, 0
            s_cbranch_scc1 .Lcount
            ds_write_b32 v4, v4
            s_waitcnt lgkmcnt(0)
            s_barrier
            .Lask:
            s_sleep 1
            ds_read_b32 v6, v4
            s_waitcnt lgkmcnt(0)
            v_readfirstlane_b32 s11, v6
            s_cmp_lg_u32 s11, 64
            s_cbranch_scc1 .Lask
            s_barrier
            s_endpgm
            .Lcount:
            s_barrier
            {counted}
            s_barrier"
        )
    };
    assert_eq!(broken(&body("ds_add_u32 v4, v5"), 1, 128), []);
    // Who waits for what nobody does is found before it takes too long.
    assert_eq!(broken_in(&body(""), 1, 128, 1, 1 << 26), [Kind::Deadlock]);
}

#[test]
fn blocks_hand_on_what_they_show() {
    assert_eq!(handed(None, ""), []);
    for (number, (line, needed)) in HANDED.iter().enumerate() {
        if *needed == Needed::ForOrder {
            assert_eq!(
                handed(Some(number), ""),
                [Kind::BlockRace],
                "without {line}"
            );
        }
    }
    let poll = HANDED
        .iter()
        .position(|(line, _)| line.ends_with("sc1") && line.contains("load"));
    let plain = "global_load_dword v6, v4, s[8:9] offset:1024";
    assert_eq!(handed(poll, plain), [Kind::BlockRace]);
}
