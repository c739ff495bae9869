//! Answers over JSON-RPC.

use alloy_primitives::{B256, Bytes, U256, hex};
use alloy_rpc_types_engine::ExecutionPayload;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::object::Object;
use crate::Error;
use crate::ssz::{BlobsBundle, BuiltPayload, PayloadStatus, Status, WithWitness};

impl WithWitness<PayloadStatus> {
    /// Reads the answer to `engine_newPayload`, with or without the witness, which is RLP in hex.
    ///
    /// # Errors
    /// When the JSON is not such an answer, or its witness cannot be read.
    pub fn from_json(input: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields<'a> {
            status: Status,
            latest_valid_hash: Option<B256>,
            validation_error: Option<String>,
            #[serde(borrow)]
            witness: Option<&'a RawValue>,
        }
        let Object(Fields { status, latest_valid_hash, validation_error, witness }) =
            serde_json::from_str(input)?;
        let content = PayloadStatus { status, latest_valid_hash, validation_error };
        let read = |rlp: &RawValue| -> Result<_, Error> {
            let digits = rlp.get().strip_prefix("\"0x").and_then(|rlp| rlp.strip_suffix('"'));
            let digits = digits.filter(|digits| !digits.starts_with("0x"));
            let digits = digits.ok_or_else(|| Error::Json("witness: not 0x and digits".into()))?;
            let rlp = hex::decode(digits).map_err(|e| Error::Json(format!("witness: {e}")))?;
            Ok(witness::rlp::decode(&rlp.into())?)
        };
        let witness = witness.map(read).transpose()?;
        Ok(Self { content, witness, public_keys: Vec::new() })
    }
}

/// The result of `engine_getPayload` from the second version on. Fields that are `None` are left
/// out.
impl Serialize for BuiltPayload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields<'a> {
            execution_payload: &'a ExecutionPayload,
            block_value: U256,
            #[serde(skip_serializing_if = "Option::is_none")]
            blobs_bundle: Option<&'a BlobsBundle>,
            #[serde(skip_serializing_if = "Option::is_none")]
            should_override_builder: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            execution_requests: Option<&'a [Bytes]>,
        }
        let blobs = self.blobs.as_ref();
        let fields = Fields {
            execution_payload: &self.payload,
            block_value: self.block_value,
            blobs_bundle: blobs.map(|(bundle, _)| bundle),
            should_override_builder: blobs.map(|(_, overrides)| *overrides),
            execution_requests: self.execution_requests.as_deref(),
        };
        fields.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BuiltPayload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields {
            execution_payload: ExecutionPayload,
            block_value: U256,
            blobs_bundle: Option<BlobsBundle>,
            should_override_builder: Option<bool>,
            execution_requests: Option<Vec<Bytes>>,
        }
        let fields = Fields::deserialize(deserializer)?;
        let overrides = fields.should_override_builder.unwrap_or_default();
        Ok(Self {
            payload: fields.execution_payload,
            block_value: fields.block_value,
            blobs: fields.blobs_bundle.map(|bundle| (bundle, overrides)),
            execution_requests: fields.execution_requests,
        })
    }
}

#[cfg(test)]
mod tests;
