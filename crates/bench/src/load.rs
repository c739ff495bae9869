//! `deponent bench rpc`: many small calls, one after the other, pipelined and in batches, over
//! HTTP/1.1, WebSocket and Unix sockets, to any endpoint.
//!
//! Calls are made by the client of the crate `rpc`, on a few threads. What it can do at most is
//! measured against a server that does nothing ([`null`]), and the report says where that was the
//! limit.

mod caller;
mod endpoint;
mod link;
mod mix;
mod null;
mod overhead;
mod report;
mod tally;
mod tls;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};

pub(crate) use self::caller::{Caller, CallerArgs};
pub(crate) use self::overhead::{OverheadArgs, overhead};

use self::endpoint::{Access, Admission, Endpoint, Wire};
use self::mix::Mix;
use self::null::NullServer;
use self::tally::Tally;
use crate::clients::process;
use crate::number::count;
use crate::progress;
use crate::report::{Document, console, results_folder};
use crate::turns::whose;

/// Most calls on their way at a time, each of which may have a connection.
const MOST_CONNECTIONS: usize = 10_000;
/// Most calls of a batch.
const MOST_DEPTH: usize = 100_000;
/// How long the null server is measured.
const NULL_TIME: Duration = Duration::from_secs(1);

/// What `rpc` is given.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// Where calls go: http(s)://host:port/path, ws(s)://host:port/path, the path of a Unix socket,
    /// or null:http, null:ws, null:ipc, a server that does nothing. Several are measured in turns.
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    url: Vec<String>,
    /// How: sequential, pipelined, batched.
    #[arg(long, value_delimiter = ',', default_value = "sequential,pipelined,batched")]
    mode: Vec<Mode>,
    /// Connections to each endpoint, all at the same time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<usize>)]
    connections: usize,
    /// Calls on their way when pipelined, over HTTP each on a connection of its own, and calls of a
    /// batch.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = count::<usize>)]
    depth: usize,
    /// Threads that drive the connections; otherwise one for every two processors.
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    threads: Option<usize>,
    /// A call: its method, and behind a space its params as a JSON list; with WEIGHT* before it, it
    /// comes so many times as often. Otherwise eth_blockNumber, eth_chainId and eth_getBalance.
    #[arg(long, value_name = "[WEIGHT*]METHOD [PARAMS]")]
    method: Vec<String>,
    /// Seconds of a turn.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    duration: f64,
    /// Calls of a turn, instead of its seconds.
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = count::<u64>)]
    calls: Option<u64>,
    /// Turns of each endpoint and mode.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = count::<usize>)]
    rounds: usize,
    /// Seconds of the turn before, which is not counted.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    warm_up: f64,
    /// Seconds until an answer is given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    timeout: f64,
    #[command(flatten)]
    access: Access,
    /// Do not measure a server that does nothing for comparison.
    #[arg(long)]
    no_null: bool,
    /// Where the report goes; otherwise a new folder below target/bench/results.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// How calls follow each other on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// The next one when the last was answered.
    Sequential,
    /// So many at a time.
    Pipelined,
    /// So many in one message.
    Batched,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Sequential, Self::Pipelined, Self::Batched];

    const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Pipelined => "pipelined",
            Self::Batched => "batched",
        }
    }
}

/// What a turn does.
#[derive(Clone, Debug)]
struct Plan {
    mode: Mode,
    connections: usize,
    depth: usize,
    threads: usize,
    /// The time for sending, or the calls of all connections together.
    duration: Duration,
    calls: Option<u64>,
    timeout: Duration,
    /// Calls a second of all connections together.
    max_rate: Option<f64>,
}

/// Never reached by a turn of counted calls.
const ENDLESS: Duration = Duration::from_secs(1 << 30);

impl Plan {
    /// The same calls for another time, as fast as can be.
    fn free(&self, duration: Duration) -> Self {
        Self { duration, calls: None, max_rate: None, ..self.clone() }
    }
}

/// An endpoint, and what came of its calls.
struct Contender {
    name: String,
    endpoint: Arc<Endpoint>,
    /// Where the endpoint is our own null server.
    null: Option<NullServer>,
}

/// All turns of an endpoint in a mode.
struct Outcome {
    name: String,
    mode: Mode,
    rounds: Vec<Tally>,
    /// What the null server does a second over the same wire.
    null_rate: Option<f64>,
}

