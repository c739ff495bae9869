//! The flags of `deponent node`. The names are those of geth and reth.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use alloy_primitives::Bytes;
use clap::{ArgAction, Args};
use engine::EngineOptions;
use follow::{HeadTag, Upstream, UpstreamOptions};
use rpc::AllowedOrigins;

use super::rpc_args::{RpcArgs, parse_method};
use super::stateless_args::StatelessArgs;
use super::storage::{StorageArgs, with_default};
use super::txpool_args::TxpoolArgs;
use crate::api::{MethodPattern, Offered};
use crate::data_directory::Retention;
use crate::flags::values::{
    LOCALHOST, Threshold, count, parse_bytes, parse_duration, parse_extra_data, parse_host,
    parse_ip, parse_page, parse_port, parse_threads, positive, shown_bytes,
};
use crate::memory::DEFAULT_MEMORY;
use crate::traces::TraceOptions;
use crate::{NodeMemory, PortsOptions, PublicPort, limits};

/// The arguments of `deponent node`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Chain and files")]
pub(crate) struct NodeArgs {
    /// Read flags from a TOML file, whose keys are their names, as "http.port" = 8545. The command
    /// line wins. `deponent config` prints all keys.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The chain's rules and first block, a genesis.json in geth's form. Not needed once the data
    /// directory holds a chain.
    #[arg(long, value_name = "FILE")]
    pub(super) chain: Option<PathBuf>,
    /// The data directory: chain, state, witnesses and secret. It is created if absent.
    #[arg(long, value_name = "DIR")]
    pub(super) datadir: Option<PathBuf>,
    /// Stop when the disk of the data directory has fewer free bytes, with exit status 74. Warn
    /// below twice as many. 0 never stops.
    #[arg(long = "datadir.min-free", value_name = "BYTES", value_parser = parse_bytes,
          default_value = "2GiB")]
    pub(super) min_free_bytes: u64,
    /// Sync the journal before each VALID and each fork choice is answered, so that they outlast a
    /// power cut too. Without it they outlast the process, however it ends. It takes as long as the
    /// disk takes for a sync.
    #[arg(long = "journal.sync")]
    pub(super) journal_sync: bool,
    #[command(flatten)]
    pub(super) public: PublicArgs,
    #[command(flatten)]
    pub(super) authrpc: AuthrpcArgs,
    #[command(flatten)]
    pub(super) follow: FollowArgs,
    #[command(flatten)]
    pub(super) rpc: RpcArgs,
    #[command(flatten)]
    pub(super) storage: StorageArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    pub(super) txpool: TxpoolArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    builder: BuilderArgs,
    #[command(flatten)]
    pub(super) metrics: MetricsArgs,
    #[command(flatten)]
    pub(super) stateless: StatelessArgs,
    #[command(flatten)]
    pub(super) debug: DebugArgs,
    #[command(flatten)]
    pub(super) network: NetworkArgs,
}

/// Metrics and traces.
#[derive(Debug, Args)]
#[command(next_help_heading = "Metrics and traces")]
pub(super) struct MetricsArgs {
    /// Offer metrics for Prometheus, at /metrics and /debug/metrics/prometheus of a port of their
    /// own.
    #[arg(long)]
    metrics: bool,
    /// The IP address on which the port of metrics listens.
    #[arg(long = "metrics.addr", value_name = "IP", value_parser = parse_ip,
          default_value_t = LOCALHOST)]
    metrics_addr: IpAddr,
    /// The port of metrics; 0 takes any free one.
    #[arg(long = "metrics.port", value_name = "PORT", value_parser = parse_port,
          default_value_t = 6060)]
    metrics_port: u16,
    /// Host names under which the port of metrics may be called, between commas, besides IP
    /// addresses; * for any name.
    #[arg(
        long = "metrics.vhosts",
        value_name = "NAMES",
        value_parser = parse_host,
        value_delimiter = ',',
        default_value = "localhost"
    )]
    pub(super) metrics_vhosts: Vec<String>,
    /// Send traces of the Engine API to a collector of OpenTelemetry, over HTTP in JSON, as
    /// http://127.0.0.1:4318 [default: the variable OTEL_EXPORTER_OTLP_ENDPOINT, else none].
    #[arg(long = "otlp.endpoint", alias = "tracing-otlp", value_name = "URL",
          value_parser = parse_endpoint)]
    otlp_endpoint: Option<String>,
    /// The name of this node in traces [default: the variable OTEL_SERVICE_NAME, else deponent].
    #[arg(long = "otlp.service-name", value_name = "NAME")]
    otlp_service_name: Option<String>,
}

