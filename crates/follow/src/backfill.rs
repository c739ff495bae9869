//! Gaps of a chain, found and filled one after the other.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use engine::{ChainEvent, Engine, Missing, MissingBlock};
use rpc::LogThrottle;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::chain_check::check_chains;
use crate::descent::{Descent, DescentEnd};
use crate::figures::UpstreamFigures;
use crate::first_headers::FirstHeaders;
use crate::forward::{Forward, ForwardEnd};
use crate::hold::{BackfillOptions, Hold};
use crate::route::Route;
use crate::status::{Progress, SharedProgress, Stage};
use crate::upstream::Upstream;

/// Fills the gaps of a chain, as long as it is not stopped: the block that is missing
/// ([`Engine::missing`]) and its ancestors are asked for by hash, back to the first that is known,
/// and run from there on. Answers to the consensus client wait for none of it.
#[derive(Debug)]
pub struct Backfill {
    engine: Arc<Engine>,
    upstreams: Arc<[Upstream]>,
    progress: Arc<SharedProgress>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
    _checks: JoinSet<()>,
}

impl Backfill {
    /// Begins on the tokio runtime of the caller.
    pub fn start(engine: Arc<Engine>, upstreams: Vec<Upstream>) -> Self {
        Self::start_with(engine, upstreams, BackfillOptions::default())
    }

    /// As [`start`](Self::start), with other times.
    pub fn start_with(
        engine: Arc<Engine>,
        upstreams: Vec<Upstream>,
        options: BackfillOptions,
    ) -> Self {
        let upstreams: Arc<[Upstream]> = upstreams.into();
        let (progress, wake) = (Arc::<SharedProgress>::default(), Arc::<Notify>::default());
        engine.gaps_are_filled();
        let notify = wake.clone();
        engine.on_event(move |event| {
            if matches!(event, ChainEvent::Behind | ChainEvent::Chosen(_)) {
                notify.notify_one();
            }
        });
        let (stop, stopped) = watch::channel(false);
        let filler = Filler {
            engine: engine.clone(),
            options,
            upstreams: upstreams.clone(),
            progress: progress.clone(),
            wake: wake.clone(),
            route: Route::default(),
            errors: ErrorLog::default(),
            first: FirstHeaders::start(engine.clone(), upstreams.clone(), wake, stopped.clone()),
        };
        let task = Mutex::new(Some(tokio::spawn(filler.run(stopped))));
        let _checks = check_chains(&upstreams, engine.chain().chain_id());
        Self { engine, upstreams, progress, stop, task, _checks }
    }

    /// The gap that is filled now, or that cannot be filled; `None` without one.
    pub fn progress(&self) -> Option<Progress> {
        let progress = self.progress.get()?;
        // Whatever leads the chain may have done without the blocks of a gap.
        let is_left = progress.problem.is_some() && matches!(self.engine.progress(), Ok(None));
        (!is_left).then_some(progress)
    }

    /// The upstreams, in the order in which they were given.
    pub fn upstreams(&self) -> &[Upstream] {
        &self.upstreams
    }

    /// The names of the upstreams, and what they have given.
    pub fn figures(&self) -> Vec<(&str, UpstreamFigures)> {
        self.upstreams.iter().map(|upstream| (upstream.name(), upstream.figures())).collect()
    }

    /// Stops, and returns when no block runs any more.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            // A panic in it has been told.
            task.await.unwrap_or_default();
        }
    }
}

impl Drop for Backfill {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// How the filling of a gap has ended.
#[derive(Debug)]
enum FillEnd {
    /// It is filled.
    Filled,
    /// Another block is missing now.
    Moved,
    /// It cannot be filled, for this reason; `invalid` is a block in it that breaks a rule.
    GivenUp { reason: String, invalid: Option<B256> },
}

/// The last gap that could not be filled.
struct GivenUp {
    /// The block that is missing.
    hash: B256,
    /// The header before the first block that was wanted before.
    wanted: Option<(u64, B256)>,
    pause: Duration,
    until: Instant,
}

struct Filler {
    engine: Arc<Engine>,
    options: BackfillOptions,
    upstreams: Arc<[Upstream]>,
    progress: Arc<SharedProgress>,
    /// Told when another block may be missing.
    wake: Arc<Notify>,
    /// The hashes of the last gap, as far as they are known.
    route: Route,
    errors: ErrorLog,
    first: FirstHeaders,
}

/// Says why gaps cannot be filled: each reason once, and a lasting one once a minute.
#[derive(Debug, Default)]
struct ErrorLog {
    reason: String,
    again: Option<LogThrottle>,
}

impl ErrorLog {
    fn error(&mut self, missing: &MissingBlock, reason: &str) {
        if self.reason != reason {
            (self.reason, self.again) = (reason.to_owned(), Some(LogThrottle::minutely()));
        }
        if self.again.as_ref().is_some_and(LogThrottle::is_due) {
            tracing::error!(
                missing = missing.number, missing_hash = %missing.hash, reason,
                "a gap cannot be filled"
            );
        }
    }
}

impl Filler {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        self.fill_all(&mut stopped).await;
        self.first.ended().await;
    }

