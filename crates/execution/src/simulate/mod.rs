//! Sequences of blocks of calls that become part of no chain, as geth simulates them
//! (`internal/ethapi/simulate.go` of 1.17.8).

mod logs;
mod plan;
mod run;

use crate::cache::BlockCache;
use crate::deadline::Deadline;
use crate::recorder::Recorder;
use crate::unsigned::UnsignedCall;
use crate::{
    BlockError, BlockOverrides, CallError, CallOutcome, ChainSpec, SealedBlock, StateOverrides,
};
use alloy_consensus::Header;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, B256, Bytes, Log, U256};
use std::collections::BTreeMap;
use witness::{Account, Change, Code, State, StateError};

/// A block that is to be simulated.
#[derive(Debug, Clone, Default)]
pub struct BlockCalls {
    /// The overridden fields of the block.
    pub block: BlockOverrides,
    /// The parent beacon block root (EIP-4788); none is zero.
    pub beacon_root: Option<B256>,
    /// The withdrawals, which count from Shanghai on.
    pub withdrawals: Vec<Withdrawal>,
    /// The overrides that are written into the state before the block.
    pub state: StateOverrides,
    /// The block's calls.
    pub calls: Vec<UnsignedCall>,
}

/// How blocks are simulated.
#[derive(Debug, Clone)]
pub struct SimulationOptions {
    /// Whether transfers of ether are logs, too, before Amsterdam (ERC-7528).
    pub traces_transfers: bool,
    /// Whether nonces and fees are checked as those of transactions, and the base fee follows the
    /// parent's.
    pub validates: bool,
    /// The gas of all calls together.
    pub gas: u64,
    /// The bytes of all results as JSON, about.
    pub bytes: usize,
    /// When the time of all blocks is over. It is also asked before each call and block.
    pub deadline: Deadline,
}

/// The answer to a simulation.
#[derive(Debug)]
pub enum Simulation {
    /// The blocks, with those between that were not asked for.
    Done(Vec<SimulatedBlock>),
    /// Why there are none.
    Refused(Refusal),
}

/// Why blocks are not simulated, in geth's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind, by which errors have their codes.
    pub kind: RefusalKind,
    /// The reason.
    pub reason: String,
}

/// The kinds of refusals, as the specification of `eth_simulateV1` tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// A nonce below the account's.
    NonceTooLow,
    /// A nonce above the account's.
    NonceTooHigh,
    /// A fee below the block's base fee.
    FeeTooLow,
    /// Less gas than a call needs before it runs.
    IntrinsicGas,
    /// Too little money.
    Funds,
    /// More gas than the block has left.
    BlockGas,
    /// A number that is not above the last one.
    BlockNumber,
    /// A time that is not after the last one.
    BlockTime,
    /// An init code that is too large.
    InitCode,
    /// Fields that contradict each other.
    Params,
    /// More than one request may ask for.
    Limit,
    /// Another rule of transactions.
    Transaction,
    /// Anything else.
    Other,
}

/// A simulated block.
#[derive(Debug)]
pub struct SimulatedBlock {
    /// The block. Its transactions have no signatures.
    pub block: SealedBlock,
    /// The callers.
    pub senders: Vec<Address>,
    /// The results of its calls.
    pub calls: Vec<SimulatedCall>,
}

/// The result of a simulated call.
#[derive(Debug)]
pub struct SimulatedCall {
    /// How it ended.
    pub outcome: CallOutcome,
    /// The gas that it paid for.
    pub gas_used: u64,
    /// The gas before refunds.
    pub most_gas_used: u64,
    /// Its logs; none if it failed.
    pub logs: Vec<SimulatedLog>,
    /// Whether it had less gas than it asked for, since the simulation had no more.
    pub is_capped: bool,
}

/// A log of a simulated call.
#[derive(Debug)]
pub struct SimulatedLog {
    /// Its place among all logs of the block, those that were undone among them.
    pub index: u64,
    /// The log.
    pub log: Log,
}

/// A state that tells its root after changes.
pub trait RootedState: State {
    /// The state root after these changes to the state, each account at most once.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn root_after(&mut self, changes: Vec<Change>) -> Result<B256, StateError>;
}

/// Simulates blocks on top of the block of `base`, whose hash is `base_hash`, on `state`, the state
/// after it.
///
/// # Errors
/// [`CallError::OutOfTime`]; [`BlockError::State`] when the state cannot answer, and
/// [`BlockError::Internal`].
pub fn simulate<S: RootedState>(
    chain: &ChainSpec,
    base: (&Header, B256),
    blocks: Vec<BlockCalls>,
    options: SimulationOptions,
    state: S,
) -> Result<Simulation, CallError> {
    let (base, base_hash) = base;
    let state = ChainedState { state, hashes: BTreeMap::new(), base: base.number, base_fee: 0 };
    let recorder = Recorder::new(chain, base, state, None, true);
    let cache = revm::database::State::builder().with_database(recorder).with_bundle_update();
    let mut simulator = run::Simulator {
        chain,
        gas_left: options.gas,
        bytes_left: options.bytes,
        options,
        db: BlockCache(cache.build()),
    };
    let outcome = plan::in_order(base, blocks)
        .map_err(Stop::Refused)
        .and_then(|blocks| simulator.run_all(base, base_hash, blocks));
    match outcome {
        Ok(blocks) => Ok(Simulation::Done(blocks)),
        Err(Stop::Refused(refusal)) => Ok(Simulation::Refused(refusal)),
        Err(Stop::OutOfTime) => Err(CallError::OutOfTime),
        Err(Stop::Failed(error)) => Err(error.into()),
    }
}

/// Why a simulation ends early.
#[derive(Debug)]
enum Stop {
    Refused(Refusal),
    OutOfTime,
    Failed(BlockError),
}

impl Stop {
    fn refused(kind: RefusalKind, reason: impl Into<String>) -> Self {
        Self::Refused(Refusal { kind, reason: reason.into() })
    }
}

/// The state before the first simulated block, and the hashes of those that were simulated.
#[derive(Debug)]
struct ChainedState<S> {
    state: S,
    hashes: BTreeMap<u64, B256>,
    /// The number of the last block that is real.
    base: u64,
    /// The base fee of the running block: the EVM's own is zero where gas is free.
    base_fee: u64,
}

impl<S: State> State for ChainedState<S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        self.state.account(address)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.state.storage(address, slot)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        self.state.code(code_hash)
    }

    fn code_to_run(&mut self, code_hash: B256) -> Result<Code, StateError> {
        self.state.code_to_run(code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        match number <= self.base {
            true => self.state.block_hash(number),
            false => Ok(self.hashes.get(&number).copied().unwrap_or_default()),
        }
    }
}
