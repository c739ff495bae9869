use alloy_consensus::Header;
use alloy_eips::eip7840::{BLOB_BASE_COST, BlobParams};
use alloy_eips::{eip6110, eip7594};
use alloy_evm::eth::spec::EthExecutorSpec;
use alloy_genesis::ChainConfig;
use alloy_hardforks::{
    EthereumChainHardforks, EthereumHardfork, EthereumHardforks, ForkCondition, ForkHash,
};
use alloy_primitives::{Address, B256, U256, address};

/// The rules of one chain: which fork is active when, and its blob parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainSpec {
    chain_id: u64,
    merge: Merge,
    /// Every fork that the chain schedules; the others are never active.
    forks: Vec<(EthereumHardfork, ForkCondition)>,
    /// Blob parameters by activation time, ascending.
    blobs: Vec<(u64, BlobParams)>,
    deposit_contract: Address,
    is_dev: bool,
}

/// Where proof of work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Merge {
    Never,
    /// The first block without proof of work.
    At(u64),
    /// The terminal total difficulty: proof of work ends with the block that reaches this sum of
    /// all difficulties. If the configuration says that it is `passed`, blocks without proof of
    /// work are not checked for it.
    Difficulty {
        terminal: U256,
        passed: bool,
    },
}

/// Why a chain configuration cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainSpecError {
    /// There is no built-in configuration of this chain.
    #[error("chain {0} is not built in; give its genesis.json")]
    UnknownChain(u64),
    /// A fork whose rules are not implemented.
    #[error(
        "{0} is scheduled, but its rules are not implemented: a chain that has reached it cannot \
         be run; for one that has not, remove its time"
    )]
    UnsupportedFork(EthereumHardfork),
    /// Two parts of a fork that are only implemented together, but not scheduled so.
    #[error("{0} and {1} differ; only both at once are implemented")]
    ForksApart(&'static str, &'static str),
    /// A fork is scheduled before one that it builds on.
    #[error("{later} is scheduled at {later_at}, before {earlier} at {earlier_at}")]
    ForkOrder {
        /// The fork that must come first.
        earlier: EthereumHardfork,
        /// Its activation: a block number, or from Shanghai on a time in seconds.
        earlier_at: u64,
        /// The fork that builds on it.
        later: EthereumHardfork,
        /// Its activation, likewise.
        later_at: u64,
    },
    /// A fork is scheduled without one that it builds on.
    #[error("{later} is scheduled, but {earlier} before it is not")]
    ForkMissing {
        /// The fork that must come first.
        earlier: EthereumHardfork,
        /// The fork that builds on it.
        later: EthereumHardfork,
    },
    /// A fork after the merge is scheduled, and the merge is not.
    #[error("{0} is scheduled, but the merge before it is not: set terminalTotalDifficulty")]
    MergeMissing(EthereumHardfork),
    /// A fork that only changes blob parameters has none.
    #[error("{0} is scheduled, but blobSchedule has no entry for it")]
    MissingBlobSchedule(EthereumHardfork),
    /// Blob parameters that make no sense.
    #[error("blobSchedule of {fork}: target {target}, max {max}, update fraction {fraction}")]
    BlobSchedule {
        /// The fork that the entry is for.
        fork: EthereumHardfork,
        /// Blobs a block aims at.
        target: u64,
        /// Blobs a block may hold.
        max: u64,
        /// `baseFeeUpdateFraction`.
        fraction: u128,
    },
}

/// The member of a configuration that makes a chain one for tests.
const DEV_FIELD: &str = "deponentDev";

