//! What a code object for AMD GPUs says about its kernels, read from the file itself.
//!
//! The file is ELF; a note holds a MessagePack map with the kernels' registers, LDS, scratch,
//! spills and arguments. The file may come from a disk: every length is checked, nesting is
//! bounded, and nothing here panics.

use std::fmt;

use super::elf::{Broken, EM_AMDGPU, Elf, SHT_NOTE, STT_FUNC, narrow, word};

/// What one kernel needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AmdKernelInfo {
    pub name: String,
    /// Vector registers of a lane, accumulation registers included.
    pub vgprs: u32,
    /// Accumulation registers among them.
    pub agprs: u32,
    pub sgprs: u32,
    /// Static LDS of a workgroup in bytes.
    pub lds_bytes: u32,
    /// Private memory of a lane in bytes: local arrays and spilled registers.
    pub scratch_bytes: u32,
    /// Vector and scalar registers that were spilled.
    pub vgpr_spills: u32,
    pub sgpr_spills: u32,
    /// Most threads in a workgroup.
    pub max_threads: u32,
    /// The bytes of the argument block, hidden arguments included.
    pub kernarg_bytes: u32,
    /// The arguments that callers pass.
    pub args: Vec<AmdArg>,
    /// Size of the machine code.
    pub code_bytes: u32,
}

/// One argument of a kernel in its argument block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AmdArg {
    pub offset: u32,
    pub size: u32,
    /// The address of device memory, not a value.
    pub pointer: bool,
}

/// A code object that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadHsaco(pub String);

impl fmt::Display for BadHsaco {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a usable code object: {}", self.0)
    }
}

impl std::error::Error for BadHsaco {}

impl From<Broken> for BadHsaco {
    fn from(broken: Broken) -> Self {
        Self(broken.0)
    }
}

const NT_AMDGPU_METADATA: u32 = 32;
/// The real map is four levels deep.
const MAX_DEPTH: u32 = 16;

/// Reads the kernels of a code object, in the order of its metadata.
pub fn kernels(file: &[u8]) -> Result<Vec<AmdKernelInfo>, BadHsaco> {
    let elf = Elf::new(file, EM_AMDGPU)?;
    let mut note = None;
    for section in elf.sections.iter().filter(|s| s.kind == SHT_NOTE) {
        note = note.or(metadata(elf.bytes(section)?)?);
    }
    let mut bytes = note.ok_or_else(|| bad("it has no metadata"))?;
    let root = Value::read(&mut bytes, 0)?;
    let symbols = elf.symbols()?;
    let mut kernels = Vec::new();
    for entry in root.get("amdhsa.kernels").map_or(&[][..], Value::items) {
        let mut kernel = kernel(entry)?;
        let code = symbols
            .iter()
            .find(|s| s.kind == STT_FUNC && s.name == kernel.name);
        kernel.code_bytes = code.map_or(Ok(0), |symbol| narrow(symbol.size))?;
        kernels.push(kernel);
    }
    Ok(kernels)
}

/// The metadata among the notes of a section: three words of header, the owner's name, the text.
fn metadata(mut notes: &[u8]) -> Result<Option<&[u8]>, BadHsaco> {
    while !notes.is_empty() {
        let header = |at| word(notes, at).ok_or_else(cut);
        let (name, size, kind) = (header(0)?, header(4)?, header(8)?);
        let padded = |n: u32| (n as usize).checked_add(3).map(|n| n & !3);
        let name_end = padded(name)
            .and_then(|n| n.checked_add(12))
            .ok_or_else(cut)?;
        let end = name_end.checked_add(size as usize).ok_or_else(cut)?;
        let text = notes.get(name_end..end).ok_or_else(cut)?;
        if kind == NT_AMDGPU_METADATA {
            return Ok(Some(text));
        }
        let next = padded(size)
            .and_then(|n| n.checked_add(name_end))
            .ok_or_else(cut)?;
        notes = notes.get(next..).unwrap_or_default();
    }
    Ok(None)
}

fn kernel(entry: &Value) -> Result<AmdKernelInfo, BadHsaco> {
    let number = |key: &str| entry.get(key).map_or(Ok(0), Value::number);
    let name = entry.get(".name").and_then(Value::text);
    let mut args = Vec::new();
    for arg in entry.get(".args").map_or(&[][..], Value::items) {
        let kind = arg
            .get(".value_kind")
            .and_then(Value::text)
            .unwrap_or_default();
        if kind.starts_with("hidden_") {
            continue;
        }
        args.push(AmdArg {
            offset: arg.get(".offset").map_or(Ok(0), Value::number)?,
            size: arg.get(".size").map_or(Ok(0), Value::number)?,
            pointer: kind == "global_buffer" || kind == "dynamic_shared_pointer",
        });
    }
    Ok(AmdKernelInfo {
        name: name.ok_or_else(|| bad("a kernel has no name"))?.to_owned(),
        vgprs: number(".vgpr_count")?,
        agprs: number(".agpr_count")?,
        sgprs: number(".sgpr_count")?,
        lds_bytes: number(".group_segment_fixed_size")?,
        scratch_bytes: number(".private_segment_fixed_size")?,
        vgpr_spills: number(".vgpr_spill_count")?,
        sgpr_spills: number(".sgpr_spill_count")?,
        max_threads: number(".max_flat_workgroup_size")?,
        kernarg_bytes: number(".kernarg_segment_size")?,
        args,
        code_bytes: 0,
    })
}

