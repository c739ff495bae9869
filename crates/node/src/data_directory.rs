//! The chain in a data directory: opening it, and what a node notes there for other commands.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::Bytes;
use anyhow::Context;
use engine::{Engine, EngineOptions, Genesis, Remote, block_header, unfinished_state};
use execution::ChainSpec;
use serde::{Deserialize, Serialize};
use state::{Database, DirectoryDisk, Options as DatabaseOptions};

use crate::dev::ForkPoint;

/// Opens the chain in `data_dir`, or begins one with `genesis` where there is none yet.
pub(crate) fn open_engine(
    data_dir: &Path,
    genesis: Option<&alloy_genesis::Genesis>,
    database: DatabaseOptions,
    options: impl FnOnce(&Database) -> anyhow::Result<EngineOptions>,
) -> anyhow::Result<Engine> {
    let directory = data_dir.join("chain");
    let has_none = || {
        let hint = "deponent init begins one, node and import do so with --chain";
        anyhow::anyhow!("{} holds no chain yet: {hint}", data_dir.display())
    };
    let is_there = directory.try_exists();
    if !is_there.with_context(|| format!("cannot look for {}", directory.display()))?
        && genesis.is_none()
    {
        return Err(has_none());
    }
    let disk = DirectoryDisk::open(&directory)?;
    [data_dir, &directory].into_iter().for_each(warn_of_writers);
    let database = Database::open(disk, &database)?;
    let stored = database.meta(CONFIG)?;
    let config = match (&stored, genesis) {
        (_, Some(genesis)) => genesis.config.clone(),
        (Some(stored), None) => serde_json::from_slice(stored)
            .with_context(|| format!("the chain configuration in {}", directory.display()))?,
        (None, None) => return Err(has_none()),
    };
    let chain = ChainSpec::from_config(&config);
    let chain = match genesis {
        Some(_) => chain.context("--chain")?,
        None => chain?,
    };
    let genesis = match &stored {
        // The chain began with another block than the genesis file's, which only gives the rules.
        Some(stored) if is_from_state(&database)? => {
            let stored: alloy_genesis::ChainConfig = serde_json::from_slice(stored)?;
            let (got, expected) = (config.chain_id, stored.chain_id);
            anyhow::ensure!(got == expected, "chain {expected} is there, {got} is the one given");
            None
        }
        _ => genesis.map(|it| Genesis::new(it, &chain)).transpose().context("--chain")?,
    };
    if database.heads().head.is_none() {
        anyhow::ensure!(
            unfinished_state(&database)?.is_none(),
            "{} has a state that deponent init has not finished: run the same init again, or \
             remove {} to begin otherwise",
            data_dir.display(),
            directory.display()
        );
        begin_from_state(&database, false)?;
    }
    let config = serde_json::to_vec(&config)?;
    let first = database.heads().genesis;
    let is_other = |genesis: &Genesis| first.is_some_and(|it| it != genesis.header.hash_slow());
    // A genesis with another first block is refused by `Engine::open`.
    if !genesis.as_ref().is_some_and(is_other) {
        if let Some(stored) = stored.filter(|stored| **stored != *config) {
            check_config(&database, &stored, &chain)
                .with_context(|| format!("{} holds another chain", data_dir.display()))?;
        }
        database.set_meta(CONFIG, config.into())?;
    }
    let options = options(&database)?;
    Ok(Engine::open(chain, genesis, database, options)?)
}

/// Begins a chain in an empty directory with a block of another one.
pub(crate) fn open_forked(
    data_dir: &Path,
    fork: &ForkPoint,
    database: DatabaseOptions,
    options: EngineOptions,
) -> anyhow::Result<Engine> {
    let database = Database::open(DirectoryDisk::open(data_dir.join("chain"))?, &database)?;
    let chain = ChainSpec::from_config(fork.config())?;
    database.set_meta(CONFIG, serde_json::to_vec(fork.config())?.into())?;
    begin_from_state(&database, true)?;
    let remote = Arc::new(Remote::default());
    fork.add_to(&remote);
    let options = EngineOptions { remote: Some(remote), ..options };
    let first = Genesis { header: fork.header.clone(), alloc: BTreeMap::new() };
    Ok(Engine::open(chain, Some(first), database, options)?)
}

