//! The threads of a node without a state: one that verifies, and two for each source.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use alloy_consensus::Header;
use alloy_primitives::B256;
use alloy_rlp::Decodable as _;
use engine_api::{PayloadStatus, Status};
use execution::{
    BlockError, ChainSpec, InvalidBlock, SealedBlock, VerifyError, recover_senders_at,
    validate_body, validate_header, verify,
};
use rpc::LogThrottle;
use witness::StateError;

use super::chain::{Chain, GivenWitness, Job, Lacking};
use super::codes::RecentCodes;
use super::counts::StatelessCounts;
use super::fetch::Fetched;
use super::source::{Caller, ToldWitness, WitnessSource};
use crate::console::printed;
use crate::limits::{
    STATELESS_ANSWER_BYTES, STATELESS_CALL_TIME, STATELESS_CODE_BYTES, STATELESS_FAILED_PAUSE,
    STATELESS_LONGEST_PAUSE,
};
use crate::metrics::Metrics;
use crate::observe::{Age, megabytes, mgas_per_s, rounded, short};

/// The parts that ports and threads share.
#[derive(Debug)]
pub(crate) struct Stateless {
    pub(crate) spec: ChainSpec,
    pub(crate) counts: Arc<StatelessCounts>,
    pub(crate) sources: Vec<WitnessSource>,
    chain: Mutex<Chain>,
    /// Something has changed in the chain, or the node stops.
    changed: Condvar,
    codes: Mutex<RecentCodes>,
    is_stopping: AtomicBool,
    line: LogThrottle,
    /// Blocks that were verified since the last line.
    verified: Mutex<VerifiedBlocks>,
    /// Of lines about what no source gives.
    lacking: LogThrottle,
}

/// Blocks that were verified, summed.
#[derive(Debug, Default)]
struct VerifiedBlocks {
    blocks: u64,
    txs: usize,
    gas_used: u64,
    witness_bytes: usize,
    took: Duration,
}

/// Why a block has no verdict after a verification.
enum Unverified {
    Invalid(String),
    /// The witness is at fault, or nothing is known.
    Refused(String),
}

/// How often threads that have nothing to do look whether the node stops.
const IDLE_TIME: Duration = Duration::from_secs(1);

impl Stateless {
    /// Begins to work for this chain.
    ///
    /// # Errors
    /// If the system has no threads.
    pub(crate) fn start(
        spec: ChainSpec,
        sources: Vec<WitnessSource>,
        chain: Chain,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Arc<Self>> {
        let names = sources.iter().map(|source| source.name.clone()).collect();
        let shared = Arc::new(Self {
            spec,
            counts: StatelessCounts::new(names, metrics),
            sources,
            chain: Mutex::new(chain),
            changed: Condvar::new(),
            codes: Mutex::new(RecentCodes::new(STATELESS_CODE_BYTES)),
            is_stopping: AtomicBool::new(false),
            line: LogThrottle::default(),
            verified: Mutex::default(),
            lacking: LogThrottle::minutely(),
        });
        let spawn = |name: &str, run: Box<dyn FnOnce(&Self) + Send>| {
            let shared = shared.clone();
            thread::Builder::new().name(name.into()).spawn(move || run(&shared)).map(drop)
        };
        spawn("verify", Box::new(Self::judge_all))?;
        let long = Arc::<Mutex<()>>::default();
        for (index, source) in shared.sources.iter().enumerate() {
            let caller = Caller::new(source.clone(), long.clone());
            spawn("witnesses", Box::new(move |shared| shared.fetch_all(index, caller)))?;
            if source.sessions().is_some() {
                spawn("told", Box::new(move |shared| shared.listen(index)))?;
            }
        }
        Ok(shared)
    }

    /// Has the threads end: those that wait for a source when that has answered.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn chain(&self) -> MutexGuard<'_, Chain> {
        self.chain.lock().expect("nothing panics while it is locked")
    }

