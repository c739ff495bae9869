//! The typed client: the same answers over every wire.

use crate::support::{ALL_FORKS, BEACON_ROOT, Fork as Versions, OSAKA, TestNode};
use crate::support::{
    attributes, genesis_of_all_forks, genesis_of_osaka, new_payload_call, raw, transactions,
};
use alloy_eips::eip7685::Requests;
use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{
    CancunPayloadFields, ExecutionPayload, ExecutionPayloadSidecar, ForkchoiceState,
    PayloadAttributes, PayloadId, PayloadStatusEnum, PraguePayloadFields,
};
use client::{CodeCache, ConnectOptions, EngineClient, Error, Fork, Wire};
use engine_api::NewPayload;
use execution::stateless::StatelessInput;
use execution::{SealedBlock, Transaction};
use rpc::{ClientError, Code, JwtSecret};
use serde_json::{Value, json};

type Payload = (ExecutionPayload, ExecutionPayloadSidecar);

/// The parameters of `engine_newPayload` in alloy's types.
fn payload(versions: Versions, built: &Value) -> Payload {
    let call = new_payload_call(versions.new, built);
    let sidecar = call.sidecar();
    (call.payload, sidecar)
}

/// The payload, changed, under the hash that it has then.
fn changed((payload, sidecar): &Payload, change: impl FnOnce(&mut ExecutionPayload)) -> Payload {
    let mut payload = payload.clone();
    change(&mut payload);
    let block = payload.clone().try_into_block_with_sidecar::<Transaction>(sidecar);
    payload.as_v1_mut().block_hash = SealedBlock::new(block.expect("a block")).hash();
    (payload, sidecar.clone())
}

fn addresses(node: &TestNode) -> [(String, Option<JwtSecret>); 2] {
    let socket = node.node.ipc_path.as_ref().expect("asked for");
    let port = (node.node.engine_addr.to_string(), Some(node.node.jwt.clone()));
    [port, (format!("unix:{}", socket.display()), None)]
}

/// A client for each wire, on the port and on the socket.
async fn clients(node: &TestNode) -> Vec<EngineClient> {
    clients_with(node, CodeCache::Off).await
}

async fn clients_with(node: &TestNode, codes: CodeCache) -> Vec<EngineClient> {
    let mut clients = Vec::new();
    for (address, secret) in addresses(node) {
        for wire in [Wire::Json, Wire::Ssz, Wire::Descriptor] {
            let options = ConnectOptions { secret: secret.clone(), wire: Some(wire), codes };
            let client = EngineClient::connect_with(&address, options).await;
            clients.push(client.expect("connects"));
        }
    }
    clients
}

fn head(head_block_hash: B256) -> ForkchoiceState {
    ForkchoiceState { head_block_hash, ..ForkchoiceState::default() }
}

