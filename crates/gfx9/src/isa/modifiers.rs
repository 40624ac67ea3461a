//! The words behind the operands: `lds`, `offset:16`, `quad_perm:[1,0,3,2]`.

/// What an instruction's modifiers say. Bits of a list stand for its sources, the first lowest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modifiers {
    pub offset: i32,
    pub offset0: u8,
    pub offset1: u8,
    pub offen: bool,
    pub idxen: bool,
    pub lds: bool,
    pub sc0: bool,
    pub sc1: bool,
    pub nt: bool,
    pub clamp: bool,
    pub omod: OutputScale,
    pub op_sel: u8,
    /// The high halves' choice; where nothing is said, every source's high half is its own.
    pub op_sel_hi: Option<u8>,
    pub neg_lo: u8,
    pub neg_hi: u8,
    pub bitop3: u8,
    pub cbsz: u8,
    pub abid: u8,
    pub blgp: u8,
    pub dst_sel: Select,
    pub dst_unused: DstUnused,
    pub src0_sel: Select,
    pub src1_sel: Select,
    pub dpp: Option<Dpp>,
    pub row_mask: u8,
    pub bank_mask: u8,
    /// Lanes that read outside of their row get zero, and are written.
    pub bound_ctrl: bool,
}

/// What a result is multiplied by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputScale {
    #[default]
    One,
    Two,
    Four,
    Half,
}

/// A part of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Select {
    #[default]
    Dword,
    Word(u8),
    Byte(u8),
}

/// What becomes of the part of a destination that is not selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DstUnused {
    #[default]
    Pad,
    Sext,
    Preserve,
}

/// Which lane a lane reads its first source from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dpp {
    QuadPerm([u8; 4]),
    RowShl(u8),
    RowShr(u8),
    RowRor(u8),
    WaveShl,
    WaveRol,
    WaveShr,
    WaveRor,
    RowMirror,
    RowHalfMirror,
    /// Lane 15 of a row to the next row.
    RowBcast15,
    /// Lane 31 to the upper half.
    RowBcast31,
    RowNewbcast(u8),
}

impl Default for Modifiers {
    fn default() -> Self {
        Self {
            offset: 0,
            offset0: 0,
            offset1: 0,
            offen: false,
            idxen: false,
            lds: false,
            sc0: false,
            sc1: false,
            nt: false,
            clamp: false,
            omod: OutputScale::One,
            op_sel: 0,
            op_sel_hi: None,
            neg_lo: 0,
            neg_hi: 0,
            bitop3: 0,
            cbsz: 0,
            abid: 0,
            blgp: 0,
            dst_sel: Select::Dword,
            dst_unused: DstUnused::Pad,
            src0_sel: Select::Dword,
            src1_sel: Select::Dword,
            dpp: None,
            row_mask: 0xf,
            bank_mask: 0xf,
            bound_ctrl: false,
        }
    }
}

