//! Floor 5. Payloads that the engine builds.

use crate::block::live::BlockTries;
use crate::builds::{Build, BuildRequest, Built};
use crate::chain::events::{BuildStep, ChainEvent};
use crate::chain::record::BlockRecord;
use crate::engine::Engine;
use crate::error::Error;
use alloy_consensus::constants::EMPTY_OMMER_ROOT_HASH;
use alloy_consensus::{Block as AlloyBlock, BlockBody, Header, Transaction as _, proofs};
use alloy_hardforks::EthereumHardforks;
use alloy_primitives::{B256, Bytes, U256, keccak256};
use alloy_rpc_types_engine::{PayloadAttributes, PayloadId};
use execution::{BlockError, Executed, RunOptions, SealedBlock, Transaction};
use std::sync::Arc;
use std::time::Instant;
use witness::BlockState as _;

const EXTRA_DATA: &[u8] = b"deponent";

impl Engine {
    /// The payload that [`Engine::forkchoice_updated`] began under `id`, built on the first call.
    /// `None` when there is none, or it is too long ago.
    ///
    /// # Errors
    /// As for [`Engine::build`].
    pub fn built(&self, id: PayloadId) -> Result<Option<Arc<Built>>, Error> {
        let (parent, request) = match self.builds().get(&key(id)) {
            None => return Ok(None),
            Some(Build::Finished(built)) => return Ok(Some(built.clone())),
            Some(Build::Begun { parent, request }) => (*parent, request.clone()),
        };
        // The fork choice begins others meanwhile. Two threads that ask for one build the same.
        let (start, extra_data) = (Instant::now(), Bytes::from_static(EXTRA_DATA));
        let built = self.build(parent, request.attributes, Vec::new(), extra_data);
        let mut built = built.map_err(|error| self.build_failed(error))?;
        let header = &built.block.header;
        let (number, took) = (header.number, start.elapsed());
        self.tell(BuildStep::Built { number, took, gas_used: header.gas_used });
        built.with_witness = request.with_witness;
        let built = Arc::new(built);
        self.builds().insert(key(id), Build::Finished(built.clone()));
        Ok(Some(built))
    }

    /// Builds a payload on `parent` with just these transactions, in this order.
    ///
    /// # Errors
    /// [`Error::Build`] when a transaction cannot run; [`Error::InvalidAttributes`],
    /// [`Error::UnknownBlock`].
    pub fn build(
        &self,
        parent: B256,
        attributes: PayloadAttributes,
        transactions: Vec<Transaction>,
        extra_data: Bytes,
    ) -> Result<Built, Error> {
        let parent = self.shared.chain.known_block(&parent)?;
        self.check_attributes(&parent, &attributes)?;
        let signers = self.recover_at(u64::MAX, &transactions).map_err(Error::Build)?;
        let senders: Vec<_> = signers.into_iter().map(|signer| signer.address).collect();
        let draft = SealedBlock::new(self.draft(&parent, attributes, transactions, extra_data));
        let header = &parent.block.header;
        let _running = self.running();
        let mut state = BlockTries::new(&self.shared, parent.clone(), None, None)?;
        let help = RunOptions { codes: Some(&self.codes), ..RunOptions::default() };
        let executed = execution::run(self.chain(), &draft, &senders, help, &mut state)
            .map_err(build_error)?;
        let state_root = state.apply(&executed.changes)?;
        let witness = state.witness(&executed)?;
        let mut block = draft.into_block();
        seal(&mut block.header, &executed, state_root);
        let block_value = block_value(&block.header, &block.body.transactions, &executed);
        let block = SealedBlock::new(block);
        // A payload that the engine would refuse is none.
        let parent_hash = parent.block.hash();
        execution::validate_header(self.chain(), &block.header, header, parent_hash)
            .and_then(|()| execution::validate_body(self.chain(), &block))
            .and_then(|()| execution::validate_access_list(&block.header, &executed))
            .map_err(Error::Build)?;
        Ok(Built {
            block_value,
            block,
            requests: executed.requests,
            block_access_list: executed.block_access_list,
            witness,
            with_witness: false,
        })
    }

    pub(crate) fn begin_build(
        &self,
        parent: B256,
        request: BuildRequest,
    ) -> Result<PayloadId, Error> {
        let record = self.shared.chain.known_block(&parent)?;
        let checked = self.check_attributes(&record, &request.attributes);
        checked.map_err(|error| self.build_failed(error))?;
        let id = payload_id(parent, &request);
        let mut builds = self.builds();
        if builds.get(&key(id)).is_none() {
            builds.insert(key(id), Build::Begun { parent, request });
            drop(builds);
            self.tell(BuildStep::Begun { parent });
        }
        Ok(id)
    }

    fn build_failed(&self, error: Error) -> Error {
        self.tell(BuildStep::Failed(error.to_string()));
        error
    }

