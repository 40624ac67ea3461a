//! What a GPU is, whoever made it.

/// The makers of GPUs that kernels run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    Nvidia,
    Amd,
}

/// What a GPU is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    pub ordinal: u32,
    pub name: String,
    pub model: Model,
    /// Multiprocessors, or compute units.
    pub multiprocessors: u32,
    pub memory_bytes: usize,
    pub l2_bytes: u32,
    /// Most shared memory (LDS) of one block, once a kernel asks for it.
    pub shared_per_block: u32,
    pub max_threads_per_block: u32,
    /// A block's z dimension has a limit of its own.
    pub max_block_z: u32,
    pub max_grid: [u32; 3],
    /// Threads of a warp, or wave.
    pub warp_size: u32,
    pub clock_khz: u32,
    pub memory_clock_khz: u32,
    pub memory_bus_bits: u32,
    /// The CUDA version that the driver supports, or ROCm's version.
    pub driver: (u32, u32),
}

/// A GPU's generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    /// Compute capability, (9, 0) for Hopper.
    Nvidia { capability: (u32, u32) },
    /// `gfx950`.
    Amd { arch: String },
}

impl DeviceInfo {
    pub fn vendor(&self) -> Vendor {
        match self.model {
            Model::Nvidia { .. } => Vendor::Nvidia,
            Model::Amd { .. } => Vendor::Amd,
        }
    }

    /// The machine code target that can use all of this GPU. From Hopper on, the letter brings
    /// the instructions of just this generation (wgmma, tcgen05).
    pub fn arch(&self) -> String {
        match &self.model {
            Model::Nvidia {
                capability: (major @ 9.., minor),
            } => format!("sm_{major}{minor}a"),
            Model::Nvidia {
                capability: (major, minor),
            } => format!("sm_{major}{minor}"),
            Model::Amd { arch } => arch.clone(),
        }
    }

    /// Whether machine code for `arch` runs here. NVIDIA: the same major version and no newer
    /// minor one; code with a letter runs on exactly its own version. AMD: the very same.
    pub fn runs(&self, arch: &str) -> bool {
        match &self.model {
            Model::Nvidia { capability } => runs_cubin(*capability, arch),
            Model::Amd { arch: own } => own == arch,
        }
    }
}

fn runs_cubin(capability: (u32, u32), arch: &str) -> bool {
    let Some(number) = arch.strip_prefix("sm_") else {
        return false;
    };
    let digits = number.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let Ok(code) = digits.parse::<u32>() else {
        return false;
    };
    let (major, minor) = (code / 10, code % 10);
    let letter = &number[digits.len()..];
    match letter {
        "a" => (major, minor) == capability,
        // `f` is for a family: the same major version, from this minor one on.
        "" | "f" => major == capability.0 && minor <= capability.1,
        _ => false,
    }
}