#[tokio::test]
async fn a_payload_has_the_same_answer_over_every_wire() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let parent = node.head().await;
    let params = json!([parent, attributes(1, 3), raw(&transactions()), "0x"]);
    let mut built = node.ok("testing_buildBlockV1", params).await;
    built["versionedHashes"] = json!([crate::support::BLOB_HASH]);
    let valid = payload(OSAKA, &built);
    let invalid = changed(&valid, |payload| payload.as_v1_mut().gas_used += 1);
    let orphan = changed(&valid, |payload| payload.as_v1_mut().parent_hash = B256::repeat_byte(9));
    let mut misnamed = valid.clone();
    misnamed.0.as_v1_mut().block_hash = B256::repeat_byte(8);
    let hash = valid.0.block_hash();

    for (name, (payload, sidecar)) in
        [("VALID", &valid), ("INVALID", &invalid), ("SYNCING", &orphan), ("INVALID", &misnamed)]
    {
        let mut first = None;
        let mut first_keys = None;
        for mut client in clients(&node).await {
            let wire = client.wire();
            for round in 0..2 {
                let answer = client.new_payload_with_witness(payload, sidecar).await;
                let (status, answer) = answer.unwrap_or_else(|error| panic!("{wire:?}: {error}"));
                assert_eq!(status.status.as_str(), name, "{wire:?}: {status:?}");
                let plain = client.new_payload(payload, sidecar).await.expect("a status");
                assert_eq!(plain, status, "{wire:?}");
                assert_eq!(answer.is_some(), name == "VALID", "{wire:?}, {round}");
                let witness = answer.as_ref().map(|answer| answer.witness.clone());
                let same = first.get_or_insert_with(|| (status.clone(), witness.clone()));
                assert_eq!(*same, (status, witness), "{wire:?}, round {round}");
                let Some(answer) = answer else { continue };
                assert_eq!(answer.timings.is_some(), wire != Wire::Json);
                match wire {
                    Wire::Json => assert!(answer.public_keys.is_empty()),
                    _ => {
                        let keys = first_keys.get_or_insert_with(|| answer.public_keys.clone());
                        assert_eq!(*keys, answer.public_keys, "{wire:?}");
                        assert_eq!(keys.len(), transactions().len());
                    }
                }
            }
        }
    }

    let expected = node.node.engine().witness(hash).expect("kept").expect("executed");
    for mut client in clients_with(&node, CodeCache::Held { most_bytes: 1 << 20 }).await {
        for round in 0..3 {
            client.set_zstd(round == 2);
            let (payload, sidecar) = &valid;
            let answer = client.new_payload_with_witness(payload, sidecar).await;
            let answer = answer.expect("a status").1.expect("VALID");
            assert_eq!(answer.witness, *expected, "{:?}", client.wire());
        }
    }
    let mapping = clients_with(&node, CodeCache::Mapped).await;
    for (index, mut client) in mapping.into_iter().enumerate() {
        let (is_refused, wire) = (index < 3 && client.wire() != Wire::Json, client.wire());
        for _ in 0..2 {
            let (payload, sidecar) = &valid;
            match client.new_payload_with_witness(payload, sidecar).await {
                Err(Error::Problem(problem)) => {
                    assert!(is_refused, "{wire:?}: {problem}");
                    assert_eq!(problem.name(), "invalid-request");
                }
                answer => {
                    let answer = answer.expect("a status").1.expect("VALID");
                    assert_eq!(answer.witness, *expected, "{wire:?}");
                    assert!(!is_refused, "{wire:?}");
                }
            }
        }
    }
    for mut client in clients(&node).await {
        match client.witness(hash).await {
            Ok(witness) => assert_eq!(witness, *expected, "{:?}", client.wire()),
            // The engine port has no methods of the debug namespace.
            Err(Error::Rpc(error)) => {
                assert!(client.wire() == Wire::Json && error.is(Code::MethodNotFound), "{error}");
            }
            Err(error) => panic!("{:?}: {error}", client.wire()),
        }
    }
    let address = node.node.http_addr.to_string();
    let mut public = EngineClient::connect(&address, None).await.expect("connects");
    assert_eq!(public.wire(), Wire::Json, "the public port has no REST");
    assert_eq!(public.witness(hash).await.expect("a witness"), *expected);
}

