//! Floor 5. A whole state by names that callers bring, since its tries have hashes of them alone.

use crate::engine::Engine;
use crate::error::Error;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use std::collections::{BTreeMap, BTreeSet};
use trie::bulk::StateBuilder;
use trie::versioned::MemoryRecords;
use trie::{AccountInfo, hashed_slot};

/// Accounts, and slots of them.
pub type StateNames = BTreeMap<Address, BTreeSet<U256>>;

/// An account of a whole state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeAccount {
    /// Its address.
    pub address: Address,
    /// The nonce.
    pub nonce: u64,
    /// The balance, in wei.
    pub balance: U256,
    /// The code, empty where it has none.
    pub code: Bytes,
    /// Its slots that are not zero.
    pub storage: BTreeMap<U256, U256>,
}

impl Engine {
    /// All accounts of the state after a block, by address; `None` where an account or a slot is
    /// not among `names`, as the state's root tells. Names of what is not there do no harm.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when the state is not kept any more;
    /// [`Error::State`].
    #[expect(clippy::missing_panics_doc, reason = "keys are sorted, each once")]
    pub fn whole_state(
        &self,
        hash: B256,
        names: &StateNames,
    ) -> Result<Option<Vec<WholeAccount>>, Error> {
        let view = self.state(hash)?;
        let mut hashed: Vec<_> = names.iter().map(|name| (keccak256(name.0), name)).collect();
        hashed.sort_unstable();
        let mut records = MemoryRecords::default();
        let mut builder = StateBuilder::new(&mut records);
        let mut accounts = Vec::new();
        for (key, (&address, slots)) in hashed {
            let Some(account) = view.account(address)? else { continue };
            let (nonce, balance, code_hash) = (account.nonce, account.balance, account.code_hash);
            let info = AccountInfo { nonce, balance, code_hash };
            builder.account(key, info).expect("sorted, each once");
            let mut storage = BTreeMap::new();
            let mut slots: Vec<_> = slots.iter().map(|slot| (hashed_slot(*slot), *slot)).collect();
            slots.sort_unstable();
            for (key, slot) in slots {
                let value = view.storage(address, slot)?;
                builder.slot(key, value).expect("sorted, each once");
                if !value.is_zero() {
                    storage.insert(slot, value);
                }
            }
            let code = view.code(address)?;
            accounts.push(WholeAccount { address, nonce, balance, code, storage });
        }
        let is_whole = builder.finish().root == view.root();
        accounts.sort_unstable_by_key(|account| account.address);
        Ok(is_whole.then_some(accounts))
    }
}
