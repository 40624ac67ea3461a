//! The names of the front end's diagnostics, one line each. A name never changes its meaning.

use tilewright_ir::Code;

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal;)*) => {
        $($(#[doc = $doc])* pub const $name: Code = Code($text);)*

        /// Every code with its one-line meaning, in the order of declaration.
        pub const ALL: &[(Code, &str)] = &[$(($name, concat!($($doc),*)),)*];
    };
}

codes! {
    // Files and syntax.
    /// The file's bytes are not UTF-8.
    NOT_UTF8 = "not-utf8";
    /// The file holds nothing but white space.
    EMPTY_FILE = "empty-file";
    /// The file is longer than the limit.
    FILE_TOO_LARGE = "file-too-large";
    /// Brackets, blocks or operators are nested past the limit.
    NESTED_TOO_DEEP = "nested-too-deep";
    /// The text is not Python.
    SYNTAX = "syntax";
    /// Python that has no meaning in a kernel file was reached.
    UNSUPPORTED_SYNTAX = "unsupported-syntax";

    // Python at compile time.
    /// A name is not defined.
    UNKNOWN_NAME = "unknown-name";
    /// A name was bound inside a run-time branch, loop or kernel that has ended.
    NAME_OUT_OF_REGION = "name-out-of-region";
    /// A module, object or function has no such attribute.
    UNKNOWN_ATTRIBUTE = "unknown-attribute";
    /// The tile language has no such name.
    UNKNOWN_LANGUAGE_NAME = "unknown-language-name";
    /// A value that only exists at run time in Python (torch and the like) was used.
    OPAQUE_VALUE = "opaque-value";
    /// The host has no source text of a function that is to be run here.
    NO_SOURCE = "no-source";
    /// What a kernel asked of a running Python raised an exception there.
    HOST_EXCEPTION = "python-exception";
    /// The user ended the compilation.
    INTERRUPTED = "interrupted";
    /// A call has too few, too many or repeated arguments.
    WRONG_ARITY = "wrong-arity";
    /// A call names a parameter that the function does not have.
    UNKNOWN_KEYWORD = "unknown-keyword";
    /// A value has the wrong type for where it is used.
    WRONG_TYPE = "wrong-type";
    /// A value has the right type and cannot be used all the same.
    WRONG_VALUE = "wrong-value";
    /// Something that is no function was called.
    NOT_CALLABLE = "not-callable";
    /// A Python operation failed: a missing key, a division by zero, a bad format.
    PYTHON_ERROR = "python-error";
    /// A `raise` was reached.
    RAISED = "raised";
    /// An `assert` on a compile-time value failed.
    ASSERTION = "assertion";
    /// A compile-time integer does not fit 127 bits.
    INT_OVERFLOW = "int-overflow";
    /// Compile-time evaluation took more steps, depth or memory than allowed.
    BUDGET = "evaluation-budget";
    /// Python control flow that a kernel cannot express.
    CONTROL_FLOW = "control-flow";

    // Entry points and settings.
    /// The file has no kernel, or not the one asked for.
    NO_KERNEL = "no-kernel";
    /// A parameter or `T.const` dimension has no value.
    MISSING_SETTING = "missing-setting";
    /// A setting names no parameter and no `T.const` dimension.
    UNKNOWN_SETTING = "unknown-setting";
    /// A setting's value cannot be read, or has the wrong type for its parameter.
    BAD_SETTING = "bad-setting";
    /// Parameters took their values from the first configuration of `autotune`.
    FIRST_CONFIG = "first-configuration";
    /// The factory did not return a kernel.
    NOT_A_KERNEL = "not-a-kernel";
    /// A parameter of a kernel has no usable annotation.
    PARAM_ANNOTATION = "parameter-annotation";
    /// `out_idx` is out of range, repeated, or used where it has no meaning.
    OUT_IDX = "out-idx";
    /// A `T.const` is no dimension of a tensor.
    CONST_UNRESOLVED = "const-unresolved";
    /// `T.empty` outputs and the `return` do not agree.
    OUTPUTS = "outputs";
    /// A `T.` function was used where no kernel is being built.
    NO_BUILDER = "no-builder";

    // Kernels.
    /// A statement that needs a kernel stands outside `T.Kernel`.
    OUTSIDE_KERNEL = "outside-kernel";
    /// A kernel inside a kernel, or launch extents that cannot be.
    KERNEL_LAUNCH = "kernel-launch";
    /// An extent, size or count that must be positive is not.
    NON_POSITIVE = "non-positive";
    /// The number of indices is not the number of dimensions.
    INDEX_COUNT = "index-count";
    /// An index is not an integer.
    INDEX_TYPE = "index-type";
    /// An index or slice is certainly outside its dimension.
    OUT_OF_BOUNDS = "out-of-bounds";
    /// A slice that has no meaning: a step, a negative bound.
    BAD_SLICE = "bad-slice";
    /// A buffer is used in a way its scope does not allow.
    BUFFER_SCOPE = "buffer-scope";
    /// Operand types that an operation is not defined on.
    OPERAND_TYPES = "operand-types";
    /// A condition that is neither a Python value nor a run-time bool or integer.
    CONDITION = "condition";
    /// A loop that cannot be: a zero step, a nesting that is not allowed, no loop object.
    BAD_LOOP = "bad-loop";
    /// A store whose value or target does not fit.
    BAD_STORE = "bad-store";
    /// A macro that is called or returns in a way it cannot.
    BAD_MACRO = "bad-macro";
    /// An expression grew past the size limit.
    EXPRESSION_TOO_LARGE = "expression-too-large";
    /// A name bound to a run-time value was bound again; it is no mutable variable.
    REBOUND = "rebound";
    /// A float is stored where only integers fit.
    LOSSY_STORE = "lossy-store";
    /// What Python's `print` said while the kernel was built.
    PYTHON_PRINT = "python-print";
    /// Statements that no execution reaches.
    UNREACHABLE = "unreachable";

    // Tile operations.
    /// A copy whose two sides do not have the same extents.
    COPY_EXTENTS = "copy-extents";
    /// A copy between two elements, which copies one.
    COPY_ONE_ELEMENT = "copy-one-element";
    /// A buffer's shape is not what the operation needs.
    SHAPE = "shape";
    /// An annotation or option has a value that is not allowed.
    BAD_OPTION = "bad-option";
    /// An option for the target's compiler that is not passed on.
    COMPILE_FLAG = "compile-flag";

    // Threads and points.
    /// What all threads do together stands where only some of them come.
    DIVERGENT_COLLECTIVE = "divergent-collective";
    /// Points of a parallel loop update one element without an atomic.
    PARALLEL_ACCUMULATION = "parallel-accumulation";
    /// A fragment is indexed by a parallel loop of run-time extent.
    FRAGMENT_INDEX = "fragment-index";

    // Tile operations in detail.
    /// Source and destination of a copy overlap.
    COPY_OVERLAP = "copy-overlap";
    /// A copy between scopes that it cannot work on.
    COPY_SCOPE = "copy-scope";
    /// A bulk load without a barrier, or a bulk store with one.
    TMA_BARRIER = "tma-barrier";
    /// A descriptor that is not of its tensor, or a copy that it does not do.
    TMA_DESCRIPTOR = "tma-descriptor";
    /// A wish about speed that is not granted; results are the same.
    NO_EFFECT = "no-effect";
    /// An operand of a matrix product is no matrix.
    GEMM_RANK = "gemm-rank";
    /// M, N or K of a matrix product differ between its operands.
    GEMM_SHAPE = "gemm-shape";
    /// Types that have no matrix product.
    GEMM_DTYPE = "gemm-dtype";
    /// An operand of a matrix product is in the wrong memory.
    GEMM_SCOPE = "gemm-scope";
    /// A part of a fragment, or the accumulator itself, is an operand of a matrix product.
    GEMM_REGION = "gemm-region";
    /// `k_pack` is neither 1 nor 2.
    K_PACK = "k-pack";
    /// A reduction or scan along a dimension that is not there.
    REDUCE_DIM = "reduce-dim";
    /// The result of a reduction has another shape.
    REDUCE_SHAPE = "reduce-shape";
    /// A reduction between scopes that it cannot work on.
    REDUCE_SCOPE = "reduce-scope";
    /// A reduction of a type that it is not defined on.
    REDUCE_DTYPE = "reduce-dtype";
    /// A scan of more than two dimensions.
    SCAN_RANK = "scan-rank";
    /// A scan into another shape.
    SCAN_SHAPE = "scan-shape";
    /// A scan of memory that is neither shared nor a fragment.
    SCAN_SCOPE = "scan-scope";
    /// A reducer is opened, contributed to or folded in the wrong order.
    REDUCER_LIFECYCLE = "reducer-lifecycle";
    /// A reducer is used as ordinary memory.
    REDUCER_ACCESS = "reducer-access";
    /// An atomic operation in a form that does not exist.
    ATOMIC_FORM = "atomic-form";
    /// An atomic operation on a type that has none.
    ATOMIC_DTYPE = "atomic-dtype";
    /// A memory order that the operation does not have.
    MEMORY_ORDER = "memory-order";
    /// What blocks of a cluster do, in a kernel without one, or with a block that is not in it.
    CLUSTER = "cluster";
    /// A barrier is meant and something else is given, or it is used where it cannot be.
    BARRIER = "barrier";
    /// A warp group that is not there, or a `T.ws` suite where it cannot stand.
    WARP_GROUP = "warp-group";
    /// A reduction over threads that is not complete.
    ALLREDUCE = "allreduce";
    /// A thread or block axis that the launch does not have.
    THREAD_AXIS = "thread-axis";
    /// A pipeline that cannot be: stages, order.
    PIPELINE = "pipeline";
    /// A layout that does not fit its buffer.
    LAYOUT = "layout";
    /// An order of blocks that does not exist.
    SWIZZLE = "swizzle";
    /// A view of another number of bits.
    VIEW_SIZE = "view-size";
    /// A reinterpretation between types of different width.
    REINTERPRET_WIDTH = "reinterpret-width";
    /// A mathematical function of a type that it is not defined on.
    MATH_ARGUMENT = "math-argument";
    /// The infinity of a type without one.
    NO_INFINITY = "no-infinity";
    /// A name of TileLang that this compiler does not have.
    UNSUPPORTED_LANGUAGE_NAME = "unsupported-language-name";
    /// An option of TileLang that this compiler does not have.
    NOT_SUPPORTED = "not-supported";
}
