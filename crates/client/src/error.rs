//! Errors of the client.

use engine_api::headers::PROBLEM_JSON;
use rpc::rest::HeaderValue;
use rpc::rest::header::CONTENT_TYPE;
use rpc::{ClientError, Code, Reply, quote, read_json_bytes, shortened};
use serde::Deserialize;
use witness::DecodeError;
use witness::container::SszError;

/// The reason why a call has no answer, split by what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer came over the connection: no server listens, it broke, it took too long, or the
    /// token was refused (HTTP status 401). The call may have run or not.
    #[error(transparent)]
    Transport(ClientError),
    /// The server answered with an error of JSON-RPC.
    #[error("the server answered: {0}")]
    Rpc(#[source] rpc::Error),
    /// The server answered with a problem of the REST API.
    #[error("the server answered: {0}")]
    Problem(#[source] Problem),
    /// The answer is malformed.
    #[error("the answer cannot be read: {0}")]
    Decode(String),
    /// The arguments have no form on the wire; nothing was sent.
    #[error("cannot be sent: {0}")]
    Encode(String),
    /// The wire has no such call; nothing was sent.
    #[error("there is no {0} over JSON-RPC")]
    NotOverJson(&'static str),
}

/// `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} ({status}): {}", quote(self.name()), quote(.detail))]
pub struct Problem {
    /// The HTTP status.
    pub status: u16,
    /// The `type` of the problem: `/engine-api/errors/...`.
    pub kind: String,
    /// The `detail` of this case; empty where the server gives none.
    pub detail: String,
}

impl Problem {
    /// The last part of [`kind`](Self::kind), such as `unsupported-fork`.
    pub fn name(&self) -> &str {
        self.kind.rsplit('/').next().unwrap_or_default()
    }

    pub(crate) fn read(status: u16, body: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Fields {
            #[serde(rename = "type")]
            kind: String,
            #[serde(default)]
            detail: String,
        }
        let Fields { kind, detail } = read_json_bytes(body)?;
        Ok(Self { status, kind, detail })
    }
}

impl Error {
    /// Whether the server says that the block is of another fork, or that it knows no such fork.
    pub(crate) fn is_unsupported_fork(&self) -> bool {
        match self {
            Self::Rpc(error) => error.is(Code::UnsupportedFork),
            Self::Problem(problem) => problem.name() == "unsupported-fork",
            _ => false,
        }
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Rpc(error) => Self::Rpc(error),
            ClientError::Malformed(reason) => Self::Decode(reason),
            ClientError::Params { .. } => Self::Encode(error.to_string()),
            error => Self::Transport(error),
        }
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::Decode(shortened(error))
    }
}

impl From<SszError> for Error {
    fn from(error: SszError) -> Self {
        Self::Decode(error.to_string())
    }
}

impl From<engine_api::Error> for Error {
    fn from(error: engine_api::Error) -> Self {
        match error {
            engine_api::Error::Missing(_) => Self::Encode(error.to_string()),
            engine_api::Error::Json(_) | engine_api::Error::Witness(_) => {
                Self::Decode(shortened(error))
            }
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Decode(shortened(error))
    }
}

impl Error {
    /// The error in an answer over REST: a problem, or the text of a server that does not speak it.
    pub(crate) fn of(reply: &Reply) -> Self {
        let status = reply.status.as_u16();
        let content_type = reply.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if content_type.is_some_and(|found| found.starts_with(PROBLEM_JSON.as_bytes())) {
            return Problem::read(status, &reply.body).map_or_else(|error| error, Self::Problem);
        }
        let text = quote(String::from_utf8_lossy(&reply.body).trim());
        Self::Transport(ClientError::Http { status, text })
    }
}
