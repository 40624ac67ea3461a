//! What each diagnostic means, for `tilewright explain` and the list in the specification of the
//! language. Codes of the front end stand with it ([`tilewright_frontend::codes`]).

use tilewright_frontend::{advice, codes};

/// A diagnostic's name with what it means and what helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Explanation {
    pub code: &'static str,
    pub meaning: &'static str,
    /// Empty where the message itself says all.
    pub help: &'static str,
}

/// Codes that belong together.
#[derive(Clone, Debug)]
pub struct Section {
    pub title: &'static str,
    pub codes: Vec<Explanation>,
}

/// The explanation of a code.
pub fn explain(code: &str) -> Option<Explanation> {
    all().find(|e| e.code == code)
}

/// Every code, once.
pub fn all() -> impl Iterator<Item = Explanation> {
    sections().into_iter().flat_map(|s| s.codes)
}

/// All codes by what they are about; those of the front end first.
pub fn sections() -> Vec<Section> {
    let own = codes::ALL.iter().map(|(code, meaning)| Explanation {
        code: code.0,
        meaning: meaning.trim(),
        help: advice(*code).unwrap_or(""),
    });
    let mut sections = vec![Section {
        title: "Kernel files",
        codes: own.collect(),
    }];
    for (title, rows) in TABLE {
        let row = |&(code, meaning, help): &Row| Explanation {
            code,
            meaning,
            help,
        };
        sections.push(Section {
            title,
            codes: rows.iter().map(row).collect(),
        });
    }
    sections
}

