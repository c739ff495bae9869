//! The client: which call goes where, for which fork, and how often.

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadSidecar, ForkchoiceState, ForkchoiceUpdated,
    PayloadAttributes, PayloadId, PayloadStatus,
};
use engine_api::{
    BuiltPayload, EXCHANGE_CAPABILITIES, EngineMethod, Fork, ForkchoiceUpdate, GET_CLIENT_VERSION,
    NewPayload, REST_BASE,
};
use rpc::rest::{DESCRIPTOR, HeaderMap, HeaderValue, Method, OWN_FILE, StatusCode};
use rpc::{Client, ClientError, Code, JwtSecret, RawValue, Reply, Spare, response};
use serde::Serialize;
use std::time::Duration;
use witness::Witness;

use crate::held::{self, Held};
use crate::limits::REPEATS;
use crate::mapped::{Lacking, MAPPED, Mapped};
use crate::rest;
use crate::{Capabilities, ClientVersion, Error, Wire, WitnessAnswer, json};

/// A client of the Engine API: one connection, one call at a time.
///
/// **Forks.** The header `Eth-Execution-Version`, and over JSON-RPC the method's version, follow
/// from the fields that a payload or the attributes of one have. Prague's and Osaka's are the same,
/// and those of Cancun's attributes: there the fork goes first that the server took the last time,
/// at first Osaka, and the others follow as long as it answers that the block is of another fork,
/// which changes nothing. [`EngineClient::set_fork`] says otherwise.
///
/// **Repeats.** A call whose connection broke before the answer was complete is sent again, twice
/// at most, if that is safe: what only reads is, and a new payload, which its hash names. A fork
/// choice is not: another may have come in between. Nothing else is repeated, so no call that took
/// too long ([`EngineClient::set_timeout`]). A connection that ended is opened again by the next
/// call.
///
/// **Memory.** Large answers are read, and over JSON-RPC decoded, into memory that the client used
/// before, once nobody holds a slice of it.
///
/// **Codes.** With [`EngineClient::hold_codes`] a client keeps the codes that it receives, and is
/// sent those alone that it lacks; with [`EngineClient::map_codes`] it reads them in the server's
/// files.
#[derive(Debug)]
pub struct EngineClient {
    rpc: Client,
    wire: Wire,
    /// The fork that the caller says.
    said: Option<Fork>,
    /// The last one that the server did not refuse.
    taken: Fork,
    /// Where codes are to be held.
    held: Option<Held>,
    /// Where they are to be mapped, unless they are held.
    mapped: Option<Mapped>,
    spare: Spare,
}

impl EngineClient {
    /// Connects to `host:port`, `http://host:port` or `unix:/path/of/a/socket`, with the secret
    /// that the port asks for, and takes the fastest [`Wire`] that the server has:
    /// [`Descriptor`](Wire::Descriptor) on a Unix socket and [`Ssz`](Wire::Ssz) elsewhere if
    /// `GET /engine/v1/capabilities` is answered, [`Json`](Wire::Json) if not.
    ///
    /// # Errors
    /// When the server refuses the token, or cannot be asked.
    pub async fn connect(address: &str, secret: Option<JwtSecret>) -> Result<Self, Error> {
        let mut rpc = Client::connect(address, secret).await?;
        let wire = Wire::best(&mut rpc, address).await?;
        Ok(Self::new(rpc, wire))
    }

    /// As [`connect`](Self::connect), over a wire of the caller's choice. Nothing is asked.
    pub async fn connect_over(
        wire: Wire,
        address: &str,
        secret: Option<JwtSecret>,
    ) -> Result<Self, Error> {
        Ok(Self::new(Client::connect(address, secret).await?, wire))
    }

    fn new(rpc: Client, wire: Wire) -> Self {
        let (taken, spare) = (Fork::Osaka, Spare::default());
        Self { rpc, wire, said: None, taken, held: None, mapped: None, spare }
    }

    /// The form in which calls travel.
    pub const fn wire(&self) -> Wire {
        self.wire
    }

    /// The connection that all calls go over: for methods that this client has no function for, and
    /// for the [times](Client::last_times) of the last answer.
    pub const fn connection(&mut self) -> &mut Client {
        &mut self.rpc
    }

