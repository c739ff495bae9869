//! What the two ports and the Unix socket answer: tables of methods.

mod attributes;
mod blocks;
mod bodies;
mod build;
mod call;
mod debug;
mod eth;
mod identity;
mod new_payload;
mod payload;
mod state;
mod stored;
mod timings;
mod transactions;

use std::fmt;
use std::sync::Arc;

use engine::{Engine, PersistedBlock};
use rpc::rest::{Request, Resources, Response, StatusCode};
use rpc::{Code, Error, Handler, Json, Method, Params, RawValue};
use rpc::{Subscription, SubscriptionMethods, Topic};
use witness::StateError;

use crate::rest;

pub(crate) use bodies::{blocks_by_hash, blocks_by_range};
pub(crate) use build::{built, detail, execution_payload, update_forkchoice};
pub(crate) use identity::our_version;
pub(crate) use payload::{check_fork, check_requests};
pub(crate) use stored::Stored;

/// One port's methods, answered by an engine.
pub struct Api {
    pub(crate) engine: Arc<Engine>,
    /// Canonical heads, as they are persisted.
    persisted: Topic,
    tables: Vec<&'static [Entry]>,
    /// Of all tables.
    methods: Vec<Method>,
}

/// A method, and the function that answers it.
struct Entry {
    method: Method,
    call: Call,
}

type Call = fn(&Api, Params<'_>) -> Result<Json, Error>;

const fn method(name: &'static str, call: Call) -> Entry {
    Entry { method: Method::new(name), call }
}

const fn quick(name: &'static str, call: Call) -> Entry {
    Entry { method: Method::new(name).quick(), call }
}

/// "Message ordering" in the Engine API's common definitions. A fork choice that builds takes its
/// time.
const fn fork_choice(name: &'static str, call: Call) -> Entry {
    Entry { method: Method::new(name).quick_if(builds_nothing).in_order(), call }
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
        let mut tables = vec![ENGINE, CHAIN, OWN];
        if testing {
            tables.push(TESTING);
        }
        Self::new(engine, tables)
    }

    /// The public port: reading the chain and its witnesses.
    pub fn public_port(engine: Arc<Engine>) -> Self {
        Self::new(engine, vec![CHAIN, OWN, PUBLIC])
    }

    /// A Unix socket: all that the two ports have.
    pub fn local(engine: Arc<Engine>, testing: bool) -> Self {
        let mut tables = vec![ENGINE, CHAIN, OWN, PUBLIC];
        if testing {
            tables.push(TESTING);
        }
        Self::new(engine, tables)
    }

    fn new(engine: Arc<Engine>, tables: Vec<&'static [Entry]>) -> Self {
        let persisted = Topic::new();
        let topic = persisted.clone();
        engine.on_persisted(move |PersistedBlock { number, hash }| {
            // As reth has it, which a tool that waits for persistence expects.
            let block = serde_json::json!({"number": number, "hash": hash});
            topic.publish(Json::of(&block).expect("a number and a hash have a JSON form"));
        });
        let methods = tables.iter().copied().flatten().map(|entry| entry.method).collect();
        Self { engine, persisted, tables, methods }
    }

    /// The names of all methods, in the order of the tables.
    pub fn methods(&self) -> impl Iterator<Item = &'static str> {
        self.methods.iter().map(|method| method.name)
    }

    fn offers_rest(&self) -> bool {
        self.entry(EXCHANGE_CAPABILITIES).is_some()
    }

    fn entry(&self, name: &str) -> Option<&'static Entry> {
        self.tables.iter().copied().flatten().find(|entry| entry.method.name == name)
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.methods()).finish()
    }
}

impl Handler for Api {
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error> {
        let found = self.entry(method).ok_or_else(|| Error::method_not_found(method));
        let answer = found.and_then(|found| (found.call)(self, Params::of(params)?));
        // `data` is the Engine API's place for what was wrong.
        answer.map_err(|error| match method.starts_with("engine_") {
            true => error,
            false => error.in_message(),
        })
    }

    fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// The Engine API over REST, where it is offered at all.
    fn resources(&self) -> Option<&dyn Resources> {
        self.offers_rest().then_some(self)
    }

    fn subscriptions(&self) -> &[SubscriptionMethods] {
        PERSISTED
    }

    fn subscribe(&self, method: &str, params: Option<&RawValue>) -> Result<Subscription, Error> {
        if !PERSISTED.iter().any(|kind| kind.subscribe == method) {
            return Err(Error::method_not_found(method));
        }
        Params::of(params)?.end()?;
        Ok(self.persisted.subscribe())
    }
}

impl Resources for Api {
    fn prefix(&self) -> &str {
        "/engine/"
    }

    fn answer(&self, request: Request) -> Response {
        match self.offers_rest() {
            true => rest::answer(self, request),
            false => rest::refuse(StatusCode::NOT_FOUND, "the Engine API is not offered here"),
        }
    }

    fn refuse(&self, status: StatusCode, detail: &str) -> Response {
        rest::refuse(status, detail)
    }

    fn is_quick(&self, request: &Request) -> bool {
        rest::is_quick(request)
    }

    fn is_in_order(&self, path: &str) -> bool {
        rest::is_in_order(path)
    }
}

/// Each canonical head, once it and all before it would survive a crash.
const PERSISTED: &[SubscriptionMethods] = &[
    SubscriptionMethods {
        subscribe: "deponent_subscribePersistedBlock",
        unsubscribe: "deponent_unsubscribePersistedBlock",
        notification: "deponent_subscribePersistedBlock",
    },
    SubscriptionMethods {
        subscribe: "reth_subscribePersistedBlock",
        unsubscribe: "reth_unsubscribePersistedBlock",
        notification: "reth_subscribePersistedBlock",
    },
];

/// What no other client has.
const OWN: &[Entry] = &[quick("deponent_lastTimings", timings::last)];

const ENGINE: &[Entry] = &[
    method("engine_newPayloadV1", |api, params| new_payload::plain(api, params, 1)),
    method("engine_newPayloadV2", |api, params| new_payload::plain(api, params, 2)),
    method("engine_newPayloadV3", |api, params| new_payload::plain(api, params, 3)),
    method("engine_newPayloadV4", |api, params| new_payload::plain(api, params, 4)),
    method("engine_newPayloadV5", |api, params| new_payload::plain(api, params, 5)),
    method("engine_newPayloadWithWitnessV1", |api, params| new_payload::witness(api, params, 1)),
    method("engine_newPayloadWithWitnessV2", |api, params| new_payload::witness(api, params, 2)),
    method("engine_newPayloadWithWitnessV3", |api, params| new_payload::witness(api, params, 3)),
    method("engine_newPayloadWithWitnessV4", |api, params| new_payload::witness(api, params, 4)),
    method("engine_newPayloadWithWitnessV5", |api, params| new_payload::witness(api, params, 5)),
    method("engine_executeStatelessPayloadV1", |api, params| {
        new_payload::stateless(api, params, 1)
    }),
    method("engine_executeStatelessPayloadV2", |api, params| {
        new_payload::stateless(api, params, 2)
    }),
    method("engine_executeStatelessPayloadV3", |api, params| {
        new_payload::stateless(api, params, 3)
    }),
    method("engine_executeStatelessPayloadV4", |api, params| {
        new_payload::stateless(api, params, 4)
    }),
    method("engine_executeStatelessPayloadV5", |api, params| {
        new_payload::stateless(api, params, 5)
    }),
    fork_choice("engine_forkchoiceUpdatedV1", |api, params| build::plain(api, params, 1)),
    fork_choice("engine_forkchoiceUpdatedV2", |api, params| build::plain(api, params, 2)),
    fork_choice("engine_forkchoiceUpdatedV3", |api, params| build::plain(api, params, 3)),
    fork_choice("engine_forkchoiceUpdatedV4", |api, params| build::plain(api, params, 4)),
    fork_choice("engine_forkchoiceUpdatedWithWitnessV1", |api, params| {
        build::witness(api, params, 1)
    }),
    fork_choice("engine_forkchoiceUpdatedWithWitnessV2", |api, params| {
        build::witness(api, params, 2)
    }),
    fork_choice("engine_forkchoiceUpdatedWithWitnessV3", |api, params| {
        build::witness(api, params, 3)
    }),
    fork_choice("engine_forkchoiceUpdatedWithWitnessV4", |api, params| {
        build::witness(api, params, 4)
    }),
    method("engine_getPayloadV1", |api, params| build::payload(api, params, 1)),
    method("engine_getPayloadV2", |api, params| build::payload(api, params, 2)),
    method("engine_getPayloadV3", |api, params| build::payload(api, params, 3)),
    method("engine_getPayloadV4", |api, params| build::payload(api, params, 4)),
    method("engine_getPayloadV5", |api, params| build::payload(api, params, 5)),
    method("engine_getPayloadV6", |api, params| build::payload(api, params, 6)),
    method("engine_getPayloadBodiesByHashV1", |api, params| bodies::by_hash(api, params, 1)),
    method("engine_getPayloadBodiesByHashV2", |api, params| bodies::by_hash(api, params, 2)),
    method("engine_getPayloadBodiesByRangeV1", |api, params| bodies::by_range(api, params, 1)),
    method("engine_getPayloadBodiesByRangeV2", |api, params| bodies::by_range(api, params, 2)),
    method("engine_getBlobsV1", |api, params| bodies::blobs(api, params, 1)),
    method("engine_getBlobsV2", |api, params| bodies::blobs(api, params, 2)),
    method("engine_getBlobsV3", |api, params| bodies::blobs(api, params, 3)),
    quick(EXCHANGE_CAPABILITIES, identity::exchange_capabilities),
    quick("engine_getClientVersionV1", identity::engine_client_version),
];

