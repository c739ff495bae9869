//! The Engine API over REST and SSZ, beside JSON-RPC on the same engine.

use std::sync::Arc;

use crate::schema;
use crate::support::{
    ALL_FORKS, Fork as Versions, OSAKA, TestNode, attributes, genesis_of_all_forks,
    genesis_of_osaka, new_payload, new_payload_call, raw, state, transactions,
};
use alloy_eips::Decodable2718;
use alloy_primitives::{Address, B256, Bytes, keccak256};
use alloy_rpc_types_engine::{ForkchoiceState, PayloadAttributes, PayloadId};
use client::Fork;
use client::ssz::{
    BodiesResponse, BuiltPayload, ForkchoiceUpdate, ForkchoiceUpdateResponse, PayloadStatus,
    Status, WithWitness, write_hashes_request,
};
use deponent_node::{Api, NodeOptions};
use engine::{Engine, Genesis};
use engine_api::NewPayload;
use execution::stateless::StatelessInput;
use execution::{ChainSpec, Transaction};
use rpc::rest::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Resources as _, Response, StatusCode,
};
use rpc::{Client, Handler};
use serde_json::{Value, json};
use testing::Random;
use witness::Witness;

/// A chain in memory, and what its engine port answers.
struct Chain {
    engine: Arc<Engine>,
    api: Api,
}

impl Chain {
    fn new(osaka_only: bool) -> Self {
        let genesis = if osaka_only { genesis_of_osaka() } else { genesis_of_all_forks() };
        let genesis: alloy_genesis::Genesis = serde_json::from_value(genesis).expect("a genesis");
        let chain = ChainSpec::from_config(&genesis.config).expect("a chain");
        let genesis = Genesis::new(&genesis, &chain).expect("a first block");
        let engine = Arc::new(Engine::new(chain, genesis).expect("an engine"));
        Self { api: Api::engine_port(engine.clone(), true), engine }
    }

    /// A JSON-RPC call.
    fn call(&self, method: &str, params: Value) -> Value {
        let params = serde_json::value::to_raw_value(&params).expect("JSON");
        let answer = self.api.call(method, Some(&params));
        let answer = answer.unwrap_or_else(|error| panic!("{method}: {error}"));
        let result = serde_json::from_slice(&answer.to_vec()).expect("JSON");
        schema::check(method, &result);
        result
    }

    fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let header = |(name, value): &(&str, &str)| {
            let name = HeaderName::try_from(*name).expect("a name");
            (name, HeaderValue::from_str(value).expect("a value"))
        };
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (path, None),
        };
        self.api.answer(Request {
            method,
            path: path.to_owned(),
            query,
            headers: headers.iter().map(header).collect(),
            body: body.to_vec().into(),
            takes_files: false,
            connection: Default::default(),
        })
    }

    fn post(&self, path: &str, fork: Fork, body: &[u8]) -> Response {
        let headers = [(VERSION, fork.name()), SSZ];
        self.send(Method::POST, &format!("/engine/v1/{path}"), &headers, body)
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.send(Method::GET, &format!("/engine/v1/{path}"), headers, &[])
    }

    fn head(&self) -> B256 {
        self.engine.heads().head
    }

    /// A block on the head, as `testing_buildBlockV1` gives it.
    fn build(&self, versions: Versions, transactions: &[Transaction]) -> Value {
        let attributes = attributes(versions.time, versions.forkchoice);
        let params = json!([self.head(), attributes, raw(transactions), "0x"]);
        let mut built = self.call("testing_buildBlockV1", params);
        let hashes =
            transactions.iter().filter_map(alloy_consensus::Transaction::blob_versioned_hashes);
        built["versionedHashes"] = json!(hashes.flatten().collect::<Vec<_>>());
        built
    }

    /// Makes a block with these transactions the head, over SSZ.
    fn extend(&self, versions: Versions, transactions: &[Transaction]) -> B256 {
        let fork = fork(versions);
        let sent = sent(versions, &self.build(versions, transactions));
        let answer = self.post("payloads", fork, &sent.to_ssz().expect("short"));
        let status = PayloadStatus::decode(&body(&answer)).expect("a status");
        assert_eq!(status.status, Status::Valid, "{status:?}");
        self.adopt(fork, sent.payload.block_hash());
        sent.payload.block_hash()
    }

    fn adopt(&self, fork: Fork, head: B256) {
        let answer = self.post("forkchoice", fork, &update(head, None).encode(fork));
        let read = ForkchoiceUpdateResponse::decode(&body(&answer)).expect("an answer");
        assert_eq!(read.payload_status.status, Status::Valid);
        assert_eq!(self.head(), head);
    }
}

