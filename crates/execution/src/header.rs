//! The rules between a header and its parent.

use crate::{ChainSpec, InvalidBlock, proof_of_work};
use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_consensus::{BlockHeader, Header};
use alloy_eips::eip1559::{
    BaseFeeParams, DEFAULT_ELASTICITY_MULTIPLIER, INITIAL_BASE_FEE, calc_next_block_base_fee,
};
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{B64, B256, U256};

/// The lowest gas limit a block may have.
pub const GAS_LIMIT_MINIMUM: u64 = 5000;
/// The highest gas limit: some clients hold gas in signed 64-bit numbers, so all refuse more.
const GAS_LIMIT_MAXIMUM: u64 = i64::MAX as u64;
/// The highest number, base fee and excess blob gas of a parent: the child's, a base fee grown by
/// an eighth included, stay below 2^64.
const COMPUTED_MAXIMUM: u64 = 1 << 62;
/// The most blobs that a schedule can allow, 2^16, at 2^17 gas each; times 2^16 it is below 2^64.
const BLOB_GAS_MAXIMUM: u64 = 1 << 33;
const GAS_LIMIT_BOUND_DIVISOR: u64 = 1024;
pub(crate) const EXTRA_DATA_BYTES: usize = 32;

/// Checks everything about `header` that needs only its parent: numbers, time, gas limit, base
/// fee, blob gas, and that it has just the fields of its fork. Of a block with proof of work it
/// checks the difficulty, but not the proof.
///
/// # Errors
/// [`InvalidBlock`] with the first rule that the header breaks.
pub fn validate_header(
    chain: &ChainSpec,
    header: &Header,
    parent: &Header,
    parent_hash: B256,
) -> Result<(), InvalidBlock> {
    validate_parent(parent)?;
    let (number, timestamp) = (header.number, header.timestamp);
    if header.parent_hash != parent_hash {
        return Err(InvalidBlock::ParentHash { got: header.parent_hash, expected: parent_hash });
    }
    if parent.number.checked_add(1) != Some(number) {
        return Err(InvalidBlock::Number { got: number, parent: parent.number });
    }
    if timestamp <= parent.timestamp {
        return Err(InvalidBlock::Timestamp { got: timestamp, parent: parent.timestamp });
    }
    if header.extra_data.len() > EXTRA_DATA_BYTES {
        return Err(InvalidBlock::ExtraData(header.extra_data.len()));
    }
    if proof_of_work::has_proof_of_work(chain, header, parent) {
        proof_of_work::validate_fields(chain, header, parent)?;
        validate_gas(chain, header, parent, chain.is_london_active_at_block(number))?;
    } else {
        validate_no_proof_of_work(header)?;
        validate_gas(chain, header, parent, true)?;
    }
    validate_fork_fields(chain, header)?;
    validate_blob_gas(chain, header, parent)
}

/// Checks that the numbers computed from `parent` stay within 64 bits. A parent that was validated
/// itself is far below; a genesis, or the parent in a witness, may have any value.
///
/// # Errors
/// [`InvalidBlock::ParentField`] with the first field that is out of range.
pub fn validate_parent(parent: &Header) -> Result<(), InvalidBlock> {
    let fields = [
        ("number", Some(parent.number), COMPUTED_MAXIMUM),
        ("gas used", Some(parent.gas_used), parent.gas_limit),
        ("base fee per gas", parent.base_fee_per_gas, COMPUTED_MAXIMUM),
        ("blob gas used", parent.blob_gas_used, BLOB_GAS_MAXIMUM),
        ("excess blob gas", parent.excess_blob_gas, COMPUTED_MAXIMUM),
    ];
    for (field, got, limit) in fields {
        if let Some(got) = got.filter(|got| *got > limit) {
            return Err(InvalidBlock::ParentField { field, got });
        }
    }
    Ok(())
}

/// The base fee per gas of the block after `parent` (EIP-1559), in wei.
pub fn next_base_fee(parent: &Header) -> u64 {
    match parent.base_fee_per_gas {
        Some(base_fee) => calc_next_block_base_fee(
            parent.gas_used,
            parent.gas_limit,
            base_fee,
            BaseFeeParams::ethereum(),
        ),
        None => INITIAL_BASE_FEE,
    }
}

/// The excess blob gas of the block after `parent` at `timestamp` (EIP-4844, EIP-7918), `None`
/// before Cancun.
pub fn next_excess_blob_gas(chain: &ChainSpec, parent: &Header, timestamp: u64) -> Option<u64> {
    let params = chain.blob_params(timestamp)?;
    Some(params.next_block_excess_blob_gas_osaka(
        parent.excess_blob_gas.unwrap_or(0),
        parent.blob_gas_used.unwrap_or(0),
        parent.base_fee_per_gas.unwrap_or(0),
    ))
}

