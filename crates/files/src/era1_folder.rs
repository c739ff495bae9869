use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, hex};
use sha2::{Digest, Sha256};

use crate::blocks::BlockReader;
use crate::era1::Era1Writer;
use crate::error::{Error, Location};
use crate::limits::{ERA1_BLOCKS, INPUT_BUFFER_BYTES};
use crate::output::Output;

/// A directory of era1 files of one network in geth's layout, which its `import-history` reads: one
/// file for 8192 blocks, and `checksums.txt`.
#[derive(Debug)]
pub struct Era1Folder {
    directory: PathBuf,
    network: String,
}

impl Era1Folder {
    /// Opens the directory, which is created if absent.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(directory: &Path, network: &str) -> Result<Self, Error> {
        fs::create_dir_all(directory).map_err(|error| Error::io(&directory.into(), error))?;
        Ok(Self { directory: directory.into(), network: network.into() })
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
    pub fn begin(&self) -> Result<Era1Writer, Error> {
        Era1Writer::create(&self.directory, &self.network)
    }

    /// Completes the file of an epoch, and removes an earlier, shorter one.
    ///
    /// # Errors
    /// If writing or removing fails.
    pub fn finish(&self, writer: Era1Writer) -> Result<(), Error> {
        let first = writer.first_number().unwrap_or_default();
        let written = writer.finish()?;
        for path in self.files(Some(first / ERA1_BLOCKS as u64))? {
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
        let begins = match epoch {
            Some(epoch) => format!("{}-{epoch:05}-", self.network),
            None => format!("{}-", self.network),
        };
        let list = || -> io::Result<Vec<PathBuf>> {
            let mut files = Vec::new();
            for entry in fs::read_dir(&self.directory)? {
                let path = entry?.path();
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let rest = name.strip_prefix(&begins).and_then(|rest| rest.strip_suffix(".era1"));
                if rest.is_some_and(|rest| rest.split('-').all(is_hex)) {
                    files.push(path);
                }
            }
            files.sort();
            Ok(files)
        };
        list().map_err(|error| Error::io(&self.directory.as_path().into(), error))
    }
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_hexdigit())
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