    fn tell(&self, step: BuildStep) {
        self.shared.chain.events.tell(&ChainEvent::Build(step));
    }

    fn check_attributes(
        &self,
        parent: &BlockRecord,
        attributes: &PayloadAttributes,
    ) -> Result<(), Error> {
        let (timestamp, after) = (attributes.timestamp, parent.block.header.timestamp);
        if timestamp <= after {
            let reason = format!("timestamp {timestamp} is not after the head's {after}");
            return Err(Error::InvalidAttributes(reason));
        }
        let chain = self.chain();
        let shanghai = chain.is_shanghai_active_at_timestamp(timestamp);
        let cancun = chain.is_cancun_active_at_timestamp(timestamp);
        let amsterdam = chain.is_amsterdam_active_at_timestamp(timestamp);
        let fields = [
            ("withdrawals", attributes.withdrawals.is_some(), shanghai),
            ("parentBeaconBlockRoot", attributes.parent_beacon_block_root.is_some(), cancun),
            ("slotNumber", attributes.slot_number.is_some(), amsterdam),
        ];
        for (name, present, active) in fields {
            if present != active {
                let problem = if active { "is missing" } else { "is not known yet" };
                let reason = format!("{name} {problem} at {timestamp}");
                return Err(Error::InvalidAttributes(reason));
            }
        }
        Ok(())
    }

    /// The block before it has run: everything that the parent and the attributes decide.
    fn draft(
        &self,
        parent: &BlockRecord,
        attributes: PayloadAttributes,
        transactions: Vec<Transaction>,
        extra_data: Bytes,
    ) -> execution::Block {
        let (chain, parent_hash) = (self.chain(), parent.block.hash());
        let parent = &parent.block.header;
        let timestamp = attributes.timestamp;
        let withdrawals = attributes.withdrawals;
        let blob_gas = transactions.iter().map(|tx| tx.blob_gas_used().unwrap_or(0)).sum();
        let cancun = chain.is_cancun_active_at_timestamp(timestamp);
        let header = Header {
            parent_hash,
            ommers_hash: EMPTY_OMMER_ROOT_HASH,
            beneficiary: attributes.suggested_fee_recipient,
            transactions_root: proofs::calculate_transaction_root(&transactions),
            number: parent.number + 1,
            gas_limit: gas_limit(parent.gas_limit, attributes.target_gas_limit),
            timestamp,
            extra_data,
            mix_hash: attributes.prev_randao,
            base_fee_per_gas: Some(execution::next_base_fee(parent)),
            withdrawals_root: withdrawals.as_ref().map(|w| proofs::calculate_withdrawals_root(w)),
            blob_gas_used: cancun.then_some(blob_gas),
            excess_blob_gas: execution::next_excess_blob_gas(chain, parent, timestamp),
            parent_beacon_block_root: attributes.parent_beacon_block_root,
            slot_number: attributes.slot_number,
            requests_hash: chain.is_prague_active_at_timestamp(timestamp).then_some(B256::ZERO),
            ..Header::default()
        };
        let withdrawals = withdrawals.map(Into::into);
        AlloyBlock { header, body: BlockBody { transactions, ommers: Vec::new(), withdrawals } }
    }
}

/// Writes what execution gave into the header.
fn seal(header: &mut Header, executed: &Executed, state_root: B256) {
    header.state_root = state_root;
    header.gas_used = executed.gas_used;
    header.receipts_root = executed.receipts_root();
    header.logs_bloom = executed.logs_bloom();
    header.requests_hash = header.requests_hash.map(|_| executed.requests.requests_hash());
    header.block_access_list_hash = executed.block_access_list.as_ref().map(keccak256);
}

/// The parent's gas limit, moved towards `target` as far as one block may: by less than 1/1024.
fn gas_limit(parent: u64, target: Option<u64>) -> u64 {
    let step = (parent / 1024).saturating_sub(1);
    let (low, high) = (parent.saturating_sub(step), parent.saturating_add(step));
    target.unwrap_or(parent).clamp(low, high).max(execution::GAS_LIMIT_MINIMUM)
}

/// The fee recipient's priority fees, in wei.
fn block_value(header: &Header, transactions: &[Transaction], executed: &Executed) -> U256 {
    let mut before = 0;
    let mut value = U256::ZERO;
    for (transaction, receipt) in transactions.iter().zip(&executed.receipts) {
        let gas = receipt.cumulative_gas_used() - before;
        before = receipt.cumulative_gas_used();
        let tip = transaction.effective_tip_per_gas(header.base_fee_per_gas.unwrap_or(0));
        value += U256::from(tip.unwrap_or(0)) * U256::from(gas);
    }
    value
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

fn build_error(error: BlockError) -> Error {
    match error {
        BlockError::Invalid(error) => Error::Build(error),
        BlockError::State(error) => Error::State(error),
        BlockError::Internal(reason) => Error::Evm(reason),
    }
}
