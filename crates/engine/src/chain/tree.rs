//! Floor 2. The tree of valid blocks and its heads.

use crate::chain::choice::stored_choice;
use crate::chain::record::BlockRecord;
use crate::chain::stored::stored_link;
use crate::chain::verdict::Verdict;
use crate::{Error, limits};
use alloy_primitives::B256;
use alloy_primitives::map::B256Map;
use state::Database;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The chain's heads, by hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// The first block.
    pub genesis: B256,
    /// The head of the canonical chain.
    pub head: B256,
    /// The safe block, once the consensus layer has named one.
    pub safe: Option<B256>,
    /// The finalized block, once the consensus layer has named one.
    pub finalized: Option<B256>,
}

impl Heads {
    /// The heads of a database, `None` of one that is empty.
    pub(crate) fn from_stored(heads: state::Heads) -> Option<Self> {
        let state::Heads { genesis, head, safe, finalized } = heads;
        Some(Self { genesis: genesis?, head: head?, safe, finalized })
    }

    pub(crate) fn to_stored(self) -> state::Heads {
        let Self { genesis, head, safe, finalized } = self;
        state::Heads { genesis: Some(genesis), head: Some(head), safe, finalized }
    }
}

/// Every valid block, any number of branches, and which of them is canonical: the database, and
/// before it what is too new for it.
#[derive(Debug)]
pub(crate) struct BlockTree {
    database: Arc<Database>,
    recent: Recent,
    /// Number and parent of the newest blocks, recent or not: the fork choice follows them, and is
    /// not to wait for the disk.
    links: Bounded<(u64, B256)>,
    /// The newest blocks that were validated since the tree was opened, in that order.
    validated: Bounded<()>,
    /// Changes of the canonical chain that the database does not have yet; `None` takes a number
    /// away.
    canonical: BTreeMap<u64, Option<B256>>,
    /// The newest of the canonical chain as the database has it.
    stored_canonical: BTreeMap<u64, B256>,
    /// How often canonical blocks were taken back.
    pub(crate) reorgs: u64,
    /// The number of the last fork choice. They are counted over the life of the database.
    pub(crate) choices: u64,
    /// The highest number of a block that was validated since the last fork choice.
    pub(crate) newest: u64,
    /// The head that the last fork choice named, where it was not known.
    pub(crate) unknown_head: Option<B256>,
    /// Whether `canonical` or `heads` have changed since the database was told.
    is_changed: bool,
    pub(crate) heads: Heads,
    /// The verdicts on blocks that are invalid, the newest of them.
    pub(crate) invalid: Bounded<Verdict>,
}

/// How a new head changes the canonical chain.
#[derive(Debug)]
pub(crate) struct Branching {
    /// The last number whose canonical block stays.
    pub(crate) last_kept: u64,
    /// The blocks that are not canonical any more, the newest first.
    pub(crate) left: Vec<B256>,
    /// Those that are now, the oldest first.
    pub(crate) joined: Vec<B256>,
}

/// The canonical chain as it goes to the database.
#[derive(Debug)]
pub(crate) struct CanonicalChanges {
    pub(crate) numbers: Vec<(u64, Option<B256>)>,
    pub(crate) heads: Heads,
    /// The number of the fork choice that they are of.
    pub(crate) choice: u64,
}

impl BlockTree {
    /// The tree that the database holds. The newest links are read at once.
    pub(crate) fn new(database: Arc<Database>, heads: Heads) -> Result<Self, Error> {
        let mut newest = Vec::new();
        let mut next = heads.head;
        while newest.len() < limits::LINKS
            && let Some(link) = stored_link(&database, &next)?
        {
            newest.push((next, link));
            next = link.1;
        }
        let mut links = Bounded::new(limits::LINKS);
        newest.iter().rev().for_each(|(hash, link)| links.insert(*hash, *link));
        let journaled = database.journal().last_choice().map_or(0, |choice| choice.number);
        Ok(Self {
            choices: stored_choice(&database)?.max(journaled),
            database,
            recent: Recent::default(),
            links,
            validated: Bounded::new(limits::LINKS),
            canonical: BTreeMap::new(),
            stored_canonical: newest.iter().map(|(hash, (number, _))| (*number, *hash)).collect(),
            reorgs: 0,
            newest: 0,
            unknown_head: None,
            is_changed: false,
            heads,
            invalid: Bounded::new(limits::INVALID_BLOCKS),
        })
    }

    /// A valid block, if it is one of the newest; those that are not sealed all are.
    pub(crate) fn recent(&self, hash: &B256) -> Option<&Arc<BlockRecord>> {
        self.recent.by_hash.get(hash)
    }