impl Outcome {
    /// All rounds together.
    fn total(&self) -> Tally {
        let mut total = Tally::new(self.rounds.first().map_or(0, |first| first.latencies.len()));
        for round in &self.rounds {
            total.add(round);
            total.elapsed += round.elapsed;
        }
        total
    }
}

/// Makes the calls, prints the report and writes it.
///
/// # Errors
/// What was wrong with the arguments; an endpoint that gave no result to any call, after the report
/// is written.
pub(crate) fn load(args: &LoadArgs) -> anyhow::Result<()> {
    let admission = args.access.admission()?;
    let mix = Arc::new(Mix::parse(&args.method)?);
    let contenders = args.contenders(&admission)?;
    let mut document = Document::new("JSON-RPC calls");
    for contender in contenders.iter().filter(|contender| contender.null.is_none()) {
        let timeout = seconds("--timeout", args.timeout)?;
        let version =
            Caller::on(Arc::clone(&contender.endpoint), timeout, Duration::ZERO)?.version();
        let version = version.with_context(|| format!("no answer from {}", contender.endpoint))?;
        document.client(&contender.name, &version, &[]);
    }
    let plans = args.mode.iter().map(|mode| args.plan(*mode, admission.max_rate));
    let plans = plans.collect::<anyhow::Result<Vec<_>>>()?;
    let mut outcomes = Vec::new();
    for plan in plans {
        outcomes.extend(args.measure(&contenders, &mix, &plan)?);
    }
    args.introduce(&mix, admission.max_rate, &mut document);
    if process::interrupted() {
        document.text("It was interrupted: rounds are missing.");
    }
    let has_rate = admission.max_rate.is_some();
    report::describe(&mix, &args.mode, &outcomes, has_rate, &mut document);
    let folder = write(&document, args.results.as_ref())?;
    println!("{}", folder.display());
    let silent = outcomes.iter().find(|outcome| outcome.total().latency().count() == 0);
    let silent = silent.map(|outcome| format!("{}, {}", outcome.name, outcome.mode.name()));
    ensure!(silent.is_none(), "no call has a result: {}", silent.unwrap_or_default());
    Ok(())
}

/// Prints a report, and writes it to where it is wanted.
fn write(document: &Document, wanted: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    let folder = results_folder(wanted, Path::new("target/bench"))?;
    println!("{}", console(std::slice::from_ref(document)));
    document.write(&folder)?;
    Ok(folder)
}

/// Seconds of a flag, as a time that a turn can have.
fn seconds(name: &str, seconds: f64) -> anyhow::Result<Duration> {
    let duration = Duration::try_from_secs_f64(seconds).ok();
    let is_usual = |duration: &Duration| !duration.is_zero() && *duration < ENDLESS;
    duration.filter(is_usual).with_context(|| format!("{name} is {seconds} seconds"))
}

/// One thread for every two processors: the other one is the server's.
fn usual_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).div_ceil(2)
}

/// A null server that speaks over this wire, and an endpoint that is it.
fn null_contender(wire: Wire) -> anyhow::Result<Contender> {
    let null = NullServer::start(wire).context("no null server")?;
    let endpoint = Arc::new(Endpoint::new(&null.url, &Admission::default())?);
    Ok(Contender { name: format!("null:{}", wire.name()), endpoint, null: Some(null) })
}

impl LoadArgs {
    fn contenders(&self, admission: &Admission) -> anyhow::Result<Vec<Contender>> {
        let urls = if self.url.is_empty() { &admission.urls } else { &self.url };
        ensure!(!urls.is_empty(), "no endpoint: --url, or DEPONENT_RPC_URL in the --env file");
        let one = |url: &String| {
            let null = Wire::ALL.into_iter().find(|wire| *url == format!("null:{}", wire.name()));
            if let Some(wire) = null {
                return null_contender(wire);
            }
            let endpoint = Arc::new(Endpoint::new(url, admission)?);
            Ok(Contender { name: endpoint.to_string(), endpoint, null: None })
        };
        let mut contenders: Vec<Contender> = urls.iter().map(one).collect::<anyhow::Result<_>>()?;
        // The same endpoint twice shows what the differences are worth.
        for at in 1..contenders.len() {
            let (before, this) = contenders.split_at_mut(at);
            let same =
                before.iter().filter(|other| other.name.split(" (").next() == Some(&*this[0].name));
            let same = same.count();
            if same > 0 {
                this[0].name.push_str(&format!(" ({})", same + 1));
            }
        }
        Ok(contenders)
    }