const VERSION: &str = "Eth-Execution-Version";
const SSZ: (&str, &str) = ("Content-Type", "application/octet-stream");

fn fork(versions: Versions) -> Fork {
    let at = ALL_FORKS.iter().position(|fork| fork.time == versions.time);
    match versions.time {
        1 if versions.get == OSAKA.get => Fork::Osaka,
        _ => Fork::ALL[at.expect("one of them")],
    }
}

fn sent(versions: Versions, built: &Value) -> NewPayload {
    new_payload_call(versions.new, built)
}

fn update(head: B256, attributes: Option<PayloadAttributes>) -> ForkchoiceUpdate {
    ForkchoiceUpdate {
        forkchoice_state: ForkchoiceState { head_block_hash: head, ..Default::default() },
        payload_attributes: attributes,
        custody_columns: None,
    }
}

fn body(answer: &Response) -> Bytes {
    let problem = String::from_utf8_lossy(&answer.body.to_vec()).into_owned();
    assert!(answer.status.is_success(), "{}: {problem}", answer.status);
    answer.body.to_vec().into()
}

fn header<'a>(answer: &'a Response, name: &str) -> Option<&'a str> {
    answer.headers.get(name).map(|value| value.to_str().expect("text"))
}

/// The answer is this problem, and says why with these words.
#[track_caller]
fn is_problem(answer: &Response, status: u16, kind: &str, words: &str) {
    let text = String::from_utf8(answer.body.to_vec()).expect("text");
    assert_eq!(answer.status.as_u16(), status, "{text}");
    assert_eq!(header(answer, "content-type"), Some("application/problem+json"));
    let problem: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(problem["type"], format!("/engine-api/errors/{kind}"), "{text}");
    assert!(problem["detail"].as_str().expect("a detail").contains(words), "{text}");
}

#[test]
fn every_fork_goes_around_over_ssz() {
    let chain = Chain::new(false);
    let mut blocks = Vec::new();
    for (versions, fork) in ALL_FORKS.into_iter().zip(Fork::ALL) {
        let json = attributes(versions.time, versions.forkchoice);
        let wanted: PayloadAttributes = serde_json::from_value(json.clone()).expect("attributes");
        let begun = update(chain.head(), Some(wanted)).encode(fork);
        let answer = chain.post("forkchoice", fork, &begun);
        let answer = ForkchoiceUpdateResponse::decode(&body(&answer)).expect("an answer");
        let id = answer.payload_id.expect("a build was begun");
        // JSON-RPC begins the same build.
        let method = format!("engine_forkchoiceUpdatedV{}", versions.forkchoice);
        let begun = chain.call(&method, json!([state(&json!(chain.head())), json]));
        assert_eq!(begun["payloadId"], json!(id));

        let path = format!("payloads/{id}");
        let answer = chain.get(&path, &[(VERSION, fork.name())]);
        assert_eq!(header(&answer, "cache-control"), Some("no-store"));
        let built = BuiltPayload::decode(fork, &body(&answer)).expect("a built payload");
        let mut twin = chain.call(&format!("engine_getPayloadV{}", versions.get), json!([id]));
        if versions.get == 1 {
            twin = json!({ "executionPayload": twin });
        }
        let sent = sent(versions, &twin);
        assert_eq!(built.payload, sent.payload, "{fork}");
        assert_eq!(built.execution_requests, sent.execution_requests);
        let answer = chain.get(&format!("{path}/witness"), &[(VERSION, fork.name())]);
        let with = WithWitness::<BuiltPayload>::decode(fork, &body(&answer)).expect("both");
        assert_eq!(with.content, built);
        let other = Fork::ALL[(fork as usize + 1) % 6];
        let answer = chain.get(&path, &[(VERSION, other.name())]);
        is_problem(&answer, 400, "unsupported-fork", "");

        let hash = built.payload.block_hash();
        let answer = chain.post("payloads/witness", fork, &sent.to_ssz().expect("short"));
        let read = WithWitness::<PayloadStatus>::decode(&body(&answer)).expect("a status");
        assert_eq!(read.witness, with.witness, "{fork}");
        assert_eq!(read.content.latest_valid_hash, Some(hash));
        chain.adopt(fork, hash);
        blocks.push((fork, hash));
    }
    for (fork, hash) in &blocks {
        let hashes: Vec<B256> = blocks.iter().map(|(_, hash)| *hash).collect();
        let by_hash = chain.post("bodies/hash", *fork, &write_hashes_request(&hashes));
        let by_hash = BodiesResponse::decode(*fork, &body(&by_hash)).expect("bodies");
        let available = by_hash.entries.iter().map(Option::is_some);
        assert!(available.eq(hashes.iter().map(|other| other == hash)), "of its fork alone");
        // The range goes on behind the head.
        let by_range = chain.get("bodies?from=1&count=9", &[(VERSION, fork.name())]);
        let by_range = BodiesResponse::decode(*fork, &body(&by_range)).expect("bodies");
        assert_eq!(by_range, by_hash);
    }
}

