//! The task that follows the head of an upstream.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_consensus::Header;
use alloy_primitives::B256;
use alloy_rpc_types_engine::ForkchoiceState;
use engine::{Engine, ForkchoiceOutcome, Verdict};
use execution::SealedBlock;
use rpc::LogThrottle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::error::Error;
use crate::head::news::HeadNews;
use crate::head::status::{HeadTag, SharedStatus};
use crate::limits::{HEAD_CHECK, HEAD_POLL, HEAD_RETURN, HEAD_UNFIT, LATE_TIME};
use crate::upstream::Upstream;

/// How the head stands after the upstream was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is that of the upstream, or cannot be.
    Settled,
    /// It is not yet that of the upstream.
    Behind,
}

/// Why an upstream is not followed further.
enum Left {
    /// It did not give what it was asked for, which the log says.
    Unanswered(Error),
    /// It has not answered for a while, and another one can be asked.
    Late,
    /// It cannot be followed.
    Unfit(String),
    /// It cannot be followed yet.
    Young(String),
}

impl From<Error> for Left {
    fn from(error: Error) -> Self {
        Self::Unanswered(error)
    }
}

impl From<engine::Error> for Left {
    fn from(error: engine::Error) -> Self {
        Self::Unfit(error.to_string())
    }
}

/// A head of an upstream that is invalid.
struct InvalidHead {
    hash: B256,
    reason: String,
    /// The head of this chain at the time.
    head: B256,
}

/// The upstream that is followed, among all.
#[derive(Clone, Copy)]
struct Others<'a> {
    upstreams: &'a [Upstream],
    place: usize,
}

pub(crate) struct HeadTask {
    engine: Arc<Engine>,
    upstreams: Arc<[Upstream]>,
    tag: HeadTag,
    shared: Arc<SharedStatus>,
    /// A block before the head that the upstream named as its head, the last time that it did.
    earlier: Option<B256>,
    /// The last head of an upstream that is invalid.
    invalid: Option<InvalidHead>,
    /// Until when each upstream is left alone that cannot be followed, by its place.
    unfit: HashMap<usize, Instant>,
    /// The place of the upstream that was followed last.
    followed: Option<usize>,
    log: LogThrottle,
}

impl HeadTask {
    pub(crate) fn new(
        engine: Arc<Engine>,
        upstreams: Arc<[Upstream]>,
        tag: HeadTag,
        shared: Arc<SharedStatus>,
    ) -> Self {
        let (earlier, invalid, log) = (None, None, LogThrottle::minutely());
        let (unfit, followed) = (HashMap::new(), None);
        Self { engine, upstreams, tag, shared, earlier, invalid, unfit, followed, log }
    }

    /// Follows one upstream after the other, until it is stopped.
    pub(crate) async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let upstreams = self.upstreams.clone();
        let following = async {
            loop {
                let waits: Vec<_> = (0..).zip(&*upstreams).map(|at| self.wait(at)).collect();
                let Some(place) = waits.iter().position(Duration::is_zero) else {
                    sleep(waits.into_iter().min().unwrap_or(HEAD_POLL)).await;
                    continue;
                };
                if let Err(left) = self.follow(&upstreams, place).await {
                    self.shared.lock().upstream = None;
                    self.leave((place, &upstreams[place]), &left);
                }
            }
        };
        tokio::select! {
            () = following => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
    }

    /// Follows an upstream, until it does not answer, or one before it may answer again.
    async fn follow(&mut self, upstreams: &[Upstream], place: usize) -> Result<(), Left> {
        let upstream = &upstreams[place];
        let others = Others { upstreams, place };
        self.in_time(others, self.check_chain(upstream)).await?;
        let news = async { Ok(HeadNews::open(upstream).await?) };
        let (mut news, since) = (self.in_time(others, news).await?, Instant::now());
        if self.followed.replace(place) != Some(place) {
            tracing::info!(
                upstream = upstream.name(),
                tag = self.tag.word(),
                by = news.word(),
                "the head of this upstream is followed"
            );
        }
        self.shared.lock().upstream = Some(upstream.name().to_owned());
        loop {
            let most = match self.step(others).await? {
                Standing::Settled => HEAD_CHECK,
                Standing::Behind => HEAD_POLL,
            };
            let mut earlier = (0..).zip(&upstreams[..place]);
            if since.elapsed() > HEAD_RETURN && earlier.any(|at| self.wait(at).is_zero()) {
                return Ok(());
            }
            news.next(most).await?;
        }
    }

