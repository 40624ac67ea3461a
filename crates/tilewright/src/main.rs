//! The `tilewright` binary. Everything it does is in the library; here are arguments, exit
//! codes and the last line of defence.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
