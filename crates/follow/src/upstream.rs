//! One execution client that is asked for headers and blocks.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use alloy_consensus::Header;
use alloy_primitives::{B256, U64};
use client::{Connection, EndpointAddress};
use execution::{AccessList, SealedBlock};
use rpc::{ClientError, LogThrottle, RawValue, SessionClient, read_json, shown_address};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use crate::answers::{BlockMethod, ListMethod, ListWanted, read_blocks, read_header, read_lists};
use crate::error::Error;
use crate::exchange::Exchange;
use crate::figures::{Counters, UpstreamFigures};
use crate::health::Health;
use crate::limits;
use crate::upstream_state::UpstreamState;

/// The bounds of an [`Upstream`]; the default ones are those of [`limits`].
#[derive(Debug, Clone, Copy)]
pub struct UpstreamOptions {
    /// Bound of a request, with the time to open a connection.
    pub request_time: Duration,
    /// Bound of waiting for access lists, without which blocks run, too.
    pub list_time: Duration,
    /// Bytes of an answer at most.
    pub answer_bytes: usize,
    /// The pause after a first error or lie, which each further one doubles.
    pub first_pause: Duration,
    /// The longest pause.
    pub most_pause: Duration,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            request_time: limits::REQUEST_TIME,
            list_time: limits::LATE_TIME,
            answer_bytes: limits::ANSWER_BYTES,
            first_pause: limits::FIRST_PAUSE,
            most_pause: limits::MOST_PAUSE,
        }
    }
}

/// An execution client that is asked for headers and blocks over HTTP, WebSocket or a Unix socket.
///
/// Connections are opened when they are needed, [`limits::REQUESTS`] at most. Whatever is asked for
/// by hash is checked against it. After an error or a lie it should be left alone for as long as
/// [`pause`](Self::pause) says. It needs a tokio runtime with time and I/O.
pub struct Upstream {
    name: String,
    address: EndpointAddress,
    options: UpstreamOptions,
    /// Connections without a request.
    idle: Mutex<Vec<Connection>>,
    turns: Semaphore,
    health: Mutex<Health>,
    /// Whether it may have `debug_getRawBlock`.
    has_raw_blocks: AtomicBool,
    /// The same of `debug_getRawBlockAccessList`.
    has_raw_lists: AtomicBool,
    /// When it may be asked for access lists again, which it may not have.
    list_health: Mutex<Health>,
    /// Calls in a message at most: fewer where it has refused more.
    batch_len: AtomicUsize,
    counters: Counters,
    error_log: LogThrottle,
    /// Its chain, as far as it has told that.
    chain: Mutex<UpstreamState>,
    /// Told when it does not know a block.
    doubted: Notify,
}

impl Upstream {
    /// The client at an address: a URL of http(s) or ws(s), `HOST:PORT`, or the path of a Unix
    /// socket. It is not called yet.
    ///
    /// # Errors
    /// [`ClientError::Address`] if the text is none of these.
    pub fn parse(text: &str, options: UpstreamOptions) -> Result<Self, ClientError> {
        let address = EndpointAddress::parse(text, None, None)?;
        Ok(Self {
            name: shown_address(text),
            address,
            options,
            idle: Mutex::default(),
            turns: Semaphore::new(limits::REQUESTS),
            health: Mutex::new(Health::new(options.first_pause, options.most_pause)),
            has_raw_blocks: AtomicBool::new(true),
            has_raw_lists: AtomicBool::new(true),
            list_health: Mutex::new(Health::new(options.first_pause, options.most_pause)),
            batch_len: AtomicUsize::new(limits::HEADERS),
            counters: Counters::default(),
            error_log: LogThrottle::minutely(),
            chain: Mutex::default(),
            doubted: Notify::new(),
        })
    }

    /// Where it is, without the password and the path of its URL, which may be secrets.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its counters since the start.
    pub fn figures(&self) -> UpstreamFigures {
        self.counters.figures()
    }

    /// How it is: what it has said of its chain, and whether its last answer was good.
    pub fn state(&self) -> UpstreamState {
        match *self.chain.lock().unwrap_or_else(PoisonError::into_inner) {
            UpstreamState::Unasked | UpstreamState::Answers if self.failures() > 0 => {
                UpstreamState::Fails
            }
            state => state,
        }
    }

    /// Whether it has said that it has another chain.
    pub(crate) fn has_other_chain(&self) -> bool {
        matches!(self.state(), UpstreamState::OtherChain(_))
    }