/// Logs that other users may write to a directory, as an earlier version made it under a umask of
/// zero.
fn warn_of_writers(directory: &Path) {
    let mode = directory.metadata().map_or(0, |data| data.permissions().mode() & 0o777);
    if mode & 0o022 != 0 {
        let directory = directory.display();
        tracing::warn!("other users may write to {directory} (mode {mode:03o}): chmod 700");
    }
}

/// Checks that the rules given agree with those by which the head and its ancestors were validated.
fn check_config(database: &Database, stored: &[u8], given: &ChainSpec) -> anyhow::Result<()> {
    let heads = database.heads();
    let validated = ChainSpec::from_config(&serde_json::from_slice(stored)?)?;
    if let Some(hash) = heads.head.filter(|head| heads.genesis != Some(*head)) {
        let head = block_header(database, hash)?;
        if let Some(conflict) = validated.difference(given, Some(&head)) {
            anyhow::bail!(
                "the genesis given has {conflict}, by which its blocks were validated: give its \
                 own, or another --datadir"
            );
        }
    }
    if let Some(difference) = validated.difference(given, None) {
        tracing::warn!("the chain's rules change: {difference}");
    }
    Ok(())
}

/// How much of the past is kept. A node stores it in its data directory, so that other commands
/// delete nothing that the node would keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Retention {
    /// As [`EngineOptions::retain_history`].
    pub(crate) history: u64,
    /// As [`EngineOptions::retain_witness_blocks`].
    pub(crate) witness_blocks: u64,
    /// As [`EngineOptions::retain_witness_bytes`].
    pub(crate) witness_bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self::of(&EngineOptions::default())
    }
}

impl Retention {
    pub(crate) const fn of(options: &EngineOptions) -> Self {
        Self {
            history: options.retain_history,
            witness_blocks: options.retain_witness_blocks,
            witness_bytes: options.retain_witness_bytes,
        }
    }

    pub(crate) fn apply(self, options: EngineOptions) -> EngineOptions {
        EngineOptions {
            retain_history: self.history,
            retain_witness_blocks: self.witness_blocks,
            retain_witness_bytes: self.witness_bytes,
            ..options
        }
    }

    /// The retention that the last node stored, or the default.
    pub(crate) fn noted(database: &Database) -> anyhow::Result<Self> {
        let Some(noted) = database.meta(RETENTION)? else { return Ok(Self::default()) };
        serde_json::from_slice(&noted).context("the retention that the node has stored")
    }

    pub(crate) fn note(self, database: &Database) -> anyhow::Result<()> {
        Ok(database.set_meta(RETENTION, serde_json::to_vec(&self)?.into())?)
    }
}

/// The database key of the [`Retention`].
const RETENTION: &str = "retention";

/// The database key of the chain's configuration, in the form of genesis.json.
pub(crate) const CONFIG: &str = "config";

/// The database key of the mark that the chain began with a state or a header of its own.
const FROM_STATE: &str = "from-state";

/// The value of [`FROM_STATE`] that revokes the mark of an unfinished `init`.
const NOT_FROM_STATE: &[u8] = &[0];

/// Whether the chain was begun with a state or a header of its own.
fn is_from_state(database: &Database) -> anyhow::Result<bool> {
    let mark = database.meta(FROM_STATE)?;
    Ok(database.heads().head.is_some() && mark.is_some_and(|mark| mark[..] != *NOT_FROM_STATE))
}