    /// Says for which fork all calls from here on are; with `None` that follows from their fields.
    pub const fn set_fork(&mut self, fork: Option<Fork>) {
        self.said = fork;
    }

    /// Bounds each call from here on: 120 seconds at first. What is repeated has as much each time.
    pub fn set_timeout(&mut self, call_time: Duration) {
        self.rpc.set_timeout(call_time);
    }

    /// Keeps the codes of witnesses that come with payloads, as copies, and says so: from here on
    /// the server, if it is Deponent, sends those alone that it has not sent on this connection.
    /// The witnesses are whole all the same. Codes of more than `most_bytes` together are let go
    /// after the call, with the connection; with 0 none are held. They are not mapped then. Not
    /// over JSON-RPC.
    pub fn hold_codes(&mut self, most_bytes: usize) {
        // What was held counts for this connection.
        self.rpc.hang_up();
        self.held = (most_bytes > 0).then(|| Held::new(most_bytes));
        self.mapped = None;
    }

    /// Has the codes of witnesses that come with payloads read where they lie: in the files of the
    /// server, if it is Deponent, which are mapped when they are first named. The witnesses are
    /// whole all the same, and what is mapped stays while there is a slice of it. Over TCP payloads
    /// are refused then, by a problem; over JSON-RPC nothing changes.
    ///
    /// Where codes lie is believed, as the rest of a witness is before it is verified. The files
    /// cannot be sealed: whoever can write to the server's data directory can change codes while
    /// they are read, and cut files, which ends who reads them with a `SIGBUS`.
    pub fn map_codes(&mut self, are_mapped: bool) {
        self.hold_codes(0);
        self.mapped = are_mapped.then(Mapped::default);
    }

    /// Asks for answers in zstd from here on, or as they are, which is what a client begins with.
    /// It pays on networks below some 2 Gbit/s; what comes by descriptor is never compressed.
    #[cfg(feature = "zstd")]
    pub const fn set_zstd(&mut self, is_asked_for: bool) {
        self.rpc.set_zstd(is_asked_for);
    }

    /// Has a payload validated: `engine_newPayload`, `POST payloads`. `INVALID_BLOCK_HASH` is
    /// INVALID.
    pub async fn new_payload(
        &mut self,
        payload: &ExecutionPayload,
        sidecar: &ExecutionPayloadSidecar,
    ) -> Result<PayloadStatus, Error> {
        Ok(self.validate(payload, sidecar, false).await?.0)
    }

    /// Has a payload validated, and gives the witness of a VALID one:
    /// `engine_newPayloadWithWitness`, `POST payloads/witness`.
    pub async fn new_payload_with_witness(
        &mut self,
        payload: &ExecutionPayload,
        sidecar: &ExecutionPayloadSidecar,
    ) -> Result<(PayloadStatus, Option<WitnessAnswer>), Error> {
        self.validate(payload, sidecar, true).await
    }

    async fn validate(
        &mut self,
        payload: &ExecutionPayload,
        sidecar: &ExecutionPayloadSidecar,
        with_witness: bool,
    ) -> Result<(PayloadStatus, Option<WitnessAnswer>), Error> {
        let call = NewPayload::new(payload.clone(), sidecar)?;
        let content = match self.wire {
            Wire::Json => Content::Json(call.to_json()?),
            Wire::Ssz | Wire::Descriptor => {
                let body = call.to_ssz().map_err(|error| Error::Encode(error.to_string()))?;
                Content::Ssz(body.into())
            }
        };
        let mut forks = self.forks(call.forks());
        loop {
            let outcome = match &content {
                Content::Json(params) => {
                    let method = match with_witness {
                        true => EngineMethod::NewPayloadWithWitness,
                        false => EngineMethod::NewPayload,
                    };
                    let method = method.name(method.version(forks.now));
                    let spare = self.spare.clone();
                    let read = |result: &RawValue| json::status(result, &spare);
                    self.call(method, params, REPEATS, read).await
                }
                Content::Ssz(body) if with_witness => self.post_for_witness(forks.now, body).await,
                Content::Ssz(body) => {
                    let reply = self.post("payloads", forks.now, body, REPEATS).await;
                    reply.and_then(|reply| Ok((rest::status(reply)?, None)))
                }
            };
            if self.is_last(&mut forks, &outcome) {
                return outcome;
            }
        }
    }

