//! `deponent bench rpc`: many small calls, one after the other, pipelined and in batches, over
//! HTTP/1.1, WebSocket and Unix sockets, to any endpoint.
//!
//! Calls are made by the clients of the crate `rpc`, on a few threads. Their limit is measured
//! against a server that does nothing ([`null`]), and the report says where that was the limit.

mod caller;
mod connection;
mod endpoint;
mod mix;
mod null;
mod overhead;
mod report;
mod tally;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};

pub(crate) use self::caller::{Caller, CallerArgs};
pub(crate) use self::overhead::{OverheadArgs, overhead};

use self::endpoint::{Access, AccessArgs, Endpoint, Transport};
use self::mix::Mix;
use self::null::NullServer;
use self::tally::Tally;
use crate::clients::process;
use crate::number::count;
use crate::progress::{self, say};
use crate::report::{Document, console, results_folder};
use crate::turns::whose;

/// Most calls under way at a time, each of which may have a connection.
const MOST_CONNECTIONS: usize = 10_000;
/// Most calls of a batch.
const MOST_DEPTH: usize = 100_000;
/// For measuring the null server.
const NULL_TIME: Duration = Duration::from_secs(1);
/// Never reached by a turn of counted calls.
const ENDLESS: Duration = Duration::from_secs(1 << 30);

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
    /// Calls under way when pipelined, over HTTP each on a connection of its own that is kept for
    /// the next ones, and calls of a batch.
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
    access: AccessArgs,
    /// Do not measure a server that does nothing for comparison.
    #[arg(long)]
    no_null: bool,
    /// Where the report goes; otherwise a new folder below target/bench/results.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

/// The order of calls and answers on a connection.
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

