//! One call at a time to one endpoint, for commands that want its answers: it waits where the
//! endpoint limits the rate, and connects again where a connection ends.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use rpc::{ClientError, RawValue};
use tokio::runtime::{Builder, Runtime};

use super::connection::Connection;
use super::endpoint::{AccessArgs, Endpoint};
use super::mix::Call;
use super::tally::CallFailure;
use crate::clients::process;
use crate::fault::Fault;
use crate::number::count;

/// Tries of a call that gets no answer, or is told to wait; pauses grow to a minute.
const MOST_TRIES: usize = 20;

/// An endpoint and its credentials.
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
    access: AccessArgs,
}

/// Calls an [`Endpoint`].
pub(crate) struct Caller {
    runtime: Runtime,
    endpoint: Arc<Endpoint>,
    connection: Option<Connection>,
    timeout: Duration,
    /// Between two calls, and when the next one may be sent.
    interval: Duration,
    due: Instant,
    /// It answered once: before that there may be no server.
    has_answered: bool,
}

/// Why a call has no result.
struct NoResult {
    error: anyhow::Error,
    /// Another try may do better: the connection ended, or the server is overwhelmed.
    is_passing: bool,
    /// The server answered that it is overwhelmed, and wants a pause of so many seconds, or of any.
    pause: Option<Option<u64>>,
}

impl Caller {
    pub(crate) fn new(args: &CallerArgs) -> anyhow::Result<Self> {
        let access = args.access.read()?;
        let url = args.rpc.as_ref().or_else(|| access.urls.first());
        let url = url.context("no endpoint: --rpc, or DEPONENT_RPC_URL in the --env file")?;
        let endpoint = Arc::new(Endpoint::new(url, &access)?);
        let mut caller = Self::to(endpoint, Duration::from_secs(args.timeout))?;
        caller.interval =
            access.max_rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate));
        Ok(caller)
    }

    /// To an endpoint that sets no rate.
    pub(super) fn to(endpoint: Arc<Endpoint>, timeout: Duration) -> anyhow::Result<Self> {
        Ok(Self {
            runtime: Builder::new_current_thread().enable_all().build()?,
            endpoint,
            connection: None,
            timeout,
            interval: Duration::ZERO,
            due: Instant::now(),
            has_answered: false,
        })
    }

    /// Calls a method; `params` is a JSON array.
    ///
    /// # Errors
    /// [`Fault::Refusing`] for a refusal, and what lasts over many tries.
    pub(crate) fn call(&mut self, method: &str, params: &str) -> anyhow::Result<Box<RawValue>> {
        let call = Call::new(method, RawValue::from_string(params.to_owned())?);
        for tried in 1.. {
            process::sleep_until(self.due.max(self.endpoint.backoff.until()));
            ensure!(!process::interrupted(), "interrupted");
            self.due = Instant::now() + self.interval;
            match self.exchange(&call) {
                Ok(result) => {
                    self.endpoint.backoff.succeeded();
                    return Ok(result);
                }
                Err(NoResult { error, is_passing: false, .. }) => {
                    return Err(error.context(method.to_owned()));
                }
                Err(NoResult { error, .. }) if tried == MOST_TRIES => {
                    return Err(error.context(format!("{method}, {tried} times")));
                }
                // A connection that was closed while it was idle is opened again at once.
                Err(NoResult { pause: None, .. }) if tried == 1 => {}
                Err(NoResult { pause, .. }) => {
                    let seconds = pause.flatten().filter(|seconds| *seconds > 0);
                    self.endpoint.backoff.extend(seconds, Instant::now());
                }
            }
        }
        bail!("{method} was not called")
    }

    /// One message there and one back.
    fn exchange(&mut self, call: &Call) -> Result<Box<RawValue>, NoResult> {
        let Self { runtime, endpoint, connection, timeout, .. } = self;
        let reply = runtime.block_on(async {
            let mut open = match connection.take() {
                Some(open) => open,
                None => endpoint.open(*timeout).await?,
            };
            let reply = open.exchange(&[call], false).await?;
            *connection = Some(open);
            Ok(reply)
        });
        let mut reply = reply.map_err(|error| self.unanswered(error))?;
        self.has_answered = true;
        let result = reply.results.pop().unwrap_or(Err(CallFailure::Missing));
        result.map_err(|failure| {
            let error = anyhow!("{} answers {failure}: {}", self.endpoint.shown, reply.error_text);
            let (error, pause) = match failure {
                CallFailure::Limited => (error, Some(reply.retry_after)),
                CallFailure::Status(500..) => (error, Some(None)),
                CallFailure::Code(_) | CallFailure::Status(_) => {
                    (error.context(Fault::Refusing), None)
                }
                _ => (error.context(Fault::Garbled), None),
            };
            NoResult { error, is_passing: pause.is_some(), pause }
        })
    }

    fn unanswered(&self, error: ClientError) -> NoResult {
        let lasts = match &error {
            ClientError::Connect { source, .. } => match source.kind() {
                ErrorKind::PermissionDenied | ErrorKind::Unsupported => true,
                ErrorKind::ConnectionRefused | ErrorKind::NotFound => !self.has_answered,
                _ => false,
            },
            ClientError::Http { .. } | ClientError::Address { .. } => true,
            _ => false,
        };
        let error =
            anyhow::Error::new(error).context(format!("no answer of {}", self.endpoint.shown));
        NoResult { error, is_passing: !lasts, pause: None }
    }

    /// The name and version that the server gives.
    ///
    /// # Errors
    /// It cannot be reached, or wants a token.
    pub(super) fn version(&mut self) -> anyhow::Result<String> {
        let call = Call::new("web3_clientVersion", RawValue::from_string("[]".into())?);
        let none = || "does not say its version".to_owned();
        let error = match self.exchange(&call) {
            Ok(version) => {
                return Ok(serde_json::from_str(version.get()).unwrap_or_else(|_| none()));
            }
            Err(NoResult { error, .. }) => error,
        };
        let words = format!("{error:#}");
        if ["status 401", "status 403"].iter().any(|status| words.contains(status)) {
            return Err(error.context("--jwt-secret or --header?"));
        }
        if Fault::of(&error).is_some() { Ok(none()) } else { Err(error) }
    }
}