    /// Makes a block the head, and begins to build on it where there are attributes:
    /// `engine_forkchoiceUpdated`, `POST forkchoice`.
    pub async fn forkchoice_updated(
        &mut self,
        state: ForkchoiceState,
        attributes: Option<PayloadAttributes>,
    ) -> Result<ForkchoiceUpdated, Error> {
        let mut forks = self.forks(forks_of_attributes(attributes.as_ref()));
        let params = json::params(&(state, &attributes))?;
        let update = ForkchoiceUpdate {
            forkchoice_state: state,
            payload_attributes: attributes,
            custody_columns: None,
        };
        loop {
            let outcome = match self.wire {
                Wire::Json => {
                    let method = EngineMethod::ForkchoiceUpdated;
                    let method = method.name(method.version(forks.now));
                    self.call(method, &params, 0, json::forkchoice_updated).await
                }
                Wire::Ssz | Wire::Descriptor => {
                    let body = update.encode(forks.now).into();
                    let reply = self.post("forkchoice", forks.now, &body, 0).await;
                    reply.and_then(rest::forkchoice_updated)
                }
            };
            if self.is_last(&mut forks, &outcome) {
                return outcome;
            }
        }
    }

    /// The payload that was begun under this id: `engine_getPayload`, `GET payloads/{id}`.
    pub async fn get_payload(&mut self, id: PayloadId) -> Result<BuiltPayload, Error> {
        let mut forks = self.forks(&NEWEST_FIRST);
        loop {
            let outcome = match self.wire {
                Wire::Json => {
                    let method = EngineMethod::GetPayload;
                    let method = method.name(method.version(forks.now));
                    let read = |built: &RawValue| Ok(serde_json::from_str(built.get())?);
                    self.call(method, &[id], REPEATS, read).await
                }
                Wire::Ssz | Wire::Descriptor => {
                    let reply = self.get(&format!("payloads/{id}"), Some(forks.now)).await;
                    let read = |reply: Reply| BuiltPayload::decode(forks.now, &reply.body.into());
                    reply.and_then(|reply| Ok(read(reply)?))
                }
            };
            let is_missing = |error: &rpc::Error| error.is(Code::MethodNotFound);
            // A server may know less of what is to come than of what it has.
            if matches!(&outcome, Err(Error::Rpc(error)) if is_missing(error)) && forks.go_on() {
                continue;
            }
            if self.is_last(&mut forks, &outcome) {
                return outcome;
            }
        }
    }

    /// The witness of a valid block: `GET witnesses/{blockHash}`, and over JSON-RPC, which has
    /// it on the public port and on a Unix socket, `debug_executionWitnessByBlockHash` or what
    /// others call it: `debug_executionWitnessByHash`, or `debug_executionWitness` with a hash.
    pub async fn witness(&mut self, block_hash: B256) -> Result<Witness, Error> {
        if self.wire != Wire::Json {
            let reply = self.get(&format!("witnesses/{block_hash}"), None).await?;
            return Ok(witness::ssz::decode(&reply.body.into())?);
        }
        let spare = self.spare.clone();
        let read = |result: &RawValue| json::witness(result, &spare);
        for method in ["debug_executionWitnessByBlockHash", "debug_executionWitnessByHash"] {
            match self.call(method, &[block_hash], REPEATS, read).await {
                Err(Error::Rpc(error)) if error.is(Code::MethodNotFound) => {}
                outcome => return outcome,
            }
        }
        self.call("debug_executionWitness", &[block_hash], REPEATS, read).await
    }

    /// What a prover of an Amsterdam block is given, EIP-8025's `StatelessInput` behind its schema:
    /// `GET stateless-inputs/{blockHash}`. Not over JSON-RPC.
    pub async fn stateless_input(&mut self, block_hash: B256) -> Result<Bytes, Error> {
        if self.wire == Wire::Json {
            return Err(Error::NotOverJson("stateless input"));
        }
        let reply = self.get(&format!("stateless-inputs/{block_hash}"), None).await?;
        Ok(reply.body.into())
    }

