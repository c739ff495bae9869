//! Answers for which alloy has no type.

use std::collections::BTreeMap;
use std::time::Duration;

use alloy_rpc_types_engine::{ForkchoiceUpdated, PayloadStatus, PayloadStatusEnum};
use engine_api::{ForkchoiceUpdateResponse, Status, headers};
use rpc::rest::HeaderMap;
use rpc::shortened;
use serde::{Deserialize, Serialize};
use witness::{PublicKey, Witness};

/// The witness of a VALID answer, with keys, timings and the size of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessAnswer {
    /// The witness. Its items are slices of the received memory, with
    /// [`Wire::Descriptor`](crate::Wire::Descriptor) the server's, which is used again once all of
    /// them are dropped.
    pub witness: Witness,
    /// The signers' keys, one a transaction, in order; empty where the server, or JSON-RPC, sends
    /// none.
    pub public_keys: Vec<PublicKey>,
    /// The times of the validation, if the block is the last that the server ran; never over
    /// JSON-RPC.
    pub timings: Option<Timings>,
    /// Bytes of the answer, before compression: far fewer than the witness has where a
    /// [`CodeCache`](crate::CodeCache) is in use.
    pub received_bytes: usize,
}

/// The times of a validation, from the header `Deponent-Timings`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Recovering the senders of the transactions.
    pub recovery: Duration,
    /// Waiting for the parent's state to get its addresses.
    pub parent: Duration,
    /// From the first system call to the beginning of the root.
    pub execution: Duration,
    /// The rest of the state root after that.
    pub root: Duration,
    /// The part of `root` until all reads were loaded.
    pub catching_up: Duration,
    /// Putting the witness together, where it was asked for with the verdict.
    pub witness: Duration,
}

impl Timings {
    /// Reads the header, whose form is that of `Server-Timing`. Unknown names are ignored.
    pub(crate) fn read(answer: &HeaderMap) -> Option<Self> {
        let text = answer.get(headers::TIMINGS)?.to_str().ok()?;
        let mut timings = Self::default();
        for part in text.split(',') {
            let Some((name, milliseconds)) = part.trim().split_once(";dur=") else { continue };
            let time = match name {
                "recovery" => &mut timings.recovery,
                "parent" => &mut timings.parent,
                "execution" => &mut timings.execution,
                "root" => &mut timings.root,
                "catching-up" => &mut timings.catching_up,
                "witness" => &mut timings.witness,
                _ => continue,
            };
            let seconds = milliseconds.parse::<f64>().ok()? / 1e3;
            *time = Duration::try_from_secs_f64(seconds).ok()?;
        }
        Some(timings)
    }
}

/// A status in alloy's type, which has no value of its own for a wrong block hash.
pub(crate) fn status_of(status: engine_api::PayloadStatus) -> PayloadStatus {
    let engine_api::PayloadStatus { status, latest_valid_hash, validation_error } = status;
    let status = match status {
        Status::Valid => PayloadStatusEnum::Valid,
        Status::Invalid | Status::InvalidBlockHash => PayloadStatusEnum::Invalid {
            validation_error: shortened(validation_error.unwrap_or_default()),
        },
        Status::Syncing => PayloadStatusEnum::Syncing,
        Status::Accepted => PayloadStatusEnum::Accepted,
    };
    PayloadStatus { status, latest_valid_hash }
}

/// The answer to a fork choice, in alloy's type.
pub(crate) fn updated(answer: ForkchoiceUpdateResponse) -> ForkchoiceUpdated {
    let ForkchoiceUpdateResponse { payload_status, payload_id } = answer;
    ForkchoiceUpdated { payload_status: status_of(payload_status), payload_id }
}

/// The capabilities of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The forks whose containers the server knows; empty over JSON-RPC, which does not say.
    pub forks: Vec<String>,
    /// The endpoints behind `/engine/v1/`, or the methods of JSON-RPC.
    pub endpoints: Vec<String>,
    /// The limits of one request by their names; empty over JSON-RPC.
    pub limits: BTreeMap<String, u64>,
}

/// `ClientVersionV1`: the name and version of a server or a client. (alloy's type refuses
/// two-letter codes that it does not know.)
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientVersion {
    /// Two letters.
    pub code: String,
    /// The name for people.
    pub name: String,
    /// The version.
    pub version: String,
    /// The first four bytes of the commit, in hex.
    pub commit: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Timings> {
        let mut headers = HeaderMap::new();
        headers.insert("deponent-timings", text.parse().expect("a value"));
        Timings::read(&headers)
    }

    #[test]
    fn timings_are_read_by_name() {
        let ms = |ms| Duration::from_micros(ms);
        let timings = read("recovery;dur=1.500, catching-up;dur=0.001, new;dur=x, root;dur=20.000");
        let expected = Timings {
            recovery: ms(1500),
            catching_up: ms(1),
            root: ms(20_000),
            ..Timings::default()
        };
        assert_eq!(timings, Some(expected));
        assert_eq!(read("whatever"), Some(Timings::default()));
        for bad in ["root;dur=-1", "root;dur=x", "root;dur=inf", "root;dur=NaN", "root;dur=1e300"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(Timings::read(&HeaderMap::new()), None);
    }
}
