//! Text taken apart: lines, and the words of a line.

/// The words of the line that a text starts with, up to its comment: what stands between spaces
/// and commas outside of brackets.
#[derive(Clone)]
pub(super) struct Words<'t> {
    text: &'t str,
    /// Where the last word ends, and where the next one starts.
    at: usize,
    start: usize,
    /// A comma stands between these.
    pub behind_comma: bool,
    /// Every bracket so far has its other half in the same word.
    pub balanced: bool,
}

/// What a byte means where a line is taken apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Plain,
    /// Also `&`, between the counters of a wait.
    Space,
    Comma,
    Open,
    Close,
    /// `;`, or the first of two slashes.
    Comment,
    /// The end of a line.
    End,
}

/// The class of each byte.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Plain; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = match byte as u8 {
            b' ' | b'\t' | b'\r' | b'\x0c' | b'&' => Class::Space,
            b',' => Class::Comma,
            b'[' | b'(' => Class::Open,
            b']' | b')' => Class::Close,
            b';' | b'/' => Class::Comment,
            b'\n' => Class::End,
            _ => Class::Plain,
        };
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> Class {
    CLASSES[usize::from(byte)]
}

impl<'t> Words<'t> {
    pub fn of(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            start: 0,
            behind_comma: false,
            balanced: true,
        }
    }

    /// The line up to the last word so far.
    pub fn so_far(&self) -> &'t str {
        &self.text[..self.at]
    }

    /// Goes to the next word: what the text has from there on. None at the end of the line.
    pub fn start(&mut self) -> Option<&'t [u8]> {
        let bytes = self.text.as_bytes();
        self.behind_comma = false;
        let mut start = self.at;
        while let Some(byte) = bytes.get(start)
            && matches!(class(*byte), Class::Space | Class::Comma)
        {
            self.behind_comma |= *byte == b',';
            start += 1;
        }
        self.start = start;
        let ends = match class(*bytes.get(start)?) {
            Class::Comment => starts_comment(bytes, start),
            class => class == Class::End,
        };
        (!ends).then_some(&bytes[start..])
    }

    /// Where the word starts that [`Words::start`] went to.
    pub fn place(&self) -> usize {
        self.start
    }

    /// Takes the word that starts here where it has this length; says whether it has.
    pub fn take(&mut self, length: usize) -> bool {
        let bytes = self.text.as_bytes();
        let end = self.start + length;
        let ends = match bytes.get(end).map(|byte| class(*byte)) {
            None | Some(Class::Space | Class::Comma | Class::End) => true,
            Some(Class::Comment) => starts_comment(bytes, end),
            Some(Class::Plain | Class::Open | Class::Close) => false,
        };
        if ends {
            self.at = end;
        }
        ends
    }

    /// Takes the word that starts here.
    pub fn word(&mut self) -> &'t str {
        let bytes = self.text.as_bytes();
        let mut depth = 0u32;
        let mut end = next(bytes, self.start, |byte| class(byte) != Class::Plain);
        while let Some(byte) = bytes.get(end) {
            match class(*byte) {
                Class::Open => depth += 1,
                Class::Close => {
                    self.balanced &= depth > 0;
                    depth = depth.saturating_sub(1);
                }
                Class::Space | Class::Comma if depth == 0 => break,
                Class::Comment if starts_comment(bytes, end) => break,
                Class::End => break,
                _ => {}
            }
            end = next(bytes, end + 1, |byte| class(byte) != Class::Plain);
        }
        self.balanced &= depth == 0;
        self.at = end;
        // Both ends are ASCII, or those of the text.
        &self.text[self.start..end]
    }

    /// Whether no comma follows in the line.
    pub fn is_last(&self) -> bool {
        let mut rest = self.clone();
        while rest.start().is_some() {
            if rest.behind_comma {
                return false;
            }
            rest.word();
        }
        true
    }
}

/// The line that a text starts with.
pub(super) fn line(text: &str) -> &str {
    &text[..next(text.as_bytes(), 0, |byte| byte == b'\n')]
}

/// What stands before a line's comment, without the space around it.
pub(super) fn code(line: &str) -> &str {
    let bytes = line.as_bytes();
    let starts = |at: &usize| class(bytes[*at]) == Class::Comment && starts_comment(bytes, *at);
    let end = (0..bytes.len()).find(starts).unwrap_or(line.len());
    line[..end].trim_ascii()
}

/// `;` stands in no operand, so no quoting is needed.
fn starts_comment(bytes: &[u8], at: usize) -> bool {
    bytes[at] == b';' || bytes.get(at + 1) == Some(&b'/')
}

/// The next place from one on where a byte fits, or the end.
fn next(bytes: &[u8], from: usize, fits: impl Fn(u8) -> bool) -> usize {
    let mut at = from;
    while let Some(byte) = bytes.get(at)
        && !fits(*byte)
    {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that are left, each with whether it stands behind a comma.
    fn all<'t>(words: &mut Words<'t>) -> Vec<(&'t str, bool)> {
        let mut all = Vec::new();
        while words.start().is_some() {
            all.push((words.word(), words.behind_comma));
        }
        all
    }

    #[test]
    fn code_ends_where_a_comment_starts() {
        for (line, want) in [
            ("\ts_nop 0 ; a; b\r", "s_nop 0"),
            ("", ""),
            ("; é // c", ""),
            ("f: // d", "f:"),
            ("\ta / b", "a / b"),
        ] {
            assert_eq!(code(line), want);
            let text = format!("{line}\nnext");
            assert_eq!(super::line(&text), line);
            let mut words = Words::of(&text);
            all(&mut words);
            assert_eq!(words.so_far().trim(), want);
        }
    }

    #[test]
    fn brackets_keep_words_together() {
        let line = " v[0 : 3], hwreg(MODE, 4),,v1 offen\tquad_perm:[1,0,3,2] ; v[";
        let mut words = Words::of(line);
        let found = all(&mut words);
        let want = [
            ("v[0 : 3]", false),
            ("hwreg(MODE, 4)", true),
            ("v1", true),
            ("offen", false),
            ("quad_perm:[1,0,3,2]", false),
        ];
        assert_eq!(found, want);
        assert!(words.balanced);
    }

    #[test]
    fn a_word_is_taken_by_its_length() {
        let mut words = Words::of("v1, v2x; c");
        assert_eq!(words.start(), Some(&b"v1, v2x; c"[..]));
        assert!(words.take(2));
        words.start();
        assert!(words.behind_comma && !words.take(2) && words.take(3));
        assert_eq!((words.so_far(), words.start()), ("v1, v2x", None));
    }

    #[test]
    fn half_a_bracket_is_noticed() {
        for (text, balanced) in [
            ("v[0:1", false),
            ("a v1] b", false),
            ("][", false),
            ("a", true),
        ] {
            let mut words = Words::of(text);
            all(&mut words);
            assert_eq!(words.balanced, balanced, "{text}");
        }
    }
}
