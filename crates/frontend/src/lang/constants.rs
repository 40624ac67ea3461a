//! Names of the language that are neither functions nor dtypes.

use std::rc::Rc;

use super::gemm::GemmWarpPolicy;
use crate::value::Value;

/// Every name that [`lookup`] knows.
pub const NAMES: &[&str] = &[
    "Any",
    "GemmWarpPolicy",
    "IntImm",
    "JITFunc",
    "PrimExpr",
    "PrimFunc",
    "StringImm",
];

/// The value of a constant name.
pub fn lookup(name: &str) -> Option<Value> {
    match name {
        "GemmWarpPolicy" => Some(Value::Object(Rc::new(GemmWarpPolicy))),
        // Types that appear in annotations, where they say nothing that is needed.
        "Any" | "IntImm" | "JITFunc" | "PrimExpr" | "PrimFunc" | "StringImm" => Some(Value::None),
        _ => None,
    }
}
