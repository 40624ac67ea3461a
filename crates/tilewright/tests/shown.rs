//! What the commands show of the passes: `--dump-passes`, `--print-after`, `--timings`, `--explain`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tilewright::ir::{Code, Diagnostic, Diagnostics, Func, Level, SourceMap, Target, text, verify};
use tilewright::lowering::{self, Until};
use tilewright::passes::Changed;
use tilewright::passes::driver::{Action, Hook, Step};
use tilewright::{frontend, passes};

/// A kernel that every target takes, through shared memory.
const GOOD: &str = "
        s = T.alloc_shared((128,), \"float32\")
        T.copy(A, s)
        for i in T.Parallel(128):
            O[i] = s[127 - i]";

/// A loop that is pipelined.
const PIPELINED: &str = "
        s = T.alloc_shared((32,), \"float32\")
        f = T.alloc_fragment((32,), \"float32\")
        T.clear(f)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[k * 32], s)
            for i in T.Parallel(32):
                f[i] = f[i] + s[31 - i]
        for i in T.Parallel(32):
            O[i] = f[i]";

/// More memory than a block has: `check-resources` refuses it.
const TOO_LARGE: &str = "
        f = T.alloc_fragment((256, 1024), \"float32\")
        T.clear(f)
        for i in T.Parallel(128):
            O[i] = f[0, i]";

/// A wait for arrivals that never come: the hazard checker refuses it.
const HAZARD: &str = "
        s = T.alloc_shared((128,), \"float32\")
        full = T.alloc_barrier([128])
        with T.ws(0):
            T.copy(A, s)
        with T.ws(1):
            T.mbarrier_wait_parity(full[0], 0)
            T.copy(s, O)";

/// A folder of its own with a kernel as `k.py`.
struct Kernel(tempfile::TempDir);

impl Kernel {
    fn new(body: &str) -> Kernel {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("k.py"), source(body)).expect("a file");
        Kernel(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn call(&self, line: &str) -> Said {
        let done = Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .args(line.split_whitespace())
            .current_dir(self.path())
            .env("TILEWRIGHT_CACHE_DIR", "")
            .output()
            .expect("it starts");
        Said::new(done)
    }

    /// The names of the files in a folder, in order.
    fn files(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path().join(folder)).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|e| {
                e.expect("a file")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    fn new(done: Output) -> Said {
        Said {
            code: done.status.code(),
            out: String::from_utf8(done.stdout).expect("text"),
            err: String::from_utf8(done.stderr).expect("text"),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).expect("one JSON object")
    }
}

fn source(body: &str) -> String {
    format!(
        "import tilelang.language as T\n\n\n@T.prim_func\ndef main(\
         A: T.Tensor((128,), \"float32\"), O: T.Tensor((128,), \"float32\")):\n    \
         with T.Kernel(1, threads=256) as bx:{body}\n"
    )
}

fn names(target: Target) -> Vec<&'static str> {
    let pipeline = passes::pipeline(target);
    pipeline.iter().map(|pass| pass.name).collect()
}

/// What a dump is called after the first passes of a target.
fn dumped(target: Target, count: usize) -> Vec<String> {
    let all = ["input"].into_iter().chain(names(target));
    let all = all.enumerate().map(|(n, name)| format!("{n:02}-{name}.tw"));
    all.take(count + 1).collect()
}

#[test]
fn a_dump_has_a_file_for_every_pass() {
    let kernel = Kernel::new(GOOD);
    for target in Target::ALL {
        let dir = format!("out/{target}");
        let said = kernel.call(&format!(
            "compile k.py --target {target} --dump-passes {dir}"
        ));
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(0), ""),
            "{}",
            said.err
        );
        let count = names(target).len();
        let files = kernel.files(&dir);
        assert_eq!(files, dumped(target, count));
        let note = format!("wrote the IR to {} files in {dir}", count + 1);
        assert!(said.err.contains(&note), "{}", said.err);
        for file in &files {
            let text = fs::read_to_string(kernel.path().join(&dir).join(file)).expect("a file");
            let mut sources = SourceMap::new();
            let id = sources.add(file, text.as_str());
            let func = text::parse(&text, id).unwrap_or_else(|d| panic!("{file}: {d:?}"));
            verify::verify(&func).unwrap_or_else(|d| panic!("{file}: {d:?}"));
        }
        // The first is what `--emit tile` prints, the last what `--emit device` does.
        for (file, emit) in [(files.first(), "tile"), (files.last(), "device")] {
            let file = kernel.path().join(&dir).join(file.expect("a file"));
            let said = kernel.call(&format!("compile k.py --target {target} --emit {emit}"));
            assert_eq!(
                fs::read_to_string(file).expect("a file"),
                said.out,
                "{emit}"
            );
        }
    }
}

#[test]
fn a_refused_kernel_is_dumped_as_far_as_it_came() {
    let kernel = Kernel::new(TOO_LARGE);
    let target = Target::Gfx942;
    let said = kernel.call("compile k.py --target gfx942 --emit source --dump-passes d");
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("error[shared-memory-limit]"),
        "{}",
        said.err
    );
    let at = names(target).iter().position(|n| *n == "check-resources");
    let before = at.expect("the pass");
    assert_eq!(kernel.files("d"), dumped(target, before));
    let note = format!("wrote the IR to {} files in d", before + 1);
    assert!(said.err.contains(&note), "{}", said.err);
}

#[test]
fn a_kernel_with_a_hazard_is_dumped_whole() {
    let kernel = Kernel::new(HAZARD);
    let target = Target::Sm80;
    let count = names(target).len();
    for line in ["compile k.py", "verify k.py"] {
        let said = kernel.call(&format!("{line} --target sm_80 --dump-passes d"));
        assert_eq!(said.code, Some(1), "{line}");
        assert!(said.err.contains("deadlock]: "), "{}", said.err);
        assert_eq!(kernel.files("d"), dumped(target, count), "{line}");
    }
    for line in ["compile k.py", "verify k.py", "run k.py --on sim"] {
        let line = format!("{line} --target sm_80 --dump-passes d --timings --json");
        let object = kernel.call(&line).json();
        assert_eq!(object["ok"], false, "{line}");
        assert!(object["errors"][0]["code"].is_string(), "{line}");
        assert_eq!(object["dumped"]["files"], count + 1, "{line}");
        let rows = object["timings"]["passes"].as_array();
        assert_eq!(rows.map(Vec::len), Some(count), "{line}");
    }
}

#[test]
fn a_dump_replaces_an_earlier_one_and_nothing_else() {
    let kernel = Kernel::new(GOOD);
    fs::create_dir(kernel.path().join("d")).expect("a folder");
    for file in ["99-simplify.tw", "mine.tw", "02-mine.tw"] {
        fs::write(kernel.path().join("d").join(file), "x").expect("a file");
    }
    assert_eq!(kernel.call("opt nothing.tw --dump-passes d").code, Some(1));
    assert_eq!(kernel.files("d").len(), 3, "a kernel that cannot be read");
    let said = kernel.call("compile k.py --target sm_80 --emit loop --dump-passes d");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let count = names(Target::Sm80).iter().position(|n| *n == "thread-sync");
    let mut expected = dumped(Target::Sm80, count.expect("the pass"));
    expected.extend(["mine.tw", "02-mine.tw"].map(str::to_string));
    expected.sort();
    assert_eq!(kernel.files("d"), expected);
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let kernel = Kernel::new(GOOD);
    fs::write(kernel.path().join("file"), "mine").expect("a file");
    for dir in ["file", "file/below"] {
        let said = kernel.call(&format!("compile k.py --dump-passes {dir}"));
        assert_eq!(said.code, Some(1));
        let why = format!("error[unwritable-file]: cannot write {dir}: ");
        assert!(said.err.contains(&why), "{}", said.err);
        assert!(said.err.contains("takes a folder"), "{}", said.err);
        let object = kernel.call(&format!("verify k.py --dump-passes {dir} --json"));
        assert_eq!(object.json()["errors"][0]["code"], "unwritable-file");
    }
    assert_eq!(
        fs::read(kernel.path().join("file")).expect("a file"),
        b"mine"
    );
    // A folder where a file should be.
    let name = "add-wrapper-for-single-buf-store";
    let number = runs_of(name, Target::Gfx950)[0].number;
    let file = format!("d/{number:02}-{name}.tw");
    fs::create_dir_all(kernel.path().join(&file)).expect("a folder");
    let said = kernel.call("compile k.py --dump-passes d --emit source");
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(
        said.err.contains(&format!("cannot write {file}")),
        "{}",
        said.err
    );
    assert!(
        said.err
            .contains(&format!("wrote the IR to {number} files in d")),
        "{}",
        said.err
    );
}

/// The runs of a pass for a target, in order.
fn runs_of(pass: &str, target: Target) -> Vec<Step> {
    let all = passes::driver::steps(&passes::pipeline(target));
    all.into_iter().filter(|step| step.name == pass).collect()
}

/// The lines that begin what is printed after a pass.
fn headers(text: &str) -> Vec<&str> {
    text.lines().filter(|l| l.starts_with("# after")).collect()
}

#[test]
fn a_pass_is_printed_after_each_of_its_runs() {
    let kernel = Kernel::new(GOOD);
    let said_after = |step: &Step| format!("# after {step}");
    let runs = runs_of("simplify", Target::Sm80);
    let simplify: Vec<String> = runs.iter().map(said_after).collect();
    assert!(simplify[1].ends_with("run 2 of 3)"), "{simplify:?}");
    let said = kernel.call("compile k.py --target sm_80 --print-after simplify");
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert_eq!(headers(&said.out), simplify);
    assert_eq!(said.out.matches("func @main").count(), 3);
    // What is printed beside a result goes to stderr.
    let said = kernel.call(
        "compile k.py --target sm_80 --emit source --print-after simplify --print-after bind-target",
    );
    assert_eq!(said.code, Some(0), "{}", said.err);
    let bound = said_after(&runs_of("bind-target", Target::Sm80)[0]);
    let all = [&[bound][..], &simplify].concat();
    assert_eq!(headers(&said.err), all);
    assert!(headers(&said.out).is_empty() && said.out.contains("__global__"));
    // It is the IR that a dump has.
    let said = kernel.call("compile k.py --target sm_80 --print-after thread-sync --dump-passes d");
    let step = runs_of("thread-sync", Target::Sm80)[0];
    let file = kernel
        .path()
        .join(format!("d/{:02}-thread-sync.tw", step.number));
    let text = fs::read_to_string(file).expect("a file");
    assert_eq!(said.out, format!("# after {step}\n{text}"));
}

#[test]
fn what_was_printed_is_there_when_the_kernel_is_refused() {
    let kernel = Kernel::new(TOO_LARGE);
    let said = kernel.call("compile k.py --target gfx942 --print-after lower-tile-op,thread-sync");
    assert_eq!(said.code, Some(1));
    let step = runs_of("lower-tile-op", Target::Gfx942)[0];
    assert_eq!(headers(&said.out), [format!("# after {step}")]);
    let note = "nothing to print after thread-sync: it was not run";
    assert!(said.err.contains(note), "{}", said.err);
    let line = "compile k.py --target gfx942 --print-after lower-tile-op --json";
    let object = kernel.call(line).json();
    assert_eq!(object["ok"], false);
    let printed = object["printed"].as_array().expect("a list");
    assert_eq!(printed.len(), 1);
    assert_eq!(
        (&printed[0]["pass"], &printed[0]["number"]),
        (&"lower-tile-op".into(), &step.number.into())
    );
    assert!(
        printed[0]["text"]
            .as_str()
            .is_some_and(|t| t.starts_with("func @main level=loop"))
    );
}

#[test]
fn names_of_passes_are_checked() {
    let kernel = Kernel::new(GOOD);
    for command in [
        "compile k.py",
        "verify k.py",
        "run k.py --on sim",
        "opt k.tw",
    ] {
        let said = kernel.call(&format!("{command} --print-after simplfy"));
        assert_eq!(said.code, Some(2), "{command}: {}", said.err);
        let why = "unknown pass `simplfy`; did you mean `simplify`? the passes are bind-target, ";
        assert!(said.err.contains(why), "{command}: {}", said.err);
    }
    // A pass that there is, and not for this target.
    let said = kernel.call("compile k.py --target sm_80 --print-after register-waits");
    assert_eq!(said.code, Some(2));
    let why = "`--print-after register-waits`: the pass is none of those that are run: bind-target";
    assert!(said.err.contains(why), "{}", said.err);
    // Where no passes are run there is nothing to show.
    for line in [
        "compile k.py --emit tile --timings",
        "run k.py --dump-passes d",
    ] {
        let said = kernel.call(line);
        assert_eq!(said.code, Some(2), "{line}");
        assert!(said.err.contains("shows passes"), "{}", said.err);
    }
    assert!(!kernel.path().join("d").exists());
}

/// A version to spare is worth it where it costs no block of a multiprocessor.
#[test]
fn products_of_warp_groups_keep_their_blocks() {
    let kernel = Kernel::new("");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gemm.py");
    for (block_k, stages, chosen, why) in [
        (
            32,
            2,
            "plain",
            "with one version more 2 blocks run at once, not 3",
        ),
        (32, 3, "in_flight", ""),
        (
            64,
            2,
            "plain",
            "with one version more one block runs at a time, not 2",
        ),
    ] {
        let said = kernel.call(&format!(
            "compile {} --target sm_90a --explain schedule --set M=4096 --set N=4096 --set K=4096 \
             --set block_M=128 --set block_N=128 --set block_K={block_k} --set num_stages={stages} \
             --set threads=128",
            example.display()
        ));
        let loops = format!("this loop runs by `{chosen}` (chosen)");
        assert!(said.out.contains(&loops), "{}{}", said.out, said.err);
        assert!(said.out.contains(why), "{}", said.out);
    }
}

#[test]
fn schedules_are_explained_and_asked_for() {
    let kernel = Kernel::new(PIPELINED);
    for command in ["compile k.py --target sm_80", "verify k.py --target sm_80"] {
        for explain in ["--explain", "--explain schedule"] {
            let said = kernel.call(&format!("{command} {explain}"));
            let text = said.out + &said.err;
            assert_eq!(said.code, Some(0), "{text}");
            assert!(
                text.contains("this loop runs by `plain` (chosen), 2 stages"),
                "{text}"
            );
            assert!(text.contains("`read_ahead` does not apply: "), "{text}");
            assert!(text.contains("cluster load: g2s s ahead 1"), "{text}");
        }
        let object = kernel.call(&format!("{command} --explain --json")).json();
        let remark = &object["explained"][0];
        assert_eq!(remark["severity"], "remark");
        assert_eq!(
            (&remark["code"], &remark["line"]),
            (&"schedule".into(), &10.into())
        );
    }
    let said = kernel.call("compile k.py --schedule plain --explain");
    assert!(said.out.contains("`plain` (asked for)"), "{}", said.out);
    let said = kernel.call("compile k.py --schedule read_ahead --emit source");
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("error[schedule-refused]"), "{}", said.err);
    for (line, why) in [
        ("compile k.py --schedule fast", "read_ahead"),
        ("compile k.py --explain scedule", "did you mean `schedule`?"),
    ] {
        let said = kernel.call(line);
        assert_eq!(said.code, Some(2), "{line}");
        assert!(said.err.contains(why), "{}", said.err);
    }
    // Nothing is said to who does not ask.
    let said = kernel.call("compile k.py --emit device");
    assert!(!said.err.contains("remark"), "{}", said.err);
}

#[test]
fn times_have_a_row_for_every_pass() {
    let kernel = Kernel::new(GOOD);
    let expected = names(Target::Sm80);
    for (command, parts) in [
        (
            "compile k.py --target sm_80 --emit source",
            &["front_end", "hazard_check", "code_generation"][..],
        ),
        (
            "verify k.py --target sm_80",
            &["front_end", "hazard_check"][..],
        ),
        (
            "run k.py --on sim --target sm_80",
            &["front_end", "hazard_check"][..],
        ),
    ] {
        let object = kernel.call(&format!("{command} --timings --json")).json();
        assert_eq!(object["ok"], true, "{command}");
        let times = &object["timings"];
        let rows = times["passes"].as_array().expect("a list");
        let found: Vec<&str> = rows.iter().filter_map(|r| r["pass"].as_str()).collect();
        assert_eq!(found, expected, "{command}");
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(row["number"], at + 1);
            assert!(row["ms"].is_f64() && row["verifier_ms"].is_f64());
        }
        let sum: f64 = rows.iter().filter_map(|r| r["ms"].as_f64()).sum();
        let all = times["all_passes_ms"].as_f64().expect("a number");
        assert!((sum - all).abs() < 1e-3, "{sum} {all}");
        for part in ["front_end", "hazard_check", "code_generation", "toolchain"] {
            let measured = times[format!("{part}_ms")].is_f64();
            assert_eq!(measured, parts.contains(&part), "{command}: {part}");
        }
        let said = kernel.call(&format!("{command} --timings"));
        for (at, name) in expected.iter().enumerate() {
            let start = format!("{:>3}  {name} ", at + 1);
            let row = said.err.lines().any(|line| line.starts_with(&start));
            assert!(row, "{command}: {}", said.err);
        }
        assert!(!kernel.call(command).err.contains("all passes"), "unasked");
    }
}