    /// Asks it for the id of its chain, and notes whether that is this one. That it does not answer
    /// is neither counted nor logged.
    pub(crate) async fn ask_chain(&self, chain_id: u64) -> Result<u64, Error> {
        let method = "eth_chainId";
        let answer = async {
            let exchange = self.exchange(method, &[raw(&[(); 0])]).await?;
            let result = exchange.result().map_err(unanswered(method))?;
            let id: U64 = read_json(result)
                .map_err(|fault| Error::Unreadable { method, reason: fault.to_string() })?;
            Ok(id.to::<u64>())
        };
        let answer = answer.await;
        *self.chain.lock().unwrap_or_else(PoisonError::into_inner) = match &answer {
            Ok(id) if *id == chain_id => UpstreamState::Answers,
            Ok(id) => UpstreamState::OtherChain(*id),
            Err(_) => UpstreamState::Fails,
        };
        answer
    }

    /// Waits until it does not know a block, as one does not that has got another chain.
    pub(crate) async fn until_doubted(&self) {
        self.doubted.notified().await;
    }

    /// How long it is to be left alone; zero where it may be asked.
    pub fn pause(&self) -> Duration {
        self.health().pause(Instant::now())
    }

    /// The longest pause.
    pub(crate) const fn most_pause(&self) -> Duration {
        self.options.most_pause
    }

    /// Errors and lies since its last good answer.
    pub fn failures(&self) -> u32 {
        self.health().failures()
    }

    /// Requests that can be made without waiting for others.
    pub fn free_turns(&self) -> usize {
        self.turns.available_permits()
    }

    /// Whether its connections last, so that subscriptions can be made.
    pub const fn is_session(&self) -> bool {
        self.address.is_session()
    }

    /// A connection of its own for subscriptions; `None` over HTTP.
    ///
    /// # Errors
    /// If no server listens there, or it refuses a WebSocket.
    pub async fn session(&self) -> Result<Option<SessionClient>, Error> {
        if !self.is_session() {
            return Ok(None);
        }
        let method = "connecting";
        let opened = timeout(self.options.request_time, self.open()).await;
        let opened = opened.unwrap_or_else(|_| Err(self.late()));
        match self.settled(opened.map_err(|error| Error::Unanswered { method, error }))? {
            Connection::Session(client) => Ok(Some(client)),
            Connection::Http(_) => Ok(None),
        }
    }

    /// The result of a call. Nothing of it is checked.
    ///
    /// # Errors
    /// [`Error::Unanswered`], [`Error::Unreadable`].
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<T, Error> {
        let answer = async {
            let params = [raw(&params)];
            let exchange = self.exchange(method, &params).await?;
            let result = exchange.result().map_err(unanswered(method))?;
            read_json(result)
                .map_err(|fault| Error::Unreadable { method, reason: fault.to_string() })
        };
        self.settled(answer.await)
    }

    /// The header of the block with this hash.
    ///
    /// # Errors
    /// [`Error::Absent`] where it has none, [`Error::Lie`] where the header has another hash.
    pub async fn header(&self, hash: B256) -> Result<Header, Error> {
        let header = async {
            let method = "eth_getBlockByHash";
            let params = [raw(&(hash, false))];
            let exchange = self.exchange(method, &params).await?;
            let result = exchange.result().map_err(unanswered(method))?;
            let header = read_header(method, result)?.ok_or(Error::Absent(hash))?;
            match header.hash_slow() {
                got if got != hash => {
                    let reason = format!("its header hashes to {got}");
                    Err(Error::Lie { method, hash, reason })
                }
                _ => Ok(header),
            }
        };
        let header = self.settled(header.await)?;
        Counters::add(&self.counters.headers, 1);
        Ok(header)
    }

    /// The header of the block that it has under a tag, as `latest`. It is trusted with that.
    ///
    /// # Errors
    /// [`Error::Unanswered`], [`Error::Unreadable`].
    pub async fn header_at(&self, tag: &str) -> Result<Option<Header>, Error> {
        let header = async {
            let method = "eth_getBlockByNumber";
            let params = [raw(&(tag, false))];
            let exchange = self.exchange(method, &params).await?;
            let result = exchange.result().map_err(unanswered(method))?;
            read_header(method, result)
        };
        self.settled(header.await)
    }

