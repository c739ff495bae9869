use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use dev::{DevChain, missing_contracts};
use engine::{Engine, EngineOptions};
use follow::limits::HEAD_PAUSE;
use follow::{Backfill, HeadSource, HeadTag, Upstream, UpstreamOptions};
use pool::Pool;
use rpc::{JwtSecret, PortMemory, ServerOptions};
use state::Options as DatabaseOptions;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;

use crate::allocator;
use crate::api::Api;
use crate::call_bounds::CallBounds;
use crate::data_directory::{Retention, open_engine, open_forked};
use crate::dev::{DevNode, DevOptions, endowments};
use crate::disk::{DiskFault, Faults, check_free, watch_free};
use crate::feed::{Feed, FeedThread};
use crate::inclusions::InclusionWatch;
use crate::limits;
use crate::metrics::{Metrics, MetricsObserver, MetricsPort, NodeState};
use crate::node_record::NodeRecord;
use crate::observe::{BlockLog, ClientWatch, NodeCondition, Observer, SlowBlocks};
use crate::pending_feed::{PendingFeed, PendingThread};
use crate::pool_feed::{PoolFeed, TxpoolOptions, pool_of};
use crate::ports::{Ports, bind_socket, given_secret};
use crate::ports_options::{PortsOptions, PublicPort};
use crate::priority::lower_priority;
use crate::traces::{TraceOptions, Tracer};

/// The configuration of a [`Node`].
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// The chain's rules and its first block; `None` takes those in the data directory.
    pub genesis: Option<alloy_genesis::Genesis>,
    /// The directory of the node's files; created if absent.
    pub data_dir: PathBuf,
    /// Its ports, and its Unix socket.
    pub ports: PortsOptions,
    /// Whether the public port shows a page to browsers.
    pub http_page: bool,
    /// The file of the Engine API's secret, 32 bytes in hex; `None` is `jwt.hex` in the data
    /// directory, created if absent.
    pub jwt_file: Option<PathBuf>,
    /// Whether the engine port offers `testing_buildBlockV1`.
    pub testing: bool,
    /// The time from which a block is slow and has a line of JSON in the log, if any has.
    pub slow_block: Option<Duration>,
    /// The free bytes of the data directory's disk below which the node stops; 0 is no bound.
    pub min_free_bytes: u64,
    /// The bounds of calls.
    pub calls: CallBounds,
    /// The transaction pool.
    pub txpool: TxpoolOptions,
    /// Execution clients that are asked for blocks that are missing: addresses of JSON-RPC, as
    /// [`Upstream::parse`] takes them.
    pub follow: Vec<String>,
    /// The block of the first of them that answers which becomes the head, without a consensus
    /// client.
    pub follow_head: Option<HeadTag>,
    /// How the node mines its own chain, if it does.
    pub dev: Option<DevOptions>,
    /// Where traces of the Engine API go, if anywhere.
    pub traces: Option<TraceOptions>,
    /// Threads, caches and retention of the engine.
    pub engine_options: EngineOptions,
    /// Caches of the database.
    pub database: DatabaseOptions,
}

impl NodeOptions {
    /// A node of this chain on free ports of 127.0.0.1, with its files in `data_dir`.
    pub fn new(genesis: alloy_genesis::Genesis, data_dir: PathBuf) -> Self {
        Self {
            genesis: Some(genesis),
            data_dir,
            ports: PortsOptions::default(),
            http_page: true,
            jwt_file: None,
            testing: false,
            slow_block: None,
            min_free_bytes: 0,
            calls: CallBounds::default(),
            txpool: TxpoolOptions::default(),
            follow: Vec::new(),
            follow_head: None,
            dev: None,
            traces: None,
            engine_options: EngineOptions::default(),
            database: DatabaseOptions::default(),
        }
    }
}

/// A running node. Dropping it stops it without waiting for running calls.
#[derive(Debug)]
pub struct Node {
    /// The address on which the Engine API listens.
    pub engine_addr: SocketAddr,
    /// The address on which the public port listens, if [`offers_http`](Self::offers_http).
    pub http_addr: SocketAddr,
    /// Whether there is a public port.
    pub offers_http: bool,
    /// The address of the port of its own for WebSockets, if there is one.
    pub websocket_addr: Option<SocketAddr>,
    /// The path of the Unix socket, if there is one.
    pub ipc_path: Option<PathBuf>,
    /// The address of the port of metrics, if there is one.
    pub metrics_addr: Option<SocketAddr>,
    /// The secret of the engine port.
    pub jwt: JwtSecret,
    engine: Arc<Engine>,
    dev: Option<Arc<DevNode>>,
    ports: Ports,
    faults: Faults,
    condition: Arc<NodeCondition>,
    /// Fills gaps of the chain, where there are upstreams.
    backfill: Option<Arc<Backfill>>,
    /// Turn changes of the chain, and transactions that become pending, into notifications.
    _feeds: (FeedThread, PendingThread),
    /// Looks at the free space, and at the memory of the public port.
    _watch: JoinSet<()>,
    /// The threads of the public port's calls.
    _public_calls: PublicCalls,
}

