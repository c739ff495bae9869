//! The block of another chain with which a chain for tests begins.

mod cache;
mod endpoint;
mod rules;
mod upstream;

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_genesis::ChainConfig;
use alloy_primitives::{Address, Bytes, U64, U256};
use anyhow::{Context as _, ensure};
use engine::{Amendment, Remote, RemoteBlock};
use serde_json::json;

use cache::BlockCache;
use endpoint::ForkEndpoint;
pub(crate) use rules::GivenRules;
use rules::{ForkRules, rules};
use upstream::{EndpointState, header_of};

/// A block of another chain, the endpoint that has the state after it, and the rules of the blocks
/// that follow it here.
#[derive(Debug)]
pub struct ForkPoint {
    pub(crate) endpoint: Arc<ForkEndpoint>,
    /// The identifier of the endpoint's chain.
    pub(crate) chain_id: u64,
    pub(crate) header: Header,
    pub(crate) rules: ForkRules,
    /// The part of them that the caller has chosen.
    given: GivenRules,
    /// Whether what is fetched is kept on disk.
    is_cached: bool,
}

impl ForkPoint {
    /// Looks for a block, the head where none is named, at the endpoint with this URL. A number
    /// below 0 counts back from the head.
    pub(crate) fn find(
        url: &str,
        number: Option<i64>,
        given: &GivenRules,
        is_cached: bool,
    ) -> anyhow::Result<Self> {
        let endpoint = Arc::new(ForkEndpoint::parse(url)?);
        let failed = anyhow::Error::msg;
        let chain_id: U64 = endpoint.call("eth_chainId", &json!([])).map_err(failed)?;
        let head: U64 = endpoint.call("eth_blockNumber", &json!([])).map_err(failed)?;
        let head: u64 = head.to();
        let number = match number {
            None => head,
            Some(number) if number < 0 => {
                let behind = number.unsigned_abs();
                head.checked_sub(behind).with_context(|| {
                    format!("{endpoint} has no block {behind} before its head, block {head}")
                })?
            }
            Some(number) => number.unsigned_abs(),
        };
        let header = header_of(&endpoint, "eth_getBlockByNumber", json!(U64::from(number)));
        let header = header.map_err(failed)?.with_context(|| {
            format!("{endpoint} has no block {number}: its head is block {head}")
        })?;
        ensure!(header.number == number, "{endpoint} gave block {} for {number}", header.number);
        ensure!(
            header.difficulty.is_zero(),
            "block {number} of {endpoint} is before the merge: fork from one after it"
        );
        let rules = rules(&endpoint, chain_id.to(), &header, given)?;
        let (chain_id, given) = (chain_id.to(), given.clone());
        Ok(Self { endpoint, chain_id, header, rules, given, is_cached })
    }

    /// Another block for a chain that began with this one. Without a URL it is of this endpoint.
    pub(crate) fn next(&self, url: Option<&str>, number: Option<u64>) -> anyhow::Result<Self> {
        let url = url.unwrap_or(self.endpoint.url());
        let number = number.map(i64::try_from).transpose().context("there is no such block")?;
        Self::find(url, number, &self.given, self.is_cached)
    }

    /// The chain's configuration.
    pub(crate) const fn config(&self) -> &ChainConfig {
        &self.rules.config
    }

    /// Adds the state after the block to those that an engine can begin with.
    pub(crate) fn add_to(&self, remote: &Remote) {
        let block = RemoteBlock::of(&self.header);
        let opened = self.is_cached.then(|| BlockCache::open(self.chain_id, block.hash)).flatten();
        let (cache, known) = opened.unzip();
        let upstream = EndpointState { endpoint: self.endpoint.clone(), cache };
        remote.add(block, Arc::new(upstream), known.unwrap_or_default());
    }
}

/// The changes that give accounts a balance, and take their code, which on public networks is a
/// delegation to contracts of thieves.
pub(crate) fn endowments(
    accounts: impl IntoIterator<Item = Address>,
    balance: U256,
) -> Vec<(Address, Amendment)> {
    let changes = [Amendment::Balance(balance), Amendment::Code(Bytes::new())];
    let of = |address| changes.clone().map(|change| (address, change));
    accounts.into_iter().flat_map(of).collect()
}