#[test]
fn each_valid_answer_has_the_witness_and_the_keys() {
    let chain = Chain::new(true);
    let transactions = transactions();
    let built = chain.build(OSAKA, &transactions);
    let sent = sent(OSAKA, &built);
    let ssz = sent.to_ssz().expect("short");
    let hash = sent.payload.block_hash();
    let (mut answers, mut items_seen) = (Vec::new(), String::new());
    // The first runs the block, the others find it known, and the last on a side branch.
    for round in 0..3 {
        if round == 2 {
            chain.adopt(Fork::Osaka, chain.engine.heads().genesis);
        }
        let answer = chain.post("payloads/witness", Fork::Osaka, &ssz);
        let link = format!("/engine/v1/witnesses/{hash}");
        assert_eq!(header(&answer, "deponent-witness"), Some(&*link));
        let items = header(&answer, "deponent-witness-items").expect("it has items");
        items_seen = items.to_owned();
        let timings = header(&answer, "deponent-timings").expect("it was the last block to run");
        assert!(timings.contains("execution;dur="), "{timings}");
        answers.push(body(&answer));
    }
    assert!(answers[0] == answers[1] && answers[1] == answers[2]);
    let read = WithWitness::<PayloadStatus>::decode(&answers[0]).expect("a status");
    let valid = PayloadStatus {
        status: Status::Valid,
        latest_valid_hash: Some(hash),
        validation_error: None,
    };
    assert_eq!(read.content, valid);
    let witness = read.witness.expect("VALID");
    assert_eq!(Some(&witness), chain.engine.witness(hash).expect("kept").as_deref());
    let Witness { state, codes, headers } = &witness;
    let (nodes, codes, headers) = (state.len(), codes.len(), headers.len());
    let counts = format!("nodes-at-most={nodes}, codes={codes}, headers={headers}");
    let bytes = witness::ssz::encoded_len(&witness);
    let exactly = format!("{counts}, bytes={bytes}, ms=");
    assert!(items_seen.starts_with(&exactly), "no two places have the same node: {items_seen}");
    let verdict = Chain::new(true).post("payloads", Fork::Osaka, &ssz);
    let items = header(&verdict, "deponent-witness-items").expect("it has items");
    let at_most = items.strip_prefix(&format!("{counts}, bytes-at-most=")).expect("a bound");
    let at_most: usize = at_most.parse().expect("a number, and no time: it is not put together");
    assert!((bytes..bytes + nodes * 540 + 1024).contains(&at_most), "{bytes}, {at_most}");
    let record = chain.engine.block(hash).expect("readable").expect("known");
    let sender = |key: &execution::PublicKey| Address::from_word(keccak256(&key[1..]));
    assert!(read.public_keys.iter().map(sender).eq(record.senders.iter().copied()));
    assert!(read.public_keys.iter().all(|key| key[0] == 4));
    let keys: Vec<_> =
        read.public_keys.iter().map(|key| Bytes::copy_from_slice(key.as_slice())).collect();
    let rules = chain.engine.chain();
    execution::verify(rules, &record.block, Some(&keys), &witness).expect("whole");

    let params = new_payload(4, &built);
    let json = chain.call("engine_newPayloadWithWitnessV4", params);
    let rlp: Bytes = serde_json::from_value(json["witness"].clone()).expect("hex");
    assert_eq!(witness::rlp::decode(&rlp), Ok(witness));

    let status = body(&chain.post("payloads", Fork::Osaka, &ssz));
    assert_eq!(status.len(), 41);
    assert_eq!(status[..9], [0, 9, 0, 0, 0, 41, 0, 0, 0]);
    assert_eq!(status[9..], hash[..]);
}

