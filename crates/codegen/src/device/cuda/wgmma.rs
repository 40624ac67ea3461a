//! Wrappers of warp groups' matrix instructions.

use std::fmt::Write as _;

use tilewright_ir::{Major, MmaInst, Scalar};

use super::ptx_type;
use crate::device::GroupMma;

/// The name of the wrapper.
pub(in crate::device) fn name(op: &GroupMma) -> String {
    let MmaInst {
        m, n, k, a, acc, ..
    } = op.mma;
    let lies = match op.a {
        None => "r",
        Some(Major::K) => "k",
        Some(Major::Mn) => "mn",
    };
    let (ab, acc) = (ptx_type(a), ptx_type(acc));
    let fresh = if op.fresh { "_fresh" } else { "" };
    format!(
        "wgmma_m{m}n{n}k{k}_{ab}_{acc}_{lies}_{}{fresh}",
        op.b.name()
    )
}

/// `D += A · B` of one warp group: D, and A unless it lies in shared memory, by the registers of
/// each thread. A fresh sum is added to from the second step on.
pub(in crate::device) fn wrapper(op: &GroupMma) -> String {
    let inst = op.mma;
    let words = |rows: u16, columns: u16, scalar: Scalar| {
        u32::from(rows) * u32::from(columns) * scalar.bits() / 32 / 128
    };
    let c = words(inst.m, inst.n, inst.acc);
    let a = op.a.map_or(words(inst.m, inst.k, inst.a), |_| 0);
    let (element, class) = match inst.acc {
        Scalar::F32 => ("float", "f"),
        Scalar::I32 => ("int", "r"),
        _ => ("unsigned", "r"),
    };
    let list = |first: u32, count: u32| {
        let names: Vec<String> = (first..first + count).map(|i| format!("%{i}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let bind = |constraint: &str, name: &str, count: u32| {
        let each: Vec<String> = (0..count)
            .map(|i| format!("\"{constraint}\"({name}[{i}])"))
            .collect();
        each.join(", ")
    };
    let (a_type, a_text, a_bound) = match op.a {
        None => ("const unsigned*", list(c, a), bind("r", "a", a)),
        Some(_) => (
            "unsigned long long",
            format!("%{c}"),
            "\"l\"(a)".to_string(),
        ),
    };
    let b_at = c + a.max(1);
    let transposed = |major: Major| u32::from(major == Major::Mn);
    // Integers are neither negated nor transposed, floats of 8 bits not transposed.
    let mut last = String::new();
    if inst.a.is_float() {
        last += ", 1, 1";
    }
    if inst.a.bits() == 16 {
        if let Some(major) = op.a {
            let _ = write!(last, ", {}", transposed(major));
        }
        let _ = write!(last, ", {}", transposed(op.b));
    }
    let (ab, acc) = (ptx_type(inst.a), ptx_type(inst.acc));
    let (parameter, adds, bound) = match op.fresh {
        true => (", int step", format!("%{}", b_at + 1), ", \"r\"(step)"),
        false => ("", "1".to_string(), ""),
    };
    format!(
        "namespace tw {{\n\nTW_FN void {}({element}* c, {a_type} a, unsigned long long b{parameter}) {{\n  \
         asm volatile(\"{{.reg .pred p; setp.ne.b32 p, {adds}, 0;\\n\\t\"\n      \
         \"wgmma.mma_async.sync.aligned.m{}n{}k{}.{acc}.{ab}.{ab} \"\n      \
         \"{}, {a_text}, %{b_at}, p{last};}}\"\n      \
         : {}\n      : {a_bound}, \"l\"(b){bound});\n}}\n\n}}  // namespace tw\n\n",
        name(op),
        inst.m,
        inst.n,
        inst.k,
        list(0, c),
        bind(&format!("+{class}"), "c", c),
    )
}
