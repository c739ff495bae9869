//! The published formats: `blockchain_test` and `blockchain_test_engine` of execution-spec-tests.

use alloy_consensus::Header;
use alloy_eip7928::AccountChanges;
use alloy_eips::eip7840::BlobParams;
use alloy_genesis::{ChainConfig, GenesisAccount};
use alloy_primitives::{Address, B64, B256, Bloom, Bytes, U256};
use engine::Genesis;
use execution::ChainSpec;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use witness::Witness;

/// One test: a chain, and what is to be said of its blocks.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Test {
    pub(crate) network: String,
    genesis_block_header: FixtureHeader,
    pre: BTreeMap<Address, FixtureAccount>,
    pub(crate) lastblockhash: B256,
    #[serde(default)]
    config: FixtureConfig,
    #[serde(default)]
    pub(crate) blocks: Vec<FixtureBlock>,
    #[serde(default)]
    pub(crate) engine_new_payloads: Vec<FixturePayload>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FixtureBlock {
    pub(crate) rlp: Bytes,
    expect_exception: Option<String>,
    /// There for valid blocks only.
    block_header: Option<IgnoredAny>,
    pub(crate) execution_witness: Option<Witness>,
    stateless_output_bytes: Option<Bytes>,
    pub(crate) block_access_list: Option<Vec<AccountChanges>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FixturePayload {
    pub(crate) params: Box<RawValue>,
    pub(crate) new_payload_version: String,
    pub(crate) forkchoice_updated_version: String,
    pub(crate) validation_error: Option<String>,
    pub(crate) error_code: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct FixtureConfig {
    chainid: Option<U256>,
    #[serde(default)]
    blob_schedule: BTreeMap<String, FixtureBlobs>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FixtureBlobs {
    target: U256,
    max: U256,
    base_fee_update_fraction: U256,
}

#[derive(Deserialize)]
struct FixtureAccount {
    nonce: U256,
    balance: U256,
    code: Bytes,
    storage: BTreeMap<U256, U256>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FixtureHeader {
    parent_hash: B256,
    uncle_hash: B256,
    coinbase: Address,
    state_root: B256,
    transactions_trie: B256,
    receipt_trie: B256,
    bloom: Bloom,
    difficulty: U256,
    number: U256,
    gas_limit: U256,
    gas_used: U256,
    timestamp: U256,
    extra_data: Bytes,
    mix_hash: B256,
    nonce: B64,
    base_fee_per_gas: Option<U256>,
    withdrawals_root: Option<B256>,
    blob_gas_used: Option<U256>,
    excess_blob_gas: Option<U256>,
    parent_beacon_block_root: Option<B256>,
    requests_hash: Option<B256>,
    block_access_list_hash: Option<B256>,
    slot_number: Option<U256>,
    hash: B256,
}

/// The description of an invalid block in old tests.
pub(crate) const UNNAMED: &str = "an exception without a name";

impl FixtureBlock {
    /// The fault of the block, `None` if it is valid.
    pub(crate) fn exception(&self) -> Option<String> {
        match (&self.expect_exception, &self.block_header) {
            (Some(exception), _) => Some(exception.clone()),
            (None, Some(_)) => None,
            (None, None) => Some(UNNAMED.to_owned()),
        }
    }

    /// Set if a verifier must accept the published witness: the byte after the 32 of the root.
    pub(crate) fn is_witness_accepted(&self) -> bool {
        self.stateless_output_bytes.as_ref().is_some_and(|output| output.get(32) == Some(&1))
    }
}

impl Test {
    /// The genesis, whose header must hash to what the test says.
    pub(crate) fn genesis(&self) -> Result<Genesis, String> {
        let header = self.genesis_block_header.header();
        let (got, expected) = (header.hash_slow(), self.genesis_block_header.hash);
        if got != expected {
            return Err(format!("genesis header hashes to {got}, not {expected}"));
        }
        let word = |(slot, value): (&U256, &U256)| (B256::from(*slot), B256::from(*value));
        let account = |account: &FixtureAccount| GenesisAccount {
            nonce: Some(account.nonce.to()),
            balance: account.balance,
            code: Some(account.code.clone()),
            storage: Some(account.storage.iter().map(word).collect()),
            ..GenesisAccount::default()
        };
        let alloc = self.pre.iter().map(|(address, a)| (*address, account(a)));
        Ok(Genesis { header, alloc: alloc.collect() })
    }

    /// The rules of the network.
    pub(crate) fn chain(&self) -> ChainSpec {
        let (first, second) = match self.network.split_once("To") {
            None => (self.network.as_str(), None),
            Some((first, rest)) => (first, Some(rest.split_once("At").expect("a condition"))),
        };
        let mut config = ChainConfig {
            chain_id: self.config.chainid.map_or(1, |id| id.to()),
            ..ChainConfig::default()
        };
        schedule(&mut config, first, 0);
        match second {
            None => {}
            Some((fork, "Time15k")) => schedule(&mut config, fork, 15_000),
            Some(("Dao", "5")) => {
                (config.dao_fork_block, config.dao_fork_support) = (Some(5), true);
            }
            Some((fork, "5")) => schedule(&mut config, fork, 5),
            Some(("Paris", "DiffC0000")) => {
                config.terminal_total_difficulty = Some(U256::from(0xc0000));
            }
            Some((_, condition)) => panic!("a fork at {condition}"),
        }
        for (name, blobs) in &self.config.blob_schedule {
            config.blob_schedule.insert(
                name.to_lowercase(),
                BlobParams {
                    target_blob_count: blobs.target.to(),
                    max_blob_count: blobs.max.to(),
                    update_fraction: blobs.base_fee_update_fraction.to(),
                    ..BlobParams::cancun()
                },
            );
        }
        if config.constantinople_block.is_some() {
            // Without a block it is at that of Constantinople.
            config.petersburg_block.get_or_insert(u64::MAX);
        }
        ChainSpec::from_config(&config).expect("the networks are well ordered")
    }
}

/// Forks by number, in order. Those of no test but under a later one are left out.
const NUMBERED: [&str; 12] = [
    "Frontier",
    "Homestead",
    "EIP150",
    "EIP158",
    "Byzantium",
    "Constantinople",
    "ConstantinopleFix",
    "Istanbul",
    "MuirGlacier",
    "Berlin",
    "London",
    "ArrowGlacier",
];

const TIMED: [&str; 7] = ["Shanghai", "Cancun", "Prague", "Osaka", "BPO1", "BPO2", "Amsterdam"];

/// Schedules `fork` and all before it that are not yet scheduled.
fn schedule(config: &mut ChainConfig, fork: &str, at: u64) {
    let timed = TIMED.iter().position(|name| *name == fork).map(|last| last + 1);
    let timed = timed.or(["Paris", "Merge"].contains(&fork).then_some(0));
    let numbered = NUMBERED.iter().position(|name| *name == fork);
    let (numbered, number) = match timed {
        Some(_) => (NUMBERED.len(), 0),
        None => (numbered.expect("a fork") + 1, at),
    };
    let slots: [&mut [&mut Option<u64>]; 12] = [
        &mut [],
        &mut [&mut config.homestead_block],
        &mut [&mut config.eip150_block],
        &mut [&mut config.eip155_block, &mut config.eip158_block],
        &mut [&mut config.byzantium_block],
        &mut [&mut config.constantinople_block],
        &mut [&mut config.petersburg_block],
        &mut [&mut config.istanbul_block],
        &mut [&mut config.muir_glacier_block],
        &mut [&mut config.berlin_block],
        &mut [&mut config.london_block],
        &mut [&mut config.arrow_glacier_block],
    ];
    for slot in slots.into_iter().take(numbered).flatten() {
        slot.get_or_insert(number);
    }
    let Some(timed) = timed else { return };
    for (name, params) in [("bpo1", BlobParams::bpo1()), ("bpo2", BlobParams::bpo2())] {
        config.blob_schedule.entry(name.into()).or_insert(params);
    }
    config.terminal_total_difficulty.get_or_insert(U256::ZERO);
    let slots = [
        &mut config.shanghai_time,
        &mut config.cancun_time,
        &mut config.prague_time,
        &mut config.osaka_time,
        &mut config.bpo1_time,
        &mut config.bpo2_time,
        &mut config.amsterdam_time,
    ];
    for slot in slots.into_iter().take(timed) {
        slot.get_or_insert(at);
    }
}

impl FixtureHeader {
    fn header(&self) -> Header {
        Header {
            parent_hash: self.parent_hash,
            ommers_hash: self.uncle_hash,
            beneficiary: self.coinbase,
            state_root: self.state_root,
            transactions_root: self.transactions_trie,
            receipts_root: self.receipt_trie,
            logs_bloom: self.bloom,
            difficulty: self.difficulty,
            number: self.number.to(),
            gas_limit: self.gas_limit.to(),
            gas_used: self.gas_used.to(),
            timestamp: self.timestamp.to(),
            extra_data: self.extra_data.clone(),
            mix_hash: self.mix_hash,
            nonce: self.nonce,
            base_fee_per_gas: self.base_fee_per_gas.map(|v| v.to()),
            withdrawals_root: self.withdrawals_root,
            blob_gas_used: self.blob_gas_used.map(|v| v.to()),
            excess_blob_gas: self.excess_blob_gas.map(|v| v.to()),
            parent_beacon_block_root: self.parent_beacon_block_root,
            requests_hash: self.requests_hash,
            block_access_list_hash: self.block_access_list_hash,
            slot_number: self.slot_number.map(|v| v.to()),
        }
    }
}
