//! Keccak-256 of many inputs at once, several of them in the lanes of the processor's vectors.
//!
//! ```
//! use alloy_primitives::{B256, keccak256};
//!
//! let inputs: [&[u8]; 3] = [b"do", b"dog", b""];
//! let mut hashes = [B256::ZERO; 3];
//! deponent_trie::keccak::keccak256_many(&inputs, &mut hashes);
//! assert_eq!(hashes, inputs.map(keccak256));
//! ```

#![allow(
    unsafe_code,
    reason = "vector instructions; every call is behind a check of the processor"
)]
// The NEON code takes inputs without padding.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

mod sponge;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(test)]
mod tests;

use alloy_primitives::{B256, keccak256};
use sponge::{Block, RATE_BYTES, pad};
use std::{mem, sync::OnceLock, vec::Drain};

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
    /// Two inputs at a time. Needs the SHA-3 instructions of Armv8.2, their rotations and
    /// operations on three inputs.
    Neon,
    /// Two inputs at a time. All of x86-64 has it.
    Sse2,
    /// One input after the other.
    Scalar,
}

impl Lanes {
    /// All ways, the fastest first.
    pub const ALL: [Self; 5] = [Self::Avx512, Self::Avx2, Self::Neon, Self::Sse2, Self::Scalar];

    /// Whether this machine can hash so.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => x86_64::has_avx512(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => x86_64::has_avx2(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => aarch64::has_sha3(),
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => true,
            Self::Scalar => true,
            _ => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "AVX-512",
            Self::Avx2 => "AVX2",
            Self::Neon => "NEON",
            Self::Sse2 => "SSE2",
            Self::Scalar => "scalar",
        }
    }

    /// How many inputs are hashed at a time.
    fn count(self) -> usize {
        match self {
            Self::Avx512 => 8,
            Self::Avx2 => 4,
            Self::Neon => 2,
            Self::Sse2 => 2,
            Self::Scalar => 1,
        }
    }
}

/// The instruction set for hashing on this machine, detected once.
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

/// The instruction set of [`keccak256_many`] on this machine, for logs: `AVX-512`, `AVX2`, `NEON`,
/// `SSE2` or `scalar`.
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
    let mut batches = [InputBatch::default(); MAX_BLOCKS];
    for (index, input) in inputs.iter().enumerate() {
        let Some(batch) = batches.get_mut(input.len() / RATE_BYTES) else {
            out[index] = keccak256(input);
            continue;
        };
        if batch.add(index, lanes) {
            hash_batch(lanes, batch.taken(), |index| inputs[index], out);
            batch.count = 0;
        }
    }
    for batch in &batches {
        hash_batch(lanes, batch.taken(), |index| inputs[index], out);
    }
}

/// Collects inputs, each written with its padding so that no block is copied again, and hashes them
/// as soon as they fill a vector. Writing waits for memory and hashing for the processor, so the
/// two overlap.
pub(crate) struct PaddedInputs {
    /// The buffer to write the next input to; [`end`](Self::end) completes it.
    pub(crate) bytes: Vec<u8>,
    /// The start and the length of each input.
    places: Vec<(usize, usize)>,
    /// The hash of each input, once it is computed.
    hashes: Vec<B256>,
    batches: [InputBatch; MAX_BLOCKS],
    lanes: Lanes,
    end: usize,
}

impl Default for PaddedInputs {
    fn default() -> Self {
        Self::with(chosen())
    }
}

impl PaddedInputs {
    fn with(lanes: Lanes) -> Self {
        assert!(lanes.is_available(), "{} is not available", lanes.name());
        let batches = [InputBatch::default(); MAX_BLOCKS];
        let (bytes, places, hashes) = Default::default();
        Self { bytes, places, hashes, batches, lanes, end: 0 }
    }

    /// Where the input that is being written begins.
    pub(crate) fn start(&self) -> usize {
        self.end
    }

    /// Pads the input that was written.
    pub(crate) fn end(&mut self) {
        let (index, len) = (self.places.len(), self.bytes.len() - self.end);
        let blocks_count = len / RATE_BYTES + 1;
        self.places.push((self.end, len));
        self.hashes.push(B256::ZERO);
        self.end += blocks_count * RATE_BYTES;
        self.bytes.push(0x01);
        self.bytes.resize(self.end, 0);
        self.bytes[self.end - 1] |= 0x80;
        let Some(batch) = self.batches.get_mut(blocks_count - 1) else {
            self.hashes[index] =
                keccak256(&self.bytes[self.end - blocks_count * RATE_BYTES..][..len]);
            return;
        };
        if batch.add(index, self.lanes) {
            self.hash_batch(blocks_count - 1);
        }
    }

    fn hash_batch(&mut self, index: usize) {
        let batch = mem::take(&mut self.batches[index]);
        let blocks = self.bytes.as_chunks().0;
        let input = |index| {
            let (start, len) = self.places[index];
            let blocks = &blocks[start / RATE_BYTES..][..len / RATE_BYTES + 1];
            Padded { blocks, bytes: &self.bytes[start..start + len] }
        };
        hash_batch(self.lanes, batch.taken(), input, &mut self.hashes);
    }

    /// The hashes of all inputs, after which there are none.
    pub(crate) fn take_hashes(&mut self) -> Drain<'_, B256> {
        for index in 0..MAX_BLOCKS {
            self.hash_batch(index);
        }
        self.bytes.clear();
        self.places.clear();
        self.end = 0;
        self.hashes.drain(..)
    }
}

