//! The wait states that a program owes the machine, as rows.
//!
//! Each row: what an instruction does to a register, what a later one does to it, and how many
//! wait states must lie between. What the machine waits for by itself has no row: a scalar
//! instruction that reads what a vector one wrote, a memory instruction that reads a vector
//! register, registers that loads fill (these have counters), and products that follow each other
//! on the same sums.
//!
//! Sources. The tables of required software-inserted wait states in AMD's CDNA3 and CDNA4 manuals
//! (section 4.5, and for matrix instructions section 7); where their cells are short of a case, what
//! LLVM's hazard recogniser keeps for gfx940 and gfx950. A pass is four cycles, one wait state.
//! The rows for products of doubles are LLVM's alone. Not here, for the compiler has no such
//! instruction for compute kernels of these machines: GDS, `s_movrel`, `s_rfe`, `vskip`, interpolation;
//! and sparse products, which the table of instructions does not have.

/// One obligation.
pub(super) struct Row {
    pub from: From,
    pub to: To,
    pub states: States,
    /// What meets, for messages.
    pub what: &'static str,
}

/// How many states must lie between.
#[derive(Clone, Copy)]
pub(super) enum States {
    Always(u32),
    /// By the passes of the matrix instruction in front, and whether this is gfx950.
    Passes(fn(u32, bool) -> u32),
}

/// The instruction in front, and the registers of it that matter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// A vector instruction writes scalar registers, `vcc` or m0.
    VectorToScalar,
    VectorToExec,
    /// A vector instruction, not a matrix one, writes vector registers.
    Vector,
    /// The same but dot products.
    VectorNotDot,
    Transcendental,
    /// It writes a part of a register, and shifts it into place late.
    Part,
    Dot,
    ScalarToM0,
    /// A store of more than eight bytes a lane reads its data late.
    WideStore,
    /// The same with the offset of all lanes in a scalar register.
    WideStoreAtScalar,
    SetMode,
    /// A matrix instruction writes its sums: of small types, of floats, of doubles.
    Xdl,
    Single,
    Double4,
    Double16,
    /// It reads the sums that it adds to, late.
    XdlAddend,
    /// Any product of doubles; no register matters.
    AnyDouble,
}

/// The instruction behind, and the registers of it that matter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    /// Vector memory reads scalar registers.
    MemoryScalar,
    LaneSelect,
    DivFmas,
    DppExec,
    DppRead,
    /// Reads m0: copies to LDS, messages, LDS by thread number.
    M0,
    /// A vector instruction reads scalar registers.
    VectorScalar,
    /// `v_readlane`, `v_readfirstlane` read a vector register.
    LaneRead,
    /// Those and `v_writelane`.
    LaneExec,
    PermlaneExec,
    PermlaneRead,
    /// A vector or matrix instruction other than a transcendental one reads.
    NotTranscendentalRead,
    /// A vector or matrix instruction reads or writes.
    VectorTouch,
    VectorWrite,
    Mode,
    MfmaExec,
    MfmaRead,
    /// A matrix instruction multiplies it, or scales by it.
    MfmaFactor,
    /// It adds to exactly those registers, or to others among them.
    MfmaSame,
    XdlOther,
    /// The same for products of floats and doubles.
    FloatOther,
    SingleOther,
    Double4Same,
    /// A vector instruction, not a matrix one, reads.
    VectorRead,
    /// Memory reads a vector register.
    MemoryRead,
    /// A vector instruction, not a matrix one, or memory writes.
    Overwrite,
    /// An instruction other than that dot product reads or writes; or it reads a factor.
    DotOther,
    Fma64,
}

const fn row(from: From, to: To, states: States, what: &'static str) -> Row {
    Row {
        from,
        to,
        states,
        what,
    }
}

use States::{Always, Passes};

