use crate::{Code, StateError, Witness};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Debug;
use trie::keccak::keccak256_many;
use trie::{Account, AccountChange, AccountInfo, NodeSource, StateChanges, StateTrie, hashed_slot};

/// The state before a block and the hashes of its ancestors, as the block reads them.
///
/// Absence is an answer (`None`, zero). An error of any method means that the state does not know:
/// it is incomplete, or cannot be read.
pub trait State: Debug {
    /// The account at `address`, `None` when there is none.
    ///
    /// # Errors
    /// When a node on its path is missing or wrong, or the state cannot be read.
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError>;

    /// The value in `slot` of the account at `address`, zero when never written.
    ///
    /// # Errors
    /// As for [`account`](Self::account), with the paths of the account and of the slot.
    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError>;

    /// The code whose keccak-256 hash is `code_hash`.
    ///
    /// # Errors
    /// [`StateError::MissingCode`] when the state lacks it, and when it cannot be read.
    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError>;

    /// As [`code`](Self::code), with the bytes behind the code and its jump table, where the state
    /// has them.
    ///
    /// # Errors
    /// As for [`code`](Self::code).
    fn code_to_run(&mut self, code_hash: B256) -> Result<Code, StateError> {
        Ok(self.code(code_hash)?.into())
    }

    /// The hash of ancestor `number`; asked only for the 256 blocks before the one running.
    ///
    /// # Errors
    /// When the state lacks that ancestor, or cannot be read.
    fn block_hash(&mut self, number: u64) -> Result<B256, StateError>;

    /// A transaction, a system call or the withdrawals have run with these changes, each account at
    /// most once. It is a hint for state that works ahead: the changes of the whole block come with
    /// [`BlockState::apply`], and the block may yet be run again from the start
    /// ([`BlockState::restart`]). State that does not work ahead leaves the iterator alone.
    fn ran(&mut self, _changes: &mut dyn Iterator<Item = Change>) {}

    /// All of the block has run. It is a hint like [`ran`](Self::ran): [`BlockState::apply`] comes
    /// next, after a while.
    fn all_ran(&mut self) {}
}

impl<S: State> State for &mut S {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        (**self).account(address)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        (**self).storage(address, slot)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        (**self).code(code_hash)
    }

    fn code_to_run(&mut self, code_hash: B256) -> Result<Code, StateError> {
        (**self).code_to_run(code_hash)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        (**self).block_hash(number)
    }

    fn ran(&mut self, changes: &mut dyn Iterator<Item = Change>) {
        (**self).ran(changes);
    }

    fn all_ran(&mut self) {
        (**self).all_ran();
    }
}

/// State that a block is validated on: it takes the block's changes, and computes the root after
/// them.
pub trait BlockState: State {
    /// Forgets all reads and hints: the block is run again from the start.
    ///
    /// # Errors
    /// When the state cannot be read.
    fn restart(&mut self) -> Result<(), StateError>;

    /// Applies all changes of the block, each account at most once, and returns the post-state
    /// root. The nodes that this reveals (paths of writes, siblings of deletions) are part of the
    /// block's witness.
    ///
    /// # Errors
    /// When a node that the changes need is missing or malformed.
    fn apply(&mut self, changes: &[Change]) -> Result<B256, StateError>;

    /// The root after a transaction with these changes. It is asked for after each transaction of a
    /// block from before Byzantium, whose receipts have these roots; the block's reads and
    /// [`apply`](Self::apply) are as ever.
    ///
    /// The nodes that are revealed when all changes so far are applied to the state before the
    /// block, as if they were a block's, are part of the witness.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    fn apply_transaction(&mut self, changes: &[Change]) -> Result<B256, StateError>;
}

impl<S: BlockState> BlockState for &mut S {
    fn restart(&mut self) -> Result<(), StateError> {
        (**self).restart()
    }

    fn apply(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        (**self).apply(changes)
    }

    fn apply_transaction(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        (**self).apply_transaction(changes)
    }
}

/// The changes of a block, or of a part of it, in one account: the values after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The account's address.
    pub address: Address,
    /// The account, `None` when it is deleted, and its storage with it.
    pub account: Option<AccountInfo>,
    /// Whether the storage starts again from empty, as after SELFDESTRUCT before Cancun: `slots`
    /// is then all that it holds.
    pub storage_wiped: bool,
    /// Slots with their values, in any order, each slot at most once. Zero removes the slot.
    pub slots: Vec<(U256, U256)>,
}

impl Change {
    /// Adds later changes in the same account.
    pub fn then(&mut self, later: &Self) {
        if later.storage_wiped || later.account.is_none() {
            (self.storage_wiped, self.slots) = (true, Vec::new());
        }
        self.account = later.account;
        self.slots.retain(|(slot, _)| later.slots.iter().all(|(changed, _)| changed != slot));
        self.slots.extend(&later.slots);
    }

