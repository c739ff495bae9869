mod lookup;
mod pending;
mod persist;
mod types;
mod verify;

pub use types::{
    BlockEntry, Heads, LogStats, NewBlock, Options, Persisted, Retained, Stats, VerifyReport,
};

use crate::Error;
use crate::back_pressure::BackPressure;
use crate::cache::CacheStats;
use crate::counter::Counter;
use crate::disk::{Directory, Disk};
use crate::header::{HEADER_BYTES, Header};
use crate::index::lookup::CanonicalByNumber;
use crate::index::{INDEX, Index, NewCanonical, StoreState, StoredBlock, StoredHeads};
use crate::journal::Journal;
use crate::limits::{CODE_ENTRY_BYTES, MAX_META_BYTES, MAX_SWEEP_BYTES, PAGE_BYTES};
use crate::log::{FrameLocation, Log, NewCode, StoredCode};
use crate::pages::{NodeBatch, NodeStore, NodeStoreOptions};
use crate::segments;
use alloy_primitives::{B256, Bytes};
use pending::{PendingChange, PendingChanges};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use trie::versioned::{NodeAddress, Version};

/// The file that marks a directory as a store and names its format. It is written last.
const FORMAT: &str = "format";

/// The store. Any number of threads read it. Reads never wait for a disk write, unless a write of
/// the index has just failed.
#[derive(Debug)]
pub struct Database {
    directory: Directory,
    index: Index,
    nodes: NodeStore,
    blocks: Log,
    codes: Log,
    witnesses: Log,
    journal: Journal,
    /// A cache of codes that were read and checked.
    code_cache: Cache<B256, StoredCode, ByLength>,
    /// Look-ups of codes that were in it, and of those that were not.
    code_hits: Counter,
    code_misses: Counter,
    /// The changes that are not persisted yet. Readers look here first.
    waiting: RwLock<PendingChanges>,
    /// The versions of blocks with smaller numbers are deleted.
    versions_from: AtomicU64,
    room: Arc<BackPressure>,
    /// The state that the index has. The lock is held while the index is changed.
    persisted: Mutex<StoreState>,
}

#[derive(Clone, Debug)]
struct ByLength;

impl Weighter<B256, StoredCode> for ByLength {
    fn weight(&self, _: &B256, code: &StoredCode) -> u64 {
        let bytes = if code.location.is_some() { 0 } else { code.padded.len() as u64 };
        bytes + CODE_ENTRY_BYTES
    }
}

impl Database {
    /// Opens the store on a disk, or begins one where there is none.
    ///
    /// # Errors
    /// When a file is missing, cut short, damaged, foreign or of another format, and the system's.
    pub fn open(disk: impl Disk + 'static, options: &Options) -> Result<Self, Error> {
        let directory = Directory::new(Arc::new(disk));
        let segment_bytes = match read_format(&directory)? {
            Some(segment_bytes) => segment_bytes,
            None => create(&directory, options)?,
        };
        let index = directory.path(INDEX);
        if directory.open(INDEX)?.is_none() {
            return Err(Error::Short { file: index, found_bytes: 0, expected_bytes: 1 });
        }
        let index = Index::open(&directory, options.index_cache_bytes)?;
        let Some((state, heads)) = index.state()? else {
            return Err(index.contradiction("it is empty, although the store is not new"));
        };
        Self::recover(directory, index, segment_bytes, options, state, heads)
    }

