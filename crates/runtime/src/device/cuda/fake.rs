//! A driver made of our own functions, for tests without a GPU.
//!
//! It keeps device memory as host bytes and writes down what it is asked. A test can make the next
//! call fail, or let a launch fault the way a GPU does: every later call of that context fails
//! with the same status, until the primary context is reset. State is per thread, and a test runs
//! on a thread of its own.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};

use super::super::driver::{
    DevicePtr, Functions, RawEvent, RawFunction, RawModule, RawStream, Status,
};
use super::api::*;

#[derive(Debug, Default)]
pub(super) struct State {
    pub devices: c_int,
    pub capability: (c_int, c_int),
    /// Which context the thread has, and how often each device's primary context is held.
    pub current: usize,
    pub retained: [i32; 4],
    pub generation: [usize; 4],
    pub memory: BTreeMap<u64, Vec<u8>>,
    pub next_address: u64,
    pub memory_left: usize,
    pub streams: i32,
    pub events: i32,
    pub modules: i32,
    pub function_attributes: Vec<(c_int, c_int)>,
    pub launches: Vec<Launched>,
    /// Sizes of the parameters of the one kernel there is.
    pub params: Vec<usize>,
    /// The next call of this name fails with this status.
    pub fail: Option<(&'static str, Status)>,
    /// The next launch faults with this status, seen at the next synchronisation.
    pub fault: Option<Status>,
    pub pending: Option<Status>,
    /// The context of the device is dead.
    pub dead: Option<Status>,
    pub unrecoverable: bool,
    pub keep_launches: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Launched {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub cluster: Option<[u32; 3]>,
    pub args: Vec<Vec<u8>>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// A driver with `devices` GPUs of a compute capability.
pub(super) fn driver(devices: c_int, capability: (c_int, c_int)) -> &'static Api {
    with(|state| {
        *state = State {
            devices,
            capability,
            next_address: 0x7000_0000,
            memory_left: 1 << 30,
            keep_launches: true,
            ..State::default()
        };
    });
    Box::leak(Box::new(api()))
}

pub(super) fn with<T>(change: impl FnOnce(&mut State) -> T) -> T {
    STATE.with(|state| change(&mut state.borrow_mut()))
}

/// Counts this thread's allocations while `work` runs.
pub(super) fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

struct Counting;

// SAFETY: all work is the system allocator's; the counter is a plain cell of the thread.
unsafe impl std::alloc::GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        // The counter is gone while a thread ends.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { std::alloc::System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: std::alloc::Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { std::alloc::System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs one call: a planned failure first, then a dead context, then the call itself.
fn call(name: &'static str, in_context: bool, work: impl FnOnce(&mut State) -> Status) -> Status {
    with(|state| {
        if let Some((planned, status)) = state.fail
            && planned == name
        {
            state.fail = None;
            return status;
        }
        if in_context && let Some(status) = state.dead {
            return status;
        }
        if in_context && state.current == 0 {
            return 201; // CUDA_ERROR_INVALID_CONTEXT
        }
        work(state)
    })
}

fn synchronise(state: &mut State) -> Status {
    match state.pending.take() {
        Some(status) => {
            state.dead = Some(status);
            status
        }
        None => 0,
    }
}

fn context_of(state: &State, device: DeviceId) -> usize {
    0x1000 * (device as usize + 1) + state.generation[device as usize]
}

unsafe extern "C" fn init(_: c_uint) -> Status {
    call(
        "cuInit",
        false,
        |state| if state.devices == 0 { 100 } else { 0 },
    )
}
unsafe extern "C" fn version(out: *mut c_int) -> Status {
    // SAFETY: callers of this table pass what the driver asks for; this holds for all below.
    unsafe { *out = 13_000 };
    0
}
unsafe extern "C" fn error_name(status: Status, out: *mut *const c_char) -> Status {
    let name = match status {
        2 => c"CUDA_ERROR_OUT_OF_MEMORY",
        700 => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        _ => return 1,
    };
    // SAFETY: see `version`.
    unsafe { *out = name.as_ptr() };
    0
}
unsafe extern "C" fn error_string(status: Status, out: *mut *const c_char) -> Status {
    if status != 700 {
        return 1;
    }
    // SAFETY: see `version`.
    unsafe { *out = c"an illegal memory access was encountered".as_ptr() };
    0
}
unsafe extern "C" fn device_count(out: *mut c_int) -> Status {
    call("cuDeviceGetCount", false, |state| {
        // SAFETY: see `version`.
        unsafe { *out = state.devices };
        0
    })
}
unsafe extern "C" fn device_get(out: *mut DeviceId, ordinal: c_int) -> Status {
    // SAFETY: see `version`.
    unsafe { *out = ordinal };
    0
}
unsafe extern "C" fn device_name(out: *mut c_char, _: c_int, _: DeviceId) -> Status {
    // SAFETY: see `version`.
    unsafe { std::ptr::copy_nonoverlapping(c"Fake GPU".as_ptr(), out, 9) };
    0
}
unsafe extern "C" fn device_attribute(out: *mut c_int, what: c_int, _: DeviceId) -> Status {
    let value = with(|state| match what {
        attribute::CAPABILITY_MAJOR => state.capability.0,
        attribute::CAPABILITY_MINOR => state.capability.1,
        attribute::MAX_THREADS_PER_BLOCK => 1024,
        attribute::MAX_GRID_X => i32::MAX,
        attribute::MAX_GRID_Y | attribute::MAX_GRID_Z => 65_535,
        attribute::SHARED_PER_BLOCK_OPTIN => 232_448,
        _ => 1,
    });
    // SAFETY: see `version`.
    unsafe { *out = value };
    0
}
unsafe extern "C" fn device_memory(out: *mut usize, _: DeviceId) -> Status {
    // SAFETY: see `version`.
    unsafe { *out = 1 << 30 };
    0
}
unsafe extern "C" fn primary_retain(out: *mut RawContext, device: DeviceId) -> Status {
    call("cuDevicePrimaryCtxRetain", false, |state| {
        state.retained[device as usize] += 1;
        // SAFETY: see `version`.
        unsafe { *out = context_of(state, device) as RawContext };
        0
    })
}
unsafe extern "C" fn primary_release(device: DeviceId) -> Status {
    call("cuDevicePrimaryCtxRelease", false, |state| {
        state.retained[device as usize] -= 1;
        assert!(
            state.retained[device as usize] >= 0,
            "released once too often"
        );
        0
    })
}
unsafe extern "C" fn primary_reset(device: DeviceId) -> Status {
    call("cuDevicePrimaryCtxReset", false, |state| {
        if !state.unrecoverable {
            state.dead = None;
            state.memory.clear();
            (state.streams, state.events, state.modules) = (0, 0, 0);
        }
        state.generation[device as usize] += 1;
        0
    })
}
unsafe extern "C" fn context_get(out: *mut RawContext) -> Status {
    // SAFETY: see `version`.
    with(|state| unsafe { *out = state.current as RawContext });
    0
}
unsafe extern "C" fn context_set(context: RawContext) -> Status {
    with(|state| state.current = context as usize);
    0
}
unsafe extern "C" fn synchronize() -> Status {
    call("cuCtxSynchronize", true, synchronise)
}
unsafe extern "C" fn memory_info(free: *mut usize, total: *mut usize) -> Status {
    call("cuMemGetInfo", true, |state| {
        // SAFETY: see `version`.
        unsafe {
            *free = state.memory_left;
            *total = 1 << 30;
        }
        0
    })
}
unsafe extern "C" fn alloc(out: *mut DevicePtr, bytes: usize) -> Status {
    call("cuMemAlloc", true, |state| {
        if bytes > state.memory_left {
            return 2;
        }
        state.memory_left -= bytes;
        let address = state.next_address;
        state.next_address += (bytes as u64).next_multiple_of(256);
        state.memory.insert(address, vec![0xcd; bytes]);
        // SAFETY: see `version`.
        unsafe { *out = address };
        0
    })
}
unsafe extern "C" fn free(address: DevicePtr) -> Status {
    call("cuMemFree", true, |state| {
        match state.memory.remove(&address) {
            Some(memory) => {
                state.memory_left += memory.len();
                0
            }
            None => panic!("free of memory that is not there"),
        }
    })
}
fn memory(state: &mut State, address: u64, bytes: usize) -> &mut [u8] {
    let (start, block) = state
        .memory
        .range_mut(..=address)
        .next_back()
        .expect("memory");
    let offset = (address - start) as usize;
    &mut block[offset..offset + bytes]
}
unsafe extern "C" fn copy_to_device(
    to: DevicePtr,
    from: *const c_void,
    bytes: usize,
    _: RawStream,
) -> Status {
    call("cuMemcpyHtoD", true, |state| {
        // SAFETY: see `version`.
        let from = unsafe { std::slice::from_raw_parts(from.cast(), bytes) };
        memory(state, to, bytes).copy_from_slice(from);
        0
    })
}
unsafe extern "C" fn copy_to_host(
    to: *mut c_void,
    from: DevicePtr,
    bytes: usize,
    _: RawStream,
) -> Status {
    call("cuMemcpyDtoH", true, |state| {
        // SAFETY: see `version`.
        let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes) };
        to.copy_from_slice(memory(state, from, bytes));
        0
    })
}
unsafe extern "C" fn copy_on_device(
    to: DevicePtr,
    from: DevicePtr,
    bytes: usize,
    _: RawStream,
) -> Status {
    call("cuMemcpyDtoD", true, |state| {
        let data = memory(state, from, bytes).to_vec();
        memory(state, to, bytes).copy_from_slice(&data);
        0
    })
}
unsafe extern "C" fn set_bytes(to: DevicePtr, byte: u8, bytes: usize, _: RawStream) -> Status {
    call("cuMemsetD8", true, |state| {
        memory(state, to, bytes).fill(byte);
        0
    })
}
unsafe extern "C" fn set_words(to: DevicePtr, word: c_uint, count: usize, _: RawStream) -> Status {
    call("cuMemsetD32", true, |state| {
        for chunk in memory(state, to, count * 4).chunks_exact_mut(4) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        0
    })
}
unsafe extern "C" fn stream_create(out: *mut RawStream, _: c_uint) -> Status {
    call("cuStreamCreate", true, |state| {
        state.streams += 1;
        // SAFETY: see `version`.
        unsafe { *out = (0x5000 + state.streams as usize) as RawStream };
        0
    })
}
unsafe extern "C" fn stream_destroy(_: RawStream) -> Status {
    call("cuStreamDestroy", true, |state| {
        state.streams -= 1;
        0
    })
}
unsafe extern "C" fn stream_synchronize(_: RawStream) -> Status {
    call("cuStreamSynchronize", true, synchronise)
}
unsafe extern "C" fn stream_query(_: RawStream) -> Status {
    call("cuStreamQuery", true, synchronise)
}
unsafe extern "C" fn stream_wait(_: RawStream, _: RawEvent, _: c_uint) -> Status {
    call("cuStreamWaitEvent", true, |_| 0)
}
unsafe extern "C" fn event_create(out: *mut RawEvent, _: c_uint) -> Status {
    call("cuEventCreate", true, |state| {
        state.events += 1;
        // SAFETY: see `version`.
        unsafe { *out = (0x6000 + state.events as usize) as RawEvent };
        0
    })
}
unsafe extern "C" fn event_destroy(_: RawEvent) -> Status {
    call("cuEventDestroy", true, |state| {
        state.events -= 1;
        0
    })
}
unsafe extern "C" fn event_record(_: RawEvent, _: RawStream) -> Status {
    call("cuEventRecord", true, |_| 0)
}
unsafe extern "C" fn event_synchronize(_: RawEvent) -> Status {
    call("cuEventSynchronize", true, synchronise)
}
unsafe extern "C" fn event_elapsed(out: *mut f32, _: RawEvent, _: RawEvent) -> Status {
    call("cuEventElapsedTime", true, |_| {
        // SAFETY: see `version`.
        unsafe { *out = 1.5 };
        0
    })
}
unsafe extern "C" fn module_load(out: *mut RawModule, _: *const c_void) -> Status {
    call("cuModuleLoadData", true, |state| {
        state.modules += 1;
        // SAFETY: see `version`.
        unsafe { *out = 0x8000 as RawModule };
        0
    })
}
unsafe extern "C" fn module_unload(_: RawModule) -> Status {
    call("cuModuleUnload", true, |state| {
        state.modules -= 1;
        0
    })
}
unsafe extern "C" fn module_function(
    out: *mut RawFunction,
    _: RawModule,
    _: *const c_char,
) -> Status {
    call("cuModuleGetFunction", true, |_| {
        // SAFETY: see `version`.
        unsafe { *out = 0x9000 as RawFunction };
        0
    })
}
unsafe extern "C" fn function_get(out: *mut c_int, _: c_int, _: RawFunction) -> Status {
    call("cuFuncGetAttribute", true, |_| {
        // SAFETY: see `version`.
        unsafe { *out = 256 };
        0
    })
}
unsafe extern "C" fn function_set(_: RawFunction, what: c_int, value: c_int) -> Status {
    call("cuFuncSetAttribute", true, |state| {
        state.function_attributes.push((what, value));
        0
    })
}
unsafe extern "C" fn occupancy(out: *mut c_int, _: RawFunction, _: c_int, shared: usize) -> Status {
    // SAFETY: see `version`.
    unsafe { *out = if shared > 100_000 { 1 } else { 2 } };
    0
}
fn launched(
    state: &mut State,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    cluster: Option<[u32; 3]>,
    params: *mut *mut c_void,
) -> Status {
    if !state.keep_launches {
        return 0;
    }
    let args = (0..state.params.len()).map(|index| {
        // SAFETY: the launch has a pointer to each parameter's bytes.
        unsafe {
            let pointer = *params.add(index);
            std::slice::from_raw_parts(pointer.cast::<u8>(), state.params[index]).to_vec()
        }
    });
    let args = args.collect();
    state.launches.push(Launched {
        grid,
        block,
        shared,
        cluster,
        args,
    });
    state.pending = state.fault.take();
    0
}
unsafe extern "C" fn launch(
    _: RawFunction,
    gx: c_uint,
    gy: c_uint,
    gz: c_uint,
    bx: c_uint,
    by: c_uint,
    bz: c_uint,
    shared: c_uint,
    _: RawStream,
    params: *mut *mut c_void,
    _: *mut *mut c_void,
) -> Status {
    call("cuLaunchKernel", true, |state| {
        launched(state, [gx, gy, gz], [bx, by, bz], shared, None, params)
    })
}
unsafe extern "C" fn launch_ex(
    config: *const LaunchConfig,
    _: RawFunction,
    params: *mut *mut c_void,
    _: *mut *mut c_void,
) -> Status {
    call("cuLaunchKernelEx", true, |state| {
        // SAFETY: the configuration and its attributes live through the call.
        let (config, attributes) = unsafe {
            let config = &*config;
            let count = config.attribute_count as usize;
            (config, std::slice::from_raw_parts(config.attributes, count))
        };
        let cluster = attributes
            .iter()
            .find(|attribute| attribute.id == LAUNCH_CLUSTER)
            .map(|a| [a.value[0], a.value[1], a.value[2]]);
        launched(
            state,
            config.grid,
            config.block,
            config.shared,
            cluster,
            params,
        )
    })
}
unsafe extern "C" fn tensor_map_encode_tiled(
    map: *mut c_void,
    dtype: c_int,
    rank: c_uint,
    address: *mut c_void,
    _: *const u64,
    _: *const u64,
    _: *const c_uint,
    _: *const c_uint,
    _: c_int,
    swizzle: c_int,
    l2_promotion: c_int,
    _: c_int,
) -> Status {
    call("cuTensorMapEncodeTiled", true, |_| {
        // SAFETY: a map has 128 bytes.
        let map = unsafe { std::slice::from_raw_parts_mut(map.cast::<u8>(), 128) };
        map[0] = dtype as u8;
        map[1] = rank as u8;
        map[2] = swizzle as u8;
        map[3] = l2_promotion as u8;
        map[8..16].copy_from_slice(&(address as u64).to_le_bytes());
        0
    })
}

fn api() -> Api {
    let functions = Functions {
        init,
        version,
        device_count,
        device_name,
        device_attribute,
        device_memory,
        synchronize,
        memory_info,
        alloc,
        free,
        copy_to_device,
        copy_to_host,
        copy_on_device,
        set_bytes,
        set_words,
        stream_create,
        stream_destroy,
        stream_synchronize,
        stream_query,
        stream_wait,
        event_create,
        event_destroy,
        event_record,
        event_synchronize,
        event_elapsed,
        module_load,
        module_unload,
        module_function,
        occupancy,
        launch,
    };
    let own = Own {
        error_name,
        error_string,
        device_get,
        primary_retain,
        primary_release,
        primary_reset,
        context_get,
        context_set,
        function_get,
        function_set,
        launch_ex: Some(launch_ex),
        tensor_map_encode_tiled: Some(tensor_map_encode_tiled),
    };
    Api { functions, own }
}
