use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use alloy_consensus::constants::EMPTY_ROOT_HASH;
use alloy_primitives::map::B256Set;
use alloy_primitives::{B256, U256, keccak256};

use super::manifest::{Cut, Folder, Manifest, Run};
use super::merge::{MergedRuns, MergedSlots};
use super::record::{AccountRecord, write_slot};
use super::words::AccountSource;
use super::{AccountPiece, AccountPosition, FileAccount, StateForm};
use crate::error::Error;
use crate::limits::{KNOWN_CODES, MERGED_FILES, MERGED_PARTS, WRITE_BYTES};

/// A batch of accounts from the reader.
pub(super) struct Batch {
    pub(super) pieces: Vec<AccountPiece>,
    /// The position after the last account; `None` if slots of the next one have come already.
    pub(super) cut: Option<Cut>,
    /// `Some` in the last batch: the state root, if the file has it.
    pub(super) last: Option<Option<B256>>,
}

/// Sorts accounts: collects as many as fit into memory and writes them as a sorted run.
pub(super) struct Sorter {
    folder: Folder,
    manifest: Manifest,
    source: AccountSource,
    /// The encoded accounts with their slots, in the order of the source.
    arena: Vec<u8>,
    arena_limit: usize,
    accounts: Vec<ArenaAccount>,
    /// The files with slots of the accounts collected.
    run_parts: Vec<u32>,
    /// The files with slots of the next account.
    parts: Vec<u32>,
    codes: BufWriter<File>,
    known_codes: B256Set,
}

/// The range of an account in the arena.
struct ArenaAccount {
    /// The first bytes of its hashed address, which suffice to compare most pairs.
    prefix: u64,
    start: usize,
    bytes: usize,
}

impl Sorter {
    pub(super) fn new(
        folder: Folder,
        manifest: Manifest,
        source: AccountSource,
        memory_bytes: usize,
    ) -> Result<Self, Error> {
        folder.tidy(&manifest)?;
        let path = folder.codes();
        let open = || {
            let mut codes = File::options().write(true).create(true).truncate(false).open(&path)?;
            codes.set_len(manifest.codes_bytes)?;
            codes.seek(SeekFrom::End(0))?;
            Ok(BufWriter::with_capacity(WRITE_BYTES, codes))
        };
        let codes = open().map_err(|error| Error::io(&path.as_path().into(), error))?;
        Ok(Self {
            folder,
            manifest,
            source,
            arena: Vec::new(),
            arena_limit: memory_bytes / 2,
            accounts: Vec::new(),
            run_parts: Vec::new(),
            parts: Vec::new(),
            codes,
            known_codes: B256Set::default(),
        })
    }

    /// Sorts all batches, and marks the manifest as done.
    pub(super) fn run(mut self, batches: Receiver<Batch>) -> Result<(Folder, Manifest), Error> {
        while let Ok(Batch { pieces, cut, last }) = batches.recv() {
            for piece in pieces {
                match piece {
                    AccountPiece::Slots(at, slots) => self.part(slots, at)?,
                    AccountPiece::Account(account) => self.account(*account)?,
                }
            }
            let collected = self.arena.len() + size_of_val(&self.accounts[..]);
            if let Some(root) = last {
                self.manifest.root = root;
            }
            if let Some(cut) = cut
                && (last.is_some() || collected >= self.arena_limit)
            {
                self.write_run(cut)?;
            }
            if last.is_some() {
                return self.end();
            }
        }
        Ok((self.folder, self.manifest))
    }

    fn end(mut self) -> Result<(Folder, Manifest), Error> {
        (self.arena, self.accounts) = (Vec::new(), Vec::new());
        while self.manifest.runs.len() > MERGED_FILES {
            self.merge_runs()?;
        }
        self.manifest.done = true;
        self.folder.save(&self.manifest)?;
        Ok((self.folder, self.manifest))
    }

