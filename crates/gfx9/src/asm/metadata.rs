//! The metadata block behind the code: what each kernel needs and takes.
//!
//! LLVM prints it as YAML in one fixed layout (keys of a kernel four spaces in, of an argument
//! eight), so indentation tells the levels apart and no YAML library is needed. Keys we do not
//! know are skipped.

use rustc_hash::FxHashMap;

/// What a kernel needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// All vector registers of a lane, accumulation registers included.
    pub vgprs: u32,
    pub agprs: u32,
    pub sgprs: u32,
    /// Static LDS of a workgroup in bytes.
    pub lds_bytes: u32,
    /// Private memory of a lane in bytes.
    pub scratch_bytes: u32,
    pub vgpr_spills: u32,
    pub sgpr_spills: u32,
    pub max_threads: u32,
    pub kernarg_bytes: u32,
    pub arguments: Vec<Argument>,
}

/// One argument in the kernel's argument block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argument {
    pub offset: u32,
    pub size: u32,
    /// `global_buffer`, `by_value`, or the name of a hidden one.
    pub kind: String,
}

/// The kernels by name, and the architecture.
pub(super) fn read(lines: &[&str]) -> (FxHashMap<String, Needs>, Option<String>) {
    let mut kernels = FxHashMap::default();
    let mut arch = None;
    let mut current: Option<(String, Needs)> = None;
    let mut in_kernels = false;
    let mut close = |current: Option<(String, Needs)>| {
        if let Some((name, needs)) = current {
            kernels.insert(name, needs);
        }
    };
    for line in lines {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        let (item, entry) = match trimmed.strip_prefix("- ") {
            Some(entry) => (true, entry.trim_start()),
            None => (false, trimmed),
        };
        let Some((key, value)) = entry.split_once(':') else {
            continue;
        };
        let value = value.trim().trim_matches('\'').trim_matches('"');
        if indent == 0 && !item {
            in_kernels = key == "amdhsa.kernels";
            if key == "amdhsa.target" {
                arch = arch_of(value);
            }
            continue;
        }
        if !in_kernels {
            continue;
        }
        // An item of the outer list starts a kernel, one of an inner list an argument.
        if item && indent <= 2 {
            close(current.take());
            current = Some((String::new(), Needs::default()));
        }
        let Some((name, needs)) = &mut current else {
            continue;
        };
        let number = value.parse().unwrap_or(0);
        if indent > 4 || (indent == 4 && item) {
            if item {
                needs.arguments.push(Argument::default());
            }
            if let Some(argument) = needs.arguments.last_mut() {
                match key {
                    ".offset" => argument.offset = number,
                    ".size" => argument.size = number,
                    ".value_kind" => argument.kind = value.to_owned(),
                    _ => {}
                }
            }
            continue;
        }
        match key {
            ".name" => *name = value.to_owned(),
            ".vgpr_count" => needs.vgprs = number,
            ".agpr_count" => needs.agprs = number,
            ".sgpr_count" => needs.sgprs = number,
            ".group_segment_fixed_size" => needs.lds_bytes = number,
            ".private_segment_fixed_size" => needs.scratch_bytes = number,
            ".vgpr_spill_count" => needs.vgpr_spills = number,
            ".sgpr_spill_count" => needs.sgpr_spills = number,
            ".max_flat_workgroup_size" => needs.max_threads = number,
            ".kernarg_segment_size" => needs.kernarg_bytes = number,
            _ => {}
        }
    }
    close(current);
    (kernels, arch)
}

/// `gfx950` of `amdgcn-amd-amdhsa--gfx950:sramecc+:xnack-`.
pub(super) fn arch_of(target: &str) -> Option<String> {
    let name = target.rsplit('-').find(|part| part.starts_with("gfx"))?;
    Some(name.split(':').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
      - .offset:         8
        .size:           4
        .value_kind:     by_value
    .group_segment_fixed_size: 131072
    .kernarg_segment_size: 12
    .max_flat_workgroup_size: 512
    .name:           gemm
    .private_segment_fixed_size: 16
    .sgpr_count:     34
    .sgpr_spill_count: 1
    .vgpr_count:     238
    .vgpr_spill_count: 2
  - .agpr_count:     4
    .args:           []
    .name:           'other'
    .vgpr_count:     7
amdhsa.target:   'amdgcn-amd-amdhsa--gfx950:sramecc+'
amdhsa.version:
  - 1
  - 2
...";

    #[test]
    fn kernels_and_arguments_are_read() {
        let lines: Vec<&str> = TEXT.lines().collect();
        let (kernels, arch) = read(&lines);
        assert_eq!(arch.as_deref(), Some("gfx950"));
        let gemm = &kernels["gemm"];
        assert_eq!((gemm.vgprs, gemm.agprs, gemm.sgprs), (238, 0, 34));
        assert_eq!((gemm.lds_bytes, gemm.scratch_bytes), (131_072, 16));
        assert_eq!((gemm.vgpr_spills, gemm.sgpr_spills), (2, 1));
        assert_eq!((gemm.max_threads, gemm.kernarg_bytes), (512, 12));
        assert_eq!(gemm.arguments.len(), 2);
        assert_eq!(gemm.arguments[1].kind, "by_value");
        assert_eq!((gemm.arguments[1].offset, gemm.arguments[1].size), (8, 4));
        assert_eq!(kernels["other"].vgprs, 7);
        assert_eq!(kernels["other"].arguments, []);
        assert_eq!(kernels.len(), 2);
    }
}
