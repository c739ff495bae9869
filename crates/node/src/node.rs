use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use engine::{Engine, Genesis};
use execution::ChainSpec;
use rpc::{JwtSecret, Limits, ServerOptions, serve};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Api;

/// What a node needs to start.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// The chain's rules and its first block.
    pub genesis: alloy_genesis::Genesis,
    /// Where the node keeps its files; made when absent.
    pub data_dir: PathBuf,
    /// The public port. Port 0 is any free one.
    pub http: SocketAddr,
    /// The port of the Engine API. Port 0 is any free one.
    pub engine: SocketAddr,
    /// The file of the Engine API's secret; `jwt.hex` in the data directory when `None`, made
    /// when absent.
    pub jwt_file: Option<PathBuf>,
    /// Whether the engine port offers `testing_buildBlockV1`.
    pub testing: bool,
}

/// A running node. Dropping it stops it too, without waiting.
#[derive(Debug)]
pub struct Node {
    /// Where the Engine API listens.
    pub engine_addr: SocketAddr,
    /// Where the public port listens.
    pub http_addr: SocketAddr,
    /// The secret of the engine port.
    pub jwt: JwtSecret,
    engine: Arc<Engine>,
    /// Closed to stop the ports.
    stop: watch::Sender<()>,
    ports: JoinSet<()>,
}

impl Node {
    /// Starts a node on its genesis: the chain lives in memory. It needs a tokio runtime with
    /// time and I/O.
    pub async fn start(options: NodeOptions) -> anyhow::Result<Self> {
        let NodeOptions { genesis, data_dir, http, engine, jwt_file, testing } = options;
        std::fs::create_dir_all(&data_dir)
            .with_context(|| format!("cannot make the directory {}", data_dir.display()))?;
        let jwt = match &jwt_file {
            Some(file) => JwtSecret::load(file)?,
            None => JwtSecret::load_or_create(&data_dir.join("jwt.hex"))?,
        };
        // A large genesis takes seconds.
        let chain = tokio::task::spawn_blocking(move || start_engine(&genesis)).await??;
        let chain = Arc::new(chain);
        let mut node = Self {
            engine_addr: engine,
            http_addr: http,
            jwt,
            engine: chain.clone(),
            stop: watch::Sender::new(()),
            ports: JoinSet::new(),
        };
        let jwt = Some(node.jwt.clone());
        let authenticated = ServerOptions { jwt, limits: Limits::engine() };
        let public = ServerOptions { jwt: None, limits: Limits::public() };
        let api = Api::engine_port(chain.clone(), testing);
        node.engine_addr = node.listen(engine, authenticated, api).await?;
        node.http_addr = node.listen(http, public, Api::public_port(chain)).await?;
        Ok(node)
    }

    /// The chain, for those who run a node in their own process.
    pub const fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Stops listening, lets running calls finish, and returns when they have.
    pub async fn stop(self) {
        let Self { stop, mut ports, .. } = self;
        drop(stop);
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
        let mut stopped = self.stop.subscribe();
        self.ports.spawn(async move {
            let stopped = async { while stopped.changed().await.is_ok() {} };
            serve(listener, options, Arc::new(api), stopped).await;
        });
        Ok(address)
    }
}

fn start_engine(genesis: &alloy_genesis::Genesis) -> anyhow::Result<Engine> {
    let chain = ChainSpec::from_config(&genesis.config)?;
    let genesis = Genesis::new(genesis, &chain)?;
    Ok(Engine::new(chain, genesis)?)
}
