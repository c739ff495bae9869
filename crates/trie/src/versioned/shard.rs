use super::{
    NodeAddress, Records, Version,
    cut::{CutTrie, TriePart, apply_slots, by_nibble, sorted},
    key::nibble,
    node::OverlayTree,
    overlay::{Overlay, WalkEnd},
};
use crate::{Account, AccountChange, AccountInfo, EMPTY_ROOT_HASH, Error, limits::CUT_SLOTS};
use alloy_primitives::{B256, U256};
use std::{iter, mem};

/// The key of an account, or of a slot of an account: the hashed address, and the hashed slot.
pub type StateKey = (B256, Option<B256>);

/// A part of a block's state that one thread works on: the accounts whose keys begin with one
/// nibble, or all of a small state, and the storages of these accounts.
///
/// Loading gives the values before the block, without those that were set ahead.
///
/// # Errors
/// [`Error::Record`], [`Error::MalformedRecord`] and [`Error::MalformedValue`], all of which mean
/// that the store is damaged. Nothing is changed then, and loading may be tried again.
#[derive(Debug)]
pub struct Shard<R: Records> {
    records: R,
    /// The accounts, and storages that are not cut.
    pub(crate) part: TriePart,
    pub(crate) storages: Vec<ShardStorage>,
    /// Storages that were cut and then wiped, which may have nodes of the witness.
    retired: Vec<CutTrie>,
    /// The storages in which slots were set ahead.
    ahead: Vec<u32>,
    /// Whether the node above the shard belongs to the witness.
    pub(crate) is_touched: bool,
    /// The error with which work on the shard has failed.
    pub(crate) error: Option<Error>,
}

/// Identifies one of the overlays of a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OverlayId {
    /// With the accounts, and storages that are not cut.
    Accounts,
    /// In a part of a storage that is cut, by the number of the [cut](Shard::cut) and its own.
    Storage { cut: usize, part: usize },
}

/// The storage of an account.
#[derive(Debug)]
pub(crate) struct ShardStorage {
    /// The storage before the block.
    pub(crate) base: Version,
    pub(crate) form: StorageForm,
    /// The root hash after the block, once that is known.
    pub(crate) root: B256,
    /// The number of slots loaded.
    loads_count: usize,
    owner: B256,
    is_ahead: bool,
}

#[derive(Debug)]
pub(crate) enum StorageForm {
    /// Its nodes are in the shard's overlay.
    Whole(OverlayTree),
    Cut(Box<CutTrie>),
}

/// A change of an account, and its storage once that is looked up.
#[derive(Debug)]
pub(crate) struct AccountJob<'a> {
    pub(crate) change: &'a AccountChange,
    pub(crate) storage: Option<u32>,
    /// Whether the parts of the storage are worked on elsewhere.
    pub(crate) is_taken: bool,
}

impl<R: Records> Shard<R> {
    pub(crate) fn new(records: R, part: TriePart) -> Self {
        Self {
            records,
            part,
            storages: Vec::new(),
            retired: Vec::new(),
            ahead: Vec::new(),
            is_touched: false,
            error: None,
        }
    }

    /// Reads an account: its path belongs to the witness.
    ///
    /// # Errors
    /// See [`Shard`].
    pub fn touch(&mut self, hashed_address: &B256) -> Result<Option<Account>, Error> {
        let leaf = self.find(hashed_address, true)?;
        leaf.map(|leaf| self.part.overlay.base_account(leaf)).transpose()
    }

    /// Reads a slot, zero if it is not set: its path, and that of the account, belong to the
    /// witness.
    ///
    /// # Errors
    /// See [`Shard`].
    pub fn touch_slot(&mut self, hashed_address: &B256, hashed_slot: &B256) -> Result<U256, Error> {
        let Some(leaf) = self.find(hashed_address, true)? else { return Ok(U256::ZERO) };
        let Some(index) = self.loaded_storage(leaf) else { return Ok(U256::ZERO) };
        let (found, part) = self.walk_slot(index, hashed_slot, true)?;
        let overlay = match part {
            Some(part) => &part.overlay,
            None => &self.part.overlay,
        };
        match found {
            WalkEnd::Leaf(leaf) => overlay.base_slot(leaf),
            WalkEnd::Vacancy | WalkEnd::Divergence => Ok(U256::ZERO),
        }
    }

    /// As [`touch`](Self::touch) and [`touch_slot`](Self::touch_slot) of all of these.
    ///
    /// # Errors
    /// See [`Shard`].
    pub fn touch_all(&mut self, keys: &[StateKey]) -> Result<(), Error> {
        for (hashed_address, slot) in keys {
            match slot {
                Some(slot) => self.touch_slot(hashed_address, slot).map(drop)?,
                None => self.touch(hashed_address).map(drop)?,
            }
        }
        Ok(())
    }

