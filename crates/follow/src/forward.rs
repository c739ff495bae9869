//! The blocks of a gap, fetched ahead and run in their order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use engine::{Engine, Missing, Verdict};
use execution::{AccessList, SealedBlock};
use rpc::LogThrottle;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::error::Error;
use crate::hold::Hold;
use crate::limits;
use crate::progress_log::ProgressLog;
use crate::route::Route;
use crate::status::{SharedProgress, Stage};
use crate::turns::{self, Absences};
use crate::upstream::Upstream;

/// How the blocks of a gap have ended.
#[derive(Debug)]
pub(crate) enum ForwardEnd {
    /// All have run.
    Done { blocks: u64, number: u64 },
    /// It was stopped.
    Stopped,
    /// A block breaks a rule.
    Invalid { number: u64, hash: B256, reason: String },
    /// A block cannot run.
    Stuck(Missing),
    /// The engine has failed.
    Failed(engine::Error),
}

/// The thread that runs blocks, in the order in which they are given.
struct Runner {
    engine: Arc<Engine>,
    /// The last block of the gap.
    target: B256,
    /// The number of the last block that has run.
    ran: AtomicU64,
    is_stopped: AtomicBool,
    has_run: Notify,
}

/// Stops the runner when it is dropped.
struct Stopping(Arc<Runner>);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }
}

/// A block with the access list that came with it.
struct ListedBlock {
    block: SealedBlock,
    list: Option<AccessList>,
}

impl ListedBlock {
    fn bytes(&self) -> usize {
        let list = self.list.as_ref();
        (self.block.rlp_bytes() + list.map_or(0, AccessList::rlp_bytes)).max(1)
    }
}

/// A request that has ended.
struct Fetched {
    place: usize,
    first: u64,
    count: usize,
    blocks: Result<Vec<ListedBlock>, Error>,
}

/// A gap whose blocks are fetched and run.
pub(crate) struct Forward<'a> {
    upstreams: &'a Arc<[Upstream]>,
    progress: &'a SharedProgress,
    hold: &'a Hold,
    absences: Absences,
    lines: ProgressLog,
    runner: Arc<Runner>,
    requests: JoinSet<Fetched>,
    /// The requests of each upstream that are on their way.
    on_their_way: Vec<usize>,
    /// Those with the lowest block first, since when they are on their way, and where.
    asked: BTreeMap<u64, (Instant, usize, usize)>,
    /// Blocks that are to be asked for again: a first number, and how many.
    again: BTreeMap<u64, usize>,
    /// The next block that was never asked for.
    next: u64,
    /// Blocks that have come before their turn.
    arrived: BTreeMap<u64, ListedBlock>,
    arrived_bytes: usize,
    /// The next block for the runner.
    given: u64,
    /// The bytes of those that it has and that have not run.
    held: VecDeque<(u64, usize)>,
    held_bytes: usize,
    /// About the bytes of a block, by the last ones.
    block_bytes: usize,
}

impl<'a> Forward<'a> {
    pub(crate) fn start(
        engine: &Arc<Engine>,
        upstreams: &'a Arc<[Upstream]>,
        progress: &'a SharedProgress,
        hold: &'a Hold,
        target: B256,
    ) -> Self {
        Self {
            upstreams,
            progress,
            hold,
            absences: Absences::default(),
            lines: ProgressLog::new(progress),
            runner: Arc::new(Runner {
                engine: engine.clone(),
                target,
                ran: AtomicU64::new(0),
                is_stopped: AtomicBool::new(false),
                has_run: Notify::new(),
            }),
            requests: JoinSet::new(),
            on_their_way: vec![0; upstreams.len()],
            asked: BTreeMap::new(),
            again: BTreeMap::new(),
            next: 0,
            arrived: BTreeMap::new(),
            arrived_bytes: 0,
            given: 0,
            held: VecDeque::new(),
            held_bytes: 0,
            block_bytes: limits::FIRST_BLOCK_BYTES,
        }
    }

