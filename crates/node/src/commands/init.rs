//! `deponent init`.

mod hashed;

use std::io::Read;
use std::path::{Path, PathBuf};

use alloy_consensus::{EMPTY_ROOT_HASH, Header};
use alloy_primitives::{B256, Bytes};
use alloy_rlp::Decodable;
use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use engine::{Genesis, StateEntry, initialise, unfinished_state};
use execution::ChainSpec;
use files::{
    AccountReader, Progress, SortOptions, SortedEntry, SortedState, read_genesis,
    read_genesis_head, unhexed,
};
use rpc::read_json;
use state::{Database, DirectoryDisk};
use trie::AccountInfo;

use super::refuse_network;
use super::storage::StorageArgs;
use crate::console::{counted, say};
use crate::data_directory::{CONFIG, begin_from_state};
use crate::flags::values::{parse_bytes, shown_bytes};
use crate::foreign_witness::{fields, without_result};
use crate::limits::{HEADER_FILE_BYTES, INIT_CACHE_BYTES};

/// The arguments of `deponent init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The chain's rules and first block, a genesis.json in geth's form.
    #[arg(long, value_name = "FILE")]
    chain: PathBuf,
    /// The data directory, created if absent.
    #[arg(long, value_name = "DIR")]
    datadir: PathBuf,
    /// A state to begin with instead of the genesis's own, plain or compressed (gzip, zstd); - is
    /// the standard input. JSON lines as `geth snapshot dump` writes them, which any geth can; or
    /// as `geth dump --iterative` writes and reth's init-state reads, which is complete only if
    /// geth has run with --cache.preimages from the first block on. Without --header the state
    /// must be that of the genesis's own accounts, if it has any.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    #[arg(long = "state.batch-bytes", value_name = "BYTES", value_parser = parse_bytes,
          requires = "state",
          help = format!("Bytes of the state out of `geth snapshot dump` that are written at a \
                          time: a stopped init goes on behind the last of them [default: {}]",
                         shown_bytes(engine::limits::INIT_BATCH_BYTES as u64)))]
    batch_bytes: Option<u64>,
    /// The header of the block with that state, if that block is not the genesis: RLP; its hex, in
    /// quotes or not; or an answer of debug_getRawHeader, eth_getHeaderByHash or
    /// eth_getBlockByHash, as curl or `deponent rpc` prints it. The chain then begins there.
    #[arg(long, value_name = "FILE", requires = "state")]
    header: Option<PathBuf>,
    #[command(flatten)]
    storage: StorageArgs,
}

/// Which answers `--header` takes.
const SAVED_HEADER: &str = "save the answer of debug_getRawHeader";

/// Why a dump of geth's may be incomplete, which geth says in its log only.
const PREIMAGES: &str = "`geth dump` leaves out every account and slot whose key it knows as a \
                         hash only, unless geth has run with --cache.preimages from the first \
                         block on; `geth snapshot dump` needs no preimages and leaves out nothing";

impl InitArgs {
    fn batch_bytes(&self) -> usize {
        let given = self.batch_bytes.and_then(|bytes| usize::try_from(bytes).ok());
        given.unwrap_or(engine::limits::INIT_BATCH_BYTES)
    }
}

/// Runs `deponent init`.
pub(crate) fn init(args: &InitArgs) -> anyhow::Result<()> {
    refuse_network(&args.chain)?;
    if args.state.is_none() {
        let shown = format!("--chain {}", args.chain.display());
        let chain = args.chain.metadata().with_context(|| shown.clone())?;
        ensure!(chain.is_file(), "{shown} is read twice, so it has to be a file");
    }
    let expected = Expected::read(args)?;
    let reader = AccountReader::open(args.state.as_ref().unwrap_or(&args.chain))?;
    let reader = match reader.into_hashed() {
        Ok(reader) => {
            let root = reader.root();
            expected.check_stated(args, root)?;
            let mut begun = Begun::open(args)?;
            if begun.unfinished != Some(root) {
                begun.empty(args)?;
            }
            let database = begun.database;
            expected.note(args, &database)?;
            remove(&args.datadir.join("init"))?;
            let (heads, accounts) = hashed::import(args, &expected, &database, reader)?;
            say!("the chain begins with {}, {} read", heads.genesis, counted(accounts, "account"));
            return Ok(());
        }
        Err(reader) => *reader,
    };
    let mut begun = Begun::open(args)?;
    let options = SortOptions::new(&args.datadir.join("init"));
    let mut progress = Progress::new("sorting", None, 0);
    let sorted = SortedState::prepare_opened(reader, &options, &mut progress)?;
    progress.finish();
    // A wrong root is found before the state is built, which may take long.
    if let Some(root) = sorted.root() {
        expected.check_stated(args, root)?;
        begun.check_addressed(args, root, sorted.accounts())?;
    }
    begun.empty(args)?;
    let database = begun.database;
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
    expected.note(args, &database)?;
    let heads = initialise(&expected.chain, &database, entries, codes, |root| {
        expected.header(args, sorted.root(), root)
    });
    let heads = heads.map_err(|error| match error.downcast_ref() {
        Some(engine::Error::StorageRoot { .. }) => {
            anyhow!("{error}: some slots are missing or not as they were. {PREIMAGES}")
        }
        _ => error,
    })?;
    progress.finish();
    sorted.remove()?;
    say!("the chain begins with {}, {}", heads.genesis, counted(accounts, "account"));
    Ok(())
}

