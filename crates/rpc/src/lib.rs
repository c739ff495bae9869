//! JSON-RPC 2.0 and REST over HTTP/1.1, HTTP/2, WebSockets and Unix sockets, both ends (of HTTP/2
//! the server's), for answers of hundreds of megabytes: what Deponent's ports speak.
//!
//! # The server
//!
//! A [`Handler`] answers calls. [`serve`] brings them to it from a TCP or Unix socket, within the
//! bounds of [`Limits`] and, on the engine port, with the tokens of a [`JwtSecret`]. [`answer`]
//! does the same for a message from anywhere. Results are rendered by the handler and sent as they
//! are: hundreds of megabytes of hex are never joined or escaped on their way to the socket.
//!
//! - Over WebSockets and bare Unix sockets, messages are answered in the order in which they are
//!   ready, and there are subscriptions: a handler names their methods, and publishes values to a
//!   [`Topic`].
//! - [`rest::Resources`] answer requests for other paths of the same port. On Unix sockets their
//!   large bodies may be passed as memory files ([`rest::DESCRIPTOR`]).
//!
//! # The clients
//!
//! - [`Client`]: HTTP/1.1, on TCP or a Unix socket; calls, batches and resources one after the
//!   other.
//! - [`SessionClient`]: a WebSocket, or a Unix socket without HTTP (IPC); many calls and batches at
//!   a time, and subscriptions.
//!
//! Both return parsed results or raw answers, of which [`response`] finds and decodes the parts
//! that a caller wants. [`ConnectOptions`] have the secret of tokens, further headers, and a
//! [`Dial`] for connections that are not plain sockets: TLS is up to the caller.
//!
//! # Features
//!
//! All are enabled by default.
//!
//! - `server`: [`serve`] and all that belongs to it.
//! - `client`: the clients, and [`response`].
//! - `zstd`: the content coding, in C. A server encodes answers for clients that ask for it.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use deponent_rpc::{
//!     Client, Error, Handler, Json, Limits, Params, RawValue, ServerOptions, serve,
//! };
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
//! let options = ServerOptions::new(None, Limits::public());
//! tokio::spawn(serve(listener, options, Arc::new(Sum), std::future::pending()));
//!
//! let mut client = Client::connect(&address, None).await?;
//! assert_eq!(client.call::<u64>("sum", [2, 3]).await?, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A subscription:
//!
//! ```
//! use std::sync::Arc;
//! use deponent_rpc::{
//!     Error, Handler, Json, Limits, RawValue, ServerOptions, Subscription, SubscriptionMethods,
//!     Topic, SessionClient, serve,
//! };
//!
//! struct Clock(Topic);
//! impl Handler for Clock {
//!     fn call(&self, method: &str, _: Option<&RawValue>) -> Result<Json, Error> {
//!         Err(Error::method_not_found(method))
//!     }
//!     fn subscriptions(&self) -> &[SubscriptionMethods] {
//!         &[SubscriptionMethods {
//!             subscribe: "clock_subscribe",
//!             unsubscribe: "clock_unsubscribe",
//!             notification: "clock_tick",
//!         }]
//!     }
//!     fn subscribe(&self, _: &str, _: Option<&RawValue>) -> Result<Subscription, Error> {
//!         Ok(self.0.subscribe())
//!     }
//! }
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let address = listener.local_addr()?.to_string();
//! let options = ServerOptions::new(None, Limits::public());
//! let ticks = Topic::new();
//! tokio::spawn(serve(listener, options, Arc::new(Clock(ticks.clone())), std::future::pending()));
//!
//! let client = SessionClient::connect(&address, None).await?;
//! let mut clock = client.subscribe::<u64>("clock_subscribe", ()).await?;
//! ticks.publish(Json::of(&12)?);
//! assert_eq!(clock.next().await?, 12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Without all features, parts of the shared modules are unused.
#![cfg_attr(not(all(feature = "server", feature = "client", feature = "zstd")), allow(dead_code))]

#[cfg(feature = "server")]
mod bounds;
#[cfg(feature = "client")]
mod client;
mod foreign_json;
mod http;
mod jsonrpc;
mod jwt;
mod limits;
mod log_throttle;
mod pieces;
#[cfg(feature = "server")]
mod port;
mod quote;
mod spare;
mod transport;

#[cfg(feature = "server")]
pub use bounds::Bound;
#[cfg(feature = "client")]
pub use client::address::{ConnectOptions, Dial, Dialing};
#[cfg(feature = "client")]
pub use client::error::ClientError;
#[cfg(feature = "client")]
pub use client::http::{CallTimes, Client, Reply};
#[cfg(feature = "client")]
pub use client::session::{Notifications, SessionClient};
pub use foreign_json::{read_json, read_json_bytes};
#[cfg(feature = "server")]
pub use http::origin::AllowedOrigins;
pub use http::resource as rest;
#[cfg(feature = "server")]
pub use http::server::serve;
pub use jsonrpc::error::{Code, Error};
#[cfg(feature = "server")]
pub use jsonrpc::handler::{Handler, Later, Method};
pub use jsonrpc::json::Json;
#[cfg(feature = "server")]
pub use jsonrpc::message::answer;
pub use jsonrpc::params::Params;
#[cfg(feature = "client")]
pub use jsonrpc::response;
#[cfg(feature = "server")]
pub use jsonrpc::subscription::SubscriptionMethods;
#[cfg(feature = "server")]
pub use jsonrpc::topic::{EarlierValues, ItemFilter, Published, Subscription, Topic};
pub use jwt::{JwtError, JwtSecret};
pub use limits::Limits;
pub use log_throttle::LogThrottle;
pub use pieces::{ItemList, MappedFiles, Pieces};
#[cfg(feature = "server")]
pub use port::{PortMemory, PortUse, ServerOptions};
pub use quote::{on_one_line, quote, shortened, shown_address};
pub use serde_json::value::RawValue;
pub use spare::Spare;
#[cfg(feature = "server")]
pub use transport::listener::{Listener, bind_unix};
