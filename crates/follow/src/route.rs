//! The hashes of a gap.

use std::collections::VecDeque;

use alloy_primitives::B256;

/// Hashes of blocks that follow each other, and of the one before them: 32 bytes a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Route {
    /// The number of the first.
    lowest: u64,
    hashes: VecDeque<B256>,
    /// The parent of the first.
    parent: B256,
}

impl Route {
    /// Of no block yet, before this one.
    pub(crate) const fn to(number: u64, hash: B256) -> Self {
        Self { lowest: number.saturating_add(1), hashes: VecDeque::new(), parent: hash }
    }

    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The number of the first.
    pub(crate) const fn lowest(&self) -> u64 {
        self.lowest
    }

    /// The number of the last.
    pub(crate) fn highest(&self) -> u64 {
        (self.lowest + self.len() as u64).saturating_sub(1)
    }

    /// Number and hash of the block before the first.
    pub(crate) const fn wanted(&self) -> (u64, B256) {
        (self.lowest.saturating_sub(1), self.parent)
    }

    /// Takes the wanted block in, whose parent is this.
    pub(crate) fn push(&mut self, parent: B256) {
        self.hashes.push_front(self.parent);
        self.lowest = self.lowest.saturating_sub(1);
        self.parent = parent;
    }

    pub(crate) fn at(&self, number: u64) -> Option<B256> {
        let place = usize::try_from(number.checked_sub(self.lowest)?).ok()?;
        self.hashes.get(place).copied()
    }

    /// The hashes of so many blocks from this number on, or as many as there are.
    pub(crate) fn range(&self, from: u64, count: usize) -> Vec<B256> {
        (from..).map_while(|number| self.at(number)).take(count).collect()
    }

    /// Puts those up to the wanted one of another route before these. Whether it has that one.
    pub(crate) fn join(&mut self, other: &mut Self) -> bool {
        let (number, hash) = self.wanted();
        if other.at(number) != Some(hash) {
            return false;
        }
        let mut below = std::mem::take(other);
        below.hashes.truncate((number - below.lowest + 1) as usize);
        below.hashes.append(&mut self.hashes);
        *self = below;
        true
    }

    /// Drops those before this number, which have run.
    pub(crate) fn drop_before(&mut self, number: u64) {
        while self.lowest < number
            && let Some(hash) = self.hashes.pop_front()
        {
            self.parent = hash;
            self.lowest += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(branch: u8, number: u64) -> B256 {
        let mut hash = B256::with_last_byte(number as u8);
        hash[0] = branch;
        hash
    }

    /// From the block `to` of a branch down to `from`; the branch leaves branch 0 after `fork`.
    fn route(branch: u8, fork: u64, to: u64, from: u64) -> Route {
        let at = |number| hash(if number > fork { branch } else { 0 }, number);
        let mut route = Route::to(to, at(to));
        (from..=to).rev().for_each(|number| route.push(at(number - 1)));
        route
    }

    #[test]
    fn a_route_grows_downwards_and_shrinks_from_below() {
        let mut route = route(0, 0, 9, 5);
        assert_eq!((route.lowest(), route.highest(), route.len()), (5, 9, 5));
        assert_eq!(route.wanted(), (4, hash(0, 4)));
        assert_eq!(route.at(7), Some(hash(0, 7)));
        assert_eq!((route.at(4), route.at(10)), (None, None));
        assert_eq!(route.range(8, 5), [hash(0, 8), hash(0, 9)]);
        route.drop_before(8);
        assert_eq!((route.lowest(), route.wanted()), (8, (7, hash(0, 7))));
        route.drop_before(20);
        assert_eq!((route.len(), route.wanted()), (0, (9, hash(0, 9))));
    }

    #[test]
    fn a_reorganisation_keeps_the_hashes_that_both_have() {
        let mut old = route(0, 0, 20, 5);
        let mut new = route(1, 12, 25, 14);
        assert!(!new.clone().join(&mut old.clone()), "they still differ at 13");
        new.push(hash(0, 12));
        assert!(new.join(&mut old));
        assert_eq!(new, route(1, 12, 25, 5));
        assert_eq!(old, Route::default());
    }
}
