//! Compile-time Python: snippets and the values they give.

use tilewright_ir::FileId;

use crate::eval::Stage;
use crate::record::settings::Settings;
use crate::syntax::{Symbols, parse_source};
use crate::value::Value;

/// Runs the snippet as the body of a function and prints what it returns.
fn run(snippet: &str) -> crate::Result<String> {
    let prelude =
        "import math, itertools, functools\nimport tilelang.language as T\nimport torch\n";
    let body: String = snippet.lines().map(|l| format!("    {l}\n")).collect();
    let text = format!("{prelude}def snippet():\n{body}");
    let mut symbols = Symbols::default();
    let module =
        parse_source(&text, FileId(0), &mut symbols).map_err(|d| Box::new(d[0].clone()))?;
    let name = symbols.intern("snippet");
    let mut stage = Stage::new(module, symbols, Settings::default());
    let f = stage.name(name, tilewright_ir::Span::NONE)?;
    let value = stage.call_value(&f, Vec::new(), tilewright_ir::Span::NONE)?;
    Ok(stage.repr(&value))
}

/// The value of one expression.
fn value(expr: &str) -> String {
    match run(&format!("return {expr}")) {
        Ok(text) => text,
        Err(e) => format!("{}: {}", e.code, e.message),
    }
}

fn check(table: &[(&str, &str)]) {
    for (expr, want) in table {
        assert_eq!(value(expr), *want, "{expr}");
    }
}

#[test]
fn numbers() {
    check(&[
        ("1 + 2 * 3", "7"),
        ("7 // 2, -7 // 2, 7 % -2, -7 % 2", "(3, -4, -1, 1)"),
        ("7 / 2", "3.5"),
        ("2 ** 10, 2 ** -1", "(1024, 0.5)"),
        ("1 << 20, 255 >> 4, -1 >> 3", "(1048576, 15, -1)"),
        ("6 & 3, 6 | 3, 6 ^ 3, ~6", "(2, 7, 5, -7)"),
        ("0x10 + 0b11 + 0o7 + 1_000", "1026"),
        (
            "1e3, 1.5e-7, 0.1 + 0.2, 1e22",
            "(1000.0, 1.5e-07, 0.30000000000000004, 1e+22)",
        ),
        ("True + 1, -True, True & False", "(2, -1, False)"),
        (
            "divmod(-7, 2), abs(-3), round(2.5), round(2.567, 2)",
            "((-4, 1), 3, 2, 2.57)",
        ),
        (
            "min(3, 1, 2), max([1, 5]), sum([1, 2, 3]), sum([1.5], 1)",
            "(1, 5, 6, 2.5)",
        ),
        (
            "int('42'), int(3.9), int('ff', 16), float('1.5'), bool([])",
            "(42, 3, 255, 1.5, False)",
        ),
        ("0xFFFFFFFFFFFFFFFF", "18446744073709551615"),
        (
            "1 << 200",
            "int-overflow: `1 << 200` needs more than 127 bits",
        ),
        ("1 // 0", "python-error: division by zero in `1 // 0`"),
        ("5.5 // 2, -5.5 % 2", "(2.0, 0.5)"),
        ("(255).bit_length(), (2.0).is_integer()", "(8, True)"),
    ]);
}

#[test]
fn comparisons_and_logic() {
    check(&[
        ("1 < 2 < 3, 1 < 3 < 2", "(True, False)"),
        (
            "1 == 1.0, 'a' == 'a', [1] == [1], (1, 2) != (1, 3)",
            "(True, True, True, True)",
        ),
        ("None is None, 1 is not None", "(True, True)"),
        (
            "2 in [1, 2], 3 not in (1, 2), 'b' in 'abc', 'k' in {'k': 1}, 4 in range(0, 10, 2)",
            "(True, True, True, True, True)",
        ),
        // Outside a kernel these are Python's own.
        (
            "3 or 7, 0 or 7, 3 and 7, 0 and 7, not 0",
            "(3, 7, 7, 0, True)",
        ),
        ("'yes' if 1 > 0 else 'no'", "'yes'"),
        (
            "(1, 2) < (1, 3), 'a' < 'b', [1] < [1, 2]",
            "(True, True, True)",
        ),
        (
            "1 < 'a'",
            "operand-types: `<` is not defined on an int and a string",
        ),
        (
            "T.float16 == 'float16', T.float16 == T.half, T.float16 != T.float32",
            "(True, True, True)",
        ),
        ("1 if float('nan') == float('nan') else 2", "2"),
    ]);
}

