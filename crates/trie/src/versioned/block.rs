use super::{
    NodeAddress, RecordSink, Records, Version,
    cut::{CutRoot, CutTrie, JoinedRoot, TriePart, branch_root, by_nibble, join},
    key::nibble,
    listing::Lister,
    overlay::Overlay,
    shard::{AccountJob, OverlayId, Shard, StateKey, StorageForm, apply_part, touch_part},
    unit::{WorkUnit, run_all},
    write::VersionWriter,
};
use crate::{AccountChange, Error, NodeList, StateChanges, limits::CUT_SLOTS};
use alloy_primitives::{B256, bytes};
use std::{mem, sync::Arc};

/// The effect of one block on a version of the state.
///
/// The block's accounts and slots are read through the [`Shard`]s, on any threads; its changes
/// are set with [`finish`](Self::finish); then [`write`](Self::write) makes the next version, and
/// the witness can be asked for. The root, the records of the witness and the meaning of changes
/// are exactly those of [`StateTrie`](crate::StateTrie), which is this structure's slow twin.
///
/// After an error a `BlockTrie` is of no more use. Dropping it leaves no trace.
///
/// ```
/// use alloy_primitives::{B256, KECCAK256_EMPTY, U256};
/// use deponent_trie::versioned::{BlockTrie, MemoryRecords, Version, account, run_serially};
/// use deponent_trie::{AccountChange, AccountInfo, StateChanges};
///
/// let mut records = MemoryRecords::default();
/// let mut block = BlockTrie::new(records.clone(), Version::EMPTY)?;
/// let info = AccountInfo { nonce: 1, balance: U256::from(2), code_hash: KECCAK256_EMPTY };
/// let hashed_address = B256::repeat_byte(3);
/// let change = AccountChange {
///     hashed_address,
///     account: Some(info),
///     storage_wiped: false,
///     storage: vec![(B256::repeat_byte(4), U256::from(5))],
/// };
/// let root = block.finish(&StateChanges { accounts: vec![change] }, &run_serially)?;
/// let version = block.write(&mut records);
/// assert_eq!(version.root, root);
/// let (found, _storage) = account(&records, &version, &hashed_address)?.expect("it was set");
/// assert_eq!(found.balance, info.balance);
/// # Ok::<(), deponent_trie::Error>(())
/// ```
#[derive(Debug)]
pub struct BlockTrie<R: Records> {
    records: R,
    parent: Version,
    /// The root of the state if there are sixteen shards.
    root: Option<CutRoot>,
    shards: Vec<Shard<R>>,
    finished: Option<FinishedBlock>,
}

/// The state after a block.
#[derive(Debug)]
struct FinishedBlock {
    root: B256,
    joined: JoinedRoot,
}

/// A piece of the records that were loaded into one of a block's overlays.
struct ArenaPiece<R: Records> {
    of: Arc<BlockTrie<R>>,
    shard: usize,
    place: OverlayId,
    number: usize,
}

impl<R: Records + Clone> AsRef<[u8]> for ArenaPiece<R> {
    fn as_ref(&self) -> &[u8] {
        let overlay = self.of.shards[self.shard].overlay(self.place).expect("it was there");
        &overlay.arena.pieces()[self.number]
    }
}

/// A large storage that is worked on part by part.
struct TakenStorage<'a> {
    shard: usize,
    storage: u32,
    change: &'a AccountChange,
    cut: Box<CutTrie>,
    errors: [Option<Error>; 16],
}

/// A large storage that is read part by part.
struct StorageRead {
    shard: usize,
    storage: u32,
    cut: Box<CutTrie>,
    slots: [Vec<B256>; 16],
    errors: [Option<Error>; 16],
}

impl<R: Records + Clone> BlockTrie<R> {
    /// A block on top of this version, with nothing loaded but the root.
    ///
    /// # Errors
    /// [`Error::Record`] and [`Error::MalformedRecord`].
    pub fn new(records: R, parent: Version) -> Result<Self, Error> {
        let root = branch_root(&records, &parent)?;
        let parts = match &root {
            Some(root) => TriePart::below(root, true)?,
            None => vec![TriePart::whole(&parent, true)],
        };
        let shards = parts.into_iter().map(|part| Shard::new(records.clone(), part)).collect();
        Ok(Self { records, parent, root, shards, finished: None })
    }

    /// The version before the block.
    pub fn parent(&self) -> Version {
        self.parent
    }

    /// The number of shards: sixteen, or one if the root of the state is no branch.
    pub fn shards_count(&self) -> usize {
        if self.root.is_some() { 16 } else { 1 }
    }

