//! A JSON-RPC port of a client: `rpc`'s client, for callers without a runtime.

use std::time::{Duration, Instant};

use alloy_primitives::{B256, U64};
use anyhow::Context;
use bytes::Bytes;
use rpc::{CallTimes, ClientError, JwtSecret, RawValue, response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::chain::format::Payload;
use crate::fault::Fault;

/// The longest that a call may take: a block that makes state takes seconds.
const ANSWER_TIME: Duration = Duration::from_secs(600);
/// A connection that was not used for so long is not used again: its server may be about to close
/// it. A server that was stopped meanwhile does so when it goes on, which is when the call comes.
pub(crate) const IDLE_TIME: Duration = Duration::from_secs(5);
/// The forms in which an answer says that there is no witness.
const NO_BYTES: [&str; 3] = ["null", "\"\"", "\"0x\""];

/// The times at which parts of an answer were there, counted from when the rendered request began
/// to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timing {
    pub(crate) first_byte: Duration,
    pub(crate) last_byte: Duration,
    /// When the caller has what it asked for: with decoding, if there is some.
    pub(crate) whole: Duration,
    pub(crate) answer_bytes: usize,
}

impl Timing {
    /// Of a call that is over now.
    pub(crate) fn of(times: CallTimes) -> Self {
        let since = |at: Option<Instant>| at.map_or(Duration::ZERO, |at| at - times.sent);
        Self {
            first_byte: since(times.first_byte),
            last_byte: since(times.last_byte),
            whole: times.sent.elapsed(),
            answer_bytes: times.body_bytes,
        }
    }
}

/// A runtime for one caller, on its thread.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// The fault that an error of a call means; `times` are those of the call.
pub(crate) fn fault(error: &ClientError, times: Option<CallTimes>) -> Fault {
    match error {
        ClientError::Rpc(_) | ClientError::Http { .. } => Fault::Refusing,
        ClientError::Timeout { .. } => Fault::Hanging,
        ClientError::Connect { .. } => Fault::Unreachable,
        ClientError::Broken { .. } | ClientError::Closed { .. } => {
            let has_begun = times.is_some_and(|times| times.first_byte.is_some());
            if has_begun { Fault::Truncated } else { Fault::HungUp }
        }
        other if other.to_string().contains("not asked for") => Fault::Compressed,
        _ => Fault::Garbled,
    }
}

/// A connection to a JSON-RPC port, used for one call at a time.
#[derive(Debug)]
pub(crate) struct Port {
    runtime: Runtime,
    client: rpc::Client,
    address: String,
    secret: Option<JwtSecret>,
    last_used: Instant,
}

/// The answer to a call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) timing: Timing,
    body: Bytes,
}

impl Answer {
    /// The result.
    pub(crate) fn result(&self) -> anyhow::Result<&RawValue> {
        response::result(&self.body).map_err(|error| {
            let is_refusal = matches!(error, ClientError::Rpc(_));
            let fault = if is_refusal { Fault::Refusing } else { Fault::Garbled };
            anyhow::Error::new(error).context(fault)
        })
    }
}

impl Port {
    /// Connects to `host:port`.
    pub(crate) fn open(address: &str, secret: Option<JwtSecret>) -> anyhow::Result<Self> {
        let runtime = runtime()?;
        let mut client = runtime
            .block_on(rpc::Client::connect(address, secret.clone()))
            .map_err(|error| anyhow::Error::new(error).context(Fault::Unreachable))?;
        client.set_timeout(ANSWER_TIME);
        let address = address.into();
        Ok(Self { runtime, client, address, secret, last_used: Instant::now() })
    }

