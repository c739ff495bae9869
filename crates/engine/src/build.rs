//! Floor 5. Payloads that the engine builds.

use crate::builder::BuildThread;
use crate::builds::{BuildRequest, Built, HeaderChoice};
use crate::chain::events::BuildStep;
use crate::engine::Engine;
use crate::error::Error;
use crate::limits;
use crate::read::pending::{PendingBlock, PendingView};
use crate::read::view::StateView;
use alloy_primitives::{B256, Bytes, keccak256};
use alloy_rpc_types_engine::{PayloadAttributes, PayloadId};
use execution::{Transaction, TransactionSource};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Engine {
    /// From now on, builds take their transactions from `source`, and are improved from when they
    /// begin until their payload is asked for. The first source counts.
    pub fn draw_from(&self, source: Arc<dyn TransactionSource>) {
        if self.builder.draw_from(source) {
            self.build_thread.get_or_init(|| BuildThread::start(&self.builder));
        }
    }

    /// The payload that [`Engine::forkchoice_updated`] began under `id`: the best one so far, which
    /// it stays. Without one so far, and without a source of transactions, it is built now, empty.
    /// `None` when there is no such build, or it is too long ago.
    ///
    /// # Errors
    /// As for [`Engine::build`].
    pub fn built(&self, id: PayloadId) -> Result<Option<Arc<Built>>, Error> {
        let id = key(id);
        let wait = match self.builder.has_source() {
            true => limits::FIRST_PAYLOAD_WAIT,
            false => Duration::ZERO,
        };
        let Some((build, was_over)) = self.builder.builds.end(&id, wait) else { return Ok(None) };
        let (built, took) = match build.best {
            Some(best) => best,
            None => {
                // The fork choice begins others meanwhile. Two threads that ask for one build the
                // same.
                let (start, extra_data) = (Instant::now(), self.extra_data());
                let attributes = build.request.attributes;
                let built = self.build(build.parent, attributes, Vec::new(), extra_data);
                let mut built = built.map_err(|error| self.build_failed(error))?;
                built.with_witness = build.request.with_witness;
                let took = start.elapsed();
                (self.builder.builds.keep(&id, Arc::new(built), took), took)
            }
        };
        if !was_over {
            let header = &built.block.header;
            let (number, gas_used) = (header.number, header.gas_used);
            self.builder.tell(BuildStep::Built { number, took, gas_used });
        }
        Ok(Some(built))
    }

    /// Builds a payload on `parent` with just these transactions, in this order.
    ///
    /// # Errors
    /// [`Error::Build`] when a transaction cannot run; [`Error::InvalidAttributes`],
    /// [`Error::UnknownBlock`]; [`Error::Pruned`] when the parent's state is not kept any more.
    pub fn build(
        &self,
        parent: B256,
        attributes: PayloadAttributes,
        transactions: Vec<Transaction>,
        extra_data: Bytes,
    ) -> Result<Built, Error> {
        let parent = self.shared.chain.known_block(&parent)?;
        self.builder.check_attributes(&parent, &attributes)?;
        let signers = self.recover_at(u64::MAX, &transactions).map_err(Error::Build)?;
        let senders: Vec<_> = signers.into_iter().map(|signer| signer.address).collect();
        self.builder.make(&parent, attributes, transactions, &senders, &extra_data.into())
    }

    /// Builds the best payload on `parent` that the source's transactions give; an empty one
    /// without a source.
    ///
    /// # Errors
    /// As for [`Engine::build`].
    pub fn build_best(
        &self,
        parent: B256,
        attributes: PayloadAttributes,
        choice: impl Into<HeaderChoice>,
    ) -> Result<Built, Error> {
        let parent = self.shared.chain.known_block(&parent)?;
        self.builder.make_best(&parent, attributes, &choice.into())
    }

    /// The block that would be built on `parent` now, and the state after it. It is part of no
    /// chain.
    ///
    /// # Errors
    /// As for [`Engine::build`].
    pub fn pending(
        &self,
        parent: B256,
        attributes: PayloadAttributes,
        choice: impl Into<HeaderChoice>,
    ) -> Result<PendingBlock, Error> {
        let parent = self.shared.chain.known_block(&parent)?;
        self.builder.make_pending(&parent, attributes, &choice.into())
    }

    /// The state after a pending block.
    ///
    /// # Errors
    /// [`Error::Pruned`] when that of its parent is not kept any more.
    pub fn pending_state(&self, pending: &Arc<PendingBlock>) -> Result<PendingView, Error> {
        let (chain, background) = (&self.shared.chain, &self.shared.background);
        let version = chain.sealed(background, &pending.parent)?.version;
        let kept = StateView::new(chain.database.clone(), version, chain.remote.clone());
        Ok(PendingView::new(kept, pending.clone()))
    }

    /// The extra data of blocks that are built for the consensus layer.
    pub fn extra_data(&self) -> Bytes {
        self.shared.options.extra_data.clone()
    }

    pub(crate) fn begin_build(
        &self,
        parent: B256,
        request: BuildRequest,
    ) -> Result<PayloadId, Error> {
        let record = self.shared.chain.known_block(&parent)?;
        let checked = self.builder.check_attributes(&record, &request.attributes);
        checked.map_err(|error| self.build_failed(error))?;
        let id = payload_id(parent, &request);
        if self.builder.builds.begin(key(id), parent, request) {
            self.builder.tell(BuildStep::Begun { parent });
        }
        Ok(id)
    }

    fn build_failed(&self, error: Error) -> Error {
        self.builder.tell(BuildStep::Failed(error.to_string()));
        error
    }
}

/// An identifier that names parent, attributes, version and the wish for a witness.
fn payload_id(parent: B256, request: &BuildRequest) -> PayloadId {
    // All fields are in its text, and no other process is told of it.
    let hash = keccak256(format!("{parent}{request:?}"));
    let mut id = *hash.first_chunk().expect("a hash is longer");
    id[0] = request.version;
    PayloadId::new(id)
}

fn key(id: PayloadId) -> B256 {
    B256::right_padding_from(id.0.as_slice())
}

#[cfg(test)]
mod tests;
