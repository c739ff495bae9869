use super::*;
use crate::samples::{
    Format, any_mutation, any_witness, check_borrowed, check_parts, check_uncopied, list, small,
    vectors,
};
use proptest::prelude::*;

const FORMAT: Format = Format { encode, decode };

fn string(content: &[u8]) -> Vec<u8> {
    alloy_rlp::encode(content)
}

/// The list of these items, each already RLP.
fn document(items: &[&[u8]]) -> Bytes {
    list(&items.concat()).into()
}

const EMPTY: &[u8] = &[0xc0];

fn refused(input: Bytes, expected: &str) {
    let error = decode(&input).expect_err("refused");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn vectors_of_another_encoder_agree_both_ways() {
    for vector in vectors() {
        assert_eq!(Bytes::from(encode(&vector.witness())), vector.rlp());
        assert_eq!(decode(&vector.rlp()), Ok(vector.witness()));
    }
}

#[test]
fn items_are_neither_copied_on_writing_nor_on_reading() {
    let witness = small();
    let [state, codes, headers] = witness.lists();
    let items = headers.iter().chain(codes.iter()).chain(state.iter());
    check_uncopied(items, |mut sink| write(&witness, &mut sink));
    let input = encode(&witness).into();
    check_borrowed(&decode(&input).unwrap(), &input);
}

#[test]
fn four_items_are_written() {
    assert_eq!(encode(&Witness::default()), [0xc4, 0xc0, 0xc0, 0xc0, 0xc0]);
}

#[test]
fn three_and_four_items_are_read_and_no_other_number() {
    assert_eq!(decode(&document(&[EMPTY; 3])), Ok(Witness::default()));
    assert_eq!(decode(&document(&[EMPTY; 4])), Ok(Witness::default()));
    refused(document(&[]), "headers: input too short");
    refused(document(&[EMPTY]), "codes: input too short");
    refused(document(&[EMPTY; 2]), "state: input too short");
    refused(document(&[EMPTY; 5]), "witness: more than four items");
}

#[test]
fn keys_are_checked_and_passed_over() {
    let keys = list(&[string(&[1; 20]), string(&[2; 32])].concat());
    assert_eq!(decode(&document(&[EMPTY, EMPTY, EMPTY, &keys])), Ok(Witness::default()));
    refused(document(&[EMPTY, EMPTY, EMPTY, &[0x80]]), "keys: unexpected string");
    refused(document(&[EMPTY, EMPTY, EMPTY, &list(EMPTY)]), "keys: unexpected list");
}

#[test]
fn trailing_bytes_are_refused() {
    for trailing in [&[0x00][..], EMPTY, &[0x80; 100]] {
        let input = [&encode(&small()), trailing].concat();
        refused(input.into(), &format!("witness: {} bytes after the end", trailing.len()));
    }
}

#[test]
fn a_string_is_no_list_and_a_list_no_string() {
    refused(string(b"witness").into(), "witness: unexpected string");
    refused(Bytes::new(), "witness: input too short");
    refused(document(&[&[0x80], EMPTY, EMPTY]), "headers: unexpected string");
    refused(document(&[EMPTY, &[0x05], EMPTY]), "codes: unexpected string");
    refused(document(&[EMPTY, EMPTY, &string(&[1; 60])]), "state: unexpected string");
    let header_as_string = list(&string(&list(&[1; 60])));
    refused(document(&[&header_as_string, EMPTY, EMPTY]), "headers: unexpected string");
    let node_as_list = list(&list(&[1; 40]));
    refused(document(&[EMPTY, EMPTY, &node_as_list]), "state: unexpected list");
    refused(document(&[EMPTY, &list(EMPTY), EMPTY]), "codes: unexpected list");
}

#[test]
fn lengths_that_are_not_canonical_are_refused() {
    let codes = |code: &[u8]| document(&[EMPTY, &list(code), EMPTY]);
    refused(codes(&[0x81, 0x05]), "codes: non-canonical single byte");
    refused(codes(&[0xb8, 0x03, 1, 2, 3]), "codes: non-canonical size");
    refused(codes(&[&[0xb9, 0x00, 60][..], &[1; 60]].concat()), "codes: leading zero");
    let long_list = [&[0xf8, 0x03][..], &[EMPTY; 3].concat()].concat();
    refused(long_list.into(), "witness: non-canonical size");
    let endless = [&[0xbf][..], &[0xff; 8]].concat();
    refused(codes(&endless), "codes: input too short");
}

#[test]
fn an_item_does_not_reach_past_its_list() {
    refused(document(&[EMPTY, &list(&[0x83, 1, 2]), EMPTY]), "codes: input too short");
    refused(document(&[&list(&[0xc3, 1]), EMPTY, EMPTY]), "headers: input too short");
}

#[test]
fn lists_and_items_over_their_limits_are_refused() {
    let headers = |count| list(&EMPTY.repeat(count));
    assert!(decode(&document(&[&headers(256), EMPTY, EMPTY])).is_ok());
    refused(document(&[&headers(257), EMPTY, EMPTY]), "headers: 257 is over the limit of 256");
    let bytes = |count| list(&vec![7; count]);
    let most = decode(&document(&[EMPTY, &bytes(limits::ITEMS), EMPTY])).unwrap();
    assert_eq!(most.codes.len(), limits::ITEMS);
    let over = "1048577 is over the limit of 1048576";
    for (items, field) in [
        ([EMPTY, &bytes(limits::ITEMS + 1), EMPTY, EMPTY], "codes"),
        ([EMPTY, EMPTY, &bytes(limits::ITEMS + 1), EMPTY], "state"),
        ([EMPTY, EMPTY, EMPTY, &bytes(limits::ITEMS + 1)], "keys"),
    ] {
        let document = document(&items);
        refused(document.clone(), &format!("{field}: {over}"));
        let Witness { state, codes, .. } = decode_own(&document).expect("without limits");
        assert_eq!(state.len() + codes.len(), if field == "keys" { 0 } else { limits::ITEMS + 1 });
    }
    let item = list(&string(&vec![7; limits::ITEM_BYTES + 1]));
    refused(document(&[EMPTY, &item, EMPTY]), &format!("codes: {over}"));
    refused(document(&[EMPTY, EMPTY, &item]), &format!("state: {over}"));
    let header = list(&list(&vec![7; limits::ITEM_BYTES + 1]));
    refused(document(&[&header, EMPTY, EMPTY]), &format!("headers: {over}"));
}

#[test]
fn every_truncation_is_refused() {
    FORMAT.check_truncations(&small());
    FORMAT.check_truncations(&Witness::default());
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(witness in any_witness()) {
        FORMAT.check_round_trip(&witness);
        prop_assert_eq!(encoded_len(&witness), encode(&witness).len());
        check_parts(&witness, parts(&witness), encode(&witness));
    }

    #[test]
    fn random_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        FORMAT.check_noise(list(&bytes));
        FORMAT.check_noise(bytes);
    }

    #[test]
    fn random_mutations_get_an_answer(witness in any_witness(), mutation in any_mutation()) {
        FORMAT.check_mutation(&witness, &mutation);
    }
}