#[test]
fn no_other_answer_has_a_witness() {
    let chain = Chain::new(true);
    let first = sent(OSAKA, &chain.build(OSAKA, &[]));
    let post = |sent: &NewPayload| {
        let answer = chain.post("payloads/witness", Fork::Osaka, &sent.to_ssz().expect("short"));
        assert_eq!(header(&answer, "deponent-witness"), None);
        body(&answer)
    };
    let mut orphan = first.clone();
    orphan.payload.as_v1_mut().parent_hash = B256::repeat_byte(9);
    let read = WithWitness::<PayloadStatus>::decode(&post(&orphan)).expect("a status");
    assert_eq!((read.content.status, read.witness), (Status::Invalid, None), "of another hash");

    // A block whose parent is unknown, by its right hash.
    chain.extend(OSAKA, &[]);
    let next = sent(OSAKA, &chain.build(Versions { time: 2, ..OSAKA }, &[]));
    let fresh = Chain::new(true);
    let answer = fresh.post("payloads/witness", Fork::Osaka, &next.to_ssz().expect("short"));
    let syncing = [0x0c, 0, 0, 0, 0x15, 0, 0, 0, 0x15, 0, 0, 0, 0x02, 0x09, 0, 0, 0, 0x09, 0, 0, 0];
    assert_eq!(body(&answer), syncing[..]);

    let mut broken = next;
    broken.payload.as_v1_mut().gas_used += 1;
    let block =
        broken.payload.clone().try_into_block_with_sidecar::<Transaction>(&broken.sidecar());
    let hash = block.expect("a block").header.hash_slow();
    broken.payload.as_v1_mut().block_hash = hash;
    let read = WithWitness::<PayloadStatus>::decode(&post(&broken)).expect("a status");
    assert_eq!(read.content.status, Status::Invalid);
    assert_eq!(read.content.latest_valid_hash, Some(chain.head()));
    assert!(read.content.validation_error.is_some() && read.witness.is_none());
    assert!(read.public_keys.is_empty());
}

#[test]
fn what_cannot_be_answered_is_a_problem() {
    let chain = Chain::new(true);
    let genesis = chain.engine.heads().genesis;
    let send = |method, path: &str, headers: &[(&str, &str)], body: &[u8]| {
        chain.send(method, path, headers, body)
    };
    for path in ["/", "/engine/v1", "/engine/v1/", "/engine/v2/payloads", "/engine/v1/payloads/x/y"]
    {
        is_problem(&send(Method::GET, path, &[], &[]), 404, "method-not-found", path);
    }
    let answer = send(Method::POST, "/engine/v1/forkchoice/", &[], &[]);
    is_problem(&answer, 404, "method-not-found", "/engine/v1/forkchoice/");
    let answer = send(Method::GET, "/engine/v1/payloads", &[], &[]);
    is_problem(&answer, 405, "method-not-found", "POST");
    assert_eq!(header(&answer, "allow"), Some("POST"));
    let answer = send(Method::POST, "/engine/v1/capabilities", &[], &[]);
    is_problem(&answer, 405, "method-not-found", "GET");

    let payloads = "/engine/v1/payloads";
    let osaka = (VERSION, "osaka");
    is_problem(&send(Method::POST, payloads, &[SSZ], &[]), 400, "unsupported-fork", "missing");
    let bogota = [(VERSION, "bogota"), SSZ];
    is_problem(&send(Method::POST, payloads, &bogota, &[]), 400, "unsupported-fork", "amsterdam");
    let json = ("Content-Type", "application/json");
    for headers in [&[osaka][..], &[osaka, json]] {
        let answer = send(Method::POST, payloads, headers, &[]);
        is_problem(&answer, 415, "unsupported-media-type", "application/octet-stream");
    }
    let answer = chain.post("payloads", Fork::Osaka, &[]);
    is_problem(&answer, 400, "ssz-decode-error", "envelope: 0 bytes where 40 are due");
    let answer = chain.post("payloads", Fork::Osaka, &vec![0; (64 << 20) + 1]);
    is_problem(&answer, 413, "request-too-large", "67108865");

    let mut sent = sent(OSAKA, &chain.build(OSAKA, &[]));
    sent.execution_requests = Some(vec![Bytes::from_static(&[1, 1]), Bytes::from_static(&[0, 1])]);
    let answer = chain.post("payloads", Fork::Osaka, &sent.to_ssz().expect("short"));
    is_problem(&answer, 422, "invalid-body", "executionRequests[1]");
    let answer = chain.post("payloads", Fork::Prague, &sent.to_ssz().expect("short"));
    is_problem(&answer, 422, "invalid-body", "executionRequests[1]");
    sent.execution_requests = Some(Vec::new());
    let answer = chain.post("payloads", Fork::Prague, &sent.to_ssz().expect("short"));
    is_problem(&answer, 400, "unsupported-fork", "Osaka");

    let get = |path: &str| chain.get(path, &[osaka]);
    is_problem(&get("payloads/0x1234"), 400, "invalid-request", "8 bytes");
    is_problem(&get("payloads/0x0102030405060708"), 404, "unknown-payload", "0x0102");
    is_problem(&get("payloads/0x0102030405060708/witness"), 404, "unknown-payload", "");
    for bad in ["bodies", "bodies?from=1", "bodies?from=1&count=x", "bodies?from=1&count=1&count=1"]
    {
        is_problem(&get(bad), 400, "invalid-request", "");
    }
    is_problem(&get("bodies?from=0&count=1"), 422, "invalid-body", "at least 1");
    is_problem(&get("bodies?from=1&count=33"), 413, "request-too-large", "33");
    let hashes = |count| write_hashes_request(&vec![B256::ZERO; count]);
    let answer = chain.post("bodies/hash", Fork::Osaka, &hashes(33));
    is_problem(&answer, 413, "request-too-large", "block_hashes");
    let answer = chain.post("bodies/hash", Fork::Osaka, &hashes(1)[..35]);
    is_problem(&answer, 400, "ssz-decode-error", "block_hashes");
    for version in ["v1", "v2", "v3"] {
        let path = format!("blobs/{version}");
        is_problem(&chain.post(&path, Fork::Osaka, &hashes(129)), 413, "request-too-large", "129");
        let answer = chain.post(&path, Fork::Osaka, &hashes(128));
        match version {
            "v1" => is_problem(&answer, 400, "unsupported-fork", "before Osaka"),
            // Without a pool there is no answer.
            _ => assert_eq!((answer.status, answer.body.len_bytes()), (StatusCode::NO_CONTENT, 0)),
        }
    }
    let answer = chain.post("blobs/v4", Fork::Osaka, &hashes(1));
    is_problem(&answer, 400, "ssz-decode-error", "first offset is 4, not 20");

    is_problem(&get("witnesses/0x12"), 400, "invalid-request", "32 bytes");
    let unknown = format!("witnesses/{}", B256::repeat_byte(1));
    is_problem(&get(&unknown), 404, "unknown-block", "0x0101");
    is_problem(&get(&format!("witnesses/{genesis}")), 404, "unknown-block", "genesis");
    let hash = chain.extend(OSAKA, &[]);
    for (query, detail) in [("x=1", "the query is x=1"), ("public_keys=1", "public_keys=true")] {
        let answer = get(&format!("stateless-inputs/{hash}?{query}"));
        is_problem(&answer, 400, "invalid-request", detail);
    }
    // The public port has no such resources.
    let public = Api::public_port(chain.engine.clone());
    let request = Request {
        method: Method::GET,
        path: format!("/engine/v1/witnesses/{hash}"),
        query: None,
        headers: HeaderMap::new(),
        body: Default::default(),
        takes_files: false,
        connection: Default::default(),
    };
    is_problem(&public.answer(request), 404, "method-not-found", "not offered");
}

