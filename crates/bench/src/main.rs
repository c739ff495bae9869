//! The `deponent-bench` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    deponent_bench::main()
}
