//! The log of nodes: pages with checksums in segment files, behind a cache.

use crate::Error;
use crate::back_pressure::BackPressure;
use crate::cache::{Cache, CacheStats};
use crate::counter::Counter;
use crate::disk::{Directory, NamedFile, WriteHealth};
use crate::limits::{
    MIN_SEGMENT_BYTES, PAGE_BYTES, PAGE_CONTENT_BYTES, PAGES_AT_HAND, PAGES_AT_HAND_FROM,
    READ_AHEAD_BYTES, READ_PART_BYTES, SLOW_READ, WRITE_BUFFER_BYTES, WRITE_PART_BYTES,
};
use crate::segments::{NODES, Segments};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};
use trie::versioned::{NodeAddress, RecordError, RecordReader, RecordSink, Records};

/// Bytes of a page, as an offset.
const PAGE: u64 = PAGE_BYTES as u64;

const PAGE_END_BYTES: usize = PAGE_BYTES - PAGE_CONTENT_BYTES;

/// The nodes that are not in the log: those of [remote](NodeAddress::is_remote) addresses.
pub trait RemoteNodes: fmt::Debug + Send + Sync {
    /// The record at an address, which is a multiple of [`PAGE_BYTES`].
    ///
    /// # Errors
    /// If the record cannot be had; the text says why.
    fn record(&self, at: NodeAddress) -> Result<Vec<u8>, RecordError>;
}

/// The log of nodes, for any number of threads. Clones are the same log.
#[derive(Clone)]
pub struct NodeStore {
    shared: Arc<SharedNodes>,
}

struct SharedNodes {
    segments: Segments,
    segment_bytes: u64,
    /// The first address that is not deleted, or about to be.
    start: AtomicU64,
    /// The address of the next page. Moved by [`NodeBatch::seal`] alone.
    end: AtomicU64,
    cache: Cache<Page>,
    /// Look-ups of pages that were in the cache.
    hits: Counter,
    /// Pages that were read from a file.
    misses: Counter,
    /// Pages that are sealed and not persisted, by number.
    waiting: RwLock<BTreeMap<u64, Arc<Page>>>,
    batch_is_open: AtomicBool,
    room: Arc<BackPressure>,
    health: Arc<WriteHealth>,
    /// The nodes that are elsewhere, where some are.
    remote: OnceLock<Arc<dyn RemoteNodes>>,
}

/// The content of a page: with the two counts of an [`Arc`] exactly a size class of the allocator.
struct Page([u8; PAGE_CONTENT_BYTES]);

const _: () = assert!(size_of::<Page>() + 2 * size_of::<usize>() <= PAGE_BYTES);

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Page")
    }
}

/// A node's bytes, and all that follow them in their page.
#[derive(Clone)]
pub struct NodeRecord {
    page: Arc<Page>,
    offset: u16,
}

impl AsRef<[u8]> for NodeRecord {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.page.0[usize::from(self.offset)..]
    }
}

impl fmt::Debug for NodeRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NodeRecord").field(&self.offset).finish()
    }
}

impl fmt::Debug for NodeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.shared.end.load(Ordering::Relaxed);
        f.debug_struct("NodeStore").field("end", &end).finish_non_exhaustive()
    }
}

/// The options of [`NodeStore::recover`].
pub(crate) struct NodeStoreOptions {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) cache_bytes: u64,
}

impl Records for NodeStore {
    type Record = NodeRecord;

    #[inline]
    fn record(&self, at: NodeAddress) -> Result<NodeRecord, RecordError> {
        let offset = (at.offset() % PAGE) as u16;
        let page = match self.shared.cached(at.offset(), Arc::clone) {
            Some(page) => page,
            None => self.shared.uncached(at.offset())?,
        };
        Ok(NodeRecord { page, offset })
    }

