//! The methods of the two ports and of the Unix socket, as tables.

mod attributes;
mod bad_blocks;
mod blobs;
mod block_access_list;
mod blocks;
pub(crate) mod bodies;
mod build;
mod by_nonce;
mod call;
mod config;
mod debug;
mod default_fees;
mod dev;
mod dev_state;
mod estimate;
mod eth;
mod fees;
mod fill;
mod filter_table;
mod filters;
mod forward;
mod head_control;
mod identity;
mod inclusion;
mod lenient;
mod log_filter;
mod logs;
mod nearest;
mod network;
mod new_payload;
mod offered;
mod overview;
mod parity;
pub(crate) mod payload;
mod pool;
mod ranges;
mod raw;
mod sign;
mod simulate;
mod state;
mod status;
mod stored;
mod subscribe;
mod timings;
mod trace;
mod trace_config;
mod trace_turns;
mod traced;
mod transactions;
mod uncles;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ::pool::Pool;
use engine::Engine;
use engine_api::{EXCHANGE_CAPABILITIES, EngineMethod, GET_CLIENT_VERSION};
use follow::Backfill;
use rpc::{Code, Error, Json, Later, Method, Params, RawValue};
use witness::StateError;

pub use offered::{MethodPattern, Offered};

pub(crate) use blobs::{is_cell_wanted, pooled_blobs};
pub(crate) use blocks::NumberOrTag;
pub(crate) use bodies::{blocks_by_hash, blocks_by_range};
pub(crate) use build::{built, detail, envelope, update_forkchoice};
pub(crate) use config::sync_status_of;
pub(crate) use dev_state::{accounts_of, dumped};
pub(crate) use eth::shown_block;
pub(crate) use filter_table::Filters;
pub(crate) use identity::{ClientVersion, client_name, our_version};
pub(crate) use new_payload::{assembly_time, validate, validate_with_witness};
pub(crate) use payload::{check_fork, check_requests};
pub(crate) use stored::Stored;
pub(crate) use subscribe::{SUBSCRIPTIONS, subscribe};

use nearest::nearest;

use crate::CallBounds;
use crate::dev::DevNode;
use crate::feed::Feed;
use crate::flags::values::shown_duration;
use crate::metrics::{Metrics, Wire};
use crate::node_record::NodeRecord;
use crate::observe::NodeCondition;
use crate::pending::PendingBlocks;
use crate::pending_feed::PendingFeed;
use crate::pool_feed::SendBounds;
use crate::traces::Tracer;

/// One port's methods, answered by an engine.
pub struct Api {
    pub(crate) engine: Arc<Engine>,
    /// The source of subscriptions, where they are offered.
    pub(crate) feed: Option<Arc<Feed>>,
    /// The source of subscriptions to pending transactions, where they are offered.
    pub(crate) pending_feed: Option<Arc<PendingFeed>>,
    /// The bounds of calls.
    bounds: CallBounds,
    /// The pool, and the bounds of what is sent to it, where there is one.
    pool: Option<(Arc<Pool>, SendBounds)>,
    /// Fills gaps of the chain, where there are upstreams.
    pub(crate) backfill: Option<Arc<Backfill>>,
    /// The chain for tests, where it is one.
    dev: Option<Arc<DevNode>>,
    /// The node's names, where it is one.
    pub(crate) record: Option<Arc<NodeRecord>>,
    /// The pending block, which all ports share.
    pending: Arc<PendingBlocks>,
    /// The filters that were made on the port.
    filters: Arc<Filters>,
    /// Counts what is called.
    pub(crate) metrics: Arc<Metrics>,
    /// Takes traces of the Engine API, where they are wanted.
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// Whether it is a Unix socket's.
    is_local: bool,
    /// How the node is, where it is one.
    pub(crate) condition: Option<Arc<NodeCondition>>,
    entries: Vec<Entry>,
    /// The methods of all entries.
    pub(crate) methods: Vec<Method>,
    /// The namespaces and methods to which the port is restricted.
    offered: Offered,
    /// The methods that it would have otherwise.
    refused: Vec<&'static str>,
    /// Whether a browser gets a page.
    pub(crate) has_page: bool,
}

/// A method, and the function that answers it.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) method: Method,
    call: Call,
}

