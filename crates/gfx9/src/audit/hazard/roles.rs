//! Which rows of the table an instruction is in, and the registers of it that matter there.

use std::sync::{LazyLock, OnceLock};

use crate::asm::{Instruction, Operand, Register, RegisterFile, Registers};
use crate::few::Few;
use crate::isa::{Encoding, Flags, Format, Opcode, Select, Ty};

use super::table::{From, ROWS, Row, States, To};

/// Which rows an instruction is in, as bits: in front, and behind.
#[derive(Clone, Copy, Default)]
pub(super) struct Parts {
    pub from: u64,
    pub to: u64,
    /// The vector registers that it names, a bit for every eight.
    vectors: u64,
    /// No more states are owed behind it, on gfx942 and on gfx950.
    pub owed: [u8; 2],
}

impl Parts {
    pub fn of(instruction: &Instruction) -> Parts {
        let mut parts = by_operation(instruction.op);
        for (from, rows) in ASKED_FROM.iter() {
            if parts.from & rows != 0 && !from.fits(instruction) {
                parts.from &= !rows;
            }
        }
        for (to, rows) in ASKED_TO.iter() {
            if parts.to & rows != 0 && !to.fits(instruction) {
                parts.to &= !rows;
            }
        }
        if parts.from | parts.to != 0 {
            let registers = instruction.operands.iter().filter_map(Operand::registers);
            parts.vectors = registers
                .filter(is_vector)
                .fold(0, |all, run| all | eights(run));
        }
        parts
    }

    /// The rows that this instruction in front and another one behind may be in: those about vector
    /// registers only where they name a common one.
    pub fn shared_with(&self, rows: u64, behind: &Parts) -> u64 {
        let both = rows & behind.to;
        match both == 0 || self.vectors & behind.vectors != 0 {
            true => both,
            false => both & !*OF_VECTORS,
        }
    }
}

/// The bits of a run of vector registers, one for every eight: the lower half for `v`, the upper
/// one for `a`.
fn eights(run: Registers) -> u64 {
    let last = u32::from(run.first.saturating_add(run.count.max(1)) - 1);
    let (first, last) = ((u32::from(run.first) / 8).min(31), (last / 8).min(31));
    let bits = u32::MAX << first & u32::MAX >> (31 - last);
    match run.file {
        RegisterFile::Accumulator => u64::from(bits) << 32,
        _ => u64::from(bits),
    }
}

/// The rows that an operation can be in, worked out when it is first met.
fn by_operation(op: Opcode) -> Parts {
    static KNOWN: LazyLock<Vec<OnceLock<Parts>>> =
        LazyLock::new(|| Opcode::ALL.iter().map(|_| OnceLock::new()).collect());
    let work_out = || {
        let mut parts = Parts::default();
        for (bit, row) in ROWS.iter().enumerate() {
            if row.from.can_be(op) {
                parts.from |= 1 << bit;
                for (most, gfx950) in parts.owed.iter_mut().zip([false, true]) {
                    let owed = row.owed_at_most(op, gfx950);
                    *most = (*most).max(u8::try_from(owed).unwrap_or(u8::MAX));
                }
            }
            parts.to |= u64::from(row.to.can_be(op)) << bit;
        }
        parts
    };
    *KNOWN[op as usize].get_or_init(work_out)
}

/// What the operands of an instruction in front decide, with the rows that it is in.
static ASKED_FROM: LazyLock<[(From, u64); 6]> = LazyLock::new(|| {
    let asked = [
        From::VectorToScalar,
        From::VectorToExec,
        From::Part,
        From::ScalarToM0,
        From::WideStore,
        From::WideStoreAtScalar,
    ];
    asked.map(|from| (from, rows_with(|row| row.from == from)))
});

/// The same of one behind.
static ASKED_TO: LazyLock<[(To, u64); 3]> = LazyLock::new(|| {
    [To::DppExec, To::DppRead, To::M0].map(|to| (to, rows_with(|row| row.to == to)))
});

