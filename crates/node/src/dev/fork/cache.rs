//! Parts of a block's state that were fetched, on disk: nodes, codes and headers, each found by its
//! hash, which the reader computes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes, keccak256};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use state::limits::MAX_FRAME_BYTES;
use state::{DirectoryDisk, RecordLog};

use crate::limits::{FORK_CACHE_BYTES, FORK_CACHE_FILES};

/// The cache of one block.
#[derive(Debug)]
pub(super) struct BlockCache {
    log: Mutex<RecordLog>,
}

impl BlockCache {
    /// The cache of a block, and all that it has. `None` where there can be none, of which the log
    /// says why.
    pub(super) fn open(chain_id: u64, block: B256) -> Option<(Self, Vec<Bytes>)> {
        let root = root()?;
        let directory = root.join(chain_id.to_string()).join(block.to_string());
        let opened = Self::open_in(&directory);
        make_room(&root, &directory);
        match opened {
            Ok(opened) => Some(opened),
            Err(error) => {
                let directory = directory.display();
                tracing::info!(%error, "what is fetched is not kept in {directory}");
                None
            }
        }
    }

    fn open_in(directory: &Path) -> Result<(Self, Vec<Bytes>), state::Error> {
        let mut items = Vec::new();
        let disk = DirectoryDisk::open(directory)?;
        let mut log = RecordLog::open(disk, |item| items.push(Bytes::copy_from_slice(item)))?;
        // Each process adds a file.
        if fs::read_dir(directory).is_ok_and(|files| files.count() > FORK_CACHE_FILES) {
            log.rewrite(items.iter().map(|item| item.to_vec()))?;
        }
        Ok((Self { log: Mutex::new(log) }, items))
    }

    /// Keeps an item.
    pub(super) fn keep(&self, item: &Bytes) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.bytes() < FORK_CACHE_BYTES
            && item.len() <= MAX_FRAME_BYTES
            && let Err(error) = log.append(item)
        {
            tracing::debug!(%error, "what was fetched is not kept");
        }
    }
}

/// The file beside the items of a block that says which block it is.
const BLOCK_FILE: &str = "block.json";

/// All that a chain needs to know of the block with which it begins, beside the state.
#[derive(Debug, PartialEq)]
pub(super) struct KeptBlock {
    pub(super) chain_id: u64,
    pub(super) header: Header,
    /// The answer of `eth_config`, where it was asked for.
    pub(super) config: Option<Value>,
}

#[derive(Serialize, Deserialize)]
struct BlockFile {
    /// keccak-256 of the endpoint's URL, which may be a secret.
    endpoint: B256,
    /// The header's RLP.
    header: Bytes,
    config: Option<Value>,
}

impl KeptBlock {
    /// Keeps the block of the endpoint with this URL.
    pub(super) fn keep(&self, url: &str) {
        if let Some(root) = root()
            && let Err(error) = self.keep_in(&root, url)
        {
            tracing::info!(%error, "the block is not kept in {}", root.display());
        }
    }

    /// The block with this number that was found at the endpoint with this URL.
    pub(super) fn find(url: &str, number: u64) -> Option<Self> {
        Self::find_in(&root()?, url, number)
    }

    fn keep_in(&self, root: &Path, url: &str) -> std::io::Result<()> {
        let hash = self.header.hash_slow();
        let directory = root.join(self.chain_id.to_string()).join(hash.to_string());
        fs::create_dir_all(&directory)?;
        let header = alloy_rlp::encode(&self.header).into();
        let file = BlockFile { endpoint: keccak256(url), header, config: self.config.clone() };
        let text = serde_json::to_vec(&file)?;
        // Under its name only when it is whole.
        let whole = directory.join(format!("{BLOCK_FILE}.{}", std::process::id()));
        fs::write(&whole, text)?;
        fs::rename(&whole, directory.join(BLOCK_FILE))
    }

    fn find_in(root: &Path, url: &str, number: u64) -> Option<Self> {
        let endpoint = keccak256(url);
        entries(root).into_iter().flat_map(|chain| entries(&chain)).find_map(|directory| {
            let file = fs::read(directory.join(BLOCK_FILE)).ok()?;
            let file: BlockFile = serde_json::from_slice(&file).ok()?;
            let header: Header = alloy_rlp::decode_exact(&file.header).ok()?;
            let names = directory.strip_prefix(root).ok()?;
            let chain_id = names.iter().next()?.to_str()?.parse().ok()?;
            // The name is the hash, as that of each item.
            let is_whole = names.ends_with(header.hash_slow().to_string());
            let is_it = is_whole && file.endpoint == endpoint && header.number == number;
            is_it.then_some(Self { chain_id, header, config: file.config })
        })
    }
}