fn validate_no_proof_of_work(header: &Header) -> Result<(), InvalidBlock> {
    let wrong = |field, expected| Err(InvalidBlock::ProofOfWorkField { field, expected });
    if header.difficulty != U256::ZERO {
        return wrong("difficulty", "zero");
    }
    if header.nonce != B64::ZERO {
        return wrong("nonce", "zero");
    }
    if header.ommers_hash != EMPTY_OMMER_ROOT_HASH {
        return wrong("ommers hash", "that of an empty list");
    }
    Ok(())
}

fn validate_gas(
    chain: &ChainSpec,
    header: &Header,
    parent: &Header,
    london: bool,
) -> Result<(), InvalidBlock> {
    let (gas_used, gas_limit) = (header.gas_used, header.gas_limit);
    if gas_used > gas_limit {
        return Err(InvalidBlock::GasUsedOverLimit { gas_used, gas_limit });
    }
    // The first block of London aims at the limit of its parent, so its own is twice that.
    let factor = match london && parent.base_fee_per_gas.is_none() {
        true => DEFAULT_ELASTICITY_MULTIPLIER,
        false => 1,
    };
    let parent_limit = parent.gas_limit.saturating_mul(factor);
    let is_near = gas_limit.abs_diff(parent_limit) < parent_limit / GAS_LIMIT_BOUND_DIVISOR;
    if !is_near && !chain.is_dev() || !(GAS_LIMIT_MINIMUM..=GAS_LIMIT_MAXIMUM).contains(&gas_limit)
    {
        return Err(InvalidBlock::GasLimit { got: gas_limit, parent: parent_limit });
    }
    if !london {
        let (field, timestamp) = ("base fee per gas", header.timestamp);
        return match header.base_fee_per_gas {
            None => Ok(()),
            Some(_) => Err(InvalidBlock::UnexpectedField { field, timestamp }),
        };
    }
    let expected = next_base_fee(parent);
    if chain.is_dev() && header.base_fee_per_gas.is_some() {
        return Ok(());
    }
    if header.base_fee_per_gas != Some(expected) {
        return Err(InvalidBlock::BaseFee { got: header.base_fee_per_gas, expected });
    }
    Ok(())
}

fn validate_fork_fields(chain: &ChainSpec, header: &Header) -> Result<(), InvalidBlock> {
    let timestamp = header.timestamp;
    let shanghai = chain.is_shanghai_active_at_timestamp(timestamp);
    let cancun = chain.is_cancun_active_at_timestamp(timestamp);
    let prague = chain.is_prague_active_at_timestamp(timestamp);
    let amsterdam = chain.is_amsterdam_active_at_timestamp(timestamp);
    let fields = [
        ("withdrawals root", header.withdrawals_root.is_some(), shanghai),
        ("blob gas used", header.blob_gas_used.is_some(), cancun),
        ("excess blob gas", header.excess_blob_gas.is_some(), cancun),
        ("parent beacon block root", header.parent_beacon_block_root.is_some(), cancun),
        ("requests hash", header.requests_hash.is_some(), prague),
        ("block access list hash", header.block_access_list_hash.is_some(), amsterdam),
        ("slot number", header.slot_number.is_some(), amsterdam),
    ];
    for (field, present, active) in fields {
        match (present, active) {
            (false, true) => return Err(InvalidBlock::MissingField { field, timestamp }),
            (true, false) => return Err(InvalidBlock::UnexpectedField { field, timestamp }),
            _ => {}
        }
    }
    Ok(())
}

fn validate_blob_gas(
    chain: &ChainSpec,
    header: &Header,
    parent: &Header,
) -> Result<(), InvalidBlock> {
    let (Some(expected), Some(params)) = (
        next_excess_blob_gas(chain, parent, header.timestamp),
        chain.blob_params(header.timestamp),
    ) else {
        return Ok(());
    };
    let got = header.excess_blob_gas().unwrap_or(0);
    if got != expected {
        return Err(InvalidBlock::ExcessBlobGas { got, expected });
    }
    let (got, limit) = (header.blob_gas_used().unwrap_or(0), params.max_blob_gas_per_block());
    if got > limit || got % DATA_GAS_PER_BLOB != 0 {
        return Err(InvalidBlock::BlobGasLimit { got, limit });
    }
    Ok(())
}
