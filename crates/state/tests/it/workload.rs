//! A scripted workload, and the plain maps that the store must agree with.

use alloy_primitives::{B256, Bloom, Bytes, keccak256};
use deponent_state::{
    Database, Disk, Error, Heads, JournalMode, NewBlock, NewCanonical, NewCode, Options, Retained,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use testing::disks::FaultDisk;
use trie::versioned::{NodeAddress, RecordSink, Records, Version};

/// Small enough that everything happens often.
pub(crate) const OPTIONS: Options = Options {
    cache_bytes: 64 << 10,
    code_cache_bytes: 8 << 10,
    index_cache_bytes: 256 << 10,
    segment_bytes: 3 * (16 << 10),
    witness_segment_bytes: 4 << 10,
    journal: JournalMode::Write,
    journal_file_bytes: 1 << 10,
};

/// A block, and the nodes that its version has.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) block: NewBlock,
    pub(crate) records: Vec<(NodeAddress, Vec<u8>)>,
}

/// A block's witness, or what it touched.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) hash: B256,
    pub(crate) is_touched: bool,
    pub(crate) bytes: Bytes,
    /// It came after its block, and is not persisted: it cannot be read yet.
    pub(crate) is_late: bool,
}

/// The expected content of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) blocks: BTreeMap<B256, Known>,
    /// In the order in which they were added.
    pub(crate) order: Vec<B256>,
    /// In the order in which they are written.
    pub(crate) parts: Vec<Part>,
    pub(crate) codes: BTreeMap<B256, Bytes>,
    pub(crate) canonical: BTreeMap<u64, B256>,
    pub(crate) heads: Heads,
    pub(crate) meta: BTreeMap<String, Bytes>,
    pub(crate) versions_from: u64,
    pub(crate) nodes_from: u64,
    pub(crate) witnesses_retained: bool,
}

/// A workload as it goes on. What a persist under way would leave is in `begun`.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) model: Model,
    pub(crate) acknowledged: Model,
    pub(crate) begun: Option<Model>,
    rng: StdRng,
    next: u64,
}

impl Workload {
    pub(crate) fn new(seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        let model = Model::default();
        Self { acknowledged: model.clone(), model, begun: None, rng, next: 0 }
    }

    /// A workload that continues on a store with the content of `model`, with blocks of its own.
    pub(crate) fn resumed(&self, model: &Model, seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        let (model, acknowledged) = (model.clone(), model.clone());
        Self { model, acknowledged, begun: None, rng, next: self.next }
    }

    /// Opens a store, takes `steps` steps, and stops at the first error.
    pub(crate) fn run(&mut self, disk: &FaultDisk, steps: u64) -> Result<(), Error> {
        let store = Database::open(disk.clone(), &OPTIONS)?;
        self.go_on(store, disk, steps)
    }

    /// Takes `steps` steps with an open store, and stops at the first error.
    pub(crate) fn go_on(
        &mut self,
        mut store: Database,
        disk: &FaultDisk,
        steps: u64,
    ) -> Result<(), Error> {
        for step in 0..steps {
            self.step(&store, step)?;
            if step % 19 == 18 {
                drop(store);
                self.model = self.acknowledged.clone();
                store = Database::open(disk.clone(), &OPTIONS)?;
            }
        }
        Ok(())
    }

    pub(crate) fn step(&mut self, store: &Database, step: u64) -> Result<(), Error> {
        match step % 10 {
            3 | 6 | 9 => self.persist(store),
            5 => self.prune(store),
            8 if step % 20 == 8 => self.unwind(store),
            _ => {
                if self.rng.random_bool(0.3) {
                    self.late_witness(store)?;
                }
                if self.rng.random_bool(0.2) {
                    self.late_codes(store)?;
                }
                let block = self.block(store)?;
                if !self.rng.random_bool(0.2) {
                    self.make_head(store, block)?;
                }
                Ok(())
            }
        }
    }