    /// Fills one gap after the other, until it is stopped.
    async fn fill_all(&mut self, stopped: &mut watch::Receiver<bool>) {
        let mut given_up: Option<GivenUp> = None;
        loop {
            let (missing, wanted) = (self.missing(), self.engine.wanted_header());
            // Once there are headers for which a block may have asked, it is another gap.
            let is_missing = |gap: &&GivenUp| {
                missing.is_some_and(|it| it.hash == gap.hash) && gap.wanted == wanted
            };
            let before = given_up.as_ref().filter(is_missing);
            let rest = before.map(|gap| gap.until.saturating_duration_since(Instant::now()));
            let rest = rest.unwrap_or_default();
            let Some(missing) = missing.filter(|_| rest.is_zero()) else {
                // The reason why a gap cannot be filled stays, and so does its number.
                if self.progress.get().is_none_or(|progress| progress.problem.is_none()) {
                    self.set_progress(None);
                }
                let rest = if rest.is_zero() { Duration::MAX } else { rest };
                tokio::select! {
                    () = self.wake.notified() => continue,
                    () = sleep(rest) => continue,
                    _ = stopped.wait_for(|stopped| *stopped) => return,
                }
            };
            let pause = before.map_or(self.options.first_retry, |gap| 2 * gap.pause);
            let end = self.fill(missing, stopped).await;
            if *stopped.borrow() {
                return;
            }
            match end {
                FillEnd::Moved => {}
                FillEnd::Filled => {
                    (self.route, self.errors) = (Route::default(), ErrorLog::default());
                    self.finish().await;
                    self.set_progress(None);
                }
                FillEnd::GivenUp { reason, invalid } => {
                    self.errors.error(&missing, &reason);
                    let pause = pause.min(self.options.most_retry);
                    let (hash, until) = (missing.hash, Instant::now() + pause);
                    given_up = Some(GivenUp { hash, wanted, pause, until });
                    let ran = self.head_number();
                    self.progress.update(|progress| {
                        (progress.ran, progress.problem) = (ran, Some(reason.clone()));
                    });
                    if let Some(invalid) = invalid {
                        self.refuse(invalid, missing.hash, reason).await;
                    }
                }
            }
        }
    }

    /// Notes how far it is, also for those who ask the engine.
    fn set_progress(&self, progress: Option<Progress>) {
        self.engine.set_gap_target(progress.as_ref().and_then(|progress| progress.target));
        self.progress.set(progress);
    }

    fn head_number(&self) -> u64 {
        let head = self.engine.heads().head;
        self.engine.number(&head).ok().flatten().unwrap_or(0)
    }

    /// The block that is missing; the log says why it is not known.
    fn missing(&self) -> Option<MissingBlock> {
        self.engine.missing().unwrap_or_else(|error| {
            tracing::error!(%error, "it is not known whether a block is missing");
            None
        })
    }

