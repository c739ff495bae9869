//! The blocks that a node without a state knows of: those that were judged, and those that wait for
//! a witness, for their ancestors, or for themselves.
//!
//! Nothing here reads a clock, a file or a socket: callers say what time it is.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_consensus::Header;
use alloy_primitives::B256;
use alloy_rpc_types_engine::ForkchoiceState;
use engine_api::{PayloadStatus, Status};
use execution::SealedBlock;
use witness::Witness;

use super::fetch::{Fetch, FetchTask, Fetched, Offer};
use crate::limits::{
    STATELESS_AHEAD, STATELESS_AHEAD_BYTES, STATELESS_BLOCKS, STATELESS_BODY_BYTES,
    STATELESS_PAYLOAD_BYTES, STATELESS_WAITING_TIME,
};

/// The block on whose word everything rests: it is valid because the operator or the consensus
/// client says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// No fork choice has come yet.
    Unknown,
    /// The parent of the first head, whose block is not known yet.
    ParentOf(B256),
    At(B256),
}

/// The heads that the consensus client has chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StatelessHeads {
    pub(crate) head: Option<B256>,
    pub(crate) safe: Option<B256>,
    pub(crate) finalized: Option<B256>,
}

/// The verdict on a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judgement {
    Valid,
    Invalid { latest_valid: B256, reason: String },
}

/// A block that was judged.
#[derive(Debug)]
struct JudgedBlock {
    header: Header,
    /// The whole block, of the newest ones.
    block: Option<Arc<SealedBlock>>,
    judgement: Judgement,
}

/// A block that waits.
#[derive(Debug)]
struct WaitingBlock {
    /// Known once its header was seen.
    link: Option<Link>,
    block: Option<Arc<SealedBlock>>,
    /// Whether it keeps all rules that need no state.
    is_checked: bool,
    is_being_judged: bool,
    witness: Option<GivenWitness>,
    fetch: Fetch,
    since: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    parent: B256,
    number: u64,
}

/// A witness, and the source that gave it.
#[derive(Debug)]
pub(crate) struct GivenWitness {
    pub(crate) witness: Witness,
    pub(crate) source: usize,
    pub(crate) bytes: usize,
    /// The time for which its block had waited for it.
    pub(crate) waited: Duration,
}

/// The next thing to be done to a block.
#[derive(Debug)]
pub(crate) enum Job {
    /// The rules that need no state are to be checked.
    Check { block: Arc<SealedBlock>, parent: Box<Header> },
    /// It is to be verified.
    Verify { block: Arc<SealedBlock>, given: GivenWitness },
}

/// A thing that all sources were asked for, and that none has given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lacking {
    /// Its block's hash.
    pub(crate) hash: B256,
    /// Its block's number, where it is known.
    pub(crate) number: Option<u64>,
    /// Whether it is the block itself, and not its witness.
    pub(crate) is_block: bool,
    /// How long they were asked for it.
    pub(crate) since: Duration,
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hash, number, is_block, .. } = self;
        let block = match number {
            Some(number) => format!("block {number} ({hash})"),
            None => format!("block {hash}"),
        };
        match is_block {
            true => write!(f, "{block} is missing, and no source gives it"),
            false => write!(f, "no source gives the witness of {block}"),
        }
    }
}

/// A fork choice that contradicts what is known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoAncestor {
    pub(crate) name: &'static str,
    pub(crate) hash: B256,
}

/// All blocks that are known.
#[derive(Debug)]
pub(crate) struct Chain {
    sources: usize,
    /// The first block of the chain, where its genesis file was given.
    genesis: Option<Arc<SealedBlock>>,
    anchor: Anchor,
    /// The anchor's header, once a witness or a source had it.
    anchor_header: Option<Header>,
    /// The anchor itself, once a source had it.
    anchor_block: Option<Arc<SealedBlock>>,
    anchor_fetch: Option<Fetch>,
    /// Bad answers of each source since its last good one.
    bad: Vec<u32>,
    judged: HashMap<B256, JudgedBlock>,
    /// In the order in which they were judged.
    order: VecDeque<B256>,
    /// Those that are kept whole.
    whole: VecDeque<B256>,
    whole_bytes: usize,
    waiting: HashMap<B256, WaitingBlock>,
    /// The waiting blocks by their parent.
    children: HashMap<B256, Vec<B256>>,
    heads: StatelessHeads,
    /// The head of the last fork choice, whether it is valid yet or not.
    wanted: Option<B256>,
    /// The highest number heard of.
    highest: u64,
    /// Whether it was said that a block does not descend from the anchor.
    has_stray: bool,
    /// Whether it was said that too many blocks are missing.
    is_full: bool,
}

