use super::*;
use crate::stateless::merkle::{
    byte_list_root, byte_vector_root, item_root, merkleize, mix_in_length, u64_root,
};
use crate::stateless::request::{
    EXTRA_DATA_BYTES, ExecutionPayload, ExecutionRequests, VERSIONED_HASHES,
};
use alloy_eips::eip7251::ConsolidationRequest;
use alloy_eips::eip8282::BuilderExitRequest;
use alloy_primitives::{Address, B256, Bloom, U256, hex};
use std::path::{Path, PathBuf};

/// A case of `vectors.txt`: name, root of the request, encoding.
fn vectors() -> impl Iterator<Item = (&'static str, B256, Bytes)> {
    include_str!("vectors.txt").lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut parts = line.split(' ');
        let mut part = || parts.next().expect("a case has three parts");
        let (name, root, encoding) = (part(), part(), part());
        let root = root.parse().expect("a root");
        (name, root, hex::decode(encoding).expect("hex").into())
    })
}

/// A stream of bytes that only depends on its seed (SplitMix64).
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn up_to(&mut self, most: usize) -> usize {
        (self.number() % (most as u64 + 1)) as usize
    }

    fn bytes(&mut self, most: usize) -> Bytes {
        let length = self.up_to(most);
        (0..length).map(|_| self.number() as u8).collect()
    }

    fn byte_lists(&mut self, most: usize) -> Vec<Bytes> {
        let count = self.up_to(4);
        (0..count).map(|_| self.bytes(most)).collect()
    }

    fn items<T: Item>(&mut self, most: usize) -> Vec<T> {
        let bytes: Vec<u8> =
            (0..self.up_to(most) * T::BYTES).map(|_| self.number() as u8).collect();
        read_items("random", &bytes).expect("whole items")
    }

    fn one<T: Item>(&mut self) -> T {
        let bytes: Vec<u8> = (0..T::BYTES).map(|_| self.number() as u8).collect();
        read_items("random", &bytes).expect("one item").pop().expect("one item")
    }

    fn payload(&mut self, fork: ProtocolFork) -> ExecutionPayload {
        let mut payload = ExecutionPayload {
            parent_hash: self.one(),
            fee_recipient: Address(self.one()),
            state_root: self.one(),
            receipts_root: self.one(),
            logs_bloom: Bloom(self.one()),
            prev_randao: self.one(),
            block_number: self.number(),
            gas_limit: self.number(),
            gas_used: self.number(),
            timestamp: self.number(),
            extra_data: self.bytes(EXTRA_DATA_BYTES),
            base_fee_per_gas: U256::from_be_bytes(self.one::<B256>().0),
            block_hash: self.one(),
            transactions: self.byte_lists(300),
            ..ExecutionPayload::default()
        };
        if fork >= ProtocolFork::Shanghai {
            payload.withdrawals = self.items(6);
        }
        if fork >= ProtocolFork::Cancun {
            payload.blob_gas_used = self.number();
            payload.excess_blob_gas = self.number();
        }
        if fork >= ProtocolFork::Amsterdam {
            payload.block_access_list = self.bytes(300);
            payload.slot_number = self.number();
        }
        payload
    }

    fn requests(&mut self, fork: ProtocolFork) -> ExecutionRequests {
        let mut requests = ExecutionRequests::default();
        if fork >= ProtocolFork::Prague {
            requests.deposits = self.items(2);
            requests.withdrawals = self.items(2);
            requests.consolidations = self.items(2);
        }
        if fork >= ProtocolFork::Amsterdam {
            requests.builder_deposits = self.items(2);
            requests.builder_exits = self.items(2);
        }
        requests
    }

    /// An input of any fork, in either form.
    fn input(&mut self) -> StatelessInput {
        let fork = ProtocolFork::ALL[self.up_to(ProtocolFork::ALL.len() - 1)];
        self.input_of(fork)
    }

    fn input_of(&mut self, fork: ProtocolFork) -> StatelessInput {
        let mut new_payload_request = NewPayloadRequest {
            fork,
            execution_payload: self.payload(fork),
            execution_requests: self.requests(fork),
            ..NewPayloadRequest::default()
        };
        if fork >= ProtocolFork::Cancun {
            new_payload_request.versioned_hashes = self.items(6);
            new_payload_request.parent_beacon_block_root = self.one();
        }
        StatelessInput {
            new_payload_request,
            witness: Witness {
                state: self.byte_lists(NODE_BYTES).into(),
                codes: self.byte_lists(2000),
                headers: self.byte_lists(HEADER_BYTES),
            },
            chain_id: self.number(),
            public_keys: (self.up_to(1) == 1).then(|| self.items(4)),
        }
    }
}

