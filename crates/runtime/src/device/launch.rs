//! Launching a kernel with checked arguments.
//!
//! The path of a launch that succeeds allocates nothing: the arguments are checked in place and
//! copied to the stack, where the driver reads them.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use super::error::{Argument, DeviceError, LaunchError, Problem};
use super::info::Model;
use super::memory::{Buffer, View};
use super::module::Kernel;
use super::spec::{ParamKind, ScalarType};
use super::stream::Stream;

/// The most arguments a launch can have.
pub const MAX_ARGS: usize = 128;

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block in bytes.
    pub shared: u32,
    /// Blocks of a cluster in x, y, z (Hopper and later).
    pub cluster: Option<[u32; 3]>,
    /// All blocks run at once and may wait for each other.
    pub cooperative: bool,
}

impl Launch {
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            shared: 0,
            cluster: None,
            cooperative: false,
        }
    }

    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    pub fn cluster(mut self, blocks: [u32; 3]) -> Self {
        self.cluster = Some(blocks);
        self
    }
}

/// One argument of a launch.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    Buffer(View<'a>),
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    /// The bits of a half-precision number.
    F16(u16),
    /// The bits of a bfloat16.
    BF16(u16),
    F32(f32),
    F64(f64),
    /// A structure by value.
    Bytes(&'a [u8]),
}

impl Arg<'_> {
    /// A scalar as kernels find it among their arguments; none of other arguments.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let (scalar, bits) = scalar(self)?;
        Some(bits.to_le_bytes()[..scalar.bytes() as usize].to_vec())
    }
}

impl<'a> From<&'a Buffer> for Arg<'a> {
    fn from(buffer: &'a Buffer) -> Self {
        Self::Buffer(buffer.into())
    }
}

impl<'a> From<View<'a>> for Arg<'a> {
    fn from(view: View<'a>) -> Self {
        Self::Buffer(view)
    }
}