impl Chain {
    /// Of so many sources; `anchor`, if the operator names one.
    pub(crate) fn new(sources: usize, genesis: Option<SealedBlock>, anchor: Option<B256>) -> Self {
        let genesis = genesis.map(Arc::new);
        let is_anchor = |genesis: &&Arc<SealedBlock>| anchor == Some(genesis.hash());
        let anchor_block = genesis.as_ref().filter(is_anchor).cloned();
        Self {
            sources,
            genesis,
            anchor: anchor.map_or(Anchor::Unknown, Anchor::At),
            anchor_header: anchor_block.as_ref().map(|block| block.header.clone()),
            anchor_block,
            anchor_fetch: None,
            bad: vec![0; sources],
            judged: HashMap::new(),
            order: VecDeque::new(),
            whole: VecDeque::new(),
            whole_bytes: 0,
            waiting: HashMap::new(),
            children: HashMap::new(),
            heads: StatelessHeads::default(),
            wanted: None,
            highest: 0,
            has_stray: false,
            is_full: false,
        }
    }

    pub(crate) const fn anchor(&self) -> Anchor {
        self.anchor
    }

    pub(crate) const fn heads(&self) -> StatelessHeads {
        self.heads
    }

    pub(crate) const fn highest(&self) -> u64 {
        self.highest
    }

    /// The head of the last fork choice, whether it is valid yet or not.
    pub(crate) const fn wanted(&self) -> Option<B256> {
        self.wanted
    }

    /// Whether the head that was chosen last is valid.
    pub(crate) fn is_in_step(&self) -> bool {
        self.wanted.is_some_and(|wanted| self.heads.head == Some(wanted) && self.is_valid(&wanted))
    }

    pub(crate) fn waiting_len(&self) -> usize {
        self.waiting.len()
    }

    /// The verdict on a block, where there is one.
    pub(crate) fn status(&self, hash: &B256) -> Option<PayloadStatus> {
        if self.anchor == Anchor::At(*hash) {
            return Some(valid(*hash));
        }
        Some(match &self.judged.get(hash)?.judgement {
            Judgement::Valid => valid(*hash),
            Judgement::Invalid { latest_valid, reason } => PayloadStatus {
                status: Status::Invalid,
                latest_valid_hash: Some(*latest_valid),
                validation_error: Some(reason.clone()),
            },
        })
    }

    fn is_valid(&self, hash: &B256) -> bool {
        self.anchor == Anchor::At(*hash)
            || self.judged.get(hash).is_some_and(|known| known.judgement == Judgement::Valid)
    }

    /// The header of a valid block, where it is kept.
    pub(crate) fn header(&self, hash: &B256) -> Option<&Header> {
        let judged = self.judged.get(hash).filter(|known| known.judgement == Judgement::Valid);
        let anchor = || self.anchor_header.as_ref().filter(|_| self.anchor == Anchor::At(*hash));
        let genesis = || self.genesis.as_ref().filter(|first| first.hash() == *hash);
        judged
            .map(|known| &known.header)
            .or_else(anchor)
            .or_else(|| genesis().map(|first| &first.header))
    }

    /// A valid block, where it is kept whole.
    pub(crate) fn block(&self, hash: &B256) -> Option<Arc<SealedBlock>> {
        self.header(hash)?;
        let judged = self.judged.get(hash).and_then(|known| known.block.as_ref());
        let first = [&self.anchor_block, &self.genesis].into_iter().flatten();
        judged.or_else(|| first.into_iter().find(|block| block.hash() == *hash)).cloned()
    }

    /// The head; before there is one the block that the chain begins with: the anchor, or that of
    /// the genesis file.
    pub(crate) fn latest(&self) -> Option<(B256, &Header)> {
        let anchor = match self.anchor {
            Anchor::At(hash) => Some(hash),
            Anchor::Unknown | Anchor::ParentOf(_) => None,
        };
        let genesis = self.genesis.as_ref().map(|first| first.hash());
        let mut known = [self.heads.head, anchor, genesis].into_iter().flatten();
        known.find_map(|hash| Some((hash, self.header(&hash)?)))
    }

