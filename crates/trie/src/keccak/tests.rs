use super::{Lanes, PaddedInputs, keccak256_many, keccak256_many_with, lanes};
use alloy_primitives::{B256, hex, keccak256};
use proptest::prelude::*;

fn available() -> impl Iterator<Item = Lanes> {
    Lanes::ALL.into_iter().filter(|lanes| lanes.is_available())
}

/// Every way of hashing agrees with the hash of each input alone.
fn check(inputs: &[Vec<u8>]) {
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let expected: Vec<B256> = inputs.iter().map(keccak256).collect();
    for lanes in available() {
        let mut hashes = vec![B256::ZERO; inputs.len()];
        keccak256_many_with(lanes, &inputs, &mut hashes);
        assert_eq!(hashes, expected, "{lanes:?}");
        let mut padded = PaddedInputs::with(lanes);
        for input in &inputs {
            padded.bytes.extend_from_slice(input);
            padded.end();
        }
        assert_eq!(padded.take_hashes().as_slice(), expected, "{lanes:?}, padded");
    }
    let mut hashes = vec![B256::ZERO; inputs.len()];
    keccak256_many(&inputs, &mut hashes);
    assert_eq!(hashes, expected);
}

/// An input that no other place has.
fn input(len: usize, place: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 + place * 97 + 5) as u8).collect()
}

#[test]
fn the_hash_of_nothing_is_the_published_one() {
    let expected = hex!("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
    for lanes in available() {
        let mut hashes = [B256::ZERO; 8];
        keccak256_many_with(lanes, &[b"".as_slice(); 8], &mut hashes);
        assert_eq!(hashes, [B256::from(expected); 8], "{lanes:?}");
    }
}

#[test]
fn batches_of_every_size_agree_at_the_edges_of_blocks() {
    for len in [0, 1, 20, 32, 135, 136, 137, 271, 272, 273, 532, 1087, 1088, 1224] {
        for count in 0..=40 {
            check(&(0..count).map(|place| input(len, place)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn lengths_on_both_sides_of_each_edge_mix() {
    for count in 0..=40 {
        let lens = [135, 0, 136, 137, 1, 271, 273, 272, 532, 33, 1087, 1088];
        check(&(0..count).map(|place| input(lens[place % lens.len()], place)).collect::<Vec<_>>());
    }
}

#[test]
fn what_the_machine_can_is_what_is_used() {
    assert_eq!(available().next().map(Lanes::name), Some(lanes()));
    assert_eq!(available().last(), Some(Lanes::Scalar));
}

#[test]
#[should_panic(expected = "one place for each input")]
fn a_missing_place_is_refused() {
    keccak256_many(&[b"dog"], &mut []);
}

proptest! {
    #[test]
    fn random_inputs_agree(
        inputs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 0..100),
    ) {
        check(&inputs);
    }
}
