//! Wires to a client: how payloads are sent to it, and witnesses come back.
//!
//! Calls are made by the client and the connections that users have, `client` and `rpc`, so what is
//! measured is what they get. The clock starts when a rendered request begins to be sent. Wires
//! that decode stop it when each item of the witness is a slice of the caller's memory.

use std::hash::{DefaultHasher, Hasher};
use std::time::Instant;

use alloy_primitives::B256;
use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar};
use anyhow::Context;
use client::{CodeCache, ConnectOptions, EngineClient, read_payload_status};
use rpc::{ClientError, JwtSecret, SessionClient, Spare, response};
use tokio::runtime::Runtime;
use witness::Witness;

use crate::chain::format::Payload;
use crate::clients::client::Client;
use crate::clients::port::{self, ANSWER_TIME, Port, Timing};
use crate::fault::Fault;
use crate::run::sample::Items;

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
        let is_tcp = matches!(self, Self::Verdict | Self::Plain | Self::Json | Self::Ssz);
        !is_tcp && !matches!(self, Self::WebSocket | Self::Later)
    }

    /// Whether the answer has the witness, at once or in a second call.
    pub(crate) const fn has_witness(self) -> bool {
        !matches!(self, Self::Verdict)
    }
}

/// A connection to a client over a wire.
pub(crate) struct Lane {
    pub(crate) wire: Wire,
    link: LaneLink,
    spare: Spare,
}

enum LaneLink {
    /// The client's own ports.
    Ports,
    Typed(Port),
    Session {
        runtime: Runtime,
        client: SessionClient,
        address: String,
        secret: Option<JwtSecret>,
    },
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
        let (address, secret) = match wire.is_unix() {
            true => {
                let path = server
                    .socket
                    .as_ref()
                    .with_context(|| format!("{} listens on no Unix socket", server.name))?;
                (format!("unix:{}", path.display()), None)
            }
            false => (address.to_owned(), secret),
        };
        let link = match wire {
            Wire::Verdict | Wire::Plain | Wire::Later => LaneLink::Ports,
            Wire::WebSocket | Wire::Ipc => {
                let runtime = port::runtime()?;
                let client = session(&runtime, &address, secret.clone())?;
                LaneLink::Session { runtime, client, address, secret }
            }
            _ => {
                let form = match wire {
                    Wire::Json | Wire::JsonUnix => client::Wire::Json,
                    Wire::Ssz | Wire::SszUnix => client::Wire::Ssz,
                    _ => client::Wire::Descriptor,
                };
                let codes = match wire {
                    Wire::Held => CodeCache::Held { most_bytes: HELD_BYTES },
                    Wire::Mapped => CodeCache::Mapped,
                    _ => CodeCache::Off,
                };
                let options = ConnectOptions { secret, wire: Some(form), codes };
                LaneLink::Typed(Port::open_with(&address, options)?)
            }
        };
        Ok(Self { wire, link, spare: Spare::default() })
    }

    /// Prepares a payload for this lane.
    pub(crate) fn ready<'a>(&self, payload: &'a Payload) -> anyhow::Result<Ready<'a>> {
        let typed = matches!(self.link, LaneLink::Typed(_)).then(|| {
            let call = payload.call()?;
            let sidecar = call.sidecar();
            anyhow::Ok((call.payload, sidecar))
        });
        Ok(Ready { payload, typed: typed.transpose()? })
    }

    /// Sends a payload. The witness that comes with the verdict is given where the wire decodes it.
    pub(crate) fn new_payload(
        &mut self,
        server: &mut Client,
        ready: &Ready<'_>,
        with_witness: bool,
    ) -> anyhow::Result<(Timing, Option<Witness>)> {
        let payload = ready.payload;
        let (timing, (status, answer)) = match (&mut self.link, &ready.typed) {
            (LaneLink::Typed(port), Some((payload, sidecar))) => {
                port.make(async |client: &mut EngineClient| match with_witness {
                    true => client.new_payload_with_witness(payload, sidecar).await,
                    false => Ok((client.new_payload(payload, sidecar).await?, None)),
                })?
            }
            (LaneLink::Session { runtime, client, address, secret }, _) => {
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
                let body = body.map_err(|error| port::failed(error, None))?;
                // The answer came as a whole.
                let here = began.elapsed().as_secs_f64();
                let result = response::result(&body).map_err(|error| port::failed(error, None))?;
                let read = read_payload_status(result, &self.spare).context(Fault::Garbled)?;
                let (whole, answer_bytes) = (began.elapsed().as_secs_f64(), body.len());
                (Timing { first_byte: here, last_byte: here, whole, answer_bytes }, read)
            }
            _ => {
                let in_one = with_witness && self.wire == Wire::Plain;
                return Ok((server.engine.new_payload(payload, in_one)?, None));
            }
        };
        let (word, valid) = (status.status.as_str(), status.latest_valid_hash);
        port::check_verdict(payload, word, valid, !with_witness || answer.is_some()).map_err(
            |fault| fault.error(format!("block {} is answered {status:?}", payload.hash)),
        )?;
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
        let asked =
            server.public.make(async |client: &mut EngineClient| client.witness(hash).await);
        asked.map(|(timing, witness)| (timing, Some(witness)))
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