impl Node {
    /// Starts a node on the chain in its data directory, or begins one with the genesis. It needs a
    /// tokio runtime with time and I/O.
    ///
    /// # Errors
    /// If the data directory holds no chain and no genesis is given, or another chain than the
    /// genesis's; if files cannot be read or written; if an address is taken; [`DiskFault`] if the
    /// disk has too little room.
    pub async fn start(options: NodeOptions) -> anyhow::Result<Self> {
        let NodeOptions { genesis, data_dir, ports, jwt_file, testing, .. } = options;
        let (files, min_free) = (data_dir.clone(), options.min_free_bytes);
        prepare(&files, genesis.is_some(), min_free)?;
        let given = given_secret(jwt_file.as_deref())?;
        let storage = (options.database, options.engine_options);
        let chain = open_chain(genesis, data_dir, storage, options.dev.clone()).await?;
        let (faults, mut watch) = watch_disk(&chain, &files, min_free);
        // The secret is created after the chain is opened: without a chain no file is made.
        let jwt = given.map_or_else(|| JwtSecret::load_or_create(&files.join("jwt.hex")), Ok)?;
        let record = Arc::new(NodeRecord::load_or_create(&files.join("nodekey"))?);
        let tracer = options.traces.map(|traces| tracer(traces, &mut watch));
        let (metrics, condition) = (Arc::default(), Arc::new(NodeCondition::new(files.clone())));
        let pool = pool_of(&chain, options.txpool.pool, &files.join("pool"))?;
        let dev = options.dev.map(|options| dev_node(options, &chain, &pool)).transpose()?;
        let (pending, pending_thread) = PendingFeed::start(chain.clone(), pool.clone())?;
        let observers = observers(&chain, &metrics, &condition, options.slow_block, &pending)?;
        let (feed, feed_thread) = Feed::start(chain.clone(), observers)?;
        let backfill = upstreams(&chain, &options.follow, options.follow_head, &condition)?;
        let offer = |api: Api| {
            let api = api.with_feed(feed.clone()).with_record(record.clone()).with_dev(dev.clone());
            let api = api.with_metrics(metrics.clone()).with_tracer(tracer.clone());
            let api = api.with_condition(condition.clone()).with_bounds(options.calls);
            api.with_pool(&pending, options.txpool.send).with_backfill(backfill.clone())
        };
        let mut node = Self {
            engine_addr: ports.engine,
            http_addr: ports.http.as_ref().map_or(ports.engine, |http| http.address),
            offers_http: ports.http.is_some(),
            websocket_addr: None,
            ipc_path: None,
            metrics_addr: None,
            jwt,
            engine: chain.clone(),
            dev: dev.clone(),
            ports: Ports::new(),
            faults,
            condition: condition.clone(),
            backfill: backfill.clone(),
            _feeds: (feed_thread, pending_thread),
            _watch: watch,
            _public_calls: PublicCalls::start(dev.is_none())?,
        };
        let calls = node._public_calls.handle();
        let [mut public, authenticated, trusted] = ports.servers(node.jwt.clone(), calls);
        let held = public.memory.get_or_insert_with(|| PortMemory::new(&public.limits)).clone();
        node._watch.spawn(allocator::watch_port(held.clone()));
        if let Some(address) = ports.metrics {
            let held = [("public", Some(held)), ("engine", authenticated.memory.clone())];
            let (engine, backfill) = (chain.clone(), backfill.clone());
            let state = NodeState { engine, pool, data_dir: files, ports: held, backfill };
            let port = MetricsPort::new(metrics.clone(), state);
            let metrics = node.ports.listen_for_scrapes(address, ports.metrics_origins, port);
            node.metrics_addr = Some(metrics.await?);
        }
        let api = offer(Api::engine_port(chain.clone(), testing));
        node.engine_addr = node.ports.listen(ports.engine, authenticated, api).await?;
        let api =
            || offer(Api::public_port_of(chain.clone(), testing)).with_page(options.http_page);
        node.listen_in_public(&public, [ports.http, ports.websocket], api).await?;
        if let Some(path) = ports.ipc {
            let api = offer(Api::local(chain.clone(), testing)).only(ports.ipc_offered);
            node.serve_locally(path, trusted, api)?;
        }
        Ok(node)
    }

