//! Tracers: what a transaction does, as geth's tracers tell it (`eth/tracers` of 1.17.8), and as
//! OpenEthereum's module `trace` does.
//!
//! [`Watch`] follows a run from the EVM's inspector and tells a [`Tracer`] of it, which writes its
//! answer as JSON and counts the bytes.

mod calls;
mod erc7562;
mod flat_calls;
mod instruction;
mod json;
mod mux;
mod parity;
mod precompiled;
mod preimages;
mod prestate;
mod selectors;
mod state_diff;
mod struct_logs;
mod view;
mod vm_trace;
mod watch;

pub use calls::CallTracerConfig;
pub use erc7562::Erc7562TracerConfig;
pub use flat_calls::FlatCallTracerConfig;
pub use parity::{ParityTypes, TraceFilter};
pub use prestate::PrestateTracerConfig;
pub use struct_logs::StructLogConfig;

pub(crate) use view::{Sent, View};
pub(crate) use watch::{Place, TraceStop, TransactionEnd, Watch};

use crate::deadline::Deadline;
use alloy_primitives::map::AddressSet;
use calls::CallTracer;
use erc7562::Erc7562Tracer;
use flat_calls::FlatCallTracer;
use mux::MuxTracer;
use parity::{ParityTracer, TraceLister};
use preimages::PreimageTracer;
use prestate::PrestateTracer;
use selectors::{NoopTracer, SelectorTracer};
use struct_logs::StructLogger;
use watch::Tracer;

/// A tracer, and how its answer is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracerConfig {
    /// An entry for each instruction.
    StructLogs(StructLogConfig),
    /// `callTracer`: the tree of calls.
    Calls(CallTracerConfig),
    /// `erc7562Tracer`: the tree of calls, with what each of them uses.
    Erc7562(Erc7562TracerConfig),
    /// `flatCallTracer`: the calls as a list.
    FlatCalls(FlatCallTracerConfig),
    /// `prestateTracer`: the accounts and slots before the transaction.
    Prestate(PrestateTracerConfig),
    /// `keccak256PreimageTracer`: what is hashed.
    Preimages,
    /// `muxTracer`: several tracers, by the names that their answers have.
    Mux(Vec<(String, Self)>),
    /// `4byteTracer`: the selectors of calls, counted.
    Selectors,
    /// `noopTracer`: nothing.
    Noop,
    /// The answer of `trace_replayTransaction`.
    Parity(ParityTypes),
    /// The traces of `trace_transaction` that a filter lets through, a line of JSON each.
    Traces(TraceFilter),
}

impl TracerConfig {
    fn tracer(&self, precompiled: &AddressSet, first_log: usize) -> Box<dyn Tracer> {
        match self {
            Self::StructLogs(config) => Box::new(StructLogger::new(*config)),
            Self::Calls(config) => Box::new(CallTracer::new(*config, first_log)),
            Self::Erc7562(config) => Box::new(Erc7562Tracer::new(config, first_log)),
            Self::FlatCalls(config) => Box::new(FlatCallTracer::new(*config, precompiled.clone())),
            Self::Prestate(config) => Box::new(PrestateTracer::new(*config)),
            Self::Preimages => Box::new(PreimageTracer::default()),
            Self::Mux(tracers) => {
                let tracer = |(name, config): &(String, Self)| {
                    (name.clone(), config.tracer(precompiled, first_log))
                };
                Box::new(MuxTracer(tracers.iter().map(tracer).collect()))
            }
            Self::Selectors => Box::new(SelectorTracer::new(precompiled.clone())),
            Self::Noop => Box::new(NoopTracer),
            Self::Parity(types) => Box::new(ParityTracer::new(*types, precompiled.clone())),
            Self::Traces(filter) => Box::new(TraceLister::new(filter.clone(), precompiled.clone())),
        }
    }
}

/// A tracer, and the bounds of a run under it.
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// The tracer.
    pub tracer: TracerConfig,
    /// The index of the first log of a call: the number of logs of its block before it.
    pub first_log: usize,
    /// When the run is to stop.
    pub deadline: Deadline,
    /// The most bytes of the answer. It is stopped soon after it has more.
    pub bytes: usize,
}

impl TraceOptions {
    /// Follows a transaction. `precompiled` are the precompiled contracts of its fork, `first_log`
    /// the logs of its block before it, `taken` the bytes of answers before it.
    pub(crate) fn watch(&self, precompiled: AddressSet, first_log: usize, taken: usize) -> Watch {
        let tracer = self.tracer.tracer(&precompiled, first_log);
        Watch::new(tracer, self.deadline.clone(), self.bytes.saturating_sub(taken))
    }
}
