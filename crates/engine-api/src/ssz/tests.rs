use super::*;
use alloy_consensus::{Block, EthereumTxEnvelope, TxEip4844};
use alloy_primitives::hex;
use proptest::prelude::*;

fn bytes(text: &str) -> Bytes {
    let digits: String = text.chars().filter(|c| c.is_ascii_hexdigit()).collect();
    hex::decode(digits).expect("the case is hex").into()
}

fn joined(parts: Vec<Bytes>) -> Bytes {
    parts.concat().into()
}

fn any_fork() -> impl Strategy<Value = Fork> {
    prop::sample::select(Fork::ALL.to_vec())
}

fn content(most: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..=most).prop_map(Bytes::from)
}

fn byte_lists() -> impl Strategy<Value = Vec<Bytes>> {
    prop::collection::vec(content(40), 0..5)
}

fn fixed<const N: usize>() -> impl Strategy<Value = FixedBytes<N>> {
    prop::array::uniform::<_, N>(any::<u8>()).prop_map(FixedBytes::new)
}

fn hash() -> impl Strategy<Value = B256> {
    fixed::<32>()
}

fn number() -> impl Strategy<Value = U256> {
    any::<[u64; 4]>().prop_map(U256::from_limbs)
}

fn withdrawals() -> impl Strategy<Value = Vec<Withdrawal>> {
    let withdrawal = (any::<[u64; 3]>(), fixed::<20>()).prop_map(|(numbers, address)| {
        let [index, validator_index, amount] = numbers;
        Withdrawal { index, validator_index, address: address.0.into(), amount }
    });
    prop::collection::vec(withdrawal, 0..=WITHDRAWALS)
}

fn payload(fork: Fork) -> impl Strategy<Value = ExecutionPayload> {
    let fields = (
        any::<[[u8; 32]; 5]>(),
        fixed::<20>(),
        prop::collection::vec(any::<u8>(), 256),
        any::<[u64; 7]>(),
        (content(EXTRA_DATA_BYTES), number()),
        (byte_lists(), withdrawals(), content(50)),
    );
    fields.prop_map(move |(hashes, fee_recipient, bloom, numbers, (extra_data, fee), lists)| {
        let [parent_hash, state_root, receipts_root, prev_randao, block_hash] = hashes;
        let [block_number, gas_limit, gas_used, timestamp, blob_gas, excess, slot] = numbers;
        let (transactions, withdrawals, list) = lists;
        let first = ExecutionPayloadV1 {
            parent_hash: parent_hash.into(),
            fee_recipient: fee_recipient.0.into(),
            state_root: state_root.into(),
            receipts_root: receipts_root.into(),
            logs_bloom: alloy_primitives::Bloom::from_slice(&bloom),
            prev_randao: prev_randao.into(),
            block_number,
            gas_limit,
            gas_used,
            timestamp,
            extra_data,
            base_fee_per_gas: fee,
            block_hash: block_hash.into(),
            transactions,
        };
        let withdrawals = (fork >= Fork::Shanghai).then_some(withdrawals);
        let blob_gas = (fork >= Fork::Cancun).then_some([blob_gas, excess]);
        payload_of_fields(
            first,
            withdrawals,
            blob_gas,
            (fork >= Fork::Amsterdam).then_some((list, slot)),
        )
    })
}

fn envelope() -> impl Strategy<Value = (Fork, ExecutionPayloadEnvelope)> {
    any_fork().prop_flat_map(|fork| {
        (payload(fork), hash(), byte_lists()).prop_map(move |(payload, root, requests)| {
            let envelope = ExecutionPayloadEnvelope {
                payload,
                parent_beacon_block_root: (fork >= Fork::Cancun).then_some(root),
                execution_requests: (fork >= Fork::Prague).then_some(requests),
            };
            (fork, envelope)
        })
    })
}

fn status() -> impl Strategy<Value = PayloadStatus> {
    let kinds = vec![Status::Valid, Status::Invalid, Status::Syncing, Status::Accepted];
    let fields =
        (prop::sample::select(kinds), prop::option::of(hash()), prop::option::of(".{0,40}"));
    fields.prop_map(|(status, latest_valid_hash, validation_error)| PayloadStatus {
        status,
        latest_valid_hash,
        validation_error,
    })
}

