//! Wires to a client: how payloads are sent to it, and witnesses come back.
//!
//! Calls are made by the client and the connections that users have, `client` and `rpc`, so what is
//! measured is what they get. The clock starts when a rendered request begins to be sent. Wires
//! that decode stop it when each item of the witness is a slice of the caller's memory.

use std::hash::{DefaultHasher, Hasher};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{
    CancunPayloadFields, ExecutionPayload, ExecutionPayloadSidecar, PayloadStatus,
    PayloadStatusEnum, PraguePayloadFields,
};
use anyhow::{Context, bail};
use client::{CodeCache, ConnectOptions, EngineClient, WitnessAnswer, read_payload_status};
use rpc::{ClientError, JwtSecret, RawValue, SessionClient, Spare, response};
use tokio::runtime::Runtime;
use witness::Witness;

use crate::chain::format::Payload;
use crate::clients::client::Client;
use crate::clients::port::{self, IDLE_TIME, Timing};
use crate::fault::Fault;
use crate::run::sample::Items;

/// The longest wait for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(600);
/// Codes that are held, at most: those of the largest witness, and then some.
const HELD_BYTES: usize = 2 << 30;

/// How payloads are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wire {
    /// `engine_newPayload` over HTTP.
    #[default]
    Verdict,
    /// `engine_newPayloadWithWitness` over HTTP; the answer is read and not decoded.
    Plain,
    /// The same, and the witness is decoded; so it is with all that follow.
    Json,
    /// Over HTTP on the Unix socket.
    JsonUnix,
    /// On the Unix socket without HTTP.
    Ipc,
    WebSocket,
    /// `POST payloads/witness` of the REST API.
    Ssz,
    SszUnix,
    /// Large answers are memory of the server's, mapped.
    Descriptor,
    /// Codes that came before on the connection are not sent again.
    Held,
    /// Codes are read in the server's files.
    Mapped,
    /// `engine_newPayload`, then `debug_executionWitness` on the public port.
    Later,
}

/// All wires with a witness, by their names.
pub(crate) const NAMED: [(&str, Wire); 11] = [
    ("witness", Wire::Plain),
    ("json", Wire::Json),
    ("json-unix", Wire::JsonUnix),
    ("ipc", Wire::Ipc),
    ("ws", Wire::WebSocket),
    ("ssz", Wire::Ssz),
    ("ssz-unix", Wire::SszUnix),
    ("descriptor", Wire::Descriptor),
    ("held-codes", Wire::Held),
    ("mapped-codes", Wire::Mapped),
    ("public-port", Wire::Later),
];

impl Wire {
    /// The wire of this name.
    pub(crate) fn named(name: &str) -> anyhow::Result<Self> {
        let found = NAMED.iter().find(|(known, _)| *known == name);
        let names = NAMED.map(|(name, _)| name).join(", ");
        found.map(|(_, wire)| *wire).with_context(|| format!("no wire {name}: there are {names}"))
    }

    /// Whether the client needs the Engine API over REST for it.
    pub(crate) const fn is_rest(self) -> bool {
        matches!(self, Self::Ssz | Self::SszUnix | Self::Descriptor | Self::Held | Self::Mapped)
    }

    /// Whether the client needs a Unix socket for it.
    pub(crate) const fn is_unix(self) -> bool {
        matches!(
            self,
            Self::JsonUnix
                | Self::Ipc
                | Self::SszUnix
                | Self::Descriptor
                | Self::Held
                | Self::Mapped
        )
    }

    /// Whether the answer has the witness, at once or in a second call.
    pub(crate) const fn has_witness(self) -> bool {
        !matches!(self, Self::Verdict)
    }
}

/// A connection to a client over a wire.
pub(crate) struct Lane {
    pub(crate) wire: Wire,
    link: Option<Link>,
    spare: Spare,
}

enum Link {
    Typed { runtime: Runtime, client: Box<EngineClient>, last_used: Instant },
    Session { runtime: Runtime, client: SessionClient, address: String, secret: Option<JwtSecret> },
}

/// A payload as a lane sends it: what a wire needs is made before the clock starts.
pub(crate) struct Ready<'a> {
    pub(crate) payload: &'a Payload,
    typed: Option<(ExecutionPayload, ExecutionPayloadSidecar)>,
}

