//! `tilewright man` and `tilewright completions`: what an installed command line comes with.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use tilewright::ir::SourceMap;

use super::Cli;
use super::output::{self, Outcome};

#[derive(Args, Debug)]
pub struct ManArgs {
    /// The folder, made if it is not there: `~/.local/share/man/man1`.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    #[arg(value_enum)]
    shell: Shell,
}

pub fn man(args: &ManArgs) -> Outcome {
    let fail = |d| output::fail(&[d], &SourceMap::new(), false);
    let folder = &args.folder;
    fs::create_dir_all(folder).map_err(|e| fail(output::unwritable(folder, &e)))?;
    let mut root = Cli::command();
    root.build();
    let pages = std::iter::once(&root).chain(root.get_subcommands());
    for command in pages {
        let name = command.get_display_name().unwrap_or("tilewright");
        let path = folder.join(format!("{name}.1"));
        let mut page = Vec::new();
        let made = Man::new(command.clone()).render(&mut page);
        made.map_err(|e| fail(output::unwritable(&path, &e)))?;
        output::write_file(&path, &page).map_err(|d| fail(*d))?;
        output::print(&format!("{}\n", path.display()));
    }
    Ok(())
}

pub fn completions(args: &CompletionsArgs) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tilewright", &mut text);
    output::print(&String::from_utf8_lossy(&text));
    Ok(())
}
