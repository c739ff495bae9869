//! The chains of upstreams, which are asked for before anything is missing.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::error::Error;
use crate::limits::CHAIN_PAUSE;
use crate::upstream::Upstream;
use crate::upstream_state::UpstreamState;

/// Asks all upstreams for their chains, each until it has told that it has this one, and again when
/// it does not know a block. It ends when it is dropped.
pub(crate) fn check_chains(upstreams: &Arc<[Upstream]>, chain_id: u64) -> JoinSet<()> {
    let mut checks = JoinSet::new();
    for place in 0..upstreams.len() {
        let upstreams = upstreams.clone();
        checks.spawn(async move { check(&upstreams[place], chain_id).await });
    }
    checks
}

async fn check(upstream: &Upstream, chain_id: u64) {
    let mut before = None;
    loop {
        let asked = upstream.ask_chain(chain_id).await;
        let state = match &asked {
            Ok(id) if *id == chain_id => UpstreamState::Answers,
            Ok(id) => UpstreamState::OtherChain(*id),
            Err(_) => UpstreamState::Fails,
        };
        if before.replace(state) != Some(state) {
            say(upstream, chain_id, &asked);
        }
        if state == UpstreamState::Answers {
            upstream.until_doubted().await;
        }
        sleep(CHAIN_PAUSE.min(upstream.most_pause())).await;
    }
}

fn say(upstream: &Upstream, chain_id: u64, asked: &Result<u64, Error>) {
    let upstream = upstream.name();
    match asked {
        Ok(id) if *id == chain_id => {
            tracing::info!(upstream, chain_id, "an upstream of --follow answers");
        }
        Ok(id) => tracing::warn!(
            upstream,
            chain_id = id,
            ours = chain_id,
            "an upstream of --follow has another chain: it is asked for no blocks until it has ours"
        ),
        Err(error) => tracing::warn!(
            upstream, %error,
            "an upstream of --follow does not say which chain it has: it is asked again"
        ),
    }
}
