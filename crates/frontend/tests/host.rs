//! The interpreter with a host: what it does not know it asks, and what the host says holds.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tilewright_frontend::eval::Stage;
use tilewright_frontend::eval::modules::ModuleId;
use tilewright_frontend::host::{Host, HostFunction, HostObject, Namespace};
use tilewright_frontend::value::Value;
use tilewright_frontend::{Error, Result, codes};
use tilewright_ir::{DType, Diagnostic, FileId, SourceMap, Span, text};

/// A host of a few objects, which writes down what it is asked.
#[derive(Debug, Default)]
struct Toy {
    asked: RefCell<Vec<String>>,
    stop: Cell<bool>,
}

#[derive(Clone, Debug)]
enum Thing {
    /// A number in a box of its own.
    Number(i64),
    /// Something with the attribute `size`, which can be called, gone through and indexed.
    Record,
    /// A function that the interpreter runs.
    Function(HostFunction),
}

#[derive(Clone, Debug)]
struct Object {
    toy: Rc<Toy>,
    thing: Thing,
}

impl Object {
    fn value(toy: &Rc<Toy>, thing: Thing) -> Value {
        Value::Host(Rc::new(Object {
            toy: toy.clone(),
            thing,
        }))
    }

    fn asked(&self, what: impl Into<String>) {
        self.toy.asked.borrow_mut().push(what.into());
    }
}

fn number_of(value: &Value) -> i64 {
    match value {
        Value::Host(object) => match object.as_any().downcast_ref::<Object>() {
            Some(Object {
                thing: Thing::Number(n),
                ..
            }) => *n,
            _ => 0,
        },
        other => other.as_int().unwrap_or(0) as i64,
    }
}

impl HostObject for Object {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn attribute(&self, _: &mut Stage, name: &str, _: Span) -> Result<Option<Value>> {
        self.asked(format!(".{name}"));
        Ok((name == "size").then(|| Object::value(&self.toy, Thing::Number(4))))
    }
    fn set_attribute(&self, name: &str, value: &Value, _: Span) -> Result<()> {
        self.asked(format!(".{name} = {}", number_of(value)));
        Ok(())
    }
    fn call(
        &self,
        stage: &mut Stage,
        args: &[Value],
        keywords: &[(Rc<str>, Value)],
        span: Span,
    ) -> Result<Value> {
        if let Thing::Function(function) = &self.thing {
            let closure = stage.host_closure(function)?;
            let callee = Value::Function(closure);
            return stage.call_from_host(&callee, args.to_vec(), keywords, span);
        }
        self.asked(format!("({})", args.len() + keywords.len()));
        match args.first().map(number_of) {
            Some(13) => Err(Diagnostic::error(codes::HOST_EXCEPTION, span, "thirteen").into()),
            _ => Ok(Value::Int(args.iter().map(number_of).sum::<i64>().into())),
        }
    }
    fn items(&self, _: &mut Stage, _: Span) -> Result<Vec<Value>> {
        self.asked("items");
        Ok((0..2)
            .map(|n| Object::value(&self.toy, Thing::Number(n)))
            .collect())
    }
    fn truth(&self, _: Span) -> Result<bool> {
        self.asked("truth");
        Ok(false)
    }
    fn equals(&self, other: &Value) -> bool {
        number_of(&Value::Host(Rc::new(self.clone()))) == number_of(other)
    }
    fn is(&self, _: &dyn HostObject) -> bool {
        false
    }
    fn hash(&self) -> Option<i64> {
        Some(1)
    }
    fn number(&self) -> Option<Value> {
        match self.thing {
            Thing::Number(n) => Some(Value::Int(n.into())),
            _ => None,
        }
    }
    fn string(&self) -> Option<String> {
        None
    }
    fn contents(&self, _: &mut Stage, _: Span) -> Result<Option<Value>> {
        Ok(None)
    }
    fn dtype(&self) -> Option<DType> {
        matches!(self.thing, Thing::Record).then_some(DType::F16)
    }
    fn callable(&self) -> bool {
        true
    }
    fn class(&self) -> String {
        "toy.Object".to_string()
    }
    fn text(&self, _: bool) -> String {
        "object".to_string()
    }
}

