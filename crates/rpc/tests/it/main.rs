//! A server and its clients over every wire.

mod client;
mod crowd;
mod http;
mod http2;
mod session_client;
mod subscriptions;
mod support;
mod unix;
mod websocket;
