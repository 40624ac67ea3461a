//! What users see for bad inputs. Each family of mistakes is one snapshot of rendered messages:
//! every message must name the problem, show the line, and say what would help.

mod programs;
mod statements;

use tilewright_frontend::{SettingValue, stage};
use tilewright_ir::{Severity, SourceMap};

/// A mistake: what it is called, and the statements of a kernel that make it.
type Case = (&'static str, &'static str);

/// A kernel with one buffer of each kind around the statements of a case.
const TEMPLATE: &str = r#"import tilelang
import tilelang.language as T

@T.prim_func
def kernel(
    A: T.Tensor((64, 64), "float16"),
    B: T.Tensor((64, 64), "float32"),
    V: T.Tensor((64,), "float32"),
    I: T.Tensor((64,), "int32"),
):
    with T.Kernel(4, threads=128) as bx:
        S = T.alloc_shared((64, 64), "float16")
        R = T.alloc_shared((64, 32), "float16")
        F = T.alloc_fragment((64, 64), "float32")
        row = T.alloc_fragment((64,), "float32")
        L = T.alloc_local((8,), "float32")
        bar = T.alloc_barrier([128, 128])
        acc = T.alloc_reducer((64,), "float32", "sum")
        x = T.alloc_var("int32", 0)
"#;

fn render(source: &str, settings: &[(&str, &str)]) -> String {
    let mut sources = SourceMap::new();
    let file = sources.add("kernel.py", source);
    let mut values = Vec::new();
    for (name, text) in settings {
        match SettingValue::parse(text) {
            Ok(value) => values.push((name.to_string(), value)),
            Err(message) => return format!("error: {message}\n = help: write a Python literal"),
        }
    }
    match stage(&sources, file, None, &values) {
        Ok(_) => "accepted".to_string(),
        Err(diagnostics) => {
            let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
            let texts: Vec<String> = errors.map(|d| d.render(&sources, false)).collect();
            texts.join("\n")
        }
    }
}

/// Renders every case of the template; a case that is accepted fails the test.
fn family(cases: &[Case]) -> String {
    let whole: Vec<(&str, String)> = cases
        .iter()
        .map(|(name, body)| {
            let body: String = body
                .lines()
                .map(|line| format!("        {line}\n"))
                .collect();
            (*name, format!("{TEMPLATE}{body}"))
        })
        .collect();
    files(&whole)
}

/// Renders whole files.
fn files<S: AsRef<str>>(cases: &[(&str, S)]) -> String {
    let mut out = String::new();
    for (name, source) in cases {
        out += &case(name, source.as_ref(), &[]);
    }
    out
}

/// One refused input. Except for mistakes in the syntax itself, every message says what helps.
fn case(name: &str, source: &str, settings: &[(&str, &str)]) -> String {
    let text = render(source, settings);
    assert_ne!(text, "accepted", "`{name}` must be refused");
    assert!(
        text.contains("help: ") || text.starts_with("error[syntax]"),
        "`{name}` gives no help:\n{text}"
    );
    format!("### {name}\n{}\n\n", text.trim_end())
}

macro_rules! check {
    ($text:expr) => {
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($text);
        })
    };
}
use check;
