//! Encodes an answer while it is sent, chunk by chunk.

use std::{fmt, io};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
#[cfg(feature = "zstd")]
use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

#[cfg(feature = "zstd")]
use crate::limits::{CODED_BYTES, TO_CODE_BYTES, ZSTD_LEVEL};
use crate::pieces::Pieces;

/// A body that is encoded while it is sent.
#[cfg(feature = "zstd")]
pub(crate) struct EncodedBody {
    pieces: Pieces,
    /// Created when the first bytes are taken, and dropped with the last ones.
    encoder: Option<Encoder<'static>>,
    /// The permit for an encoder.
    permit: Option<OwnedSemaphorePermit>,
    is_ended: bool,
}

#[cfg(feature = "zstd")]
impl EncodedBody {
    /// One frame of all pieces, which says how long they are.
    pub(crate) const fn new(pieces: Pieces, permit: OwnedSemaphorePermit) -> Self {
        Self { pieces, encoder: None, permit: Some(permit), is_ended: false }
    }

    pub(crate) const fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// The next bytes to be sent: at least one, until the body has ended.
    pub(crate) fn take(&mut self) -> io::Result<Bytes> {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => none.insert(encoder(self.pieces.len_bytes())?),
        };
        let mut encoded = Vec::with_capacity(2 * CODED_BYTES);
        while !self.is_ended && encoded.len() < CODED_BYTES {
            let chunk = self.pieces.take(TO_CODE_BYTES);
            let mut input = InBuffer::around(&chunk);
            loop {
                encoded.reserve(CODED_BYTES);
                let filled = encoded.len();
                let mut output = OutBuffer::around_pos(&mut encoded, filled);
                if input.pos() < chunk.len() {
                    encoder.run(&mut input, &mut output)?;
                } else if !self.pieces.is_empty() {
                    break;
                } else if encoder.finish(&mut output, true)? == 0 {
                    self.is_ended = true;
                    break;
                }
            }
        }
        if self.is_ended {
            (self.encoder, self.permit) = (None, None);
        }
        Ok(encoded.into())
    }
}

#[cfg(feature = "zstd")]
fn encoder(length: usize) -> io::Result<Encoder<'static>> {
    let mut encoder = Encoder::new(ZSTD_LEVEL)?;
    encoder.set_pledged_src_size(Some(length as u64))?;
    Ok(encoder)
}

/// No body is encoded without the feature `zstd`.
#[cfg(not(feature = "zstd"))]
pub(crate) enum EncodedBody {}

#[cfg(not(feature = "zstd"))]
impl EncodedBody {
    pub(crate) fn new(_: Pieces, _: OwnedSemaphorePermit) -> Self {
        unreachable!("ports without the feature zstd accept no coding")
    }

    pub(crate) const fn is_ended(&self) -> bool {
        match *self {}
    }

    pub(crate) fn take(&mut self) -> io::Result<Bytes> {
        match *self {}
    }
}

impl fmt::Debug for EncodedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an encoded body")
    }
}