fn witness() -> impl Strategy<Value = Witness> {
    (byte_lists(), byte_lists(), byte_lists()).prop_map(|(state, codes, headers)| Witness {
        state: state.into(),
        codes,
        headers,
    })
}

fn update() -> impl Strategy<Value = (Fork, ForkchoiceUpdate)> {
    let attributes = (any::<[u64; 3]>(), any::<[[u8; 32]; 2]>(), fixed::<20>(), withdrawals());
    let state = any::<[[u8; 32]; 3]>();
    let fields = (any_fork(), state, prop::option::of(attributes), prop::option::of(fixed()));
    fields.prop_map(|(fork, [head, safe, finalized], attributes, columns)| {
        let attributes =
            attributes.map(|([timestamp, slot, limit], [randao, root], fees, list)| {
                PayloadAttributes {
                    timestamp,
                    prev_randao: randao.into(),
                    suggested_fee_recipient: fees.0.into(),
                    withdrawals: (fork >= Fork::Shanghai).then_some(list),
                    parent_beacon_block_root: (fork >= Fork::Cancun).then_some(root.into()),
                    slot_number: (fork >= Fork::Amsterdam).then_some(slot),
                    target_gas_limit: (fork >= Fork::Amsterdam).then_some(limit),
                }
            });
        let update = ForkchoiceUpdate {
            forkchoice_state: ForkchoiceState {
                head_block_hash: head.into(),
                safe_block_hash: safe.into(),
                finalized_block_hash: finalized.into(),
            },
            payload_attributes: attributes,
            custody_columns: columns.filter(|_| fork >= Fork::Amsterdam),
        };
        (fork, update)
    })
}

fn built() -> impl Strategy<Value = (Fork, BuiltPayload)> {
    let points = || prop::collection::vec(fixed::<48>(), 0..3);
    let blobs = prop::collection::vec(any::<u8>().prop_map(|b| vec![b; BLOB_BYTES].into()), 0..2);
    let bundle = (points(), points(), blobs, any::<bool>());
    (any_fork(), bundle, byte_lists(), number()).prop_flat_map(|(fork, bundle, requests, value)| {
        payload(fork).prop_map(move |payload| {
            let (commitments, proofs, blobs, overrides) = bundle.clone();
            let bundle = BlobsBundle { commitments, proofs, blobs };
            let built = BuiltPayload {
                payload,
                block_value: value,
                blobs: (fork >= Fork::Cancun).then_some((bundle, overrides)),
                execution_requests: (fork >= Fork::Prague).then(|| requests.clone()),
            };
            (fork, built)
        })
    })
}

fn bodies() -> impl Strategy<Value = (Fork, BodiesResponse)> {
    let body = (byte_lists(), withdrawals(), content(40));
    let entries = prop::collection::vec(prop::option::of(body), 0..5);
    (any_fork(), entries).prop_map(|(fork, entries)| {
        let body = |(transactions, withdrawals, list)| ExecutionPayloadBody {
            transactions,
            withdrawals: if fork >= Fork::Shanghai { withdrawals } else { Vec::new() },
            block_access_list: if fork >= Fork::Amsterdam { list } else { Bytes::new() },
        };
        (fork, BodiesResponse { entries: entries.into_iter().map(|e| e.map(body)).collect() })
    })
}

/// Every reader there is. What one accepts it must have read from the only encoding of it.
fn read_with_all(input: &Bytes) {
    let check = |name: &str, again: Vec<u8>| assert_eq!(Bytes::from(again), *input, "{name}");
    for fork in Fork::ALL {
        if let Ok(read) = ExecutionPayloadEnvelope::decode(fork, input) {
            check("envelope", read.encode().unwrap());
        }
        if let Ok(read) = ForkchoiceUpdate::decode(fork, input) {
            check("update", read.encode(fork));
        }
        if let Ok(read) = BuiltPayload::decode(fork, input) {
            check("built", read.encode().unwrap());
        }
        if let Ok(read) = WithWitness::<BuiltPayload>::decode(fork, input)
            && input[0] == 12
        {
            let built = read.content.encode().unwrap();
            let parts = with_witness_parts(&built, read.witness.as_ref(), &read.public_keys);
            check("built with witness", parts.unwrap().concat());
        }
        // What is not available may have anything in its body.
        if let Ok(read) = BodiesResponse::decode(fork, input)
            && read.entries.iter().all(Option::is_some)
        {
            check("bodies", read.encode(fork).unwrap());
        }
    }
    if let Ok(read) = PayloadStatus::decode(input) {
        check("status", read.encode());
    }
    if let Ok(read) = ForkchoiceUpdateResponse::decode(input) {
        check("response", read.encode());
    }
    if let Ok(read) = WithWitness::<PayloadStatus>::decode(input)
        && input[0] == 12
    {
        let status = read.content.encode();
        let parts = with_witness_parts(&status, read.witness.as_ref(), &read.public_keys);
        check("status with witness", parts.unwrap().concat());
    }
    if let Ok(read) = read_bodies_request(input) {
        check("bodies request", write_hashes_request(&read));
    }
    for version in 1..=3 {
        if let Ok((read, None)) = read_blobs_request(version, input) {
            check("blobs request", write_hashes_request(&read));
        }
    }
    _ = read_blobs_request(4, input);
}

