//! Floor 5. Ranges of the state after a block or inside it, in the order of hashed keys, and which
//! accounts differ between two blocks.

use crate::chain::record::BlockRecord;
use crate::engine::Engine;
use crate::error::Error;
use crate::read::view::StorageRange;
use alloy_primitives::map::B256Map;
use alloy_primitives::{Address, B256, U256, keccak256};
use execution::{Deadline, SealedBlock, Senders, Stepped, Traced, step_through};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trie::hashed_slot;
use trie::versioned::{account, changed_accounts, slots_from};
use witness::Change;

/// An account of one block's state that another's does not have like that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModifiedAccount {
    /// The hash of its address.
    pub hashed_address: B256,
    /// The address, if a block between the two names it.
    pub address: Option<Address>,
}

impl Engine {
    /// The slots of an account before the transaction at `index` of a block, from a hashed key on,
    /// at most so many; `None` where it has none at all. The transactions before it run again.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`] for the parent; [`Error::Pruned`] when the state after it is not
    /// kept any more.
    pub fn storage_range(
        &self,
        block: &BlockRecord,
        index: usize,
        address: Address,
        (start, most): (B256, usize),
    ) -> Result<Option<StorageRange>, Error> {
        let parent = block.block.header.parent_hash;
        let mut changed: Option<Change> = None;
        self.on_state(parent, |_, state| {
            step_through(self.chain(), &block.block, &block.senders, state, |count, _, so_far| {
                if count < index {
                    return Ok(ControlFlow::Continue(()));
                }
                changed = so_far.changes.iter().find(|change| change.address == address).cloned();
                Ok(ControlFlow::Break(()))
            })
        })?;
        let is_wiped = changed.as_ref().is_some_and(|it| it.storage_wiped || it.account.is_none());
        let slots = changed.into_iter().flat_map(|change| change.slots);
        let changed: BTreeMap<_, _> =
            slots.map(|(slot, value)| (hashed_slot(slot), value)).collect();
        let view = self.state(parent)?;
        let (database, version) = (self.database(), view.version());
        let nodes = database.nodes();
        let found = account(nodes, &version, &keccak256(address))?;
        let storage = found.map(|(_, storage)| storage).filter(|_| !is_wiped);
        let storage = storage.filter(|storage| !storage.address.is_none());
        let mut slots = BTreeMap::new();
        if let Some(storage) = storage {
            // So many that enough are left without those that are removed.
            let enough = most + 1 + changed.len();
            slots_from(nodes, &storage, &start, |key, value| {
                slots.insert(key, value);
                proceed(slots.len() < enough)
            })?;
            if slots.len() == enough {
                // Others may be behind the last of them.
                let last = slots.keys().next_back().copied().unwrap_or_default();
                slots.extend(changed.range(start..=last).map(|(key, value)| (*key, *value)));
            } else {
                slots.extend(changed.range(start..).map(|(key, value)| (*key, *value)));
            }
        } else {
            if changed.values().all(U256::is_zero) {
                return Ok(None);
            }
            slots.extend(changed.range(start..).map(|(key, value)| (*key, *value)));
        }
        slots.retain(|_, value| !value.is_zero());
        let next = slots.keys().nth(most).copied();
        Ok(Some(StorageRange { slots: slots.into_iter().take(most).collect(), next }))
    }

    /// The state root after each transaction of a block, in order, which runs again on the state
    /// after its parent. It ends before a transaction that breaks a rule.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`] for the parent; [`Error::Pruned`] when the state after it is not
    /// kept any more.
    pub fn intermediate_roots(
        &self,
        block: &SealedBlock,
        senders: &dyn Senders,
        deadline: &Deadline,
    ) -> Result<Traced<Vec<B256>>, Error> {
        let (mut roots, mut is_over) = (Vec::new(), false);
        let most = block.body.transactions.len();
        self.on_rooted_state(block.header.parent_hash, |_, state| {
            step_through(self.chain(), block, senders, state, |count, state, so_far| {
                if count > 0 {
                    roots.push(execution::RootedState::root_after(state, so_far.changes.clone())?);
                }
                is_over = deadline.is_over();
                Ok(proceed(count < most && !is_over))
            })
        })?;
        Ok(if is_over { Traced::OutOfTime } else { Traced::Done(roots) })
    }

    /// The accounts of one block's state that another, earlier one does not have like that, in the
    /// order of their hashed addresses, at most so many. For the addresses the blocks between the
    /// two run again.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when one of the states is not kept any more.
    pub fn modified_accounts(
        &self,
        before: &BlockRecord,
        after: &BlockRecord,
        most: usize,
        deadline: &Deadline,
    ) -> Result<Traced<Vec<ModifiedAccount>>, Error> {
        let versions = [self.state(before.hash())?.version(), self.state(after.hash())?.version()];
        let mut modified = B256Map::default();
        let mut order = Vec::new();
        changed_accounts(self.database().nodes(), &versions[0], &versions[1], |key| {
            order.push(key);
            modified.insert(key, None);
            proceed(order.len() <= most)
        })?;
        if order.len() > most {
            return Ok(Traced::TooLong);
        }
        let mut hash = after.hash();
        let mut unnamed = order.len();
        while unnamed > 0 && hash != before.hash() {
            if deadline.is_over() {
                return Ok(Traced::OutOfTime);
            }
            let Some(record) = self.block(hash)?.filter(|it| it.number() > before.number()) else {
                break;
            };
            for address in self.changed_addresses(&record)? {
                if let Some(name) = modified.get_mut(&keccak256(address))
                    && name.is_none()
                {
                    *name = Some(address);
                    unnamed -= 1;
                }
            }
            hash = record.block.header.parent_hash;
        }
        let named = |key| ModifiedAccount { hashed_address: key, address: modified[&key] };
        Ok(Traced::Done(order.into_iter().map(named).collect()))
    }

    /// The accounts that a block changes.
    fn changed_addresses(&self, record: &BlockRecord) -> Result<Vec<Address>, Error> {
        let (block, senders) = (&record.block, &record.senders);
        let last = block.body.transactions.len() + 1;
        let mut addresses = Vec::new();
        let stepped = self.on_state(block.header.parent_hash, |_, state| {
            step_through(self.chain(), block, senders, state, |count, _, so_far| {
                if count == last {
                    addresses.extend(so_far.changes.iter().map(|change| change.address));
                }
                Ok(ControlFlow::Continue(()))
            })
        })?;
        match stepped {
            Stepped::Done => Ok(addresses),
            Stepped::Invalid(reason) => Err(Error::Evm(reason)),
        }
    }
}

const fn proceed(is_wanted: bool) -> ControlFlow<()> {
    if is_wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}