    /// As [`header_at`](Self::header_at), of a client that may answer with an error where it has no
    /// such block.
    ///
    /// # Errors
    /// [`Error::Unanswered`] where there is no answer, [`Error::Unreadable`].
    pub async fn header_if_named(&self, tag: &str) -> Result<Option<Header>, Error> {
        let method = "eth_getBlockByNumber";
        let params = [raw(&(tag, false))];
        let answer = async {
            let exchange = self.exchange(method, &params).await?;
            match exchange.result() {
                Err(ClientError::Rpc(_)) => Ok(None),
                result => read_header(method, result.map_err(unanswered(method))?),
            }
        };
        self.settled(answer.await)
    }

    /// How long it is not asked again for a block that it does not have, after so many such answers
    /// before.
    pub(crate) fn absent_pause(&self, answers: u32) -> Duration {
        let most = self.options.most_pause.min(limits::ABSENT_PAUSE);
        self.options.first_pause.saturating_mul(1 << answers.min(8)).min(most)
    }

    /// Counts a failure that its caller found: it is left alone for a while.
    pub(crate) fn leave_alone(&self) {
        self.health().failed(Instant::now());
    }

    /// The headers that it has under the numbers from `number` downwards, `count` at most, with
    /// their hashes; it ends where it has none. Whether they are the right ones, the caller finds.
    ///
    /// # Errors
    /// [`Error::Unanswered`], [`Error::Unreadable`].
    pub async fn headers_down(
        &self,
        number: u64,
        count: usize,
    ) -> Result<Vec<(B256, Header)>, Error> {
        let headers = async {
            let method = "eth_getBlockByNumber";
            let numbers = (0..count as u64).map_while(|back| number.checked_sub(back));
            let params: Vec<_> = numbers.map(|number| raw(&(U64::from(number), false))).collect();
            let exchange = self.batch(method, &params).await?;
            let mut headers = Vec::new();
            for result in exchange.results().map_err(unanswered(method))? {
                match result {
                    Ok(result) => match read_header(method, result)? {
                        Some(header) => headers.push((header.hash_slow(), header)),
                        None => break,
                    },
                    Err(error) if headers.is_empty() => {
                        return Err(Error::Unanswered { method, error });
                    }
                    Err(_) => break,
                }
            }
            Ok(headers)
        };
        self.settled(headers.await)
    }

    /// Notes that so many headers of [`headers_down`](Self::headers_down) were the right ones.
    pub fn used_headers(&self, count: usize) {
        Counters::add(&self.counters.headers, count);
    }

    /// Blocks with these hashes, from the first on, as many as it gives in one answer; their bodies
    /// have the roots of their headers.
    ///
    /// # Errors
    /// Why there is not even the first; the reason why there is not one more comes with the next
    /// request.
    pub async fn blocks(&self, hashes: &[B256]) -> Result<Vec<SealedBlock>, Error> {
        let blocks = self.some_blocks(hashes).await;
        let blocks = self.settled(blocks)?;
        Counters::add(&self.counters.blocks, blocks.len());
        Ok(blocks)
    }

    /// As RLP where it has that, else as JSON.
    async fn some_blocks(&self, hashes: &[B256]) -> Result<Vec<SealedBlock>, Error> {
        if !self.has_raw_blocks.load(Ordering::Relaxed) {
            return self.blocks_as(BlockMethod::Json, hashes).await;
        }
        let refused = match self.blocks_as(BlockMethod::Raw, hashes).await {
            Err(error) if is_refusal(&error) => error,
            blocks => return blocks,
        };
        // That it does not have the method, or that it does not have the block: the other method
        // tells.
        match self.blocks_as(BlockMethod::Json, hashes).await {
            Ok(blocks) => {
                self.has_raw_blocks.store(false, Ordering::Relaxed);
                let upstream = &self.name;
                tracing::info!(upstream, %refused, "an upstream gives blocks as JSON alone");
                Ok(blocks)
            }
            error => error,
        }
    }

    async fn blocks_as(
        &self,
        form: BlockMethod,
        hashes: &[B256],
    ) -> Result<Vec<SealedBlock>, Error> {
        let params = hashes.iter().map(|hash| match form {
            BlockMethod::Raw => raw(&[hash]),
            BlockMethod::Json => raw(&(hash, true)),
        });
        let exchange = self.batch(form.name(), &params.collect::<Vec<_>>()).await?;
        let hashes = hashes.to_vec();
        // A millisecond for each block, in which this thread could answer others.
        let read = tokio::task::spawn_blocking(move || read_blocks(form, &exchange, &hashes));
        read.await.expect("reading does not panic")
    }

