//! Requests that are refused: the status, and a line of text that says what to do.

use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};

use crate::http::response_body::ResponseBody;
use crate::port::Unanswered;
use crate::quote::shortened;

/// A request that is refused before a handler sees it.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: shortened(text.into()) }
    }

    pub(super) fn too_long(most_bytes: usize) -> Self {
        let text = format!("the body is too long: at most {most_bytes} bytes are taken");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, text)
    }

    /// The refusal of a call that had no turn, or whose answer had no memory.
    pub(super) fn unanswered(unanswered: Unanswered) -> Self {
        let status = match unanswered {
            Unanswered::Busy(_) | Unanswered::Full | Unanswered::Stopping => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Unanswered::Lost => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, unanswered.to_string())
    }
}

impl From<Refusal> for Response<ResponseBody> {
    fn from(refusal: Refusal) -> Self {
        let Refusal { status, text } = refusal;
        tracing::debug!(%status, text, "refused a request");
        let mut response = Response::new(ResponseBody::from(text + "\n"));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, plain);
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            // A client without a token does not keep a connection that others may need.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if status == StatusCode::UPGRADE_REQUIRED {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            // RFC 9110 section 7.8.
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        }
        response
    }
}
