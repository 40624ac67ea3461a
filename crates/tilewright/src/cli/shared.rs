//! What a lowered kernel takes of the block's shared memory, in words and as JSON.

use serde_json::{Value, json};
use tilewright::ir::{Func, Target};
use tilewright::passes::optimize::common::merge_shared_memory_allocations::{
    SharedUse, shared_use,
};

/// `shared memory: 40960 of 166912 bytes (8192 saved: O_shared has bytes of Q_shared)`, one line
/// a kernel that has any.
pub fn to_text(func: &Func, target: Target) -> String {
    let mut text = String::new();
    for one in shared_use(func, target) {
        if one.buffers.is_empty() {
            continue;
        }
        text += &format!("shared memory: {} of {} bytes", one.bytes, one.limit);
        let merged = merged(&one);
        if !merged.is_empty() {
            let saved = one.apart.saturating_sub(one.bytes);
            text += &format!(" ({saved} saved: {})", merged.join("; "));
        }
        text.push('\n');
    }
    text
}

/// Each pair once.
fn merged(one: &SharedUse) -> Vec<String> {
    let mut seen: Vec<&str> = Vec::new();
    let mut list = Vec::new();
    for buffer in &one.buffers {
        let earlier = buffer.shares_with.iter();
        let earlier = earlier.filter(|name| seen.contains(&name.as_str()));
        let earlier: Vec<&str> = earlier.map(String::as_str).collect();
        if !earlier.is_empty() {
            list.push(format!(
                "{} has bytes of {}",
                buffer.name,
                earlier.join(", ")
            ));
        }
        seen.push(&buffer.name);
    }
    list
}

/// One object a kernel.
pub fn to_json(func: &Func, target: Target) -> Value {
    let each = shared_use(func, target).into_iter().map(|one| {
        let buffers = one.buffers.iter().map(|b| {
            json!({
                "name": b.name,
                "offset": b.place.offset,
                "bytes": b.place.bytes,
                "shares_with": b.shares_with,
            })
        });
        json!({
            "bytes": one.bytes,
            "limit": one.limit,
            "bytes_apart": one.apart,
            "buffers": buffers.collect::<Vec<_>>(),
        })
    });
    each.collect()
}
