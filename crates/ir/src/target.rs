//! The targets and their facts: one table, each number with its source.
//!
//! Nothing else in the compiler holds a number of a target. A capability that is not in the
//! table does not exist: asking for it is a diagnostic, never a guess.
//!
//! Sources: \[CUDA\] CUDA C++ Programming Guide, compute capabilities table; \[PTX\] PTX ISA,
//! matrix and async-copy sections; \[ISA3\], \[ISA4\] AMD CDNA3 and CDNA4 instruction set
//! manuals; \[LLVM\] what clang 22 accepts for the target.

use std::fmt;

use crate::dtype::Scalar;
use crate::micro_op::{MmaFamily, MmaInst};

/// A GPU architecture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// NVIDIA Ampere.
    Sm80,
    /// NVIDIA Hopper with its architecture-specific instructions.
    Sm90a,
    /// AMD CDNA3 (MI300X).
    Gfx942,
    /// AMD CDNA4 (MI355X).
    Gfx950,
}

/// What a target has.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Lanes of a warp or wave.
    pub warp_size: u32,
    /// Threads of a block, at most.
    pub max_threads: u32,
    /// Bytes of shared memory that one block may have.
    pub shared_bytes: u32,
    /// Banks of shared memory, four bytes wide each.
    pub banks: u32,
    /// 32-bit registers that one thread may have.
    pub max_registers: u32,
    /// 32-bit registers of one multiprocessor or compute unit.
    pub register_file: u32,
    /// Bytes that one asynchronous global-to-shared instruction may bring a thread, widest
    /// first; empty where there is none.
    pub async_copy_bytes: &'static [u32],
    /// `ldmatrix` (and `stmatrix` where `stmatrix` says so).
    pub ldmatrix: bool,
    pub stmatrix: bool,
    /// LDS loads that transpose across lanes.
    pub ds_read_tr: bool,
    pub mma: &'static [MmaFacts],
}

/// A matrix instruction of a target.
#[derive(Clone, Copy, Debug)]
pub struct MmaFacts {
    pub inst: MmaInst,
    /// Cycles that the matrix unit of one SIMD or sub-core is taken.
    pub cycles: u32,
}

impl Target {
    pub const ALL: [Target; 4] = [Target::Sm80, Target::Sm90a, Target::Gfx942, Target::Gfx950];