#[test]
fn strings() {
    check(&[
        ("'a' + 'b', 'ab' * 2, 'x' 'y'", "('ab', 'abab', 'xy')"),
        (
            "f'{1 + 1}-{\"s\"}-{3.14159:.2f}-{255:#x}-{7:03d}-{1000000:,}'",
            "'2-s-3.14-0xff-007-1,000,000'",
        ),
        (
            "f'{\"a\":>3}|{\"a\":<3}|{\"a\":^3}|{1:+d}|{0.5:%}|{1e10:e}|{1234.5:g}'",
            "'  a|a  | a |+1|50.000000%|1.000000e+10|1234.5'",
        ),
        ("f'{2 * 3=}'", "'2 * 3=6'"),
        ("f'{\"q\"!r}{[1, \"x\"]}{{}}'", "\"'q'[1, 'x']{}\""),
        ("'{} {1} {k:02d}'.format(1, 2, k=3)", "'1 2 03'"),
        ("'%d x %s' % (3, 'y')", "'3 x y'"),
        (
            "'a,b'.split(','), ' x '.strip(), 'A'.lower(), '-'.join(['a', 'b'])",
            "(['a', 'b'], 'x', 'a', 'a-b')",
        ),
        (
            "'abc'[1], 'abc'[-1], 'abcd'[1:3], 'abc'[::-1]",
            "('b', 'c', 'bc', 'cba')",
        ),
        (
            "'float16'.startswith('float'), 'x.py'.endswith('.py'), 'aXa'.replace('X', '-')",
            "(True, True, 'a-a')",
        ),
        (
            "len('héé'), ord('a'), chr(98), str(1.0), repr('a')",
            "(3, 97, 'b', '1.0', \"'a'\")",
        ),
        (
            "'a'.lowr()",
            "unknown-attribute: a string has no attribute `lowr`",
        ),
    ]);
}

#[test]
fn containers() {
    check(&[
        (
            "[1, *[2, 3], 4], (1,), (), [*range(3)]",
            "([1, 2, 3, 4], (1,), (), [0, 1, 2])",
        ),
        (
            "{'a': 1, **{'b': 2}}, {1, 2, 2}",
            "({'a': 1, 'b': 2}, {1, 2})",
        ),
        (
            "[1, 2, 3][1], [1, 2, 3][-1], (1, 2, 3)[:2], [1, 2, 3, 4][::2]",
            "(2, 3, (1, 2), [1, 3])",
        ),
        (
            "[1] + [2], (1,) + (2,), [0] * 3",
            "([1, 2], (1, 2), [0, 0, 0])",
        ),
        (
            "{'a': 1}['a'], {'a': 1}.get('b', 7), list({'a': 1}.items())",
            "(1, 7, [('a', 1)])",
        ),
        ("{'a': 1}['b']", "python-error: the dict has no key 'b'"),
        (
            "[1, 2][5]",
            "python-error: index 5 is outside a sequence of 2 items",
        ),
        (
            "sorted([3, 1, 2]), sorted(['b', 'a'], reverse=True), sorted([(1, 'b'), (0, 'c')], key=lambda p: p[1])",
            "([1, 2, 3], ['b', 'a'], [(1, 'b'), (0, 'c')])",
        ),
        (
            "list(zip([1, 2], 'ab')), list(enumerate('ab', 1)), list(map(lambda x: x * 2, [1, 2])), list(filter(None, [0, 1]))",
            "([(1, 'a'), (2, 'b')], [(1, 'a'), (2, 'b')], [2, 4], [1])",
        ),
        (
            "list(range(10, 0, -3)), len(range(5, 2)), list(reversed([1, 2])), any([0, 1]), all([])",
            "([10, 7, 4, 1], 0, [2, 1], True, True)",
        ),
        (
            "[x * y for x in range(3) if x for y in (1, 10)], {k: v for k, v in [('a', 1)]}, {i % 2 for i in range(4)}",
            "([1, 10, 2, 20], {'a': 1}, {0, 1})",
        ),
        (
            "sum(i for i in range(5)), max((x for x in [1, 3]), default=0)",
            "(10, 3)",
        ),
        (
            "isinstance(1, int), isinstance('a', (int, str)), isinstance(1.0, int), type(1) == int",
            "(True, True, False, True)",
        ),
        (
            "dict(a=1, b=2), dict([('k', 1)]), tuple([1]), set([1, 1])",
            "({'a': 1, 'b': 2}, {'k': 1}, (1,), {1})",
        ),
    ]);
    assert_eq!(
        run("l = [1]\nl.append(2)\nl.extend([3])\nl.insert(0, 0)\nl.pop()\nl[0] = 9\nreturn l")
            .unwrap(),
        "[9, 1, 2]"
    );
    assert_eq!(
        run("d = {}\nd['a'] = 1\nd.update(b=2)\nd['a'] += 5\ndel d['b']\nreturn d").unwrap(),
        "{'a': 6}"
    );
    assert_eq!(run("a = b = [1]\na += [2]\nreturn b").unwrap(), "[1, 2]");
}