    #[inline]
    fn look<T>(&self, at: NodeAddress, look: impl FnOnce(&[u8]) -> T) -> Result<T, RecordError> {
        let mut look = Some(look);
        let mut look = |page: &Arc<Page>| {
            let look = look.take().expect("a record is looked at once");
            look(&page.0[(at.offset() % PAGE) as usize..])
        };
        if let Some(found) = self.shared.cached(at.offset(), &mut look) {
            return Ok(found);
        }
        Ok(look(&self.shared.uncached(at.offset())?))
    }
}

/// A reader of nodes with a small table of recently read pages of its own, which takes no locks,
/// unlike the shared cache.
#[derive(Debug)]
pub struct NodeReader {
    nodes: NodeStore,
    /// The number of pages looked up in the shared cache, as long as there is no table.
    looked_up: usize,
    /// The table, by the low bits of page numbers; empty for a reader of few pages. A page that was
    /// read once has only its number here: to hold it, its reference count has to be changed.
    at_hand: Box<[(u64, Option<Arc<Page>>)]>,
    waited: Duration,
}

impl NodeReader {
    /// A reader with an empty table.
    pub fn new(nodes: NodeStore) -> Self {
        Self { nodes, looked_up: 0, at_hand: Box::default(), waited: Duration::ZERO }
    }

    /// How long it has waited for the device in all that it has read so far: the sum of its reads
    /// that took [`SLOW_READ`] or more.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    fn look<T>(&mut self, at: NodeAddress, see: impl FnOnce(&[u8]) -> T) -> Result<T, RecordError> {
        let mut see = Some(see);
        let mut look = |page: &Arc<Page>| {
            let see = see.take().expect("a record is looked at once");
            see(&page.0[(at.offset() % PAGE) as usize..])
        };
        if let Some(found) = self.nodes.shared.cached(at.offset(), &mut look) {
            return Ok(found);
        }
        Ok(look(&self.uncached(at)?))
    }

    fn page(&mut self, at: NodeAddress) -> Result<Arc<Page>, Error> {
        match self.nodes.shared.cached(at.offset(), Arc::clone) {
            Some(page) => Ok(page),
            None => self.uncached(at),
        }
    }

    fn uncached(&mut self, at: NodeAddress) -> Result<Arc<Page>, Error> {
        let start = Instant::now();
        let page = self.nodes.shared.uncached(at.offset());
        let elapsed = start.elapsed();
        if elapsed >= SLOW_READ {
            self.waited += elapsed;
        }
        page
    }
}

impl RecordReader for NodeReader {
    #[inline]
    fn read<T>(&mut self, at: NodeAddress, see: impl FnOnce(&[u8]) -> T) -> Result<T, RecordError> {
        if self.at_hand.is_empty() {
            self.looked_up += 1;
            if self.looked_up < PAGES_AT_HAND_FROM {
                return self.look(at, see);
            }
            self.at_hand = (0..PAGES_AT_HAND).map(|_| (0, None)).collect();
        }
        let (number, offset) = (at.offset() / PAGE, (at.offset() % PAGE) as usize);
        let (known, page) = &mut self.at_hand[number as usize % PAGES_AT_HAND];
        if *known != number {
            (*known, *page) = (number, None);
            return self.look(at, see);
        }
        if let Some(page) = page
            && offset < PAGE_CONTENT_BYTES
        {
            return Ok(see(&page.0[offset..]));
        }
        let page = self.page(at)?;
        let found = see(&page.0[offset..]);
        self.at_hand[number as usize % PAGES_AT_HAND].1 = Some(page);
        Ok(found)
    }
}

