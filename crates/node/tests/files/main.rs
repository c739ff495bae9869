//! Block files and state dumps: every form is read, written again where it can be, and refused
//! where it is broken.
//!
//! Real chains come from the folder that `DEPONENT_FIXTURES` names (docs/conformance.md), real era1
//! files from go-ethereum's sources in the cache of Go modules.

mod block_files;
mod broken_files;
mod commands;
mod era1_files;
mod era_files;
#[path = "../common/geth.rs"]
mod geth;
mod geth_files;
mod state_files;
mod states;
mod written_files;

use std::fs;
use std::path::{Path, PathBuf};

use alloy_rlp::Encodable;
use deponent_node::files::{BlockReader, FileBlock};
use execution::SealedBlock;

/// `None`, with a word, where there are no fixtures and none are demanded.
fn fixtures() -> Option<PathBuf> {
    let folder = std::env::var_os("DEPONENT_FIXTURES").map(PathBuf::from);
    if folder.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI needs DEPONENT_FIXTURES");
        println!("not run: set DEPONENT_FIXTURES to the folder of docs/conformance.md");
    }
    folder
}

/// All blocks of a file, which must be whole.
#[track_caller]
fn read(path: &Path) -> Vec<FileBlock> {
    let reader = BlockReader::open(path).unwrap_or_else(|error| panic!("{error}"));
    reader.map(|block| block.unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// The blocks of a file up to its end or its error.
fn try_read(path: &Path) -> (Vec<SealedBlock>, Option<String>) {
    let (mut blocks, mut error) = (Vec::new(), None);
    match BlockReader::open(path) {
        Ok(reader) => {
            for next in reader {
                assert!(error.is_none(), "nothing comes after an error");
                match next {
                    Ok(block) => blocks.push(block.block),
                    Err(found) => error = Some(found.to_string()),
                }
            }
        }
        Err(found) => error = Some(found.to_string()),
    }
    (blocks, error)
}

fn blocks(found: &[FileBlock]) -> Vec<SealedBlock> {
    found.iter().map(|block| block.block.clone()).collect()
}

/// A chain file.
fn rlp(blocks: &[SealedBlock]) -> Vec<u8> {
    let mut out = Vec::new();
    blocks.iter().for_each(|block| block.encode(&mut out));
    out
}

/// An e2store entry.
fn entry(kind: u16, value: &[u8]) -> Vec<u8> {
    let bytes = (value.len() as u32).to_le_bytes();
    [&kind.to_le_bytes(), &bytes[..], &[0, 0], value].concat()
}

/// An e2store entry whose value is packed.
fn packed_entry(kind: u16, value: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut packed = snap::write::FrameEncoder::new(Vec::new());
    packed.write_all(value).expect("memory");
    entry(kind, &packed.into_inner().expect("memory"))
}

/// Asserts that reading blocks ends with an error that names the file and has these words.
#[track_caller]
fn refused(path: &Path, words: &[&str]) {
    let (_, error) = try_read(path);
    check_error(path, &error.expect("an error"), words);
}

#[track_caller]
fn check_error(path: &Path, error: &str, words: &[&str]) {
    assert!(error.starts_with(&path.display().to_string()), "{error}");
    for word in words {
        assert!(error.contains(word), "{word:?} is not in {error:?}");
    }
}

/// Numbers that look random (SplitMix64). The seed is printed, and taken from `FILES_SEED`.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let given = std::env::var("FILES_SEED").ok().and_then(|seed| seed.parse().ok());
        let clock = || std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
        let seed = given.unwrap_or_else(clock);
        println!("FILES_SEED={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// The bytes, with something wrong: cut off, or bytes changed, doubled or left out.
    fn broken(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len().max(1)).min(bytes.len());
            let end = (at + self.below(9)).min(bytes.len());
            match self.below(5) {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at..end)),
                2 => bytes.splice(at..at, vec![self.next() as u8; self.below(9)]).for_each(drop),
                3 => bytes[at..end].fill(self.next() as u8),
                _ => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
        }
        bytes
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("written");
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
