//! JSON-RPC 2.0 over HTTP/1.1, both ends: what Deponent's engine port and public port speak.
//!
//! A [`Handler`] answers calls; [`serve`] brings them to it from a socket, with the bounds of
//! [`Limits`] and, on the engine port, the tokens of a [`JwtSecret`]; [`answer`] does so for a
//! message from anywhere. Results are rendered by the handler and sent as they are: a witness of
//! a gigabyte of hex is never copied, escaped or compressed on its way to the socket. [`Client`]
//! is the other end, and [`response`] finds and decodes what a caller wants in a large answer.
//!
//! ```
//! use std::sync::Arc;
//! use rpc::{Client, Error, Handler, Json, Limits, Params, RawValue, ServerOptions, serve};
//!
//! struct Sum;
//! impl Handler for Sum {
//!     fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error> {
//!         if method != "sum" {
//!             return Err(Error::method_not_found(method));
//!         }
//!         let mut params = Params::of(params)?;
//!         let (a, b): (u64, u64) = (params.next("a")?, params.next("b")?);
//!         params.end()?;
//!         Json::of(&(a + b))
//!     }
//! }
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let address = listener.local_addr()?.to_string();
//! let options = ServerOptions { jwt: None, limits: Limits::public() };
//! tokio::spawn(serve(listener, options, Arc::new(Sum), std::future::pending()));
//!
//! let mut client = Client::connect(&address, None).await?;
//! assert_eq!(client.call::<u64>("sum", [2, 3]).await?, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod error;
mod json;
mod jwt;
mod limits;
mod message;
mod params;
pub mod response;
mod server;
mod write_timeout;

pub use client::Client;
pub use error::{ClientError, Code, Error, JwtError};
pub use json::{Json, push_hex};
pub use jwt::JwtSecret;
pub use limits::Limits;
pub use message::{Handler, answer};
pub use params::Params;
pub use serde_json::value::RawValue;
pub use server::{ServerOptions, serve};
