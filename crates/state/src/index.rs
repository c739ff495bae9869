//! The index: small tables with the locations of all values in the logs. A value is durable once
//! the transaction that adds it to the index has committed.

mod checked;
pub(crate) mod lookup;
mod stored;

pub use stored::NewCanonical;
pub(crate) use stored::{
    StoreState, StoredBlock, StoredHeads, location_bytes, location_from, transaction_key,
};

use crate::Error;
use crate::disk::Directory;
use alloy_primitives::B256;
use checked::CheckedFile;
use redb::{ReadTransaction, ReadableDatabase, ReadableTableMetadata, TableDefinition};
use redb::{ReadableTable, WriteTransaction};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The index's file.
pub(crate) const INDEX: &str = "index";

/// Block hash to [`StoredBlock`].
pub(crate) const BLOCKS: TableDefinition<'static, &[u8; 32], &[u8]> =
    TableDefinition::new("blocks");
/// Number to canonical hash.
pub(crate) const CANONICAL: TableDefinition<'static, u64, &[u8; 32]> =
    TableDefinition::new("canonical");
/// Code hash to location.
pub(crate) const CODES: TableDefinition<'static, &[u8; 32], &[u8; 12]> =
    TableDefinition::new("codes");
/// The store's own values, and the engine's with `ENGINE_PREFIX`.
pub(crate) const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");

const STATE: &str = "state";
const HEADS: &str = "heads";
const ENGINE_PREFIX: &str = "engine/";

#[derive(Debug)]
pub(crate) struct Index {
    opened: RwLock<OpenIndex>,
    directory: Directory,
    cache_bytes: usize,
}

/// The open redb database. After one failed read redb refuses all reads beyond its cache with
/// [`redb::Error::PreviousIo`] until it is opened again.
#[derive(Debug)]
struct OpenIndex {
    /// `None` if it could not be opened again.
    database: Option<redb::Database>,
    /// The first error below redb, which is more precise than that of redb.
    cause: Arc<OnceLock<Error>>,
}

impl Index {
    /// Opens the index; an empty file becomes a new one.
    pub(crate) fn open(directory: &Directory, cache_bytes: usize) -> Result<Self, Error> {
        let opened = RwLock::new(OpenIndex::open(directory, cache_bytes)?);
        Ok(Self { opened, directory: directory.clone(), cache_bytes })
    }

