//! The header of a `.npy` file: a Python dict of the type, the order and the shape.

use tilewright_ir::Scalar;

use super::{Kind, Problem, problem};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Data begins at a multiple of this.
const ALIGNMENT: usize = 64;

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Header {
    pub kind: Kind,
    pub shape: Vec<usize>,
    /// The first index is the fastest.
    pub fortran: bool,
    /// The highest byte comes first.
    pub swapped: bool,
}

impl Header {
    /// The header, and where the data begins.
    pub fn parse(bytes: &[u8]) -> Result<(Header, usize), Problem> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return problem("it is no `.npy` file: its first bytes are not NumPy's");
        };
        let cut = || Problem("its header is cut short".to_string());
        let (major, rest) = (
            rest.first().ok_or_else(cut)?,
            rest.get(2..).ok_or_else(cut)?,
        );
        let (len, start): (usize, usize) = match major {
            1 => match rest {
                [a, b, ..] => (u16::from_le_bytes([*a, *b]) as usize, 10),
                _ => return Err(cut()),
            },
            2 | 3 => match rest {
                [a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 12),
                _ => return Err(cut()),
            },
            other => return problem(format!("version {other} of `.npy` is not known")),
        };
        let end = start.checked_add(len).ok_or_else(cut)?;
        let text = bytes.get(start..end).ok_or_else(cut)?;
        let text = str::from_utf8(text).map_err(|_| Problem("its header is no text".into()))?;
        Ok((Header::from_text(text)?, end))
    }

    fn from_text(text: &str) -> Result<Header, Problem> {
        let wrong = |what: &str| Problem(format!("its header has no `{what}`: {}", text.trim()));
        let value = |key: &str| {
            let quoted = [format!("'{key}':"), format!("\"{key}\":")];
            let at = quoted.iter().find_map(|q| Some(text.find(q)? + q.len()))?;
            Some(text[at..].trim_start())
        };
        let descr = value("descr").ok_or_else(|| wrong("descr"))?;
        let quote = descr.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let Some(descr) = quote.and_then(|q| descr[1..].split(q).next()) else {
            return problem("its elements are records; one type is wanted");
        };
        let (kind, swapped) = kind(descr)?;
        let fortran = value("fortran_order").ok_or_else(|| wrong("fortran_order"))?;
        let shape = value("shape").ok_or_else(|| wrong("shape"))?;
        let list = shape.strip_prefix('(').and_then(|s| s.split(')').next());
        let list = list.ok_or_else(|| wrong("shape"))?;
        let extents = list.split(',').map(str::trim).filter(|e| !e.is_empty());
        let shape: Result<Vec<usize>, _> = extents.map(str::parse).collect();
        Ok(Header {
            kind,
            shape: shape.map_err(|_| wrong("shape"))?,
            fortran: fortran.starts_with("True"),
            swapped,
        })
    }
}

/// The type that a `descr` names, and whether its bytes are swapped.
fn kind(descr: &str) -> Result<(Kind, bool), Problem> {
    let (order, name) = match descr.chars().next() {
        Some('<' | '>' | '|' | '=') => descr.split_at(1),
        _ => ("<", descr),
    };
    let known = TYPES.iter().find(|(n, _)| *n == name);
    let kind = match (known, name.strip_prefix('V').map(str::parse)) {
        (Some((_, scalar)), _) => Kind::Scalar(*scalar),
        (None, Some(Ok(bytes))) if (1..=8).contains(&bytes) => Kind::Raw(bytes),
        _ => return problem(format!("elements of type `{descr}` are not known")),
    };
    Ok((kind, order == ">" && kind.bytes() > 1))
}

/// NumPy's names.
const TYPES: &[(&str, Scalar)] = &[
    ("b1", Scalar::Bool),
    ("i1", Scalar::I8),
    ("i2", Scalar::I16),
    ("i4", Scalar::I32),
    ("i8", Scalar::I64),
    ("u1", Scalar::U8),
    ("u2", Scalar::U16),
    ("u4", Scalar::U32),
    ("u8", Scalar::U64),
    ("f2", Scalar::F16),
    ("f4", Scalar::F32),
    ("f8", Scalar::F64),
];

/// A header as NumPy writes it, padded so that the data is aligned.
pub(super) fn text(scalar: Scalar, shape: &[usize]) -> Vec<u8> {
    let named = TYPES.iter().find(|(_, s)| *s == scalar);
    let name = named.map_or("f8", |(name, _)| *name);
    let order = if scalar.bits() <= 8 { '|' } else { '<' };
    let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let dict = format!(
        "{{'descr': '{order}{name}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        extents.join(", ")
    );
    // Magic, version and length come before it, a line end behind.
    let before = MAGIC.len() + 4;
    let len = (before + dict.len() + 1).next_multiple_of(ALIGNMENT) - before;
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&(len as u16).to_le_bytes());
    out.extend_from_slice(dict.as_bytes());
    out.resize(before + len - 1, b' ');
    out.push(b'\n');
    out
}