    /// Fetches and runs all blocks of a route, unless `stop` ends before. What has run is not in
    /// the route any more.
    pub(crate) async fn run(
        mut self,
        route: &mut Route,
        stop: impl Future<Output = ()>,
    ) -> ForwardEnd {
        let (lowest, highest) = (route.lowest(), route.highest());
        (self.next, self.given) = (lowest, lowest);
        self.runner.ran.store(lowest.saturating_sub(1), Ordering::Relaxed);
        self.progress.update(|progress| progress.stage = Stage::Blocks);
        let (sender, blocks) = mpsc::unbounded_channel();
        let _stopping = Stopping(self.runner.clone());
        let runner = self.runner.clone();
        let mut running = tokio::task::spawn_blocking(move || runner.run(blocks));
        let mut sender = Some(sender);
        let log = LogThrottle::minutely();
        tokio::pin!(stop);
        loop {
            self.give(sender.as_ref());
            if self.given > highest {
                // It ends after the last block.
                sender = None;
            }
            let idle = self.ask(route, highest, &log);
            tokio::select! {
                end = &mut running => {
                    route.drop_before(self.runner.ran.load(Ordering::Relaxed) + 1);
                    return end.expect("running a block does not panic");
                }
                Some(fetched) = self.requests.join_next(), if !self.requests.is_empty() => {
                    let fetched = fetched.expect("a request does not panic");
                    if fetched.blocks.is_ok() {
                        self.hold.answered();
                    }
                    self.take(fetched, route);
                }
                () = self.runner.has_run.notified() => {
                    self.hold.gained();
                    self.note_run();
                }
                () = sleep(idle) => {}
                () = &mut stop => break,
            }
        }
        // The runner waits for no more blocks.
        drop(sender);
        self.stopped(running, route).await
    }

    async fn stopped(self, running: JoinHandle<ForwardEnd>, route: &mut Route) -> ForwardEnd {
        self.runner.is_stopped.store(true, Ordering::Relaxed);
        // The block that runs ends first, and so does one that is found invalid.
        let end = running.await.expect("running a block does not panic");
        route.drop_before(self.runner.ran.load(Ordering::Relaxed) + 1);
        match end {
            ForwardEnd::Done { .. } => ForwardEnd::Stopped,
            end => end,
        }
    }

    /// Gives the runner the blocks whose turn has come.
    fn give(&mut self, sender: Option<&mpsc::UnboundedSender<ListedBlock>>) {
        let Some(sender) = sender else { return };
        while let Some(block) = self.arrived.remove(&self.given) {
            let bytes = block.bytes();
            self.arrived_bytes -= bytes;
            self.held_bytes += bytes;
            self.held.push_back((self.given, bytes));
            self.given += 1;
            // Where it has ended, that is seen next.
            sender.send(block).unwrap_or_default();
        }
    }

    /// Notes the blocks that have run.
    fn note_run(&mut self) {
        let ran = self.runner.ran.load(Ordering::Relaxed);
        while let Some((_, bytes)) = self.held.pop_front_if(|(number, _)| *number <= ran) {
            self.held_bytes -= bytes;
        }
        self.progress.update(|progress| progress.ran = ran);
        self.lines.blocks(self.progress);
    }

    /// Makes the requests that can be made, and gives how long there is nothing to do, if nothing
    /// happens.
    fn ask(&mut self, route: &Route, highest: u64, log: &LogThrottle) -> Duration {
        loop {
            let on_their_way = &self.on_their_way;
            let is_free = |place: usize| {
                on_their_way[place] < limits::REQUESTS
                    && self.absences.pause(self.upstreams, place).is_zero()
            };
            let Some(place) = turns::next(self.upstreams, is_free) else { break };
            let Some((first, count)) = self.next_range(highest, place) else {
                return limits::LATE_TIME;
            };
            self.request(place, first, route.range(first, count));
        }
        if self.requests.is_empty() {
            self.progress.update(|progress| progress.upstream = None);
            turns::say_none(self.upstreams, log);
            if self.absences.are_all(self.upstreams, |_| false) {
                let missing = route.at(self.given).unwrap_or_default();
                Absences::say(self.upstreams, log, missing);
                self.hold.nowhere();
            }
        }
        self.absences.least_pause(self.upstreams).clamp(limits::LEAST_PAUSE, limits::LATE_TIME)
    }

    /// The blocks that are asked for next.
    fn next_range(&mut self, highest: u64, place: usize) -> Option<(u64, usize)> {
        let most = (limits::REQUEST_BYTES / self.block_bytes).clamp(1, limits::BLOCKS);
        if let Some((first, count)) = self.again.pop_first() {
            if count > most {
                self.again.insert(first + most as u64, count - most);
            }
            return Some((first, count.min(most)));
        }
        let ran = self.runner.ran.load(Ordering::Relaxed);
        let left = (ran + 1 + limits::WINDOW_BLOCKS as u64).min(highest + 1);
        let count = left.saturating_sub(self.next).min(most as u64) as usize;
        let asked: usize = self.asked.values().map(|(_, count, _)| count).sum();
        let bytes = self.held_bytes + self.arrived_bytes + (asked + count) * self.block_bytes;
        let is_full = bytes > limits::WINDOW_BYTES && self.next > self.given;
        if count > 0 && !is_full {
            self.next += count as u64;
            return Some((self.next - count as u64, count));
        }
        // Nothing runs before these come, so another one is asked, too.
        let (first, (since, count, asked)) = self.asked.first_key_value()?;
        let is_late = *first == self.given
            && self.held.is_empty()
            && *asked != place
            && since.elapsed() >= limits::LATE_TIME;
        is_late.then_some((*first, *count))
    }

