//! The ways to ask for a payload's verdict and witness.

use std::collections::BTreeMap;
use std::path::Path;

use alloy_primitives::{Bytes, U64};
use anyhow::{Context, ensure};
use rpc::Reply;
use rpc::rest::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::connection::{Connection, Endpoint, Framing, Request};
use super::decode::{self, CodePlace, Memory, Timing};
use super::{slices, ssz};
use crate::chain::format::Payload;
use crate::clients::client::{Client, Kind};
use crate::clients::wire;

/// A way to ask for a payload's verdict and witness.
pub(super) trait Transport {
    /// One call: after it, the items of the witness lie in `memory`. The clock starts when the
    /// request is rendered and the connection is open.
    fn call(&mut self, payload: &Payload, memory: &mut Memory) -> anyhow::Result<Timing>;

    /// The headers, codes and nodes that the last call left.
    fn items<'a>(&'a self, memory: &'a Memory) -> [Vec<&'a [u8]>; 3] {
        slices(&memory.lists, memory.bytes())
    }

    /// The verdict without the witness, by the encoding, the connection and the client of the calls
    /// with it; `None` where those are not kept.
    fn verdict(&mut self, _payload: &Payload) -> Option<anyhow::Result<wire::Timing>> {
        None
    }
}

/// A transport's names, and how it is made.
pub(super) struct Named {
    pub(super) name: &'static str,
    /// The clients that have it.
    pub(super) clients: &'static [Kind],
    way: Way,
}

#[derive(Clone, Copy)]
enum Way {
    Json(Framing, Socket),
    Ssz(Framing, Socket),
    Descriptor,
    Held,
    Mapped,
    Later(By),
}

/// How a block is named whose witness is asked for.
#[derive(Clone, Copy)]
enum By {
    Hash,
    Number,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Socket {
    Tcp,
    Unix,
}

const ALL: &[Kind] = &[Kind::Deponent, Kind::Geth, Kind::Reth];
const OURS: &[Kind] = &[Kind::Deponent];

/// All transports.
pub(super) const TRANSPORTS: &[Named] = &[
    Named { name: "json", clients: ALL, way: Way::Json(Framing::Http1, Socket::Tcp) },
    Named { name: "json-unix", clients: OURS, way: Way::Json(Framing::Http1, Socket::Unix) },
    Named { name: "json-h2c", clients: OURS, way: Way::Json(Framing::Http2, Socket::Tcp) },
    Named { name: "ipc", clients: ALL, way: Way::Json(Framing::Bare, Socket::Unix) },
    Named { name: "ws", clients: ALL, way: Way::Json(Framing::WebSocket, Socket::Tcp) },
    Named { name: "ssz", clients: OURS, way: Way::Ssz(Framing::Http1, Socket::Tcp) },
    Named { name: "ssz-unix", clients: OURS, way: Way::Ssz(Framing::Http1, Socket::Unix) },
    Named { name: "ssz-h2c", clients: OURS, way: Way::Ssz(Framing::Http2, Socket::Tcp) },
    Named { name: "ssz-h2c-unix", clients: OURS, way: Way::Ssz(Framing::Http2, Socket::Unix) },
    Named { name: "descriptor", clients: OURS, way: Way::Descriptor },
    Named { name: "held-codes", clients: OURS, way: Way::Held },
    Named { name: "mapped-codes", clients: OURS, way: Way::Mapped },
];

/// `debug_executionWitness` of a block by its hash, on the public port, after the block was sent.
pub(super) static LATER: Named =
    Named { name: "public port", clients: ALL, way: Way::Later(By::Hash) };

/// The same by its number.
pub(super) static LATER_BY_NUMBER: Named =
    Named { name: "public port, by number", clients: ALL, way: Way::Later(By::Number) };

/// The names of all transports, in the order of the report.
pub fn transport_names() -> impl Iterator<Item = &'static str> {
    TRANSPORTS.iter().map(|named| named.name)
}

/// The names of those that a client has.
pub(crate) fn transport_names_of(kind: Kind) -> impl Iterator<Item = &'static str> {
    let known = TRANSPORTS.iter().filter(move |named| named.clients.contains(&kind));
    known.map(|named| named.name)
}

/// The transport called `name`.
pub(super) fn named(name: &str) -> anyhow::Result<&'static Named> {
    let names = || transport_names().collect::<Vec<_>>().join(", ");
    let found = TRANSPORTS.iter().find(|named| named.name == name);
    found.with_context(|| format!("no transport {name}: {}", names()))
}