#[derive(Clone, Copy)]
enum Call {
    Plain(PlainCall),
    /// It is told of the address from which the call comes.
    From(CallFrom),
    /// One function answers all versions.
    Versioned(VersionedCall, u8),
    /// Its answer comes later.
    Later(LaterCall),
}

type PlainCall = fn(&Api, Params<'_>) -> Result<Json, Error>;
type CallFrom = fn(&Api, Params<'_>, Option<IpAddr>) -> Result<Json, Error>;
type VersionedCall = fn(&Api, Params<'_>, u8) -> Result<Json, Error>;
type LaterCall = fn(&Api, Params<'_>) -> Result<Later, Error>;

impl Entry {
    pub(crate) fn call(
        &self,
        api: &Api,
        params: Params<'_>,
        host: Option<IpAddr>,
    ) -> Result<Json, Error> {
        match self.call {
            Call::Plain(call) => call(api, params),
            Call::From(call) => call(api, params, host),
            Call::Versioned(call, version) => call(api, params, version),
            Call::Later(_) => {
                let name = self.method.name;
                let detail =
                    format_args!("{name} waits for a block: call it alone, not in a batch");
                Err(Error::new(Code::InvalidRequest, detail))
            }
        }
    }

    /// Begins a call whose answer comes later.
    pub(crate) fn call_later(&self, api: &Api, params: Params<'_>) -> Result<Later, Error> {
        match self.call {
            Call::Later(call) => call(api, params),
            _ => Err(Error::method_not_found(self.method.name)),
        }
    }
}

const fn method(name: &'static str, call: PlainCall) -> Entry {
    Entry { method: Method::new(name), call: Call::Plain(call) }
}

const fn from(name: &'static str, call: CallFrom) -> Entry {
    Entry { method: Method::new(name), call: Call::From(call) }
}

/// Answered in the order in which a connection's calls come.
const fn ordered(name: &'static str, call: PlainCall) -> Entry {
    Entry { method: Method::new(name).in_order(), call: Call::Plain(call) }
}

/// Answered when something has happened, for which no other call waits.
const fn later(name: &'static str, call: LaterCall) -> Entry {
    Entry { method: Method::new(name).waits(), call: Call::Later(call) }
}

const fn quick(name: &'static str, call: PlainCall) -> Entry {
    Entry { method: Method::new(name).quick(), call: Call::Plain(call) }
}

/// All versions of a method. Fork choices are answered in order ("Message ordering" in the Engine
/// API's common definitions), and quickly unless they begin a build.
fn versions(method: EngineMethod, call: VersionedCall) -> impl Iterator<Item = Entry> {
    use EngineMethod::{ForkchoiceUpdated, ForkchoiceUpdatedWithWitness};
    let is_fork_choice = matches!(method, ForkchoiceUpdated | ForkchoiceUpdatedWithWitness);
    method.names().iter().zip(1..).map(move |(name, version)| {
        let method = match is_fork_choice {
            true => Method::new(name).quick_if(builds_nothing).in_order(),
            false => Method::new(name),
        };
        Entry { method, call: Call::Versioned(call, version) }
    })
}

/// Whether the second parameter of a fork choice, the payload attributes, is absent or `null`.
fn builds_nothing(params: Option<&RawValue>) -> bool {
    let params = params.map(|params| serde_json::from_str::<Vec<&RawValue>>(params.get()));
    let attributes = params.and_then(Result::ok).and_then(|params| params.get(1).copied());
    attributes.is_none_or(|attributes| attributes.get() == "null")
}

impl Api {
    /// The authenticated port: the Engine API, the methods of `eth` that it must offer as far as
    /// we have them, and `testing_buildBlockV1` when `testing`.
    pub fn engine_port(engine: Arc<Engine>, testing: bool) -> Self {
        let testing = if testing { TESTING } else { &[] };
        Self::new(engine, engine_entries().chain(plain(&[ENGINE, CHAIN, OWN, HEAD, testing])))
    }

    /// The public port: reading the chain and its witnesses.
    pub fn public_port(engine: Arc<Engine>) -> Self {
        Self::new(engine, plain(&[CHAIN, OWN, SHOWN, PUBLIC]))
    }

    /// The public port of a node: where `testing`, the head can be moved there.
    pub(crate) fn public_port_of(engine: Arc<Engine>, testing: bool) -> Self {
        let head = if testing { HEAD } else { &[] };
        Self::new(engine, plain(&[CHAIN, OWN, SHOWN, PUBLIC, head]))
    }

    /// A Unix socket: the methods of both ports.
    pub fn local(engine: Arc<Engine>, testing: bool) -> Self {
        let testing = if testing { TESTING } else { &[] };
        let all = [ENGINE, CHAIN, OWN, SHOWN, PUBLIC, HEAD, testing];
        let api = Self::new(engine, engine_entries().chain(plain(&all)));
        Self { is_local: true, ..api }
    }

    /// Those of its methods that are offered.
    pub fn only(mut self, offered: Offered) -> Self {
        let is_offered = |name: &str| offered.refusal(name).is_none();
        let all: Vec<_> = self.methods().collect();
        self.refused.extend(all.iter().filter(|name| !is_offered(name)));
        self.entries.retain(|entry| is_offered(entry.method.name));
        self.methods.retain(|method| is_offered(method.name));
        for namespace in offered.namespaces.iter().flatten().filter(|name| self.lacks(name)) {
            tracing::warn!(namespace, "the public port has no methods of this namespace");
        }
        let all: Vec<_> =
            all.into_iter().chain(SUBSCRIPTIONS.iter().map(|kind| kind.subscribe)).collect();
        let lacks = |pattern: &&MethodPattern| !all.iter().any(|name| pattern.has(name));
        for pattern in offered.methods.iter().filter(lacks) {
            let flag = offered.methods_flag;
            tracing::warn!(%pattern, flag, "the port has no such methods");
        }
        Self { offered, ..self }
    }

    fn lacks(&self, namespace: &str) -> bool {
        !self.methods().any(|name| name.split('_').next() == Some(namespace))
    }

    /// Whether a subscription of this name is offered.
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.offered.refusal(name).is_none()
    }

    /// The error of a method or subscription that is not here.
    pub(crate) fn not_found(&self, name: &str) -> Error {
        let is_ours = self.refused.contains(&name)
            || self.feed.is_some() && SUBSCRIPTIONS.iter().any(|kind| kind.subscribe == name);
        match self.offered.refusal(name).filter(|_| is_ours) {
            Some(reason) => Error::new(Code::MethodNotFound, reason),
            None => match nearest(name, self.methods()) {
                Some(near) => {
                    let words = format!("there is no method \"{name}\" here, but \"{near}\"");
                    Error::new(Code::MethodNotFound, words)
                }
                None => Error::method_not_found(name),
            },
        }
    }

    fn new(engine: Arc<Engine>, entries: impl Iterator<Item = Entry>) -> Self {
        let entries: Vec<_> = entries.collect();
        let methods = entries.iter().map(|entry| entry.method).collect();
        let (metrics, is_local) = (Arc::default(), false);
        let (feed, pool, record, condition, tracer) = (None, None, None, None, None);
        Self {
            engine,
            feed,
            pending_feed: None,
            bounds: CallBounds::default(),
            pool,
            backfill: None,
            dev: None,
            pending: Arc::default(),
            filters: Arc::default(),
            record,
            condition,
            metrics,
            tracer,
            is_local,
            entries,
            methods,
            offered: Offered::default(),
            refused: Vec::new(),
            has_page: false,
        }
    }

    /// The same, which says how gaps are filled.
    pub(crate) fn with_backfill(self, backfill: Option<Arc<Backfill>>) -> Self {
        Self { backfill, ..self }
    }

    /// The same, counted among these metrics.
    pub(crate) fn with_metrics(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// The same, whose calls of the Engine API are traced.
    pub(crate) fn with_tracer(self, tracer: Option<Arc<Tracer>>) -> Self {
        Self { tracer, ..self }
    }

    /// How JSON gets from here to a client.
    pub(crate) const fn json_wire(&self) -> Wire {
        if self.is_local { Wire::JsonUnix } else { Wire::Json }
    }

    /// The same, of a node with these names.
    pub(crate) fn with_record(self, record: Arc<NodeRecord>) -> Self {
        Self { record: Some(record), ..self }
    }

    /// The same, with a page for browsers, if there is to be one.
    pub(crate) fn with_page(self, has_page: bool) -> Self {
        Self { has_page, ..self }
    }

    /// The same, of a node of which this is known.
    pub(crate) fn with_condition(self, condition: Arc<NodeCondition>) -> Self {
        Self { condition: Some(condition), ..self }
    }

    /// Checks that the consensus client leads, and no upstream does.
    fn check_led(&self) -> Result<(), Error> {
        let source = self.condition.as_ref().and_then(|condition| condition.head_source());
        source.map_or(Ok(()), |source| {
            let tag = source.tag();
            let reason = format!(
                "the head comes from an upstream (--follow.head {tag}), so this node takes no \
                 payloads and no fork choices: start it without that flag, for a consensus client \
                 to lead it"
            );
            Err(Error::new(Code::Server, reason))
        })
    }

    /// The same, with filters that it shares with other ports.
    pub(crate) fn with_filters(self, filters: Arc<Filters>) -> Self {
        Self { filters, ..self }
    }

    /// The same, with subscriptions to what the feed tells.
    pub(crate) fn with_feed(self, feed: Arc<Feed>) -> Self {
        Self { feed: Some(feed), ..self }
    }

    /// The same, of a node that mines its own chain, if it does: with the methods for tests.
    pub(crate) fn with_dev(mut self, dev: Option<Arc<DevNode>>) -> Self {
        if dev.is_some() {
            let entries = dev::DEV.iter().chain(dev_state::DEV_STATE).chain(sign::SIGN);
            self.entries.extend(entries.clone());
            self.methods.extend(entries.map(|entry| entry.method));
        }
        Self { dev, ..self }
    }

    /// The same, with these bounds of calls.
    pub(crate) fn with_bounds(self, bounds: CallBounds) -> Self {
        Self { bounds, ..self }
    }

    /// The same, with the pool of this feed, and the bounds of what is sent to it.
    pub(crate) fn with_pool(self, feed: &Arc<PendingFeed>, bounds: SendBounds) -> Self {
        let (pool, pending_feed) = (Some((feed.pool().clone(), bounds)), Some(feed.clone()));
        Self { pool, pending_feed, pending: feed.blocks.clone(), ..self }
    }

    /// The names of all methods, in the order of the tables.
    pub fn methods(&self) -> impl Iterator<Item = &'static str> {
        self.methods.iter().map(|method| method.name)
    }

    /// Whether this is a port of the Engine API, which is offered over REST too.
    pub(crate) fn offers_rest(&self) -> bool {
        self.entry(EXCHANGE_CAPABILITIES).is_some()
    }

    /// Whether it is the port of the Engine API: who calls there has the secret.
    pub(crate) fn is_engine_port(&self) -> bool {
        !self.is_local && self.offers_rest()
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.method.name == name)
    }
}

/// The names of all methods and subscriptions that any port may have.
pub(crate) fn method_names() -> Vec<&'static str> {
    let tables = [ENGINE, CHAIN, OWN, SHOWN, PUBLIC, HEAD, TESTING, dev::DEV];
    let subscriptions = SUBSCRIPTIONS.iter().flat_map(|kind| [kind.subscribe, kind.unsubscribe]);
    let methods = engine_entries().chain(plain(&tables)).map(|entry| entry.method.name);
    methods.chain(subscriptions).collect()
}

fn plain(tables: &[&'static [Entry]]) -> impl Iterator<Item = Entry> + use<> {
    let entries: Vec<Entry> = tables.iter().copied().flatten().copied().collect();
    entries.into_iter()
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.methods()).finish()
    }
}

