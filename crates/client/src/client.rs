//! The client: calls, the forks they are for, and repeats.

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadSidecar, ForkchoiceState, ForkchoiceUpdated,
    PayloadAttributes, PayloadId, PayloadStatus,
};
use engine_api::{
    BuiltPayload, EXCHANGE_CAPABILITIES, EngineMethod, Fork, ForkchoiceUpdate, GET_CLIENT_VERSION,
    NewPayload, REST_BASE,
};
use rpc::rest::{DESCRIPTOR, HeaderMap, Method, OWN_FILE, StatusCode};
use rpc::{Client, ClientError, Code, JwtSecret, RawValue, Reply, Spare, response};
use serde::Serialize;
use std::time::Duration;
use witness::Witness;

use crate::codes::{ClientCodes, HeldCodes, MappedFiles, PartialAnswer};
use crate::limits::{LONG_ANSWER_BYTES as LONG, REPEATS, SHORT_ANSWER_BYTES as SHORT};
use crate::{Capabilities, ClientVersion, CodeCache, Error, Wire, WitnessAnswer, json, rest};

/// Options of a connection.
///
/// ```
/// use deponent_client::{CodeCache, ConnectOptions, Wire};
///
/// let options = ConnectOptions {
///     wire: Some(Wire::Ssz),
///     codes: CodeCache::Held { most_bytes: 64 << 20 },
///     ..ConnectOptions::default()
/// };
/// assert!(options.secret.is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// The secret of a port that asks for tokens.
    pub secret: Option<JwtSecret>,
    /// The wire; with `None` the fastest that the server has.
    pub wire: Option<Wire>,
    /// Which codes of witnesses the server leaves out.
    pub codes: CodeCache,
}