impl Lane {
    /// A connection to a running client.
    pub(crate) fn open(wire: Wire, server: &Client) -> anyhow::Result<Self> {
        let (address, secret) = server.engine.endpoint();
        let unix = || {
            let path = server.socket.clone();
            path.with_context(|| format!("{} listens on no Unix socket", server.name))
        };
        let typed = |form: client::Wire, to_unix: bool| {
            let runtime = port::runtime()?;
            let (address, secret) = match to_unix {
                true => (format!("unix:{}", unix()?.display()), None),
                false => (address.to_owned(), secret.clone()),
            };
            let codes = match wire {
                Wire::Held => CodeCache::Held { most_bytes: HELD_BYTES },
                Wire::Mapped => CodeCache::Mapped,
                _ => CodeCache::Off,
            };
            let options = ConnectOptions { secret, wire: Some(form), codes };
            let mut client = runtime.block_on(EngineClient::connect_with(&address, options))?;
            client.set_timeout(ANSWER_TIME);
            let (client, last_used) = (Box::new(client), Instant::now());
            anyhow::Ok(Link::Typed { runtime, client, last_used })
        };
        let link = match wire {
            Wire::Verdict | Wire::Plain => None,
            Wire::Json => Some(typed(client::Wire::Json, false)?),
            Wire::JsonUnix => Some(typed(client::Wire::Json, true)?),
            Wire::Ssz => Some(typed(client::Wire::Ssz, false)?),
            Wire::SszUnix => Some(typed(client::Wire::Ssz, true)?),
            Wire::Descriptor | Wire::Held | Wire::Mapped => {
                Some(typed(client::Wire::Descriptor, true)?)
            }
            Wire::Later => {
                let (address, _) = server.public.endpoint();
                let runtime = port::runtime()?;
                let opened = EngineClient::connect_over(client::Wire::Json, address, None);
                let mut client = Box::new(runtime.block_on(opened)?);
                client.set_timeout(ANSWER_TIME);
                Some(Link::Typed { runtime, client, last_used: Instant::now() })
            }
            Wire::WebSocket | Wire::Ipc => {
                let runtime = port::runtime()?;
                let (address, secret) = match wire {
                    Wire::Ipc => (format!("unix:{}", unix()?.display()), None),
                    _ => (address.to_owned(), secret.clone()),
                };
                let client = session(&runtime, &address, secret.clone())?;
                Some(Link::Session { runtime, client, address, secret })
            }
        };
        Ok(Self { wire, link, spare: Spare::default() })
    }

    /// Prepares a payload for this lane.
    pub(crate) fn ready<'a>(&self, payload: &'a Payload) -> anyhow::Result<Ready<'a>> {
        let is_typed = matches!(self.link, Some(Link::Typed { .. })) && self.wire != Wire::Later;
        Ok(Ready { payload, typed: is_typed.then(|| typed(payload)).transpose()? })
    }

    /// Sends a payload. The witness that comes with the verdict is given where the wire decodes it.
    pub(crate) fn new_payload(
        &mut self,
        server: &mut Client,
        ready: &Ready<'_>,
        with_witness: bool,
    ) -> anyhow::Result<(Timing, Option<Witness>)> {
        let Ready { payload, typed } = ready;
        let spare = &self.spare;
        let (timing, status, answer) = match (&mut self.link, typed) {
            (Some(Link::Typed { runtime, client, last_used }), Some((payload, sidecar))) => {
                let keeps = matches!(self.wire, Wire::Held | Wire::Mapped | Wire::Descriptor);
                let idle = last_used.elapsed() > IDLE_TIME && !keeps;
                let answered = runtime.block_on(async {
                    if idle {
                        client.connection().reopen().await.map_err(client::Error::Transport)?;
                    }
                    match with_witness {
                        true => client.new_payload_with_witness(payload, sidecar).await,
                        false => Ok((client.new_payload(payload, sidecar).await?, None)),
                    }
                });
                *last_used = Instant::now();
                let times = client.connection().last_times();
                let (status, witness) = answered.map_err(|error| failed(error, times))?;
                let timing = Timing::of(times.context("a call that was answered has times")?);
                (timing, status, witness)
            }
            (Some(Link::Session { runtime, client, address, secret }), _) => {
                let method = payload.method(with_witness);
                let began = Instant::now();
                let called = runtime.block_on(client.call_raw(&method, payload.raw_params()));
                let body = match called {
                    Err(ClientError::Closed { .. }) => {
                        *client = session(runtime, address, secret.clone())?;
                        runtime.block_on(client.call_raw(&method, payload.raw_params()))
                    }
                    called => called,
                };
                let body = body.map_err(|error| failed(client::Error::Transport(error), None))?;
                let here = began.elapsed();
                let (status, answer) = read(&body, spare)?;
                (all_at(here, began, body.len()), status, answer)
            }
            _ => {
                let in_one = with_witness && self.wire == Wire::Plain;
                return Ok((server.engine.new_payload(payload, in_one)?, None));
            }
        };
        check(payload, &status, with_witness && answer.is_none())?;
        Ok((timing, answer.map(|answer| answer.witness)))
    }

    /// Asks for the witness of a block: on the public port, or for that of the block that was sent
    /// just now, in the same way again.
    pub(crate) fn ask(
        &mut self,
        server: &mut Client,
        hash: B256,
        again: Option<&Ready<'_>>,
    ) -> anyhow::Result<(Timing, Option<Witness>)> {
        if let (true, Some(ready)) = (self.wire != Wire::Later, again) {
            return self.new_payload(server, ready, true);
        }
        let Some(Link::Typed { runtime, client, last_used }) = &mut self.link else {
            bail!("it has no connection to the public port")
        };
        let idle = last_used.elapsed() > IDLE_TIME;
        let answered = runtime.block_on(async {
            if idle {
                client.connection().reopen().await.map_err(client::Error::Transport)?;
            }
            client.witness(hash).await
        });
        *last_used = Instant::now();
        let times = client.connection().last_times();
        let witness = answered.map_err(|error| failed(error, times))?;
        Ok((Timing::of(times.context("a call that was answered has times")?), Some(witness)))
    }
}

