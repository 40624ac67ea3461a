//! What other libraries call things that the tile language has, for the help of errors.

/// The modules whose functions of elements the tables speak of.
const LIBRARIES: &[&str] = &["numpy", "torch", "jax", "cupy", "triton", "tl", "math"];

/// Functions under other names, and what to write for them.
static FUNCTIONS: &[(&str, &str)] = &[
    ("relu", "T.max(x, 0)"),
    ("maximum", "T.max(x, y)"),
    ("fmax", "T.max(x, y)"),
    (
        "max",
        "T.max(x, y)` for two values, `T.reduce_max(src, dst, dim)",
    ),
    ("minimum", "T.min(x, y)"),
    ("fmin", "T.min(x, y)"),
    (
        "min",
        "T.min(x, y)` for two values, `T.reduce_min(src, dst, dim)",
    ),
    ("clip", "T.clamp(x, low, high)"),
    ("where", "T.if_then_else(condition, x, y)"),
    ("power", "T.pow(x, n)"),
    ("absolute", "T.abs(x)"),
    ("square", "x * x"),
    ("silu", "x * T.sigmoid(x)"),
    ("arcsin", "T.asin(x)"),
    ("arccos", "T.acos(x)"),
    ("arctan", "T.atan(x)"),
    ("arctan2", "T.atan2(y, x)"),
    ("sum", "T.reduce_sum(src, dst, dim)"),
    ("amax", "T.reduce_max(src, dst, dim)"),
    ("amin", "T.reduce_min(src, dst, dim)"),
    ("cumsum", "T.cumsum(src, dst, dim)"),
    ("matmul", "T.gemm(A, B, C)"),
    ("mm", "T.gemm(A, B, C)"),
    ("bmm", "T.gemm(A, B, C)"),
    ("dot", "T.gemm(A, B, C)"),
    ("zeros", "T.alloc_fragment(shape, dtype)` and `T.clear(x)"),
    (
        "zeros_like",
        "T.alloc_fragment(shape, dtype)` and `T.clear(x)",
    ),
    (
        "full",
        "T.alloc_fragment(shape, dtype)` and `T.fill(x, value)",
    ),
    ("load", "T.copy(src, dst)"),
    ("store", "T.copy(src, dst)"),
    ("program_id", "T.get_block_binding(dim)"),
    ("transpose", "T.transpose(src, dst)"),
];

/// What to write for a function of another library (`numpy.exp`), where there is something.
pub(crate) fn function(path: &str) -> Option<String> {
    let (root, rest) = path.split_once('.')?;
    if !LIBRARIES.contains(&root) {
        return None;
    }
    let name = rest.rsplit('.').next().unwrap_or(rest);
    let other = FUNCTIONS.iter().find(|(n, _)| *n == name);
    let own = || crate::lang::math::is_function(name).then(|| format!("T.{name}(x)"));
    other
        .map(|(_, write)| write.to_string())
        .or_else(own)
        .map(|write| format!("write `{write}`"))
}

/// What to do for an attribute that tensors of other libraries have.
pub(crate) fn attribute(name: &str) -> Option<&'static str> {
    Some(match name {
        "item" | "value" | "numpy" | "tolist" => {
            "leave it out: an indexed element is the value itself"
        }
        "to" | "type" | "float" | "half" | "bfloat16" | "int" | "long" | "bool" => {
            "write `x.astype(dtype)` or `T.cast(x, dtype)` for an element, `T.copy` for a tile"
        }
        "sum" => "write `T.reduce_sum(src, dst, dim)`",
        "max" | "amax" => "write `T.reduce_max(src, dst, dim)`",
        "min" | "amin" => "write `T.reduce_min(src, dst, dim)`",
        "exp" | "log" | "sqrt" | "abs" | "tanh" | "sigmoid" | "relu" | "pow" | "clamp" => {
            "functions of elements are the language's: `T.exp(x)`, `T.max(x, 0)`"
        }
        "T" | "mT" | "transpose" | "permute" | "t" => {
            "swap the indices, or pass `transpose_A=True` or `transpose_B=True` to `T.gemm`"
        }
        "view" | "reshape" | "flatten" => "write `T.reshape(buffer, shape)`",
        "size" | "numel" | "dim" => "write `A.shape[0]`, or the size itself",
        "zero_" | "fill_" => "write `T.clear(A)` or `T.fill(A, value)`",
        "copy_" | "clone" | "copy" => "write `T.copy(src, dst)`",
        _ => return None,
    })
}

/// Languages of kernels that are not this one, by the module of their decorators.
pub(crate) fn language(path: &str) -> Option<&'static str> {
    Some(match path.split('.').next()? {
        "triton" => "Triton",
        "numba" => "Numba",
        "cutlass" => "the CuTe DSL",
        "jax" => "JAX",
        "warp" => "Warp",
        "taichi" => "Taichi",
        _ => return None,
    })
}