    /// Adds a block, on the head or on one of the latest blocks.
    pub(crate) fn block(&mut self, store: &Database) -> Result<B256, Error> {
        self.next += 1;
        let parent = match self.rng.random_range(0..4) {
            0 => self.model.order.iter().rev().nth(self.rng.random_range(0..3)).copied(),
            _ => self.model.heads.head,
        };
        let parent = parent.filter(|hash| self.model.blocks.contains_key(hash));
        let parent = parent.or(self.model.order.last().copied());
        let hash = keccak256([&self.next.to_le_bytes()[..], b"block"].concat());
        let records = self.records(store)?;
        let codes = self.codes();
        let first = records.first().map(|(at, _)| *at);
        let last = records.last().map(|(at, _)| *at);
        let block = NewBlock {
            hash,
            number: parent.map_or(0, |parent| self.model.blocks[&parent].block.number + 1),
            parent_hash: parent.unwrap_or_default(),
            version: Version { root: keccak256(hash), address: last.unwrap_or(NodeAddress::NONE) },
            floor: first.unwrap_or(NodeAddress::NONE),
            sweep: self.bytes(0, 40),
            block: self.bytes(1, 600),
            codes: with_tables(codes),
            witness: self.rng.random_bool(0.7).then(|| self.bytes(1, 3000)),
            touched: self.rng.random_bool(0.5).then(|| self.bytes(0, 900)),
        };
        store.add(block.clone())?;
        self.model.codes.extend(block.codes.iter().map(|code| (code.hash(), code.code().clone())));
        self.model.order.retain(|known| *known != hash);
        self.model.order.push(hash);
        self.model.parts.retain(|part| part.hash != hash);
        for (is_touched, part) in [(false, &block.witness), (true, &block.touched)] {
            let Some(bytes) = part.clone() else { continue };
            self.model.parts.push(Part { hash, is_touched, bytes, is_late: false });
        }
        self.model.blocks.insert(hash, Known { block, records });
        Ok(hash)
    }

    /// Adds a witness to one of the latest blocks that have none, or to one that is not there.
    fn late_witness(&mut self, store: &Database) -> Result<(), Error> {
        let bytes = self.bytes(1, 3000);
        if self.rng.random_bool(0.1) {
            return store.add_witness(keccak256(&bytes), bytes);
        }
        let has_one = |hash: &&B256| {
            !self.model.parts.iter().any(|part| part.hash == **hash && !part.is_touched)
        };
        let without: Vec<_> = self.model.order.iter().rev().take(9).filter(has_one).collect();
        if without.is_empty() {
            return Ok(());
        }
        let hash = *without[self.rng.random_range(0..without.len())];
        store.add_witness(hash, bytes.clone())?;
        self.model.parts.push(Part { hash, is_touched: false, bytes, is_late: true });
        Ok(())
    }

    fn late_codes(&mut self, store: &Database) -> Result<(), Error> {
        let codes = self.codes();
        store.add_codes(with_tables(codes.clone()))?;
        self.model.codes.extend(codes);
        Ok(())
    }

    fn records(&mut self, store: &Database) -> Result<Vec<(NodeAddress, Vec<u8>)>, Error> {
        if self.rng.random_bool(0.1) {
            // A block that turned out to be invalid.
            let mut dropped = store.batch();
            dropped.append(&[0xee; 300]);
        }
        let count = self.rng.random_range(0..60);
        let mut batch = store.batch();
        let mut records = Vec::new();
        for _ in 0..count {
            let record = self.bytes(1, 900).to_vec();
            records.push((batch.append(&record), record));
        }
        batch.seal()?;
        Ok(records)
    }

    fn codes(&mut self) -> Vec<(B256, Bytes)> {
        let count = self.rng.random_range(0..3);
        (0..count).map(|_| self.code()).collect()
    }

    fn code(&mut self) -> (B256, Bytes) {
        // Of some codes there are many copies.
        let code = match self.rng.random_range(0..3) {
            0 => Bytes::from(vec![7; self.rng.random_range(1..20)]),
            _ => self.bytes(1, 2000),
        };
        (keccak256(&code), code)
    }

    fn bytes(&mut self, from: usize, to: usize) -> Bytes {
        let mut bytes = vec![0; self.rng.random_range(from..to)];
        self.rng.fill(&mut bytes[..]);
        bytes.into()
    }

