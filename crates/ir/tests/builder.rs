//! Kernels written with the builder come out as the text they mean.

use tilewright_ir::builder::FuncBuilder;
use tilewright_ir::text::parse;
use tilewright_ir::{AtomicOp, DType, FileId, ReduceKind, ScanKind};

#[test]
fn a_softmax_is_the_text_it_means() {
    let mut f = FuncBuilder::new("softmax");
    let rows = f.symbol("rows");
    let scale = f.scalar("scale", DType::F32);
    let x = f.param("X", DType::F16, (&rows, 256));
    let y = f.output("Y", DType::F16, (&rows, 256));
    f.kernel([rows.ceil_div(4)], 128, |t, [bx]| {
        let tile = t.fragment("tile", DType::F32, [4, 256]);
        let top = t.fragment("top", DType::F32, [4]);
        t.copy(x.tile((&bx * 4, 0), [4, 256]), &tile);
        t.reduce(ReduceKind::Max, &tile, &top, 1);
        t.parallel([4, 256], |t, [i, j]| {
            let shifted = t.bind("shifted", tile.at([&i, &j]) - top.at([&i]));
            t.store(&tile, [i, j], shifted * &scale);
        });
        t.copy(&tile, y.tile((bx * 4, 0), [4, 256]));
    });
    let func = f.finish().expect("it is sound");
    let text = "func @softmax level=tile {
  symbol rows: int32
  scalar scale: float32
  param X: float16[rows, 256]
  output Y: float16[rows, 256]
  kernel grid(bx: (rows + (4 - 1)) // 4) threads(tx: 128, ty: 1, tz: 1) {
    alloc tile: fragment float32[4, 256]
    alloc top: fragment float32[4]
    copy X[bx * 4 +: 4, 0 +: 256] -> tile[0 +: 4, 0 +: 256]
    reduce max tile[0 +: 4, 0 +: 256] -> top[0 +: 4] dim=1 clear
    for i, j in parallel(4, 256) {
      let shifted: float32 = tile[i, j] - top[i]
      tile[i, j] = shifted * scale
    }
    copy tile[0 +: 4, 0 +: 256] -> Y[bx * 4 +: 4, 0 +: 256]
  }
}
";
    assert_eq!(func.to_string(), text);
    assert!(parse(text, FileId(0)).expect("it parses") == func);
}

#[test]
fn every_method_makes_a_sound_statement() {
    let mut f = FuncBuilder::new("all");
    let a = f.param("A", DType::F32, [64]);
    let w = f.workspace("W", DType::I32, [8usize]);
    f.kernel_with([2, 3], [256, 1, 1], Default::default(), |t, [bx, by]| {
        let s = t.shared("S", DType::F32, [64]);
        let r = t.fragment("R", DType::F32, [64]);
        let l = t.local("L", DType::I8, [4]);
        let x = t.var("x", DType::F16, 1);
        let _bars = t.barriers("bars", &[128, 1]);
        let acc = t.reducer("acc", DType::F32, [64], ReduceKind::Sum);
        t.fill(&l, 7);
        t.scan(ScanKind::Sum, &s, &s, 0);
        t.atomic(AtomicOp::Add, &a, &r);
        t.reducer_init(&acc);
        t.parallel([64], |t, [i]| t.reducer_update(&acc, [&i], 2));
        t.reducer_finalize(&acc, &r);
        t.range(&bx, 64, 2, |t, i| {
            t.if_else(i.lt(3), |t| t.break_(), |t| t.continue_());
        });
        t.unroll(4, |t, i| t.store(&l, [i], 1.5));
        t.vectorized(4, |t, i| t.store(&l, [i], 0));
        t.while_(x.at(()).lt(3), |t| t.store(&x, (), x.at(()) + 1));
        t.warp_group(&[1], |t| t.fill(&s, 0.0));
        t.assume(by.ge(0));
        t.assert(bx.lt(2), "two blocks");
        t.sync_threads();
        let tx = t.thread(0);
        t.atomic_element(AtomicOp::Max, &w, [tx.floor_mod(8)], 3);
        t.serial(2, |t, i| t.if_(i.equal(0), |t| t.continue_()));
    });
    let func = f.finish().expect("it is sound");
    assert!(parse(&func.to_string(), FileId(0)).expect("it parses") == func);
}

#[test]
fn misuse_is_reported_at_the_end() {
    let code = |build: &dyn Fn(&mut FuncBuilder)| {
        let mut f = FuncBuilder::new("bad");
        build(&mut f);
        f.finish().expect_err("it is not sound")[0].code.0
    };
    assert_eq!(code(&|f| f.kernel([0], 128, |_, [_]| {})), "kernel-grid");
    assert_eq!(code(&|f| f.kernel([1], 0, |_, [_]| {})), "kernel-threads");
    assert_eq!(code(&|f| f.kernel([1; 4], 1, |_, _| {})), "kernel-grid");
    assert_eq!(code(&|f| f.kernel([0; 0], 1, |_, []| {})), "kernel-grid");
    assert_eq!(
        code(&|f| {
            let mut kept = None;
            f.kernel([1], 128, |t, [_]| {
                kept = Some(t.fragment("F", DType::F32, [4]))
            });
            f.kernel([1], 128, |t, [_]| {
                if let Some(fragment) = &kept {
                    t.fill(fragment, 0);
                }
            });
        }),
        "buffer-scope"
    );
    assert_eq!(
        code(&|f| {
            let a = f.param("A", DType::F32, [4, 4]);
            f.kernel([1], 128, |t, [_]| t.store(&a, [0], 1));
        }),
        "index-count"
    );
    assert_eq!(
        code(&|f| {
            let a = f.param("A", DType::F32, [4]);
            f.kernel([1], 128, |t, [bx]| t.store(&a, [a.at([bx])], 1));
        }),
        "index-type"
    );
    assert_eq!(
        code(&|f| {
            f.symbol("m");
        }),
        "symbol-unbound"
    );
}
