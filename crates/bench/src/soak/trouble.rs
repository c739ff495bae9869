//! The troubles of a long run: when they begin, and how they end.

use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;

use crate::chain::world::option_name;
use crate::soak::Soak;
use crate::soak::drops::drop_connections;
use crate::soak::node::{Condition, Ending, Gap};

/// Connections that one trouble drops.
const DROPS: u64 = 40;
/// The same at a node that is frozen, and answers none.
const FROZEN_DROPS: u64 = 4;
/// Of so many absences one is as long as it may be; the others are short.
const LONG_ONES: u64 = 6;
const SHORT_SLOTS: u64 = 8;
/// Blocks of a branch, at most.
const BRANCH: u64 = 4;

/// A trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Trouble {
    /// SIGTERM, at a random moment; it is started again later.
    End,
    /// SIGKILL, in the same way.
    Kill,
    /// SIGSTOP, and SIGCONT some slots later.
    Freeze,
    /// It runs, and is told of no block for some slots.
    Absence,
    /// It is away as in an end, a kill or an absence, and is given no block that it missed.
    Gap,
    /// It has a branch of its own for some slots, and all take the one or the other then.
    Split,
    /// A client hangs up at all moments of calls.
    Drops,
    /// A block with a wrong state root comes before the right one.
    Invalid,
}

impl Trouble {
    pub(crate) fn name(self) -> String {
        option_name(&self)
    }
}

/// A node on a branch of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) side: usize,
    pub(crate) head: alloy_primitives::B256,
    /// The slot in which it ends.
    until: u64,
}

impl Soak<'_> {
    /// Begins a trouble, now and then.
    pub(crate) fn begin_trouble(&mut self) -> anyhow::Result<()> {
        let every = self.args.every;
        if every == 0 || self.args.troubles.is_empty() || self.random.below(every) != 0 {
            return Ok(());
        }
        let which = self.random.below(self.args.troubles.len() as u64) as usize;
        let trouble = self.args.troubles[which];
        let able = self.able(trouble);
        if able.is_empty() {
            return Ok(());
        }
        let index = able[self.random.below(able.len() as u64) as usize];
        let slots = self.length();
        let mut until = self.slot + slots;
        match trouble {
            Trouble::End => self.doom(index, Ending::Told, until)?,
            Trouble::Kill => self.doom(index, Ending::Killed, until)?,
            Trouble::Freeze => {
                self.nodes[index].client()?.freeze()?;
                self.nodes[index].condition = Condition::Frozen(until);
                self.drop(index, FROZEN_DROPS)?;
            }
            Trouble::Absence => self.nodes[index].condition = Condition::Absent(until),
            Trouble::Gap => self.begin_gap(index, until)?,
            Trouble::Split if self.split.is_none() => {
                let head = self.store.head();
                until = self.slot + self.random.between(1, BRANCH);
                self.nodes[index].condition = Condition::Apart;
                self.split = Some(Split { side: index, head, until });
            }
            Trouble::Split => return Ok(()),
            Trouble::Drops => self.drop(index, DROPS)?,
            Trouble::Invalid => self.send_invalid(index)?,
        }
        let (slot, name) = (self.slot, self.nodes[index].name.clone());
        self.tally.trouble(slot, trouble, &name, until)
    }

    /// The nodes that may have a trouble. One at least stays up to propose, and the first one is
    /// never ended; others are also while they fill a gap.
    fn able(&self, trouble: Trouble) -> Vec<usize> {
        let ends = matches!(trouble, Trouble::End | Trouble::Kill);
        let stays = matches!(trouble, Trouble::Drops | Trouble::Invalid);
        let up = self.nodes.iter().filter(|node| node.is_up()).count();
        let able = |index: &usize| {
            let node = &self.nodes[*index];
            let is_filling = matches!(node.condition, Condition::Up) && node.gap.is_some();
            let others = up - usize::from(node.is_up());
            let is_there = node.is_up() || ends && is_filling;
            is_there && (stays || others > 0) && !(ends && *index == 0)
        };
        (0..self.nodes.len()).filter(able).collect()
    }

    /// Has a node be away from this slot on, and fill the gap by itself.
    fn begin_gap(&mut self, index: usize, until: u64) -> anyhow::Result<()> {
        let ending = match self.random.below(3) {
            0 if index > 0 => Some(Ending::Told),
            1 if index > 0 => Some(Ending::Killed),
            _ => None,
        };
        let node = &mut self.nodes[index];
        match ending {
            Some(ending) => {
                node.doom(ending, until, Duration::ZERO, &mut self.random)?;
                node.bury()?;
            }
            None => node.condition = Condition::Absent(until),
        }
        node.gap = Some(Gap::default());
        Ok(())
    }

    /// Slots that a node is away.
    fn length(&mut self) -> u64 {
        let longest = self.args.longest;
        match self.random.below(LONG_ONES) {
            0 => self.random.between(1, longest),
            _ => self.random.between(1, SHORT_SLOTS.min(longest)),
        }
    }

    fn doom(&mut self, index: usize, ending: Ending, until: u64) -> anyhow::Result<()> {
        let slot = self.args.slot;
        self.nodes[index].doom(ending, until, slot, &mut self.random)
    }

    fn drop(&mut self, index: usize, count: u64) -> anyhow::Result<()> {
        let client = self.nodes[index].client()?;
        let ports = [client.engine.endpoint(), client.public.endpoint()];
        drop_connections(&ports, count, &mut self.random);
        Ok(())
    }

    /// A block as the head is, with another state root, for a node that has its parent.
    fn send_invalid(&mut self, index: usize) -> anyhow::Result<()> {
        let Some(payload) = self.store.payload(self.store.head()) else { return Ok(()) };
        let node = &mut self.nodes[index];
        // One that was away may lack the parent still.
        if !node.has(payload.number - 1, payload.parent) {
            return Ok(());
        }
        let twin = payload.invalid_twin()?;
        node.client()?.engine.invalid_payload(&twin).with_context(|| node.name.clone())
    }

    /// Ends the troubles whose time it is.
    pub(crate) fn recover(&mut self) -> anyhow::Result<()> {
        let slot = self.slot;
        if let Some(Split { side, head, until }) = self.split
            && until <= slot
        {
            self.split = None;
            self.nodes[side].condition = Condition::Up;
            if self.random.chance(0.5) {
                let left = self.store.choose(head)?;
                self.tally.reorgs.push(left as f64);
            } else {
                self.tally.reorgs.push(0.0);
            }
        }
        for index in 0..self.nodes.len() {
            let until = match self.nodes[index].condition {
                Condition::Down(until) | Condition::Frozen(until) | Condition::Absent(until) => {
                    until
                }
                _ => continue,
            };
            if until <= slot {
                self.come_back(index)?;
            }
        }
        Ok(())
    }

    /// Has a node come back, from wherever it is. One that was started again has all that it
    /// promised.
    pub(crate) fn come_back(&mut self, index: usize) -> anyhow::Result<()> {
        let node = &mut self.nodes[index];
        match node.condition {
            Condition::Down(_) => {
                let began = std::time::Instant::now();
                let head = node.start()?;
                self.tally.start_seconds.push(began.elapsed().as_secs_f64());
                node.check_head(&self.store, head)?;
                let found = node.look(&self.store, &mut self.random, false)?;
                self.tally.found(found);
            }
            Condition::Frozen(_) => node.client()?.thaw()?,
            _ => {}
        }
        node.condition = Condition::Up;
        node.gap = node.gap.take().map(|_| Gap::default());
        Ok(())
    }
}