    /// The node's engine, for programs that run a node in their own process.
    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The chain for tests, if it is one.
    pub(crate) fn dev_chain(&self) -> Option<&Arc<DevChain>> {
        self.dev.as_ref().map(|dev| &dev.chain)
    }

    /// Waits until the disk is no good any more: a write has failed, or there is too little room.
    /// The node answers with errors then, and is to be [stopped](Self::stop).
    pub async fn disk_fault(&self) -> DiskFault {
        self.faults.next().await
    }

    /// Stops listening, lets running calls finish, and returns when they have.
    pub async fn stop(self) {
        let Self { ports, ipc_path, condition, backfill, .. } = self;
        condition.stop();
        if let Some(source) = condition.head_source() {
            source.stop().await;
        }
        if let Some(backfill) = backfill {
            backfill.stop().await;
        }
        ports.stop(ipc_path.as_deref()).await;
    }

    /// Listens on the public ports that there are to be.
    async fn listen_in_public(
        &mut self,
        options: &ServerOptions,
        ports: [Option<PublicPort>; 2],
        api: impl Fn() -> Api,
    ) -> anyhow::Result<()> {
        let (mut listening, filters) = ([None; 2], Arc::default());
        for (port, listening) in ports.into_iter().zip(&mut listening) {
            let Some(PublicPort { address, offered }) = port else { continue };
            let api = api().with_filters(Arc::clone(&filters)).only(offered);
            *listening = Some(self.ports.listen(address, options.clone(), api).await?);
        }
        self.http_addr = listening[0].unwrap_or(self.http_addr);
        self.websocket_addr = listening[1];
        Ok(())
    }

    /// Serves a Unix socket.
    fn serve_locally(
        &mut self,
        path: PathBuf,
        options: ServerOptions,
        api: Api,
    ) -> anyhow::Result<()> {
        self.ports.serve(bind_socket(&path)?, options, api);
        self.ipc_path = Some(path);
        Ok(())
    }
}

/// Makes the directory of a new chain, and looks whether its disk has room.
fn prepare(path: &Path, is_new: bool, min_free_bytes: u64) -> anyhow::Result<()> {
    if is_new {
        state::create_directory(path)
            .with_context(|| format!("cannot make the directory {}", path.display()))?;
    }
    Ok(check_free(path, min_free_bytes)?)
}

/// Opens the chain in a data directory, or begins it. A large genesis takes seconds.
async fn open_chain(
    genesis: Option<alloy_genesis::Genesis>,
    data_dir: PathBuf,
    (database, options): (DatabaseOptions, EngineOptions),
    dev: Option<DevOptions>,
) -> anyhow::Result<Arc<Engine>> {
    let open = move || {
        if let Some(DevOptions { fork: Some(fork), wallet, balance, .. }) = dev {
            let engine = open_forked(&data_dir, &fork, database, options)?;
            let mut amendments = endowments(wallet.addresses(), balance);
            amendments.extend(missing_contracts(&engine)?);
            engine.amend(engine.heads().head, &amendments)?;
            return Ok(engine);
        }
        open_engine(&data_dir, genesis.as_ref(), database, |database| {
            Retention::of(&options).note(database)?;
            Ok(options)
        })
    };
    Ok(Arc::new(tokio::task::spawn_blocking(open).await??))
}

/// Waits for faults of the disk, and looks at its free space if some is to stay free.
fn watch_disk(engine: &Engine, data_dir: &Path, min_free_bytes: u64) -> (Faults, JoinSet<()>) {
    let faults = Faults::default();
    let failed = faults.clone();
    engine.on_failure(move |error| failed.write_failed(error));
    let mut watch = JoinSet::new();
    if min_free_bytes > 0 {
        watch.spawn(watch_free(data_dir.to_owned(), min_free_bytes, faults.clone()));
    }
    (faults, watch)
}

/// A tracer, whose traces are sent among the other tasks.
fn tracer(options: TraceOptions, tasks: &mut JoinSet<()>) -> Arc<Tracer> {
    let (tracer, sends) = Tracer::new(options);
    tasks.spawn(sends);
    Arc::new(tracer)
}

/// Has gaps of the chain, and the head where that is wanted, come from these execution clients.
fn upstreams(
    engine: &Arc<Engine>,
    addresses: &[String],
    tag: Option<HeadTag>,
    condition: &NodeCondition,
) -> anyhow::Result<Option<Arc<Backfill>>> {
    let backfill = backfill(engine, addresses)?;
    follow_head(engine, addresses, tag, condition)?;
    Ok(backfill)
}

