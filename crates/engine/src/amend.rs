//! Floor 5. States of a chain for tests, changed without a block.

use crate::chain::events::{ChainEvent, HeadChange};
use crate::chain::genesis::{first_record, remote_version};
use crate::chain::record::BlockRecord;
use crate::chain::sealed::{Seal, Sealed};
use crate::chain::stored::{add_block, encode_block, stored_block};
use crate::chain::tree::Branching;
use crate::engine::Engine;
use crate::error::Error;
use crate::remote::Remote;
use crate::tries::Tries;
use alloy_consensus::Header;
use alloy_primitives::map::AddressMap;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use std::sync::Arc;
use trie::versioned::run_serially;
use trie::{AccountInfo, hashed_slot};
use witness::Change;

/// A change of an account that no transaction makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Amendment {
    /// Sets the balance, in wei.
    Balance(U256),
    /// Sets the nonce.
    Nonce(u64),
    /// Sets the code.
    Code(Bytes),
    /// Sets the value of a slot; zero removes it.
    Storage {
        /// The slot.
        slot: U256,
        /// The value.
        value: U256,
    },
}

/// Codes by hash.
type NewCodes = Vec<(B256, Bytes)>;

/// The state after a block as it was at some time, to come back to.
#[derive(Debug, Clone)]
pub struct StateHandle {
    hash: B256,
    sealed: Sealed,
}

impl StateHandle {
    /// The block.
    pub const fn block_hash(&self) -> B256 {
        self.hash
    }
}

impl Engine {
    /// Changes the state after a block. Everything that reads it, and every block that is run on
    /// it from now on, sees the changes; blocks that ran before do not. The block's header has the
    /// root of the state without them, so no other client takes the blocks after it. Returns once
    /// that is on disk.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when the state is not kept any more;
    /// [`Error::Storage`].
    ///
    /// # Panics
    /// If the chain is not one for tests.
    pub fn amend(&self, hash: B256, amendments: &[(Address, Amendment)]) -> Result<(), Error> {
        assert!(self.chain().is_dev(), "other chains have no such changes");
        let _running = self.running();
        let chain = &self.shared.chain;
        let Sealed { version, sweep } = self.sealed_now(hash)?;
        let (changes, codes) = self.changes(hash, amendments)?;
        let mut tries = Tries::new(chain.database.nodes().clone(), version)?;
        tries.finish(&Change::hashed(&changes), &run_serially)?;
        let version = {
            let _one_at_a_time = chain.sealing();
            let mut batch = chain.database.batch();
            let version = tries.write(&mut batch);
            batch.seal()?;
            version
        };
        self.put_state(hash, Sealed { version, sweep }, codes)
    }

    /// The state after a block as it is now.
    ///
    /// # Errors
    /// As for [`amend`](Self::amend).
    pub fn state_handle(&self, hash: B256) -> Result<StateHandle, Error> {
        Ok(StateHandle { hash, sealed: self.sealed_now(hash)? })
    }

    /// Makes the state after a block what it was when the handle was made.
    ///
    /// # Errors
    /// As for [`amend`](Self::amend).
    ///
    /// # Panics
    /// As [`amend`](Self::amend).
    pub fn restore(&self, handle: &StateHandle) -> Result<(), Error> {
        assert!(self.chain().is_dev(), "other chains have no such changes");
        let _running = self.running();
        let StateHandle { hash, sealed } = handle;
        if self.sealed_now(*hash)?.version == sealed.version {
            return Ok(());
        }
        self.put_state(*hash, sealed.clone(), Vec::new())
    }

