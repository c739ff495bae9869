//! Refusals, as `application/problem+json`.

use rpc::Code;
use rpc::rest::header::{ALLOW, CONTENT_TYPE};
use rpc::rest::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::json;
use witness::container::{MAX_BYTES, SszError, SszProblem};

use crate::api::detail;

/// The kind of a problem, which decides the HTTP status and the `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    /// Path, query or headers are not as they must be.
    InvalidRequest,
    /// The body is not the container that it must be.
    SszDecode,
    /// The fork is missing, unknown, or not that of the block.
    UnsupportedFork,
    /// There is nothing at this path.
    UnknownPath,
    /// There is, but only for other methods: those named.
    Method(&'static str),
    /// No build has this id.
    UnknownPayload,
    /// No valid block has this hash, or it has no witness.
    UnknownBlock,
    /// The fork choice contradicts itself or the chain.
    InvalidForkchoice,
    /// The new head lies further back than we can go.
    ReorgTooDeep,
    /// It was there once and is no longer kept.
    PrunedHistory,
    /// More than one of the limits that `GET /capabilities` names.
    RequestTooLarge,
    /// The body is not SSZ by its `Content-Type`.
    UnsupportedMediaType,
    /// The range lies behind the end.
    RangeNotSatisfiable,
    /// The body is a container whose values are wrong.
    InvalidBody,
    /// So are the attributes of a payload to build.
    InvalidAttributes,
    /// A fault of ours.
    Internal,
    /// No turn: too many requests wait.
    Unavailable,
    /// The answer is longer than SSZ's 32-bit offsets reach.
    ResponseTooLarge,
}

impl ProblemKind {
    /// The status, and the end of the `type`. Those that execution-apis #793 has not are ours:
    /// `unknown-block`, `pruned-history`, `range-not-satisfiable`, `unavailable` and
    /// `response-too-large`.
    const fn wire(self) -> (StatusCode, &'static str) {
        match self {
            Self::InvalidRequest => (StatusCode::BAD_REQUEST, "invalid-request"),
            Self::SszDecode => (StatusCode::BAD_REQUEST, "ssz-decode-error"),
            Self::UnsupportedFork => (StatusCode::BAD_REQUEST, "unsupported-fork"),
            Self::UnknownPath => (StatusCode::NOT_FOUND, "method-not-found"),
            Self::Method(_) => (StatusCode::METHOD_NOT_ALLOWED, "method-not-found"),
            Self::UnknownPayload => (StatusCode::NOT_FOUND, "unknown-payload"),
            Self::UnknownBlock => (StatusCode::NOT_FOUND, "unknown-block"),
            Self::InvalidForkchoice => (StatusCode::CONFLICT, "invalid-forkchoice"),
            Self::ReorgTooDeep => (StatusCode::CONFLICT, "reorg-too-deep"),
            Self::PrunedHistory => (StatusCode::GONE, "pruned-history"),
            Self::RequestTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "request-too-large"),
            Self::UnsupportedMediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type")
            }
            Self::RangeNotSatisfiable => {
                (StatusCode::RANGE_NOT_SATISFIABLE, "range-not-satisfiable")
            }
            Self::InvalidBody => (StatusCode::UNPROCESSABLE_ENTITY, "invalid-body"),
            Self::InvalidAttributes => (StatusCode::UNPROCESSABLE_ENTITY, "invalid-attributes"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            // Not of the class 4xx: nothing is wrong with the request, and the block was run. Not
            // 500 either, which stands for a fault of ours that may be gone the next time: the
            // representation that was asked for cannot be made, now or later.
            Self::ResponseTooLarge => (StatusCode::INSUFFICIENT_STORAGE, "response-too-large"),
        }
    }
}

/// A request that was not answered.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(super) kind: ProblemKind,
    pub(super) detail: String,
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl std::fmt::Display) -> Self {
        Self { kind, detail: rpc::shortened(detail) }
    }

    pub(crate) fn response(self) -> Response {
        let (status, name) = self.kind.wire();
        let body = json!({"type": format!("/engine-api/errors/{name}"), "detail": self.detail});
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let ProblemKind::Method(methods) = self.kind {
            headers.insert(ALLOW, HeaderValue::from_static(methods));
        }
        Response { status, headers, body: body.to_string().into_bytes().into(), file: None }
    }
}