/// The rows about vector registers.
static OF_VECTORS: LazyLock<u64> = LazyLock::new(|| {
    rows_with(|row| {
        !matches!(
            row.from,
            From::VectorToScalar
                | From::VectorToExec
                | From::ScalarToM0
                | From::SetMode
                | From::AnyDouble
        )
    })
});

/// The rows about scalar registers that vector instructions write.
pub(super) static TO_SCALAR: LazyLock<u64> =
    LazyLock::new(|| rows_with(|row| row.from == From::VectorToScalar));

/// The rows about the sums that products write.
pub(super) static SUMS: LazyLock<u64> = LazyLock::new(|| {
    rows_with(|row| {
        use From::{Double4, Double16, Single, Xdl};
        matches!(row.from, Xdl | Single | Double4 | Double16)
    })
});

fn rows_with(fits: impl Fn(&Row) -> bool) -> u64 {
    let rows = ROWS.iter().enumerate();
    let fitting = rows.filter(|(_, row)| fits(row));
    fitting.fold(0, |bits, (bit, _)| bits | 1 << bit)
}

/// Runs of registers.
#[derive(Default)]
pub(super) struct Runs(Few<Registers, 6>);

impl Runs {
    fn push(&mut self, run: Registers) {
        self.0.push(run);
    }

    pub fn iter(&self) -> impl Iterator<Item = Registers> {
        self.0.iter().copied()
    }

    /// The registers one by one, each with a bit of its own.
    fn bits(&self) -> impl Iterator<Item = (Register, u32)> {
        let registers = self.iter().flat_map(Registers::iter);
        registers.zip((0..u32::BITS).map(|bit| 1 << bit))
    }

    /// The bits of those that another run has too.
    pub fn bits_in(&self, other: Registers) -> u32 {
        let bits = self.bits().filter(|(register, _)| other.has(*register));
        bits.fold(0, |all, (_, bit)| all | bit)
    }

    pub fn all_bits(&self) -> u32 {
        self.bits().fold(0, |all, (_, bit)| all | bit)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    Valu,
    Mfma,
    Memory,
    Lds,
}

fn kind(op: Opcode) -> Option<Kind> {
    match op.format() {
        Format::Vop1 | Format::Vop2 | Format::Vop3 | Format::Vopc | Format::Vop3p => {
            Some(Kind::Valu)
        }
        Format::Mfma => Some(Kind::Mfma),
        Format::Mubuf | Format::Global | Format::Flat | Format::Scratch => {
            op.is_vector_memory().then_some(Kind::Memory)
        }
        Format::Ds => Some(Kind::Lds),
        Format::Sop1 | Format::Sop2 | Format::Sopk | Format::Sopc => Some(Kind::Scalar),
        Format::Sopp | Format::Smem => None,
    }
}

/// What a matrix instruction multiplies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Product {
    Xdl,
    Single,
    Double4,
    Double16,
}

fn product(op: Opcode) -> Option<Product> {
    if !op.is_mfma() {
        return None;
    }
    Some(match (op.sources().first(), op.results().first()) {
        (Some(Ty::f64), Some(Ty::b64)) => Product::Double4,
        (Some(Ty::f64), _) => Product::Double16,
        (Some(Ty::f32), _) => Product::Single,
        _ => Product::Xdl,
    })
}

fn is_vector(run: &Registers) -> bool {
    matches!(run.file, RegisterFile::Vector | RegisterFile::Accumulator)
}

fn is_scalar(run: &Registers) -> bool {
    matches!(
        run.file,
        RegisterFile::Scalar | RegisterFile::Vcc | RegisterFile::M0
    )
}

const VCC: Registers = Registers {
    file: RegisterFile::Vcc,
    first: 0,
    count: 2,
};
const EXEC: Registers = Registers {
    file: RegisterFile::Exec,
    first: 0,
    count: 2,
};
const M0: Registers = Registers {
    file: RegisterFile::M0,
    first: 0,
    count: 1,
};

fn operand(i: &Instruction, at: usize) -> Option<Registers> {
    i.operands.get(at).and_then(Operand::registers)
}

fn writes(i: &Instruction) -> impl Iterator<Item = Registers> {
    i.operands
        .iter()
        .take(i.destinations())
        .filter_map(Operand::registers)
}

