//! Floor 3. The faces of the reader: the state after a block, to look at, or to run on.

use crate::chain::record::BlockRecord;
use crate::error::Error;
use crate::read::ancestors::Ancestors;
use crate::read::found::SharedReads;
use crate::read::listed::AccessListState;
use crate::read::version::{KnownAccount, VersionReader};
use crate::remote::Remote;
use crate::shared::Chain;
use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use state::Database;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trie::versioned::{self, Version};
use trie::{AccountProof, hashed_slot};
use witness::{Account, Code, State, StateError};

/// Slots of a storage, in the order of their hashed keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageRange {
    /// Hashed keys and values.
    pub slots: Vec<(B256, U256)>,
    /// The first hashed key behind them, if there is one.
    pub next: Option<B256>,
}

/// The state after a block, as calls read it, and threads that are ahead of the next block.
#[derive(Debug)]
pub(crate) struct VersionState<'a> {
    reader: VersionReader<'a>,
    /// What a list names is read once with all other threads.
    pub(crate) listed: Option<&'a AccessListState>,
    /// Reads that are shared with other threads.
    pub(crate) shared: Option<&'a SharedReads>,
    /// Accounts that no list names and no other thread looks for.
    accounts: AddressMap<KnownAccount>,
    pub(crate) ancestors: Ancestors<'a>,
    /// Has reads fail once it is set, so that the thread comes to an end soon.
    pub(crate) is_over: Option<&'a AtomicBool>,
}

impl<'a> VersionState<'a> {
    pub(crate) fn new(chain: &'a Chain, parent: &Arc<BlockRecord>, version: Version) -> Self {
        Self {
            reader: VersionReader::of(chain, version),
            listed: None,
            shared: None,
            accounts: AddressMap::default(),
            ancestors: Ancestors::new(chain, parent.clone()),
            is_over: None,
        }
    }

    pub(crate) fn version(&self) -> Version {
        self.reader.version()
    }

    fn known(&mut self, address: Address) -> Result<KnownAccount, StateError> {
        if self.is_over.is_some_and(|is_over| is_over.load(Ordering::Relaxed)) {
            return Err(StateError::Storage("the block has run".into()));
        }
        if let Some(listed) = self.listed
            && let Some(known) = listed.account(&mut self.reader, address)?
        {
            return Ok(known);
        }
        let known = match self.shared {
            Some(shared) => shared.account(&address),
            None => self.accounts.get(&address).copied(),
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let known = self.reader.account(address)?;
        match self.shared {
            Some(shared) => shared.put_account(address, known),
            None => drop(self.accounts.insert(address, known)),
        }
        Ok(known)
    }
}

impl State for VersionState<'_> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        Ok(self.known(address)?.account)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let known = self.known(address)?;
        if let Some(listed) = self.listed
            && let Some(slot) = listed.slot(&mut self.reader, address, &known, slot)?
        {
            return Ok(slot.value);
        }
        if let Some((_, value)) = self.shared.and_then(|shared| shared.slot(address, slot)) {
            return Ok(value);
        }
        let Some(read) = self.reader.hashed_slot(address, &known, slot)? else {
            return Ok(U256::ZERO);
        };
        if let Some(shared) = self.shared {
            shared.put_slot(address, slot, read);
        }
        Ok(read.1)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        self.reader.code(code_hash)
    }

    fn code_to_run(&mut self, code_hash: B256) -> Result<Code, StateError> {
        self.reader.code_to_run(code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        self.ancestors.block_hash(number)
    }
}

/// Accounts of a state, in the order of their hashed addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRange {
    /// Hashed addresses and accounts.
    pub accounts: Vec<(B256, Account)>,
    /// The first hashed address behind them, if there is one.
    pub next: Option<B256>,
}

/// The state after one block, to read from. It has no way to write.
#[derive(Debug, Clone)]
pub struct StateView {
    database: Arc<Database>,
    version: Version,
    /// The state after the first block, where that is elsewhere.
    remote: Option<Arc<Remote>>,
}

impl StateView {
    pub(crate) const fn new(
        database: Arc<Database>,
        version: Version,
        remote: Option<Arc<Remote>>,
    ) -> Self {
        Self { database, version, remote }
    }

