//! The file under the index: what redb writes, with a checksum for every block of 4 KiB, and a
//! first block that is replaced atomically.
//!
//! redb checks its pages when it repairs, not when it reads them, and it believes the flags in its
//! header. Here every read is checked, so a flipped bit is an error, never another answer.
//!
//! ```text
//! 0      header (64 bytes), zeros
//! 4096   redb's header: number, checksum, 512 bytes    written first, and synced
//! 8192   the same again                                written after that
//! 12288  block 1: 4096 bytes, checksum; block 2; ...
//! ```
//!
//! redb's header names the roots of its trees. When redb syncs, its blocks are synced before the
//! header is written, and the first copy of the header before the second: whatever is torn, one
//! copy is whole, and all that it names is there.

use crate::Error;
use crate::disk::{Directory, NamedFile};
use crate::header::Header;
use redb::StorageBackend;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

const BLOCK_BYTES: usize = 4096;
const STRIDE_BYTES: usize = BLOCK_BYTES + 4;
const COPIES_AT: [u64; 2] = [4096, 8192];
const BLOCKS_AT: u64 = 12288;
/// redb's header is 320 bytes long.
const ROOT_BYTES: usize = 512;
const COPY_BYTES: usize = 12 + ROOT_BYTES;

const HEADER: Header = Header { kind: *b"INDX", numbers: [BLOCK_BYTES as u64, 0] };

#[derive(Debug)]
pub(crate) struct CheckedFile {
    file: NamedFile,
    root: Mutex<RedbHeader>,
    cause: Arc<OnceLock<Error>>,
}

/// redb's header, and what of it is in the file.
#[derive(Debug)]
struct RedbHeader {
    bytes: [u8; ROOT_BYTES],
    written: [u8; ROOT_BYTES],
    /// Counts the versions of the header that were written.
    number: u64,
    /// Whether anything was written since the file was synced.
    unsynced: bool,
    /// Blocks, the first one included.
    blocks: u64,
}

impl CheckedFile {
    /// Opens the file, or begins an empty one.
    pub(crate) fn open(
        directory: &Directory,
        name: &str,
        cause: Arc<OnceLock<Error>>,
    ) -> Result<Self, Error> {
        let file = directory.create(name)?;
        let mut root = RedbHeader {
            bytes: [0; ROOT_BYTES],
            written: [0; ROOT_BYTES],
            number: 0,
            unsynced: true,
            blocks: 0,
        };
        let length = file.len()?;
        if length == 0 {
            file.write_at(0, &HEADER.to_bytes())?;
        } else {
            HEADER.expect(&file)?;
            root.read(&file)?;
            root.blocks = 1 + length.saturating_sub(BLOCKS_AT) / STRIDE_BYTES as u64;
        }
        Ok(Self { file, root: Mutex::new(root), cause })
    }

    fn root(&self) -> MutexGuard<'_, RedbHeader> {
        self.root.lock().expect("no thread panics with it")
    }

    /// Keeps the cause, which redb would make a string of.
    fn explain<T>(&self, result: Result<T, Error>) -> io::Result<T> {
        result.map_err(|error| {
            let _ = self.cause.set(error.clone());
            io::Error::other(error)
        })
    }

    /// Which blocks a range is.
    fn blocks(&self, offset: u64, length: usize) -> Result<u64, Error> {
        let aligned = offset.is_multiple_of(BLOCK_BYTES as u64);
        if !aligned || !length.is_multiple_of(BLOCK_BYTES) || offset == 0 {
            let what = format!("{length} bytes at offset {offset} are not whole blocks");
            return Err(Error::Index { file: self.file.path().into(), what });
        }
        Ok(offset / BLOCK_BYTES as u64)
    }

    fn read_blocks(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let first = self.blocks(offset, out.len())?;
        let mut bytes = vec![0; out.len() / BLOCK_BYTES * STRIDE_BYTES];
        let at = place(first);
        self.file.read_at(at, &mut bytes)?;
        let blocks = out.chunks_exact_mut(BLOCK_BYTES).zip(bytes.chunks_exact(STRIDE_BYTES));
        for (number, (out, block)) in (first..).zip(blocks) {
            let (content, checksum) = block.split_at(BLOCK_BYTES);
            if checksum != block_checksum(number, content) {
                let what = format!("block {number} does not match its checksum");
                return Err(self.file.damaged(place(number), what));
            }
            out.copy_from_slice(content);
        }
        Ok(())
    }

    fn write_blocks(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let first = self.blocks(offset, data.len())?;
        let mut bytes = Vec::with_capacity(data.len() / BLOCK_BYTES * STRIDE_BYTES);
        for (number, block) in (first..).zip(data.chunks_exact(BLOCK_BYTES)) {
            bytes.extend_from_slice(block);
            bytes.extend_from_slice(&block_checksum(number, block));
        }
        let end = first + (data.len() / BLOCK_BYTES) as u64;
        let mut root = self.root();
        root.unsynced = true;
        root.blocks = root.blocks.max(end);
        drop(root);
        self.file.write_at(place(first), &bytes)
    }
}