    fn account(&mut self, account: FileAccount) -> Result<(), Error> {
        let at = account.at;
        let wrong = |problem: String| self.source.error(at, problem);
        let hashed_address = hashed_address(&account).map_err(wrong)?;
        let code_hash = account.hash_of_code().map_err(wrong)?;
        let FileAccount { nonce, balance, code, storage_root, mut storage, .. } = account;
        let empty = self.parts.is_empty() && storage.iter().all(|(_, value)| value.is_zero());
        if let Some(root) = storage_root
            && (root == EMPTY_ROOT_HASH) != empty
        {
            let problem = match empty {
                true => format!("storage root {root}, but no storage: was it left out?"),
                false => "storage, but the storage root is the empty one".into(),
            };
            return Err(wrong(problem));
        }
        if let Some(code_hash) = code_hash {
            self.code(code_hash, &code)?;
        }
        if !self.parts.is_empty() && !storage.is_empty() {
            self.part(std::mem::take(&mut storage), at)?;
        }
        self.sort_slots(&mut storage, at)?;
        storage.retain(|(_, value)| !value.is_zero());
        let parts = std::mem::take(&mut self.parts);
        self.run_parts.extend_from_slice(&parts);
        let (form, start) = (self.manifest.form, self.arena.len());
        let record = AccountRecord {
            hashed_address,
            place: match form {
                StateForm::Lines => at.line,
                StateForm::Object => at.offset,
            },
            nonce,
            balance,
            code_hash,
            storage_root,
            parts,
            slots: storage.len() as u64,
        };
        record.write(&mut self.arena);
        for (slot, value) in &storage {
            write_slot(&mut self.arena, slot, *value);
        }
        let prefix = u64::from_be_bytes(*hashed_address.first_chunk().expect("32 bytes"));
        self.accounts.push(ArenaAccount { prefix, start, bytes: self.arena.len() - start });
        Ok(())
    }

    /// Writes a code, once.
    fn code(&mut self, hash: B256, code: &[u8]) -> Result<(), Error> {
        if self.known_codes.len() >= KNOWN_CODES {
            self.known_codes.clear();
        }
        if !self.known_codes.insert(hash) {
            return Ok(());
        }
        let bytes = u32::try_from(code.len()).expect("codes are read with a limit");
        let mut write = || {
            self.codes.write_all(&hash[..])?;
            self.codes.write_all(&bytes.to_le_bytes())?;
            self.codes.write_all(code)
        };
        write().map_err(|error| Error::io(&self.folder.codes().into(), error))?;
        self.manifest.codes_bytes += 36 + u64::from(bytes);
        Ok(())
    }