/// Stores how the chain begins, before it does.
pub(crate) fn begin_from_state(database: &Database, is_so: bool) -> anyhow::Result<()> {
    if is_so || database.meta(FROM_STATE)?.is_some() {
        let mark = if is_so { Bytes::new() } else { Bytes::from_static(NOT_FROM_STATE) };
        database.set_meta(FROM_STATE, mark)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After an unfinished `init` with a state the chain does not take any genesis.
    #[test]
    fn a_chain_is_from_a_state_only_when_it_began_with_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |balance: &str| -> alloy_genesis::Genesis {
            let text = include_str!("demo/genesis.json");
            let mut genesis: serde_json::Value = serde_json::from_str(text).expect("JSON");
            genesis["alloc"]["0x00000000000000000000000000000000000000aa"] =
                serde_json::json!({"balance": balance});
            serde_json::from_value(genesis).expect("a genesis")
        };
        let open = |genesis: &alloy_genesis::Genesis| {
            let options = DatabaseOptions::default();
            let engine_options = |_: &_| Ok(EngineOptions::default());
            open_engine(directory.path(), Some(genesis), options, engine_options)
        };
        let chain = directory.path().join("chain");
        std::fs::create_dir(&chain).expect("made");
        let disk = DirectoryDisk::open(&chain).expect("a directory");
        let database = Database::open(disk, &DatabaseOptions::default()).expect("empty");
        begin_from_state(&database, true).expect("noted");
        database.persist().expect("written");
        drop(database);
        drop(open(&file("0x1")).expect("its genesis was given"));
        let refused = open(&file("0x2")).expect_err("another chain");
        assert!(format!("{refused:#}").contains("begins with"), "{refused:#}");
        drop(open(&file("0x1")).expect("the same"));
    }

    /// A genesis.json that is older than the chain does not revoke its forks.
    #[test]
    fn rules_change_for_later_blocks_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let text = include_str!("demo/genesis.json");
        let genesis: alloy_genesis::Genesis = serde_json::from_str(text).expect("JSON");
        let open = |change: &dyn Fn(&mut alloy_genesis::ChainConfig)| {
            let mut genesis = genesis.clone();
            change(&mut genesis.config);
            let engine_options = |_: &_| Ok(EngineOptions::default());
            open_engine(
                directory.path(),
                Some(&genesis),
                DatabaseOptions::default(),
                engine_options,
            )
        };
        let stored = || -> alloy_genesis::ChainConfig {
            let disk = DirectoryDisk::open(directory.path().join("chain")).expect("a directory");
            let database = Database::open(disk, &DatabaseOptions::default()).expect("opened");
            let config = database.meta(CONFIG).expect("read").expect("it is there");
            serde_json::from_slice(&config).expect("JSON")
        };
        let refused = |change: &dyn Fn(&mut alloy_genesis::ChainConfig), words: &str| {
            let error = format!("{:#}", open(change).expect_err(words));
            assert!(error.contains(words), "{error}");
        };
        // Until a block has been validated by it, the configuration may change.
        drop(open(&|config| config.osaka_time = Some(1_000)).expect("begun"));
        assert_eq!(stored().osaka_time, Some(1_000));
        let engine = open(&|_| ()).expect("its first block is the same");
        let attributes = alloy_rpc_types_engine::PayloadAttributes {
            timestamp: 2_000,
            withdrawals: Some(Vec::new()),
            parent_beacon_block_root: Some(Default::default()),
            ..Default::default()
        };
        let first = engine.heads().genesis;
        let built = engine.build(first, attributes, Vec::new(), Bytes::new()).expect("built");
        let verdict = engine.new_block(built.block.clone()).expect("judged");
        assert_eq!(verdict, engine::Verdict::Valid);
        let head = alloy_rpc_types_engine::ForkchoiceState {
            head_block_hash: built.block.hash(),
            ..Default::default()
        };
        engine.forkchoice_updated(head, None).expect("taken");
        drop(engine);
        refused(&|config| config.chain_id = 1338, "chainId 1338 instead of 1337");
        refused(&|config| config.osaka_time = None, "Osaka never instead of at time 0");
        refused(&|config| config.osaka_time = Some(9), "Osaka at time 9 instead of at time 0");
        let blobs = |config: &mut alloy_genesis::ChainConfig| {
            config.blob_schedule.get_mut("osaka").expect("an entry").target_blob_count -= 1;
        };
        refused(&blobs, "another blobSchedule");
        assert_eq!(stored(), genesis.config);
        drop(open(&|config| config.amsterdam_time = Some(9_000)).expect("a later fork"));
        assert_eq!(stored().amsterdam_time, Some(9_000));
        drop(open(&|_| ()).expect("taken back in time"));
    }
}
