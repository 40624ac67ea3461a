//! What a cubin says about its kernels, read from the file itself.
//!
//! A cubin is an ELF file. Registers, stack frame, parameters and launch bounds are records of
//! the `.nv.info` sections, static shared memory is the size of `.nv.shared.NAME`. Reading them
//! needs neither a GPU nor a driver, and holds for a cubin that came out of the cache. Only spills
//! are not in the file: they come from the assembler's report in the compile log.

use std::fmt;

use super::elf::{Broken, EM_CUDA, Elf, STT_FUNC, narrow, truncated, word};

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

impl From<Broken> for BadCubin {
    fn from(broken: Broken) -> Self {
        Self(broken.0)
    }
}

/// Reads the kernels of a cubin, in the order of its symbol table.
pub fn kernels(cubin: &[u8]) -> Result<Vec<KernelInfo>, BadCubin> {
    let elf = Elf::new(cubin, EM_CUDA)?;
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

fn bad(reason: impl Into<String>) -> BadCubin {
    BadCubin(reason.into())
}