/// Something that happens to an encoding on its way.
#[derive(Debug, Clone)]
struct Change(u8, prop::sample::Index, u8);

fn any_change() -> impl Strategy<Value = Change> {
    let value = prop_oneof![any::<u8>(), prop::sample::select(vec![0, 1, 4, 8, 9, 12, 36, 40])];
    (0..4u8, any::<prop::sample::Index>(), value)
        .prop_map(|(kind, at, value)| Change(kind, at, value))
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let Self(kind, at, value) = self;
        let length = bytes.len();
        match kind {
            0 if length > 0 => bytes[at.index(length)] = *value,
            1 if length > 0 => _ = bytes.remove(at.index(length)),
            2 => bytes.truncate(at.index(length + 1)),
            _ => bytes.insert(at.index(length + 1), *value),
        }
    }
}

proptest! {
    #[test]
    fn envelopes_of_every_fork_are_read_as_written((fork, envelope) in envelope()) {
        let encoded = Bytes::from(envelope.encode().unwrap());
        prop_assert_eq!(ExecutionPayloadEnvelope::decode(fork, &encoded), Ok(envelope));
    }

    #[test]
    fn statuses_are_read_as_written(status in status()) {
        prop_assert_eq!(PayloadStatus::decode(&status.encode().into()), Ok(status));
    }

    #[test]
    fn statuses_with_witnesses_are_read_as_written(
        content in status(),
        witness in prop::option::of(witness()),
        public_keys in prop::collection::vec(fixed::<65>(), 0..4),
    ) {
        let status = content.encode();
        let parts = with_witness_parts(&status, witness.as_ref(), &public_keys).unwrap();
        let expected = WithWitness { content, witness, public_keys };
        prop_assert_eq!(WithWitness::<PayloadStatus>::decode(&joined(parts)), Ok(expected));
    }

    #[test]
    fn what_has_no_field_of_keys_is_read_too(content in status(), witness in witness()) {
        let status = content.encode();
        let witness_ssz = witness::ssz::encode(&witness).unwrap();
        let mut out = Vec::new();
        let mut offsets = Offsets::behind(8);
        offsets.write(status.len(), &mut out);
        offsets.write(4 + witness_ssz.len(), &mut out);
        out.extend_from_slice(&status);
        out.extend_from_slice(&[4, 0, 0, 0]);
        out.extend_from_slice(&witness_ssz);
        let expected = WithWitness { content, witness: Some(witness), public_keys: Vec::new() };
        prop_assert_eq!(WithWitness::<PayloadStatus>::decode(&out.into()), Ok(expected));
    }

    #[test]
    fn fork_choices_of_every_fork_are_read_as_written((fork, update) in update()) {
        let encoded = Bytes::from(update.encode(fork));
        prop_assert_eq!(ForkchoiceUpdate::decode(fork, &encoded), Ok(update));
    }

    #[test]
    fn answers_to_fork_choices_are_read_as_written(
        payload_status in status(),
        id in prop::option::of(any::<[u8; 8]>()),
    ) {
        let payload_id = id.map(PayloadId::new);
        let answer = ForkchoiceUpdateResponse { payload_status, payload_id };
        prop_assert_eq!(ForkchoiceUpdateResponse::decode(&answer.encode().into()), Ok(answer));
    }

    #[test]
    fn built_payloads_of_every_fork_are_read_as_written(
        (fork, built) in built(),
        witness in witness(),
    ) {
        let encoded = Bytes::from(built.encode().unwrap());
        prop_assert_eq!(&BuiltPayload::decode(fork, &encoded), &Ok(built.clone()));
        let parts = with_witness_parts(&encoded, Some(&witness), &[]).unwrap();
        let expected =
            WithWitness { content: built, witness: Some(witness), public_keys: Vec::new() };
        let read = WithWitness::<BuiltPayload>::decode(fork, &joined(parts));
        prop_assert_eq!(read, Ok(expected));
    }

    #[test]
    fn bodies_of_every_fork_are_read_as_written((fork, bodies) in bodies()) {
        let encoded = Bytes::from(bodies.encode(fork).unwrap());
        prop_assert_eq!(BodiesResponse::decode(fork, &encoded), Ok(bodies));
    }

    #[test]
    fn requests_of_hashes_are_read_as_written(hashes in prop::collection::vec(hash(), 0..=32)) {
        let encoded = Bytes::from(write_hashes_request(&hashes));
        prop_assert_eq!(read_bodies_request(&encoded), Ok(hashes.clone()));
        for version in 1..=3 {
            prop_assert_eq!(read_blobs_request(version, &encoded), Ok((hashes.clone(), None)));
        }
    }

    #[test]
    fn random_bytes_get_an_answer(
        first in prop::sample::select(vec![0u8, 4, 8, 9, 12, 36, 40, 41, 45]),
        rest in prop::collection::vec(any::<u8>(), 0..700),
    ) {
        read_with_all(&rest.clone().into());
        read_with_all(&[&[first, 0, 0, 0], &rest[..]].concat().into());
    }

    #[test]
    fn only_one_encoding_of_a_value_is_read(
        (_, envelope) in envelope(),
        (fork, update) in update(),
        status in status(),
        witness in witness(),
        (of, bodies) in bodies(),
        changes in prop::collection::vec(any_change(), 1..4),
    ) {
        let parts = with_witness_parts(&status.encode(), Some(&witness), &[]).unwrap();
        let encodings = [
            envelope.encode().unwrap(),
            update.encode(fork),
            status.encode(),
            bodies.encode(of).unwrap(),
            parts.concat(),
        ];
        for mut encoding in encodings {
            changes.iter().for_each(|change| change.apply(&mut encoding));
            read_with_all(&encoding.into());
        }
    }
}