/// Has the head come from the first of these execution clients that answers, if it is to.
fn follow_head(
    engine: &Arc<Engine>,
    addresses: &[String],
    tag: Option<HeadTag>,
    condition: &NodeCondition,
) -> anyhow::Result<()> {
    let Some(tag) = tag else { return Ok(()) };
    anyhow::ensure!(!addresses.is_empty(), "--follow.head {tag}: --follow names no upstream");
    let options = UpstreamOptions { most_pause: HEAD_PAUSE, ..UpstreamOptions::default() };
    // Others than those of gaps, which are left alone for longer.
    let upstream = |address: &String| Upstream::parse(address, options).context("--follow");
    let upstreams: Vec<_> = addresses.iter().map(upstream).collect::<Result<_, _>>()?;
    condition.follow(HeadSource::start(engine.clone(), upstreams, tag));
    Ok(())
}

/// Has gaps of the chain filled from these execution clients, where there are any.
fn backfill(engine: &Arc<Engine>, addresses: &[String]) -> anyhow::Result<Option<Arc<Backfill>>> {
    let upstream =
        |address: &String| Upstream::parse(address, UpstreamOptions::default()).context("--follow");
    let upstreams: Vec<_> = addresses.iter().map(upstream).collect::<Result<_, _>>()?;
    Ok((!upstreams.is_empty()).then(|| Arc::new(Backfill::start(engine.clone(), upstreams))))
}

/// The chain for tests that a node mines.
fn dev_node(
    options: DevOptions,
    engine: &Arc<Engine>,
    pool: &Arc<Pool>,
) -> anyhow::Result<Arc<DevNode>> {
    let chain = DevChain::with_pool(engine.clone(), pool.clone(), options.mining)?;
    chain.name_accounts(options.wallet.addresses());
    chain.name_state(options.names.clone());
    chain.impersonate_all(options.impersonates_all);
    Ok(Arc::new(DevNode::new(chain, options)))
}

/// Those that are told of all events.
fn observers(
    engine: &Arc<Engine>,
    metrics: &Arc<Metrics>,
    condition: &Arc<NodeCondition>,
    slow_block: Option<Duration>,
    pending: &PendingFeed,
) -> anyhow::Result<Vec<Box<dyn Observer>>> {
    let mut all: Vec<Box<dyn Observer>> =
        vec![Box::new(BlockLog::new(engine.clone())?), Box::new(MetricsObserver(metrics.clone()))];
    // A chain for tests has no consensus client, so none is missing.
    if !engine.chain().is_dev() {
        all.push(Box::new(ClientWatch(condition.clone())));
    }
    if let Some(from) = slow_block {
        all.push(Box::new(SlowBlocks { from }));
    }
    all.extend(pool_observers(engine, pending));
    Ok(all)
}

/// Those that tell the pool of new heads, which a chain for tests does itself, and those who wait
/// for transactions of new blocks.
fn pool_observers(engine: &Arc<Engine>, pending: &PendingFeed) -> Vec<Box<dyn Observer>> {
    let (engine, inclusions) = (engine.clone(), pending.inclusions.clone());
    let mut all: Vec<Box<dyn Observer>> =
        vec![Box::new(InclusionWatch { engine: engine.clone(), inclusions })];
    if !engine.chain().is_dev() {
        all.push(Box::new(PoolFeed::new(engine, pending.pool().clone())));
    }
    all
}

/// The threads that serve the public port and run its calls, below blocks in priority. The other
/// ports, among them those that bring blocks, have the threads of the runtime that starts the node:
/// a thread cannot raise its priority again.
#[derive(Debug)]
struct PublicCalls(Option<Runtime>);

impl PublicCalls {
    /// With a low priority, or, where nothing but these calls makes blocks, the usual one.
    fn start(low_priority: bool) -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .enable_all()
            // Blocking threads come as calls do.
            .max_blocking_threads(limits::PUBLIC_THREADS)
            .thread_name("public")
            .thread_keep_alive(limits::THREAD_KEPT)
            .on_thread_start(move || {
                if low_priority {
                    lower_priority();
                }
            })
            .build()?;
        Ok(Self(Some(runtime)))
    }

    fn handle(&self) -> Handle {
        self.0.as_ref().expect("it is there until it is dropped").handle().clone()
    }
}

impl Drop for PublicCalls {
    fn drop(&mut self) {
        // Without waiting for calls: that may be where waiting is not allowed.
        self.0.take().expect("dropped once").shutdown_background();
    }
}
