//! Prefetching of memory into the processor's caches.

/// Asks the processor to load bytes into its caches that are soon copied, without waiting for them.
/// It has no other effect: no page is read or created, wherever they lie.
#[inline]
pub(super) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: all processors of this architecture have the instruction, which reads nothing
        // that the program sees, and cannot fault.
        #[allow(unsafe_code, reason = "an instruction that has no safe name")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
