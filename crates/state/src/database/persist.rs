use super::Database;
use super::pending::PendingChange;
use super::types::{Heads, LogStats, NewBlock, Persisted, Stats};
use crate::Error;
use crate::index::lookup::{self, CanonicalByNumber};
use crate::index::{self, INDEX, StoreState, StoredBlock, StoredHeads};
use crate::log::{FrameLocation, Log, NewCode};
use alloy_primitives::map::B256Map;
use alloy_primitives::{B256, Bytes};
use redb::WriteTransaction;
use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

/// The changes that one transaction of the index makes.
struct IndexUpdate {
    state: StoreState,
    heads: Heads,
    blocks: Vec<(B256, StoredBlock)>,
    codes: B256Map<FrameLocation>,
    canonical: CanonicalByNumber,
    meta: BTreeMap<String, Bytes>,
    done: Persisted,
}

impl Database {
    /// Makes durable all that was sealed, added and changed before the call. Readers and writers go
    /// on meanwhile.
    ///
    /// # Errors
    /// The system's. After one, all writes are refused until the store is opened again.
    pub fn persist(&self) -> Result<Persisted, Error> {
        let mut state = self.persisted();
        self.failing(|| self.persist_with(&mut state))
    }

    /// Durably drops all blocks above `number`, canonical or not. Heads above move to the canonical
    /// block with that number. Returns the number of canonical blocks dropped. Nothing else may use
    /// the store meanwhile. `progress` receives the fraction done, from 0 to 1.
    ///
    /// # Errors
    /// [`Error::NotCanonical`] when there is no such block, and those of
    /// [`persist`](Self::persist).
    pub fn unwind(&self, number: u64, progress: &mut dyn FnMut(f64)) -> Result<u64, Error> {
        let mut state = self.persisted();
        self.failing(|| self.persist_with(&mut state))?;
        let target = self.index.canonical(number)?.ok_or(Error::NotCanonical { number })?;
        let mut heads = self.heads().to_array();
        for head in heads.iter_mut().flatten() {
            if self.index.block(head)?.is_none_or(|block| block.number > number) {
                *head = target;
            }
        }
        let heads = StoredHeads(heads);
        // Its blocks would be run again with the next start. If the power fails now, they are lost
        // before what is above goes.
        self.failing(|| self.journal.clear())?;
        let mut after = StoreState::default();
        let dropped = self.failing(|| {
            self.index.write(|transaction| {
                after = state.clone();
                let uncount = |block: &_| self.uncount_witness(&mut after, block);
                let dropped = index::remove_above(transaction, number, uncount, progress)?;
                lookup::remove_blooms_above(transaction, number, state.sequence)?;
                index::put_state(transaction, &after, &heads)?;
                Ok(dropped)
            })
        })?;
        *state = after;
        self.waiting_mut().heads = heads.into();
        Ok(dropped)
    }