    /// The canonical block with a number, where it is kept.
    pub(crate) fn canonical(&self, number: u64) -> Option<B256> {
        self.canonical_range(number, 1).pop().flatten()
    }

    /// The canonical blocks from a number on, at most so many and none behind the head; `None` is
    /// one that is not kept.
    pub(crate) fn canonical_range(&self, first: u64, most: u64) -> Vec<Option<B256>> {
        let Some((mut hash, latest)) = self.latest().filter(|(_, head)| head.number >= first)
        else {
            return Vec::new();
        };
        let count = most.min(latest.number - first + 1);
        let mut found = vec![None; usize::try_from(count).expect("as many as the caller holds")];
        while let Some(header) = self.header(&hash).filter(|header| header.number >= first) {
            if let Some(place) = found.get_mut((header.number - first) as usize) {
                *place = Some(hash);
            }
            hash = header.parent_hash;
        }
        if first == 0
            && let (Some(place), Some(genesis)) = (found.first_mut(), &self.genesis)
        {
            *place = Some(genesis.hash());
        }
        found
    }

    /// Whether all that a waiting block lacks are verdicts on its ancestors, or witnesses.
    pub(crate) fn is_linked(&self, hash: &B256) -> bool {
        let mut hash = *hash;
        for _ in 0..=self.waiting.len() {
            if self.is_valid(&hash) {
                return true;
            }
            match self.waiting.get(&hash).and_then(|waiting| waiting.link) {
                Some(link) => hash = link.parent,
                None => return false,
            }
        }
        false
    }

    /// Adds a block whose body its header names, from the consensus client or a source.
    pub(crate) fn add(&mut self, block: Arc<SealedBlock>, now: Instant) {
        let (hash, parent) = (block.hash(), block.header.parent_hash);
        let number = block.header.number;
        self.highest = self.highest.max(number);
        if self.anchor == Anchor::At(hash) {
            self.hold_anchor(block.clone());
        }
        if self.status(&hash).is_some() {
            return;
        }
        if let Some(Judgement::Invalid { latest_valid, reason }) =
            self.judged.get(&parent).map(|known| known.judgement.clone())
        {
            let judgement = Judgement::Invalid { latest_valid, reason };
            self.forget(&hash);
            self.keep(hash, &block, judgement.clone());
            self.judge_descendants(hash, &judgement);
            return;
        }
        let sources = self.sources;
        let waiting = self.waiting.entry(hash).or_insert_with(|| WaitingBlock::new(sources, now));
        if waiting.link.is_none() {
            waiting.link = Some(Link { parent, number });
            self.children.entry(parent).or_default().push(hash);
        }
        if waiting.block.is_none() {
            waiting.block = Some(block);
            // The offers so far were of the block, not of its witness.
            waiting.fetch = Fetch::new(sources, now);
        }
        if self.anchor == Anchor::ParentOf(hash) {
            self.set_anchor(if number == 0 { hash } else { parent }, now);
        }
        self.want_parent(parent, number, now);
        self.shed_payloads(now);
    }

    /// Has the parent of a waiting block fetched, unless it is known or cannot be of this chain.
    fn want_parent(&mut self, parent: B256, number: u64, now: Instant) {
        let Anchor::At(anchor) = self.anchor else { return };
        if self.is_valid(&parent) || self.waiting.contains_key(&parent) {
            return;
        }
        let of_anchor = self.header(&anchor).map(|header| header.number);
        // The oldest are forgotten once there are that many.
        let oldest = self.order.front().filter(|_| self.order.len() >= STATELESS_BLOCKS);
        let oldest = oldest.and_then(|hash| self.judged.get(hash)).map(|known| known.header.number);
        let lowest = of_anchor.max(oldest);
        if lowest.is_some_and(|lowest| number <= lowest + 1) || number == 0 {
            if !self.has_stray {
                tracing::warn!(
                    number, %parent, %anchor,
                    "a block does not descend from the anchor: it cannot be verified. If the chain \
                     has left the anchor, start again, or name another one with --stateless.anchor"
                );
            }
            self.has_stray = true;
            return;
        }
        self.want(parent, now);
    }

