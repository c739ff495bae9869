//! The head of a chain without a consensus client: that of an upstream, which is trusted with it.

mod news;
mod status;
mod task;

use std::sync::{Arc, Mutex, PoisonError};

use engine::Engine;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::head::status::SharedStatus;
use crate::head::task::HeadTask;
use crate::upstream::Upstream;

pub use status::{HeadStatus, HeadTag};

/// Does what a consensus client does, with the head of an execution client: it gives each new block
/// to the engine, and chooses it as the head, with the safe and the finalized block of the same
/// client. Gaps are left to a [`Backfill`](crate::Backfill) of the same engine.
///
/// The first upstream that answers is trusted with what the head is: blocks are validated, but of
/// two valid branches it says which one counts.
#[derive(Debug)]
pub struct HeadSource {
    tag: HeadTag,
    upstreams: Arc<[Upstream]>,
    shared: Arc<SharedStatus>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl HeadSource {
    /// Begins on the tokio runtime of the caller. An earlier upstream is preferred to a later one.
    pub fn start(engine: Arc<Engine>, upstreams: Vec<Upstream>, tag: HeadTag) -> Self {
        let names: Vec<_> = upstreams.iter().map(Upstream::name).collect();
        tracing::warn!(
            tag = tag.word(),
            upstreams = names.join(","),
            "the head is that of the first upstream that answers, which is trusted with it: the \
             Engine API takes no payloads and no fork choices"
        );
        let (shared, upstreams) = (Arc::<SharedStatus>::default(), Arc::<[_]>::from(upstreams));
        let (stop, stopped) = watch::channel(false);
        let task = HeadTask::new(engine, upstreams.clone(), tag, shared.clone());
        let task = Mutex::new(Some(tokio::spawn(task.run(stopped))));
        Self { tag, upstreams, shared, stop, task }
    }

    /// The upstreams, in the order in which they were given.
    pub fn upstreams(&self) -> &[Upstream] {
        &self.upstreams
    }

    /// The block of the upstream that becomes the head.
    pub const fn tag(&self) -> HeadTag {
        self.tag
    }

    /// How it is followed now.
    pub fn status(&self) -> HeadStatus {
        self.shared.lock().clone()
    }

    /// Stops, and returns when no block runs any more.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            // A panic in it has been told.
            task.await.unwrap_or_default();
        }
    }
}

impl Drop for HeadSource {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}