impl Named {
    /// Whether it asks for the witness of a block that was sent before.
    pub(super) const fn is_later(&self) -> bool {
        matches!(self.way, Way::Later(_))
    }

    /// Makes the transport for a running client. `osaka_time` tells forks apart; `keeps` is
    /// whether its calls share a connection where SSZ in HTTP/1.1 over a Unix socket would have
    /// one each. Over TCP a connection is of no use for longer than its token.
    pub(super) fn open(
        &self,
        client: &Client,
        osaka_time: u64,
        keeps: bool,
    ) -> anyhow::Result<Box<dyn Transport>> {
        let path = || client.socket.clone().context("it listens on no Unix socket");
        let endpoint = |socket| match socket {
            Socket::Unix => anyhow::Ok(Endpoint::Unix { path: path()? }),
            Socket::Tcp => {
                let (address, secret) = client.engine.endpoint();
                let secret = secret.context("the engine port has no secret")?;
                Ok(Endpoint::Tcp { address, secret: Some(secret) })
            }
        };
        Ok(match self.way {
            Way::Json(framing, socket) => Box::new(Json { framing, endpoint: endpoint(socket)? }),
            Way::Ssz(framing, socket) => {
                let keeps = keeps && framing == Framing::Http1 && socket == Socket::Unix;
                let endpoint = endpoint(socket)?;
                Box::new(Ssz { framing, endpoint, osaka_time, keeps, kept: None })
            }
            Way::Descriptor => Box::new(Descriptor::open(&path()?, osaka_time)?),
            Way::Held => Box::new(Held::new(endpoint(Socket::Unix)?, osaka_time)),
            Way::Mapped => Box::new(Mapped {
                asking: Descriptor::open(&path()?, osaka_time)?,
                files: BTreeMap::new(),
                places: Vec::new(),
                merged: Vec::new(),
            }),
            Way::Later(by) => {
                let (address, secret) = client.public.endpoint();
                Box::new(Later { endpoint: Endpoint::Tcp { address, secret }, by })
            }
        })
    }
}

/// `engine_newPayloadWithWitness`: the witness as digits of RLP.
struct Json {
    framing: Framing,
    endpoint: Endpoint,
}

impl Transport for Json {
    fn call(&mut self, payload: &Payload, memory: &mut Memory) -> anyhow::Result<Timing> {
        let mut connection = Connection::open(self.framing, &self.endpoint)?;
        let body = call(&payload.method(true), payload.params());
        let mut timing = Timing::start();
        connection.send(&json_request(&body))?;
        let mut body = connection.body()?;
        timing.first_byte = timing.elapsed();
        memory.read_json(&mut *body, &mut timing)?;
        Ok(timing)
    }
}

/// A call of JSON-RPC.
fn call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

const fn json_request(body: &str) -> Request<'_> {
    let headers = &[("content-type", "application/json")];
    Request { method: "POST", path: "/", headers, body: body.as_bytes() }
}

/// `debug_executionWitness`: the witness as an object whose items are digits.
struct Later {
    endpoint: Endpoint,
    by: By,
}

impl Transport for Later {
    fn call(&mut self, payload: &Payload, memory: &mut Memory) -> anyhow::Result<Timing> {
        let mut connection = Connection::open(Framing::Http1, &self.endpoint)?;
        let block = match self.by {
            By::Hash => format!(r#"["{}"]"#, payload.hash),
            By::Number => format!(r#"["{:#x}"]"#, payload.number),
        };
        let body = call("debug_executionWitness", &block);
        let mut timing = Timing::start();
        connection.send(&json_request(&body))?;
        let mut body = connection.body()?;
        timing.first_byte = timing.elapsed();
        memory.read_object(&mut *body, &mut timing)?;
        Ok(timing)
    }
}

const PAYLOADS_PATH: &str = "/engine/v1/payloads";
const WITNESS_PATH: &str = "/engine/v1/payloads/witness";

/// A name and a value.
type Header = (&'static str, &'static str);

/// The headers and the body of `POST /engine/v1/payloads` and `POST /engine/v1/payloads/witness`.
fn ssz_request(payload: &Payload, osaka_time: u64) -> anyhow::Result<([Header; 2], Vec<u8>)> {
    let params: Value = serde_json::from_str(payload.params())?;
    let time: U64 = serde_json::from_value(params[0]["timestamp"].clone())?;
    let fork = match time.to::<u64>() < osaka_time {
        true => "prague",
        false if params[0]["blockAccessList"].is_null() => "osaka",
        false => "amsterdam",
    };
    let headers = [("content-type", "application/octet-stream"), ("eth-execution-version", fork)];
    Ok((headers, ssz::envelope(&params)?))
}

const fn post<'a>(path: &'a str, headers: &'a [Header], body: &'a [u8]) -> Request<'a> {
    Request { method: "POST", path, headers, body }
}

