use super::*;
use crate::samples::list;
use proptest::prelude::*;

/// A header's RLP: the three fields that matter here among the twelve others.
fn header(number: u64, parent_hash: B256, state_root: B256) -> Bytes {
    let filler = alloy_rlp::encode(B256::repeat_byte(9));
    let mut fields = alloy_rlp::encode(parent_hash);
    fields.extend([&filler[..], &alloy_rlp::encode([7; 20])].concat());
    fields.extend(alloy_rlp::encode(state_root));
    fields.extend([&filler[..], &filler, &alloy_rlp::encode([0; 256]), &[0x80]].concat());
    fields.extend(alloy_rlp::encode(U64::from(number)));
    fields.extend([&[0x80, 0x80, 0x80, 0x80][..], &filler, &[0x80]].concat());
    list(&fields).into()
}

const ROOT: B256 = B256::repeat_byte(5);

/// Headers of this many blocks, from number 100 on, each the parent of the next.
fn chain(count: u64) -> Vec<Bytes> {
    let mut headers: Vec<Bytes> = Vec::new();
    for number in 100..100 + count {
        let parent_hash = headers.last().map_or(B256::repeat_byte(1), keccak256);
        headers.push(header(number, parent_hash, ROOT));
    }
    headers
}

fn index(headers: Vec<Bytes>) -> Result<WitnessIndex, DecodeError> {
    let parent_hash = chain(4).last().map(keccak256).unwrap();
    WitnessIndex::new(&Witness { headers, ..Witness::default() }, parent_hash)
}

fn refused(headers: Vec<Bytes>, expected: &str) {
    let error = index(headers).expect_err("refused").to_string();
    assert!(error.starts_with("headers: "), "{error}");
    assert!(error.contains(expected), "{error}");
}

#[test]
fn headers_that_ascend_to_the_parent_are_found_by_number() {
    let index = index(chain(4)).unwrap();
    for (number, rlp) in (100..).zip(chain(4)) {
        let hash = keccak256(&rlp);
        assert_eq!(index.ancestor(number), Some(Ancestor { hash, rlp }));
    }
    for number in [0, 99, 104, u64::MAX] {
        assert_eq!(index.ancestor(number), None);
    }
    assert_eq!(index.state_root(), ROOT);
    assert_eq!(index.parent_rlp(), chain(4).last().unwrap());
}

#[test]
fn the_parent_alone_is_enough() {
    let index = index(chain(4).split_off(3)).unwrap();
    assert!(index.ancestor(103).is_some());
    assert_eq!(index.ancestor(102), None);
}

#[test]
fn headers_without_the_parent_at_the_end_are_refused() {
    refused(Vec::new(), "is not the last");
    refused(chain(3), "is not the last");
    refused(chain(5), "is not the last");
    refused(vec![header(103, B256::ZERO, ROOT)], "is not the last");
}

#[test]
fn headers_out_of_order_or_with_a_gap_are_refused() {
    let pick = |order: &[usize]| order.iter().map(|at| chain(4)[*at].clone()).collect();
    refused(pick(&[3, 2, 1, 0]), "102 does not follow the one before it");
    refused(pick(&[1, 0, 2, 3]), "100 does not follow the one before it");
    refused(pick(&[0, 1, 3]), "103 does not follow the one before it");
    refused(pick(&[0, 2, 3]), "102 does not follow the one before it");
    refused(pick(&[0, 1, 2, 2, 3]), "102 does not follow the one before it");
    refused(pick(&[3, 3]), "103 does not follow the one before it");
}

#[test]
fn a_header_with_the_wrong_parent_is_refused() {
    let mut headers = chain(4);
    headers[1] = header(101, B256::repeat_byte(2), ROOT);
    refused(headers, "101 does not follow the one before it");
    let mut headers = chain(4);
    headers[0] = header(100, B256::repeat_byte(1), B256::repeat_byte(6));
    refused(headers, "101 does not follow the one before it");
}

#[test]
fn what_is_no_header_is_refused() {
    let replaced = |rlp: &[u8]| [vec![Bytes::copy_from_slice(rlp)], chain(4)].concat();
    refused(replaced(&[]), "not a header: input too short");
    refused(replaced(&[0x80]), "not a header: unexpected string");
    refused(replaced(&[0xc0]), "not a header: input too short");
    let rlp = &chain(1)[0];
    refused(replaced(&[rlp, &[0][..]].concat()), "not a header: unexpected length");
    refused(replaced(&rlp[..rlp.len() - 1]), "not a header: input too short");
    let wide_number = list(&[&rlp[3..rlp.len() - 100], &[0x89], &[1; 9]].concat());
    refused(replaced(&wide_number), "not a header: ");
}

#[test]
fn nodes_and_codes_are_found_by_hash() {
    let [node, code] = [Bytes::from_static(b"a node"), Bytes::from_static(b"a code")];
    let witness =
        Witness { state: vec![node.clone()].into(), codes: vec![code.clone()], headers: chain(4) };
    let index = WitnessIndex::new(&witness, keccak256(&witness.headers[3])).unwrap();
    let (node_hash, code_hash) = (keccak256(&node), keccak256(&code));
    assert_eq!((index.node(&node_hash), index.code(&node_hash)), (Some(node), None));
    assert_eq!((index.node(&code_hash), index.code(&code_hash)), (None, Some(code)));
}

proptest! {
    #[test]
    fn random_headers_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(index(vec![bytes.clone().into()]).is_err());
        prop_assert!(index(vec![list(&bytes).into()]).is_err());
    }

    #[test]
    fn a_header_with_one_byte_changed_is_refused(
        header in 0..4usize,
        at in any::<prop::sample::Index>(),
        change in 1u8..,
    ) {
        let mut headers = chain(4);
        let mut rlp = headers[header].to_vec();
        let at = at.index(rlp.len());
        rlp[at] ^= change;
        headers[header] = rlp.into();
        prop_assert!(index(headers).is_err());
    }
}

#[test]
fn headers_that_skip_a_number_are_refused() {
    for number in [0, 100, 102, u64::MAX] {
        let first = header(100, B256::ZERO, ROOT);
        let last = header(number, keccak256(&first), ROOT);
        let parent_hash = keccak256(&last);
        let witness = Witness { headers: vec![first, last], ..Witness::default() };
        let error = WitnessIndex::new(&witness, parent_hash).expect_err("refused");
        assert!(error.to_string().contains("does not follow"), "{error}");
    }
}
