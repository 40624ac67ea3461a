//! Atomic updates of one element by all blocks of a launch, which run on several threads of the
//! host: none is lost.

use tilewright_gfx9::asm::parse;
use tilewright_gfx9::emu::{Arch, Argument, Buffer, Launch, run};

const BLOCKS: u32 = 64;
const LANES: u32 = 64;
const UPDATES: u32 = 32;

#[test]
fn no_update_is_lost_between_blocks() {
    let update = "\tglobal_atomic_add v1, v0, v2, s[0:1] sc0\n\ts_waitcnt vmcnt(0)\n";
    let text = format!(
        "f:\n\ts_load_dwordx2 s[0:1], s[0:1], 0x0\n\ts_waitcnt lgkmcnt(0)\n\
         \tv_mov_b32_e32 v0, 0\n\tv_mov_b32_e32 v2, 1\n{}\ts_endpgm\n",
        update.repeat(UPDATES as usize)
    );
    let function = parse(&text).unwrap().functions[0].clone();
    let mut launch = Launch::new([BLOCKS, 1, 1], [LANES, 1, 1]);
    launch.workers = 8;
    launch.buffers = vec![Buffer {
        name: "count".to_owned(),
        bytes: vec![0; 4],
        element: 4,
        writable: true,
        holds: None,
    }];
    launch.arguments = vec![Argument::Buffer {
        index: 0,
        offset: 0,
    }];
    let outcome = run(&function, Arch::Gfx942, launch).unwrap();
    let found: Vec<String> = outcome.findings.iter().map(|f| f.show(&function)).collect();
    assert_eq!(found, Vec::<String>::new());
    let count = BLOCKS * LANES * UPDATES;
    assert_eq!(outcome.buffers[0].bytes, count.to_le_bytes());
}