fn entries(path: &Path) -> Vec<PathBuf> {
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The directory of all caches of this kind.
fn root() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
    Some(cache?.join("deponent").join("fork"))
}

/// Removes the caches of other blocks that were used longest ago, until all have no more than their
/// bound.
fn make_room(root: &Path, own: &Path) {
    let blocks = entries(root).into_iter().flat_map(|chain| entries(&chain));
    let mut all: Vec<_> = blocks.map(|block| (used(&block), block)).collect();
    all.sort_unstable();
    let mut bytes: u64 = all.iter().map(|((_, bytes), _)| bytes).sum();
    for ((_, freed), block) in all.iter().filter(|(_, block)| block != own) {
        if bytes <= FORK_CACHE_BYTES {
            break;
        }
        match fs::remove_dir_all(block) {
            Ok(()) => bytes -= freed,
            Err(error) => tracing::debug!(%error, "{} is not removed", block.display()),
        }
    }
}

/// When a cache was used last, and its bytes.
fn used(block: &Path) -> (SystemTime, u64) {
    let files = fs::read_dir(block).into_iter().flatten().flatten();
    let files = files.filter_map(|file| file.metadata().ok());
    files.fold((SystemTime::UNIX_EPOCH, 0), |(last, bytes), file| {
        (file.modified().map_or(last, |at| at.max(last)), bytes + file.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(directory: &Path, items: &[&'static [u8]]) -> Vec<Bytes> {
        let (cache, before) = BlockCache::open_in(directory).expect("opened");
        items.iter().for_each(|item| cache.keep(&Bytes::from_static(item)));
        before
    }

    #[test]
    fn what_was_kept_is_there_the_next_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let block = directory.path().join("1").join("0xaa");
        assert!(kept(&block, &[b"one", b"two"]).is_empty());
        // Two at a time are one too many.
        let (first, _) = BlockCache::open_in(&block).expect("opened");
        BlockCache::open_in(&block).expect_err("it is in use");
        drop(first);
        for _ in 0..2 * FORK_CACHE_FILES {
            assert_eq!(kept(&block, &[b"two"])[..2], [Bytes::from("one"), Bytes::from("two")]);
        }
        let files = fs::read_dir(&block).expect("there").count();
        assert!(files <= FORK_CACHE_FILES + 2, "{files} files");
    }

    #[test]
    fn a_block_is_found_by_its_endpoint_and_number() {
        let root = tempfile::tempdir().expect("a directory");
        let block = |number, config| KeptBlock {
            chain_id: 7,
            header: Header { number, ..Header::default() },
            config,
        };
        let kept = block(5, Some(serde_json::json!({"current": 1})));
        kept.keep_in(root.path(), "https://one/key").expect("kept");
        kept.keep_in(root.path(), "https://one/key").expect("kept again");
        block(6, None).keep_in(root.path(), "https://other").expect("kept");
        let find = |url, number| KeptBlock::find_in(root.path(), url, number);
        assert_eq!(find("https://one/key", 5), Some(kept));
        assert_eq!(find("https://one/key", 6), None);
        assert_eq!(find("https://other", 6), Some(block(6, None)));
        // One in the place of another, and one that is no block.
        let place = |number| {
            let hash = block(number, None).header.hash_slow().to_string();
            root.path().join("7").join(hash).join(BLOCK_FILE)
        };
        fs::copy(place(6), place(5)).expect("copied");
        fs::write(place(6), "{}").expect("written");
        assert_eq!(find("https://other", 6), None);
    }

    #[test]
    fn the_oldest_goes_first() {
        let root = tempfile::tempdir().expect("a directory");
        let names = ["1/oldest", "2/older", "1/own", "1/new"];
        for (age, name) in names.iter().enumerate() {
            let block = root.path().join(name);
            fs::create_dir_all(&block).expect("made");
            let file = fs::File::create(block.join("records-1")).expect("made");
            // It takes no room.
            file.set_len(FORK_CACHE_BYTES / 2).expect("sparse");
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(age as u64 + 1);
            file.set_modified(time).expect("set");
        }
        make_room(root.path(), &root.path().join("1/own"));
        let left = names.map(|name| root.path().join(name).exists());
        assert_eq!(left, [false, false, true, true]);
    }
}
