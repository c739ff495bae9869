//! The sizes of a generated chain, its genesis and its addresses.

use std::path::{Path, PathBuf};

use alloy_eips::eip2935::{HISTORY_STORAGE_ADDRESS, HISTORY_STORAGE_CODE};
use alloy_eips::eip4788::{BEACON_ROOTS_ADDRESS, BEACON_ROOTS_CODE};
use alloy_eips::eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS;
use alloy_eips::eip7002::{
    WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS, WITHDRAWAL_REQUEST_PREDEPLOY_CODE,
};
use alloy_eips::eip7251::{
    CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS, CONSOLIDATION_REQUEST_PREDEPLOY_CODE,
};
use alloy_eips::eip8282::{
    BUILDER_DEPOSIT_CONTRACT_ADDRESS, BUILDER_DEPOSIT_CONTRACT_CODE, BUILDER_EXIT_CONTRACT_ADDRESS,
    BUILDER_EXIT_CONTRACT_CODE,
};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use clap::ValueEnum;
use k256::ecdsa::SigningKey;
use serde::Serialize;
use serde_json::{Value, json};

use crate::chain::contracts;
use crate::random::Zipf;

/// They change when the same sizes begin to give another state, or other blocks on it.
const STATE_GENERATION: u32 = 1;
const GENERATION: u32 = 4;

pub(crate) const CHAIN_ID: u64 = 764_774;
pub(crate) const SECONDS_A_SLOT: u64 = 12;
const GENESIS_TIME: u64 = 1_700_000_000;

/// The funder: it signs what makes the state.
pub(crate) const FUNDER: usize = 0;
/// The contract that makes accounts, and the largest one.
pub(crate) const PAYER: usize = 0;

/// Contracts with large codes, each its own; the rest share [`SHARED_CODES`], as clones do.
const OWN_CODES: usize = 500;
const SHARED_CODES: usize = 20;
/// Bytes of the smallest and the largest code: the limit of EIP-170.
const CODE_BYTES: [u64; 2] = [1_200, 24_576];

/// The purpose of the blocks of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ChainKind {
    /// They do what those of a public network do.
    #[default]
    Mainnet,
    /// They do what hurts: storage and accounts that only grow, many deletions, reads of what is
    /// not there, empty blocks in between, deep reorganizations.
    Hostile,
    /// Each has a witness of a given size.
    WitnessSize,
}

impl ChainKind {
    /// Blocks of the branches that reorganizations leave, one after the other, over and over. A
    /// branch is not longer than what usually lies between the head and the safe block.
    const fn branches(self) -> &'static [u64] {
        match self {
            Self::Hostile => &[32, 16, 8, 4, 2, 1],
            _ => &[1, 2, 3],
        }
    }
}

/// The rules of the measured blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Fork {
    /// Osaka.
    #[default]
    Osaka,
    /// Amsterdam, with block access lists. Transactions are those of Osaka with more gas, since
    /// what makes state costs more (EIP-8037).
    Amsterdam,
}

impl Fork {
    /// The gas limit of a transaction that has enough with `gas` in Osaka.
    pub(crate) const fn gas_limit(self, gas: u64) -> u64 {
        match self {
            Self::Osaka => gas,
            // A byte of code costs 1,530 instead of 200, a new account 184,000 more.
            Self::Amsterdam => gas * 10 + 250_000,
        }
    }
}

/// A value of an option, as the command line calls it.
pub(crate) fn option_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().into()).unwrap_or_default()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Sizes of a chain; the chain follows from them alone.
#[derive(Clone, Debug, Serialize)]
pub struct World {
    /// The name of the sizes.
    pub name: String,
    /// The purpose of the measured blocks. The first chains had no kind.
    #[serde(skip_serializing_if = "is_default")]
    pub kind: ChainKind,
    /// The rules of the measured blocks. The first chains had one.
    #[serde(skip_serializing_if = "is_default")]
    pub fork: Fork,
    /// The seed of all random choices.
    pub seed: u64,
    /// Accounts without code that the state begins with.
    pub accounts: u64,
    /// Storage slots that the state begins with, of all contracts together.
    pub slots: u64,
    /// Contracts: the k-th has slots in proportion to 1/k.
    pub contracts: usize,
    /// Accounts that send transactions.
    pub senders: usize,
    /// Gas of the blocks that make the state.
    pub state_block_gas: u64,
    /// Empty blocks after those: geth keeps the changes of 128 blocks in memory, and each further
    /// block moves the oldest, here huge, towards the disk.
    pub settling_blocks: usize,
    /// Gas of a measured block: drawn evenly from the first to the second.
    pub block_gas: [u64; 2],
    /// Blocks without transactions.
    pub empty_blocks: u64,
    /// Blocks measured on warm caches, those before the measurement included.
    pub warm_blocks: u64,
    /// Branches that a reorganization leaves behind: of 1 to 3 blocks, of hostile chains to 32,
    /// unless `branches` has other lengths.
    pub reorgs: u64,
    /// Blocks of these branches, one after the other, over and over. They have transactions of
    /// their own then. The first chains had no such lengths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<u64>,
    /// Blocks measured after a restart.
    pub cold_blocks: u64,
}

