//! Floor 3. Work behind the answers: blocks are sealed, persisted and pruned.

use crate::after::queue::{Queue, RanBlock};
use crate::shared::Shared;
use crate::threads::background::lower_priority;
use crate::threads::joined::JoinedThread;
use std::sync::Arc;

pub(crate) mod persist;
pub(crate) mod prune;
pub(crate) mod queue;
pub(crate) mod seal;
pub(crate) mod sweep;
pub(crate) mod warm;

/// The threads behind the answers. Dropping it seals and persists all blocks that have run.
#[derive(Debug)]
pub(crate) struct After {
    shared: Arc<Shared>,
    pub(crate) queue: Arc<Queue>,
    sealer: Option<JoinedThread>,
    persister: Option<JoinedThread>,
    /// Ends by itself.
    warmer: Option<JoinedThread>,
}

impl After {
    pub(crate) fn start(shared: &Arc<Shared>) -> Self {
        let queue = Arc::<Queue>::default();
        let sealer = Some(start("seal", shared, &queue, |shared, queue| {
            while let Some(block) = queue.next_block() {
                seal::seal(shared, queue, block);
            }
        }));
        let persister = Some(start("persist", shared, &queue, persist::run));
        let warmer = (shared.options.read_ahead_bytes > 0).then(|| {
            // Nodes that come later are in memory, and may not be written yet.
            let end = shared.chain.database.nodes().end();
            let read = move |shared: &Shared, queue: &Queue| warm::read_newest(shared, queue, end);
            start("read-ahead", shared, &queue, read)
        });
        Self { shared: shared.clone(), queue, sealer, persister, warmer }
    }

    /// Seals a block on the calling thread.
    pub(crate) fn seal_here(&self, block: RanBlock) {
        let _wanted = self.shared.background.want();
        seal::seal(&self.shared, &self.queue, block);
    }

    /// Has everything persisted that is sealed by now, and waits for it.
    pub(crate) fn flush(&self) {
        let _wanted = self.shared.background.want();
        self.queue.seal_now();
        self.queue.flush();
    }
}

fn start(
    name: &str,
    shared: &Arc<Shared>,
    queue: &Arc<Queue>,
    run: impl FnOnce(&Shared, &Queue) + Send + 'static,
) -> JoinedThread {
    let (shared, queue) = (shared.clone(), queue.clone());
    JoinedThread::start(name.into(), move || {
        if shared.options.low_priority {
            lower_priority();
        }
        run(&shared, &queue);
    })
}

/// Blocks are sealed first, then persisted: the order is written here, and nowhere else.
impl Drop for After {
    fn drop(&mut self) {
        self.queue.close();
        drop((self.sealer.take(), self.warmer.take()));
        self.flush();
        self.queue.stop();
        drop(self.persister.take());
    }
}
