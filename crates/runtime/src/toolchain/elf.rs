//! ELF files, as far as the code of GPUs needs them: sections and symbols.
//!
//! The file may come from a disk, so every offset is checked and nothing here panics.

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Broken(pub String);

pub(super) struct Section {
    pub name: String,
    pub kind: u32,
    offset: u64,
    pub size: u64,
    link: u32,
}

pub(super) struct Symbol {
    pub name: String,
    pub kind: u8,
    pub size: u64,
}

pub(super) struct Elf<'a> {
    file: &'a [u8],
    pub sections: Vec<Section>,
}

const SHT_SYMTAB: u32 = 2;
const SHT_NOBITS: u32 = 8;
pub(super) const SHT_NOTE: u32 = 7;
pub(super) const STT_FUNC: u8 = 2;
/// Machines.
pub(super) const EM_CUDA: u16 = 190;
pub(super) const EM_AMDGPU: u16 = 224;

impl<'a> Elf<'a> {
    /// Reads a file of one machine.
    pub(super) fn new(file: &'a [u8], machine: u16) -> Result<Self, Broken> {
        // 64 bit, little endian: what every GPU of the last ten years uses.
        if !file.starts_with(b"\x7fELF\x02\x01") {
            return Err(bad("it is no 64-bit little-endian ELF file"));
        }
        if half(file, 18).ok_or_else(truncated)? != machine {
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
    fn check_extent(&self) -> Result<(), Broken> {
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

    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    pub(super) fn bytes(&self, section: &Section) -> Result<&'a [u8], Broken> {
        if section.kind == SHT_NOBITS {
            return Ok(&[]);
        }
        let start = narrow(section.offset)? as usize;
        let size = narrow(section.size)? as usize;
        self.file.get(start..start + size).ok_or_else(truncated)
    }

    pub(super) fn symbols(&self) -> Result<Vec<Symbol>, Broken> {
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
                size: long(entry, 16).ok_or_else(truncated)?,
            });
        }
        Ok(symbols)
    }
}

fn text(strings: &[u8], offset: u32) -> Result<String, Broken> {
    let tail = strings.get(offset as usize..).ok_or_else(truncated)?;
    let end = tail.iter().position(|b| *b == 0).ok_or_else(truncated)?;
    String::from_utf8(tail[..end].to_vec()).map_err(|_| bad("a name is not UTF-8"))
}

pub(super) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Offsets and sizes fit 32 bits in any real file, and then their sums cannot overflow.
pub(super) fn narrow(value: u64) -> Result<u32, Broken> {
    u32::try_from(value).map_err(|_| truncated())
}

pub(super) fn truncated() -> Broken {
    bad("it is cut short")
}

pub(super) fn bad(reason: impl Into<String>) -> Broken {
    Broken(reason.into())
}
