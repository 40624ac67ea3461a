//! Matrix instructions on real registers: tiles lowered by hand equal a plain product.

use tilewright_ir::{Inst, MmaFamily, MmaInst, Scalar, Target};
use tilewright_sim::simt::{InstKind, Landing};
use tilewright_sim::{InputSpec, Number, RunOptions, make_inputs, run};

use crate::common::{Module, ways};

/// The tile-level product that a lowered one must equal.
fn reference([m, n, k]: [u16; 3], [a, b]: [&str; 2], acc: &str, scaled: bool) -> String {
    let (mut params, mut tiles, mut by) = (String::new(), String::new(), String::new());
    if scaled {
        let runs = k / MmaInst::SCALED;
        for (of, rows) in [("A", m), ("B", n)] {
            params += &format!("  param S{of}: float8_e8m0fnu[{rows}, {runs}]\n");
            tiles += &format!(
                "    alloc T{of}: shared float8_e8m0fnu[{rows}, {runs}]
    copy S{of}[0 +: {rows}, 0 +: {runs}] -> T{of}[0 +: {rows}, 0 +: {runs}]
"
            );
        }
        by = format!(" scales=TA[0 +: {m}, 0 +: {runs}], TB[0 +: {n}, 0 +: {runs}] every=[32, 32]");
    }
    let zero = if acc.starts_with("int") {
        format!("0:{acc}")
    } else {
        format!("0.0:{acc}")
    };
    format!(
        "func @reference level=tile {{
  param A: {a}[{m}, {k}]
  param B: {b}[{k}, {n}]
{params}  output C: {acc}[{m}, {n}]
  kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {{
    alloc LA: shared {a}[{m}, {k}]
    alloc LB: shared {b}[{k}, {n}]
    alloc F: fragment {acc}[{m}, {n}]
    copy A[0 +: {m}, 0 +: {k}] -> LA[0 +: {m}, 0 +: {k}]
    copy B[0 +: {k}, 0 +: {n}] -> LB[0 +: {k}, 0 +: {n}]
{tiles}    fill F[0 +: {m}, 0 +: {n}], {zero}
    gemm LA[0 +: {m}, 0 +: {k}], LB[0 +: {k}, 0 +: {n}] -> F[0 +: {m}, 0 +: {n}]{by}
    copy F[0 +: {m}, 0 +: {n}] -> C[0 +: {m}, 0 +: {n}]
  }}
}}
"
    )
}

/// Runs both functions of a text and compares `C`, over seeds and landings.
fn agrees(name: &str, target: Target, text: &str) {
    let module = Module::parse(name, text);
    let spec = InputSpec {
        seed: 7,
        ..InputSpec::default()
    };
    let mut expected = make_inputs(&module.funcs[1], &spec).expect("inputs can be made");
    if let Err(e) = run(&module.funcs[1], &mut expected, &RunOptions::default()) {
        panic!("{name}: {e}");
    }
    let expected = expected.tensor("C").expect("an output").to_f64();
    for landing in Landing::ALL {
        for mut opts in ways() {
            opts.landing = landing;
            let outcome = module.simulate(target, &spec, &opts);
            outcome.assert_clean();
            assert_eq!(outcome.values("C"), expected, "{name} {landing:?}");
            assert_eq!(outcome.report.counts.instructions(InstKind::Mma), 1);
        }
    }
}

