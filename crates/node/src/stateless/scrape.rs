//! Values that a scrape asks a node without a state for.

use std::fmt;
use std::sync::Arc;

use alloy_primitives::B256;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::chain::StatelessHeads;
use super::work::Stateless;
use crate::metrics::{Output, chain_metrics};

/// All values of a node beside those of every node's ports.
pub(super) fn registry(shared: &Arc<Stateless>) -> Registry {
    let mut registry = Registry::default();
    shared.counts.register(&mut registry);
    registry.register_collector(Box::new(Heads(shared.clone())));
    registry
}

/// The heads, by the names that a node with a state has for them.
#[derive(Debug)]
struct Heads(Arc<Stateless>);

impl Collector for Heads {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let chain = self.0.chain();
        let StatelessHeads { head, safe, finalized } = chain.heads();
        let header = |hash: Option<B256>| hash.and_then(|hash| chain.header(&hash));
        let number = |hash| header(hash).map(|header| header.number);
        let time = header(head).map_or(0, |header| header.timestamp);
        let is_syncing = !chain.is_in_step();
        let highest = if is_syncing { Some(chain.highest()) } else { None };
        let numbers = [
            ("head", number(head)),
            ("safe", number(safe)),
            ("finalized", number(finalized)),
            ("highest_known", highest.max(number(head))),
        ];
        drop(chain);
        chain_metrics(&mut Output(encoder), &numbers, is_syncing, time)
    }
}
