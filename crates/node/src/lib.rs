//! The `deponent` program as a library: a node in this process, and what its ports answer.
//!
//! [`Node`] is an engine behind two JSON-RPC ports, the authenticated Engine API and the public
//! one; [`Api`] is what each port answers, without the socket; [`rest`] is the Engine API over
//! REST and SSZ. The command line is in [`cli`].

mod answers;
mod api;
mod bench;
pub mod cli;
mod commands;
pub mod demo;
pub mod limits;
mod node;
pub mod rest;
mod verify;

pub use api::Api;
pub use node::{Node, NodeOptions};