/// A session over a WebSocket, or on a Unix socket without HTTP.
fn session(
    runtime: &Runtime,
    address: &str,
    secret: Option<JwtSecret>,
) -> anyhow::Result<SessionClient> {
    let mut client = runtime.block_on(SessionClient::connect(address, secret))?;
    client.set_timeout(ANSWER_TIME);
    Ok(client)
}

/// Times of an answer that came as a whole.
fn all_at(here: Duration, began: Instant, answer_bytes: usize) -> Timing {
    Timing { first_byte: here, last_byte: here, whole: began.elapsed(), answer_bytes }
}

/// Reads an answer to `engine_newPayloadWithWitness` that came outside of [`EngineClient`].
fn read(body: &[u8], spare: &Spare) -> anyhow::Result<(PayloadStatus, Option<WitnessAnswer>)> {
    let result = response::result(body).map_err(|error| {
        let fault = port::fault(&error, None);
        anyhow::Error::new(error).context(fault)
    })?;
    read_payload_status(result, spare).context(Fault::Garbled)
}

/// An error of the typed client, as a [`Fault`].
fn failed(error: client::Error, times: Option<rpc::CallTimes>) -> anyhow::Error {
    let fault = match &error {
        client::Error::Transport(error) => port::fault(error, times),
        client::Error::Rpc(_) | client::Error::Problem(_) => Fault::Refusing,
        _ => Fault::Garbled,
    };
    anyhow::Error::new(error).context(fault)
}

/// Checks that a payload's answer is `VALID` of this very block, with the witness if there had to
/// be one.
fn check(payload: &Payload, status: &PayloadStatus, lacks_witness: bool) -> anyhow::Result<()> {
    let fault = match status.status {
        PayloadStatusEnum::Valid if status.latest_valid_hash != Some(payload.hash) => Fault::Lying,
        PayloadStatusEnum::Valid if lacks_witness => {
            return Err(Fault::NoWitness.error("VALID, with no witness".into()));
        }
        PayloadStatusEnum::Valid => return Ok(()),
        PayloadStatusEnum::Syncing | PayloadStatusEnum::Accepted => Fault::Behind,
        PayloadStatusEnum::Invalid { .. } => Fault::Lying,
    };
    Err(fault.error(format!("block {} is answered {status:?}", payload.hash)))
}

/// A payload in the types of the client.
fn typed(payload: &Payload) -> anyhow::Result<(ExecutionPayload, ExecutionPayloadSidecar)> {
    let params: Vec<&RawValue> = serde_json::from_str(payload.params())?;
    let text = |place: usize| params.get(place).map_or("null", |param| param.get());
    let execution: ExecutionPayload = serde_json::from_str(text(0)).context("not a payload")?;
    let versioned_hashes: Option<Vec<B256>> = serde_json::from_str(text(1))?;
    let root: Option<B256> = serde_json::from_str(text(2))?;
    let requests: Option<Vec<Bytes>> = serde_json::from_str(text(3))?;
    let Some(parent_beacon_block_root) = root else {
        return Ok((execution, ExecutionPayloadSidecar::none()));
    };
    let versioned_hashes = versioned_hashes.unwrap_or_default();
    let cancun = CancunPayloadFields { parent_beacon_block_root, versioned_hashes };
    let sidecar = match requests {
        None => ExecutionPayloadSidecar::v3(cancun),
        Some(requests) => {
            let requests = alloy_eips::eip7685::Requests::new(requests);
            ExecutionPayloadSidecar::v4(cancun, PraguePayloadFields::new(requests))
        }
    };
    Ok((execution, sidecar))
}

impl Items {
    /// Those of a witness.
    pub(crate) fn of(witness: &Witness) -> Self {
        let mut items = Self { bytes: witness.content_bytes(), ..Self::default() };
        let mut add = |kind: u8, item: &[u8]| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(kind);
            hasher.write(item);
            items.content = items.content.wrapping_add(hasher.finish());
            items.count += 1;
        };
        witness.state.iter().for_each(|node| add(1, node));
        witness.codes.iter().for_each(|code| add(0, code));
        items.count += witness.headers.len();
        items
    }
}
