//! The `deponent` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    node::cli::main()
}
