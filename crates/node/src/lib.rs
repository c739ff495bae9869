//! The `deponent` program as a library: a node in this process.
//!
//! [`Node`] is an engine behind two JSON-RPC ports, the authenticated Engine API and the public
//! one, and a Unix socket. [`Api`] answers a port's methods without the socket; [`rest`] is the
//! Engine API over REST and SSZ. The command line is in [`cli`].
//!
//! ```
//! # extern crate client as deponent_client;
//! use deponent_client::EngineClient;
//! use deponent_node::{Node, NodeOptions, demo::World};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! // A chain on free ports of 127.0.0.1, in a temporary directory.
//! let files = tempfile::tempdir()?;
//! let mut world = World::new(10)?;
//! let options = NodeOptions::new(world.genesis.clone(), files.path().join("data"));
//! let node = Node::start(options).await?;
//!
//! // A payload goes in, verdict and witness come out.
//! let (payload, sidecar) = world.build(node.engine(), 10)?;
//! let address = node.engine_addr.to_string();
//! let mut client = EngineClient::connect(&address, Some(node.jwt.clone())).await?;
//! let (status, answer) = client.new_payload_with_witness(&payload, &sidecar).await?;
//! assert!(status.is_valid());
//! assert!(answer.is_some_and(|answer| answer.witness.codes.len() > 10));
//! node.stop().await;
//! # Ok::<(), anyhow::Error>(())
//! # })?;
//! # Ok::<(), anyhow::Error>(())
//! ```

mod allocator;
mod answers;
mod api;
mod bench;
mod call_bounds;
pub mod cli;
mod commands;
mod console;
mod data_directory;
pub mod demo;
mod dev;
mod disk;
mod feed;
mod flags;
pub mod foreign_witness;
mod forks;
mod inclusions;
mod inspect;
pub mod limits;
mod logging;
mod logs;
mod memory;
mod metrics;
mod node;
mod node_record;
mod observe;
mod page;
mod pending;
mod pending_feed;
mod pool_feed;
mod port;
mod ports;
mod ports_options;
mod priority;
mod receipts;
pub mod rest;
mod stateless;
mod traces;
mod unmined;
mod upstream_chain;
mod verify;

pub use api::{Api, MethodPattern, Offered};
pub use call_bounds::CallBounds;
pub use dev::{DevOptions, ForkPoint, Wallet};
pub use disk::DiskFault;
pub use memory::NodeMemory;
pub use node::{Node, NodeOptions};
pub use pool_feed::{SendBounds, TxpoolOptions};
pub use ports_options::{BatchBounds, PortsOptions, PublicPort};
pub use stateless::{StatelessNode, StatelessOptions, WitnessSource};
pub use traces::TraceOptions;