    /// The leaf of an account.
    fn find(&mut self, hashed_address: &B256, is_captured: bool) -> Result<Option<usize>, Error> {
        self.is_touched |= is_captured;
        let TriePart { overlay, tree } = &mut self.part;
        match overlay.walk(&self.records, tree, hashed_address, is_captured)? {
            WalkEnd::Leaf(leaf) => Ok(Some(leaf)),
            WalkEnd::Vacancy | WalkEnd::Divergence => Ok(None),
        }
    }

    /// The storage that an account had before the block; `None` if that was empty.
    fn loaded_storage(&mut self, leaf: usize) -> Option<u32> {
        let account = self.part.overlay.account(leaf);
        if account.storage.is_some() || account.base_storage.address.is_none() {
            return account.storage;
        }
        let (base, owner) = (account.base_storage, self.part.overlay.leaves[leaf].key);
        let index = self.add_storage(base, owner);
        self.part.overlay.account_mut(leaf).storage = Some(index);
        Some(index)
    }

    fn add_storage(&mut self, base: Version, owner: B256) -> u32 {
        let form = StorageForm::Whole(self.part.overlay.tree(&base, false));
        let root = base.root;
        self.storages.push(ShardStorage {
            base,
            form,
            root,
            loads_count: 0,
            owner,
            is_ahead: false,
        });
        (self.storages.len() - 1) as u32
    }

    /// Follows a slot's key. If the storage is cut, the leaf found is that part's.
    fn walk_slot(
        &mut self,
        index: u32,
        hashed_slot: &B256,
        is_captured: bool,
    ) -> Result<(WalkEnd, Option<&mut TriePart>), Error> {
        let storage = &mut self.storages[index as usize];
        storage.loads_count += 1;
        if storage.loads_count > CUT_SLOTS {
            storage.cut(&mut self.part)?;
        }
        match &mut storage.form {
            StorageForm::Whole(tree) => {
                let overlay = &mut self.part.overlay;
                Ok((overlay.walk(&self.records, tree, hashed_slot, is_captured)?, None))
            }
            StorageForm::Cut(cut) => {
                cut.is_captured |= is_captured;
                let part = &mut cut.parts[nibble(hashed_slot, 0)];
                let (overlay, tree) = (&mut part.overlay, &mut part.tree);
                let found = overlay.walk(&self.records, tree, hashed_slot, is_captured)?;
                Ok((found, Some(part)))
            }
        }
    }

    /// Sets the current values of an account and its slots while the block still runs, so that it
    /// can be hashed ahead. Only what replaces one value by another is set: an account that exists,
    /// a slot that is not zero and does not become zero. Everything else is left for the end, and
    /// so is the witness: nodes loaded here are not captured. `None` leaves the account as it is.
    ///
    /// # Errors
    /// See [`Shard`].
    pub fn set_ahead(
        &mut self,
        hashed_address: &B256,
        account: Option<AccountInfo>,
        slots: &[(B256, U256)],
    ) -> Result<(), Error> {
        let Some(leaf) = self.find(hashed_address, false)? else { return Ok(()) };
        if let Some(AccountInfo { nonce, balance, code_hash }) = account {
            let storage_root = self.part.overlay.account(leaf).account.storage_root;
            let account = Account { nonce, balance, storage_root, code_hash };
            self.replace_ahead(leaf, account);
        }
        let Some(index) = self.loaded_storage(leaf) else { return Ok(()) };
        for (slot, value) in slots.iter().filter(|(_, value)| !value.is_zero()) {
            self.set_slot_ahead(index, slot, *value)?;
        }
        Ok(())
    }

    /// Gives the leaf at the end of the latest walk another account, for now.
    fn replace_ahead(&mut self, leaf: usize, account: Account) {
        let TriePart { overlay, tree } = &mut self.part;
        if !overlay.leaves[leaf].is_ahead {
            tree.ahead.push(leaf as u32);
        }
        overlay.replace_account(leaf, account, true);
    }

    fn set_slot_ahead(&mut self, index: u32, slot: &B256, value: U256) -> Result<(), Error> {
        let (WalkEnd::Leaf(leaf), _) = self.walk_slot(index, slot, false)? else { return Ok(()) };
        let storage = &mut self.storages[index as usize];
        if !mem::replace(&mut storage.is_ahead, true) {
            self.ahead.push(index);
        }
        let (overlay, tree) = match &mut storage.form {
            StorageForm::Whole(tree) => (&mut self.part.overlay, tree),
            StorageForm::Cut(cut) => {
                let part = &mut cut.parts[nibble(slot, 0)];
                (&mut part.overlay, &mut part.tree)
            }
        };
        if !overlay.leaves[leaf].is_ahead {
            tree.ahead.push(leaf as u32);
        }
        overlay.replace_slot(leaf, value, true);
        Ok(())
    }

