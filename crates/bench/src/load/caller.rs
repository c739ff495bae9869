//! One call at a time to one endpoint, for commands that want its answers: it waits where the
//! endpoint asks for patience, and connects again where a connection ends.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use rpc::{ClientError, JwtSecret, RawValue, response};

use super::calls::LIMIT_CODES;
use super::env::Env;
use super::message::{Message, Messages, Wire, push_frame_head};
use super::target::Target;
use crate::args::count;
use crate::clients::process;
use crate::fault::Fault;
use crate::stream::Stream;

/// How often a call is sent that gets no answer, or is told to wait; pauses grow to a minute.
const MOST_TRIES: usize = 20;

/// An endpoint, and what it may be asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Endpoint {
    /// Where calls go: http(s)://host:port/path, ws(s)://host:port/path, or the path of a Unix
    /// socket.
    #[arg(long, value_name = "URL")]
    rpc: Option<String>,
    /// Calls a second, at most.
    #[arg(long, value_name = "N")]
    max_rate: Option<f64>,
    /// Seconds that an answer may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = count::<u64>)]
    timeout: u64,
    /// A further header of HTTP and of the opening of a WebSocket: "name: value".
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
    /// The file with the secret of an engine port.
    #[arg(long, value_name = "FILE")]
    jwt_secret: Option<PathBuf>,
    /// A file of NAME=value lines, for keys: DEPONENT_RPC_URL, DEPONENT_RPC_TOKEN,
    /// DEPONENT_RPC_MAX_RATE. Flags win.
    #[arg(long, value_name = "FILE")]
    env: Option<PathBuf>,
    /// Certificates in PEM of those who may sign the server's, instead of the system's.
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

/// Calls an [`Endpoint`].
pub(crate) struct Caller {
    target: Target,
    connection: Option<(Stream, Messages)>,
    timeout: Duration,
    /// Between two calls, and when the next one may be sent.
    interval: Duration,
    due: Instant,
    id: u64,
    /// Whether it ever answered: before that nobody may be there.
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
    pub(crate) fn new(endpoint: &Endpoint) -> anyhow::Result<Self> {
        let env = match &endpoint.env {
            None => Env::default(),
            Some(path) => Env::read(path)?,
        };
        let url = endpoint.rpc.as_ref().or_else(|| env.urls.first());
        let url = url.context("no endpoint: --rpc, or DEPONENT_RPC_URL in the --env file")?;
        let secret = endpoint.jwt_secret.as_deref().map(JwtSecret::load).transpose()?;
        let mut headers = endpoint.header.clone();
        headers.extend(env.token.iter().map(|token| format!("Authorization: Bearer {token}")));
        let target = Target::parse(url, &headers, secret.as_ref(), endpoint.cacert.as_deref())?;
        let interval = match endpoint.max_rate.or(env.max_rate) {
            None => Duration::ZERO,
            Some(rate) => {
                ensure!(rate.is_finite() && rate > 0.0, "a rate is above 0");
                Duration::try_from_secs_f64(1.0 / rate).context("a rate is above 0")?
            }
        };
        Ok(Self::on(target, Duration::from_secs(endpoint.timeout), interval))
    }

    pub(super) fn on(target: Target, timeout: Duration, interval: Duration) -> Self {
        let (due, has_answered) = (Instant::now(), false);
        Self { target, connection: None, timeout, interval, due, id: 0, has_answered }
    }