#[test]
fn only_a_port_that_has_fork_choices_puts_calls_in_order() {
    let chain = Chain::new(false);
    let in_order = |api: &Api| -> Vec<&str> {
        let in_order = Handler::methods(api).iter().filter(|method| method.is_in_order);
        in_order.map(|method| method.name).collect()
    };
    let all = in_order(&chain.api);
    assert_eq!(all.len(), 10);
    let moves_head = |name: &&str| {
        let moves = ["engine_forkchoiceUpdated", "debug_setHead", "debug_resetHead"];
        moves.iter().any(|start| name.starts_with(start))
    };
    assert!(all.iter().all(moves_head), "{all:?}");
    assert!(in_order(&Api::public_port(chain.engine.clone())).is_empty());
    assert_eq!(in_order(&Api::local(chain.engine, false)), all);
}

#[test]
fn a_fork_choice_that_contradicts_itself_is_a_problem() {
    let chain = Chain::new(true);
    let genesis = chain.engine.heads().genesis;
    let hash = chain.extend(OSAKA, &[]);
    let post = |update: &ForkchoiceUpdate| {
        chain.post("forkchoice", Fork::Osaka, &update.encode(Fork::Osaka))
    };
    let mut wrong = update(hash, None);
    wrong.forkchoice_state.safe_block_hash = B256::repeat_byte(1);
    is_problem(&post(&wrong), 409, "invalid-forkchoice", "safe block");
    let unknown = post(&update(B256::repeat_byte(1), None));
    let read = ForkchoiceUpdateResponse::decode(&body(&unknown)).expect("an answer");
    assert_eq!((read.payload_status.status, read.payload_id), (Status::Syncing, None::<PayloadId>));

    let wanted = |time| {
        let json = attributes(time, 3);
        Some(serde_json::from_value::<PayloadAttributes>(json).expect("attributes"))
    };
    chain.adopt(Fork::Osaka, genesis);
    // The head is applied all the same.
    is_problem(&post(&update(hash, wanted(1))), 422, "invalid-attributes", "not after");
    assert_eq!(chain.head(), hash);
    let prague = update(hash, wanted(2)).encode(Fork::Prague);
    let answer = chain.post("forkchoice", Fork::Prague, &prague);
    is_problem(&answer, 400, "unsupported-fork", "Osaka");
    // A fork that is past may name the head, if it builds nothing.
    let answer = chain.post("forkchoice", Fork::Paris, &update(genesis, None).encode(Fork::Paris));
    ForkchoiceUpdateResponse::decode(&body(&answer)).expect("an answer");
    assert_eq!(chain.head(), genesis);
}