impl Kernel {
    /// Queues the kernel on a stream. The arguments are those of the kernel's description, in
    /// order; a wrong one is refused here and nothing runs.
    pub fn launch(
        &self,
        launch: &Launch,
        stream: &Stream,
        args: &[Arg<'_>],
    ) -> Result<(), DeviceError> {
        let context = &self.module.context;
        context
            .same("the stream", stream.context())
            .map_err(|error| match error {
                DeviceError::OtherDevice {
                    expected, found, ..
                } => self.refuse(Problem::StreamDevice { expected, found }),
                other => other,
            })?;
        self.check_shape(launch)?;
        let mut values = [0u64; MAX_ARGS];
        let mut pointers = [std::ptr::null_mut::<c_void>(); MAX_ARGS];
        self.check_args(args, &mut values, &mut pointers)?;
        self.allow_shared(launch.shared)?;
        context.state().recent.push(stream.raw(), &self.label);

        if launch.cluster.is_some() || launch.cooperative {
            // SAFETY: as below.
            return unsafe {
                context.driver.launch_with(
                    context,
                    self.function.0,
                    launch,
                    stream.raw(),
                    pointers.as_mut_ptr(),
                )
            };
        }
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        context.call(context.names.launch, |f| {
            // SAFETY: the function is loaded, and `pointers` has a pointer to a value of the right
            // size for each of its parameters, as `Module::kernel` and `check_args` made sure. The
            // driver copies the values before it returns.
            unsafe {
                (f.launch)(
                    self.function.0,
                    gx,
                    gy,
                    gz,
                    bx,
                    by,
                    bz,
                    launch.shared,
                    stream.raw(),
                    pointers.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            }
        })
    }

    /// Much dynamic shared memory must be asked for, once for each kernel.
    pub(super) fn allow_shared(&self, bytes: u32) -> Result<(), DeviceError> {
        if bytes <= self.allowed_shared.load(Ordering::Relaxed) {
            return Ok(());
        }
        let context = &self.module.context;
        context
            .driver
            .allow_shared(context, self.function.0, bytes)?;
        self.allowed_shared.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn check_shape(&self, launch: &Launch) -> Result<(), DeviceError> {
        let device = &self.module.context.info;
        let Launch { grid, block, .. } = *launch;
        if grid.contains(&0) || block.contains(&0) {
            return Err(self.refuse(Problem::EmptyGrid { grid, block }));
        }
        if grid
            .iter()
            .zip(device.max_grid)
            .any(|(n, limit)| *n > limit)
        {
            let limit = device.max_grid;
            return Err(self.refuse(Problem::GridTooLarge { grid, limit }));
        }
        let threads: u64 = block
            .iter()
            .map(|n| u64::from(*n))
            .fold(1, u64::saturating_mul);
        if threads > u64::from(self.max_threads) || block[2] > device.max_block_z {
            return Err(self.refuse(Problem::BlockTooLarge {
                block,
                threads,
                limit: self.max_threads,
            }));
        }
        let fixed = self.entry.static_shared;
        if u64::from(launch.shared) + u64::from(fixed) > u64::from(device.shared_per_block) {
            return Err(self.refuse(Problem::SharedTooLarge {
                dynamic: launch.shared,
                fixed,
                limit: device.shared_per_block,
            }));
        }
        match launch.cluster {
            Some(cluster) => self.check_cluster(cluster, grid),
            None => Ok(()),
        }
    }

    fn check_cluster(&self, cluster: [u32; 3], grid: [u32; 3]) -> Result<(), DeviceError> {
        let blocks: u64 = cluster
            .iter()
            .map(|n| u64::from(*n))
            .fold(1, u64::saturating_mul);
        let has_clusters = match self.module.context.info.model {
            Model::Nvidia { capability } => capability.0 >= 9,
            Model::Amd { .. } => false,
        };
        let reason = if !has_clusters {
            "this GPU has no clusters; they came with sm_90"
        } else if blocks == 0 || blocks > 16 {
            "it must have 1 to 16 blocks"
        } else if grid.iter().zip(cluster).any(|(n, c)| n % c != 0) {
            "the grid is not a multiple of it"
        } else {
            return Ok(());
        };
        Err(self.refuse(Problem::Cluster { cluster, reason }))
    }

    /// Checks each argument and puts a pointer to its value where the driver will read it.
    fn check_args(
        &self,
        args: &[Arg<'_>],
        values: &mut [u64; MAX_ARGS],
        pointers: &mut [*mut c_void; MAX_ARGS],
    ) -> Result<(), DeviceError> {
        let params = &self.spec.params;
        if args.len() != params.len() || args.len() > MAX_ARGS {
            return Err(self.refuse(Problem::ArgumentCount {
                expected: params.len().min(MAX_ARGS),
                got: args.len(),
            }));
        }
        for (index, (arg, param)) in args.iter().zip(params).enumerate() {
            match (&param.kind, arg) {
                (
                    ParamKind::Pointer {
                        dtype,
                        align,
                        min_bytes,
                    },
                    Arg::Buffer(view),
                ) => {
                    self.check_buffer(index, view, dtype.as_deref(), *align, *min_bytes)?;
                    values[index] = view.address();
                    pointers[index] = (&raw mut values[index]).cast();
                }
                (ParamKind::Bytes { size }, Arg::Bytes(bytes)) => {
                    if bytes.len() != *size as usize {
                        return Err(self.refuse(Problem::ByteCount {
                            argument: self.argument(index),
                            expected: *size,
                            got: bytes.len(),
                        }));
                    }
                    // The driver only reads through these pointers.
                    pointers[index] = bytes.as_ptr().cast_mut().cast();
                }
                (ParamKind::Scalar(wanted), arg)
                    if scalar(arg).is_some_and(|(t, _)| t == *wanted) =>
                {
                    values[index] = scalar(arg).map_or(0, |(_, bits)| bits);
                    pointers[index] = (&raw mut values[index]).cast();
                }
                (expected, arg) => {
                    return Err(self.refuse(Problem::Kind {
                        argument: self.argument(index),
                        expected: expected.clone(),
                        got: describe(arg),
                    }));
                }
            }
        }
        Ok(())
    }

    fn check_buffer(
        &self,
        index: usize,
        view: &View<'_>,
        dtype: Option<&str>,
        align: u32,
        min_bytes: u64,
    ) -> Result<(), DeviceError> {
        let context = &self.module.context;
        context
            .same("the argument", view.buffer.context())
            .map_err(|error| match error {
                DeviceError::OtherDevice {
                    expected, found, ..
                } => self.refuse(Problem::OtherDevice {
                    argument: self.argument(index),
                    expected,
                    found,
                }),
                other => other,
            })?;
        let problem = if let (Some(expected), Some(got)) = (dtype, view.dtype)
            && expected != got
        {
            Problem::Dtype {
                argument: self.argument(index),
                expected: expected.to_owned(),
                got: got.to_owned(),
            }
        } else if (view.bytes() as u64) < min_bytes {
            Problem::TooSmall {
                argument: self.argument(index),
                needed: min_bytes,
                got: view.bytes() as u64,
            }
        } else if align > 1 && !view.address().is_multiple_of(u64::from(align)) {
            Problem::Misaligned {
                argument: self.argument(index),
                align,
                address: view.address(),
            }
        } else {
            return Ok(());
        };
        Err(self.refuse(problem))
    }

    fn argument(&self, index: usize) -> Argument {
        let name = self.spec.params.get(index).map(|param| param.name.clone());
        Argument {
            index,
            name: name.unwrap_or_default(),
        }
    }

    fn refuse(&self, problem: Problem) -> DeviceError {
        DeviceError::Launch(LaunchError {
            kernel: self.entry.name.clone(),
            problem,
        })
    }
}

/// The type and the bits of a scalar. The GPU is little endian, so the low bytes come first, as
/// the driver reads them.
fn scalar(arg: &Arg<'_>) -> Option<(ScalarType, u64)> {
    Some(match *arg {
        Arg::Bool(value) => (ScalarType::Bool, u64::from(value)),
        Arg::I8(value) => (ScalarType::I8, u64::from(value as u8)),
        Arg::I16(value) => (ScalarType::I16, u64::from(value as u16)),
        Arg::I32(value) => (ScalarType::I32, u64::from(value as u32)),
        Arg::I64(value) => (ScalarType::I64, value as u64),
        Arg::U8(value) => (ScalarType::U8, u64::from(value)),
        Arg::U16(value) => (ScalarType::U16, u64::from(value)),
        Arg::U32(value) => (ScalarType::U32, u64::from(value)),
        Arg::U64(value) => (ScalarType::U64, value),
        Arg::F16(bits) => (ScalarType::F16, u64::from(bits)),
        Arg::BF16(bits) => (ScalarType::BF16, u64::from(bits)),
        Arg::F32(value) => (ScalarType::F32, u64::from(value.to_bits())),
        Arg::F64(value) => (ScalarType::F64, value.to_bits()),
        Arg::Buffer(_) | Arg::Bytes(_) => return None,
    })
}

fn describe(arg: &Arg<'_>) -> String {
    match (arg, scalar(arg)) {
        (_, Some((scalar, _))) => scalar.to_string(),
        (Arg::Bytes(bytes), _) => format!("{} bytes by value", bytes.len()),
        (
            Arg::Buffer(View {
                dtype: Some(dtype), ..
            }),
            _,
        ) => format!("a buffer of {dtype}"),
        _ => "a buffer".to_owned(),
    }
}