    pub(crate) fn make_head(&mut self, store: &Database, head: B256) -> Result<(), Error> {
        let mut changes = BTreeMap::new();
        let mut at = Some(head);
        while let Some(known) = at.and_then(|hash| self.model.blocks.get(&hash)) {
            let (hash, number) = (known.block.hash, known.block.number);
            if self.model.canonical.get(&number) == Some(&hash) {
                break;
            }
            changes.insert(number, Some(hash));
            at = Some(known.block.parent_hash);
        }
        let number = self.model.blocks[&head].block.number;
        let above = self.model.canonical.range(number + 1..);
        changes.extend(above.map(|(&number, _)| (number, None)));
        let finalized = number.checked_sub(4).and_then(|at| {
            changes.get(&at).copied().flatten().or(self.model.canonical.get(&at).copied())
        });
        let genesis = self.model.heads.genesis.or(Some(self.model.order[0]));
        let heads = Heads { genesis, head: Some(head), safe: finalized, finalized };
        let changes: Vec<_> = changes.into_iter().collect();
        let new = |(number, hash): &(u64, Option<B256>)| (*number, hash.map(new_canonical));
        store.set_canonical(changes.iter().map(new), heads)?;
        for (number, hash) in changes {
            match hash {
                Some(hash) => self.model.canonical.insert(number, hash),
                None => self.model.canonical.remove(&number),
            };
        }
        self.model.heads = heads;
        let value = self.bytes(0, 100);
        store.set_meta("note", value.clone())?;
        self.model.meta.insert("note".into(), value);
        Ok(())
    }

    fn prune(&mut self, store: &Database) -> Result<(), Error> {
        store.retain_witnesses(4, 24 << 10)?;
        self.model.witnesses_retained = true;
        let count = self.model.order.len();
        if count > 8 {
            let oldest = &self.model.blocks[&self.model.order[count - 6]];
            let floor = oldest.block.floor;
            let from = self.model.versions_from.max(oldest.block.number);
            store.forget_versions(from)?;
            self.model.versions_from = from;
            store.delete_segments_below(floor)?;
            let start = floor.offset() / OPTIONS.segment_bytes * OPTIONS.segment_bytes;
            self.model.nodes_from = self.model.nodes_from.max(start);
        }
        Ok(())
    }

    pub(crate) fn persist(&mut self, store: &Database) -> Result<(), Error> {
        let mut after = self.model.clone();
        after.parts.iter_mut().for_each(|part| part.is_late = false);
        self.begun = Some(after);
        store.persist()?;
        self.acknowledged = self.begun.take().expect("set above");
        self.model = self.acknowledged.clone();
        Ok(())
    }

    fn unwind(&mut self, store: &Database) -> Result<(), Error> {
        let Some((&top, _)) = self.model.canonical.last_key_value() else { return Ok(()) };
        self.persist(store)?;
        let number = top.saturating_sub(1);
        let mut after = self.model.clone();
        after.unwind(number);
        self.begun = Some(after);
        store.unwind(number, &mut |_| ())?;
        self.acknowledged = self.begun.take().expect("set above");
        self.model = self.acknowledged.clone();
        Ok(())
    }
}

impl Model {
    fn unwind(&mut self, number: u64) {
        let target = self.canonical[&number];
        let blocks = std::mem::take(&mut self.blocks);
        let kept = |block: &Known| block.block.number <= number;
        self.blocks = blocks.into_iter().filter(|(_, block)| kept(block)).collect();
        self.order.retain(|hash| self.blocks.contains_key(hash));
        self.canonical.retain(|at, _| *at <= number);
        let moved = |head: Option<B256>| {
            head.map(|hash| if self.blocks.contains_key(&hash) { hash } else { target })
        };
        let Heads { genesis, head, safe, finalized } = self.heads;
        self.heads = Heads {
            genesis: moved(genesis),
            head: moved(head),
            safe: moved(safe),
            finalized: moved(finalized),
        };
    }

    /// Compares everything. The error is what differs; [`Difference::Unread`] when the store could
    /// not answer.
    pub(crate) fn check(&self, store: &Database) -> Result<(), Difference> {
        same("heads", &store.heads(), &self.heads)?;
        for (key, value) in &self.meta {
            same("meta", &store.meta(key)?, &Some(value.clone()))?;
        }
        let top = self.blocks.values().map(|known| known.block.number).max().unwrap_or(0);
        for number in 0..top + 3 {
            let expected = self.canonical.get(&number).copied();
            same("canonical", &store.canonical(number)?, &expected)?;
        }
        self.check_found(store)?;
        for (hash, code) in &self.codes {
            same("code", &store.code(hash)?, &Some(code.clone()))?;
        }
        for hash in &self.order {
            self.check_block(store, &self.blocks[hash])?;
        }
        self.check_witnesses(store)
    }

