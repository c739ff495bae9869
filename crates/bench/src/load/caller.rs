//! One call at a time to one endpoint, for commands that want its answers: it waits where the
//! endpoint asks for patience, and connects again where a connection ends.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use rpc::{ClientError, RawValue};
use tokio::runtime::{Builder, Runtime};

use super::endpoint::{Access, Endpoint};
use super::link::Link;
use super::mix::Call;
use super::tally::Failure;
use crate::clients::process;
use crate::fault::Fault;
use crate::number::count;

/// How often a call is sent that gets no answer, or is told to wait; pauses grow to a minute.
const MOST_TRIES: usize = 20;

/// An endpoint, and what lets calls in.
#[derive(Debug, clap::Args)]
pub(crate) struct CallerArgs {
    /// Where calls go: http(s)://host:port/path, ws(s)://host:port/path, or the path of a Unix
    /// socket.
    #[arg(long, value_name = "URL")]
    rpc: Option<String>,
    /// Seconds that an answer may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = count::<u64>)]
    timeout: u64,
    #[command(flatten)]
    access: Access,
}

/// Calls an [`Endpoint`].
pub(crate) struct Caller {
    runtime: Runtime,
    endpoint: Arc<Endpoint>,
    link: Option<Link>,
    timeout: Duration,
    /// Between two calls, and when the next one may be sent.
    interval: Duration,
    due: Instant,
    /// Whether it ever answered: before that there may be no server.
    has_answered: bool,
}

/// Why a call gave no result this time.
enum Trouble {
    /// The connection ended, or the server is overwhelmed; it may say for how many seconds.
    Passing(anyhow::Error, Option<u64>),
    /// It will not do better next time.
    Lasting(anyhow::Error),
}

impl Caller {
    pub(crate) fn new(args: &CallerArgs) -> anyhow::Result<Self> {
        let admission = args.access.admission()?;
        let url = args.rpc.as_ref().or_else(|| admission.urls.first());
        let url = url.context("no endpoint: --rpc, or DEPONENT_RPC_URL in the --env file")?;
        let rate = admission.max_rate;
        let interval = rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate));
        Self::on(
            Arc::new(Endpoint::new(url, &admission)?),
            Duration::from_secs(args.timeout),
            interval,
        )
    }

    pub(super) fn on(
        endpoint: Arc<Endpoint>,
        timeout: Duration,
        interval: Duration,
    ) -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (link, due, has_answered) = (None, Instant::now(), false);
        Ok(Self { runtime, endpoint, link, timeout, interval, due, has_answered })
    }

    /// Calls a method; `params` is a JSON array.
    ///
    /// # Errors
    /// [`Fault::Refusing`] for a refusal, and what lasts over many tries.
    pub(crate) fn call(&mut self, method: &str, params: &str) -> anyhow::Result<Box<RawValue>> {
        let call = Call::new(method, RawValue::from_string(params.to_owned())?);
        for tried in 1.. {
            process::sleep_until(self.due.max(self.endpoint.patience.until()));
            ensure!(!process::interrupted(), "interrupted");
            self.due = Instant::now() + self.interval;
            match self.exchange(&call) {
                Ok(result) => {
                    self.endpoint.patience.answered();
                    return Ok(result);
                }
                Err(Trouble::Lasting(error)) => return Err(error.context(method.to_owned())),
                Err(Trouble::Passing(error, seconds)) => {
                    if tried == MOST_TRIES {
                        return Err(error.context(format!("{method}, {tried} times")));
                    }
                    // A connection that was closed while it was idle is opened again at once.
                    if tried > 1 || seconds.is_some() {
                        self.endpoint.patience.asked(seconds.filter(|s| *s > 0), Instant::now());
                    }
                }
            }
        }
        bail!("{method} was not called")
    }

    /// One message there and one back.
    fn exchange(&mut self, call: &Call) -> Result<Box<RawValue>, Trouble> {
        let Self { runtime, endpoint, link, timeout, .. } = self;
        let answered = runtime.block_on(async {
            let mut open = match link.take() {
                Some(open) => open,
                None => endpoint.open(*timeout).await?,
            };
            let answered = open.exchange(&[call], false).await?;
            *link = Some(open);
            Ok(answered)
        });
        let mut answered = answered.map_err(|error| self.unanswered(error))?;
        self.has_answered = true;
        let said = answered.said.unwrap_or_default();
        let seconds = answered.limited.map(|seconds| seconds.unwrap_or(0));
        let words = |failure| anyhow!("{} answers {failure}: {said}", self.endpoint);
        match answered.outcomes.pop() {
            Some(Ok(result)) => Ok(result),
            Some(Err(failure @ Failure::Limited)) => Err(Trouble::Passing(words(failure), seconds)),
            Some(Err(failure @ Failure::Status(500..))) => {
                Err(Trouble::Passing(words(failure), Some(0)))
            }
            Some(Err(failure @ (Failure::Code(_) | Failure::Status(_)))) => {
                Err(Trouble::Lasting(words(failure).context(Fault::Refusing)))
            }
            Some(Err(failure)) => Err(Trouble::Lasting(words(failure).context(Fault::Garbled))),
            None => Err(Trouble::Lasting(anyhow!("no call was made"))),
        }
    }

    fn unanswered(&self, error: ClientError) -> Trouble {
        let lasts = match &error {
            ClientError::Connect { source, .. } => match source.kind() {
                ErrorKind::PermissionDenied | ErrorKind::Unsupported => true,
                ErrorKind::ConnectionRefused | ErrorKind::NotFound => !self.has_answered,
                _ => false,
            },
            ClientError::Http { .. } | ClientError::Address { .. } => true,
            _ => false,
        };
        let error = anyhow::Error::new(error).context(format!("no answer of {}", self.endpoint));
        if lasts { Trouble::Lasting(error) } else { Trouble::Passing(error, None) }
    }

    /// What the server says that it is.
    ///
    /// # Errors
    /// It cannot be reached, or wants a token.
    pub(super) fn version(&mut self) -> anyhow::Result<String> {
        let call = Call::new("web3_clientVersion", RawValue::from_string("[]".into())?);
        match self.exchange(&call) {
            Ok(version) => {
                let version = serde_json::from_str(version.get());
                Ok(version.unwrap_or_else(|_| "does not say its version".into()))
            }
            Err(Trouble::Lasting(error) | Trouble::Passing(error, _)) => {
                let words = format!("{error:#}");
                let is_locked = ["status 401", "status 403"].iter().any(|it| words.contains(it));
                match is_locked {
                    true => Err(error.context("--jwt-secret or --header?")),
                    false if Fault::of(&error).is_some() => Ok("does not say its version".into()),
                    false => Err(error),
                }
            }
        }
    }
}
