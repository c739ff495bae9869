//! Measures execution clients over the wire, Deponent as the others: each block of a chain goes to
//! all of them, one after the other, and a report has what each took.
//!
//! [`generate`](generate()) makes the chain from a few sizes and a seed, [`generate_sizes`] one of
//! large witnesses. [`state`] runs it.
//! [`transports`](transports()) sends blocks with large witnesses over every wire;
//! [`crowd`](crowd()) makes small calls beside them. `replay` and `compare` send payload files to
//! any client. What a command finds out is a [`report`].

mod chain;
pub mod cli;
mod clients;
mod compare;
mod depths;
mod extract;
mod fault;
mod load;
mod measure;
mod progress;
mod random;
mod replay;
pub mod report;
mod run;
mod saved;
mod state;
mod stream;
mod tls;
mod transports;
mod turns;

pub use chain::format::{Chain, Part, Payload};
pub use chain::generate::generate;
pub use chain::sizes::{Codes, Read, WitnessSizes, generate as generate_sizes};
pub use chain::world::{ChainKind, Fork, World};
pub use clients::client::{Contender, Kind, Program};
pub use depths::depths;
pub use run::Options;
pub use state::{Outcome, state};
pub use transports::{
    CrowdOptions, TransportOptions, WitnessOptions, crowd, transport_names, transports, witness,
};