impl RedbHeader {
    /// Takes the newest complete copy.
    fn read(&mut self, file: &NamedFile) -> Result<(), Error> {
        let copies = [read_copy(file, COPIES_AT[0])?, read_copy(file, COPIES_AT[1])?];
        let newest = copies.into_iter().flatten().max_by_key(|(number, _)| *number);
        let Some((number, bytes)) = newest else {
            return Err(file.damaged(COPIES_AT[0], "both copies of the root are damaged"));
        };
        if copies[1].is_none_or(|(second, _)| second != number) {
            // The first is written next, and must not be the only one then.
            file.sync()?;
            file.write_at(COPIES_AT[1], &copy_bytes(number, &bytes))?;
        }
        (self.number, self.bytes, self.written) = (number, bytes, bytes);
        Ok(())
    }

    /// Syncs the blocks, and then the header, if that has changed.
    fn sync(&mut self, file: &NamedFile) -> Result<(), Error> {
        if std::mem::take(&mut self.unsynced) {
            file.sync()?;
        }
        if self.is_prepared_only() {
            return Ok(());
        }
        self.number += 1;
        let copy = copy_bytes(self.number, &self.bytes);
        file.write_at(COPIES_AT[0], &copy)?;
        file.sync()?;
        file.write_at(COPIES_AT[1], &copy)?;
        self.unsynced = true;
        self.written = self.bytes;
        Ok(())
    }

    /// Whether nothing changed but the commit slot that is not in use. redb fills it, syncs, and
    /// then switches to it: the switch brings both into the file at once.
    fn is_prepared_only(&self) -> bool {
        const FLAGS_AT: usize = 9;
        const SLOTS: [std::ops::Range<usize>; 2] = [64..192, 192..320];
        let unused = &SLOTS[usize::from(self.written[FLAGS_AT] & 1 == 0)];
        self.bytes[..unused.start] == self.written[..unused.start]
            && self.bytes[unused.end..] == self.written[unused.end..]
    }
}

impl StorageBackend for CheckedFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.root().blocks * BLOCK_BYTES as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if offset < BLOCK_BYTES as u64 && offset as usize + out.len() <= ROOT_BYTES {
            out.copy_from_slice(&self.root().bytes[offset as usize..][..out.len()]);
            return Ok(());
        }
        self.explain(self.read_blocks(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let blocks = len.div_ceil(BLOCK_BYTES as u64).max(1);
        let mut root = self.root();
        root.blocks = blocks;
        root.unsynced = true;
        drop(root);
        self.explain(self.file.set_len(place(blocks)))
    }

    fn sync_data(&self) -> io::Result<()> {
        let synced = self.root().sync(&self.file);
        self.explain(synced)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset < BLOCK_BYTES as u64 && offset as usize + data.len() <= ROOT_BYTES {
            self.root().bytes[offset as usize..][..data.len()].copy_from_slice(data);
            return Ok(());
        }
        // A commit writes many pages one after the other: a thread that reads the
        // index meanwhile needs none of its locks.
        self.explain(self.write_blocks(offset, data))
    }
}

/// Where a block begins in the file.
fn place(number: u64) -> u64 {
    BLOCKS_AT + (number - 1) * STRIDE_BYTES as u64
}

fn block_checksum(number: u64, block: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(block);
    hasher.update(&number.to_le_bytes());
    hasher.finalize().to_le_bytes()
}

fn copy_bytes(number: u64, root: &[u8; ROOT_BYTES]) -> [u8; COPY_BYTES] {
    let mut bytes = [0; COPY_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[12..].copy_from_slice(root);
    let checksum = copy_checksum(&bytes);
    bytes[8..12].copy_from_slice(&checksum);
    bytes
}

fn copy_checksum(bytes: &[u8; COPY_BYTES]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..8]);
    hasher.update(&bytes[12..]);
    hasher.finalize().to_le_bytes()
}