    /// Has a block fetched of which only the hash is known.
    fn want(&mut self, hash: B256, now: Instant) {
        if self.waiting.len() >= STATELESS_BLOCKS {
            if !self.is_full {
                let blocks = STATELESS_BLOCKS;
                tracing::warn!(
                    blocks,
                    "more blocks are missing than may wait: start again, so that the anchor is \
                     nearer to the head"
                );
            }
            self.is_full = true;
            return;
        }
        let sources = self.sources;
        self.waiting.entry(hash).or_insert_with(|| WaitingBlock::new(sources, now));
    }

    fn set_anchor(&mut self, hash: B256, now: Instant) {
        tracing::info!(
            %hash,
            "the anchor: this block is trusted, and every VALID rests on it"
        );
        self.anchor = Anchor::At(hash);
        let waiting = self.forget(&hash).and_then(|waiting| waiting.block);
        let genesis = || self.genesis.clone().filter(|first| first.hash() == hash);
        if let Some(block) = waiting.or_else(genesis) {
            self.hold_anchor(block);
        }
        let orphans: Vec<_> = self.waiting.values().filter_map(|waiting| waiting.link).collect();
        for link in orphans {
            self.want_parent(link.parent, link.number, now);
        }
    }

    fn hold_anchor(&mut self, block: Arc<SealedBlock>) {
        self.anchor_header = Some(block.header.clone());
        self.anchor_block = Some(block);
    }

    /// Applies a fork choice, and says what is known of its head.
    ///
    /// # Errors
    /// If the safe or the finalized block is known and no ancestor of the head.
    pub(crate) fn choose(
        &mut self,
        state: ForkchoiceState,
        now: Instant,
    ) -> Result<PayloadStatus, NoAncestor> {
        let head = state.head_block_hash;
        self.wanted = Some(head);
        if !matches!(self.anchor, Anchor::At(_)) {
            self.choose_anchor(&state, now);
        }
        if let Some(status) = self.status(&head) {
            if status.status != Status::Valid {
                return Ok(status);
            }
            let named = |hash: B256| Some(hash).filter(|hash| !hash.is_zero());
            let (safe, finalized) =
                (named(state.safe_block_hash), named(state.finalized_block_hash));
            for (name, hash) in [("safe", safe), ("finalized", finalized)] {
                if let Some(hash) = hash.filter(|hash| !self.may_be_ancestor(hash, &head)) {
                    return Err(NoAncestor { name, hash });
                }
            }
            self.heads = StatelessHeads { head: Some(head), safe, finalized };
            self.shed_old(now);
            return Ok(status);
        }
        if matches!(self.anchor, Anchor::At(_)) || self.anchor == Anchor::ParentOf(head) {
            self.want(head, now);
        }
        Ok(PayloadStatus {
            status: Status::Syncing,
            latest_valid_hash: None,
            validation_error: None,
        })
    }

    /// The anchor of the first fork choice: its finalized block, else the head's parent. The first
    /// block of a chain whose genesis is known needs nobody's word.
    fn choose_anchor(&mut self, state: &ForkchoiceState, now: Instant) {
        let (head, finalized) = (state.head_block_hash, state.finalized_block_hash);
        let known = self.waiting.get(&head).and_then(|waiting| waiting.link);
        if !finalized.is_zero() {
            self.set_anchor(finalized, now);
        } else if self.genesis.as_ref().is_some_and(|first| first.hash() == head) {
            self.set_anchor(head, now);
        } else if let Some(link) = known {
            self.set_anchor(if link.number == 0 { head } else { link.parent }, now);
        } else {
            self.anchor = Anchor::ParentOf(head);
        }
    }

    /// Whether a block is an ancestor of `head`, or older than what is kept.
    fn may_be_ancestor(&self, hash: &B256, head: &B256) -> bool {
        let Some(wanted) = self.header(hash) else { return !self.is_known(hash) };
        let mut at = *head;
        loop {
            if at == *hash {
                return true;
            }
            match self.header(&at) {
                Some(header) if header.number > wanted.number => at = header.parent_hash,
                Some(_) => return false,
                None => return true,
            }
        }
    }

    fn is_known(&self, hash: &B256) -> bool {
        self.judged.contains_key(hash) || self.waiting.contains_key(hash)
    }

