//! Stateless inputs of valid blocks: the encoder and the roots agree with their slow twins.

use alloy_primitives::Bytes;
use execution::stateless::{NewPayloadRequest, ProtocolFork, StatelessInput, validate_input};
use execution::{ChainSpec, SealedBlock, Verified};
use testing::plain_ssz;

/// The input of a block that was verified, encoded and read again; `None` where its fork has none.
pub(crate) fn encoded(
    chain: &ChainSpec,
    block: &SealedBlock,
    verified: &Verified,
) -> Result<Option<Bytes>, String> {
    let Some(fork) = ProtocolFork::of(chain.fork_of(&block.header)) else { return Ok(None) };
    let requests: Vec<_> = verified.requests.iter().cloned().collect();
    let list = verified.block_access_list.clone().unwrap_or_default();
    let request = NewPayloadRequest::of_block(fork, block, &requests, list);
    let input = StatelessInput {
        new_payload_request: request.map_err(|error| format!("stateless input: {error}"))?,
        witness: verified.witness.clone(),
        chain_id: chain.chain_id(),
        public_keys: None,
    };
    let encoded = Bytes::from(input.encode().map_err(|error| format!("stateless input: {error}"))?);
    if encoded != plain_ssz::encoding(&input) {
        return Err("the twin encodes another stateless input".into());
    }
    let request = &input.new_payload_request;
    if request.hash_tree_root() != plain_ssz::root(request) {
        return Err("the twin has another root of the request".into());
    }
    if StatelessInput::decode(&encoded).as_ref() != Ok(&input) {
        return Err("the stateless input does not decode to the same".into());
    }
    Ok(Some(encoded))
}

/// The input of a block that was verified is valid; the id of its schema, if its fork has one.
pub(crate) fn check(
    chain: &ChainSpec,
    block: &SealedBlock,
    verified: &Verified,
) -> Result<Option<u16>, String> {
    let Some(input) = encoded(chain, block, verified)? else { return Ok(None) };
    let result = validate_input(chain, &input);
    match result.successful_validation && input[..2] == result.schema_id.to_be_bytes() {
        true => Ok(Some(result.schema_id)),
        false => Err(format!("the stateless input is not valid: {result:?}")),
    }
}
