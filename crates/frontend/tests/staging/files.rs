//! Files beside the kernel's, and what other libraries say that needs no Python.

use tilewright_frontend::{SettingValue, imports, stage, stage_for};
use tilewright_ir::{SourceMap, Target};

use super::{kernel_text, run};

/// A kernel that stores a value, in the file `folder/k.py`.
fn stored(imports: &str, value: &str) -> String {
    format!(
        "{imports}\nimport tilelang.language as T\n\
         @T.prim_func\n\
         def k(A: T.Tensor((16,), 'int32')):\n    \
             with T.Kernel(1, threads=16) as bx:\n        \
                 A[0] = {value}\n"
    )
}

/// The statement of a kernel with files beside it, or the place and message of its error.
fn beside(kernel: &str, files: &[(&str, &str)]) -> Result<String, String> {
    let mut sources = SourceMap::new();
    let file = sources.add("folder/k.py", kernel);
    for (name, text) in files {
        sources.add(*name, *text);
    }
    match stage(&sources, file, None, &[]) {
        Ok(staged) => Ok(kernel_text(&staged)),
        Err(d) => {
            let place = sources.locate(d[0].primary.span);
            Err(format!("{place}: {}: {}", d[0].code, d[0].message))
        }
    }
}

#[test]
fn names_of_files_beside_the_kernel() {
    let files = [
        (
            "folder/near.py",
            "import far\nbase = 3\ndef add(x):\n    return x + base + far.one\n",
        ),
        ("folder/far.py", "one = 1\nbase = 100\n"),
        (
            "folder/pkg/inner.py",
            "from .deep import *\nfrom . import deep as d\ntotal = two + d.two\n",
        ),
        ("folder/pkg/deep.py", "two = 2\n"),
        ("elsewhere/near.py", "base = 1000\n"),
    ];
    let of = |imports: &str, value: &str| beside(&stored(imports, value), &files);
    // A function finds the names of its own file, whatever the kernel's has.
    assert_eq!(
        of("from near import add\nbase = 50", "add(10) + base").unwrap(),
        "A[0] = 64"
    );
    assert_eq!(of("import near as n", "n.add(n.base)").unwrap(), "A[0] = 7");
    assert_eq!(of("from far import *", "one + base").unwrap(), "A[0] = 101");
    assert_eq!(
        of("import pkg.inner", "pkg.inner.total").unwrap(),
        "A[0] = 4"
    );
    assert_eq!(
        of("from pkg import inner", "inner.total").unwrap(),
        "A[0] = 4"
    );
    assert_eq!(
        of("from .pkg.inner import total", "total").unwrap(),
        "A[0] = 4"
    );
}

#[test]
fn mistakes_in_files_beside_the_kernel_are_at_their_place() {
    let of = |imports: &str, value: &str, text: &str| {
        beside(&stored(imports, value), &[("folder/near.py", text)]).unwrap_err()
    };
    assert_eq!(
        of("from near import f", "f", "g = 1\n"),
        "folder/k.py:1:18: unknown-attribute: the module `near` has no `f`"
    );
    assert_eq!(
        of(
            "from near import f",
            "f(1)",
            "def f(x):\n    return x + missing\n"
        ),
        "folder/near.py:2:16: unknown-name: the name `missing` is not defined"
    );
    let broken = of("from near import f", "f", "def f(:\n");
    assert!(broken.starts_with("folder/near.py:1:7: syntax"), "{broken}");
    // What lies elsewhere is not read.
    let absent = of("from absent import f", "f(1)", "");
    assert!(
        absent.contains("`absent.f` exists only in a running Python"),
        "{absent}"
    );
}

#[test]
fn what_a_text_imports() {
    let text = "import math, near\nimport tilelang.language as T\nfrom .a.b import c\n\
                def f():\n    from . import d\n";
    let mut found = imports(text);
    found.sort();
    assert_eq!(found, ["a.b", "a.b.c", "d", "near"]);
}

#[test]
fn values_of_other_libraries() {
    let value =
        |imports: &str, value: &str| kernel_text(&run(&stored(imports, value), &[]).unwrap());
    assert_eq!(
        value("import triton", "triton.next_power_of_2(100)"),
        "A[0] = 128"
    );
    assert_eq!(
        value("from triton import cdiv", "cdiv(100, 32)"),
        "A[0] = 4"
    );
    assert_eq!(
        value(
            "from tilelang.utils import next_power_of_2 as p",
            "p(1) + p(64)"
        ),
        "A[0] = 65"
    );
    assert_eq!(
        value("from tvm import DataType", "DataType('float16').bits"),
        "A[0] = 16"
    );
    assert_eq!(value("import torch", "torch.bfloat16.itemsize"), "A[0] = 2");
    let code = |imports: &str, value: &str| {
        let d = run(&stored(imports, value), &[]).unwrap_err();
        d[0].code.0
    };
    assert_eq!(
        code("import triton", "triton.next_power_of_2(0)"),
        "wrong-value"
    );
    assert_eq!(
        code("import triton", "triton.next_power_of_2()"),
        "wrong-arity"
    );
    assert_eq!(
        code("import torch", "torch.cuda.device_count()"),
        "opaque-value"
    );
}

#[test]
fn the_target_and_settings_say_what_the_machine_is() {
    let machine = "from tilelang.carver.arch import driver\nimport torch";
    let of = |value: &str, target: &str, set: &[(&str, &str)]| {
        let mut sources = SourceMap::new();
        let file = sources.add("k.py", stored(machine, value));
        let set: Vec<(String, SettingValue)> = set
            .iter()
            .map(|(n, v)| (n.to_string(), SettingValue::parse(v).expect("a literal")))
            .collect();
        let target = Target::from_name(target).expect("a target");
        match stage_for(&sources, file, None, &set, target) {
            Ok(staged) => kernel_text(&staged),
            Err(d) => d[0].code.0.to_string(),
        }
    };
    let count = "driver.get_num_sms()";
    assert_eq!(of(count, "sm_90a", &[]), "A[0] = 132");
    assert_eq!(of(count, "gfx942", &[]), "A[0] = 304");
    assert_eq!(of(count, "gfx942", &[("num_sms", "7")]), "A[0] = 7");
    assert_eq!(of(count, "gfx942", &[("num_sms", "0")]), "bad-setting");
    assert_eq!(of("1", "gfx942", &[("num_sms", "7")]), "unknown-setting");
    let hip = "1 if torch.version.hip else 2";
    assert_eq!(of(hip, "sm_90a", &[]), "A[0] = 2");
    assert_eq!(of(hip, "gfx950", &[]), "A[0] = 1");
    assert_eq!(
        of(hip, "gfx950", &[("torch.version.hip", "None")]),
        "A[0] = 2"
    );
    let there = "int(torch.cuda.is_available())";
    assert_eq!(of(there, "sm_90a", &[]), "A[0] = 1");
    assert_eq!(
        of(there, "sm_90a", &[("is_available", "False")]),
        "A[0] = 0"
    );
    assert_eq!(of(there, "sm_90a", &[("is_available", "3")]), "bad-setting");
    let device = "torch.cuda.get_device_properties(0).multi_processor_count";
    assert_eq!(of(device, "sm_80", &[]), "A[0] = 108");
}
