//! Tensors of libraries that speak DLPack, read from the capsules that they hand out.
#![expect(unsafe_code, reason = "a capsule holds a pointer to a C structure")]

use std::ffi::{CStr, c_void};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(dlpack_facts, module)?)
}

/// The tensor of the interface, as C has it.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    rank: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// From version 1 on, what stands before the tensor.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    manager: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: Tensor,
}

/// A type's name, the shape, the element strides, the address.
type Facts = (String, Vec<i64>, Vec<i64>, u64);

/// What a capsule says of its tensor. The capsule goes on owning it.
#[pyfunction]
fn dlpack_facts(capsule: &Bound<'_, PyAny>) -> PyResult<Facts> {
    if let Some(pointer) = pointer(capsule, c"dltensor_versioned") {
        // SAFETY: a capsule of this name holds such a structure, which lives as long as it; the
        // first two fields are the same in all versions, and the rest in those of version 1.
        let held = unsafe { &*pointer.cast::<Versioned>() };
        if held.major != 1 {
            let (major, minor) = (held.major, held.minor);
            let text = format!("DLPack {major}.{minor} is not known; version 1 is");
            return Err(PyValueError::new_err(text));
        }
        return facts(&held.tensor);
    }
    match pointer(capsule, c"dltensor") {
        // SAFETY: a capsule of this name holds such a structure first, which lives as long as it.
        Some(pointer) => facts(unsafe { &*pointer.cast::<Tensor>() }),
        None => Err(PyTypeError::new_err(
            "this is no capsule of DLPack, or it was used",
        )),
    }
}

fn pointer(capsule: &Bound<'_, PyAny>, name: &CStr) -> Option<*const c_void> {
    // SAFETY: both are called with Python at hand and a live object; the second only where the
    // first said that the object is a capsule of this name with a pointer.
    unsafe {
        let valid = ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 1;
        valid.then(|| ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()).cast_const())
    }
}

fn facts(tensor: &Tensor) -> PyResult<Facts> {
    let bits = tensor.bits;
    let name = match (tensor.code, bits, tensor.lanes) {
        (0, 8 | 16 | 32 | 64, 1) => format!("int{bits}"),
        (1, 8 | 16 | 32 | 64, 1) => format!("uint{bits}"),
        (2, 16 | 32 | 64, 1) => format!("float{bits}"),
        (4, 16, 1) => "bfloat16".to_owned(),
        (6, 8, 1) => "bool".to_owned(),
        (code, bits, lanes) => {
            let text = format!("the type (code {code}, {bits} bits, {lanes} lanes) is not known");
            return Err(PyTypeError::new_err(text));
        }
    };
    let rank = usize::try_from(tensor.rank).unwrap_or(0);
    let list = |pointer: *const i64| match rank == 0 || pointer.is_null() {
        true => Vec::new(),
        // SAFETY: the interface has as many numbers there as the tensor has dimensions.
        false => unsafe { std::slice::from_raw_parts(pointer, rank) }.to_vec(),
    };
    let shape = list(tensor.shape);
    let mut strides = list(tensor.strides);
    if strides.len() != rank {
        // Compact, in the order of the dimensions.
        let mut step = 1i64;
        strides = vec![0; rank];
        for (stride, size) in strides.iter_mut().zip(&shape).rev() {
            *stride = step;
            step = step.saturating_mul(*size);
        }
    }
    let address = (tensor.data as u64).wrapping_add(tensor.byte_offset);
    Ok((name, shape, strides, address))
}
