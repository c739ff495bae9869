//! The `deponent` program.

use mimalloc::MiMalloc;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    deponent_node::allocator::keep_freed_memory();
    deponent_node::cli::main()
}