fn read_copy(file: &NamedFile, at: u64) -> Result<Option<(u64, [u8; ROOT_BYTES])>, Error> {
    let mut bytes = [0; COPY_BYTES];
    if file.len()? < at + COPY_BYTES as u64 {
        return Ok(None);
    }
    file.read_at(at, &mut bytes)?;
    if bytes[8..12] != copy_checksum(&bytes) {
        return Ok(None);
    }
    let number = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    Ok(Some((number, bytes[12..].try_into().expect("the rest"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, File};
    use std::collections::BTreeMap;
    use testing::disks::{Disk as _, Fault, FaultDisk};

    /// [`FaultDisk`] by the traits of this build: it has those of the library.
    #[derive(Debug)]
    struct Adapter(FaultDisk);

    #[derive(Debug)]
    struct FileAdapter(Arc<dyn testing::disks::File>);

    impl Disk for Adapter {
        fn open(&self, name: &str, create: bool) -> io::Result<Option<Arc<dyn File>>> {
            let file = self.0.open(name, create)?;
            Ok(file.map(|file| Arc::new(FileAdapter(file)) as Arc<dyn File>))
        }

        fn list(&self) -> io::Result<Vec<String>> {
            self.0.list()
        }

        fn remove(&self, name: &str) -> io::Result<()> {
            self.0.remove(name)
        }

        fn sync(&self) -> io::Result<()> {
            self.0.sync()
        }

        fn path(&self, name: &str) -> String {
            self.0.path(name)
        }
    }

    impl File for FileAdapter {
        fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
            self.0.read_at(offset, bytes)
        }

        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.0.write_at(offset, bytes)
        }

        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }

        fn set_len(&self, bytes: u64) -> io::Result<()> {
            self.0.set_len(bytes)
        }

        fn sync(&self) -> io::Result<()> {
            self.0.sync()
        }
    }

    fn open(disk: &FaultDisk) -> Result<CheckedFile, Error> {
        let disk = Arc::new(Adapter(disk.clone()));
        CheckedFile::open(&Directory::new(disk), "index", Arc::default())
    }

    /// The last root that is in the file.
    fn root(file: &CheckedFile) -> u8 {
        let mut bytes = [0; ROOT_BYTES];
        file.read(0, &mut bytes).expect("it is in memory");
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "it is whole");
        bytes[0]
    }

    /// How long the file is at least when it has this root: it grows twice.
    fn length(root: u8) -> u64 {
        let blocks = [3, 9].into_iter().filter(|blocks| u64::from(root) >= *blocks).max();
        blocks.unwrap_or(0) * BLOCK_BYTES as u64
    }

    /// Writes roots one after another until one fails; the last one that did not. There are no
    /// blocks in between, as they would make more durable, but some roots have a longer file.
    fn write(file: &CheckedFile, roots: std::ops::Range<u8>) -> u8 {
        let mut last = root(file);
        for next in roots {
            let grows = length(next) > length(last);
            // All earlier writes are durable by then.
            if grows && file.sync_data().and_then(|()| file.set_len(length(next))).is_err() {
                break;
            }
            file.write(0, &[next; ROOT_BYTES]).expect("it is in memory");
            if file.sync_data().is_err() {
                break;
            }
            last = next;
        }
        last
    }

    /// A process is killed at any operation, and the power fails at any of the next one.
    #[test]
    fn the_root_never_goes_back_behind_one_that_was_synced_or_read_again() {
        let begun = FaultDisk::new(&BTreeMap::new(), Fault::Never);
        write(&open(&begun).expect("it opens"), 1..2);
        let files = begun.after_restart();
        for kill in 0.. {
            let killed = FaultDisk::new(&files, Fault::PowerCut { at: kill });
            let synced = open(&killed).map_or(1, |file| write(&file, 2..6));
            for at in 0.. {
                let disk = killed.restarted(Fault::PowerCut { at });
                let least = match open(&disk) {
                    Ok(file) => write(&file, 7..11),
                    Err(_) => synced,
                };
                for seed in 0..64 {
                    let left = FaultDisk::new(&disk.after_power_cut(seed), Fault::Never);
                    let context = format!("killed at {kill}, power cut at {at}, seed {seed}");
                    let file = open(&left).unwrap_or_else(|error| panic!("{context}: {error}"));
                    let found = root(&file);
                    assert!(found >= least.max(synced), "{context}: {found}, not {least}");
                    assert!(file.len().expect("memory") >= length(found), "{context}: too short");
                }
                if disk.operations() <= at {
                    break;
                }
            }
            if killed.operations() <= kill {
                break;
            }
        }
    }
}
