//! The way back from a block that is missing to the first one that is known.

use alloy_consensus::Header;
use alloy_primitives::B256;
use engine::{Engine, MissingBlock};
use rpc::LogThrottle;

use crate::limits;
use crate::progress_log::ProgressLog;
use crate::route::Route;
use crate::status::SharedProgress;
use crate::turns;
use crate::upstream::Upstream;

/// The way back: of each header nothing stays but its hash.
pub(crate) struct Descent<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) upstreams: &'a [Upstream],
    pub(crate) progress: &'a SharedProgress,
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
    Invalid(B256),
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
        let head = self.number(&self.engine.heads().head).unwrap_or(0);
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
            return Some(DescentEnd::Invalid(hash));
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
        loop {
            let upstream = self.upstream(log).await;
            if let Ok(header) = upstream.header(hash).await {
                return header.number;
            }
        }
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
        let (number, hash) = wanted;
        loop {
            let upstream = self.upstream(log).await;
            if misses.count_ones() <= 1 {
                let Ok(found) = upstream.headers_down(number, count).await else { continue };
                let mut next = hash;
                let follows = |(got, header): (B256, Header)| {
                    let is_next = got == next;
                    next = header.parent_hash;
                    is_next.then_some(header)
                };
                let headers: Vec<_> = found.into_iter().map_while(follows).collect();
                if !headers.is_empty() {
                    upstream.used_headers(headers.len());
                    *misses = 0;
                    return headers;
                }
            }
            *misses += 1;
            if let Ok(header) = upstream.header(hash).await {
                return vec![header];
            }
        }
    }

    /// The upstream that is asked next.
    async fn upstream(&self, log: &LogThrottle) -> &Upstream {
        let next = turns::next(self.upstreams, |_| true);
        let place = match next {
            Some(place) => place,
            None => {
                self.progress.update(|progress| progress.upstream = None);
                turns::wait(self.upstreams, log).await
            }
        };
        let upstream = &self.upstreams[place];
        self.progress.update(|progress| progress.upstream = Some(upstream.name().to_owned()));
        upstream
    }
}