    /// Hashes at most `budget_nodes` of the nodes changed by values set ahead. Returns the number
    /// hashed, which is lower if no more are left.
    ///
    /// # Errors
    /// See [`Shard`].
    pub fn hash_ahead(&mut self, budget_nodes: usize) -> Result<usize, Error> {
        let mut left = budget_nodes;
        let mut roots = Vec::with_capacity(self.ahead.len());
        for &index in &self.ahead {
            match &mut self.storages[index as usize].form {
                StorageForm::Whole(tree) => roots.push(tree.root),
                StorageForm::Cut(cut) => {
                    for part in &mut cut.parts {
                        left -= part.overlay.hash([part.tree.root], left);
                    }
                }
            }
        }
        left -= self.part.overlay.hash(roots, left);
        for index in self.ahead.clone() {
            self.set_root_ahead(index)?;
        }
        left -= self.part.overlay.hash([self.part.tree.root], left);
        Ok(budget_nodes - left)
    }

    /// Gives an account the storage root that was hashed ahead, if it was.
    fn set_root_ahead(&mut self, index: u32) -> Result<(), Error> {
        let ShardStorage { form: StorageForm::Whole(tree), owner, .. } =
            &self.storages[index as usize]
        else {
            return Ok(());
        };
        let reference = self.part.overlay.root_reference(tree);
        let Some(hash) = reference.as_ref().and_then(|reference| reference.hash()) else {
            return Ok(());
        };
        let (storage_root, owner) = (B256::from(*hash), *owner);
        let Some(leaf) = self.find(&owner, false)? else { return Ok(()) };
        let account = Account { storage_root, ..self.part.overlay.account(leaf).account };
        self.replace_ahead(leaf, account);
        Ok(())
    }

    /// Takes the storage of an account out, to have its parts worked on elsewhere; `None` if it
    /// cannot be cut.
    pub(crate) fn take_cut(
        &mut self,
        hashed_address: &B256,
    ) -> Result<Option<(u32, Box<CutTrie>)>, Error> {
        let Some(leaf) = self.find(hashed_address, true)? else { return Ok(None) };
        let Some(index) = self.loaded_storage(leaf) else { return Ok(None) };
        let storage = &mut self.storages[index as usize];
        if let StorageForm::Whole(tree) = &mut storage.form {
            self.part.overlay.load_root(&self.records, tree, &B256::ZERO, true)?;
        }
        storage.cut(&mut self.part)?;
        let empty = StorageForm::Whole(self.part.overlay.tree(&Version::EMPTY, false));
        match mem::replace(&mut storage.form, empty) {
            StorageForm::Cut(mut cut) => {
                cut.is_captured = true;
                Ok(Some((index, cut)))
            }
            whole => {
                storage.form = whole;
                Ok(None)
            }
        }
    }

