//! The flags of the transaction pool. The names are those of geth.

use std::time::Duration;

use alloy_primitives::U256;
use alloy_primitives::utils::parse_ether;
use clap::Args;

use super::storage::with_default;
use crate::flags::values::{Threshold, count, parse_bytes, parse_duration, positive};
use crate::memory::DEFAULT_MEMORY;
use crate::pool_feed::SendBounds;
use crate::{NodeMemory, TxpoolOptions};

/// The transaction pool, and what is sent to it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Transaction pool")]
pub(super) struct TxpoolArgs {
    /// The least tip of a transaction, in wei of gas; of one without a tip, the price.
    #[arg(long = "txpool.pricelimit", value_name = "WEI", value_parser = count::<u128>,
          default_value_t = pool::Options::default().minimum_tip)]
    price_limit: u128,
    /// How much more a transaction pays that takes the place of another with its nonce, in percent
    /// of fee and tip.
    #[arg(long = "txpool.pricebump", value_name = "PERCENT", value_parser = count::<u64>,
          default_value_t = pool::Options::default().price_bump_percent)]
    price_bump: u64,
    /// Transactions of a sender that could run now and stay, while other senders have more, when
    /// the pool is full.
    #[arg(long = "txpool.accountslots", value_name = "COUNT", value_parser = positive,
          default_value_t = pool::Options::default().account_slots)]
    account_slots: usize,
    /// Transactions of a sender that cannot run yet.
    #[arg(long = "txpool.accountqueue", value_name = "COUNT", value_parser = count::<usize>,
          default_value_t = pool::Options::default().account_queue)]
    account_queue: usize,
    /// Transactions of all senders.
    #[arg(long = "txpool.globalslots", value_name = "COUNT", value_parser = positive,
          default_value_t = pool::Options::default().transactions)]
    global_slots: usize,
    /// How long transactions that cannot run yet wait after the last one that their sender sent.
    #[arg(long = "txpool.lifetime", value_name = "DURATION", value_parser = parse_duration,
          default_value = "3h")]
    lifetime: Threshold,
    #[arg(long = "txpool.memory", value_name = "BYTES", value_parser = parse_bytes,
          help = with_default("Memory of all transactions in the pool", DEFAULT_MEMORY.txpool))]
    pub(super) memory_bytes: Option<u64>,
    #[arg(long = "blobpool.datacap", value_name = "BYTES", value_parser = parse_bytes,
          help = with_default("Memory of all blobs in the pool, and in blocks that are not \
                               finalized", DEFAULT_MEMORY.blobs))]
    pub(super) blob_bytes: Option<u64>,
    /// How much more a transaction with blobs pays that takes the place of another, in percent of
    /// its three fees.
    #[arg(long = "blobpool.pricebump", value_name = "PERCENT", value_parser = count::<u64>,
          default_value_t = pool::Options::default().blob_price_bump_percent)]
    blob_price_bump: u64,
    /// The most that the gas of a transaction sent with eth_sendRawTransaction may cost, in ether;
    /// 0 is no bound.
    #[arg(long = "rpc.txfeecap", value_name = "ETHER", value_parser = parse_fee_cap,
          default_value = "1")]
    fee_cap: U256,
    /// Take transactions that name no chain (EIP-155), and so could be sent again on others.
    #[arg(long = "rpc.allow-unprotected-txs")]
    allow_unprotected: bool,
}

fn parse_fee_cap(text: &str) -> Result<U256, String> {
    let wei = parse_ether(text).ok().filter(|_| !text.starts_with('-'));
    wei.ok_or_else(|| "expected a sum in ether, as 1 or 0.5; 0 is no bound".into())
}

impl TxpoolArgs {
    pub(super) fn options(&self, memory: NodeMemory) -> TxpoolOptions {
        TxpoolOptions {
            pool: pool::Options {
                minimum_tip: self.price_limit,
                price_bump_percent: self.price_bump,
                blob_price_bump_percent: self.blob_price_bump,
                account_slots: self.account_slots,
                account_queue: self.account_queue,
                transactions: self.global_slots,
                memory_bytes: usize::try_from(memory.txpool).unwrap_or(usize::MAX),
                sidecar_bytes: usize::try_from(memory.blobs).unwrap_or(usize::MAX),
                lifetime: self.lifetime.0.unwrap_or(Duration::MAX),
            },
            send: SendBounds {
                fee_cap: (!self.fee_cap.is_zero()).then_some(self.fee_cap),
                allows_unprotected: self.allow_unprotected,
            },
        }
    }
}
