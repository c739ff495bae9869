use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::Bytes;
use anyhow::Context;
use engine::{Engine, EngineOptions, Genesis, PersistedBlock, block_header};
use execution::ChainSpec;
use rpc::{JwtSecret, Limits, Listener, LogThrottle, ServerOptions, serve};
use serde::{Deserialize, Serialize};
use state::{Database, DirectoryDisk, Options as DatabaseOptions};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Api;

/// What a node needs to start.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// The chain's rules and its first block; `None` where the data directory has them.
    pub genesis: Option<alloy_genesis::Genesis>,
    /// Where the node keeps its files; made when absent.
    pub data_dir: PathBuf,
    /// The public port. Port 0 is any free one.
    pub http: SocketAddr,
    /// The port of the Engine API. Port 0 is any free one.
    pub engine: SocketAddr,
    /// Where the node listens on a Unix socket, if it does: all methods and resources of both
    /// ports, without tokens, for the owner of the process alone.
    pub ipc: Option<PathBuf>,
    /// The file of the Engine API's secret; `jwt.hex` in the data directory when `None`, made
    /// when absent.
    pub jwt_file: Option<PathBuf>,
    /// Whether answers are compressed for clients that ask for zstd.
    pub zstd: bool,
    /// Whether the engine port offers `testing_buildBlockV1`.
    pub testing: bool,
    /// How the engine works, and what it keeps.
    pub engine_options: EngineOptions,
    /// What the database may use.
    pub database: DatabaseOptions,
}

impl NodeOptions {
    /// A node of this chain on free ports of this machine, its files in `data_dir`.
    pub fn new(genesis: alloy_genesis::Genesis, data_dir: PathBuf) -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            genesis: Some(genesis),
            data_dir,
            http: free,
            engine: free,
            ipc: None,
            jwt_file: None,
            zstd: true,
            testing: false,
            engine_options: EngineOptions::default(),
            database: DatabaseOptions::default(),
        }
    }
}

/// A running node. Dropping it stops it too, without waiting.
#[derive(Debug)]
pub struct Node {
    /// Where the Engine API listens.
    pub engine_addr: SocketAddr,
    /// Where the public port listens.
    pub http_addr: SocketAddr,
    /// The Unix socket on which the node listens, if it does.
    pub ipc_path: Option<PathBuf>,
    /// The secret of the engine port.
    pub jwt: JwtSecret,
    engine: Arc<Engine>,
    /// Closed to stop the ports.
    stop: watch::Sender<()>,
    ports: JoinSet<()>,
}

impl Node {
    /// Starts a node on the chain in its data directory, or on a genesis when that is new. It
    /// needs a tokio runtime with time and I/O.
    pub async fn start(options: NodeOptions) -> anyhow::Result<Self> {
        let NodeOptions { genesis, data_dir, http, engine, ipc, jwt_file, testing, .. } = options;
        if genesis.is_some() {
            state::create_directory(&data_dir)
                .with_context(|| format!("cannot make the directory {}", data_dir.display()))?;
        }
        let (given, own_jwt) = (jwt_file.as_deref(), data_dir.join("jwt.hex"));
        let given = given.map(JwtSecret::load).transpose()?;
        // A large genesis takes seconds.
        let (database, engine_options) = (options.database, options.engine_options);
        let open = move || {
            open_engine(&data_dir, genesis.as_ref(), database, |database| {
                Retention::of(&engine_options).note(database)?;
                Ok(engine_options)
            })
        };
        let chain = Arc::new(tokio::task::spawn_blocking(open).await??);
        let said = LogThrottle::default();
        chain.on_persisted(move |PersistedBlock { number, hash }| {
            // On the thread that has written it: no fork choice waits for the log.
            if said.is_due() {
                tracing::info!(number, %hash, "the head, on the disk");
            }
        });
        // Where there is no chain, nothing is made.
        let jwt = given.map_or_else(|| JwtSecret::load_or_create(&own_jwt), Ok)?;
        let mut node = Self {
            engine_addr: engine,
            http_addr: http,
            ipc_path: None,
            jwt,
            engine: chain.clone(),
            stop: watch::Sender::new(()),
            ports: JoinSet::new(),
        };
        let most_connections = most_connections();
        let bounded = |jwt, limits: Limits| {
            let zstd_bytes = if options.zstd { limits.zstd_bytes } else { usize::MAX };
            let connections = limits.connections.min(most_connections);
            ServerOptions { jwt, limits: Limits { zstd_bytes, connections, ..limits } }
        };
        let authenticated = bounded(Some(node.jwt.clone()), Limits::engine());
        let public = bounded(None, Limits::public());
        let trusted = bounded(None, Limits::engine());
        let api = Api::engine_port(chain.clone(), testing);
        node.engine_addr = node.listen(engine, authenticated, api).await?;
        node.http_addr = node.listen(http, public, Api::public_port(chain.clone())).await?;
        if let Some(path) = ipc {
            let listener = rpc::bind_unix(&path).with_context(|| {
                format!(
                    "cannot listen on the socket {}: another place for it can \
                                          be given with --ipcpath, none with --ipcdisable",
                    path.display()
                )
            })?;
            node.serve(listener.into(), trusted, Api::local(chain, testing));
            node.ipc_path = Some(path);
        }
        Ok(node)
    }