    /// Applies the changes of the storages and hashes them.
    pub(crate) fn apply_storages(&mut self, jobs: &mut [AccountJob<'_>]) -> Result<(), Error> {
        let mut roots = Vec::new();
        for job in jobs.iter_mut().filter(|job| job.change.account.is_some() && !job.is_taken) {
            let Some(index) = self.changed_storage(job.change)? else { continue };
            job.storage = Some(index);
            let storage = &mut self.storages[index as usize];
            match &mut storage.form {
                StorageForm::Whole(tree) => {
                    let slots = sorted(job.change.storage.iter().collect());
                    apply_slots(&self.records, &mut self.part.overlay, tree, &slots)?;
                    roots.push((index, tree.root));
                }
                StorageForm::Cut(cut) => {
                    cut.is_captured |= !job.change.storage.is_empty();
                    let slots = by_nibble(&job.change.storage);
                    for (part, slots) in cut.parts.iter_mut().zip(slots) {
                        apply_part(&self.records, part, slots)?;
                    }
                    storage.root = cut.join(&self.records)?;
                }
            }
        }
        self.part.overlay.hash(roots.iter().map(|(_, root)| *root), usize::MAX);
        for (index, _) in roots {
            let storage = &mut self.storages[index as usize];
            let StorageForm::Whole(tree) = &storage.form else { unreachable!("it was whole") };
            let reference = self.part.overlay.root_reference(tree);
            storage.root = reference.map_or(EMPTY_ROOT_HASH, |reference| reference.root_hash());
        }
        Ok(())
    }

    /// The storage to which a change of an account that is to exist is to be applied; `None` if
    /// that has nothing to do with the storage.
    fn changed_storage(&mut self, change: &AccountChange) -> Result<Option<u32>, Error> {
        let is_listed = !change.storage.is_empty() || change.storage_wiped;
        if !is_listed && self.ahead.is_empty() {
            return Ok(None);
        }
        let leaf = self.find(&change.hashed_address, true)?;
        let loaded = leaf.and_then(|leaf| self.part.overlay.account(leaf).storage);
        let is_ahead = loaded.is_some_and(|index| self.storages[index as usize].is_ahead);
        if !is_listed && !is_ahead {
            return Ok(None);
        }
        let index = match leaf.and_then(|leaf| self.loaded_storage(leaf)) {
            Some(index) => index,
            None => self.add_storage(Version::EMPTY, change.hashed_address),
        };
        if change.storage_wiped {
            let empty = StorageForm::Whole(self.part.overlay.tree(&Version::EMPTY, false));
            let old = mem::replace(&mut self.storages[index as usize].form, empty);
            if let StorageForm::Cut(cut) = old {
                self.retired.push(*cut);
            }
        }
        Ok(Some(index))
    }

    /// Applies the changes of the accounts, the storages of which have been hashed, and hashes
    /// what that has changed.
    pub(crate) fn apply_accounts(&mut self, jobs: &[AccountJob<'_>]) -> Result<(), Error> {
        self.is_touched |= !jobs.is_empty();
        let TriePart { overlay, tree } = &mut self.part;
        for AccountJob { change, storage, .. } in jobs {
            let Some(info) = &change.account else { continue };
            let storage = storage.map(|index| (index, self.storages[index as usize].root));
            overlay.set_account(&self.records, tree, &change.hashed_address, info, storage)?;
        }
        overlay.take_back(&self.records, tree)?;
        for AccountJob { change, .. } in jobs.iter().filter(|job| job.change.account.is_none()) {
            overlay.remove(&self.records, tree, &change.hashed_address)?;
        }
        self.part.hash();
        Ok(())
    }

    /// The addresses of the nodes of the witness.
    pub(crate) fn captured(&self) -> impl Iterator<Item = NodeAddress> {
        let own = self.part.overlay.captured().map(|origin| origin.address());
        own.chain(self.cuts().flat_map(|cut| cut.captured()))
    }

    /// The loaded nodes and where they are, storages that are cut last.
    pub(crate) fn overlays(&self) -> impl Iterator<Item = (OverlayId, &Overlay)> {
        let parts = self.numbered_cuts().flat_map(|(number, cut)| {
            let place = move |part| OverlayId::Storage { cut: number, part };
            (0..).zip(&cut.parts).map(move |(index, part)| (place(index), &part.overlay))
        });
        iter::once((OverlayId::Accounts, &self.part.overlay)).chain(parts)
    }

    /// The loaded nodes at a place that [`overlays`](Self::overlays) has.
    pub(crate) fn overlay(&self, place: OverlayId) -> Option<&Overlay> {
        match place {
            OverlayId::Accounts => Some(&self.part.overlay),
            OverlayId::Storage { cut, part } => Some(&self.cut(cut)?.parts.get(part)?.overlay),
        }
    }

    /// The storages that are cut, or were when they were wiped.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = &CutTrie> {
        self.numbered_cuts().map(|(_, cut)| cut)
    }

    fn numbered_cuts(&self) -> impl Iterator<Item = (usize, &CutTrie)> {
        let numbers = 0..self.storages.len() + self.retired.len();
        numbers.filter_map(|number| Some((number, self.cut(number)?)))
    }

    /// A cut by its number: first those of storages, then those that were wiped. `None` if the
    /// storage is not cut.
    fn cut(&self, number: usize) -> Option<&CutTrie> {
        match self.storages.get(number).map(|storage| &storage.form) {
            Some(StorageForm::Cut(cut)) => Some(cut),
            Some(StorageForm::Whole(_)) => None,
            None => self.retired.get(number - self.storages.len()),
        }
    }
}

impl ShardStorage {
    /// Cuts the storage, if its root is a branch that is loaded.
    fn cut(&mut self, shard: &mut TriePart) -> Result<(), Error> {
        if let StorageForm::Whole(tree) = &mut self.form
            && let Some(cut) = CutTrie::out_of(&mut shard.overlay, tree)?
        {
            self.form = StorageForm::Cut(Box::new(cut));
        }
        Ok(())
    }
}

/// Reads slots of a part.
pub(crate) fn touch_part<R: Records>(
    records: &R,
    TriePart { overlay, tree }: &mut TriePart,
    slots: &[B256],
) -> Result<(), Error> {
    slots.iter().try_for_each(|slot| overlay.walk(records, tree, slot, true).map(drop))
}

/// Applies the changes of the slots of a part, and hashes them.
pub(crate) fn apply_part<R: Records>(
    records: &R,
    part: &mut TriePart,
    slots: Vec<&(B256, U256)>,
) -> Result<(), Error> {
    apply_slots(records, &mut part.overlay, &mut part.tree, &sorted(slots))?;
    part.hash();
    Ok(())
}
