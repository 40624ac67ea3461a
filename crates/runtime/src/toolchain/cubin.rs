//! What a cubin says about its kernels, read from the file itself.
//!
//! A cubin is an ELF file. Registers, stack frame, parameters and launch bounds are records of
//! the `.nv.info` sections, static shared memory is the size of `.nv.shared.NAME`. Reading them
//! needs neither a GPU nor a driver, and holds for a cubin that came out of the cache. Only spills
//! are not in the file: they come from the assembler's report in the compile log.
//!
//! The file may come from a disk, so every offset is checked and nothing here panics.

use std::fmt;

/// What one kernel needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    pub name: String,
    /// Registers of one thread.
    pub registers: u32,
    /// Static shared memory of one block in bytes, without what the system reserves.
    pub static_shared: u32,
    /// Stack frame of one thread in bytes: local arrays and spilled registers.
    pub stack: u32,
    /// Bytes of spill code, where the assembler's report is at hand.
    pub spills: Option<Spills>,
    pub params: Vec<Param>,
    /// Most threads in a block, from `__launch_bounds__`.
    pub max_threads: Option<u32>,
    /// Size of the machine code.
    pub code_bytes: u32,
}

/// Bytes of register spills, one thread, as the assembler counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spills {
    pub stores: u32,
    pub loads: u32,
}

/// One parameter of a kernel in its parameter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    pub offset: u32,
    pub size: u32,
}

/// A cubin that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCubin(pub String);

impl fmt::Display for BadCubin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a usable cubin: {}", self.0)
    }
}

impl std::error::Error for BadCubin {}

/// Reads the kernels of a cubin, in the order of its symbol table.
pub fn kernels(cubin: &[u8]) -> Result<Vec<KernelInfo>, BadCubin> {
    let elf = Elf::new(cubin)?;
    // A program without kernels has no such section.
    let global = match elf.section(".nv.info") {
        Some(section) => records(elf.bytes(section)?)?,
        None => Vec::new(),
    };
    // From sm_90 on the system keeps the first KiB of a block's shared memory, and each kernel's
    // section counts it.
    let reserved = match elf.section(".nv.shared.reserved.0") {
        Some(_) => 1024,
        None => 0,
    };
    let mut kernels = Vec::new();
    for (index, symbol) in elf.symbols()?.iter().enumerate() {
        let Some(code) = elf.section(&format!(".text.{}", symbol.name)) else {
            continue;
        };
        let Some(info) = elf.section(&format!(".nv.info.{}", symbol.name)) else {
            continue;
        };
        if symbol.kind != STT_FUNC {
            continue;
        }
        let index = index as u32;
        let own = records(elf.bytes(info)?)?;
        let shared = elf
            .section(&format!(".nv.shared.{}", symbol.name))
            .map_or(0, |s| s.size);
        kernels.push(KernelInfo {
            name: symbol.name.clone(),
            registers: of_symbol(&global, REGCOUNT, index)
                .ok_or_else(|| bad(format!("no register count for `{}`", symbol.name)))?,
            static_shared: narrow(shared)?.saturating_sub(reserved),
            stack: of_symbol(&global, FRAME_SIZE, index).unwrap_or(0),
            spills: None,
            params: params(&own)?,
            max_threads: max_threads(&own),
            code_bytes: narrow(code.size)?,
        });
    }
    Ok(kernels)
}

/// Numbers of the records we read (NVIDIA's binary utilities print them as EIATTR_…).
const MAX_THREADS: u8 = 0x05;
const REQUIRED_THREADS: u8 = 0x10;
const FRAME_SIZE: u8 = 0x11;
const KERNEL_PARAM: u8 = 0x17;
const REGCOUNT: u8 = 0x2f;

const STT_FUNC: u8 = 2;

/// One record of an `.nv.info` section: its attribute and its value.
struct Record<'a> {
    attribute: u8,
    value: &'a [u8],
}

/// A section is a run of records: a byte that says how the value is stored, a byte that names the
/// attribute, then nothing and padding (1), a byte and padding (2), a half word (3), or a half
/// word with the length and the value itself (4).
fn records(mut bytes: &[u8]) -> Result<Vec<Record<'_>>, BadCubin> {
    let mut records = Vec::new();
    while let [format, attribute, rest @ ..] = bytes {
        let (length, rest) = match format {
            1..=3 => (2, rest),
            4 => {
                let length = rest.first_chunk::<2>().ok_or_else(truncated)?;
                (usize::from(u16::from_le_bytes(*length)), &rest[2..])
            }
            other => return Err(bad(format!("unknown record format {other} in .nv.info"))),
        };
        let value = rest.get(..length).ok_or_else(truncated)?;
        records.push(Record {
            attribute: *attribute,
            value,
        });
        bytes = &rest[length..];
    }
    Ok(records)
}

