//! The state at an endpoint, as the engine asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, U64, U256};
use engine::{RemoteBlock, RemoteProof, Upstream};
use serde::Deserialize;
use serde_json::json;

use super::cache::BlockCache;
use super::endpoint::ForkEndpoint;

/// The state at an endpoint.
#[derive(Debug)]
pub(super) struct EndpointState {
    pub(super) endpoint: Arc<ForkEndpoint>,
    pub(super) cache: Option<BlockCache>,
}

/// The used part of the answer of `eth_getProof`: all else follows from the nodes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Proof {
    account_proof: Vec<Bytes>,
    storage_proof: Vec<SlotProof>,
}

#[derive(Deserialize)]
struct SlotProof {
    proof: Vec<Bytes>,
}

/// The answer of `debug_storageRangeAt`.
#[derive(Deserialize)]
struct StorageRange {
    storage: BTreeMap<B256, StorageEntry>,
}

#[derive(Deserialize)]
struct StorageEntry {
    key: Option<B256>,
}

impl Upstream for EndpointState {
    fn name(&self) -> String {
        self.endpoint.to_string()
    }

    fn proof(
        &self,
        block: &RemoteBlock,
        address: Address,
        slot: Option<U256>,
    ) -> Result<RemoteProof, String> {
        let slots: Vec<B256> = slot.into_iter().map(B256::from).collect();
        let params = json!([address, slots, U64::from(block.number)]);
        let mut proof: Proof = self.endpoint.call("eth_getProof", &params)?;
        let storage = proof.storage_proof.pop().map(|slot| slot.proof).unwrap_or_default();
        Ok(RemoteProof { account: proof.account_proof, storage })
    }

    fn code(&self, block: &RemoteBlock, address: Address) -> Result<Bytes, String> {
        self.endpoint.call("eth_getCode", &json!([address, U64::from(block.number)]))
    }

    fn header(&self, hash: B256) -> Result<Bytes, String> {
        let header = header_of(&self.endpoint, "eth_getBlockByHash", json!(hash))?;
        let header = header.ok_or_else(|| format!("{} has no block {hash}", self.endpoint))?;
        Ok(alloy_rlp::encode(header).into())
    }

    fn next_slot(&self, block: &RemoteBlock, address: Address, from: B256) -> Result<U256, String> {
        const COUNT: &str = "eth_getBlockTransactionCountByHash";
        let count: U64 = self.endpoint.call(COUNT, &json!([block.hash]))?;
        // The state before the block's last transaction: what is proven is the one after it.
        let before = count.to::<u64>().saturating_sub(1);
        let params = json!([block.hash, before, address, from, 1]);
        let range: StorageRange = self.endpoint.call("debug_storageRangeAt", &params)?;
        let first = range.storage.into_values().next();
        let key = first.and_then(|entry| entry.key);
        let unknown = || format!("{}: debug_storageRangeAt names no slot", self.endpoint);
        key.map(Into::into).ok_or_else(unknown)
    }

    fn keep(&self, item: &Bytes) {
        if let Some(cache) = &self.cache {
            cache.keep(item);
        }
    }
}

/// The header in the answer of a method that gives a block; `None` where there is none.
pub(super) fn header_of(
    endpoint: &Arc<ForkEndpoint>,
    method: &str,
    id: serde_json::Value,
) -> Result<Option<Header>, String> {
    let found: Option<alloy_rpc_types_eth::Header> = endpoint.call(method, &json!([id, false]))?;
    let Some(found) = found else { return Ok(None) };
    let (said, header) = (found.hash, found.inner);
    let hash = header.hash_slow();
    if said != hash {
        return Err(format!(
            "{endpoint}: {method}: the block's header hashes to {hash}, not to {said}: it is none \
             of Ethereum's, or the endpoint lies"
        ));
    }
    Ok(Some(header))
}
