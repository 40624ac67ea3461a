//! Names of the language that are neither functions nor dtypes.

use crate::value::Value;

/// Every name that [`lookup`] knows.
pub const NAMES: &[&str] = &[];

/// The value of a constant name.
pub fn lookup(_name: &str) -> Option<Value> {
    None
}
