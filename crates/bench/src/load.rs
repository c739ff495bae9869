//! `deponent bench rpc`: many small calls, one after the other, pipelined and in batches, over
//! HTTP/1.1, WebSocket and Unix sockets, to any endpoint.
//!
//! The instrument is to be faster than what it measures: a few threads drive all connections,
//! requests are rendered from parts made before, many are written and read with one call to the
//! system, and of an answer only its top level is looked at. What it can do at most is measured
//! against a server that does nothing ([`null`]), and the report says where that was the limit.

mod answer;
mod caller;
mod calls;
mod env;
mod lane;
mod message;
mod null;
mod overhead;
mod report;
mod tally;
mod target;
mod turn;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use rpc::JwtSecret;

pub(crate) use self::caller::{Caller, Endpoint};
pub(crate) use self::message::{Wire, push_frame_head};
pub(crate) use self::null::{NullServer, Says};
pub(crate) use self::overhead::{OverheadArgs, overhead};
pub(crate) use self::turn::thread_cpu;

use self::env::Env;
use self::tally::Tally;
use self::target::{Mix, Target};
use crate::args::count;
use crate::clients::process;
use crate::progress;
use crate::report::results_folder;
use crate::report::{Document, console};
use crate::turns::whose;

/// How long the null server is measured.
const NULL_TIME: Duration = Duration::from_secs(1);

/// What `rpc` is given.
#[derive(Debug, Args)]
pub struct LoadArgs {
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
    /// Calls on their way on a connection when pipelined, and calls of a batch.
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
    /// Calls a second to each endpoint, at most. Latency then counts from when a call was due.
    #[arg(long, value_name = "N")]
    max_rate: Option<f64>,
    /// A further header of HTTP and of the opening of a WebSocket: "name: value".
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// The file with the secret of an engine port.
    #[arg(long, value_name = "FILE")]
    jwt_secret: Option<PathBuf>,
    /// A file of NAME=value lines: DEPONENT_RPC_URL, DEPONENT_RPC_TOKEN, DEPONENT_RPC_MAX_RATE. It
    /// is for keys: what flags say is printed in the report. Flags win.
    #[arg(long, value_name = "FILE")]
    env: Option<PathBuf>,
    /// Certificates in PEM of those who may sign a server's, instead of the system's.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
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
    target: Target,
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
    let env = match &args.env {
        None => Env::default(),
        Some(path) => Env::read(path)?,
    };
    let mix = Mix::parse(&args.method)?;
    let contenders = args.contenders(&env)?;
    let mut document = Document::new("JSON-RPC calls");
    for contender in contenders.iter().filter(|contender| contender.null.is_none()) {
        document.client(&contender.name, &contender.target.version()?, &[]);
    }
    let plans = args.mode.iter().map(|mode| args.plan(*mode, env.max_rate));
    let plans = plans.collect::<anyhow::Result<Vec<_>>>()?;
    let mut outcomes = Vec::new();
    for plan in plans {
        outcomes.extend(args.measure(&contenders, &mix, &plan)?);
    }
    args.introduce(&mix, env.max_rate, &mut document);
    if process::interrupted() {
        document.text("It was interrupted: rounds are missing.");
    }
    let has_rate = args.max_rate.or(env.max_rate).is_some();
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

/// One thread for every two processors: the other one is the server's.
fn usual_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).div_ceil(2)
}

/// A null server that speaks over this wire, and an endpoint that is it.
fn null_contender(wire: Wire) -> anyhow::Result<Contender> {
    let null = NullServer::start(wire, Says::One).context("no null server")?;
    let target = Target::parse(&null.url, &[], None, None)?;
    Ok(Contender { name: format!("null:{}", wire.name()), target, null: Some(null) })
}

impl LoadArgs {
    fn contenders(&self, env: &Env) -> anyhow::Result<Vec<Contender>> {
        let urls = if self.url.is_empty() { &env.urls } else { &self.url };
        ensure!(!urls.is_empty(), "no endpoint: --url, or DEPONENT_RPC_URL in the --env file");
        let secret = self.jwt_secret.as_deref().map(JwtSecret::load).transpose()?;
        let mut headers = self.header.clone();
        headers.extend(env.token.iter().map(|token| format!("Authorization: Bearer {token}")));
        let one = |url: &String| {
            let null = Wire::ALL.into_iter().find(|wire| *url == format!("null:{}", wire.name()));
            if let Some(wire) = null {
                return null_contender(wire);
            }
            let target = Target::parse(url, &headers, secret.as_ref(), self.cacert.as_deref())?;
            Ok(Contender { name: target.to_string(), target, null: None })
        };
        let mut contenders: Vec<Contender> = urls.iter().map(one).collect::<anyhow::Result<_>>()?;
        // The same endpoint twice shows what the differences are worth.
        for at in 1..contenders.len() {
            let (before, this) = contenders.split_at_mut(at);
            let same = before.iter().filter(|other| other.target.to_string() == this[0].name);
            let same = same.count();
            if same > 0 {
                this[0].name.push_str(&format!(" ({})", same + 1));
            }
        }
        Ok(contenders)
    }

    fn plan(&self, mode: Mode, env_rate: Option<f64>) -> anyhow::Result<Plan> {
        let seconds = |name: &str, seconds: f64| {
            let duration = Duration::try_from_secs_f64(seconds).ok();
            let is_usual = |duration: &Duration| !duration.is_zero() && *duration < ENDLESS;
            duration.filter(is_usual).with_context(|| format!("{name} is {seconds} seconds"))
        };
        let rate = self.max_rate.or(env_rate);
        if let Some(rate) = rate {
            let range = 1e-3..1e9;
            ensure!(range.contains(&rate), "{rate} calls a second: 0.001 to 1,000,000,000");
        }
        ensure!(self.connections <= 10_000, "{} connections", self.connections);
        ensure!(self.depth <= 100_000, "a depth of {}", self.depth);
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
            threads: threads.clamp(1, self.connections),
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
        mix: &Mix,
        plan: &Plan,
    ) -> anyhow::Result<Vec<Outcome>> {
        let outcome = |contender: &Contender| {
            let null = !self.no_null && contender.null.is_none();
            let null = null.then(|| null_contender(contender.target.wire)).transpose()?;
            let null_rate = null.map(|null| turn::run(&null.target, mix, &plan.free(NULL_TIME)));
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
                turn::run(&contender.target, mix, &plan)?;
            }
        }
        let bar = progress::bar(plan.mode.name(), self.rounds * contenders.len());
        'rounds: for round in 0..self.rounds {
            for place in 0..contenders.len() {
                if process::interrupted() {
                    break 'rounds;
                }
                let at = whose(round, place, contenders.len());
                let tally = turn::run(&contenders[at].target, mix, plan)?;
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
    fn introduce(&self, mix: &Mix, env_rate: Option<f64>, document: &mut Document) {
        let Self { connections, depth, rounds, .. } = self;
        let calls = mix.kinds.iter().enumerate().map(|(at, kind)| {
            let times = mix.cycle.iter().filter(|kind| usize::from(**kind) == at).count();
            format!("{times} × {}", kind.shown())
        });
        let calls = calls.collect::<Vec<_>>().join(", ");
        document.text(format!(
            "Connections to each endpoint: {connections}. Calls on their way on each when \
             pipelined, and calls of a batch: {depth}. Rounds, in which the endpoints take turns: \
             {rounds}. The calls, over and over: {calls}."
        ));
        document.text(match self.max_rate.or(env_rate) {
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
