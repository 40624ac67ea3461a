//! Conversions between types, and values seen as other types.
//!
//! Rounding is to nearest even and happens once; floats become integers toward zero and
//! saturate, integers wrap: as the reference evaluator does it.

use tilewright_ir::dtype::Class;
use tilewright_ir::{Expr, ExprKind, Fp8Formats, Scalar, Scope};

use crate::ctype::ctype;
use crate::device::Piece;
use crate::expr::{ADD, Code, EQUALITY, UNARY};
use crate::kernel::Emitter;
use crate::place::Kind;
use crate::{Emit, unsupported};

impl Emitter<'_> {
    /// A value of one type converted to another.
    pub(crate) fn convert(&mut self, code: Code, from: Scalar, to: Scalar) -> Code {
        if from == to {
            return code;
        }
        self.need_type(to);
        match (from.is_float(), to.is_float()) {
            (true, true) => self.float_to_float(code, from, to),
            (true, false) => self.float_to_int(code, from, to),
            (false, true) => self.int_to_float(code, from, to),
            (false, false) => int_to_int(code, from, to),
        }
    }

    /// An element of packed registers as float32, where two that lie side by side are converted at
    /// once. The compiler sees that their neighbour asks for the same.
    pub(crate) fn of_a_pair(&mut self, e: &Expr, lane: usize) -> Emit<Option<Code>> {
        let ExprKind::Load { buffer, indices } = e.kind() else {
            return Ok(None);
        };
        let scope = self.func.buffers[*buffer].scope;
        if e.dtype().scalar != Scalar::F8E4M3FN
            || self.machine.fp8_conversions != Some(Fp8Formats::Fnuz)
            || !matches!(scope, Scope::Local | Scope::Fragment)
        {
            return Ok(None);
        }
        let place = self.load(*buffer, indices, lane, e.span())?;
        if place.kind != Kind::Regs {
            return Ok(None);
        }
        self.needs.piece(Piece::Fp8Pairs);
        Ok(Some(Code::primary(format!(
            "tw::decoded({}, {})",
            place.name, place.offset.text
        ))))
    }

    fn float_to_float(&mut self, code: Code, from: Scalar, to: Scalar) -> Code {
        let wide = |code: &Code| match (from, to) {
            // Two roundings would differ from one.
            (Scalar::F64, Scalar::F64 | Scalar::F32) => code.text.clone(),
            (Scalar::F64, _) => format!("tw::odd({})", code.text),
            (Scalar::F32 | Scalar::TF32, _) => code.text.clone(),
            _ => format!("float({})", code.text),
        };
        match to {
            Scalar::F64 => Code::primary(format!("double({})", wide(&code))),
            Scalar::F32 if from == Scalar::TF32 => code,
            Scalar::F32 => Code::primary(format!("float({})", code.text)),
            Scalar::TF32 => {
                self.needs.piece(Piece::Math);
                Code::primary(format!("tw::tf32({})", wide(&code)))
            }
            Scalar::BF16 if matches!(from.class(), Class::F8 | Class::F6 | Class::F4) => {
                Code::primary(format!("tw::bf16::exact({})", wide(&code)))
            }
            _ => Code::primary(format!("{}({})", ctype(to), wide(&code))),
        }
    }

    fn float_to_int(&mut self, code: Code, from: Scalar, to: Scalar) -> Code {
        if to == Scalar::Bool {
            let code = self.as_float(code, from);
            return Code::new(format!("{} != 0", code.at_least(ADD)), EQUALITY);
        }
        self.needs.piece(Piece::ToInt);
        let value = self.as_float(code, from).text;
        let function = match to {
            Scalar::I32 => "to_int".to_string(),
            Scalar::U32 => "to_uint".to_string(),
            Scalar::I64 => "to_int64".to_string(),
            Scalar::U64 | Scalar::Handle => "to_uint64".to_string(),
            _ => {
                let (low, high) = to.int_range().unwrap_or((0, 0));
                let call = format!("tw::to_narrow<{low}, {high}>({value})");
                return match to {
                    Scalar::I4 | Scalar::U4 => Code::primary(format!("{}({call})", ctype(to))),
                    _ => Code::new(format!("({}){call}", ctype(to)), UNARY),
                };
            }
        };
        Code::primary(format!("tw::{function}({value})"))
    }

    fn int_to_float(&mut self, code: Code, from: Scalar, to: Scalar) -> Code {
        let text = match from {
            Scalar::I4 | Scalar::U4 => format!("int({})", code.text),
            _ => code.text,
        };
        match to {
            Scalar::F32 => Code::primary(format!("float({text})")),
            Scalar::F64 => Code::primary(format!("double({text})")),
            // Integers of at most 16 bits are float32 values; what is too large for float32 to
            // hold exactly is infinite in float16.
            _ if from.bits() <= 16 || to == Scalar::F16 => {
                self.rounded(Code::primary(format!("float({text})")), to)
            }
            _ => self.rounded(Code::primary(format!("tw::odd({text})")), to),
        }
    }

    /// The bits of a value as another type of the same width.
    pub(crate) fn reinterpret(&mut self, a: &Expr, e: &Expr, lane: usize) -> Emit<Code> {
        let (from, to) = (a.dtype().scalar, e.dtype().scalar);
        let (wide, narrow) = (from.bits() as usize, to.bits() as usize);
        if a.dtype().bits() != e.dtype().bits() {
            return unsupported(
                e.span(),
                format!("{} has not the width of {}", e.dtype(), a.dtype()),
            );
        }
        if wide < 8 || narrow < 8 {
            return unsupported(e.span(), "a reinterpretation of parts of a byte");
        }
        self.need_type(from);
        self.need_type(to);
        if wide == narrow {
            let code = self.expr(a, lane)?;
            return Ok(Code::primary(format!(
                "tw::bit_cast<{}>({})",
                ctype(to),
                code.text
            )));
        }
        if wide > narrow {
            let first = lane * narrow;
            let word = self.expr(a, first / wide)?;
            let raw = raw(narrow);
            let shift = first % wide;
            return Ok(Code::primary(format!(
                "tw::from_bits<{}>(({raw})(tw::to_bits({}) >> {shift}))",
                ctype(to),
                word.text
            )));
        }
        let raw = raw(narrow);
        let mut parts = Vec::new();
        for part in 0..narrow / wide {
            let word = self.expr(a, lane * (narrow / wide) + part)?;
            let shift = part * wide;
            parts.push(match shift {
                0 => format!("({raw})tw::to_bits({})", word.text),
                _ => format!("(({raw})tw::to_bits({}) << {shift})", word.text),
            });
        }
        Ok(Code::primary(format!(
            "tw::from_bits<{}>(({raw})({}))",
            ctype(to),
            parts.join(" | ")
        )))
    }
}

fn int_to_int(code: Code, from: Scalar, to: Scalar) -> Code {
    let narrow = matches!(from, Scalar::I4 | Scalar::U4);
    match to {
        Scalar::Bool if narrow => Code::new(format!("int({}) != 0", code.text), EQUALITY),
        Scalar::Bool => Code::new(format!("{} != 0", code.at_least(ADD)), EQUALITY),
        Scalar::I4 | Scalar::U4 => {
            Code::primary(format!("{}((int){})", ctype(to), code.at_least(UNARY)))
        }
        _ if narrow => Code::new(format!("({})int({})", ctype(to), code.text), UNARY),
        _ => Code::new(format!("({}){}", ctype(to), code.at_least(UNARY)), UNARY),
    }
}

/// The unsigned integer of this many bits.
fn raw(bits: usize) -> &'static str {
    match bits {
        8 => "unsigned char",
        16 => "unsigned short",
        32 => "unsigned",
        _ => "unsigned long long",
    }
}