    /// Number and parent of a valid block.
    pub(crate) fn link(&self, hash: &B256) -> Result<Option<(u64, B256)>, Error> {
        match self.recent_link(hash) {
            Some(link) => Ok(Some(link)),
            None => stored_link(&self.database, hash),
        }
    }

    /// The same of one of the newest.
    pub(crate) fn recent_link(&self, hash: &B256) -> Option<(u64, B256)> {
        let recent = self.recent(hash).map(|record| record.link());
        recent.or_else(|| self.links.get(hash).copied())
    }

    /// As [`link`](Self::link), of a block that must be there.
    pub(crate) fn known_link(&self, hash: &B256) -> Result<(u64, B256), Error> {
        self.link(hash)?.ok_or(Error::UnknownBlock(*hash))
    }

    /// Whether a block on `parent` is certainly not there, which is known of most new ones without
    /// asking the database: it would have been validated after `parent` was.
    pub(crate) fn is_new(&self, hash: &B256, parent: &B256) -> bool {
        self.validated.get(parent).is_some() && self.validated.get(hash).is_none()
    }

    /// Adds a block that was validated just now, as [`insert`](Self::insert) does.
    #[must_use]
    pub(crate) fn add_validated(&mut self, record: Arc<BlockRecord>) -> Vec<Arc<BlockRecord>> {
        self.validated.insert(record.hash(), ());
        self.newest = self.newest.max(record.number());
        self.insert(record)
    }

    /// Adds a valid block that was known before. What this gives is not kept any more: freeing it
    /// takes a while, and is better done when the tree is not locked.
    #[must_use]
    pub(crate) fn insert(&mut self, record: Arc<BlockRecord>) -> Vec<Arc<BlockRecord>> {
        self.links.insert(record.hash(), record.link());
        self.recent.insert(record)
    }

    /// Puts another record of a block in the place of the one in memory, if there is one.
    #[must_use]
    pub(crate) fn replace(&mut self, record: Arc<BlockRecord>) -> Option<Arc<BlockRecord>> {
        let place = self.recent.by_hash.get_mut(&record.hash())?;
        Some(std::mem::replace(place, record))
    }

    pub(crate) fn canonical_hash(&self, number: u64) -> Result<Option<B256>, Error> {
        match self.newest_canonical(number)? {
            Some(known) => Ok(known),
            None => Ok(self.database.canonical(number)?),
        }
    }

    /// The same without a look into the database; `None` when it takes one.
    pub(crate) fn newest_canonical(&self, number: u64) -> Result<Option<Option<B256>>, Error> {
        if let Some(hash) = self.canonical.get(&number) {
            return Ok(Some(*hash));
        }
        match self.stored_canonical.get(&number) {
            Some(hash) => Ok(Some(Some(*hash))),
            None if number > self.known_link(&self.heads.head)?.0 => Ok(Some(None)),
            None => Ok(None),
        }
    }

    /// Whether `ancestor` is `descendant` or on its branch.
    pub(crate) fn is_ancestor(&self, ancestor: &B256, descendant: &B256) -> Result<bool, Error> {
        let (Some((number, _)), Some(mut link)) = (self.link(ancestor)?, self.link(descendant)?)
        else {
            return Ok(false);
        };
        let mut hash = *descendant;
        while link.0 > number {
            if self.canonical_hash(link.0)? == Some(hash) {
                return Ok(self.canonical_hash(number)? == Some(*ancestor));
            }
            hash = link.1;
            link = self.known_link(&hash)?;
        }
        Ok(hash == *ancestor)
    }

    /// Whether a block of a gap may be made the head: one that stands on the head, or one of
    /// another branch while the last fork choice names this unknown head, which is on it.
    pub(crate) fn may_advance(&self, hash: &B256, chosen: Option<B256>) -> Result<bool, Error> {
        let head = &self.heads.head;
        let is_chosen = chosen.is_some() && chosen == self.unknown_head;
        Ok(!self.is_ancestor(hash, head)? && (is_chosen || self.is_ancestor(head, hash)?))
    }

    /// Makes the branch of `hash` the canonical chain.
    pub(crate) fn set_head(&mut self, hash: B256) -> Result<Branching, Error> {
        let (number, parent) = self.known_link(&hash)?;
        let (last, _) = self.known_link(&self.heads.head)?;
        let mut joined = Vec::new();
        let mut next = (number, hash, parent);
        while self.canonical_hash(next.0)? != Some(next.1) {
            joined.push(next.1);
            let (number, parent) = self.known_link(&next.2)?;
            next = (number, next.2, parent);
        }
        joined.reverse();
        let last_kept = next.0;
        let left = (last_kept + 1..=last).rev().map(|number| self.canonical_hash(number));
        let left: Vec<_> = left.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        self.canonical.extend((number + 1..=last).map(|number| (number, None)));
        self.canonical.extend((last_kept + 1..).zip(joined.iter().copied().map(Some)));
        self.reorgs += u64::from(last_kept < last);
        self.heads.head = hash;
        (self.newest, self.unknown_head) = (0, None);
        self.is_changed = true;
        Ok(Branching { last_kept, left, joined })
    }

