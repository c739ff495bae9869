//! Floor 2. What a build is asked for, and what it gives.

use alloy_eips::eip7685::Requests;
use alloy_primitives::{B256, Bytes, U256};
use alloy_rpc_types_engine::PayloadAttributes;
use execution::SealedBlock;
use std::sync::Arc;
use witness::Witness;

/// The payload that `engine_forkchoiceUpdated` asks to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRequest {
    /// The attributes of the payload.
    pub attributes: PayloadAttributes,
    /// The version of `engine_forkchoiceUpdated`; the first byte of the payload's identifier.
    pub version: u8,
    /// Whether `engine_getPayload` is to carry the witness.
    pub with_witness: bool,
}

/// A payload that the engine built. It is valid, but not part of the chain before
/// [`Engine::new_payload`](crate::Engine::new_payload) has seen it.
#[derive(Debug, Clone)]
pub struct Built {
    /// Header and body.
    pub block: SealedBlock,
    /// The fee recipient's earnings, in wei.
    pub block_value: U256,
    /// The block's EIP-7685 requests.
    pub requests: Requests,
    /// RLP of the block access list, from Amsterdam on.
    pub block_access_list: Option<Bytes>,
    /// The block's witness.
    pub witness: Witness,
    /// Whether the request asked for the witness.
    pub with_witness: bool,
}

/// A build: begun by the fork choice, finished when it is first asked for.
#[derive(Debug)]
pub(crate) enum Build {
    Begun { parent: B256, request: BuildRequest },
    Finished(Arc<Built>),
}
