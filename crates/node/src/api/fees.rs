//! Prices of gas: suggestions, and the history of fees.

use alloy_consensus::{Header, Transaction as _};
use alloy_eips::eip1559::{BaseFeeParams, INITIAL_BASE_FEE};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{U64, U256};
use engine::BlockRecord;
use rpc::{Code, Error, Json, Params};
use serde_json::json;

use super::Api;
use super::blocks::{AnyBlock, BlockId, NumberOrTag};
use super::lenient::HexOrDecimal;
use crate::limits::{FEE_HISTORY_BLOCKS, FEE_PERCENTILES};
use crate::receipts::Contents;

/// Blocks that a suggestion looks at, with at least two tips each, as geth.
const SAMPLED_BLOCKS: usize = 20;
/// The lowest tips of a block that count.
const BLOCK_SAMPLES: usize = 3;
/// Of all these tips the one at this percentile is suggested.
const TIP_PERCENTILE: usize = 60;
/// Lower tips do not count, in wei.
const LEAST_TIP: u128 = 2;
/// More is never suggested: 500 gwei.
const MOST_TIP: u128 = 500_000_000_000;
/// Suggested where blocks say nothing: geth's least price of a miner.
const DEFAULT_TIP: u128 = 1_000_000;

/// `eth_gasPrice`: the suggested tip, and the base fee of the head.
pub(super) fn gas_price(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let base_fee = api.head()?.block.header.base_fee_per_gas.unwrap_or_default();
    Json::of(&U256::from(suggested_tip(api)? + u128::from(base_fee)))
}

/// `eth_maxPriorityFeePerGas`.
pub(super) fn tip(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    Json::of(&U256::from(suggested_tip(api)?))
}

/// `eth_baseFee`: of the block after the head; zero before London.
pub(super) fn next_base_fee(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let head = api.head()?;
    Json::of(&U256::from(base_fee_after(api, &head.block.header)))
}

/// `eth_blobBaseFee`: of the head, as geth; `null` before Cancun.
pub(super) fn blob_base_fee(api: &Api, params: Params<'_>) -> Result<Json, Error> {
    params.end()?;
    let head = api.head()?;
    Json::of(&blob_fees(api, &head.block.header).map(|(fee, _)| U256::from(fee)))
}

/// The tip of a percentile of the lowest tips in the newest blocks (geth's gas price oracle).
pub(super) fn suggested_tip(api: &Api) -> Result<u128, Error> {
    let mut record = api.head()?;
    let mut tips = Vec::new();
    let mut blocks = SAMPLED_BLOCKS;
    while blocks > 0 && record.number() > 0 {
        let found = lowest_tips(&record);
        // A block that says little is no whole one of those that are looked at.
        blocks -= 1;
        if found.len() < 2 && tips.len() + blocks + 1 < 2 * SAMPLED_BLOCKS {
            blocks += 1;
        }
        match found.is_empty() {
            true => tips.push(DEFAULT_TIP),
            false => tips.extend(found),
        }
        let parent = api.block(record.block.header.parent_hash)?;
        let Some(parent) = parent.filter(|parent| parent.has_body()) else { break };
        record = parent;
    }
    tips.sort_unstable();
    let at = tips.len().saturating_sub(1) * TIP_PERCENTILE / 100;
    Ok(tips.get(at).copied().unwrap_or(DEFAULT_TIP).min(MOST_TIP))
}

/// The lowest tips of a block, without those that its own producer pays.
fn lowest_tips(record: &BlockRecord) -> Vec<u128> {
    let BlockRecord { block, senders, .. } = record;
    let base_fee = block.header.base_fee_per_gas.unwrap_or_default();
    let others = block.body.transactions.iter().zip(senders);
    let others = others.filter(|(_, sender)| **sender != block.header.beneficiary);
    let tips = others.filter_map(|(transaction, _)| transaction.effective_tip_per_gas(base_fee));
    let mut tips: Vec<_> = tips.filter(|tip| *tip >= LEAST_TIP).collect();
    tips.sort_unstable();
    tips.truncate(BLOCK_SAMPLES);
    tips
}

/// `eth_feeHistory`, as geth.
pub(super) fn history(api: &Api, mut params: Params<'_>) -> Result<Json, Error> {
    let HexOrDecimal(count) = params.next("block count")?;
    let newest: NumberOrTag = params.next("newest block")?;
    let percentiles: Option<Vec<f64>> = params.optional("reward percentiles")?;
    params.end()?;
    let percentiles = percentiles.unwrap_or_default();
    check_percentiles(&percentiles)?;
    let count = count.min(FEE_HISTORY_BLOCKS);
    let head = api.head()?.number();
    if let NumberOrTag::Number(number) = newest
        && number > head
    {
        let detail = format!(
            "request beyond head block: requested {number}, head {head}: name an older one"
        );
        return Err(Error::new(Code::Server, detail));
    }
    if count == 0 {
        return Json::of(&json!({"oldestBlock": "0x0", "gasUsedRatio": null}));
    }
    let Some(newest) = api.any_block(&BlockId::Number(newest))? else {
        let detail = "there is no such block: the consensus client has named none yet";
        return Err(Error::new(Code::Server, detail));
    };
    let mut blocks = vec![newest];
    while (blocks.len() as u64) < count
        && let Some(last) = blocks.last().map(|block| &block.contents().block.header)
        && last.number > 0
        && let Some(parent) = api.block(last.parent_hash)?
    {
        blocks.push(AnyBlock::Valid(parent));
    }
    blocks.reverse();
    let mut fees = FeeHistory::default();
    for block in &blocks {
        fees.add(api, block, &percentiles)?;
    }
    fees.end(api, &blocks[blocks.len() - 1].contents().block.header);
    let oldest = blocks[0].contents().block.header.number;
    Json::of(&fees.shown(oldest, !percentiles.is_empty()))
}