impl MetricsArgs {
    /// Where metrics are offered, if they are to be.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.metrics.then(|| SocketAddr::new(self.metrics_addr, self.metrics_port))
    }

    /// Where traces go, if anywhere. The variable of the environment may be meant for other
    /// programs: one that cannot be used is a warning.
    ///
    /// # Errors
    /// If the endpoint of the flag is not an HTTP URL.
    pub(super) fn traces(&self) -> Result<Option<TraceOptions>, String> {
        let service = self.otlp_service_name.clone().or_else(|| variable(SERVICE_VARIABLE));
        let service = service.unwrap_or_else(|| "deponent".into());
        if let Some(endpoint) = &self.otlp_endpoint {
            return TraceOptions::new(endpoint, service).map(Some);
        }
        let Some(endpoint) = variable(ENDPOINT_VARIABLE) else { return Ok(None) };
        Ok(TraceOptions::new(&endpoint, service)
            .inspect_err(|reason| {
                tracing::warn!(reason, "no traces are sent: {ENDPOINT_VARIABLE}");
            })
            .ok())
    }
}

/// The variables of the environment that stand in for flags, as OpenTelemetry names them.
const ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const SERVICE_VARIABLE: &str = "OTEL_SERVICE_NAME";

/// The URL of a collector.
fn parse_endpoint(text: &str) -> Result<String, String> {
    TraceOptions::new(text, String::new()).map(|_| text.to_owned())
}

/// A variable of the environment that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The public port, and WebSockets.
#[derive(Debug, Args)]
#[command(next_help_heading = "Public port (HTTP and WebSocket)")]
pub(super) struct PublicArgs {
    /// Listen on the public JSON-RPC port; --http=false does not.
    #[arg(long = "http", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value_t = true, default_missing_value = "true", action = ArgAction::Set,
          hide_possible_values = true)]
    pub(super) http: bool,
    /// The IP address on which the public JSON-RPC port listens.
    #[arg(long = "http.addr", value_name = "IP", value_parser = parse_ip,
          default_value_t = LOCALHOST)]
    pub(super) http_addr: IpAddr,
    /// The public JSON-RPC port; 0 takes any free one.
    #[arg(long = "http.port", value_name = "PORT", value_parser = parse_port,
          default_value_t = 8545)]
    pub(super) http_port: u16,
    /// The namespaces of methods that the public port offers, between commas [default: all that it
    /// has].
    #[arg(long = "http.api", value_name = "NAMES", value_delimiter = ',',
          value_parser = NAMESPACES, hide_possible_values = true)]
    http_api: Vec<String>,
    /// The methods that the public port offers of these, between commas: eth_call, eth_* for all
    /// that begin so, !eth_getLogs or !eth_get* to take away [default: all].
    #[arg(long = "http.methods", value_name = "METHODS", value_delimiter = ',',
          value_parser = parse_method)]
    http_methods: Vec<MethodPattern>,
    /// Show browsers a page at GET /, with the heads, the newest blocks and what is in their
    /// witnesses; --http.page=false does not.
    #[arg(long = "http.page", value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value_t = true, default_missing_value = "true", action = ArgAction::Set,
          hide_possible_values = true)]
    pub(super) http_page: bool,
    /// Host names under which the public port may be called, between commas, besides IP addresses;
    /// * for any name.
    #[arg(
        long = "http.vhosts",
        value_name = "NAMES",
        value_parser = parse_host,
        value_delimiter = ',',
        default_value = "localhost"
    )]
    pub(super) http_vhosts: Vec<String>,
    /// Web pages that may call the public port (CORS), between commas: https://NAME, NAME:PORT or
    /// NAME; * for any page [default: none].
    #[arg(long = "http.corsdomain", value_name = "PAGES", value_delimiter = ',',
          value_parser = parse_page)]
    pub(super) http_corsdomain: Vec<String>,
    /// Never compress answers, on any port. Otherwise clients that accept zstd get it.
    #[arg(long = "zstddisable")]
    pub(super) zstd_disable: bool,
    /// Offer WebSockets where --ws.port says. The public port offers them in any case: the flag is
    /// accepted for scripts.
    #[arg(long = "ws")]
    pub(super) ws: bool,
    /// The IP address of a port of its own for WebSockets [default: that of --http.addr].
    #[arg(long = "ws.addr", value_name = "IP", value_parser = parse_ip)]
    pub(super) ws_addr: Option<IpAddr>,
    /// The port for WebSockets: one of its own if it is not that of --http.port [default: that of
    /// --http.port].
    #[arg(long = "ws.port", value_name = "PORT", value_parser = parse_port)]
    pub(super) ws_port: Option<u16>,
    /// The namespaces that a port of its own for WebSockets offers [default: those of --http.api].
    #[arg(long = "ws.api", value_name = "NAMES", value_delimiter = ',',
          value_parser = NAMESPACES, hide_possible_values = true)]
    ws_api: Vec<String>,
    /// The methods that a port of its own for WebSockets offers, in the same forms [default: those
    /// of --http.methods].
    #[arg(long = "ws.methods", value_name = "METHODS", value_delimiter = ',',
          value_parser = parse_method)]
    ws_methods: Vec<MethodPattern>,
    /// Web pages that may open a WebSocket, in the same forms [default: none].
    #[arg(long = "ws.origins", value_name = "PAGES", value_delimiter = ',',
          value_parser = parse_page)]
    pub(super) ws_origins: Vec<String>,
}