    /// The index of the shard that has this account.
    pub fn shard_of(&self, hashed_address: &B256) -> usize {
        if self.root.is_some() { nibble(hashed_address, 0) } else { 0 }
    }

    /// The shard that has this account.
    ///
    /// # Panics
    /// If the shards are taken.
    pub fn shard_mut(&mut self, hashed_address: &B256) -> &mut Shard<R> {
        let index = self.shard_of(hashed_address);
        &mut self.shards[index]
    }

    /// Hands out the shards, in the order of [`shard_of`](Self::shard_of), to be worked on
    /// elsewhere. They have to be put back before anything else.
    pub fn take_shards(&mut self) -> Vec<Shard<R>> {
        mem::take(&mut self.shards)
    }

    /// Takes the shards back, in the same order.
    ///
    /// # Panics
    /// If not as many are put back as were taken.
    pub fn put_shards(&mut self, shards: Vec<Shard<R>>) {
        assert!(self.shards.is_empty(), "the shards were not taken");
        assert_eq!(shards.len(), self.shards_count(), "all shards are put back");
        self.shards = shards;
    }

    /// Reads all of these keys, of any shards. Their paths belong to the witness, like those of
    /// [`Shard::touch`] and [`Shard::touch_slot`].
    ///
    /// The work is handed to `run` as in [`finish`](Self::finish), in one round.
    ///
    /// # Errors
    /// See [`Shard`].
    ///
    /// # Panics
    /// If a unit was not run.
    pub fn touch_all(
        &mut self,
        mut keys: Vec<StateKey>,
        run: &dyn Fn(&mut [WorkUnit<'_>]),
    ) -> Result<(), Error> {
        assert_eq!(self.shards.len(), self.shards_count(), "the shards were put back");
        // Sorted, the keys of a storage are adjacent, and their nodes are near each other.
        keys.sort_unstable();
        let mut reads: Vec<Vec<StateKey>> = self.shards.iter().map(|_| Vec::new()).collect();
        let mut storages = Vec::new();
        for keys in keys.chunk_by(|(one, _), (other, _)| one == other) {
            let hashed_address = &keys[0].0;
            let shard = self.shard_of(hashed_address);
            let cut = match keys.len() > CUT_SLOTS {
                true => self.shards[shard].take_cut(hashed_address)?,
                false => None,
            };
            let Some((storage, cut)) = cut else {
                reads[shard].extend(keys);
                continue;
            };
            let mut slots = [const { Vec::new() }; 16];
            for slot in keys.iter().filter_map(|(_, slot)| *slot) {
                slots[nibble(&slot, 0)].push(slot);
            }
            storages.push(StorageRead { shard, storage, cut, slots, errors: [const { None }; 16] });
        }
        let mut units = read_units(&self.records, &mut self.shards, &reads, &mut storages);
        run_all(&mut units, run);
        drop(units);
        for StorageRead { shard, storage, cut, mut errors, .. } in storages {
            if let Some(error) = errors.iter_mut().find_map(Option::take) {
                return Err(error);
            }
            self.shards[shard].storages[storage as usize].form = StorageForm::Cut(cut);
        }
        self.first_error()
    }

    /// Applies the block's changes and returns the state root after it.
    ///
    /// The work is handed to `run` in two rounds of units, those with most changes first. The units
    /// of a round are independent: `run` calls [`WorkUnit::run`] on each of them, on any thread and
    /// in any order, and returns when all are done.
    ///
    /// # Errors
    /// [`Error::Record`], [`Error::MalformedRecord`] and [`Error::MalformedValue`].
    ///
    /// # Panics
    /// If an account, or a slot of an account, is listed twice; if a unit was not run; and if
    /// changes were applied before.
    pub fn finish(
        &mut self,
        changes: &StateChanges,
        run: &dyn Fn(&mut [WorkUnit<'_>]),
    ) -> Result<B256, Error> {
        assert!(self.finished.is_none(), "a block is finished once");
        assert_eq!(self.shards.len(), self.shards_count(), "the shards were put back");
        let mut jobs = self.jobs(changes);
        let mut taken = self.take_cuts(&mut jobs)?;
        let mut units = storage_units(&self.records, &mut self.shards, &mut jobs, &mut taken);
        run_all(&mut units, run);
        drop(units);
        self.first_error()?;
        self.put_cuts(taken, &mut jobs)?;
        let mut units = account_units(&mut self.shards, &jobs);
        run_all(&mut units, run);
        drop(units);
        self.first_error()?;
        self.join()
    }

    /// The changes of each shard, in order.
    fn jobs<'a>(&self, changes: &'a StateChanges) -> Vec<Vec<AccountJob<'a>>> {
        let mut changes: Vec<&AccountChange> = changes.accounts.iter().collect();
        changes.sort_unstable_by_key(|change| change.hashed_address);
        let is_unique = changes.is_sorted_by(|a, b| a.hashed_address < b.hashed_address);
        assert!(is_unique, "an account is changed at most once");
        let mut jobs: Vec<Vec<AccountJob<'_>>> = self.shards.iter().map(|_| Vec::new()).collect();
        for change in changes {
            let job = AccountJob { change, storage: None, is_taken: false };
            jobs[self.shard_of(&change.hashed_address)].push(job);
        }
        jobs
    }

    /// Takes the storages with many changes from their shards.
    fn take_cuts<'a>(
        &mut self,
        jobs: &mut [Vec<AccountJob<'a>>],
    ) -> Result<Vec<TakenStorage<'a>>, Error> {
        let mut taken = Vec::new();
        for (index, (shard, jobs)) in self.shards.iter_mut().zip(jobs).enumerate() {
            for job in jobs.iter_mut() {
                let change = job.change;
                let is_large = change.storage.len() > CUT_SLOTS;
                if !is_large || change.account.is_none() || change.storage_wiped {
                    continue;
                }
                if let Some((storage, cut)) = shard.take_cut(&change.hashed_address)? {
                    job.is_taken = true;
                    job.storage = Some(storage);
                    let errors = [const { None }; 16];
                    taken.push(TakenStorage { shard: index, storage, change, cut, errors });
                }
            }
        }
        Ok(taken)
    }

    /// Puts the storages with many changes back, and joins their roots.
    fn put_cuts(
        &mut self,
        taken: Vec<TakenStorage<'_>>,
        jobs: &mut [Vec<AccountJob<'_>>],
    ) -> Result<(), Error> {
        debug_assert_eq!(jobs.len(), self.shards.len());
        for mut taken in taken {
            if let Some(error) = taken.errors.iter_mut().find_map(Option::take) {
                return Err(error);
            }
            let storage = &mut self.shards[taken.shard].storages[taken.storage as usize];
            storage.root = taken.cut.join(&self.records)?;
            storage.form = StorageForm::Cut(taken.cut);
        }
        Ok(())
    }

    fn first_error(&mut self) -> Result<(), Error> {
        self.shards.iter_mut().find_map(|shard| shard.error.take()).map_or(Ok(()), Err)
    }

    /// Joins the root of the state.
    fn join(&mut self) -> Result<B256, Error> {
        let (joined, root) = if self.root.is_some() {
            let mut parts: Vec<_> = self.shards.iter_mut().map(|shard| &mut shard.part).collect();
            join(&self.records, &mut parts)?
        } else {
            let TriePart { overlay, tree } = &self.shards[0].part;
            match overlay.root_reference(tree) {
                None => (JoinedRoot::Empty, Version::EMPTY.root),
                Some(reference) => (JoinedRoot::One(0), reference.root_hash()),
            }
        };
        self.finished = Some(FinishedBlock { root, joined });
        Ok(root)
    }

    /// Writes the nodes that are not in the parent's version, children before parents and in the
    /// order of keys, and returns the version after the block: the parent's if nothing changed.
    ///
    /// # Panics
    /// If the block is not finished.
    pub fn write(&self, sink: &mut impl RecordSink) -> Version {
        let finished = self.finished.as_ref().expect("the block is finished");
        if finished.root == self.parent.root {
            return self.parent;
        }
        let shards: Vec<_> =
            self.shards.iter().map(|shard| (&shard.part, &shard.storages[..])).collect();
        let address = VersionWriter::new(sink).joined(&finished.joined, &shards);
        Version { root: finished.root, address }
    }

    /// The nodes of the parent's state that the block has read so far, or has needed to apply its
    /// changes: the `state` of its witness. Each once, in lexicographic order. Short lists are
    /// copied; longer ones are slices of the loaded records, which keep this `BlockTrie` alive.
    ///
    /// The work is handed to `run` as in [`finish`](Self::finish), in one round: as many units as
    /// are worth it, and no more than `threads`.
    pub fn witness(
        self: &Arc<Self>,
        lister: &mut Lister,
        threads: usize,
        run: &dyn Fn(&mut [WorkUnit<'_>]),
    ) -> NodeList
    where
        R: Send + Sync + 'static,
    {
        let roots: Vec<_> = self.captured_roots().map(CutRoot::rlp).collect();
        let shards = self.shards.iter().enumerate();
        let (places, overlays): (Vec<_>, Vec<_>) = shards
            .flat_map(|(number, shard)| {
                shard.overlays().map(move |(place, overlay)| ((number, place), overlay))
            })
            .filter(|(_, overlay)| !overlay.to_list.is_empty())
            .unzip();
        let owner = |overlay: usize, number| {
            let (shard, place) = places[overlay];
            bytes::Bytes::from_owner(ArenaPiece { of: self.clone(), shard, place, number })
        };
        lister.list_captured(&overlays, &roots, threads, run, owner)
    }

    /// The number of nodes of the witness and their total length in bytes. Duplicates count twice.
    pub fn witness_size(&self) -> (usize, usize) {
        let captured = self.overlays().flat_map(Overlay::captured);
        let nodes = captured.map(|origin| origin.rlp_bytes());
        let nodes = nodes.chain(self.captured_roots().map(|root| root.rlp().len()));
        nodes.fold((0, 0), |(count, bytes), node| (count + 1, bytes + node))
    }

    /// The number of nodes in memory, removed ones included.
    pub fn nodes_count(&self) -> usize {
        self.overlays().map(Overlay::nodes_count).sum()
    }

    /// The roots that are in no overlay.
    fn captured_roots(&self) -> impl Iterator<Item = &CutRoot> {
        let cuts = self.shards.iter().flat_map(Shard::cuts).filter(|cut| cut.is_captured);
        self.captured_root().into_iter().chain(cuts.map(|cut| &cut.root))
    }

    fn overlays(&self) -> impl Iterator<Item = &Overlay> {
        self.shards.iter().flat_map(Shard::overlays).map(|(_, overlay)| overlay)
    }

    /// The addresses of the nodes of the witness, ascending. A [`Lister`](super::Lister)
    /// makes them nodes again.
    pub fn witness_addresses(&self) -> Vec<NodeAddress> {
        let root = self.captured_root().map(|root| root.address);
        let mut addresses = Vec::from_iter(root);
        addresses.extend(self.shards.iter().flat_map(Shard::captured));
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    fn captured_root(&self) -> Option<&CutRoot> {
        let is_touched = self.shards.iter().any(|shard| shard.is_touched);
        self.root.as_ref().filter(|_| is_touched)
    }
}

/// The one round of [`BlockTrie::touch_all`].
fn read_units<'a, R: Records>(
    records: &'a R,
    shards: &'a mut [Shard<R>],
    reads: &'a [Vec<StateKey>],
    storages: &'a mut [StorageRead],
) -> Vec<WorkUnit<'a>> {
    let mut units = Vec::new();
    for StorageRead { cut, slots, errors, .. } in storages {
        for ((part, error), slots) in cut.parts.iter_mut().zip(errors).zip(slots) {
            units.push(WorkUnit::new(slots.len(), move || {
                *error = touch_part(records, part, slots).err();
            }));
        }
    }
    for (shard, keys) in shards.iter_mut().zip(reads).filter(|(_, keys)| !keys.is_empty()) {
        units.push(WorkUnit::new(keys.len(), move || shard.error = shard.touch_all(keys).err()));
    }
    units
}

/// The first round: storages.
fn storage_units<'a, R: Records>(
    records: &'a R,
    shards: &'a mut [Shard<R>],
    jobs: &'a mut [Vec<AccountJob<'_>>],
    taken: &'a mut [TakenStorage<'_>],
) -> Vec<WorkUnit<'a>> {
    let mut units = Vec::new();
    for TakenStorage { change, cut, errors, .. } in taken {
        let parts = cut.parts.iter_mut().zip(errors);
        for ((part, error), slots) in parts.zip(by_nibble(&change.storage)) {
            units.push(WorkUnit::new(slots.len(), move || {
                *error = apply_part(records, part, slots).err();
            }));
        }
    }
    for (shard, jobs) in shards.iter_mut().zip(jobs).filter(|(_, jobs)| !jobs.is_empty()) {
        let own = jobs.iter().filter(|job| !job.is_taken);
        let slots_count: usize = own.map(|job| job.change.storage.len()).sum();
        units.push(WorkUnit::new(jobs.len() + slots_count, move || {
            shard.error = shard.apply_storages(jobs).err();
        }));
    }
    units
}

/// The second round: accounts.
fn account_units<'a, R: Records>(
    shards: &'a mut [Shard<R>],
    jobs: &'a [Vec<AccountJob<'a>>],
) -> Vec<WorkUnit<'a>> {
    let mut units = Vec::new();
    for (shard, jobs) in shards.iter_mut().zip(jobs) {
        units.push(WorkUnit::new(jobs.len(), move || {
            shard.error = shard.apply_accounts(jobs).err();
        }));
    }
    units
}
