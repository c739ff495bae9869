//! The commands that read and write chain files and state dumps.

mod commands;
mod geth_dump;

use std::path::Path;

use execution::SealedBlock;
use files::{BlockReader, FileBlock};

/// All blocks of a file, which must be whole.
#[track_caller]
fn read(path: &Path) -> Vec<FileBlock> {
    let reader = BlockReader::open(path).unwrap_or_else(|error| panic!("{error}"));
    reader.map(|block| block.unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn blocks(found: &[FileBlock]) -> Vec<SealedBlock> {
    found.iter().map(|block| block.block.clone()).collect()
}
