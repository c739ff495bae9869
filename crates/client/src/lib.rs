//! A client of the Ethereum Engine API: one typed client over all of its transports.
//!
//! [`EngineClient`] sends payloads and fork choices in alloy's types, and returns witnesses whose
//! items are slices of the received memory. The [`Wire`] is the form in which they travel:
//! JSON-RPC, which every client of the network speaks; SSZ, the REST Engine API; or SSZ with large
//! answers as memory of the server, mapped over a Unix socket. All give the same answers.
//!
//! ```
//! use deponent_client::{EngineClient, Wire};
//! # use alloy_rpc_types_engine::{ExecutionPayload, ExecutionPayloadSidecar, ExecutionPayloadV1};
//! # use rpc::{Error, Handler, Json, Limits, RawValue, ServerOptions, serve};
//! #
//! # struct Server;
//! # impl Handler for Server {
//! #     fn call(&self, method: &str, _: Option<&RawValue>) -> Result<Json, Error> {
//! #         match method {
//! #             "engine_newPayloadV1" => Json::of(&std::collections::BTreeMap::from([
//! #                 ("status", Some("SYNCING")), ("latestValidHash", None),
//! #                 ("validationError", None),
//! #             ])),
//! #             "eth_chainId" => Json::of(&"0x1"),
//! #             _ => Err(Error::method_not_found(method)),
//! #         }
//! #     }
//! # }
//! #
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let address = listener.local_addr()?.to_string();
//! # let options = ServerOptions::new(None, Limits::public());
//! # tokio::spawn(serve(listener, options, std::sync::Arc::new(Server), std::future::pending()));
//! # let payload = ExecutionPayload::V1(ExecutionPayloadV1 {
//! #     parent_hash: Default::default(), fee_recipient: Default::default(),
//! #     state_root: Default::default(), receipts_root: Default::default(),
//! #     logs_bloom: Default::default(), prev_randao: Default::default(), block_number: 1,
//! #     gas_limit: 1, gas_used: 0, timestamp: 1, extra_data: Default::default(),
//! #     base_fee_per_gas: Default::default(), block_hash: Default::default(),
//! #     transactions: Vec::new(),
//! # });
//! # let sidecar = ExecutionPayloadSidecar::none();
//! // `address` is such as "127.0.0.1:8551"; a port that asks for tokens needs its secret, too.
//! let mut client = EngineClient::connect(&address, None).await?;
//! assert_eq!(client.wire(), Wire::Json, "this server has no REST");
//!
//! let status = client.new_payload(&payload, &sidecar).await?;
//! assert!(status.is_syncing(), "its parent is unknown");
//!
//! // Any other method, with its parameters and its result in JSON.
//! let chain_id = client.call("eth_chainId", &[(); 0]).await?;
//! assert_eq!(chain_id.get(), "\"0x1\"");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The containers themselves are in `deponent-engine-api`. alloy's transports are not implemented:
//! its providers read JSON into values of their own, and to copy a witness out of them takes longer
//! than to send it.

mod answers;
mod client;
mod codes;
#[cfg(feature = "tls")]
mod endpoint;
mod error;
mod json;
mod limits;
mod rest;
#[cfg(feature = "tls")]
mod tls;
mod wire;

pub use answers::{Capabilities, ClientVersion, Timings, WitnessAnswer};
pub use client::{ConnectOptions, EngineClient};
pub use codes::CodeCache;
#[cfg(feature = "tls")]
pub use endpoint::{Connection, Endpoint, EndpointAddress};
pub use engine_api::{Fork, ssz};
pub use error::{Error, Problem};
pub use json::status as read_payload_status;
#[cfg(feature = "tls")]
pub use tls::TlsDial;
pub use wire::Wire;