#[derive(Debug)]
struct ToyHost(Rc<Toy>);

impl Host for ToyHost {
    fn object(&self, _: &Value) -> Option<Rc<dyn HostObject>> {
        None
    }
    fn operate(&self, _: &mut Stage, name: &str, operands: &[Value], _: Span) -> Result<Value> {
        self.0.asked.borrow_mut().push(name.to_string());
        let numbers: Vec<i64> = operands.iter().map(number_of).collect();
        Ok(match (name, numbers.as_slice()) {
            ("add", [a, b]) => Object::value(&self.0, Thing::Number(a + b)),
            ("lt", [a, b]) => Value::Bool(a < b),
            (_, [_, key]) => Value::Int((*key).into()),
            _ => Value::None,
        })
    }
    fn builtin(&self, _: &mut Stage, name: &str, _: Span) -> Result<Option<Value>> {
        Ok((name == "seven").then_some(Value::Int(7)))
    }
    fn import(&self, _: &mut Stage, path: &str, _: Span) -> Result<Value> {
        self.0.asked.borrow_mut().push(format!("import {path}"));
        Ok(Object::value(&self.0, Thing::Record))
    }
    fn interrupted(&self) -> bool {
        self.0.stop.get()
    }
}

#[derive(Debug)]
struct Names(Vec<(&'static str, Value)>);

impl Namespace for Names {
    fn get(&self, _: &mut Stage, name: &str, _: Span) -> Result<Option<Value>> {
        let found = self.0.iter().find(|(n, _)| *n == name);
        Ok(found.map(|(_, v)| v.clone()))
    }
    fn names(&self) -> Vec<String> {
        self.0.iter().map(|(n, _)| n.to_string()).collect()
    }
}

/// A kernel with these lines in its body, recorded with a host that has `record`, `four` and what
/// else is given.
fn record(
    toy: &Rc<Toy>,
    lines: &str,
    more: Vec<(&'static str, Value)>,
) -> std::result::Result<String, (Error, SourceMap)> {
    let body: String = lines.lines().map(|l| format!("        {l}\n")).collect();
    let text = format!(
        "def kernel(A: T.Tensor((64,), \"int32\")):\n    with T.Kernel(1, threads=64):\n{body}"
    );
    let mut sources = SourceMap::new();
    let file = sources.add("kernel.py", text.as_str());
    let mut names = vec![
        ("T", Value::Module(ModuleId::Language)),
        ("record", Object::value(toy, Thing::Record)),
        ("four", Object::value(toy, Thing::Number(4))),
    ];
    names.extend(more);
    let function = HostFunction {
        file,
        text: Rc::from(text),
        line: 1,
        name: Rc::from("kernel"),
        inside: None,
        space: Rc::new(Names(names)),
        defaults: Vec::new(),
    };
    let mut stage = Stage::hosted(Rc::new(ToyHost(toy.clone())));
    match stage.record_prim_func(&function, &[]) {
        Ok(func) => Ok(text::print(&func)),
        Err(e) => Err((e, sources)),
    }
}

fn stored(ir: &str) -> Vec<&str> {
    let lines = ir.lines().map(str::trim);
    lines.filter(|l| l.starts_with("A[")).collect()
}

#[test]
fn the_host_is_asked() {
    let toy = Rc::new(Toy::default());
    let lines = "\
A[0] = record.size
A[1] = record(1, four, key=2)
A[2] = record[5] + seven
A[3] = four + 1
A[4] = 1 if record else 2
A[5] = 1 if four < 9 else 2
for n in record:
    A[6] = A[6] + n
record.depth = 3
import torch.nn as nn
T.fill(A[8:16], nn.size)";
    let ir = record(&toy, lines, Vec::new()).map_err(|(e, _)| e).unwrap();
    assert_eq!(
        stored(&ir),
        [
            "A[0] = 4",
            "A[1] = 5",
            "A[2] = 12",
            "A[3] = 5",
            "A[4] = 2",
            "A[5] = 1",
            "A[6] = A[6]",
            "A[6] = A[6] + 1",
        ]
    );
    assert_eq!(
        *toy.asked.borrow(),
        [
            ".size",
            "(3)",
            "getitem",
            "add",
            "truth",
            "lt",
            "items",
            ".depth = 3",
            "import torch.nn",
            ".size",
        ]
    );
}

#[test]
fn functions_of_other_files_see_their_own_names() {
    let toy = Rc::new(Toy::default());
    let other = "\
# helpers
def helper(x, factor=scale):
    return x * factor + offset

first, second = lambda x: x + 1, lambda x: x + 2
";
    let function = |name: &str, line, inside| {
        let function = HostFunction {
            file: FileId(7),
            text: Rc::from(other),
            line,
            name: Rc::from(name),
            inside,
            space: Rc::new(Names(vec![("offset", Value::Int(100))])),
            defaults: vec![(Rc::from("factor"), Value::Int(3))],
        };
        Object::value(&toy, Thing::Function(function))
    };
    let second = other.lines().nth(4).and_then(|l| l.find("x + 2")).unwrap();
    let more = vec![
        ("helper", function("helper", 2, None)),
        ("second", function("<lambda>", 5, Some((5, second as u32)))),
        ("either", function("<lambda>", 5, None)),
        ("moved", function("helper", 3, None)),
        ("offset", Value::Int(0)),
    ];
    let lines = "A[0] = helper(2)\nA[1] = second(four)\nA[2] = helper(A[3], factor=5)";
    let ir = record(&toy, lines, more.clone())
        .map_err(|(e, _)| e)
        .unwrap();
    assert_eq!(
        stored(&ir),
        ["A[0] = 106", "A[1] = 6", "A[2] = A[3] * 5 + 100"]
    );
    for (line, message) in [
        (
            "A[0] = either(1)",
            "which of the lambdas of this line is meant is not known",
        ),
        (
            "A[0] = moved(1)",
            "the source of `helper` is not at line 3 of its file any more",
        ),
    ] {
        let (error, _) = record(&toy, line, more.clone()).expect_err(line);
        assert_eq!((error.code, &*error.message), (codes::NO_SOURCE, message));
    }
}

#[test]
fn what_the_host_refuses_has_its_place() {
    let toy = Rc::new(Toy::default());
    for (line, code, place) in [
        ("A[0] = record(13)", codes::HOST_EXCEPTION, "kernel.py:3:16"),
        (
            "A[0] = record.length",
            codes::UNKNOWN_ATTRIBUTE,
            "kernel.py:3:16",
        ),
        ("A[0] = recrod", codes::UNKNOWN_NAME, "kernel.py:3:16"),
        ("A[0] = record", codes::WRONG_TYPE, "kernel.py:3:9"),
        ("T.copy(record, A)", codes::WRONG_TYPE, "kernel.py:3:16"),
    ] {
        let (error, sources) = record(&toy, line, Vec::new()).expect_err(line);
        assert_eq!(error.code, code, "{line}: {}", error.message);
        assert_eq!(sources.locate(error.primary.span), place, "{line}");
    }
    let (error, _) = record(&toy, "A[0] = recrod", Vec::new()).expect_err("a misspelt name");
    assert!(error.help.iter().any(|h| h.contains("record")));
}

#[test]
fn what_kernels_record_is_read_only_of_modules() {
    let toy = Rc::new(Toy::default());
    let (error, _) = record(&toy, "global four\nfour = 5", Vec::new()).expect_err("a global");
    assert_eq!(error.code, codes::UNSUPPORTED_SYNTAX);
}

#[test]
fn an_interrupt_ends_it() {
    let toy = Rc::new(Toy::default());
    toy.stop.set(true);
    let lines = "x = [n * 2 for n in range(100000)]";
    let (error, _) = record(&toy, lines, Vec::new()).expect_err("interrupted");
    assert_eq!(error.code, codes::INTERRUPTED);
}
