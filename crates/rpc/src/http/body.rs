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
use crate::limits::{BODY_STEP_BYTES, DISCARD_BYTES, DISCARD_TIME, Limits, SHORT_BYTES};
use crate::port::Port;
use crate::transport::budget::{Budget, QueueFull, Reservation};
use crate::transport::peer::Peer;
use crate::transport::slot::ConnectionSlot;

/// The body of a request.
#[derive(Debug, Default)]
pub(super) struct RequestBody {
    pub(super) bytes: Vec<u8>,
    pub(super) memory: Option<BodyMemory>,
}

impl AsRef<[u8]> for RequestBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The memory reserved for the buffer of a body: for its first [`BODY_STEP_BYTES`], and for the
/// rest. One of at most [`SHORT_BYTES`] has none: it is a part of its connection's memory.
#[derive(Debug)]
pub(super) struct BodyMemory {
    peer: Peer,
    evicted: Arc<Notify>,
    first: Option<Reservation>,
    rest: Option<Reservation>,
}

impl BodyMemory {
    fn new(peer: Peer) -> Self {
        Self { peer, evicted: Arc::default(), first: None, rest: None }
    }

    fn parts(&self) -> impl Iterator<Item = &Reservation> {
        self.first.iter().chain(&self.rest)
    }

    /// Waits for memory for a buffer of so many bytes.
    async fn grow(&mut self, port: &Port, capacity: usize) -> Result<(), QueueFull> {
        let (peer, evicted) = (self.peer, &self.evicted);
        let first = capacity.min(BODY_STEP_BYTES);
        grow(&mut self.first, &port.budgets.small_bodies, peer, first, evicted).await?;
        grow(&mut self.rest, &port.budgets.bodies, peer, capacity - first, evicted).await?;
        self.parts().for_each(Reservation::note_progress);
        Ok(())
    }

    /// As [`Reservation::exempt`].
    fn exempt(&self) -> bool {
        // Each of them is exempted, also behind one that was evicted.
        self.parts().filter(|part| !part.exempt()).count() == 0
    }
}

/// Waits until so many bytes are reserved.
async fn grow(
    part: &mut Option<Reservation>,
    budget: &Arc<Budget>,
    peer: Peer,
    bytes: usize,
    evicted: &Arc<Notify>,
) -> Result<(), QueueFull> {
    match part {
        Some(part) if part.amount() < bytes => part.grow(bytes - part.amount()).await,
        None if bytes > 0 => {
            *part = Some(budget.reserve(peer, bytes, evicted).await?);
            Ok(())
        }
        _ => Ok(()),
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
pub(super) async fn read(
    port: &Port,
    slot: &ConnectionSlot,
    mut body: Incoming,
) -> Result<RequestBody, Refusal> {
    if body.is_end_stream() {
        return Ok(RequestBody::default());
    }
    let (mut bytes, mut memory, begun) = (Vec::new(), BodyMemory::new(slot.peer), Instant::now());
    let evicted = Arc::clone(&memory.evicted);
    let read = tokio::select! {
        biased;
        read = read_all(port, slot, &mut body, &mut bytes, &mut memory) => read,
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
    slot: &ConnectionSlot,
    body: &mut Incoming,
    bytes: &mut Vec<u8>,
    memory: &mut BodyMemory,
) -> Result<(), Refusal> {
    let Limits { body_bytes, body_start_bytes, .. } = port.limits;
    let announced = body.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    // A length is only a claim, and no more than a part of it is believed.
    let mut capacity = SHORT_BYTES.max(announced.unwrap_or(0).min(body_start_bytes));
    reserve(port, memory, capacity).await?;
    let mut noted_bytes = 0;
    while let Some(data) = next_data(port, body, bytes.len()).await? {
        if data.len() > body_bytes - bytes.len() {
            return Err(Refusal::too_long(body_bytes));
        }
        let length = bytes.len() + data.len();
        let most = announced.unwrap_or(body_bytes).max(length);
        if length > capacity {
            // Half of the buffer has come at least.
            capacity = length.next_power_of_two().min(most);
            reserve(port, memory, capacity).await?;
        }
        if bytes.capacity() < length {
            bytes.reserve_exact(capacity.min(most) - bytes.len());
        }
        bytes.extend_from_slice(&data);
        if length - noted_bytes >= BODY_STEP_BYTES {
            noted_bytes = length;
            slot.note_progress();
            memory.parts().for_each(Reservation::note_progress);
        }
    }
    Ok(())
}

/// Waits for memory for a buffer of so many bytes.
async fn reserve(port: &Port, memory: &mut BodyMemory, capacity: usize) -> Result<(), Refusal> {
    if capacity <= SHORT_BYTES {
        return Ok(());
    }
    port.granted(memory.grow(port, capacity)).await.map_err(Refusal::unanswered)
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
