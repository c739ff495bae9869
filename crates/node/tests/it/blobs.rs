//! Blobs of the pool, over REST as over JSON-RPC.

use alloy_consensus::{
    EthereumTxEnvelope, SignableTransaction as _, TxEip4844, TxEip4844WithSidecar,
};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_eips::eip4844::{Blob, Bytes48};
use alloy_eips::eip7594::{
    BlobTransactionSidecarEip7594, BlobTransactionSidecarVariant, CELLS_PER_EXT_BLOB,
};
use alloy_primitives::{Address, B256, Bytes, hex};
use client::ssz::write_hashes_request;
use rpc::Client;
use rpc::rest::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use crate::support::*;

/// A transaction with two blobs of zeros, as it is sent, and their versioned hash. Commitment and
/// proofs are the point at infinity.
fn sent() -> (Bytes, B256) {
    let mut point = [0; 48];
    point[0] = 0xc0;
    let point = Bytes48::from(point);
    let sidecar = BlobTransactionSidecarVariant::from(BlobTransactionSidecarEip7594 {
        blobs: vec![Blob::ZERO; 2],
        commitments: vec![point; 2],
        cell_proofs: vec![point; 2 * CELLS_PER_EXT_BLOB],
    });
    let tx = TxEip4844 {
        chain_id: 1337,
        gas_limit: 100_000,
        max_fee_per_gas: 10_000_000_000,
        max_priority_fee_per_gas: 2,
        to: Address::repeat_byte(7),
        max_fee_per_blob_gas: 10_000_000_000,
        blob_versioned_hashes: sidecar.versioned_hashes().collect(),
        ..TxEip4844::default()
    };
    let hash = tx.blob_versioned_hashes[0];
    let tx = TxEip4844WithSidecar { tx, sidecar }.into_signed(signature());
    (EthereumTxEnvelope::<TxEip4844WithSidecar>::Eip4844(tx).encoded_2718().into(), hash)
}

/// A genesis in which the sender of [`sent`] is rich.
fn genesis(mut genesis: Value) -> Value {
    use alloy_consensus::transaction::SignerRecoverable as _;
    use alloy_eips::eip2718::Decodable2718 as _;
    let (raw, _) = sent();
    let tx = EthereumTxEnvelope::<TxEip4844WithSidecar>::decode_2718(&mut &raw[..]).expect("one");
    let sender = tx.recover_signer().expect("any signature has a signer");
    genesis["alloc"][sender.to_string()] = json!({ "balance": "0xde0b6b3a7640000000" });
    genesis
}

async fn post(client: &mut Client, version: &str, body: Vec<u8>) -> (StatusCode, Vec<u8>) {
    let kind = HeaderValue::from_static("application/octet-stream");
    let headers = HeaderMap::from_iter([(rpc::rest::header::CONTENT_TYPE, kind)]);
    let path = format!("/engine/v1/blobs/{version}");
    let reply = client.request(Method::POST, &path, headers, body).await.expect("an answer");
    (reply.status, reply.body.to_vec())
}

/// The part of an answer behind the offset at `at`, which counts from `from`.
fn behind(bytes: &[u8], from: usize, at: usize) -> &[u8] {
    let offset: [u8; 4] = bytes[from + at..from + at + 4].try_into().expect("four bytes");
    &bytes[from + u32::from_le_bytes(offset) as usize..]
}

/// The items of a list of those that vary in length.
fn items(list: &[u8]) -> Vec<&[u8]> {
    let offset = |at: usize| {
        u32::from_le_bytes(list[4 * at..4 * at + 4].try_into().expect("four bytes")) as usize
    };
    let count = if list.is_empty() { 0 } else { offset(0) / 4 };
    let end = |at: usize| if at + 1 < count { offset(at + 1) } else { list.len() };
    (0..count).map(|at| &list[offset(at)..end(at)]).collect()
}