/// The methods that no other client has.
const OWN: &[Entry] = &[quick("deponent_lastTimings", timings::last)];

/// Those of them that the page at `GET /` calls.
const SHOWN: &[Entry] = &[
    method("deponent_inspectWitness", overview::inspect),
    method("deponent_overview", overview::overview),
];

/// The methods of the Engine API whose versions follow the forks.
fn engine_entries() -> impl Iterator<Item = Entry> {
    use EngineMethod::*;
    versions(NewPayload, new_payload::plain)
        .chain(versions(NewPayloadWithWitness, new_payload::witness))
        .chain(versions(ExecuteStatelessPayload, new_payload::stateless))
        .chain(versions(ForkchoiceUpdated, build::plain))
        .chain(versions(ForkchoiceUpdatedWithWitness, build::witness))
        .chain(versions(GetPayload, build::payload))
}

const ENGINE: &[Entry] = &[
    method("engine_getPayloadBodiesByHashV1", |api, params| bodies::by_hash(api, params, 1)),
    method("engine_getPayloadBodiesByHashV2", |api, params| bodies::by_hash(api, params, 2)),
    method("engine_getPayloadBodiesByRangeV1", |api, params| bodies::by_range(api, params, 1)),
    method("engine_getPayloadBodiesByRangeV2", |api, params| bodies::by_range(api, params, 2)),
    method("engine_getBlobsV1", |api, params| blobs::blobs(api, params, 1)),
    method("engine_getBlobsV2", |api, params| blobs::blobs(api, params, 2)),
    method("engine_getBlobsV3", |api, params| blobs::blobs(api, params, 3)),
    method("engine_getBlobsV4", blobs::cells),
    quick("engine_getSyncStatus", config::sync_status),
    quick(EXCHANGE_CAPABILITIES, identity::exchange_capabilities),
    quick(GET_CLIENT_VERSION, identity::engine_client_version),
    method("deponent_status", status::status),
];