fn check_percentiles(percentiles: &[f64]) -> Result<(), Error> {
    let count = percentiles.len();
    if count > FEE_PERCENTILES {
        let detail = format!("{count} percentiles, at most {FEE_PERCENTILES} are allowed");
        return Err(Error::invalid_params(detail));
    }
    let is_ordered = percentiles.windows(2).all(|pair| pair[0] < pair[1]);
    if !is_ordered || percentiles.iter().any(|percentile| !(0.0..=100.0).contains(percentile)) {
        return Err(Error::invalid_params("percentiles are 0 to 100, and ascend"));
    }
    Ok(())
}

/// The lists of the answer.
#[derive(Default)]
struct FeeHistory {
    base_fees: Vec<U256>,
    gas_used_ratios: Vec<f64>,
    blob_fees: Vec<U256>,
    blob_gas_used_ratios: Vec<f64>,
    rewards: Vec<Vec<U256>>,
}

impl FeeHistory {
    fn add(&mut self, api: &Api, block: &AnyBlock, percentiles: &[f64]) -> Result<(), Error> {
        let header = &block.contents().block.header;
        self.base_fees.push(U256::from(header.base_fee_per_gas.unwrap_or_default()));
        self.gas_used_ratios.push(header.gas_used as f64 / header.gas_limit as f64);
        self.blob_fees.push(U256::from(blob_fees(api, header).map_or(0, |(fee, _)| fee)));
        let blob_params = api.engine.chain().blob_params(header.timestamp);
        let most = blob_params.map_or(0, |params| params.max_blob_gas_per_block());
        let ratio = match (header.blob_gas_used, most) {
            (Some(used), 1..) => used as f64 / most as f64,
            _ => 0.0,
        };
        self.blob_gas_used_ratios.push(ratio);
        if !percentiles.is_empty() {
            if block.record().is_some_and(|record| !record.has_body()) {
                let number = header.number;
                let detail = format!("block {number} is not kept, so its rewards are not known");
                return Err(Error::new(Code::PrunedHistory, detail));
            }
            self.rewards.push(rewards(block.contents(), percentiles));
        }
        Ok(())
    }

    /// The fees of the block after the last.
    fn end(&mut self, api: &Api, last: &Header) {
        self.base_fees.push(U256::from(base_fee_after(api, last)));
        self.blob_fees.push(U256::from(blob_fees(api, last).map_or(0, |(_, next)| next)));
    }

    fn shown(self, oldest: u64, has_rewards: bool) -> serde_json::Value {
        let mut shown = json!({
            "oldestBlock": U64::from(oldest),
            "baseFeePerGas": self.base_fees,
            "gasUsedRatio": self.gas_used_ratios,
            "baseFeePerBlobGas": self.blob_fees,
            "blobGasUsedRatio": self.blob_gas_used_ratios,
        });
        if has_rewards {
            shown["reward"] = json!(self.rewards);
        }
        shown
    }
}

/// The base fee of the block after this one; zero before London.
fn base_fee_after(api: &Api, header: &Header) -> u64 {
    let next = header.next_block_base_fee(BaseFeeParams::ethereum());
    let is_london = api.engine.chain().is_london_active_at_block(header.number + 1);
    next.unwrap_or(if is_london { INITIAL_BASE_FEE } else { 0 })
}

/// The price of blob gas in a block, and in the next one by the same parameters; `None` before
/// Cancun.
fn blob_fees(api: &Api, header: &Header) -> Option<(u128, u128)> {
    let params = api.engine.chain().blob_params(header.timestamp)?;
    Some((header.blob_fee(params)?, header.next_block_blob_fee(params)?))
}

/// The tips at these percentiles of a block's gas, by ascending tip.
fn rewards(contents: Contents<'_>, percentiles: &[f64]) -> Vec<U256> {
    let Contents { block, receipts, .. } = contents;
    let base_fee = block.header.base_fee_per_gas.unwrap_or_default();
    let mut before = 0;
    let mut paid = Vec::new();
    for (transaction, receipt) in block.body.transactions.iter().zip(receipts) {
        let tip = transaction.effective_tip_per_gas(base_fee).unwrap_or_default();
        paid.push((tip, receipt.cumulative_gas_used() - before));
        before = receipt.cumulative_gas_used();
    }
    paid.sort_by_key(|(tip, _)| *tip);
    let reward = |percentile: &f64| {
        let threshold = (block.header.gas_used as f64 * percentile / 100.0) as u64;
        let mut sum = 0;
        let reached = paid.iter().find(|(_, gas)| {
            sum += gas;
            sum >= threshold
        });
        U256::from(reached.or(paid.last()).map_or(0, |(tip, _)| *tip))
    };
    percentiles.iter().map(reward).collect()
}
