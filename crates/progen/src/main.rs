//! `tilewright-progen`: runs the compiler on random programs.

mod cli;
mod report;
mod run;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
