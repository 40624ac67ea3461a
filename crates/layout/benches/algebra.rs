//! What layout inference and lowering do hundreds of times a kernel: each must take
//! microseconds.

use std::hint::black_box;

use tilewright_ir::micro_op::MmaInst;
use tilewright_ir::target::Target;
use tilewright_layout::lanes::{Operand, lane_map};
use tilewright_layout::{Form, Fragment, Layout, banks, swizzle};
use tilewright_testkit::bench::time;

fn main() {
    let inst = MmaInst::from_name("mfma.16x16x32.bfloat16.float32").expect("an instruction");
    let lanes = lane_map(&inst, Operand::C).expect("a lane map");
    let warp = lanes.repeat_in_slots(&[4, 4]).expect("a warp");
    let block = warp.repeat_over_threads(&[2, 2]).expect("a block");
    let tile = swizzle::for_matrix(Target::Gfx950, &[256, 64], &inst).expect("a tile");
    let odd = Fragment::partition(&[229], 128, 1).expect("a fragment");
    let rows = Layout::new(&[128, 128], &[128], Form::identity(&[128, 128]).only(0)).expect("rows");
    let other = Fragment::partition(&[128, 128], 256, 8).expect("a fragment");
    let sums = block.project(1).expect("sums").expect("closed");

    let inverse = tile.inverse().expect("a bijection");
    let same = swizzle::for_matrix(Target::Gfx950, &[256, 64], &inst).expect("a tile");
    let addresses: Vec<Option<u32>> = (0..64).map(|l| Some(l % 16 * 128 + l / 16 * 16)).collect();

    time("lane map", || lane_map(black_box(&inst), Operand::C));
    time("block of warps", || {
        black_box(&lanes)
            .repeat_in_slots(&[4, 4])?
            .repeat_over_threads(&[2, 2])
    });
    time("compose", || black_box(&tile).then(&inverse));
    time("inverse", || black_box(&tile).inverse());
    time("fragment inverse", || black_box(&block).inverse());
    time("injective", || black_box(&tile).is_injective());
    time("equal", || black_box(&tile) == black_box(&same));
    time("different", || black_box(&block) == black_box(&other));
    time("covers", || black_box(&sums).covers_threads(&sums));
    time("image", || black_box(&block).image(&rows));
    time("vector width", || black_box(&tile).vector_width(1));
    time("partition 229", || {
        Fragment::partition(black_box(&[229]), 128, 1)
    });
    time("odd inverse", || black_box(&odd).inverse());
    time("matrix swizzle", || {
        swizzle::for_matrix(Target::Gfx950, black_box(&[256, 64]), &inst)
    });
    time("bank cost", || {
        banks::cost(Target::Gfx950, banks::Kind::Read, 16, black_box(&addresses))
    });
}
