//! The commands on a data directory: `init`, `import`, `export` and `db`.

mod export;

use std::path::{Path, PathBuf};

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::Decodable;
use alloy_rpc_types_engine::ForkchoiceState;
use anyhow::{Context, anyhow, bail, ensure};
use clap::{Args, Subcommand};
use engine::{Engine, Genesis, StateEntry, Verdict, initialise};
use execution::ChainSpec;
use state::{Database, DirectoryDisk};
use trie::AccountInfo;

use crate::cli::StorageArgs;
use crate::node::{CONFIG, Retention, begin_from_state, open_engine};
use files::{
    BlockReader, Entry, FileBlock, Form, Progress, SortOptions, SortedState, read_genesis,
    read_genesis_head,
};

pub(crate) use export::{ExportArgs, export};

/// Blocks imported between two choices of a head: a crash loses no more.
const BLOCKS_A_HEAD: u64 = 64;

/// What `deponent init` takes.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The chain: a genesis.json as geth reads it.
    #[arg(long, value_name = "FILE")]
    chain: PathBuf,
    /// The node's directory, made when absent.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// The first state, in place of the genesis's own: JSON lines as `geth dump --iterative` writes
    /// them and reth's init-state reads them. Packed files (gzip, zstd) are unpacked. geth must
    /// have run with --cache.preimages from the first block on, or its dump is not complete.
    /// Without --header it is the state of the genesis's own accounts, if it has any.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// The header of the block that has that state, as RLP or its hex, when that is not the
    /// genesis: the chain begins there.
    #[arg(long, value_name = "FILE", requires = "state")]
    header: Option<PathBuf>,
    #[command(flatten)]
    storage: StorageArgs,
}

/// What `deponent import` takes.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The files, in the chain's order: engine_newPayload requests as JSON lines, RLP chain files,
    /// era1 or era files, packed (gzip, zstd) or not; `-` is the standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The node's directory.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// The chain, a genesis.json: to begin one in an empty directory.
    #[arg(long, value_name = "FILE")]
    chain: Option<PathBuf>,
    #[command(flatten)]
    storage: StorageArgs,
}