    /// An answer of an upstream; where others can be asked, it comes soon or not at all.
    async fn in_time<T>(
        &self,
        Others { upstreams, place }: Others<'_>,
        answer: impl Future<Output = Result<T, Left>>,
    ) -> Result<T, Left> {
        let mut others = (0..).zip(upstreams).filter(|(other, _)| *other != place);
        match others.any(|at| self.wait(at).is_zero()) {
            true => timeout(LATE_TIME, answer).await.unwrap_or(Err(Left::Late)),
            false => answer.await,
        }
    }

    /// Checks that the upstream has the first block of this chain.
    async fn check_chain(&self, upstream: &Upstream) -> Result<(), Left> {
        let (own, first) = (self.engine.chain().chain_id(), self.engine.heads().genesis);
        let chain_id = upstream.settled(upstream.ask_chain(own).await)?;
        if chain_id != own {
            let reason = format!("it has chain {chain_id}, this node chain {own}");
            return Err(Left::Unfit(reason));
        }
        match upstream.header(first).await {
            Ok(_) => Ok(()),
            Err(Error::Absent(_)) => Err(self.without_first(upstream, first).await?),
            Err(error) => Err(error.into()),
        }
    }

    /// Why an upstream does not have the first block of this chain.
    async fn without_first(&self, upstream: &Upstream, first: B256) -> Result<Left, Left> {
        let number = self.engine.number(&first)?.unwrap_or(0);
        let latest = upstream.header_at(HeadTag::Latest.word()).await?;
        Ok(match latest.map(|latest| latest.number) {
            Some(latest) if latest < number => Left::Young(format!(
                "it is at block {latest}, and this chain begins at block {number}"
            )),
            _ => Left::Unfit(format!(
                "it has another chain: it does not know block {first}, with which this one begins"
            )),
        })
    }

    /// Asks for the head, and moves towards it.
    async fn step(&mut self, others: Others<'_>) -> Result<Standing, Left> {
        let upstream = &others.upstreams[others.place];
        let knows = |hash: &B256| self.engine.number(hash).map(|number| number.is_some());
        let [safe, finalized] = [HeadTag::Safe, HeadTag::Finalized].map(HeadTag::word);
        let headers = async {
            let (head, safe, finalized) = tokio::join!(
                self.head_of(upstream),
                upstream.header_if_named(safe),
                upstream.header_if_named(finalized),
            );
            Ok((head?, safe, finalized))
        };
        let (head, safe, finalized) = self.in_time(others, headers).await?;
        let Some(head) = head else {
            self.say(format!("{} has no {} block yet", upstream.name(), self.tag));
            return Ok(Standing::Settled);
        };
        let hash = head.hash_slow();
        self.shared.lock().head = Some((head.number, hash));
        if self.invalid.as_ref().is_some_and(|invalid| invalid.hash == hash) {
            return Ok(Standing::Settled);
        }
        // Where the parent is missing, the fork choice has the gap filled.
        if !knows(&hash)? && knows(&head.parent_hash)? {
            // Where it does not come, it is a gap, for which all upstreams are asked.
            let verdict = match timeout(LATE_TIME, upstream.blocks(&[hash])).await {
                Ok(Err(Error::Absent(_))) | Err(_) => None,
                Ok(blocks) => match blocks?.pop() {
                    None => None,
                    Some(block) => Some(self.run_block(upstream, block).await?),
                },
            };
            match verdict {
                None | Some(Verdict::Valid) => {}
                Some(Verdict::Invalid { reason, .. }) => {
                    self.refuse(upstream, &head, &reason);
                    return Ok(Standing::Settled);
                }
                Some(Verdict::Syncing(missing)) => {
                    self.say(format!(
                        "block {} of {} cannot run: {missing}",
                        head.number,
                        upstream.name()
                    ));
                    return Ok(Standing::Behind);
                }
            }
        }
        if !knows(&hash)? {
            self.in_time(others, self.leave_finalized(upstream, &head)).await?;
        }
        let named = |header: Result<Option<Header>, Error>| {
            header.ok().flatten().map_or(B256::ZERO, |header| header.hash_slow())
        };
        self.choose(upstream, &head, [named(safe), named(finalized)]).await
    }

