use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use alloy_primitives::{B256, keccak256};
use serde::{Deserialize, Serialize};

use super::StateForm;
use crate::error::Error;
use crate::limits::IDENTITY_BYTES;
use crate::output::sync_folder;

/// The version of the sorted files. Other versions are not continued.
const VERSION: u32 = 1;

const MANIFEST: &str = "manifest.json";
const CODES: &str = "codes";

/// The files in the directory and the progress of the work. All files that it names are durable.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) version: u32,
    /// `None` for a source that cannot be read again.
    pub(super) source: Option<Identity>,
    pub(super) form: StateForm,
    pub(super) root: Option<B256>,
    /// The position up to which all accounts are in `runs`.
    pub(super) cut: Option<Cut>,
    /// Whether these are all accounts.
    pub(super) done: bool,
    pub(super) runs: Vec<Run>,
    pub(super) codes_bytes: u64,
    /// The number of the next file.
    pub(super) next: u32,
}

/// A position between two accounts of the source.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Cut {
    /// The number of bytes before it, in the decompressed content.
    pub(super) offset: u64,
    pub(super) line: u64,
    pub(super) accounts: u64,
}

/// A file of sorted accounts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) number: u32,
    pub(super) bytes: u64,
    pub(super) accounts: u64,
    /// The files with the slots of its largest accounts.
    pub(super) parts: Vec<u32>,
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            version: VERSION,
            source: None,
            form: StateForm::Lines,
            root: None,
            cut: None,
            done: false,
            runs: Vec::new(),
            codes_bytes: 0,
            next: 0,
        }
    }
}

/// Identifies an unchanged file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    path: PathBuf,
    bytes: u64,
    /// The modification time, in nanoseconds since 1970.
    modified: u128,
    /// The hash of its beginning.
    head: B256,
}

impl Identity {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// `None` for devices and pipes, which cannot be read twice.
    pub(super) fn of(path: &Path) -> Result<Option<Self>, Error> {
        if path.as_os_str() == "-" {
            return Ok(None);
        }
        let identify = || -> io::Result<Option<Self>> {
            let file = File::open(path)?;
            let data = file.metadata()?;
            if !data.is_file() {
                return Ok(None);
            }
            let modified = data.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            let mut head = Vec::new();
            file.take(IDENTITY_BYTES as u64).read_to_end(&mut head)?;
            Ok(Some(Self {
                path: path.canonicalize()?,
                bytes: data.len(),
                modified: modified.as_nanos(),
                head: keccak256(&head),
            }))
        };
        identify().map_err(|error| Error::io(&path.into(), error))
    }
}

/// The directory of the sorted files.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(|error| Error::io(&path.into(), error))?;
        Ok(Self { path: path.into() })
    }

    pub(super) fn run(&self, number: u32) -> PathBuf {
        self.path.join(format!("run-{number}"))
    }

    pub(super) fn part(&self, number: u32) -> PathBuf {
        self.path.join(format!("part-{number}"))
    }

    pub(super) fn codes(&self) -> PathBuf {
        self.path.join(CODES)
    }

    /// The manifest of an earlier attempt, if that can be continued.
    pub(super) fn manifest(&self) -> Result<Option<Manifest>, Error> {
        let path = self.path.join(MANIFEST);
        match fs::read(&path) {
            Ok(text) => {
                let manifest = serde_json::from_slice::<Manifest>(&text).ok();
                Ok(manifest.filter(|manifest| manifest.version == VERSION))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(&path.into(), error)),
        }
    }

    /// Writes and syncs the manifest, after the files that it names.
    pub(super) fn save(&self, manifest: &Manifest) -> Result<(), Error> {
        let path: Arc<Path> = self.path.join(MANIFEST).into();
        let save = || -> io::Result<()> {
            let partial = path.with_extension("partial");
            let mut file = File::create(&partial)?;
            file.write_all(&serde_json::to_vec_pretty(manifest)?)?;
            file.sync_all()?;
            fs::rename(&partial, &path)?;
            sync_folder(&path)
        };
        save().map_err(|error| Error::io(&path, error))
    }

    /// Removes all files of the sort.
    pub(super) fn clear(&self) -> Result<(), Error> {
        self.keep(&BTreeSet::new())
    }

    /// Removes all files of the sort that the manifest does not name.
    pub(super) fn tidy(&self, manifest: &Manifest) -> Result<(), Error> {
        let mut named = BTreeSet::from([self.path.join(MANIFEST), self.codes()]);
        for run in &manifest.runs {
            named.insert(self.run(run.number));
            named.extend(run.parts.iter().map(|part| self.part(*part)));
        }
        self.keep(&named)
    }

    fn keep(&self, named: &BTreeSet<PathBuf>) -> Result<(), Error> {
        let tidy = || -> io::Result<()> {
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let ours = name == MANIFEST
                    || name == CODES
                    || name == "manifest.partial"
                    || is_numbered(&name, "run-")
                    || is_numbered(&name, "part-");
                if ours && !named.contains(&entry.path()) {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        tidy().map_err(|error| Error::io(&self.path.as_path().into(), error))
    }
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|number| number.parse::<u32>().is_ok())
}