impl NodeStore {
    pub(crate) fn recover(
        directory: Directory,
        options: &NodeStoreOptions,
        room: Arc<BackPressure>,
    ) -> Result<Self, Error> {
        assert!(options.segment_bytes >= MIN_SEGMENT_BYTES, "a segment has a page");
        assert!(options.segment_bytes.is_multiple_of(PAGE), "a segment has whole pages");
        let health = directory.health.clone();
        let (start, end) = (options.start, options.end);
        let pages = (options.cache_bytes / PAGE) as usize;
        let shared = SharedNodes {
            segments: Segments::recover(NODES, directory, (start, end), |_, bytes| {
                Ok(bytes == options.segment_bytes)
            })?,
            segment_bytes: options.segment_bytes,
            start: start.into(),
            end: end.into(),
            cache: Cache::new(pages),
            hits: Counter::default(),
            misses: Counter::default(),
            waiting: RwLock::default(),
            batch_is_open: false.into(),
            room,
            health,
            remote: OnceLock::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Says where the nodes are that are not in the log.
    ///
    /// # Panics
    /// When that was said before.
    pub fn set_remote(&self, nodes: Arc<dyn RemoteNodes>) {
        self.shared.remote.set(nodes).expect("it is said once, when a chain is opened");
    }

    /// A batch of new records. There is one at a time.
    ///
    /// # Panics
    /// When there is another.
    pub fn batch(&self) -> NodeBatch {
        let open = self.shared.batch_is_open.swap(true, Ordering::AcqRel);
        assert!(!open, "one batch is sealed or dropped before the next");
        let next = self.shared.end.load(Ordering::Acquire) / PAGE;
        NodeBatch { nodes: self.clone(), pages: Vec::new(), next, used: PAGE_CONTENT_BYTES }
    }

    /// The end of the log, sealed batches included: the addresses of the next batch are above.
    pub fn end(&self) -> NodeAddress {
        NodeAddress::new(self.shared.end.load(Ordering::Acquire))
    }

    /// The first address that is not deleted.
    pub fn start(&self) -> NodeAddress {
        NodeAddress::new(self.shared.start.load(Ordering::Relaxed))
    }

    /// The use of the page cache.
    pub fn cache_stats(&self) -> CacheStats {
        let SharedNodes { cache, hits, misses, .. } = &*self.shared;
        let bytes = |pages: usize| pages as u64 * PAGE;
        CacheStats {
            hits: hits.get(),
            misses: misses.get(),
            bytes: bytes(cache.len()),
            most_bytes: bytes(cache.capacity()),
        }
    }

    /// Stops reads below the last segment that begins at or below `floor`. Returns its start.
    pub(crate) fn forget_below(&self, floor: NodeAddress) -> u64 {
        let floor = floor.offset().min(self.end().offset());
        let start = self.shared.segment_of(floor);
        self.shared.start.fetch_max(start, Ordering::Relaxed).max(start)
    }

    /// Writes and syncs all waiting pages, and drops them part by part, since they can then be read
    /// from the files. Returns the end of the log that includes them.
    pub(crate) fn write_waiting(&self) -> Result<u64, Error> {
        let shared = &*self.shared;
        // The end is read first: seal moves it last.
        let end = shared.end.load(Ordering::Acquire);
        let waiting = shared.waiting();
        let pages: Vec<_> = waiting.range(..end / PAGE).map(|(&n, p)| (n, p.clone())).collect();
        drop(waiting);
        let pages_per_segment = shared.segment_bytes / PAGE;
        let in_one_segment = |a: &(u64, _), b: &(u64, _)| {
            a.0 / pages_per_segment == b.0 / pages_per_segment && a.0 + 1 == b.0
        };
        let runs = pages.chunk_by(in_one_segment);
        for run in runs.flat_map(|run| run.chunks(WRITE_PART_BYTES / PAGE_BYTES)) {
            shared.write_run(run)?;
            shared.unpin(run[run.len() - 1].0 + 1);
        }
        Ok(end)
    }

    /// Removes the files below `start`, which the index no longer names.
    pub(crate) fn remove_below(&self, start: u64) -> Result<(), Error> {
        // It goes through the whole cache.
        if self.shared.segments.starts().first().is_some_and(|first| *first < start) {
            self.shared.cache.retain(|number| number * PAGE >= start);
        }
        self.shared.segments.remove_below(start)
    }

    /// Reads the last [`READ_AHEAD_BYTES`] or less before `end`, which is persisted, into the
    /// cache, and has the system begin with those before: one by one, each page would take the time
    /// of the device. Returns where it began, `None` at the start of the log.
    ///
    /// # Errors
    /// When a file cannot be read. Damage is found when a page is wanted.
    pub fn read_ahead(&self, end: NodeAddress) -> Result<Option<NodeAddress>, Error> {
        let shared = &*self.shared;
        let Some(range) = self.last_before(end.offset()) else { return Ok(None) };
        let from = range.start;
        if let Some(before) = self.last_before(from) {
            let segment = shared.segment_of(before.start);
            // An error is reported when the page is read.
            if let Ok(file) = shared.segments.open(segment) {
                file.read_ahead(before.start - segment, before.end - before.start);
            }
        }
        let segment = shared.segment_of(from);
        let file = shared.segments.open(segment)?;
        let mut buffer = vec![0; READ_PART_BYTES];
        for at in range.clone().step_by(READ_PART_BYTES) {
            let len = READ_PART_BYTES.min((range.end - at) as usize);
            file.read_at(at - segment, &mut buffer[..len])?;
            let (pages, _) = buffer[..len].as_chunks();
            for (number, page) in (at / PAGE..).zip(pages) {
                let is_wanted = number * PAGE != segment && !shared.cache.contains(number);
                if is_wanted && let Some(content) = content(number, page) {
                    shared.cache.insert(number, Arc::new(Page(*content)));
                }
            }
        }
        Ok(Some(NodeAddress::new(from)))
    }

    /// The last [`READ_AHEAD_BYTES`] or less before `end`, in one segment; `None` at the start of
    /// the log.
    fn last_before(&self, end: u64) -> Option<Range<u64>> {
        let last = end.checked_sub(1).filter(|last| *last >= self.start().offset())?;
        let from = end.saturating_sub(READ_AHEAD_BYTES) / PAGE * PAGE;
        Some(from.max(self.shared.segment_of(last))..end)
    }

    /// Reads every page from the files, and gives `each` its outcome: the bytes read.
    pub(crate) fn verify(
        &self,
        end: u64,
        mut each: impl FnMut(Result<u64, Error>),
    ) -> Result<(), Error> {
        let starts = self.shared.segments.starts();
        for start in starts.into_iter().filter(|&start| start < end) {
            let file = match self.shared.segments.open(start) {
                Ok(file) => file,
                Err(error) => {
                    each(Err(error));
                    continue;
                }
            };
            let segment_end = end.min(start + self.shared.segment_bytes);
            for number in start / PAGE..segment_end / PAGE {
                let offset = number * PAGE - start;
                if offset.is_multiple_of(READ_AHEAD_BYTES) {
                    // These and those behind them; the system knows what it has.
                    file.read_ahead(offset, 2 * READ_AHEAD_BYTES);
                }
                each(read_page(&file, number, start).map(|_| PAGE));
            }
        }
        Ok(())
    }

    pub(crate) fn segments(&self) -> &Segments {
        &self.shared.segments
    }
}

impl SharedNodes {
    /// Calls `see` with the page of this address, if that may be the address of a record and the
    /// page is in the cache.
    #[inline]
    fn cached<T>(&self, address: u64, see: impl FnOnce(&Arc<Page>) -> T) -> Option<T> {
        let is_record = address % PAGE < PAGE_CONTENT_BYTES as u64;
        let is_kept = address >= self.start.load(Ordering::Relaxed);
        let found = if is_record && is_kept { self.cache.get(address / PAGE, see) } else { None };
        if found.is_some() {
            self.hits.increment();
        }
        found
    }

    /// The start of the segment with this address.
    fn segment_of(&self, address: u64) -> u64 {
        address / self.segment_bytes * self.segment_bytes
    }

    fn uncached(&self, address: u64) -> Result<Arc<Page>, Error> {
        let start = self.start.load(Ordering::Relaxed);
        if NodeAddress::new(address).is_remote() {
            return self.remote_page(address);
        }
        if address < start {
            return Err(Error::Deleted { log: NODES.name, address, start });
        }
        let end = self.end.load(Ordering::Acquire);
        let is_header = address % self.segment_bytes < PAGE;
        if address >= end || is_header || address % PAGE >= PAGE_CONTENT_BYTES as u64 {
            return Err(Error::NoRecord { log: NODES.name, address, end });
        }
        let number = address / PAGE;
        if let Some(page) = self.waiting().get(&number) {
            return Ok(page.clone());
        }
        self.misses.increment();
        let segment = self.segment_of(address);
        let read = || read_page(&*self.segments.open(segment)?, number, segment);
        let page = read().map_err(|error| match self.start.load(Ordering::Relaxed) {
            // It was deleted meanwhile.
            start if address < start => Error::Deleted { log: NODES.name, address, start },
            _ => error,
        })?;
        self.cache.insert(number, page.clone());
        Ok(page)
    }

    /// A page with the record of a node that is elsewhere.
    fn remote_page(&self, address: u64) -> Result<Arc<Page>, Error> {
        let end = self.end.load(Ordering::Acquire);
        let nodes = self.remote.get().filter(|_| address.is_multiple_of(PAGE));
        let nodes = nodes.ok_or(Error::NoRecord { log: NODES.name, address, end })?;
        let record = nodes.record(NodeAddress::new(address));
        let record = record.map_err(|error| Error::Remote(error.to_string()))?;
        let mut content = [0; PAGE_CONTENT_BYTES];
        assert!(record.len() <= NodeBatch::MAX_RECORD_BYTES, "a record of {} bytes", record.len());
        content[..record.len()].copy_from_slice(&record);
        let page = Arc::new(Page(content));
        self.cache.insert(address / PAGE, page.clone());
        Ok(page)
    }

    fn write_run(&self, run: &[(u64, Arc<Page>)]) -> Result<(), Error> {
        let segment = self.segment_of(run[0].0 * PAGE);
        let is_new = self.segments.last().is_none_or(|last| last < segment);
        let file = if is_new {
            let mut header = [0; PAGE_CONTENT_BYTES];
            let fields = self.segments.header(segment).to_bytes();
            header[..fields.len()].copy_from_slice(&fields);
            let page = [&header[..], &page_end(segment / PAGE, &header)].concat();
            self.segments.create(segment, &page)?
        } else {
            self.segments.open(segment)?
        };
        let mut buffer = Vec::with_capacity(WRITE_BUFFER_BYTES.min(run.len() * PAGE_BYTES));
        for pages in run.chunks(WRITE_BUFFER_BYTES / PAGE_BYTES) {
            buffer.clear();
            for (number, page) in pages {
                buffer.extend_from_slice(&page.0);
                buffer.extend_from_slice(&page_end(*number, &page.0));
            }
            file.write_at(pages[0].0 * PAGE - segment, &buffer)?;
        }
        file.sync()?;
        if is_new { self.segments.sync_directory() } else { Ok(()) }
    }

    /// Drops the waiting pages before this number, which are in their files.
    fn unpin(&self, number: u64) {
        let mut waiting = self.waiting.write().expect("no thread panics with it");
        let kept = waiting.split_off(&number);
        let written = std::mem::replace(&mut *waiting, kept);
        drop(waiting);
        self.room.release(written.len() as u64 * PAGE);
    }

    fn waiting(&self) -> RwLockReadGuard<'_, BTreeMap<u64, Arc<Page>>> {
        self.waiting.read().expect("no thread panics with it")
    }
}

fn read_page(file: &NamedFile, number: u64, segment: u64) -> Result<Arc<Page>, Error> {
    let mut page = [0; PAGE_BYTES];
    let offset = number * PAGE - segment;
    file.read_page_at(offset, &mut page)?;
    match content(number, &page) {
        Some(content) => Ok(Arc::new(Page(*content))),
        None => Err(file.damaged(offset, format!("page {number} does not match its checksum"))),
    }
}

/// The content of a page as it is in its file, if it is this page and undamaged.
fn content(number: u64, page: &[u8; PAGE_BYTES]) -> Option<&[u8; PAGE_CONTENT_BYTES]> {
    let (content, end) = page.split_first_chunk().expect("it is longer than what it holds");
    (end == page_end(number, content)).then_some(content)
}

/// The end of a page in its file: zeros, and a CRC-32 over the content and the page number, which
/// also detects a page in the place of another.
fn page_end(number: u64, content: &[u8; PAGE_CONTENT_BYTES]) -> [u8; PAGE_END_BYTES] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(content);
    hasher.update(&number.to_le_bytes());
    let mut end = [0; PAGE_END_BYTES];
    *end.last_chunk_mut().expect("it has room") = hasher.finalize().to_le_bytes();
    end
}