    fn recover(
        directory: Directory,
        index: Index,
        segment_bytes: u64,
        options: &Options,
        state: StoreState,
        heads: StoredHeads,
    ) -> Result<Self, Error> {
        let room = Arc::new(BackPressure::default());
        let [(start, end), blocks, codes, witnesses] = state.logs;
        let nodes =
            NodeStoreOptions { start, end, segment_bytes, cache_bytes: options.cache_bytes };
        let nodes = NodeStore::recover(directory.clone(), &nodes, room.clone())?;
        let log = |kind, range, bytes| Log::recover(kind, directory.clone(), range, bytes);
        let blocks = log(segments::BLOCKS, blocks, segment_bytes)?;
        let codes = log(segments::CODES, codes, segment_bytes)?;
        let witnesses = log(segments::WITNESSES, witnesses, options.witness_segment_bytes)?;
        let mode = (options.journal, options.journal_file_bytes);
        let persisted = |hash: &B256| Ok(index.block(hash)?.is_some());
        let journal = Journal::recover(directory.clone(), mode, persisted)?;
        // A segment beyond the end must not come back when the log has grown past it: the one
        // before would end there. The process that wrote the format file may have been killed just
        // then.
        directory.sync()?;
        let code_items = (options.code_cache_bytes / (8 << 10)).max(1) as usize;
        Ok(Self {
            nodes,
            blocks,
            codes,
            witnesses,
            journal,
            directory,
            index,
            code_cache: Cache::with_weighter(code_items, options.code_cache_bytes, ByLength),
            code_hits: Counter::default(),
            code_misses: Counter::default(),
            waiting: RwLock::new(PendingChanges::new(state.sequence, heads.into())),
            versions_from: state.versions_from.into(),
            room,
            persisted: Mutex::new(state),
        })
    }

    /// The log of nodes, for readers.
    pub fn nodes(&self) -> &NodeStore {
        &self.nodes
    }

    /// The journal of valid blocks and fork choices.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// A batch of new nodes; seal it before [`add`](Self::add) names its records.
    ///
    /// # Panics
    /// When there is another batch.
    pub fn batch(&self) -> NodeBatch {
        self.nodes.batch()
    }

    /// Adds a block. All readers see it, and it waits to be persisted; adding it again replaces it.
    ///
    /// # Errors
    /// When an earlier write failed; then it is not added.
    ///
    /// # Panics
    /// When its parent is not in the store and this is not the first block, when its version is
    /// not sealed, or when its note about sweeping is too long.
    pub fn add(&self, block: NewBlock) -> Result<(), Error> {
        self.directory.health.check()?;
        assert!(block.sweep.len() <= MAX_SWEEP_BYTES, "a note has {MAX_SWEEP_BYTES} bytes");
        let end = self.nodes.end();
        let is_there = block.version.address < end || block.version.address.is_remote();
        assert!(is_there || end.is_none(), "a version's nodes are sealed");
        // The caller has read the parent, so an index that cannot be read now is no reason to stop.
        let parent_is_known = self.knows(&block.parent_hash).unwrap_or(true)
            || self.knows(&block.hash).unwrap_or(true);
        let mut waiting = self.waiting_mut();
        let is_first = waiting.heads == Heads::default() || block.version.address.is_remote();
        assert!(parent_is_known || is_first, "a block is added after its parent");
        self.room.take(waiting.add_block(block));
        Ok(())
    }

    /// Adds codes without a block: those of an initial state, which may be many. Codes that the
    /// store has are not written again.
    ///
    /// # Errors
    /// When an earlier write failed; then nothing changes.
    pub fn add_codes(&self, codes: Vec<NewCode>) -> Result<(), Error> {
        self.directory.health.check()?;
        self.room.take(self.waiting_mut().change(PendingChange::Codes(codes)));
        Ok(())
    }

    /// Adds the witness of a block that was added without one. It can be read once it is
    /// persisted.
    ///
    /// # Errors
    /// When an earlier write failed; then nothing changes.
    pub fn add_witness(&self, hash: B256, witness: Bytes) -> Result<(), Error> {
        self.directory.health.check()?;
        self.room.take(self.waiting_mut().change(PendingChange::Witness { hash, witness }));
        Ok(())
    }

    /// Changes which blocks are canonical, by number, and the heads. The change takes effect at
    /// once, blocks are found by their transactions and logs from then on, and it is durable after
    /// the next [`persist`](Self::persist), never without the blocks it names.
    ///
    /// # Errors
    /// When an earlier write failed; then nothing changes.
    ///
    /// # Panics
    /// When it names a block that is not in the store.
    pub fn set_canonical(
        &self,
        changes: impl IntoIterator<Item = (u64, Option<NewCanonical>)>,
        heads: Heads,
    ) -> Result<(), Error> {
        self.directory.health.check()?;
        let changes: CanonicalByNumber =
            changes.into_iter().map(|(number, block)| (number, block.map(Arc::new))).collect();
        let named = changes.values().flatten().map(|block| block.hash);
        for hash in named.chain(heads.to_array().into_iter().flatten()) {
            assert!(self.knows(&hash).unwrap_or(true), "a canonical block is in the store");
        }
        self.room.take(self.waiting_mut().change(PendingChange::Canonical { changes, heads }));
        Ok(())
    }