/// The JSON-RPC errors whose likes there are.
impl From<rpc::Error> for Problem {
    fn from(error: rpc::Error) -> Self {
        const KINDS: [(Code, ProblemKind); 8] = [
            (Code::InvalidParams, ProblemKind::InvalidBody),
            (Code::UnknownPayload, ProblemKind::UnknownPayload),
            (Code::InvalidForkchoiceState, ProblemKind::InvalidForkchoice),
            (Code::InvalidPayloadAttributes, ProblemKind::InvalidAttributes),
            (Code::TooLargeRequest, ProblemKind::RequestTooLarge),
            (Code::UnsupportedFork, ProblemKind::UnsupportedFork),
            (Code::TooDeepReorg, ProblemKind::ReorgTooDeep),
            (Code::PrunedHistory, ProblemKind::PrunedHistory),
        ];
        let found = KINDS.iter().find(|(code, _)| error.is(*code));
        Self::new(found.map_or(ProblemKind::Internal, |(_, kind)| *kind), detail(&error))
    }
}

/// A malformed body, with the name of the field.
impl From<SszError> for Problem {
    fn from(error: SszError) -> Self {
        Self::new(ProblemKind::SszDecode, error)
    }
}

impl Problem {
    /// A malformed body that is a list of hashes: the number of these is one of the
    /// limits that `GET /capabilities` names.
    pub(super) fn of_hashes(error: SszError) -> Self {
        match error.problem {
            SszProblem::TooManyItems { .. } => Self::new(ProblemKind::RequestTooLarge, error),
            _ => error.into(),
        }
    }

    /// Why an answer cannot be written.
    pub(super) fn of_answer(error: SszError) -> Self {
        match error.problem {
            SszProblem::TooLong { got, limit } if limit == MAX_BYTES => Self::too_large(got),
            _ => Self::new(ProblemKind::Internal, error),
        }
    }

    /// An answer of so many bytes.
    pub(super) fn too_large(bytes: usize) -> Self {
        let limit = MAX_BYTES;
        let detail = format!(
            "the answer has {bytes} bytes, and the offsets of SSZ reach no further than {limit}; \
             the witness can be had as RLP, in ranges, and over JSON-RPC"
        );
        Self::new(ProblemKind::ResponseTooLarge, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(problem: Problem, status: u16, name: &str, words: &str) {
        let answer = problem.response();
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert_eq!(answer.status.as_u16(), status, "{text}");
        assert!(text.contains(&format!("\"/engine-api/errors/{name}\"")), "{text}");
        assert!(text.contains(words), "{text}");
    }

    #[test]
    fn errors_of_json_rpc_have_their_likes() {
        let error = |code| Problem::from(rpc::Error::new(code, "why"));
        check(error(Code::InvalidParams), 422, "invalid-body", "why");
        check(error(Code::UnknownPayload), 404, "unknown-payload", "why");
        check(error(Code::InvalidForkchoiceState), 409, "invalid-forkchoice", "why");
        check(error(Code::InvalidPayloadAttributes), 422, "invalid-attributes", "why");
        check(error(Code::TooLargeRequest), 413, "request-too-large", "why");
        check(error(Code::UnsupportedFork), 400, "unsupported-fork", "why");
        check(error(Code::TooDeepReorg), 409, "reorg-too-deep", "why");
        check(error(Code::PrunedHistory), 410, "pruned-history", "why");
        check(error(Code::Server), 500, "internal", "why");
        check(error(Code::Internal), 500, "internal", "why");
    }

    #[test]
    fn an_answer_that_offsets_do_not_reach_names_its_size() {
        let (got, limit) = (5_000_000_000, MAX_BYTES);
        let error = SszProblem::TooLong { got, limit };
        let error = SszError { field: "payload_status_with_witness", problem: error };
        check(Problem::of_answer(error), 507, "response-too-large", "5000000000");
        let error = SszProblem::TooLong { got: 1025, limit: 1024 };
        let error = SszError { field: "state", problem: error };
        check(Problem::of_answer(error), 500, "internal", "state: 1025 bytes");
    }
}