    fn plan(&self, mode: Mode, rate: Option<f64>) -> anyhow::Result<Plan> {
        let open = self.connections * if mode == Mode::Pipelined { self.depth } else { 1 };
        ensure!(open <= MOST_CONNECTIONS, "{open} calls on their way: {MOST_CONNECTIONS} at most");
        ensure!(self.depth <= MOST_DEPTH, "a depth of {}: {MOST_DEPTH} at most", self.depth);
        let threads = self.threads.unwrap_or_else(usual_threads);
        let a_batch_each = self.depth as f64 * self.connections as f64;
        ensure!(
            mode != Mode::Batched
                || self.calls.is_some()
                || rate.is_none_or(|rate| rate * self.duration >= a_batch_each),
            "at {} calls a second no connection has a batch of {} in {} s: lower --depth or \
             --connections, raise --duration, or leave batched out of --mode",
            rate.unwrap_or_default(),
            self.depth,
            self.duration
        );
        Ok(Plan {
            mode,
            connections: self.connections,
            depth: self.depth,
            threads: threads.max(1),
            duration: match self.calls {
                Some(_) => ENDLESS,
                None => seconds("--duration", self.duration)?,
            },
            calls: self.calls,
            timeout: seconds("--timeout", self.timeout)?,
            max_rate: rate,
        })
    }

    /// All rounds of one mode: each endpoint has a turn, then each has the next one; who comes
    /// first changes.
    fn measure(
        &self,
        contenders: &[Contender],
        mix: &Arc<Mix>,
        plan: &Plan,
    ) -> anyhow::Result<Vec<Outcome>> {
        let outcome = |contender: &Contender| {
            let null = !self.no_null && contender.null.is_none();
            let null = null.then(|| null_contender(contender.endpoint.wire)).transpose()?;
            let null_rate = null.map(|null| turn::run(&null.endpoint, mix, &plan.free(NULL_TIME)));
            anyhow::Ok(Outcome {
                name: contender.name.clone(),
                mode: plan.mode,
                rounds: Vec::new(),
                null_rate: null_rate.transpose()?.map(|tally| tally.rate()),
            })
        };
        let mut outcomes = contenders.iter().map(outcome).collect::<anyhow::Result<Vec<_>>>()?;
        let warm_up = Duration::try_from_secs_f64(self.warm_up).context("--warm-up")?;
        if !warm_up.is_zero() {
            let plan = Plan { duration: warm_up, calls: None, ..plan.clone() };
            for contender in contenders {
                turn::run(&contender.endpoint, mix, &plan)?;
            }
        }
        let bar = progress::bar(plan.mode.name(), self.rounds * contenders.len());
        'rounds: for round in 0..self.rounds {
            for place in 0..contenders.len() {
                if process::interrupted() {
                    break 'rounds;
                }
                let at = whose(round, place, contenders.len());
                let tally = turn::run(&contenders[at].endpoint, mix, plan)?;
                // A turn that was cut short is none.
                if process::interrupted() {
                    break 'rounds;
                }
                outcomes[at].rounds.push(tally);
                bar.inc(1);
            }
        }
        Ok(outcomes)
    }

    /// What a reader of the tables has to know.
    fn introduce(&self, mix: &Mix, rate: Option<f64>, document: &mut Document) {
        let Self { connections, depth, rounds, .. } = self;
        let calls = mix.calls.iter().enumerate().map(|(at, call)| {
            let times = mix.cycle.iter().filter(|kind| usize::from(**kind) == at).count();
            format!("{times} × {}", call.shown())
        });
        let calls = calls.collect::<Vec<_>>().join(", ");
        document.method(format!(
            "Connections to each endpoint: {connections}. Calls on their way on each when \
             pipelined, over HTTP/1.1 each on a connection of its own, and calls of a batch: \
             {depth}. Rounds, in which the endpoints take turns: \
             {rounds}. The calls, over and over: {calls}."
        ));
        document.method(match rate {
            None => "Latency counts from when a call was sent until its answer was read, in a \
                     batch that of the whole batch; only of calls with a result. A slow answer \
                     delays the calls behind it, which are sent later: at a --max-rate they count \
                     from when they were due."
                .to_owned(),
            Some(rate) => format!(
                "At most {rate} calls a second. Latency counts from when a call was due until its \
                 answer was read, whenever it could be sent: a server that stalls is charged for \
                 every call that it kept waiting. While a server asks for patience nothing is due."
            ),
        });
    }
}

#[cfg(test)]
mod tests;