/// A thread-level program of one warp: operands come straight from global memory, element by
/// element, at the places that the lane maps of the manuals say.
fn by_elements(inst: MmaInst, a: [&str; 2], b: [&str; 2], c: [&str; 2]) -> String {
    let MmaInst { m, n, k, .. } = inst;
    let [left, right, acc] = [inst.a, inst.b, inst.acc].map(Scalar::name);
    let lanes: u32 = match inst.family {
        MmaFamily::MmaSync => 32,
        _ => 64,
    };
    let per = |rows: u16, columns: u16| u32::from(rows) * u32::from(columns) / lanes;
    let (na, nb, nc) = (per(m, k), per(k, n), per(m, n));
    let zero = if acc.starts_with("int") {
        format!("0:{acc}")
    } else {
        format!("0.0:{acc}")
    };
    let (mut scales, mut held, mut taken) = (String::new(), String::new(), "");
    if inst.scaled {
        let runs = k / MmaInst::SCALED;
        scales = format!(
            "  param SA: float8_e8m0fnu[{m}, {runs}]\n  param SB: float8_e8m0fnu[{n}, {runs}]\n"
        );
        held = format!(
            "    alloc RSA: local float8_e8m0fnu[1]
    alloc RSB: local float8_e8m0fnu[1]
    RSA[0] = SA[tx % {m}, tx // {m}]
    RSB[0] = SB[tx % {n}, tx // {n}]
"
        );
        taken = ", RSA[0 +: 1] at [0], RSB[0 +: 1] at [0]";
    }
    format!(
        "func @f level=loop {{
  param A: {left}[{m}, {k}]
  param B: {right}[{k}, {n}]
{scales}  output C: {acc}[{m}, {n}]
  kernel grid(bx: 1) threads(tx: {lanes}, ty: 1, tz: 1) {{
    alloc RA: local {left}[{na}]
    alloc RB: local {right}[{nb}]
    alloc RC: local {acc}[{nc}]
    for e in unroll(0, {na}) {{
      RA[e] = A[{}, {}]
    }}
    for e in unroll(0, {nb}) {{
      RB[e] = B[{}, {}]
    }}
    for e in unroll(0, {nc}) {{
      RC[e] = {zero}
    }}
{held}    mma RA[0 +: {na}] at [0], RB[0 +: {nb}] at [0]{taken} -> RC[0 +: {nc}] at [0] inst=\"{inst}\" width=1
    for e in unroll(0, {nc}) {{
      C[{}, {}] = RC[e]
    }}
  }}
}}
{}",
        a[0],
        a[1],
        b[0],
        b[1],
        c[0],
        c[1],
        reference([m, n, k], [left, right], acc, inst.scaled)
    )
}

/// Every `mma.sync` of sm_80 and sm_90a, by the formulas of the PTX manual: with `p` elements
/// packed in a register, group `g = lane / 4` and `t = lane % 4`.
#[test]
fn mma_sync_equals_a_plain_product() {
    for target in [Target::Sm80, Target::Sm90a] {
        for facts in target.machine().mma {
            let inst = facts.inst;
            if inst.family != MmaFamily::MmaSync {
                continue;
            }
            let p = (32 / inst.a.bits()).max(1);
            // A register r: rows g and g + 8 in turn, where there are 16, columns of the left and the
            // right half.
            let halves = u32::from(inst.m / 8);
            let a_row = format!("tx // 4 + e // {p} % {halves} * 8");
            let a_column = format!("tx % 4 * {p} + e % {p} + e // {} * {}", halves * p, 4 * p);
            let b_row = format!("tx % 4 * {p} + e % {p} + e // {p} * {}", 4 * p);
            let text = by_elements(
                inst,
                [&a_row, &a_column],
                [&b_row, "tx // 4"],
                ["tx // 4 + e // 2 * 8", "tx % 4 * 2 + e % 2"],
            );
            agrees(&inst.to_string(), target, &text);
        }
    }
}

/// Every MFMA of gfx942 and gfx950, by the formulas of the CDNA manuals: `K_L = K · M / 64`
/// elements of a row in a lane, 32 of eight bits in two runs; four rows of a column of C in a run of
/// registers; of float64 the rows are four apart. A lane has the scale of the 32 elements of K that its
/// group of lanes counts.
#[test]
fn mfma_equals_a_plain_product() {
    for target in [Target::Gfx942, Target::Gfx950] {
        for facts in target.machine().mma {
            let inst = facts.inst;
            let MmaInst { m, n, k, .. } = inst;
            let own = k * m / 64;
            let along_k = |factor: Scalar| match factor.bits() == 8 && own == 32 {
                true => format!("tx // {m} * 16 + e % 16 + e // 16 * {}", k / 2),
                false => format!("tx // {m} * {own} + e"),
            };
            let groups = 64 / n;
            let c_row = match inst.acc {
                Scalar::F64 => "tx // 16 + e * 4".to_string(),
                _ => format!("e % 4 + 4 * (tx // {n}) + e // 4 * {}", 4 * groups),
            };
            let text = by_elements(
                inst,
                [&format!("tx % {m}"), &along_k(inst.a)],
                [&along_k(inst.b), &format!("tx % {n}")],
                [&c_row, &format!("tx % {n}")],
            );
            agrees(&inst.to_string(), target, &text);
        }
    }
}