#[test]
fn a_witness_is_given_whole_and_in_ranges() {
    let chain = Chain::new(true);
    let hash = chain.extend(OSAKA, &transactions());
    let witness = chain.engine.witness(hash).expect("kept").expect("executed");
    let ssz = witness::ssz::encode(&witness).expect("short");
    let forms = [("", ssz), (".rlp", witness::rlp::encode(&witness))];
    for (suffix, whole) in forms {
        let path = format!("witnesses/{hash}{suffix}");
        let length = whole.len();
        let answer = chain.get(&path, &[]);
        assert_eq!(body(&answer), whole);
        assert_eq!(header(&answer, "accept-ranges"), Some("bytes"));
        let tag = header(&answer, "etag").expect("a tag").to_owned();
        assert!(tag.starts_with('"') && tag.contains(&hash.to_string()), "{tag}");

        let range = |headers: &[(&str, &str)]| {
            let answer = chain.get(&path, headers);
            let content_range = header(&answer, "content-range").map(str::to_owned);
            (answer.status.as_u16(), content_range, answer.body.to_vec())
        };
        let part = |from: usize, to: usize| {
            let content_range = format!("bytes {from}-{}/{length}", to - 1);
            (206, Some(content_range), whole[from..to].to_vec())
        };
        assert_eq!(range(&[("Range", "bytes=0-0")]), part(0, 1));
        assert_eq!(range(&[("Range", "bytes=5-700")]), part(5, 701));
        assert_eq!(range(&[("Range", "bytes=100-")]), part(100, length));
        assert_eq!(range(&[("Range", "bytes=-7")]), part(length - 7, length));
        assert_eq!(range(&[("Range", "bytes=3-9"), ("If-Range", &tag)]), part(3, 10));
        let all = (200, None, whole.clone());
        let weak = format!("W/{tag}");
        assert_eq!(range(&[("Range", "bytes=3-9"), ("If-Range", &weak)]), all);
        assert_eq!(range(&[("Range", "bytes=3-9"), ("If-Range", "\"other\"")]), all);
        assert_eq!(range(&[("Range", "bytes=3-9,20-30")]), all);
        let behind = format!("bytes={length}-");
        let answer = chain.get(&path, &[("Range", &behind)]);
        is_problem(&answer, 416, "range-not-satisfiable", &length.to_string());
        assert_eq!(header(&answer, "content-range"), Some(&*format!("bytes */{length}")));

        for known in [&tag, &weak, "*", &format!("\"other\", {tag}")] {
            let answer = chain.get(&path, &[("If-None-Match", known)]);
            assert_eq!((answer.status.as_u16(), answer.body.len_bytes()), (304, 0), "{known}");
            assert_eq!(header(&answer, "etag"), Some(&*tag));
        }
        assert_eq!(range(&[("If-None-Match", "\"other\"")]), all);
        // The port does not send the body, and takes its length from here.
        let path = format!("/engine/v1/{path}");
        let answer = chain.send(Method::HEAD, &path, &[("Range", "bytes=0-0")], &[]);
        assert_eq!((answer.status.as_u16(), answer.body.len_bytes()), (200, length));
    }
    let tags = ["", ".rlp"].map(|suffix| {
        let answer = chain.get(&format!("witnesses/{hash}{suffix}"), &[]);
        header(&answer, "etag").expect("a tag").to_owned()
    });
    assert_ne!(tags[0], tags[1], "each form has its own");
}

