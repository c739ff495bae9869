//! Floor 5. Message calls on the state after a block.

use crate::engine::Engine;
use crate::error::Error;
use crate::read::pending::{CallState, StateAt};
use crate::read::view::VersionState;
use crate::tries::Tries;
use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, U256};
use execution::{
    BlockCalls, BlockError, Call, CallError, CallOutcome, CreatedAccessList, Deadline, Estimate,
    Overrides, RootedState, Simulation, SimulationOptions, StateOverrides, UnsignedCall,
};
use state::NodeStore;
use trie::Account;
use trie::versioned::run_serially;
use witness::{Change, Code, State, StateError};

impl Engine {
    /// Makes a message call in a block, on the state after it. It changes nothing, and locks
    /// nothing that others wait for.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when the state is not kept any more;
    /// [`Error::OutOfTime`].
    pub fn call(
        &self,
        at: impl Into<StateAt>,
        call: &Call,
        overrides: &Overrides,
        deadline: &Deadline,
    ) -> Result<CallOutcome, Error> {
        self.on_state(at, |header, state| {
            execution::call(self.chain(), header, call, overrides, deadline, state)
        })
    }

    /// Finds a gas limit with which a call succeeds, `gas_cap` at most, in a block, on the state
    /// after it. See [`execution::estimate`].
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when the state is not kept any more;
    /// [`Error::OutOfTime`].
    pub fn estimate_gas(
        &self,
        at: impl Into<StateAt>,
        call: &Call,
        overrides: &Overrides,
        gas_cap: u64,
        deadline: &Deadline,
    ) -> Result<Estimate, Error> {
        self.on_state(at, |header, state| {
            execution::estimate(self.chain(), header, call, overrides, gas_cap, deadline, state)
        })
    }

    /// Finds the access list of a call in a valid block of any branch, on the state after it. See
    /// [`execution::create_access_list`].
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when the state is not kept any more;
    /// [`Error::OutOfTime`].
    pub fn create_access_list(
        &self,
        at: impl Into<StateAt>,
        call: &UnsignedCall,
        gas: u64,
        overrides: StateOverrides,
        deadline: &Deadline,
    ) -> Result<CreatedAccessList, Error> {
        let chain = self.chain();
        self.on_state(at, |header, state| {
            execution::create_access_list(chain, header, call, gas, overrides, deadline, state)
        })
    }

    /// Simulates blocks on top of a valid block of any branch. See [`execution::simulate()`].
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when the state is not kept any more;
    /// [`Error::OutOfTime`].
    pub fn simulate(
        &self,
        at: impl Into<StateAt>,
        blocks: Vec<BlockCalls>,
        options: SimulationOptions,
    ) -> Result<Simulation, Error> {
        let at = at.into();
        let hash = match &at {
            StateAt::Block(hash) => *hash,
            StateAt::Pending(pending) => pending.block.hash(),
        };
        self.on_rooted_state(at, |header, state| {
            execution::simulate(self.chain(), (header, hash), blocks, options, state)
        })
    }

    /// Runs something on the state after a block, which tells roots.
    pub(crate) fn on_rooted_state<T, E: Into<CallError>>(
        &self,
        at: impl Into<StateAt>,
        run: impl FnOnce(&Header, RootsOfCall<'_>) -> Result<T, E>,
    ) -> Result<T, Error> {
        let nodes = self.shared.chain.database.nodes();
        self.on_state(at, |header, state| run(header, RootsOfCall { nodes, state }))
    }

    /// Runs something on the state after a block.
    pub(crate) fn on_state<T, E: Into<CallError>>(
        &self,
        at: impl Into<StateAt>,
        run: impl FnOnce(&Header, CallState<'_>) -> Result<T, E>,
    ) -> Result<T, Error> {
        let (chain, background) = (&self.shared.chain, &self.shared.background);
        let at = at.into();
        let (record, pending) = match &at {
            StateAt::Block(hash) => (chain.known_block(hash)?, None),
            StateAt::Pending(pending) => (pending.parent.clone(), Some(&**pending)),
        };
        let version = chain.sealed(background, &record)?.version;
        let mut state = VersionState::new(chain, &record, version);
        state.ancestors.is_call = true;
        let header = pending.map_or(&record.block.header, |pending| &pending.block.header);
        let outcome = run(header, CallState::new(state, pending));
        let outcome = outcome.map_err(Into::into);
        outcome.map_err(|error| match (chain.sealed(background, &record), error) {
            // Its nodes were deleted while it was read.
            (Err(pruned), _) => pruned,
            (Ok(_), CallError::OutOfTime) => Error::OutOfTime,
            (Ok(_), CallError::Block(BlockError::State(error))) => error.into(),
            (Ok(_), error) => Error::Evm(error.to_string()),
        })
    }
}

/// The state after a block, and the roots of what calls make of it.
#[derive(Debug)]
pub(crate) struct RootsOfCall<'a> {
    nodes: &'a NodeStore,
    state: CallState<'a>,
}

impl State for RootsOfCall<'_> {
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
        self.state.block_hash(number)
    }
}

impl RootedState for RootsOfCall<'_> {
    /// Each root is made from the block's state anew: what calls change is little.
    fn root_after(&mut self, changes: Vec<Change>) -> Result<B256, StateError> {
        let mut tries = Tries::new(self.nodes.clone(), self.state.version())?;
        let hashed = match self.state.pending() {
            Some(pending) => Change::hashed(&pending.changes_and(&changes)),
            None => Change::hashed(&changes),
        };
        // Many slots have both forms no longer than it takes to hash them.
        drop(changes);
        Ok(tries.finish(&hashed, &run_serially)?)
    }
}
