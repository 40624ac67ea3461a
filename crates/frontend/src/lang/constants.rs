//! Names of the language that are neither functions nor dtypes.

use std::rc::Rc;

use super::gemm::GemmWarpPolicy;
use crate::value::Value;

/// Every name that [`lookup`] knows.
pub const NAMES: &[&str] = &["GemmWarpPolicy"];

/// The value of a constant name.
pub fn lookup(name: &str) -> Option<Value> {
    match name {
        "GemmWarpPolicy" => Some(Value::Object(Rc::new(GemmWarpPolicy))),
        _ => None,
    }
}