    /// Goes back to the last block that this chain and the upstream share, where the upstream has
    /// left the finalized block: no gap is filled behind that.
    async fn leave_finalized(&self, upstream: &Upstream, head: &Header) -> Result<(), Left> {
        let heads = self.engine.heads();
        let Some(finalized) = heads.finalized else { return Ok(()) };
        let number = |hash: &B256| Ok::<_, Left>(self.engine.number(hash)?.unwrap_or(0));
        let (mut shared, mut left) = (number(&heads.genesis)?, number(&finalized)?);
        if left <= shared {
            return Ok(());
        }
        // A head that is not known, and is not after the finalized block, is on another branch.
        if left < head.number && self.is_shared(upstream, left).await? {
            return Ok(());
        }
        while left - shared > 1 {
            let middle = shared + (left - shared) / 2;
            let is_shared = middle < head.number && self.is_shared(upstream, middle).await?;
            *(if is_shared { &mut shared } else { &mut left }) = middle;
        }
        let Some(hash) = self.engine.canonical_hash(shared)? else { return Ok(()) };
        self.go_back(upstream, shared, hash).await
    }

    /// Whether an upstream has the block that this chain has at a number; also where it does not
    /// say.
    async fn is_shared(&self, upstream: &Upstream, number: u64) -> Result<bool, Left> {
        let own = self.engine.canonical_hash(number)?;
        let theirs = upstream.headers_down(number, 1).await?;
        Ok(theirs.first().is_none_or(|(hash, _)| Some(*hash) == own))
    }

    /// Makes a block the head, be it before the finalized one.
    async fn go_back(&self, upstream: &Upstream, number: u64, hash: B256) -> Result<(), Left> {
        tracing::warn!(
            number, %hash, upstream = upstream.name(),
            "the upstream has gone back behind the block that was finalized: so does this chain"
        );
        self.with_engine(move |engine| engine.reset_head(hash)).await?;
        Ok(())
    }

    /// Runs a block, with its access list where that comes.
    async fn run_block(&self, upstream: &Upstream, block: SealedBlock) -> Result<Verdict, Left> {
        let least_gas = self.engine.list_gas();
        let mut lists = upstream.access_lists(std::slice::from_ref(&block), least_gas).await;
        let list = lists.pop().flatten();
        self.with_engine(move |engine| engine.new_checked_block(block, list)).await
    }

    /// The header of the head. Of a young chain no block is safe or finalized.
    async fn head_of(&self, upstream: &Upstream) -> Result<Option<Header>, Error> {
        match self.tag {
            HeadTag::Latest => upstream.header_at(self.tag.word()).await,
            HeadTag::Safe | HeadTag::Finalized => upstream.header_if_named(self.tag.word()).await,
        }
    }