    /// Changes the chain, and tells all threads.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Chain, Instant) -> T) -> T {
        let mut chain = self.chain();
        let changed = change(&mut chain, Instant::now());
        self.counts.waiting(chain.waiting_len());
        if let Some(header) = chain.heads().head.and_then(|head| chain.header(&head)) {
            self.counts.head(header.number);
        }
        drop(chain);
        self.changed.notify_all();
        changed
    }

    /// Adds a payload's block, and waits for its verdict as long as it may take: where an ancestor
    /// is missing, it waits for nothing.
    pub(crate) fn judge(&self, block: SealedBlock, time: Duration) -> PayloadStatus {
        let (hash, end) = (block.hash(), Instant::now() + time);
        self.change(|chain, now| chain.add(Arc::new(block), now));
        let mut chain = self.chain();
        loop {
            if let Some(status) = chain.status(&hash) {
                return status;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !chain.is_linked(&hash) || self.is_stopping() {
                break;
            }
            let waited = self.changed.wait_timeout(chain, left);
            (chain, _) = waited.expect("nothing panics while it is locked");
        }
        PayloadStatus { status: Status::Syncing, latest_valid_hash: None, validation_error: None }
    }

    /// Checks and verifies blocks one after the other.
    fn judge_all(&self) {
        while !self.is_stopping() {
            let job = {
                let mut chain = self.chain();
                match chain.next_job() {
                    Some(job) => job,
                    None => {
                        let lacking = chain.lacking(Instant::now());
                        let waited = self.changed.wait_timeout(chain, IDLE_TIME);
                        drop(waited.expect("nothing panics while it is locked"));
                        lacking.into_iter().for_each(|lacking| self.say_lacking(&lacking));
                        continue;
                    }
                }
            };
            match job {
                Job::Check { block, parent } => match self.check(&block, &parent) {
                    Ok(()) => self.change(|chain, _| chain.checked(&block.hash())),
                    Err(reason) => self.invalid(&block, reason.to_string()),
                },
                Job::Verify { block, given } => self.verify(&block, given),
            }
        }
    }

    /// Checks the rules that need no state: nobody has a witness of a block that breaks them.
    fn check(&self, block: &SealedBlock, parent: &Header) -> Result<(), InvalidBlock> {
        validate_header(&self.spec, &block.header, parent, block.header.parent_hash)?;
        validate_body(&self.spec, block)?;
        recover_senders_at(&self.spec, block.header.number, &block.body.transactions).map(drop)
    }

    fn invalid(&self, block: &Arc<SealedBlock>, reason: String) {
        let (number, hash) = (block.header.number, block.hash());
        tracing::warn!(number, %hash, reason, "invalid block");
        self.counts.invalid();
        self.change(|chain, _| chain.judge(block, Err(rpc::shortened(reason))));
    }

    fn verify(&self, block: &Arc<SealedBlock>, given: GivenWitness) {
        let waited = given.waited;
        let (begun, hash, source) = (Instant::now(), block.hash(), given.source);
        let (number, bytes) = (block.header.number, given.witness.content_bytes());
        match self.verified(block, given) {
            Ok(parent) => {
                let took = begun.elapsed();
                self.counts.verified(took, waited);
                self.say_verified(block, (took, waited), (source, bytes));
                self.change(|chain, _| {
                    chain.trust(source);
                    chain.judge(block, Ok(parent));
                });
            }
            Err(Unverified::Invalid(reason)) => self.invalid(block, reason),
            Err(Unverified::Refused(reason)) => {
                self.counts.refused(source);
                let (reason, source_name) = (rpc::shortened(reason), &self.sources[source].name);
                tracing::warn!(
                    number, %hash, source = source_name, reason,
                    "a witness was refused: it is asked for again"
                );
                self.change(|chain, now| chain.refuse(&hash, source, now));
            }
        }
    }

    /// Writes a line about the blocks that were verified, at most one a second: with the names that
    /// a node with a state has for them.
    fn say_verified(
        &self,
        block: &SealedBlock,
        (took, waited): (Duration, Duration),
        (source, bytes): (usize, usize),
    ) {
        let mut sum = self.verified.lock().expect("nothing panics while it is locked");
        sum.blocks += 1;
        sum.txs += block.body.transactions.len();
        sum.gas_used += block.header.gas_used;
        sum.witness_bytes += bytes;
        sum.took += took;
        if !self.line.is_due() {
            return;
        }
        let VerifiedBlocks { blocks, txs, gas_used, witness_bytes, took } =
            std::mem::take(&mut *sum);
        drop(sum);
        let (number, hash) = (block.header.number, short(block.hash()));
        let (ms, mgas_per_s) = (rounded(took.as_secs_f64() * 1e3), mgas_per_s(gas_used, took));
        let (witness_mb, waited_ms) = (megabytes(witness_bytes), waited.as_millis() as u64);
        let (age, source) = (Age::of(block.header.timestamp), &self.sources[source].name);
        if blocks == 1 {
            tracing::info!(
                number, %hash, txs, gas_used, mgas_per_s, ms, witness_mb, waited_ms, %age, source,
                "block VALID"
            );
        } else {
            tracing::info!(
                blocks, number, %hash, txs, gas_used, mgas_per_s, ms, witness_mb, waited_ms, %age,
                source, "blocks VALID"
            );
        }
    }

    /// Says once a minute what no source gives.
    fn say_lacking(&self, lacking: &Lacking) {
        if self.lacking.is_due() {
            let (hash, number) = (lacking.hash, lacking.number);
            let seconds = lacking.since.as_secs();
            match lacking.is_block {
                true => tracing::warn!(
                    %hash, number, seconds,
                    "a block is missing, and no source gives it: name one in --witnesses that has \
                     blocks, or an anchor nearer to the head (--stateless.anchor)"
                ),
                false => tracing::warn!(
                    %hash, number, seconds, "no source gives the witness of a block"
                ),
            }
        }
    }

    /// Verifies a block; the header of its parent. Every item of the witness is found by its hash,
    /// from the parent's hash on, so that a rule that is broken is broken by the block, and what
    /// cannot be read is the fault of the witness.
    fn verified(&self, block: &SealedBlock, given: GivenWitness) -> Result<Header, Unverified> {
        let mut witness = given.witness;
        let mut has_codes = false;
        loop {
            let error = match verify(&self.spec, block, None, &witness) {
                Ok(verified) => {
                    self.codes().keep(&verified.witness.codes);
                    let parent = witness.headers.last().expect("it was verified with its parent");
                    let parent = Header::decode(&mut &parent[..]);
                    return parent.map_err(|fault| Unverified::Refused(fault.to_string()));
                }
                Err(VerifyError::Block(BlockError::Invalid(reason))) => {
                    return Err(Unverified::Invalid(reason.to_string()));
                }
                Err(error) => error,
            };
            match error.missing() {
                Some(StateError::MissingCode(code)) if !has_codes && self.codes().has(code) => {
                    has_codes = true;
                    witness.codes.extend(self.codes().all());
                }
                _ => return Err(Unverified::Refused(error.to_string())),
            }
        }
    }

    fn codes(&self) -> MutexGuard<'_, RecentCodes> {
        self.codes.lock().expect("nothing panics while it is locked")
    }

    /// Asks one source for all that it may be asked for.
    fn fetch_all(&self, source: usize, mut caller: Caller) {
        let (mut failures, line) = (0, LogThrottle::minutely());
        while !self.is_stopping() {
            let task = {
                let (mut chain, now) = (self.chain(), Instant::now());
                match chain.next_task(source, now) {
                    Ok(task) => task,
                    Err(later) => {
                        let wait = later.map_or(IDLE_TIME, |later| later - now);
                        let waited = self.changed.wait_timeout(chain, wait.min(IDLE_TIME));
                        drop(waited.expect("nothing panics while it is locked"));
                        continue;
                    }
                }
            };
            match caller.fetch(task) {
                Ok(fetched) => {
                    failures = 0;
                    if let Fetched::Witness(witness, _) = &fetched {
                        self.counts.received(source, witness.content_bytes());
                    }
                    self.change(|chain, now| chain.take(source, task, fetched, now));
                }
                Err(error) => {
                    self.counts.failed(source);
                    if line.is_due() {
                        let (name, error) = (&self.sources[source].name, printed(&error));
                        tracing::warn!(source = name, error, "a source of witnesses fails");
                    }
                    self.change(|chain, now| chain.take(source, task, Fetched::Failed, now));
                    failures = self.pause(failures);
                }
            }
        }
    }

    /// Waits after so many failures and another one, longer each time, or until the node stops.
    /// Returns their number.
    fn pause(&self, failures: u32) -> u32 {
        let pause = STATELESS_FAILED_PAUSE * (1 << failures.min(6));
        let end = Instant::now() + pause.min(STATELESS_LONGEST_PAUSE);
        let mut chain = self.chain();
        while !self.is_stopping() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(chain, left);
            (chain, _) = waited.expect("nothing panics while it is locked");
        }
        failures.saturating_add(1)
    }

    /// Listens to a source that tells of its witnesses, so that it is asked as soon as it has one.
    fn listen(&self, source: usize) {
        let address = self.sources[source].sessions().expect("it has sessions").clone();
        let failures = Cell::new(0);
        while !self.is_stopping() {
            let told = address.connect(STATELESS_CALL_TIME, STATELESS_ANSWER_BYTES);
            let told = told.and_then(|mut endpoint| {
                endpoint.follow("deponent_subscribeWitnesses", [(); 0], IDLE_TIME, |told| {
                    if let Some(ToldWitness { hash, status }) = told {
                        failures.set(0);
                        self.told(source, &hash, &status);
                    }
                    !self.is_stopping()
                })
            });
            match told {
                Ok(()) => {}
                // Another client: it is asked again and again.
                Err(rpc::ClientError::Rpc(error)) => {
                    let source = &self.sources[source].name;
                    tracing::debug!(source, %error, "the source does not tell of its witnesses");
                    return;
                }
                Err(_) => failures.set(self.pause(failures.get())),
            }
        }
    }

    fn told(&self, source: usize, hash: &B256, status: &str) {
        if matches!(status, "valid" | "canonical") {
            self.change(|chain, now| chain.offered(source, hash, now));
        }
    }
}