/// Decodes, and on success encodes back: only one encoding of a value is accepted.
#[track_caller]
fn decode_strictly(bytes: Vec<u8>, what: impl std::fmt::Display) -> Result<(), SszError> {
    let bytes = Bytes::from(bytes);
    let input = StatelessInput::decode(&bytes)?;
    assert_eq!(input.encode().map(Bytes::from), Ok(bytes), "{what}");
    Ok(())
}

#[test]
fn outside_vectors_decode_and_encode_and_have_their_roots() {
    for (name, root, encoding) in vectors() {
        let input = StatelessInput::decode(&encoding).expect(name);
        assert_eq!(input.encode().map(Bytes::from), Ok(encoding), "{name}");
        assert_eq!(input.new_payload_request.hash_tree_root(), root, "{name}");
        assert_eq!(input == StatelessInput::default(), name == "amsterdam-empty");
        assert_eq!(input.public_keys.is_some(), name.contains("keys"), "{name}");
        let fork = format!("{:?}", input.new_payload_request.fork).to_lowercase();
        assert!(name.starts_with(&fork), "{name}");
    }
    assert_eq!(vectors().count(), 15);
}

#[test]
fn random_inputs_decode_to_what_was_encoded() {
    for seed in 0..500 {
        let input = Random(seed).input();
        let encoding = Bytes::from(input.encode().expect("within the limits"));
        assert_eq!(encoding.len(), 2 + input.ssz_bytes(), "seed {seed}");
        assert_eq!(StatelessInput::decode(&encoding), Ok(input), "seed {seed}");
    }
}

#[test]
fn decoded_byte_strings_are_slices_of_the_input() {
    let input = Bytes::from(Random(1).input().encode().expect("within the limits"));
    let decoded = StatelessInput::decode(&input).expect("just encoded");
    let payload = &decoded.new_payload_request.execution_payload;
    let witness = &decoded.witness;
    let strings = [&payload.extra_data, &payload.block_access_list];
    let strings = strings.into_iter().chain(&payload.transactions).map(|bytes| &bytes[..]);
    let lists = witness.lists().into_iter().flat_map(witness::Items::iter);
    for bytes in strings.chain(lists).filter(|bytes| !bytes.is_empty()) {
        assert!(input.as_ptr_range().contains(&bytes.as_ptr()));
    }
}

#[test]
fn no_truncation_panics_and_none_has_a_second_encoding() {
    for (name, _, encoding) in vectors() {
        let input = StatelessInput::decode(&encoding).expect(name);
        // The end can be cut: whole public keys, whose count is not checked here, or bytes
        // of the last header, or all headers.
        let header = input.witness.headers.last().map_or(0, |header| header.len() + 1);
        let expected = input.public_keys.map_or(header, |keys| keys.len());
        let mut accepted = 0;
        for length in 0..encoding.len() {
            let what = format!("{name} to {length}");
            accepted += usize::from(decode_strictly(encoding[..length].to_vec(), what).is_ok());
        }
        assert_eq!(accepted, expected, "{name}");
    }
}

#[test]
fn no_change_of_one_byte_panics_and_none_has_a_second_encoding() {
    for (name, _, encoding) in vectors() {
        for index in 0..encoding.len() {
            for change in [1u8, 4, 0x80, 0xff] {
                let mut bytes = encoding.to_vec();
                bytes[index] ^= change;
                let _ = decode_strictly(bytes, format!("{name} at {index} by {change}"));
            }
        }
    }
}