impl World {
    /// The sizes called `name`: `full`, `mid` or `mini`.
    pub fn preset(name: &str) -> Option<Self> {
        let full = Self {
            name: name.into(),
            kind: ChainKind::Mainnet,
            fork: Fork::Osaka,
            seed: 1,
            accounts: 5_000_000,
            slots: 20_000_000,
            contracts: 5_000,
            senders: 20_000,
            // geth keeps the changes of 128 blocks in memory, some 100 MB for each Ggas.
            state_block_gas: 300_000_000,
            settling_blocks: 160,
            block_gas: [10_000_000, 30_000_000],
            warm_blocks: 630,
            empty_blocks: 300,
            cold_blocks: 300,
            reorgs: 60,
            branches: Vec::new(),
        };
        match name {
            "full" => Some(full),
            "mid" => Some(Self {
                accounts: 500_000,
                slots: 2_000_000,
                state_block_gas: 1_500_000_000,
                contracts: 2_000,
                senders: 10_000,
                warm_blocks: 130,
                empty_blocks: 100,
                cold_blocks: 100,
                reorgs: 20,
                ..full
            }),
            "mini" => Some(Self {
                accounts: 3_000,
                slots: 12_000,
                contracts: 60,
                senders: 50,
                state_block_gas: 200_000_000,
                settling_blocks: 4,
                block_gas: [1_000_000, 3_000_000],
                warm_blocks: 12,
                empty_blocks: 3,
                cold_blocks: 3,
                reorgs: 2,
                ..full
            }),
            _ => None,
        }
    }

    /// Blocks of each branch that is left, in their order.
    pub(crate) fn branch_lengths(&self) -> impl Iterator<Item = u64> {
        let lengths = if self.branches.is_empty() { self.kind.branches() } else { &self.branches };
        lengths.iter().cycle().copied().take(self.reorgs as usize)
    }

    /// The folder of this chain's state below `folder`. Chains that differ in their measured
    /// blocks alone share it.
    pub(crate) fn state_folder(&self, folder: &Path) -> PathBuf {
        let Self { accounts, slots, contracts, senders, .. } = self;
        let (block_gas, settling) = (self.state_block_gas, self.settling_blocks);
        let seed = (STATE_GENERATION, self.seed);
        let sizes = (seed, accounts, slots, contracts, senders, block_gas, settling);
        let name = match self.fork {
            Fork::Osaka => self.name.clone(),
            fork => format!("{}-{}", self.name, option_name(&fork)),
        };
        folder.join(format!("{name}-{}", short_hash(&sizes)))
    }

    /// The folder of this chain's measured blocks, below that of its state.
    pub(crate) fn folder(&self, folder: &Path) -> PathBuf {
        self.state_folder(folder).join(short_hash(&(GENERATION, self)))
    }

    /// The slots of each contract when the state is made.
    pub(crate) fn slots_by_contract(&self) -> Vec<u64> {
        Zipf::new(self.contracts, 1.0).split(self.slots)
    }

    /// Far above what blocks use, so that the base fee stays at its lowest.
    pub(crate) const fn gas_limit(&self) -> u64 {
        self.state_block_gas * 4
    }

    pub(crate) fn time(number: u64) -> u64 {
        GENESIS_TIME + number * SECONDS_A_SLOT
    }

    /// A geth-style genesis: Prague, which bounds no transaction's gas, for the `state_blocks`
    /// that make the state; from then on the chain's fork.
    pub(crate) fn genesis(&self, state_blocks: u64) -> Value {
        let mut alloc = Alloc::new();
        for index in 0..self.contracts {
            let wealth = if index == PAYER { 30 } else { 0 };
            let storage = [0u64, 1, 2, 8, 9, 10]
                .map(|slot| (word(slot).to_string(), json!(word(index as u64 + slot + 1))));
            let account = json!({
                "balance": U256::from(10).pow(U256::from(wealth)),
                "nonce": "0x1",
                "code": self.code(index),
                "storage": serde_json::Map::from_iter(storage),
            });
            alloc.insert(contract(index).to_string(), account);
        }
        for index in 0..self.senders {
            let wealth = if index == FUNDER { 30 } else { 24 };
            let account = json!({"balance": U256::from(10).pow(U256::from(wealth))});
            alloc.insert(Address::from_private_key(&sender(index)).to_string(), account);
        }
        genesis(alloc, self.gas_limit(), state_blocks, self.fork)
    }

