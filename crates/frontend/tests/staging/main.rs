//! Staging end to end: source text in, tile IR out.

mod control;
mod entries;
mod files;
mod values;

use tilewright_frontend::{SettingValue, Staged, stage};
use tilewright_ir::text::print;
use tilewright_ir::{Diagnostic, SourceMap};

fn run(text: &str, set: &[(&str, &str)]) -> Result<Staged, Vec<Diagnostic>> {
    let mut sources = SourceMap::new();
    let file = sources.add("k.py", text);
    let set: Vec<(String, SettingValue)> = set
        .iter()
        .map(|(n, v)| (n.to_string(), SettingValue::parse(v).expect("a literal")))
        .collect();
    stage(&sources, file, None, &set)
}

/// The lines of the kernel's body, for a body written on tensors A and B of 16 elements.
fn body(lines: &str) -> String {
    match try_body(lines) {
        Ok(text) => text,
        Err(d) => panic!("{}: {}\n{lines}", d.code, d.message),
    }
}

fn try_body(lines: &str) -> Result<String, Box<Diagnostic>> {
    let lines: String = lines.lines().map(|l| format!("        {l}\n")).collect();
    let text = format!(
        "import tilelang.language as T\n\
         @T.prim_func\n\
         def k(A: T.Tensor((16,), 'int32'), B: T.Tensor((16,), 'int32'), F: T.Tensor((4, 8), 'float16')):\n    \
             with T.Kernel(2, threads=32) as bx:\n{lines}"
    );
    let staged = run(&text, &[]).map_err(|d| Box::new(d[0].clone()))?;
    Ok(kernel_text(&staged))
}

/// What the printer writes between the braces of the kernel.
fn kernel_text(staged: &Staged) -> String {
    let text = print(&staged.func);
    let lines = text
        .lines()
        .skip_while(|l| !l.trim_start().starts_with("kernel"));
    let body = lines.skip(1).take_while(|l| l.starts_with("    "));
    let body: Vec<&str> = body.map(|l| &l[4..]).collect();
    body.join("\n")
}

fn code(lines: &str) -> String {
    match try_body(lines) {
        Ok(text) => panic!("staged:\n{text}"),
        Err(d) => d.code.0.to_string(),
    }
}

/// The warnings of a body that stages.
fn warnings(lines: &str) -> Vec<&'static str> {
    let lines: String = lines.lines().map(|l| format!("        {l}\n")).collect();
    let text = format!(
        "import tilelang.language as T\n\
         @T.prim_func\n\
         def k(A: T.Tensor((16,), 'int32')):\n    \
             with T.Kernel(2, threads=32) as bx:\n{lines}"
    );
    let staged = run(&text, &[]).unwrap();
    staged.warnings.iter().map(|w| w.code.0).collect()
}
