//! The compute unit in figures: every parameter of the model, with its value on each
//! architecture, where it comes from, and whether it was fitted.
//!
//! Sources: *documented* is AMD's (instruction set manuals, whitepapers, the profiler's
//! description of the pipelines) or what the compiler's own tables follow; *measured* is a
//! published measurement on hardware; *assumed* is neither, and says why the value is plausible.
//! *Fitted* parameters were chosen so that the model gives a measured figure, which `from` names.
//! No value was tuned until a kernel's time came out; `docs/amd-cycles.md` names the two choices
//! between published alternatives that were made with whole loops in view.
//!
//! Measurements: PyHIP are the instruction benchmarks of tingqli/pyhip on MI308X; "trace" are
//! instruction traces of MI355X and MI350X: of the bf16 8-wave kernel with 16x16x32 products of
//! HipKittens, by wenchenvincent, and of the 4-wave fp16 kernels of hipBLASLt and Wave, by
//! Hardcode84.

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Documented,
    Measured,
    Assumed,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: &'static str,
    pub gfx942: u32,
    pub gfx950: u32,
    pub source: Source,
    /// The document, measurement or reason.
    pub from: &'static str,
    pub fitted: bool,
}

macro_rules! parameters {
    ($( $(#[$doc:meta])* $name:ident: $gfx942:literal, $gfx950:literal, $source:ident $($fitted:ident)?, $from:literal; )*) => {
        /// What the model knows of a compute unit. Times are in cycles.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Machine {
            /// `gfx942` or `gfx950`.
            pub arch: &'static str,
            $( $(#[$doc])* pub $name: u32, )*
        }

        /// The table.
        pub const PARAMETERS: &[Parameter] = &[
            $( Parameter {
                name: stringify!($name),
                gfx942: $gfx942,
                gfx950: $gfx950,
                source: Source::$source,
                from: $from,
                fitted: parameters!(@fitted $($fitted)?),
            }, )*
        ];

        impl Machine {
            pub const GFX942: Machine = Machine { arch: "gfx942", $( $name: $gfx942, )* };
            pub const GFX950: Machine = Machine { arch: "gfx950", $( $name: $gfx950, )* };
        }
    };
    (@fitted) => { false };
    (@fitted fitted) => { true };
}

parameters! {
    /// Compute units of a GPU, of which the model is one.
    compute_units: 304, 256, Documented, "CDNA3 and CDNA4 whitepapers: MI300X and MI355X";

    // Issue.
    /// SIMDs of a compute unit; a wave's number modulo this says where it runs.
    simds: 4, 4, Documented, "CDNA3 and CDNA4 whitepapers; PyHIP: waves i and i+4 share a SIMD";
    /// Cycles between two turns of a SIMD to issue, and of a wave's plain instruction.
    slot: 4, 4, Documented, "profiler guide: one SIMD a cycle is considered, in turn; trace: every wait and s_setprio takes 4";
    /// Until the instruction behind a branch that was taken can issue.
    taken_branch: 16, 16, Assumed, "three slots to fetch again; once an iteration of a loop";
    /// From the last wave's `s_barrier` until waves go on.
    barrier: 12, 12, Measured, "trace: a barrier takes a group that is last to arrive 14, its own slot and that of the instruction behind it included";
    /// `s_sleep 1`.
    sleep: 64, 64, Documented, "CDNA3 and CDNA4 manuals: s_sleep";

    // Vector unit.
    /// A vector instruction on 64 lanes.
    vector: 4, 4, Measured, "PyHIP: v_add_f32, v_fma_f32, v_pk_add_f32 and others 4.0";
    /// A transcendental one.
    transcendental: 16, 8, Measured, "PyHIP: v_exp_f32 16.0 on gfx942; CDNA4 whitepaper: twice the rate";
    /// Wide integer products.
    quarter: 16, 16, Assumed, "a quarter of the rate, as the compiler's tables have it";

    // Matrix unit.
    /// One pass of a matrix instruction; the next one starts behind the last pass.
    pass: 4, 4, Documented, "CDNA3 and CDNA4 manuals, table of matrix instructions; trace: chained products 16 apart";
    /// Slots beyond its passes until a result can be read as A or B, or by any other unit.
    result_slots: 4, 5, Documented, "the compiler's hazard table: passes + 3 wait states on gfx942, + 4 on gfx950";
    /// The same for a result that overlaps C and is not the same registers.
    overlap_slots: 2, 3, Documented, "the compiler's hazard table: passes + 1 wait states on gfx942, + 2 on gfx950; the same registers need none";
    /// Beyond a matrix instruction's passes until a `v_pk_*_f32` of the same wave starts. One of
    /// another wave starts behind the passes.
    packed_behind_matrix: 8, 8, Measured, "PyHIP: each MFMA with N v_pk_add_f32 takes 24 + 4 N";

    // LDS.
    /// From the end of an access until its data is in registers and its count is taken back.
    lds_latency: 48, 48, Measured, "PyHIP: b32 52 and b128 64 on gfx942 with 4 and 16 of transfer; trace, gfx950: 46 behind the slot of a b32 read";
    /// Bytes a cycle between LDS and a pair of SIMDs.
    lds_pair_bytes: 64, 128, Documented, "profiler guide: 64 for each pair of SIMDs; CDNA4 whitepaper: read bandwidth doubled to 256 a compute unit";
    /// Accesses of a SIMD that wait behind the one in transfer.
    lds_queue: 1, 1, Measured fitted, "trace: bursts of 4, 8 and 12 ds_read_b128 by 4 waves take 38, 99 and 172 to issue";
    /// Bytes a cycle that copies write to LDS.
    lds_write_bytes: 128, 128, Measured, "HipKittens' phases: writes use 32 banks";

    // Vector memory.
    /// Bytes a cycle through the vector L1.
    l1_bytes: 64, 64, Documented, "CDNA3 whitepaper: 64 B/clk/CU; PyHIP: loads of 1 KiB 16 apart once the queue is full";
    /// Instructions that wait before the vector L1.
    memory_queue: 10, 10, Measured, "PyHIP: 16 loads issue at 4 to 8 cycles before the first gap of 16, while 6 are served";
    /// Stores that wait there.
    store_queue: 0, 0, Measured, "PyHIP: stores are 16 apart from the first";
    /// Between two copies to LDS of a pair of SIMDs.
    copy_issue: 11, 11, Measured, "PyHIP: buffer_load_dword lds 11.0; trace of HipKittens' 32x32x16 kernel: 16 copies of a pair in 169";
    /// Behind the L1, from a request until its data returns.
    memory_latency: 500, 500, Measured, "PyHIP: 500 to 800 from HBM; the lower end, for neighbouring blocks find much of their tiles in the caches";
    /// Bytes a cycle that return to a compute unit while all of them load.
    memory_bytes: 54, 64, Documented, "CDNA3 and CDNA4 whitepapers: 2048 a cycle from the L2 of a die, shared by its 38 or 32 compute units";
    /// Vector memory instructions that a compute unit has under way.
    memory_in_flight: 50, 50, Measured, "PyHIP: gaps of 100 and more from the 50th load on";
    /// A scalar load.
    scalar_latency: 200, 200, Assumed, "scalar cache misses; matters before loops only";

    // Counters.
    /// The most that `vmcnt` counts.
    vmcnt: 63, 63, Documented, "CDNA3 and CDNA4 manuals: 6 bits";
    /// The most that `lgkmcnt` counts.
    lgkmcnt: 15, 15, Documented, "CDNA3 and CDNA4 manuals: 4 bits";
}

impl Machine {
    /// The machine of an architecture's name.
    pub fn named(arch: &str) -> Option<Machine> {
        match arch {
            "gfx942" => Some(Machine::GFX942),
            "gfx950" => Some(Machine::GFX950),
            _ => None,
        }
    }

    pub(super) fn is_gfx950(&self) -> bool {
        self.arch == "gfx950"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_says_where_it_comes_from() {
        for parameter in PARAMETERS {
            assert!(parameter.from.len() > 10, "{}", parameter.name);
        }
        // What is fitted names the measurement that it was fitted to.
        let fitted: Vec<_> = PARAMETERS.iter().filter(|p| p.fitted).collect();
        assert!(fitted.iter().all(|p| p.source == Source::Measured));
    }

    #[test]
    fn the_documentation_has_the_same_table() {
        let text = include_str!("../../../../docs/amd-cycles.md");
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        let written: Vec<&str> = rows.take_while(|line| !line.contains("ds_read")).collect();
        let expected = PARAMETERS.iter().map(|p| {
            let source = format!("{:?}", p.source).to_lowercase();
            let fitted = if p.fitted { ", fitted" } else { "" };
            format!(
                "| `{}` | {} | {} | {source}{fitted} |",
                p.name, p.gfx942, p.gfx950
            )
        });
        assert_eq!(written, expected.collect::<Vec<_>>());
    }

    #[test]
    fn machines_by_name() {
        assert_eq!(Machine::named("gfx950").unwrap().lds_pair_bytes, 128);
        assert_eq!(Machine::named("gfx942").unwrap().transcendental, 16);
        assert_eq!(Machine::named("gfx1100"), None);
    }
}
