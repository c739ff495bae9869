//! The `deponent` program.

use mimalloc::MiMalloc;
use std::ffi::{c_int, c_long};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// mimalloc's `mi_option_purge_delay`, in version 3: for how many milliseconds freed memory is kept
/// before the system gets it back.
const PURGE_DELAY: c_int = 15;

/// Five slots. With the usual second each block would take its memory from the system anew, which
/// clears it, and that is most of what a witness of some megabytes costs.
const KEPT_MILLISECONDS: c_long = 60_000;

fn main() -> ExitCode {
    #[allow(unsafe_code, reason = "a number is set, as the library's documentation permits")]
    unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, KEPT_MILLISECONDS);
    }
    deponent_node::cli::main()
}