    /// Calls a method; `params` is a JSON array.
    ///
    /// # Errors
    /// [`Fault::Refusing`] for a refusal, and what lasts over many tries.
    pub(crate) fn call(&mut self, method: &str, params: &str) -> anyhow::Result<Box<RawValue>> {
        for tried in 1.. {
            let start = self.due.max(self.target.patience.until());
            process::sleep_until(start);
            ensure!(!process::interrupted(), "interrupted");
            self.due = Instant::now() + self.interval;
            self.id += 1;
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#,
                self.id
            );
            match self.exchange(&body) {
                Ok(result) => {
                    self.target.patience.answered();
                    return Ok(result);
                }
                Err(Trouble::Lasting(error)) => return Err(error.context(method.to_owned())),
                Err(Trouble::Passing(error, seconds)) => {
                    if tried == MOST_TRIES {
                        return Err(error.context(format!("{method}, {tried} times")));
                    }
                    // A connection that was closed while nobody used it is opened again at once.
                    if tried > 1 || seconds.is_some() {
                        self.target.patience.asked(seconds.filter(|s| *s > 0), Instant::now());
                    }
                }
            }
        }
        bail!("{method} was not called")
    }

    /// One message there and one back.
    fn exchange(&mut self, body: &str) -> Result<Box<RawValue>, Trouble> {
        let answer = self.send(body).and_then(|()| self.receive());
        let message = match answer {
            Ok(message) => message,
            Err(error) => {
                self.connection = None;
                let lasts = [ErrorKind::PermissionDenied, ErrorKind::Unsupported];
                let is_nobody = [ErrorKind::ConnectionRefused, ErrorKind::NotFound];
                let lasts = lasts.contains(&error.kind())
                    || !self.has_answered && is_nobody.contains(&error.kind());
                let error =
                    anyhow::Error::new(error).context(format!("no answer of {}", self.target));
                return Err(match lasts {
                    true => Trouble::Lasting(error),
                    false => Trouble::Passing(error, None),
                });
            }
        };
        let Some((_, messages)) = &self.connection else {
            return Err(Trouble::Lasting(anyhow!("the connection is gone")));
        };
        self.has_answered = true;
        let text = messages.bytes(&message.body);
        let outcome = match message.status {
            0 | 200 => outcome(text),
            429 | 500..=599 => {
                let error = anyhow!("{} answers HTTP {}", self.target, message.status);
                Err(Trouble::Passing(error, Some(message.retry_after.unwrap_or(0))))
            }
            status => {
                let said = String::from_utf8_lossy(&text[..text.len().min(500)]);
                let said = format!("{} answers HTTP {status}: {said}", self.target);
                Err(Trouble::Lasting(Fault::Refusing.error(said)))
            }
        };
        if message.is_last {
            self.connection = None;
        }
        outcome
    }

    fn send(&mut self, body: &str) -> std::io::Result<()> {
        if self.connection.is_none() {
            let (stream, messages) = self.target.open()?;
            stream.set_read_timeout(self.timeout)?;
            self.connection = Some((stream, messages));
        }
        let mut request = Vec::new();
        match self.target.wire {
            Wire::Http => {
                request.extend(self.target.head());
                request.extend(format!("{}\r\n\r\n", body.len()).bytes());
            }
            Wire::WebSocket => push_frame_head(&mut request, false, true, body.len()),
            Wire::Ipc => {}
        }
        request.extend(body.bytes());
        match &mut self.connection {
            Some((stream, _)) => stream.write_all(&request),
            None => Err(ErrorKind::NotConnected.into()),
        }
    }

    fn receive(&mut self) -> std::io::Result<Message> {
        let Some((stream, messages)) = &mut self.connection else {
            return Err(ErrorKind::NotConnected.into());
        };
        loop {
            while let Some(message) = messages.next().map_err(|_| ErrorKind::InvalidData)? {
                if !message.is_ping {
                    return Ok(message);
                }
                let mut pong = Vec::new();
                push_frame_head(&mut pong, true, true, message.body.len());
                pong.extend_from_slice(messages.bytes(&message.body));
                stream.write_all(&pong)?;
            }
            if messages.read(stream)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// The result in an answer.
fn outcome(text: &[u8]) -> Result<Box<RawValue>, Trouble> {
    match response::result(text) {
        Ok(result) => Ok(result.to_owned()),
        Err(ClientError::Rpc(error)) if LIMIT_CODES.contains(&error.code) => {
            Err(Trouble::Passing(ClientError::Rpc(error).into(), Some(0)))
        }
        Err(error) => {
            let refuses = matches!(error, ClientError::Rpc(_));
            let fault = if refuses { Fault::Refusing } else { Fault::Garbled };
            Err(Trouble::Lasting(anyhow::Error::new(error).context(fault)))
        }
    }
}
