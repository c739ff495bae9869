//! The headers before the first block of a chain that begins with a state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Engine;
use tokio::task::{JoinSet, spawn_blocking};

use crate::limits::{FIRST_HEADERS_PAUSE, HEADERS};
use crate::upstream::Upstream;

/// Asks upstreams for the headers that the first blocks after a state may need, until they are
/// there.
#[derive(Debug, Default)]
pub(crate) struct FirstHeaders {
    asked_at: Option<Instant>,
}

impl FirstHeaders {
    /// How long it is until upstreams are to be asked; `None` where no header is wanted.
    pub(crate) fn pause(&self, engine: &Engine) -> Option<Duration> {
        engine.wanted_header()?;
        let asked = self.asked_at.map(|at| at + FIRST_HEADERS_PAUSE);
        Some(asked.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now())))
    }

    /// Asks all upstreams together, where it is time to, until the headers are there.
    pub(crate) async fn ask(&mut self, engine: &Arc<Engine>, upstreams: &Arc<[Upstream]>) {
        if self.pause(engine) != Some(Duration::ZERO) {
            return;
        }
        self.asked_at = Some(Instant::now());
        let mut asked = JoinSet::new();
        for place in (0..upstreams.len()).filter(|place| !upstreams[*place].has_other_chain()) {
            let (engine, upstreams) = (engine.clone(), upstreams.clone());
            asked.spawn(async move { (place, ask(&engine, &upstreams[place]).await) });
        }
        while let Some(ended) = asked.join_next().await {
            let (place, ended) = ended.expect("a request does not panic");
            if let Err(error) = ended {
                tracing::error!(%error, "headers from before the first block cannot be kept");
                return;
            }
            if engine.wanted_header().is_none() {
                let upstream = upstreams[place].name();
                tracing::info!(upstream, "the headers before the first block are there");
                return;
            }
        }
        let wanted = engine.wanted_header().map(|(number, _)| number);
        tracing::warn!(
            wanted,
            "no upstream has the headers before the first block: a block that asks for their \
             hashes (BLOCKHASH) waits for them"
        );
    }
}

/// Takes as many as an upstream has.
async fn ask(engine: &Arc<Engine>, upstream: &Upstream) -> Result<(), engine::Error> {
    while let Some((number, _)) = engine.wanted_header() {
        // It says in the log why there is no answer.
        let Ok(headers) = upstream.headers_down(number, HEADERS).await else { return Ok(()) };
        let headers = headers.into_iter().map(|(_, header)| header).collect();
        let engine = engine.clone();
        let added = spawn_blocking(move || engine.add_headers(headers)).await;
        let count = added.expect("adding headers does not panic")?;
        upstream.used_headers(count);
        // Another one may have given them meanwhile.
        if count == 0 {
            return Ok(());
        }
    }
    Ok(())
}
