use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, U256, hex};
use execution::SealedBlock;
use sha2::{Digest, Sha256};

use crate::archive::ArchiveName;
use crate::blocks::BlockReader;
use crate::era1::Era1Writer;
use crate::ere_writer::EreWriter;
use crate::error::{Error, Location};
use crate::limits::{ARCHIVE_BLOCKS, INPUT_BUFFER_BYTES};
use crate::output::Output;

/// The forms of archives that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveForm {
    /// Blocks of proof of work.
    Era1,
    /// Blocks before and after the merge.
    Ere,
}

impl ArchiveForm {
    /// The ending of the files' names.
    const fn ending(self) -> &'static str {
        match self {
            Self::Era1 => ".era1",
            Self::Ere => ".ere",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Era1 => Self::Ere,
            Self::Ere => Self::Era1,
        }
    }
}

/// A directory of era1 or of ere files of one network in geth's layout, which its `import-history`
/// reads: one file for 8192 blocks, and `checksums.txt`.
#[derive(Debug)]
pub struct ArchiveFolder {
    directory: PathBuf,
    network: String,
    form: ArchiveForm,
}

/// Writes one file of an [`ArchiveFolder`].
#[derive(Debug)]
pub enum ArchiveWriter {
    /// An era1 file.
    Era1(Era1Writer),
    /// An ere file.
    Ere(EreWriter),
}

impl ArchiveWriter {
    /// Adds a block: [`Era1Writer::write`], [`EreWriter::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(
        &mut self,
        block: &SealedBlock,
        receipts_rlp: &[u8],
        total_difficulty: U256,
    ) -> Result<(), Error> {
        match self {
            Self::Era1(writer) => writer.write(block, receipts_rlp, total_difficulty),
            Self::Ere(writer) => writer.write(block, receipts_rlp, total_difficulty),
        }
    }

    fn first_number(&self) -> Option<u64> {
        match self {
            Self::Era1(writer) => writer.first_number(),
            Self::Ere(writer) => writer.first_number(),
        }
    }

    fn finish(self) -> Result<PathBuf, Error> {
        match self {
            Self::Era1(writer) => writer.finish(),
            Self::Ere(writer) => writer.finish(),
        }
    }
}

impl ArchiveFolder {
    /// Opens the directory, which is created if absent.
    ///
    /// # Errors
    /// If it cannot be created, or has files of the other form, for which `checksums.txt` could not
    /// be that of both.
    pub fn open(directory: &Path, network: &str, form: ArchiveForm) -> Result<Self, Error> {
        fs::create_dir_all(directory).map_err(|error| Error::io(&directory.into(), error))?;
        let folder = |form| Self { directory: directory.into(), network: network.into(), form };
        if let Some(other) = folder(form.other()).files(None)?.first() {
            let problem = format!("{} files go into a directory without this one", form.ending());
            return Err(Error::content(&other.as_path().into(), Location::default(), problem));
        }
        Ok(folder(form))
    }

    /// Reads and checks the file of an epoch. Returns the number and hash of its last block; `None`
    /// if there is no such file.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged, or if there are two.
    pub fn last_block(&self, epoch: u64) -> Result<Option<(u64, B256)>, Error> {
        let files = self.files(Some(epoch))?;
        let Some(path) = files.first() else { return Ok(None) };
        if let Some(second) = files.get(1) {
            let problem = format!("{} is of the same epoch: remove one", second.display());
            return Err(Error::content(&path.as_path().into(), Location::default(), problem));
        }
        let mut last = None;
        for block in BlockReader::open(path)? {
            let block = block?.block;
            last = Some((block.header.number, block.hash()));
        }
        Ok(last)
    }

    /// Begins the file of an epoch.
    ///
    /// # Errors
    /// If no file can be created.
    pub fn begin(&self) -> Result<ArchiveWriter, Error> {
        let Self { directory, network, form } = self;
        Ok(match form {
            ArchiveForm::Era1 => ArchiveWriter::Era1(Era1Writer::create(directory, network)?),
            ArchiveForm::Ere => ArchiveWriter::Ere(EreWriter::create(directory, network)?),
        })
    }

    /// Completes the file of an epoch, and removes an earlier, shorter one.
    ///
    /// # Errors
    /// If writing or removing fails.
    pub fn finish(&self, writer: ArchiveWriter) -> Result<(), Error> {
        let first = writer.first_number().unwrap_or_default();
        let written = writer.finish()?;
        for path in self.files(Some(first / ARCHIVE_BLOCKS as u64))? {
            if path != written {
                fs::remove_file(&path).map_err(|error| Error::io(&path.into(), error))?;
            }
        }
        Ok(())
    }

    /// Writes `checksums.txt`, one line with the SHA-256 of each file, in the order of their names.
    /// Returns the number of files.
    ///
    /// # Errors
    /// If reading or writing fails.
    pub fn write_checksums(&self) -> Result<usize, Error> {
        let mut lines = Vec::new();
        for path in self.files(None)? {
            let checksum = sha256(&path).map_err(|error| Error::io(&path.into(), error))?;
            lines.push(hex::encode_prefixed(checksum));
        }
        let mut output = Output::create(&self.directory.join("checksums.txt"))?;
        output.write(lines.join("\n").as_bytes())?;
        output.finish()?;
        Ok(lines.len())
    }

    /// The network's files, of one epoch or of all, in the order of their names.
    fn files(&self, epoch: Option<u64>) -> Result<Vec<PathBuf>, Error> {
        let (begins, ending) = (format!("{}-", self.network), self.form.ending());
        let is_ours = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // The epoch follows the network's name.
            let rest = name.strip_prefix(&begins).filter(|rest| rest.ends_with(ending));
            let is_epoch = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
            rest.and_then(|rest| rest.split('-').next()).is_some_and(is_epoch)
                && ArchiveName::of(path, ending)
                    .is_some_and(|name| epoch.is_none_or(|epoch| name.epoch == epoch))
        };
        let list = || -> io::Result<Vec<PathBuf>> {
            let entries = fs::read_dir(&self.directory)?;
            let paths = entries.map(|entry| entry.map(|entry| entry.path()));
            let mut files: Vec<PathBuf> = paths.collect::<io::Result<_>>()?;
            files.retain(|path| is_ours(path));
            files.sort();
            Ok(files)
        };
        list().map_err(|error| Error::io(&self.directory.as_path().into(), error))
    }
}

fn sha256(path: &Path) -> io::Result<[u8; 32]> {
    let (mut file, mut hasher) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0; INPUT_BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            bytes => hasher.update(&buffer[..bytes]),
        }
    }
}