/// An input of a hash.
trait HashInput<'a>: Copy {
    fn bytes(self) -> &'a [u8];

    /// The full blocks, and the one behind them with the padding, for which there is room.
    fn blocks<'b>(self, room: &'b mut Block) -> (&'a [Block], &'b Block)
    where
        'a: 'b;
}

impl<'a> HashInput<'a> for &'a [u8] {
    fn bytes(self) -> &'a [u8] {
        self
    }

    #[inline(always)]
    fn blocks<'b>(self, room: &'b mut Block) -> (&'a [Block], &'b Block)
    where
        'a: 'b,
    {
        let (full, rest) = self.as_chunks();
        *room = pad(rest);
        (full, room)
    }
}

/// An input, and its blocks with the padding.
#[derive(Clone, Copy)]
struct Padded<'a> {
    blocks: &'a [Block],
    bytes: &'a [u8],
}

impl<'a> HashInput<'a> for Padded<'a> {
    fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    #[inline(always)]
    fn blocks<'b>(self, _: &'b mut Block) -> (&'a [Block], &'b Block)
    where
        'a: 'b,
    {
        let (last, full) = self.blocks.split_last().expect("an input has a block");
        (full, last)
    }
}

/// Inputs with equally many blocks that wait until a vector is full.
#[derive(Clone, Copy, Default)]
struct InputBatch {
    count: usize,
    indices: [usize; MAX_LANES],
}

impl InputBatch {
    /// Adds an input and says whether the vector is full.
    fn add(&mut self, index: usize, lanes: Lanes) -> bool {
        self.indices[self.count] = index;
        self.count += 1;
        self.count == lanes.count()
    }

    fn taken(&self) -> &[usize] {
        &self.indices[..self.count]
    }
}

/// Hashes the inputs with these indices, which have equally many blocks and fit one vector.
///
/// `lanes` is available.
fn hash_batch<'a, I: HashInput<'a>>(
    lanes: Lanes,
    indices: &[usize],
    input: impl Fn(usize) -> I,
    out: &mut [B256],
) {
    match (lanes, indices.len()) {
        // One lane alone is slower than the scalar code everywhere.
        (_, 0..=1) | (Lanes::Scalar, _) => {
            indices.iter().for_each(|&index| out[index] = keccak256(input(index).bytes()));
        }
        #[cfg(target_arch = "x86_64")]
        (Lanes::Avx512, 2..=4) => {
            let mut room = [[0; RATE_BYTES]; 4];
            let (full, last) = blocks(gather(indices, input), &mut room);
            // SAFETY: `lanes` is available.
            scatter(indices, unsafe { x86_64::avx512_half(full, last) }, out);
        }
        #[cfg(target_arch = "x86_64")]
        (Lanes::Avx512, _) => {
            let mut room = [[0; RATE_BYTES]; 8];
            let (full, last) = blocks(gather(indices, input), &mut room);
            // SAFETY: `lanes` is available.
            scatter(indices, unsafe { x86_64::avx512(full, last) }, out);
        }
        #[cfg(target_arch = "x86_64")]
        (Lanes::Avx2, _) => {
            let mut room = [[0; RATE_BYTES]; 4];
            let (full, last) = blocks(gather(indices, input), &mut room);
            // SAFETY: `lanes` is available.
            scatter(indices, unsafe { x86_64::avx2(full, last) }, out);
        }
        #[cfg(target_arch = "x86_64")]
        (Lanes::Sse2, _) => {
            let mut room = [[0; RATE_BYTES]; 2];
            let (full, last) = blocks(gather(indices, input), &mut room);
            scatter(indices, x86_64::sse2(full, last), out);
        }
        #[cfg(target_arch = "aarch64")]
        (Lanes::Neon, _) => {
            let inputs = gather::<_, 2>(indices, input).map(HashInput::bytes);
            // SAFETY: `lanes` is available.
            scatter(indices, unsafe { aarch64::neon(inputs) }, out);
        }
        _ => unreachable!("{} is not available", lanes.name()),
    }
}

/// An input for each lane: those with these indices, and in lanes that are left the first again.
fn gather<I: Copy, const N: usize>(indices: &[usize], input: impl Fn(usize) -> I) -> [I; N] {
    let mut gathered = [input(indices[0]); N];
    for (lane, &index) in gathered.iter_mut().zip(indices) {
        *lane = input(index);
    }
    gathered
}

/// The full blocks of inputs, and their last ones.
#[inline(always)]
fn blocks<'a: 'b, 'b, I: HashInput<'a>, const N: usize>(
    inputs: [I; N],
    room: &'b mut [Block; N],
) -> ([&'a [Block]; N], [&'b Block; N]) {
    let mut full: [&[Block]; N] = [&[]; N];
    let mut last = [&EMPTY_BLOCK; N];
    for (lane, (input, room)) in inputs.into_iter().zip(room).enumerate() {
        (full[lane], last[lane]) = input.blocks(room);
    }
    (full, last)
}

const EMPTY_BLOCK: Block = [0; RATE_BYTES];

fn scatter<const N: usize>(indices: &[usize], hashes: [B256; N], out: &mut [B256]) {
    for (&index, hash) in indices.iter().zip(hashes) {
        out[index] = hash;
    }
}