    async fn fill(
        &mut self,
        missing: MissingBlock,
        stopped: &mut watch::Receiver<bool>,
    ) -> FillEnd {
        let (engine, wake, start) = (self.engine.clone(), self.wake.clone(), Instant::now());
        let starting = self.head_number();
        // One that could not be filled is another one, once the head has moved.
        let is_same = |before: &Progress| before.problem.is_none() || before.ran == starting;
        let before = self.progress.get();
        let tried = before.as_ref().filter(|before| before.target_hash == missing.hash);
        let target = missing.number.or_else(|| tried?.target);
        let before = before.filter(is_same);
        let is_new = before.is_none();
        let (begun, problem) =
            before.map_or((starting, None), |before| (before.starting, before.problem));
        self.set_progress(Some(Progress {
            stage: Stage::Headers,
            starting: begun,
            target,
            target_hash: missing.hash,
            hashes: 0,
            ran: starting,
            upstream: None,
            problem,
        }));
        let hold = Hold::new(self.options);
        let mut descent = Descent {
            engine: &engine,
            upstreams: &self.upstreams,
            progress: &self.progress,
            is_new,
            hold: &hold,
            known: std::mem::take(&mut self.route),
            route: Route::default(),
        };
        let end = tokio::select! {
            end = descent.run(missing) => Some(end),
            () = hold.left(&engine, &wake, missing.hash) => None,
            _ = stopped.wait_for(|stopped| *stopped) => None,
        };
        self.route = match end {
            Some(DescentEnd::Joined) => descent.route,
            _ => descent.kept(),
        };
        match end {
            None => return FillEnd::Moved,
            Some(DescentEnd::Joined) => self.progress.update(|progress| progress.problem = None),
            Some(DescentEnd::Invalid { number, hash }) => {
                let reason = self.engine.invalid_reason(&hash).unwrap_or_default();
                // That of a block which came after an invalid one names that one.
                let is_whole = reason.contains(SO_IS_ALL);
                let reason = if is_whole { reason } else { invalid_block(number, hash, &reason) };
                return FillEnd::GivenUp { reason, invalid: Some(hash) };
            }
            Some(DescentEnd::NoWay(reason)) => return FillEnd::GivenUp { reason, invalid: None },
        }
        self.run_blocks(missing.hash, start, stopped).await
    }

    /// Fetches and runs the blocks whose hashes are known.
    async fn run_blocks(
        &mut self,
        target: B256,
        start: Instant,
        stopped: &mut watch::Receiver<bool>,
    ) -> FillEnd {
        let (engine, wake, hold) = (&self.engine, &self.wake, Hold::new(self.options));
        let mut left = async || {
            tokio::select! {
                () = hold.left(engine, wake, target) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        };
        let wanted = engine.wanted_header();
        let forward = Forward::start(engine, &self.upstreams, &self.progress, &hold, target);
        let end = forward.run(&mut self.route, left()).await;
        if matches!(end, ForwardEnd::Stuck(Missing::Header { .. })) {
            let is_left = tokio::select! {
                () = self.first.asked() => false,
                () = left() => true,
            };
            if is_left || engine.wanted_header() != wanted {
                return FillEnd::Moved;
            }
        }
        self.ended(end, start)
    }

    /// Says in the log what has run.
    fn ended(&self, end: ForwardEnd, start: Instant) -> FillEnd {
        match end {
            ForwardEnd::Stopped => FillEnd::Moved,
            ForwardEnd::Done { blocks, number } => {
                let seconds = start.elapsed().as_secs_f64();
                let blocks_per_s = (blocks as f64 / seconds.max(1e-3)).round();
                let seconds = (seconds * 10.0).round() / 10.0;
                tracing::info!(number, blocks, seconds, blocks_per_s, "the gap is filled");
                FillEnd::Filled
            }
            ForwardEnd::Invalid { number, hash, reason } => {
                let reason = invalid_block(number, hash, &reason);
                FillEnd::GivenUp { reason, invalid: Some(hash) }
            }
            ForwardEnd::Stuck(missing @ Missing::State { .. }) => {
                let reason = format!("{missing}; it branches off too far back");
                FillEnd::GivenUp { reason, invalid: None }
            }
            ForwardEnd::Stuck(missing) => {
                FillEnd::GivenUp { reason: missing.to_string(), invalid: None }
            }
            ForwardEnd::Failed(error) => {
                FillEnd::GivenUp { reason: error.to_string(), invalid: None }
            }
        }
    }

    /// Runs what has waited for the gap, and follows the fork choice that has.
    async fn finish(&self) {
        let engine = self.engine.clone();
        let finished = tokio::task::spawn_blocking(move || {
            while engine.run_waiting()? {}
            engine.choose_awaited()
        });
        if let Err(error) = finished.await.expect("it does not panic") {
            tracing::error!(%error, "what has waited for a gap cannot run");
        }
    }

    /// Has the engine answer INVALID for a block that stands on one which breaks a rule.
    async fn refuse(&self, ancestor: B256, hash: B256, reason: String) {
        let engine = self.engine.clone();
        let refused =
            tokio::task::spawn_blocking(move || engine.refuse_descendant(&ancestor, hash, reason));
        refused.await.expect("it does not panic");
    }
}

/// The words by which the reason of an invalid block names it, for those that come after it.
const SO_IS_ALL: &str = "is invalid, and so is all that stands on it";

fn invalid_block(number: u64, hash: B256, reason: &str) -> String {
    format!("block {number}, {hash}, {SO_IS_ALL}: {reason}")
}