#[test]
fn a_stateless_input_is_what_a_prover_needs() {
    let chain = Chain::new(false);
    let schemas = [0x0e01u16, 0x0f01, 0x1001, 0x1101, 0x1201, 0x1501];
    for (versions, schema) in ALL_FORKS.into_iter().zip(schemas) {
        let hash = chain.extend(versions, &[]);
        let path = format!("stateless-inputs/{hash}");
        let answer = chain.get(&path, &[]);
        let input = body(&answer);
        let schema = schema.to_be_bytes();
        assert_eq!(input[..2], schema);
        let result = execution::stateless::validate_input(chain.engine.chain(), &input);
        assert!(result.successful_validation, "{schema:?}");
        let read = StatelessInput::decode(&input).expect("an input");
        assert_eq!(read.new_payload_request.execution_payload.block_hash, hash);
        let witness = chain.engine.witness(hash).expect("kept").expect("executed");
        assert_eq!((read.witness, read.public_keys), (Witness::clone(&witness), None));
        let part = chain.get(&path, &[("Range", "bytes=0-1")]);
        assert_eq!((part.status.as_u16(), part.body.to_vec()), (206, schema.to_vec()));
        let tag = header(&answer, "etag").expect("a tag").to_owned();
        let known = chain.get(&path, &[("If-None-Match", &tag)]);
        assert_eq!(known.status.as_u16(), 304);

        let answer = chain.get(&format!("{path}?public_keys=true"), &[("If-None-Match", &tag)]);
        let input = body(&answer);
        let result = execution::stateless::validate_input(chain.engine.chain(), &input);
        assert!(result.successful_validation, "{schema:?} with keys");
        let read = StatelessInput::decode(&input).expect("an input");
        assert_eq!(read.public_keys.map(|keys| keys.len()), Some(0));
        assert_eq!(header(&answer, "etag").expect("a tag"), tag.replace("input", "input-keys"));
    }
}

#[test]
fn we_say_who_we_are_and_what_we_can() {
    let chain = Chain::new(true);
    let json = |path: &str| {
        let answer = chain.get(path, &[("X-Engine-Client-Version", "LH/v6.2.1")]);
        assert_eq!(header(&answer, "content-type"), Some("application/json"));
        serde_json::from_slice::<Value>(&body(&answer)).expect("JSON")
    };
    let twin = json!([{"code": "LH", "name": "", "version": "", "commit": "00000000"}]);
    assert_eq!(json("identity"), chain.call("engine_getClientVersionV1", twin));
    let expected = json!({
        "supported_forks": ["paris", "shanghai", "cancun", "prague", "osaka", "amsterdam"],
        "fork_scoped_endpoints": ["payloads", "payloads/witness", "forkchoice", "bodies"],
        "independently_versioned": {"blobs": ["v1", "v2", "v3", "v4"]},
        "unscoped_endpoints": [
            "capabilities", "identity", "syncstatus", "witnesses", "stateless-inputs", "code-files",
        ],
        "limits": {
            "bodies.max_count": 32, "blobs.max_versioned_hashes": 128,
            "payload.max_bytes": 67108864,
        },
    });
    assert_eq!(json("capabilities"), expected);
}

#[test]
fn random_requests_get_an_answer() {
    let chain = Chain::new(true);
    let mut random = Random::seeded();
    let whole = sent(OSAKA, &chain.build(OSAKA, &transactions())).to_ssz().expect("short");
    let endpoints =
        ["payloads", "payloads/witness", "forkchoice", "bodies/hash", "blobs/v1", "blobs/v4"];
    for _ in 0..2000 {
        let mut bytes = match random.below(3) {
            0 => (0..random.below(300)).map(|_| random.number() as u8).collect(),
            1 => update(chain.head(), None).encode(Fork::Osaka),
            _ => whole.clone(),
        };
        for _ in 0..random.below(4) {
            if !bytes.is_empty() {
                let at = random.below(bytes.len());
                bytes[at] = random.number() as u8;
            }
        }
        bytes.truncate(if random.one_in(4) { random.below(700) } else { usize::MAX });
        let fork = random.pick(&Fork::ALL);
        let answer = chain.post(random.pick(&endpoints), fork, &bytes);
        assert_ne!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    }
}

/// Transactions as they are sent are those that the block has.
#[test]
fn transactions_come_back_in_bodies() {
    let chain = Chain::new(true);
    let transactions = transactions();
    let hash = chain.extend(OSAKA, &transactions);
    let answer = chain.post("bodies/hash", Fork::Osaka, &write_hashes_request(&[hash]));
    let bodies = BodiesResponse::decode(Fork::Osaka, &body(&answer)).expect("bodies");
    let [Some(found)] = &bodies.entries[..] else { panic!("{bodies:?}") };
    let decoded = found.transactions.iter().map(|raw| Transaction::decode_2718_exact(raw).unwrap());
    assert!(decoded.eq(transactions));
    assert_eq!(found.withdrawals.len(), 1);
}

