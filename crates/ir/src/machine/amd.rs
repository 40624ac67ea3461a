//! AMD's machines.

use super::{
    AsyncCopy, BankPhases, BlockBarrier, Dialect, Fp8Formats, Machine, MmaFacts, Registers,
    SharedMemory, VectorAtomics, mma,
};
use crate::device_op::Counter;
use crate::dtype::Scalar;
use crate::micro_op::{Inst, MmaFamily, MmaInst};

pub(crate) const GFX942: Machine = Machine {
    dialect: Dialect::Hip,
    forward_compatible: false, // [LLVM] matrix instructions and LDS differ by generation
    prints: false,             // [LLVM] printf needs the vendor's device library
    warp_size: 64,             // [ISA3]
    lockstep: true,            // [ISA3] one program counter a wave
    scalar_registers: true,    // [ISA3] SGPRs
    max_threads: 1024,         // [ISA3] 16 waves a workgroup
    multiprocessors: 304,      // MI300X
    chiplets: 8,               // [CDNA3] XCDs, also of MI355X
    l2: 4 << 20,               // MI300X, each of eight dies
    l2_rate: 64,               // [CDNA3] bytes a clock into the vector L1 of each CU
    next_kernel: 10_000,       // assumed: 5 µs, twice what an H200 takes
    simds: 4,                  // [ISA3]
    waves_per_simd: 8,         // [LLVM] amdgpu_waves_per_eu
    clusters: None,
    registers: Registers {
        per_thread: 512,   // [ISA3] 256 architectural and 256 accumulation VGPRs
        file: 128 * 1024,  // [ISA3] 512 KB of VGPRs a compute unit
        accumulation: 256, // [ISA3] a0 to a255
        spill: false,      // scratch accesses count in vmcnt
        moves: None,
    },
    shared: SharedMemory {
        bytes: 64 * 1024,                // [ISA3] LDS
        banks: 32,                       // [ISA3]
        phases: BankPhases::Mixed32,     // measured, see `layout::banks::amd`
        swizzle_align: 128,              // all banks once
        counter: Some(Counter::Lgkmcnt), // [ISA3] LDS operations of a wave return in order
    },
    barrier: BlockBarrier {
        drains: true, // [LLVM] a workgroup fence and barrier wait for all counters
        bare: true,   // [ISA3] s_barrier
        named: false,
        expects_bytes: false,
    },
    wave_priority: true,                // [ISA3] s_setprio
    load_counter: Some(Counter::Vmcnt), // [ISA3] vector memory loads return in order
    async_copy: Some(AsyncCopy {
        inst: Inst::BufferLoadLds,
        bytes: &[4], // [LLVM] the 16-byte form is refused
        counter: Counter::Vmcnt,
    }),
    bulk_copies: false,
    bulk_latency: 0,
    prefetch_ahead: 0, // no instruction for it
    async_proxy: false,
    buffer_descriptors: true, // [ISA3] buffer instructions
    l2_windows: false,
    vector_atomics: VectorAtomics {
        global: PAIRS, // [ISA3] global_atomic_pk_add_f16, global_atomic_pk_add_bf16
        shared: PAIRS, // [ISA3] ds_pk_add_f16, ds_pk_add_bf16
    },
    ldmatrix: false,
    stmatrix: false,
    max_of_three: false, // floats have v_max3_f32
    ds_read_tr: false,   // [LLVM] refused
    mma: MFMA_942,
    sparse_mma: &[], // no code is generated for smfmac
    fp8_sum_bits: 23,
    fp8_conversions: Some(Fp8Formats::Fnuz), // [ISA3]
};

pub(crate) const GFX950: Machine = Machine {
    multiprocessors: 256, // MI355X
    shared: SharedMemory {
        bytes: 160 * 1024,           // [ISA4] LDS
        banks: 64,                   // [ISA4]
        phases: BankPhases::Mixed64, // measured, see `layout::banks::amd`
        swizzle_align: 256,          // all banks once
        ..GFX942.shared
    },
    async_copy: Some(AsyncCopy {
        inst: Inst::BufferLoadLds,
        bytes: &[16, 12, 4], // [LLVM]
        counter: Counter::Vmcnt,
    }),
    ds_read_tr: true, // [ISA4]
    mma: MFMA_950,
    fp8_conversions: Some(Fp8Formats::Ocp), // [ISA4]
    ..GFX942
};

const PAIRS: &[(Scalar, u32)] = &[(Scalar::F16, 2), (Scalar::BF16, 2)];

const fn mfma(shape: (u16, u16, u16), ab: Scalar, acc: Scalar, cycles: u32) -> MmaFacts {
    mma(MmaFamily::Mfma, shape, ab, acc, cycles)
}

/// The same with scales along K.
const fn scaled(facts: MmaFacts) -> MmaFacts {
    MmaFacts {
        inst: MmaInst {
            scaled: true,
            ..facts.inst
        },
        ..facts
    }
}

/// The formats that the f8f6f4 instructions take, those of eight bits first.
const F8F6F4: [Scalar; 5] = [
    Scalar::F8E4M3FN,
    Scalar::F8E5M2,
    Scalar::F4E2M1,
    Scalar::F6E2M3,
    Scalar::F6E3M2,
];

/// The instructions with scales, on any two of these formats.
const SCALED_950: [MmaFacts; 2 * F8F6F4.len() * F8F6F4.len()] = {
    let like = scaled(mfma((16, 16, 128), F8F6F4[0], Scalar::F32, 32));
    let mut all = [like; 2 * F8F6F4.len() * F8F6F4.len()];
    let mut at = 0;
    while at < all.len() {
        let pair = at / 2;
        // Factors of one format, then the others.
        let a = F8F6F4[pair % F8F6F4.len()];
        let b = F8F6F4[(pair + pair / F8F6F4.len()) % F8F6F4.len()];
        // [ISA4] twice as fast where neither is of eight bits.
        let fast = if a.bits() < 8 && b.bits() < 8 { 2 } else { 1 };
        let facts = match at % 2 {
            0 => mfma((16, 16, 128), a, Scalar::F32, 32 / fast),
            _ => mfma((32, 32, 64), a, Scalar::F32, 64 / fast),
        };
        let facts = scaled(facts);
        all[at] = MmaFacts {
            inst: MmaInst { b, ..facts.inst },
            ..facts
        };
        at += 1;
    }
    all
};

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
    mfma((16, 16, 4), Scalar::F64, Scalar::F64, 32),
];

/// [ISA4] The full-rate forms first; the CDNA3 shapes remain at half rate, that of float64 too.
const PLAIN_950: &[MmaFacts] = &[
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
    mfma((16, 16, 128), Scalar::F4E2M1, Scalar::F32, 16),
    mfma((32, 32, 64), Scalar::F4E2M1, Scalar::F32, 32),
    mfma((16, 16, 128), Scalar::F6E2M3, Scalar::F32, 16),
    mfma((32, 32, 64), Scalar::F6E2M3, Scalar::F32, 32),
    mfma((16, 16, 128), Scalar::F6E3M2, Scalar::F32, 16),
    mfma((32, 32, 64), Scalar::F6E3M2, Scalar::F32, 32),
    mfma((16, 16, 4), Scalar::F64, Scalar::F64, 64),
];

const MFMA_950: &[MmaFacts] = &{
    let mut all = [PLAIN_950[0]; PLAIN_950.len() + SCALED_950.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = match at < PLAIN_950.len() {
            true => PLAIN_950[at],
            false => SCALED_950[at - PLAIN_950.len()],
        };
        at += 1;
    }
    all
};