fn reads(i: &Instruction) -> impl Iterator<Item = Registers> {
    let skip = match i.keeps_destination() {
        true => 0,
        false => i.destinations(),
    };
    i.operands.iter().skip(skip).filter_map(Operand::registers)
}

/// Where the sums that a matrix instruction adds to stand among its operands.
const ADDEND: usize = 3;

/// Data of more than eight bytes that a store reads.
fn wide_data(i: &Instruction) -> Option<Registers> {
    let op = i.op;
    if kind(op) != Some(Kind::Memory) || (!op.results().is_empty() && !op.is(Flags::ATOMIC)) {
        return None;
    }
    let address = i.address_operand()?;
    let at = match op.format() {
        Format::Mubuf => 0,
        _ => address + 1,
    };
    operand(i, at).filter(|run| is_vector(run) && run.count > 2)
}

fn shared_offset(i: &Instruction) -> Option<Registers> {
    match i.op.format() {
        Format::Mubuf => i.operands.last().and_then(Operand::registers),
        _ => None,
    }
}

/// Writes a part of a register by a late shift.
fn writes_part(i: &Instruction) -> bool {
    use Opcode::{
        v_cvt_scalef32_pk_fp4_bf16, v_cvt_scalef32_pk_fp4_f16, v_cvt_scalef32_pk_fp4_f32,
    };
    let small = matches!(
        i.op,
        v_cvt_scalef32_pk_fp4_f32 | v_cvt_scalef32_pk_fp4_f16 | v_cvt_scalef32_pk_fp4_bf16
    );
    // Behind the sources' bits of `op_sel` stand the result's.
    let packed = matches!(i.op.format(), Format::Vop3p | Format::Mfma);
    let high = !packed && (u32::from(i.modifiers.op_sel) >> i.op.sources().len()) != 0;
    let selected = i.encoding == Encoding::Sdwa && i.modifiers.dst_sel != Select::Dword;
    small || high || selected
}

fn is_lane_access(op: Opcode) -> bool {
    matches!(
        op,
        Opcode::v_readlane_b32 | Opcode::v_readfirstlane_b32 | Opcode::v_writelane_b32
    )
}

fn is_permlane(op: Opcode) -> bool {
    matches!(
        op,
        Opcode::v_permlane16_swap_b32 | Opcode::v_permlane32_swap_b32
    )
}

fn uses_m0(i: &Instruction) -> bool {
    i.is_lds_copy() || matches!(i.op, Opcode::s_sendmsg | Opcode::ds_read_addtid_b32)
}

fn sets_mode(op: Opcode) -> bool {
    matches!(op, Opcode::s_setreg_b32 | Opcode::s_setreg_imm32_b32)
}

/// The hardware register that `hwreg(…)` names, without the bits of it.
pub(super) fn mode(i: &Instruction) -> Option<&str> {
    let at = usize::from(i.op == Opcode::s_getreg_b32);
    i.symbol(i.operands.get(at)?)?.split([',', ')']).next()
}

impl From {
    /// Whether the operation can be this.
    fn can_be(self, op: Opcode) -> bool {
        let Some(kind) = kind(op) else { return false };
        let valu = kind == Kind::Valu;
        let masks = op.results().contains(&Ty::mask) || op.is(Flags::SCALAR_RESULT);
        let product = product(op);
        match self {
            From::VectorToScalar => valu && masks,
            From::VectorToExec => valu && (masks || op.is(Flags::EXEC_OUT)),
            From::Vector | From::Part => valu,
            From::VectorNotDot => valu && !op.is(Flags::DOT),
            From::Transcendental => valu && op.is(Flags::TRANS),
            From::Dot => valu && op.is(Flags::DOT),
            From::ScalarToM0 => kind == Kind::Scalar,
            From::WideStore | From::WideStoreAtScalar => kind == Kind::Memory,
            From::SetMode => sets_mode(op),
            From::Xdl | From::XdlAddend => product == Some(Product::Xdl),
            From::Single => product == Some(Product::Single),
            From::Double4 => product == Some(Product::Double4),
            From::Double16 => product == Some(Product::Double16),
            From::AnyDouble => matches!(product, Some(Product::Double4 | Product::Double16)),
        }
    }