    /// What the server can do: `GET capabilities`, `engine_exchangeCapabilities`.
    pub async fn capabilities(&mut self) -> Result<Capabilities, Error> {
        if self.wire != Wire::Json {
            return rest::capabilities(&self.get("capabilities", None).await?);
        }
        let read = |result: &RawValue| Ok(serde_json::from_str(result.get())?);
        // We are no consensus client, which would say here what it may call.
        let ours: [[&str; 0]; 1] = [[]];
        let endpoints = self.call(EXCHANGE_CAPABILITIES, &ours, REPEATS, read).await?;
        Ok(Capabilities { endpoints, ..Capabilities::default() })
    }

    /// Who the server is, and those behind it: `GET identity`, `engine_getClientVersionV1`.
    pub async fn identity(&mut self) -> Result<Vec<ClientVersion>, Error> {
        if self.wire != Wire::Json {
            let reply = self.get("identity", None).await?;
            return Ok(serde_json::from_slice(&reply.body)?);
        }
        let read = |result: &RawValue| Ok(serde_json::from_str(result.get())?);
        let ours = ClientVersion {
            code: "DP".into(),
            name: env!("CARGO_PKG_NAME").into(),
            version: concat!("v", env!("CARGO_PKG_VERSION")).into(),
            commit: "0x00000000".into(),
        };
        self.call(GET_CLIENT_VERSION, &[ours], REPEATS, read).await
    }

    /// Calls a method of JSON-RPC.
    async fn call<T>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        mut repeats: usize,
        read: impl Fn(&RawValue) -> Result<T, Error>,
    ) -> Result<T, Error> {
        loop {
            match self.rpc.call_raw(method, params).await {
                Err(ClientError::Broken { .. }) if repeats > 0 => repeats -= 1,
                answer => return read(response::result(&answer?)?),
            }
        }
    }

    /// `POST payloads/witness`.
    async fn post_for_witness(
        &mut self,
        fork: Fork,
        body: &Bytes,
    ) -> Result<(PayloadStatus, Option<WitnessAnswer>), Error> {
        if self.mapped.is_some() {
            return self.post_for_mapped(fork, body).await;
        }
        let codes = self.held.is_some().then_some(held::HELD);
        let reply = self.ask_for_witness(fork, body, codes.clone()).await;
        let Some(held) = &mut self.held else { return rest::with_witness(reply?) };
        if reply.as_ref().is_err_and(|error| !error.is_unsupported_fork()) {
            // The server may have counted what never came.
            self.rpc.hang_up();
        }
        let mut reply = reply?;
        let mut read = held.read(&reply);
        if let Ok(None) = read {
            // An answer was lost, and the numbers with it: both begin anew.
            self.rpc.hang_up();
            reply = self.ask_for_witness(fork, body, codes).await?;
            read = self.held.as_mut().expect("they still are").read(&reply);
        }
        let held = self.held.as_mut().expect("they still are");
        if read.is_err() || held.is_full() {
            held.forget();
            self.rpc.hang_up();
        }
        let anew = || Error::Decode("codes are numbered from nowhere on a new connection".into());
        Ok(rest::answered(read?.ok_or_else(anew)?, &reply))
    }

    /// The same, with codes that are read in the server's files.
    async fn post_for_mapped(
        &mut self,
        fork: Fork,
        body: &Bytes,
    ) -> Result<(PayloadStatus, Option<WitnessAnswer>), Error> {
        let reply = self.ask_for_witness(fork, body, Some(MAPPED)).await?;
        let lacking = Lacking::read(&reply)?;
        let connection = self.rpc.connections();
        self.mapped().begin(connection);
        for segment in lacking.segments(self.mapped()) {
            let Some(file) = self.code_file(segment).await? else {
                // It is gone, or the connection is. All codes come as bytes then.
                return rest::with_witness(self.ask_for_witness(fork, body, None).await?);
            };
            self.mapped().insert(segment, file);
        }
        Ok(rest::answered(lacking.complete(self.mapped())?, &reply))
    }

    const fn mapped(&mut self) -> &mut Mapped {
        self.mapped.as_mut().expect("they are mapped")
    }

    /// `GET code-files/{segment}`: `None` if there is no such file on this connection.
    async fn code_file(&mut self, segment: u64) -> Result<Option<Bytes>, Error> {
        let connection = self.rpc.connections();
        let path = format!("{REST_BASE}code-files/{segment}");
        let headers = HeaderMap::from_iter([(DESCRIPTOR, OWN_FILE)]);
        let reply = match self.rpc.request(Method::GET, &path, headers, Bytes::new().0).await {
            Err(ClientError::Broken { .. }) => return Ok(None),
            reply => reply?,
        };
        let is_passed = reply.status == StatusCode::OK && reply.headers.contains_key(DESCRIPTOR);
        let is_same = self.rpc.connections() == connection;
        Ok((is_passed && is_same).then(|| reply.body.into()))
    }

    async fn ask_for_witness(
        &mut self,
        fork: Fork,
        body: &Bytes,
        codes: Option<HeaderValue>,
    ) -> Result<Reply, Error> {
        let mut headers = rest::headers(self.wire, Some(fork));
        headers.extend(codes.map(|codes| (held::CODES, codes)));
        self.request(Method::POST, "payloads/witness", headers, body, REPEATS).await
    }

    async fn post(
        &mut self,
        path: &str,
        fork: Fork,
        body: &Bytes,
        repeats: usize,
    ) -> Result<Reply, Error> {
        let headers = rest::headers(self.wire, Some(fork));
        self.request(Method::POST, path, headers, body, repeats).await
    }

    async fn get(&mut self, path: &str, fork: Option<Fork>) -> Result<Reply, Error> {
        let headers = rest::headers(self.wire, fork);
        self.request(Method::GET, path, headers, &Bytes::new(), REPEATS).await
    }

    /// Asks for a resource.
    async fn request(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: &Bytes,
        mut repeats: usize,
    ) -> Result<Reply, Error> {
        let path = format!("{REST_BASE}{path}");
        loop {
            let body = body.0.clone();
            match self.rpc.request(method.clone(), &path, headers.clone(), body).await {
                Err(ClientError::Broken { .. }) if repeats > 0 => repeats -= 1,
                reply => return rest::checked(reply?),
            }
        }
    }

    /// The forks to try, of those that fit.
    fn forks(&self, fitting: &'static [Fork]) -> Forks {
        match self.said {
            Some(fork) => Forks { now: fork, others: &[], tried: fork },
            None if fitting.contains(&self.taken) => {
                Forks { now: self.taken, others: fitting, tried: self.taken }
            }
            None => Forks { now: fitting[0], others: &fitting[1..], tried: fitting[0] },
        }
    }

    /// Whether this is the outcome; if not, the next fork is to be tried.
    fn is_last<T>(&mut self, forks: &mut Forks, outcome: &Result<T, Error>) -> bool {
        match outcome {
            Ok(_) => self.taken = forks.now,
            Err(error) if error.is_unsupported_fork() => return !forks.go_on(),
            Err(_) => {}
        }
        true
    }
}

