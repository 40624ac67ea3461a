//! The remembered answers against plain counting, on random places.

use proptest::prelude::*;
use rustc_hash::FxHashMap;
use tilewright_ir::{Buffer, DType, Expr, FileId, Func, Span, VarKind, text};
use tilewright_schedule::access::{Access, Points, Steps};
use tilewright_schedule::conflicts::Conflicts;
use tilewright_schedule::footprint::{Meeting, count_out};

const WARP: u32 = 8;

/// A kernel of 8 × 4 threads with one shared buffer, its thread indices, and three loops.
fn kernel() -> (Func, Buffer, Vec<Expr>) {
    let source = "func @f level=loop {\n  kernel grid(bx: 1) threads(tx: 8, ty: 4, tz: 1) {\n    \
                  alloc S: shared float32[1024]\n  }\n}\n";
    let mut func = text::parse(source, FileId(0)).expect("a kernel");
    let buffer = func.buffers.keys().next().expect("the buffer");
    let threads = func.kernels[0].thread_vars;
    let mut vars: Vec<Expr> = threads[..2].iter().map(|v| func.var_expr(*v)).collect();
    for name in ["i", "j", "k"] {
        let var = func.add_var(name, DType::I32, VarKind::Loop);
        vars.push(func.var_expr(var));
    }
    (func, buffer, vars)
}

/// An integer expression over the variables, some of them with points that have no value.
fn value(vars: Vec<Expr>) -> BoxedStrategy<Expr> {
    let leaf = prop_oneof![
        6 => proptest::sample::select(vars),
        1 => (-3i64..9).prop_map(|v| Expr::int(v.into(), DType::I32)),
    ];
    leaf.prop_recursive(2, 8, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        let power = proptest::sample::select(vec![1i64, 2, 4, 8]);
        prop_oneof![
            pair.clone().prop_map(|(a, b)| a + b),
            pair.clone().prop_map(|(a, b)| a - b),
            (inner.clone(), -3i64..4).prop_map(|(a, c)| a * c),
            (inner.clone(), power.clone()).prop_map(|(a, c)| a.floor_div(c)),
            (inner.clone(), power).prop_map(|(a, c)| a.floor_mod(c)),
            pair.clone().prop_map(|(a, b)| a.min(b)),
            // Zero divides nothing: then only plain counting knows which points matter.
            pair.prop_map(|(a, b)| a.floor_div(b)),
        ]
    })
    .boxed()
}

fn points(vars: &[Expr]) -> impl Strategy<Value = Points> + use<> {
    let loops: Vec<_> = vars[2..].iter().filter_map(Expr::as_var).collect();
    let steps =
        (-2i64..3, -2i64..4, 0i64..6).prop_map(|(start, step, count)| Steps { start, step, count });
    // A row for each warp, so that some places are met inside a warp only.
    let row = (vars[1].clone(), 1024);
    let factor = proptest::sample::select(vec![
        -64i64,
        -32,
        16,
        32,
        64,
        96,
        128,
        256,
        1 << 26,
        -(1 << 26),
    ]);
    let term = prop_oneof![
        2 => proptest::sample::select(vars.to_vec()),
        1 => value(vars.to_vec()),
    ];
    let guard = (value(vars.to_vec()), -2i64..8).prop_map(|(e, c)| e.lt(c));
    (
        (
            proptest::collection::vec((term, factor), 1..4),
            any::<bool>(),
        ),
        proptest::collection::vec(guard, 0..2),
        proptest::collection::vec(steps, loops.len()),
        proptest::sample::select(vec![0i64, 16, 32, 64, 512, -32]),
        proptest::sample::select(vec![8i64, 16, 32, 64, 128]),
    )
        .prop_map(
            move |((mut varying, in_rows), guards, steps, constant, bits)| {
                varying.extend(in_rows.then(|| row.clone()));
                Points {
                    uniform: FxHashMap::default(),
                    constant,
                    varying,
                    bits,
                    axes: loops.iter().copied().zip(steps).collect(),
                    guards,
                    guards_known: true,
                    along: Vec::new(),
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Several accesses of one kernel: what is remembered of one pair must not leak into
    /// another.
    #[test]
    fn remembered_answers_are_counted_ones(
        all in proptest::collection::vec(points(&kernel().2), 2..6)
    ) {
        let (func, root, _) = kernel();
        let kernel = &func.kernels[0];
        let mut conflicts = Conflicts::new(&func, kernel, WARP);
        let access = |points: &Points| Access {
            root,
            write: true,
            atomic: false,
            span: Span::NONE,
            slot: None,
            points: Some(points.clone()),
            computed: None,
            told: false,
        };
        let classes: Vec<_> = all.iter().map(|p| conflicts.class(access(p))).collect();
        for (a, first) in classes.iter().zip(&all) {
            for (b, second) in classes.iter().zip(&all) {
                let plain = count_out(kernel, WARP, first, second);
                // What cannot be counted out is taken for the worst.
                let expected = plain.unwrap_or(Meeting::AcrossWarps);
                prop_assert_eq!(conflicts.relation(*a, *b).meeting(), expected);
                prop_assert_eq!(conflicts.relation(*b, *a).meeting(), expected);
            }
        }
    }
}

/// The generator must make all kinds of answers, or the test above says little.
#[test]
fn random_places_meet_in_every_way() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let (func, _, vars) = kernel();
    let mut runner = TestRunner::deterministic();
    let strategy = (points(&vars), points(&vars));
    let mut seen = FxHashMap::default();
    for _ in 0..300 {
        let tree = strategy.new_tree(&mut runner).expect("places");
        let (a, b) = tree.current();
        let met = count_out(&func.kernels[0], WARP, &a, &b);
        *seen.entry(format!("{met:?}")).or_insert(0) += 1;
    }
    for kind in ["Some(Nowhere)", "Some(InWarp)", "Some(AcrossWarps)", "None"] {
        assert!(seen.contains_key(kind), "{seen:?}");
    }
}
