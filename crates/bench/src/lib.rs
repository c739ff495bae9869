//! Measures execution clients over the wire, Deponent as the others: each block of a chain goes to
//! all of them, one after the other, and a report has what each took.
//!
//! [`generate`](generate()) makes the chain from a few sizes and a seed, [`generate_sizes`] one of
//! large witnesses. [`state`] runs it.
//! [`transports`](transports()) sends blocks with large witnesses over every wire;
//! [`crowd`](crowd()) makes small calls beside them. `replay` and `compare` send payload files to
//! any client. What a command finds out is a [`report`].

mod asm;
mod chain;
pub mod cli;
mod client;
mod compare;
mod contracts;
mod depths;

mod extract;
mod fault;
mod generate;
mod load;
mod measure;
mod persisted;
mod process;
mod progress;
mod random;
mod replay;
pub mod report;

mod reshape;
mod run;
mod saved;
mod sign;
mod sizes;
mod state;

mod stream;
mod sync;
mod target;
mod tls;
mod transports;
mod turns;
mod wire;
mod workload;
mod world;

pub use chain::{Chain, Part, Payload};
pub use client::{Contender, Kind, Program};
pub use depths::depths;
pub use generate::generate;
pub use run::Options;
pub use sizes::{Codes, Read, WitnessSizes, generate as generate_sizes};
pub use state::{Outcome, state};
pub use transports::{
    CrowdOptions, TransportOptions, WitnessOptions, crowd, transport_names, transports, witness,
};
pub use world::{ChainKind, Fork, World};
