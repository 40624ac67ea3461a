//! `T.gemm_sp` on sparse matrix instructions: which products have one, and metadata that has no
//! meaning. What products compute, by every type and transpose, is a case of `examples/gemm_sp.py`.

#[path = "corpus/stage.rs"]
mod stage;

use tilewright::ir::{Func, Inst, MmaFamily, Scalar, StmtKind, Target, visit};
use tilewright::jit;
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, Args, Fill, InputSpec, Number, RunOptions};

const SMALL: [(&str, &str); 7] = [
    ("M", "32"),
    ("N", "32"),
    ("K", "64"),
    ("block_M", "32"),
    ("block_N", "32"),
    ("num_stages", "2"),
    ("threads", "64"),
];

fn staged(settings: &[(&str, &str)]) -> Func {
    let settings = [&SMALL[..], settings].concat();
    let staged = stage::staged("gemm_sp.py", None, &settings);
    staged.expect("it stages").0
}

/// The families of the matrix instructions of a lowered function.
fn families(func: &Func) -> Vec<MmaFamily> {
    let mut found = Vec::new();
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Micro(op) = &stmt.kind
                && let Inst::Mma(mma) | Inst::GroupMma { mma, .. } = op.inst
                && !found.contains(&mma.family)
            {
                found.push(mma.family);
            }
        });
    }
    found
}

#[test]
fn products_that_have_an_instruction_take_it() {
    let cases: [(&[(&str, &str)], bool); 9] = [
        (&[], true),
        (&[("meta_dtype", "int32"), ("trans_A", "True")], true),
        (&[("dtype", "bfloat16"), ("meta_dtype", "uint8")], true),
        (&[("dtype", "float32"), ("block_K", "32")], true),
        (&[("accum_dtype", "float16")], true),
        (&[("dtype", "int8"), ("accum_dtype", "int32")], true),
        // Half a step of the instruction.
        (&[("block_K", "48"), ("K", "96")], false),
        (
            &[
                ("dtype", "int8"),
                ("accum_dtype", "int32"),
                ("block_K", "32"),
            ],
            false,
        ),
        // Multiplied as float16 on sm_80, and by dense instructions of its own on sm_90a.
        (&[("dtype", "float8_e5m2")], true),
    ];
    for (settings, sparse) in cases {
        let func = staged(settings);
        for target in Target::ALL {
            let machine = target.machine();
            let of_fp8 = machine.mma.iter().any(|f| f.inst.a == Scalar::F8E5M2)
                && settings.contains(&("dtype", "float8_e5m2"));
            let has = sparse && !of_fp8 && !machine.sparse_mma.is_empty();
            let (lowered, _) = jit::lower(&func, target).expect("it is lowered");
            let found = families(&lowered);
            assert_eq!(
                found == [MmaFamily::MmaSp],
                has,
                "{target} {settings:?}: {found:?}"
            );
        }
    }
}

/// Arguments with one integer of metadata, in a row whose stored elements are this.
fn arguments(func: &Func, told: i64, stored: f64) -> Args {
    let mut spec = InputSpec::default();
    spec.fills.insert("A".to_string(), Fill::Constant(1.0));
    let mut args = sim::make_inputs(func, &spec).expect("tensors");
    let row = 5;
    let width = |args: &Args, name: &str| args.tensor(name).expect("a tensor").shape()[1];
    let (a_width, e_width) = (width(&args, "A"), width(&args, "E"));
    let a = args.tensor_mut("A").expect("the factor");
    for column in 0..a_width {
        a.set(row * a_width + column, Number::Float(stored));
    }
    let e = args.tensor_mut("E").expect("metadata");
    e.set(row * e_width + 1, Number::Int(told.into()));
    args
}

