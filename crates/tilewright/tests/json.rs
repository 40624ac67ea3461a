//! The objects of `--json`: each is one line, says whether the command succeeded, and is what
//! `tilewright schema` says, also where the command line is wrong.

use std::process::{Command, Output};

use serde_json::Value;

fn call(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(line.split_whitespace())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .env("TILEWRIGHT_CACHE_DIR", "")
        .output()
        .expect("it starts")
}

fn object(line: &str) -> (Value, Option<i32>) {
    let done = call(&format!("{line} --json"));
    let text = String::from_utf8_lossy(&done.stdout);
    assert_eq!(text.lines().count(), 1, "{line}: {text}");
    let object = serde_json::from_str(&text).expect("one object");
    (object, done.status.code())
}

fn schema() -> Value {
    serde_json::from_slice(&call("schema").stdout).expect("a schema")
}

/// Why a value is not what a part of the schema says. As much of JSON Schema as ours uses.
fn unlike(root: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    let known = [
        "$ref",
        "type",
        "const",
        "enum",
        "anyOf",
        "allOf",
        "required",
        "properties",
        "items",
        "additionalProperties",
        "description",
        "$schema",
        "title",
        "$defs",
    ];
    for key in schema.as_object()?.keys() {
        assert!(
            known.contains(&key.as_str()),
            "the schema has `{key}`, which nothing checks"
        );
    }
    if let Some(name) = schema["$ref"].as_str() {
        let part = &root["$defs"][name.rsplit('/').next().unwrap_or_default()];
        assert!(part.is_object(), "the schema has no {name}");
        return unlike(root, part, value, at);
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type is called {other}"),
    };
    if !kinds.is_empty() && !kinds.iter().any(|k| is(k)) {
        return Some(format!("{at} is {value}, not {kinds:?}"));
    }
    if let Some(wanted) = schema.get("const")
        && wanted != value
    {
        return Some(format!("{at} is {value}, not {wanted}"));
    }
    if let Some(list) = schema["enum"].as_array()
        && !list.contains(value)
    {
        return Some(format!("{at} is {value}, none of {list:?}"));
    }
    if let Some(ways) = schema["anyOf"].as_array() {
        let each: Vec<_> = ways.iter().map(|w| unlike(root, w, value, at)).collect();
        if each.iter().all(Option::is_some) {
            return each.into_iter().flatten().next();
        }
    }
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let mut wrong = parts.filter_map(|p| unlike(root, p, value, at));
    if let Some(wrong) = wrong.next() {
        return Some(wrong);
    }
    for key in schema["required"].as_array().into_iter().flatten() {
        let key = key.as_str().expect("a name");
        if value.get(key).is_none() {
            return Some(format!("{at} has no `{key}`"));
        }
    }
    let fields = schema["properties"].as_object().into_iter().flatten();
    for (key, part) in fields {
        if let Some(inner) = value.get(key)
            && let Some(wrong) = unlike(root, part, inner, &format!("{at}.{key}"))
        {
            return Some(wrong);
        }
    }
    if schema["items"].is_object() {
        for (i, item) in value.as_array().into_iter().flatten().enumerate() {
            if let Some(wrong) = unlike(root, &schema["items"], item, &format!("{at}[{i}]")) {
                return Some(wrong);
            }
        }
    }
    None
}

#[test]
fn objects_are_as_the_schema_says() {
    let schema = schema();
    let gemm = "examples/gemm.py --set M=128 --set N=128 --set K=64";
    for (command, line) in [
        ("run", format!("run {gemm}")),
        (
            "run",
            format!("run {gemm} --on sim --target sm_80 --counters --explain --timings"),
        ),
        ("compile", format!("compile {gemm}")),
        (
            "compile",
            format!("compile {gemm} --emit device --explain --target sm_90a"),
        ),
        (
            "compile",
            format!("compile {gemm} --emit layouts --target gfx950"),
        ),
        (
            "compile",
            format!("compile {gemm} --print-after thread-sync"),
        ),
        (
            "verify",
            format!("verify {gemm} --target sm_80 --explain decisions"),
        ),
        (
            "opt",
            "opt filetests/layout-inference/any-width.tw".to_string(),
        ),
        (
            "tune",
            format!("tune {gemm} --vary block_M=32,64,4096 --on cost --target sm_80"),
        ),
        ("passes", "passes --target sm_80".to_string()),
        ("doctor", "doctor".to_string()),
        ("explain", "explain".to_string()),
        ("explain", "explain copy-extents".to_string()),
    ] {
        let (object, code) = object(&line);
        assert_eq!(
            (object["ok"].as_bool(), code),
            (Some(true), Some(0)),
            "{line}"
        );
        let part = &schema["$defs"][command];
        let wrong = unlike(&schema, part, &object, "the object");
        assert_eq!(wrong, None, "{line}");
    }
}

#[test]
fn failures_are_objects_too() {
    let schema = schema();
    for (line, code, name) in [
        ("run examples/none.py", 1, "unreadable-file"),
        ("run examples/gemm.py --set X=1", 1, "unknown-setting"),
        ("run examples/gemm.py --set =1", 2, "usage"),
        ("compile examples/gemm.py --target sm_1", 2, "usage"),
        ("compile", 2, "usage"),
        ("compile examples/gemm.py --no-such-option", 2, "usage"),
        ("no-such-command", 2, "usage"),
        ("explain no-such-code", 2, "usage"),
        ("opt examples/gemm.py", 2, "usage"),
        ("run examples/gemm.py --counters", 2, "usage"),
    ] {
        let (object, exit) = object(line);
        assert_eq!(
            (object["ok"].as_bool(), exit),
            (Some(false), Some(code)),
            "{line}"
        );
        assert_eq!(object["errors"][0]["code"], name, "{line}");
        let wrong = unlike(&schema, &schema["$defs"]["failure"], &object, "the object");
        assert_eq!(wrong, None, "{line}");
    }
}

/// The check of the schema finds what is wrong.
#[test]
fn a_field_that_is_wrong_is_found() {
    let schema = schema();
    let part = &schema["$defs"]["run"];
    let (good, _) = object("run examples/gemm.py --set M=128 --set N=128 --set K=32");
    for (path, value) in [
        ("/ok", Value::from(1)),
        ("/schema", Value::from(2)),
        ("/tensors/0/role", Value::from("inside")),
        ("/tensors/0/shape/0", Value::from("128")),
        ("/target", Value::from(90)),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(path).expect("a field") = value;
        assert!(unlike(&schema, part, &bad, "it").is_some(), "{path}");
    }
    for field in ["version", "tensors", "expected"] {
        let mut bad = good.clone();
        bad.as_object_mut().expect("an object").remove(field);
        assert!(
            unlike(&schema, part, &bad, "it").is_some(),
            "without {field}"
        );
    }
}

/// Warnings are in the object, and not among the errors.
#[test]
fn warnings_are_in_the_object() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("k.py");
    let text = "import tilelang.language as T\n\n@T.prim_func\ndef k(A: T.Tensor((8,), 'float32')):\n    with T.Kernel(1) as bx:\n        print(bx)\n        T.clear(A)\n";
    std::fs::write(&path, text).expect("a file");
    let (object, _) = object(&format!("run {}", path.display()));
    assert_eq!(object["warnings"][0]["code"], "python-print");
    assert_eq!(object["warnings"][0]["line"], 6);
    assert!(object.get("errors").is_none());
}