#[test]
fn functions_and_scopes() {
    let table = [
        (
            "def f(a, b=2, *rest, c, d=4, **kw):\n    return a, b, rest, c, d, kw\nreturn f(1, c=3), f(1, 5, 6, c=7, z=8)",
            "((1, 2, (), 3, 4, {}), (1, 5, (6,), 7, 4, {'z': 8}))",
        ),
        (
            "args = (1, 2)\nkw = {'c': 3}\ndef f(a, b, c):\n    return a + b + c\nreturn f(*args, **kw)",
            "6",
        ),
        (
            "def outer():\n    n = 0\n    def inc():\n        nonlocal n\n        n += 1\n        return n\n    inc()\n    return inc()\nreturn outer()",
            "2",
        ),
        (
            "fs = [lambda x, i=i: x + i for i in range(3)]\nreturn [f(10) for f in fs]",
            "[10, 11, 12]",
        ),
        (
            "def fact(n):\n    return 1 if n <= 1 else n * fact(n - 1)\nreturn fact(10)",
            "3628800",
        ),
        (
            "x = 1\nx, y = 2, x\n(a, b), *c = (1, 2), 3, 4\nreturn x, y, a, b, c",
            "(2, 1, 1, 2, [3, 4])",
        ),
        (
            "total = 0\nfor i in range(10):\n    if i == 3:\n        continue\n    if i == 6:\n        break\n    total += i\nelse:\n    total = -1\nreturn total",
            "12",
        ),
        (
            "n = 10\nsteps = 0\nwhile n != 1:\n    n = n // 2 if n % 2 == 0 else 3 * n + 1\n    steps += 1\nreturn steps",
            "6",
        ),
        ("try:\n    x = 1\nfinally:\n    y = 2\nreturn x + y", "3"),
        (
            "class Config:\n    BLOCK = 64\n    WIDTH = BLOCK * 2\nreturn Config.WIDTH",
            "128",
        ),
        ("if (n := 5) > 3:\n    return n", "5"),
        (
            "return functools.reduce(lambda a, b: a * b, [1, 2, 3]), list(itertools.product([1, 2], 'a'))",
            "(6, [(1, 'a'), (2, 'a')])",
        ),
        (
            "return math.ceil(2.1), math.sqrt(16), math.log2(8), math.gcd(12, 18), math.pi > 3, math.prod([2, 3])",
            "(3, 4.0, 3.0, 6, True, 6)",
        ),
        ("return torch.float16", "torch.float16"),
    ];
    for (snippet, want) in table {
        assert_eq!(
            run(snippet).map_err(|e| e.message),
            Ok(want.to_string()),
            "{snippet}"
        );
    }
}

