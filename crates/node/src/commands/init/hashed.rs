//! A state from a dump by hashed keys, which is in the order of the trie.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use alloy_primitives::B256;
use anyhow::{Context, anyhow, bail};
use engine::{Heads, ImportedAccount, StateImport};
use files::{HashedAccount, HashedPiece, HashedReader, Progress, SlotSpool};
use state::Database;
use trie::AccountInfo;

use super::{Expected, InitArgs};
use crate::console::printed;
use crate::limits::{DUMP_BATCH_BYTES, DUMP_BATCHES, MISSING_ACCOUNTS};

/// From the reader's thread to the builder.
enum Message {
    Pieces(Vec<HashedPiece>),
    /// The dump ends, or cannot be read on.
    End(Result<(), files::Error>),
}

/// Fills the database with the state of a dump, or with the rest of it, and begins the chain.
/// Returns the heads and the number of accounts that have come.
pub(super) fn import(
    args: &InitArgs,
    expected: &Expected,
    database: &Database,
    reader: HashedReader,
) -> anyhow::Result<(Heads, u64)> {
    let (file, root) = (reader.file().to_owned(), reader.root());
    let batch_bytes = args.batch_bytes();
    let import = match StateImport::resume(database, root, batch_bytes)? {
        Some(import) => import,
        None => StateImport::begin(database, root, batch_bytes),
    };
    let behind = import.last_account();
    if let Some(last) = behind {
        tracing::info!(
            "goes on behind key {last}, {:.1} % of the state: what comes before is read and passed \
             over, which `geth snapshot dump --start {last}` saves",
            100.0 * share(last)
        );
    }
    let (sender, received) = sync_channel(DUMP_BATCHES);
    // It is not waited for: with an error it may be in the middle of a read of a pipe.
    std::thread::spawn(move || read(reader, &sender));
    let what = if behind.is_some() { "passing over" } else { "building" };
    let mut build = Build {
        file,
        import,
        spool: SlotSpool::new(&args.datadir.join("slots.spool")),
        behind,
        first: None,
        counted_from: 0.0,
        progress: Progress::of_the_whole(what),
        accounts: 0,
        leaves: 0,
    };
    if let Err(error) = build.run(&received) {
        return Err(build.stop(error));
    }
    build.end(args, expected, root)
}

/// Sends all pieces of the dump in batches.
fn read(mut reader: HashedReader, batches: &SyncSender<Message>) {
    let (mut pieces, mut bytes) = (Vec::new(), 0);
    let end = loop {
        let piece = match reader.next() {
            Some(Ok(piece)) => piece,
            Some(Err(error)) => break Err(error),
            None => break Ok(()),
        };
        bytes += match &piece {
            HashedPiece::Slots(slots) => size_of_val(&slots[..]),
            HashedPiece::Account(account) => {
                let code_bytes = account.code.as_ref().map_or(0, |code| code.len());
                size_of::<HashedAccount>() + size_of_val(&account.storage[..]) + code_bytes
            }
        };
        pieces.push(piece);
        if bytes >= DUMP_BATCH_BYTES {
            bytes = 0;
            // Nobody receives it once building has failed, which has said why.
            if batches.send(Message::Pieces(std::mem::take(&mut pieces))).is_err() {
                return;
            }
        }
    };
    batches.send(Message::Pieces(pieces)).ok();
    batches.send(Message::End(end)).ok();
}

/// The build of a state under way.
struct Build<'d> {
    file: PathBuf,
    import: StateImport<'d>,
    /// The slots of an account of which it is not known yet whether it is there already.
    spool: SlotSpool,
    /// Accounts up to this key are there already. `None` once one has come that is not.
    behind: Option<B256>,
    /// The first key of the dump.
    first: Option<B256>,
    /// The share of the state that was there before.
    counted_from: f64,
    progress: Progress,
    accounts: u64,
    leaves: u64,
}