/// An entry of the second to fourth version as JSON-RPC has it.
fn entry(version: &str, entry: &[u8]) -> Value {
    if entry[0] == 0 {
        return Value::Null;
    }
    let contents = behind(entry, 0, 1);
    if version == "v4" {
        let cells = behind(contents, 0, 0);
        let proofs = behind(contents, 0, 4);
        let cells = &cells[..cells.len() - proofs.len()];
        let there = |list: &[u8]| -> Vec<String> {
            let items = items(list);
            assert_eq!(items.len(), CELLS_PER_EXT_BLOB);
            let there = items.into_iter().filter(|item| !item.is_empty());
            there.map(hex::encode_prefixed).collect()
        };
        return json!({ "blob_cells": there(cells), "proofs": there(proofs) });
    }
    let blob = &contents[..1 << 17];
    let proofs = behind(contents, 0, 1 << 17).chunks(48).map(hex::encode_prefixed);
    json!({ "blob": hex::encode_prefixed(blob), "proofs": proofs.collect::<Vec<_>>() })
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_has_the_blobs_of_the_pool_that_json_rpc_has() {
    let mut node = TestNode::start(genesis(genesis_of_osaka())).await;
    let (raw, hash) = sent();
    node.public("eth_sendRawTransaction", json!([raw])).await.expect("taken");
    let indices = hex!("03000000000000000000000000000080");
    for hashes in [vec![hash], vec![hash, B256::repeat_byte(1), hash], vec![]] {
        for version in ["v2", "v3", "v4"] {
            let method = format!("engine_getBlobs{}", version.to_uppercase());
            let (mut params, mut body) = (json!([hashes]), write_hashes_request(&hashes));
            if version == "v4" {
                params = json!([hashes, Bytes::from(indices)]);
                // The offset of the hashes is behind the indices.
                body = [&20_u32.to_le_bytes(), &indices[..], &body[4..]].concat();
            }
            let expected = node.ok(&method, params).await;
            let (status, body) = post(&mut node.engine, version, body).await;
            if expected.is_null() {
                assert_eq!((status, body.len()), (StatusCode::NO_CONTENT, 0), "{version}");
                continue;
            }
            assert_eq!(status, StatusCode::OK, "{version}");
            let entries = items(behind(&body, 0, 0)).into_iter();
            let found: Vec<_> = entries.map(|bytes| entry(version, bytes)).collect();
            assert_eq!(json!(found), expected, "{version}");
        }
    }
    // As over JSON-RPC, the first version is for earlier forks.
    let (status, body) = post(&mut node.engine, "v1", write_hashes_request(&[hash])).await;
    let said = String::from_utf8(body).expect("JSON");
    assert!(status == 400 && said.contains("unsupported-fork"), "{status} {said}");
}

/// Before Osaka transactions come with blob proofs, which the pool replaces; the first version has
/// them again.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_version_has_whole_blobs_with_their_proofs() {
    let mut prague = genesis_of_osaka();
    let config = prague["config"].as_object_mut().expect("an object");
    config.remove("osakaTime");
    config["blobSchedule"].as_object_mut().expect("an object").remove("osaka");
    let mut node = TestNode::start(genesis(prague)).await;
    let (raw, hash) = sent();
    let there = node.public("eth_sendRawTransaction", json!([raw])).await.is_ok();
    let hashes = [hash, B256::repeat_byte(1)];
    let expected = node.ok("engine_getBlobsV1", json!([hashes])).await;
    assert_eq!(expected[0].is_object(), there);
    let (status, body) = post(&mut node.engine, "v1", write_hashes_request(&hashes)).await;
    assert_eq!(status, StatusCode::OK);
    let entries = behind(&body, 0, 0).chunks(1 + (1 << 17) + 48);
    let found = entries.map(|entry| match entry[0] {
        0 => Value::Null,
        _ => {
            let (blob, proof) = entry[1..].split_at(1 << 17);
            let [blob, proof] = [blob, proof].map(hex::encode_prefixed);
            json!({ "blob": blob, "proof": proof })
        }
    });
    assert_eq!(json!(found.collect::<Vec<_>>()), expected);
    for version in ["v2", "v3"] {
        let (status, _) = post(&mut node.engine, version, write_hashes_request(&hashes)).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{version}");
    }
}
