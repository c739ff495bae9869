//! Pieces are sent whole and in order, however they are taken.

use super::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

impl ItemList for Vec<Bytes> {
    fn get(&self, index: usize) -> Option<&[u8]> {
        self[..].get(index).map(|item| &item[..])
    }

    fn share(&self, index: usize) -> Option<Bytes> {
        self[..].get(index).cloned()
    }
}

/// A file: bytes that lie here are not to be looked at, what is read is another thing.
struct Elsewhere(Vec<u8>);

impl MappedFiles for Elsewhere {
    fn have(&self, bytes: &[u8]) -> bool {
        self.0.as_ptr_range().contains(&bytes.as_ptr())
    }

    fn read(&self, bytes: &[u8], out: &mut [u8]) -> bool {
        out.copy_from_slice(bytes);
        out.iter_mut().for_each(|byte| *byte = !*byte);
        true
    }
}

#[test]
fn what_lies_in_a_file_is_read() {
    for len in [100, LARGE_PIECE_BYTES, 3 * LARGE_PIECE_BYTES + 5] {
        let elsewhere: &'static Elsewhere = Box::leak(Box::new(Elsewhere(vec![0x12; len])));
        let inside = Bytes::from_static(&elsewhere.0);
        let mut pieces = Pieces::from(vec![Bytes::from_static(b"before"), inside.clone()]);
        pieces.push_items(
            Arc::new(vec![inside.clone(), Bytes::from_static(b"between")]),
            inside.len() + 7,
        );
        pieces.push_hex(inside.clone());
        pieces.push_hex(&b"\x01"[..]);
        pieces.read_from(elsewhere);
        let read = |byte: &[u8], times: usize| byte.repeat(times);
        let parts = [&b"before"[..], &read(&[0xed], 2 * len), b"between", &read(b"ed", len)];
        let expected = [&parts.concat()[..], b"01"].concat();
        let mut others = Pieces::default();
        others.append(pieces.slice(3..expected.len()));
        for (mut pieces, expected) in [(pieces, &expected[..]), (others, &expected[3..])] {
            assert_eq!(pieces.to_vec(), expected);
            #[cfg(target_os = "linux")]
            {
                let mut copied = vec![0; expected.len()];
                pieces.copy_to(&mut copied);
                assert_eq!(copied, expected);
            }
            let mut taken = Vec::new();
            while !pieces.is_empty() {
                let next = pieces.take(2 * LARGE_PIECE_BYTES);
                assert!(!next.is_empty());
                taken.extend_from_slice(&next);
            }
            assert_eq!(taken, expected);
        }
    }
}

/// As other threads look at files, what they have changes at any moment.
#[test]
fn something_is_taken_whatever_comes_into_memory_meanwhile() {
    struct Fickle(AtomicUsize);
    impl MappedFiles for Fickle {
        fn have(&self, _: &[u8]) -> bool {
            // Twice in memory, once not, in turn.
            self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(3)
        }

        fn read(&self, bytes: &[u8], out: &mut [u8]) -> bool {
            out.copy_from_slice(bytes);
            true
        }
    }
    for turn in 0..3 {
        let fickle: &'static Fickle = Box::leak(Box::new(Fickle(turn.into())));
        let large = Bytes::from(vec![7; 2 * LARGE_PIECE_BYTES]);
        let mut pieces = Pieces::from(vec![large.clone(), large.clone()]);
        pieces.push_items(Arc::new(vec![large.clone(), large.clone()]), 2 * large.len());
        pieces.read_from(fickle);
        let mut taken = 0;
        while !pieces.is_empty() {
            let next = pieces.take(LARGE_PIECE_BYTES);
            assert!(!next.is_empty());
            taken += next.len();
        }
        assert_eq!(taken, 4 * large.len());
    }
}

#[derive(Clone, Copy, Debug)]
enum Form {
    AsIs,
    Hex,
    /// As items of a list, of so many bytes at most.
    Items(usize),
}

