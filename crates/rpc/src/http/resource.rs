//! Resources by path, beside JSON-RPC on the same port: a REST API.

pub use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use hyper::{Method, StatusCode};

use std::fs;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyper::http::Extensions;

use crate::pieces::Pieces;

/// Answers requests for resources.
///
/// ```
/// use deponent_rpc::rest::{Request, Resources, Response, StatusCode};
///
/// struct Health;
/// impl Resources for Health {
///     fn prefix(&self) -> &str {
///         "/health/"
///     }
///     fn answer(&self, request: Request) -> Response {
///         match request.path.as_str() {
///             "/health/live" => Response::text(StatusCode::OK, "alive"),
///             path => self.refuse(StatusCode::NOT_FOUND, &format!("there is no {path}")),
///         }
///     }
/// }
/// ```
pub trait Resources: Send + Sync {
    /// The prefix of all paths of resources. It ends in a slash.
    fn prefix(&self) -> &str;

    /// Answers a request. It may take its time, as [`Handler::call`](crate::Handler::call) may. A
    /// panic becomes [`refuse`](Self::refuse) with status 500.
    fn answer(&self, request: Request) -> Response;

    /// Says why a request was not answered, in the form that its clients expect. The server itself
    /// refuses bodies that are too long (413) and requests that had no turn (503), among others.
    fn refuse(&self, status: StatusCode, detail: &str) -> Response {
        Response::text(status, detail)
    }

    /// Whether a request is answered out of memory, in microseconds: see
    /// [`Method::quick`](crate::Method::quick).
    fn is_quick(&self, request: &Request) -> bool {
        _ = request;
        false
    }

    /// Whether requests for this path are answered in order: see
    /// [`Method::in_order`](crate::Method::in_order).
    fn is_in_order(&self, path: &str) -> bool {
        _ = path;
        false
    }
}

/// A request for a resource. Its token, where the port asks for one, was right, and its body was
/// read within the port's limits.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path, as it came.
    pub path: String,
    /// The query behind the question mark, as it came.
    pub query: Option<String>,
    /// All headers.
    pub headers: HeaderMap,
    /// The body, empty where there is none.
    pub body: Bytes,
    /// Whether it came in HTTP/1.1 over a Unix socket, so that the answer may be a file.
    pub takes_files: bool,
    /// The connection that it came on.
    pub connection: Connection,
}

/// Values that a handler remembers of a connection, as long as it lasts. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Connection(Arc<Mutex<Extensions>>);

impl Connection {
    /// Calls `with` on the value of type `T` that is remembered of this connection: the default at
    /// first.
    ///
    /// # Panics
    /// If called from within `with`, or after a panic there.
    pub fn with<T: Clone + Default + Send + Sync + 'static, R>(
        &self,
        with: impl FnOnce(&mut T) -> R,
    ) -> R {
        let mut remembered = self.0.lock().expect("nothing panics while it is locked");
        with(remembered.get_or_insert_default())
    }

    /// Forgets all values.
    pub(crate) fn forget(&self) {
        self.0.lock().expect("nothing panics while it is locked").clear();
    }
}

/// A request with this header, whatever its value, on a Unix socket and in HTTP/1.1, may be
/// answered with a large body in a memory file: the answer has no body then, and the same header
/// with the file's id and the length of the body in bytes, as in `7;length=500000000`. The
/// descriptor comes with the answer's first bytes (`SCM_RIGHTS`). It can be read and mapped, does
/// not shrink, and holds the body until the client gives it back.
///
/// A resource that is a file of the server's own answers `file;length=500000000`, which is how long
/// it is now: it may grow, is not given back, and is requested with the value [`OWN_FILE`].
pub const DESCRIPTOR: HeaderName = HeaderName::from_static("deponent-descriptor");

pub use crate::limits::DESCRIPTOR_BYTES;

/// The value of [`DESCRIPTOR`] with which a client says that it maps a file of the server's own. It
/// is no memory file, and cannot be sealed: a server that cut it would take the client down with
/// it.
pub const OWN_FILE: HeaderValue = HeaderValue::from_static("file");

/// With this header a client gives files back, by their ids, separated by commas, with any request
/// on the connection that they came on: the server will write other answers into them. Files that
/// are not given back stay as they are, also when the connection ends.
pub const RELEASE: HeaderName = HeaderName::from_static("deponent-release");

/// The answer to a request for a resource.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers; the length of the body is added.
    pub headers: HeaderMap,
    /// The body. It is not sent in answer to `HEAD`, but its length is.
    pub body: Pieces,
    /// A file to pass instead of a body, opened read-only. It may grow, and must not change
    /// otherwise. A client that does not ask for it with [`DESCRIPTOR`], or cannot take it, is
    /// refused.
    pub file: Option<Arc<fs::File>>,
}

impl Response {
    /// A line of plain text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        let mut headers = HeaderMap::new();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, plain);
        Self { status, headers, body: (text.into() + "\n").into_bytes().into(), file: None }
    }
}