/// `POST /engine/v1/payloads/witness`: the witness as it lies in memory.
struct Ssz {
    framing: Framing,
    endpoint: Endpoint,
    osaka_time: u64,
    keeps: bool,
    /// Away while a call runs, so that one that fails takes its connection with it.
    kept: Option<Connection>,
}

impl Ssz {
    fn connection(&mut self) -> anyhow::Result<Connection> {
        match self.kept.take().filter(Connection::is_open) {
            Some(kept) => Ok(kept),
            None => Connection::open(self.framing, &self.endpoint),
        }
    }

    fn ask_without(&mut self, payload: &Payload) -> anyhow::Result<wire::Timing> {
        let (headers, body) = ssz_request(payload, self.osaka_time)?;
        let request = post(PAYLOADS_PATH, &headers, &body);
        let mut connection = self.connection()?;
        let timing = Timing::start();
        connection.send(&request)?;
        let mut body = connection.body()?;
        let first_byte = timing.elapsed();
        let mut answer = Vec::new();
        body.read_to_end(&mut answer)?;
        drop(body);
        let timing =
            wire::Timing { whole: timing.elapsed(), first_byte, answer_bytes: answer.len() };
        self.kept = Some(connection);
        decode::ssz_verdict(&answer, &payload.hash)?;
        Ok(timing)
    }
}

impl Transport for Ssz {
    fn call(&mut self, payload: &Payload, memory: &mut Memory) -> anyhow::Result<Timing> {
        let (headers, body) = ssz_request(payload, self.osaka_time)?;
        let request = post(WITNESS_PATH, &headers, &body);
        let mut connection = self.connection()?;
        let mut timing = Timing::start();
        connection.send(&request)?;
        let mut body = connection.body()?;
        timing.first_byte = timing.elapsed();
        memory.read_ssz(&mut *body, &mut timing)?;
        drop(body);
        self.kept = Some(connection).filter(|_| self.keeps);
        Ok(timing)
    }

    fn verdict(&mut self, payload: &Payload) -> Option<anyhow::Result<wire::Timing>> {
        self.keeps.then(|| self.ask_without(payload))
    }
}

/// The same, and the answer is a file of the server's memory, mapped by the client of `rpc`, which
/// keeps its connection: files are given back there.
struct Descriptor {
    runtime: Runtime,
    client: rpc::Client,
    reply: Option<Reply>,
    osaka_time: u64,
}

impl Descriptor {
    fn open(path: &Path, osaka_time: u64) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let address = format!("unix:{}", path.display());
        let client = runtime.block_on(rpc::Client::connect(&address, None))?;
        Ok(Self { runtime, client, reply: None, osaka_time })
    }

    /// Asks, and has the answer in a file of the server's memory, if it is not a small one.
    fn ask(&mut self, payload: &Payload, more: &[Header]) -> anyhow::Result<(Timing, Reply)> {
        // The file of the answer before goes back with this request.
        self.reply = None;
        let (headers, body) = ssz_request(payload, self.osaka_time)?;
        let mut map = header_map(headers.iter().chain(more));
        map.extend([descriptor("1")]);
        self.post(WITNESS_PATH, map, body)
    }

    fn post(
        &mut self,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> anyhow::Result<(Timing, Reply)> {
        let mut timing = Timing::start();
        let asked = self.client.request(Method::POST, path, headers, body);
        let reply = self.runtime.block_on(asked)?;
        timing.first_byte = timing.elapsed();
        timing.last_byte = timing.first_byte;
        ensure!(
            reply.status == 200,
            "{}: {:.500}",
            reply.status,
            String::from_utf8_lossy(&reply.body[..reply.body.len().min(500)])
        );
        timing.answer_bytes = reply.body.len();
        Ok((timing, reply))
    }

    fn ask_without(&mut self, payload: &Payload) -> anyhow::Result<wire::Timing> {
        let (headers, body) = ssz_request(payload, self.osaka_time)?;
        let (timing, reply) = self.post(PAYLOADS_PATH, header_map(&headers), body)?;
        decode::ssz_verdict(&reply.body, &payload.hash)?;
        let Timing { last_byte: whole, answer_bytes, .. } = timing;
        Ok(wire::Timing { whole, first_byte: whole, answer_bytes })
    }

    /// The last answer.
    fn body(&self) -> &[u8] {
        self.reply.as_ref().map_or(&[][..], |reply| &reply.body[..])
    }
}

