//! The other end of the Engine API: one typed client over all transports, and the containers that
//! both ends speak.
//!
//! [`EngineClient`] sends payloads and fork choices in alloy's types, and gives witnesses whose
//! items are slices of what was received. The [`Wire`] says in what form they travel: JSON-RPC,
//! which every client of the network speaks; SSZ, the REST Engine API; or SSZ with large answers as
//! memory of the server's, mapped over a Unix socket. All give the same answers. [`ssz`] has the
//! containers, read and written.
//!
//! No transport of alloy's is implemented: its providers read JSON into values of their own, and
//! copying a witness out of them takes longer than sending it does.
//!
//! ```
//! use std::sync::Arc;
//! use deponent_client::{EngineClient, Wire};
//! use rpc::{Error, Handler, Json, Limits, RawValue, ServerOptions, serve};
//!
//! struct Somebody;
//! impl Handler for Somebody {
//!     fn call(&self, method: &str, _: Option<&RawValue>) -> Result<Json, Error> {
//!         match method {
//!             "engine_exchangeCapabilities" => Json::of(&["engine_newPayloadV4"]),
//!             _ => Err(Error::method_not_found(method)),
//!         }
//!     }
//! }
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let address = listener.local_addr()?.to_string();
//! let options = ServerOptions { jwt: None, limits: Limits::public() };
//! tokio::spawn(serve(listener, options, Arc::new(Somebody), std::future::pending()));
//!
//! let mut client = EngineClient::connect(&address, None).await?;
//! assert_eq!(client.wire(), Wire::Json, "there is no REST");
//! assert_eq!(client.capabilities().await?.endpoints, ["engine_newPayloadV4"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answers;
mod client;
mod error;
mod held;
mod json;
mod limits;
mod mapped;
mod rest;
mod wire;

pub use answers::{Capabilities, ClientVersion, Timings, WitnessAnswer};
pub use client::EngineClient;
pub use engine_api::{Fork, ssz};
pub use error::{Error, Problem};
pub use json::status as read_payload_status;
pub use wire::Wire;
