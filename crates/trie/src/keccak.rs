//! Keccak-256 of many inputs at once, several of them in the lanes of the processor's vectors.
//!
//! ```
//! use alloy_primitives::{B256, keccak256};
//!
//! let inputs: [&[u8]; 3] = [b"do", b"dog", b""];
//! let mut hashes = [B256::ZERO; 3];
//! trie::keccak::keccak256_many(&inputs, &mut hashes);
//! assert_eq!(hashes, inputs.map(keccak256));
//! ```

#![allow(
    unsafe_code,
    reason = "vector instructions; every call is behind a check of the processor"
)]

mod sponge;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(test)]
mod tests;

use alloy_primitives::{B256, keccak256};
use sponge::RATE_BYTES;
use std::sync::OnceLock;

/// The widest batch of any path.
const MAX_LANES: usize = 8;

/// Inputs of at most this many blocks are hashed in lanes. Nodes of a trie have up to 4 blocks;
/// longer inputs, such as codes, are rare, and seldom two have the same number of blocks.
const MAX_BLOCKS: usize = 8;

/// How inputs are hashed.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// Eight inputs at a time, or up to four in the half of a vector. Needs AVX-512 F and VL.
    Avx512,
    /// Four inputs at a time. Needs AVX2.
    Avx2,
    /// Two inputs at a time. Needs the SHA-3 instructions of Armv8.2: without their rotations and
    /// operations on three inputs, two lanes are no faster than two inputs one after the other.
    Neon,
    /// One input after the other.
    Scalar,
}

impl Lanes {
    /// All ways, the fastest first.
    pub const ALL: [Self; 4] = [Self::Avx512, Self::Avx2, Self::Neon, Self::Scalar];

    /// Whether this machine can hash so.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => x86_64::has_avx512(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => x86_64::has_avx2(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => aarch64::has_sha3(),
            Self::Scalar => true,
            _ => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "AVX-512",
            Self::Avx2 => "AVX2",
            Self::Neon => "NEON",
            Self::Scalar => "scalar",
        }
    }

    /// How many inputs are hashed at a time.
    fn count(self) -> usize {
        match self {
            Self::Avx512 => 8,
            Self::Avx2 => 4,
            Self::Neon => 2,
            Self::Scalar => 1,
        }
    }
}

/// What this machine hashes with, found out once.
static CHOSEN: OnceLock<Lanes> = OnceLock::new();

fn chosen() -> Lanes {
    *CHOSEN.get_or_init(|| {
        let available = Lanes::ALL.into_iter().find(|lanes| lanes.is_available());
        available.expect("scalar is always available")
    })
}

/// Has [`keccak256_many`] hash in a given way, for benchmarks of what rests on it.
///
/// # Panics
/// If it was called before, or this machine cannot hash in that way.
#[doc(hidden)]
pub fn choose(lanes: Lanes) {
    assert!(lanes.is_available(), "{} is not available", lanes.name());
    assert_eq!(CHOSEN.set(lanes), Ok(()), "nothing is hashed before");
}

/// What [`keccak256_many`] hashes with on this machine, for logs: `AVX-512`, `AVX2`, `NEON` or
/// `scalar`.
pub fn lanes() -> &'static str {
    chosen().name()
}

/// Writes the Keccak-256 hash of each input to the same place in `out`.
///
/// Inputs of any lengths, in any order; those with equally many blocks of 136 bytes share a batch,
/// wherever they stand. Does not allocate.
///
/// # Panics
/// If there are not as many places as inputs.
pub fn keccak256_many(inputs: &[&[u8]], out: &mut [B256]) {
    keccak256_many_with(chosen(), inputs, out);
}

/// [`keccak256_many`] in a given way, for tests and benchmarks.
///
/// # Panics
/// If there are not as many places as inputs, or this machine cannot hash in that way.
#[doc(hidden)]
pub fn keccak256_many_with(lanes: Lanes, inputs: &[&[u8]], out: &mut [B256]) {
    assert_eq!(inputs.len(), out.len(), "one place for each input");
    assert!(lanes.is_available(), "{} is not available", lanes.name());
    if lanes == Lanes::Scalar {
        return inputs.iter().zip(out).for_each(|(input, hash)| *hash = keccak256(input));
    }
    let mut batches = [Batch::default(); MAX_BLOCKS];
    for (index, input) in inputs.iter().enumerate() {
        let Some(batch) = batches.get_mut(input.len() / RATE_BYTES) else {
            out[index] = keccak256(input);
            continue;
        };
        batch.indices[batch.count] = index;
        batch.count += 1;
        if batch.count == lanes.count() {
            hash_batch(lanes, batch.taken(), inputs, out);
            batch.count = 0;
        }
    }
    for batch in &batches {
        hash_batch(lanes, batch.taken(), inputs, out);
    }
}

/// Asks the processor for an input that is to be hashed soon, and may be far away.
pub(crate) fn prefetch(input: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    x86_64::prefetch(input);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = input;
}

/// Inputs with equally many blocks that wait until a vector is full.
#[derive(Clone, Copy, Default)]
struct Batch {
    count: usize,
    indices: [usize; MAX_LANES],
}

impl Batch {
    fn taken(&self) -> &[usize] {
        &self.indices[..self.count]
    }
}

/// Hashes the inputs with these indices, which have equally many blocks and fit one vector.
///
/// `lanes` is available.
fn hash_batch(lanes: Lanes, indices: &[usize], inputs: &[&[u8]], out: &mut [B256]) {
    match (lanes, indices.len()) {
        // One lane alone is slower than the scalar code everywhere.
        (_, 0..=1) | (Lanes::Scalar, _) => {
            indices.iter().for_each(|&index| out[index] = keccak256(inputs[index]));
        }
        #[cfg(target_arch = "x86_64")]
        (Lanes::Avx512, 2..=4) => {
            // SAFETY: `lanes` is available.
            scatter(indices, unsafe { x86_64::avx512_half(gather(indices, inputs)) }, out);
        }
        #[cfg(target_arch = "x86_64")]
        (Lanes::Avx512, _) => {
            // SAFETY: `lanes` is available.
            scatter(indices, unsafe { x86_64::avx512(gather(indices, inputs)) }, out);
        }
        #[cfg(target_arch = "x86_64")]
        (Lanes::Avx2, _) => {
            // SAFETY: `lanes` is available.
            scatter(indices, unsafe { x86_64::avx2(gather(indices, inputs)) }, out);
        }
        #[cfg(target_arch = "aarch64")]
        (Lanes::Neon, _) => {
            // SAFETY: `lanes` is available.
            scatter(indices, unsafe { aarch64::neon(gather(indices, inputs)) }, out);
        }
        _ => unreachable!("{} is not available", lanes.name()),
    }
}

/// An input for each lane: those with these indices, and in lanes that are left the first again.
fn gather<'a, const N: usize>(indices: &[usize], inputs: &[&'a [u8]]) -> [&'a [u8]; N] {
    let mut gathered = [inputs[indices[0]]; N];
    for (lane, &index) in gathered.iter_mut().zip(indices) {
        *lane = inputs[index];
    }
    gathered
}

fn scatter<const N: usize>(indices: &[usize], hashes: [B256; N], out: &mut [B256]) {
    for (&index, hash) in indices.iter().zip(hashes) {
        out[index] = hash;
    }
}
