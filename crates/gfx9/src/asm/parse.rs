//! From text to instructions.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::isa::{Format, Modifiers, Opcode, split_suffix};

use super::descriptor::Descriptor;
use super::metadata::{self, Needs};
use super::operand::{Marks, Operand, Operands, integer, numbered};
use super::scan::{Words, code, line};
use super::text::Source;
use super::{Function, Instruction, Place, Program};

/// A line that is no assembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub line: u32,
    pub text: String,
    pub reason: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "assembly line {}: {}: {}",
            self.line, self.reason, self.text
        )
    }
}

impl std::error::Error for ParseError {}

/// Reads a whole file. Instructions belong to the function whose label stands above them; a
/// label starts a function unless it begins with `.L`, as LLVM's own block labels do.
pub fn parse(text: &str) -> Result<Program, ParseError> {
    read(text, |_| true)
}

/// Reads a file with line tables, and numbers lines as they are in the file that the compiler makes
/// without: that is the one to look at.
pub fn parse_with_tables(text: &str) -> Result<Program, ParseError> {
    let of_tables = [".loc", ".file", ".cfi_", ".Ltmp", ".Lfunc_begin"];
    read(text, |text| {
        let bare = text.trim_start_matches([' ', '\t']);
        !of_tables.iter().any(|start| bare.starts_with(start))
    })
}

/// Reads a whole file. `counts` is shown the text from each line on, and says whether that line has a
/// number of its own.
fn read(text: &str, counts: impl Fn(&str) -> bool) -> Result<Program, ParseError> {
    let source = Source::of(text).ok_or_else(|| ParseError {
        line: 0,
        text: String::new(),
        reason: "the file is longer than 4 GiB".to_owned(),
    })?;
    let mut reader = Reader::of(source);
    let mut rest = text;
    let mut number = 0u32;
    while !rest.is_empty() {
        number = number.saturating_add(u32::from(counts(rest)));
        let read = reader.line(number, rest)?;
        let behind = &rest[read.len()..];
        rest = behind.get(line(behind).len() + 1..).unwrap_or_default();
    }
    Ok(reader.finish())
}

struct Reader<'t> {
    source: Source<'t>,
    program: Program,
    /// The lines of the metadata block that is being read.
    metadata: Option<Vec<&'t str>>,
    needs: FxHashMap<String, Needs>,
    inline: bool,
    /// Labels are code only in `.text`: data objects have labels too.
    data: bool,
    /// The object whose bytes are being read.
    object: Option<String>,
    /// The descriptor that is being read, and those of each kernel.
    descriptor: Option<(String, Descriptor)>,
    descriptors: FxHashMap<String, Descriptor>,
    place: Option<Place>,
}

impl<'t> Reader<'t> {
    fn of(source: Source<'t>) -> Self {
        Self {
            source,
            program: Program::default(),
            metadata: None,
            needs: FxHashMap::default(),
            inline: false,
            data: false,
            object: None,
            descriptor: None,
            descriptors: FxHashMap::default(),
            place: None,
        }
    }