#[test]
fn failures_have_codes() {
    let table = [
        ("return undefined_name", "unknown-name"),
        ("def f(a):\n    return a\nreturn f()", "wrong-arity"),
        ("def f(a):\n    return a\nreturn f(1, 2)", "wrong-arity"),
        (
            "def f(abc):\n    return abc\nreturn f(abd=1)",
            "unknown-keyword",
        ),
        ("return (1)()", "not-callable"),
        ("return torch.randn(3)", "opaque-value"),
        ("assert 1 > 2, 'no'", "assertion"),
        ("raise ValueError(f'bad {1 + 1}')", "raised"),
        ("a, b = 1, 2, 3", "wrong-arity"),
        ("return [1][1.5]", "wrong-type"),
        ("return 1 + 'a'", "operand-types"),
        ("return {[1]: 2}", "wrong-type"),
        ("while True:\n    pass", "evaluation-budget"),
        (
            "def f(n):\n    return f(n + 1)\nreturn f(0)",
            "evaluation-budget",
        ),
        ("x = [0]\nwhile True:\n    x = x * 2", "evaluation-budget"),
        (
            "x = 'a'\nfor i in range(100):\n    x = x + x",
            "evaluation-budget",
        ),
        ("return [0] * 10**12", "evaluation-budget"),
        ("return list(range(10**15))", "evaluation-budget"),
        (
            "x = []\nfor i in range(10**9):\n    pass",
            "evaluation-budget",
        ),
        ("return '%d' % 'a'", "python-error"),
        ("return f'{1:zz}'", "python-error"),
        ("break", "control-flow"),
        ("async def f():\n    pass", "unsupported-syntax"),
        ("return b'x'", "unsupported-syntax"),
        ("return T.const('M')", "no-builder"),
        ("return T.coppy", "unknown-language-name"),
        (
            "return 3000000000000000000000000000 * 10 ** 30",
            "int-overflow",
        ),
        ("del nothing", "unknown-name"),
        ("x = []\nx.append(x)\nreturn x == [x] or x < [x]", ""),
    ];
    for (snippet, want) in table {
        let code = run(snippet).map_or_else(|e| e.code.0.to_string(), |_| String::new());
        assert_eq!(code, want, "{snippet}");
    }
}

#[test]
fn a_raise_carries_its_message() {
    let e = run("raise ValueError(f'bad {1 + 1}')").unwrap_err();
    assert_eq!(e.message, "the program raised ValueError: bad 2");
}

/// Values nested by a loop must not exhaust the stack when they are dropped.
#[test]
fn deeply_nested_values_are_dropped_safely() {
    let text = "x = ()\nfor i in range(10**9):\n    x = (x,)";
    let thread = std::thread::Builder::new()
        .stack_size(crate::STACK_BYTES)
        .spawn(|| run(text).unwrap_err().code)
        .expect("a thread");
    assert_eq!(thread.join().expect("no overflow").0, "evaluation-budget");
    let text = "x = []\nwhile True:\n    x = [x]";
    let thread = std::thread::Builder::new()
        .stack_size(crate::STACK_BYTES)
        .spawn(|| run(text).unwrap_err().code)
        .expect("a thread");
    assert_eq!(thread.join().expect("no overflow").0, "evaluation-budget");
}

#[test]
fn only_needed_module_code_runs() {
    let text = "import torch\nx = torch.randn(3)\nconfigs = []\nconfigs.append(1)\nconfigs += [2]\nn = 4\nn = n * 2\nraise ValueError('never')\nif __name__ == '__main__':\n    n = 0\n";
    let mut symbols = Symbols::default();
    let module = parse_source(text, FileId(0), &mut symbols).expect("parses");
    let (configs, n) = (symbols.intern("configs"), symbols.intern("n"));
    let mut stage = Stage::new(module, symbols, Settings::default());
    let list = stage
        .name(configs, tilewright_ir::Span::NONE)
        .expect("a list");
    assert_eq!(stage.repr(&list), "[1, 2]");
    assert!(matches!(
        stage.name(n, tilewright_ir::Span::NONE),
        Ok(Value::Int(8))
    ));
}