/// What is sent of a payload.
enum Content {
    Json(Box<RawValue>),
    Ssz(Bytes),
}

/// Forks to try one after the other, as long as each is refused.
struct Forks {
    now: Fork,
    others: &'static [Fork],
    /// The one that went first, though perhaps not the first of those that fit.
    tried: Fork,
}

impl Forks {
    /// Goes on with the next fork, if there is one.
    fn go_on(&mut self) -> bool {
        let Some((next, others)) = self.others.split_first() else { return false };
        (self.now, self.others) = (*next, others);
        *next != self.tried || self.go_on()
    }
}

const NEWEST_FIRST: [Fork; 6] =
    [Fork::Amsterdam, Fork::Osaka, Fork::Prague, Fork::Cancun, Fork::Shanghai, Fork::Paris];

/// The forks whose attributes have these fields. Without attributes a fork choice may be of any.
fn forks_of_attributes(attributes: Option<&PayloadAttributes>) -> &'static [Fork] {
    match attributes {
        None => &[Fork::Osaka, Fork::Prague, Fork::Cancun, Fork::Shanghai, Fork::Paris],
        Some(given) if given.slot_number.is_some() => &[Fork::Amsterdam],
        Some(given) if given.parent_beacon_block_root.is_some() => {
            &[Fork::Osaka, Fork::Prague, Fork::Cancun]
        }
        Some(given) if given.withdrawals.is_some() => &[Fork::Shanghai],
        Some(_) => &[Fork::Paris],
    }
}