#[test]
fn passes_by_hand_are_shown_too() {
    let kernel = Kernel::new(GOOD);
    assert_eq!(kernel.call("compile k.py -o k.tw").code, Some(0));
    let line = "opt k.tw --pass simplify,bind-target,simplify --print-after simplify \
                --dump-passes d --timings";
    let said = kernel.call(line);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(
        headers(&said.err),
        [
            "# after `simplify` (pass 1 of 3, run 1 of 2)",
            "# after `simplify` (pass 3 of 3, run 2 of 2)"
        ]
    );
    let files = [
        "00-input.tw",
        "01-simplify.tw",
        "02-bind-target.tw",
        "03-simplify.tw",
    ];
    assert_eq!(kernel.files("d"), files);
    let last = fs::read_to_string(kernel.path().join("d/03-simplify.tw")).expect("a file");
    assert_eq!(said.out, last);
    assert!(said.err.contains("  2  bind-target "), "{}", said.err);
}

/// What breaks the function, and what merely refuses it.
struct Instead(&'static str, passes::Pass);

impl Hook for Instead {
    fn before(&mut self, step: Step, _: &Func) -> Action {
        match step.name == self.0 {
            true => Action::Replace(self.1),
            false => Action::Run,
        }
    }
}

fn staged(body: &str) -> Func {
    let mut sources = SourceMap::new();
    let file = sources.add("k.py", source(body));
    let staged = frontend::stage(&sources, file, None, &[]);
    staged.expect("it stages").func
}

#[test]
fn lowering_names_the_pass_that_broke_the_function() {
    fn lose_buffers(func: &mut Func, _: Target, _: &mut Diagnostics) -> Changed {
        func.kernels[0].body.remove(0);
        Changed::Yes
    }
    let mut hook = Instead("layout-reducer", lose_buffers);
    let until = Until::Level(Level::Device);
    let refused = lowering::lower_with(&staged(GOOD), Target::Sm80, until, &mut hook);
    let refused = refused.expect_err("a buffer is gone");
    let first = refused.errors.iter().next().expect("an error");
    assert_eq!(first.code.0, "broken-ir");
    let step = runs_of("layout-reducer", Target::Sm80)[0];
    assert!(
        first.message.starts_with(&step.to_string()),
        "{}",
        first.message
    );
    assert_eq!(refused.times.passes.len(), step.number as usize);
    assert!(refused.times.hazards.is_none());
}

#[test]
fn lowering_says_what_a_pass_says() {
    fn refuse(func: &mut Func, _: Target, diags: &mut Diagnostics) -> Changed {
        diags.push(Diagnostic::error(Code("not-today"), func.span, "no"));
        Changed::No
    }
    let mut hook = Instead("thread-sync", refuse);
    let until = Until::Level(Level::Device);
    let refused = lowering::lower_with(&staged(GOOD), Target::Sm80, until, &mut hook);
    let refused = refused.expect_err("it is refused");
    let codes: Vec<&str> = refused.errors.iter().map(|d| d.code.0).collect();
    assert_eq!(codes, ["not-today"]);
}