/// New records, invisible to readers until the batch is sealed. A dropped batch leaves no trace.
pub struct NodeBatch {
    nodes: NodeStore,
    pages: Vec<(u64, Arc<Page>)>,
    /// The number of the next page.
    next: u64,
    /// The bytes used of the last page.
    used: usize,
}

impl fmt::Debug for NodeBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeBatch").field("pages", &self.pages.len()).finish_non_exhaustive()
    }
}

impl NodeBatch {
    /// Makes the records readable at their addresses, from memory until they are persisted.
    ///
    /// # Errors
    /// When an earlier write failed; the records are dropped then.
    pub fn seal(mut self) -> Result<(), Error> {
        self.flush()
    }

    /// As [`seal`](Self::seal), of the records so far: the batch goes on behind them.
    ///
    /// # Errors
    /// As [`seal`](Self::seal).
    #[expect(clippy::missing_panics_doc, reason = "nothing panics while they are locked")]
    pub fn flush(&mut self) -> Result<(), Error> {
        let shared = &*self.nodes.shared;
        shared.health.check()?;
        let pages = std::mem::take(&mut self.pages);
        shared.room.take(pages.len() as u64 * PAGE);
        for (number, page) in &pages {
            shared.cache.insert(*number, page.clone());
        }
        shared.waiting.write().expect("no thread panics with it").extend(pages);
        shared.end.store(self.next * PAGE, Ordering::Release);
        self.used = PAGE_CONTENT_BYTES;
        Ok(())
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    fn new_page(&mut self) {
        let pages_per_segment = self.nodes.shared.segment_bytes / PAGE;
        let header = u64::from(self.next.is_multiple_of(pages_per_segment));
        self.pages.push((self.next + header, Arc::new(Page([0; PAGE_CONTENT_BYTES]))));
        self.next += header + 1;
        self.used = 0;
    }
}

impl RecordSink for NodeBatch {
    fn append(&mut self, record: &[u8]) -> NodeAddress {
        assert!(!record.is_empty() && record.len() <= Self::MAX_RECORD_BYTES);
        if self.used + record.len() > PAGE_CONTENT_BYTES {
            self.new_page();
        }
        let (number, page) = self.pages.last_mut().expect("there is a page now");
        let page = Arc::get_mut(page).expect("no reader has it before it is sealed");
        let range = self.used..self.used + record.len();
        page.0[range].copy_from_slice(record);
        let address = NodeAddress::new(*number * PAGE + self.used as u64);
        self.used += record.len();
        address
    }
}

impl Drop for NodeBatch {
    fn drop(&mut self) {
        self.nodes.shared.batch_is_open.store(false, Ordering::Release);
    }
}
