//! What memory there is. A tensor that does not fit is refused before it is made: a system that
//! runs out of memory kills processes, and not always the one at fault.

use std::fs;

/// Bytes that can still be had: of the machine, and of the control group that the process is in.
/// `None` where the system does not say.
pub fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| machine_bytes(&text));
    match (machine, group_bytes()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// `MemAvailable:   3145728 kB`
fn machine_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

fn group_bytes() -> Option<u64> {
    let read = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?;
        text.trim().parse().ok()
    };
    let (limit, used) = (read("memory.max")?, read("memory.current")?);
    // What the page cache holds of it is given back when it is needed.
    let stat = fs::read_to_string("/sys/fs/cgroup/memory.stat").unwrap_or_default();
    let cached = stat.lines().find_map(|l| l.strip_prefix("inactive_file "));
    let cached: u64 = cached.and_then(|n| n.trim().parse().ok()).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

/// `60.0 GB`
pub fn in_words(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{bytes} bytes"),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// A vector of one byte repeated, or `None` where there is no memory for it.
pub(crate) fn filled(len: usize, byte: u8) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).ok()?;
    bytes.resize(len, byte);
    Some(bytes)
}

/// A copy, or `None` where there is no memory for it.
pub(crate) fn copied(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).ok()?;
    copy.extend_from_slice(bytes);
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_understood() {
        let text = "MemTotal:       32 kB\nMemAvailable:   3145728 kB\n";
        assert_eq!(machine_bytes(text), Some(3 << 30));
        assert_eq!(machine_bytes("MemFree: 1 kB"), None);
        assert_eq!(in_words(60_000_000_000), "60.0 GB");
    }

    #[test]
    fn what_cannot_be_had_is_none() {
        assert_eq!(filled(usize::MAX / 2, 0), None);
        assert_eq!(filled(3, 7), Some(vec![7; 3]));
    }
}