/// A client of the Engine API: one connection, one call at a time.
///
/// **Forks.** The header `Eth-Execution-Version`, and over JSON-RPC the method's version, follow
/// from the fields that a payload or the attributes of one have. Prague's and Osaka's are the same,
/// and so are those of Cancun's attributes. Of several forks that fit, the one goes first that the
/// server accepted the last time, at first Osaka; the others follow as long as the server answers
/// that the block is of another fork, which changes nothing. [`EngineClient::set_fork`] fixes it.
///
/// **Repeats.** A call whose connection broke before the answer was complete is sent again, twice
/// at most, if that is safe: calls that only read are, and a new payload, which its hash names. A
/// fork choice is not: another may have come in between. Nothing else is repeated, so neither is a
/// call that took too long ([`EngineClient::set_timeout`]). A connection that ended is opened again
/// by the next call.
///
/// **Memory.** Large answers are read, and over JSON-RPC decoded, into memory that the client used
/// before, once the last slice of it is dropped.
///
/// **Codes.** A [`CodeCache`] keeps the server from sending codes that the client has.
#[derive(Debug)]
pub struct EngineClient {
    rpc: Client,
    wire: Wire,
    /// The fork that the caller fixed.
    fixed_fork: Option<Fork>,
    /// The fork that the server accepted the last time.
    accepted_fork: Fork,
    codes: ClientCodes,
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
        Self::connect_with(address, ConnectOptions { secret, ..ConnectOptions::default() }).await
    }

    /// As [`connect`](Self::connect), over a wire of the caller's choice. Nothing is asked.
    ///
    /// # Errors
    /// When the server takes no connection.
    pub async fn connect_over(
        wire: Wire,
        address: &str,
        secret: Option<JwtSecret>,
    ) -> Result<Self, Error> {
        let wire = Some(wire);
        Self::connect_with(address, ConnectOptions { secret, wire, ..Default::default() }).await
    }

    /// As [`connect`](Self::connect), with all options.
    ///
    /// # Errors
    /// When the server takes no connection; where the options name no wire, as
    /// [`connect`](Self::connect).
    pub async fn connect_with(address: &str, options: ConnectOptions) -> Result<Self, Error> {
        let ConnectOptions { secret, wire, codes } = options;
        let mut rpc = Client::connect(address, secret).await?;
        let wire = match wire {
            Some(wire) => wire,
            None => Wire::best(&mut rpc, address).await?,
        };
        Ok(Self {
            rpc,
            wire,
            fixed_fork: None,
            accepted_fork: Fork::Osaka,
            codes: codes.into(),
            spare: Spare::default(),
        })
    }

    /// The form in which calls travel.
    pub const fn wire(&self) -> Wire {
        self.wire
    }

    /// The connection of all calls, for calls that this client has no function for, and for the
    /// [times](Client::last_times) of the last answer.
    pub const fn connection(&mut self) -> &mut Client {
        self.rpc.set_answer_bytes(LONG);
        &mut self.rpc
    }

    /// Fixes the fork of all calls from here on; with `None` it follows from their fields.
    pub const fn set_fork(&mut self, fork: Option<Fork>) {
        self.fixed_fork = fork;
    }

    /// Bounds each call from here on; at first by 120 seconds. A repeated call has as much again.
    pub fn set_timeout(&mut self, call_time: Duration) {
        self.rpc.set_timeout(call_time);
    }

    /// Asks for answers in zstd from here on, or as they are, which is what a client begins with.
    /// It pays on networks below some 2 Gbit/s; what comes by descriptor is never compressed.
    #[cfg(feature = "zstd")]
    pub const fn set_zstd(&mut self, is_asked_for: bool) {
        self.rpc.set_zstd(is_asked_for);
    }

    /// Has a payload validated: `engine_newPayload`, `POST payloads`. `INVALID_BLOCK_HASH` is
    /// INVALID.
    ///
    /// # Errors
    /// [`Error::Encode`] when the sidecar lacks what the payload's version has; else as all calls:
    /// when no answer came, or it is a refusal, or it cannot be read.
    pub async fn new_payload(
        &mut self,
        payload: &ExecutionPayload,
        sidecar: &ExecutionPayloadSidecar,
    ) -> Result<PayloadStatus, Error> {
        Ok(self.validate(payload, sidecar, false).await?.0)
    }

    /// Has a payload validated, and returns the witness of a VALID one:
    /// `engine_newPayloadWithWitness`, `POST payloads/witness`.
    ///
    /// # Errors
    /// As [`new_payload`](Self::new_payload).
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
            Wire::Json => PayloadBody::Json(call.to_json()?),
            Wire::Ssz | Wire::Descriptor => {
                let body = call.to_ssz().map_err(|error| Error::Encode(error.to_string()))?;
                PayloadBody::Ssz(body.into())
            }
        };
        let mut forks = self.forks(call.forks());
        loop {
            let outcome = match &content {
                PayloadBody::Json(params) => {
                    let method = match with_witness {
                        true => EngineMethod::NewPayloadWithWitness,
                        false => EngineMethod::NewPayload,
                    };
                    let method = method.name(method.version(forks.now));
                    let spare = self.spare.clone();
                    let read = |result: &str| json::status(result, &spare);
                    let most_bytes = if with_witness { LONG } else { SHORT };
                    self.json_call(method, params, most_bytes, REPEATS, read).await
                }
                PayloadBody::Ssz(body) if with_witness => {
                    self.post_for_witness(forks.now, body).await
                }
                PayloadBody::Ssz(body) => {
                    let reply = self.post("payloads", forks.now, body, SHORT, REPEATS).await;
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
    ///
    /// # Errors
    /// When no answer came (the call may have run), or it is a refusal, or it cannot be read.
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
                    self.json_call(method, &params, SHORT, 0, json::forkchoice_updated).await
                }
                Wire::Ssz | Wire::Descriptor => {
                    let body = update.encode(forks.now).into();
                    let reply = self.post("forkchoice", forks.now, &body, SHORT, 0).await;
                    reply.and_then(rest::forkchoice_updated)
                }
            };
            if self.is_last(&mut forks, &outcome) {
                return outcome;
            }
        }
    }

    /// The payload that was begun under this id: `engine_getPayload`, `GET payloads/{id}`.
    ///
    /// # Errors
    /// When no answer came, or it is a refusal (the server has no such build), or it cannot be
    /// read.
    pub async fn get_payload(&mut self, id: PayloadId) -> Result<BuiltPayload, Error> {
        let mut forks = self.forks(&NEWEST_FIRST);
        loop {
            let outcome = match self.wire {
                Wire::Json => {
                    let method = EngineMethod::GetPayload;
                    let method = method.name(method.version(forks.now));
                    let read = |built: &str| Ok(rpc::read_json(built)?);
                    self.json_call(method, &[id], LONG, REPEATS, read).await
                }
                Wire::Ssz | Wire::Descriptor => {
                    let reply = self.get(&format!("payloads/{id}"), Some(forks.now), LONG).await;
                    let read = |reply: Reply| BuiltPayload::decode(forks.now, &reply.body.into());
                    reply.and_then(|reply| Ok(read(reply)?))
                }
            };
            let is_missing = |error: &rpc::Error| error.is(Code::MethodNotFound);
            // The server may not know the newest versions yet.
            if matches!(&outcome, Err(Error::Rpc(error)) if is_missing(error)) && forks.go_on() {
                continue;
            }
            if self.is_last(&mut forks, &outcome) {
                return outcome;
            }
        }
    }

    /// The witness of a valid block: `GET witnesses/{blockHash}`. Over JSON-RPC it is on the public
    /// port and on a Unix socket: `debug_executionWitnessByBlockHash`, or the names of other
    /// clients, `debug_executionWitnessByHash` and `debug_executionWitness` with a hash.
    ///
    /// # Errors
    /// When no answer came, or it is a refusal (the block is unknown or its witness is pruned), or
    /// it cannot be read.
    pub async fn witness(&mut self, block_hash: B256) -> Result<Witness, Error> {
        if self.wire != Wire::Json {
            let reply = self.get(&format!("witnesses/{block_hash}"), None, LONG).await?;
            return Ok(witness::ssz::decode(&reply.body.into())?);
        }
        let spare = self.spare.clone();
        let read = |result: &str| json::witness(result, &spare);
        for method in ["debug_executionWitnessByBlockHash", "debug_executionWitnessByHash"] {
            match self.json_call(method, &[block_hash], LONG, REPEATS, read).await {
                Err(Error::Rpc(error)) if error.is(Code::MethodNotFound) => {}
                outcome => return outcome,
            }
        }
        self.json_call("debug_executionWitness", &[block_hash], LONG, REPEATS, read).await
    }

    /// The input of a prover for a block, EIP-8025's `StatelessInput` behind the id of its schema:
    /// `GET stateless-inputs/{blockHash}`. `with_public_keys` asks for the older form, which has
    /// the signers' public keys. Not over JSON-RPC.
    ///
    /// # Errors
    /// [`Error::NotOverJson`] over JSON-RPC; else when no answer came, or it is a refusal.
    pub async fn stateless_input(
        &mut self,
        block_hash: B256,
        with_public_keys: bool,
    ) -> Result<Bytes, Error> {
        if self.wire == Wire::Json {
            return Err(Error::NotOverJson("stateless input"));
        }
        let query = if with_public_keys { "?public_keys=true" } else { "" };
        let reply = self.get(&format!("stateless-inputs/{block_hash}{query}"), None, LONG).await?;
        Ok(reply.body.into())
    }

    /// The capabilities of the server: `GET capabilities`, `engine_exchangeCapabilities`.
    ///
    /// # Errors
    /// When no answer came, or it is a refusal, or it cannot be read.
    pub async fn capabilities(&mut self) -> Result<Capabilities, Error> {
        if self.wire != Wire::Json {
            return rest::capabilities(&self.get("capabilities", None, SHORT).await?);
        }
        let read = |result: &str| Ok(rpc::read_json(result)?);
        // A consensus client would list its own methods here.
        let ours: [[&str; 0]; 1] = [[]];
        let endpoints = self.json_call(EXCHANGE_CAPABILITIES, &ours, SHORT, REPEATS, read).await?;
        Ok(Capabilities { endpoints, ..Capabilities::default() })
    }

    /// The names and versions of the server and of those behind it: `GET identity`,
    /// `engine_getClientVersionV1`.
    ///
    /// # Errors
    /// When no answer came, or it is a refusal, or it cannot be read.
    pub async fn identity(&mut self) -> Result<Vec<ClientVersion>, Error> {
        if self.wire != Wire::Json {
            let reply = self.get("identity", None, SHORT).await?;
            return Ok(rpc::read_json_bytes(&reply.body)?);
        }
        let read = |result: &str| Ok(rpc::read_json(result)?);
        let ours = ClientVersion {
            code: "DP".into(),
            name: env!("CARGO_PKG_NAME").into(),
            version: concat!("v", env!("CARGO_PKG_VERSION")).into(),
            commit: "0x00000000".into(),
        };
        self.json_call(GET_CLIENT_VERSION, &[ours], SHORT, REPEATS, read).await
    }

    /// Calls any method over JSON-RPC, whatever the wire, and returns the result as it came. The
    /// call is not repeated.
    ///
    /// # Errors
    /// When no answer came, or it is an error of JSON-RPC.
    pub async fn call(
        &mut self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, Error> {
        self.json_call(method, params, LONG, 0, |result| Ok(rpc::read_json(result)?)).await
    }

    /// Calls a method over JSON-RPC, up to `repeats` times more if the connection breaks. The
    /// answer has at most `most_bytes`.
    async fn json_call<T>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        most_bytes: usize,
        mut repeats: usize,
        read: impl Fn(&str) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.rpc.set_answer_bytes(most_bytes);
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
        match &self.codes {
            ClientCodes::Off => rest::with_witness(self.request_all_codes(fork, body).await?),
            ClientCodes::Held(_) => self.post_for_held(fork, body).await,
            ClientCodes::Mapped(_) => self.post_for_mapped(fork, body).await,
        }
    }

    /// The same, without the codes that the client holds.
    async fn post_for_held(
        &mut self,
        fork: Fork,
        body: &Bytes,
    ) -> Result<(PayloadStatus, Option<WitnessAnswer>), Error> {
        let reply = self.request_witness(fork, body).await;
        if reply.as_ref().is_err_and(|error| !error.is_unsupported_fork()) {
            // The server may have counted codes that never came.
            self.rpc.hang_up();
        }
        let mut reply = reply?;
        let mut read = self.held().read(&reply);
        if let Ok(None) = read {
            // An answer was lost, and the numbers with it: both begin anew.
            self.rpc.hang_up();
            reply = self.request_witness(fork, body).await?;
            read = self.held().read(&reply);
        }
        if read.is_err() || self.held().is_full() {
            self.held().clear();
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
        let reply = self.request_witness(fork, body).await?;
        let partial = PartialAnswer::read(&reply)?;
        let connection = self.rpc.connections();
        self.mapped().begin(connection);
        for segment in partial.segments(self.mapped()) {
            let Some(file) = self.code_file(segment).await? else {
                // The file is gone, or the connection is. All codes come as bytes then.
                return rest::with_witness(self.request_all_codes(fork, body).await?);
            };
            self.mapped().insert(segment, file);
        }
        Ok(rest::answered(partial.complete(self.mapped())?, &reply))
    }

    fn held(&mut self) -> &mut HeldCodes {
        match &mut self.codes {
            ClientCodes::Held(held) => held,
            codes => unreachable!("codes are held: {codes:?}"),
        }
    }

    fn mapped(&mut self) -> &mut MappedFiles {
        match &mut self.codes {
            ClientCodes::Mapped(mapped) => mapped,
            codes => unreachable!("codes are mapped: {codes:?}"),
        }
    }

    /// `GET code-files/{segment}`: `None` if there is no such file on this connection.
    async fn code_file(&mut self, segment: u64) -> Result<Option<Bytes>, Error> {
        let connection = self.rpc.connections();
        let path = format!("{REST_BASE}code-files/{segment}");
        let headers = HeaderMap::from_iter([(DESCRIPTOR, OWN_FILE)]);
        // The file itself does not come as a body.
        self.rpc.set_answer_bytes(SHORT);
        let reply = match self.rpc.request(Method::GET, &path, headers, Bytes::new().0).await {
            Err(ClientError::Broken { .. }) => return Ok(None),
            reply => reply?,
        };
        let is_passed = reply.status == StatusCode::OK && reply.headers.contains_key(DESCRIPTOR);
        let is_same = self.rpc.connections() == connection;
        Ok((is_passed && is_same).then(|| reply.body.into()))
    }

    /// Asks for a witness without the codes that the client has.
    async fn request_witness(&mut self, fork: Fork, body: &Bytes) -> Result<Reply, Error> {
        let mut headers = rest::headers(self.wire, Some(fork));
        headers.extend(self.codes.header());
        let body = RequestBody { bytes: body, repeats: REPEATS };
        self.request(Method::POST, "payloads/witness", headers, body, LONG).await
    }

    async fn request_all_codes(&mut self, fork: Fork, body: &Bytes) -> Result<Reply, Error> {
        self.post("payloads/witness", fork, body, LONG, REPEATS).await
    }

    async fn post(
        &mut self,
        path: &str,
        fork: Fork,
        bytes: &Bytes,
        most_bytes: usize,
        repeats: usize,
    ) -> Result<Reply, Error> {
        let headers = rest::headers(self.wire, Some(fork));
        let body = RequestBody { bytes, repeats };
        self.request(Method::POST, path, headers, body, most_bytes).await
    }

    async fn get(
        &mut self,
        path: &str,
        fork: Option<Fork>,
        most_bytes: usize,
    ) -> Result<Reply, Error> {
        let headers = rest::headers(self.wire, fork);
        let body = RequestBody { bytes: &Bytes::new(), repeats: REPEATS };
        self.request(Method::GET, path, headers, body, most_bytes).await
    }

    /// Asks for a resource, whose body has at most `most_bytes`.
    async fn request(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: RequestBody<'_>,
        most_bytes: usize,
    ) -> Result<Reply, Error> {
        let RequestBody { bytes, mut repeats } = body;
        self.rpc.set_answer_bytes(most_bytes);
        let path = format!("{REST_BASE}{path}");
        loop {
            let body = bytes.0.clone();
            match self.rpc.request(method.clone(), &path, headers.clone(), body).await {
                Err(ClientError::Broken { .. }) if repeats > 0 => repeats -= 1,
                reply => return rest::checked(reply?),
            }
        }
    }

    /// The forks to try, of those whose containers fit.
    fn forks(&self, fitting: &'static [Fork]) -> Forks {
        match self.fixed_fork {
            Some(fork) => Forks { now: fork, others: &[], tried: fork },
            None if fitting.contains(&self.accepted_fork) => {
                Forks { now: self.accepted_fork, others: fitting, tried: self.accepted_fork }
            }
            None => Forks { now: fitting[0], others: &fitting[1..], tried: fitting[0] },
        }
    }

    /// Whether this outcome is final; if not, the next fork is to be tried.
    fn is_last<T>(&mut self, forks: &mut Forks, outcome: &Result<T, Error>) -> bool {
        match outcome {
            Ok(_) => self.accepted_fork = forks.now,
            Err(error) if error.is_unsupported_fork() => return !forks.go_on(),
            Err(_) => {}
        }
        true
    }
}

/// A body as it is sent, up to `repeats` times more if the connection breaks.
struct RequestBody<'a> {
    bytes: &'a Bytes,
    repeats: usize,
}

/// A payload as it is sent.
enum PayloadBody {
    Json(Box<RawValue>),
    Ssz(Bytes),
}

/// Forks to try one after the other, as long as each is refused.
struct Forks {
    now: Fork,
    others: &'static [Fork],
    /// The fork that went first, which need not be the first of those that fit.
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
