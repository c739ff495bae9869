//! How the program gets memory from the system and gives it back.
//!
//! The allocator is mimalloc; in a program with another one nothing is given back here.

use rpc::PortMemory;

use crate::limits::{GIVE_BACK_PAUSE, GIVEN_BACK_BYTES};

/// Turns transparent huge pages off for this process and for those that it starts.
///
/// A huge page takes 2 MiB of memory while one of its 512 small pages is in use. With them a node
/// took 544 MiB where another took 320, and blocks are no faster (`docs/reports/long-run.md`).
pub(crate) fn use_small_pages() {
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code, reason = "the call takes numbers, and sets a flag of the process")]
    unsafe {
        // It fails on a kernel without huge pages alone.
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
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

/// Gives free memory to the system each time that a port has let go of much. The allocator does so
/// by itself only when a thread frees or takes more.
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
