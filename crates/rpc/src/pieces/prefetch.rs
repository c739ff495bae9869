//! Memory that is asked for before it is looked at.

/// Has the processor bring bytes nearer, which are soon copied, without waiting for them. Nothing
/// else comes of it: no page is read or made, wherever they lie.
#[inline]
pub(super) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // Safety: all processors of this architecture have the instruction, and it cannot fault.
        #[allow(unsafe_code, reason = "an instruction that has no safe name")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