    /// The waiting blocks whose parent is valid, and those behind them, nearest first, each with
    /// the number of blocks before it.
    fn nearest(&self) -> Vec<(B256, usize)> {
        let parents = self.children.keys().filter(|parent| self.is_valid(parent));
        let ready = parents.flat_map(|parent| self.children[parent].iter());
        let mut found: Vec<_> = ready.map(|hash| (*hash, 0)).collect();
        let mut level = 0;
        for depth in 1..STATELESS_AHEAD {
            let end = found.len();
            let next = found[level..end].iter().filter_map(|(hash, _)| self.children.get(hash));
            let next: Vec<_> = next.flatten().map(|hash| (*hash, depth)).collect();
            level = end;
            found.extend(next);
        }
        found
    }

    /// Bytes of the witnesses that are held.
    pub(crate) fn witness_bytes(&self) -> usize {
        let given = self.waiting.values().filter_map(|waiting| waiting.witness.as_ref());
        given.map(|given| given.bytes).sum()
    }

    /// The next thing that a source is asked for, or when there may be one.
    pub(crate) fn next_task(
        &mut self,
        source: usize,
        now: Instant,
    ) -> Result<FetchTask, Option<Instant>> {
        let unlinked = self.waiting.iter().filter(|(_, waiting)| waiting.link.is_none());
        let mut wanted: Vec<_> = unlinked.map(|(hash, _)| FetchTask::Block(*hash)).collect();
        let (held, nearest) = (self.witness_bytes(), self.nearest());
        let has_witness = |hash: &B256| {
            let waiting = &self.waiting[hash];
            waiting.is_being_judged || waiting.witness.is_some()
        };
        // There is always room for one that is not behind another.
        let is_full = held >= STATELESS_AHEAD_BYTES;
        let is_busy = nearest.iter().any(|(hash, depth)| *depth == 0 && has_witness(hash));
        for (hash, depth) in nearest {
            let waiting = &self.waiting[&hash];
            let Some(link) = waiting.link else { continue };
            if waiting.block.is_none() {
                wanted.push(FetchTask::Block(hash));
            } else if !has_witness(&hash) && !(is_full && (depth > 0 || is_busy)) {
                wanted.push(FetchTask::Witness { hash, number: link.number });
            }
        }
        if let Anchor::At(anchor) = self.anchor
            && self.anchor_header.is_none()
        {
            wanted.push(FetchTask::Block(anchor));
        }
        let (bad, mut earliest) = (self.bad[source], None);
        for task in wanted {
            let Some(fetch) = self.fetch(&task.hash(), now) else { continue };
            match fetch.begin(source, bad, now) {
                Ok(()) => return Ok(task),
                Err(later) => {
                    earliest = Some(earliest.map_or(later, |at: Instant| at.min(later)));
                }
            }
        }
        Err(earliest)
    }

    /// The block that no source has given, though all were asked for it for a while; where there is
    /// none, the witness of the next block.
    pub(crate) fn lacking(&self, now: Instant) -> Option<Lacking> {
        let lacks = |hash: B256, number: Option<u64>| {
            let waiting = &self.waiting[&hash];
            let since = waiting.fetch.lacking(now)?;
            let is_block = waiting.block.is_none();
            let has_witness = waiting.witness.is_some() || waiting.is_being_judged;
            (is_block || !has_witness).then_some(Lacking { hash, number, is_block, since })
        };
        let unlinked = self.waiting.iter().filter(|(_, waiting)| waiting.link.is_none());
        let longest = unlinked.filter_map(|(hash, _)| lacks(*hash, self.number_above(hash)));
        longest.max_by_key(|lacking| lacking.since).or_else(|| {
            let mut next = self.nearest().into_iter().filter(|(_, depth)| *depth == 0);
            next.find_map(|(hash, _)| lacks(hash, Some(self.waiting[&hash].link?.number)))
        })
    }

    /// The number of a block of which there is no more than the hash, by its child.
    fn number_above(&self, hash: &B256) -> Option<u64> {
        let child = self.children.get(hash)?.first()?;
        self.waiting.get(child)?.link?.number.checked_sub(1)
    }

    /// The sources as far as a block is concerned that is fetched.
    fn fetch(&mut self, hash: &B256, now: Instant) -> Option<&mut Fetch> {
        if self.anchor == Anchor::At(*hash) {
            let sources = self.sources;
            return Some(self.anchor_fetch.get_or_insert_with(|| Fetch::new(sources, now)));
        }
        self.waiting.get_mut(hash).map(|waiting| &mut waiting.fetch)
    }