/// Forks activated by time, in order, with their names in `blobSchedule`.
const TIMED_FORKS: [(EthereumHardfork, &str); 10] = [
    (EthereumHardfork::Shanghai, "shanghai"),
    (EthereumHardfork::Cancun, "cancun"),
    (EthereumHardfork::Prague, "prague"),
    (EthereumHardfork::Osaka, "osaka"),
    (EthereumHardfork::Bpo1, "bpo1"),
    (EthereumHardfork::Bpo2, "bpo2"),
    (EthereumHardfork::Bpo3, "bpo3"),
    (EthereumHardfork::Bpo4, "bpo4"),
    (EthereumHardfork::Bpo5, "bpo5"),
    (EthereumHardfork::Amsterdam, "amsterdam"),
];

impl ChainSpec {
    /// The rules that a geth-style `config` object names.
    ///
    /// # Errors
    /// [`ChainSpecError`] if the forks are incomplete, out of order or not implemented, or the blob
    /// parameters are invalid.
    pub fn from_config(config: &ChainConfig) -> Result<Self, ChainSpecError> {
        if config.bogota_time.is_some() {
            return Err(ChainSpecError::UnsupportedFork(EthereumHardfork::Bogota));
        }
        let merge = Merge::from_config(config);
        let mut forks = block_forks(config)?;
        let times = [
            config.shanghai_time,
            config.cancun_time,
            config.prague_time,
            config.osaka_time,
            config.bpo1_time,
            config.bpo2_time,
            config.bpo3_time,
            config.bpo4_time,
            config.bpo5_time,
            config.amsterdam_time,
        ];
        let timed: Vec<_> = TIMED_FORKS
            .iter()
            .zip(times)
            .filter_map(|((fork, name), time)| time.map(|time| (*fork, *name, time)))
            .collect();
        check_order(TIMED_FORKS.map(|(fork, _)| {
            let time = timed.iter().find(|(name, ..)| *name == fork).map(|(.., time)| *time);
            (fork, time, EthereumHardfork::bpo_variants().contains(&fork))
        }))?;
        if let (Merge::Never, Some((fork, ..))) = (&merge, timed.first()) {
            return Err(ChainSpecError::MergeMissing(*fork));
        }
        let mut blobs = Vec::new();
        for (fork, name, time) in timed {
            forks.push((fork, ForkCondition::Timestamp(time)));
            let scheduled = config
                .blob_schedule
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, params)| *params);
            // These forks are nothing but their entry, and mainnet's is another chain's.
            if scheduled.is_none() && EthereumHardfork::bpo_variants().contains(&fork) {
                return Err(ChainSpecError::MissingBlobSchedule(fork));
            }
            if let Some(params) = scheduled.or_else(|| default_blobs(fork)) {
                blobs.push((time, checked_blobs(fork, params)?));
            }
        }
        blobs.sort_by_key(|(time, _)| *time);
        let deposit_contract =
            config.deposit_contract_address.unwrap_or(eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS);
        let chain_id = config.chain_id;
        let is_dev = config.extra_fields.get(DEV_FIELD) == Some(&true.into());
        Ok(Self { chain_id, merge, forks, blobs, deposit_contract, is_dev })
    }

    /// The rules of a public chain: 1 (mainnet), 11155111 (Sepolia), 17000 (Holesky) or
    /// 560048 (Hoodi).
    ///
    /// # Errors
    /// [`ChainSpecError::UnknownChain`] for any other chain.
    pub fn from_chain_id(chain_id: u64) -> Result<Self, ChainSpecError> {
        let (hardforks, deposit_contract) = match chain_id {
            1 => (EthereumChainHardforks::mainnet(), eip6110::MAINNET_DEPOSIT_CONTRACT_ADDRESS),
            11155111 => (
                EthereumChainHardforks::sepolia(),
                address!("0x7f02c3e3c98b133055b8b348b2ac625669ed295d"),
            ),
            17000 => (
                EthereumChainHardforks::holesky(),
                address!("0x4242424242424242424242424242424242424242"),
            ),
            560048 => (
                EthereumChainHardforks::hoodi(),
                address!("0x00000000219ab540356cbb839cbe05303d7705fa"),
            ),
            _ => return Err(ChainSpecError::UnknownChain(chain_id)),
        };
        let condition = |fork| hardforks.ethereum_fork_activation(fork);
        // The DAO was one of mainnet; alloy-hardforks lists its fork for the others too.
        let forks = EthereumHardfork::VARIANTS
            .iter()
            .filter(|fork| chain_id == 1 || **fork != EthereumHardfork::Dao)
            .map(|fork| (*fork, condition(*fork)));
        let merge = condition(EthereumHardfork::Paris).block_number();
        let merge = merge.map_or(Merge::Never, Merge::At);
        let blobs = TIMED_FORKS
            .iter()
            .filter_map(|(fork, _)| {
                let ForkCondition::Timestamp(time) = condition(*fork) else { return None };
                Some((time, default_blobs(*fork)?))
            })
            .collect();
        let forks = forks.collect();
        Ok(Self { chain_id, merge, forks, blobs, deposit_contract, is_dev: false })
    }

    /// The chain's identifier (EIP-155).
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// Whether it is a chain for tests, whose configuration has `"deponentDev": true`: its blocks
    /// may have any base fee and gas limit, any account may send transactions, contracts too, and
    /// a signature with an `s` of zero stands for the sender whose address is its `r`.
    pub const fn is_dev(&self) -> bool {
        self.is_dev
    }

    /// Whether storage has the prices of EIP-1283: in Constantinople, where Petersburg is later.
    pub(crate) fn has_net_gas(&self, number: u64) -> bool {
        self.is_constantinople_active_at_block(number)
            && !self.is_petersburg_active_at_block(number)
    }

    /// Blob parameters of a block at `timestamp`, `None` before Cancun.
    pub fn blob_params(&self, timestamp: u64) -> Option<BlobParams> {
        let active = self.blobs.iter().rev().find(|(time, _)| *time <= timestamp);
        active.map(|(_, params)| *params)
    }

    /// Whether block `number` comes after the merge; `None` if the chain's configuration decides
    /// that by total difficulty.
    pub const fn is_merged_at(&self, number: u64) -> Option<bool> {
        match self.merge {
            Merge::Never => Some(false),
            Merge::At(first) => Some(number >= first),
            Merge::Difficulty { .. } => None,
        }
    }

    /// Whether a block is taken for one after the merge that has not been made, as geth decides it
    /// (`IsPostMerge`).
    pub(crate) fn is_taken_for_merged(&self, number: u64, timestamp: u64) -> bool {
        self.is_merged_at(number) == Some(true) || self.is_shanghai_active_at_timestamp(timestamp)
    }

    /// The total difficulty with which proof of work ends; `None` if it is no criterion for a block
    /// with (or without) proof of work.
    pub(crate) fn terminal_total_difficulty(&self, has_proof_of_work: bool) -> Option<U256> {
        match self.merge {
            Merge::Difficulty { passed: true, .. } if !has_proof_of_work => None,
            Merge::Difficulty { terminal, .. } => Some(terminal),
            Merge::Never | Merge::At(_) => None,
        }
    }

    /// Whether block `number`, which has proof of work, may be the terminal block (EIP-3675).
    /// `total_difficulty` is the sum of all difficulties up to and including this block's.
    pub fn may_end_proof_of_work(&self, number: u64, total_difficulty: U256) -> bool {
        match self.merge {
            Merge::Never => false,
            Merge::At(first) => number.saturating_add(1) >= first,
            Merge::Difficulty { passed: true, .. } => true,
            Merge::Difficulty { terminal, .. } => total_difficulty >= terminal,
        }
    }

    /// The latest fork active in a block: by number for a block with proof of work, else by time.
    pub fn fork_of(&self, header: &Header) -> EthereumHardfork {
        if header.difficulty.is_zero() {
            return self.fork_at(header.timestamp);
        }
        let is_active = |condition: &ForkCondition| match condition {
            ForkCondition::Block(first) => *first <= header.number,
            _ => false,
        };
        let active = self.forks.iter().filter(|(_, condition)| is_active(condition));
        active.map(|(fork, _)| *fork).max().unwrap_or(EthereumHardfork::Frontier)
    }

    /// The first difference between these rules and `given` that concerns blocks up to `head`, or
    /// any block if there is no head; `None` if there is no such difference.
    pub fn difference(&self, given: &Self, head: Option<&Header>) -> Option<String> {
        if self.chain_id != given.chain_id {
            return Some(format!("chainId {} instead of {}", given.chain_id, self.chain_id));
        }
        if self.is_dev != given.is_dev {
            return Some(format!("{DEV_FIELD} {} instead of {}", given.is_dev, self.is_dev));
        }
        let is_past = |condition: ForkCondition| {
            head.is_none_or(|head| match condition {
                ForkCondition::Block(first) => first <= head.number,
                ForkCondition::Timestamp(first) => first <= head.timestamp,
                ForkCondition::TTD { .. } => head.difficulty.is_zero(),
                ForkCondition::Never => false,
            })
        };
        let shown = |condition| match condition {
            ForkCondition::Block(first) => format!("at block {first}"),
            ForkCondition::Timestamp(first) => format!("at time {first}"),
            ForkCondition::TTD { total_difficulty, .. } => {
                format!("at total difficulty {total_difficulty}")
            }
            ForkCondition::Never => "never".into(),
        };
        let is_same = |ours, theirs| match (ours, theirs) {
            // The activation number only serves callers that ask by number.
            (
                ForkCondition::TTD { total_difficulty: ours, .. },
                ForkCondition::TTD { total_difficulty: theirs, .. },
            ) => ours == theirs,
            _ => ours == theirs,
        };
        let forks = self.forks.iter().chain(&given.forks).map(|(fork, _)| *fork);
        for fork in forks {
            let activation = |spec: &Self| spec.ethereum_fork_activation(fork);
            let (ours, theirs) = (activation(self), activation(given));
            if !is_same(ours, theirs) && (is_past(ours) || is_past(theirs)) {
                return Some(format!("{fork} {} instead of {}", shown(theirs), shown(ours)));
            }
        }
        let blobs = |spec: &Self| {
            let is_past = |first| head.is_none_or(|head| first <= head.timestamp);
            let past = spec.blobs.iter().filter(|(first, _)| is_past(*first));
            past.copied().collect::<Vec<_>>()
        };
        if blobs(self) != blobs(given) {
            return Some("another blobSchedule".into());
        }
        let is_prague = head.is_none_or(|head| self.is_prague_active_at_timestamp(head.timestamp));
        if is_prague && self.deposit_contract != given.deposit_contract {
            let (ours, theirs) = (self.deposit_contract, given.deposit_contract);
            return Some(format!("depositContractAddress {theirs} instead of {ours}"));
        }
        None
    }

    /// The latest fork active at `timestamp` on a chain past the merge.
    pub fn fork_at(&self, timestamp: u64) -> EthereumHardfork {
        TIMED_FORKS
            .iter()
            .rev()
            .map(|(fork, _)| *fork)
            .find(|fork| self.is_ethereum_fork_active_at_timestamp(*fork, timestamp))
            .unwrap_or(EthereumHardfork::Paris)
    }
}