#[tokio::test]
async fn the_forks_follow_from_the_fields() {
    for over in 0..6 {
        let node = TestNode::start(genesis_of_all_forks()).await;
        let mut client = clients(&node).await.swap_remove(over);
        let mut last = B256::ZERO;
        for (versions, fork) in ALL_FORKS.into_iter().zip(Fork::ALL) {
            let wanted: PayloadAttributes =
                serde_json::from_value(attributes(versions.time, versions.forkchoice)).unwrap();
            let parent = node.node.engine().heads().head;
            let begun = client.forkchoice_updated(head(parent), Some(wanted)).await;
            let begun = begun.unwrap_or_else(|error| panic!("{fork}: {error}"));
            let id = begun.payload_id.expect("a build was begun");
            let built = client.get_payload(id).await;
            let built = built.unwrap_or_else(|error| panic!("{fork}: {error}"));
            assert_eq!(built.execution_requests.is_some(), fork >= Fork::Prague);
            assert_eq!(built.blobs.is_some(), fork >= Fork::Cancun);
            last = built.payload.block_hash();

            let call = NewPayload {
                payload: built.payload.clone(),
                versioned_hashes: Vec::new(),
                parent_beacon_block_root: (fork >= Fork::Cancun).then_some(BEACON_ROOT),
                execution_requests: built.execution_requests,
            };
            let sidecar = call.sidecar();
            let answer = client.new_payload_with_witness(&built.payload, &sidecar).await;
            let (status, answer) = answer.unwrap_or_else(|error| panic!("{fork}: {error}"));
            assert_eq!(status.latest_valid_hash, Some(last));
            let expected = node.node.engine().witness(last).expect("kept").expect("executed");
            assert_eq!(answer.expect("VALID").witness, *expected, "{fork}");
            let adopted = client.forkchoice_updated(head(last), None).await.expect("an answer");
            assert!(adopted.payload_status.is_valid(), "{fork}: {adopted:?}");
        }
        for has_keys in [false, true] {
            match (client.wire(), client.stateless_input(last, has_keys).await) {
                (Wire::Json, Err(Error::NotOverJson(_))) => {}
                (Wire::Ssz | Wire::Descriptor, Ok(input)) => {
                    let chain = node.node.engine().chain();
                    let result = execution::stateless::validate_input(chain, &input);
                    assert!(result.successful_validation);
                    let read = StatelessInput::decode(&input).expect("an input");
                    assert_eq!(read.public_keys.is_some(), has_keys);
                }
                (wire, other) => panic!("{wire:?}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn errors_say_what_the_server_said() {
    let mut node = TestNode::start(genesis_of_osaka()).await;
    let built = node.extend(OSAKA, 1, &[]).await;
    let (payload, sidecar) = payload(OSAKA, &built);
    let hash = payload.block_hash();
    for mut client in clients(&node).await {
        let wire = client.wire();
        // Which problem over REST, and which code over JSON-RPC.
        let check = |error: Error, status: u16, name: &str, code: Code| match (wire, &error) {
            (Wire::Json, Error::Rpc(error)) => assert!(error.is(code), "{error}"),
            (Wire::Ssz | Wire::Descriptor, Error::Problem(problem)) => {
                assert_eq!((problem.status, problem.name()), (status, name), "{problem}");
                assert!(problem.kind.starts_with("/engine-api/errors/"));
                assert!(!problem.detail.is_empty());
            }
            _ => panic!("{wire:?}: {error:?}"),
        };
        let wrong = ForkchoiceState { safe_block_hash: B256::repeat_byte(1), ..head(hash) };
        let error = client.forkchoice_updated(wrong, None).await.expect_err("it contradicts");
        check(error, 409, "invalid-forkchoice", Code::InvalidForkchoiceState);
        let error = client.get_payload(PayloadId::new([7; 8])).await.expect_err("no such build");
        check(error, 404, "unknown-payload", Code::UnknownPayload);
        let none = ExecutionPayloadSidecar::v4(
            CancunPayloadFields::new(BEACON_ROOT, Vec::new()),
            PraguePayloadFields::new(Requests::new(vec![Bytes::from_static(&[0])])),
        );
        let error = client.new_payload(&payload, &none).await.expect_err("an empty request");
        check(error, 422, "invalid-body", Code::InvalidParams);
        if wire != Wire::Json {
            let error = client.witness(B256::repeat_byte(5)).await.expect_err("no such block");
            check(error, 404, "unknown-block", Code::Server);
        }
        client.set_fork(Some(Fork::Cancun));
        let error = client.new_payload(&payload, &sidecar).await.expect_err("of another fork");
        let problem = match wire {
            Wire::Json => "",
            _ => "ssz-decode-error",
        };
        check(error, 400, problem, Code::InvalidParams);
        client.set_fork(None);
        let status = client.new_payload(&payload, &sidecar).await.expect("a status");
        assert_eq!(status.status, PayloadStatusEnum::Valid);
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_over_every_wire() {
    let node = TestNode::start(genesis_of_osaka()).await;
    let address = node.node.engine_addr.to_string();
    for jwt in [None, Some(JwtSecret::random())] {
        let is_refusal = |error: Error| match error {
            Error::Transport(ClientError::Http { status: 401, text }) => {
                assert!(!text.is_empty());
            }
            other => panic!("{other:?}"),
        };
        is_refusal(EngineClient::connect(&address, jwt.clone()).await.expect_err("refused"));
        for wire in [Wire::Json, Wire::Ssz, Wire::Descriptor] {
            let client = EngineClient::connect_over(wire, &address, jwt.clone()).await;
            let mut client = client.expect("connects");
            is_refusal(client.identity().await.expect_err("refused"));
            let state = ForkchoiceState::default();
            is_refusal(client.forkchoice_updated(state, None).await.expect_err("refused"));
        }
    }
}

#[tokio::test]
async fn the_best_wire_is_the_fastest_that_there_is() {
    let node = TestNode::start(genesis_of_osaka()).await;
    let mut identity = None;
    for ((address, jwt), best) in addresses(&node).into_iter().zip([Wire::Ssz, Wire::Descriptor]) {
        let mut client = EngineClient::connect(&address, jwt).await.expect("connects");
        assert_eq!(client.wire(), best);
        let capabilities = client.capabilities().await.expect("an answer");
        assert_eq!(capabilities.forks, Fork::ALL.map(Fork::name));
        assert!(capabilities.endpoints.iter().any(|name| name == "payloads/witness"));
        assert_eq!(capabilities.limits["bodies.max_count"], 32);
        identity = Some(client.identity().await.expect("an answer"));
    }
    for mut client in clients(&node).await {
        assert_eq!(client.identity().await.ok(), identity);
        if client.wire() == Wire::Json {
            let methods = client.capabilities().await.expect("an answer").endpoints;
            assert!(methods.iter().any(|name| name == "engine_newPayloadWithWitnessV4"));
        }
    }
}
