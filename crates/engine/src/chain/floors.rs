//! Floor 2. Which versions of the state are kept, and where the nodes of the newest begin.

use crate::chain::sealed::SweepState;
use state::Database;
use std::collections::BTreeMap;
use trie::versioned::NodeAddress;

/// Which versions are kept, and where the nodes of the newest begin.
#[derive(Debug)]
pub(crate) struct Floors {
    /// The first number whose versions are kept.
    pub(crate) first: u64,
    /// Below it all nodes are deleted, or are about to be.
    pub(crate) start: NodeAddress,
    /// For each number the lowest address of the versions that were added since the database was
    /// opened, with that number or a later one. Where it is the same, the last of them says so:
    /// both ascend.
    added: BTreeMap<u64, NodeAddress>,
}

impl Floors {
    pub(crate) fn of(database: &Database) -> Self {
        let start = database.nodes().start();
        Self { first: database.versions_from(), start, added: BTreeMap::new() }
    }

    /// Notes a version.
    pub(crate) fn add(&mut self, number: u64, sweep: &SweepState) {
        let floor = sweep.floor;
        if self.added.range(number..).next().is_some_and(|(_, later)| *later <= floor) {
            return;
        }
        while let Some((&earlier, _)) =
            self.added.range(..=number).next_back().filter(|(_, earlier)| **earlier >= floor)
        {
            self.added.remove(&earlier);
        }
        self.added.insert(number, floor);
    }

    /// Forgets the numbers below `cutoff`, whose canonical version has this floor, and says what
    /// the lowest address of the others is.
    ///
    /// Nothing on a branch has a lower floor than what it stands on. So this is the lowest of all
    /// but those that branch off before `cutoff`, of which the ones that were added before the
    /// database was opened, and not asked for since, are given up.
    pub(crate) fn cut(&mut self, cutoff: u64, floor: NodeAddress) -> NodeAddress {
        self.first = cutoff;
        self.added = self.added.split_off(&cutoff);
        self.start = self.added.values().next().map_or(floor, |lowest| floor.min(*lowest));
        self.start
    }
}

#[cfg(test)]
mod tests;
