//! The way back from a block that is missing to the first one that is known.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use alloy_consensus::Header;
use alloy_primitives::B256;
use engine::{Engine, MissingBlock};
use rpc::LogThrottle;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::error::Error;
use crate::limits;
use crate::progress_log::ProgressLog;
use crate::route::Route;
use crate::status::SharedProgress;
use crate::turns;
use crate::upstream::Upstream;

/// The way back: of each header nothing stays but its hash.
pub(crate) struct Descent<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) upstreams: &'a Arc<[Upstream]>,
    pub(crate) progress: &'a SharedProgress,
    /// Whether the log is to say that it begins.
    pub(crate) is_new: bool,
    /// The hashes of the gap before, as far as they are known.
    pub(crate) known: Route,
    /// Those of this one.
    pub(crate) route: Route,
}

/// Where a way back has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DescentEnd {
    /// At a block that is known.
    Joined,
    /// At a block that was found invalid.
    Invalid { number: u64, hash: B256 },
    /// Nowhere, for this reason.
    NoWay(String),
}

impl Descent<'_> {
    /// Goes back from a block.
    pub(crate) async fn run(&mut self, missing: MissingBlock) -> DescentEnd {
        let (log, mut lines) = (LogThrottle::minutely(), ProgressLog::new(self.progress));
        let number = match missing.number {
            Some(number) => number,
            None => self.number_of(missing.hash, &log).await,
        };
        self.progress.update(|progress| progress.target = Some(number));
        self.engine.set_gap_target(Some(number));
        let head = self.number(&self.engine.heads().head).unwrap_or(0);
        if self.is_new {
            // A branch may leave the chain before its head.
            let from = (number > head).then_some(head + 1);
            let blocks = number.checked_sub(head).filter(|blocks| *blocks > 0);
            let upstreams: Vec<_> = self.upstreams.iter().map(Upstream::name).collect();
            let (to, hash, upstreams) = (number, missing.hash, upstreams.join(","));
            tracing::info!(from, to, %hash, blocks, upstreams, "filling a gap");
        }
        if number.saturating_sub(head) > limits::HASHES as u64 {
            return DescentEnd::NoWay(format!(
                "block {number} is {} blocks after the head, and at most {} are followed: import \
                 archives first (deponent import)",
                number - head,
                limits::HASHES
            ));
        }
        self.route = Route::to(number, missing.hash);
        let (mut count, mut misses) = (4, 0);
        loop {
            if let Some(end) = self.end() {
                return end;
            }
            let wanted = self.route.wanted();
            let headers = self.headers(wanted, count, &mut misses, &log).await;
            count = (2 * count).min(limits::HEADERS);
            for header in headers {
                if header.number != self.route.wanted().0 {
                    return self.wrong_number(&header);
                }
                self.route.push(header.parent_hash);
                if let Some(end) = self.end() {
                    return end;
                }
            }
            let hashes = self.route.len();
            self.progress.update(|progress| progress.hashes = hashes);
            lines.headers(self.progress);
        }
    }

    /// The hashes that are known when it ends, or is given up: those of the longer way.
    pub(crate) fn kept(self) -> Route {
        if self.route.len() >= self.known.len() { self.route } else { self.known }
    }

    /// Whether the way ends before its wanted block.
    fn end(&mut self) -> Option<DescentEnd> {
        // The hashes of the gap before are jumped over.
        self.route.join(&mut self.known);
        let (number, hash) = self.route.wanted();
        if self.number(&hash).is_some() {
            return Some(DescentEnd::Joined);
        }
        if self.engine.is_invalid(&hash) {
            return Some(DescentEnd::Invalid { number, hash });
        }
        let heads = self.engine.heads();
        let floor = self.number(&heads.finalized.unwrap_or(heads.genesis)).unwrap_or(0);
        if number <= floor {
            return Some(DescentEnd::NoWay(format!(
                "it is of another chain: its block {number} is {hash}, and this chain's block \
                 {floor}, which it cannot go back behind, is {}: give the consensus client and \
                 --chain the same network",
                heads.finalized.unwrap_or(heads.genesis)
            )));
        }
        (self.route.len() >= limits::HASHES).then(|| {
            DescentEnd::NoWay(format!(
                "{} blocks are missing at least: import archives first (deponent import)",
                limits::HASHES
            ))
        })
    }

    fn wrong_number(&self, header: &Header) -> DescentEnd {
        let (wanted, hash) = self.route.wanted();
        DescentEnd::NoWay(format!(
            "block {hash} has the number {}, and its child the number {}, so the chain above it is \
             none",
            header.number,
            wanted.saturating_add(1)
        ))
    }

    /// The number of a valid block.
    fn number(&self, hash: &B256) -> Option<u64> {
        self.engine.number(hash).unwrap_or_else(|error| {
            tracing::error!(%error, %hash, "it is not known whether a block is there");
            None
        })
    }

    /// The number of a block of which there is no more than its hash.
    async fn number_of(&self, hash: B256, log: &LogThrottle) -> u64 {
        let number = self.answer(log, move |upstreams, place| async move {
            Ok(upstreams[place].header(hash).await?.number)
        });
        number.await
    }

    /// Headers that follow each other downwards, the first of which is the wanted one. They are
    /// asked for by number, since most upstreams are on the same branch, and by hash where that
    /// fails: after each failure for twice as many headers.
    async fn headers(
        &self,
        wanted: (u64, B256),
        count: usize,
        misses: &mut u64,
        log: &LogThrottle,
    ) -> Vec<Header> {
        let by_number = (misses.count_ones() <= 1).then_some(count);
        let answer = self.answer(log, move |upstreams, place| async move {
            headers_of(&upstreams[place], wanted, by_number).await
        });
        let (headers, is_miss) = answer.await;
        *misses = if is_miss { *misses + 1 } else { 0 };
        headers
    }

    /// The answer of the upstream that is asked next. While it is late, others are asked, too; one
    /// that another has answered before is left alone for a while.
    async fn answer<T: Send + 'static, F>(
        &self,
        log: &LogThrottle,
        ask: impl Fn(Arc<[Upstream]>, usize) -> F,
    ) -> T
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let mut requests = JoinSet::new();
        let mut late = BTreeMap::new();
        loop {
            if let Some(place) = turns::next(self.upstreams, |place| !late.contains_key(&place)) {
                let name = self.upstreams[place].name().to_owned();
                self.progress.update(|progress| progress.upstream = Some(name));
                let answer = ask(self.upstreams.clone(), place);
                requests.spawn(async move { (place, answer.await) });
                late.insert(place, Instant::now() + limits::LATE_TIME);
            } else if requests.is_empty() {
                self.progress.update(|progress| progress.upstream = None);
                turns::say_none(self.upstreams, log);
            }
            let pause = match requests.is_empty() {
                true => turns::pause(self.upstreams),
                false => limits::LATE_TIME,
            };
            tokio::select! {
                Some(ended) = requests.join_next(), if !requests.is_empty() => {
                    let (place, answer) = ended.expect("a request does not panic");
                    late.remove(&place);
                    if let Ok(answer) = answer {
                        let now = Instant::now();
                        let are_late = late.iter().filter(|(_, at)| **at <= now);
                        are_late.for_each(|(place, _)| self.upstreams[*place].leave_alone());
                        return answer;
                    }
                }
                () = sleep(pause) => {}
            }
        }
    }
}

/// Headers of one upstream, and whether it has the wanted one by its hash alone.
async fn headers_of(
    upstream: &Upstream,
    wanted: (u64, B256),
    by_number: Option<usize>,
) -> Result<(Vec<Header>, bool), Error> {
    let (number, hash) = wanted;
    if let Some(count) = by_number {
        let found = upstream.headers_down(number, count).await?;
        let mut next = hash;
        let follows = |(got, header): (B256, Header)| {
            let is_next = got == next;
            next = header.parent_hash;
            is_next.then_some(header)
        };
        let headers: Vec<_> = found.into_iter().map_while(follows).collect();
        if !headers.is_empty() {
            upstream.used_headers(headers.len());
            return Ok((headers, false));
        }
    }
    Ok((vec![upstream.header(hash).await?], true))
}
