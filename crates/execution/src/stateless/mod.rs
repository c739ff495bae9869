//! The stateless validation of EIP-8025: one input in, 43 bytes out.
//!
//! The input ([`StatelessInput`]) holds a payload and its witness; the result says whether the
//! payload is valid. Each fork from Paris to Amsterdam has a schema ([`ProtocolFork`]).

mod fork;
pub mod input;
mod merkle;
pub mod request;
mod result;

pub use fork::{ProtocolFork, REVISION, REVISION_WITH_KEYS};
pub use input::StatelessInput;
pub use request::NewPayloadRequest;
pub use result::StatelessValidationResult;
pub use witness::container::{SszError, SszProblem};

use crate::payload::validate_versioned_hashes;
use crate::{BlockError, ChainSpec, InvalidBlock, SealedBlock, Transaction, VerifyError, verify};
use alloy_consensus::{Block, BlockBody, Header, proofs};
use alloy_eips::Decodable2718;
use alloy_primitives::{Bytes, keccak256};

/// Validates `input`, an encoded [`StatelessInput`] of a chain with the rules of `chain`.
///
/// Input that cannot be decoded gives [`StatelessValidationResult::UNDECODABLE`]; an invalid
/// payload, or one whose witness or keys do not fit, gives a result that says so.
pub fn validate_input(chain: &ChainSpec, input: &Bytes) -> StatelessValidationResult {
    let Ok(input) = StatelessInput::decode(input) else {
        return StatelessValidationResult::UNDECODABLE;
    };
    StatelessValidationResult {
        new_payload_request_root: input.new_payload_request.hash_tree_root(),
        successful_validation: verify_input(chain, &input).is_ok(),
        chain_id: input.chain_id,
        schema_id: input.schema_id(),
    }
}

/// As [`validate_input`], with the reason when the payload is not valid.
///
/// # Errors
/// [`VerifyError::Witness`] when the witness is not one of this block, [`VerifyError::Block`] when
/// the block breaks a rule, is of another chain, or the witness is incomplete.
pub fn verify_input(chain: &ChainSpec, input: &StatelessInput) -> Result<(), VerifyError> {
    if input.chain_id != chain.chain_id() {
        let (got, expected) = (input.chain_id, chain.chain_id());
        return Err(invalid(InvalidBlock::ChainId { got, expected }));
    }
    let timestamp = input.new_payload_request.execution_payload.timestamp;
    let fork = chain.fork_at(timestamp);
    if ProtocolFork::of(fork) != Some(input.new_payload_request.fork) {
        let (fork, schema) = (fork.to_string(), input.schema_id());
        return Err(invalid(InvalidBlock::StatelessFork { fork, timestamp, schema }));
    }
    let block = block_of(&input.new_payload_request).map_err(invalid)?;
    let keys = input.public_keys.as_ref();
    let keys: Option<Vec<_>> =
        keys.map(|keys| keys.iter().map(|key| Bytes::copy_from_slice(&key[..])).collect());
    verify(chain, &block, keys.as_deref(), &input.witness)?;
    Ok(())
}

fn invalid(reason: InvalidBlock) -> VerifyError {
    BlockError::from(reason).into()
}

/// The block that a request describes.
///
/// # Errors
/// [`InvalidBlock`] when a transaction cannot be read, or the request's hash of the block or its
/// versioned hashes are not right.
pub fn block_of(request: &NewPayloadRequest) -> Result<SealedBlock, InvalidBlock> {
    let payload = &request.execution_payload;
    let decode = |raw: &Bytes| {
        Transaction::decode_2718_exact(raw)
            .map_err(|error| InvalidBlock::Payload(format!("transaction: {error}")))
    };
    let transactions = payload.transactions.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
    let base_fee_per_gas = u64::try_from(payload.base_fee_per_gas)
        .map_err(|_| InvalidBlock::Payload("base fee per gas is over 64 bits".into()))?;
    let mut header = Header {
        parent_hash: payload.parent_hash,
        beneficiary: payload.fee_recipient,
        state_root: payload.state_root,
        transactions_root: proofs::calculate_transaction_root(&transactions),
        receipts_root: payload.receipts_root,
        logs_bloom: payload.logs_bloom,
        number: payload.block_number,
        gas_limit: payload.gas_limit,
        gas_used: payload.gas_used,
        timestamp: payload.timestamp,
        extra_data: payload.extra_data.clone(),
        mix_hash: payload.prev_randao,
        base_fee_per_gas: Some(base_fee_per_gas),
        ..Header::default()
    };
    let mut withdrawals = None;
    if request.fork >= ProtocolFork::Shanghai {
        header.withdrawals_root = Some(proofs::calculate_withdrawals_root(&payload.withdrawals));
        withdrawals = Some(payload.withdrawals.clone().into());
    }
    if request.fork >= ProtocolFork::Cancun {
        header.blob_gas_used = Some(payload.blob_gas_used);
        header.excess_blob_gas = Some(payload.excess_blob_gas);
        header.parent_beacon_block_root = Some(request.parent_beacon_block_root);
    }
    if request.fork >= ProtocolFork::Prague {
        let requests = request.execution_requests.to_requests();
        header.requests_hash = Some(requests.requests_hash());
    }
    if request.fork >= ProtocolFork::Amsterdam {
        header.block_access_list_hash = Some(keccak256(&payload.block_access_list));
        header.slot_number = Some(payload.slot_number);
    }
    let body = BlockBody { transactions, ommers: Vec::new(), withdrawals };
    let block = SealedBlock::new(Block { header, body });
    let (got, expected) = (payload.block_hash, block.hash());
    if got != expected {
        return Err(InvalidBlock::BlockHash { got, expected });
    }
    validate_versioned_hashes(&block, &request.versioned_hashes)?;
    Ok(block)
}