#[test]
fn no_random_damage_panics_and_none_has_a_second_encoding() {
    let rich = vectors().find(|(name, ..)| *name == "amsterdam-keys-rich");
    let (_, _, rich) = rich.expect("the case is there");
    for seed in 0..20_000 {
        let random = &mut Random(seed);
        let mut bytes = rich.to_vec();
        for _ in 0..=random.up_to(3) {
            // Mostly where offsets are: the first kilobyte and a bit.
            let place = random.up_to(1100);
            let value = (random.number() % 2048) as u32;
            bytes[place..place + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes.truncate(bytes.len() - random.up_to(3));
        let _ = decode_strictly(bytes, format!("seed {seed}"));
    }
}

#[test]
fn trailing_bytes_are_refused() {
    // Behind a header they would be part of it.
    let ends = ["keys", "empty"];
    for (name, _, encoding) in vectors().filter(|(name, ..)| ends.iter().any(|e| name.contains(e)))
    {
        for extra in (1..200).filter(|extra| extra % PublicKey::BYTES != 0) {
            let mut bytes = encoding.to_vec();
            bytes.extend(std::iter::repeat_n(0xaa, extra));
            let error = decode_strictly(bytes, name).expect_err("there are bytes left over");
            let field = if name.contains("keys") { "public_keys" } else { "headers" };
            assert_eq!(error.field, field, "{name}, {extra} more");
        }
    }
}

#[test]
fn another_schema_is_refused() {
    let mut bytes = StatelessInput::default().encode().expect("within the limits");
    for (first, second) in [(0x15, 0x02), (0x15, 0), (0x0d, 0x01), (0x16, 0x01), (0x01, 0x15)] {
        bytes[..2].copy_from_slice(&[first, second]);
        let expected = SszProblem::Schema(u16::from_be_bytes([first, second])).at("schema_id");
        assert_eq!(StatelessInput::decode(&bytes.clone().into()), Err(expected));
    }
    let expected = SszProblem::Length { got: 1, expected: 2 }.at("schema_id");
    assert_eq!(StatelessInput::decode(&[0x15].into()), Err(expected));
}

#[test]
fn an_input_is_read_under_the_schemas_of_its_containers_alone() {
    // Prague, Osaka, BPO1 and BPO2 have the same containers.
    let containers = |fork: ProtocolFork| match fork {
        ProtocolFork::Osaka | ProtocolFork::Bpo1 | ProtocolFork::Bpo2 => ProtocolFork::Prague,
        fork => fork,
    };
    for written in ProtocolFork::ALL {
        for read in ProtocolFork::ALL {
            let input = Random(u64::from(written as u8)).input_of(written);
            let mut bytes = input.encode().expect("within the limits");
            bytes[..2].copy_from_slice(&read.schema_id(REVISION).to_be_bytes());
            let decoded = StatelessInput::decode(&bytes.into());
            let fits = containers(written) == containers(read);
            assert_eq!(decoded.is_ok(), fits, "{written:?} as {read:?}");
        }
    }
}

#[test]
fn schema_ids_are_those_of_the_specification() {
    let ids = ProtocolFork::ALL.map(|fork| fork.schema_id(REVISION));
    assert_eq!(ids, [0x0e01, 0x0f01, 0x1001, 0x1101, 0x1201, 0x1301, 0x1401, 0x1501]);
}

/// Checks that `at_limit` is written and read, and that one more than it is neither.
fn check_limit(field: &str, set: impl Fn(&mut StatelessInput, usize), limit: usize) {
    let mut input = StatelessInput::default();
    set(&mut input, limit);
    let encoding = Bytes::from(input.encode().expect(field));
    assert_eq!(StatelessInput::decode(&encoding), Ok(input.clone()), "{field}");
    set(&mut input, limit + 1);
    assert_eq!(input.encode().expect_err("over the limit").field, field);
}

#[test]
fn limits_hold_in_both_directions() {
    let zeros = |length: usize| Bytes::from(vec![0; length]);
    check_limit(
        "extra_data",
        |input, length| {
            input.new_payload_request.execution_payload.extra_data = zeros(length);
        },
        EXTRA_DATA_BYTES,
    );
    check_limit(
        "state",
        |input, length| input.witness.state = vec![zeros(length)].into(),
        NODE_BYTES,
    );
    check_limit("codes", |input, length| input.witness.codes = vec![zeros(length)], CODE_BYTES);
    check_limit(
        "headers",
        |input, length| input.witness.headers = vec![zeros(length)],
        HEADER_BYTES,
    );
    check_limit("headers", |input, count| input.witness.headers = vec![zeros(1); count], HEADERS);
    check_limit(
        "versioned_hashes",
        |input, count| input.new_payload_request.versioned_hashes = vec![B256::ZERO; count],
        VERSIONED_HASHES,
    );
}

#[test]
fn items_over_their_limits_are_not_read() {
    let witness = |state: usize, codes: usize, header: usize| Witness {
        state: vec![vec![0; state].into()].into(),
        codes: vec![vec![0; codes].into()],
        headers: vec![vec![0; header].into()],
    };
    let check = |witness: Witness, expected: Option<&str>| {
        let bytes = witness::ssz::encode(&witness).expect("within 4 GiB");
        let field = read_witness(&bytes.into(), WITNESS_LIMITS).err().map(|error| error.field);
        assert_eq!(field, expected);
    };
    check(witness(NODE_BYTES, CODE_BYTES, HEADER_BYTES), None);
    check(witness(NODE_BYTES + 1, 0, 0), Some("state"));
    check(witness(0, CODE_BYTES + 1, 0), Some("codes"));
    check(witness(0, 0, HEADER_BYTES + 1), Some("headers"));
    let headers = vec![Bytes::new(); HEADERS + 1];
    check(Witness { headers, ..Witness::default() }, Some("headers"));
    let extra_data = vec![0; EXTRA_DATA_BYTES + 1].into();
    let execution_payload = ExecutionPayload { extra_data, ..ExecutionPayload::default() };
    let versioned_hashes = vec![B256::ZERO; VERSIONED_HASHES + 1];
    for (request, field) in [
        (NewPayloadRequest { execution_payload, ..Default::default() }, "extra_data"),
        (NewPayloadRequest { versioned_hashes, ..Default::default() }, "versioned_hashes"),
    ] {
        let mut bytes = Vec::new();
        request.write(&mut bytes);
        let error = NewPayloadRequest::read(request.fork, &bytes.into()).expect_err(field);
        assert_eq!(error.field, field);
    }
}

#[test]
fn requests_convert_to_the_list_that_blocks_commit_to_and_back() {
    for seed in 0..200 {
        let requests = Random(seed).requests(ProtocolFork::Amsterdam);
        let list = requests.to_requests();
        assert!(list.iter().all(|request| request.len() > 1), "seed {seed}");
        assert!(list.iter().is_sorted_by_key(|request| request[0]), "seed {seed}");
        let list = list.take();
        assert_eq!(ExecutionRequests::from_requests(&list), Ok(requests), "seed {seed}");
    }
    assert!(ExecutionRequests::default().to_requests().is_empty());
}

#[test]
fn malformed_request_lists_are_refused() {
    let check = |requests: &[&[u8]], expected: SszError| {
        let requests: Vec<Bytes> = requests.iter().map(|r| Bytes::copy_from_slice(r)).collect();
        assert_eq!(ExecutionRequests::from_requests(&requests), Err(expected));
    };
    let exit = [4; 1 + BuilderExitRequest::BYTES];
    let consolidation = [2; 1 + ConsolidationRequest::BYTES];
    let field = "execution_requests";
    check(&[&[]], SszProblem::EmptyRequest.at(field));
    check(&[&[0]], SszProblem::EmptyRequest.at(field));
    check(&[&exit, &exit], SszProblem::RequestType(4).at(field));
    check(&[&exit, &consolidation], SszProblem::RequestType(2).at(field));
    check(&[&[5; 10]], SszProblem::RequestType(5).at(field));
    let cut = SszProblem::Multiple { got: 67, item_bytes: 68 };
    check(&[&exit[..68]], cut.at("builder_exits"));
}

/// Root of a `NewPayloadRequest` in the schema of tests-zkevm@v0.3.3: plain containers and lists
/// with these limits, and requests as opaque bytes, none of which occur.
fn old_root(payload: &ExecutionPayload, versioned_hashes: &[B256], beacon_root: B256) -> B256 {
    let list = |roots: &[B256], limit| mix_in_length(&merkleize(roots, limit), roots.len());
    let transactions: Vec<B256> =
        payload.transactions.iter().map(|bytes| byte_list_root(bytes, 1 << 30)).collect();
    let withdrawals: Vec<B256> = payload.withdrawals.iter().map(item_root).collect();
    let container_root = |fields: &[B256]| merkleize(fields, fields.len());
    let payload_root = container_root(&[
        payload.parent_hash,
        byte_vector_root(payload.fee_recipient.as_slice()),
        payload.state_root,
        payload.receipts_root,
        byte_vector_root(payload.logs_bloom.as_slice()),
        payload.prev_randao,
        u64_root(payload.block_number),
        u64_root(payload.gas_limit),
        u64_root(payload.gas_used),
        u64_root(payload.timestamp),
        byte_list_root(&payload.extra_data, 32),
        B256::from(payload.base_fee_per_gas.to_le_bytes()),
        payload.block_hash,
        list(&transactions, 1 << 20),
        list(&withdrawals, 1 << 16),
        u64_root(payload.blob_gas_used),
        u64_root(payload.excess_blob_gas),
        byte_list_root(&payload.block_access_list, 1 << 24),
        u64_root(payload.slot_number),
    ]);
    container_root(&[payload_root, list(versioned_hashes, 4096), beacon_root, list(&[], 16)])
}

/// Reads an input of the old schema, checks it against the published output, and gives it in
/// today's schema.
fn check_published(input: &Bytes, output: &[u8], test: &str) -> StatelessInput {
    let parts = INPUT_WITH_KEYS.split(input).expect(test);
    let (mut fixed, [request, witness, public_keys]) = parts;
    fixed.behind_offset(());
    fixed.behind_offset(());
    let chain_id = fixed.u64();
    // The bytes of its request are those of Amsterdam, with requests as a list of byte strings: an
    // empty list there, five offsets here.
    let mut bytes = request.to_vec();
    bytes.extend(20u32.to_le_bytes().repeat(5));
    let new_payload_request =
        NewPayloadRequest::read(ProtocolFork::Amsterdam, &bytes.into()).expect(test);
    assert!(public_keys.is_empty(), "{test} has keys");
    let NewPayloadRequest { execution_payload, versioned_hashes, parent_beacon_block_root, .. } =
        &new_payload_request;
    let root = old_root(execution_payload, versioned_hashes, *parent_beacon_block_root);
    assert_eq!(root, &output[..32], "{test}");
    StatelessInput {
        new_payload_request,
        witness: read_witness(&witness, WITNESS_LIMITS).expect(test),
        chain_id,
        public_keys: None,
    }
}

fn json_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    paths
        .flat_map(|path| if path.is_dir() { json_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect()
}

#[test]
fn published_blocks_have_their_published_roots() {
    let Some(fixtures) = std::env::var_os("DEPONENT_FIXTURES") else {
        assert!(std::env::var_os("CI").is_none(), "CI needs DEPONENT_FIXTURES");
        println!("not run: set DEPONENT_FIXTURES to a folder that has blockchain_tests_zkevm,");
        println!("the blockchain_tests of execution-spec-tests release tests-zkevm@v0.3.3");
        return;
    };
    let mut blocks = 0;
    for path in json_files(&Path::new(&fixtures).join("blockchain_tests_zkevm")) {
        let text = std::fs::read_to_string(&path).expect("a fixture can be read");
        let tests: serde_json::Value = serde_json::from_str(&text).expect("a fixture is JSON");
        for (test, content) in tests.as_object().expect("tests by name") {
            for block in content["blocks"].as_array().expect("a test has blocks") {
                let field = |name: &str| block[name].as_str().map(hex::decode);
                let Some(Ok(input)) = field("statelessInputBytes") else { continue };
                let output = field("statelessOutputBytes").expect("an output").expect("hex");
                let today = check_published(&input.into(), &output, test);
                let encoding = Bytes::from(today.encode().expect(test));
                assert_eq!(StatelessInput::decode(&encoding), Ok(today), "{test}");
                blocks += 1;
            }
        }
    }
    assert!(blocks >= 190, "only {blocks} blocks with stateless input");
}