    /// Makes a block, whose parent is not there, all of the canonical chain.
    pub(crate) fn begin(&mut self, hash: B256) -> Result<Branching, Error> {
        let number = self.known_link(&hash)?.0;
        let first = self.known_link(&self.heads.genesis)?.0;
        let last = self.known_link(&self.heads.head)?.0;
        let left = (first..=last).rev().map(|number| self.canonical_hash(number));
        let left: Vec<_> = left.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        self.canonical.extend((first..=last).map(|number| (number, None)));
        self.canonical.insert(number, Some(hash));
        self.reorgs += 1;
        self.heads = Heads { genesis: hash, head: hash, safe: None, finalized: None };
        (self.newest, self.unknown_head) = (0, None);
        self.is_changed = true;
        Ok(Branching { last_kept: number, left, joined: vec![hash] })
    }

    /// Names the safe and the finalized block.
    pub(crate) fn set_safe(&mut self, safe: Option<B256>, finalized: Option<B256>) {
        (self.heads.safe, self.heads.finalized) = (safe, finalized);
        self.is_changed = true;
    }

    /// Changes of the canonical chain that the database does not have, `None` without any.
    pub(crate) fn canonical_changes(&self) -> Option<CanonicalChanges> {
        let numbers = || self.canonical.iter().map(|(number, hash)| (*number, *hash)).collect();
        let (heads, choice) = (self.heads, self.choices);
        self.is_changed.then(|| CanonicalChanges { numbers: numbers(), heads, choice })
    }

    /// The same of these numbers, ascending. From the first of them on each number up to the head
    /// is changed.
    pub(crate) fn changes_in(&self, numbers: RangeInclusive<u64>) -> Vec<(u64, Option<B256>)> {
        self.canonical.range(numbers).map(|(number, hash)| (*number, *hash)).collect()
    }

    /// Forgets changes that the database has been told.
    pub(crate) fn forget_changes(&mut self, stored: &CanonicalChanges) {
        for (number, hash) in &stored.numbers {
            match hash {
                Some(hash) => self.stored_canonical.insert(*number, *hash),
                None => self.stored_canonical.remove(number),
            };
            if self.canonical.get(number) == Some(hash) {
                self.canonical.remove(number);
            }
        }
        while self.stored_canonical.len() > limits::LINKS {
            self.stored_canonical.pop_first();
        }
        self.is_changed = !self.canonical.is_empty() || self.heads != stored.heads;
    }
}

/// The newest blocks, under a byte budget. Blocks that are not sealed stay, however many they are:
/// the database does not have them.
#[derive(Debug, Default)]
struct Recent {
    by_hash: B256Map<Arc<BlockRecord>>,
    order: VecDeque<B256>,
    bytes: usize,
}

impl Recent {
    /// Gives what is not among the newest any more.
    fn insert(&mut self, record: Arc<BlockRecord>) -> Vec<Arc<BlockRecord>> {
        let (hash, bytes) = (record.hash(), record.bytes());
        let mut left = Vec::new();
        if self.by_hash.contains_key(&hash) {
            return left;
        }
        self.by_hash.insert(hash, record);
        self.bytes += bytes;
        self.order.push_back(hash);
        while self.bytes > limits::RECENT_BYTES && self.order.len() > 1 {
            let oldest = &self.by_hash[&self.order[0]];
            if !oldest.seal.is_kept() {
                break;
            }
            self.bytes -= oldest.bytes();
            left.extend(self.by_hash.remove(&self.order.pop_front().expect("not empty")));
        }
        left
    }
}

/// A map that forgets its oldest entries.
#[derive(Debug)]
pub(crate) struct Bounded<T> {
    entries: B256Map<T>,
    order: VecDeque<B256>,
    capacity: usize,
}

impl<T> Bounded<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { entries: B256Map::default(), order: VecDeque::new(), capacity }
    }

    pub(crate) fn get(&self, hash: &B256) -> Option<&T> {
        self.entries.get(hash)
    }

    pub(crate) fn get_mut(&mut self, hash: &B256) -> Option<&mut T> {
        self.entries.get_mut(hash)
    }

    pub(crate) fn insert(&mut self, hash: B256, value: T) {
        if self.entries.insert(hash, value).is_none() {
            self.order.push_back(hash);
        }
        while self.order.len() > self.capacity {
            let oldest = self.order.pop_front().expect("not empty");
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
