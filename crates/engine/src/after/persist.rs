//! The persistence thread: it takes to the disk what validation leaves in memory, and prunes.

use crate::shared::{CopyDue, Core};
use crate::threads::background::yield_to_others;
use crate::witnesses::assemble;
use crate::{Error, limits};
use alloy_primitives::B256;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// A canonical block that would survive a crash now, and all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersistedBlock {
    /// The block's number.
    pub number: u64,
    /// The block's hash.
    pub hash: B256,
}

/// What the persistence thread waits for, and what others wait for from it.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Blocks sealed and not persisted.
    waiting: usize,
    /// The fork choice has changed since it was last persisted.
    is_choice_new: bool,
    /// Everything is to be persisted now, whatever the threshold says.
    is_flush_asked: bool,
    is_stopped: bool,
    /// Counts finished rounds.
    rounds: u64,
}

impl Signals {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }

    pub(crate) fn block_sealed(&self) {
        self.state().waiting += 1;
        self.changed.notify_all();
    }

    pub(crate) fn fork_choice_changed(&self) {
        self.state().is_choice_new = true;
        self.changed.notify_all();
    }

    /// Has everything persisted that is sealed by now, and waits for it. Returns at once when the
    /// thread has stopped, because it failed or was told to.
    pub(crate) fn flush(&self) {
        let mut state = self.state();
        // The round under way may have begun too early; the one after it has not.
        let goal = state.rounds + 2;
        while state.rounds < goal && !state.is_stopped {
            state.is_flush_asked = true;
            self.changed.notify_all();
            state = self.changed.wait(state).expect("no thread panics while it holds the lock");
        }
    }

    /// Asks for everything to be persisted soon.
    pub(crate) fn hurry(&self) {
        self.state().is_flush_asked = true;
        self.changed.notify_all();
    }

    /// Waits for work; `false` when it is time to stop.
    fn wait_for_work(&self, threshold: usize) -> bool {
        let mut state = self.state();
        loop {
            let is_due = state.waiting > threshold || (state.is_choice_new && threshold == 0);
            if is_due || state.is_flush_asked {
                state.waiting = 0;
                state.is_choice_new = false;
                state.is_flush_asked = false;
                return true;
            }
            if state.is_stopped {
                return false;
            }
            state = self.changed.wait(state).expect("no thread panics while it holds the lock");
        }
    }

    fn round_ended(&self) {
        self.state().rounds += 1;
        self.changed.notify_all();
    }

    /// Whether no round is due for so long, so that work that can wait is in nobody's way.
    fn stays_quiet(&self, time: Duration) -> bool {
        let is_quiet = |state: &mut State| {
            !(state.waiting > 0 || state.is_choice_new || state.is_flush_asked || state.is_stopped)
        };
        let waited = self.changed.wait_timeout_while(self.state(), time, is_quiet);
        let (_state, waited) = waited.expect("no thread panics while it holds the lock");
        waited.timed_out()
    }

    fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }
}

/// The thread. Dropping it persists what there is, and ends it.
#[derive(Debug)]
pub(crate) struct Persister {
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
}

impl Persister {
    pub(crate) fn start(core: Arc<Core>) -> Self {
        let thread = {
            let core = core.clone();
            std::thread::Builder::new()
                .name("persist".into())
                .spawn(move || run(&core))
                .expect("the system starts a thread")
        };
        Self { core, thread: Some(thread) }
    }
}

impl Drop for Persister {
    fn drop(&mut self) {
        let _waiting = self.core.rest.wait_for_work();
        self.core.signals.flush();
        self.core.signals.stop();
        let thread = self.thread.take().expect("dropped once");
        if thread.join().is_err() {
            tracing::error!("the persistence thread panicked");
        }
    }
}

fn run(core: &Core) {
    yield_to_others();
    while core.signals.wait_for_work(core.options.persistence_threshold) {
        core.rest.wait();
        if let Err(error) = persist(core).and_then(|()| copy_late_witnesses(core)) {
            return fail(core, error);
        }
        match (prune(core, &mut |_| ()), core.database.check()) {
            (Err(error), Err(_)) => return fail(core, error),
            // It is tried again after the next block, of which nothing depends on it.
            (Err(error), Ok(())) => {
                tracing::warn!(%error, "what is no longer kept cannot be deleted yet");
            }
            (Ok(()), _) => {}
        }
        core.signals.round_ended();
        if let Err(error) = copy_in_peace(core) {
            return fail(core, error);
        }
    }
}

fn fail(core: &Core, error: Error) {
    tracing::error!(%error, "persistence has stopped; nothing more is validated");
    core.fail(error);
    core.signals.stop();
}

/// Makes copies as long as nobody wants anything.
fn copy_in_peace(core: &Core) -> Result<(), Error> {
    let is_quiet = || core.signals.stays_quiet(limits::COPY_PAUSE) && !core.is_running();
    while is_quiet() && copy_a_witness(core, CopyDue::Now, u64::MAX) {
        persist_copies(core)?;
    }
    // One a round is soon enough.
    if is_quiet() {
        copy_a_witness(core, CopyDue::InTime, u64::MAX);
    }
    Ok(())
}

/// Persists every block that is sealed, and the canonical chain as it is now.
fn persist(core: &Core) -> Result<(), Error> {
    let changes = core.tree().canonical_changes();
    if let Some(changes) = &changes {
        // With the head its ancestors are sealed too.
        let head = core.block(&changes.heads.head)?;
        head.ok_or(Error::UnknownBlock(changes.heads.head))?.seal.wait()?;
        core.database.set_canonical(&changes.numbers, changes.heads.to_stored())?;
    }
    core.database.persist()?;
    if let Some(changes) = changes {
        core.tree_mut().forget_changes(&changes);
        let hash = changes.heads.head;
        let number = core.number(&hash)?;
        core.persisted(PersistedBlock { number, hash }, changes.heads);
    }
    Ok(())
}

