//! The texts of calls.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::client::error::ClientError;

/// The text of a call.
pub(super) fn call_text(
    id: u64,
    method: &str,
    params: impl Serialize,
) -> Result<Vec<u8>, ClientError> {
    #[derive(Serialize)]
    struct CallText<'a, P> {
        jsonrpc: &'a str,
        id: u64,
        method: &'a str,
        params: P,
    }
    serde_json::to_vec(&CallText { jsonrpc: "2.0", id, method, params })
        .map_err(|source| ClientError::Params { method: method.into(), source })
}

/// The text of a batch of calls, whose ids begin with `first_id`.
///
/// # Panics
/// If there are no calls: servers refuse an empty batch.
pub(super) fn batch_text(
    first_id: u64,
    calls: &[(&str, &RawValue)],
) -> Result<Vec<u8>, ClientError> {
    assert!(!calls.is_empty(), "a batch has calls");
    let mut text = Vec::new();
    for (id, (method, params)) in (first_id..).zip(calls) {
        text.push(if id == first_id { b'[' } else { b',' });
        text.extend(call_text(id, method, params)?);
    }
    text.push(b']');
    Ok(text)
}
