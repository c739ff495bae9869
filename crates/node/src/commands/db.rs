//! `deponent db`.

use std::path::{Path, PathBuf};

use alloy_primitives::B256;
use anyhow::{Context, bail, ensure};
use clap::error::ErrorKind;
use clap::{Args, Subcommand};
use files::Progress;
use state::{Database, DirectoryDisk};

use super::open;
use super::storage::StorageArgs;
use crate::console::{counted, say};
use crate::flags::values::count;

/// The arguments of `deponent db`.
#[derive(Debug, Args)]
pub(crate) struct DbArgs {
    #[command(subcommand)]
    command: DbCommand,
    /// The data directory.
    #[arg(long, value_name = "DIR", global = true)]
    datadir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one
enum DbCommand {
    /// Print sizes, counts and heads.
    Stats(StorageArgs),
    /// Read all files, check every checksum, and hash the state of the head.
    Verify(StorageArgs),
    /// Drop all blocks above the one with this number, which becomes the head.
    Unwind {
        /// The number of the block to keep as the head.
        #[arg(long, value_name = "NUMBER", value_parser = count::<u64>)]
        to: u64,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Delete states and witnesses beyond the limits of --history.retain-blocks,
    /// --witness.retain-blocks and --witness.retain-bytes.
    Prune(StorageArgs),
    /// Make blocks findable by their transactions and logs that an earlier version of the program
    /// wrote. It can be stopped, and goes on when it is called again.
    Index {
        /// Make all of the index anew.
        #[arg(long)]
        anew: bool,
        #[command(flatten)]
        storage: StorageArgs,
    },
}

/// Runs `deponent db`.
pub(crate) fn db(args: &DbArgs) -> anyhow::Result<()> {
    let Some(datadir) = args.datadir.as_deref() else {
        // clap cannot demand an option that may stand before or after the subcommand.
        let mut usage = DbArgs::augment_args(clap::Command::new("deponent db"));
        usage
            .error(ErrorKind::MissingRequiredArgument, "name the data directory: --datadir DIR")
            .exit()
    };
    match &args.command {
        DbCommand::Stats(storage) => stats(&open_database(datadir, storage)?),
        DbCommand::Verify(storage) => verify(datadir, storage),
        DbCommand::Unwind { to, storage } => unwind(&open_database(datadir, storage)?, *to),
        DbCommand::Index { anew, storage } => index(&open_database(datadir, storage)?, *anew),
        DbCommand::Prune(storage) => {
            let engine = open(datadir, None, storage)?;
            let mut progress = Progress::of_the_whole("pruning");
            engine.prune(&mut |part| progress.part(part))?;
            progress.finish();
            let from = kept_from(engine.database())?;
            say!("the states after block {from} and later are kept");
            stats(engine.database())
        }
    }
}

fn stats(database: &Database) -> anyhow::Result<()> {
    let stats = database.stats()?;
    say!("{:<10} {:>8} {:>16} {:>16}", "log", "files", "bytes", "deleted bytes");
    let logs = [
        ("nodes", stats.nodes),
        ("blocks", stats.blocks),
        ("codes", stats.codes),
        ("witnesses", stats.witnesses),
    ];
    for (name, log) in logs {
        let state::LogStats { files, kept_bytes, deleted_bytes } = log;
        say!("{name:<10} {files:>8} {kept_bytes:>16} {deleted_bytes:>16}");
    }
    say!("{:<10} {:>8} {:>16}", "index", 1, stats.index_bytes);
    let (blocks, canonical) = (stats.block_count, stats.canonical_count);
    let (blocks, codes) = (counted(blocks, "block"), counted(stats.code_count, "code"));
    say!("{blocks}, {canonical} canonical; {codes}");
    say!("states are kept from block {}", kept_from(database)?);
    say!("{}", indexed(database)?);
    let heads = database.heads();
    let named = [("head", heads.head), ("safe", heads.safe), ("finalized", heads.finalized)];
    for (name, hash) in named {
        let Some(hash) = hash else { continue };
        let number = database.entry(&hash)?.map_or(0, |entry| entry.number);
        say!("{name:<10} {number:>8} {hash}");
    }
    Ok(())
}

/// The number of the first block whose state is kept; a chain may begin above block 0.
fn kept_from(database: &Database) -> anyhow::Result<u64> {
    let begun = database.heads().genesis.map(|genesis| database.entry(&genesis)).transpose()?;
    Ok(begun.flatten().map_or(0, |entry| entry.number).max(database.versions_from()))
}

fn verify(data_dir: &Path, storage: &StorageArgs) -> anyhow::Result<()> {
    let database = open_database(data_dir, storage)?;
    let stats = database.stats()?;
    let logs = [stats.nodes, stats.blocks, stats.codes, stats.witnesses];
    let total = logs.iter().map(|log| log.kept_bytes).sum();
    let mut progress = Progress::new("verifying", Some(total), 0);
    let report = database.verify(&mut |done| progress.bytes(done))?;
    progress.finish();
    let state::VerifyReport { pages, frames, index_entries, damaged, first } = report;
    let (pages, frames) = (counted(pages, "page"), counted(frames, "frame"));
    let rows = counted(index_entries, "row");
    say!("{pages}, {frames}, {rows} of the index");
    if let Some(first) = first {
        bail!("damaged: {damaged} of them, the first: {first}");
    }
    let Some(head) = database.heads().head else { return Ok(()) };
    let entry = database.entry(&head)?.context("the head is not in the database")?;
    let version = entry.version.context("the state after the head is not kept")?;
    let mut progress = Progress::of_the_whole("hashing");
    let nodes = trie::versioned::verify(database.nodes(), &version, &mut |nodes, part| {
        progress.items("nodes", nodes);
        progress.part(part);
    })?;
    progress.finish();
    check_root(&database, head)?;
    let (number, root) = (entry.number, version.root);
    let nodes = counted(nodes, "node");
    say!("the state after the head, block {number}: the root of {nodes} is {root}");
    Ok(())
}

fn unwind(database: &Database, to: u64) -> anyhow::Result<()> {
    let hash = database.canonical(to)?.with_context(|| format!("there is no block {to}"))?;
    check_root(database, hash)?;
    let mut progress = Progress::of_the_whole("unwinding");
    let dropped = database.unwind(to, &mut |part| progress.part(part))?;
    progress.finish();
    let dropped = counted(dropped, "canonical block");
    say!("{dropped} dropped; the head is block {to}, {hash}");
    Ok(())
}

fn index(database: &Database, anew: bool) -> anyhow::Result<()> {
    if anew {
        database.drop_lookup()?;
    }
    let mut progress = Progress::of_the_whole("indexing");
    let done = engine::index_old_blocks(database, &mut |done, total| {
        progress.items("blocks", done);
        progress.part(done as f64 / total as f64);
    })?;
    progress.finish();
    let done = counted(done, "block");
    say!("{done} indexed; {}", indexed(database)?);
    Ok(())
}

/// Which blocks are found by their transactions and logs.
fn indexed(database: &Database) -> anyhow::Result<String> {
    Ok(match database.indexed_from()? {
        Some(from) => format!("transactions and logs are indexed from block {from}"),
        None => "transactions and logs are not indexed: deponent db index does that".into(),
    })
}

/// Checks that the state after a block is kept, and has the root in its header.
fn check_root(database: &Database, hash: B256) -> anyhow::Result<()> {
    let entry = database.entry(&hash)?.with_context(|| format!("there is no block {hash}"))?;
    let (number, from) = (entry.number, database.versions_from());
    let version = entry.version.with_context(|| {
        format!("the state after block {number} is not kept: states are kept from block {from}")
    })?;
    let header = engine::block_header(database, hash)?;
    ensure!(
        version.root == header.state_root,
        "the state after block {number}, {hash}, has the root {}; its header says {}",
        version.root,
        header.state_root
    );
    Ok(())
}

fn open_database(data_dir: &Path, storage: &StorageArgs) -> anyhow::Result<Database> {
    let directory = data_dir.join("chain");
    let is_there = directory.try_exists();
    let is_there = is_there.with_context(|| format!("cannot look for {}", directory.display()))?;
    ensure!(is_there, "{} holds no chain", data_dir.display());
    Ok(Database::open(DirectoryDisk::open(directory)?, &storage.database())?)
}
