//! The header of a chain's first block.

use crate::header::{GAS_LIMIT_MINIMUM, validate_parent};
use crate::{ChainSpec, InvalidBlock};
use alloy_consensus::Header;
use alloy_consensus::constants::EMPTY_WITHDRAWALS;
use alloy_eips::eip1559::INITIAL_BASE_FEE;
use alloy_eips::eip7685::EMPTY_REQUESTS_HASH;
use alloy_genesis::Genesis;
use alloy_hardforks::{EthereumHardfork, EthereumHardforks};
use alloy_primitives::{B256, keccak256};

/// The header of the first block that a geth-style `genesis.json` describes, when its state has
/// this root: with the fields of the forks that are active at its time, and with their initial
/// values where the file is silent.
///
/// # Errors
/// [`InvalidBlock::Genesis`] when the base fee is over 64 bits.
pub fn first_header(
    genesis: &Genesis,
    chain: &ChainSpec,
    state_root: B256,
) -> Result<Header, InvalidBlock> {
    let (number, timestamp) = (genesis.number.unwrap_or(0), genesis.timestamp);
    let london = chain.is_ethereum_fork_active_at_block(EthereumHardfork::London, number);
    let shanghai = chain.is_shanghai_active_at_timestamp(timestamp);
    let cancun = chain.is_cancun_active_at_timestamp(timestamp);
    let prague = chain.is_prague_active_at_timestamp(timestamp);
    let amsterdam = chain.is_amsterdam_active_at_timestamp(timestamp);
    let base_fee = match genesis.base_fee_per_gas {
        Some(fee) => u64::try_from(fee)
            .map_err(|_| InvalidBlock::Genesis(format!("baseFeePerGas {fee} is over 64 bits")))?,
        None => INITIAL_BASE_FEE,
    };
    Ok(Header {
        parent_hash: genesis.parent_hash.unwrap_or_default(),
        beneficiary: genesis.coinbase,
        state_root,
        difficulty: genesis.difficulty,
        number,
        gas_limit: genesis.gas_limit,
        timestamp,
        extra_data: genesis.extra_data.clone(),
        mix_hash: genesis.mix_hash,
        nonce: genesis.nonce.into(),
        base_fee_per_gas: london.then_some(base_fee),
        withdrawals_root: shanghai.then_some(EMPTY_WITHDRAWALS),
        blob_gas_used: cancun.then_some(genesis.blob_gas_used.unwrap_or(0)),
        excess_blob_gas: cancun.then_some(genesis.excess_blob_gas.unwrap_or(0)),
        parent_beacon_block_root: cancun.then_some(B256::ZERO),
        requests_hash: prague.then_some(EMPTY_REQUESTS_HASH),
        // keccak-256 of the RLP of an empty list (EIP-7928).
        block_access_list_hash: amsterdam.then(|| keccak256([0xc0])),
        slot_number: amsterdam.then_some(genesis.slot_number.unwrap_or(0)),
        ..Header::default()
    })
}

/// Checks that a chain may begin with this header.
///
/// # Errors
/// [`InvalidBlock::Genesis`] when its forks contradict each other, its gas limit is too low, or it
/// has proof of work and is not block 0; as [`validate_parent`].
pub fn validate_first_header(header: &Header, chain: &ChainSpec) -> Result<(), InvalidBlock> {
    // Where the configuration says that it has come, that is of the chain as it is, not of its
    // beginning.
    let is_merged = chain.is_merged_at(header.number.saturating_add(1)) == Some(true);
    if is_merged && header.base_fee_per_gas.is_none() {
        let reason = "London is not active at genesis, but the merge builds on it: \
                      londonBlock must not be after the first block";
        return Err(InvalidBlock::Genesis(reason.into()));
    }
    if header.gas_limit < GAS_LIMIT_MINIMUM {
        let got = header.gas_limit;
        let reason = format!("gasLimit is {got}, no block can have less than {GAS_LIMIT_MINIMUM}");
        return Err(InvalidBlock::Genesis(reason));
    }
    if header.number > 0 && !header.difficulty.is_zero() {
        let number = header.number;
        let reason = format!(
            "block {number} has proof of work: what follows needs the total difficulty up to it, \
             and the blocks before it for ommers; begin with block 0, or behind the merge"
        );
        return Err(InvalidBlock::Genesis(reason));
    }
    validate_parent(header)
}