    /// The chain, for those who run a node in their own process.
    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Stops listening, lets running calls finish, and returns when they have.
    pub async fn stop(self) {
        let Self { stop, mut ports, ipc_path, .. } = self;
        drop(stop);
        if let Some(path) = ipc_path {
            // A socket that is gone already is no fault.
            std::fs::remove_file(path).unwrap_or_default();
        }
        while ports.join_next().await.is_some() {}
    }

    async fn listen(
        &mut self,
        address: SocketAddr,
        options: ServerOptions,
        api: Api,
    ) -> anyhow::Result<SocketAddr> {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        let address = listener.local_addr()?;
        self.serve(listener.into(), options, api);
        Ok(address)
    }

    fn serve(&mut self, listener: Listener, options: ServerOptions, api: Api) {
        let mut stopped = self.stop.subscribe();
        self.ports.spawn(async move {
            let stopped = async { while stopped.changed().await.is_ok() {} };
            serve(listener, options, Arc::new(api), stopped).await;
        });
    }
}

/// Connections of one of three ports, so that all together leave descriptors to the database: a new
/// file that cannot be opened stops it.
fn most_connections() -> usize {
    use rustix::process::{Resource, getrlimit};
    let most = getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok());
    let left = most.unwrap_or(usize::MAX).saturating_sub(crate::limits::OTHER_DESCRIPTORS);
    (left / 3).max(64)
}

/// Opens the chain in `data_dir`; where there is none yet, one that begins with `genesis`.
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
    let database = Database::open(disk, &database)?;
    let stored = database.meta(CONFIG)?;
    let config = match (&stored, genesis) {
        (_, Some(genesis)) => genesis.config.clone(),
        (Some(stored), None) => serde_json::from_slice(stored)
            .with_context(|| format!("the chain configuration in {}", directory.display()))?,
        (None, None) => return Err(has_none()),
    };
    let chain = ChainSpec::from_config(&config)?;
    let genesis = match &stored {
        // Its first block is not the genesis file's, which says how it goes on.
        Some(stored) if is_from_state(&database)? => {
            let stored: alloy_genesis::ChainConfig = serde_json::from_slice(stored)?;
            let (got, expected) = (config.chain_id, stored.chain_id);
            anyhow::ensure!(got == expected, "chain {expected} is there, {got} is the one given");
            None
        }
        _ => genesis.map(|genesis| Genesis::new(genesis, &chain)).transpose()?,
    };
    if database.heads().head.is_none() {
        begin_from_state(&database, false)?;
    }
    let config = serde_json::to_vec(&config)?;
    let first = database.heads().genesis;
    let is_other = |genesis: &Genesis| first.is_some_and(|it| it != genesis.header.hash_slow());
    // A genesis of another first block is refused below.
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

/// Checks that the rules given do not contradict those by which the head and its ancestors were
/// validated.
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
        tracing::warn!("the chain's rules are others from now on: {difference}");
    }
    Ok(())
}

/// How much of the past is kept. A node notes it in its data directory, so that commands delete
/// nothing that it would keep.
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
    const fn of(options: &EngineOptions) -> Self {
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

    /// What the last node keeps, or one would by default.
    pub(crate) fn noted(database: &Database) -> anyhow::Result<Self> {
        let Some(noted) = database.meta(RETENTION)? else { return Ok(Self::default()) };
        serde_json::from_slice(&noted).context("what the node keeps of the past")
    }

    fn note(self, database: &Database) -> anyhow::Result<()> {
        Ok(database.set_meta(RETENTION, serde_json::to_vec(&self)?.into())?)
    }
}

/// Under which name the database has it.
const RETENTION: &str = "retention";

/// Under which name the database keeps the chain's configuration, as genesis.json has it.
pub(crate) const CONFIG: &str = "config";

/// The same for whether the chain was begun with a state or a header of its own.
const FROM_STATE: &str = "from-state";

/// The value of [`FROM_STATE`] of a chain that was not, though an `init` that came to no end has
/// said so.
const NOT_FROM_STATE: &[u8] = &[0];

/// Whether the chain was begun with a state or a header of its own.
fn is_from_state(database: &Database) -> anyhow::Result<bool> {
    let mark = database.meta(FROM_STATE)?;
    Ok(database.heads().head.is_some() && mark.is_some_and(|mark| mark[..] != *NOT_FROM_STATE))
}

/// Notes how the chain is begun, before it is.
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

    /// An `init` with a state that came to no end leaves no chain that takes any genesis.
    #[test]
    fn a_chain_is_from_a_state_only_when_it_began_with_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |balance: &str| -> alloy_genesis::Genesis {
            let text = include_str!("../../../docs/genesis.json");
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

    /// A genesis.json that is older than the chain does not take its forks back.
    #[test]
    fn rules_change_for_later_blocks_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let text = include_str!("../../../docs/genesis.json");
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
        // As long as nothing has been validated by it, it may be another one.
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