    /// Whether the operands make it this, where the operation can be.
    fn fits(self, i: &Instruction) -> bool {
        match self {
            From::VectorToScalar => writes(i).any(|run| is_scalar(&run)),
            From::VectorToExec => i.writes_exec(),
            From::Part => writes_part(i),
            From::ScalarToM0 => writes(i).any(|run| run.file == RegisterFile::M0),
            From::WideStore => wide_data(i).is_some() && shared_offset(i).is_none(),
            From::WideStoreAtScalar => wide_data(i).is_some() && shared_offset(i).is_some(),
            _ => true,
        }
    }

    /// The registers that matter.
    pub fn runs(self, i: &Instruction) -> Runs {
        let mut runs = Runs::default();
        match self {
            From::VectorToScalar => writes(i).filter(is_scalar).for_each(|run| runs.push(run)),
            From::VectorToExec => runs.push(EXEC),
            From::ScalarToM0 => runs.push(M0),
            From::WideStore | From::WideStoreAtScalar => {
                wide_data(i).into_iter().for_each(|run| runs.push(run));
            }
            From::XdlAddend => operand(i, ADDEND)
                .into_iter()
                .for_each(|run| runs.push(run)),
            From::SetMode | From::AnyDouble => {}
            _ => writes(i).filter(is_vector).for_each(|run| runs.push(run)),
        }
        runs
    }
}

impl To {
    /// Whether the operation can be this.
    fn can_be(self, op: Opcode) -> bool {
        let Some(kind) = kind(op) else {
            return self == To::M0 && op == Opcode::s_sendmsg;
        };
        let valu = kind == Kind::Valu;
        let vector = valu || kind == Kind::Mfma;
        let memory = matches!(kind, Kind::Memory | Kind::Lds);
        match self {
            To::MemoryScalar => kind == Kind::Memory,
            To::LaneSelect => matches!(op, Opcode::v_readlane_b32 | Opcode::v_writelane_b32),
            To::DivFmas => matches!(op, Opcode::v_div_fmas_f32 | Opcode::v_div_fmas_f64),
            To::DppExec | To::DppRead => valu,
            To::M0 => memory,
            To::VectorScalar | To::VectorTouch | To::VectorWrite => vector,
            To::LaneRead => matches!(op, Opcode::v_readlane_b32 | Opcode::v_readfirstlane_b32),
            To::LaneExec => is_lane_access(op),
            To::PermlaneExec | To::PermlaneRead => is_permlane(op),
            To::NotTranscendentalRead => vector && !op.is(Flags::TRANS),
            To::Mode => sets_mode(op) || op == Opcode::s_getreg_b32,
            To::MfmaExec | To::MfmaRead | To::MfmaFactor | To::MfmaSame => kind == Kind::Mfma,
            To::XdlOther => product(op) == Some(Product::Xdl),
            To::FloatOther => kind == Kind::Mfma && product(op) != Some(Product::Xdl),
            To::SingleOther => product(op) == Some(Product::Single),
            To::Double4Same => product(op) == Some(Product::Double4),
            To::VectorRead => valu,
            To::MemoryRead => memory,
            To::Overwrite | To::DotOther => valu || memory,
            To::Fma64 => matches!(op, Opcode::v_fma_f64 | Opcode::v_fmac_f64),
        }
    }

    /// Whether the operands make it this, where the operation can be.
    fn fits(self, i: &Instruction) -> bool {
        match self {
            To::DppExec | To::DppRead => i.encoding == Encoding::Dpp,
            To::M0 => uses_m0(i),
            _ => true,
        }
    }

