//! A folder with the IR after each pass, one file a pass.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tilewright::ir::{Diagnostic, Func, text};
use tilewright::passes::{self, driver::Step};

use super::output;

/// What the function before the first pass is called.
const INPUT: &str = "input";

pub struct Dump {
    folder: PathBuf,
    /// Files written.
    files: usize,
    /// Why no more were written.
    pub failed: Option<Box<Diagnostic>>,
}

impl Dump {
    /// Makes the folder, removes what an earlier dump left there, and writes the input.
    pub fn open(folder: &Path, func: &Func) -> Result<Dump, Box<Diagnostic>> {
        fs::create_dir_all(folder)
            .and_then(|()| remove_earlier(folder))
            .map_err(|e| {
                let help = "`--dump-passes` takes a folder, which is made if it is not there";
                Box::new(output::unwritable(folder, &e).help(help))
            })?;
        let mut dump = Dump {
            folder: folder.to_owned(),
            files: 0,
            failed: None,
        };
        dump.write(0, INPUT, func)?;
        Ok(dump)
    }

    /// Adds what a pass made, at once: the next one may not come to its end.
    pub fn add(&mut self, step: Step, func: &Func) {
        if self.failed.is_none() {
            self.failed = self.write(step.number, step.name, func).err();
        }
    }

    fn write(&mut self, number: u32, name: &str, func: &Func) -> Result<(), Box<Diagnostic>> {
        let path = self.folder.join(format!("{number:02}-{name}.tw"));
        output::write_file(&path, text::print(func).as_bytes())?;
        self.files += 1;
        Ok(())
    }

    pub fn to_text(&self) -> String {
        let plural = if self.files == 1 { "" } else { "s" };
        let folder = self.folder.display();
        format!("wrote the IR to {} file{plural} in {folder}\n", self.files)
    }

    pub fn to_json(&self) -> Value {
        json!({ "folder": self.folder.display().to_string(), "files": self.files })
    }
}

fn remove_earlier(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if is_dumped(&entry.file_name().to_string_lossy()) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether a dump makes files of this name.
fn is_dumped(file: &str) -> bool {
    let parts = file.strip_suffix(".tw").and_then(|f| f.split_once('-'));
    parts.is_some_and(|(number, name)| {
        let counted = number.len() >= 2 && number.bytes().all(|b| b.is_ascii_digit());
        counted && (name == INPUT || passes::find(name).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_files_are_known() {
        for own in ["00-input.tw", "02-simplify.tw", "101-bind-target.tw"] {
            assert!(is_dumped(own), "{own}");
        }
        for other in [
            "simplify.tw",
            "02-simplify.py",
            "1-simplify.tw",
            "02-mine.tw",
        ] {
            assert!(!is_dumped(other), "{other}");
        }
    }
}
