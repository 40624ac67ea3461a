//! What kernels print where the machine itself cannot: lines in memory, which the host reads.
//!
//! The memory is a workspace of words. Two count: words that lines have asked for, and lines that
//! found no room. Behind them stand the lines, each with [`HEAD`] words and then its values: the number
//! of its format and one (zero is no line), its block, its thread. A value of 64 bits has two words, the
//! lower first; others have one, floats as float32. All words are zero when the first kernel starts.

use crate::dtype::{DType, Scalar};
use crate::ids::Buffer;

/// `attr prints = printed[[0, "x is", int32], [1, "done"]]`: the workspace, and what lines in it say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prints {
    pub buffer: Buffer,
    pub formats: Vec<PrintFormat>,
}

/// What a line says, without its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrintFormat {
    /// Which kernel of the function prints it.
    pub kernel: u32,
    pub message: String,
    pub values: Vec<Scalar>,
}

/// Words of the workspace.
pub const WORDS: u32 = 1 << 16;

/// Those of them that count.
pub const COUNTS: u32 = 2;

/// Words of a line before its values.
pub const HEAD: u32 = 3;

/// What was printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Printed {
    /// By kernel, block and thread; those of a thread as it printed them.
    pub lines: Vec<String>,
    /// Lines that found no room.
    pub lost: u32,
}

impl Printed {
    /// The lines, and where some are lost one that says so.
    pub fn told(&self) -> Vec<String> {
        let lost = (self.lost > 0).then(|| match self.lost {
            1 => "1 line more found no room".to_string(),
            n => format!("{n} lines more found no room"),
        });
        self.lines.iter().cloned().chain(lost).collect()
    }
}

impl PrintFormat {
    /// Words of a line.
    pub fn words(&self) -> u32 {
        HEAD + self.values.iter().map(|s| words(*s)).sum::<u32>()
    }

    fn line(&self, thread: u32, mut values: &[u32]) -> Option<String> {
        let mut line = format!("thread {thread}: {}", self.message);
        for (at, scalar) in self.values.iter().enumerate() {
            let (own, rest) = values.split_at_checked(words(*scalar) as usize)?;
            values = rest;
            line += if at == 0 { " " } else { ", " };
            line += &value(*scalar, own);
        }
        Some(line)
    }
}

/// Words of a value.
pub fn words(scalar: Scalar) -> u32 {
    match scalar {
        Scalar::F64 | Scalar::I64 | Scalar::U64 | Scalar::Handle => 2,
        _ => 1,
    }
}

/// How kernels hand a value over: as one of this type.
pub fn carried(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::F64 | Scalar::I64 | Scalar::U64 | Scalar::U32 => scalar,
        Scalar::Handle => Scalar::U64,
        _ if scalar.is_float() => Scalar::F32,
        _ => Scalar::I32,
    }
}

fn value(scalar: Scalar, words: &[u32]) -> String {
    let whole = (words.iter().rev()).fold(0u64, |all, word| all << 32 | u64::from(*word));
    match carried(scalar) {
        Scalar::F64 => f64::from_bits(whole).to_string(),
        Scalar::F32 => f64::from(f32::from_bits(whole as u32)).to_string(),
        Scalar::I64 => (whole as i64).to_string(),
        Scalar::I32 => (whole as u32 as i32).to_string(),
        _ => whole.to_string(),
    }
}

impl Prints {
    /// The type of the workspace's elements.
    pub const DTYPE: DType = DType::scalar(Scalar::U32);

    /// The lines in the bytes of the workspace.
    pub fn read(&self, bytes: &[u8]) -> Printed {
        let words = bytes.chunks_exact(4);
        let words: Vec<u32> = words
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let Some((counts, mut rest)) = words.split_at_checked(COUNTS as usize) else {
            return Printed::default();
        };
        let mut found = Vec::new();
        while let [number @ (1..), block, thread, values @ ..] = rest {
            let Some(format) = self.formats.get(*number as usize - 1) else {
                break;
            };
            let Some(line) = format.line(*thread, values) else {
                break;
            };
            found.push(((format.kernel, *block, *thread), line));
            rest = &rest[format.words() as usize..];
        }
        found.sort_by_key(|(who, _)| *who);
        Printed {
            lines: found.into_iter().map(|(_, line)| line).collect(),
            lost: counts[1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn prints() -> Prints {
        let format = |kernel, message: &str, values: &[Scalar]| PrintFormat {
            kernel,
            message: message.to_string(),
            values: values.to_vec(),
        };
        Prints {
            buffer: Buffer::from_u32(0),
            formats: vec![
                format(1, "last", &[]),
                format(0, "x", &[Scalar::I8, Scalar::F16]),
                format(0, "wide", &[Scalar::I64, Scalar::F64, Scalar::U32]),
            ],
        }
    }

    #[test]
    fn lines_come_by_kernel_block_and_thread() {
        let wide = f64::to_bits(-0.1);
        let words = [
            [20, 0].as_slice(),
            &[1, 0, 0],
            &[2, 7, 3, -5i32 as u32, 1.5f32.to_bits()],
            &[2, 0, 9, 1, 2f32.to_bits()],
            &[
                3,
                0,
                3,
                u32::MAX,
                u32::MAX,
                wide as u32,
                (wide >> 32) as u32,
                u32::MAX,
            ],
            &[2, 0, 3, 2, 0],
            &[0; 8],
        ];
        let found = prints().read(&bytes(&words.concat()));
        let expected = [
            "thread 3: wide -1, -0.1, 4294967295",
            "thread 3: x 2, 0",
            "thread 9: x 1, 2",
            "thread 3: x -5, 1.5",
            "thread 0: last",
        ];
        assert_eq!(found.lines, expected);
        assert_eq!(found.lost, 0);
    }

    #[test]
    fn what_found_no_room_is_counted_and_broken_memory_is_no_panic() {
        let found = prints().read(&bytes(&[9, 4, 1, 0, 2, 2, 0, 0]));
        assert_eq!(
            found.told(),
            ["thread 2: last", "4 lines more found no room"]
        );
        for words in [&[][..], &[5], &[5, 0, 9, 0, 0], &[5, 0, 3, 0, 0, 1]] {
            assert_eq!(prints().read(&bytes(words)).lines, Vec::<String>::new());
        }
    }
}
