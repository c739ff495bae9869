//! Chain files in the order of their blocks, and the blocks that are missing between them.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use alloy_primitives::B256;

use crate::blocks::{BlockForm, BlockReader};
use crate::error::{Error, Location};
use crate::limits::{ARCHIVE_BLOCKS, CHAIN_FILES};

/// The endings of names that a folder's chain files have, before `.gz` or `.zst`.
const ENDINGS: [&str; 5] = [".era1", ".ere", ".era", ".rlp", ".jsonl"];

/// A chain file, with its first block.
#[derive(Debug)]
pub struct ChainFile {
    /// The path.
    pub path: PathBuf,
    /// The number of the first block.
    pub first_number: u64,
    /// The hash of that block.
    pub first_hash: B256,
    /// The hash of the block before it.
    pub parent_hash: B256,
    /// The highest number of a block; `None` where it is not found out: that of a pipe, and that of
    /// the last file, behind which nothing can be missing.
    pub last_number: Option<u64>,
    /// The reader of what can be read only once, such as a pipe.
    reader: Option<BlockReader>,
}

impl ChainFile {
    /// Opens the file `path`, and reads its first block. `None`: it has no block, as an era file of
    /// before the merge.
    fn open(path: &Path) -> Result<Option<Self>, Error> {
        let mut reader = BlockReader::open(path)?;
        let Some(found) = reader.look_ahead()? else { return Ok(None) };
        let header = &found.block.header;
        let (first_number, parent_hash) = (header.number, header.parent_hash);
        Ok(Some(Self {
            path: path.into(),
            first_number,
            first_hash: found.block.hash(),
            parent_hash,
            last_number: None,
            // Files are opened again: a process may have no more than 1024 of them open.
            reader: reader.file_bytes().is_none().then_some(reader),
        }))
    }

    /// Opens the file to read it from its first block on.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(self) -> Result<BlockReader, Error> {
        match self.reader {
            Some(reader) => Ok(reader),
            None => BlockReader::open(&self.path),
        }
    }

    /// The highest number of a block, from the index of an archive, else from all blocks.
    fn highest(&self) -> Result<Option<u64>, Error> {
        if self.reader.is_some() {
            return Ok(None);
        }
        let reader = BlockReader::open(&self.path)?;
        let is_archive = matches!(reader.form(), BlockForm::Era1 | BlockForm::Ere);
        if reader.is_packed() || !is_archive {
            return reader.highest();
        }
        let path = self.path.as_path().into();
        let count = last_word(&self.path).map_err(|error| Error::io(&path, error))?;
        if !(1..=ARCHIVE_BLOCKS as u64).contains(&count) {
            let problem = format!("its end is not that of an index: it counts {count} blocks");
            return Err(Error::content(&path, Location::default(), problem));
        }
        Ok(self.first_number.checked_add(count - 1))
    }
}

/// The last eight bytes of a file, little-endian.
fn last_word(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-8))?;
    let mut word = [0; 8];
    file.read_exact(&mut word)?;
    Ok(u64::from_le_bytes(word))
}

/// The files `paths`, and those in the folders among them, in the order of their first blocks;
/// files with the same first block stay in the order given. Files without a block are left out.
///
/// Of each file the first block is read; of all but the last one also the highest number is found
/// out, for which files other than archives are read whole.
///
/// # Errors
/// If a file cannot be read or is broken as far as it is read, a folder has none, or there are more
/// than 65,536 files.
pub fn in_order(paths: &[PathBuf]) -> Result<Vec<ChainFile>, Error> {
    let mut files = Vec::new();
    for path in paths {
        let in_folder = if path.is_dir() { folder(path)? } else { vec![path.clone()] };
        for path in in_folder {
            if files.len() == CHAIN_FILES {
                let problem = format!("more than {CHAIN_FILES} files at once");
                return Err(Error::content(&path.into(), Location::default(), problem));
            }
            files.extend(ChainFile::open(&path)?);
        }
    }
    files.sort_by_key(|file| file.first_number);
    if let Some((_, all_but_last)) = files.split_last_mut() {
        for file in all_but_last {
            file.last_number = file.highest()?;
        }
    }
    Ok(files)
}

/// The chain files in a folder, by the endings of their names.
fn folder(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(path)?;
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
        files.retain(|path| is_chain_file(path) && !path.is_dir());
        files.sort();
        Ok(files)
    };
    let files = list().map_err(|error| Error::io(&path.into(), error))?;
    if files.is_empty() {
        let problem = format!(
            "no chain file in this folder: names end in {} or {}, packed in .gz or .zst too",
            ENDINGS[..4].join(", "),
            ENDINGS[4]
        );
        return Err(Error::content(&path.into(), Location::default(), problem));
    }
    Ok(files)
}

fn is_chain_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(name);
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Blocks that are in none of some files in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The number of the first of them.
    pub first: u64,
    /// The number of the last of them.
    pub last: u64,
    /// The file with the highest block before them; `None` if that is on the chain already.
    pub before: Option<PathBuf>,
    /// The file that begins behind them.
    pub after: PathBuf,
}

/// The gaps between `files`, which are in order, and a chain whose head is block `reach`. Before a
/// file that goes on from another block of the chain, by `goes_on`, nothing is missing.
///
/// # Errors
/// Those of `goes_on`.
pub fn gaps<E>(
    files: &[ChainFile],
    mut reach: u64,
    mut goes_on: impl FnMut(&ChainFile) -> Result<bool, E>,
) -> Result<Vec<Gap>, E> {
    let (mut gaps, mut before) = (Vec::new(), None::<PathBuf>);
    // Behind a pipe nothing is known to be missing.
    let mut is_known = true;
    for file in files {
        if is_known && file.first_number > reach.saturating_add(1) && !goes_on(file)? {
            gaps.push(Gap {
                first: reach + 1,
                last: file.first_number - 1,
                before: before.clone(),
                after: file.path.clone(),
            });
            reach = file.first_number - 1;
        }
        is_known &= file.last_number.is_some();
        let last = file.last_number.unwrap_or(file.first_number);
        if last > reach {
            (reach, before) = (last, Some(file.path.clone()));
        }
    }
    Ok(gaps)
}
