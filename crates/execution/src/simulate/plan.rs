//! The order of simulated blocks, and their headers before they run.

use super::{BlockCalls, Refusal, RefusalKind};
use crate::limits::{BLOCK_SECONDS, SIMULATED_BLOCKS};
use crate::{ChainSpec, next_base_fee, next_excess_blob_gas};
use alloy_consensus::Header;
use alloy_consensus::constants::{EMPTY_OMMER_ROOT_HASH, EMPTY_WITHDRAWALS};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{B256, U256};

fn refused(kind: RefusalKind, reason: String) -> Refusal {
    Refusal { kind, reason }
}

/// The blocks with their numbers and times, and empty ones where numbers are left out.
pub(super) fn in_order(base: &Header, blocks: Vec<BlockCalls>) -> Result<Vec<BlockCalls>, Refusal> {
    let (mut number, mut time) = (base.number, base.timestamp);
    let mut ordered = Vec::with_capacity(blocks.len());
    for mut calls in blocks {
        let next = calls.block.number.unwrap_or(number.saturating_add(1));
        if next <= number {
            let reason = format!("block numbers must be in order: {next} <= {number}");
            return Err(refused(RefusalKind::BlockNumber, reason));
        }
        if next - base.number > SIMULATED_BLOCKS {
            return Err(refused(RefusalKind::Limit, "too many blocks".into()));
        }
        for number in number + 1..next {
            time = time.wrapping_add(BLOCK_SECONDS);
            let mut gap = BlockCalls::default();
            (gap.block.number, gap.block.timestamp) = (Some(number), Some(time));
            ordered.push(gap);
        }
        match calls.block.timestamp {
            Some(given) if given <= time => {
                let reason = format!("block timestamps must be in order: {given} <= {time}");
                return Err(refused(RefusalKind::BlockTime, reason));
            }
            Some(given) => time = given,
            None => time = time.wrapping_add(BLOCK_SECONDS),
        }
        number = next;
        (calls.block.number, calls.block.timestamp) = (Some(number), Some(time));
        ordered.push(calls);
    }
    Ok(ordered)
}

/// A block's header as far as its parent's and the overrides decide it. Neither its parent's hash
/// nor its fees are there yet.
pub(super) fn header(chain: &ChainSpec, parent: &Header, calls: &BlockCalls) -> Header {
    let number = calls.block.number.unwrap_or(parent.number);
    let timestamp = calls.block.timestamp.unwrap_or(parent.timestamp);
    let london = chain.is_london_active_at_block(number);
    let shanghai = london && chain.is_shanghai_active_at_timestamp(timestamp);
    let cancun = london && chain.is_cancun_active_at_timestamp(timestamp);
    let difficulty = match chain.is_taken_for_merged(number, timestamp) {
        true => U256::ZERO,
        false => parent.difficulty,
    };
    let header = Header {
        number,
        timestamp,
        ommers_hash: EMPTY_OMMER_ROOT_HASH,
        beneficiary: parent.beneficiary,
        difficulty,
        gas_limit: parent.gas_limit,
        withdrawals_root: shanghai.then_some(EMPTY_WITHDRAWALS),
        parent_beacon_block_root: cancun.then(|| calls.beacon_root.unwrap_or(B256::ZERO)),
        slot_number: parent.slot_number.map(|slot| slot.wrapping_add(1)),
        ..Header::default()
    };
    calls.block.header(&header)
}

/// Puts the fees into a header, which depend on the parent's.
pub(super) fn fill_fees(chain: &ChainSpec, header: &mut Header, parent: &Header, validates: bool) {
    if chain.is_london_active_at_block(header.number) && header.base_fee_per_gas.is_none() {
        header.base_fee_per_gas = Some(if validates { next_base_fee(parent) } else { 0 });
    }
    header.excess_blob_gas = next_excess_blob_gas(chain, parent, header.timestamp);
}
