//! The text form: round trips of written examples, errors with their places, limits.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use tilewright_ir::text::{parse, parse_module, print};
use tilewright_ir::{Diagnostic, FileId, Func, SourceMap, ThreadOp, TileOp};
use tilewright_testkit::arbitrary::any_func;

const EVERYTHING: &str = include_str!("everything.tw");

fn parsed(text: &str) -> Func {
    parse(text, FileId(0)).unwrap_or_else(|errors| panic!("{}", rendered(text, &errors)))
}

fn rendered(text: &str, errors: &[Diagnostic]) -> String {
    let mut sources = SourceMap::new();
    sources.add("test.tw", text);
    let all: Vec<String> = errors.iter().map(|d| d.render(&sources, false)).collect();
    all.join("\n")
}

/// The example is written as the printer writes it.
#[test]
fn everything_prints_as_it_is_written() {
    for word in TileOp::WORDS.iter().chain(ThreadOp::WORDS) {
        assert!(EVERYTHING.contains(word), "no line has `{word}`");
    }
    let funcs = parse_module(EVERYTHING, FileId(0));
    let funcs = funcs.unwrap_or_else(|e| panic!("{}", rendered(EVERYTHING, &e)));
    assert_eq!(funcs.len(), 3);
    let printed: Vec<String> = funcs.iter().map(print).collect();
    let (_, written) = EVERYTHING.split_once("\n\n").expect("a comment first");
    for (a, b) in written.lines().zip(printed.join("\n").lines()) {
        assert_eq!(a, b);
    }
    for (func, text) in funcs.iter().zip(&printed) {
        assert!(parsed(text) == *func, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_printed_parses_to_the_same(func in any_func()) {
        let text = print(&func);
        let again = parsed(&text);
        prop_assert!(again == func, "{text}");
        prop_assert_eq!(print(&again), text);
    }
}

/// Every word that the text form has for an operation, kind or attribute.
#[test]
fn the_generator_reaches_everything() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut all = String::new();
    for _ in 0..1500 {
        let tree = any_func().new_tree(&mut runner).expect("a function");
        all.push_str(&print(&tree.current()));
    }
    let mut missing = Vec::new();
    let mut want = |word: String| {
        if !all.contains(&word) {
            missing.push(word);
        }
    };
    for statement in [
        "symbol",
        "param",
        "output",
        "scalar",
        "workspace",
        "view",
        "pointer",
        "alloc",
        "let",
        "while",
        "if",
        "assert",
        "assume",
        "warp_group",
        "g2s",
        "g2r",
        "s2r",
        "mma",
        "r2s",
        "r2g",
        "tma_load",
        "tma_store",
        "wait",
        "commit",
        "fence",
        "set_prio",
        "iteration",
        "sched_barrier",
        "barrier_init",
        "} else",
    ] {
        want(format!("{statement} "));
    }
    for word in TileOp::WORDS.iter().chain(ThreadOp::WORDS) {
        want(word.to_string());
    }
    for piece in [
        "@(stage=",
        "@(order=",
        ", order=",
        "@() ",
        "break\n",
        "end_iteration\n",
        "continue\n",
        "sync_threads\n",
        "sync_threads id=",
        "sync_warp\n",
        "sync_grid\n",
        " = atomic_load ",
        " = shuffle index",
        " = shuffle up",
        " = shuffle down",
        " = shuffle xor",
        " = vote any",
        " = vote all",
        " = vote ballot",
        " = vote block_or",
        " = vote block_and",
        " = vote block_count",
        " = warp_reduce ",
        " = atomic_rmw ",
        " = extern ",
        "sched_group_barrier mask=",
        "barrier block\n",
        "barrier bare\n",
        "barrier named(",
        "barrier cond(",
        " in serial(",
        " in unroll(",
        " in vectorized(",
        " in parallel(",
        " in pipelined(",
        " in persistent(",
        " factor=",
        " stages=",
        " sync=[",
        " coalesced=",
        "..",
        " by ",
        "layout=linear",
        "layout=swizzled",
        "layout=padded(",
        "layout=map(",
        "layout=fragment(",
        "layout=map[",
        "layout=fragment[",
        "layout=swizzle(",
        "layout=panels(",
        "; ",
        " versions=",
        " offset=",
        " bytes=",
        " safe=",
        " strides=[",
        " arrivals=[",
        " op=sum",
        " op=bitxor",
        ": var ",
        ": local ",
        ": fragment ",
        ": shared ",
        ": tmem ",
        ": barrier ",
        ": reducer ",
        " swizzle=row(",
        " swizzle=column(",
        " min_blocks=",
        " cluster=(",
        " no_reg_realloc",
        " resident",
        " l2=[",
        " may_alias=[",
        " import=\"",
        "attr compile_flags",
        "attr pass_config",
        "attr autotune",
        " async",
        " tma\n",
        " tma barrier=",
        " tma warps=",
        " no_tma",
        " evict=normal",
        " evict=first",
        " evict=last",
        " prefer=\"",
        " trans_a",
        " trans_b",
        " policy=full_row",
        " policy=full_col",
        " clear=",
        " k_pack=2",
        " kind=wgmma",
        " kind=tcgen05",
        " slot=",
        " counter=",
        " axes=[x, y]",
        " inc\n",
        " dec\n",
        " arrive\n",
        " pure",
        " reverse",
        " nan_propagate",
        "select(",
        "if_then_else(",
        "ramp(",
        "broadcast(",
        "lane(",
        "reinterpret<",
        "address_of(",
        "float16(",
        " // ",
        " % ",
        "min(",
        "max(",
        "truncdiv(",
        "truncmod(",
        " && ",
        " || ",
        " << ",
        " >> ",
        " & ",
        " | ",
        " ^ ",
        "!",
        "~",
        " == ",
        " != ",
        " < ",
        " <= ",
        " > ",
        " >= ",
        "true",
        "false",
        "nan(0x",
        "-inf",
        "-0.0",
        "level=tile",
        "level=loop",
        "level=device",
    ] {
        want(piece.to_string());
    }
    for f in tilewright_ir::MathFn::ALL {
        want(format!("{}(", f.name()));
    }
    assert!(missing.is_empty(), "never generated: {missing:?}");
}

/// A function with these lines in a kernel.
fn kernel(lines: &str) -> String {
    format!(
        "func @f level=tile {{\n  param A: float16[64, 64]\n  kernel grid(bx: 1) threads(tx: 128, \
         ty: 1, tz: 1) {{\n{lines}\n  }}\n}}\n"
    )
}

#[test]
fn faults_are_named_and_located() {
    // The place is line and column of the text in a kernel, whose lines start at 4.
    let cases = [
        ("copy A[0 +: 4, 0 +: 4]", "text-syntax", (4, 23)),
        (
            "copy A[0 +: 4, 0 +: 4] -> B[0]",
            "text-unknown-name",
            (4, 27),
        ),
        ("cpoy A[0]", "text-unknown-op", (4, 1)),
        ("let x: floot32 = 1.0", "text-type", (4, 8)),
        ("let x: int32 = exp(1.0, 2.0)", "text-arity", (4, 16)),
        ("let x: int32 = expp(1.0)", "text-unknown-function", (4, 16)),
        ("let x: int32 = (1 + 2", "text-syntax", (5, 3)),
        ("let x: int32 = 1 < 2 < 3", "text-syntax", (4, 22)),
        ("let x: int32 = -bx", "text-syntax", (4, 16)),
        ("let x: int32 = A", "text-name-kind", (4, 16)),
        ("let x: int32 = bx[0]", "text-name-kind", (4, 16)),
        ("let if: int32 = 1", "text-syntax", (4, 5)),
        (
            "let x: int32 = 1\nlet x: int32 = 2",
            "text-duplicate",
            (5, 5),
        ),
        (
            "let x: int32 = 999999999999999999999999999999999999999999",
            "text-number",
            (4, 16),
        ),
        ("let x: float64 = nan(1):float64", "text-number", (4, 18)),
        ("alloc S: sharde float16[4]", "text-word", (4, 10)),
        (
            "alloc S: shared float16[4] colour=1",
            "text-unknown-attr",
            (4, 28),
        ),
        ("for i in sideways(4) {\n}", "text-unknown-attr", (4, 10)),
        ("@(stages=2) break", "text-unknown-attr", (4, 3)),
        ("for i, j in serial(0, 4) {\n}", "text-arity", (4, 5)),
        ("for i in persistent(4) wave=1 {\n}", "text-arity", (4, 24)),
        ("assert true, \"open", "text-string", (4, 14)),
        ("assert true, \"\\q\"", "text-string", (4, 14)),
        ("let x: int32 = 1 $ 2", "text-character", (4, 18)),
        ("break break", "text-syntax", (4, 7)),
        ("x = copy A[0]", "text-unknown-op", (4, 5)),
        ("mbarrier_arrive A[0, 0]", "text-arity", (4, 17)),
        ("let x: int32x4 = ramp(0, 1, bx)", "text-number", (4, 29)),
        ("wait vmcnt(99999999999)", "text-number", (4, 12)),
        (
            "alloc S: shared float16[8, 8] layout=panels(48)",
            "text-layout",
            (4, 45),
        ),
        (
            "alloc S: shared float16[8, 8] layout=swizzle(3; 0 -> 0)",
            "text-layout",
            (4, 38),
        ),
        (
            "alloc S: shared float16[8, 8] layout=swizzle(16; 99 -> 0)",
            "text-layout",
            (4, 38),
        ),
        (
            "alloc S: shared float16[8, 8] layout=map[8, 8](i, j) -> [64](i * 8 + j // 3 % 4)",
            "text-layout",
            (4, 38),
        ),
        (
            "alloc S: shared float16[8, 8] layout=map[8, 8](i, j) -> [64](i * 4 + j)",
            "text-layout",
            (4, 38),
        ),
        (
            "alloc S: shared float16[8, 8] layout=map[8, 8](i, j) -> [60](i * 8 + j)",
            "text-layout",
            (4, 38),
        ),
        (
            "alloc S: shared float16[8, 8] layout=map[8, 8](i, j) -> [64](i * 9223372036854775807 + j)",
            "text-layout",
            (4, 38),
        ),
        (
            "alloc S: shared float16[8, 8] layout=map[8, 8](i, j) -> [64](k)",
            "text-layout",
            (4, 62),
        ),
        (
            "alloc S: shared float16[8, 8] layout=map[8, 8](i < 9) -> [64](i)",
            "text-layout",
            (4, 38),
        ),
        (
            "alloc S: shared float16[8, 8] layout=map[8, 8] -> [64](0 +: 63)",
            "text-layout",
            (4, 38),
        ),
        (
            "alloc S: shared float16[8, 8] layout=map[8, 8] -> [64](0 +: 4294967295)",
            "text-layout",
            (4, 56),
        ),
        (
            "alloc S: shared float16[8, 8] layout=fragment[8, 8](i, j) -> [64](i * 8 + j)",
            "text-layout",
            (4, 38),
        ),
    ];
    for (lines, code, place) in cases {
        let text = kernel(lines);
        let errors = parse(&text, FileId(0)).expect_err(lines);
        let mut sources = SourceMap::new();
        sources.add("test.tw", text.as_str());
        let found = &errors[0];
        assert_eq!(found.code.0, code, "{lines}\n{}", rendered(&text, &errors));
        let at = sources.line_col(found.primary.span);
        assert_eq!(at, Some(place), "{lines}\n{}", rendered(&text, &errors));
    }
}

#[test]
fn help_names_what_was_meant() {
    let help = |lines: &str| {
        let errors = parse(&kernel(lines), FileId(0)).expect_err(lines);
        errors[0].help.join(" ")
    };
    assert!(help("cpoy A[0]").contains("`copy`"));
    assert!(help("let x: flaot32 = 1.0").contains("`float32`"));
    assert!(help("let xx: int32 = 1\nlet y: int32 = xy").contains("`xx`"));
    assert!(help("atomic ad A[0, 0], 1.0 relaxed").contains("`add`"));
    assert!(help("vote any true").contains("`x = vote …`"));
    assert!(help("set_proi 1").contains("`set_prio`"));
    assert!(help("sr2 A[0]").contains("`s2r`"));
}

#[test]
fn several_faults_are_all_reported() {
    let text = kernel("cpoy A[0]\nfor i in serial(0, q) {\n  break\n}\nlet x: int32 = 1 +\nbreak");
    let errors = parse(&text, FileId(0)).expect_err("three faults");
    let codes: Vec<&str> = errors.iter().map(|e| e.code.0).collect();
    assert_eq!(
        codes,
        ["text-unknown-op", "text-unknown-name", "text-syntax"]
    );
}

/// Texts that would overflow the stack or take forever if nesting were followed blindly.
#[test]
fn deep_and_long_texts_are_refused_cleanly() {
    let deep = 10_000;
    let chain = |n: usize| vec!["bx"; n].join(" + ");
    let texts = [
        format!("let x: int32 = {}1{}", "(".repeat(deep), ")".repeat(deep)),
        format!("let x: int32 = {}1", "!".repeat(deep)),
        format!(
            "let x: int32 = {}1{}",
            "abs(".repeat(deep),
            ")".repeat(deep)
        ),
        format!("let x: int32 = {}", chain(100_000)),
        format!(
            "let x: int32 = {}0{}",
            "A[".repeat(deep),
            ", 0]".repeat(deep)
        ),
        format!(
            "{}{}",
            "for i in serial(0, 4) {\n".repeat(deep),
            "}\n".repeat(deep)
        ),
        format!("if true {{ }} {}", "else if true { } ".repeat(deep)),
        "{".repeat(deep),
        "[".repeat(deep),
    ];
    for lines in texts {
        let text = kernel(&lines);
        assert!(parse(&text, FileId(0)).is_err());
    }
    let attr = format!("func @f {{\nattr pass_config x = {}\n}}", "[".repeat(deep));
    assert!(parse(&attr, FileId(0)).is_err());
}

/// The deepest expression there may be goes through text, on both sides.
#[test]
fn the_deepest_expressions_round_trip() {
    let depth = tilewright_ir::MAX_EXPR_DEPTH as usize - 1;
    let left = vec!["bx"; depth + 1].join(" + ");
    let open = "bx + (".repeat(depth - 1);
    let right = format!("{open}bx + bx{}", ")".repeat(depth - 1));
    let deeper = [format!("{left} + bx"), format!("bx + ({right})")];
    for (value, deeper) in [left, right].into_iter().zip(deeper) {
        let func = parsed(&kernel(&format!("let x: int32 = {value}")));
        let text = print(&func);
        assert!(text.contains(&value));
        assert!(parsed(&text) == func);
        let deeper = kernel(&format!("let x: int32 = {deeper}"));
        let errors = parse(&deeper, FileId(0)).expect_err("one level more");
        assert_eq!(errors[0].code.0, "text-depth");
    }
}

/// Printing takes any depth, though the parser does not.
#[test]
fn a_million_terms_print() {
    let mut func = parsed(&kernel("let x: int32 = bx"));
    let bx = func.kernels[0].grid[0].0;
    let mut value = func.var_expr(bx);
    for _ in 0..1_000_000 {
        value = value + 1;
    }
    if let tilewright_ir::StmtKind::Let { value: old, .. } = &mut func.kernels[0].body[0].kind {
        *old = value;
    }
    assert!(print(&func).len() > 4_000_000);
}

#[test]
fn equality_is_up_to_numbers_of_ids_but_not_names() {
    let text = kernel("let x: int32 = 1\nlet y: int32 = x");
    let func = parsed(&text);
    let mut other = tilewright_ir::Func::new("f");
    other.add_var(
        "unused",
        tilewright_ir::DType::I64,
        tilewright_ir::VarKind::Let,
    );
    assert!(func == func.renumbered());
    assert!(func == parsed(&format!("# a comment\n\n{text}")));
    assert!(func != parsed(&text.replace("y: int32", "z: int32")));
    assert!(func != parsed(&text.replace("= x", "= 1")));
    assert!(func != other);
}

#[test]
fn names_shadow_by_block_and_come_back() {
    let func = parsed(&kernel(
        "for i in serial(0, 4) {\nlet i.1: int32 = i\nlet j: int32 = i.1\n}\nfor i in serial(0, 8) {\nlet k: int32 = i\n}",
    ));
    let text = print(&func);
    assert!(text.contains("let i.1: int32 = i\n"));
    assert!(text.contains("for i in serial(0, 8)"));
    assert!(func.vars.values().filter(|v| v.name == "i").count() == 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Damaged texts give errors, never panics; what still parses still round-trips.
    #[test]
    fn damaged_texts_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, any::<prop::sample::Index>()), 1..6),
    ) {
        let pieces = ["(", ")", "[", "]", "{", "}", "\n", "\"", "x", "5", "-", ":", "nan(", " +: ", "..", "\u{0}", "é"];
        let mut text: Vec<char> = EVERYTHING.chars().collect();
        for (at, how, what) in edits {
            if text.is_empty() {
                break;
            }
            let at = at.index(text.len());
            match how {
                0 => { text.remove(at); }
                1 => { let c = text[what.index(text.len())]; text[at] = c; }
                2 => { text.truncate(at + 1); }
                _ => { text.splice(at..at, what.get(&pieces).chars()); }
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(funcs) = parse_module(&text, FileId(0)) {
            for func in funcs {
                let printed = print(&func);
                if let Ok(again) = parse(&printed, FileId(0)) {
                    prop_assert!(again == func, "{printed}");
                    prop_assert_eq!(print(&again), printed);
                }
            }
        }
    }
}

/// A hundred thousand names in one block take no longer than reading them.
#[test]
fn many_names_are_no_trouble() {
    let count = 100_000;
    let alike: String = (0..count)
        .map(|i| format!("let x.{i}: int32 = 1\n"))
        .collect();
    let alike = alike.replace("x.0:", "x:");
    let func = parsed(&kernel(&alike));
    assert_eq!(func.vars.values().filter(|v| v.name == "x").count(), count);
    let text = print(&func);
    assert!(text.contains(&format!("let x.{}: int32", count - 1)));
}