fn header_map<'a>(headers: impl IntoIterator<Item = &'a Header>) -> HeaderMap {
    let header =
        |(name, value): &Header| (HeaderName::from_static(name), HeaderValue::from_static(value));
    headers.into_iter().map(header).collect()
}

/// Asks for a file: of memory, unless it is the server's own.
fn descriptor(value: &'static str) -> (HeaderName, HeaderValue) {
    (rpc::rest::DESCRIPTOR, HeaderValue::from_static(value))
}

impl Transport for Descriptor {
    fn call(&mut self, payload: &Payload, memory: &mut Memory) -> anyhow::Result<Timing> {
        let (mut timing, reply) = self.ask(payload, &[])?;
        let (bytes, least) = (reply.body.len(), rpc::rest::DESCRIPTOR_BYTES);
        ensure!(
            reply.headers.contains_key(rpc::rest::DESCRIPTOR) || bytes < least,
            "an answer of {bytes} bytes came in its body; by descriptor it comes from {least} on"
        );
        decode::ssz(&reply.body, 0..reply.body.len(), &mut memory.lists)?;
        timing.end();
        self.reply = Some(reply);
        Ok(timing)
    }

    fn items<'a>(&'a self, memory: &'a Memory) -> [Vec<&'a [u8]>; 3] {
        slices(&memory.lists, self.body())
    }

    fn verdict(&mut self, payload: &Payload) -> Option<anyhow::Result<wire::Timing>> {
        Some(self.ask_without(payload))
    }
}

/// The same, and codes are not sent but read where they lie in the server's files, which were
/// mapped when they were first named.
struct Mapped {
    asking: Descriptor,
    /// By their segments.
    files: BTreeMap<u64, Bytes>,
    places: Vec<CodePlace>,
    /// The codes of the last witness, in its order.
    merged: Vec<Code>,
}

/// A code of a witness.
#[derive(Clone, Copy)]
enum Code {
    /// The answer has it, at this place among its codes.
    Sent(usize),
    /// At this place among those that lie in files.
    InFile(usize),
}

impl Mapped {
    /// Maps a file from its beginning on.
    fn map(&mut self, segment: u64) -> anyhow::Result<()> {
        let path = format!("/engine/v1/code-files/{segment}");
        let headers = HeaderMap::from_iter([descriptor("file")]);
        let Descriptor { client, runtime, .. } = &mut self.asking;
        let reply = runtime.block_on(client.request(Method::GET, &path, headers, Vec::new()))?;
        ensure!(reply.status == 200, "{} for {path}", reply.status);
        self.files.insert(segment, reply.body.into());
        Ok(())
    }

    fn code(&self, place: &CodePlace) -> Option<&[u8]> {
        let from = usize::try_from(place.offset).ok()?;
        self.files.get(&place.segment)?.get(from..from.checked_add(place.length as usize)?)
    }

    fn in_file(&self, index: usize) -> &[u8] {
        self.code(&self.places[index]).expect("it was mapped before")
    }
}

impl Transport for Mapped {
    fn call(&mut self, payload: &Payload, memory: &mut Memory) -> anyhow::Result<Timing> {
        let (mut timing, reply) = self.asking.ask(payload, &[("deponent-codes", "mapped")])?;
        let is_mapped = reply.headers.get("deponent-codes").is_some_and(|form| form == "mapped");
        ensure!(is_mapped, "its codes are not mapped");
        let mut places = std::mem::take(&mut self.places);
        decode::ssz_mapped(&reply.body, &mut memory.lists, &mut places)?;
        self.asking.reply = Some(reply);
        for place in &places {
            if self.code(place).is_none() {
                self.map(place.segment)?;
            }
            ensure!(self.code(place).is_some(), "{place:?} is not in its file");
        }
        self.places = places;
        // Both lists are sorted; so are they together then.
        let mut merged = std::mem::take(&mut self.merged);
        merged.clear();
        let mut in_files = (0..self.places.len()).peekable();
        for (sent, range) in memory.lists.codes.iter().enumerate() {
            let code = &self.asking.body()[range.clone()];
            while let Some(index) = in_files.next_if(|index| self.in_file(*index) < code) {
                merged.push(Code::InFile(index));
            }
            merged.push(Code::Sent(sent));
        }
        merged.extend(in_files.map(Code::InFile));
        self.merged = merged;
        timing.end();
        Ok(timing)
    }

