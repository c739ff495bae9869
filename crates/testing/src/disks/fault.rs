use crate::Random;
use state::{Disk, File};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// The fault at a chosen operation. Operations are counted from zero: every write, sync, change of
/// length, creation and removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    Never,
    /// The power fails: this operation and all after it fail, and [`FaultDisk::after_power_cut`]
    /// says what is left.
    PowerCut {
        /// The operation.
        at: u64,
    },
    /// The system refuses this operation and all after it. A refused write has written its first
    /// half.
    Errno {
        /// The operation.
        at: u64,
        /// The system's error number.
        errno: i32,
    },
}

/// Files in memory that fail as disks do, for tests.
///
/// A write lasts once its file is synced, a creation or removal once the directory is. Of the
/// others, a power cut keeps any part: writes whole, not at all, torn at 512 bytes, or as zeros
/// where the file had ended before.
#[derive(Clone, Debug)]
pub struct FaultDisk {
    state: Arc<Mutex<State>>,
    sync_time: Duration,
}

const SECTOR_BYTES: u64 = 512;

#[derive(Debug)]
struct State {
    fault: Fault,
    operations: u64,
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Creations and removals since the directory was synced.
    renames: Vec<(String, Option<usize>)>,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    now: Vec<u8>,
    durable: Vec<u8>,
    waiting: Vec<Waiting>,
}

#[derive(Clone, Debug)]
enum Waiting {
    Write(u64, Vec<u8>),
    Length(u64),
}

#[derive(Debug)]
struct FaultFile {
    disk: FaultDisk,
    inode: usize,
}

impl FaultDisk {
    /// A disk with these files, all durable.
    pub fn new(files: &BTreeMap<String, Vec<u8>>, fault: Fault) -> Self {
        let inode = |bytes: &Vec<u8>| Inode {
            now: bytes.clone(),
            durable: bytes.clone(),
            waiting: Vec::new(),
        };
        let names: BTreeMap<_, _> = files.keys().cloned().zip(0..).collect();
        let state = State {
            fault,
            operations: 0,
            inodes: files.values().map(inode).collect(),
            durable_names: names.clone(),
            names,
            renames: Vec::new(),
        };
        Self { state: Arc::new(Mutex::new(state)), sync_time: Duration::ZERO }
    }

    /// The same disk for a process that is started anew after the last one was killed: what was not
    /// synced still is not. Operations are counted anew.
    pub fn restarted(&self, fault: Fault) -> Self {
        let state = self.state();
        let state = State {
            fault,
            operations: 0,
            inodes: state.inodes.clone(),
            names: state.names.clone(),
            durable_names: state.durable_names.clone(),
            renames: state.renames.clone(),
        };
        Self { state: Arc::new(Mutex::new(state)), sync_time: self.sync_time }
    }

    /// The same disk, on which each sync of a file takes so long.
    pub fn with_sync_time(self, sync_time: Duration) -> Self {
        Self { sync_time, ..self }
    }

    /// How many operations there were.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// The files as a process sees them that is started anew on the same system.
    pub fn after_restart(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let named = state.names.iter();
        named.map(|(name, &inode)| (name.clone(), state.inodes[inode].now.clone())).collect()
    }

    /// The files after a power cut, one of the many possible ways.
    pub fn after_power_cut(&self, seed: u64) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let mut coin = Random::new(seed);
        let mut names = state.durable_names.clone();
        for (name, inode) in &state.renames {
            match inode {
                _ if coin.below(2) == 0 => None,
                Some(inode) => names.insert(name.clone(), *inode),
                None => names.remove(name),
            };
        }
        let inodes: Vec<_> = state.inodes.iter().map(|inode| inode.survives(&mut coin)).collect();
        names.into_iter().map(|(name, inode)| (name, inodes[inode].clone())).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with it")
    }

    fn file(&self, inode: usize) -> Arc<dyn File> {
        Arc::new(FaultFile { disk: self.clone(), inode })
    }
}

/// How an operation goes.
enum Outcome {
    Done,
    /// It is begun, as far as the disk is concerned, and fails.
    Begun(io::Error),
    Refused(io::Error),
}

impl State {
    fn begin(&mut self) -> Outcome {
        let now = self.operations;
        self.operations += 1;
        match self.fault {
            Fault::PowerCut { at } if now == at => Outcome::Begun(io::Error::other("power cut")),
            Fault::PowerCut { at } if now > at => Outcome::Refused(io::Error::other("power cut")),
            Fault::Errno { at, errno } if now == at => {
                Outcome::Begun(io::Error::from_raw_os_error(errno))
            }
            Fault::Errno { at, errno } if now > at => {
                Outcome::Refused(io::Error::from_raw_os_error(errno))
            }
            _ => Outcome::Done,
        }
    }