    fn reader(&self) -> VersionReader<'_> {
        VersionReader::new(&self.database, self.version, self.remote.as_deref())
    }

    /// The state root.
    pub const fn root(&self) -> B256 {
        self.version.root
    }

    /// The account at `address`, `None` when there is none.
    ///
    /// # Errors
    /// [`Error::State`] when the database cannot be read, or the state has been pruned meanwhile;
    /// so it is with the other functions.
    pub fn account(&self, address: Address) -> Result<Option<Account>, Error> {
        Ok(self.reader().account(address)?.account)
    }

    /// The value in `slot` of the account at `address`, zero when never written.
    ///
    /// # Errors
    /// As for [`account`](Self::account).
    pub fn storage(&self, address: Address, slot: U256) -> Result<U256, Error> {
        let mut reader = self.reader();
        let known = reader.account(address)?;
        Ok(reader.slot(address, &known, slot)?)
    }

    /// The code of the account at `address`, empty when it has none.
    ///
    /// # Errors
    /// As for [`account`](Self::account).
    pub fn code(&self, address: Address) -> Result<Bytes, Error> {
        match self.account(address)? {
            Some(account) if account.code_hash != KECCAK256_EMPTY => {
                self.code_of(account.code_hash)
            }
            _ => Ok(Bytes::new()),
        }
    }

    /// Which version of the state it is.
    pub(crate) const fn version(&self) -> Version {
        self.version
    }

    /// Accounts by their hashed addresses, from one on, at most so many.
    ///
    /// # Errors
    /// As for [`account`](Self::account).
    pub fn accounts_from(&self, start: &B256, most: usize) -> Result<AccountRange, Error> {
        let (mut accounts, mut next) = (Vec::new(), None);
        versioned::accounts_from(
            self.database.nodes(),
            &self.version,
            start,
            |key, account, _| {
                if accounts.len() == most {
                    next = Some(key);
                    return ControlFlow::Break(());
                }
                accounts.push((key, account));
                ControlFlow::Continue(())
            },
        )?;
        Ok(AccountRange { accounts, next })
    }

    /// The slots of the account with this hashed address, from a hashed key on, at most so many;
    /// `None` where it has none.
    ///
    /// # Errors
    /// As for [`account`](Self::account).
    pub fn slots_from(
        &self,
        hashed_address: &B256,
        start: &B256,
        most: usize,
    ) -> Result<Option<StorageRange>, Error> {
        let nodes = self.database.nodes();
        let found = versioned::account(nodes, &self.version, hashed_address)?;
        let storage = found.map(|(_, storage)| storage);
        let Some(storage) = storage.filter(|storage| !storage.address.is_none()) else {
            return Ok(None);
        };
        let (mut slots, mut next) = (Vec::new(), None);
        versioned::slots_from(nodes, &storage, start, |key, value| {
            if slots.len() == most {
                next = Some(key);
                return ControlFlow::Break(());
            }
            slots.push((key, value));
            ControlFlow::Continue(())
        })?;
        Ok(Some(StorageRange { slots, next }))
    }

    /// A code that some account of some block has or had, by its hash.
    ///
    /// # Errors
    /// [`Error::State`] when the database cannot be read.
    pub fn code_by_hash(&self, code_hash: B256) -> Result<Option<Bytes>, Error> {
        match self.reader().code(code_hash) {
            Ok(code) => Ok(Some(code)),
            Err(StateError::MissingCode(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The code with this hash.
    pub(crate) fn code_of(&self, code_hash: B256) -> Result<Bytes, Error> {
        Ok(self.reader().code(code_hash)?)
    }

    /// The account with the proofs of it and of these slots.
    ///
    /// # Errors
    /// As for [`account`](Self::account).
    pub fn proof(&self, address: Address, slots: &[U256]) -> Result<AccountProof, Error> {
        let (nodes, hashed_address) = (self.database.nodes(), keccak256(address));
        let reader = self.reader();
        reader.ask(hashed_address, address);
        let hashed = |slot: &U256| {
            let hash = hashed_slot(*slot);
            reader.ask_slot(hashed_address, hash, *slot);
            hash
        };
        let slots: Vec<_> = slots.iter().map(hashed).collect();
        Ok(versioned::account_proof(nodes, &self.version, &hashed_address, &slots)?)
    }
}
