use crate::{Error, limits::MAX_KEY_NIBBLES};
use std::{fmt, ops::Deref};

/// A path of at most 64 nibbles, one nibble (0 to 15) to a byte.
#[derive(Clone, Copy)]
pub(crate) struct Nibbles {
    len: u8,
    digits: [u8; MAX_KEY_NIBBLES],
}

impl Nibbles {
    /// The nibbles of a whole key, high nibble first.
    pub(crate) fn from_key(key: &[u8]) -> Result<Self, Error> {
        let too_long = Error::KeyTooLong { bytes: key.len() };
        Self::from_bytes(&[], key).ok_or(too_long)
    }

    /// `first`, which are nibbles already, and then the two nibbles of each byte of `rest`.
    /// `None` if that is more than 64.
    fn from_bytes(first: &[u8], rest: &[u8]) -> Option<Self> {
        let mut digits = [0; MAX_KEY_NIBBLES];
        let len = first.len() + 2 * rest.len();
        let (head, tail) = digits.get_mut(..len)?.split_at_mut(first.len());
        head.copy_from_slice(first);
        for (pair, byte) in tail.chunks_exact_mut(2).zip(rest) {
            pair[0] = byte >> 4;
            pair[1] = byte & 0xf;
        }
        Some(Self { len: len as u8, digits })
    }

    /// Several paths joined to one. Panics if that is more than 64 nibbles.
    pub(crate) fn join(parts: &[&[u8]]) -> Self {
        let mut joined = Self { len: 0, digits: [0; MAX_KEY_NIBBLES] };
        let mut len = 0;
        for part in parts {
            joined.digits[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        joined.len = len as u8;
        joined
    }

    /// Decodes the hex-prefix encoding (yellow paper, appendix C) to the path and whether it is
    /// a leaf's.
    pub(crate) fn from_hex_prefix(encoded: &[u8]) -> Result<(Self, bool), &'static str> {
        let (&first, rest) = encoded.split_first().ok_or("path without hex prefix")?;
        let (flags, low) = (first >> 4, first & 0xf);
        let head: &[u8] = match flags {
            0 | 2 if low == 0 => &[],
            0 | 2 => return Err("hex prefix with padding other than zero"),
            1 | 3 => &[low],
            _ => return Err("hex prefix with unknown flags"),
        };
        let path = Self::from_bytes(head, rest).ok_or("path longer than a key")?;
        Ok((path, flags >= 2))
    }

    /// The hex-prefix encoding, in the first bytes of the array, and its length in bytes.
    pub(crate) fn to_hex_prefix(self, is_leaf: bool) -> ([u8; MAX_KEY_NIBBLES / 2 + 1], usize) {
        let mut encoded = [0; MAX_KEY_NIBBLES / 2 + 1];
        let odd = self.len() % 2;
        encoded[0] = (u8::from(is_leaf) << 5) | ((odd as u8) << 4);
        if odd == 1 {
            encoded[0] |= self[0];
        }
        for (byte, pair) in encoded[1..].iter_mut().zip(self[odd..].chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        (encoded, self.len() / 2 + 1)
    }
}

impl From<&[u8]> for Nibbles {
    /// The path of these nibbles. Panics if there are more than 64.
    fn from(nibbles: &[u8]) -> Self {
        Self::join(&[nibbles])
    }
}

impl Deref for Nibbles {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.digits[..usize::from(self.len)]
    }
}

impl fmt::Debug for Nibbles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|nibble| write!(f, "{nibble:x}"))
    }
}

/// How many nibbles `a` and `b` share at their beginning.
pub(crate) fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
