//! Keccak-256 over vectors, whatever their width: FIPS 202 with the padding before it (`0x01`).

use alloy_primitives::B256;

/// Bytes of input to a permutation.
pub(super) const RATE_BYTES: usize = 136;
const RATE_WORDS: usize = RATE_BYTES / 8;

/// The input to a permutation.
pub(super) type Block = [u8; RATE_BYTES];

#[rustfmt::skip]
const ROUND_CONSTANTS: [u64; 24] = [
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000,
    0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
    0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
    0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003,
    0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
];

/// A vector of `N` words, each of another input.
///
/// A value exists only where the processor has the instructions of its type: [`load`](Self::load)
/// asks that of its caller. So all other functions are safe.
pub(super) trait Vector<const N: usize>: Copy {
    /// The effect of the step theta on a column.
    type Theta: Copy;

    /// A vector of these words.
    ///
    /// # Safety
    /// The processor has the instructions of this type.
    unsafe fn load(words: [u64; N]) -> Self;

    /// Vectors of the first and of the second word of each of these.
    ///
    /// # Safety
    /// The processor has the instructions of this type.
    #[inline(always)]
    unsafe fn load_pairs(pairs: [&[u8; 16]; N]) -> [Self; 2] {
        // SAFETY: promised by the caller.
        [0, 1].map(|word| unsafe { Self::load(words(pairs.map(|pair| &pair.as_chunks().0[word]))) })
    }

    fn store(self) -> [u64; N];

    fn xor(self, other: Self) -> Self;

    /// The exclusive or of three.
    fn xor3(self, b: Self, c: Self) -> Self;

    /// `self ^ (!b & c)`.
    fn chi(self, b: Self, c: Self) -> Self;

    /// From the parities of the columns to the left and to the right.
    fn theta(left: Self, right: Self) -> Self::Theta;

    /// A word after theta, rotated left by `L`, and so right by `R`, which is `64 - L`.
    fn rho<const L: i32, const R: i32>(self, theta: Self::Theta) -> Self;

    /// As [`rho`](Self::rho), of the one word that is not rotated.
    fn rho_none(self, theta: Self::Theta) -> Self;
}

fn words<const N: usize>(bytes: [&[u8; 8]; N]) -> [u64; N] {
    bytes.map(|bytes| u64::from_le_bytes(*bytes))
}

/// The last block of an input, given the bytes after its full blocks.
pub(super) fn pad(rest: &[u8]) -> Block {
    let mut block = [0; RATE_BYTES];
    block[..rest.len()].copy_from_slice(rest);
    block[rest.len()] = 0x01;
    block[RATE_BYTES - 1] |= 0x80;
    block
}

/// Keccak-256 of inputs with equally many blocks.
///
/// # Safety
/// The processor has the instructions of `V`.
#[cfg_attr(not(target_arch = "aarch64"), allow(dead_code, reason = "NEON's"))]
#[inline(always)]
pub(super) unsafe fn keccak256_lanes<V: Vector<N>, const N: usize>(
    inputs: [&[u8]; N],
) -> [B256; N] {
    let last = inputs.map(|input| pad(input.as_chunks::<RATE_BYTES>().1));
    // SAFETY: promised by the caller.
    unsafe { keccak256_blocks::<V, N>(inputs.map(|input| input.as_chunks().0), last.each_ref()) }
}

/// Keccak-256 of inputs with equally many blocks: the full ones, and the last with the padding.
///
/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn keccak256_blocks<V: Vector<N>, const N: usize>(
    full: [&[Block]; N],
    last: [&Block; N],
) -> [B256; N] {
    // SAFETY: promised by the caller.
    let mut state = [unsafe { V::load([0; N]) }; 25];
    for index in 0..full[0].len() {
        // SAFETY: promised by the caller.
        unsafe { absorb(&mut state, full.map(|blocks| &blocks[index])) };
        permute(&mut state);
    }
    // SAFETY: promised by the caller.
    unsafe { absorb(&mut state, last) };
    let words = permute_to_hash(&mut state).map(V::store);
    let mut hashes = [B256::ZERO; N];
    for (lane, hash) in hashes.iter_mut().enumerate() {
        for (bytes, words) in hash.as_chunks_mut::<8>().0.iter_mut().zip(&words) {
            *bytes = words[lane].to_le_bytes();
        }
    }
    hashes
}