    /// The access lists of those of these blocks that use so much gas, each with the hash in its
    /// block's header; `None` where this one does not give it in time. After an answer without
    /// any it is not asked for lists for a while.
    pub async fn access_lists(
        &self,
        blocks: &[SealedBlock],
        least_gas: u64,
    ) -> Vec<Option<AccessList>> {
        let mut lists: Vec<_> = blocks.iter().map(|_| None).collect();
        let wanted = (0..).zip(blocks).filter(|(_, block)| block.header.gas_used >= least_gas);
        let (places, wanted): (Vec<usize>, Vec<_>) = wanted
            .filter_map(|(place, block)| {
                let list = block.header.block_access_list_hash?;
                let gas_limit = block.header.gas_limit;
                Some((place, ListWanted { block: block.hash(), list, gas_limit }))
            })
            .unzip();
        if wanted.is_empty() || !self.list_health().pause(Instant::now()).is_zero() {
            return lists;
        }
        let mut found = Vec::new();
        let limit = self.options.list_time;
        let asked = timeout(limit, self.some_lists(&wanted, &mut found)).await;
        let asked = asked.unwrap_or_else(|_| {
            let address = self.name.clone();
            let error = ClientError::Timeout { address, limit };
            Err(Error::Unanswered { method: ListMethod::Raw.name(), error })
        });
        let count = found.iter().flatten().count();
        Counters::add(&self.counters.access_lists, count);
        let is_bad = self.settled(asked).is_err();
        match is_bad || count == 0 {
            true => _ = self.list_health().failed(Instant::now()),
            false => self.list_health().succeeded(Instant::now()),
        }
        places.into_iter().zip(found).for_each(|(place, list)| lists[place] = list);
        lists
    }

    /// As RLP where it has that, else within bodies. The lists are those of the first blocks.
    async fn some_lists(
        &self,
        wanted: &[ListWanted],
        found: &mut Vec<Option<AccessList>>,
    ) -> Result<(), Error> {
        if self.has_raw_lists.load(Ordering::Relaxed) {
            let asked = self.lists_as(ListMethod::Raw, wanted, found).await;
            let is_refused = asked.as_ref().err().is_some_and(is_refusal);
            if (asked.is_err() && !is_refused) || found.iter().any(Option::is_some) {
                return asked;
            }
            found.clear();
        }
        match self.lists_as(ListMethod::Bodies, wanted, found).await {
            // It has neither method, which is no fault.
            Err(error) if is_refusal(&error) => {
                self.has_raw_lists.store(true, Ordering::Relaxed);
                Ok(())
            }
            Ok(()) if found.iter().any(Option::is_some) => {
                self.has_raw_lists.store(false, Ordering::Relaxed);
                Ok(())
            }
            asked => asked,
        }
    }

