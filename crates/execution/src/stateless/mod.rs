//! The stateless validation of EIP-8025: one input in, 43 bytes out.
//!
//! The input ([`input::StatelessInput`]) holds a payload, its witness and the signers' public
//! keys; the result says whether the payload is valid. Only Amsterdam has a schema.

pub mod input;
mod merkle;
mod result;

pub use result::StatelessValidationResult;
pub use witness::container::{SszError, SszProblem};

use crate::payload::validate_versioned_hashes;
use crate::{BlockError, ChainSpec, InvalidBlock, SealedBlock, Transaction, VerifyError, verify};
use alloy_consensus::{Block, BlockBody, Header, proofs};
use alloy_eips::Decodable2718;
use alloy_hardforks::EthereumHardfork;
use alloy_primitives::{Bytes, keccak256};
use input::{NewPayloadRequest, SCHEMA_ID, StatelessInput};

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
        schema_id: SCHEMA_ID,
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
    if chain.fork_at(timestamp) != EthereumHardfork::Amsterdam {
        let fork = chain.fork_at(timestamp).to_string();
        return Err(invalid(InvalidBlock::StatelessFork { fork, timestamp }));
    }
    let block = block(&input.new_payload_request).map_err(invalid)?;
    let keys: Vec<_> =
        input.public_keys.iter().map(|key| Bytes::copy_from_slice(&key[..])).collect();
    verify(chain, &block, Some(&keys), &input.witness)?;
    Ok(())
}

fn invalid(reason: InvalidBlock) -> VerifyError {
    BlockError::from(reason).into()
}

/// The block that a request describes; its hash and versioned hashes must be right.
fn block(request: &NewPayloadRequest) -> Result<SealedBlock, InvalidBlock> {
    let payload = &request.execution_payload;
    let decode = |raw: &Bytes| {
        Transaction::decode_2718_exact(raw)
            .map_err(|error| InvalidBlock::Payload(format!("transaction: {error}")))
    };
    let transactions = payload.transactions.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
    let base_fee_per_gas = u64::try_from(payload.base_fee_per_gas)
        .map_err(|_| InvalidBlock::Payload("base fee per gas is over 64 bits".into()))?;
    let header = Header {
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
        withdrawals_root: Some(proofs::calculate_withdrawals_root(&payload.withdrawals)),
        blob_gas_used: Some(payload.blob_gas_used),
        excess_blob_gas: Some(payload.excess_blob_gas),
        parent_beacon_block_root: Some(request.parent_beacon_block_root),
        requests_hash: Some(request.execution_requests.to_requests().requests_hash()),
        block_access_list_hash: Some(keccak256(&payload.block_access_list)),
        slot_number: Some(payload.slot_number),
        ..Header::default()
    };
    let withdrawals = Some(payload.withdrawals.clone().into());
    let body = BlockBody { transactions, ommers: Vec::new(), withdrawals };
    let block = SealedBlock::new(Block { header, body });
    let (got, expected) = (payload.block_hash, block.hash());
    if got != expected {
        return Err(InvalidBlock::BlockHash { got, expected });
    }
    validate_versioned_hashes(&block, &request.versioned_hashes)?;
    Ok(block)
}