    pub const fn name(self) -> &'static str {
        match self {
            Target::Sm80 => "sm_80",
            Target::Sm90a => "sm_90a",
            Target::Gfx942 => "gfx942",
            Target::Gfx950 => "gfx950",
        }
    }

    pub fn from_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|t| t.name() == name)
    }

    pub const fn is_amd(self) -> bool {
        matches!(self, Target::Gfx942 | Target::Gfx950)
    }

    /// How many neighbouring elements one atomic addition to global memory takes, at most.
    /// PTX ISA, `red`: packed halves from sm_60 on, vectors from sm_90 on. Where bfloat16 has no
    /// addition of its own, the two of a word are still changed together.
    pub const fn atomic_add_lanes(self, scalar: Scalar) -> u32 {
        match (self, scalar) {
            (Target::Sm80, Scalar::F16 | Scalar::BF16) => 2,
            (Target::Sm90a, Scalar::F16 | Scalar::BF16 | Scalar::F32) => 4,
            _ => 1,
        }
    }

    pub const fn facts(self) -> &'static Facts {
        match self {
            Target::Sm80 => &SM80,
            Target::Sm90a => &SM90A,
            Target::Gfx942 => &GFX942,
            Target::Gfx950 => &GFX950,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const SM80: Facts = Facts {
    warp_size: 32,                 // [CUDA]
    max_threads: 1024,             // [CUDA]
    shared_bytes: 163 * 1024,      // [CUDA] 163 KB a block for 8.0
    banks: 32,                     // [CUDA]
    max_registers: 255,            // [CUDA]
    register_file: 64 * 1024,      // [CUDA]
    async_copy_bytes: &[16, 8, 4], // [PTX] cp.async cp-size
    ldmatrix: true,                // [PTX] sm_75
    stmatrix: false,               // [PTX] needs sm_90
    ds_read_tr: false,
    mma: MMA_SYNC_80,
};

const SM90A: Facts = Facts {
    shared_bytes: 227 * 1024, // [CUDA] 227 KB a block for 9.0
    stmatrix: true,           // [PTX] sm_90
    mma: MMA_SYNC_90,
    ..SM80
};

const GFX942: Facts = Facts {
    warp_size: 64,             // [ISA3]
    max_threads: 1024,         // [ISA3] 16 waves a workgroup
    shared_bytes: 64 * 1024,   // [ISA3] LDS
    banks: 32,                 // [ISA3]
    max_registers: 512,        // [ISA3] 256 architectural and 256 accumulation VGPRs
    register_file: 128 * 1024, // [ISA3] 512 KB of VGPRs a compute unit
    async_copy_bytes: &[4],    // [LLVM] the 16-byte form is refused
    ldmatrix: false,
    stmatrix: false,
    ds_read_tr: false, // [LLVM] refused
    mma: MFMA_942,
};

const GFX950: Facts = Facts {
    shared_bytes: 160 * 1024,   // [ISA4] LDS
    banks: 64,                  // [ISA4]
    async_copy_bytes: &[16, 4], // [LLVM]
    ds_read_tr: true,           // [ISA4]
    mma: MFMA_950,
    ..GFX942
};

const fn mma(
    family: MmaFamily,
    shape: (u16, u16, u16),
    ab: Scalar,
    acc: Scalar,
    cycles: u32,
) -> MmaFacts {
    MmaFacts {
        inst: MmaInst {
            family,
            m: shape.0,
            n: shape.1,
            k: shape.2,
            ab,
            acc,
        },
        cycles,
    }
}

const fn sync(k: u16, ab: Scalar, acc: Scalar, cycles: u32) -> MmaFacts {
    mma(MmaFamily::MmaSync, (16, 8, k), ab, acc, cycles)
}

const fn mfma(shape: (u16, u16, u16), ab: Scalar, acc: Scalar, cycles: u32) -> MmaFacts {
    mma(MmaFamily::Mfma, shape, ab, acc, cycles)
}

/// [PTX] `mma.sync` shapes of sm_80. Cycles from the dense rate of A100: 256 f16 multiply-adds
/// a cycle and sub-core, half of that for tf32, twice for int8.
const MMA_SYNC_80: &[MmaFacts] = &[
    sync(16, Scalar::F16, Scalar::F32, 8),
    sync(16, Scalar::F16, Scalar::F16, 8),
    sync(16, Scalar::BF16, Scalar::F32, 8),
    sync(8, Scalar::TF32, Scalar::F32, 8),
    sync(32, Scalar::I8, Scalar::I32, 8),
    sync(32, Scalar::U8, Scalar::I32, 8),
];

/// [PTX] sm_90 adds nothing for fp8 to `mma.sync` (sm_89 forms run by conversion), so fp8 goes
/// through the same shapes with K of 32.
const MMA_SYNC_90: &[MmaFacts] = &[
    sync(16, Scalar::F16, Scalar::F32, 8),
    sync(16, Scalar::F16, Scalar::F16, 8),
    sync(16, Scalar::BF16, Scalar::F32, 8),
    sync(8, Scalar::TF32, Scalar::F32, 8),
    sync(32, Scalar::I8, Scalar::I32, 8),
    sync(32, Scalar::U8, Scalar::I32, 8),
    sync(32, Scalar::F8E4M3FN, Scalar::F32, 16),
    sync(32, Scalar::F8E5M2, Scalar::F32, 16),
];

/// [ISA3] passes of four cycles each.
const MFMA_942: &[MmaFacts] = &[
    mfma((16, 16, 16), Scalar::F16, Scalar::F32, 16),
    mfma((32, 32, 8), Scalar::F16, Scalar::F32, 32),
    mfma((16, 16, 16), Scalar::BF16, Scalar::F32, 16),
    mfma((32, 32, 8), Scalar::BF16, Scalar::F32, 32),
    mfma((16, 16, 4), Scalar::F32, Scalar::F32, 32),
    mfma((16, 16, 32), Scalar::I8, Scalar::I32, 16),
    mfma((32, 32, 16), Scalar::I8, Scalar::I32, 32),
    mfma((16, 16, 32), Scalar::F8E4M3FNUZ, Scalar::F32, 16),
    mfma((32, 32, 16), Scalar::F8E4M3FNUZ, Scalar::F32, 32),
    mfma((16, 16, 32), Scalar::F8E5M2FNUZ, Scalar::F32, 16),
    mfma((32, 32, 16), Scalar::F8E5M2FNUZ, Scalar::F32, 32),
];

/// [ISA4] The full-rate forms first; the CDNA3 shapes remain at half rate.
const MFMA_950: &[MmaFacts] = &[
    mfma((16, 16, 32), Scalar::F16, Scalar::F32, 16),
    mfma((32, 32, 16), Scalar::F16, Scalar::F32, 32),
    mfma((16, 16, 32), Scalar::BF16, Scalar::F32, 16),
    mfma((32, 32, 16), Scalar::BF16, Scalar::F32, 32),
    mfma((16, 16, 16), Scalar::F16, Scalar::F32, 16),
    mfma((32, 32, 8), Scalar::F16, Scalar::F32, 32),
    mfma((16, 16, 16), Scalar::BF16, Scalar::F32, 16),
    mfma((32, 32, 8), Scalar::BF16, Scalar::F32, 32),
    mfma((16, 16, 4), Scalar::F32, Scalar::F32, 32),
    mfma((16, 16, 64), Scalar::I8, Scalar::I32, 16),
    mfma((32, 32, 32), Scalar::I8, Scalar::I32, 32),
    mfma((16, 16, 128), Scalar::F8E4M3FN, Scalar::F32, 32),
    mfma((32, 32, 64), Scalar::F8E4M3FN, Scalar::F32, 64),
    mfma((16, 16, 128), Scalar::F8E5M2, Scalar::F32, 32),
    mfma((32, 32, 64), Scalar::F8E5M2, Scalar::F32, 64),
    mfma((16, 16, 32), Scalar::F8E4M3FN, Scalar::F32, 16),
    mfma((32, 32, 16), Scalar::F8E4M3FN, Scalar::F32, 32),
    mfma((16, 16, 32), Scalar::F8E5M2, Scalar::F32, 16),
    mfma((32, 32, 16), Scalar::F8E5M2, Scalar::F32, 32),
    mfma((16, 16, 128), Scalar::F6E2M3, Scalar::F32, 16),
    mfma((32, 32, 64), Scalar::F6E2M3, Scalar::F32, 32),
    mfma((16, 16, 128), Scalar::F6E3M2, Scalar::F32, 16),
    mfma((32, 32, 64), Scalar::F6E3M2, Scalar::F32, 32),
    mfma((16, 16, 128), Scalar::F4E2M1, Scalar::F32, 16),
    mfma((32, 32, 64), Scalar::F4E2M1, Scalar::F32, 32),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for t in Target::ALL {
            assert_eq!(Target::from_name(t.name()), Some(t));
        }
    }

    #[test]
    fn full_rate_forms_do_no_less_work_a_cycle() {
        for target in Target::ALL {
            let facts = target.facts().mma;
            for (at, a) in facts.iter().enumerate() {
                let rate = |f: &MmaFacts| {
                    let i = f.inst;
                    (i.m as u32 * i.n as u32 * i.k as u32) / f.cycles
                };
                let later = facts[at + 1..].iter();
                for b in later.filter(|b| b.inst.ab == a.inst.ab && b.inst.acc == a.inst.acc) {
                    assert!(rate(a) >= rate(b), "{target}: {} before {}", a.inst, b.inst);
                }
            }
        }
    }
}