/// What `deponent db` takes.
#[derive(Debug, Args)]
pub(crate) struct DbArgs {
    #[command(subcommand)]
    command: DbCommand,
    /// The node's directory.
    #[arg(long, value_name = "DIR", global = true)]
    datadir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one
enum DbCommand {
    /// Say what there is, and how large it is.
    Stats(StorageArgs),
    /// Read everything and check every checksum, and the root of the head's state.
    Verify(StorageArgs),
    /// Drop the blocks above one, so that it is the head.
    Unwind {
        /// The number of the new head.
        #[arg(long, value_name = "NUMBER")]
        to: u64,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// Delete states and witnesses that are older than the limits given.
    Prune(StorageArgs),
}

/// Why a dump of geth's may lack something. It says so in its log only.
const PREIMAGES: &str = "`geth dump` leaves out every account and slot whose key it knows as a \
                         hash only: it is complete when `geth init` and `geth import`, or the \
                         node, have run with --cache.preimages from the first block on";

fn open_database(data_dir: &Path, storage: &StorageArgs) -> anyhow::Result<Database> {
    let directory = data_dir.join("chain");
    ensure!(directory.is_dir(), "{} holds no chain", data_dir.display());
    Ok(Database::open(DirectoryDisk::open(directory)?, &storage.database())?)
}

fn open(data_dir: &Path, chain: Option<&Path>, storage: &StorageArgs) -> anyhow::Result<Engine> {
    let genesis = chain.map(read_genesis).transpose()?;
    let options = |database: &_| Ok(storage.engine(Retention::noted(database)?));
    open_engine(data_dir, genesis.as_ref(), storage.database(), options)
}

/// Removes a directory, if it is there.
fn remove(directory: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.with_context(|| format!("cannot remove {}", directory.display())),
    }
}

/// Runs `deponent init`.
pub(crate) fn init(args: &InitArgs) -> anyhow::Result<()> {
    ensure!(
        args.state.is_some() || args.chain.metadata().is_ok_and(|data| data.is_file()),
        "{} is read twice, so it has to be a file",
        args.chain.display()
    );
    // Whether the state is to be that of the genesis's own accounts, if it has any.
    let is_own = args.state.is_some() && args.header.is_none();
    let genesis = if is_own { read_genesis(&args.chain) } else { read_genesis_head(&args.chain) }?;
    let chain = ChainSpec::from_config(&genesis.config)?;
    let own = Some(&genesis).filter(|file| is_own && !file.alloc.is_empty());
    let own = own.map(|file| engine::Genesis::new(file, &chain)).transpose()?;
    let directory = args.datadir.join("chain");
    let open = || Database::open(DirectoryDisk::open(&directory)?, &args.storage.database());
    let mut database = open()?;
    if let Some(head) = database.heads().head {
        bail!("{} holds a chain already, its head is {head}", args.datadir.display());
    }
    // What one that came to no end has built takes as much room as the state. Nobody else has it
    // while it is given the other name, under which a kill leaves nothing in the way.
    let unfinished = args.datadir.join("chain.unfinished");
    if database.stats()?.nodes.kept_bytes > 0 {
        remove(&unfinished)?;
        std::fs::rename(&directory, &unfinished)
            .with_context(|| format!("cannot rename {}", directory.display()))?;
        database = open()?;
    }
    remove(&unfinished)?;
    let file = args.state.as_ref().unwrap_or(&args.chain);
    let options = SortOptions::new(&args.datadir.join("init"));
    let mut progress = Progress::new("sorting", None, 0);
    let sorted = SortedState::prepare(file, &options, &mut progress)?;
    progress.finish();
    let stated = sorted.root();
    let check_own = |root| match own.as_ref().map(|own| own.header.state_root) {
        Some(own) if own != root => Err(engine::Error::Genesis(format!(
            "the state's root is {root}, that of the accounts in {} {own}: --header gives the \
             header of the block whose state it is",
            args.chain.display()
        ))),
        _ => Ok(()),
    };
    // Before it is built, which may take long.
    stated.map_or(Ok(()), check_own)?;
    let first = match &args.header {
        Some(file) => Some(read_header(file)?),
        None => None,
    };
    let mut progress = Progress::counting("building", "accounts", sorted.accounts(), 0);
    let mut accounts = 0;
    let entries = sorted.entries()?.map(|entry| {
        let entry = state_entry(entry?);
        if let StateEntry::Account { .. } = entry {
            accounts += 1;
            progress.count(accounts);
        }
        anyhow::Ok(entry)
    });
    let codes = sorted.codes()?.map(|code| Ok(code?));
    // With the heads or before them: a chain that is there has these.
    database.set_meta(CONFIG, serde_json::to_vec(&genesis.config)?.into())?;
    begin_from_state(&database, args.state.is_some() || args.header.is_some())?;
    let heads = initialise(&chain, &database, entries, codes, |root| {
        if let Some(stated) = stated.filter(|stated| *stated != root) {
            let reason = format!(
                "the file says that its root is {stated}, its accounts give {root}: some are \
                 missing or not as they were. {PREIMAGES}"
            );
            return Err(engine::Error::Genesis(reason));
        }
        check_own(root)?;
        first.map_or_else(|| Genesis::header(&genesis, &chain, root), Ok)
    });
    let heads = heads.map_err(|error| match error.downcast_ref() {
        Some(engine::Error::StorageRoot { .. }) => {
            anyhow!("{error}: some slots are missing or not as they were. {PREIMAGES}")
        }
        _ => error,
    })?;
    progress.finish();
    sorted.remove()?;
    println!("the chain begins with {}, {accounts} accounts", heads.genesis);
    Ok(())
}

fn state_entry(entry: Entry) -> StateEntry {
    match entry {
        Entry::Account { hashed_address, nonce, balance, code_hash, storage_root } => {
            let info = AccountInfo { nonce, balance, code_hash };
            StateEntry::Account { hashed_address, info, storage_root }
        }
        Entry::Slot { hashed_slot, value } => StateEntry::Slot { hashed_slot, value },
    }
}

fn read_header(file: &Path) -> anyhow::Result<Header> {
    let context = || format!("{} is not a header's RLP, or its hex", file.display());
    let content = std::fs::read(file).with_context(context)?;
    let text = std::str::from_utf8(&content).map(str::trim);
    let rlp = match text.ok().and_then(|text| text.parse::<Bytes>().ok()) {
        Some(bytes) => bytes,
        None => content.into(),
    };
    let mut rest = &rlp[..];
    let header = Header::decode(&mut rest).with_context(context)?;
    ensure!(rest.is_empty(), "{}: {} bytes behind the header", file.display(), rest.len());
    Ok(header)
}

/// Runs `deponent import`.
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<()> {
    let engine = open(&args.datadir, args.chain.as_deref(), &args.storage)?;
    let last = engine.heads().head;
    let head = number(&engine, last)?;
    let mut import = Import { head, engine, last, is_new: false, imported: 0 };
    for file in &args.files {
        let imported = import.file(file);
        // What is valid stays, whatever comes after it.
        import.choose_head()?;
        import.engine.persist()?;
        imported?;
    }
    let head = import.engine.heads().head;
    println!("{} blocks imported; the head is block {}, {head}", import.imported, import.head);
    Ok(())
}

struct Import {
    engine: Engine,
    /// The number of the last block imported, or of the head before.
    head: u64,
    /// Its hash.
    last: B256,
    /// Whether it was not there before.
    is_new: bool,
    imported: u64,
}

impl Import {
    fn file(&mut self, file: &Path) -> anyhow::Result<()> {
        let reader = BlockReader::open(file)?;
        // An archive has one branch. Other files may have several, and blocks before the chain's.
        let first = match reader.form() {
            Form::Era1 | Form::Era => self.head + 1,
            Form::Rlp | Form::Json => number(&self.engine, self.engine.heads().genesis)? + 1,
        };
        let mut reader = reader.from_number(first);
        let mut progress = Progress::new("importing", reader.file_bytes(), 0);
        while let Some(block) = reader.next() {
            self.block(block?, &mut progress)?;
            progress.bytes(reader.done_bytes());
        }
        progress.finish();
        Ok(())
    }

