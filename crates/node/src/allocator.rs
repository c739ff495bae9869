//! Freed memory, which mimalloc, the allocator of the program, keeps: blocks reuse it, and what the
//! public port took in a rush goes back to the system.
//!
//! In a program with another allocator this has no effect.

use std::ffi::{c_int, c_long};

use rpc::PortMemory;

use crate::limits::{GIVE_BACK_PAUSE, GIVEN_BACK_BYTES};

/// mimalloc's `mi_option_purge_delay`, in version 3: the milliseconds until freed memory goes back
/// to the system.
const PURGE_DELAY: c_int = 15;

/// Five slots. With mimalloc's default of a second each block would get its memory from the system,
/// which zeroes it: most of the cost of a witness of some megabytes.
const PURGE_DELAY_MILLISECONDS: c_long = 60_000;

/// Keeps freed memory for the next blocks. To be called before there are threads.
pub fn keep_freed_memory() {
    #[allow(unsafe_code, reason = "it sets a number, which the library allows at any time")]
    unsafe {
        libmimalloc_sys::mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MILLISECONDS);
    }
}

/// Gives all free memory to the system.
fn give_back() {
    // A thread that has allocated nothing has no part of the allocator, and would do nothing.
    drop(std::hint::black_box(vec![0_u8]));
    #[allow(unsafe_code, reason = "the library allows it on any thread at any time")]
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
}

/// Gives free memory to the system each time that a port has let go of much.
pub(crate) async fn watch_port(memory: PortMemory) {
    let mut fall = Fall::default();
    loop {
        tokio::time::sleep(GIVE_BACK_PAUSE).await;
        if fall.is_over(memory.held_bytes()) {
            tokio::task::spawn_blocking(give_back).await.expect("it does not panic");
        }
    }
}

/// The most that was held since memory was given back, and what was held last.
#[derive(Default)]
struct Fall {
    most: usize,
    last: usize,
}

impl Fall {
    /// Whether what is held is much less than the most, and falls no more; then this begins again.
    fn is_over(&mut self, held: usize) -> bool {
        self.most = self.most.max(held);
        let is_over = self.most - held >= GIVEN_BACK_BYTES && held >= self.last;
        self.last = held;
        if is_over {
            self.most = held;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_for_each_large_fall() {
        let mut fall = Fall::default();
        let large = GIVEN_BACK_BYTES;
        // It falls by a byte too little; it falls far, and on; it falls from what was left.
        let looks = [large, 1, 1, 4 * large, 2 * large, large, large, large, 0, 0, 0];
        let found = looks.map(|held| fall.is_over(held));
        let expected = [false, false, false, false, false, false, true, false, false, true, false];
        assert_eq!(found, expected);
    }
}
