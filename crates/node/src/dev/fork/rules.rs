//! The rules of a chain that begins with a block of another one.

use std::collections::BTreeMap;

use alloy_consensus::Header;
use alloy_eips::eip7840::BlobParams;
use alloy_genesis::ChainConfig;
use alloy_hardforks::EthereumHardfork;
use alloy_primitives::Address;
use anyhow::{Context as _, ensure};
use dev::DevGenesis;
use execution::ChainSpec;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::forks::{precompiles, system_contracts};

/// The rules by which blocks follow the one that a chain begins with.
#[derive(Debug, Clone)]
pub(crate) struct ForkRules {
    pub(crate) config: ChainConfig,
    pub(crate) fork: EthereumHardfork,
    /// Where the fork is from.
    pub(crate) source: &'static str,
}

/// The part of the rules that the caller chooses.
#[derive(Debug, Clone, Default)]
pub(crate) struct GivenRules {
    pub(crate) chain_id: Option<u64>,
    pub(crate) fork: Option<EthereumHardfork>,
    /// Later forks, with their times.
    pub(crate) later: Vec<(EthereumHardfork, u64)>,
}

/// The fork of a block, as far as a source says.
struct FoundFork {
    fork: EthereumHardfork,
    blobs: Option<BlobParams>,
    deposits: Option<Address>,
    source: &'static str,
}

impl FoundFork {
    fn new(fork: EthereumHardfork, source: &'static str) -> Self {
        Self { fork, blobs: None, deposits: None, source }
    }
}

/// The rules after the block with this header. `config` asks for the answer of `eth_config`.
pub(super) fn rules(
    chain_id: u64,
    header: &Header,
    given: &GivenRules,
    config: impl FnOnce() -> Option<Value>,
) -> anyhow::Result<ForkRules> {
    let form = form_of(header);
    let is_of_form = |found: &FoundFork| form_of_fork(found.fork) == form;
    let found = known(chain_id, header).filter(is_of_form);
    let found = found.or_else(|| told(&config()?, header).filter(is_of_form));
    let mut found = found.unwrap_or_else(|| {
        let fork = if form == EthereumHardfork::Prague { EthereumHardfork::Osaka } else { form };
        FoundFork::new(fork, "the newest with headers of its form; --hardfork names another")
    });
    if let Some(fork) = given.fork.filter(|fork| *fork != found.fork) {
        ensure!(
            form_of_fork(fork) >= form,
            "--hardfork {fork}: block {} has {form} or a later fork already",
            header.number
        );
        let deposits = found.deposits;
        found = FoundFork { deposits, ..FoundFork::new(fork, "--hardfork") };
    }
    let FoundFork { fork, blobs, deposits, source } = found;
    // A fork with headers of another form begins behind the block.
    let (begun, next) = match form_of_fork(fork) == form {
        true => (fork, None),
        false => (form, Some(header.timestamp + 1)),
    };
    let between = EthereumHardfork::VARIANTS.iter().filter(|it| **it > begun && **it <= fork);
    let later = next.iter().flat_map(|time| between.clone().map(|fork| (*fork, *time)));
    let later: Vec<_> = later.chain(given.later.iter().copied()).collect();
    let id = given.chain_id.unwrap_or(chain_id);
    let genesis = DevGenesis { chain_id: id, fork: begun, later, ..DevGenesis::default() };
    let mut config = genesis.config()?;
    config.deposit_contract_address = deposits.or(config.deposit_contract_address);
    if let Some(blobs) = blobs {
        config.blob_schedule.insert(fork.to_string().to_lowercase(), blobs);
    }
    Ok(ForkRules { config, fork, source })
}

/// By the schedule of a public network.
fn known(chain_id: u64, header: &Header) -> Option<FoundFork> {
    let chain = ChainSpec::from_chain_id(chain_id).ok()?;
    let fork = chain.fork_at(header.timestamp);
    // Forks that change blobs alone: that is in their schedule.
    let is_of_blobs = EthereumHardfork::bpo_variants().contains(&fork);
    Some(FoundFork {
        fork: if is_of_blobs { EthereumHardfork::Osaka } else { fork },
        blobs: chain.blob_params(header.timestamp),
        deposits: Some(chain.deposit_contract()),
        source: "the schedule of this public network",
    })
}

/// The current fork in the answer of `eth_config` (EIP-7910).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Current {
    activation_time: u64,
    blob_schedule: Option<Blobs>,
    precompiles: BTreeMap<String, Address>,
    system_contracts: BTreeMap<String, Address>,
}

