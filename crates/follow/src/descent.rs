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
use crate::hold::Hold;
use crate::limits;
use crate::progress_log::ProgressLog;
use crate::route::Route;
use crate::status::SharedProgress;
use crate::turns::{self, Absences};
use crate::upstream::Upstream;

/// The way back: of each header nothing stays but its hash.
pub(crate) struct Descent<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) upstreams: &'a Arc<[Upstream]>,
    pub(crate) progress: &'a SharedProgress,
    /// Whether the log is to say that it begins.
    pub(crate) is_new: bool,
    pub(crate) hold: &'a Hold,
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
        let (number, mut first) = match missing.number {
            Some(number) => (number, None),
            None => {
                let header = self.header(missing.hash, &log).await;
                (header.number, Some(header))
            }
        };
        self.progress.update(|progress| progress.target = Some(number));
        self.engine.set_gap_target(Some(number));
        let head = self.number(&self.engine.heads().head).unwrap_or(0);
        if self.is_new {
            self.say_start(head, (number, missing.hash));
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
        let mut misses = 0;
        loop {
            if let Some(end) = self.end() {
                return end;
            }
            let wanted = self.route.wanted();
            let headers = match first.take().filter(|_| wanted.1 == missing.hash) {
                Some(header) => vec![header],
                None => {
                    let count = (2 * self.route.len()).clamp(4, limits::HEADERS);
                    self.headers(wanted, count, &mut misses, &log).await
                }
            };
            for header in headers {
                if header.number != self.route.wanted().0 {
                    return self.wrong_number(&header);
                }
                self.route.push(header.parent_hash);
                match self.route.len() > self.known.len() {
                    true => self.hold.gained(),
                    false => self.hold.answered(),
                }
                if let Some(end) = self.end() {
                    return end;
                }
                // The hashes of the gap before were jumped over, and the next header is one of
                // theirs.
                if self.route.wanted().1 != header.parent_hash {
                    break;
                }
            }
            let hashes = self.route.len();
            self.progress.update(|progress| progress.hashes = hashes);
            lines.headers(self.progress);
        }
    }

    fn say_start(&self, head: u64, (to, hash): (u64, B256)) {
        // A branch may leave the chain before its head.
        let from = (to > head).then_some(head + 1);
        let blocks = to.checked_sub(head).filter(|blocks| *blocks > 0);
        let upstreams: Vec<_> = self.upstreams.iter().map(Upstream::name).collect();
        let upstreams = upstreams.join(",");
        tracing::info!(from, to, %hash, blocks, upstreams, "filling a gap");
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
        let lowest = heads.finalized.unwrap_or(heads.genesis);
        let first = self.number(&heads.genesis).unwrap_or(0);
        let floor = self.number(&lowest).unwrap_or(0);
        if let Some(reason) = why_too_low((number, hash), first, (floor, lowest)) {
            return Some(DescentEnd::NoWay(reason));
        }
        (self.route.len() >= limits::HASHES).then(|| {
            DescentEnd::NoWay(format!(
                "{} blocks are missing at least: import archives first (deponent import)",
                limits::HASHES
            ))
        })
    }

    /// Neither way is kept: something in it is not what it seemed.
    fn wrong_number(&mut self, header: &Header) -> DescentEnd {
        let (wanted, hash) = self.route.wanted();
        (self.route, self.known) = (Route::default(), Route::default());
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

    /// The header of a block of which there is no more than its hash.
    async fn header(&self, hash: B256, log: &LogThrottle) -> Header {
        let header = self.answer(hash, log, move |upstreams, place| async move {
            upstreams[place].header(hash).await
        });
        header.await
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
        let answer = self.answer(wanted.1, log, move |upstreams, place| async move {
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
        hash: B256,
        log: &LogThrottle,
        ask: impl Fn(Arc<[Upstream]>, usize) -> F,
    ) -> T
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let mut requests = JoinSet::new();
        let (mut late, mut absences) = (BTreeMap::new(), Absences::default());
        loop {
            let may_be_asked = |place: usize| {
                !late.contains_key(&place) && absences.pause(self.upstreams, place).is_zero()
            };
            if let Some(place) = turns::next(self.upstreams, may_be_asked) {
                let name = self.upstreams[place].name().to_owned();
                self.progress.update(|progress| progress.upstream = Some(name));
                let answer = ask(self.upstreams.clone(), place);
                requests.spawn(async move { (place, answer.await) });
                late.insert(place, Instant::now() + limits::LATE_TIME);
            } else {
                let now = Instant::now();
                let is_late = |place| late.get(&place).is_some_and(|at| *at <= now);
                if absences.are_all(self.upstreams, is_late) {
                    self.hold.nowhere();
                    Absences::say(self.upstreams, log, hash);
                }
                if requests.is_empty() {
                    self.progress.update(|progress| progress.upstream = None);
                    turns::say_none(self.upstreams, log);
                }
            }
            let pause = match requests.is_empty() {
                true => absences.least_pause(self.upstreams),
                false => limits::LATE_TIME,
            };
            tokio::select! {
                Some(ended) = requests.join_next(), if !requests.is_empty() => {
                    let (place, answer) = ended.expect("a request does not panic");
                    late.remove(&place);
                    absences.note(self.upstreams, place, &answer);
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

/// Why a way back does not go on at a block, which is not known: it is before the `first` block of
/// this chain, or at its `floor`, the last one that stays for ever, or before that.
fn why_too_low(wanted: (u64, B256), first: u64, floor: (u64, B256)) -> Option<String> {
    let ((number, hash), (floor, lowest)) = (wanted, floor);
    if number < first {
        return Some(format!(
            "block {number}, {hash}, is before block {first}, with which this chain begins: \
             nothing older can be had but by beginning with an older state (deponent init)"
        ));
    }
    (number <= floor).then(|| {
        format!(
            "it is of another chain: its block {number} is {hash}, and this chain's block {floor}, \
             which it cannot go back behind, is {lowest}: give the consensus client and --chain \
             the same network"
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_before_the_first_is_not_called_one_of_another_chain() {
        let check = |number, first, floor, words: Option<&str>| {
            let hash = B256::with_last_byte;
            let reason = why_too_low((number, hash(1)), first, (floor, hash(2)));
            assert_eq!(reason.is_some(), words.is_some(), "{reason:?}");
            assert!(reason.unwrap_or_default().contains(words.unwrap_or_default()));
        };
        check(199, 200, 200, Some("is before block 200, with which this chain begins"));
        check(150, 200, 250, Some("is before block 200, with which this chain begins"));
        check(200, 200, 200, Some("it is of another chain: its block 200"));
        check(230, 200, 250, Some("it is of another chain: its block 230"));
        check(0, 0, 0, Some("it is of another chain"));
        check(251, 200, 250, None);
    }
}
