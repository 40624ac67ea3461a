//! The text form: round trips of written examples, errors with their places, limits.

use proptest::prelude::*;
use tilewright_ir::arbitrary::any_func;
use tilewright_ir::text::{parse, parse_module, print};
use tilewright_ir::{Diagnostic, FileId, Func, SourceMap};

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