    /// Keeps a small value of the engine's own.
    ///
    /// # Errors
    /// When an earlier write failed.
    ///
    /// # Panics
    /// When the value is longer than [`MAX_META_BYTES`].
    pub fn set_meta(&self, key: &str, value: Bytes) -> Result<(), Error> {
        assert!(value.len() <= MAX_META_BYTES, "a value has {MAX_META_BYTES} bytes");
        self.directory.health.check()?;
        let key = key.to_owned();
        self.room.take(self.waiting_mut().change(PendingChange::Meta { key, value }));
        Ok(())
    }

    /// A small value of the engine's own.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn meta(&self, key: &str) -> Result<Option<Bytes>, Error> {
        if let Some(value) = self.waiting().meta(key) {
            return Ok(Some(value));
        }
        Ok(self.index.meta(key)?.map(Bytes::from))
    }

    /// The index entry of a block; `None` if the store does not have the block.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn entry(&self, hash: &B256) -> Result<Option<BlockEntry>, Error> {
        if let Some((sequence, block)) = self.waiting().block(hash) {
            return Ok(Some(self.waiting_entry(sequence, &block)));
        }
        let stored = self.index.block(hash)?;
        Ok(stored.map(|stored| self.stored_entry(*hash, stored)))
    }

    /// A block's payload, as it was added.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn block(&self, hash: &B256) -> Result<Option<Bytes>, Error> {
        if let Some((_, block)) = self.waiting().block(hash) {
            return Ok(Some(block.block.clone()));
        }
        let stored = self.index.block(hash)?;
        stored.map(|stored| self.blocks.read(stored.block)).transpose()
    }

    /// A block's witness.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn witness(&self, hash: &B256) -> Result<Retained<Bytes>, Error> {
        self.witness_part(hash, |block| block.witness.clone(), |stored| stored.witness)
    }

    /// The record of the nodes that a block read, from which its witness can be made.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn touched(&self, hash: &B256) -> Result<Retained<Bytes>, Error> {
        self.witness_part(hash, |block| block.touched.clone(), |stored| stored.touched)
    }

    fn witness_part(
        &self,
        hash: &B256,
        of_waiting: impl FnOnce(&NewBlock) -> Option<Bytes>,
        of_stored: impl FnOnce(&StoredBlock) -> Option<FrameLocation>,
    ) -> Result<Retained<Bytes>, Error> {
        if let Some((_, block)) = self.waiting().block(hash) {
            return Ok(of_waiting(&block).map_or(Retained::Never, Retained::Present));
        }
        let Some(location) = self.index.block(hash)?.as_ref().and_then(of_stored) else {
            return Ok(Retained::Never);
        };
        match self.witnesses.read(location) {
            Ok(bytes) => Ok(Retained::Present(bytes)),
            // Also when it was deleted while we read.
            Err(_) if location.address < self.witnesses.start() => Ok(Retained::Deleted),
            Err(error) => Err(error),
        }
    }

    /// The code with this hash.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn code(&self, hash: &B256) -> Result<Option<Bytes>, Error> {
        Ok(self.stored_code(hash)?.map(|code| code.code()))
    }

    /// The code with this hash, with its padding and its table.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn stored_code(&self, hash: &B256) -> Result<Option<StoredCode>, Error> {
        if let Some(code) = self.code_cache.get(hash) {
            self.code_hits.increment();
            return Ok(Some(code));
        }
        if let Some(bytes) = self.waiting().code(hash) {
            return Ok(Some(StoredCode::bare(bytes)));
        }
        let Some(location) = self.index.code(hash)? else { return Ok(None) };
        self.code_misses.increment();
        let code = self.codes.code(location)?;
        self.code_cache.insert(*hash, code.clone());
        Ok(Some(code))
    }

    /// The use of the cache of stored codes.
    pub fn code_cache_stats(&self) -> CacheStats {
        CacheStats {
            hits: self.code_hits.get(),
            misses: self.code_misses.get(),
            bytes: self.code_cache.weight(),
            most_bytes: self.code_cache.capacity(),
        }
    }

    /// The file of codes that a [`CodeLocation`](crate::CodeLocation) names, for another process to
    /// map: opened for reading only. Its content never changes; more is appended. `None`
    /// when there is no such file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn code_file(&self, segment: u64) -> Result<Option<fs::File>, Error> {
        self.codes.file(segment)
    }

    /// The hash of the canonical block with this number.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn canonical(&self, number: u64) -> Result<Option<B256>, Error> {
        if let Some(hash) = self.waiting().canonical(number) {
            return Ok(hash);
        }
        self.index.canonical(number)
    }

    /// The heads.
    pub fn heads(&self) -> Heads {
        self.waiting().heads
    }

    /// Whether a write has failed: then no other is done.
    ///
    /// # Errors
    /// The error of that write.
    pub fn check(&self) -> Result<(), Error> {
        self.directory.health.check()
    }

    /// Bytes that wait to be persisted.
    pub fn unpersisted_bytes(&self) -> u64 {
        self.room.waiting_bytes()
    }

    /// Waits until at most `limit_bytes` are not persisted; false if that exceeds `timeout`.
    ///
    /// # Errors
    /// When a write failed: the bytes will never be persisted.
    pub fn wait_for_room(&self, limit_bytes: u64, timeout: Duration) -> Result<bool, Error> {
        self.room.wait(limit_bytes, timeout, &self.directory.health)
    }

    /// Forgets the versions of all blocks with numbers below `number`.
    ///
    /// # Errors
    /// When an earlier write failed.
    pub fn forget_versions(&self, number: u64) -> Result<(), Error> {
        self.directory.health.check()?;
        self.versions_from.fetch_max(number, Ordering::Relaxed);
        self.room.take(self.waiting_mut().change(PendingChange::ForgetVersions(number)));
        Ok(())
    }

    /// Deletes the segments of nodes that lie entirely below `floor`: for readers at once, from the
    /// disk with the next [`persist`](Self::persist). Versions with nodes there are lost.
    ///
    /// # Errors
    /// When an earlier write failed.
    pub fn delete_segments_below(&self, floor: NodeAddress) -> Result<(), Error> {
        self.directory.health.check()?;
        let start = self.nodes.forget_below(floor);
        self.room.take(self.waiting_mut().change(PendingChange::DeleteNodes(start)));
        Ok(())
    }

    /// Keeps the witnesses of at most `max_blocks` blocks and at most `max_bytes` of them, rounded
    /// to whole segments: the segment being written stays, and so does one with a block to keep.
    /// Takes effect with the next [`persist`](Self::persist).
    ///
    /// # Errors
    /// When an earlier write failed.
    pub fn retain_witnesses(&self, max_blocks: u64, max_bytes: u64) -> Result<(), Error> {
        self.directory.health.check()?;
        let change = PendingChange::RetainWitnesses { max_blocks, max_bytes };
        self.room.take(self.waiting_mut().change(change));
        Ok(())
    }

    /// The number of the first blocks whose versions are kept.
    pub fn versions_from(&self) -> u64 {
        self.versions_from.load(Ordering::Relaxed)
    }

    fn knows(&self, hash: &B256) -> Result<bool, Error> {
        Ok(self.waiting().block(hash).is_some() || self.index.block(hash)?.is_some())
    }

    fn waiting_entry(&self, sequence: u64, block: &NewBlock) -> BlockEntry {
        let kept =
            |part: &Option<Bytes>| part.as_ref().map_or(Retained::Never, |_| Retained::Present(()));
        BlockEntry {
            hash: block.hash,
            number: block.number,
            parent_hash: block.parent_hash,
            version: self.kept_version(block.number, block.version, block.floor),
            floor: block.floor,
            sweep: block.sweep.clone(),
            sequence,
            is_persisted: false,
            witness: kept(&block.witness),
            touched: kept(&block.touched),
        }
    }

    fn stored_entry(&self, hash: B256, stored: StoredBlock) -> BlockEntry {
        let start = self.witnesses.start();
        let kept = |location: Option<FrameLocation>| match location {
            None => Retained::Never,
            Some(location) if location.address < start => Retained::Deleted,
            Some(_) => Retained::Present(()),
        };
        BlockEntry {
            hash,
            number: stored.number,
            parent_hash: stored.parent_hash,
            version: self.kept_version(stored.number, stored.version, stored.floor),
            floor: stored.floor,
            sweep: stored.sweep.into(),
            sequence: stored.sequence,
            is_persisted: true,
            witness: kept(stored.witness),
            touched: kept(stored.touched),
        }
    }

    fn kept_version(&self, number: u64, version: Version, floor: NodeAddress) -> Option<Version> {
        let is_whole = version.address.is_none() || floor >= self.nodes.start();
        let is_kept = is_whole && number >= self.versions_from.load(Ordering::Relaxed);
        is_kept.then_some(version)
    }

    fn waiting(&self) -> RwLockReadGuard<'_, PendingChanges> {
        self.waiting.read().expect("no thread panics with it")
    }

    fn waiting_mut(&self) -> RwLockWriteGuard<'_, PendingChanges> {
        self.waiting.write().expect("no thread panics with it")
    }
}

