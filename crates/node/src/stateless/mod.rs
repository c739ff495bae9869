//! A node without a state: the Engine API in front of [`execution::verify`], with witnesses from
//! elsewhere as the only state. `docs/stateless-node.md` is for its operators.

mod chain;
mod codes;
mod counts;
mod fetch;
mod port;
mod scrape;
mod source;
mod work;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alloy_consensus::Header;
use alloy_primitives::B256;
use engine::Genesis;
use execution::{ChainSpec, SealedBlock};
use rpc::{JwtSecret, PortMemory};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::metrics::{Metrics, MetricsPort};

use crate::observe::{ClientWatch, NodeCondition, Observer};
use crate::ports::{Ports, bind_socket};
use crate::ports_options::{PortsOptions, PublicPort};

use chain::Chain;
use port::StatelessApi;
pub use source::WitnessSource;
use work::Stateless;

/// The configuration of a [`StatelessNode`].
#[derive(Debug, Clone)]
pub struct StatelessOptions {
    /// The rules of the chain.
    pub chain: ChainSpec,
    /// The header of the chain's first block, where its genesis file was given.
    pub genesis: Option<Header>,
    /// Where witnesses come from, and blocks that the consensus client does not send.
    pub witnesses: Vec<WitnessSource>,
    /// The block that is trusted; `None` takes it from the first fork choice.
    pub anchor: Option<B256>,
    /// Its ports, and its Unix socket.
    pub ports: PortsOptions,
    /// The secret of the Engine API's port.
    pub jwt: JwtSecret,
}

impl StatelessOptions {
    /// A node of this chain on free ports of 127.0.0.1.
    pub fn new(chain: ChainSpec, witnesses: Vec<WitnessSource>, jwt: JwtSecret) -> Self {
        Self { chain, genesis: None, witnesses, anchor: None, ports: PortsOptions::default(), jwt }
    }

    /// The rules of a genesis file, and the header of its first block.
    ///
    /// # Errors
    /// If the rules cannot be run.
    pub fn of_genesis(genesis: &alloy_genesis::Genesis) -> anyhow::Result<(ChainSpec, Header)> {
        let chain = ChainSpec::from_config(&genesis.config)?;
        let first = Genesis::new(genesis, &chain)?;
        Ok((chain, first.header))
    }
}

/// A running node without a state. Dropping it stops it without waiting for running calls.
#[derive(Debug)]
pub struct StatelessNode {
    /// The address on which the Engine API listens.
    pub engine_addr: SocketAddr,
    /// The address of the public port, if there is one.
    pub http_addr: Option<SocketAddr>,
    /// The address of the port of its own for WebSockets, if there is one.
    pub websocket_addr: Option<SocketAddr>,
    /// The path of the Unix socket, if there is one.
    pub ipc_path: Option<PathBuf>,
    /// The address of the port of metrics, if there is one.
    pub metrics_addr: Option<SocketAddr>,
    work: Work,
    condition: Arc<NodeCondition>,
    ports: Ports,
    _watch: JoinSet<()>,
}

impl StatelessNode {
    /// Starts a node. It needs a tokio runtime with time and I/O.
    ///
    /// # Errors
    /// If an address is taken, or the system has no threads.
    pub async fn start(options: StatelessOptions) -> anyhow::Result<Self> {
        let StatelessOptions { chain, witnesses, jwt, ports, .. } = options;
        let genesis = options.genesis.map(SealedBlock::first);
        let blocks = Chain::new(witnesses.len(), genesis, options.anchor);
        let metrics = Arc::<Metrics>::default();
        let shared = Stateless::start(chain, witnesses, blocks, metrics.clone())?;
        let condition = Arc::new(NodeCondition::new(PathBuf::new()));
        let mut node = Self {
            engine_addr: ports.engine,
            http_addr: None,
            websocket_addr: None,
            ipc_path: None,
            metrics_addr: None,
            work: Work(shared.clone()),
            condition: condition.clone(),
            ports: Ports::new(),
            _watch: JoinSet::new(),
        };
        node._watch.spawn(watch_client(ClientWatch(condition.clone())));
        let calls = Handle::current();
        let [mut public, authenticated, trusted] = ports.servers(jwt, calls);
        public.memory = Some(PortMemory::new(&public.limits));
        let api = |is_engine| {
            StatelessApi::new(shared.clone(), condition.clone(), metrics.clone(), is_engine)
        };
        if let Some(address) = ports.metrics {
            let port = MetricsPort::of(metrics.clone(), scrape::registry(&shared));
            let listening = node.ports.listen_for_scrapes(address, ports.metrics_origins, port);
            node.metrics_addr = Some(listening.await?);
        }
        node.engine_addr = node.ports.listen(ports.engine, authenticated, api(true)).await?;
        if let Some(PublicPort { address, offered }) = ports.http {
            let api = api(false).only(&offered);
            node.http_addr = Some(node.ports.listen(address, public.clone(), api).await?);
        }
        if let Some(PublicPort { address, offered }) = ports.websocket {
            let api = api(false).only(&offered);
            node.websocket_addr = Some(node.ports.listen(address, public, api).await?);
        }
        if let Some(path) = ports.ipc {
            let api = api(true).local().only(&ports.ipc_offered);
            node.ports.serve(bind_socket(&path)?, trusted, api);
            node.ipc_path = Some(path);
        }
        Ok(node)
    }

    /// The id of its chain.
    pub fn chain_id(&self) -> u64 {
        self.work.0.spec.chain_id()
    }

    /// The names of its sources, without secrets.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.work.0.sources.iter().map(|source| &*source.name)
    }

    /// Stops listening, lets running calls finish, and returns when they have.
    pub async fn stop(self) {
        let Self { work, condition, ports, ipc_path, .. } = self;
        condition.stop();
        drop(work);
        ports.stop(ipc_path.as_deref()).await;
    }
}

/// The threads, which end when it is dropped.
#[derive(Debug)]
struct Work(Arc<Stateless>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Says in the log that no consensus client calls.
async fn watch_client(mut watch: ClientWatch) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        watch.second();
    }
}
