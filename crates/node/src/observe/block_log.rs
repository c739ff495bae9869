//! The lines of the log about blocks, fork choices and builds.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use alloy_primitives::B256;
use engine::{
    BlockFigures, BuildStep, ChainEvent, Engine, ForkchoiceAnswer, HeadChange, Heads,
    PersistedBlock, WitnessBytes, WitnessSize,
};

use super::Observer;
use crate::limits::{BLOCK_LOG_PAUSE, HEADLESS_LOG_PAUSE};

/// Writes one line a block, and at most one a second, which then sums blocks and has the changes of
/// the fork choice too. Reorganisations and builds are said at once.
#[derive(Debug)]
pub(crate) struct BlockLog {
    engine: Arc<Engine>,
    /// Blocks since the last line.
    blocks: Option<Blocks>,
    /// When the last line of these was written.
    logged: Option<Instant>,
    /// The safe and the finalized block, where they have changed since the last line.
    settled: Settled,
    /// Blocks by which the head has moved since then, if by more than one at a time.
    jumped: usize,
    /// The newest block that has run.
    ran: u64,
    /// The head that the fork choice has chosen.
    head: u64,
    head_hash: B256,
    persisted: u64,
    /// When the last fork choice was applied, or the last line said that there is none.
    chosen: Instant,
}

/// Numbers of a safe and a finalized block.
#[derive(Debug, Clone, Copy, Default)]
struct Settled {
    safe: Option<u64>,
    finalized: Option<u64>,
}

/// Blocks that have run since the last line about blocks.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    count: u64,
    first: u64,
    last: BlockFigures,
    gas_used: u64,
    transactions: usize,
    total: Duration,
    witness_bytes: Sum,
}

/// Bytes of witnesses, exactly or at most.
#[derive(Debug, Clone, Copy)]
enum Sum {
    Exactly(usize),
    AtMost(usize),
    Unknown,
}

impl BlockLog {
    /// The log of this engine's chain.
    ///
    /// # Errors
    /// When the head cannot be read.
    pub(crate) fn new(engine: Arc<Engine>) -> Result<Self, engine::Error> {
        let head_hash = engine.heads().head;
        let head = engine.number(&head_hash)?.ok_or(engine::Error::UnknownBlock(head_hash))?;
        Ok(Self {
            engine,
            blocks: None,
            logged: None,
            settled: Settled::default(),
            jumped: 0,
            ran: head,
            head,
            head_hash,
            persisted: head,
            chosen: Instant::now(),
        })
    }

    /// The number of a valid block, where it can be read.
    fn number(&self, hash: &B256) -> Option<u64> {
        self.engine.number(hash).ok().flatten()
    }

    fn ran(&mut self, figures: &BlockFigures, witness: Option<WitnessSize>) {
        self.ran = figures.number;
        let bytes = Sum::of(witness);
        self.blocks = Some(match self.blocks {
            None => Blocks::new(figures, bytes),
            Some(blocks) => blocks.and(figures, bytes),
        });
        self.log_due();
    }

    /// Writes what there is to say, unless there was a line within the last second.
    fn log_due(&mut self) {
        if self.is_due() {
            self.log();
        }
    }

    fn is_due(&self) -> bool {
        self.logged.is_none_or(|last| last.elapsed() >= BLOCK_LOG_PAUSE)
    }

    /// Writes what there is to say, in one line.
    fn log(&mut self) {
        let Settled { safe, finalized } = std::mem::take(&mut self.settled);
        let (jumped, head) = (std::mem::take(&mut self.jumped), self.head);
        let is_settled = safe.is_some() || finalized.is_some();
        match self.blocks.take() {
            Some(blocks) => {
                let head = (is_settled || jumped > 0).then_some(head);
                self.log_blocks(blocks, head, Settled { safe, finalized });
            }
            None if is_settled => tracing::info!(finalized, safe, head, "fork choice"),
            None if jumped > 0 => {
                let hash = short(self.head_hash);
                tracing::info!(number = head, %hash, blocks = jumped, "head");
            }
            None => return,
        }
        // Behind the line, whose time is this or earlier.
        self.logged = Some(Instant::now());
    }

    fn log_blocks(&self, blocks: Blocks, head: Option<u64>, settled: Settled) {
        let Settled { safe, finalized } = settled;
        let Blocks { count, first, last, gas_used, transactions: txs, total, .. } = blocks;
        let (witness_mb, witness_mb_at_most) = blocks.witness_bytes.megabytes();
        let (ms, mgas_per_s) = (rounded(total.as_secs_f64() * 1e3), mgas_per_s(gas_used, total));
        let (number, hash) = (last.number, short(last.hash));
        let unpersisted = number.saturating_sub(self.persisted);
        let age = Age::of(last.timestamp);
        if count == 1 {
            tracing::info!(
                number, %hash, txs, gas_used, mgas_per_s, ms, witness_mb, witness_mb_at_most,
                unpersisted, %age, head, finalized, safe, "block VALID"
            );
        } else {
            tracing::info!(
                blocks = count, first, number, %hash, txs, gas_used, mgas_per_s, ms, witness_mb,
                witness_mb_at_most, unpersisted, %age, head, finalized, safe, "blocks VALID"
            );
        }
    }