/// The first block, as far as the arguments describe it.
struct Expected {
    genesis: alloy_genesis::Genesis,
    chain: ChainSpec,
    /// The state root of the genesis's own accounts, where the state has to be theirs.
    own_root: Option<B256>,
    /// The header given.
    header: Option<Header>,
}

impl Expected {
    fn read(args: &InitArgs) -> anyhow::Result<Self> {
        let is_own = args.state.is_some() && args.header.is_none();
        let read = if is_own { read_genesis } else { read_genesis_head };
        let genesis = read(&args.chain).context("--chain")?;
        let chain = ChainSpec::from_config(&genesis.config).context("--chain")?;
        let own = Some(&genesis).filter(|file| is_own && !file.alloc.is_empty());
        let own = own.map(|file| Genesis::new(file, &chain)).transpose()?;
        let own_root = own.map(|own| own.header.state_root);
        let header = args.header.as_deref().map(read_header).transpose()?;
        Ok(Self { genesis, chain, own_root, header })
    }

    /// Notes the rules of the chain, with its heads or before them.
    fn note(&self, args: &InitArgs, database: &Database) -> anyhow::Result<()> {
        database.set_meta(CONFIG, serde_json::to_vec(&self.genesis.config)?.into())?;
        begin_from_state(database, args.state.is_some() || args.header.is_some())
    }

    /// Checks the root that a dump states, before all of it is read.
    fn check_stated(&self, args: &InitArgs, root: B256) -> anyhow::Result<()> {
        if let Some(header) = self.header.as_ref().filter(|header| header.state_root != root) {
            let (number, hash) = (header.number, header.hash_slow());
            bail!(
                "the dump is of the state {root}; the header is of block {number} ({hash}), whose \
                 state is {}. Give the header of the block whose stateRoot is {root}; or, where \
                 block {number} is one of geth's last, `geth snapshot dump {number}` dumps that",
                header.state_root
            );
        }
        Ok(self.check_own(args, root)?)
    }

