//! Decodes the body of an answer.

use hyper::header::HeaderValue;
#[cfg(feature = "zstd")]
use {
    std::io,
    zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer},
};

use crate::client::error::{ClientError, malformed};
use crate::http::coding::IDENTITY;
#[cfg(feature = "zstd")]
use crate::http::coding::ZSTD;
#[cfg(feature = "zstd")]
use crate::limits::{CODED_BYTES, RESERVED_BYTES, ZSTD_WINDOW_LOG};
use crate::quote::quote;

/// Decodes a body that comes in the coding that its headers name.
pub(crate) enum BodyDecoder {
    Identity,
    #[cfg(feature = "zstd")]
    Zstd(ZstdDecoder),
}

/// Why a body is not read any further.
#[derive(Debug)]
pub(crate) enum DecodeError {
    /// It is not zstd.
    #[cfg(feature = "zstd")]
    Malformed(io::Error),
    /// It is longer than it may be.
    TooLong,
}

impl BodyDecoder {
    #[cfg_attr(not(feature = "zstd"), allow(unused_variables, reason = "there is one coding"))]
    /// For the value of `Content-Encoding`, of an answer to a request that `accepted` one coding.
    pub(crate) fn new(
        encoding: Option<&HeaderValue>,
        accepted: &'static str,
    ) -> Result<Self, ClientError> {
        match encoding {
            None => Ok(Self::Identity),
            Some(encoding) if encoding == IDENTITY => Ok(Self::Identity),
            #[cfg(feature = "zstd")]
            Some(encoding) if encoding == ZSTD && accepted == ZSTD => {
                ZstdDecoder::new().map(Self::Zstd).map_err(malformed)
            }
            Some(other) => {
                let coding = quote(String::from_utf8_lossy(other.as_bytes()));
                Err(malformed(format_args!("it came as \"{coding}\", which was not asked for")))
            }
        }
    }

    /// Appends the content of `coded` to `body`, which may get `most_bytes` long.
    pub(crate) fn push(
        &mut self,
        coded: &[u8],
        body: &mut Vec<u8>,
        most_bytes: usize,
    ) -> Result<(), DecodeError> {
        match self {
            Self::Identity if coded.len() > most_bytes - body.len() => Err(DecodeError::TooLong),
            Self::Identity => {
                body.extend_from_slice(coded);
                Ok(())
            }
            #[cfg(feature = "zstd")]
            Self::Zstd(decoder) => decoder.push(coded, body, most_bytes),
        }
    }

    /// Whether the body is complete, as far as the coding tells.
    pub(crate) const fn is_whole(&self) -> bool {
        match self {
            Self::Identity => true,
            #[cfg(feature = "zstd")]
            Self::Zstd(decoder) => decoder.is_whole(),
        }
    }
}

/// Decodes a body in zstd.
#[cfg(feature = "zstd")]
pub(crate) struct ZstdDecoder {
    decoder: Decoder<'static>,
    /// Nothing has come yet.
    is_fresh: bool,
    /// The bytes so far are whole frames.
    is_whole: bool,
}

#[cfg(feature = "zstd")]
impl ZstdDecoder {
    pub(super) fn new() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))?;
        Ok(Self { decoder, is_fresh: true, is_whole: false })
    }

    /// Appends the content of `coded` to `body`, which may get `most_bytes` long.
    pub(super) fn push(
        &mut self,
        coded: &[u8],
        body: &mut Vec<u8>,
        most_bytes: usize,
    ) -> Result<(), DecodeError> {
        if std::mem::take(&mut self.is_fresh)
            && let Ok(Some(announced)) = zstd::zstd_safe::get_frame_content_size(coded)
        {
            // New memory is not touched before it is needed, so that a wrong length costs nothing.
            let announced = usize::try_from(announced).unwrap_or(usize::MAX);
            body.reserve(announced.min(RESERVED_BYTES).min(most_bytes));
        }
        let mut input = InBuffer::around(coded);
        loop {
            if body.capacity() == body.len() {
                body.reserve(CODED_BYTES);
            }
            let filled = body.len();
            let mut output = OutBuffer::around_pos(body, filled);
            let left = self.decoder.run(&mut input, &mut output).map_err(DecodeError::Malformed)?;
            self.is_whole = left == 0;
            if body.len() > most_bytes {
                return Err(DecodeError::TooLong);
            }
            let is_all_read = input.pos() == coded.len();
            // Where the memory was filled, the decoder may hold more of what it read.
            if is_all_read && (self.is_whole || body.len() < body.capacity()) {
                return Ok(());
            }
        }
    }

    /// Whether the body is complete.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }
}
