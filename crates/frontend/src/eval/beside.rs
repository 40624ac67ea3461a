//! Modules beside the kernel's file: `from utils import scale` where `utils.py` lies there.
//!
//! Their texts are among the sources before a kernel is recorded; each is parsed when a name of
//! it is asked for, and its statements run as those of the kernel's own file do: only where a
//! name needs them. Names that a function finds outside itself are those of its own file.

use std::path::{Component, Path};
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::{FileId, SourceMap, Span};

use crate::eval::globals::Globals;
use crate::eval::modules::{self, ModuleId};
use crate::eval::scope::{Binding, Scope};
use crate::eval::{KnownSymbols, Stage, entry};
use crate::syntax::ast::{Module, StmtKind};
use crate::syntax::{Symbols, parse_source};
use crate::value::Value;
use crate::{Error, Result};

/// Files beside one kernel that are read, at the most.
pub const MAX_FILES: usize = 64;

/// Texts of the files beside the kernel's, by the dotted name that imports them.
pub(crate) type Texts = FxHashMap<String, (FileId, Rc<str>)>;

/// One file: the statements, what of them has run, and the names that gave.
#[derive(Debug)]
pub(super) struct Slot {
    pub name: String,
    pub globals: Rc<Scope>,
    /// None while its code runs: the stage has it then.
    parked: Option<(Rc<Module>, Globals)>,
}

impl Slot {
    /// The kernel's own file.
    pub fn own(globals: &Rc<Scope>) -> Slot {
        Slot {
            name: String::new(),
            globals: globals.clone(),
            parked: None,
        }
    }
}

/// Dotted names of the modules that a text may import from files beside it.
pub fn imports(text: &str) -> Vec<String> {
    let mut symbols = Symbols::default();
    // What is wrong with the text is said when it is recorded.
    let Ok(module) = parse_source(text, FileId(0), &mut symbols) else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    entry::walk(&module.body, &mut |stmt| match &stmt.kind {
        StmtKind::Import(names) => paths.extend(names.iter().map(|n| n.path.to_string())),
        StmtKind::ImportFrom { module, names, .. } => {
            let of = |name: &str| match module.is_empty() {
                true => name.to_string(),
                false => format!("{module}.{name}"),
            };
            paths.extend(names.iter().map(|n| of(symbols.text(n.name.sym))));
            paths.push(module.to_string());
        }
        _ => {}
    });
    paths.retain(|p| !p.is_empty() && matches!(modules::module(p), Value::Opaque(_)));
    paths
}

/// The files beside `file` among the sources.
pub(crate) fn texts(sources: &SourceMap, file: FileId) -> Texts {
    let folder = Path::new(sources.name(file)).parent();
    let mut found = Texts::default();
    for other in sources.files().filter(|f| *f != file) {
        let path = Path::new(sources.name(other));
        let Some(rest) = folder.and_then(|folder| path.strip_prefix(folder).ok()) else {
            continue;
        };
        let parts: Option<Vec<&str>> = rest
            .components()
            .map(|c| match c {
                Component::Normal(part) => part.to_str(),
                _ => None,
            })
            .collect();
        let name = parts.map(|parts| parts.join("."));
        if let Some(name) = name.as_deref().and_then(|n| n.strip_suffix(".py")) {
            let text = Rc::from(sources.text(other));
            found.insert(name.to_string(), (other, text));
        }
    }
    found
}

impl Stage {
    /// The module of this dotted name, where a file beside the kernel's is it. `level` counts the
    /// dots before it: names with one are those of the folder of the file now running.
    pub(super) fn beside(&mut self, path: &str, level: u32) -> Result<Option<ModuleId>> {
        let folder = match level {
            0 => "",
            1 => match self.slots[self.active].name.rsplit_once('.') {
                Some((folder, _)) => folder,
                None => "",
            },
            _ => return Ok(None),
        };
        let parts = [folder, path].into_iter().filter(|part| !part.is_empty());
        let name = parts.collect::<Vec<_>>().join(".");
        if let Some(at) = self.slots.iter().skip(1).position(|s| s.name == name) {
            return Ok(Some(ModuleId::Beside(at + 1)));
        }
        let Some((file, text)) = self.texts.get(&name).cloned() else {
            return Ok(None);
        };
        let parsed = parse_source(&text, file, &mut self.symbols);
        let module = parsed.map_err(|mut errors| Error::from(errors.swap_remove(0)))?;
        let known = KnownSymbols {
            dunder_name: self.symbols.intern("__name__"),
        };
        let lazy = Globals::index(&module, &known);
        self.slots.push(Slot {
            name,
            globals: Scope::new(None),
            parked: Some((Rc::new(module), lazy)),
        });
        Ok(Some(ModuleId::Beside(self.slots.len() - 1)))
    }

    /// The file whose module-level names `scope` holds.
    pub(super) fn file_of(&self, scope: &Rc<Scope>) -> Option<usize> {
        let mut slots = self.slots.iter();
        slots.position(|slot| Rc::ptr_eq(&slot.globals, scope))
    }

    /// Runs `f` where names outside functions are those of another file.
    pub(super) fn in_file<T>(&mut self, slot: usize, f: impl FnOnce(&mut Stage) -> T) -> T {
        let Some((module, lazy)) = self.slots[slot].parked.take() else {
            // Its code is running now.
            return f(self);
        };
        let globals = self.slots[slot].globals.clone();
        let outer = (
            std::mem::replace(&mut self.module, module),
            std::mem::replace(&mut self.lazy, lazy),
        );
        let outer_globals = std::mem::replace(&mut self.globals, globals);
        let before = std::mem::replace(&mut self.active, slot);
        self.slots[before].parked = Some(outer);
        let result = f(self);
        let parked = self.slots[before].parked.take();
        self.active = before;
        self.globals = outer_globals;
        if let Some((module, lazy)) = parked {
            let module = std::mem::replace(&mut self.module, module);
            let lazy = std::mem::replace(&mut self.lazy, lazy);
            self.slots[slot].parked = Some((module, lazy));
        }
        result
    }

    /// A name of a file beside the kernel's.
    pub(super) fn name_beside(
        &mut self,
        slot: usize,
        name: &str,
        span: Span,
    ) -> Result<Option<Value>> {
        let Some(symbol) = self.symbols.find(name) else {
            return Ok(None);
        };
        self.in_file(slot, |stage| match stage.global(symbol)? {
            Some(binding @ Binding::Live(_)) => stage.read(symbol, binding, span).map(Some),
            _ => stage.star_import(symbol, span),
        })
    }
}