#[tokio::test]
async fn the_port_and_the_socket_offer_it() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let params = json!([node.head().await, attributes(1, 3), raw(&transactions()[..1]), "0x"]);
    let built = node.ok("testing_buildBlockV1", params).await;
    let sent = sent(OSAKA, &built);
    let mut headers = HeaderMap::new();
    headers.insert(VERSION, HeaderValue::from_static("osaka"));
    headers.insert(SSZ.0, HeaderValue::from_static(SSZ.1));
    let path = "/engine/v1/payloads/witness";
    let body = sent.to_ssz().expect("short");
    let answer = node.engine.request(Method::POST, path, headers, body).await.expect("an answer");
    assert_eq!(answer.status, StatusCode::OK);
    let read = WithWitness::<PayloadStatus>::decode(&answer.body.into()).expect("a status");
    let witness = read.witness.expect("VALID");

    let mut socket = node.unix_client().await;
    let link = answer.headers["deponent-witness"].to_str().expect("text");
    let whole = witness::ssz::encode(&witness).expect("short");
    for client in [&mut node.engine, &mut socket] {
        let get = client.request(Method::GET, link, HeaderMap::new(), Vec::new()).await;
        assert_eq!(get.expect("an answer").body, whole);
        let head = client.request(Method::HEAD, link, HeaderMap::new(), Vec::new()).await;
        let head = head.expect("an answer");
        assert_eq!(head.headers["content-length"], whole.len().to_string());
        assert!(head.body.is_empty());
    }
    let address = node.node.engine_addr.to_string();
    let mut stranger = Client::connect(&address, None).await.expect("connects");
    let refused = stranger.request(Method::GET, link, HeaderMap::new(), Vec::new()).await;
    assert_eq!(refused.expect("an answer").status, StatusCode::UNAUTHORIZED);
    let refused = node.public.request(Method::GET, link, HeaderMap::new(), Vec::new()).await;
    assert_eq!(refused.expect("an answer").status, StatusCode::NOT_FOUND);
    node.node.stop().await;
}

#[tokio::test]
async fn a_witness_comes_in_zstd_to_who_asks_for_it() {
    for zstd in [true, false] {
        let set = |options: &mut NodeOptions| options.ports.zstd = zstd;
        let mut node = TestNode::start_with(genesis_of_osaka(), set).await;
        let params = json!([node.head().await, attributes(1, 3), raw(&transactions()), "0x"]);
        let built = node.ok("testing_buildBlockV1", params).await;
        let envelope = sent(OSAKA, &built);
        let hash = envelope.payload.block_hash();
        let headers = HeaderMap::from_iter([
            (HeaderName::from_static("eth-execution-version"), HeaderValue::from_static("osaka")),
            (HeaderName::from_static("content-type"), HeaderValue::from_static(SSZ.1)),
        ]);
        let body = envelope.to_ssz().expect("short");
        let posted = node.engine.request(Method::POST, "/engine/v1/payloads", headers, body).await;
        assert_eq!(posted.expect("an answer").status, StatusCode::OK);
        let witness = node.node.engine().witness(hash).expect("kept").expect("executed");
        let whole = witness::ssz::encode(&witness).expect("short");

        let path = format!("/engine/v1/witnesses/{hash}");
        let mut get = async |accepts: bool, header: Option<(&'static str, &str)>| {
            node.engine.set_zstd(accepts);
            // It is a short one, and compressed because nothing else is taken.
            let only = (accepts && zstd).then_some(("accept-encoding", "identity;q=0"));
            let headers = header.into_iter().chain(only).map(|(name, value)| {
                let value = HeaderValue::from_str(value).expect("a value");
                (HeaderName::from_static(name), value)
            });
            let headers = headers.collect();
            let asked = node.engine.request(Method::GET, &path, headers, Vec::new());
            asked.await.expect("an answer")
        };
        let plain = get(false, None).await;
        let coded = get(true, None).await;
        assert_eq!((&plain.body[..], &coded.body[..]), (&whole[..], &whole[..]));
        let tag = plain.headers["etag"].to_str().expect("text").to_owned();
        assert!(!plain.headers.contains_key("content-encoding"));
        assert_eq!(coded.headers.contains_key("content-encoding"), zstd);
        if !zstd {
            assert_eq!(coded.headers["etag"], tag);
            assert!(!coded.headers.contains_key("vary"));
            continue;
        }
        // Other bytes, another tag; the one that it gets is weak.
        let weak = format!("W/{tag}");
        assert_eq!(coded.headers["etag"], weak);
        assert!(!coded.headers.contains_key("accept-ranges"));
        assert_eq!(plain.headers["vary"], "accept-encoding");
        for known in [&tag, &weak] {
            for (accepts, expected) in [(true, &weak), (false, &tag)] {
                let known = get(accepts, Some(("if-none-match", known))).await;
                assert_eq!(known.status, StatusCode::NOT_MODIFIED);
                assert_eq!(known.headers["etag"], *expected);
                assert_eq!(known.headers["vary"], "accept-encoding");
            }
        }
        // A range is of the witness as it is.
        let part = get(true, Some(("range", "bytes=5-1004"))).await;
        assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
        assert!(!part.headers.contains_key("content-encoding"));
        assert_eq!(part.headers["etag"], tag);
        assert_eq!(part.body[..], whole[5..1005]);
    }
}
