//! Keys of 32 bytes, read nibble by nibble.

use alloy_primitives::B256;
use std::cmp::Ordering;

/// The nibbles of a key.
pub(crate) const KEY_NIBBLES: usize = 64;

/// The nibble at `index`, of which 0 is the first.
pub(crate) fn nibble(key: &B256, index: usize) -> usize {
    let byte = key[index / 2];
    usize::from(if index.is_multiple_of(2) { byte >> 4 } else { byte & 0xf })
}

/// The key with another nibble at `index`.
pub(crate) fn with_nibble(mut key: B256, index: usize, nibble: usize) -> B256 {
    let (byte, nibble) = (&mut key[index / 2], nibble as u8);
    *byte = if index.is_multiple_of(2) { *byte & 0xf | nibble << 4 } else { *byte & 0xf0 | nibble };
    key
}

/// How many nibbles two keys share at their beginning.
pub(crate) fn shared_nibbles(a: &B256, b: &B256) -> usize {
    let words = a.0.as_chunks::<8>().0.iter().zip(b.0.as_chunks::<8>().0);
    for (index, (a, b)) in words.enumerate() {
        let differing = u64::from_be_bytes(*a) ^ u64::from_be_bytes(*b);
        if differing != 0 {
            return 16 * index + differing.leading_zeros() as usize / 4;
        }
    }
    KEY_NIBBLES
}

/// Compares the first `count` nibbles of two keys.
pub(crate) fn compare_prefixes(a: &B256, b: &B256, count: usize) -> Ordering {
    match shared_nibbles(a, b) {
        shared if shared >= count => Ordering::Equal,
        shared => nibble(a, shared).cmp(&nibble(b, shared)),
    }
}

/// The key after this one; `None` after the last.
pub(crate) fn successor(mut key: B256) -> Option<B256> {
    for byte in key.0.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return Some(key);
        }
    }
    None
}

/// The hex-prefix encoding (yellow paper, appendix C) of the nibbles from `from` up to `to`, in
/// the first bytes of the array, and its length in bytes.
pub(crate) fn hex_prefix(key: &B256, from: usize, to: usize, is_leaf: bool) -> ([u8; 33], usize) {
    let mut encoded = [0; 33];
    let odd = (to - from) % 2;
    encoded[0] = u8::from(is_leaf) << 5 | (odd as u8) << 4;
    if odd == 1 {
        encoded[0] |= nibble(key, from) as u8;
    }
    let (first, bytes) = (from + odd, (to - from) / 2);
    if first.is_multiple_of(2) {
        encoded[1..=bytes].copy_from_slice(&key[first / 2..first / 2 + bytes]);
    } else {
        for (index, byte) in encoded[1..=bytes].iter_mut().enumerate() {
            let high = key[first / 2 + index] << 4;
            *byte = high | key[first / 2 + index + 1] >> 4;
        }
    }
    (encoded, bytes + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nibbles::Nibbles;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = B256> {
        let byte = prop_oneof![Just(0), Just(0xff), any::<u8>()];
        proptest::array::uniform32(byte).prop_map(B256::from)
    }

    proptest! {
        #[test]
        fn keys_agree_with_unpacked_nibbles(a in key(), b in key(), share in 0..65usize,
            range in (0..65usize, 0..65usize), is_leaf: bool) {
            let digits = Nibbles::from_key(a.as_slice()).unwrap();
            let b = (0..share).fold(b, |b, index| with_nibble(b, index, nibble(&a, index)));
            let others = Nibbles::from_key(b.as_slice()).unwrap();
            let shared = crate::nibbles::common_prefix_len(&digits, &others);
            prop_assert_eq!(shared_nibbles(&a, &b), shared);
            prop_assert!((0..64).all(|index| nibble(&a, index) == usize::from(digits[index])));
            let count = range.0;
            let expected = digits[..count].cmp(&others[..count]);
            prop_assert_eq!(compare_prefixes(&a, &b, count), expected);
            let (from, to) = (range.0.min(range.1), range.0.max(range.1));
            let expected = Nibbles::from(&digits[from..to]).to_hex_prefix(is_leaf);
            prop_assert_eq!(hex_prefix(&a, from, to, is_leaf), expected);
            if let Some(next) = successor(a) {
                prop_assert!(next > a);
            }
        }
    }

    #[test]
    fn the_last_key_has_no_successor() {
        assert_eq!(successor(B256::repeat_byte(0xff)), None);
        let one = B256::with_last_byte(1);
        assert_eq!(successor(B256::ZERO), Some(one));
    }
}