/// The namespaces that scripts name, also those of which no method is offered here.
const NAMESPACES: [&str; 18] = [
    "admin",
    "clique",
    "debug",
    "deponent",
    "engine",
    "eth",
    "flashbots",
    "les",
    "miner",
    "net",
    "ots",
    "personal",
    "reth",
    "rpc",
    "testing",
    "trace",
    "txpool",
    "web3",
];

/// The Engine API's port, and the Unix socket.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine API and Unix socket")]
pub(super) struct AuthrpcArgs {
    /// The IP address on which the Engine API's port listens.
    #[arg(long = "authrpc.addr", value_name = "IP", value_parser = parse_ip,
          default_value_t = LOCALHOST)]
    pub(super) authrpc_addr: IpAddr,
    /// The Engine API's port; 0 takes any free one.
    #[arg(long = "authrpc.port", value_name = "PORT", value_parser = parse_port,
          default_value_t = 8551)]
    pub(super) authrpc_port: u16,
    /// Host names under which the Engine API's port may be called, between commas, besides IP
    /// addresses; * for any name.
    #[arg(
        long = "authrpc.vhosts",
        value_name = "NAMES",
        value_parser = parse_host,
        value_delimiter = ',',
        default_value = "*"
    )]
    pub(super) authrpc_vhosts: Vec<String>,
    /// The file with the secret shared with the consensus client, 32 bytes in hex [default: jwt.hex
    /// in the data directory, created if absent].
    #[arg(long = "authrpc.jwtsecret", value_name = "FILE")]
    pub(super) authrpc_jwtsecret: Option<PathBuf>,
    /// Offer testing_buildBlockV1 on the Engine API's port, and debug_setHead on the public port.
    /// Not for public networks.
    #[arg(long)]
    pub(super) testing: bool,
    /// The Unix socket that offers all methods of both ports, without tokens, to the user who runs
    /// the node [default: deponent.ipc in the data directory].
    #[arg(long = "ipcpath", value_name = "FILE")]
    pub(super) ipc_path: Option<PathBuf>,
    /// Do not listen on a Unix socket.
    #[arg(long = "ipcdisable", conflicts_with = "ipc_path")]
    pub(super) ipc_disable: bool,
    /// The methods that the Unix socket offers, in the forms of --http.methods [default: all].
    #[arg(long = "ipc.methods", value_name = "METHODS", value_delimiter = ',',
          value_parser = parse_method)]
    ipc_methods: Vec<MethodPattern>,
}

/// Other execution clients, which are asked for blocks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Blocks that are missing")]
pub(super) struct FollowArgs {
    /// Execution clients that are asked for blocks that are missing, between commas: http(s):// and
    /// ws(s):// URLs, HOST:PORT, or the paths of their Unix sockets (IPC). Each block is asked for
    /// by hash and checked, so none of them is trusted [default: none].
    #[arg(long = "follow", value_name = "URLS", value_delimiter = ',',
          value_parser = parse_upstream)]
    pub(super) upstreams: Vec<String>,
    /// Take the head from the first client of --follow that answers, and from no consensus client:
    /// its latest, safe or finalized block. That client is trusted: blocks are validated, but which
    /// branch counts is its word. The Engine API takes no payloads and no fork choices then
    /// [default: none].
    #[arg(long = "follow.head", value_name = "TAG")]
    pub(super) head: Option<HeadTag>,
}