impl Build<'_> {
    fn run(&mut self, received: &Receiver<Message>) -> anyhow::Result<()> {
        loop {
            match received.recv().context("the reader of the dump has stopped")? {
                Message::Pieces(pieces) => {
                    for piece in pieces {
                        self.piece(piece)?;
                    }
                }
                Message::End(end) => {
                    end?;
                    break;
                }
            }
        }
        // All of it was there already: the dump is whole if that is the state.
        self.spool.clear()?;
        Ok(())
    }

    fn piece(&mut self, piece: HashedPiece) -> anyhow::Result<()> {
        match piece {
            HashedPiece::Slots(slots) if self.behind.is_some() => self.spool.push(&slots)?,
            HashedPiece::Slots(slots) => {
                self.leaves += slots.len() as u64;
                self.progress.items(LEAVES, self.leaves);
                slots.into_iter().try_for_each(|(slot, value)| self.import.slot(slot, value))?;
            }
            HashedPiece::Account(account) => self.account(*account)?,
        }
        Ok(())
    }

    fn account(&mut self, account: HashedAccount) -> anyhow::Result<()> {
        let HashedAccount { hashed_address, nonce, balance, code_hash, code, .. } = account;
        let first = *self.first.get_or_insert(hashed_address);
        if let Some(last) = self.behind {
            if first > last {
                bail!(
                    "the dump begins with key {first}, what is there ends with {last}: \
                     `geth snapshot dump --start {last}` leaves nothing out"
                );
            }
            if hashed_address <= last {
                self.spool.clear()?;
                self.progress.part(share(hashed_address));
                return Ok(());
            }
            self.behind = None;
            self.counted_from = share(last);
            let progress = Progress::of_the_whole_from("building", self.counted_from);
            std::mem::replace(&mut self.progress, progress).clear();
            let import = &mut self.import;
            self.spool.drain(|slot, value| anyhow::Ok(import.slot(slot, value)?))?;
        }
        self.accounts += 1;
        self.leaves += 1 + account.storage.len() as u64;
        let slots = account.storage.into_iter();
        slots.into_iter().try_for_each(|(slot, value)| self.import.slot(slot, value))?;
        let added = self.import.account(ImportedAccount {
            hashed_address,
            info: AccountInfo { nonce, balance, code_hash },
            storage_root: account.storage_root,
            code,
        });
        added.with_context(|| format!("{}: line {}", self.file.display(), account.line))?;
        self.progress.part(share(hashed_address));
        self.progress.items(LEAVES, self.leaves);
        Ok(())
    }

    /// Keeps what has come, after an error.
    fn stop(self, error: anyhow::Error) -> anyhow::Error {
        let last = self.import.last_account();
        let Some(last) = last.filter(|_| self.behind.is_none()) else { return error };
        match self.import.stop() {
            Ok(()) => anyhow!("{}. {}", printed(&error), goes_on(last)),
            // The first error says more.
            Err(_) => error,
        }
    }

    fn end(self, args: &InitArgs, expected: &Expected, root: B256) -> anyhow::Result<(Heads, u64)> {
        let last = self.import.last_account().unwrap_or_default();
        let imported = self.import.end()?;
        if imported.root() == root {
            let header = expected.header(args, Some(root), root)?;
            let heads = imported.begin_chain(&expected.chain, header)?;
            self.progress.finish();
            return Ok((heads, self.accounts));
        }
        if self.behind.is_some() {
            bail!(
                "the dump has nothing behind key {last}, up to which the state is kept, and the \
                 root of that is another: `geth snapshot dump --start {last}` dumps the rest. If \
                 there is none, remove {} to begin anew",
                args.datadir.join("chain").display()
            );
        }
        // Keys are hashes, so as many are missing behind the last one as its place says.
        let (came, left) = (share(last) - self.counted_from, 1.0 - share(last));
        let missing = self.accounts as f64 * left / came.max(f64::EPSILON);
        if missing >= MISSING_ACCOUNTS {
            bail!(
                "the dump ends with key {last}, at {:.2} % of the state: it was cut off, or made \
                 with --limit. {}",
                100.0 * share(last),
                goes_on(last)
            );
        }
        let got = imported.root();
        imported.discard()?;
        let first = self.first.unwrap_or_default();
        Err(anyhow!(
            "the dump says that its root is {root}, its accounts give {got}: some are missing or \
             not as they were. It begins with key {first} and ends with {last}; a whole one is \
             made by `geth snapshot dump` without --start, --limit, --nocode and --nostorage. \
             The accounts that came are not used again"
        ))
    }
}

/// The items of the progress.
const LEAVES: &str = "accounts and slots";

fn goes_on(last: B256) -> String {
    format!(
        "What came is kept up to key {last}: the same command goes on from there, with the whole \
         dump or with `geth snapshot dump --start {last}`"
    )
}

/// The share of the keys up to this one, from 0 to 1.
fn share(key: B256) -> f64 {
    let prefix = u64::from_be_bytes(*key.first_chunk().expect("32 bytes"));
    prefix as f64 / 2f64.powi(64)
}