    fn block(&mut self, found: FileBlock, progress: &mut Progress) -> anyhow::Result<()> {
        let FileBlock { block, position, .. } = found;
        let (number, gas_used, hash) = (block.header.number, block.header.gas_used, block.hash());
        if self.engine.number(&hash)?.is_some() {
            // It was imported before, and perhaps not chosen yet.
            (self.head, self.last, self.is_new) = (number, hash, false);
            return Ok(());
        }
        match self.engine.new_block(block)? {
            Verdict::Valid => {}
            Verdict::Invalid { reason, .. } => {
                bail!("{position}: block {number} ({hash}) is invalid: {reason}")
            }
            Verdict::Syncing => {
                let head = self.head;
                let parent = "unknown, or its state is not kept any more";
                bail!("{position}: the parent of block {number} is {parent}; the head is {head}")
            }
        }
        (self.head, self.last, self.is_new) = (number, hash, true);
        self.imported += 1;
        progress.block(number, gas_used);
        if self.imported.is_multiple_of(BLOCKS_A_HEAD) {
            self.choose_head()?;
        }
        Ok(())
    }

    /// Makes the last block the head, unless it lies behind it. One that was there before takes
    /// nothing back that is final, and need not have its state any more.
    fn choose_head(&mut self) -> anyhow::Result<()> {
        let heads = self.engine.heads();
        if self.engine.canonical_hash(self.head)? != Some(self.last) {
            let mut state = ForkchoiceState { head_block_hash: self.last, ..Default::default() };
            if !self.is_new {
                state.safe_block_hash = heads.safe.unwrap_or_default();
                state.finalized_block_hash = heads.finalized.unwrap_or_default();
            }
            match self.engine.choose_head(state) {
                Ok(outcome) if outcome.is_applied => return Ok(()),
                Err(error) if self.is_new || !is_about_the_head(&error) => {
                    return Err(error.into());
                }
                Ok(_) | Err(_) => {}
            }
        }
        self.last = heads.head;
        self.head = number(&self.engine, self.last)?;
        Ok(())
    }
}

/// Whether a block cannot be the head, and nothing else is wrong.
fn is_about_the_head(error: &engine::Error) -> bool {
    matches!(error, engine::Error::InvalidForkchoiceState(_) | engine::Error::TooDeepReorg(_))
}

/// The number of a valid block.
fn number(engine: &Engine, hash: B256) -> anyhow::Result<u64> {
    let record = engine.block(hash)?.with_context(|| format!("block {hash} is unknown"))?;
    Ok(record.number())
}

/// Runs `deponent db`.
pub(crate) fn db(args: &DbArgs) -> anyhow::Result<()> {
    let datadir = args.datadir.as_deref().context("name the data directory with --datadir")?;
    match &args.command {
        DbCommand::Stats(storage) => stats(&open_database(datadir, storage)?),
        DbCommand::Verify(storage) => verify(datadir, storage),
        DbCommand::Unwind { to, storage } => unwind(&open_database(datadir, storage)?, *to),
        DbCommand::Prune(storage) => {
            let engine = open(datadir, None, storage)?;
            let mut progress = Progress::of_the_whole("pruning");
            engine.prune(&mut |part| progress.part(part))?;
            progress.finish();
            let from = kept_from(engine.database())?;
            println!("the states after block {from} and later are kept");
            stats(engine.database())
        }
    }
}

fn stats(database: &Database) -> anyhow::Result<()> {
    let stats = database.stats()?;
    println!("{:<10} {:>8} {:>16} {:>16}", "log", "files", "bytes", "deleted bytes");
    let logs = [
        ("nodes", stats.nodes),
        ("blocks", stats.blocks),
        ("codes", stats.codes),
        ("witnesses", stats.witnesses),
    ];
    for (name, log) in logs {
        let state::LogStats { files, kept_bytes, deleted_bytes } = log;
        println!("{name:<10} {files:>8} {kept_bytes:>16} {deleted_bytes:>16}");
    }
    println!("{:<10} {:>8} {:>16}", "index", 1, stats.index_bytes);
    let (blocks, canonical) = (stats.block_count, stats.canonical_count);
    println!("{blocks} blocks, {canonical} canonical; {} codes", stats.code_count);
    println!("states are kept from block {}", kept_from(database)?);
    let heads = database.heads();
    let named = [("head", heads.head), ("safe", heads.safe), ("finalized", heads.finalized)];
    for (name, hash) in named {
        let Some(hash) = hash else { continue };
        let number = database.entry(&hash)?.map_or(0, |entry| entry.number);
        println!("{name:<10} {number:>8} {hash}");
    }
    Ok(())
}

/// The first block whose state is kept: the chain may begin with a later one than 0.
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
    println!("{pages} pages, {frames} frames, {index_entries} entries of the index");
    if let Some(first) = first {
        bail!("{damaged} of them are damaged, the first: {first}");
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
    println!("the state after the head, block {number}: {nodes} nodes hash to {root}");
    Ok(())
}

fn unwind(database: &Database, to: u64) -> anyhow::Result<()> {
    let hash = database.canonical(to)?.with_context(|| format!("there is no block {to}"))?;
    check_root(database, hash)?;
    let mut progress = Progress::of_the_whole("unwinding");
    let dropped = database.unwind(to, &mut |part| progress.part(part))?;
    progress.finish();
    println!("{dropped} canonical blocks dropped; the head is block {to}, {hash}");
    Ok(())
}

/// Checks that the state after a block is kept, and is the one that its header says.
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
