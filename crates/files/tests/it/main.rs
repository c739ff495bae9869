//! Block files and state dumps: every form is read, written again where it can be, and refused
//! where it is broken.
//!
//! Real chains come from the folder that `DEPONENT_FIXTURES` names (docs/conformance.md), real era1
//! files from go-ethereum's sources in the cache of Go modules.

mod block_files;
mod broken_files;
mod era1_files;
mod era_files;
mod ere_files;
mod file_order;
mod geth_files;
mod hashed_files;
mod rpc_blocks;
mod state_files;
mod states;
mod written_files;

use std::path::Path;

use alloy_rlp::Encodable;
use deponent_files::{BlockReader, FileBlock};
use execution::SealedBlock;

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
