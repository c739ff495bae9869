use alloy_primitives::map::B256Map;
use alloy_primitives::{Address, B256, Bytes, U256};
use std::fmt;
use witness::{Account, BlockState, Change, State, StateError};

/// The read of a block that its witness could not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedRead {
    /// An account.
    Account(Address),
    /// A slot of an account.
    Slot(Address, U256),
    /// A code, with an account that has it, if one was read.
    Code(Option<Address>),
    /// The hash of the ancestor with this number.
    Ancestor(u64),
    /// Nodes for the state root after the block: the paths of its changes, and the nodes beside
    /// those that it empties.
    Root,
}

impl fmt::Display for FailedRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(address) => write!(f, "on the path of account {address}"),
            Self::Slot(address, slot) => {
                write!(f, "on the path of slot {slot:#x} of account {address}")
            }
            Self::Code(Some(address)) => write!(f, "the code of account {address}"),
            Self::Code(None) => f.write_str("a code that the block reads"),
            Self::Ancestor(number) => write!(f, "BLOCKHASH of block {number}"),
            Self::Root => f.write_str("for the state root after the block"),
        }
    }
}

/// A state that remembers the first read that failed.
#[derive(Debug)]
pub(crate) struct NamedReads<S> {
    pub(crate) state: S,
    pub(crate) failed: Option<FailedRead>,
    /// An account for each code that one was read with.
    owners: B256Map<Address>,
    /// The accounts that were taken for absent since nodes are missing, where that is allowed.
    pub(crate) taken_for_absent: Option<Vec<Address>>,
}

impl<S> NamedReads<S> {
    pub(crate) fn new(state: S) -> Self {
        Self { state, failed: None, owners: B256Map::default(), taken_for_absent: None }
    }

    fn note<T>(
        &mut self,
        read: FailedRead,
        answer: Result<T, StateError>,
    ) -> Result<T, StateError> {
        if answer.is_err() {
            self.failed.get_or_insert(read);
        }
        answer
    }
}

impl<S: State> State for NamedReads<S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        let account = self.state.account(address);
        if let Some(absent) = &mut self.taken_for_absent
            && let Err(StateError::Trie(trie::Error::MissingNode { .. })) = account
        {
            absent.push(address);
            return Ok(None);
        }
        if let Ok(Some(account)) = &account {
            self.owners.entry(account.code_hash).or_insert(address);
        }
        self.note(FailedRead::Account(address), account)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let value = self.state.storage(address, slot);
        self.note(FailedRead::Slot(address, slot), value)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        let code = self.state.code(code_hash);
        self.note(FailedRead::Code(self.owners.get(&code_hash).copied()), code)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        let hash = self.state.block_hash(number);
        self.note(FailedRead::Ancestor(number), hash)
    }
}

impl<S: BlockState> BlockState for NamedReads<S> {
    fn restart(&mut self) -> Result<(), StateError> {
        self.failed = None;
        self.state.restart()
    }

    fn apply(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        let root = self.state.apply(changes);
        self.note(FailedRead::Root, root)
    }

    fn apply_transaction(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        let root = self.state.apply_transaction(changes);
        self.note(FailedRead::Root, root)
    }
}
