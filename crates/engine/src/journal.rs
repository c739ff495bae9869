//! Floor 5. The journal: what is answered is noted before, and run again after a crash.

use crate::chain::choice::{from_journaled, journaled, stored_choice};
use crate::chain::tree::{BlockTree, Heads};
use crate::chain::verdict::Verdict;
use crate::engine::Engine;
use crate::error::Error;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::Encodable;
use alloy_rpc_types_engine::ForkchoiceState;
use execution::SealedBlock;
use state::JournalTail;

impl Engine {
    /// Notes a block that is valid, before anyone is told. A failure is final.
    pub(crate) fn note_block(&self, block: &SealedBlock) -> Result<(), Error> {
        let chain = &self.shared.chain;
        let journal = chain.database.journal();
        let noted = journal.append_block(block.hash(), block.rlp_bytes(), |out| block.encode(out));
        noted.and_then(|()| journal.sync()).map_err(|error| chain.failed(error.into()))
    }

    /// Notes heads before they are chosen. The tree stays locked, so records are in the order in
    /// which the heads were chosen. A failure is final.
    pub(crate) fn note_choice(&self, tree: &mut BlockTree, heads: Heads) -> Result<(), Error> {
        let chain = &self.shared.chain;
        tree.choices += 1;
        let Heads { head, safe, finalized, .. } = heads;
        let hashes = [head, safe.unwrap_or_default(), finalized.unwrap_or_default()];
        let choice = journaled(tree.choices, hashes);
        let noted = chain.database.journal().append_choice(choice);
        noted.map_err(|error| chain.failed(error.into()))
    }

    /// Makes the choice that was noted durable, if it is to be, when the tree is not locked any
    /// more. A failure is final.
    pub(crate) fn sync_choice(&self) -> Result<(), Error> {
        let chain = &self.shared.chain;
        chain.database.journal().sync().map_err(|error| chain.failed(error.into()))
    }

    /// Runs the blocks again that an earlier process has answered and not persisted, and makes its
    /// last fork choice.
    pub(crate) fn replay_journal(&self) -> Result<(), Error> {
        let database = &self.shared.chain.database;
        let journal = database.journal();
        for JournalTail { file, offset, bytes } in journal.tails() {
            tracing::warn!(file, offset, bytes, "the journal ends in a torn record, passed over");
        }
        if journal.found_count() > 0 {
            let blocks = journal.found_count();
            tracing::info!(blocks, "the blocks of the journal that were not persisted run again");
        }
        journal.replay(|hash, rlp| self.replay_block(hash, &rlp))?;
        let Some(choice) = journal.last_choice() else { return Ok(()) };
        if choice.number <= stored_choice(database)? {
            return Ok(());
        }
        let [head_block_hash, safe_block_hash, finalized_block_hash] = from_journaled(&choice)?;
        let state = ForkchoiceState { head_block_hash, safe_block_hash, finalized_block_hash };
        match self.choose_journaled(state) {
            Ok(outcome) if outcome.is_applied => {}
            // After a power cut blocks may be missing.
            Ok(outcome) => tracing::error!(
                head = %head_block_hash, verdict = ?outcome.verdict,
                "the last fork choice of the journal cannot be made again"
            ),
            Err(error) => tracing::error!(
                head = %head_block_hash, %error,
                "the last fork choice of the journal cannot be made again"
            ),
        }
        Ok(())
    }

    fn replay_block(&self, hash: B256, rlp: &Bytes) -> Result<(), Error> {
        let is_own = |block: &SealedBlock| {
            block.hash() == hash && execution::validate_body_roots(block).is_ok()
        };
        let Some(block) = execution::decode_block(rlp).ok().filter(is_own) else {
            let what = format!("block {hash} of the journal cannot be read back");
            return Err(Error::Storage(what));
        };
        let number = block.header.number;
        match self.new_journaled_block(block)? {
            Verdict::Valid => {}
            verdict => tracing::error!(
                %hash, number, ?verdict, "a block of the journal, once valid, is not any more"
            ),
        }
        Ok(())
    }
}
