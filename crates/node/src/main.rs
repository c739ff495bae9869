//! The `deponent` program.

use mimalloc::MiMalloc;
use std::ffi::{c_int, c_long};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// mimalloc's `mi_option_purge_delay`, in version 3: the milliseconds until freed memory goes back
/// to the system.
const PURGE_DELAY: c_int = 15;

/// Five slots. With mimalloc's default of a second each block would get its memory from the system,
/// which zeroes it: most of the cost of a witness of some megabytes.
const PURGE_DELAY_MILLISECONDS: c_long = 60_000;

fn main() -> ExitCode {
    #[allow(unsafe_code, reason = "it sets a number, which the library allows at any time")]
    unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MILLISECONDS);
    }
    deponent_node::cli::main()
}
