//! The front end: TileLang-compatible Python syntax to tile IR, with no Python needed.
//!
//! A kernel file is parsed ([`syntax`]) and run by a staging evaluator ([`eval`]): what Python
//! knows is computed, what the GPU will know is recorded through the language's functions
//! ([`lang`]). Only code that the chosen kernel needs is evaluated.
//!
//! ```
//! use tilewright_ir::SourceMap;
//! let text = r#"
//! import tilelang.language as T
//!
//! @T.prim_func
//! def double(A: T.Tensor((64,), "float32")):
//!     with T.Kernel(1, threads=64):
//!         for i in T.Parallel(64):
//!             A[i] = A[i] * 2
//! "#;
//! let mut sources = SourceMap::new();
//! let file = sources.add("double.py", text);
//! let staged = tilewright_frontend::stage(&sources, file, None, &[]).unwrap();
//! assert_eq!(staged.func.kernels.len(), 1);
//! ```

pub mod codes;
pub mod eval;
mod help;
pub mod host;
pub mod lang;
pub mod record;
pub mod syntax;
pub mod value;

use std::collections::BTreeMap;

use tilewright_ir::small_float::Number;
use tilewright_ir::{Diagnostic, FileId, Func, SourceMap, Span, Target};

pub use eval::Stage;
pub use eval::beside::{MAX_FILES, imports};
pub use help::advice;
pub use record::Recorder;
pub use record::settings::SettingValue;

/// An error is a located diagnostic; the first one ends the compilation.
pub type Error = Box<Diagnostic>;
pub type Result<T> = std::result::Result<T, Error>;

/// A kernel as tile IR.
#[derive(Debug)]
pub struct Staged {
    pub func: Func,
    /// What the user should know although it is no error.
    pub warnings: Vec<Diagnostic>,
    /// Values that the settings give to run-time sizes (`T.dynamic`).
    pub symbol_values: BTreeMap<String, i64>,
    /// Values that the settings give to scalar parameters, which are chosen at each launch.
    pub scalar_values: BTreeMap<String, Number>,
}

/// What a kernel leaves open for who tunes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// The parameters of the function, in order, and whether they have a value by themselves.
    pub parameters: Vec<(String, bool)>,
    /// The configurations that `@autotune` lists.
    pub configs: Vec<Vec<(String, SettingValue)>>,
    /// `@autotune(configs="auto")`: the tuner chooses them.
    pub auto: bool,
}

/// The stack of the thread that evaluates: recursion is bounded, and this holds its bound.
pub const STACK_BYTES: usize = 256 << 20;

/// Turns the kernel of a file into tile IR.
///
/// `entry` names a function; without it the first kernel of the file is taken. `settings` give
/// values to factory parameters, `T.const` dimensions, `T.dynamic` sizes and the scalars that the
/// kernel takes at a launch.
///
/// Modules that the file imports are those of its folder among the sources; [`imports`] says
/// which ones it may want.
pub fn stage(
    sources: &SourceMap,
    file: FileId,
    entry: Option<&str>,
    settings: &[(String, SettingValue)],
) -> std::result::Result<Staged, Vec<Diagnostic>> {
    stage_for(sources, file, entry, settings, Target::DEFAULT)
}

/// What a kernel's file is told where it asks for the machine.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub target: Target,
    /// Multiprocessors, where they are known better than by the target.
    pub multiprocessors: Option<u32>,
}

impl From<Target> for Facts {
    fn from(target: Target) -> Facts {
        Facts {
            target,
            multiprocessors: None,
        }
    }
}

/// As [`stage`], for a machine: where the file asks for the number of multiprocessors or the vendor,
/// the answers are its.
pub fn stage_for(
    sources: &SourceMap,
    file: FileId,
    entry: Option<&str>,
    settings: &[(String, SettingValue)],
    facts: impl Into<Facts>,
) -> std::result::Result<Staged, Vec<Diagnostic>> {
    let facts = facts.into();
    on_large_stack(|| stage_here(sources, file, entry, settings, facts))
}

/// Reads the parameters and configurations of a file's kernel, and stages nothing.
pub fn survey(
    sources: &SourceMap,
    file: FileId,
    entry: Option<&str>,
) -> std::result::Result<Survey, Vec<Diagnostic>> {
    on_large_stack(|| {
        let mut symbols = syntax::Symbols::default();
        let module = syntax::parse_source(sources.text(file), file, &mut symbols)?;
        let mut stage = Stage::new(module, symbols, record::settings::Settings::new(&[]));
        stage.survey(entry).map_err(|mut e| {
            help::complete(&mut e);
            vec![*e]
        })
    })
}

/// Runs on a thread whose stack holds the recursion of the evaluator.
fn on_large_stack<T: Send>(
    f: impl FnOnce() -> std::result::Result<T, Vec<Diagnostic>> + Send,
) -> std::result::Result<T, Vec<Diagnostic>> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("frontend".to_string())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, f);
        match thread.map(|t| t.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(e) => Err(vec![Diagnostic::error(
                codes::BUDGET,
                Span::NONE,
                format!("no thread for the front end: {e}"),
            )]),
        }
    })
}

/// Adds a file to the sources. Bytes that are no text of a kernel are an error at their place.
pub fn add_source(sources: &mut SourceMap, name: &str, bytes: Vec<u8>) -> Result<FileId> {
    // A large file is refused before its text is looked at.
    if bytes.len() > syntax::guard::MAX_SOURCE_BYTES {
        let first = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
        let shown = &first[..first.len().min(80)];
        let file = sources.add(name, String::from_utf8_lossy(shown));
        return Err(Diagnostic::error(
            codes::FILE_TOO_LARGE,
            Span::new(file, 0, 0),
            format!(
                "the file has {} bytes; the limit is {}",
                bytes.len(),
                syntax::guard::MAX_SOURCE_BYTES
            ),
        )
        .help("keep a kernel and what it needs in a file of its own")
        .into());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(sources.add(name, text)),
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            // Up to there the text is the file's, so that the place is right.
            let file = sources.add(name, String::from_utf8_lossy(e.as_bytes()));
            Err(Diagnostic::error(
                codes::NOT_UTF8,
                Span::new(file, at as u32, at as u32 + 1),
                format!("the file is not UTF-8: byte {at} begins no character"),
            )
            .help("save it as UTF-8")
            .into())
        }
    }
}

/// Completes an error with what would help, where its code says that.
pub fn complete(error: &mut Diagnostic) {
    help::complete(error);
}

fn stage_here(
    sources: &SourceMap,
    file: FileId,
    entry: Option<&str>,
    settings: &[(String, SettingValue)],
    facts: Facts,
) -> std::result::Result<Staged, Vec<Diagnostic>> {
    let mut symbols = syntax::Symbols::default();
    let module = syntax::parse_source(sources.text(file), file, &mut symbols)?;
    let settings = record::settings::Settings::new(settings);
    let mut stage = Stage::new(module, symbols, settings);
    stage.texts = eval::beside::texts(sources, file);
    stage.rec.target = facts.target;
    stage.rec.multiprocessors = facts.multiprocessors;
    match stage.run_entry(entry) {
        Ok(func) => Ok(Staged {
            func,
            symbol_values: stage.symbol_values(),
            scalar_values: stage.take_scalar_values(),
            warnings: stage.take_warnings(),
        }),
        Err(error) => {
            let mut error = *error;
            help::complete(&mut error);
            let mut all = vec![error];
            all.extend(stage.take_warnings());
            Err(all)
        }
    }
}