/// The address of an execution client.
pub(super) fn parse_upstream(text: &str) -> Result<String, String> {
    let parsed = Upstream::parse(text.trim(), UpstreamOptions::default());
    let expected = "expected http(s):// or ws(s)://, HOST:PORT, or the path of a Unix socket";
    parsed.map(|_| text.trim().to_owned()).map_err(|error| format!("{expected}: {error}"))
}

/// Memory of ports and caches together, and of each port.
#[derive(Debug, Args)]
#[command(next_help_heading = "Memory and storage")]
struct MemoryArgs {
    #[arg(long = "cache.witness-bytes", value_name = "BYTES", value_parser = parse_bytes,
          help = with_default("Memory for the witnesses of the newest blocks; 0 caches none",
                              DEFAULT_MEMORY.witnesses))]
    witness_cache_bytes: Option<u64>,
    #[arg(long = "engine.unpersisted-bytes", value_name = "BYTES", value_parser = parse_bytes,
          help = with_default("The most bytes that may wait to be persisted. Beyond them \
                               newPayload waits for the disk; forkchoiceUpdated never does",
                              DEFAULT_MEMORY.unpersisted))]
    unpersisted_bytes: Option<u64>,
    /// Memory of the node, as 16GiB, from which all ports and caches have their parts that are not
    /// given: as much of it as they have of 8GiB by default [default: what they have themselves].
    #[arg(long = "memory", value_name = "BYTES", value_parser = parse_node_bytes)]
    total_memory: Option<u64>,
    #[arg(long = "http.memory", value_name = "BYTES", value_parser = parse_port_bytes,
          help = with_default("Memory of all requests, answers and connections of the public \
                               port, without calls that run", DEFAULT_MEMORY.http))]
    http_memory: Option<u64>,
    #[arg(long = "authrpc.memory", value_name = "BYTES", value_parser = parse_port_bytes,
          help = with_default("The same of the Engine API's port and the Unix socket together",
                              DEFAULT_MEMORY.authrpc))]
    authrpc_memory: Option<u64>,
    /// Print the bounds of all memory that ports and caches may take with these options, and their
    /// sum, and exit.
    #[arg(long = "print-limits")]
    print_limits: bool,
}

/// How blocks run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Block execution")]
struct EngineArgs {
    /// The number of blocks that may wait in memory before they are persisted.
    #[arg(long = "engine.persistence-threshold", value_name = "BLOCKS",
          value_parser = count::<usize>,
          default_value_t = EngineOptions::default().persistence_threshold)]
    persistence_threshold: usize,
    /// The number of trie keys handed to a worker thread at a time.
    #[arg(long = "engine.multiproof-chunk-size", value_name = "KEYS", value_parser = positive,
          default_value_t = EngineOptions::default().multiproof_chunk_size)]
    multiproof_chunk_size: usize,
    /// The number of threads that run transactions speculatively in blocks without an access list
    /// [default: half of the cores but one, 7 at most, 0 on fewer than 4].
    #[arg(long = "engine.ahead-threads", value_name = "THREADS", value_parser = parse_threads,
          default_value_t = EngineOptions::default().ahead_threads, hide_default_value = true)]
    ahead_threads: usize,
    /// The number of threads that load and update tries while a block runs [default: the cores
    /// beside the others].
    #[arg(long = "engine.trie-workers", value_name = "THREADS", value_parser = parse_threads)]
    trie_workers: Option<usize>,
}

/// The blocks that the node builds.
#[derive(Debug, Args)]
#[command(next_help_heading = "Block building")]
struct BuilderArgs {
    /// The gas limit towards which built blocks move, by less than 1/1024 each, where the consensus
    /// client names none.
    #[arg(long = "builder.gas-limit", value_name = "GAS", value_parser = count::<u64>,
          default_value_t = limits::BUILDER_GAS_LIMIT)]
    gas_limit: u64,
    /// The extra data of built blocks: text, or bytes in hex from 0x on. 32 bytes at most.
    #[arg(long = "builder.extra-data", value_name = "DATA", value_parser = parse_extra_data,
          default_value = "deponent")]
    extra_data: Bytes,
    /// The most blobs in a built block, where the fork allows more [default: the fork's limit].
    #[arg(long = "builder.max-blobs", value_name = "BLOBS", value_parser = count::<u64>)]
    max_blobs: Option<u64>,
}