    /// Reads the line that a text starts with; gives what it read of it.
    fn line(&mut self, number: u32, text: &'t str) -> Result<&'t str, ParseError> {
        if let Some(block) = &mut self.metadata {
            let line = line(text);
            if line.trim_ascii() == ".end_amdgpu_metadata" {
                let (needs, arch) = metadata::read(block);
                self.needs = needs;
                self.metadata = None;
                if self.program.arch.is_none() {
                    self.program.arch = arch;
                }
            } else {
                block.push(line);
            }
            return Ok(line);
        }
        match text.trim_start_matches([' ', '\t']).as_bytes().first() {
            Some(b';') => {
                let line = line(text);
                match line.trim_ascii() {
                    ";;#ASMSTART" => self.inline = true,
                    ";;#ASMEND" => self.inline = false,
                    _ => {}
                }
                Ok(line)
            }
            Some(b'.') => {
                let line = line(text);
                self.directive(number, line);
                Ok(line)
            }
            _ => self.instruction(number, text).map_err(|reason| ParseError {
                line: number,
                text: line(text).trim_ascii().to_owned(),
                reason,
            }),
        }
    }

    /// Reads an instruction, or a label that is none of LLVM's own.
    fn instruction(&mut self, number: u32, text: &'t str) -> Result<&'t str, String> {
        let mut words = Words::of(text);
        if words.start().is_none() {
            return Ok("");
        }
        let first = words.place();
        let mnemonic = words.word();
        if let Some(label) = mnemonic.strip_suffix(':')
            && words.start().is_none()
        {
            self.label(number, label);
            return Ok(words.so_far());
        }
        if self.data {
            return Err("an instruction outside of `.text`".to_owned());
        }
        let (name, encoding) = split_suffix(mnemonic);
        let op = Opcode::named(name).ok_or_else(|| unknown(mnemonic))?;
        let mut operands = Operands::default();
        let mut modifiers = Modifiers::default();
        let count = read_operands(op, &mut words, first, &mut operands, &mut modifiers)?;
        let Some(function) = self.program.functions.last_mut() else {
            return Err("an instruction before any label".to_owned());
        };
        function.instructions.push(Instruction {
            line: number,
            text: self.source.piece(&words.so_far()[first..]),
            op,
            encoding,
            operands,
            modifiers,
            inline: self.inline,
            place: self.place,
        });
        if let Some(instruction) = function.instructions.last() {
            check_operands(instruction, count)?;
        }
        Ok(words.so_far())
    }

    fn label(&mut self, number: u32, label: &str) {
        if self.data {
            self.object = Some(label.to_owned());
            return;
        }
        match self.program.functions.last_mut() {
            Some(function) if label.starts_with(".L") => {
                let next = function.instructions.len();
                function.labels.insert(label.to_owned(), next);
            }
            last => {
                // The first function is most of a file; few lines have less than thirty bytes.
                let room = if last.is_none() {
                    self.source.len() / 30
                } else {
                    0
                };
                self.program.functions.push(Function {
                    name: label.to_owned(),
                    line: number,
                    instructions: Vec::with_capacity(room),
                    ..Function::default()
                });
            }
        }
    }

    /// A line that starts with a dot: a directive, or a label of LLVM's.
    fn directive(&mut self, number: u32, line: &str) {
        let code = code(line);
        if let Some(label) = code.strip_suffix(':')
            && !label.contains(char::is_whitespace)
        {
            return self.label(number, label);
        }
        let (name, rest) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
        if self.object.is_some() {
            self.object_bytes(name, rest);
        }
        match name {
            ".text" => self.data = false,
            ".data" | ".bss" | ".rodata" => self.data = true,
            ".section" => self.data = !rest.trim_start().starts_with(".text"),
            ".amdgcn_target" => {
                let target = rest.trim().trim_matches('"');
                self.program.arch = metadata::arch_of(target);
            }
            ".amdgpu_metadata" => self.metadata = Some(Vec::new()),
            ".file" => self.file(rest),
            ".loc" => {
                let mut numbers = rest.split_whitespace().map_while(|word| word.parse().ok());
                self.place = match (numbers.next(), numbers.next()) {
                    (Some(file), Some(at)) if at > 0 => Some(Place {
                        file,
                        line: called_from(line).unwrap_or(at),
                    }),
                    _ => None,
                };
            }
            ".amdhsa_kernel" => {
                self.descriptor = Some((rest.trim().to_owned(), Descriptor::default()));
            }
            ".end_amdhsa_kernel" => self.descriptors.extend(self.descriptor.take()),
            _ => {
                if let Some((_, descriptor)) = &mut self.descriptor
                    && let Ok(value) = rest.trim().parse()
                {
                    descriptor.set(name, value);
                }
            }
        }
    }

    /// What a directive adds to the object above it. One whose bytes are not all numbers has no
    /// entry in the end, so that whoever needs it can say so.
    fn object_bytes(&mut self, directive: &str, rest: &str) {
        let Some(object) = &self.object else { return };
        let bytes = self.program.objects.entry(object.clone()).or_default();
        let mut numbers = rest.split(',').map(|text| integer(text.trim()));
        let size = match directive {
            ".byte" => 1,
            ".short" => 2,
            ".long" => 4,
            ".quad" => 8,
            ".zero" => {
                let count = numbers
                    .flatten()
                    .next()
                    .and_then(|n| usize::try_from(n).ok());
                bytes.resize(bytes.len() + count.unwrap_or(0), 0);
                return;
            }
            ".size" => {
                if numbers.next_back().flatten() != i64::try_from(bytes.len()).ok() {
                    self.program.objects.remove(object);
                }
                self.object = None;
                return;
            }
            _ => return,
        };
        for value in numbers.flatten() {
            bytes.extend(&value.to_le_bytes()[..size]);
        }
    }

    /// `.file 1 "dir" "name.py"`; a file without a number names the whole.
    fn file(&mut self, rest: &str) {
        let Some((number, names)) = rest.trim().split_once(char::is_whitespace) else {
            return;
        };
        let Ok(number) = number.parse() else { return };
        let quoted: Vec<&str> = names.split('"').skip(1).step_by(2).collect();
        let name = match quoted.as_slice() {
            [dir, name, ..] if !name.starts_with('/') => format!("{dir}/{name}"),
            [_, name, ..] | [name] => (*name).to_owned(),
            [] => return,
        };
        self.program.files.insert(number, name);
    }

    fn finish(mut self) -> Program {
        self.program
            .functions
            .retain(|function| !function.instructions.is_empty());
        for function in &mut self.program.functions {
            function.needs = self.needs.remove(&function.name);
            function.descriptor = self.descriptors.remove(&function.name);
        }
        self.program
    }
}

/// The line of a kernel that code of an inlined function belongs to: the last of the calls that the
/// comment of a place lists, `; k.hip:431:18 @[ k.hip:479:3 ]`.
fn called_from(line: &str) -> Option<u32> {
    let (_, outermost) = line.rsplit_once("@[")?;
    let mut parts = outermost.trim_end_matches([' ', ']']).rsplit(':');
    let _column = parts.next()?;
    parts.next()?.parse().ok()
}

const NO_INSTRUCTION: &str = "not an instruction";

/// Why a word is no operation.
fn unknown(word: &str) -> String {
    let good = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
    match word.starts_with(|c: char| c.is_ascii_lowercase()) && word.bytes().all(good) {
        true => format!("`{word}` is no instruction of gfx942 or gfx950 that is known"),
        false => NO_INSTRUCTION.to_owned(),
    }
}

/// Reads what stands behind an operation; says how many operands those are. `first` is where the
/// instruction starts in its line.
fn read_operands(
    op: Opcode,
    words: &mut Words<'_>,
    first: usize,
    operands: &mut Operands,
    modifiers: &mut Modifiers,
) -> Result<usize, String> {
    // Counters of a wait stand side by side.
    let waits = op == Opcode::s_waitcnt;
    let mut count = 0;
    while let Some(text) = words.start() {
        // Operands stand between commas, modifiers behind the last one.
        let is_operand = count == 0 || words.behind_comma || waits;
        if is_operand
            && let Some((registers, length)) = numbered(text)
            && words.take(length)
        {
            operands.push(Operand::Registers(registers, Marks::default()));
            count += 1;
            continue;
        }
        let word = words.word();
        // An instruction without operands may still have modifiers.
        let lone = || (is_modifier(word) || op.is_cache()) && words.is_last();
        if is_operand && !(count == 0 && lone()) {
            operands.push(Operand::read(word, words.place() - first));
            count += 1;
            continue;
        }
        if !words.is_last() {
            return Err(NO_INSTRUCTION.to_owned());
        }
        let known = modifiers.read(word);
        known.ok_or_else(|| format!("`{word}` behind the operands is not known"))?;
    }
    match words.balanced {
        true => Ok(count),
        false => Err(NO_INSTRUCTION.to_owned()),
    }
}

/// Whether there are as many operands as the table says. Words of control have their own.
fn check_operands(instruction: &Instruction, got: usize) -> Result<(), String> {
    let op = instruction.op;
    let kept = instruction.operands.len();
    if matches!(op.format(), Format::Sopp | Format::Smem) && got == kept {
        return Ok(());
    }
    let shared = op.format() == Format::Mubuf && instruction.keeps_destination();
    let results = if shared {
        0
    } else {
        instruction.destinations()
    };
    let want = match op.is_cache() {
        true => 0,
        false => results + op.sources().len(),
    };
    match got == want {
        true => Ok(()),
        false => Err(format!(
            "`{}` takes {want} operands, here are {got}",
            op.name()
        )),
    }
}

/// `offset:16`; registers and numbers are none.
fn is_modifier(word: &str) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    let name = word.as_bytes().iter().take_while(|byte| is_name(byte));
    word.as_bytes().get(name.count()) == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::super::Wait;
    use super::*;
    use crate::isa::Dpp;

    fn one(code: &str) -> Instruction {
        let program = parse(&format!("f:\n\t{code}\n")).unwrap();
        program.functions[0].instructions[0].clone()
    }

    #[test]
    fn operands_and_modifiers_are_told_apart() {
        let copy = one("buffer_load_dwordx4 v135, s[4:7], s13 offen offset:64 lds ; a comment");
        assert_eq!(copy.operands.len(), 3);
        assert!(copy.modifiers.offen && copy.is_lds_copy());
        assert_eq!(copy.modifiers.offset, 64);
        let dpp = one("v_add_f32_dpp v1, v2, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf");
        assert_eq!(dpp.modifiers.dpp, Some(Dpp::QuadPerm([1, 0, 3, 2])));
        assert_eq!(dpp.operands.len(), 3);
        let scaled = one(
            "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[6:9], v[10:13], v[0:3], v4, v5 op_sel_hi:[0,0,0] cbsz:4",
        );
        assert!(scaled.is_mfma());
        assert_eq!(scaled.operands.len(), 6);
        assert!(one("s_endpgm").operands.is_empty());
        assert_eq!(
            one("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 2), 1")
                .operands
                .len(),
            2
        );
    }

    #[test]
    fn waits_are_read_in_every_spelling() {
        for (text, want) in [
            ("s_waitcnt vmcnt(8)", Wait::vm(8)),
            ("s_waitcnt lgkmcnt(0)", Wait::lgkm(0)),
            (
                "s_waitcnt vmcnt(8) lgkmcnt(0)",
                Wait::vm(8).and(Wait::lgkm(0)),
            ),
            (
                "s_waitcnt vmcnt(8) & lgkmcnt(0)",
                Wait::vm(8).and(Wait::lgkm(0)),
            ),
            ("s_waitcnt 0xf78", Wait::vm(8)),
            ("s_waitcnt 0xc07f", Wait::lgkm(0)),
            ("s_waitcnt 0", Wait::vm(0).and(Wait::lgkm(0))),
        ] {
            assert_eq!(one(text).wait(), Some(want), "{text}");
        }
        assert_eq!(one("s_nop 0").wait(), None);
    }

    #[test]
    fn inline_assembly_is_marked() {
        let text = "f:\n\ts_nop 1\n\t;;#ASMSTART\n\ts_nop 2\n\t;;#ASMEND\n\ts_nop 3\n";
        let program = parse(text).unwrap();
        let marks: Vec<bool> = program.functions[0]
            .instructions
            .iter()
            .map(|i| i.inline)
            .collect();
        assert_eq!(marks, [false, true, false]);
        assert_eq!(program.functions[0].instructions[1].line, 4);
    }

    #[test]
    fn places_are_those_of_the_kernel() {
        let text = "\t.file 0 \"/dir\" \"k.hip\" md5 0x1\nf:\n\t.loc 0 7 2 ; k.hip:7:2\n\ts_nop 0\n\
                    \t.loc 0 431 18 ; k.hip:431:18 @[ k.hip:440:1 @[ k.hip:9:3 ] ]\n\ts_nop 1\n";
        let program = parse(text).unwrap();
        let places = program.functions[0].instructions.iter();
        let lines: Vec<_> = places.map(|i| i.place.map(|p| p.line)).collect();
        assert_eq!(lines, [Some(7), Some(9)]);
        assert_eq!(program.files[&0], "/dir/k.hip");
    }

    #[test]
    fn line_tables_do_not_count() {
        let plain = "f:\n; %bb.0:\n\ts_nop 0\n.LBB0_1:\n\ts_branch .LBB0_1\n";
        let tables = "f:\n.Lfunc_begin0:\n\t.file\t0 \"/dir\" \"k.hip\"\n\t.loc\t0 7 2\n\
                      \t.cfi_startproc\n; %bb.0:\n\ts_nop 0\n.LBB0_1:\n.Ltmp0:\n\
                      \t.loc\t0 8 2\n\ts_branch .LBB0_1\n";
        let lines = |program: Program| -> Vec<u32> {
            let code = program.functions[0].instructions.iter();
            code.map(|i| i.line).collect()
        };
        assert_eq!(lines(parse(plain).unwrap()), [3, 5]);
        assert_eq!(lines(parse_with_tables(tables).unwrap()), [3, 5]);
        assert_eq!(lines(parse(tables).unwrap()), [7, 11]);
    }

    #[test]
    fn a_bad_line_is_named() {
        for text in [
            "f:\n v_add_f32 v1, v[2:3\n",
            "f:\n ??\n",
            "f:\n v_add_f32 v1 v2, v3\n",
            "f:\n v_add_f32 v1, v2\n",
            "f:\n v_add_f31 v1, v2, v3\n",
            "f:\n v_add_f32 v1, v2, v3 sideways\n",
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, 2, "{error}");
        }
        assert_eq!(parse(" s_nop 0\n").unwrap_err().line, 1);
    }
}
