//! The headers before the first block of a chain that begins with a state.

use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::B256;
use engine::Engine;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::sleep;

use crate::error::Error;
use crate::limits::{FIRST_HEADERS_PAUSE, HEADERS};
use crate::upstream::Upstream;

/// Asks upstreams for the headers that the first blocks after a state may need, until they are
/// there, while gaps are filled.
#[derive(Debug)]
pub(crate) struct FirstHeaders {
    /// Whether upstreams are asked now.
    asking: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

impl FirstHeaders {
    /// Begins. `wake` is told when headers have come.
    pub(crate) fn start(
        engine: Arc<Engine>,
        upstreams: Arc<[Upstream]>,
        wake: Arc<Notify>,
        mut stopped: watch::Receiver<bool>,
    ) -> Self {
        let (told, asking) = watch::channel(engine.wanted_header().is_some());
        let task = tokio::spawn(async move {
            while let Some(wanted) = engine.wanted_header() {
                told.send_replace(true);
                ask_all(&engine, &upstreams, &mut stopped).await;
                told.send_replace(false);
                if engine.wanted_header() != Some(wanted) {
                    wake.notify_one();
                }
                if engine.wanted_header().is_none() {
                    return;
                }
                tokio::select! {
                    () = sleep(FIRST_HEADERS_PAUSE) => {}
                    _ = stopped.wait_for(|stopped| *stopped) => return,
                }
            }
        });
        Self { asking, task }
    }

    /// Waits until all upstreams that are asked now have answered.
    pub(crate) async fn asked(&mut self) {
        // An error says that the headers are there.
        let _ = self.asking.wait_for(|is_asking| !is_asking).await;
    }

    /// Waits until it has stopped.
    pub(crate) async fn ended(self) {
        // A panic in it has been told.
        self.task.await.unwrap_or_default();
    }
}

/// An upstream's place, and the headers that it has.
type Answer = (usize, Result<Vec<(B256, Header)>, Error>);

/// Asks all upstreams together, each for as many as it has, until the headers are there.
async fn ask_all(
    engine: &Arc<Engine>,
    upstreams: &Arc<[Upstream]>,
    stopped: &mut watch::Receiver<bool>,
) {
    let mut asked = JoinSet::<Answer>::new();
    let ask = |asked: &mut JoinSet<Answer>, place: usize, number| {
        let upstreams = upstreams.clone();
        asked.spawn(async move { (place, upstreams[place].headers_down(number, HEADERS).await) });
    };
    let Some((first, _)) = engine.wanted_header() else { return };
    let places = (0..upstreams.len()).filter(|place| !upstreams[*place].has_other_chain());
    places.for_each(|place| ask(&mut asked, place, first));
    loop {
        let ended = tokio::select! {
            Some(ended) = asked.join_next() => ended,
            _ = stopped.wait_for(|stopped| *stopped) => return,
            else => break,
        };
        // Why there is no answer, the upstream says in the log.
        let (place, Ok(headers)) = ended.expect("a request does not panic") else { continue };
        match add(engine, headers).await {
            // Another one has given them meanwhile.
            Ok(0) => continue,
            Ok(count) => upstreams[place].used_headers(count),
            Err(error) => {
                tracing::error!(%error, "headers from before the first block cannot be kept");
                return;
            }
        }
        let Some((number, _)) = engine.wanted_header() else {
            let upstream = upstreams[place].name();
            tracing::info!(upstream, "the headers before the first block are there");
            return;
        };
        ask(&mut asked, place, number);
    }
    let wanted = engine.wanted_header().map(|(number, _)| number);
    tracing::warn!(
        wanted,
        "no upstream has the headers before the first block: a block that asks for their hashes \
         (BLOCKHASH) waits for them"
    );
}

/// Keeps those that are wanted, off the runtime's threads. How many there were.
async fn add(engine: &Arc<Engine>, headers: Vec<(B256, Header)>) -> Result<usize, engine::Error> {
    let headers = headers.into_iter().map(|(_, header)| header).collect();
    let engine = engine.clone();
    let added = spawn_blocking(move || engine.add_headers(headers)).await;
    added.expect("adding headers does not panic")
}
