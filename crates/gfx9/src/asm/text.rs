//! Pieces of an assembly file. They share its text, so that keeping one copies nothing.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A piece of a file's text.
#[derive(Clone)]
pub struct Text {
    file: Arc<String>,
    start: u32,
    end: u32,
}

/// A file that is being read.
pub(super) struct Source<'t> {
    text: &'t str,
    file: Arc<String>,
}

impl<'t> Source<'t> {
    /// None where the file is too long for its places to be counted in 32 bits.
    pub fn of(text: &'t str) -> Option<Self> {
        u32::try_from(text.len()).ok()?;
        Some(Self {
            text,
            file: Arc::new(text.to_owned()),
        })
    }

    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// A part of the text of this file, to keep.
    pub fn piece(&self, part: &str) -> Text {
        let start = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let end = start.wrapping_add(part.len());
        debug_assert_eq!(self.text.get(start..end), Some(part));
        Text {
            file: Arc::clone(&self.file),
            start: start as u32,
            end: end as u32,
        }
    }
}

impl Text {
    pub fn as_str(&self) -> &str {
        let range = self.start as usize..self.end as usize;
        self.file.get(range).unwrap_or_default()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_outlives_what_it_was_read_from() {
        let text = "\ts_nop 1\n\ts_nop 2\n".to_owned();
        let piece = Source::of(&text).map(|file| file.piece(text[10..].trim()));
        drop(text);
        assert_eq!(piece.as_deref(), Some("s_nop 2"));
    }
}