    /// Chooses a head, with a safe and a finalized block where they are known.
    async fn choose(
        &mut self,
        upstream: &Upstream,
        head: &Header,
        settled: [B256; 2],
    ) -> Result<Standing, Left> {
        let (hash, number) = (head.hash_slow(), head.number);
        let mut named = [B256::ZERO; 2];
        for (named, hash) in named.iter_mut().zip(settled) {
            let is_before = self.engine.number(&hash)?.is_some_and(|at| at <= number);
            *named = if is_before { hash } else { B256::ZERO };
        }
        let heads = self.engine.heads();
        let is_same = |now: Option<B256>, named: B256| named.is_zero() || now == Some(named);
        if heads.head == hash && is_same(heads.safe, named[0]) && is_same(heads.finalized, named[1])
        {
            self.settled(None);
            return Ok(Standing::Settled);
        }
        // Behind a balancer one of several servers may be behind the others: a head is left for one
        // before it when that is named twice.
        if heads.head != hash
            && self.engine.canonical_hash(number)? == Some(hash)
            && self.earlier.replace(hash) != Some(hash)
        {
            return Ok(Standing::Behind);
        }
        self.earlier = None;
        let state = |[safe, finalized]: [B256; 2]| ForkchoiceState {
            head_block_hash: hash,
            safe_block_hash: safe,
            finalized_block_hash: finalized,
        };
        let (state, unnamed) = (state(named), state([B256::ZERO; 2]));
        let outcome = self.with_engine(move |engine| {
            match engine.forkchoice_updated(state, None) {
                // They were asked for at another moment than the head.
                Err(engine::Error::InvalidForkchoiceState(_)) => {
                    engine.forkchoice_updated(unnamed, None)
                }
                outcome => outcome,
            }
        });
        match outcome.await? {
            ForkchoiceOutcome { is_applied: true, .. } => self.settled(None),
            ForkchoiceOutcome { verdict: Verdict::Valid, .. } => {
                self.go_back(upstream, number, hash).await?;
                self.settled(None);
            }
            ForkchoiceOutcome { verdict: Verdict::Syncing(_), .. } => {
                // Blocks on an invalid block are found to be invalid, too.
                if self.invalid.as_ref().is_none_or(|invalid| invalid.head != heads.head) {
                    let reason = format!("the blocks before block {number} are asked for");
                    self.settled(Some(reason));
                }
                return Ok(Standing::Behind);
            }
            ForkchoiceOutcome { verdict: Verdict::Invalid { reason, .. }, .. } => {
                self.refuse(upstream, head, &reason);
            }
        }
        Ok(Standing::Settled)
    }

    /// Notes that the head of the upstream breaks a rule, and that this chain stays where it is.
    fn refuse(&mut self, upstream: &Upstream, head: &Header, reason: &str) {
        let (number, hash, upstream) = (head.number, head.hash_slow(), upstream.name());
        let before = self.invalid.replace(InvalidHead {
            hash,
            reason: reason.to_owned(),
            head: self.engine.heads().head,
        });
        // The same for each head that stands on an invalid block.
        let is_new = before.is_none_or(|before| before.reason != reason);
        if self.log.is_due() || is_new {
            tracing::error!(
                number, %hash, reason, upstream,
                "the head of the upstream is no valid block: this chain stays where it is, until \
                 the upstream has another head"
            );
        }
        self.settled(Some(format!("block {number} of {upstream}, {hash}, is invalid: {reason}")));
    }

    fn settled(&self, problem: Option<String>) {
        self.shared.lock().problem = problem;
    }

    /// Says once a minute why the head of an upstream is not the head.
    fn say(&self, problem: String) {
        if self.log.is_due() {
            tracing::warn!(reason = problem, "the head of the upstream is not taken");
        }
        self.settled(Some(problem));
    }

    /// Leaves an upstream alone for a while, and says why.
    fn leave(&mut self, (place, upstream): (usize, &Upstream), left: &Left) {
        match left {
            Left::Unanswered(error) => {
                upstream.leave_alone();
                self.settled(Some(format!("{}: {error}", upstream.name())));
            }
            Left::Late => {
                upstream.leave_alone();
                self.say(format!("{} has not answered for {LATE_TIME:?}", upstream.name()));
            }
            Left::Young(reason) => {
                self.unfit.insert(place, Instant::now() + HEAD_UNFIT);
                let problem = format!("{} is waited for: {reason}", upstream.name());
                if self.log.is_due() {
                    tracing::info!(reason = problem, "there is no head to follow yet");
                }
                self.settled(Some(problem));
            }
            Left::Unfit(reason) => {
                self.unfit.insert(place, Instant::now() + HEAD_UNFIT);
                self.say(format!("{} cannot be followed: {reason}", upstream.name()));
            }
        }
    }

    /// How long an upstream is to be left alone; zero where it may be asked.
    fn wait(&self, (place, upstream): (usize, &Upstream)) -> Duration {
        let unfit = self.unfit.get(&place);
        let unfit = unfit.map(|until| until.saturating_duration_since(Instant::now()));
        upstream.pause().max(unfit.unwrap_or_default())
    }

    /// Calls the engine, which may take as long as a block does.
    async fn with_engine<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Engine) -> Result<T, engine::Error> + Send + 'static,
    ) -> Result<T, Left> {
        let engine = self.engine.clone();
        let answer = tokio::task::spawn_blocking(move || call(&engine));
        Ok(answer.await.expect("it does not panic")?)
    }
}