    /// The changes of a fork choice. A head that is the next block says nothing: that block has
    /// its line.
    fn chosen(&mut self, change: &HeadChange) {
        let HeadChange { before, now, left, joined } = change;
        if !left.is_empty() {
            self.log();
        }
        let number = self.number(&now.head);
        let (old, head) = (self.head, number.unwrap_or(self.head));
        (self.head, self.head_hash) = (head, now.head);
        // Blocks above a head that moved back are no sign that more come.
        self.ran = head;
        let (hash, old_hash) = (short(now.head), short(before.head));
        match (left.len(), joined.len()) {
            (0, 0) => {}
            (0, 1) if self.jumped == 0 => {}
            (0, blocks) => self.jumped += blocks,
            (depth, 0) => {
                tracing::info!(number = head, %hash, depth, old, %old_hash, "head moved back");
            }
            (depth, blocks) => {
                tracing::info!(number = head, %hash, depth, blocks, old, %old_hash, "reorg");
            }
        }
        self.settled(before, now);
        self.log_due();
    }

    /// The safe and the finalized block, where they have changed.
    fn settled(&mut self, before: &Heads, now: &Heads) {
        let changed = |before: Option<B256>, now: Option<B256>| {
            now.filter(|_| now != before).and_then(|hash| self.number(&hash))
        };
        let safe = changed(before.safe, now.safe);
        let finalized = changed(before.finalized, now.finalized);
        self.settled.safe = safe.or(self.settled.safe);
        self.settled.finalized = finalized.or(self.settled.finalized);
    }

    /// While it catches up, a consensus client may send payloads and no fork choice.
    fn log_headless(&mut self) {
        let has_new = self.ran > self.head + 1;
        if self.is_due() && has_new && self.chosen.elapsed() >= HEADLESS_LOG_PAUSE {
            self.chosen = Instant::now();
            let (valid, head) = (self.ran, self.head);
            tracing::info!(
                valid,
                head,
                "the consensus client is catching up: it sends blocks, and names no head yet. \
                 eth_blockNumber stays at the head until it does"
            );
            self.logged = Some(Instant::now());
        }
    }
}

impl Observer for BlockLog {
    fn event(&mut self, event: &ChainEvent, witness: Option<WitnessSize>) {
        match event {
            ChainEvent::Ran(figures) => self.ran(figures, witness),
            ChainEvent::Chosen(change) => self.chosen(change),
            ChainEvent::Forkchoice(figures) => {
                if figures.answer == ForkchoiceAnswer::Applied {
                    self.chosen = Instant::now();
                }
            }
            ChainEvent::Build(BuildStep::Begun { .. }) => {}
            ChainEvent::Build(BuildStep::Built { number, took, gas_used }) => {
                let ms = rounded(took.as_secs_f64() * 1e3);
                tracing::info!(number, gas_used, ms, "payload built");
            }
            ChainEvent::Build(BuildStep::Failed(reason)) => {
                tracing::warn!(
                    reason,
                    "no payload could be built: if this validator was to propose a block, it is \
                     missed"
                );
            }
            ChainEvent::Persisted(PersistedBlock { number, hash }) => {
                self.persisted = *number;
                tracing::debug!(number, %hash, "head persisted");
            }
            // The engine itself logs invalid payloads and missing blocks.
            ChainEvent::Valid(_) | ChainEvent::Invalid(..) | ChainEvent::Behind => {}
        }
    }

    fn lost(&mut self, _: u64) {
        self.log();
        let (head, persisted) = (self.engine.heads().head, self.engine.persisted_heads().head);
        (self.head, self.head_hash) = (self.number(&head).unwrap_or(self.head), head);
        self.persisted = self.number(&persisted).unwrap_or(self.persisted);
        // The next block that runs says how far blocks are ahead of the head.
        (self.ran, self.chosen) = (self.head, Instant::now());
    }

    fn second(&mut self) {
        self.log_due();
        self.log_headless();
    }
}

impl Drop for BlockLog {
    fn drop(&mut self) {
        self.log();
    }
}

impl Blocks {
    fn new(figures: &BlockFigures, witness_bytes: Sum) -> Self {
        Self {
            count: 1,
            first: figures.number,
            last: *figures,
            gas_used: figures.gas_used,
            transactions: figures.transactions,
            total: figures.total,
            witness_bytes,
        }
    }