/// The size of segments that the store was begun with; `None` when there is no store.
fn read_format(directory: &Directory) -> Result<Option<u64>, Error> {
    let Some(file) = directory.open(FORMAT)? else { return Ok(None) };
    // A shorter or empty file was being written; create() checks whether the store was ever in use.
    let mut bytes = [0; HEADER_BYTES];
    if file.len()? < bytes.len() as u64 {
        return Ok(None);
    }
    file.read_at(0, &mut bytes)?;
    if bytes == [0; HEADER_BYTES] {
        return Ok(None);
    }
    let [page_bytes, segment_bytes] = Header::read(&file, FORMAT_KIND)?.numbers;
    if page_bytes != PAGE_BYTES as u64 {
        return Err(Error::Foreign {
            file: file.path().into(),
            found: format!("pages of {page_bytes} bytes"),
            expected: format!("pages of {PAGE_BYTES} bytes"),
        });
    }
    // The process that wrote it may have been killed before it was durable.
    file.sync()?;
    Ok(Some(segment_bytes))
}

const FORMAT_KIND: [u8; 4] = *b"STOR";

/// Creates a store. It exists once the format file does, which is durable with the next sync of the
/// directory. Files of an unfinished creation are removed, but none that were ever in use.
fn create(directory: &Directory, options: &Options) -> Result<u64, Error> {
    let missing = || Error::Short {
        file: directory.path(FORMAT),
        found_bytes: 0,
        expected_bytes: HEADER_BYTES as u64,
    };
    let kinds = [segments::NODES, segments::BLOCKS, segments::CODES, segments::WITNESSES];
    let is_segment =
        |name: &String| kinds.iter().any(|kind| name.starts_with(&format!("{}-", kind.name)));
    let names = directory.list()?;
    if names.iter().any(is_segment) {
        return Err(missing());
    }
    if names.iter().any(|name| name == INDEX) {
        let used = Index::open(directory, options.index_cache_bytes)
            .and_then(|index| index.state())
            .is_ok_and(|state| state.is_some_and(|(state, _)| state.sequence > 0));
        if used {
            return Err(missing());
        }
        directory.remove(INDEX)?;
    }
    let index = Index::open(directory, options.index_cache_bytes)?;
    index.write(|transaction| {
        crate::index::put_state(transaction, &StoreState::default(), &StoredHeads::default())
    })?;
    drop(index);
    directory.sync()?;
    let format = directory.create(FORMAT)?;
    let numbers = [PAGE_BYTES as u64, options.segment_bytes];
    format.write_at(0, &Header { kind: FORMAT_KIND, numbers }.to_bytes())?;
    format.sync()?;
    Ok(options.segment_bytes)
}
