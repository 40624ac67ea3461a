//! The examples, staged.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Failed;
use tilewright::frontend::{self, SettingValue};
use tilewright::ir::{Diagnostic, Func, SourceMap};

/// Stages an example with settings, each a name and a literal; its text is in the sources.
pub fn staged(
    name: &str,
    entry: Option<&str>,
    settings: &[(&str, &str)],
) -> Result<(Func, SourceMap), Failed> {
    let mut sources = SourceMap::new();
    let file = sources.add(name, fs::read_to_string(folder().join(name))?);
    let settings = settings
        .iter()
        .map(|(k, v)| Ok((k.to_string(), SettingValue::parse(v)?)))
        .collect::<Result<Vec<_>, String>>()?;
    match frontend::stage(&sources, file, entry, &settings) {
        Ok(staged) => Ok((staged.func, sources)),
        Err(list) => Err(rendered(&list, &sources)),
    }
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

pub fn rendered(list: &[Diagnostic], sources: &SourceMap) -> Failed {
    let text: Vec<String> = list.iter().map(|d| d.render(sources, false)).collect();
    text.join("\n").into()
}
