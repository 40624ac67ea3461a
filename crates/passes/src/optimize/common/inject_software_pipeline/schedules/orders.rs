//! The texts of the named schedules: one file, with an order for each.

use std::sync::OnceLock;

use super::super::text::{Mistake, OrderText, parse};

const TABLE: &str = include_str!("table.order");

/// The order of this name, if the table has one.
pub(super) fn order(name: &str) -> Result<Option<&'static OrderText>, &'static Mistake> {
    static ORDERS: OnceLock<Result<Vec<OrderText>, Mistake>> = OnceLock::new();
    let orders = ORDERS.get_or_init(|| parse(TABLE)).as_ref()?;
    Ok(orders.iter().find(|order| order.name == name))
}

/// The same as it is written.
pub(super) fn text(name: &str) -> Option<&'static str> {
    const BEGIN: &str = "schedule ";
    let mut from = None;
    let mut at = 0;
    for line in TABLE.split_inclusive('\n') {
        let ends = line.trim().is_empty() || line.starts_with('#');
        match from {
            None if line.strip_prefix(BEGIN).map(str::trim) == Some(name) => from = Some(at),
            Some(from) if ends => return Some(&TABLE[from..at]),
            _ => {}
        }
        at += line.len();
    }
    from.map(|from| &TABLE[from..])
}
