//! The shapes of the Ethereum Engine API, for both ends of the wire: containers in JSON and SSZ,
//! forks, methods and their versions, names of headers, and bounds.
//!
//! | | |
//! |---|---|
//! | [`Fork`], [`EngineMethod`] | which fork has which containers, and which version of a method takes them |
//! | [`NewPayload`] | a payload and what is sent beside it, as JSON parameters or as an SSZ envelope |
//! | [`PayloadStatus`], [`WithWitness`] | the answers, the second with the execution witness |
//! | [`ForkchoiceUpdate`], [`ForkchoiceUpdateResponse`], [`BuiltPayload`] | choosing a head and building on it |
//! | [`ExecutionPayloadEnvelope`], [`BodiesResponse`] and the rest of [`ssz`] | the containers of the REST API |
//! | [`json`] | readers of JSON as strict as the specification, for servers |
//! | [`headers`], [`limits`] | names, and the `MAX_*` bounds |
//!
//! Payloads and attributes are alloy's types. Nothing here does I/O.
//!
//! ```
//! use deponent_engine_api::{EngineMethod, ExecutionPayloadEnvelope, Fork, NewPayload};
//! use deponent_engine_api::{PayloadStatus, Status};
//!
//! // The parameters of a call over JSON-RPC, here of a small block of Osaka ...
//! let hash = format!("0x{}", "11".repeat(32));
//! let params = format!(
//!     r#"[{{"parentHash":"{hash}","feeRecipient":"0x{zeroes:0>40}","stateRoot":"{hash}",
//!     "receiptsRoot":"{hash}","logsBloom":"0x{zeroes:0>512}","prevRandao":"{hash}",
//!     "blockNumber":"0x1","gasLimit":"0x3938700","gasUsed":"0x0","timestamp":"0x6a000000",
//!     "extraData":"0x","baseFeePerGas":"0x7","blockHash":"{hash}","transactions":[],
//!     "withdrawals":[],"blobGasUsed":"0x0","excessBlobGas":"0x0"}},[],"{hash}",[]]"#,
//!     zeroes = "",
//! );
//! let (method, version) = EngineMethod::named("engine_newPayloadV4").expect("a known method");
//! assert_eq!(method.forks(version), [Fork::Prague, Fork::Osaka]);
//! let call = NewPayload::from_json(version, &params)?;
//!
//! // ... are an envelope in SSZ over REST, and the parameters again.
//! let body = call.to_ssz()?.into();
//! assert_eq!(ExecutionPayloadEnvelope::decode(Fork::Osaka, &body)?.payload, call.payload);
//! assert_eq!(NewPayload::from_json(4, call.to_json()?.get())?, call);
//!
//! // The answer, in either form.
//! let status: PayloadStatus = serde_json::from_str(
//!     r#"{"status":"SYNCING","latestValidHash":null,"validationError":null}"#,
//! )?;
//! assert_eq!(status.status, Status::Syncing);
//! assert_eq!(PayloadStatus::decode(&status.encode().into())?, status);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod fork;
pub mod headers;
pub mod json;
pub mod limits;
mod method;
mod new_payload;
pub mod ssz;

pub use error::Error;
pub use fork::Fork;
pub use method::{EXCHANGE_CAPABILITIES, EngineMethod, GET_CLIENT_VERSION, REST_BASE};
pub use new_payload::NewPayload;
pub use ssz::{
    BlobsBundle, BodiesResponse, BuiltPayload, ExecutionPayloadBody, ExecutionPayloadEnvelope,
    ForkchoiceUpdate, ForkchoiceUpdateResponse, PayloadStatus, Status, WithWitness,
};
pub use witness::container::{SszError, SszProblem};