    /// The changes by hashed keys, as the tries take them.
    pub fn hashed<'a>(changes: impl IntoIterator<Item = &'a Self>) -> StateChanges {
        let changes: Vec<_> = changes.into_iter().collect();
        let slots = changes.iter().flat_map(|change| &change.slots);
        let slots: Vec<_> = slots.map(|(slot, _)| slot.to_be_bytes::<32>()).collect();
        let addresses = changes.iter().map(|change| change.address.as_slice());
        let keys: Vec<_> = addresses.chain(slots.iter().map(|slot| &slot[..])).collect();
        let mut hashes = vec![B256::ZERO; keys.len()];
        keccak256_many(&keys, &mut hashes);
        let (hashed_addresses, hashed_slots) = hashes.split_at(changes.len());
        let mut hashed_slots = hashed_slots.iter();
        let hashed = changes.iter().zip(hashed_addresses).map(|(change, hashed_address)| {
            let values = change.slots.iter().map(|(_, value)| *value);
            AccountChange {
                hashed_address: *hashed_address,
                account: change.account,
                storage_wiped: change.storage_wiped,
                storage: hashed_slots.by_ref().copied().zip(values).collect(),
            }
        });
        StateChanges { accounts: hashed.collect() }
    }
}

/// An ancestor of the block that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// keccak-256 of `rlp`.
    pub hash: B256,
    /// The header's RLP.
    pub rlp: Bytes,
}

/// A source of trie nodes, codes and ancestors: a database seen from one block, or a witness.
pub trait Source: NodeSource + Debug {
    /// The code whose keccak-256 hash is `code_hash`, `None` when it is not there.
    fn code(&self, code_hash: &B256) -> Option<Bytes>;

    /// Ancestor `number` on the chain of the block that runs, `None` when it is not there.
    fn ancestor(&self, number: u64) -> Option<Ancestor>;
}

impl<S: Source + ?Sized> Source for &S {
    fn code(&self, code_hash: &B256) -> Option<Bytes> {
        (**self).code(code_hash)
    }

    fn ancestor(&self, number: u64) -> Option<Ancestor> {
        (**self).ancestor(number)
    }
}

/// State read straight from the tries. The nodes that reads and changes reveal are exactly the
/// witness nodes, and the revealed tries give the post-state root: no second walk.
#[derive(Debug)]
pub struct TrieState<S> {
    source: S,
    root: B256,
    trie: StateTrie,
    /// The changes of the transactions so far, when roots are asked for after each.
    so_far: BTreeMap<Address, Change>,
    /// The nodes that these roots revealed.
    revealed_so_far: Vec<Bytes>,
}

impl<S: Source> TrieState<S> {
    /// The state with root `root`, read from `source`.
    pub fn new(root: B256, source: S) -> Self {
        let trie = StateTrie::new(root);
        Self { source, root, trie, so_far: BTreeMap::new(), revealed_so_far: Vec::new() }
    }

    /// Hands every node that [`apply`](BlockState::apply) made to `sink`, as hash and RLP.
    pub fn new_nodes(&mut self, sink: &mut impl FnMut(B256, Bytes)) {
        self.trie.new_nodes(sink);
    }

    /// The witness of all reads so far: the revealed nodes, `codes` as they were read, and the
    /// headers from ancestor `first` to the parent, `last`.
    ///
    /// # Errors
    /// [`StateError::MissingHeader`] when the source lacks one of these headers.
    pub fn witness(
        &mut self,
        codes: Vec<Bytes>,
        first: u64,
        last: u64,
    ) -> Result<Witness, StateError> {
        let header = |number| match self.source.ancestor(number) {
            Some(ancestor) => Ok(ancestor.rlp),
            None => Err(StateError::MissingHeader(number)),
        };
        let headers = (first..=last).map(header).collect::<Result<_, _>>()?;
        let mut state = self.trie.take_witness_nodes();
        state.append(&mut self.revealed_so_far);
        let mut witness = Witness { state: state.into(), codes, headers };
        witness.sort();
        Ok(witness)
    }
}

impl<S: Source> BlockState for TrieState<S> {
    fn restart(&mut self) -> Result<(), StateError> {
        self.trie = StateTrie::new(self.root);
        self.so_far.clear();
        self.revealed_so_far.clear();
        Ok(())
    }

    fn apply(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        Ok(self.trie.apply(&Change::hashed(changes), &self.source)?)
    }

    fn apply_transaction(&mut self, changes: &[Change]) -> Result<B256, StateError> {
        for change in changes {
            match self.so_far.entry(change.address) {
                Entry::Vacant(entry) => _ = entry.insert(change.clone()),
                Entry::Occupied(mut entry) => entry.get_mut().then(change),
            }
        }
        let mut trie = StateTrie::new(self.root);
        let root = trie.apply(&Change::hashed(self.so_far.values()), &self.source)?;
        self.revealed_so_far.append(&mut trie.take_witness_nodes());
        Ok(root)
    }
}

impl<S: Source> State for TrieState<S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        Ok(self.trie.account(keccak256(address), &self.source)?)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        Ok(self.trie.storage(keccak256(address), hashed_slot(slot), &self.source)?)
    }

    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError> {
        self.source.code(&code_hash).ok_or(StateError::MissingCode(code_hash))
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        match self.source.ancestor(number) {
            Some(ancestor) => Ok(ancestor.hash),
            None => Err(StateError::MissingHeader(number)),
        }
    }
}

#[cfg(test)]
mod tests;