pub(super) static ROWS: &[Row] = &[
    // Scalar registers that vector instructions write.
    row(
        From::VectorToScalar,
        To::MemoryScalar,
        Always(5),
        "a vector instruction writes a scalar register, a memory instruction reads it",
    ),
    row(
        From::VectorToScalar,
        To::LaneSelect,
        Always(4),
        "a vector instruction writes a scalar register, which selects a lane",
    ),
    row(
        From::VectorToScalar,
        To::DivFmas,
        Always(4),
        "a vector instruction writes vcc, v_div_fmas reads it",
    ),
    row(
        From::VectorToScalar,
        To::VectorScalar,
        Always(2),
        "a vector instruction writes a scalar register, another reads it",
    ),
    row(
        From::VectorToExec,
        To::DppExec,
        Always(5),
        "a vector instruction writes exec, lanes are exchanged by DPP",
    ),
    row(
        From::VectorToExec,
        To::LaneExec,
        Always(4),
        "a vector instruction writes exec, a lane is read or written",
    ),
    row(
        From::VectorToExec,
        To::PermlaneExec,
        Always(4),
        "a vector instruction writes exec, lanes are swapped",
    ),
    row(
        From::VectorToExec,
        To::MfmaExec,
        Always(4),
        "a vector instruction writes exec before a matrix instruction",
    ),
    row(
        From::ScalarToM0,
        To::M0,
        Always(1),
        "a scalar instruction writes m0, which is used",
    ),
    row(
        From::SetMode,
        To::Mode,
        Always(2),
        "a hardware register is set, and read or set again",
    ),
    // Vector registers.
    row(
        From::Vector,
        To::DppRead,
        Always(2),
        "a vector instruction writes what DPP reads from another lane",
    ),
    row(
        From::Vector,
        To::LaneRead,
        Always(1),
        "a vector instruction writes what a read of one lane reads",
    ),
    row(
        From::Vector,
        To::PermlaneRead,
        Always(2),
        "a vector instruction writes what is swapped between lanes",
    ),
    row(
        From::Transcendental,
        To::NotTranscendentalRead,
        Always(1),
        "a transcendental instruction writes what another reads",
    ),
    row(
        From::Part,
        To::VectorTouch,
        Always(1),
        "a part of a register is written, and the register is used",
    ),
    row(
        From::WideStore,
        To::VectorWrite,
        Always(2),
        "the data of a store of more than eight bytes is overwritten",
    ),
    row(
        From::WideStoreAtScalar,
        To::VectorWrite,
        Always(1),
        "the data of a store of more than eight bytes is overwritten",
    ),
    row(
        From::Dot,
        To::DotOther,
        Always(3),
        "a dot product's sum is used by another instruction, or as a factor",
    ),
    // Matrix instructions.
    row(
        From::VectorNotDot,
        To::MfmaRead,
        Always(2),
        "a vector instruction writes an operand of a matrix instruction",
    ),
    row(
        From::Xdl,
        To::MfmaSame,
        Passes(|passes, _| if passes == 2 { 2 } else { 0 }),
        "a matrix instruction adds to a product's sums",
    ),
    row(
        From::Xdl,
        To::XdlOther,
        Passes(|passes, gfx950| passes + 1 + u32::from(gfx950)),
        "a matrix instruction adds to a part of a product's sums",
    ),
    row(
        From::Xdl,
        To::FloatOther,
        Passes(|passes, gfx950| passes + 1 + u32::from(gfx950 && passes != 2)),
        "a matrix instruction adds to a part of a product's sums",
    ),
    row(
        From::Xdl,
        To::MfmaFactor,
        Passes(xdl),
        "a matrix instruction multiplies a product's sums",
    ),
    row(
        From::Xdl,
        To::VectorRead,
        Passes(xdl),
        "a vector instruction reads a product's sums",
    ),
    row(
        From::Xdl,
        To::MemoryRead,
        Passes(xdl),
        "a memory instruction reads a product's sums",
    ),
    row(
        From::Xdl,
        To::Overwrite,
        Passes(xdl),
        "a product's sums are overwritten",
    ),
    row(
        From::XdlAddend,
        To::Overwrite,
        Passes(|passes, _| passes - 1),
        "what a matrix instruction adds to is overwritten",
    ),
    row(
        From::Single,
        To::MfmaSame,
        Passes(|passes, _| if passes == 2 { 2 } else { 0 }),
        "a matrix instruction adds to a product's sums",
    ),
    row(
        From::Single,
        To::SingleOther,
        Passes(|passes, _| passes),
        "a matrix instruction adds to a part of a product's sums",
    ),
    row(
        From::Single,
        To::MfmaFactor,
        Passes(|passes, _| passes + 2),
        "a matrix instruction multiplies a product's sums",
    ),
    row(
        From::Single,
        To::VectorRead,
        Passes(|passes, _| passes + 2),
        "a vector instruction reads a product's sums",
    ),
    row(
        From::Single,
        To::MemoryRead,
        Passes(|passes, _| passes + 2),
        "a memory instruction reads a product's sums",
    ),
    row(
        From::Single,
        To::Overwrite,
        Passes(|passes, _| passes + 2),
        "a product's sums are overwritten",
    ),
    // Products of doubles.
    row(
        From::Double4,
        To::Double4Same,
        Always(4),
        "a matrix instruction adds to a product's sums",
    ),
    row(
        From::Double4,
        To::FloatOther,
        Always(4),
        "a matrix instruction adds to a part of a product's sums",
    ),
    row(
        From::Double4,
        To::MfmaFactor,
        Always(6),
        "a matrix instruction multiplies a product's sums",
    ),
    row(
        From::Double4,
        To::VectorRead,
        Always(6),
        "a vector instruction reads a product's sums",
    ),
    row(
        From::Double4,
        To::MemoryRead,
        Always(9),
        "a memory instruction reads a product's sums",
    ),
    row(
        From::Double4,
        To::Overwrite,
        Always(6),
        "a product's sums are overwritten",
    ),
    row(
        From::Double16,
        To::FloatOther,
        Passes(|_, gfx950| if gfx950 { 17 } else { 9 }),
        "a matrix instruction adds to a part of a product's sums",
    ),
    row(
        From::Double16,
        To::MfmaFactor,
        Passes(|_, gfx950| if gfx950 { 19 } else { 11 }),
        "a matrix instruction multiplies a product's sums",
    ),
    row(
        From::Double16,
        To::VectorRead,
        Passes(|_, gfx950| if gfx950 { 19 } else { 11 }),
        "a vector instruction reads a product's sums",
    ),
    row(
        From::Double16,
        To::MemoryRead,
        Always(18),
        "a memory instruction reads a product's sums",
    ),
    row(
        From::Double16,
        To::Overwrite,
        Always(11),
        "a product's sums are overwritten",
    ),
    row(
        From::AnyDouble,
        To::Fma64,
        Always(2),
        "a multiply-add of doubles behind a product of doubles",
    ),
];

/// The sums of a product of small types, as vector instructions and factors see them.
fn xdl(passes: u32, gfx950: bool) -> u32 {
    passes + 3 + u32::from(gfx950 && passes != 2)
}

/// No row asks for more.
pub(super) const MOST: u32 = 20;

const _: () = assert!(ROWS.len() <= 64, "a row is a bit of a word");
