//! Gaps of a long run that nodes fill by themselves.

use std::time::Instant;

use anyhow::{Context, ensure};

use crate::clients::process::{interrupted, sleep_until};
use crate::soak::Soak;
use crate::soak::node::Said;

/// A gap that a node has filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filled {
    /// Blocks that it fetched.
    pub(crate) blocks: u64,
    /// Slots from the first payload after the gap to the first that was VALID.
    pub(crate) slots: u64,
}

impl Soak<'_> {
    /// Gives a node with a gap the newest block and the fork choice, and looks for all blocks of
    /// the gap once it calls them VALID.
    pub(crate) fn tell(&mut self, index: usize) -> anyhow::Result<()> {
        let head = self.store.head();
        let node = &mut self.nodes[index];
        let path = self.store.path(head, |number, hash| node.has(number, hash))?;
        let newest = self.store.payload(head).context("the head has a payload")?;
        let began = Instant::now();
        let said = node.tell(newest, self.store.heads(head))?;
        let (name, gap) = (&node.name, node.gap.as_mut().context("it has a gap")?);
        let waited = gap.since.get_or_insert(began).elapsed();
        gap.given += 1;
        match said {
            Said::Nothing => {}
            Said::Syncing => {
                self.tally.syncing_seconds.push(began.elapsed().as_secs_f64());
                ensure!(
                    waited <= self.args.fill_within,
                    "{name} still answers SYNCING to block {} after {waited:.0?}: it has not \
                     filled a gap of {} blocks from the nodes of --follow",
                    newest.number,
                    path.len() - 1
                );
            }
            Said::Valid => {
                let slots = gap.given - 1;
                node.gap = None;
                self.tally.found(node.look_for_gap(&path)?);
                let blocks = path.len().saturating_sub(1) as u64;
                if blocks > 0 {
                    self.tally.filled.push(Filled { blocks, slots });
                }
            }
        }
        Ok(())
    }

    /// Waits until a node has filled its gap, where it has one.
    pub(crate) fn await_filled(&mut self, index: usize) -> anyhow::Result<()> {
        while self.nodes[index].gap.is_some() && !interrupted() {
            let next = Instant::now() + self.args.slot;
            self.tell(index)?;
            if self.nodes[index].gap.is_some() {
                sleep_until(next);
            }
        }
        Ok(())
    }
}