    /// Takes what a source has given for a task.
    pub(crate) fn take(&mut self, source: usize, task: FetchTask, fetched: Fetched, now: Instant) {
        let hash = task.hash();
        let since = self.waiting.get(&hash).map(|waiting| waiting.since);
        let Some(fetch) = self.fetch(&hash, now) else { return };
        fetch.end(source);
        let offer = fetch.offer(source);
        match fetched {
            Fetched::Absent => {
                let age = since.map(|since| now.saturating_duration_since(since));
                offer.absent(age.unwrap_or(STATELESS_WAITING_TIME), now);
            }
            Fetched::Failed => offer.failed(now),
            Fetched::Block(block) => self.add(block, now),
            Fetched::Witness(witness, bytes) => {
                let Some(waiting) = self.waiting.get_mut(&hash) else { return };
                let is_wanted = waiting.witness.is_none() && !waiting.is_being_judged;
                if is_wanted && waiting.block.is_some() {
                    let waited = now.saturating_duration_since(waiting.since);
                    waiting.witness = Some(GivenWitness { witness, source, bytes, waited });
                }
            }
        }
    }

    /// A source has said that it has the witness of a block: it is asked at once.
    pub(crate) fn offered(&mut self, source: usize, hash: &B256, now: Instant) {
        if let Some(waiting) = self.waiting.get_mut(hash) {
            *waiting.fetch.offer(source) = Offer::now(now);
        }
    }

    /// The next thing to be done to a block. Its end is to be told by [`judge`](Self::judge),
    /// [`checked`](Self::checked) or [`refuse`](Self::refuse).
    pub(crate) fn next_job(&mut self) -> Option<Job> {
        let parents = self.children.keys().filter(|parent| self.is_valid(parent));
        let ready: Vec<_> = parents.flat_map(|parent| self.children[parent].clone()).collect();
        for hash in ready {
            let waiting = &self.waiting[&hash];
            let Some(block) = waiting.block.clone().filter(|_| !waiting.is_being_judged) else {
                continue;
            };
            let parent = self.header(&block.header.parent_hash).filter(|_| !waiting.is_checked);
            if let Some(parent) = parent.cloned().map(Box::new) {
                self.waiting.get_mut(&hash)?.is_being_judged = true;
                return Some(Job::Check { block, parent });
            }
            let waiting = self.waiting.get_mut(&hash)?;
            if let Some(given) = waiting.witness.take() {
                waiting.is_being_judged = true;
                return Some(Job::Verify { block, given });
            }
        }
        None
    }

    /// A block keeps the rules that need no state.
    pub(crate) fn checked(&mut self, hash: &B256) {
        if let Some(waiting) = self.waiting.get_mut(hash) {
            (waiting.is_checked, waiting.is_being_judged) = (true, false);
        }
    }

    /// The witness of a block is no good: it is asked for again, elsewhere first.
    pub(crate) fn refuse(&mut self, hash: &B256, source: usize, now: Instant) {
        if let Some(waiting) = self.waiting.get_mut(hash) {
            waiting.is_being_judged = false;
            waiting.fetch.offer(source).refused(now);
        }
        self.bad[source] = self.bad[source].saturating_add(1);
    }

    /// A witness of this source was whole.
    pub(crate) fn trust(&mut self, source: usize) {
        self.bad[source] = 0;
    }

    /// A block was judged: it is valid, with the header of its parent, or it is not, for a reason.
    pub(crate) fn judge(&mut self, block: &Arc<SealedBlock>, outcome: Result<Header, String>) {
        let (hash, parent) = (block.hash(), block.header.parent_hash);
        if self.forget(&hash).is_none() {
            return;
        }
        match outcome {
            Ok(header) => {
                if self.anchor == Anchor::At(parent) {
                    self.anchor_header.get_or_insert(header);
                }
                self.keep(hash, block, Judgement::Valid);
            }
            Err(reason) => {
                let judgement = Judgement::Invalid { latest_valid: parent, reason };
                self.keep(hash, block, judgement.clone());
                self.judge_descendants(hash, &judgement);
            }
        }
    }