    pub(crate) fn read<T>(
        &self,
        mut run: impl FnMut(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, Error> {
        self.with(|database| run(&database.begin_read()?))
    }

    /// Changes the tables, all or nothing, durably.
    pub(crate) fn write<T>(
        &self,
        mut run: impl FnMut(&WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, Error> {
        self.directory.health.check()?;
        let written = self.with(|database| {
            let mut transaction = database.begin_write()?;
            // Reopening after a crash need not walk all tables then.
            transaction.set_quick_repair(true);
            let done = run(&transaction)?;
            transaction.commit()?;
            Ok(done)
        });
        written.map_err(|error| self.directory.health.failed(error))
    }

    /// Runs an operation. If another read has failed, before or meanwhile, redb is opened again and
    /// the operation repeated under the write lock: damage in one place must not fail other reads.
    fn with<T>(
        &self,
        mut run: impl FnMut(&redb::Database) -> Result<T, redb::Error>,
    ) -> Result<T, Error> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        let first = opened.run(&mut run);
        if !matches!(first, Err(redb::Error::PreviousIo)) {
            return first.map_err(|error| opened.explain(error, &self.directory));
        }
        drop(opened);
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        let mut last = opened.run(&mut run);
        // After a failed write nothing is written any more, and opening redb writes.
        let is_writable = self.directory.health.check().is_ok();
        if is_writable && matches!(last, Err(redb::Error::PreviousIo)) {
            opened.open_anew(&self.directory, self.cache_bytes)?;
            last = opened.run(&mut run);
        }
        last.map_err(|error| opened.explain(error, &self.directory))
    }

    pub(crate) fn block(&self, hash: &B256) -> Result<Option<StoredBlock>, Error> {
        let bytes = self.read(|transaction| {
            let found = transaction.open_table(BLOCKS)?.get(&hash.0)?;
            Ok(found.map(|bytes| bytes.value().to_vec()))
        })?;
        bytes.map(|bytes| self.decode("block", StoredBlock::from_bytes(&bytes))).transpose()
    }

    pub(crate) fn canonical(&self, number: u64) -> Result<Option<B256>, Error> {
        self.read(|transaction| {
            let found = transaction.open_table(CANONICAL)?.get(number)?;
            Ok(found.map(|hash| B256::new(*hash.value())))
        })
    }

    pub(crate) fn code(&self, hash: &B256) -> Result<Option<crate::log::FrameLocation>, Error> {
        self.read(|transaction| {
            let found = transaction.open_table(CODES)?.get(&hash.0)?;
            Ok(found.map(|location| location_from(location.value())))
        })
    }

    pub(crate) fn meta(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.meta_value(&engine_key(key))
    }

    /// The state and the heads of the last transaction; `None` in a new index.
    pub(crate) fn state(&self) -> Result<Option<(StoreState, StoredHeads)>, Error> {
        let tables = self.read(|transaction| Ok(transaction.list_tables()?.count()))?;
        if tables == 0 {
            return Ok(None);
        }
        let missing = || self.contradiction("it has tables, but no state");
        let state = self.meta_value(STATE)?.ok_or_else(missing)?;
        let heads = self.meta_value(HEADS)?.ok_or_else(missing)?;
        let state = self.decode(STATE, StoreState::from_bytes(&state))?;
        Ok(Some((state, self.decode(HEADS, StoredHeads::from_bytes(&heads))?)))
    }

    /// How many blocks, canonical numbers and codes there are.
    pub(crate) fn counts(&self) -> Result<[u64; 3], Error> {
        self.read(|transaction| {
            let blocks = transaction.open_table(BLOCKS)?.len()?;
            let canonical = transaction.open_table(CANONICAL)?.len()?;
            Ok([blocks, canonical, transaction.open_table(CODES)?.len()?])
        })
    }

    /// Walks all tables, and compares them with their checksums.
    pub(crate) fn check_integrity(&mut self) -> Result<(), Error> {
        let opened = self.opened.get_mut().unwrap_or_else(PoisonError::into_inner);
        let checked = match &mut opened.database {
            Some(database) => database.check_integrity().map_err(redb::Error::from),
            None => Err(redb::Error::PreviousIo),
        };
        match checked.map_err(|error| opened.explain(error, &self.directory))? {
            true => Ok(()),
            false => Err(self.contradiction("it is not as its checksums say")),
        }
    }

    pub(crate) fn contradiction(&self, what: impl Into<String>) -> Error {
        Error::Index { file: self.directory.path(INDEX), what: what.into() }
    }

    pub(crate) fn decode<T>(&self, what: &str, decoded: Option<T>) -> Result<T, Error> {
        decoded.ok_or_else(|| self.contradiction(format!("a {what} in it cannot be decoded")))
    }

    fn meta_value(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.read(|transaction| {
            let found = transaction.open_table(META)?.get(key)?;
            Ok(found.map(|value| value.value().to_vec()))
        })
    }
}

impl OpenIndex {
    fn open(directory: &Directory, cache_bytes: usize) -> Result<Self, Error> {
        let cause = Arc::default();
        let file = CheckedFile::open(directory, INDEX, Arc::clone(&cause))?;
        let database = redb::Builder::new().set_cache_size(cache_bytes).create_with_backend(file);
        match database {
            Ok(database) => Ok(Self { database: Some(database), cause }),
            Err(error) => Err(explain(error.into(), &cause, directory)),
        }
    }

    fn open_anew(&mut self, directory: &Directory, cache_bytes: usize) -> Result<(), Error> {
        // Two open databases would not see each other's writes.
        self.database = None;
        *self = Self::open(directory, cache_bytes)?;
        Ok(())
    }

    fn run<T>(
        &self,
        run: impl FnOnce(&redb::Database) -> Result<T, redb::Error>,
    ) -> Result<T, redb::Error> {
        self.database.as_ref().map_or(Err(redb::Error::PreviousIo), run)
    }

    fn explain(&self, error: redb::Error, directory: &Directory) -> Error {
        explain(error, &self.cause, directory)
    }
}

/// Puts the state and the heads into a transaction; creates the tables when they are not there.
pub(crate) fn put_state(
    transaction: &WriteTransaction,
    state: &StoreState,
    heads: &StoredHeads,
) -> Result<(), redb::Error> {
    transaction.open_table(BLOCKS)?;
    transaction.open_table(CANONICAL)?;
    transaction.open_table(CODES)?;
    let mut meta = transaction.open_table(META)?;
    meta.insert(STATE, state.to_bytes().as_slice())?;
    meta.insert(HEADS, heads.to_bytes().as_slice())?;
    Ok(())
}

/// The key under which a value of the engine is kept.
pub(crate) fn engine_key(key: &str) -> String {
    format!("{ENGINE_PREFIX}{key}")
}

fn explain(error: redb::Error, cause: &OnceLock<Error>, directory: &Directory) -> Error {
    match cause.get() {
        Some(cause) => cause.clone(),
        None => Error::Index { file: directory.path(INDEX), what: error.to_string() },
    }
}

/// Removes all blocks above `number` and their canonical numbers. Returns the number of canonical
/// ones.
pub(crate) fn remove_above(
    transaction: &WriteTransaction,
    number: u64,
    mut removed: impl FnMut(&StoredBlock),
    progress: &mut dyn FnMut(f64),
) -> Result<u64, redb::Error> {
    let mut blocks = transaction.open_table(BLOCKS)?;
    let (total, mut done) = (blocks.len()?, 0);
    blocks.retain(|_, bytes| {
        done += 1;
        progress(done as f64 / total as f64);
        let block = StoredBlock::from_bytes(bytes);
        let stays = block.as_ref().is_some_and(|block| block.number <= number);
        block.iter().filter(|_| !stays).for_each(&mut removed);
        stays
    })?;
    let mut canonical = transaction.open_table(CANONICAL)?;
    let above = canonical.range(number + 1..)?.count() as u64;
    canonical.retain_in(number + 1.., |_, _| false)?;
    Ok(above)
}