/// A value of MessagePack, as far as the metadata uses it.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
    /// Of a type that no key we read has.
    Other,
}

impl Value {
    fn read(bytes: &mut &[u8], depth: u32) -> Result<Self, BadHsaco> {
        if depth > MAX_DEPTH {
            return Err(bad("its metadata is nested too deeply"));
        }
        let tag = take(bytes, 1)?[0];
        Ok(match tag {
            0x00..=0x7f => Self::Number(u64::from(tag)),
            0x80..=0x8f => Self::map(bytes, usize::from(tag & 15), depth)?,
            0x90..=0x9f => Self::list(bytes, usize::from(tag & 15), depth)?,
            0xa0..=0xbf => Self::string(bytes, usize::from(tag & 31))?,
            0xc0 => Self::Other,
            0xc2 | 0xc3 => Self::Number(u64::from(tag & 1)),
            0xcc..=0xcf => Self::Number(unsigned(bytes, 1 << (tag - 0xcc))?),
            // Signed numbers, floats: nothing that we read is one.
            0xd0..=0xd3 => {
                take(bytes, 1 << (tag - 0xd0))?;
                Self::Other
            }
            0xca => {
                take(bytes, 4)?;
                Self::Other
            }
            0xcb => {
                take(bytes, 8)?;
                Self::Other
            }
            0xe0..=0xff => Self::Other,
            0xd9..=0xdb => {
                let length = length(bytes, 1 << (tag - 0xd9))?;
                Self::string(bytes, length)?
            }
            0xdc | 0xdd => {
                let length = length(bytes, 2 << (tag - 0xdc))?;
                Self::list(bytes, length, depth)?
            }
            0xde | 0xdf => {
                let length = length(bytes, 2 << (tag - 0xde))?;
                Self::map(bytes, length, depth)?
            }
            other => return Err(bad(format!("unknown type {other:#x} in its metadata"))),
        })
    }

    fn string(bytes: &mut &[u8], length: usize) -> Result<Self, BadHsaco> {
        let text = take(bytes, length)?.to_vec();
        let text = String::from_utf8(text).map_err(|_| bad("a name is not UTF-8"))?;
        Ok(Self::Text(text))
    }

    fn list(bytes: &mut &[u8], length: usize, depth: u32) -> Result<Self, BadHsaco> {
        // Grown as it is read: a length that the file does not have costs no memory.
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(Self::read(bytes, depth + 1)?);
        }
        Ok(Self::List(items))
    }

    fn map(bytes: &mut &[u8], length: usize, depth: u32) -> Result<Self, BadHsaco> {
        let mut entries = Vec::new();
        for _ in 0..length {
            let key = Self::read(bytes, depth + 1)?;
            entries.push((key, Self::read(bytes, depth + 1)?));
        }
        Ok(Self::Map(entries))
    }

    fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(entries) = self else {
            return None;
        };
        let found = entries.iter().find(|(k, _)| k.text() == Some(key))?;
        Some(&found.1)
    }

    fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self) -> Result<u32, BadHsaco> {
        match self {
            Self::Number(n) => u32::try_from(*n).map_err(|_| bad("a figure is too large")),
            _ => Err(bad("a figure is no number")),
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], BadHsaco> {
    let (head, tail) = bytes.split_at_checked(count).ok_or_else(cut)?;
    *bytes = tail;
    Ok(head)
}

fn unsigned(bytes: &mut &[u8], count: usize) -> Result<u64, BadHsaco> {
    let digits = take(bytes, count)?;
    Ok(digits.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

fn length(bytes: &mut &[u8], count: usize) -> Result<usize, BadHsaco> {
    usize::try_from(unsigned(bytes, count)?).map_err(|_| cut())
}

fn cut() -> BadHsaco {
    bad("it is cut short")
}

fn bad(reason: impl Into<String>) -> BadHsaco {
    BadHsaco(reason.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_width_are_read() {
        // {"a": [1, 200, 70000], "b": true}
        let text = [
            0x82, 0xa1, b'a', 0x93, 1, 0xcc, 200, 0xce, 0, 1, 0x11, 0x70, 0xd9, 1, b'b', 0xc3,
        ];
        let value = Value::read(&mut &text[..], 0).unwrap();
        let items: Vec<u32> = value
            .get("a")
            .unwrap()
            .items()
            .iter()
            .map(|v| v.number().unwrap())
            .collect();
        assert_eq!(items, [1, 200, 70000]);
        assert_eq!(value.get("b").unwrap().number(), Ok(1));
        assert_eq!(value.get("c"), None);
    }

    #[test]
    fn broken_metadata_is_an_error() {
        for text in [
            &[0x82, 0xa1, b'a'][..],
            &[0xdd, 0xff, 0xff, 0xff, 0xff],
            &[0xa5, b'a'],
            &[0xc1],
            &[0x91; 64],
        ] {
            assert!(Value::read(&mut &text[..], 0).is_err(), "{text:?}");
        }
        assert!(metadata(&[1, 2, 3]).is_err());
        assert!(metadata(&[0xff; 16]).is_err());
        assert_eq!(metadata(&[]), Ok(None));
        assert!(kernels(b"\x7fELF\x02\x01").is_err());
    }
}