    /// The registers that matter.
    fn runs(self, i: &Instruction) -> Runs {
        let mut runs = Runs::default();
        let mut add = |run: Registers| runs.push(run);
        match self {
            To::MemoryScalar => {
                reads(i).filter(is_scalar).for_each(&mut add);
                if i.is_lds_copy() {
                    add(M0);
                }
            }
            To::LaneSelect => operand(i, 2).into_iter().filter(is_scalar).for_each(add),
            To::DivFmas => add(VCC),
            To::DppExec | To::LaneExec | To::PermlaneExec | To::MfmaExec => add(EXEC),
            To::M0 => add(M0),
            To::VectorScalar => {
                reads(i).filter(is_scalar).for_each(&mut add);
                if i.op.is(Flags::VCC_IN) {
                    add(VCC);
                }
            }
            To::LaneRead => operand(i, 1).into_iter().for_each(add),
            To::VectorWrite | To::Overwrite => writes(i).filter(is_vector).for_each(add),
            To::VectorTouch | To::DotOther => {
                let all = i.operands.iter().filter_map(Operand::registers);
                all.filter(is_vector).for_each(add);
            }
            To::MfmaFactor => {
                for at in [1, 2, 4, 5] {
                    operand(i, at).into_iter().for_each(&mut add);
                }
            }
            To::MfmaSame | To::XdlOther | To::FloatOther | To::SingleOther | To::Double4Same => {
                operand(i, ADDEND).into_iter().for_each(add);
            }
            To::Mode | To::Fma64 => {}
            _ => reads(i).filter(is_vector).for_each(add),
        }
        runs
    }
}

impl Row {
    /// Where the two meet: the register, or none where the row names none. `anew` are bits of
    /// registers of the one in front that do not count.
    pub fn meets(
        &self,
        front: &Instruction,
        behind: &Instruction,
        anew: u32,
    ) -> Option<Option<Register>> {
        match self.to {
            To::Mode => return (mode(front) == mode(behind)).then_some(None),
            To::Fma64 => return Some(None),
            _ => {}
        }
        let from = self.from.runs(front);
        // A dot product may go on with the sum of another of its kind: then its factors matter.
        let factors = |run: &Registers| {
            let any = self.to != To::DotOther || front.op != behind.op;
            any || [1, 2].iter().any(|at| operand(behind, *at) == Some(*run))
        };
        for run in self.to.runs(behind).iter().filter(factors) {
            for other in from.iter() {
                let same = run == other;
                let fits = match self.to {
                    To::MfmaSame | To::Double4Same => same,
                    To::XdlOther | To::FloatOther | To::SingleOther => !same,
                    _ => true,
                };
                if !fits || overlap(run, other).is_none() {
                    continue;
                }
                if anew == 0 {
                    return Some(overlap(run, other).and_then(|both| both.iter().next()));
                }
                let counts =
                    |(register, bit): &(Register, u32)| anew & bit == 0 && run.has(*register);
                if let Some((register, _)) = from.bits().find(counts) {
                    return Some(Some(register));
                }
            }
        }
        None
    }

    /// The states that must lie between. None are owed behind a matrix instruction of unknown
    /// length.
    pub fn owed(&self, front: &Instruction, gfx950: bool) -> u32 {
        // Elements of less than 8 bits on both sides go at twice the rate.
        let small = |format: u8| format >= 2;
        let both = small(front.modifiers.cbsz) && small(front.modifiers.blgp);
        self.owed_by(front.op, both, gfx950)
    }

    /// The most of them, whatever the operation multiplies.
    fn owed_at_most(&self, front: Opcode, gfx950: bool) -> u32 {
        let either = [false, true].map(|small| self.owed_by(front, small, gfx950));
        either[0].max(either[1])
    }

    fn owed_by(&self, front: Opcode, small: bool, gfx950: bool) -> u32 {
        match self.states {
            States::Always(states) => states,
            States::Passes(states) => {
                let passes = front.mfma_passes(gfx950, small);
                passes.map_or(0, |passes| states(passes, gfx950))
            }
        }
    }
}

fn overlap(a: Registers, b: Registers) -> Option<Registers> {
    let first = a.first.max(b.first);
    let end = (a.first.saturating_add(a.count)).min(b.first.saturating_add(b.count));
    (a.file == b.file && first < end).then(|| Registers {
        file: a.file,
        first,
        count: end - first,
    })
}