/// Forgets versions that are too old, and deletes the segments that no version needs. `progress` is
/// told the part that is done.
pub(crate) fn prune(core: &Core, progress: &mut dyn FnMut(f64)) -> Result<(), Error> {
    let (blocks, bytes) = (core.options.retain_witness_blocks, core.options.retain_witness_bytes);
    // What a block read is kept in the same log, and is needed as long as its state.
    core.database.retain_witnesses(blocks.max(core.options.retain_history), bytes)?;
    // Not in one expression: the tree would be locked twice, with a writer in between.
    let head = core.tree().heads.head;
    // Of what is not persisted there is no copy yet.
    let persisted = core.number(&core.persisted_heads().head)?;
    let cutoff = core.number(&head)?.min(persisted).saturating_sub(core.options.retain_history);
    let cutoff = core.unsealed.lowest().map_or(cutoff, |lowest| cutoff.min(lowest.max(1) - 1));
    let first = core.floors().first();
    let copied_from = first.max(persisted.saturating_sub(blocks));
    if cutoff <= first {
        return Ok(());
    }
    // Before the copies: they are those of its branch.
    let Some(hash) = core.canonical_hash(cutoff)? else { return Ok(()) };
    // Of what has no copy yet, this is the last chance.
    let mut has_copied = false;
    for due in [CopyDue::InTime, CopyDue::Now] {
        // Copies are all that takes long.
        has_copied |= copy_witnesses(core, due, cutoff, &mut |number| {
            let (done, all) = (number - copied_from, cutoff - copied_from);
            progress(done as f64 / all as f64);
        })?;
    }
    if has_copied {
        // Nobody finds them before, and what they were made from is about to go.
        core.database.persist()?;
    }
    let Some(oldest) = core.database.entry(&hash)? else { return Ok(()) };
    let floor = {
        // No head is chosen meanwhile of which this is not true any more.
        let tree = core.tree();
        let (head, _) = tree.known_link(&tree.heads.head)?;
        let is_so = tree.canonical_hash(cutoff)? == Some(hash)
            && head.saturating_sub(core.options.retain_history) >= cutoff;
        let mut floors = core.floors();
        // Who is yet to be sealed goes on from its parent's state. Who begins now finds it gone.
        let is_needed = core.unsealed.lowest().is_some_and(|lowest| lowest <= cutoff);
        if !is_so || is_needed {
            return Ok(());
        }
        floors.cut(cutoff, oldest.floor)
    };
    core.database.forget_versions(cutoff)?;
    core.database.delete_segments_below(floor)?;
    Ok(())
}

/// Makes copies that are late, because blocks follow each other without a pause: later on what they
/// hold would have to be read from the disk.
fn copy_late_witnesses(core: &Core) -> Result<(), Error> {
    let head = core.number(&core.persisted_heads().head)?;
    copy_witnesses(core, CopyDue::Now, head.saturating_sub(limits::COPIES_BEHIND), &mut |_| ())?;
    Ok(())
}

/// Makes all copies that are due up to the block with the number `last`. They do not wait for the
/// disk together: blocks that read much have copies larger than all else that is written of them.
/// False when there were none. `progress` is told the number of each block whose copy is made.
fn copy_witnesses(
    core: &Core,
    due: CopyDue,
    last: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<bool, Error> {
    let mut has_copied = false;
    while copy_a_witness(core, due, last) {
        has_copied = true;
        persist_copies(core)?;
        progress(core.copied_up_to(due));
    }
    Ok(has_copied)
}

/// Brings copies to the disk when they hold much memory.
fn persist_copies(core: &Core) -> Result<(), Error> {
    if core.database.unpersisted_bytes() > limits::LATE_COPIES_BYTES {
        core.database.persist()?;
    }
    Ok(())
}

/// Reads once more what a disk cannot read now: it may be able to soon.
pub(crate) fn tried<T>(mut read: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut outcome = read();
    for _ in 1..limits::COPY_TRIES {
        if outcome.is_ok() {
            break;
        }
        std::thread::sleep(limits::COPY_PAUSE);
        outcome = read();
    }
    outcome
}

/// Makes the next copy of a canonical block's witness, up to the one with the number `last`, to be
/// persisted with the next round; `false` when there is none to make. One that cannot be made holds
/// up no other.
pub(crate) fn copy_a_witness(core: &Core, due: CopyDue, last: u64) -> bool {
    let options = &core.options;
    if options.retain_witness_blocks == 0 || options.retain_witness_bytes == 0 {
        return false;
    }
    let mut copier = core.copier.lock().expect("no thread panics while it holds the lock");
    let hash = match core.next_copy(due, last) {
        Ok(Some(hash)) => hash,
        Ok(None) => return false,
        Err(error) => {
            tracing::warn!(%error, "which witness is to be copied cannot be told");
            return false;
        }
    };
    let copy = || {
        if let Some(record) = core.block(&hash)?
            && let Some(copy) = assemble::copy(core, &mut copier, &record)?
        {
            core.database.add_witness(hash, copy)?;
        }
        Ok::<_, Error>(())
    };
    if let Err(error) = tried(copy) {
        tracing::warn!(%error, %hash, "the copy of a block's witness was not made");
    }
    true
}
