//! Parts that answers over JSON-RPC and over REST share.

use alloy_primitives::B256;
use engine::Verdict;
use engine_api::{PayloadStatus, Status};

/// The verdict on the block `hash`.
pub(crate) fn payload_status(verdict: Verdict, hash: B256) -> PayloadStatus {
    let (status, latest_valid_hash, validation_error) = match verdict {
        Verdict::Valid => (Status::Valid, Some(hash), None),
        Verdict::Invalid { latest_valid_hash, reason } => {
            (Status::Invalid, latest_valid_hash, Some(reason))
        }
        Verdict::Syncing(_) => (Status::Syncing, None, None),
    };
    PayloadStatus { status, latest_valid_hash, validation_error }
}