/// More lines of the log.
#[derive(Debug, Args)]
#[command(next_help_heading = "Debugging")]
pub(super) struct DebugArgs {
    /// Log a line of JSON with the figures of each block that takes this long or longer, as geth
    /// does, in the form of execution-specs' execution metrics: 500ms, 2s, 0 for every block, -1s
    /// for none.
    #[arg(long = "debug.logslowblock", value_name = "DURATION", value_parser = parse_duration,
          default_value = "-1s", allow_hyphen_values = true)]
    pub(super) slow_block: Threshold,
}

/// Flags of other clients for peer-to-peer networking, of which this one has none.
#[derive(Debug, Args)]
#[command(next_help_heading = "Peer-to-peer network (there is none: accepted with a warning)")]
pub(super) struct NetworkArgs {
    /// No effect: there are no peers. The consensus client brings the blocks.
    #[arg(long, value_name = "ENODES")]
    bootnodes: Option<String>,
    /// No effect: there is no port for peers.
    #[arg(long, value_name = "PORT")]
    port: Option<String>,
    /// No effect: there is no port for peers.
    #[arg(long, value_name = "METHOD")]
    nat: Option<String>,
    /// No effect: there is no port for peers.
    #[arg(long = "nat.extip", value_name = "IP")]
    nat_extip: Option<String>,
    /// No effect: blocks come from the consensus client, or from files with deponent import.
    #[arg(long, value_name = "MODE")]
    syncmode: Option<String>,
    /// No effect: peers are never looked for.
    #[arg(long)]
    nodiscover: bool,
    /// No effect: there is no port for peers.
    #[arg(long = "p2p.addr", value_name = "IP")]
    p2p_addr: Option<String>,
    /// No effect: there is no port for peers.
    #[arg(long = "p2p.port", value_name = "PORT")]
    p2p_port: Option<String>,
    /// No effect: peers are never looked for.
    #[arg(long = "discovery.port", value_name = "PORT")]
    discovery_port: Option<String>,
    /// No effect: there are no peers.
    #[arg(long, value_name = "NUMBER")]
    maxpeers: Option<String>,
    /// No effect: the genesis file has the chain's identifier.
    #[arg(long, value_name = "ID")]
    networkid: Option<String>,
    /// No effect: the name would be shown to peers.
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
}

impl NetworkArgs {
    /// The flags that are given, and do nothing.
    pub(super) fn given(&self) -> Vec<&'static str> {
        let Self { bootnodes, port, nat, nat_extip, syncmode, nodiscover, .. } = self;
        let Self { p2p_addr, p2p_port, discovery_port, maxpeers, networkid, identity, .. } = self;
        let flags = [
            ("--bootnodes", bootnodes.is_some()),
            ("--port", port.is_some()),
            ("--nat", nat.is_some()),
            ("--nat.extip", nat_extip.is_some()),
            ("--syncmode", syncmode.is_some()),
            ("--nodiscover", *nodiscover),
            ("--p2p.addr", p2p_addr.is_some()),
            ("--p2p.port", p2p_port.is_some()),
            ("--discovery.port", discovery_port.is_some()),
            ("--maxpeers", maxpeers.is_some()),
            ("--networkid", networkid.is_some()),
            ("--identity", identity.is_some()),
        ];
        flags.into_iter().filter_map(|(flag, is_given)| is_given.then_some(flag)).collect()
    }
}

/// Parses the memory of a port.
fn parse_port_bytes(text: &str) -> Result<u64, String> {
    at_least(limits::LEAST_PORT_BYTES, "a port", parse_bytes(text)?)
}

/// Parses the memory of a node.
fn parse_node_bytes(text: &str) -> Result<u64, String> {
    at_least(limits::LEAST_NODE_BYTES, "a node", parse_bytes(text)?)
}

fn at_least(least: u64, what: &str, bytes: u64) -> Result<u64, String> {
    match bytes >= least {
        true => Ok(bytes),
        false => Err(format!("{what} needs {} at least", shown_bytes(least))),
    }
}