    fn code(&self, index: usize) -> Bytes {
        let (seed, skew) = match index {
            own if own < OWN_CODES => (own, 2),
            other => (OWN_CODES + other % SHARED_CODES, 6),
        };
        // Small codes are more frequent than large ones: a power of an even draw.
        let mut random = crate::random::Random::new(self.seed ^ (seed as u64) << 32);
        let [low, high] = CODE_BYTES;
        let len = low + ((high - low) as f64 * random.unit().powi(skew)) as u64;
        contracts::code(seed as u64, len as usize)
    }
}

/// The accounts of a genesis.
pub(crate) type Alloc = serde_json::Map<String, Value>;

/// A genesis of these accounts and the system contracts: Prague for the `state_blocks`, from then
/// on `fork`.
pub(crate) fn genesis(mut alloc: Alloc, gas_limit: u64, state_blocks: u64, fork: Fork) -> Value {
    let mut system = vec![
        (BEACON_ROOTS_ADDRESS, &BEACON_ROOTS_CODE),
        (HISTORY_STORAGE_ADDRESS, &HISTORY_STORAGE_CODE),
        (WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS, &WITHDRAWAL_REQUEST_PREDEPLOY_CODE),
        (CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS, &CONSOLIDATION_REQUEST_PREDEPLOY_CODE),
    ];
    if fork == Fork::Amsterdam {
        system.extend([
            (BUILDER_DEPOSIT_CONTRACT_ADDRESS, &BUILDER_DEPOSIT_CONTRACT_CODE),
            (BUILDER_EXIT_CONTRACT_ADDRESS, &BUILDER_EXIT_CONTRACT_CODE),
        ]);
    }
    for (address, code) in system {
        let account = json!({"balance": "0x0", "nonce": "0x1", "code": code});
        alloc.insert(address.to_string(), account);
    }
    json!({
        "config": config(World::time(state_blocks + 1), fork),
        "nonce": "0x0",
        "timestamp": format!("{GENESIS_TIME:#x}"),
        "extraData": "0x",
        "gasLimit": format!("{gas_limit:#x}"),
        "difficulty": "0x0",
        "mixHash": B256::ZERO,
        "coinbase": Address::ZERO,
        "baseFeePerGas": "0x7",
        "alloc": alloc,
    })
}

/// Tells sizes from others, as a part of file names.
pub(crate) fn short_hash(sizes: &impl Serialize) -> String {
    let sizes = serde_json::to_vec(sizes).expect("sizes are JSON");
    keccak256(sizes).to_string()[2..10].to_owned()
}

fn config(osaka_time: u64, fork: Fork) -> Value {
    let mut config = json!({
        "chainId": CHAIN_ID,
        "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0,
        "byzantiumBlock": 0, "constantinopleBlock": 0, "petersburgBlock": 0, "istanbulBlock": 0,
        "berlinBlock": 0, "londonBlock": 0, "mergeNetsplitBlock": 0,
        "terminalTotalDifficulty": 0, "terminalTotalDifficultyPassed": true,
        "shanghaiTime": 0, "cancunTime": 0, "pragueTime": 0, "osakaTime": osaka_time,
        "depositContractAddress": MAINNET_DEPOSIT_CONTRACT_ADDRESS,
        "blobSchedule": {
            "cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3_338_477},
            "prague": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
            "osaka": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5_007_716},
        },
    });
    if fork == Fork::Amsterdam {
        config["amsterdamTime"] = json!(osaka_time);
        config["blobSchedule"]["amsterdam"] = config["blobSchedule"]["osaka"].clone();
    }
    config
}

/// The key of a sender; the first one is the [`FUNDER`]'s.
pub(crate) fn sender(index: usize) -> SigningKey {
    let secret = keccak256(format!("deponent bench sender {index}"));
    SigningKey::from_slice(secret.as_slice()).expect("a hash is a secret key, but for 1 in 2^128")
}

/// Contracts lie anywhere in the state's trie, as those of a public network do.
pub(crate) fn contract(index: usize) -> Address {
    Address::from_word(keccak256(format!("deponent bench contract {index}")))
}

/// The accounts that the [`PAYER`] makes: the low bytes of their index's hash.
pub(crate) fn account(index: u64) -> Address {
    Address::from_word(keccak256(word(index)))
}

/// `from..end` cut into pieces.
pub(crate) fn pieces(from: u64, end: u64, len: u64) -> impl Iterator<Item = [u64; 2]> {
    (from..end).step_by(len as usize).map(move |from| [from, (from + len).min(end)])
}

fn word(number: u64) -> B256 {
    U256::from(number).into()
}
