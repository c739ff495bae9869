//! A port of a client: the client library's connection, for callers without a runtime.

use std::time::{Duration, Instant};

use alloy_primitives::{B256, U64};
use alloy_rpc_types_engine::ForkchoiceState;
use anyhow::Context;
use bytes::Bytes;
use client::{ConnectOptions, EngineClient};
use engine_api::{EngineMethod, Fork, GET_CLIENT_VERSION};
use rpc::{CallTimes, ClientError, JwtSecret, response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::chain::format::Payload;
use crate::fault::Fault;

/// The longest that a call may take: a block that makes state takes seconds.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(600);
/// A connection that was not used for so long is not used again: its server may be about to close
/// it. A server that was stopped meanwhile does so when it goes on, which is when the call comes.
const IDLE_TIME: Duration = Duration::from_secs(5);
/// The forms in which an answer says that there is no witness.
const NO_BYTES: [&str; 3] = ["null", "\"\"", "\"0x\""];

/// The times at which parts of an answer were there, in seconds since the rendered request began to
/// be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timing {
    pub(crate) first_byte: f64,
    pub(crate) last_byte: f64,
    /// When the caller has what it asked for: with decoding, if there is some.
    pub(crate) whole: f64,
    pub(crate) answer_bytes: usize,
}

impl Timing {
    /// Of a call that is over now.
    fn of(times: CallTimes) -> Self {
        let whole = times.sent.elapsed().as_secs_f64();
        let since = |at: Option<Instant>| at.map_or(0.0, |at| (at - times.sent).as_secs_f64());
        Self {
            first_byte: since(times.first_byte),
            last_byte: since(times.last_byte),
            whole,
            answer_bytes: times.body_bytes,
        }
    }
}

/// A runtime for one caller, on its thread.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// An error of a call with the [`Fault`] that it means; `times` are those of the call.
pub(crate) fn failed(error: impl Into<client::Error>, times: Option<CallTimes>) -> anyhow::Error {
    let error = error.into();
    let has_begun = times.is_some_and(|times| times.first_byte.is_some());
    let fault = match &error {
        client::Error::Rpc(_) | client::Error::Problem(_) => Fault::Refusing,
        client::Error::Transport(ClientError::Http { .. }) => Fault::Refusing,
        client::Error::Transport(ClientError::Timeout { .. }) => Fault::Hanging,
        client::Error::Transport(ClientError::Connect { .. }) => Fault::Unreachable,
        client::Error::Transport(ClientError::Broken { .. } | ClientError::Closed { .. }) => {
            if has_begun {
                Fault::Truncated
            } else {
                Fault::HungUp
            }
        }
        other if other.to_string().contains("not asked for") => Fault::Compressed,
        _ => Fault::Garbled,
    };
    anyhow::Error::new(error).context(fault)
}

/// A connection to a port, used for one call at a time.
#[derive(Debug)]
pub(crate) struct Port {
    runtime: Runtime,
    client: Box<EngineClient>,
    address: String,
    secret: Option<JwtSecret>,
    last_used: Instant,
    /// Whether it is used again after a while: both sides remember what came over it.
    lasts: bool,
}

/// The answer to a call, as it came.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) timing: Timing,
    body: Bytes,
}

impl RawAnswer {
    /// The result.
    pub(crate) fn result(&self) -> anyhow::Result<&str> {
        response::result(&self.body).map_err(|error| failed(error, None))
    }
}

impl Port {
    /// Connects to `host:port`, for JSON-RPC.
    pub(crate) fn open(address: &str, secret: Option<JwtSecret>) -> anyhow::Result<Self> {
        let wire = Some(client::Wire::Json);
        Self::open_with(address, ConnectOptions { secret, wire, ..ConnectOptions::default() })
    }

    /// Connects with options that name the wire.
    pub(crate) fn open_with(address: &str, options: ConnectOptions) -> anyhow::Result<Self> {
        let (runtime, secret) = (runtime()?, options.secret.clone());
        let lasts = options.wire == Some(client::Wire::Descriptor);
        let connected = runtime.block_on(EngineClient::connect_with(address, options));
        let client = connected.map_err(anyhow::Error::new).context(Fault::Unreachable)?;
        let (address, client, last_used) = (address.into(), Box::new(client), Instant::now());
        let mut port = Self { runtime, client, address, secret, last_used, lasts };
        port.set_patience(ANSWER_TIME);
        Ok(port)
    }

