//! Lanes of NEON with the SHA-3 instructions of Armv8.2.

#![allow(
    inline_always_mismatching_target_features,
    reason = "the functions that call these instructions are themselves inlined where they may be"
)]

use super::sponge::{Vector, keccak256_lanes};
use alloy_primitives::B256;
use std::{
    arch::{aarch64::*, is_aarch64_feature_detected},
    mem::transmute,
};

pub(super) fn has_sha3() -> bool {
    is_aarch64_feature_detected!("neon") && is_aarch64_feature_detected!("sha3")
}

/// Keccak-256 of two inputs with equally many blocks.
#[target_feature(enable = "neon,sha3")]
pub(super) fn neon(inputs: [&[u8]; 2]) -> [B256; 2] {
    // SAFETY: the processor has the instructions that this function is compiled with.
    unsafe { keccak256_lanes::<Neon, 2>(inputs) }
}

// In all functions below: `load` was promised that the processor has the instructions, and where
// there is a value, `load` was called.

#[derive(Clone, Copy)]
struct Neon(uint64x2_t);

impl Vector<2> for Neon {
    type Theta = Self;

    #[inline(always)]
    unsafe fn load(words: [u64; 2]) -> Self {
        // SAFETY: both types are 16 bytes, and any bytes are a value of them.
        Self(unsafe { transmute::<[u64; 2], uint64x2_t>(words) })
    }

    #[inline(always)]
    fn store(self) -> [u64; 2] {
        // SAFETY: both types are 16 bytes, and any bytes are a value of them.
        unsafe { transmute::<uint64x2_t, [u64; 2]>(self.0) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { veorq_u64(self.0, other.0) })
    }

    #[inline(always)]
    fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { veor3q_u64(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn chi(self, b: Self, c: Self) -> Self {
        // The instruction is `x ^ (y & !z)`.
        // SAFETY: a value exists.
        Self(unsafe { vbcaxq_u64(self.0, c.0, b.0) })
    }

    #[inline(always)]
    fn theta(left: Self, right: Self) -> Self {
        // The instruction rotates its second operand left by one.
        // SAFETY: a value exists.
        Self(unsafe { vrax1q_u64(left.0, right.0) })
    }

    #[inline(always)]
    fn rho<const L: i32, const R: i32>(self, theta: Self) -> Self {
        // The instruction rotates right.
        // SAFETY: a value exists.
        Self(unsafe { vxarq_u64::<R>(self.0, theta.0) })
    }

    #[inline(always)]
    fn rho_none(self, theta: Self) -> Self {
        self.xor(theta)
    }
}
