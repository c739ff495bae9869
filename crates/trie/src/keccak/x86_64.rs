//! Lanes of AVX-512, AVX2 and SSE2.

use super::sponge::{Block, Vector, keccak256_blocks};
use alloy_primitives::B256;
use std::{arch::x86_64::*, hint::black_box, mem::transmute};

pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")
}

pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

/// Has the frame of the function that this is part of begin where a line of the processor's caches
/// does. The compiler aligns frames to 16 bytes whatever it keeps there: half of the vectors that
/// find no register were in two lines, and some in two pages, by where the stack happened to be.
#[inline(always)]
fn align_frame() {
    #[repr(align(64))]
    struct Aligned(u8);
    black_box(&mut Aligned(0).0);
}

/// Keccak-256 of eight inputs with equally many blocks.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn avx512(full: [&[Block]; 8], last: [&Block; 8]) -> [B256; 8] {
    align_frame();
    // SAFETY: the processor has the instructions that this function is compiled with.
    unsafe { keccak256_blocks::<Avx512, 8>(full, last) }
}

/// Keccak-256 of four inputs with equally many blocks.
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn avx512_half(full: [&[Block]; 4], last: [&Block; 4]) -> [B256; 4] {
    align_frame();
    // SAFETY: the processor has the instructions that this function is compiled with.
    unsafe { keccak256_blocks::<Avx512Half, 4>(full, last) }
}

/// Keccak-256 of four inputs with equally many blocks.
#[target_feature(enable = "avx2")]
pub(super) fn avx2(full: [&[Block]; 4], last: [&Block; 4]) -> [B256; 4] {
    align_frame();
    // SAFETY: the processor has the instructions that this function is compiled with.
    unsafe { keccak256_blocks::<Avx2, 4>(full, last) }
}

/// Keccak-256 of two inputs with equally many blocks.
pub(super) fn sse2(full: [&[Block]; 2], last: [&Block; 2]) -> [B256; 2] {
    // SAFETY: all processors of this architecture have the instructions.
    unsafe { keccak256_blocks::<Sse2, 2>(full, last) }
}

/// Truth tables of the operations on three inputs.
const XOR3: i32 = 0x96;
const CHI: i32 = 0xd2;

// In all functions below: `load` was promised that the processor has the instructions, and where
// there is a value, `load` was called.

/// Vectors of the first and of the second word of each of these.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn load_pairs(pairs: [&[u8; 16]; 4]) -> [__m256i; 2] {
    // SAFETY: pointers to 16 bytes are read as such, and the instructions were promised.
    unsafe {
        let [a, b, c, d] = pairs.map(|pair| _mm_loadu_si128(pair.as_ptr().cast()));
        let even = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), c);
        let odd = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(b), d);
        [_mm256_unpacklo_epi64(even, odd), _mm256_unpackhi_epi64(even, odd)]
    }
}

#[derive(Clone, Copy)]
struct Avx512(__m512i);

impl Vector<8> for Avx512 {
    /// The left parity, and the right one rotated: both are added at once.
    type Theta = (Self, Self);

    #[inline(always)]
    unsafe fn load(words: [u64; 8]) -> Self {
        // SAFETY: both types are 64 bytes, and any bytes are a value of them.
        Self(unsafe { transmute::<[u64; 8], __m512i>(words) })
    }

    #[inline(always)]
    unsafe fn load_pairs(pairs: [&[u8; 16]; 8]) -> [Self; 2] {
        // SAFETY: a pointer to 16 bytes is read as such, and the instructions were promised.
        unsafe {
            let four = |a: &[u8; 16], b: &[u8; 16], c: &[u8; 16], d: &[u8; 16]| {
                let load = |pair: &[u8; 16]| _mm_loadu_si128(pair.as_ptr().cast());
                let all = _mm512_castsi128_si512(load(a));
                let all = _mm512_inserti32x4::<1>(all, load(b));
                let all = _mm512_inserti32x4::<2>(all, load(c));
                _mm512_inserti32x4::<3>(all, load(d))
            };
            let even = four(pairs[0], pairs[2], pairs[4], pairs[6]);
            let odd = four(pairs[1], pairs[3], pairs[5], pairs[7]);
            [Self(_mm512_unpacklo_epi64(even, odd)), Self(_mm512_unpackhi_epi64(even, odd))]
        }
    }