/// A GEMM tile with everything real: asynchronous copies into swizzled shared memory, `ldmatrix`
/// (transposing for B), several matrix instructions, all warps.
fn ldmatrix_gemm(ab: &str, swizzle: &str) -> String {
    let inst = match ab {
        "int8" => "mma.16x8x32.int8.int32",
        "tfloat32" => "mma.16x8x8.tfloat32.float32",
        "float16" => "mma.16x8x16.float16.float32",
        _ => "mma.16x8x16.bfloat16.float32",
    };
    let parsed = match Inst::from_name(inst) {
        Some(Inst::Mma(parsed)) => parsed,
        other => panic!("{other:?}"),
    };
    let acc = parsed.acc.name();
    let zero = if acc == "int32" { "0" } else { "0.0" };
    let p = 32 / parsed.a.bits();
    // One row of `ldmatrix` in elements; K of one instruction is two of them.
    let row = 4 * p;
    let (m, n, k) = (32, 32, 4 * row);
    let na = 4 * p;
    let nb = 2 * p;
    let vectors = m * k / row;
    let kernel_b = if ab == "bfloat16" || ab == "float16" {
        // B is (K, N) in memory: each 8x8 matrix is transposed on the way.
        format!(
            "    s2r SB[0 +: {k}, 0 +: {n}] at [kk * {kstep} + tx % 16, wn * 16 + tx % 32 // 16 * 8] -> RB[0 +: {nb2}] at [0] inst=\"ldmatrix.x4.trans\" width=1\n",
            kstep = 2 * row,
            nb2 = 2 * nb
        )
    } else {
        // Wider or narrower elements cannot be transposed by `ldmatrix`: read one by one.
        format!(
            "    for e in unroll(0, {nb2}) {{
      RB[e] = SB[kk * {kstep} + tx % 4 * {p} + e % {p} + e // {p} % 2 * {row}, wn * 16 + e // {nb} * 8 + tx % 32 // 4]
    }}\n",
            kstep = 2 * row,
            nb2 = 2 * nb
        )
    };
    format!(
        "func @f level=device {{
  param A: {ab}[{m}, {k}]
  param B: {ab}[{k}, {n}]
  output C: {acc}[{m}, {n}]
  kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {{
    alloc SA: shared {ab}[{m}, {k}]{swizzle}
    alloc SB: shared {ab}[{k}, {n}]{swizzle}
    alloc RA: local {ab}[{na}]
    alloc RB: local {ab}[{nb2}]
    alloc RC: local {acc}[8]
    g2s for c < {steps} do A[0 +: {m}, 0 +: {k}] at [(c * 128 + tx) // {avr}, (c * 128 + tx) % {avr} * {row}] -> SA[0 +: {m}, 0 +: {k}] at [(c * 128 + tx) // {avr}, (c * 128 + tx) % {avr} * {row}] inst=\"cp.async\" width={row} pred=(c * 128 + tx < {vectors}) counter=cp_async
    g2s for c < {steps} do B[0 +: {k}, 0 +: {n}] at [(c * 128 + tx) // {bvr}, (c * 128 + tx) % {bvr} * {row}] -> SB[0 +: {k}, 0 +: {n}] at [(c * 128 + tx) // {bvr}, (c * 128 + tx) % {bvr} * {row}] inst=\"cp.async\" width={row} pred=(c * 128 + tx < {vectors}) counter=cp_async
    commit cp_async
    for e in unroll(0, 8) {{
      RC[e] = {zero}
    }}
    let wm: int32 = tx // 64
    let wn: int32 = tx // 32 % 2
    wait cp_async(0)
    barrier block
    for kk in unroll(0, 2) {{
      s2r SA[0 +: {m}, 0 +: {k}] at [wm * 16 + tx % 16, kk * {kstep} + tx % 32 // 16 * {row}] -> RA[0 +: {na}] at [0] inst=\"ldmatrix.x4\" width=1
{kernel_b}      mma for j < 2 do RA[0 +: {na}] at [0], RB[0 +: {nb2}] at [j * {nb}] -> RC[0 +: 8] at [j * 4] inst=\"{inst}\" width=1
    }}
    for e in unroll(0, 8) {{
      C[wm * 16 + tx % 32 // 4 + e // 2 % 2 * 8, wn * 16 + e // 4 * 8 + tx % 4 * 2 + e % 2] = RC[e]
    }}
  }}
}}
{}",
        reference([m, n, k].map(|e| e as u16), [ab; 2], acc, false),
        nb2 = 2 * nb,
        kstep = 2 * row,
        steps = (vectors as usize).div_ceil(128),
        avr = k / row,
        bvr = n / row,
    )
}

#[test]
fn ldmatrix_and_mma_equal_a_plain_product() {
    for ab in ["float16", "bfloat16", "tfloat32", "int8"] {
        for swizzle in ["", " layout=swizzle(16; 1 -> 0)", " layout=padded(16)"] {
            let text = ldmatrix_gemm(ab, swizzle);
            let module = Module::parse(ab, &text);
            let spec = InputSpec {
                seed: 3,
                ..InputSpec::default()
            };
            let mut expected = make_inputs(&module.funcs[1], &spec).expect("inputs can be made");
            if let Err(e) = run(&module.funcs[1], &mut expected, &RunOptions::default()) {
                panic!("{ab}: {e}");
            }
            let expected = expected.tensor("C").expect("an output").to_f64();
            for landing in Landing::ALL {
                for mut opts in ways() {
                    opts.landing = landing;
                    let outcome = module.simulate(Target::Sm80, &spec, &opts);
                    outcome.assert_clean();
                    assert_eq!(outcome.values("C"), expected, "{ab}{swizzle} {landing:?}");
                }
            }
        }
    }
}

/// Whatever `ldmatrix` brings, `stmatrix` puts back.
#[test]
fn stmatrix_undoes_ldmatrix() {
    for trans in ["", ".trans"] {
        let text = format!(
            "func @f level=loop {{
  param A: float16[16, 16]
  output C: float16[16, 16]
  kernel grid(bx: 1) threads(tx: 32, ty: 1, tz: 1) {{
    alloc S: shared float16[16, 16]
    alloc D: shared float16[16, 16]
    alloc R: local float16[8]
    for e in unroll(0, 8) {{
      S[tx // 2, tx % 2 * 8 + e] = A[tx // 2, tx % 2 * 8 + e]
    }}
    sync_warp
    s2r S[0 +: 16, 0 +: 16] at [tx % 16, tx // 16 * 8] -> R[0 +: 8] at [0] inst=\"ldmatrix.x4{trans}\" width=1
    r2s R[0 +: 8] at [0] -> D[0 +: 16, 0 +: 16] at [tx % 16, tx // 16 * 8] inst=\"stmatrix.x4{trans}\" width=1
    sync_warp
    for e in unroll(0, 8) {{
      C[tx // 2, tx % 2 * 8 + e] = D[tx // 2, tx % 2 * 8 + e]
    }}
  }}
}}
"
        );
        let module = Module::parse("stmatrix", &text);
        for opts in ways() {
            let outcome = module.simulate(Target::Sm90a, &InputSpec::default(), &opts);
            outcome.assert_clean();
            assert_eq!(outcome.values("A"), outcome.values("C"));
        }
    }
}

/// gfx950's transposing read: 16 lanes give the rows of a 4 x 16 (or 8 x 16) tile in pieces of
/// eight bytes, and receive its columns.
#[test]
fn ds_read_tr_gives_columns() {
    for (ab, rows) in [("float16", 4), ("int8", 8)] {
        let per_row = 16 / rows;
        let text = format!(
            "func @f level=loop {{
  param A: {ab}[{all}, 16]
  output C: {ab}[64, {rows}]
  kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {{
    alloc S: shared {ab}[{all}, 16]
    alloc R: local {ab}[{rows}]
    for e in unroll(0, {rows}) {{
      S[tx // {per_row}, tx % {per_row} * {rows} + e] = A[tx // {per_row}, tx % {per_row} * {rows} + e]
    }}
    s2r S[0 +: {all}, 0 +: 16] at [tx // {per_row}, tx % {per_row} * {rows}] -> R[0 +: {rows}] at [0] inst=\"ds_read_tr\" width=1
    for e in unroll(0, {rows}) {{
      C[tx, e] = R[e]
    }}
  }}
}}
",
            all = 4 * rows
        );
        let module = Module::parse("ds_read_tr", &text);
        let spec = InputSpec {
            seed: 2,
            ..InputSpec::default()
        };
        let outcome = module.simulate(Target::Gfx950, &spec, &ways()[0]);
        outcome.assert_clean();
        let (a, c) = (outcome.values("A"), outcome.values("C"));
        for lane in 0..64 {
            for e in 0..rows {
                let row = lane / 16 * rows + e;
                assert_eq!(
                    c[lane * rows + e],
                    a[row * 16 + lane % 16],
                    "{ab} {lane} {e}"
                );
            }
        }
        let _ = Number::Int(0);
    }
}
