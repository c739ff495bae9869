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
use rpc::rest::{Request, Response, StatusCode};
use rpc::{Code, Error, Handler, Json, Params, RawValue};
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
    tables: Vec<&'static [Method]>,
}

/// A method's name and what answers it.
struct Method {
    name: &'static str,
    call: Call,
    /// See [`Handler::is_quick`].
    is_quick: bool,
}

type Call = fn(&Api, Params<'_>) -> Result<Json, Error>;

const fn method(name: &'static str, call: Call) -> Method {
    Method { name, call, is_quick: false }
}

const fn quick(name: &'static str, call: Call) -> Method {
    Method { name, call, is_quick: true }
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

    fn new(engine: Arc<Engine>, tables: Vec<&'static [Method]>) -> Self {
        let persisted = Topic::new();
        let topic = persisted.clone();
        engine.on_persisted(move |PersistedBlock { number, hash }| {
            // As reth has it, which a tool that waits for persistence expects.
            let block = serde_json::json!({"number": number, "hash": hash});
            topic.publish(Json::of(&block).expect("a number and a hash have a JSON form"));
        });
        Self { engine, persisted, tables }
    }

    /// The names of all methods, in the order of the tables.
    pub fn methods(&self) -> impl Iterator<Item = &'static str> {
        self.tables.iter().copied().flatten().map(|method| method.name)
    }

    fn method(&self, name: &str) -> Option<&'static Method> {
        self.tables.iter().copied().flatten().find(|method| method.name == name)
    }
}

/// What the names of fork choices begin with, of all versions.
const FORK_CHOICE: &str = "engine_forkchoiceUpdated";

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.methods()).finish()
    }
}

impl Handler for Api {
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error> {
        let found = self.method(method).ok_or_else(|| Error::method_not_found(method));
        let answer = found.and_then(|found| (found.call)(self, Params::of(params)?));
        // `data` is the Engine API's place for what was wrong.
        answer.map_err(|error| match method.starts_with("engine_") {
            true => error,
            false => error.in_message(),
        })
    }

    /// A fork choice that builds is not: its second parameter is not `null` then.
    fn is_quick(&self, method: &str, params: Option<&RawValue>) -> bool {
        let builds = || {
            let params = params.map(|params| serde_json::from_str::<Vec<&RawValue>>(params.get()));
            let attributes = params.and_then(Result::ok).and_then(|params| params.get(1).copied());
            method.starts_with(FORK_CHOICE) && attributes.is_some_and(|it| it.get() != "null")
        };
        self.method(method).is_some_and(|method| method.is_quick) && !builds()
    }

    /// "Message ordering" in the Engine API's common definitions: where there are fork choices.
    fn in_order(&self) -> Option<&str> {
        self.methods().any(|name| name.starts_with(FORK_CHOICE)).then_some(FORK_CHOICE)
    }

    /// The Engine API over REST, where it is offered at all.
    fn resources(&self) -> Option<&str> {
        self.methods().any(|name| name == EXCHANGE_CAPABILITIES).then_some("/engine/")
    }

    fn resource(&self, request: Request) -> Response {
        match self.resources() {
            Some(_) => rest::answer(self, request),
            None => rest::refuse(StatusCode::NOT_FOUND, "the Engine API is not offered here"),
        }
    }

    fn is_resource_in_order(&self, path: &str) -> bool {
        rest::is_in_order(path)
    }

    fn is_quick_resource(&self, request: &Request) -> bool {
        rest::is_quick(request)
    }

    fn refuse_resource(&self, status: StatusCode, detail: &str) -> Response {
        rest::refuse(status, detail)
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
const OWN: &[Method] = &[quick("deponent_lastTimings", timings::last)];

const ENGINE: &[Method] = &[
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
    quick("engine_forkchoiceUpdatedV1", |api, params| build::plain(api, params, 1)),
    quick("engine_forkchoiceUpdatedV2", |api, params| build::plain(api, params, 2)),
    quick("engine_forkchoiceUpdatedV3", |api, params| build::plain(api, params, 3)),
    quick("engine_forkchoiceUpdatedV4", |api, params| build::plain(api, params, 4)),
    quick("engine_forkchoiceUpdatedWithWitnessV1", |api, params| build::witness(api, params, 1)),
    quick("engine_forkchoiceUpdatedWithWitnessV2", |api, params| build::witness(api, params, 2)),
    quick("engine_forkchoiceUpdatedWithWitnessV3", |api, params| build::witness(api, params, 3)),
    quick("engine_forkchoiceUpdatedWithWitnessV4", |api, params| build::witness(api, params, 4)),
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

const CHAIN: &[Method] = &[
    quick("eth_blockNumber", eth::block_number),
    method("eth_call", call::call),
    quick("eth_chainId", eth::chain_id),
    method("eth_getBlockByHash", eth::block_by_hash),
    method("eth_getBlockByNumber", eth::block_by_number),
    method("eth_getCode", state::code),
    quick("eth_syncing", eth::syncing),
];

const PUBLIC: &[Method] = &[
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

const TESTING: &[Method] = &[method("testing_buildBlockV1", build::testing)];

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