/// Code, meaning, what helps.
type Row = (&'static str, &'static str, &'static str);

const TABLE: &[(&str, &[Row])] = &[
    ("Lowering", LOWERING),
    ("Pipelines and schedules", SCHEDULES),
    ("Hazards", HAZARDS),
    ("Running", RUNNING),
    ("The simulator", SIMULATOR),
    ("Files, toolchains and devices", OUTSIDE),
    ("The text form", TEXT),
    ("The verifier of IR", VERIFIER),
];

const LOWERING: &[Row] = &[
    (
        "not-on-target",
        "The target has nothing that does this.",
        "lower for a target that has it, or write it another way",
    ),
    (
        "no-matrix-path",
        "No matrix instruction that is generated for the target does this product.",
        "use types and sizes that the message lists",
    ),
    (
        "product-by-threads",
        "No matrix instruction takes the types of a product; the threads compute it.",
        "use types that `T.copy` converts to and an instruction takes, where speed counts",
    ),
    (
        "gemm-policy",
        "The policy of a product does not divide it; its warps lie otherwise.",
        "values are the same; `T.GemmWarpPolicy.Square` leaves it to the compiler",
    ),
    (
        "idle-threads",
        "Threads of the block make no whole warp and have no part in a product.",
        "launch a multiple of the warp's threads",
    ),
    (
        "layout-conflict",
        "Two uses of a fragment ask for different layouts, and one of them was annotated.",
        "leave the annotation out, or go through another fragment",
    ),
    (
        "bad-layout",
        "An annotated layout is no map of its buffer.",
        "map every element to one place, inside the shape",
    ),
    (
        "fragment-in-shared",
        "A fragment lies in shared memory, for its uses agree on no layout of registers.",
        "index it by the indices of a parallel loop, or copy parts of it through other fragments; `--explain decisions` says what each fragment became",
    ),
    (
        "shared-memory-limit",
        "The block needs more shared memory than the target has.",
        "use smaller tiles, fewer stages, or a type of fewer bits",
    ),
    (
        "register-limit",
        "A thread needs more registers than there are.",
        "use smaller fragments or more threads",
    ),
    (
        "not-vectorized",
        "A `T.vectorized` loop makes no vector accesses, for the reason given.",
        "make the accesses consecutive and aligned, or use `T.serial`",
    ),
    (
        "bulk-copy",
        "A copy that the bulk copy engine cannot do.",
        "the message names the rule; `T.copy` has none of them",
    ),
    (
        "cluster-size",
        "Some GPUs of the target cannot start clusters of so many blocks.",
        "use at most eight blocks a cluster",
    ),
    (
        "unread-product",
        "Nobody reads the sum of a product.",
        "copy the sum to a tensor, or leave the product out",
    ),
    (
        "split-k",
        "A remark: whether several blocks sum up one tile.",
        "",
    ),
    (
        "prefetch",
        "A remark: whether blocks fetch ahead what later blocks read.",
        "",
    ),
    ("keep", "A remark: which tiles are not loaded again.", ""),
    (
        "stores",
        "A remark: how results of products leave the registers.",
        "",
    ),
    (
        "l2-hit-ratio",
        "A share of the L2 cache that cannot be given.",
        "give ratios between 0 and 1, of parameters",
    ),
    (
        "not-lowered",
        "An operation that has no lowering here, or IR of another level.",
        "lower it with the passes of the target first",
    ),
    (
        "codegen-not-device-ir",
        "Source is made of device IR.",
        "lower it first",
    ),
    (
        "codegen-unsupported",
        "The generator has no source for this.",
        "write it another way",
    ),
    (
        "broken-ir",
        "A pass made IR that the verifier refuses: a mistake of the compiler.",
        "report it with the kernel",
    ),
    (
        "no-such-pass",
        "No pass has this name.",
        "`tilewright passes` lists them",
    ),
];

const SCHEDULES: &[Row] = &[
    (
        "schedule",
        "A remark: which schedule a pipelined loop has, what it was chosen over, and what its waits are for.",
        "",
    ),
    (
        "order",
        "A remark: the order of a pipelined loop, as `--emit schedule` prints it.",
        "",
    ),
    (
        "schedule-text",
        "The text of an order is not one.",
        "`docs/schedules.md` has the language; `--emit schedule` prints orders to start from",
    ),
    (
        "unknown-schedule",
        "No schedule has this name.",
        "leave `schedule` out, or take one that the message lists",
    ),
    (
        "schedule-refused",
        "The schedule that was asked for does not fit the loop.",
        "leave it out; `--explain schedule` says what fits",
    ),
    (
        "not-pipelined",
        "A loop runs its iterations one after another, for the reason given.",
        "values are the same; change what the reason names",
    ),
    (
        "fewer-stages",
        "Shared memory has no room for the versions of all stages; the loop has fewer.",
        "use smaller tiles, or ask for fewer stages",
    ),
    (
        "through-registers",
        "Copies of a pipelined loop go through registers, for the reason given.",
        "values are the same; align rows and types of both sides",
    ),
    (
        "sync-derived",
        "`sync` of a pipelined loop is ignored: waits are derived.",
        "leave it out",
    ),
    (
        "pipeline-order",
        "`order` and `stage` of a pipelined loop cannot be followed.",
        "give each statement one place, after what it reads",
    ),
    (
        "pipeline-read-before-write",
        "A pipelined loop reads what an earlier iteration writes later than the order has it.",
        "leave `order` and `stage` out",
    ),
    (
        "named-barriers",
        "The kernel needs more barriers for groups of warps than the machine has.",
        "use fewer warp groups with exchanges of their own",
    ),
    (
        "divergent-hazard",
        "Threads hand data to each other where no barrier can stand.",
        "move the exchange out of the condition or loop",
    ),
];

const HAZARDS: &[Row] = &[
    (
        "hazard-raw",
        "A read may come before the write that it needs.",
        "put what the message names between the two",
    ),
    (
        "hazard-war",
        "A write may come before the read of what it overwrites.",
        "put what the message names between the two",
    ),
    (
        "hazard-waw",
        "Two writes of one place in no order.",
        "put what the message names between the two",
    ),
    (
        "hazard-overwritten",
        "What is read was replaced by a write to another buffer in the same place.",
        "the places of shared buffers must not overlap while both live",
    ),
    (
        "hazard-register",
        "A register is used while a load into it, or a product of it, is under way.",
        "wait for the counter before",
    ),
    (
        "hazard-fence",
        "Copy engine or matrix unit may not see what threads wrote: no fence hands it over.",
        "put a fence before the barrier",
    ),
    (
        "hazard-divergent-barrier",
        "A barrier that not all threads come to.",
        "move it to where all of them come",
    ),
    (
        "hazard-phase",
        "Arrivals, bytes or waits of an arrival barrier may be taken for those of another phase.",
        "who arrives for a phase must know that the one before is over",
    ),
    (
        "hazard-end",
        "The kernel may end before a bulk store has read its tile.",
        "close its group and wait for it",
    ),
    (
        "hazard-deadlock",
        "Warps wait for each other for ever.",
        "count arrivals and phases of the barriers",
    ),
    (
        "hazard-unwritten-version",
        "A version of a buffer is read that nothing has written.",
        "the prologue of the loop has to write it",
    ),
    (
        "hazard-other-iteration",
        "What is read was written for another iteration of the pipelined loop.",
        "compare versions and distances",
    ),
    (
        "hazard-unproved",
        "The checker could not decide; nothing wrong was found.",
        "`verify --all` runs the kernel in more orders",
    ),
];

const RUNNING: &[Row] = &[
    ("arg-missing", "A parameter has no argument.", "give one"),
    (
        "arg-unknown",
        "An argument names no parameter.",
        "check its name",
    ),
    ("arg-name", "Two parameters have one name.", "rename one"),
    (
        "arg-kind",
        "A tensor is given for a scalar, or the other way round.",
        "give what the parameter is",
    ),
    (
        "arg-dtype",
        "An argument is of another type, or the type cannot hold it.",
        "convert it",
    ),
    (
        "arg-rank",
        "A tensor has another number of dimensions.",
        "reshape it",
    ),
    (
        "arg-shape",
        "A tensor has another shape.",
        "give one of the parameter's shape",
    ),
    (
        "arg-strides",
        "A tensor has other strides.",
        "give one whose elements lie as the parameter says",
    ),
    (
        "symbol-unbound",
        "A run-time size has no value.",
        "give it with `--set`, or pass a tensor whose shape has it",
    ),
    (
        "symbol-conflict",
        "Two arguments give one run-time size different values.",
        "make their shapes agree",
    ),
    (
        "tensor-size",
        "A tensor is too large to be made.",
        "choose smaller sizes",
    ),
    (
        "out-of-memory",
        "This machine has no memory for the tensors.",
        "choose smaller sizes",
    ),
    (
        "launch-extent",
        "A grid extent is not positive, or a cluster does not divide it, for these sizes.",
        "choose other sizes",
    ),
    (
        "not-tile-ir",
        "The reference evaluator runs tile IR.",
        "run lowered IR with `--on sim`",
    ),
    (
        "invalid-ir",
        "IR that the verifier would refuse.",
        "verify it first",
    ),
    (
        "expr-depth",
        "An expression is nested past the limit.",
        "name parts of it",
    ),
    (
        "unsupported",
        "An executor has nothing for this.",
        "run it with another one",
    ),
    (
        "foreign-code",
        "Code of the target's language, which only a GPU can run.",
        "run it with `--on gpu`",
    ),
    (
        "uninitialised-read",
        "Memory is read that nothing wrote.",
        "write it first",
    ),
    (
        "data-race",
        "Points of a parallel loop, or threads, touch one element in no order, and one writes it.",
        "use a reduction, a reducer or an atomic, or split the loop",
    ),
    (
        "race-blocks",
        "One block writes an element that another one touches.",
        "update it atomically, or use a second kernel",
    ),
    (
        "divergent-barrier",
        "Only some threads come to a barrier.",
        "move it to where all of them come",
    ),
    (
        "thread-in-parallel",
        "A thread's index is used in a parallel loop, whose points are no threads.",
        "use the loop's own indices",
    ),
    (
        "not-uniform",
        "Threads disagree about what they have to do together.",
        "decide it by values that all threads share",
    ),
    (
        "deadlock",
        "All that have not ended wait for something that no one will do.",
        "count arrivals, phases and waits",
    ),
    ("assertion-failed", "An `assert` does not hold.", ""),
    (
        "assumption-failed",
        "A `T.assume` does not hold: what the compiler made of it is wrong.",
        "leave it out, or make it true",
    ),
    (
        "division-by-zero",
        "A division by zero.",
        "guard it with a condition",
    ),
    (
        "shift-amount",
        "A shift by a negative amount, or past the width.",
        "keep it inside `[0, bits)`",
    ),
    (
        "loop-step",
        "A loop whose step is zero.",
        "step by one or more",
    ),
    (
        "unequal-extents",
        "Two sides of a tile operation have different extents in this run.",
        "make them agree for all sizes",
    ),
    (
        "sparse-metadata",
        "Metadata of a sparse factor whose places do not rise.",
        "give each group of four two places, the second above the first; of float32, 4 or 14",
    ),
    (
        "barrier-count",
        "Arrivals of a barrier that do not match its count.",
        "count the threads that arrive",
    ),
    (
        "reducer-state",
        "A reducer is contributed to or folded in the wrong order.",
        "open it, contribute, fold it",
    ),
    (
        "step-limit",
        "The kernel ran longer than allowed.",
        "does a loop never end? `--max-steps` allows for longer ones",
    ),
    (
        "wrong-result",
        "A result is not the reference evaluator's.",
        "a mistake of the compiler, unless the kernel races; report it with the kernel",
    ),
    (
        "not-as-expected",
        "A tensor is not what the file of `--expect` holds.",
        "`--atol` and `--rtol` say how far it may be off",
    ),
];

const SIMULATOR: &[Row] = &[
    (
        "race-write-write",
        "Two threads write different values to one byte, and nothing orders them.",
        "a barrier between the two; in one statement, elements of its own for each thread",
    ),
    (
        "race-read-write",
        "A thread reads what another one writes, and nothing orders them.",
        "a barrier between the two; in one statement, elements of its own for each thread",
    ),
    (
        "race-in-warp",
        "Two lanes of a warp touch one byte of shared memory, one writes it, and no warp barrier orders them.",
        "`sync_warp` between the two",
    ),
    (
        "lane-conflict",
        "Lanes of one instruction write different values to one byte.",
        "give each lane elements of its own",
    ),
    (
        "not-waited-for",
        "Memory or a register is touched while an asynchronous operation on it is under way.",
        "wait for its counter before",
    ),
    (
        "missing-fence",
        "Copy engine or matrix unit may not see what was written.",
        "a fence behind the write, before the barrier",
    ),
    (
        "misaligned-access",
        "A vector access at an address that is no multiple of its width.",
        "",
    ),
    (
        "lds-destination",
        "Lanes of a copy straight to LDS do not land one after another.",
        "",
    ),
    (
        "barrier-not-reached",
        "Some warps end while others wait at a barrier of the block.",
        "let all of them come to it",
    ),
    (
        "barrier-misuse",
        "Arrivals and counts of a barrier do not match, or it was never initialised.",
        "count the threads that arrive",
    ),
    ("undefined-operation", "An operation without a result.", ""),
    (
        "shared-memory-size",
        "Shared buffers do not fit the memory of a block.",
        "",
    ),
    (
        "buffer-layout",
        "A layout that the simulator cannot follow.",
        "",
    ),
];

const OUTSIDE: &[Row] = &[
    (
        "unreadable-file",
        "A file cannot be read.",
        "check the path",
    ),
    (
        "unwritable-file",
        "A file cannot be written.",
        "check the path, and what is there",
    ),
    (
        "tensor-file",
        "A file of `--in`, `--out` or `--expect` is no array, or not the tensor's.",
        "the message says what is wanted",
    ),
    (
        "internal-error",
        "The compiler itself failed.",
        "report it with the kernel",
    ),
    (
        "usage",
        "A command line that cannot be followed.",
        "`tilewright help COMMAND`",
    ),
    (
        "toolchain",
        "No compiler for the target was found, or it refused the source.",
        "`tilewright doctor` says what was looked for",
    ),
    (
        "device",
        "No GPU was found, or it failed.",
        "`tilewright doctor` says what was found",
    ),
    (
        "gpu-worker",
        "The process that ran the kernel on the GPU did not end well.",
        "run it with `--on sim` to look for out-of-bounds accesses and races",
    ),
    (
        "tune-nothing",
        "No configuration of a kernel can be used.",
        "the table above says why each failed",
    ),
    (
        "tune-model",
        "The cycle model does not know the target.",
        "tune for gfx942 or gfx950, or by another measure (`--on`)",
    ),
    ("tune", "The tuner lost what it measured on.", ""),
    (
        "kernel-cache",
        "The cache of compiled kernels cannot be used.",
        "check the folder that the message names",
    ),
    (
        "kernel-arguments",
        "Arguments for a kernel of an assembly file that do not fit it.",
        "give one `--arg` for each that the message lists",
    ),
    (
        "assembly",
        "An assembly file that cannot be read or run.",
        "",
    ),
    (
        "compiled-code",
        "Compiled code that may compute something else than the kernel.",
        "report it with the kernel",
    ),
    (
        "audit",
        "Compiled code could not be compared with what it was made from.",
        "report it with the kernel",
    ),
    ("emulator", "Compiled code could not be emulated.", ""),
    (
        "cycles",
        "The model of a compute unit could not time the code.",
        "",
    ),
    (
        "jit-bad-entry",
        "A kernel of the cache is not what it should be.",
        "`tilewright cache clear` empties it",
    ),
    (
        "jit-half-lowered",
        "Kernels are built from tile or device IR, and this is neither.",
        "run the rest of the passes",
    ),
    (
        "launch-tensor-map",
        "The copy engine cannot be told about a tensor of this call.",
        "align its address to 16 bytes, and its rows",
    ),
];

const TEXT: &[Row] = &[
    (
        "text-syntax",
        "The text is no IR: something else is meant here.",
        "",
    ),
    (
        "text-character",
        "A character that the text form does not have.",
        "",
    ),
    ("text-word", "A word is meant here.", ""),
    (
        "text-number",
        "A number that its type cannot hold, or no number.",
        "",
    ),
    ("text-string", "A string that is not closed.", ""),
    ("text-type", "No type has this name.", ""),
    ("text-size", "The text is longer than the limit.", ""),
    ("text-depth", "The text is nested past the limit.", ""),
    ("text-duplicate", "A name is declared twice.", ""),
    ("text-func-count", "A file holds one function.", ""),
    (
        "text-unknown-name",
        "No variable or buffer has this name here.",
        "",
    ),
    (
        "text-name-kind",
        "A variable is meant and a buffer given, or the other way round.",
        "",
    ),
    ("text-unknown-op", "No operation has this name.", ""),
    ("text-unknown-function", "No function has this name.", ""),
    (
        "text-unknown-attr",
        "The operation has no such attribute.",
        "",
    ),
    ("text-arity", "Another number of operands is meant.", ""),
    (
        "text-instruction",
        "No machine instruction has this name.",
        "",
    ),
    ("text-layout", "A layout that cannot be read.", ""),
    (
        "text-shared-place",
        "A place in shared memory that cannot be read.",
        "",
    ),
];

const VERIFIER: &[Row] = &[
    (
        "allreduce-types",
        "Types that a reduction over threads does not have.",
        "",
    ),
    (
        "atomic-order",
        "A memory order that the atomic operation does not have.",
        "",
    ),
    (
        "atomic-scope",
        "An atomic operation on memory that has none.",
        "",
    ),
    (
        "atomic-types",
        "Types that the atomic operation does not have.",
        "",
    ),
    ("barrier-as-data", "A barrier is used as data.", ""),
    (
        "barrier-named",
        "A named barrier that the machine does not have.",
        "",
    ),
    ("barrier-operand", "The operand is no barrier.", ""),
    ("block-depth", "Blocks are nested past the limit.", ""),
    ("break-outside", "`break` or `continue` outside a loop.", ""),
    ("break-parallel", "`break` in a parallel loop.", ""),
    (
        "buffer-origin",
        "A buffer whose storage does not fit its scope.",
        "",
    ),
    (
        "buffer-shape",
        "Extents of a buffer that are not positive, or not known.",
        "",
    ),
    ("buffer-twice", "A buffer is allocated twice.", ""),
    ("cast-types", "No conversion between these types.", ""),
    (
        "commit-counter",
        "A counter that has no groups to close.",
        "",
    ),
    ("condition-type", "A condition is a bool.", ""),
    (
        "constant-range",
        "A constant that its type cannot hold.",
        "",
    ),
    (
        "copy-async",
        "An asynchronous copy goes from global to shared memory.",
        "",
    ),
    ("copy-tma", "A bulk copy in a form that does not exist.", ""),
    ("copy-types", "Types that the copy does not convert.", ""),
    (
        "dangling-id",
        "A variable or buffer that is not visible here.",
        "",
    ),
    (
        "dp4a-types",
        "Types that a sum of four products does not have.",
        "",
    ),
    ("dtype-lanes", "A number of lanes that no type has.", ""),
    (
        "expr-type",
        "An expression of another type than its operands give.",
        "",
    ),
    ("fill-scope", "A fill of memory that cannot be filled.", ""),
    ("fill-type", "The value of a fill is of another type.", ""),
    (
        "fragment-access",
        "An element of a fragment outside a parallel loop.",
        "",
    ),
    (
        "gemm-barrier",
        "A product that arrives at no barrier names one.",
        "",
    ),
    ("gemm-clear", "`clear` of a product is a bool.", ""),
    (
        "gemm-k-pack",
        "A packing of a product that is neither 1 nor 2.",
        "",
    ),
    (
        "gemm-plan",
        "A plan of a product for other threads than there are.",
        "",
    ),
    (
        "gemm-scales",
        "Scales that do not fit the factors of a product.",
        "",
    ),
    (
        "gemm-sparse",
        "Metadata that is none of a sparse factor.",
        "",
    ),
    ("gemm-types", "Types that have no product.", ""),
    (
        "multicast",
        "A copy for blocks that the cluster does not have.",
        "",
    ),
    (
        "im2col-operands",
        "Operands of im2col that do not fit each other.",
        "",
    ),
    ("index-bounds", "An index outside its dimension.", ""),
    (
        "iteration-type",
        "The number of an iteration is an integer.",
        "",
    ),
    ("kernel-grid", "Grid extents that cannot be.", ""),
    ("kernel-threads", "Threads of a block that cannot be.", ""),
    (
        "layout-rank",
        "A layout of another number of dimensions.",
        "",
    ),
    (
        "layout-scope",
        "A layout that memory of this scope does not have.",
        "",
    ),
    ("layout-shape", "A layout of another shape.", ""),
    (
        "layout-undecided",
        "A layout that inference has to decide first.",
        "",
    ),
    (
        "let-type",
        "A name is bound to a value of another type.",
        "",
    ),
    ("level", "An operation of another level of the IR.", ""),
    (
        "local-parallel-index",
        "A thread's own array is indexed by a point of a parallel loop.",
        "",
    ),
    ("loop-axes", "A loop of this kind has one axis.", ""),
    ("loop-range", "A range of a loop that cannot be.", ""),
    (
        "math-arity",
        "The function takes another number of arguments.",
        "",
    ),
    (
        "micro-bulk",
        "A bulk copy of a tile that the copy engine does not have.",
        "",
    ),
    (
        "micro-count",
        "A machine instruction with another number of elements.",
        "",
    ),
    (
        "micro-otherwise",
        "What a load writes instead is of another type, or not a load.",
        "",
    ),
    (
        "micro-scope",
        "A machine instruction between memories that it does not connect.",
        "",
    ),
    ("micro-slot", "A version that the buffer does not have.", ""),
    (
        "parallel-fragment-extent",
        "A parallel loop over a fragment has a run-time extent.",
        "",
    ),
    (
        "parallel-nesting",
        "A parallel loop where none can stand.",
        "",
    ),
    ("prints", "Memory for lines that kernels print is none.", ""),
    ("priority-range", "A priority that waves do not have.", ""),
    (
        "reduce-types",
        "Types that the reduction does not have.",
        "",
    ),
    (
        "reducer-epoch",
        "A reducer is contributed to outside its life.",
        "",
    ),
    ("reducer-types", "Types that the reducer does not have.", ""),
    ("region-bounds", "A region outside its buffer.", ""),
    (
        "region-rank",
        "A region of another number of dimensions.",
        "",
    ),
    (
        "result-type",
        "The result of an operation has another type.",
        "",
    ),
    (
        "safe-value",
        "The safe value is of another type, or not constant.",
        "",
    ),
    (
        "scan-dim",
        "A scan along a dimension that is not there.",
        "",
    ),
    ("scan-types", "Types that the scan does not have.", ""),
    (
        "select-condition",
        "The condition of a selection is a bool.",
        "",
    ),
    (
        "shared-place",
        "A place in shared memory that cannot be.",
        "",
    ),
    ("shift-range", "A shift past the width.", ""),
    (
        "shuffle-width",
        "A shuffle of a width that does not divide the warp.",
        "",
    ),
    (
        "store-type",
        "A store of another type than the buffer's.",
        "",
    ),
    (
        "sync-named",
        "A barrier of a number of threads that cannot be.",
        "",
    ),
    (
        "tile-op-divergent",
        "A tile operation that not all threads come to.",
        "",
    ),
    (
        "transpose-scope",
        "A transpose of memory that is not shared.",
        "",
    ),
    (
        "transpose-shape",
        "Two matrices of which none is the transpose of the other.",
        "",
    ),
    (
        "turn-missing",
        "A statement of a planned loop has no turn.",
        "",
    ),
    (
        "turn-open",
        "Below tile level a turn has a stage and an order.",
        "",
    ),
    ("turn-place", "A turn outside a planned loop.", ""),
    ("var-kind", "A variable of another kind is meant.", ""),
    (
        "var-scope",
        "A variable is used outside the block that binds it.",
        "",
    ),
    ("var-twice", "A variable is bound twice.", ""),
    ("vec-add", "A vector addition that no machine has.", ""),
    (
        "vector-lanes",
        "Lanes of a vector that do not fit the operation.",
        "",
    ),
    ("view-bits", "A view of another number of bits.", ""),
    (
        "view-scope",
        "A view in another scope than its storage.",
        "",
    ),
    ("vote-type", "A vote is about a bool.", ""),
    (
        "wait-range",
        "A wait for a number that the counter does not have.",
        "",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::all;

    #[test]
    fn every_code_is_there_once() {
        let mut seen = BTreeSet::new();
        for e in all() {
            assert!(seen.insert(e.code), "{} stands twice", e.code);
            assert!(e.meaning.ends_with('.'), "{}", e.code);
        }
    }
}