impl NodeArgs {
    /// Checks the flags that clap cannot.
    ///
    /// # Errors
    /// Says which flag is missing, or does not go with which other.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_stateless()?;
        let needs_files = !self.stateless.stateless && !self.memory.print_limits;
        if self.datadir.is_none() && needs_files {
            return Err("name the data directory: --datadir DIR".into());
        }
        if let Some(tag) = self.follow.head.filter(|_| self.follow.upstreams.is_empty()) {
            let what = "takes the head from an execution client: name it with --follow URL";
            return Err(format!("--follow.head {tag} {what}"));
        }
        let (named, most) = (self.follow.upstreams.len(), follow::limits::UPSTREAMS);
        if named > most {
            return Err(format!("{named} execution clients are to be followed, {most} at most"));
        }
        self.metrics.traces()?;
        self.public.websocket().map(drop)
    }

    /// Whether the bounds are to be printed, and no node is to run.
    pub(super) fn prints_limits(&self) -> bool {
        self.memory.print_limits
    }

    /// The options that were given, and else the parts of `--memory`.
    pub(super) fn memory(&self) -> NodeMemory {
        let all = self.memory.total_memory.map_or_else(NodeMemory::default, NodeMemory::of);
        NodeMemory {
            http: self.memory.http_memory.unwrap_or(all.http),
            authrpc: self.memory.authrpc_memory.unwrap_or(all.authrpc),
            pages: self.storage.cache_bytes.unwrap_or(all.pages),
            codes: self.storage.code_cache_bytes.unwrap_or(all.codes),
            witnesses: self.memory.witness_cache_bytes.unwrap_or(all.witnesses),
            unpersisted: self.memory.unpersisted_bytes.unwrap_or(all.unpersisted),
            txpool: self.txpool.memory_bytes.unwrap_or(all.txpool),
            blobs: self.txpool.blob_bytes.unwrap_or(all.blobs),
        }
    }

    /// The memory of the ports of a node without a state.
    pub(super) fn port_memory(&self) -> NodeMemory {
        let default = limits::STATELESS_PORT_BYTES;
        NodeMemory {
            http: self.memory.http_memory.unwrap_or(default),
            authrpc: self.memory.authrpc_memory.unwrap_or(default),
            ..self.memory()
        }
    }

    /// The ports that the flags name. `ipc` is the path of the Unix socket where none names one.
    ///
    /// # Errors
    /// Says which flags do not go together.
    pub(super) fn ports(
        &self,
        memory: NodeMemory,
        ipc: Option<PathBuf>,
    ) -> Result<PortsOptions, String> {
        let (public, authrpc) = (&self.public, &self.authrpc);
        let origins = |hosts: &[String]| AllowedOrigins {
            hosts: hosts.to_vec(),
            ..AllowedOrigins::default()
        };
        let http = SocketAddr::new(public.http_addr, public.http_port);
        let http = PublicPort { address: http, offered: public.http_offered() };
        let offered = public.websocket_offered();
        Ok(PortsOptions {
            http: public.http.then_some(http),
            websocket: public.websocket()?.map(|address| PublicPort { address, offered }),
            engine: SocketAddr::new(authrpc.authrpc_addr, authrpc.authrpc_port),
            ipc: authrpc.ipc_path.clone().or(ipc).filter(|_| !authrpc.ipc_disable),
            ipc_offered: authrpc.ipc_offered(),
            http_origins: AllowedOrigins {
                hosts: public.http_vhosts.clone(),
                http: public.http_corsdomain.clone(),
                websocket: public.ws_origins.clone(),
            },
            engine_origins: origins(&authrpc.authrpc_vhosts),
            zstd: !public.zstd_disable,
            batches: self.rpc.batches(),
            memory,
            metrics: self.metrics.address(),
            metrics_origins: origins(&self.metrics.metrics_vhosts),
        })
    }

    pub(super) fn engine_options(&self, memory: NodeMemory) -> EngineOptions {
        let EngineArgs { persistence_threshold, multiproof_chunk_size, .. } = self.engine;
        EngineOptions {
            persistence_threshold,
            unpersisted_bytes: memory.unpersisted,
            multiproof_chunk_size,
            ahead_threads: self.engine.ahead_threads,
            trie_workers: self.engine.trie_workers,
            read_ahead_bytes: memory.pages,
            witness_cache_bytes: memory.witnesses as usize,
            target_gas_limit: Some(self.builder.gas_limit),
            extra_data: self.builder.extra_data.clone(),
            max_blobs: self.builder.max_blobs,
            ..self.storage.engine(Retention::default())
        }
    }

    /// The flags whose defaults depend on others, with the values that hold if they are not given.
    pub(crate) fn computed(&self) -> HashMap<&'static str, String> {
        let memory = self.memory();
        let kept = Retention::default();
        let mut computed = HashMap::from([
            ("http.memory", shown_bytes(memory.http)),
            ("authrpc.memory", shown_bytes(memory.authrpc)),
            ("cache.bytes", shown_bytes(memory.pages)),
            ("cache.code-bytes", shown_bytes(memory.codes)),
            ("cache.witness-bytes", shown_bytes(memory.witnesses)),
            ("engine.unpersisted-bytes", shown_bytes(memory.unpersisted)),
            ("txpool.memory", shown_bytes(memory.txpool)),
            ("blobpool.datacap", shown_bytes(memory.blobs)),
            ("history.retain-blocks", kept.history.to_string()),
            ("witness.retain-blocks", kept.witness_blocks.to_string()),
            ("witness.retain-bytes", shown_bytes(kept.witness_bytes)),
            ("ws.addr", self.public.http_addr.to_string()),
            ("ws.port", self.public.http_port.to_string()),
        ]);
        if let Some(directory) = &self.datadir {
            let file = |name| directory.join(name).display().to_string();
            computed.insert("ipcpath", file("deponent.ipc"));
        }
        computed
    }
}