    #[inline(always)]
    fn store(self) -> [u64; 8] {
        // SAFETY: both types are 64 bytes, and any bytes are a value of them.
        unsafe { transmute::<__m512i, [u64; 8]>(self.0) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { _mm512_ternarylogic_epi64::<XOR3>(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn chi(self, b: Self, c: Self) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { _mm512_ternarylogic_epi64::<CHI>(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn theta(left: Self, right: Self) -> (Self, Self) {
        // SAFETY: a value exists.
        (left, Self(unsafe { _mm512_rol_epi64::<1>(right.0) }))
    }

    #[inline(always)]
    fn rho<const L: i32, const R: i32>(self, theta: (Self, Self)) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { _mm512_rol_epi64::<L>(self.rho_none(theta).0) })
    }

    #[inline(always)]
    fn rho_none(self, theta: (Self, Self)) -> Self {
        self.xor3(theta.0, theta.1)
    }
}

/// The instructions of AVX-512 on half of a vector.
#[derive(Clone, Copy)]
struct Avx512Half(__m256i);

impl Vector<4> for Avx512Half {
    type Theta = (Self, Self);

    #[inline(always)]
    unsafe fn load(words: [u64; 4]) -> Self {
        // SAFETY: both types are 32 bytes, and any bytes are a value of them.
        Self(unsafe { transmute::<[u64; 4], __m256i>(words) })
    }

    #[inline(always)]
    unsafe fn load_pairs(pairs: [&[u8; 16]; 4]) -> [Self; 2] {
        // SAFETY: promised by the caller.
        unsafe { load_pairs(pairs) }.map(Self)
    }

    #[inline(always)]
    fn store(self) -> [u64; 4] {
        // SAFETY: both types are 32 bytes, and any bytes are a value of them.
        unsafe { transmute::<__m256i, [u64; 4]>(self.0) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { _mm256_ternarylogic_epi64::<XOR3>(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn chi(self, b: Self, c: Self) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { _mm256_ternarylogic_epi64::<CHI>(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn theta(left: Self, right: Self) -> (Self, Self) {
        // SAFETY: a value exists.
        (left, Self(unsafe { _mm256_rol_epi64::<1>(right.0) }))
    }

    #[inline(always)]
    fn rho<const L: i32, const R: i32>(self, theta: (Self, Self)) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { _mm256_rol_epi64::<L>(self.rho_none(theta).0) })
    }

    #[inline(always)]
    fn rho_none(self, theta: (Self, Self)) -> Self {
        self.xor3(theta.0, theta.1)
    }
}

#[derive(Clone, Copy)]
struct Avx2(__m256i);

impl Avx2 {
    #[inline(always)]
    fn rotate<const L: i32, const R: i32>(self) -> Self {
        // SAFETY: a value exists.
        unsafe {
            let (high, low) = (_mm256_slli_epi64::<L>(self.0), _mm256_srli_epi64::<R>(self.0));
            Self(_mm256_or_si256(high, low))
        }
    }
}

impl Vector<4> for Avx2 {
    type Theta = Self;

    #[inline(always)]
    unsafe fn load(words: [u64; 4]) -> Self {
        // SAFETY: both types are 32 bytes, and any bytes are a value of them.
        Self(unsafe { transmute::<[u64; 4], __m256i>(words) })
    }

    #[inline(always)]
    unsafe fn load_pairs(pairs: [&[u8; 16]; 4]) -> [Self; 2] {
        // SAFETY: promised by the caller.
        unsafe { load_pairs(pairs) }.map(Self)
    }

    #[inline(always)]
    fn store(self) -> [u64; 4] {
        // SAFETY: both types are 32 bytes, and any bytes are a value of them.
        unsafe { transmute::<__m256i, [u64; 4]>(self.0) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    fn xor3(self, b: Self, c: Self) -> Self {
        self.xor(b).xor(c)
    }

    #[inline(always)]
    fn chi(self, b: Self, c: Self) -> Self {
        // SAFETY: a value exists.
        self.xor(Self(unsafe { _mm256_andnot_si256(b.0, c.0) }))
    }

    #[inline(always)]
    fn theta(left: Self, right: Self) -> Self {
        left.xor(right.rotate::<1, 63>())
    }

    #[inline(always)]
    fn rho<const L: i32, const R: i32>(self, theta: Self) -> Self {
        self.xor(theta).rotate::<L, R>()
    }

    #[inline(always)]
    fn rho_none(self, theta: Self) -> Self {
        self.xor(theta)
    }
}

#[derive(Clone, Copy)]
struct Sse2(__m128i);

impl Sse2 {
    #[inline(always)]
    fn rotate<const L: i32, const R: i32>(self) -> Self {
        // SAFETY: a value exists.
        unsafe {
            let (high, low) = (_mm_slli_epi64::<L>(self.0), _mm_srli_epi64::<R>(self.0));
            Self(_mm_or_si128(high, low))
        }
    }
}

impl Vector<2> for Sse2 {
    type Theta = Self;

    #[inline(always)]
    unsafe fn load(words: [u64; 2]) -> Self {
        // SAFETY: both types are 16 bytes, and any bytes are a value of them.
        Self(unsafe { transmute::<[u64; 2], __m128i>(words) })
    }

    #[inline(always)]
    unsafe fn load_pairs(pairs: [&[u8; 16]; 2]) -> [Self; 2] {
        // SAFETY: pointers to 16 bytes are read as such, and the instructions were promised.
        unsafe {
            let [a, b] = pairs.map(|pair| _mm_loadu_si128(pair.as_ptr().cast()));
            [Self(_mm_unpacklo_epi64(a, b)), Self(_mm_unpackhi_epi64(a, b))]
        }
    }

    #[inline(always)]
    fn store(self) -> [u64; 2] {
        // SAFETY: both types are 16 bytes, and any bytes are a value of them.
        unsafe { transmute::<__m128i, [u64; 2]>(self.0) }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: a value exists.
        Self(unsafe { _mm_xor_si128(self.0, other.0) })
    }

    #[inline(always)]
    fn xor3(self, b: Self, c: Self) -> Self {
        self.xor(b).xor(c)
    }

    #[inline(always)]
    fn chi(self, b: Self, c: Self) -> Self {
        // SAFETY: a value exists.
        self.xor(Self(unsafe { _mm_andnot_si128(b.0, c.0) }))
    }

    #[inline(always)]
    fn theta(left: Self, right: Self) -> Self {
        left.xor(right.rotate::<1, 63>())
    }

    #[inline(always)]
    fn rho<const L: i32, const R: i32>(self, theta: Self) -> Self {
        self.xor(theta).rotate::<L, R>()
    }

    #[inline(always)]
    fn rho_none(self, theta: Self) -> Self {
        self.xor(theta)
    }
}
