//! The block of another chain with which a chain for tests begins.

mod cache;
mod endpoint;
mod rules;
mod upstream;

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_genesis::ChainConfig;
use alloy_primitives::{Address, Bytes, U64, U256};
use anyhow::{Context as _, bail, ensure};
use engine::{Amendment, Remote, RemoteBlock};
use serde_json::{Value, json};

use cache::{BlockCache, KeptBlock};
use endpoint::ForkEndpoint;
pub(crate) use endpoint::within;
use rules::{ForkRules, rules};
pub(crate) use rules::{GivenRules, rules_told};
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
    /// Why the endpoint did not answer, where the block is one that was kept on disk.
    pub(crate) unanswered: Option<String>,
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
        let chain_id: U64 = match endpoint.call("eth_chainId", &json!([])) {
            Ok(chain_id) => chain_id,
            Err(reason) => return Self::kept(endpoint, number, given, is_cached, reason),
        };
        let chain_id = chain_id.to();
        let failed = anyhow::Error::msg;
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
        let mut config = None;
        let rules = rules(chain_id, &header, given, || {
            config = endpoint.call::<Value>("eth_config", &json!([])).ok();
            config.clone()
        })?;
        if is_cached {
            KeptBlock { chain_id, header: header.clone(), config }.keep(endpoint.url());
        }
        let given = given.clone();
        Ok(Self { endpoint, chain_id, header, rules, given, is_cached, unanswered: None })
    }

    /// A block with which a chain has begun before, while its endpoint does not answer.
    fn kept(
        endpoint: Arc<ForkEndpoint>,
        number: Option<i64>,
        given: &GivenRules,
        is_cached: bool,
        reason: String,
    ) -> anyhow::Result<Self> {
        // Others are counted from the endpoint's head.
        let number = number.filter(|_| is_cached).and_then(|number| u64::try_from(number).ok());
        let Some(block) = number.and_then(|number| KeptBlock::find(endpoint.url(), number)) else {
            match number {
                Some(number) => bail!("{reason}; block {number} of it has not been kept on disk"),
                None => bail!(reason),
            }
        };
        let KeptBlock { chain_id, header, config } = block;
        let rules = rules(chain_id, &header, given, || config)?;
        let (given, unanswered) = (given.clone(), Some(reason));
        Ok(Self { endpoint, chain_id, header, rules, given, is_cached, unanswered })
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
