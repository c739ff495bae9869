//! An append-only arena for the records that a block has loaded.

/// Bytes of a piece: few pieces for a large block, and little waste in the last one.
const PIECE_BYTES: usize = 256 << 10;

/// Byte strings in pieces that never move: a single vector would be copied again and again as it
/// grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordArena {
    pieces: Vec<Vec<u8>>,
}

impl RecordArena {
    /// Appends two adjacent byte strings, together at most a piece, and returns their start.
    pub(crate) fn append(&mut self, first: &[u8], second: &[u8]) -> usize {
        let bytes = first.len() + second.len();
        assert!(bytes <= PIECE_BYTES, "a record is shorter than a piece");
        match self.pieces.last() {
            // Most overlays are small, so the first piece grows on demand.
            None => self.pieces.push(Vec::new()),
            Some(last) if last.len() + bytes > PIECE_BYTES => {
                self.pieces.push(Vec::with_capacity(PIECE_BYTES));
            }
            Some(_) => {}
        }
        let number = self.pieces.len() - 1;
        let last = &mut self.pieces[number];
        let start = number * PIECE_BYTES + last.len();
        last.extend_from_slice(first);
        last.extend_from_slice(second);
        start
    }

    /// `len` bytes from `start` on, which were appended together.
    pub(crate) fn bytes(&self, start: usize, len: usize) -> &[u8] {
        let (piece, start) = Self::position(start);
        &self.pieces[piece][start..][..len]
    }

    /// The piece of an offset, and the offset in that piece.
    pub(crate) fn position(start: usize) -> (usize, usize) {
        (start / PIECE_BYTES, start % PIECE_BYTES)
    }

    pub(crate) fn pieces(&self) -> &[Vec<u8>] {
        &self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn what_was_appended_stays_where_it_was() {
        let rng = &mut StdRng::seed_from_u64(testing::seed());
        let (mut arena, mut appended) = (RecordArena::default(), Vec::new());
        for number in 0..5_000u32 {
            let first = vec![number as u8; rng.random_range(0..33)];
            let second = vec![!number as u8; rng.random_range(0..700)];
            appended.push((arena.append(&first, &second), [first, second].concat()));
        }
        let whole = vec![7; PIECE_BYTES];
        appended.push((arena.append(&whole, &[]), whole));
        for (start, expected) in appended {
            assert_eq!(arena.bytes(start, expected.len()), expected);
            let piece = &arena.pieces()[RecordArena::position(start).0];
            assert_eq!(piece[start % PIECE_BYTES..][..expected.len()], expected);
        }
        assert!(arena.pieces().iter().all(|piece| piece.len() <= PIECE_BYTES));
    }
}