    fn and(self, figures: &BlockFigures, bytes: Sum) -> Self {
        Self {
            count: self.count + 1,
            first: self.first.min(figures.number),
            last: *figures,
            gas_used: self.gas_used + figures.gas_used,
            transactions: self.transactions + figures.transactions,
            total: self.total + figures.total,
            witness_bytes: self.witness_bytes.and(bytes),
        }
    }
}

impl Sum {
    fn of(witness: Option<WitnessSize>) -> Self {
        match witness.and_then(|size| size.bytes) {
            Some(WitnessBytes::Exactly(bytes)) => Self::Exactly(bytes),
            Some(WitnessBytes::AtMost(bytes)) => Self::AtMost(bytes),
            None => Self::Unknown,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Exactly(one), Self::Exactly(two)) => Self::Exactly(one + two),
            (Self::Exactly(one) | Self::AtMost(one), Self::Exactly(two) | Self::AtMost(two)) => {
                Self::AtMost(one + two)
            }
        }
    }

    /// Megabytes, and megabytes at most.
    fn megabytes(self) -> (Option<f64>, Option<f64>) {
        match self {
            Self::Exactly(bytes) => (Some(megabytes(bytes)), None),
            Self::AtMost(bytes) => (None, Some(megabytes(bytes))),
            Self::Unknown => (None, None),
        }
    }
}

/// Megabytes, to a thousandth.
pub(crate) fn megabytes(bytes: usize) -> f64 {
    (bytes as f64 / 1e3).round() / 1e3
}

/// Millions of gas a second.
pub(crate) fn mgas_per_s(gas_used: u64, total: Duration) -> f64 {
    let seconds = total.as_secs_f64().max(1e-6);
    rounded(gas_used as f64 / 1e6 / seconds)
}

/// To one place after the point.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The first four and the last two bytes.
pub(crate) fn short(hash: B256) -> String {
    let digits = alloy_primitives::hex::encode(hash);
    format!("0x{}..{}", &digits[..8], &digits[60..])
}

/// How long ago a block's time was.
pub(crate) struct Age(Option<Duration>);

impl Age {
    pub(crate) fn of(timestamp: u64) -> Self {
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(timestamp));
        Self(time.and_then(|time| time.elapsed().ok()))
    }
}

impl fmt::Display for Age {
    /// In seconds below a minute, and in the two largest units above; zero for a time to come.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let age = self.0.unwrap_or_default();
        let seconds = age.as_secs();
        let [minutes, hours, days] = [60, 3600, 86400].map(|unit| seconds / unit);
        match (days, hours, minutes) {
            (0, 0, 0) => write!(f, "{:.1}s", age.as_secs_f64()),
            (0, 0, _) => write!(f, "{minutes}m{}s", seconds % 60),
            (0, _, _) => write!(f, "{hours}h{}m", minutes % 60),
            _ => write!(f, "{days}d{}h", hours % 24),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_two_units() {
        let shown = |seconds| Age(Some(Duration::from_millis(seconds))).to_string();
        let ages = [0, 1_250, 59_900, 61_000, 3_600_000, 90_000_000, 864_000_000].map(shown);
        assert_eq!(ages, ["0.0s", "1.2s", "59.9s", "1m1s", "1h0m", "1d1h", "10d0h"]);
        assert_eq!(Age::of(u64::MAX).to_string(), "0.0s");
    }

    #[test]
    fn blocks_are_summed_and_a_bound_stays_a_bound() {
        let figures = |number| BlockFigures {
            number,
            gas_used: 10_000_000,
            transactions: 3,
            total: Duration::from_millis(20),
            ..BlockFigures::default()
        };
        let blocks = Blocks::new(&figures(7), Sum::Exactly(1_000_000));
        let blocks = blocks.and(&figures(8), Sum::Exactly(500_000));
        assert_eq!((blocks.count, blocks.first, blocks.last.number), (2, 7, 8));
        assert_eq!((blocks.gas_used, blocks.transactions), (20_000_000, 6));
        assert_eq!(mgas_per_s(blocks.gas_used, blocks.total), 500.0);
        assert_eq!(blocks.witness_bytes.megabytes(), (Some(1.5), None));
        let blocks = blocks.and(&figures(9), Sum::AtMost(250_000));
        assert_eq!(blocks.witness_bytes.megabytes(), (None, Some(1.75)));
        let blocks = blocks.and(&figures(10), Sum::Unknown);
        assert_eq!(blocks.witness_bytes.megabytes(), (None, None));
    }

    #[test]
    fn a_short_hash_has_both_ends() {
        let hash = B256::from_slice(&(0..32).collect::<Vec<u8>>());
        assert_eq!(short(hash), "0x00010203..1e1f");
    }
}
