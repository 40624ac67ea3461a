//! Keys: a hash over labelled byte strings.

use std::fmt;

/// Names a kernel by what it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of labelled parts, in their order.
    pub fn of<'a>(parts: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut builder = KeyBuilder::new();
        for (label, bytes) in parts {
            builder = builder.part(label, bytes);
        }
        builder.finish()
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The inverse of `Display`.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let digits = &text[2 * index..2 * index + 2];
            // `from_str_radix` would take a sign.
            if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                return None;
            }
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Collects the parts of a key. Label and value go in with their lengths, so that no two lists of
/// parts run into the same bytes.
#[derive(Clone, Debug)]
pub struct KeyBuilder(blake3::Hasher);

impl KeyBuilder {
    pub fn new() -> Self {
        Self(blake3::Hasher::new_derive_key(
            "tilewright kernel cache, key, version 1",
        ))
    }

    pub fn part(mut self, label: &str, bytes: impl AsRef<[u8]>) -> Self {
        for piece in [label.as_bytes(), bytes.as_ref()] {
            self.0.update(&(piece.len() as u64).to_le_bytes());
            self.0.update(piece);
        }
        self
    }

    pub fn finish(&self) -> Key {
        Key(*self.0.finalize().as_bytes())
    }
}

impl Default for KeyBuilder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let keys = [
            Key::of([("a", b"bc".as_slice()), ("d", b"e")]),
            Key::of([("ab", b"c".as_slice()), ("d", b"e")]),
            Key::of([("a", b"bcd".as_slice()), ("", b"e")]),
            Key::of([("d", b"e".as_slice()), ("a", b"bc")]),
            Key::of([("a", b"bc".as_slice())]),
            Key::of([]),
        ];
        for (i, a) in keys.iter().enumerate() {
            for b in &keys[i + 1..] {
                assert_ne!(a, b);
            }
        }
        assert_eq!(keys[4], KeyBuilder::new().part("a", "bc").finish());
    }

    #[test]
    fn a_key_prints_as_hex_and_reads_back() {
        let key = Key::of([("a", b"b".as_slice())]);
        assert_eq!(Key::parse(&key.to_string()), Some(key));
        let text = key.to_string();
        assert_eq!(Key::parse(&text[1..]), None);
        assert_eq!(Key::parse(&text.replace(&text[..2], "+1")), None);
        assert_eq!(Key::parse(&"é".repeat(32)), None);
    }
}
