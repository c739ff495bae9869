//! Message calls on the state after a block.

use crate::read::ancestors::Ancestors;
use crate::read::version;
use crate::{Engine, Error};
use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use execution::{BlockError, Call, CallOutcome, StateOverrides};
use state::Database;
use trie::Account;
use trie::versioned::{self, Version};
use witness::{Code, State, StateError};

impl Engine {
    /// Makes a message call in a valid block of any branch, on the state after it. It changes
    /// nothing, and holds nothing that others wait for.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when the state is not kept any more.
    pub fn call(
        &self,
        block_hash: B256,
        call: &Call,
        overrides: &StateOverrides,
    ) -> Result<CallOutcome, Error> {
        let core = self.core();
        let record = core.block(&block_hash)?.ok_or(Error::UnknownBlock(block_hash))?;
        let state = CallState {
            database: &core.database,
            version: core.sealed(&record)?.version,
            ancestors: Ancestors::new(core, record.clone()),
            accounts: AddressMap::default(),
        };
        let outcome = execution::call(self.chain(), &record.block.header, call, overrides, state);
        outcome.map_err(|error| match (core.sealed(&record), error) {
            // Its nodes were deleted while it was read.
            (Err(pruned), _) => pruned,
            (Ok(_), BlockError::State(error)) => error.into(),
            (Ok(_), error) => Error::Evm(error.to_string()),
        })
    }
}

/// A state as a call reads it.
#[derive(Debug)]
struct CallState<'a> {
    database: &'a Database,
    version: Version,
    ancestors: Ancestors<'a>,
    /// Accounts as they were asked for, each with its storage.
    accounts: AddressMap<Option<(Account, Version)>>,
}

impl CallState<'_> {
    fn known(&mut self, address: Address) -> Result<Option<(Account, Version)>, StateError> {
        if let Some(known) = self.accounts.get(&address) {
            return Ok(*known);
        }
        let nodes = self.database.nodes();
        let known = versioned::account(nodes, &self.version, &keccak256(address))?;
        self.accounts.insert(address, known);
        Ok(known)
    }
}

impl State for CallState<'_> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        Ok(self.known(address)?.map(|(account, _)| account))
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let Some((_, storage)) = self.known(address)? else { return Ok(U256::ZERO) };
        let hashed_slot = keccak256(slot.to_be_bytes::<32>());
        Ok(versioned::slot(self.database.nodes(), &storage, &hashed_slot)?)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        version::code(self.database, code_hash)
    }

    fn code_to_run(&mut self, code_hash: B256) -> Result<Code, StateError> {
        version::code_to_run(self.database, code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.ancestors.block_hash_for_call(number)
    }
}