    /// Descendants of an invalid block are invalid.
    fn judge_descendants(&mut self, hash: B256, judgement: &Judgement) {
        let mut parents = vec![hash];
        while let Some(parent) = parents.pop() {
            for child in self.children.remove(&parent).unwrap_or_default() {
                parents.push(child);
                let waiting = self.waiting.remove(&child);
                if let Some(block) = waiting.and_then(|waiting| waiting.block) {
                    self.keep(child, &block, judgement.clone());
                }
            }
        }
    }

    /// Removes a waiting block.
    fn forget(&mut self, hash: &B256) -> Option<WaitingBlock> {
        let waiting = self.waiting.remove(hash)?;
        if let Some(Link { parent, .. }) = waiting.link
            && let Some(children) = self.children.get_mut(&parent)
        {
            children.retain(|child| child != hash);
            if children.is_empty() {
                self.children.remove(&parent);
            }
        }
        Some(waiting)
    }

    /// Keeps the verdict on a block, and forgets the oldest.
    fn keep(&mut self, hash: B256, block: &Arc<SealedBlock>, judgement: Judgement) {
        let is_valid = judgement == Judgement::Valid;
        let judged = JudgedBlock {
            header: block.header.clone(),
            block: is_valid.then(|| block.clone()),
            judgement,
        };
        if self.judged.insert(hash, judged).is_some() {
            return;
        }
        self.order.push_back(hash);
        if is_valid {
            self.whole.push_back(hash);
            self.whole_bytes += held_bytes(block);
        }
        while self.whole_bytes > STATELESS_BODY_BYTES && self.whole.len() > 1 {
            let oldest = self.whole.pop_front().expect("there is more than one");
            let block = self.judged.get_mut(&oldest).and_then(|judged| judged.block.take());
            self.whole_bytes -= block.map_or(0, |block| held_bytes(&block));
        }
        let named: HashSet<B256> = [self.heads.head, self.heads.safe, self.heads.finalized]
            .into_iter()
            .flatten()
            .collect();
        for _ in 0..named.len() + 1 {
            if self.order.len() <= STATELESS_BLOCKS {
                break;
            }
            let oldest = self.order.pop_front().expect("there are many");
            match named.contains(&oldest) {
                true => self.order.push_back(oldest),
                false => drop(self.judged.remove(&oldest)),
            }
        }
    }

    /// Forgets the content of the highest waiting blocks where all are too many bytes: it is
    /// fetched again when they are next.
    fn shed_payloads(&mut self, now: Instant) {
        let of = |waiting: &WaitingBlock| waiting.block.as_deref().map_or(0, held_bytes);
        let mut bytes: usize = self.waiting.values().map(of).sum();
        while bytes > STATELESS_PAYLOAD_BYTES {
            let whole = self.waiting.values_mut().filter(|waiting| waiting.block.is_some());
            let highest = whole.max_by_key(|waiting| waiting.link.map(|link| link.number));
            let Some(waiting) = highest.filter(|waiting| !waiting.is_being_judged) else { return };
            bytes -= of(waiting);
            (waiting.block, waiting.witness, waiting.is_checked) = (None, None, false);
            waiting.fetch = Fetch::new(self.sources, now);
        }
    }

    /// Forgets blocks of other branches that nobody asks about any more.
    fn shed_old(&mut self, now: Instant) {
        let Some(head) = self.heads.head.and_then(|head| self.header(&head)) else { return };
        let head = head.number;
        let is_old = |waiting: &WaitingBlock| {
            let is_low = waiting.link.is_none_or(|link| link.number <= head);
            let age = now.saturating_duration_since(waiting.since);
            is_low && age > STATELESS_WAITING_TIME && !waiting.is_being_judged
        };
        let old = self.waiting.iter().filter(|(_, waiting)| is_old(waiting));
        for hash in old.map(|(hash, _)| *hash).collect::<Vec<_>>() {
            self.forget(&hash);
        }
    }
}

impl WaitingBlock {
    fn new(sources: usize, now: Instant) -> Self {
        Self {
            link: None,
            block: None,
            is_checked: false,
            is_being_judged: false,
            witness: None,
            fetch: Fetch::new(sources, now),
            since: now,
        }
    }
}

fn valid(hash: B256) -> PayloadStatus {
    PayloadStatus { status: Status::Valid, latest_valid_hash: Some(hash), validation_error: None }
}

/// Bytes that a block takes in memory: its transactions are decoded, and about as long again.
fn held_bytes(block: &SealedBlock) -> usize {
    2 * block.rlp_bytes()
}

#[cfg(test)]
mod tests;
