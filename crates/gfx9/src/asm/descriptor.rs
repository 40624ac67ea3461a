//! The kernel descriptor: what the hardware sets up before the first instruction.

/// What the `.amdhsa_…` lines of a kernel say, as far as a wave sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Static LDS in bytes.
    pub lds_bytes: u32,
    /// Private memory of a lane in bytes.
    pub scratch_bytes: u32,
    /// Scalar registers that the user data takes, its parts below included.
    pub user_sgprs: u32,
    pub private_segment_buffer: bool,
    pub dispatch_ptr: bool,
    pub queue_ptr: bool,
    pub kernarg_ptr: bool,
    pub dispatch_id: bool,
    pub flat_scratch_init: bool,
    pub private_segment_size: bool,
    /// Words of the argument block that are loaded before the kernel starts, and from which word.
    pub preload_length: u32,
    pub preload_offset: u32,
    /// Which workgroup ids follow the user data.
    pub workgroup_id: [bool; 3],
    pub workgroup_info: bool,
    /// How many of a work-item's ids v0 holds, less one.
    pub workitem_ids: u32,
    /// The first accumulation register's place in the vector registers.
    pub accum_offset: u32,
    pub next_vgpr: u32,
    /// Rounding and denormals as in the MODE register.
    pub round_32: u32,
    pub denormals_32: u32,
    pub denormals_16_64: u32,
}

impl Descriptor {
    /// Takes in one directive. Those that a wave does not see are passed over.
    pub(super) fn set(&mut self, name: &str, value: i64) {
        let number = u32::try_from(value).unwrap_or(0);
        let bit = value != 0;
        match name {
            ".amdhsa_group_segment_fixed_size" => self.lds_bytes = number,
            ".amdhsa_private_segment_fixed_size" => self.scratch_bytes = number,
            ".amdhsa_user_sgpr_count" => self.user_sgprs = number,
            ".amdhsa_user_sgpr_private_segment_buffer" => self.private_segment_buffer = bit,
            ".amdhsa_user_sgpr_dispatch_ptr" => self.dispatch_ptr = bit,
            ".amdhsa_user_sgpr_queue_ptr" => self.queue_ptr = bit,
            ".amdhsa_user_sgpr_kernarg_segment_ptr" => self.kernarg_ptr = bit,
            ".amdhsa_user_sgpr_dispatch_id" => self.dispatch_id = bit,
            ".amdhsa_user_sgpr_flat_scratch_init" => self.flat_scratch_init = bit,
            ".amdhsa_user_sgpr_private_segment_size" => self.private_segment_size = bit,
            ".amdhsa_user_sgpr_kernarg_preload_length" => self.preload_length = number,
            ".amdhsa_user_sgpr_kernarg_preload_offset" => self.preload_offset = number,
            ".amdhsa_system_sgpr_workgroup_id_x" => self.workgroup_id[0] = bit,
            ".amdhsa_system_sgpr_workgroup_id_y" => self.workgroup_id[1] = bit,
            ".amdhsa_system_sgpr_workgroup_id_z" => self.workgroup_id[2] = bit,
            ".amdhsa_system_sgpr_workgroup_info" => self.workgroup_info = bit,
            ".amdhsa_system_vgpr_workitem_id" => self.workitem_ids = number,
            ".amdhsa_accum_offset" => self.accum_offset = number,
            ".amdhsa_next_free_vgpr" => self.next_vgpr = number,
            ".amdhsa_float_round_mode_32" => self.round_32 = number,
            ".amdhsa_float_denorm_mode_32" => self.denormals_32 = number,
            ".amdhsa_float_denorm_mode_16_64" => self.denormals_16_64 = number,
            _ => {}
        }
    }
}
