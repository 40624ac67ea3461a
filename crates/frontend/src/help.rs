//! What helps against each kind of error, said when the error itself does not say better.

use tilewright_ir::{Code, Diagnostic, Severity};

use crate::codes;

/// Adds the general advice for its code to an error that gives none. A syntax error speaks for
/// itself.
pub(crate) fn complete(error: &mut Diagnostic) {
    if error.severity != Severity::Error || !error.help.is_empty() {
        return;
    }
    error.help.extend(advice(error.code).map(str::to_string));
}

/// What helps against an error of this code, in general.
pub fn advice(code: Code) -> Option<&'static str> {
    let row = TABLE.iter().find(|(c, _)| *c == code);
    row.map(|(_, help)| *help)
}

static TABLE: &[(Code, &str)] = &[
    (codes::NOT_UTF8, "save the file as UTF-8"),
    (
        codes::EMPTY_FILE,
        "write a kernel: a function decorated `@tilelang.jit` or `@T.prim_func`",
    ),
    (
        codes::FILE_TOO_LARGE,
        "keep a kernel and what it needs in a file of its own",
    ),
    (
        codes::NESTED_TOO_DEEP,
        "name a part of it first and use the name",
    ),
    (
        codes::UNSUPPORTED_SYNTAX,
        "a kernel is written with assignments, `if`, `for`, `while`, `with` and calls",
    ),
    (
        codes::UNKNOWN_NAME,
        "define it, import it, or pass it as a parameter of the factory",
    ),
    (
        codes::NAME_OUT_OF_REGION,
        "bind it outside, with `T.alloc_var(dtype)` for what changes at run time",
    ),
    (
        codes::UNKNOWN_ATTRIBUTE,
        "check the spelling, and what kind of value this is",
    ),
    (
        codes::UNKNOWN_LANGUAGE_NAME,
        "the language's names are those of TileLang; docs/language.md lists them",
    ),
    (
        codes::OPAQUE_VALUE,
        "compute it without the module, or pass it as a parameter of the factory",
    ),
    (
        codes::NO_SOURCE,
        "put the function into a file that Python imports",
    ),
    (
        codes::HOST_EXCEPTION,
        "the exception behind it says where: it is this one's `__cause__`",
    ),
    (codes::INTERRUPTED, "start it again"),
    (codes::WRONG_ARITY, "give each parameter one value"),
    (
        codes::UNKNOWN_KEYWORD,
        "leave it out, or check its spelling",
    ),
    (
        codes::WRONG_TYPE,
        "change the value where it comes from, or convert it",
    ),
    (codes::WRONG_VALUE, "change the value where it comes from"),
    (
        codes::NOT_CALLABLE,
        "functions, macros and dtypes can be called; index a buffer with `[...]`",
    ),
    (
        codes::PYTHON_ERROR,
        "the expression is computed at compile time; change its operands",
    ),
    (
        codes::RAISED,
        "change the parameters so that the `raise` is not reached",
    ),
    (
        codes::ASSERTION,
        "change the parameters so that the condition holds",
    ),
    (
        codes::INT_OVERFLOW,
        "use smaller numbers, or compute with floats",
    ),
    (codes::BUDGET, "move the work into the kernel, or bound it"),
    (
        codes::CONTROL_FLOW,
        "use `break` and `continue` inside `for` and `while`, and return at the end",
    ),
    (
        codes::NO_KERNEL,
        "write a function decorated `@tilelang.jit` or `@T.prim_func`",
    ),
    (codes::MISSING_SETTING, "pass it with `--set NAME=VALUE`"),
    (
        codes::UNKNOWN_SETTING,
        "leave it out, or check its spelling",
    ),
    (
        codes::BAD_SETTING,
        "write a Python literal or the name of a dtype",
    ),
    (
        codes::FIRST_CONFIG,
        "find the fastest with `tilewright tune`, or choose with `--set NAME=VALUE`",
    ),
    (
        codes::NOT_A_KERNEL,
        "return the inner function decorated `@T.prim_func`",
    ),
    (
        codes::PARAM_ANNOTATION,
        "annotate it: `A: T.Tensor((M, N), \"float16\")`, or a dtype for a scalar",
    ),
    (
        codes::OUT_IDX,
        "`out_idx` counts the kernel's parameters from 0, or from the end with -1; name each once",
    ),
    (
        codes::CONST_UNRESOLVED,
        "use it by itself as a dimension of an annotated tensor",
    ),
    (
        codes::OUTPUTS,
        "return every `T.empty` tensor, and nothing else",
    ),
    (
        codes::NO_BUILDER,
        "use it in a function decorated `@T.prim_func` or `@tilelang.jit`",
    ),
    (
        codes::OUTSIDE_KERNEL,
        "put it into the suite of `with T.Kernel(...)`",
    ),
    (
        codes::KERNEL_LAUNCH,
        "a function may launch kernels one after another, each with its own suite",
    ),
    (codes::NON_POSITIVE, "sizes and counts start at one"),
    (codes::INDEX_COUNT, "give one index for each dimension"),
    (
        codes::INDEX_TYPE,
        "divide with `//`, or cast with `T.cast(x, \"int32\")`",
    ),
    (
        codes::OUT_OF_BOUNDS,
        "indices end before the extent, slices at it; check the tile sizes",
    ),
    (
        codes::BAD_SLICE,
        "write `start:stop` with bounds from the start of the dimension",
    ),
    (
        codes::BUFFER_SCOPE,
        "copy it with `T.copy` to memory that allows this",
    ),
    (
        codes::OPERAND_TYPES,
        "cast an operand, for example with `T.cast(x, \"float32\")`",
    ),
    (codes::CONDITION, "compare first, for example `x != 0`"),
    (
        codes::BAD_LOOP,
        "a parallel loop goes inside other loops, and holds single elements' work",
    ),
    (
        codes::BAD_STORE,
        "store one value to one element, or use `T.copy` and `T.fill` for more",
    ),
    (
        codes::BAD_MACRO,
        "call it as a statement, and return at its end",
    ),
    (
        codes::EXPRESSION_TOO_LARGE,
        "assign parts of it to names inside the kernel",
    ),
    (
        codes::REBOUND,
        "declare a variable with `T.alloc_var(dtype)`",
    ),
    (
        codes::LOSSY_STORE,
        "write `T.cast(x, dtype)` if that is meant",
    ),
    (codes::UNREACHABLE, "remove the statements"),
    (codes::COPY_EXTENTS, "slice both sides to equal extents"),
    (
        codes::COPY_ONE_ELEMENT,
        "slice a side, or assign the element",
    ),
    (codes::SHAPE, "change the shape where the buffer is made"),
    (codes::BAD_OPTION, "leave the option out"),
    (
        codes::DIVERGENT_COLLECTIVE,
        "move it out of the condition, or into a `with T.ws(...)` suite",
    ),
    (
        codes::PARALLEL_ACCUMULATION,
        "use a reduction, a reducer or an atomic",
    ),
    (codes::FRAGMENT_INDEX, "loop over the fragment's own extent"),
    (codes::COPY_OVERLAP, "copy through another buffer"),
    (codes::COPY_SCOPE, "copy through shared memory"),
    (
        codes::TMA_BARRIER,
        "a bulk load names a barrier, a bulk store none",
    ),
    (
        codes::TMA_DESCRIPTOR,
        "say of the tensor what its parameter says, or use `T.tma_copy`, which needs no descriptor",
    ),
    (
        codes::GEMM_RANK,
        "pass matrices: two dimensions, leading ones of extent one",
    ),
    (
        codes::GEMM_SHAPE,
        "C is (M, N), A is (M, K), B is (K, N), each as its transpose flag says",
    ),
    (
        codes::GEMM_DTYPE,
        "convert an operand with `T.copy` into a buffer of another dtype",
    ),
    (
        codes::GEMM_SCOPE,
        "keep A and B in shared memory and C in a fragment",
    ),
    (codes::GEMM_REGION, "pass whole fragments"),
    (codes::K_PACK, "leave `k_pack` out"),
    (
        codes::REDUCE_DIM,
        "count dimensions from 0, or from the end with -1",
    ),
    (
        codes::REDUCE_SHAPE,
        "the result has the source's shape without the reduced dimension",
    ),
    (
        codes::REDUCE_SCOPE,
        "reduce fragments and shared memory; copy other memory to them first",
    ),
    (
        codes::REDUCE_DTYPE,
        "copy it into a buffer of another dtype first",
    ),
    (codes::SCAN_RANK, "scan one or two dimensions at a time"),
    (codes::SCAN_SHAPE, "source and destination have one shape"),
    (codes::SCAN_SCOPE, "copy the tile to shared memory first"),
    (
        codes::REDUCER_LIFECYCLE,
        "open it, contribute inside `T.Parallel`, fold it, in one block",
    ),
    (
        codes::REDUCER_ACCESS,
        "use `T.reducer_init`, `T.reducer_update` and `T.finalize_reducer`",
    ),
    (
        codes::ATOMIC_FORM,
        "update one element of global or shared memory",
    ),
    (
        codes::ATOMIC_DTYPE,
        "use a 32 or 64 bit integer, or a float of 16 bits or more",
    ),
    (codes::MEMORY_ORDER, "leave `memory_order` out"),
    (
        codes::BARRIER,
        "allocate barriers with `T.alloc_barrier(arrive_count)` and index them",
    ),
    (
        codes::WARP_GROUP,
        "group i of `T.ws` is the threads 128 * i to 128 * i + 127",
    ),
    (
        codes::ALLREDUCE,
        "name each thread axis once, after the destination",
    ),
    (codes::THREAD_AXIS, "use an axis of the launch"),
    (
        codes::PIPELINE,
        "leave the schedule to the compiler: `T.Pipelined(n, num_stages=2)`",
    ),
    (codes::LAYOUT, "map the buffer's indices to integers"),
    (codes::SWIZZLE, "use order=\"row\" or order=\"column\""),
    (codes::VIEW_SIZE, "a view covers the same number of bits"),
    (
        codes::REINTERPRET_WIDTH,
        "use `T.cast` to convert the value",
    ),
    (
        codes::MATH_ARGUMENT,
        "cast it first: `T.cast(x, \"float32\")`",
    ),
    (codes::NO_INFINITY, "use `T.max_value(dtype)`"),
    (
        codes::UNSUPPORTED_LANGUAGE_NAME,
        "docs/language.md says what there is instead",
    ),
    (codes::NOT_SUPPORTED, "leave it out"),
    (
        codes::COMPILE_FLAG,
        "leave it out, or give one that only tunes the code",
    ),
    (codes::NO_EFFECT, "leave it out; results are the same"),
    (codes::PYTHON_PRINT, "`T.print` prints when the kernel runs"),
    (
        codes::CLUSTER,
        "give the launch `cluster_dims=`, and name blocks that the cluster has",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_advice() {
        for (code, _) in codes::ALL {
            let rows = TABLE.iter().filter(|(c, _)| c == code).count();
            let wanted = usize::from(*code != codes::SYNTAX);
            assert_eq!(rows, wanted, "{code}");
        }
    }
}