    /// Begins the chain anew with a block of another one, whose state has been added to the
    /// [`Remote`] of the options. The blocks before are canonical no more.
    ///
    /// # Errors
    /// [`Error::Genesis`] when no chain of these rules begins so; [`Error::Storage`].
    ///
    /// # Panics
    /// As [`amend`](Self::amend), and if the options have none.
    pub fn begin_anew(&self, header: Header) -> Result<(), Error> {
        assert!(self.chain().is_dev(), "other chains begin once");
        let _running = self.running();
        let chain = &self.shared.chain;
        let remote = chain.remote.as_ref().expect("the caller has added the state to it");
        let version = remote_version(self.chain(), remote, &header)?;
        let record = Arc::new(first_record(&chain.database, header, version, 0));
        let sealed = record.seal.wait()?;
        add_block(&chain.database, encode_block(&record, Vec::new()), sealed)?;
        let _left = {
            let mut tree = chain.tree_mut();
            let before = tree.heads;
            let left = (tree.replace(record.clone()), tree.insert(record.clone()));
            let Branching { left: blocks, joined, .. } = tree.begin(record.hash())?;
            self.shared.copies.begin(record.number());
            let change = HeadChange { before, now: tree.heads, left: blocks, joined };
            chain.events.tell(&ChainEvent::Chosen(change));
            left
        };
        self.after.queue.fork_choice_changed();
        self.persist()
    }

    /// The states that are elsewhere, where the options have any.
    pub fn remote(&self) -> Option<&Arc<Remote>> {
        self.shared.chain.remote.as_ref()
    }

    fn sealed_now(&self, hash: B256) -> Result<Sealed, Error> {
        let chain = &self.shared.chain;
        let record = chain.known_block(&hash)?;
        chain.sealed(&self.shared.background, &record).cloned()
    }

    fn put_state(&self, hash: B256, sealed: Sealed, codes: NewCodes) -> Result<(), Error> {
        let chain = &self.shared.chain;
        let record = stored_block(&chain.database, &hash)?.ok_or(Error::UnknownBlock(hash))?;
        let seal = Seal::kept(Ok(sealed.clone()));
        let record = BlockRecord { seal, ..Arc::into_inner(record).expect("it was just made") };
        add_block(&chain.database, encode_block(&record, codes), &sealed)?;
        let _left = chain.tree_mut().replace(Arc::new(record));
        self.persist()
    }

    /// The changes of the tries, and new codes.
    fn changes(
        &self,
        hash: B256,
        amendments: &[(Address, Amendment)],
    ) -> Result<(Vec<Change>, NewCodes), Error> {
        let view = self.state(hash)?;
        let (mut changes, mut codes) = (AddressMap::<Change>::default(), Vec::new());
        for (address, amendment) in amendments {
            if !changes.contains_key(address) {
                let account = view.account(*address)?.map_or_else(empty_account, |account| {
                    let trie::Account { nonce, balance, code_hash, .. } = account;
                    AccountInfo { nonce, balance, code_hash }
                });
                let (address, slots) = (*address, Vec::new());
                let change =
                    Change { address, account: Some(account), storage_wiped: false, slots };
                changes.insert(address, change);
            }
            let change = changes.get_mut(address).expect("just inserted");
            let account = change.account.as_mut().expect("an amended account stays");
            match amendment {
                Amendment::Balance(balance) => account.balance = *balance,
                Amendment::Nonce(nonce) => account.nonce = *nonce,
                Amendment::Code(code) => {
                    account.code_hash = keccak256(code);
                    if !code.is_empty() {
                        codes.push((account.code_hash, code.clone()));
                    }
                }
                Amendment::Storage { slot, value } => {
                    if let Some(remote) = &self.shared.chain.remote {
                        remote.ask_slot(keccak256(address), hashed_slot(*slot), *slot);
                    }
                    change.slots.retain(|(other, _)| other != slot);
                    change.slots.push((*slot, *value));
                }
            }
        }
        Ok((changes.into_values().collect(), codes))
    }
}

const fn empty_account() -> AccountInfo {
    AccountInfo { nonce: 0, balance: U256::ZERO, code_hash: KECCAK256_EMPTY }
}

#[cfg(test)]
mod tests;
