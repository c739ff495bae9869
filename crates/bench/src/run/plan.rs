//! The plan of a run: the contenders, the blocks, and the pace.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::chain::format::{Ground, count_of, payloads_of};
use crate::clients::target::Target;
use crate::run::lane::Wire;

/// A client that takes part.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    /// As reports call it.
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) wire: Wire,
}

/// The plan of a run. Each round starts the clients anew, each on a copy of its directory.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The blocks that clients have before the first stage.
    pub(crate) ground: Ground,
    pub(crate) stages: Vec<Stage>,
    pub(crate) rounds: usize,
    /// Clients take turns block by block, and not round by round.
    pub(crate) together: bool,
    /// Contenders of one client are connections to one process.
    pub(crate) shared: bool,
    pub(crate) pace: Pace,
    /// There are verdicts though the machine is busy with something else.
    pub(crate) ignores_load: bool,
    /// After it no further block begins.
    pub(crate) until: Option<Instant>,
    /// The folder of prepared directories and running copies.
    pub(crate) dir: PathBuf,
    pub(crate) results: PathBuf,
}

/// Blocks that belong together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stage {
    /// Empty if there is one alone.
    pub(crate) name: String,
    pub(crate) files: Vec<PathBuf>,
    /// The blocks are siblings, and each contender of a client is sent one of its own, of so many
    /// in each step; 0: all are sent the same, one after the other.
    pub(crate) siblings: usize,
    /// Blocks left out, since the client has them.
    pub(crate) skip: usize,
    /// Blocks sent and not counted, after those left out.
    pub(crate) warm_up: usize,
    /// Blocks counted, at most.
    pub(crate) count: Option<usize>,
    pub(crate) start: Start,
    /// Each block has a twin that is invalid, which comes before the fork choice and is not timed.
    pub(crate) twins: bool,
    /// The blocks are fed, and that is all.
    pub(crate) is_fed: bool,
}

/// The state of the clients at the beginning of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Start {
    /// They go on.
    #[default]
    Running,
    /// They are started again where they are.
    Again,
    /// The same, and the system forgets cached files, if that is permitted.
    Cold,
}

/// At which pace blocks are sent, and what is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// The time that a client is left alone after its turn.
    pub(crate) pause: Duration,
    /// A slot: payloads are sent so far apart.
    pub(crate) wait_time: Option<Duration>,
    pub(crate) persistence: Persistence,
    pub(crate) persistence_timeout: Duration,
    /// After each so many blocks the fork choice goes back by as many, and forth again.
    pub(crate) reorg: Option<u64>,
    /// The others are stopped during a client's turn.
    pub(crate) freeze: bool,
    /// Witnesses are asked for in half of the blocks alone.
    pub(crate) alternate: bool,
    /// Witnesses are asked for with payloads, of contenders whose wires have them.
    pub(crate) asks: bool,
    /// Each block becomes the head.
    pub(crate) chooses: bool,
    /// The witness of a block is asked for again.
    pub(crate) repeats: bool,
    /// Witnesses of older blocks are asked for.
    pub(crate) depths: Vec<usize>,
    /// The interval, in blocks, between those that are asked for at the depths.
    pub(crate) every: usize,
    /// The contents of witnesses are compared; it takes longer than the calls.
    pub(crate) compares: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            pause: Duration::ZERO,
            wait_time: None,
            persistence: Persistence::Never,
            persistence_timeout: Duration::from_secs(120),
            reorg: None,
            freeze: true,
            alternate: false,
            asks: true,
            chooses: true,
            repeats: false,
            depths: Vec::new(),
            every: usize::MAX,
            compares: false,
        }
    }
}

/// The blocks after which a run waits until they are persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    Never,
    /// After so many blocks.
    Every(usize),
}

impl FromStr for Persistence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("never", _) => Ok(Self::Never),
            ("always", _) => Ok(Self::Every(1)),
            (_, Ok(blocks)) if blocks > 0 => Ok(Self::Every(blocks)),
            _ => Err(format!("{text}: always, never, or a number of blocks")),
        }
    }
}

/// Besides its gas, what a turn takes: the call, the fork choice, and writing what it wrote.
const TURN_SECONDS: f64 = 0.02;
/// A block of 22 million gas takes some 100 ms on two cores.
const GAS_SECONDS: f64 = 4.5e-9;
/// A start, on a copy of a directory.
const START_SECONDS: f64 = 3.0;

impl Plan {
    /// Finds mistakes before anything is started; how long the run takes, in words.
    ///
    /// # Errors
    /// A file that is not there, a line that is no payload, a stage in which nothing is measured.
    pub(crate) fn check(&self, contenders: &[Contender]) -> anyhow::Result<String> {
        count_of(&self.ground.setup)?;
        std::fs::File::open(&self.ground.genesis).map_err(|error| {
            anyhow::anyhow!("--genesis {}: {error}", self.ground.genesis.display())
        })?;
        let (mut turns, mut gas) = (0, 0);
        for stage in self.stages.iter().filter(|stage| !stage.is_fed) {
            let Stage { name, skip, warm_up, .. } = stage;
            let mut payloads = 0;
            for payload in payloads_of(&stage.files)? {
                let payload = payload?;
                payloads += 1;
                gas += payload.gas_used;
            }
            turns += payloads;
            ensure!(
                payloads > skip.saturating_add(*warm_up),
                "no payload {name} is left to measure: there are {payloads}, --skip leaves out \
                 {skip} and --warm-up {warm_up}"
            );
        }
        let lanes = contenders.len() as f64;
        let turn = TURN_SECONDS + self.pace.pause.as_secs_f64();
        let slot = self.pace.wait_time.unwrap_or_default().as_secs_f64();
        let blocks = (turns as f64 * turn + gas as f64 * GAS_SECONDS).max(turns as f64 * slot);
        let each = if self.shared { 1.0 } else { lanes };
        let seconds = self.rounds as f64 * lanes * (START_SECONDS + blocks * each / lanes);
        let (rounds, clients) = (self.rounds, contenders.len());
        Ok(format!(
            "{clients} contenders, {turns} blocks, {rounds} rounds: about {}, and more where \
             clients have to be prepared first",
            match seconds {
                short if short < 90.0 => format!("{short:.0} seconds"),
                long => format!("{:.0} minutes", long / 60.0),
            }
        ))
    }
}

/// Reads `400ms` or `12s`; a number alone is in milliseconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parse = |digits: &str, seconds: f64| {
        let count: f64 = digits.parse().ok()?;
        Duration::try_from_secs_f64(count * seconds).ok()
    };
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let known = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (digits, seconds) = known.unwrap_or((text, 1e-3));
    parse(digits, seconds).ok_or_else(|| format!("{text}: 400ms, 12s, 30m, 12h, or milliseconds"))
}
