use super::*;
use crate::samples::{
    Format, any_mutation, any_witness, check_borrowed, check_parts, check_uncopied, small, vectors,
};
use proptest::prelude::*;

const FORMAT: Format = Format { encode: |witness| encode(witness).expect("short"), decode };

/// The three offsets, then these bytes.
fn document(offsets: [u32; 3], rest: &[u8]) -> Bytes {
    let mut out = offsets.map(u32::to_le_bytes).concat();
    out.extend_from_slice(rest);
    out.into()
}

/// A witness whose codes are these bytes.
fn with_codes(codes: &[u8]) -> Bytes {
    document([12, 12, 12 + codes.len() as u32], codes)
}

/// A list of byte lists: offsets, then content.
fn items(offsets: &[u32], content: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
    out.extend_from_slice(content);
    out
}

fn refused(input: Bytes, expected: &str) {
    let error = decode(&input).expect_err("refused");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn vectors_of_another_encoder_agree_both_ways() {
    for vector in vectors() {
        assert_eq!(encode(&vector.witness()).map(Bytes::from), Ok(vector.ssz()));
        assert_eq!(decode(&vector.ssz()), Ok(vector.witness()));
    }
}

#[test]
fn items_are_neither_copied_on_writing_nor_on_reading() {
    let witness = small();
    let items = witness.lists().into_iter().flat_map(Items::iter);
    check_uncopied(items, |mut sink| write(&witness, &mut sink).unwrap());
    let input = encode(&witness).unwrap().into();
    check_borrowed(&decode(&input).unwrap(), &input);
}

#[test]
fn less_than_three_offsets_are_refused() {
    for length in 0..12 {
        refused(vec![0; length].into(), "witness: shorter than its three offsets");
    }
}

#[test]
fn a_first_offset_other_than_twelve_is_refused() {
    for first in [0, 8, 11, 13, 16, u32::MAX] {
        let expected = format!("witness: first offset is {first}, not 12");
        refused(document([first, 12, 12], &[]), &expected);
    }
}

#[test]
fn offsets_of_the_lists_ascend_and_stay_inside() {
    let expected = |field| format!("{field}: offsets out of order or out of bounds");
    refused(document([12, 11, 12], &[]), &expected("state"));
    refused(document([12, 13, 12], &[]), &expected("state"));
    refused(document([12, u32::MAX, u32::MAX], &[]), &expected("state"));
    refused(document([12, 12, 11], &[]), &expected("codes"));
    refused(document([12, 12, 13], &[]), &expected("codes"));
    refused(document([12, 12, u32::MAX], &[]), &expected("codes"));
}

#[test]
fn a_list_shorter_than_one_offset_is_refused() {
    for length in 1..4 {
        refused(with_codes(&vec![4; length]), "codes: shorter than one offset");
    }
}

#[test]
fn the_first_offset_of_a_list_counts_its_items() {
    for first in [0, 1, 3, 5, 9, u32::MAX, u32::MAX - 3] {
        let expected = format!("codes: first offset is {first}");
        refused(with_codes(&items(&[first], &[1; 4])), &expected);
    }
    let one = decode(&with_codes(&items(&[4], b"code"))).unwrap();
    assert_eq!(one.codes, [Bytes::from_static(b"code")]);
    let two = decode(&with_codes(&items(&[8, 8], b"code"))).unwrap();
    assert_eq!(two.codes, [Bytes::new(), Bytes::from_static(b"code")]);
}

#[test]
fn offsets_of_items_ascend_and_stay_inside() {
    for second in [0, 7, 13, u32::MAX] {
        let expected = "codes: offset 1 out of order or out of bounds";
        refused(with_codes(&items(&[8, second], b"code")), expected);
    }
    let expected = "codes: offset 2 out of order or out of bounds";
    refused(with_codes(&items(&[12, 14, 13], b"code")), expected);
}

#[test]
fn bytes_after_the_last_item_belong_to_it() {
    let witness = small();
    let mut input = encode(&witness).unwrap();
    input.push(0xff);
    let decoded = decode(&input.into()).unwrap();
    let longer = [&witness.headers[1][..], &[0xff]].concat();
    assert_eq!(decoded.headers, [witness.headers[0].clone(), longer.into()]);
    // Where there is no item for them to belong to, they are refused.
    refused(document([12; 3], &[1]), "headers: shorter than one offset");
}

#[test]
fn lists_and_items_over_their_limits_are_refused() {
    let empty_items = |count: usize| items(&vec![4 * count as u32; count], &[]);
    let headers = |count| document([12; 3], &empty_items(count));
    assert_eq!(decode(&headers(256)).unwrap().headers.len(), 256);
    refused(headers(257), "headers: 257 is over the limit of 256");
    assert_eq!(decode(&with_codes(&empty_items(1 << 20))).unwrap().codes.len(), 1 << 20);
    let over = "codes: 1048577 is over the limit of 1048576";
    // The offsets after the first are wrong: the count is refused before they are looked at.
    let mut count = vec![0; 4 * (limits::ITEMS + 1)];
    let first = count.len() as u32;
    count[..4].copy_from_slice(&first.to_le_bytes());
    refused(with_codes(&count), over);
    refused(with_codes(&items(&[4], &vec![7; limits::ITEM_BYTES + 1])), over);
}

#[test]
fn a_truncation_is_refused_unless_it_only_shortens_the_headers() {
    let witness = small();
    let encoded = Bytes::from(encode(&witness).unwrap());
    let last = encoded.len() - witness.headers[1].len();
    let no_headers = last - witness.headers[0].len() - 8;
    for end in 0..encoded.len() {
        // SSZ has no length of its own: the end of the input is the end of the last item.
        let expected = match end {
            end if end == no_headers => Some(Vec::new()),
            end if end >= last => Some(vec![witness.headers[0].clone(), encoded.slice(last..end)]),
            _ => None,
        };
        let expected = expected.map(|headers| Witness { headers, ..witness.clone() });
        assert_eq!(decode(&encoded.slice(..end)).ok(), expected, "{end} bytes");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(witness in any_witness()) {
        FORMAT.check_round_trip(&witness);
        prop_assert_eq!(encoded_len(&witness), encode(&witness).unwrap().len());
    }

    #[test]
    fn the_parts_are_the_encoding_with_items_uncopied(witness in any_witness()) {
        check_parts(&witness, parts(&witness).unwrap(), encode(&witness).unwrap());
    }

    #[test]
    fn random_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        FORMAT.check_noise(document([12; 3], &bytes).to_vec());
        FORMAT.check_noise(with_codes(&bytes).to_vec());
        FORMAT.check_noise(bytes);
    }

    #[test]
    fn only_one_encoding_of_a_witness_is_read(
        witness in any_witness(),
        mutation in any_mutation(),
    ) {
        FORMAT.check_mutation(&witness, &mutation);
        let mutated = Bytes::from(mutation.apply(encode(&witness).unwrap()));
        if let Ok(decoded) = decode(&mutated) {
            prop_assert_eq!(Bytes::from(encode(&decoded).unwrap()), mutated);
        }
    }
}