    /// Checks that the state is that of the genesis's own accounts, where it has to be.
    fn check_own(&self, args: &InitArgs, root: B256) -> Result<(), engine::Error> {
        match self.own_root {
            Some(own) if own != root => Err(engine::Error::Genesis(format!(
                "the state's root is {root}, that of the accounts in {} {own}: --header gives the \
                 header of the block whose state it is",
                args.chain.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The header of the first block, for a state with this root; `stated` is the root by the file.
    fn header(
        &self,
        args: &InitArgs,
        stated: Option<B256>,
        root: B256,
    ) -> Result<Header, engine::Error> {
        if let Some(stated) = stated.filter(|stated| *stated != root) {
            let reason = format!(
                "the file says that its root is {stated}, its accounts give {root}: some are \
                 missing or not as they were. {PREIMAGES}"
            );
            return Err(engine::Error::Genesis(reason));
        }
        self.check_own(args, root)?;
        let given = self.header.clone();
        given.map_or_else(|| Genesis::header(&self.genesis, &self.chain, root), Ok)
    }
}

/// The database of a chain that has not begun.
struct Begun {
    database: Database,
    options: state::Options,
    directory: PathBuf,
    /// The root of the state that an earlier `init` has begun to build.
    unfinished: Option<B256>,
}

impl Begun {
    /// Refuses a chain, and a state without an end that a genesis would take the place of.
    fn open(args: &InitArgs) -> anyhow::Result<Self> {
        let directory = args.datadir.join("chain");
        // Nothing is read again.
        let cache_bytes = args.storage.cache_bytes.unwrap_or(INIT_CACHE_BYTES);
        let options = state::Options { cache_bytes, ..args.storage.database() };
        let database = Database::open(DirectoryDisk::open(&directory)?, &options)?;
        if let Some(head) = database.heads().head {
            bail!("{} holds a chain already, its head is {head}", args.datadir.display());
        }
        let unfinished = unfinished_state(&database)?;
        if let Some(root) = unfinished.filter(|_| args.state.is_none()) {
            bail!(
                "{} has a part of the state {root}, which init --state has not finished: run that \
                 again, or remove {} to begin with the genesis",
                args.datadir.display(),
                directory.display()
            );
        }
        // A kill in between has left it.
        remove(&args.datadir.join("chain.unfinished"))?;
        Ok(Self { database, options, directory, unfinished })
    }

    /// Checks that a dump which is not by hashed keys, or breaks off before that can be told, does
    /// not take the place of the same state.
    fn check_addressed(&self, args: &InitArgs, root: B256, accounts: u64) -> anyhow::Result<()> {
        ensure!(
            accounts > 0 || root == EMPTY_ROOT_HASH,
            "the dump has the root {root} and no account. Either it was cut off: the same command \
             with the whole dump begins, or goes on with what is there. Or {PREIMAGES}"
        );
        ensure!(
            self.unfinished != Some(root),
            "{} has a part of the state {root} from a dump by hashed keys, this one is by \
             addresses: go on with one of `geth snapshot dump`, or remove {} to begin anew",
            args.datadir.display(),
            self.directory.display()
        );
        Ok(())
    }

    /// Removes what an earlier `init` has left.
    fn empty(&mut self, args: &InitArgs) -> anyhow::Result<()> {
        if let Some(found) = self.unfinished.take() {
            tracing::warn!(
                "the unfinished state with the root {found} is removed: this is another"
            );
        }
        if self.database.stats()?.nodes.kept_bytes == 0 {
            return Ok(());
        }
        // It is as large as the state. It is renamed while this process has it locked, and then
        // removed: a kill in between leaves nothing under the chain's own name.
        let unfinished = args.datadir.join("chain.unfinished");
        std::fs::rename(&self.directory, &unfinished)
            .with_context(|| format!("cannot rename {}", self.directory.display()))?;
        self.database = Database::open(DirectoryDisk::open(&self.directory)?, &self.options)?;
        remove(&unfinished)
    }
}

fn state_entry(entry: SortedEntry) -> StateEntry {
    match entry {
        SortedEntry::Account { hashed_address, nonce, balance, code_hash, storage_root } => {
            let info = AccountInfo { nonce, balance, code_hash };
            StateEntry::Account { hashed_address, info, storage_root }
        }
        SortedEntry::Slot { hashed_slot, value } => StateEntry::Slot { hashed_slot, value },
    }
}

fn read_header(file: &Path) -> anyhow::Result<Header> {
    let context = || format!("{} is not a header's RLP, or its hex", file.display());
    let mut content = Vec::new();
    let cannot_read = || format!("--header: cannot read {}", file.display());
    let opened = std::fs::File::open(file).with_context(cannot_read)?;
    opened.take(HEADER_FILE_BYTES + 1).read_to_end(&mut content).with_context(cannot_read)?;
    ensure!(
        content.len() as u64 <= HEADER_FILE_BYTES,
        "{} is longer than a header: {HEADER_FILE_BYTES} bytes at most",
        file.display()
    );
    let text = std::str::from_utf8(&content).unwrap_or_default();
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.starts_with('{') {
        return answered_header(text).map_err(|fault| anyhow!("{}: {fault}", file.display()));
    }
    if matches!(text, "null" | "\"\"") {
        bail!("{}: {text} is no header: the server has no such block", file.display());
    }
    let rlp = unhexed(&content).unwrap_or(content);
    let mut rest = &rlp[..];
    let header = Header::decode(&mut rest).with_context(context)?;
    ensure!(rest.is_empty(), "{}: {} bytes behind the header", file.display(), rest.len());
    Ok(header)
}

/// The header in an answer of `debug_getRawHeader`, `eth_getHeaderByHash` or `eth_getBlockByHash`,
/// or in the result of one. The hash that an object names is that of its members: one of a fork
/// that is not known here would be another header without the members that are not read.
fn answered_header(json: &str) -> Result<Header, String> {
    let [result, error, hash] = fields(json, ["result", "error", "hash"])?;
    if let Some(reason) = without_result(result, error) {
        return Err(reason);
    }
    let (object, hash) = match result {
        Some(hex) if hex.starts_with('"') => {
            let rlp: Bytes = read_json(hex).map_err(|fault| format!("the result: {fault}"))?;
            return alloy_rlp::decode_exact(&rlp)
                .map_err(|fault| format!("the result is no header's RLP: {fault}"));
        }
        Some(object) if object.starts_with('{') => {
            let [hash] = fields(object, ["hash"])?;
            (object, hash)
        }
        Some(_) => return Err(format!("the result is no header: {SAVED_HEADER}")),
        None => (json, hash),
    };
    let hash = hash.ok_or_else(|| format!("the header has no hash: {SAVED_HEADER}"))?;
    let hash: B256 = read_json(hash).map_err(|fault| format!("hash: {fault}"))?;
    let header: Header =
        read_json(object).map_err(|fault| format!("no header: {fault}: {SAVED_HEADER}"))?;
    let own = header.hash_slow();
    if own == hash {
        return Ok(header);
    }
    Err(format!("the members of the header give the hash {own}, not {hash}: {SAVED_HEADER}"))
}

/// Removes a directory, if there is one.
fn remove(directory: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.with_context(|| format!("cannot remove {}", directory.display())),
    }
}