/// The value that a record of the whole file gives for one symbol.
fn of_symbol(records: &[Record<'_>], attribute: u8, symbol: u32) -> Option<u32> {
    records
        .iter()
        .filter(|record| record.attribute == attribute)
        .find(|record| word(record.value, 0) == Some(symbol))
        .and_then(|record| word(record.value, 4))
}

/// Parameters are listed last first. The third word holds the size above eighteen bits of flags.
fn params(records: &[Record<'_>]) -> Result<Vec<Param>, BadCubin> {
    let mut params = Vec::new();
    for record in records.iter().filter(|r| r.attribute == KERNEL_PARAM) {
        let place = word(record.value, 4).ok_or_else(truncated)?;
        let flags = word(record.value, 8).ok_or_else(truncated)?;
        let param = Param {
            offset: place >> 16,
            size: flags >> 18,
        };
        params.push((place & 0xffff, param));
    }
    params.sort_by_key(|(ordinal, _)| *ordinal);
    Ok(params.into_iter().map(|(_, param)| param).collect())
}

fn max_threads(records: &[Record<'_>]) -> Option<u32> {
    let record = records
        .iter()
        .find(|r| r.attribute == MAX_THREADS || r.attribute == REQUIRED_THREADS)?;
    let size = |at| word(record.value, at);
    size(0)?.checked_mul(size(4)?)?.checked_mul(size(8)?)
}

struct Section {
    name: String,
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

struct Symbol {
    name: String,
    kind: u8,
}

struct Elf<'a> {
    file: &'a [u8],
    sections: Vec<Section>,
}

const SHT_SYMTAB: u32 = 2;
const SHT_NOBITS: u32 = 8;
const EM_CUDA: u16 = 190;

impl<'a> Elf<'a> {
    fn new(file: &'a [u8]) -> Result<Self, BadCubin> {
        // 64 bit, little endian: what every GPU of the last ten years uses.
        if !file.starts_with(b"\x7fELF\x02\x01") {
            return Err(bad("it is no 64-bit little-endian ELF file"));
        }
        if half(file, 18).ok_or_else(truncated)? != EM_CUDA {
            return Err(bad("it is an ELF file of another machine"));
        }
        let table = narrow(long(file, 40).ok_or_else(truncated)?)? as usize;
        let entry = usize::from(half(file, 58).ok_or_else(truncated)?);
        let count = usize::from(half(file, 60).ok_or_else(truncated)?);
        let names = usize::from(half(file, 62).ok_or_else(truncated)?);
        let mut elf = Self {
            file,
            sections: Vec::new(),
        };
        let mut name_offsets = Vec::new();
        for index in 0..count {
            let at = table + index * entry;
            let header = file.get(at..at + 64).ok_or_else(truncated)?;
            name_offsets.push(word(header, 0).ok_or_else(truncated)?);
            elf.sections.push(Section {
                name: String::new(),
                kind: word(header, 4).ok_or_else(truncated)?,
                offset: long(header, 24).ok_or_else(truncated)?,
                size: long(header, 32).ok_or_else(truncated)?,
                link: word(header, 40).ok_or_else(truncated)?,
            });
        }
        let strings = elf.sections.get(names).ok_or_else(truncated)?;
        let strings = elf.bytes(strings)?;
        for (section, offset) in elf.sections.iter_mut().zip(name_offsets) {
            section.name = text(strings, offset)?;
        }
        elf.check_extent()?;
        Ok(elf)
    }

    /// Everything that the headers speak of lies inside the file: the driver gets no length and
    /// believes them.
    fn check_extent(&self) -> Result<(), BadCubin> {
        for section in &self.sections {
            self.bytes(section)?;
        }
        let table = narrow(long(self.file, 32).ok_or_else(truncated)?)? as usize;
        let entry = usize::from(half(self.file, 54).ok_or_else(truncated)?);
        let count = usize::from(half(self.file, 56).ok_or_else(truncated)?);
        for index in 0..count {
            let at = table + index * entry;
            let header = self.file.get(at..at + 56).ok_or_else(truncated)?;
            let offset = narrow(long(header, 8).ok_or_else(truncated)?)? as usize;
            let size = narrow(long(header, 32).ok_or_else(truncated)?)? as usize;
            self.file.get(offset..offset + size).ok_or_else(truncated)?;
        }
        Ok(())
    }

    fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    fn bytes(&self, section: &Section) -> Result<&'a [u8], BadCubin> {
        if section.kind == SHT_NOBITS {
            return Ok(&[]);
        }
        let start = narrow(section.offset)? as usize;
        let size = narrow(section.size)? as usize;
        self.file.get(start..start + size).ok_or_else(truncated)
    }

    fn symbols(&self) -> Result<Vec<Symbol>, BadCubin> {
        let Some(table) = self.sections.iter().find(|s| s.kind == SHT_SYMTAB) else {
            return Err(bad("it has no symbol table"));
        };
        let strings = self
            .sections
            .get(table.link as usize)
            .ok_or_else(truncated)?;
        let strings = self.bytes(strings)?;
        let mut symbols = Vec::new();
        for entry in self.bytes(table)?.chunks_exact(24) {
            symbols.push(Symbol {
                name: text(strings, word(entry, 0).ok_or_else(truncated)?)?,
                kind: entry[4] & 0xf,
            });
        }
        Ok(symbols)
    }
}

fn text(strings: &[u8], offset: u32) -> Result<String, BadCubin> {
    let tail = strings.get(offset as usize..).ok_or_else(truncated)?;
    let end = tail.iter().position(|b| *b == 0).ok_or_else(truncated)?;
    String::from_utf8(tail[..end].to_vec()).map_err(|_| bad("a name is not UTF-8"))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Offsets and sizes fit 32 bits in any real cubin, and then their sums cannot overflow.
fn narrow(value: u64) -> Result<u32, BadCubin> {
    u32::try_from(value).map_err(|_| truncated())
}

fn truncated() -> BadCubin {
    bad("it is cut short")
}

fn bad(reason: impl Into<String>) -> BadCubin {
    BadCubin(reason.into())
}
