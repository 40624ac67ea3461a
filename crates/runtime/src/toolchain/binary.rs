//! A compiled program, for whichever vendor's GPU.

use super::cubin::BadCubin;
use super::{CompileError, Cubin, Hsaco};

/// What a toolchain makes of a kernel's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binary {
    Cubin(Cubin),
    Hsaco(Hsaco),
}

/// What is asked most about a compiled kernel, with one name for every vendor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Registers of one thread; on AMD vector registers, accumulators included.
    pub registers: u32,
    /// Static shared memory (LDS) of one block in bytes.
    pub static_shared: u32,
    /// Bytes of spills of one thread, where they are known.
    pub spills: Option<u32>,
}

impl Binary {
    /// What each kernel needs.
    pub fn needs(&self) -> Vec<Needs> {
        match self {
            Self::Cubin(cubin) => {
                let each = cubin.kernels().iter().map(|kernel| Needs {
                    registers: kernel.registers,
                    static_shared: kernel.static_shared,
                    spills: kernel.spills.map(|s| s.stores + s.loads),
                });
                each.collect()
            }
            Self::Hsaco(hsaco) => {
                let each = hsaco.kernels().iter().map(|kernel| Needs {
                    registers: kernel.vgprs,
                    static_shared: kernel.lds_bytes,
                    // A register of a lane has four bytes.
                    spills: Some(4 * (kernel.vgpr_spills + kernel.sgpr_spills)),
                });
                each.collect()
            }
        }
    }

    /// One byte string for the cache.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, program) = match self {
            Self::Cubin(cubin) => (CUBIN, cubin.encode()),
            Self::Hsaco(hsaco) => (HSACO, hsaco.encode()),
        };
        let mut out = vec![kind];
        out.extend(program);
        out
    }

    /// The inverse of [`Binary::encode`].
    pub fn decode(encoded: &[u8]) -> Result<Self, CompileError> {
        match encoded.split_first() {
            Some((&CUBIN, program)) => Cubin::decode(program).map(Self::Cubin),
            Some((&HSACO, program)) => Hsaco::decode(program).map(Self::Hsaco),
            _ => Err(CompileError::Cubin(BadCubin(
                "its cache entry is of no known kind".to_owned(),
            ))),
        }
    }
}

const CUBIN: u8 = 0;
const HSACO: u8 = 1;