const HASH: &str = "1111111111111111111111111111111111111111111111111111111111111111";

#[test]
fn statuses_have_the_bytes_of_the_specification() {
    let check = |status, latest_valid_hash, error: Option<&str>, expected: &str| {
        let validation_error = error.map(str::to_owned);
        let status = PayloadStatus { status, latest_valid_hash, validation_error };
        assert_eq!(Bytes::from(status.encode()), bytes(expected));
    };
    let hash = Some(B256::repeat_byte(0x11));
    check(Status::Valid, hash, None, &format!("00 09000000 29000000 {HASH}"));
    // refactor-ssz.md, example B.
    let expected = "01 09000000 09000000 04000000 6261642073746174 6520726f6f74";
    check(Status::Invalid, None, Some("bad state root"), expected);
    check(Status::Syncing, None, None, "02 09000000 09000000");
    check(Status::Invalid, None, Some(""), "01 09000000 09000000 04000000");
    check(Status::Invalid, hash, Some("x"), &format!("01 09000000 29000000 {HASH} 04000000 78"));
}

#[test]
fn a_status_with_witness_has_the_bytes_of_the_specification() {
    let status = |status, latest_valid_hash| PayloadStatus {
        status,
        latest_valid_hash,
        validation_error: None,
    };
    let without = with_witness_parts(&status(Status::Syncing, None).encode(), None, &[]).unwrap();
    let expected = bytes("0c000000 15000000 15000000 02 09000000 09000000");
    assert_eq!((joined(without), expected.len()), (expected, 21));

    let witness = Witness {
        state: vec![bytes("aa"), bytes("bbcc")].into(),
        codes: Vec::new(),
        headers: vec![bytes("dd")],
    };
    let key = PublicKey::repeat_byte(4);
    let valid = status(Status::Valid, Some(B256::repeat_byte(0x11)));
    let parts = with_witness_parts(&valid.encode(), Some(&witness), &[key]).unwrap();
    let expected = bytes(&format!(
        "0c000000 35000000 55000000 00 09000000 29000000 {HASH} \
         04000000 0c000000 17000000 17000000 08000000 09000000 aa bbcc 04000000 dd {}",
        "04".repeat(65)
    ));
    assert_eq!(joined(parts), expected);
}