impl Current {
    /// The names of its contracts that this fork does not have.
    fn unknown_contracts(&self, fork: EthereumHardfork) -> Vec<&str> {
        let known = precompiles(fork).into_iter().chain(system_contracts(fork, Address::ZERO));
        let known: Vec<_> = known.map(|(name, _)| name).collect();
        let told = self.precompiles.keys().chain(self.system_contracts.keys());
        told.map(String::as_str).filter(|name| !known.contains(name)).collect()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Blobs {
    base_fee_update_fraction: u128,
    max: u64,
    target: u64,
}

impl Blobs {
    const fn params(&self) -> BlobParams {
        BlobParams {
            target_blob_count: self.target,
            max_blob_count: self.max,
            update_fraction: self.base_fee_update_fraction,
            ..BlobParams::osaka()
        }
    }
}

#[derive(Deserialize)]
struct Config {
    current: Current,
    next: Option<IgnoredAny>,
}

/// By the endpoint's own words, where its fork is the block's.
fn told(config: &Value, header: &Header) -> Option<FoundFork> {
    use EthereumHardfork::{Amsterdam, Cancun, Osaka, Prague, Shanghai};
    let Config { current, .. } = Config::deserialize(config).ok()?;
    if current.activation_time > header.timestamp {
        return None;
    }
    let has = |name: &str| current.precompiles.contains_key(name);
    let fork = if current.system_contracts.contains_key("BUILDER_DEPOSIT_CONTRACT_ADDRESS") {
        Amsterdam
    } else if has("P256VERIFY") {
        Osaka
    } else if has("BLS12_G1ADD") {
        Prague
    } else if has("KZG_POINT_EVALUATION") {
        Cancun
    } else {
        Shanghai
    };
    let blobs = current.blob_schedule.map(|blobs| blobs.params());
    let deposits = current.system_contracts.get("DEPOSIT_CONTRACT_ADDRESS").copied();
    Some(FoundFork { fork, blobs, deposits, source: "the endpoint's eth_config" })
}

/// The rules of a chain from its first block on, by its client's answer of `eth_config`.
///
/// # Errors
/// If other rules held before, or will hold later: of these the answer does not say enough.
pub(crate) fn rules_told(
    chain_id: u64,
    config: &Value,
    first: &Header,
) -> anyhow::Result<ChainConfig> {
    use EthereumHardfork::{Osaka, Prague};
    let Config { current, next } = Config::deserialize(config).context("its eth_config")?;
    ensure!(
        current.activation_time <= first.timestamp && next.is_none(),
        "its eth_config has several forks, and not all of their rules"
    );
    let fork = match form_of(first) {
        Prague if current.precompiles.contains_key("P256VERIFY") => Osaka,
        form => form,
    };
    let unknown = current.unknown_contracts(fork);
    ensure!(
        unknown.is_empty(),
        "its eth_config has {}, which {fork} has not: it runs a later fork, whose rules are not \
         implemented (geth --dev begins with the newest; give it a genesis file that ends with \
         Osaka)",
        unknown.join(", ")
    );
    let genesis = DevGenesis { chain_id, fork, ..DevGenesis::default() };
    let mut config = genesis.config()?;
    config.extra_fields.remove("deponentDev");
    if let Some(blobs) = current.blob_schedule {
        config.blob_schedule.insert(fork.to_string().to_lowercase(), blobs.params());
    }
    let deposits = current.system_contracts.get("DEPOSIT_CONTRACT_ADDRESS");
    config.deposit_contract_address = deposits.copied().or(config.deposit_contract_address);
    Ok(config)
}

/// The first fork whose headers have the members of this one.
fn form_of(header: &Header) -> EthereumHardfork {
    use EthereumHardfork::{Amsterdam, Cancun, Paris, Prague, Shanghai};
    if header.block_access_list_hash.is_some() {
        Amsterdam
    } else if header.requests_hash.is_some() {
        Prague
    } else if header.parent_beacon_block_root.is_some() {
        Cancun
    } else if header.withdrawals_root.is_some() {
        Shanghai
    } else {
        Paris
    }
}

/// The first fork whose headers have the members of this one's.
fn form_of_fork(fork: EthereumHardfork) -> EthereumHardfork {
    use EthereumHardfork::{Amsterdam, Cancun, Paris, Prague, Shanghai};
    let forms = [Amsterdam, Prague, Cancun, Shanghai];
    forms.into_iter().find(|form| fork >= *form).unwrap_or(Paris)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(form: EthereumHardfork, timestamp: u64) -> Header {
        use EthereumHardfork::{Cancun, Prague, Shanghai};
        Header {
            number: 5,
            timestamp,
            withdrawals_root: (form >= Shanghai).then(Default::default),
            parent_beacon_block_root: (form >= Cancun).then(Default::default),
            requests_hash: (form >= Prague).then(Default::default),
            ..Header::default()
        }
    }

    #[test]
    fn the_fork_is_that_of_the_block() {
        use EthereumHardfork::{Cancun, Osaka, Paris, Prague, Shanghai};
        let chosen = |chain_id, form, time, fork| {
            let given = GivenRules { fork, ..GivenRules::default() };
            rules(chain_id, &header(form, time), &given, || None).expect("rules")
        };
        // Mainnet, with its own blobs from the second fork of blobs on.
        let mainnet = chosen(1, Prague, 1_767_747_671, None);
        assert_eq!(mainnet.fork, Osaka);
        let spec = ChainSpec::from_config(&mainnet.config).expect("in order");
        assert_eq!(spec.blob_params(0).expect("blobs").max_blob_count, 21);
        assert!(spec.is_dev());
        assert_eq!(chosen(1, Cancun, 1_710_338_135, None).fork, Cancun);
        // One with mainnet's number that is not mainnet, and one of no network.
        assert_eq!(chosen(1, Shanghai, 1_767_747_671, None).fork, Shanghai);
        assert_eq!(chosen(31337, Prague, 7, None).fork, Osaka);
        assert_eq!(chosen(31337, Prague, 7, Some(Prague)).fork, Prague);
        // A later fork begins with the next block.
        let later = chosen(31337, Paris, 7, Some(Prague));
        let spec = ChainSpec::from_config(&later.config).expect("in order");
        assert_eq!((spec.fork_at(7), spec.fork_at(8)), (Paris, Prague));
        let given = GivenRules { fork: Some(Cancun), ..GivenRules::default() };
        let error = rules(31337, &header(Prague, 7), &given, || None).expect_err("too early");
        assert!(error.to_string().contains("block 5 has Prague"), "{error}");
    }
}
