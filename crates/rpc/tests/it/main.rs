//! A server and its clients over every wire.

mod attacks;
mod clients;
mod crowd;
mod http;
mod http2;
mod http_client;
mod later;
mod pipelines;
mod session_client;
mod subscriptions;
mod support;
mod unix;
mod websocket;
mod wires;
