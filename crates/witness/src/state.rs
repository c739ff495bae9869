use crate::{StateError, Witness};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use std::fmt::Debug;
use trie::{Account, NodeSource, StateChanges, StateTrie};

/// What a block reads: the state before it and the hashes of its ancestors.
///
/// Absence is an answer (`None`, zero); an error means that the state could not say.
pub trait State: Debug {
    /// The account at `address`, `None` when there is none.
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError>;

    /// The value in `slot` of the account at `address`, zero when never written.
    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError>;

    /// The code whose keccak-256 hash is `code_hash`.
    fn code(&mut self, code_hash: B256) -> Result<Bytes, StateError>;

    /// The hash of ancestor `number`; asked only for the 256 blocks before the one running.
    fn block_hash(&mut self, number: u64) -> Result<B256, StateError>;
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

    fn block_hash(&mut self, number: u64) -> Result<B256, StateError> {
        (**self).block_hash(number)
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

/// Where trie nodes, codes and ancestors come from: a database seen from one block, or a witness.
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
    trie: StateTrie,
}

impl<S: Source> TrieState<S> {
    /// The state with root `root`, read from `source`.
    pub fn new(root: B256, source: S) -> Self {
        Self { source, trie: StateTrie::new(root) }
    }

    /// Applies a block's changes and returns the post-state root. The nodes that this reveals
    /// (paths of what is written, siblings of what is deleted) join the witness.
    pub fn apply(&mut self, changes: &StateChanges) -> Result<B256, StateError> {
        Ok(self.trie.apply(changes, &self.source)?)
    }

    /// Hands every node that [`apply`](Self::apply) made to `sink`, as hash and RLP.
    pub fn new_nodes(&mut self, sink: &mut impl FnMut(B256, Bytes)) {
        self.trie.new_nodes(sink);
    }

    /// The witness of all that was read so far: the revealed nodes, `codes` as they were read,
    /// and the headers from ancestor `first` to the parent, `last`.
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
        let mut witness = Witness { state: self.trie.take_witness_nodes(), codes, headers };
        witness.sort();
        Ok(witness)
    }
}

impl<S: Source> State for TrieState<S> {
    fn account(&mut self, address: Address) -> Result<Option<Account>, StateError> {
        Ok(self.trie.account(keccak256(address), &self.source)?)
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, StateError> {
        let slot = keccak256(slot.to_be_bytes::<32>());
        Ok(self.trie.storage(keccak256(address), slot, &self.source)?)
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