    /// Canonical blocks are found by their transactions, and by their blooms.
    fn check_found(&self, store: &Database) -> Result<(), Difference> {
        let all = || self.canonical.iter().map(|(number, hash)| (*number, *hash));
        let even = |bloom: &Bloom| bloom.0[0].is_multiple_of(2);
        let found = store.blocks_by_bloom(0..=u64::MAX, &even)?;
        let expected: Vec<_> = all().filter(|(_, hash)| even(&bloom(hash))).collect();
        same("blooms", &found, &Some(expected))?;
        for (number, hash) in all() {
            for transaction in transactions(&hash) {
                let found = store.transaction_blocks(&transaction)?;
                same("transaction", &found.contains(&number), &true)?;
            }
        }
        Ok(())
    }

    fn check_block(&self, store: &Database, known: &Known) -> Result<(), Difference> {
        let Known { block, records } = known;
        let entry = store.entry(&block.hash)?.ok_or(Difference::Wrong("no entry".into()))?;
        same("number", &entry.number, &block.number)?;
        same("parent", &entry.parent_hash, &block.parent_hash)?;
        same("sweep", &entry.sweep, &block.sweep)?;
        same("floor", &entry.floor, &block.floor)?;
        same("block", &store.block(&block.hash)?, &Some(block.block.clone()))?;
        let is_whole = block.version.address.is_none() || block.floor.offset() >= self.nodes_from;
        let is_kept = block.number >= self.versions_from && is_whole;
        same("version", &entry.version, &is_kept.then_some(block.version))?;
        for (at, record) in records.iter().filter(|_| is_kept) {
            let found = store.nodes().record(*at);
            let found = found.map_err(|error| Difference::Unread(error.to_string()))?;
            same("record", &&found.as_ref()[..record.len()], &&record[..])?;
        }
        Ok(())
    }

    /// The newest witness is there, and none is gone after one that is there.
    fn check_witnesses(&self, store: &Database) -> Result<(), Difference> {
        let found = |hash: &B256, is_touched: bool| match is_touched {
            false => store.witness(hash),
            true => store.touched(hash),
        };
        let mut there: BTreeSet<(B256, bool)> = BTreeSet::new();
        let mut may_be_gone = self.witnesses_retained;
        for Part { hash, is_touched, bytes, is_late } in &self.parts {
            if *is_late || !self.blocks.contains_key(hash) {
                continue;
            }
            there.insert((*hash, *is_touched));
            let found = found(hash, *is_touched)?;
            if found == Retained::Deleted && may_be_gone {
                continue;
            }
            same("witness", &found, &Retained::Present(bytes.clone()))?;
            may_be_gone = false;
        }
        for (hash, is_touched) in self.order.iter().flat_map(|hash| [(*hash, false), (*hash, true)])
        {
            if !there.contains(&(hash, is_touched)) {
                same("witness", &found(&hash, is_touched)?, &Retained::Never)?;
            }
        }
        Ok(())
    }
}

/// Why a store is not as the model says.
#[derive(Debug)]
pub(crate) enum Difference {
    /// It gave another answer: never to be forgiven, unless another model is meant.
    Wrong(String),
    /// It gave an error.
    Unread(String),
}

impl From<Error> for Difference {
    fn from(error: Error) -> Self {
        Self::Unread(error.to_string())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), Difference> {
    if found == expected {
        return Ok(());
    }
    Err(Difference::Wrong(format!("{what}: found {found:?}, expected {expected:?}")))
}

/// The log bloom that a block has.
fn bloom(hash: &B256) -> Bloom {
    Bloom::from_slice(&keccak256(hash).0.repeat(8))
}

fn transactions(hash: &B256) -> impl Iterator<Item = B256> {
    (0..hash[31] % 4).map(|index| keccak256([hash.as_slice(), &[index]].concat()))
}

/// A block as it becomes canonical.
pub(crate) fn new_canonical(hash: B256) -> NewCanonical {
    NewCanonical::new(hash, bloom(&hash), transactions(&hash))
}

/// These codes as the store takes them.
pub(crate) fn with_tables(codes: impl IntoIterator<Item = (B256, Bytes)>) -> Vec<NewCode> {
    codes.into_iter().map(|(hash, code)| NewCode::new(hash, code.clone(), table(&code))).collect()
}

/// A table for a code, which differs from those of other codes.
pub(crate) fn table(code: &[u8]) -> Bytes {
    code.iter().step_by(8).map(|byte| !byte).collect()
}

/// Opens a copy of these files.
pub(crate) fn open(disk: impl Disk + 'static) -> Result<Database, Error> {
    Database::open(disk, &OPTIONS)
}
