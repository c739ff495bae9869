//! Reading the body of a request, within the memory that all connections of the port share.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::http::refusal::Refusal;
use crate::limits::{BODY_START_BYTES, BODY_STEP_BYTES, DISCARD_BYTES, DISCARD_TIME};
use crate::port::Port;
use crate::transport::budget::Reservation;

/// The body of a request.
#[derive(Debug, Default)]
pub(super) struct RequestBody {
    pub(super) bytes: Vec<u8>,
    pub(super) memory: Option<BodyMemory>,
}

/// The memory reserved for a body: for its first [`BODY_STEP_BYTES`], and for the rest.
#[derive(Debug)]
pub(super) struct BodyMemory {
    first: Reservation,
    rest: Option<Reservation>,
}

impl BodyMemory {
    fn note_progress(&self) {
        self.first.note_progress();
        self.rest.iter().for_each(Reservation::note_progress);
    }

    /// As [`Reservation::exempt`].
    fn exempt(&self) -> bool {
        let is_exempt = self.first.exempt();
        self.rest.as_ref().is_none_or(Reservation::exempt) && is_exempt
    }
}

fn too_slow(bytes: usize, begun: Instant) -> Refusal {
    let text = format!(
        "the body came too slowly while others had no room: {bytes} bytes in {:.1?}, try again",
        begun.elapsed()
    );
    Refusal::new(StatusCode::REQUEST_TIMEOUT, text)
}

/// Reads the body of a request. Where others wait for memory, a body that does not go on is
/// refused.
pub(super) async fn read(port: &Port, mut body: Incoming) -> Result<RequestBody, Refusal> {
    if body.is_end_stream() {
        return Ok(RequestBody::default());
    }
    let evicted = Arc::default();
    let first = port.small_bodies.reserve(BODY_STEP_BYTES, &evicted);
    let first = match port.in_time(first).await {
        Ok(first) => first,
        Err(unanswered) => {
            tokio::spawn(discard(body));
            return Err(Refusal::unanswered(unanswered));
        }
    };
    first.note_progress();
    let mut memory = BodyMemory { first, rest: None };
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(announced.min(BODY_START_BYTES));
    let begun = Instant::now();
    let read = tokio::select! {
        biased;
        read = read_all(port, &mut body, &mut bytes, &mut memory, &evicted) => read,
        () = evicted.notified() => Err(too_slow(bytes.len(), begun)),
    };
    match read {
        Ok(()) if !memory.exempt() => Err(too_slow(bytes.len(), begun)),
        Ok(()) => Ok(RequestBody { bytes, memory: Some(memory) }),
        Err(refusal) => {
            // Otherwise a client that is still writing finds its connection reset.
            tokio::spawn(discard(body));
            Err(refusal)
        }
    }
}

async fn read_all(
    port: &Port,
    body: &mut Incoming,
    bytes: &mut Vec<u8>,
    memory: &mut BodyMemory,
    evicted: &Arc<Notify>,
) -> Result<(), Refusal> {
    let mut reserved_bytes = BODY_STEP_BYTES;
    while let Some(data) = next_data(port, body, bytes.len()).await? {
        if data.len() > port.limits.body_bytes - bytes.len() {
            return Err(Refusal::too_long(port.limits.body_bytes));
        }
        bytes.extend_from_slice(&data);
        if bytes.len() > reserved_bytes {
            let more = (bytes.len() - reserved_bytes).next_multiple_of(BODY_STEP_BYTES);
            reserved_bytes += more;
            let grown = async {
                match &mut memory.rest {
                    Some(rest) => rest.grow(more).await,
                    None => memory.rest = Some(port.bodies.reserve(more, evicted).await),
                }
            };
            port.in_time(grown).await.map_err(Refusal::unanswered)?;
            memory.note_progress();
        }
    }
    Ok(())
}

/// The next bytes of a body of which `read_bytes` have come.
async fn next_data(
    port: &Port,
    body: &mut Incoming,
    read_bytes: usize,
) -> Result<Option<Bytes>, Refusal> {
    loop {
        let limit = port.limits.body_idle;
        return match timeout(limit, body.frame()).await {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => Ok(Some(data)),
                // Trailers.
                Err(_) => continue,
            },
            Ok(None) => Ok(None),
            Ok(Some(Err(fault))) => {
                let text = format!("the body is broken: {fault}");
                Err(Refusal::new(StatusCode::BAD_REQUEST, text))
            }
            Err(_) => {
                let text =
                    format!("the body stopped: no byte for {limit:?}, {read_bytes} bytes so far");
                Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, text))
            }
        };
    }
}

/// Reads the rest of a refused body, within bounds, so that its sender comes to read the refusal.
pub(super) async fn discard(mut body: Incoming) {
    let read = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > DISCARD_BYTES {
                break;
            }
        }
    };
    // After that the connection is closed: the sender was told.
    timeout(DISCARD_TIME, read).await.unwrap_or_default();
}
