//! What layout inference and lowering do hundreds of times a kernel: each must take
//! microseconds.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tilewright_ir::micro_op::MmaInst;
use tilewright_ir::target::Target;
use tilewright_layout::lanes::{Operand, lane_map};
use tilewright_layout::{Form, Fragment, Layout, banks, swizzle};

fn algebra(c: &mut Criterion) {
    let inst = MmaInst::from_name("mfma.16x16x32.bfloat16.float32").expect("an instruction");
    let lanes = lane_map(&inst, Operand::C).expect("a lane map");
    let warp = lanes.repeat_in_slots(&[4, 4]).expect("a warp");
    let block = warp.repeat_over_threads(&[2, 2]).expect("a block");
    let tile = swizzle::for_matrix(Target::Gfx950, &[256, 64], &inst).expect("a tile");
    let odd = Fragment::partition(&[229], 128, 1).expect("a fragment");
    let rows = Layout::new(&[128, 128], &[128], Form::identity(&[128, 128]).only(0)).expect("rows");
    let other = Fragment::partition(&[128, 128], 256, 8).expect("a fragment");
    let sums = block.project(1).expect("sums").expect("closed");

    let mut group = c.benchmark_group("layout");
    group.bench_function("lane map", |b| {
        b.iter(|| lane_map(black_box(&inst), Operand::C))
    });
    group.bench_function("block of warps", |b| {
        b.iter(|| {
            black_box(&lanes)
                .repeat_in_slots(&[4, 4])?
                .repeat_over_threads(&[2, 2])
        })
    });
    group.bench_function("compose", |b| {
        let inverse = tile.inverse().expect("a bijection");
        b.iter(|| black_box(&tile).then(&inverse))
    });
    group.bench_function("inverse", |b| b.iter(|| black_box(&tile).inverse()));
    group.bench_function("fragment inverse", |b| {
        b.iter(|| black_box(&block).inverse())
    });
    group.bench_function("injective", |b| b.iter(|| black_box(&tile).is_injective()));
    group.bench_function("equal", |b| {
        let same = swizzle::for_matrix(Target::Gfx950, &[256, 64], &inst).expect("a tile");
        b.iter(|| black_box(&tile) == black_box(&same))
    });
    group.bench_function("different", |b| {
        b.iter(|| black_box(&block) == black_box(&other))
    });
    group.bench_function("covers", |b| {
        b.iter(|| black_box(&sums).covers_threads(&sums))
    });
    group.bench_function("image", |b| b.iter(|| black_box(&block).image(&rows)));
    group.bench_function("vector width", |b| {
        b.iter(|| black_box(&tile).vector_width(1))
    });
    group.bench_function("partition 229", |b| {
        b.iter(|| Fragment::partition(black_box(&[229]), 128, 1))
    });
    group.bench_function("odd inverse", |b| b.iter(|| black_box(&odd).inverse()));
    group.bench_function("matrix swizzle", |b| {
        b.iter(|| swizzle::for_matrix(Target::Gfx950, black_box(&[256, 64]), &inst))
    });
    group.bench_function("bank cost", |b| {
        let lanes: Vec<Option<u32>> = (0..64).map(|l| Some(l % 16 * 128 + l / 16 * 16)).collect();
        b.iter(|| banks::cost(Target::Gfx950, banks::Kind::Read, 16, black_box(&lanes)))
    });
    group.finish();
}

criterion_group!(benches, algebra);
criterion_main!(benches);