/// The flags whose place a variable of the environment takes where they are not given, with its
/// name and its value.
pub(crate) fn flags_by_variable() -> Vec<(&'static str, &'static str, String)> {
    let all = [("otlp.endpoint", ENDPOINT_VARIABLE), ("otlp.service-name", SERVICE_VARIABLE)];
    all.into_iter().filter_map(|(flag, name)| Some((flag, name, variable(name)?))).collect()
}

impl PublicArgs {
    /// The address of a port of its own for WebSockets, if there is to be one.
    ///
    /// # Errors
    /// If it would need another port than it has.
    pub(super) fn websocket(&self) -> Result<Option<SocketAddr>, String> {
        let port = self.ws_port.unwrap_or(self.http_port);
        let address = self.ws_addr.unwrap_or(self.http_addr);
        if port != self.http_port || !self.http {
            let is_wanted = self.ws || self.ws_port.is_some();
            return Ok(is_wanted.then_some(SocketAddr::new(address, port)));
        }
        if address != self.http_addr {
            return Err("--ws.addr is not --http.addr: give WebSockets a --ws.port too, which is \
                        not --http.port"
                .into());
        }
        let sorted = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
        let texts =
            |methods: &[MethodPattern]| methods.iter().map(|it| it.to_string()).collect::<Vec<_>>();
        let same = [
            ("api", self.ws_api.clone(), self.http_api.clone()),
            ("methods", texts(&self.ws_methods), texts(&self.http_methods)),
        ];
        for (flag, ws, http) in same {
            if !ws.is_empty() && sorted(&ws) != sorted(&http) {
                return Err(format!(
                    "--ws.{flag} is not --http.{flag}: give WebSockets a --ws.port too, which is \
                     not --http.port"
                ));
            }
        }
        Ok(None)
    }

    /// The methods that the public port offers.
    pub(super) fn http_offered(&self) -> Offered {
        let namespaces = (!self.http_api.is_empty()).then(|| self.http_api.clone());
        Offered { namespaces, methods: self.http_methods.clone(), ..Offered::default() }
    }

    /// The methods of a port of its own for WebSockets, by default those of the public port.
    pub(super) fn websocket_offered(&self) -> Offered {
        let mut offered = self.http_offered();
        if !self.ws_api.is_empty() {
            offered.namespaces = Some(self.ws_api.clone());
            offered.namespaces_flag = "--ws.api";
        }
        if !self.ws_methods.is_empty() {
            offered.methods.clone_from(&self.ws_methods);
            offered.methods_flag = "--ws.methods";
        }
        offered
    }
}

impl AuthrpcArgs {
    /// The methods that the Unix socket offers.
    pub(super) fn ipc_offered(&self) -> Offered {
        let (methods, methods_flag) = (self.ipc_methods.clone(), "--ipc.methods");
        Offered { methods, methods_flag, ..Offered::default() }
    }
}