    fn rename(&mut self, name: &str, inode: Option<usize>) {
        match inode {
            Some(inode) => self.names.insert(name.into(), inode),
            None => self.names.remove(name),
        };
        self.renames.push((name.into(), inode));
    }
}

impl Inode {
    fn apply(&mut self, change: Waiting) {
        match &change {
            Waiting::Write(offset, bytes) => overwrite(&mut self.now, *offset, bytes),
            Waiting::Length(length) => self.now.resize(*length as usize, 0),
        }
        self.waiting.push(change);
    }

    fn survives(&self, coin: &mut Random) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for change in &self.waiting {
            match (change, coin.below(4)) {
                (_, 0) => {}
                (Waiting::Length(length), _) => bytes.resize(*length as usize, 0),
                (Waiting::Write(offset, written), 1) => overwrite(&mut bytes, *offset, written),
                (Waiting::Write(offset, written), 2) => {
                    let end = *offset as usize + written.len();
                    bytes.resize(bytes.len().max(end), 0);
                }
                (Waiting::Write(offset, written), _) => {
                    for (at, sector) in sectors(*offset, written) {
                        if coin.below(2) == 0 {
                            overwrite(&mut bytes, at, sector);
                        }
                    }
                }
            }
        }
        bytes
    }
}

fn overwrite(bytes: &mut Vec<u8>, offset: u64, written: &[u8]) {
    let range = offset as usize..offset as usize + written.len();
    if bytes.len() < range.end {
        bytes.resize(range.end, 0);
    }
    bytes[range].copy_from_slice(written);
}

fn sectors(mut offset: u64, mut bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        let room = SECTOR_BYTES - offset % SECTOR_BYTES;
        let (sector, rest) = bytes.split_at(bytes.len().min(room as usize));
        let at = offset;
        (offset, bytes) = (offset + sector.len() as u64, rest);
        (!sector.is_empty()).then_some((at, sector))
    })
}

impl Disk for FaultDisk {
    fn open(&self, name: &str, create: bool) -> io::Result<Option<Arc<dyn File>>> {
        let mut state = self.state();
        if let Some(&inode) = state.names.get(name) {
            return Ok(Some(self.file(inode)));
        }
        if !create {
            return Ok(None);
        }
        let outcome = state.begin();
        if let Outcome::Refused(error) = outcome {
            return Err(error);
        }
        let inode = state.inodes.len();
        state.inodes.push(Inode::default());
        state.rename(name, Some(inode));
        match outcome {
            Outcome::Begun(error) => Err(error),
            _ => Ok(Some(self.file(inode))),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        match state.begin() {
            Outcome::Refused(error) => return Err(error),
            Outcome::Begun(error) => {
                state.rename(name, None);
                return Err(error);
            }
            Outcome::Done => {}
        }
        state.rename(name, None);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        match state.begin() {
            Outcome::Refused(error) | Outcome::Begun(error) => return Err(error),
            Outcome::Done => {}
        }
        state.renames.clear();
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn path(&self, name: &str) -> String {
        format!("fault:{name}")
    }
}

impl FaultFile {
    fn change(&self, change: Waiting) -> io::Result<()> {
        let mut state = self.disk.state();
        let cut = matches!(state.fault, Fault::PowerCut { .. });
        match (state.begin(), change) {
            (Outcome::Refused(error), _) => Err(error),
            (Outcome::Done, change) => {
                state.inodes[self.inode].apply(change);
                Ok(())
            }
            (Outcome::Begun(error), Waiting::Write(offset, mut bytes)) => {
                if !cut {
                    bytes.truncate(bytes.len() / 2);
                }
                state.inodes[self.inode].apply(Waiting::Write(offset, bytes));
                Err(error)
            }
            (Outcome::Begun(error), change) => {
                if cut {
                    state.inodes[self.inode].apply(change);
                }
                Err(error)
            }
        }
    }
}

impl File for FaultFile {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let state = self.disk.state();
        let now = &state.inodes[self.inode].now;
        let range = offset as usize..offset as usize + bytes.len();
        let found = now.get(range).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(found);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(Waiting::Write(offset, bytes.into()))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().inodes[self.inode].now.len() as u64)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.change(Waiting::Length(bytes))
    }

    fn sync(&self) -> io::Result<()> {
        if !self.disk.sync_time.is_zero() {
            thread::sleep(self.disk.sync_time);
        }
        let mut state = self.disk.state();
        match state.begin() {
            Outcome::Refused(error) | Outcome::Begun(error) => return Err(error),
            Outcome::Done => {}
        }
        let inode = &mut state.inodes[self.inode];
        for change in std::mem::take(&mut inode.waiting) {
            match change {
                Waiting::Write(offset, bytes) => overwrite(&mut inode.durable, offset, &bytes),
                Waiting::Length(length) => inode.durable.resize(length as usize, 0),
            }
        }
        Ok(())
    }
}
