//! The body of a response: pieces that go to the socket one after the other, coded on the way where
//! the client asked for that.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::http::coding::encode::EncodedBody;
use crate::http::streams::{OpenStream, StreamAnswer};
use crate::limits::CHUNK_BYTES;
use crate::pieces::Pieces;
use crate::transport::budget::Reservation;

/// A response body: pieces that go to the socket one after the other.
#[derive(Debug, Default)]
pub(super) struct ResponseBody {
    pub(super) content: Content,
    /// Released when the last piece was written, or the connection has ended.
    memory: Option<Arc<Reservation>>,
    /// Over HTTP/2, where an answer that waits does not keep others from being written. It holds
    /// the memory then.
    stream: Option<Arc<StreamAnswer>>,
}

#[derive(Debug)]
pub(super) enum Content {
    AsIs(Pieces),
    Encoded(Box<EncodedBody>),
}

impl Default for Content {
    fn default() -> Self {
        Self::AsIs(Pieces::default())
    }
}

impl ResponseBody {
    pub(super) const fn new(pieces: Pieces, memory: Option<Arc<Reservation>>) -> Self {
        Self { content: Content::AsIs(pieces), memory, stream: None }
    }

    /// The same body, to be sent on a stream of HTTP/2.
    pub(super) fn sent_by(mut self, stream: OpenStream) -> Self {
        self.stream = Some(stream.send(self.memory.take()));
        self
    }
}

impl From<String> for ResponseBody {
    fn from(text: String) -> Self {
        Self::new(text.into_bytes().into(), None)
    }
}

/// A part of an answer on its way, dropped when it is written or the connection has ended.
struct ReservedChunk {
    bytes: Bytes,
    _memory: Arc<Reservation>,
}

impl AsRef<[u8]> for ReservedChunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let chunk = match &mut self.content {
            Content::AsIs(pieces) => Ok(pieces.take(CHUNK_BYTES)),
            Content::Encoded(body) => body.take(),
        };
        let is_end = chunk.as_ref().is_ok_and(Bytes::is_empty);
        // A chunk may wait long in hyper's queue, and counts until it is written.
        let watched = |bytes| match (&self.stream, &self.memory) {
            (Some(stream), _) => stream.chunk(bytes),
            (None, Some(memory)) => {
                Bytes::from_owner(ReservedChunk { bytes, _memory: Arc::clone(memory) })
            }
            (None, None) => bytes,
        };
        Poll::Ready((!is_end).then(|| chunk.map(watched).map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::AsIs(pieces) => pieces.is_empty(),
            Content::Encoded(body) => body.is_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::AsIs(pieces) => SizeHint::with_exact(pieces.len_bytes() as u64),
            Content::Encoded(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::budget::{Budget, Shares};
    use crate::transport::peer::Peer;
    use std::task::Waker;
    use std::time::Duration;

    /// hyper has up to half a megabyte of chunks in its queue.
    #[test]
    fn an_answer_has_its_memory_until_its_last_chunk_is_written() {
        let (bytes, evicted) = (3 * CHUNK_BYTES, Arc::default());
        let budget = Budget::new("answers", Shares::whole(bytes, 1), Duration::ZERO);
        let memory = budget.try_reserve(Peer::new(None), bytes, &evicted).expect("it is empty");
        let mut answer = ResponseBody::new(vec![7; bytes].into(), Some(Arc::new(memory)));
        let mut chunks = Vec::new();
        let cx = &mut Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(frame)) = Pin::new(&mut answer).poll_frame(cx) {
            let chunk = frame.expect("memory").into_data().expect("no trailers");
            assert!(chunk.iter().all(|byte| *byte == 7));
            chunks.push(chunk);
        }
        drop(answer);
        assert_eq!(chunks.iter().map(Bytes::len).sum::<usize>(), bytes);
        while chunks.pop().is_some() {
            assert_eq!(
                budget.try_reserve(Peer::new(None), 1, &evicted).is_some(),
                chunks.is_empty()
            );
        }
    }
}
