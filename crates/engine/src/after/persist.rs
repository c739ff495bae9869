//! Floor 3. Persistence: all that blocks leave in memory is brought to the disk.

use crate::after::prune::prune;
use crate::after::queue::Queue;
use crate::chain::choice::store_choice;
use crate::chain::events::ChainEvent;
use crate::chain::found::{new_canonical, stored_canonical};
use crate::chain::persisted::PersistedBlock;
use crate::shared::{Chain, Shared};
use crate::witnesses::copies::copy_a_witness;
use crate::{Error, limits};
use alloy_primitives::B256;
use state::NewCanonical;

/// Persists whenever there is a reason, until it is told to stop, or fails.
pub(crate) fn run(shared: &Shared, queue: &Queue) {
    if let Err(error) = run_rounds(shared, queue) {
        tracing::error!(%error, "persistence has stopped; nothing more is validated");
        shared.chain.fail(error);
        queue.stop();
    }
}

fn run_rounds(shared: &Shared, queue: &Queue) -> Result<(), Error> {
    while queue.wait_for_round(shared.options.persistence_threshold) {
        persist(&shared.chain)?;
        if let Err(error) = prune(shared, &mut |_| ()) {
            // After a failed write there is no other.
            if shared.chain.database.check().is_err() {
                return Err(error);
            }
            // It is tried again after the next block, of which nothing depends on it.
            tracing::warn!(%error, "what is no longer kept cannot be deleted yet");
        }
        queue.round_ended();
        copy_witnesses(shared, queue)?;
    }
    Ok(())
}

/// Persists every block that is sealed, and the canonical chain as it is now.
fn persist(chain: &Chain) -> Result<(), Error> {
    let changes = chain.tree().canonical_changes();
    if let Some(changes) = &changes {
        // With the head its ancestors are sealed too.
        chain.known_block(&changes.heads.head)?.seal.wait()?;
        let numbers = changes.numbers.iter().map(|(number, hash)| {
            let block = hash.map(|hash| found_by(chain, hash)).transpose()?;
            Ok((*number, block))
        });
        let numbers = numbers.collect::<Result<Vec<_>, Error>>()?;
        chain.database.set_canonical(numbers, changes.heads.to_stored())?;
        store_choice(&chain.database, changes.choice)?;
    }
    chain.database.persist()?;
    if let Some(changes) = changes {
        chain.tree_mut().forget_changes(&changes);
        let hash = changes.heads.head;
        let number = chain.number(&hash)?;
        let block = PersistedBlock { number, hash };
        chain.persisted.set(block, changes.heads);
        chain.events.tell(&ChainEvent::Persisted(block));
    }
    Ok(())
}

/// A block that becomes canonical, with its log bloom and its transactions.
fn found_by(chain: &Chain, hash: B256) -> Result<NewCanonical, Error> {
    let recent = chain.tree().recent(&hash).cloned();
    match recent {
        Some(record) => Ok(new_canonical(&record)),
        None => {
            let stored = chain.database.block(&hash)?.ok_or(Error::UnknownBlock(hash))?;
            stored_canonical(hash, &stored)
        }
    }
}

/// Makes copies of witnesses as long as no block runs and no round is due, and those that are late
/// because blocks follow each other without a pause: later on their nodes would have to be read
/// from the disk.
fn copy_witnesses(shared: &Shared, queue: &Queue) -> Result<(), Error> {
    let head = shared.chain.number(&shared.chain.persisted.get().head)?;
    let is_late = || shared.copies.last() + limits::COPIES_BEHIND < head;
    let is_quiet =
        || queue.stays_quiet(limits::COPY_PAUSE) && !shared.background.is_block_running();
    let mut late = 0..limits::COPIES_BEHIND;
    while (is_late() && late.next().is_some() || is_quiet()) && copy_a_witness(shared, u64::MAX)? {}
    Ok(())
}