    /// Hashes and sorts the slots of one account.
    fn sort_slots(&self, slots: &mut [(B256, U256)], at: AccountPosition) -> Result<(), Error> {
        for (slot, _) in &mut *slots {
            *slot = keccak256(*slot);
        }
        slots.sort_unstable_by_key(|(slot, _)| *slot);
        match slots.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            None => Ok(()),
            Some(pair) => {
                let problem = format!("the slot that hashes to {} twice in one account", pair[0].0);
                Err(self.source.error(at, problem))
            }
        }
    }

    /// Writes slots of the next account into a file of their own.
    fn part(&mut self, mut slots: Vec<(B256, U256)>, at: AccountPosition) -> Result<(), Error> {
        self.sort_slots(&mut slots, at)?;
        if self.parts.len() == MERGED_PARTS {
            let parts = std::mem::take(&mut self.parts);
            let mut merged = MergedSlots::open(&self.folder, &parts)?;
            let number = self.number();
            let mut file = RunWriter::create(self.folder.part(number))?;
            while let Some((slot, value)) = merged.next(|problem| self.source.error(at, problem))? {
                write_slot(&mut file.buffer, &slot, value);
                file.flush_full()?;
            }
            file.finish()?;
            parts.iter().try_for_each(|part| remove(&self.folder.part(*part)))?;
            self.parts.push(number);
        }
        let number = self.number();
        let mut file = RunWriter::create(self.folder.part(number))?;
        for (slot, value) in &slots {
            write_slot(&mut file.buffer, slot, *value);
            file.flush_full()?;
        }
        file.finish()?;
        self.parts.push(number);
        Ok(())
    }

    fn number(&mut self) -> u32 {
        self.manifest.next += 1;
        self.manifest.next - 1
    }

    /// Writes the accounts collected. All accounts before `cut` are durable then.
    fn write_run(&mut self, cut: Cut) -> Result<(), Error> {
        if !self.accounts.is_empty() {
            let hash = |account: &ArenaAccount| &self.arena[account.start..account.start + 32];
            self.accounts.sort_unstable_by(|a, b| {
                a.prefix.cmp(&b.prefix).then_with(|| hash(a).cmp(hash(b)))
            });
            let number = self.number();
            let mut file = RunWriter::create(self.folder.run(number))?;
            for ArenaAccount { start, bytes, .. } in &self.accounts {
                file.buffer.extend_from_slice(&self.arena[*start..start + bytes]);
                file.flush_full()?;
            }
            let bytes = file.finish()?;
            let accounts = self.accounts.len() as u64;
            let parts = std::mem::take(&mut self.run_parts);
            self.manifest.runs.push(Run { number, bytes, accounts, parts });
            self.arena.clear();
            self.accounts.clear();
        }
        let sync = |codes: &mut BufWriter<File>| -> io::Result<()> {
            codes.flush()?;
            codes.get_ref().sync_all()
        };
        sync(&mut self.codes).map_err(|error| Error::io(&self.folder.codes().into(), error))?;
        self.manifest.cut = Some(cut);
        self.folder.save(&self.manifest)
    }

    /// Merges as many runs as are merged at once into one.
    fn merge_runs(&mut self) -> Result<(), Error> {
        let old: Vec<Run> = self.manifest.runs.drain(..MERGED_FILES).collect();
        let mut runs = MergedRuns::open(&self.folder, &old)?;
        let number = self.number();
        let mut file = RunWriter::create(self.folder.run(number))?;
        while let Some(record) = runs.next()? {
            record.write(&mut file.buffer);
            for _ in 0..record.slots {
                let (slot, value) = runs.slot()?;
                write_slot(&mut file.buffer, &slot, value);
                file.flush_full()?;
            }
            file.flush_full()?;
        }
        let bytes = file.finish()?;
        let accounts = old.iter().map(|run| run.accounts).sum();
        let parts = old.iter().flat_map(|run| run.parts.iter().copied()).collect();
        self.manifest.runs.push(Run { number, bytes, accounts, parts });
        self.folder.save(&self.manifest)?;
        old.iter().try_for_each(|run| remove(&self.folder.run(run.number)))
    }
}

fn hashed_address(account: &FileAccount) -> Result<B256, String> {
    match (account.address, account.hashed_address) {
        (Some(address), given) => {
            let hashed = keccak256(address);
            match given {
                Some(given) if given != hashed => {
                    Err(format!("\"key\" {given}, but the address {address} hashes to {hashed}"))
                }
                _ => Ok(hashed),
            }
        }
        (None, Some(hashed)) => Ok(hashed),
        (None, None) => unreachable!("an account has one of the two"),
    }
}

/// A sorted file being written.
#[derive(Debug)]
pub(super) struct RunWriter {
    path: Arc<Path>,
    file: File,
    pub(super) buffer: Vec<u8>,
    bytes: u64,
}

impl RunWriter {
    pub(super) fn create(path: impl Into<Arc<Path>>) -> Result<Self, Error> {
        let path = path.into();
        let file = File::create(&path).map_err(|error| Error::io(&path, error))?;
        Ok(Self { path, file, buffer: Vec::new(), bytes: 0 })
    }

    /// Writes the buffer once it is full.
    #[inline]
    pub(super) fn flush_full(&mut self) -> Result<(), Error> {
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.write_all(&self.buffer).map_err(|error| Error::io(&self.path, error))?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Syncs the file. Returns its length in bytes.
    pub(super) fn finish(mut self) -> Result<u64, Error> {
        self.flush()?;
        self.file.sync_all().map_err(|error| Error::io(&self.path, error))?;
        Ok(self.bytes)
    }
}

pub(super) fn remove(path: &Path) -> Result<(), Error> {
    std::fs::remove_file(path).map_err(|error| Error::io(&path.into(), error))
}