/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn absorb<V: Vector<N>, const N: usize>(state: &mut [V; 25], blocks: [&Block; N]) {
    for pair in 0..RATE_WORDS / 2 {
        let pairs = blocks.map(|block| &block.as_chunks().0[pair]);
        // SAFETY: promised by the caller.
        let [first, second] = unsafe { V::load_pairs(pairs) };
        state[2 * pair] = state[2 * pair].xor(first);
        state[2 * pair + 1] = state[2 * pair + 1].xor(second);
    }
    let rest = words(blocks.map(|block| &block.as_chunks().0[RATE_WORDS - 1]));
    // SAFETY: promised by the caller.
    state[RATE_WORDS - 1] = state[RATE_WORDS - 1].xor(unsafe { V::load(rest) });
}

/// Keccak-f[1600].
#[inline(always)]
fn permute<V: Vector<N>, const N: usize>(state: &mut [V; 25]) {
    rounds(state, &ROUND_CONSTANTS);
}

/// The words of Keccak-f[1600] that are the hash. Of the last round they need one row.
#[inline(always)]
fn permute_to_hash<V: Vector<N>, const N: usize>(state: &mut [V; 25]) -> [V; 4] {
    let (last, rest) = ROUND_CONSTANTS.split_last().expect("there are rounds");
    rounds(state, rest);
    let b = first_row(state, theta(state));
    let chi = |x: usize| b[x].chi(b[x + 1], b[(x + 2) % 5]);
    [chi(0).xor(splat(*last, b[0])), chi(1), chi(2), chi(3)]
}

/// A round with each of these constants.
#[inline(always)]
fn rounds<V: Vector<N>, const N: usize>(state: &mut [V; 25], constants: &[u64]) {
    for &constant in constants {
        round(state);
        state[0] = state[0].xor(splat(constant, state[0]));
    }
}

/// A word in all lanes; a value of the type shows that the processor has its instructions.
#[inline(always)]
fn splat<V: Vector<N>, const N: usize>(word: u64, _: V) -> V {
    // SAFETY: there is a value of the type.
    unsafe { V::load([word; N]) }
}

/// The effect of the step theta on each column.
#[inline(always)]
fn theta<V: Vector<N>, const N: usize>(a: &[V; 25]) -> [V::Theta; 5] {
    let parity = |x: usize| a[x].xor3(a[x + 5], a[x + 10]).xor3(a[x + 15], a[x + 20]);
    let c = [parity(0), parity(1), parity(2), parity(3), parity(4)];
    [
        V::theta(c[4], c[1]),
        V::theta(c[0], c[2]),
        V::theta(c[1], c[3]),
        V::theta(c[2], c[4]),
        V::theta(c[3], c[0]),
    ]
}

/// The words in these places after theta and rho, each rotated left by so much.
macro_rules! row {
    ($a:ident, $d:ident; $($from:literal << $left:literal),*) => {
        [$($a[$from].rho::<$left, { 64 - $left }>($d[$from % 5])),*]
    };
}

/// The first row after theta, rho and pi.
#[inline(always)]
fn first_row<V: Vector<N>, const N: usize>(a: &[V; 25], d: [V::Theta; 5]) -> [V; 5] {
    let [b1, b2, b3, b4] = row!(a, d; 6 << 44, 12 << 43, 18 << 21, 24 << 14);
    [a[0].rho_none(d[0]), b1, b2, b3, b4]
}

/// A round without its constant. Each row after theta, rho and pi is taken from five words that
/// stand in five columns.
#[inline(always)]
fn round<V: Vector<N>, const N: usize>(state: &mut [V; 25]) {
    let a = *state;
    let d = theta(&a);
    let rows = [
        first_row(&a, d),
        row!(a, d; 3 << 28, 9 << 20, 10 << 3, 16 << 45, 22 << 61),
        row!(a, d; 1 << 1, 7 << 6, 13 << 25, 19 << 8, 20 << 18),
        row!(a, d; 4 << 27, 5 << 36, 11 << 10, 17 << 15, 23 << 56),
        row!(a, d; 2 << 62, 8 << 55, 14 << 39, 15 << 41, 21 << 2),
    ];
    for (y, b) in rows.into_iter().enumerate() {
        state[5 * y] = b[0].chi(b[1], b[2]);
        state[5 * y + 1] = b[1].chi(b[2], b[3]);
        state[5 * y + 2] = b[2].chi(b[3], b[4]);
        state[5 * y + 3] = b[3].chi(b[4], b[0]);
        state[5 * y + 4] = b[4].chi(b[0], b[1]);
    }
}
