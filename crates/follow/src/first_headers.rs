//! The headers before the first block of a chain that begins with a state.

use std::time::{Duration, Instant};

use engine::Engine;

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

    /// Asks each upstream once, where it is time to.
    pub(crate) async fn ask(&mut self, engine: &Engine, upstreams: &[Upstream]) {
        if self.pause(engine) != Some(Duration::ZERO) {
            return;
        }
        self.asked_at = Some(Instant::now());
        for upstream in upstreams {
            if let Err(error) = ask(engine, upstream).await {
                tracing::error!(%error, "headers from before the first block cannot be kept");
                return;
            }
            if engine.wanted_header().is_none() {
                tracing::info!(
                    upstream = upstream.name(),
                    "the headers before the first block are there"
                );
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
async fn ask(engine: &Engine, upstream: &Upstream) -> Result<(), engine::Error> {
    while let Some((number, _)) = engine.wanted_header() {
        // It says in the log why there is no answer.
        let Ok(headers) = upstream.headers_down(number, HEADERS).await else { return Ok(()) };
        let headers = headers.into_iter().map(|(_, header)| header).collect();
        let count = engine.add_headers(headers)?;
        upstream.used_headers(count);
        if count == 0 {
            return Ok(());
        }
    }
    Ok(())
}