    fn request(&mut self, place: usize, first: u64, hashes: Vec<B256>) {
        let (upstreams, count) = (self.upstreams.clone(), hashes.len());
        let list_gas = self.runner.engine.list_gas();
        self.on_their_way[place] += 1;
        self.asked.insert(first, (Instant::now(), count, place));
        let name = self.upstreams[place].name().to_owned();
        self.progress.update(|progress| progress.upstream = Some(name));
        self.requests.spawn(async move {
            let blocks = fetch(&upstreams[place], &hashes, list_gas).await;
            Fetched { place, first, count, blocks }
        });
    }

    /// Takes the blocks of an answer, and has those that are not in it asked for again.
    fn take(&mut self, fetched: Fetched, route: &Route) {
        let Fetched { place, first, count, blocks } = fetched;
        self.on_their_way[place] -= 1;
        self.absences.note(self.upstreams, place, &blocks);
        if self.asked.get(&first).is_some_and(|(_, _, asked)| *asked == place) {
            self.asked.remove(&first);
        }
        let blocks = blocks.unwrap_or_default();
        let missing = first + blocks.len() as u64..first + count as u64;
        for (number, block) in (first..).zip(blocks) {
            let hash = block.block.hash();
            debug_assert_eq!(route.at(number), Some(hash), "the upstream has checked");
            let bytes = block.bytes();
            self.block_bytes = (7 * self.block_bytes + bytes).div_ceil(8);
            if number >= self.given && !self.arrived.contains_key(&number) {
                self.arrived_bytes += bytes;
                self.arrived.insert(number, block);
            }
        }
        // Another request may have brought them, or be about to.
        let is_needed = |number: u64| number >= self.given && !self.arrived.contains_key(&number);
        let start = missing.clone().find(|number| is_needed(*number));
        if let Some(start) = start
            && !self.asked.contains_key(&start)
        {
            self.again.insert(start, (missing.end - start) as usize);
        }
    }
}

/// Blocks of an upstream, with their access lists where it has them. The lists of a request travel
/// beside the blocks of others.
async fn fetch(
    upstream: &Upstream,
    hashes: &[B256],
    list_gas: u64,
) -> Result<Vec<ListedBlock>, Error> {
    let blocks = upstream.blocks(hashes).await?;
    let lists = upstream.access_lists(&blocks, list_gas).await;
    Ok(blocks.into_iter().zip(lists).map(|(block, list)| ListedBlock { block, list }).collect())
}

impl Runner {
    fn run(&self, mut blocks: mpsc::UnboundedReceiver<ListedBlock>) -> ForwardEnd {
        let mut last = None;
        let mut count = 0;
        let end = loop {
            let Some(ListedBlock { block, list }) = blocks.blocking_recv() else { break None };
            if self.is_stopped.load(Ordering::Relaxed) {
                break None;
            }
            let (number, hash) = (block.header.number, block.hash());
            match self.engine.new_checked_block(block, list) {
                Ok(Verdict::Valid) => {}
                Ok(Verdict::Invalid { reason, .. }) => {
                    break Some(ForwardEnd::Invalid { number, hash, reason });
                }
                Ok(Verdict::Syncing(missing)) => break Some(ForwardEnd::Stuck(missing)),
                Err(error) => break Some(ForwardEnd::Failed(error)),
            }
            last = Some(hash);
            count += 1;
            self.ran.store(number, Ordering::Relaxed);
            self.has_run.notify_one();
            if count % limits::BLOCKS_A_HEAD == 0
                && let Err(error) = self.engine.advance_head(hash, self.target)
            {
                break Some(ForwardEnd::Failed(error));
            }
        };
        // Valid blocks stay, whatever comes after them.
        let advanced = last.map(|hash| self.engine.advance_head(hash, self.target));
        let number = self.ran.load(Ordering::Relaxed);
        match (end, advanced) {
            (Some(end), _) => end,
            (None, Some(Err(error))) => ForwardEnd::Failed(error),
            (None, _) => ForwardEnd::Done { blocks: count, number },
        }
    }
}