    /// The sizes of the store.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn stats(&self) -> Result<Stats, Error> {
        let [nodes, blocks, codes, witnesses] = self.persisted().logs;
        let [block_count, canonical_count, code_count] = self.index.counts()?;
        let log = |(start, end): (u64, u64), files: Vec<u64>| LogStats {
            files: files.len() as u64,
            kept_bytes: end - start,
            deleted_bytes: start,
        };
        let index_bytes = match self.directory.open(INDEX)? {
            Some(file) => file.len()?,
            None => 0,
        };
        Ok(Stats {
            nodes: log(nodes, self.nodes.segments().starts()),
            blocks: log(blocks, self.blocks.segments().starts()),
            codes: log(codes, self.codes.segments().starts()),
            witnesses: log(witnesses, self.witnesses.segments().starts()),
            block_count,
            canonical_count,
            code_count,
            index_bytes,
            unpersisted_blocks: self.waiting().block_count(),
            unpersisted_bytes: self.unpersisted_bytes(),
        })
    }

    pub(super) fn persisted(&self) -> MutexGuard<'_, StoreState> {
        // A panic leaves the state consistent, since it is changed last.
        self.persisted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses all later writes after a failure: a half-done write is not repeated.
    pub(super) fn failing<T>(&self, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        run().map_err(|error| {
            let error = self.directory.health.failed(error);
            self.room.wake();
            error
        })
    }

    fn persist_with(&self, state: &mut StoreState) -> Result<Persisted, Error> {
        self.directory.health.check()?;
        // The changes are read before the end of the nodes, so all nodes that they name are below.
        let changes = self.waiting().changes();
        if changes.is_empty() && self.nodes.end().offset() == state.logs[0].1 {
            return Ok(Persisted::default());
        }
        let nodes_end = self.nodes.write_waiting()?;
        let plan = self.write_frames(state, &changes)?;
        let mut plan = IndexUpdate { state: self.synced(plan.state, nodes_end)?, ..plan };
        for (_, change) in &changes {
            self.retain(&mut plan.state, change);
        }
        self.index.write(|transaction| plan.commit(transaction))?;
        let released = self.waiting_mut().persisted(plan.state.sequence);
        self.room.release(released);
        *state = plan.state;
        self.journal.persisted(plan.blocks.iter().map(|(hash, _)| *hash))?;
        self.nodes.remove_below(state.logs[0].0)?;
        self.witnesses.remove_below(state.logs[3].0)?;
        Ok(plan.done)
    }

    fn write_frames(
        &self,
        state: &StoreState,
        changes: &[(u64, PendingChange)],
    ) -> Result<IndexUpdate, Error> {
        let mut plan = IndexUpdate {
            state: state.clone(),
            heads: Heads::default(),
            blocks: Vec::new(),
            codes: B256Map::default(),
            canonical: CanonicalByNumber::new(),
            meta: BTreeMap::new(),
            done: Persisted::default(),
        };
        // Without a change of heads, the heads are those of the index.
        plan.heads = self.heads_before(changes)?;
        for (sequence, change) in changes {
            plan.state.sequence = *sequence;
            match change {
                PendingChange::Block(block) => self.write_block(&mut plan, *sequence, block)?,
                PendingChange::Codes(codes) => self.write_codes(&mut plan, codes)?,
                PendingChange::Witness { hash, witness } => {
                    self.write_witness(&mut plan, hash, witness)?
                }
                PendingChange::Canonical { changes, heads } => {
                    let changes = changes.iter().map(|(number, block)| (*number, block.clone()));
                    plan.canonical.extend(changes);
                    plan.heads = *heads;
                }
                PendingChange::Meta { key, value } => {
                    plan.meta.insert(index::engine_key(key), value.clone());
                }
                PendingChange::ForgetVersions(number) => {
                    let from = &mut plan.state.versions_from;
                    *from = (*from).max(*number);
                }
                PendingChange::DeleteNodes(_) | PendingChange::RetainWitnesses { .. } => {}
            }
        }
        Ok(plan)
    }

    fn heads_before(&self, changes: &[(u64, PendingChange)]) -> Result<Heads, Error> {
        let moves =
            |change: &(u64, PendingChange)| matches!(change.1, PendingChange::Canonical { .. });
        if changes.iter().any(moves) {
            return Ok(Heads::default());
        }
        let stored = self.index.state()?;
        stored
            .map(|(_, heads)| heads.into())
            .ok_or_else(|| self.index.contradiction("it has lost its state"))
    }

    fn write_block(
        &self,
        plan: &mut IndexUpdate,
        sequence: u64,
        block: &NewBlock,
    ) -> Result<(), Error> {
        self.write_codes(plan, &block.codes)?;
        let append = |log: &Log, bytes: &Option<Bytes>| {
            bytes.as_ref().map(|bytes| log.append(bytes)).transpose()
        };
        let stored = StoredBlock {
            number: block.number,
            parent_hash: block.parent_hash,
            version: block.version,
            floor: block.floor,
            sequence,
            block: self.blocks.append(&block.block)?,
            witness: append(&self.witnesses, &block.witness)?,
            touched: append(&self.witnesses, &block.touched)?,
            sweep: block.sweep.to_vec(),
        };
        if let Some(location) = stored.witness.or(stored.touched) {
            self.count_witness(&mut plan.state, location);
        }
        plan.done.blocks += 1;
        plan.done.last = Some((block.number, block.hash));
        plan.blocks.push((block.hash, stored));
        Ok(())
    }

    fn write_codes(&self, plan: &mut IndexUpdate, codes: &[NewCode]) -> Result<(), Error> {
        for code in codes {
            let hash = code.hash();
            if !plan.codes.contains_key(&hash) && self.index.code(&hash)?.is_none() {
                plan.codes.insert(hash, self.codes.append_code(code)?);
            }
        }
        Ok(())
    }

    /// Adds a witness to a block, unless that has been dropped meanwhile.
    fn write_witness(
        &self,
        plan: &mut IndexUpdate,
        hash: &B256,
        witness: &Bytes,
    ) -> Result<(), Error> {
        let planned = plan.blocks.iter().rposition(|(planned, _)| planned == hash);
        let stored = match planned {
            Some(index) => Some(plan.blocks.remove(index).1),
            None => self.index.block(hash)?,
        };
        if let Some(mut stored) = stored {
            let start = plan.state.logs[3].0;
            let parts = [stored.witness, stored.touched];
            let is_counted = parts.into_iter().flatten().any(|part| part.address >= start);
            let location = self.witnesses.append(witness)?;
            if !is_counted {
                self.count_witness(&mut plan.state, location);
            }
            stored.witness = Some(location);
            plan.blocks.push((*hash, stored));
        }
        Ok(())
    }

    /// Counts a block where its first part is that is kept: the limit is on blocks, not on parts.
    fn count_witness(&self, state: &mut StoreState, first: FrameLocation) {
        let (start, _) =
            self.witnesses.segments().containing(first.address).expect("just appended");
        match state.witnesses.last_mut() {
            Some((last, count)) if *last == start => *count += 1,
            _ => state.witnesses.push((start, 1)),
        }
    }

    /// Undoes that for a block that is dropped.
    fn uncount_witness(&self, state: &mut StoreState, block: &StoredBlock) {
        let start = state.logs[3].0;
        let parts = [block.witness, block.touched].into_iter().flatten().map(|part| part.address);
        let first = parts.filter(|address| *address >= start).min();
        let segment = first.and_then(|address| self.witnesses.segments().containing(address));
        let Some((segment, _)) = segment else { return };
        if let Some((_, count)) = state.witnesses.iter_mut().find(|(at, _)| *at == segment) {
            *count = count.saturating_sub(1);
        }
    }

    fn synced(&self, mut state: StoreState, nodes_end: u64) -> Result<StoreState, Error> {
        state.logs[0].1 = nodes_end;
        for (range, log) in
            state.logs[1..].iter_mut().zip([&self.blocks, &self.codes, &self.witnesses])
        {
            range.1 = log.sync()?;
        }
        Ok(state)
    }

    /// Moves the starts of logs, as far as this change wants it.
    fn retain(&self, state: &mut StoreState, change: &PendingChange) {
        match change {
            PendingChange::DeleteNodes(start) => {
                state.logs[0].0 = state.logs[0].0.max(*start);
            }
            PendingChange::RetainWitnesses { max_blocks, max_bytes } => {
                self.retain_witness_segments(state, *max_blocks, *max_bytes);
            }
            _ => {}
        }
    }

    fn retain_witness_segments(&self, state: &mut StoreState, max_blocks: u64, max_bytes: u64) {
        let (start, end) = &mut state.logs[3];
        let count_in = |from: u64, to: u64, counts: &[(u64, u64)]| -> u64 {
            let within = counts.iter().filter(|(at, _)| (from..to).contains(at));
            within.map(|(_, count)| count).sum()
        };
        let segments = self.witnesses.segments().starts();
        for next in segments.into_iter().filter(|at| at > start).collect::<Vec<_>>() {
            let too_many_bytes = *end - *start > max_bytes;
            if !too_many_bytes && count_in(next, *end, &state.witnesses) < max_blocks {
                break;
            }
            *start = next;
        }
        let start = *start;
        state.witnesses.retain(|(at, _)| *at >= start);
    }
}

impl IndexUpdate {
    fn commit(&self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        let from = lookup::begin(transaction)?;
        index::put_state(transaction, &self.state, &self.heads.into())?;
        lookup::put_canonical(transaction, &self.canonical, from, self.state.sequence)?;
        let mut blocks = transaction.open_table(index::BLOCKS)?;
        for (hash, block) in &self.blocks {
            blocks.insert(&hash.0, block.to_bytes().as_slice())?;
        }
        let mut codes = transaction.open_table(index::CODES)?;
        for (hash, location) in &self.codes {
            codes.insert(&hash.0, &index::location_bytes(*location))?;
        }
        let mut meta = transaction.open_table(index::META)?;
        for (key, value) in &self.meta {
            meta.insert(key.as_str(), value.as_ref())?;
        }
        Ok(())
    }
}