const CHAIN: &[Entry] = &[
    quick("eth_blockNumber", eth::block_number),
    method("eth_call", call::call),
    method("eth_capabilities", config::history),
    quick("eth_chainId", eth::chain_id),
    method("eth_config", config::forks),
    method("eth_getBlockByHash", eth::block_by_hash),
    method("eth_getBlockByNumber", eth::block_by_number),
    method("eth_getCode", state::code),
    method("eth_getLogs", logs::logs),
    method("eth_sendRawTransaction", pool::send_raw),
    quick("eth_syncing", eth::syncing),
];

const PUBLIC: &[Entry] = &[
    method("eth_accounts", identity::accounts),
    quick("eth_baseFee", fees::next_base_fee),
    method("eth_blobBaseFee", fees::blob_base_fee),
    method("eth_coinbase", identity::coinbase),
    method("eth_createAccessList", estimate::access_list),
    method("eth_estimateGas", estimate::gas),
    method("eth_feeHistory", fees::history),
    method("eth_fillTransaction", fill::fill),
    method("eth_gasPrice", fees::gas_price),
    method("eth_getBalance", state::balance),
    method("eth_getBlockAccessList", block_access_list::shown),
    method("eth_getBlockReceipts", transactions::receipts),
    method("eth_getBlockTransactionCountByHash", transactions::count_by_hash),
    method("eth_getBlockTransactionCountByNumber", transactions::count_by_number),
    method("eth_getFilterChanges", filters::changes),
    method("eth_getFilterLogs", filters::all_logs),
    method("eth_getHeaderByHash", eth::header_by_hash),
    method("eth_getHeaderByNumber", eth::header_by_number),
    method("eth_getProof", state::proof),
    method("eth_getRawTransactionByBlockHashAndIndex", raw::by_hash_and_index),
    method("eth_getRawTransactionByBlockNumberAndIndex", raw::by_number_and_index),
    method("eth_getRawTransactionByHash", raw::transaction),
    method("eth_getStorageAt", state::storage_at),
    method("eth_getStorageValues", state::storage_values),
    method("eth_getTransactionByBlockHashAndIndex", transactions::by_hash_and_index),
    method("eth_getTransactionByBlockNumberAndIndex", transactions::by_number_and_index),
    method("eth_getTransactionByHash", transactions::by_hash),
    method("eth_getTransactionBySenderAndNonce", by_nonce::transaction_by_nonce),
    method("eth_getTransactionCount", state::transaction_count),
    method("eth_getTransactionReceipt", transactions::receipt_by_hash),
    method("eth_getUncleByBlockHashAndIndex", uncles::by_hash_and_index),
    method("eth_getUncleByBlockNumberAndIndex", uncles::by_number_and_index),
    method("eth_getUncleCountByBlockHash", uncles::count_by_hash),
    method("eth_getUncleCountByBlockNumber", uncles::count_by_number),
    method("eth_maxPriorityFeePerGas", fees::tip),
    from("eth_newBlockFilter", filters::new_blocks),
    from("eth_newFilter", filters::new_logs),
    from("eth_newPendingTransactionFilter", filters::new_transactions),
    later("eth_sendRawTransactionSync", pool::send_raw_and_wait),
    method("eth_simulateV1", simulate::simulate),
    quick("eth_uninstallFilter", filters::uninstall),
    quick("admin_nodeInfo", network::node_info),
    quick("admin_peers", network::peers),
    method("debug_accountRange", ranges::accounts),
    method("debug_chainConfig", config::chain),
    method("debug_codeByHash", ranges::code),
    method("debug_executionWitness", debug::execution_witness),
    method("debug_executionWitnessByBlockHash", debug::execution_witness_by_hash),
    method("debug_executionWitnessByHash", debug::execution_witness_by_hash),
    method("debug_getBadBlocks", bad_blocks::bad_blocks),
    method("debug_getModifiedAccountsByHash", ranges::modified_by_hash),
    method("debug_getModifiedAccountsByNumber", ranges::modified_by_number),
    method("debug_getRawBlock", raw::block),
    method("debug_getRawBlockAccessList", block_access_list::raw),
    method("debug_getRawHeader", raw::header),
    method("debug_getRawReceipts", raw::receipts),
    method("debug_getRawTransaction", raw::transaction),
    method("debug_intermediateRoots", ranges::roots),
    method("debug_storageRangeAt", ranges::storage),
    method("debug_traceBlock", trace::block),
    method("debug_traceBlockByHash", trace::block_by_hash),
    method("debug_traceBlockByNumber", trace::block_by_number),
    method("debug_traceCall", trace::call),
    method("debug_traceTransaction", trace::transaction),
    quick("net_listening", network::listening),
    quick("net_peerCount", network::peer_count),
    quick("net_version", identity::net_version),
    quick("rpc_modules", identity::modules),
    method("trace_block", parity::block),
    method("trace_call", parity::call),
    method("trace_callMany", parity::call_many),
    method("trace_filter", parity::filter),
    method("trace_get", parity::get),
    method("trace_rawTransaction", parity::raw_transaction),
    method("trace_replayBlockTransactions", parity::replay_block),
    method("trace_replayTransaction", parity::replay_transaction),
    method("trace_transaction", parity::transaction),
    method("txpool_content", pool::content),
    method("txpool_contentFrom", pool::content_from),
    method("txpool_inspect", pool::inspect),
    quick("txpool_status", pool::status),
    quick("web3_clientVersion", identity::client_version),
    method("web3_sha3", identity::sha3),
];