/// The calls of a turn.
#[derive(Clone, Debug)]
struct TurnPlan {
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

/// An endpoint and its name in the report.
struct LoadTarget {
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
    /// The calls of the null server a second over the same transport.
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
/// Wrong arguments; an endpoint that gave no result to any call, after the report is written.
pub(crate) fn load(args: &LoadArgs) -> anyhow::Result<()> {
    let access = args.access.read()?;
    let mix = Arc::new(Mix::parse(&args.method)?);
    let targets = args.targets(&access)?;
    let mut document = Document::new("JSON-RPC calls");
    for target in targets.iter().filter(|target| target.null.is_none()) {
        let timeout = seconds("--timeout", args.timeout)?;
        let version = Caller::to(Arc::clone(&target.endpoint), timeout)?.version();
        let version =
            version.with_context(|| format!("no answer from {}", target.endpoint.shown))?;
        document.client(&target.name, &version, &[]);
    }
    let plans = args.mode.iter().map(|mode| args.plan(*mode, access.max_rate));
    let mut outcomes = Vec::new();
    for plan in plans.collect::<anyhow::Result<Vec<_>>>()? {
        outcomes.extend(args.measure(&targets, &mix, &plan)?);
    }
    args.introduce(&mix, access.max_rate, &mut document);
    if process::interrupted() {
        document.text("It was interrupted: rounds are missing.");
    }
    let has_rate = access.max_rate.is_some();
    report::describe(&mix, &args.mode, &outcomes, has_rate, &mut document);
    say(format_args!("{}", write(&document, args.results.as_ref())?.display()))?;
    let silent = outcomes.iter().find(|outcome| outcome.total().latency().count() == 0);
    if let Some(Outcome { name, mode, .. }) = silent {
        bail!("no call has a result: {name}, {}", mode.name());
    }
    Ok(())
}

/// Prints a report, and writes it to where it is wanted.
fn write(document: &Document, wanted: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    let folder = results_folder(wanted, Path::new("target/bench"))?;
    say(format_args!("{}", console(std::slice::from_ref(document))))?;
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

/// A null server over this transport, and an endpoint that is it.
fn null_endpoint(transport: Transport) -> anyhow::Result<(NullServer, Arc<Endpoint>)> {
    let null = NullServer::start(transport).context("no null server")?;
    let endpoint = Arc::new(Endpoint::new(&null.url, &Access::default())?);
    Ok((null, endpoint))
}

impl LoadArgs {
    fn targets(&self, access: &Access) -> anyhow::Result<Vec<LoadTarget>> {
        let urls = if self.url.is_empty() { &access.urls } else { &self.url };
        ensure!(!urls.is_empty(), "no endpoint: --url, or DEPONENT_RPC_URL in the --env file");
        let mut names: Vec<String> = Vec::new();
        let target = |url: &String| {
            let mut transports = Transport::ALL.into_iter();
            let null = transports.find(|it| *url == format!("null:{}", it.name()));
            let (null, endpoint) = match null.map(null_endpoint).transpose()? {
                Some((null, endpoint)) => (Some(null), endpoint),
                None => (None, Arc::new(Endpoint::new(url, access)?)),
            };
            let shown = if null.is_some() { url.clone() } else { endpoint.shown.clone() };
            names.push(shown.clone());
            // The same endpoint twice shows how much a difference has to be.
            let name = match names.iter().filter(|name| **name == shown).count() {
                1 => shown,
                times => format!("{shown} ({times})"),
            };
            Ok(LoadTarget { name, endpoint, null })
        };
        urls.iter().map(target).collect()
    }

    fn plan(&self, mode: Mode, rate: Option<f64>) -> anyhow::Result<TurnPlan> {
        let open = self.connections * if mode == Mode::Pipelined { self.depth } else { 1 };
        ensure!(open <= MOST_CONNECTIONS, "{open} calls under way: {MOST_CONNECTIONS} at most");
        ensure!(self.depth <= MOST_DEPTH, "a depth of {}: {MOST_DEPTH} at most", self.depth);
        let a_batch_each = self.depth as f64 * self.connections as f64;
        ensure!(
            mode != Mode::Batched
                || self.calls.is_some()
                || rate.is_none_or(|rate| rate * self.duration >= a_batch_each),
            "at {} calls a second not every connection has a batch of {} in {} s: lower --depth or \
             --connections, raise --duration, or leave batched out of --mode",
            rate.unwrap_or_default(),
            self.depth,
            self.duration
        );
        Ok(TurnPlan {
            mode,
            connections: self.connections,
            depth: self.depth,
            threads: self.threads.unwrap_or_else(usual_threads),
            duration: match self.calls {
                Some(_) => ENDLESS,
                None => seconds("--duration", self.duration)?,
            },
            calls: self.calls,
            timeout: seconds("--timeout", self.timeout)?,
            max_rate: rate,
        })
    }

    /// All rounds of one mode: in each every endpoint has a turn, and the first one changes.
    fn measure(
        &self,
        targets: &[LoadTarget],
        mix: &Arc<Mix>,
        plan: &TurnPlan,
    ) -> anyhow::Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for LoadTarget { name, endpoint, null } in targets {
            let mut null_rate = None;
            if !self.no_null && null.is_none() {
                let (_server, endpoint) = null_endpoint(endpoint.transport)?;
                let free =
                    TurnPlan { duration: NULL_TIME, calls: None, max_rate: None, ..plan.clone() };
                null_rate = Some(turn::run(&endpoint, mix, &free)?.rate());
            }
            outcomes.push(Outcome {
                name: name.clone(),
                mode: plan.mode,
                rounds: Vec::new(),
                null_rate,
            });
        }
        let warm_up = Duration::try_from_secs_f64(self.warm_up).context("--warm-up")?;
        let warm_up = TurnPlan { duration: warm_up, calls: None, ..plan.clone() };
        for target in targets.iter().filter(|_| !warm_up.duration.is_zero()) {
            turn::run(&target.endpoint, mix, &warm_up)?;
        }
        let bar = progress::bar(plan.mode.name(), self.rounds * targets.len());
        for turn in 0..self.rounds * targets.len() {
            if process::interrupted() {
                break;
            }
            let at = whose(turn / targets.len(), turn % targets.len(), targets.len());
            let tally = turn::run(&targets[at].endpoint, mix, plan)?;
            // A turn that was cut short is none.
            if !process::interrupted() {
                outcomes[at].rounds.push(tally);
                bar.inc(1);
            }
        }
        Ok(outcomes)
    }

    /// The method, for readers of the tables.
    fn introduce(&self, mix: &Mix, rate: Option<f64>, document: &mut Document) {
        let Self { connections, depth, rounds, .. } = self;
        let calls = mix.calls.iter().enumerate().map(|(at, call)| {
            let times = mix.cycle.iter().filter(|kind| usize::from(**kind) == at).count();
            format!("{times} × {}", call.shown())
        });
        let calls = calls.collect::<Vec<_>>().join(", ");
        document.method(format!(
            "Connections to each endpoint: {connections}. Calls under way on each when pipelined, \
             over HTTP/1.1 each on a connection of its own, which is kept and used again, and \
             calls of a batch: {depth}. Rounds, in which the endpoints take turns: {rounds}. The \
             calls, over and over: {calls}."
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
