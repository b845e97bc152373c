//! The nodewise command.

use std::process::ExitCode;

fn main() -> ExitCode {
    nodewise_cli::main(std::env::args_os())
}