fn any_pieces() -> impl Strategy<Value = (Pieces, Vec<u8>)> {
    let length = prop_oneof![0..5usize, 0..300usize, Just(LARGE_PIECE_BYTES + 7)];
    let items = (1..2 * LARGE_PIECE_BYTES).prop_map(Form::Items);
    let form =
        prop_oneof![Just(Form::AsIs), Just(Form::Hex), (1..90usize).prop_map(Form::Items), items];
    let piece = (form, any::<u8>(), length);
    prop::collection::vec(piece, 0..8).prop_map(|list| {
        let (mut pieces, mut expected) = (Pieces::default(), Vec::new());
        for (form, seed, length) in list {
            let bytes: Vec<u8> = (0..length).map(|at| (at as u8).wrapping_mul(seed)).collect();
            match form {
                Form::AsIs => {
                    expected.extend(&bytes);
                    pieces.push(bytes);
                }
                Form::Hex => {
                    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
                    digits.for_each(|digits| expected.extend(digits.bytes()));
                    pieces.push_hex(bytes);
                }
                Form::Items(most) => {
                    expected.extend(&bytes);
                    let mut items = vec![Bytes::new()];
                    for item in bytes.chunks(most) {
                        items.extend([Bytes::copy_from_slice(item), Bytes::new()]);
                    }
                    let len_bytes = items.iter().map(Bytes::len).sum();
                    pieces.push_items(Arc::new(items), len_bytes);
                }
            }
        }
        (pieces, expected)
    })
}

proptest! {
    #[test]
    fn what_is_taken_is_all_of_it_in_order(
        (mut pieces, expected) in any_pieces(),
        most_bytes in prop_oneof![2..9usize, 2..70_000usize],
    ) {
        prop_assert_eq!(pieces.len_bytes(), expected.len());
        prop_assert_eq!(pieces.to_vec(), &expected[..]);
        #[cfg(target_os = "linux")]
        {
            let mut copied = vec![0; expected.len()];
            pieces.copy_to(&mut copied);
            prop_assert_eq!(&copied, &expected);
        }
        let mut taken = Vec::new();
        while !pieces.is_empty() {
            let next = pieces.take(most_bytes);
            prop_assert!(!next.is_empty() && next.len() <= most_bytes);
            taken.extend_from_slice(&next);
            prop_assert_eq!(pieces.len_bytes(), expected.len() - taken.len());
        }
        prop_assert!(taken == expected);
        prop_assert!(pieces.take(most_bytes).is_empty());
    }

    #[test]
    fn a_slice_is_that_part_of_it(
        (pieces, expected) in any_pieces(),
        start in any::<prop::sample::Index>(),
        end in any::<prop::sample::Index>(),
    ) {
        let (start, end) = (start.index(expected.len() + 1), end.index(expected.len() + 1));
        let (start, end) = (start.min(end), start.max(end));
        let slice = pieces.slice(start..end);
        prop_assert_eq!(slice.len_bytes(), end - start);
        prop_assert_eq!(slice.to_vec(), &expected[start..end]);
    }
}

#[test]
fn a_slice_that_is_large_or_alone_is_not_copied() {
    let large = Bytes::from(vec![7; 3 * LARGE_PIECE_BYTES]);
    let mut pieces = Pieces::from(vec![Bytes::from_static(b"small"), large.clone()]);
    assert_eq!(pieces.take(1 << 20), b"small"[..]);
    let taken = pieces.take(1 << 20);
    assert_eq!(taken.as_ptr(), large.as_ptr());
    assert_eq!(taken.len(), large.len());
    let alone = Bytes::from_static(b"alone");
    let mut pieces = Pieces::from(vec![alone.clone()]);
    assert_eq!(pieces.take(1 << 20).as_ptr(), alone.as_ptr());
    let mut pieces = Pieces::default();
    pieces.push_items(Arc::new(vec![large.clone(); 2]), 2 * large.len());
    let taken = [pieces.take(1 << 20), pieces.take(1 << 20)];
    assert_eq!(taken.map(|taken| taken.as_ptr()), [large.as_ptr(); 2]);
    assert!(pieces.is_empty());
}

#[test]
fn a_value_is_kept_as_long_as_any_part_of_the_bytes_that_it_came_with() {
    let value = Arc::new(());
    let mut inner = Pieces::from(b"inner".to_vec());
    inner.keep_until_sent(value.clone());
    let mut outer = Pieces::from(b"outer ".to_vec());
    outer.append(inner);
    let part = outer.slice(0..3);
    outer.take(100);
    assert_eq!(Arc::strong_count(&value), 3, "also when all bytes are taken");
    drop(outer);
    assert_eq!(Arc::strong_count(&value), 2);
    drop(part);
    assert_eq!(Arc::strong_count(&value), 1);
}