    /// Bounds the time of a call.
    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.client.set_timeout(patience);
    }

    /// Its address and its secret.
    pub(crate) fn endpoint(&self) -> (&str, Option<JwtSecret>) {
        (&self.address, self.secret.clone())
    }

    /// Calls a method.
    pub(crate) fn call(&mut self, method: &str, params: impl Serialize) -> anyhow::Result<Answer> {
        let Self { runtime, client, address, .. } = self;
        let at = || format!("no answer to {method} at {address}");
        let answered = runtime.block_on(async {
            if self.last_used.elapsed() > IDLE_TIME {
                client.reopen().await?;
            }
            client.call_raw(method, params).await
        });
        let times = client.last_times();
        self.last_used = Instant::now();
        let body = answered.map_err(|error| {
            let fault = fault(&error, times);
            anyhow::Error::new(error).context(fault)
        });
        let body = body.with_context(at)?;
        let timing = times.map(Timing::of).context("a call that was answered has times")?;
        Ok(Answer { timing, body })
    }

    /// Calls a method and reads its result.
    pub(crate) fn read<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: impl Serialize,
    ) -> anyhow::Result<T> {
        let answer = self.call(method, params)?;
        let result = answer.result().with_context(|| method.to_owned())?;
        serde_json::from_str(result.get())
            .context(Fault::Garbled)
            .with_context(|| method.to_owned())
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
        check_verdict(payload, with_witness, answer.result().context(method)?)?;
        Ok(answer.timing)
    }

    /// `engine_newPayload` of a block that is invalid; anything but `INVALID` is a [`Fault`].
    pub(crate) fn invalid_payload(&mut self, payload: &Payload) -> anyhow::Result<()> {
        let answer = self.call(&payload.method(false), payload.raw_params())?;
        let result = answer.result()?;
        let status = response::field(result, "status").context(Fault::Garbled)?;
        let fault = match status.get() {
            "\"INVALID\"" => return Ok(()),
            "\"SYNCING\"" | "\"ACCEPTED\"" => Fault::Behind,
            _ => Fault::Lying,
        };
        let said = result.get();
        Err(fault
            .error(format!("block {}, which is invalid, is answered {said:.500}", payload.hash)))
    }

    /// `engine_forkchoiceUpdated` without payload attributes.
    pub(crate) fn forkchoice_updated(&mut self, heads: Heads) -> anyhow::Result<Timing> {
        let Heads { head, safe, finalized } = heads;
        let state = json!({
            "headBlockHash": head, "safeBlockHash": safe, "finalizedBlockHash": finalized,
        });
        let answer = self.call("engine_forkchoiceUpdatedV3", (state, None::<()>))?;
        let result = answer.result()?;
        let status = response::field(result, "payloadStatus").and_then(|payload| {
            response::field(payload, "status").map(|status| status.get().to_owned())
        });
        let fault = match status.context(Fault::Garbled)?.as_str() {
            "\"VALID\"" => return Ok(answer.timing),
            "\"SYNCING\"" => Fault::Behind,
            _ => Fault::Lying,
        };
        let said = result.get();
        Err(fault.error(format!("the fork choice {head} is answered {said:.500}")))
    }

    /// The answer to `engine_getClientVersionV1`, for people, if the client has that method.
    pub(crate) fn client_version(&mut self) -> Option<String> {
        let ours = json!([{
            "code": "XX", "name": "deponent bench", "version": env!("CARGO_PKG_VERSION"),
            "commit": "0x00000000",
        }]);
        let said: Value = self.read("engine_getClientVersionV1", ours).ok()?;
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

/// The blocks that a fork choice names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    pub(crate) head: B256,
    pub(crate) safe: B256,
    pub(crate) finalized: B256,
}

/// Checks that a payload's answer is `VALID` of this very block, and has the witness if it was
/// asked for; anything else is a [`Fault`].
fn check_verdict(payload: &Payload, with_witness: bool, result: &RawValue) -> anyhow::Result<()> {
    let fields = response::fields(result, ["status", "latestValidHash", "witness"]);
    let [status, valid, witness] = fields.context(Fault::Garbled)?;
    let fault = match status.map_or("none", |status| status.get()) {
        "\"VALID\"" => {
            let valid: Option<B256> = valid.and_then(|hash| serde_json::from_str(hash.get()).ok());
            let is_there = witness.is_some_and(|bytes| !NO_BYTES.contains(&bytes.get()));
            match valid {
                valid if valid != Some(payload.hash) => Some(Fault::Lying),
                _ if with_witness && !is_there => Some(Fault::NoWitness),
                _ => None,
            }
        }
        "\"SYNCING\"" | "\"ACCEPTED\"" => Some(Fault::Behind),
        _ => Some(Fault::Lying),
    };
    match fault {
        Some(fault) => {
            let method = payload.method(with_witness);
            Err(fault.error(format!("{method} answers {:.500}", result.get())))
        }
        None => Ok(()),
    }
}