#[test]
fn an_error_that_is_too_long_is_cut_between_characters() {
    let text = format!("x{}", "é".repeat(ERROR_BYTES));
    let status = |validation_error| PayloadStatus {
        status: Status::Invalid,
        latest_valid_hash: None,
        validation_error: Some(validation_error),
    };
    let read = PayloadStatus::decode(&status(text.clone()).encode().into());
    assert_eq!(read, Ok(status(text[..1023].to_owned())));
}

#[track_caller]
fn refused<T: std::fmt::Debug>(read: Result<T, SszError>, expected: &str) {
    assert_eq!(read.expect_err("refused").to_string(), expected);
}

#[test]
fn statuses_that_are_none_are_refused() {
    let check = |input: &str, expected| refused(PayloadStatus::decode(&bytes(input)), expected);
    check("", "payload_status: 0 bytes where 9 are due");
    check("04 09000000 09000000", "status: 4 is none of its values");
    check("00 0a000000 0a000000", "payload_status: the first offset is 10, not 9");
    check("00 09000000 08000000", "latest_valid_hash: from 9 to 8 in 9 bytes");
    check("00 09000000 0a000000", "latest_valid_hash: from 9 to 10 in 9 bytes");
    check("00 09000000 0a000000 11", "latest_valid_hash: 1 bytes are not a multiple of 32");
    let two = format!("00 09000000 49000000 {HASH}{HASH}");
    check(&two, "latest_valid_hash: 2 items, over the limit of 1");
    check("01 09000000 09000000 78", "validation_error: 0 bytes of offsets in a list of 1 bytes");
    check("01 09000000 09000000 04000000 ff", "validation_error: not UTF-8");
    let two = "01 09000000 09000000 08000000 09000000 78 79";
    check(two, "validation_error: 2 items, over the limit of 1");
    let long = format!("01 09000000 09000000 04000000 {}", "78".repeat(1025));
    check(&long, "validation_error: 1025 bytes, over the limit of 1024");
}

#[test]
fn statuses_with_witnesses_that_are_none_are_refused() {
    let decode = |input: &str| WithWitness::<PayloadStatus>::decode(&bytes(input));
    let status = "02 09000000 09000000";
    let name = "payload_status_with_witness";
    refused(decode("0c000000"), &format!("{name}: 4 bytes where 12 are due"));
    refused(decode("08000000"), &format!("{name}: 4 bytes where 8 are due"));
    let other = format!("{name}: the first offset is 16, not 12");
    refused(decode("10000000 15000000 15000000 00000000"), &other);
    let expected = "witness: 0 bytes of offsets in a list of 1 bytes";
    refused(decode(&format!("0c000000 15000000 16000000 {status} 00")), expected);
    let expected = "public_keys: 1 bytes are not a multiple of 65";
    refused(decode(&format!("0c000000 15000000 15000000 {status} 00")), expected);
    let witness = "08000000 08000000";
    let two = format!("0c000000 15000000 1d000000 {status} {witness}");
    refused(decode(&two), "witness: 2 items, over the limit of 1");
    let short = format!("0c000000 15000000 19000000 {status} 04000000");
    refused(decode(&short), "witness: 0 bytes where 12 are due");
}

