//! Floor 5. Runs under a tracer: of a call after a block, and of a block's transactions.

use crate::chain::record::BlockRecord;
use crate::engine::Engine;
use crate::error::Error;
use crate::read::pending::{PendingBlock, StateAt};
use alloy_primitives::B256;
use execution::{
    Call, Deadline, Overrides, SealedBlock, Senders, SoFar, Stepped, TraceOptions, Traced,
    TracedCall, TracerConfig, step_through,
};
use std::ops::ControlFlow;
use std::sync::Arc;

impl Engine {
    /// Makes a message call under a tracer, as [`call`](Self::call) makes it. The answer is JSON.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when the state is not kept any more.
    pub fn trace_call(
        &self,
        at: impl Into<StateAt>,
        call: &Call,
        overrides: &Overrides,
        options: &TraceOptions,
    ) -> Result<Traced<String>, Error> {
        self.on_state(at, |header, state| {
            execution::trace_call(self.chain(), header, call, overrides, options, state)
        })
    }

    /// A block as far as its transactions before the one at `index` take it, which run again: calls
    /// read the state there.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`] for the parent; [`Error::Pruned`] when the state after it is not
    /// kept any more.
    pub fn part_of_block(
        &self,
        record: &BlockRecord,
        index: usize,
        deadline: &Deadline,
    ) -> Result<Traced<Arc<PendingBlock>>, Error> {
        let (block, senders) = (&record.block, &record.senders);
        let parent = self.shared.chain.known_block(&block.header.parent_hash)?;
        let (mut found, mut is_over) = (SoFar::default(), false);
        let stepped = self.on_state(parent.hash(), |_, state| {
            step_through(self.chain(), block, senders, state, |count, _, so_far| {
                if count == index {
                    found = so_far.clone();
                    return Ok(ControlFlow::Break(()));
                }
                is_over = deadline.is_over();
                Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })
        })?;
        Ok(match stepped {
            Stepped::Invalid(reason) => Traced::Refused(reason),
            Stepped::Done if is_over => Traced::OutOfTime,
            Stepped::Done => {
                let (block, senders) = (block.clone(), senders.clone());
                Traced::Done(Arc::new(PendingBlock::part(parent, block, senders, found)))
            }
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