impl ChainSpec {
    /// The time of a fork, in seconds; `None` where it is not scheduled by time.
    pub fn fork_time(&self, fork: EthereumHardfork) -> Option<u64> {
        match self.ethereum_fork_activation(fork) {
            ForkCondition::Timestamp(time) => Some(time),
            _ => None,
        }
    }

    /// The times of all forks that are scheduled by time, in seconds, ascending, each once.
    pub fn fork_times(&self) -> Vec<u64> {
        let times = self.forks.iter().filter_map(|(_, condition)| match condition {
            ForkCondition::Timestamp(time) => Some(*time),
            _ => None,
        });
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// The hash of the first block and of all forks up to the one at `time` (`FORK_HASH` of
    /// EIP-2124 and EIP-6122).
    pub fn fork_hash(&self, genesis: B256, genesis_time: u64, time: u64) -> [u8; 4] {
        let numbers = self.forks.iter().filter_map(|(_, condition)| match condition {
            ForkCondition::Block(number) => Some(*number),
            ForkCondition::TTD { fork_block, .. } => *fork_block,
            _ => None,
        });
        let mut numbers: Vec<_> = numbers.filter(|number| *number > 0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let times = self.fork_times();
        let times = times.into_iter().filter(|at| (genesis_time + 1..=time).contains(at));
        let mut hash = ForkHash::from(genesis);
        numbers.into_iter().chain(times).for_each(|fork| hash += fork);
        hash.0
    }

    /// The contract that takes deposits (EIP-6110).
    pub const fn deposit_contract(&self) -> Address {
        self.deposit_contract
    }
}

impl EthereumHardforks for ChainSpec {
    fn ethereum_fork_activation(&self, fork: EthereumHardfork) -> ForkCondition {
        let found = self.forks.iter().find(|(name, _)| *name == fork);
        found.map_or(ForkCondition::Never, |(_, condition)| *condition)
    }
}

impl EthExecutorSpec for ChainSpec {
    fn deposit_contract_address(&self) -> Option<Address> {
        Some(self.deposit_contract)
    }
}

impl Merge {
    fn from_config(config: &ChainConfig) -> Self {
        match config.terminal_total_difficulty {
            None => Self::Never,
            // A chain that never had proof of work.
            Some(U256::ZERO) => Self::At(0),
            Some(terminal) => {
                let passed = config.terminal_total_difficulty_passed;
                Self::Difficulty { terminal, passed }
            }
        }
    }
}

/// Forks activated by block number, and the merge.
fn block_forks(
    config: &ChainConfig,
) -> Result<Vec<(EthereumHardfork, ForkCondition)>, ChainSpecError> {
    use EthereumHardfork::*;
    let dao = config.dao_fork_block.filter(|_| config.dao_fork_support);
    let petersburg = config.petersburg_block.or(config.constantinople_block);
    let (eip155, eip158) = (config.eip155_block, config.eip158_block);
    if eip155.is_some() && eip158.is_some() && eip155 != eip158 {
        return Err(ChainSpecError::ForksApart("eip155Block", "eip158Block"));
    }
    // The last column: whether the forks after it do not need it.
    let by_number = [
        (Frontier, Some(0), false),
        (Homestead, config.homestead_block, false),
        (Dao, dao, true),
        (Tangerine, config.eip150_block, false),
        (SpuriousDragon, config.eip158_block.or(config.eip155_block), false),
        (Byzantium, config.byzantium_block, false),
        (Constantinople, config.constantinople_block, false),
        (Petersburg, petersburg, false),
        (Istanbul, config.istanbul_block, false),
        (MuirGlacier, config.muir_glacier_block, true),
        (Berlin, config.berlin_block, false),
        (London, config.london_block, false),
        (ArrowGlacier, config.arrow_glacier_block, true),
        (GrayGlacier, config.gray_glacier_block, true),
    ];
    check_order(by_number)?;
    let scheduled = by_number.into_iter().filter_map(|(fork, number, _)| Some((fork, number?)));
    let mut forks: Vec<_> =
        scheduled.map(|(fork, number)| (fork, ForkCondition::Block(number))).collect();
    if let Some(total_difficulty) = config.terminal_total_difficulty {
        // The number serves callers that ask by number; a block itself is judged by difficulty.
        let merged = total_difficulty == U256::ZERO || config.terminal_total_difficulty_passed;
        let activation = if merged { 0 } else { config.merge_netsplit_block.unwrap_or(u64::MAX) };
        let condition = ForkCondition::TTD {
            activation_block_number: activation,
            fork_block: config.merge_netsplit_block,
            total_difficulty,
        };
        forks.push((Paris, condition));
    }
    Ok(forks)
}

/// Checks that forks are scheduled in the order given. Those marked as optional may be missing.
fn check_order(
    forks: impl IntoIterator<Item = (EthereumHardfork, Option<u64>, bool)>,
) -> Result<(), ChainSpecError> {
    let mut earlier: Option<(EthereumHardfork, Option<u64>)> = None;
    for (later, at, is_optional) in forks {
        match (earlier, at) {
            (Some((earlier, None)), Some(_)) => {
                return Err(ChainSpecError::ForkMissing { earlier, later });
            }
            (Some((earlier, Some(earlier_at))), Some(later_at)) if earlier_at > later_at => {
                return Err(ChainSpecError::ForkOrder { earlier, earlier_at, later, later_at });
            }
            _ if is_optional => {}
            _ => earlier = Some((later, at)),
        }
    }
    Ok(())
}

/// Blob parameters of mainnet's forks, for configurations that leave them out.
fn default_blobs(fork: EthereumHardfork) -> Option<BlobParams> {
    match fork {
        EthereumHardfork::Cancun => Some(BlobParams::cancun()),
        EthereumHardfork::Prague => Some(BlobParams::prague()),
        EthereumHardfork::Osaka => Some(BlobParams::osaka()),
        EthereumHardfork::Bpo1 => Some(BlobParams::bpo1()),
        EthereumHardfork::Bpo2 => Some(BlobParams::bpo2()),
        _ => None,
    }
}

/// Completes a `blobSchedule` entry, which has three of the parameters, by the fork's rules:
/// six blobs a transaction (EIP-7594) and a reserve price (EIP-7918) from Osaka on.
fn checked_blobs(fork: EthereumHardfork, params: BlobParams) -> Result<BlobParams, ChainSpecError> {
    let BlobParams { target_blob_count: target, max_blob_count: max, .. } = params;
    let fraction = params.update_fraction;
    if fraction == 0 || max == 0 || target > max || max > u64::from(u16::MAX) {
        return Err(ChainSpecError::BlobSchedule { fork, target, max, fraction });
    }
    let osaka = fork >= EthereumHardfork::Osaka;
    let per_tx = if osaka { eip7594::MAX_BLOBS_PER_TX_FUSAKA } else { max };
    let reserve = if osaka { BLOB_BASE_COST } else { 0 };
    Ok(params.with_max_blobs_per_tx(per_tx).with_blob_base_cost(reserve))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::b256;

    /// Values of geth's `core/forkid/forkid_test.go` at 1.17.8, which follow EIP-6122.
    #[test]
    fn a_fork_hash_is_that_of_other_clients() {
        let mainnet = b256!("0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3");
        let sepolia = b256!("0x25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9");
        let cases = [
            (1, mainnet, 0, 1681338455, [0xdc, 0xe9, 0x6c, 0x2d]),
            (1, mainnet, 0, 1710338135, [0x9f, 0x3d, 0x22, 0x54]),
            (1, mainnet, 0, 1746612311, [0xc3, 0x76, 0xcf, 0x8b]),
            (1, mainnet, 0, 1764798551, [0x51, 0x67, 0xe2, 0xa6]),
            (1, mainnet, 0, 1767747671, [0x07, 0xc9, 0x46, 0x2e]),
            (11155111, sepolia, 1633267481, 1761017184, [0x56, 0x07, 0x8a, 0x1e]),
            (11155111, sepolia, 1633267481, 1761607008, [0x26, 0x89, 0x56, 0xb6]),
        ];
        for (chain, genesis, genesis_time, time, expected) in cases {
            let chain = ChainSpec::from_chain_id(chain).expect("built in");
            assert!(chain.fork_times().contains(&time), "{time}");
            assert_eq!(chain.fork_hash(genesis, genesis_time, time), expected, "{time}");
        }
    }
}