    /// Asks until there are all, or one is wrong.
    async fn lists_as(
        &self,
        method: ListMethod,
        wanted: &[ListWanted],
        found: &mut Vec<Option<AccessList>>,
    ) -> Result<(), Error> {
        while found.len() < wanted.len() {
            let rest = wanted[found.len()..].to_vec();
            let exchange = match method {
                ListMethod::Raw => {
                    let params = rest.iter().map(|wanted| raw(&[wanted.block]));
                    self.batch(method.name(), &params.collect::<Vec<_>>()).await?
                }
                ListMethod::Bodies => {
                    let hashes: Vec<_> = rest.iter().map(|wanted| wanted.block).collect();
                    self.exchange(method.name(), &[raw(&[hashes])]).await?
                }
            };
            // A millisecond for each list, as for blocks.
            let read = tokio::task::spawn_blocking(move || read_lists(method, &exchange, &rest));
            let (lists, end) = read.await.expect("reading does not panic");
            let is_over = lists.iter().all(Option::is_none);
            found.extend(lists);
            end?;
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Calls a method for each of these parameters, from the first on as many as it takes in a
    /// message. That it takes fewer is remembered once it has answered fewer.
    async fn batch(
        &self,
        method: &'static str,
        params: &[Box<RawValue>],
    ) -> Result<Exchange, Error> {
        let before = self.batch_len.load(Ordering::Relaxed);
        let mut most = before;
        loop {
            let len = params.len().min(most);
            let answer = self.exchange(method, &params[..len]).await;
            let is_refused = match &answer {
                Ok(exchange) => exchange.is_refused(),
                Err(Error::Unanswered { error, .. }) => is_too_much(error),
                Err(_) => false,
            };
            if len > 1 && is_refused {
                most = len / 2;
                continue;
            }
            if most < before && answer.as_ref().is_ok_and(Exchange::has_result) {
                self.batch_len.fetch_min(most, Ordering::Relaxed);
            }
            return answer;
        }
    }

    /// Sends a message and waits for its answer.
    async fn exchange(
        &self,
        method: &'static str,
        params: &[Box<RawValue>],
    ) -> Result<Exchange, Error> {
        let _turn = self.turns.acquire().await.expect("it is never closed");
        let answer = async {
            let idle = self.idle().pop();
            if let Some(mut connection) = idle {
                match Exchange::make(&mut connection, method, params).await {
                    // It was closed while nothing was asked for.
                    Err(ClientError::Closed { .. }) => {}
                    exchange => return self.done(exchange, connection),
                }
            }
            let mut connection = self.open().await?;
            let exchange = Exchange::make(&mut connection, method, params).await;
            self.done(exchange, connection)
        };
        let answer = timeout(self.options.request_time, answer).await;
        let exchange = answer.unwrap_or_else(|_| Err(self.late())).map_err(unanswered(method))?;
        Counters::add(&self.counters.bytes, exchange.bytes());
        Ok(exchange)
    }

    /// Keeps the connection of an answer for the next request.
    fn done(
        &self,
        exchange: Result<Exchange, ClientError>,
        connection: Connection,
    ) -> Result<Exchange, ClientError> {
        if exchange.is_ok() {
            self.idle().push(connection);
        }
        exchange
    }

    async fn open(&self) -> Result<Connection, ClientError> {
        self.address.open(self.options.request_time, self.options.answer_bytes).await
    }

    fn late(&self) -> ClientError {
        ClientError::Timeout { address: self.name.clone(), limit: self.options.request_time }
    }

    /// Counts an answer, and says in the log why there is none.
    pub(crate) fn settled<T>(&self, answer: Result<T, Error>) -> Result<T, Error> {
        let error = match answer {
            Ok(answer) => {
                self.health().succeeded(Instant::now());
                self.answered();
                return Ok(answer);
            }
            // The caller asks another one. This one has answered.
            Err(error @ Error::Absent(_)) => {
                self.answered();
                self.doubted.notify_one();
                return Err(error);
            }
            Err(error) => error,
        };
        let is_lie = error.is_lie();
        let counter = if is_lie { &self.counters.lies } else { &self.counters.errors };
        Counters::add(counter, 1);
        let pause = self.health().failed(Instant::now());
        if let Some(count) = self.error_log.count() {
            let again_in = format!("{pause:.1?}");
            tracing::warn!(
                upstream = self.name, %error, is_lie, failures = count, again_in,
                "an upstream has not given what it was asked for"
            );
        }
        Err(error)
    }

    /// It answers, whether it was asked for its chain or not.
    fn answered(&self) {
        let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*chain, UpstreamState::Unasked | UpstreamState::Fails) {
            *chain = UpstreamState::Answers;
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list_health(&self) -> MutexGuard<'_, Health> {
        self.list_health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("name", &self.name).finish_non_exhaustive()
    }
}

fn unanswered(method: &'static str) -> impl Fn(ClientError) -> Error {
    move |error| Error::Unanswered { method, error }
}

/// Whether a message may be refused for its length.
fn is_too_much(error: &ClientError) -> bool {
    match error {
        ClientError::TooLong { .. } | ClientError::Http { status: 400 | 413 | 422, .. } => true,
        error => is_answer_of_500(error),
    }
}

/// Whether it is an error of JSON-RPC under the status 500, which some servers give to each.
fn is_answer_of_500(error: &ClientError) -> bool {
    // Of the text there is the start alone.
    matches!(error, ClientError::Http { status: 500, text }
        if text.starts_with(['{', '[']) && text.contains("\"error\""))
}

/// Whether a method may be refused, and another one not: by an error of JSON-RPC or of HTTP, or by
/// the answer that there is no block.
fn is_refusal(error: &Error) -> bool {
    match error {
        Error::Absent(_) => true,
        // Too slow and too many is no refusal of a method.
        Error::Unanswered { error: error @ ClientError::Http { status, .. }, .. } => {
            matches!(status, 400..=407 | 409..=428 | 430..=499 | 501) || is_answer_of_500(error)
        }
        Error::Unanswered { error, .. } => matches!(error, ClientError::Rpc(_)),
        _ => false,
    }
}

/// Parameters as JSON.
fn raw(params: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(params).expect("they have a JSON form")
}