#[test]
fn what_is_over_a_limit_is_refused() {
    let payload = |change: fn(&mut ExecutionPayloadV1)| {
        let mut first = ExecutionPayloadV1::from_block_unchecked(B256::ZERO, &empty_block());
        change(&mut first);
        payload_of_fields(first, Some(Vec::new()), None, None)
    };
    let check = |payload: ExecutionPayload, expected| {
        let envelope = ExecutionPayloadEnvelope {
            payload,
            parent_beacon_block_root: None,
            execution_requests: None,
        };
        let encoded = envelope.encode().unwrap().into();
        let read = ExecutionPayloadEnvelope::decode(Fork::Shanghai, &encoded);
        match expected {
            Some(expected) => refused(read, expected),
            None => assert_eq!(read, Ok(envelope)),
        }
    };
    check(payload(|first| first.extra_data = vec![1; 32].into()), None);
    let expected = "extra_data: 33 bytes, over the limit of 32";
    check(payload(|first| first.extra_data = vec![1; 33].into()), Some(expected));
    check(payload(|first| first.transactions = vec![Bytes::new(); 1 << 20]), None);
    let expected = "transactions: 1048577 items, over the limit of 1048576";
    check(payload(|first| first.transactions = vec![Bytes::new(); (1 << 20) + 1]), Some(expected));
    let withdrawals = |count| {
        let first = ExecutionPayloadV1::from_block_unchecked(B256::ZERO, &empty_block());
        payload_of_fields(first, Some(vec![Withdrawal::default(); count]), None, None)
    };
    check(withdrawals(16), None);
    check(withdrawals(17), Some("withdrawals: 17 items, over the limit of 16"));

    let request = |count| write_hashes_request(&vec![B256::ZERO; count]).into();
    assert!(read_bodies_request(&request(32)).is_ok());
    let expected = "block_hashes: 33 items, over the limit of 32";
    refused(read_bodies_request(&request(33)), expected);
    assert!(read_blobs_request(1, &request(128)).is_ok());
    let expected = "versioned_hashes: 129 items, over the limit of 128";
    refused(read_blobs_request(1, &request(129)), expected);
}

fn empty_block() -> Block<EthereumTxEnvelope<TxEip4844>> {
    Block::default()
}

#[test]
fn booleans_are_0_or_1() {
    let entry =
        |available: &str| bytes(&format!("04000000 04000000 {available} 05000000 04000000"));
    let empty = Some(ExecutionPayloadBody::default());
    let decode = |input: Bytes| BodiesResponse::decode(Fork::Paris, &input).map(|b| b.entries);
    assert_eq!(decode(entry("00")), Ok(vec![None]));
    assert_eq!(decode(entry("01")), Ok(vec![empty]));
    refused(decode(entry("02")), "available: 2 is not a boolean");
}

#[test]
fn an_envelope_of_another_fork_is_refused() {
    let first = ExecutionPayloadV1::from_block_unchecked(B256::ZERO, &empty_block());
    for fork in Fork::ALL {
        let withdrawals = (fork >= Fork::Shanghai).then(Vec::new);
        let blob_gas = (fork >= Fork::Cancun).then_some([1, 2]);
        let amsterdam = (fork >= Fork::Amsterdam).then_some((Bytes::new(), 3));
        let envelope = ExecutionPayloadEnvelope {
            payload: payload_of_fields(first.clone(), withdrawals, blob_gas, amsterdam),
            parent_beacon_block_root: (fork >= Fork::Cancun).then_some(B256::ZERO),
            execution_requests: (fork >= Fork::Prague).then(Vec::new),
        };
        let encoded = envelope.encode().unwrap().into();
        for other in Fork::ALL {
            // Prague's and Osaka's look alike.
            let alike = [Fork::Prague, Fork::Osaka];
            let same = fork == other || (alike.contains(&fork) && alike.contains(&other));
            let read = ExecutionPayloadEnvelope::decode(other, &encoded);
            assert_eq!(read.is_ok(), same, "{fork} as {other}");
        }
    }
}

#[test]
fn the_cells_that_are_wanted_stand_behind_the_hashes() {
    let input = bytes(&format!("14000000 {} {HASH}", "f0".repeat(16)));
    let expected = (vec![B256::repeat_byte(0x11)], Some(FixedBytes::repeat_byte(0xf0)));
    assert_eq!(read_blobs_request(4, &input), Ok(expected));
    refused(read_blobs_request(1, &input), "request: the first offset is 20, not 4");
}

#[test]
fn an_answer_that_offsets_do_not_reach_is_refused() {
    let code = Bytes::from(vec![0; 1 << 20]);
    let witness = |codes| Witness { codes: vec![code.clone(); codes], ..Witness::default() };
    // 12 bytes of offsets, 4 of the option, 12 of the witness, and 4 of each code.
    let parts = with_witness_parts(&[], Some(&witness(4095)), &[]).unwrap();
    let length: usize = parts.iter().map(|part| part.len()).sum();
    assert_eq!(length, 28 + 4095 * ((1 << 20) + 4));
    let expected =
        format!("{} bytes, over the limit of 4294967295", 28 + 4096 * ((1u64 << 20) + 4));
    let refused_parts = with_witness_parts(&[], Some(&witness(4096)), &[]);
    refused(refused_parts, &format!("payload_status_with_witness: {expected}"));
}