/// Moving the head by hand, which is not for everybody.
const HEAD: &[Entry] = &[
    Entry { method: Method::new("debug_setHead").in_order(), call: Call::Plain(head_control::set) },
    Entry {
        method: Method::new("debug_resetHead").in_order(),
        call: Call::Plain(head_control::reset),
    },
];

const TESTING: &[Entry] = &[method("testing_buildBlockV1", build::testing)];

impl Api {
    /// An engine's error on the wire, of a method that makes calls.
    fn call_refusal(&self, error: engine::Error) -> Error {
        match error {
            engine::Error::OutOfTime => {
                let time = self.bounds.time.unwrap_or_default();
                let words = format!("execution aborted (timeout = {})", shown_duration(time));
                Error::failed_call(words)
            }
            error => refusal(error),
        }
    }
}

/// An engine's error on the wire.
pub(crate) fn refusal(error: engine::Error) -> Error {
    use engine::Error::*;
    let code = match &error {
        InvalidForkchoiceState(_) => Code::InvalidForkchoiceState,
        InvalidAttributes(_) => Code::InvalidPayloadAttributes,
        UnknownBlock(_) => Code::InvalidParams,
        // As geth: the request is well-formed, but cannot be met.
        Build(_) | NotIndexed(_) | OutOfTime => Code::Server,
        Pruned(_) | PrunedWitness(_) | NoReceipts(_) => Code::PrunedHistory,
        // Of a block before the one that the chain begins with.
        State(StateError::MissingHeader(_)) => Code::PrunedHistory,
        // Another program, which has the state, is at fault.
        State(error) if error.is_remote() => Code::Server,
        TooDeepReorg(_) => Code::TooDeepReorg,
        Genesis(_) | StorageRoot { .. } | ChainSpec(_) | State(_) | Evm(_) | Storage(_) => {
            Code::Internal
        }
    };
    if code == Code::Internal {
        tracing::error!(%error, "the engine failed");
    }
    Error::new(code, error)
}