    /// Bounds the time of a call.
    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.client.set_timeout(patience);
    }

    /// Its address and its secret.
    pub(crate) fn endpoint(&self) -> (&str, Option<JwtSecret>) {
        (&self.address, self.secret.clone())
    }

    /// Makes a call of the client library.
    pub(crate) fn make<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut EngineClient) -> Result<T, client::Error>,
    ) -> anyhow::Result<(Timing, T)> {
        let Self { runtime, client, .. } = self;
        let is_idle = !self.lasts && self.last_used.elapsed() > IDLE_TIME;
        let answered = runtime.block_on(async {
            if is_idle {
                client.connection().reopen().await?;
            }
            call(client).await
        });
        self.last_used = Instant::now();
        let times = client.connection().last_times();
        let answer = answered.map_err(|error| failed(error, times))?;
        Ok((times.map(Timing::of).context("a call that was answered has times")?, answer))
    }

    /// Calls a method.
    pub(crate) fn call(
        &mut self,
        method: &str,
        params: impl Serialize,
    ) -> anyhow::Result<RawAnswer> {
        let call = self.make(async |client: &mut EngineClient| {
            Ok(client.connection().call_raw(method, params).await?)
        });
        let (timing, body) =
            call.with_context(|| format!("no answer to {method} at {}", self.address))?;
        Ok(RawAnswer { timing, body })
    }

    /// Calls a method and reads its result.
    pub(crate) fn read<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: impl Serialize,
    ) -> anyhow::Result<T> {
        let answer = self.call(method, params)?;
        let result = answer.result().with_context(|| method.to_owned())?;
        serde_json::from_str(result).context(Fault::Garbled).with_context(|| method.to_owned())
    }

    /// `engine_newPayload`, with or without the witness; anything but `VALID` of this very block,
    /// and the witness, is a [`Fault`].
    pub(crate) fn new_payload(
        &mut self,
        payload: &Payload,
        with_witness: bool,
    ) -> anyhow::Result<Timing> {
        let method = payload.method(with_witness);
        let answer = self.call(&method, payload.raw_params())?;
        let result = answer.result().with_context(|| method.clone())?;
        let fields = response::fields(result, ["status", "latestValidHash", "witness"]);
        let [status, valid, witness] = fields.context(Fault::Garbled)?;
        let status = status.map_or("none", |status| status.trim_matches('"'));
        let valid = valid.and_then(|hash| serde_json::from_str(hash).ok());
        let has_witness = witness.is_some_and(|bytes| !NO_BYTES.contains(&bytes));
        check_verdict(payload, status, valid, !with_witness || has_witness)
            .map_err(|fault| fault.error(format!("{method} answers {:.500}", result)))?;
        Ok(answer.timing)
    }

    /// `engine_newPayload` of a block that is invalid; anything but `INVALID` is a [`Fault`].
    pub(crate) fn invalid_payload(&mut self, payload: &Payload) -> anyhow::Result<()> {
        let answer = self.call(&payload.method(false), payload.raw_params())?;
        let result = answer.result()?;
        let status = response::field(result, "status").context(Fault::Garbled)?;
        let fault = match status {
            "\"INVALID\"" => return Ok(()),
            "\"SYNCING\"" | "\"ACCEPTED\"" => Fault::Behind,
            _ => Fault::Lying,
        };
        let (hash, said) = (payload.hash, result);
        Err(fault.error(format!("block {hash}, which is invalid, is answered {said:.500}")))
    }

    /// `engine_forkchoiceUpdated` without payload attributes; the seconds that it took.
    pub(crate) fn forkchoice_updated(&mut self, heads: ForkchoiceState) -> anyhow::Result<f64> {
        // The version has no bound without attributes.
        let method = EngineMethod::ForkchoiceUpdated;
        let method = method.name(method.version(Fork::Osaka));
        let answer = self.call(method, (heads, None::<()>))?;
        let result = answer.result()?;
        let status = response::field(result, "payloadStatus")
            .and_then(|payload| response::field(payload, "status"));
        let fault = match status.context(Fault::Garbled)? {
            "\"VALID\"" => return Ok(answer.timing.whole),
            "\"SYNCING\"" => Fault::Behind,
            _ => Fault::Lying,
        };
        let (head, said) = (heads.head_block_hash, result);
        Err(fault.error(format!("the fork choice {head} is answered {said:.500}")))
    }

    /// The answer to `engine_getClientVersionV1`, for people, if the client has that method.
    pub(crate) fn client_version(&mut self) -> Option<String> {
        let ours = json!([{
            "code": "XX", "name": "deponent bench", "version": env!("CARGO_PKG_VERSION"),
            "commit": "0x00000000",
        }]);
        let said: Value = self.read(GET_CLIENT_VERSION, ours).ok()?;
        let words = ["name", "version", "commit"].map(|key| said[0][key].as_str());
        Some(words.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }

    /// The head's number and hash; the Engine API's port has that method, too.
    pub(crate) fn head(&mut self) -> anyhow::Result<(u64, B256)> {
        #[derive(serde::Deserialize)]
        struct Head {
            number: U64,
            hash: B256,
        }
        let Head { number, hash } = self.read("eth_getBlockByNumber", ("latest", false))?;
        Ok((number.to(), hash))
    }
}

/// Checks that the answer to a payload is `VALID` of this very block, with the witness if there had
/// to be one.
pub(crate) fn check_verdict(
    payload: &Payload,
    status: &str,
    valid: Option<B256>,
    is_complete: bool,
) -> Result<(), Fault> {
    match status {
        "VALID" if valid != Some(payload.hash) => Err(Fault::Lying),
        "VALID" if !is_complete => Err(Fault::NoWitness),
        "VALID" => Ok(()),
        "SYNCING" | "ACCEPTED" => Err(Fault::Behind),
        _ => Err(Fault::Lying),
    }
}