impl Modifiers {
    /// Takes in one word. `None` where it says nothing that is known.
    pub(crate) fn read(&mut self, word: &str) -> Option<()> {
        let (name, value) = match word.split_once(':') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let Some(value) = value else {
            return self.word(name);
        };
        match name {
            "offset" => {
                self.offset = match value.strip_prefix("swizzle(") {
                    Some(pattern) => exchange(pattern.strip_suffix(')')?)?,
                    None => i32::try_from(number(value)?).ok()?,
                }
            }
            "offset0" => self.offset0 = byte(value)?,
            "offset1" => self.offset1 = byte(value)?,
            "op_sel" => self.op_sel = bits(value)?,
            "op_sel_hi" => self.op_sel_hi = Some(bits(value)?),
            "neg_lo" => self.neg_lo = bits(value)?,
            "neg_hi" => self.neg_hi = bits(value)?,
            "bitop3" => self.bitop3 = byte(value)?,
            "cbsz" => self.cbsz = byte(value)?,
            "abid" => self.abid = byte(value)?,
            "blgp" => self.blgp = byte(value)?,
            "dst_sel" => self.dst_sel = select(value)?,
            "src0_sel" => self.src0_sel = select(value)?,
            "src1_sel" => self.src1_sel = select(value)?,
            "dst_unused" => {
                self.dst_unused = match value {
                    "UNUSED_PAD" => DstUnused::Pad,
                    "UNUSED_SEXT" => DstUnused::Sext,
                    "UNUSED_PRESERVE" => DstUnused::Preserve,
                    _ => return None,
                }
            }
            "mul" => {
                self.omod = match value {
                    "2" => OutputScale::Two,
                    "4" => OutputScale::Four,
                    _ => return None,
                }
            }
            "div" => self.omod = (value == "2").then_some(OutputScale::Half)?,
            "row_mask" => self.row_mask = byte(value)?,
            "bank_mask" => self.bank_mask = byte(value)?,
            // `bound_ctrl:0` and `bound_ctrl:1` are two spellings of the bit set.
            "bound_ctrl" => self.bound_ctrl = true,
            "quad_perm" => {
                let list = list(value)?;
                self.dpp = Some(Dpp::QuadPerm(<[u8; 4]>::try_from(list).ok()?));
            }
            "row_shl" => self.dpp = Some(Dpp::RowShl(byte(value)?)),
            "row_shr" => self.dpp = Some(Dpp::RowShr(byte(value)?)),
            "row_ror" => self.dpp = Some(Dpp::RowRor(byte(value)?)),
            "row_newbcast" => self.dpp = Some(Dpp::RowNewbcast(byte(value)?)),
            "wave_shl" => self.dpp = Some(Dpp::WaveShl),
            "wave_rol" => self.dpp = Some(Dpp::WaveRol),
            "wave_shr" => self.dpp = Some(Dpp::WaveShr),
            "wave_ror" => self.dpp = Some(Dpp::WaveRor),
            "row_bcast" => {
                self.dpp = match value {
                    "15" => Some(Dpp::RowBcast15),
                    "31" => Some(Dpp::RowBcast31),
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn word(&mut self, name: &str) -> Option<()> {
        match name {
            "offen" => self.offen = true,
            "idxen" => self.idxen = true,
            "lds" => self.lds = true,
            "sc0" | "glc" => self.sc0 = true,
            "sc1" => self.sc1 = true,
            "nt" => self.nt = true,
            "clamp" => self.clamp = true,
            "row_mirror" => self.dpp = Some(Dpp::RowMirror),
            "row_half_mirror" => self.dpp = Some(Dpp::RowHalfMirror),
            _ => return None,
        }
        Some(())
    }
}

fn number(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(sign * value)
}

/// The offset of a `ds_swizzle_b32` whose pattern is written out, as LLVM prints those that it knows:
/// `SWAP,16`, `REVERSE,4`, `BROADCAST,8,3`, `QUAD_PERM,1,0,3,2`, `BITMASK_PERM,"01pip"`.
fn exchange(pattern: &str) -> Option<i32> {
    const ALL: i32 = 31;
    let masks = |and: i32, or: i32, xor: i32| xor << 10 | or << 5 | and;
    let (kind, rest) = pattern.split_once(',')?;
    if kind == "BITMASK_PERM" {
        let bits = rest.trim().strip_prefix('"')?.strip_suffix('"')?;
        let (mut and, mut or, mut xor) = (0, 0, 0);
        for bit in bits.bytes() {
            let [a, o, x] = match bit {
                b'0' => [0, 0, 0],
                b'1' => [0, 1, 0],
                b'p' => [1, 0, 0],
                b'i' => [1, 0, 1],
                _ => return None,
            };
            (and, or, xor) = (and << 1 | a, or << 1 | o, xor << 1 | x);
        }
        return (bits.len() == 5).then(|| masks(and, or, xor));
    }
    let numbers = rest.split(',').map(|n| number(n.trim()));
    let numbers: Vec<i64> = numbers.collect::<Option<_>>()?;
    let numbers = numbers.iter().map(|n| i32::try_from(*n).ok());
    let numbers: Vec<i32> = numbers.collect::<Option<_>>()?;
    let power = |n: i32, most: i32| n > 0 && n <= most && n & (n - 1) == 0;
    match (kind, &numbers[..]) {
        ("SWAP", &[n]) if power(n, 16) => Some(masks(ALL, 0, n)),
        ("REVERSE", &[n]) if power(n, 32) => Some(masks(ALL, 0, n - 1)),
        ("BROADCAST", &[n, lane]) if power(n, 32) && (0..n).contains(&lane) => {
            Some(masks(ALL & !(n - 1), lane, 0))
        }
        ("QUAD_PERM", lanes @ &[_, _, _, _]) => {
            let mut offset = 0x8000;
            for (at, lane) in lanes.iter().enumerate() {
                offset |= (0..4).contains(lane).then_some(lane << (2 * at))?;
            }
            Some(offset)
        }
        _ => None,
    }
}

fn byte(text: &str) -> Option<u8> {
    u8::try_from(number(text)?).ok()
}

fn list(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    inner.split(',').map(|part| byte(part.trim())).collect()
}

/// `[1,0,1]` as bits, the first lowest.
fn bits(text: &str) -> Option<u8> {
    let list = list(text)?;
    let good = list.len() <= 8 && list.iter().all(|bit| *bit <= 1);
    good.then(|| list.iter().rev().fold(0, |bits, bit| bits << 1 | bit))
}

fn select(text: &str) -> Option<Select> {
    Some(match text {
        "DWORD" => Select::Dword,
        "WORD_0" => Select::Word(0),
        "WORD_1" => Select::Word(1),
        "BYTE_0" => Select::Byte(0),
        "BYTE_1" => Select::Byte(1),
        "BYTE_2" => Select::Byte(2),
        "BYTE_3" => Select::Byte(3),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_swizzles_are_read() {
        let offset = |word: &str| {
            let mut modifiers = Modifiers::default();
            modifiers.read(word).map(|()| modifiers.offset)
        };
        for (word, value) in [
            ("offset:16415", 0x401f),
            ("offset:swizzle(SWAP,16)", 0x401f),
            ("offset:swizzle(SWAP,1)", 0x041f),
            ("offset:swizzle(REVERSE,4)", 0x0c1f),
            ("offset:swizzle(BROADCAST,8,3)", 0x0078),
            ("offset:swizzle(QUAD_PERM,1,0,3,2)", 0x80b1),
            ("offset:swizzle(BITMASK_PERM,\"01pip\")", 0x0907),
        ] {
            assert_eq!(offset(word), Some(value), "{word}");
        }
        for word in [
            "offset:swizzle(SWAP,3)",
            "offset:swizzle(SWAP,32)",
            "offset:swizzle(SWAP)",
            "offset:swizzle(BROADCAST,4,4)",
            "offset:swizzle(QUAD_PERM,1,0,3,4)",
            "offset:swizzle(BITMASK_PERM,\"01pi\")",
            "offset:swizzle(TURN,1)",
            "offset:swizzle(SWAP,16",
        ] {
            assert_eq!(offset(word), None, "{word}");
        }
    }
}