    fn items<'a>(&'a self, memory: &'a Memory) -> [Vec<&'a [u8]>; 3] {
        let [headers, sent, state] = slices(&memory.lists, self.asking.body());
        let codes = self.merged.iter().map(|code| match code {
            Code::Sent(at) => sent[*at],
            Code::InFile(index) => self.in_file(*index),
        });
        [headers, codes.collect(), state]
    }

    fn verdict(&mut self, payload: &Payload) -> Option<anyhow::Result<wire::Timing>> {
        self.asking.verdict(payload)
    }
}

/// The same over a Unix socket, and codes that came before on the connection are not sent again
/// but named by their numbers.
struct Held {
    endpoint: Endpoint,
    osaka_time: u64,
    connection: Option<Connection>,
    /// All codes that came on the connection, in the order of their numbers.
    codes: Vec<Box<[u8]>>,
    /// Of the last answer.
    held: Vec<u32>,
    /// The codes of the last witness, in its order, by their numbers.
    merged: Vec<usize>,
    /// The last request, whose answer brings the codes back after a connection has ended.
    last: Option<([Header; 3], Vec<u8>)>,
}

impl Held {
    fn new(endpoint: Endpoint, osaka_time: u64) -> Self {
        let (codes, held, merged) = (Vec::new(), Vec::new(), Vec::new());
        Self { endpoint, osaka_time, connection: None, codes, held, merged, last: None }
    }

    /// Sees to it that there is a connection on which the codes came.
    fn connect(&mut self, memory: &mut Memory) -> anyhow::Result<()> {
        if self.connection.as_mut().is_some_and(|kept| ask(kept).is_ok()) {
            return Ok(());
        }
        self.connection = Some(Connection::open(Framing::Http1, &self.endpoint)?);
        self.codes.clear();
        if let Some((headers, body)) = self.last.take() {
            self.exchange(headers, &body, memory)?;
            self.last = Some((headers, body));
        }
        Ok(())
    }

    fn exchange(
        &mut self,
        headers: [Header; 3],
        body: &[u8],
        memory: &mut Memory,
    ) -> anyhow::Result<Timing> {
        let connection = self.connection.as_mut().context("there is a connection")?;
        let mut timing = Timing::start();
        connection.send(&post(WITNESS_PATH, &headers, body))?;
        let mut body = connection.body()?;
        timing.first_byte = timing.elapsed();
        memory.read_all(&mut *body, &mut timing)?;
        drop(body);
        let first = connection.header("deponent-codes").context("codes are not numbered")?;
        let first: usize = first.parse()?;
        memory.decode_lacking(&mut self.held)?;
        ensure!(first == 0 || first == self.codes.len(), "the numbers begin with {first}");
        self.codes.truncate(first);
        let bytes = memory.bytes();
        let new = memory.lists.codes.iter().map(|code| Box::<[u8]>::from(&bytes[code.clone()]));
        self.codes.extend(new);
        self.merge(first)?;
        timing.end();
        Ok(timing)
    }

    /// Both the codes that are held and those from number `first` on are sorted; so are they
    /// together then.
    fn merge(&mut self, first: usize) -> anyhow::Result<()> {
        let codes = &self.codes;
        let is_held = |number: &u32| (*number as usize) < first;
        ensure!(self.held.iter().all(is_held), "a code is held that was never sent");
        let mut held = self.held.iter().map(|number| *number as usize).peekable();
        self.merged.clear();
        for new in first..codes.len() {
            while let Some(number) = held.next_if(|number| codes[*number] < codes[new]) {
                self.merged.push(number);
            }
            self.merged.push(new);
        }
        self.merged.extend(held);
        Ok(())
    }
}

/// Asks for something small, to see whether the connection is still there.
fn ask(connection: &mut Connection) -> anyhow::Result<u64> {
    let path = "/engine/v1/capabilities";
    connection.send(&Request { method: "GET", path, headers: &[], body: &[] })?;
    let mut body = connection.body()?;
    Ok(std::io::copy(&mut body, &mut std::io::sink())?)
}

impl Transport for Held {
    fn call(&mut self, payload: &Payload, memory: &mut Memory) -> anyhow::Result<Timing> {
        self.connect(memory)?;
        let ([first, second], body) = ssz_request(payload, self.osaka_time)?;
        let headers = [first, second, ("deponent-codes", "held")];
        let timing = self.exchange(headers, &body, memory)?;
        self.last = Some((headers, body));
        Ok(timing)
    }

    fn items<'a>(&'a self, memory: &'a Memory) -> [Vec<&'a [u8]>; 3] {
        let [headers, _, state] = slices(&memory.lists, memory.bytes());
        let codes = self.merged.iter().map(|number| &*self.codes[*number]).collect();
        [headers, codes, state]
    }
}