/// What the evaluator and the simulator say of metadata: nothing where it is valid, and nothing where
/// it tells of zeros.
#[test]
fn metadata_that_has_no_meaning_is_found() {
    let halves = staged(&[]);
    let words = staged(&[("dtype", "float32"), ("block_K", "32")]);
    // Places of four: of 0x4E4A the first group has place 2 twice, of 0x4B4E the third 3 before 2.
    for (func, told, valid) in [
        (&halves, 0x4E4E, true),
        (&halves, 0x8D9C, true),
        (&halves, 0x4E4A, false),
        (&halves, 0x4B4E, false),
        (&halves, 0x0E4E, false),
        (&words, 0x4E4E, true),
        (&words, 0x4E44, true),
        (&words, 0x4E94, false),
    ] {
        for (stored, right) in [(1.0, valid), (0.0, true), (-0.0, true)] {
            let what = format!("{told:#x} of {stored}");
            let mut args = arguments(func, told, stored);
            let ran = sim::run(func, &mut args, &RunOptions::default());
            let code = ran.err().and_then(|e| e.code()).map(|c| c.0);
            assert_eq!(code, (!right).then_some("sparse-metadata"), "{what}");
            for target in [Target::Sm80, Target::Sm90a] {
                let (lowered, _) = jit::lower(func, target).expect("it is lowered");
                let mut args = arguments(func, told, stored);
                let options = SimtOptions::default();
                let report = simt::run(&lowered, target, &mut args, &options).expect("it runs");
                let found: Vec<&str> = report.diagnostics().iter().map(|d| d.code.0).collect();
                let expected: &[&str] = if right { &[] } else { &["sparse-metadata"] };
                assert_eq!(found, expected, "{target} {what}");
            }
        }
    }
}

/// A group's metadata moves its elements: no bit of it is ignored.
#[test]
fn every_group_of_metadata_is_read() {
    for settings in [
        &[][..],
        &[("meta_dtype", "int32")],
        &[("meta_dtype", "int8"), ("trans_E", "True")],
        &[("dtype", "float32"), ("block_K", "32")],
        &[("dtype", "int8"), ("accum_dtype", "int32")],
    ] {
        let func = staged(settings);
        let pairs = settings.contains(&("dtype", "float32"));
        let (lowered, _) = jit::lower(&func, Target::Sm80).expect("it is lowered");
        let mut spec = InputSpec::default();
        spec.fills.insert("A".to_string(), Fill::Constant(1.0));
        // Rows of B that differ, so that a place is seen in the sum.
        spec.fills.insert("B".to_string(), Fill::Iota(67));
        let sums = |args: &mut Args| -> Vec<f64> {
            let options = SimtOptions::default();
            let report = simt::run(&lowered, Target::Sm80, args, &options).expect("it runs");
            assert!(report.is_clean(), "{:?}", report.diagnostics());
            args.tensor("C").expect("sums").to_f64()
        };
        let plain = sums(&mut sim::make_inputs(&func, &spec).expect("tensors"));
        let args = sim::make_inputs(&func, &spec).expect("tensors");
        let e = args.tensor("E").expect("metadata");
        let (shape, bits) = (e.shape().to_vec(), e.dtype().bits());
        let turned = settings.contains(&("trans_E", "True"));
        // One group of every row is changed at a time.
        let rows = if turned { shape[1] } else { shape[0] };
        let in_row = shape[0] * shape[1] / rows;
        let groups = in_row * bits as usize / 4;
        for shift in 0..groups {
            let mut args = sim::make_inputs(&func, &spec).expect("tensors");
            let e = args.tensor_mut("E").expect("metadata");
            for row in 0..rows {
                let group = (row + shift) % groups;
                let (integer, at) = (group / (bits as usize / 4), group % (bits as usize / 4));
                let position = match turned {
                    true => integer * rows + row,
                    false => row * in_row + integer,
                };
                let Some(Number::Int(old)) = e.get(position) else {
                    panic!("an integer");
                };
                let told = (old >> (4 * at)) & 15;
                // The other places of a group.
                let new = match told {
                    _ if pairs => told ^ 10,
                    4 => 14,
                    8 => 13,
                    12 => 9,
                    9 => 12,
                    13 => 8,
                    _ => 4,
                };
                e.set(position, Number::Int(old ^ (told ^ new) << (4 * at)));
            }
            let moved = sums(&mut args);
            let columns = plain.len() / rows;
            for row in 0..rows {
                let own = row * columns..(row + 1) * columns;
                assert_ne!(plain[own.clone()], moved[own], "{settings:?} row {row}");
            }
        }
    }
}
