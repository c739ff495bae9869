//! Floor 5. Runs under a tracer: of a call after a block, and of a block's transactions.

use crate::engine::Engine;
use crate::error::Error;
use alloy_primitives::B256;
use execution::{
    Call, Deadline, Overrides, SealedBlock, Senders, TraceOptions, Traced, TracedCall, TracerConfig,
};

impl Engine {
    /// Makes a message call under a tracer, as [`call`](Self::call) makes it. The answer is JSON.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when the state is not kept any more.
    pub fn trace_call(
        &self,
        block_hash: B256,
        call: &Call,
        overrides: &Overrides,
        options: &TraceOptions,
    ) -> Result<Traced<String>, Error> {
        self.on_state(block_hash, |header, state| {
            execution::trace_call(self.chain(), header, call, overrides, options, state)
        })
    }

    /// Makes calls and transactions under tracers, one after the other, on the state after a valid
    /// block and on what those before have changed. See [`execution::trace_calls`].
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when the state is not kept any more.
    pub fn trace_calls(
        &self,
        block_hash: B256,
        calls: &[(TracedCall, TracerConfig)],
        bounds: (&Deadline, usize),
    ) -> Result<Traced<Vec<String>>, Error> {
        self.on_state(block_hash, |header, state| {
            execution::trace_calls(self.chain(), header, calls, bounds, state)
        })
    }

    /// Runs a block's transactions again, on the state after its parent, and traces the one at
    /// `index`, or all. The answers are JSON. The block need not be known or valid.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`] for the parent; [`Error::Pruned`] when the state after it is not
    /// kept any more.
    pub fn trace_block(
        &self,
        block: &SealedBlock,
        senders: &dyn Senders,
        index: Option<usize>,
        options: &TraceOptions,
    ) -> Result<Traced<Vec<String>>, Error> {
        self.on_state(block.header.parent_hash, |_, state| {
            execution::trace_block(self.chain(), block, senders, index, options, state)
        })
    }
}