/// common.md: it is the one method that its own answer does not name.
const EXCHANGE_CAPABILITIES: &str = "engine_exchangeCapabilities";

const CHAIN: &[Entry] = &[
    quick("eth_blockNumber", eth::block_number),
    method("eth_call", call::call),
    quick("eth_chainId", eth::chain_id),
    method("eth_getBlockByHash", eth::block_by_hash),
    method("eth_getBlockByNumber", eth::block_by_number),
    method("eth_getCode", state::code),
    quick("eth_syncing", eth::syncing),
];

const PUBLIC: &[Entry] = &[
    method("eth_getBalance", state::balance),
    method("eth_getBlockReceipts", transactions::receipts),
    method("eth_getBlockTransactionCountByHash", transactions::count_by_hash),
    method("eth_getBlockTransactionCountByNumber", transactions::count_by_number),
    method("eth_getProof", state::proof),
    method("eth_getStorageAt", state::storage_at),
    method("eth_getTransactionByBlockHashAndIndex", transactions::by_hash_and_index),
    method("eth_getTransactionByBlockNumberAndIndex", transactions::by_number_and_index),
    method("eth_getTransactionCount", state::transaction_count),
    method("debug_executionWitness", debug::execution_witness),
    method("debug_executionWitnessByBlockHash", debug::execution_witness_by_hash),
    method("debug_executionWitnessByHash", debug::execution_witness_by_hash),
    quick("net_version", identity::net_version),
    quick("rpc_modules", identity::modules),
    quick("web3_clientVersion", identity::client_version),
];

const TESTING: &[Entry] = &[method("testing_buildBlockV1", build::testing)];

/// An engine's error on the wire.
pub(crate) fn refusal(error: engine::Error) -> Error {
    use engine::Error::*;
    let code = match &error {
        InvalidForkchoiceState(_) => Code::InvalidForkchoiceState,
        InvalidAttributes(_) => Code::InvalidPayloadAttributes,
        UnknownBlock(_) => Code::InvalidParams,
        // As geth: the request is well-formed, but cannot be met.
        Build(_) => Code::Server,
        Pruned(_) | PrunedWitness(_) => Code::PrunedHistory,
        // Of a block before the one that the chain begins with.
        State(StateError::MissingHeader(_)) => Code::PrunedHistory,
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
