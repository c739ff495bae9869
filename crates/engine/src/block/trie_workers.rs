//! Floor 4. Threads that tend the tries of the block that runs.
//!
//! Each has some of the block's shards for as long as the block runs. It is told in chunks which
//! keys were read, so that it loads their paths (which are the witness), and which values each
//! transaction left, so that it sets them; with nothing else to do it hashes ahead. Keys that it
//! has not come to when the block has ended are left to all threads.

use crate::limits;
use crate::read::listed::AccessListState;
use crate::threads::affinity::Affinity;
use crate::threads::joined::JoinedThread;
use alloy_primitives::{B256, U256};
use execution::{AccessList, ListedAccount};
use state::NodeStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use trie::keccak::keccak256_many;
use trie::versioned::{Shard, StateKey};
use trie::{AccountInfo, EMPTY_ROOT_HASH, Error as TrieError, hashed_slot};
use witness::Change;

/// The shards of one block, all or some, each with its place among them.
type Shards = Vec<(usize, Shard<NodeStore>)>;

/// An account and its slots as a transaction has left them.
type RanAccount = (AccountInfo, Vec<(U256, U256)>);

/// Something to do with an account, or with a slot of it.
#[derive(Debug)]
struct TrieTask {
    key: StateKey,
    /// What a transaction has left of the account; else the block has read the key. In a box, as
    /// there are few of these and many of the others.
    ran: Option<Box<RanAccount>>,
}

impl TrieTask {
    /// The key, if it is to be read.
    fn key(&self) -> Option<StateKey> {
        self.ran.is_none().then_some(self.key)
    }
}

enum Message {
    /// A block begins: these shards are the worker's, of so many in all.
    Begin(Shards, usize, IsWanted),
    /// The keys that the block will read and the values that it will leave, if its list is right.
    List(Arc<AccessListState>),
    /// The block's reads and writes, in order.
    Chunk(Vec<TrieTask>),
    /// The block has ended, well or not: the shards go back.
    End(Sender<Result<DoneShards, TrieError>>),
}

/// Whether a block waits for its shards: tasks that have not been done by then are left undone.
type IsWanted = Arc<AtomicBool>;

/// The shards that a worker gives back at the end of a block.
#[derive(Default)]
struct DoneShards {
    shards: Shards,
    /// Keys that the block has read, and the worker has not.
    left: Vec<StateKey>,
}

/// The threads. Dropping them lets them finish what they were given.
#[derive(Debug)]
pub(crate) struct TrieWorkers {
    workers: Vec<TrieWorker>,
    affinity: Arc<Affinity>,
}

/// A thread that does what it is sent, in order.
#[derive(Debug)]
struct TrieWorker {
    sender: Option<Sender<Message>>,
    _thread: JoinedThread,
}

impl TrieWorkers {
    /// Starts `count` threads, one at least.
    pub(crate) fn start(count: usize, affinity: Arc<Affinity>) -> Self {
        let start = |index| TrieWorker::start(format!("trie-{index}"), affinity.clone());
        Self { workers: (0..count.max(1)).map(start).collect(), affinity }
    }

    /// Hands the shards out.
    pub(crate) fn begin(
        &self,
        shards: Vec<Shard<NodeStore>>,
        chunk_size: usize,
    ) -> TrieSession<'_> {
        let (workers, count) = (self.workers.len(), shards.len());
        let mut parts: Vec<Shards> = (0..workers).map(|_| Vec::new()).collect();
        for (index, shard) in shards.into_iter().enumerate() {
            parts[index % workers].push((index, shard));
        }
        let is_wanted = IsWanted::default();
        self.affinity.keep_off();
        for (worker, part) in self.workers.iter().zip(parts) {
            worker.send(Message::Begin(part, count, is_wanted.clone()));
        }
        let chunks = self.workers.iter().map(|_| Vec::new()).collect();
        TrieSession { workers: self, shards: count, chunk_size, chunks, is_wanted, is_open: true }
    }
}

impl TrieWorker {
    fn start(name: String, affinity: Arc<Affinity>) -> Self {
        let (sender, receiver) = channel();
        let thread = JoinedThread::start(name, move || {
            affinity.join();
            run(&receiver);
        });
        Self { sender: Some(sender), _thread: thread }
    }

    fn send(&self, message: Message) {
        let sender = self.sender.as_ref().expect("dropped last");
        sender.send(message).expect("a worker ends only when it is dropped, or by a bug");
    }
}

impl Drop for TrieWorker {
    fn drop(&mut self) {
        // The thread, which is waited for after this, ends when it has no sender.
        self.sender = None;
    }
}

/// One block's line to the workers.
#[derive(Debug)]
pub(crate) struct TrieSession<'a> {
    workers: &'a TrieWorkers,
    /// How many shards the block has.
    shards: usize,
    chunk_size: usize,
    /// Tasks that have not been sent yet, for each worker.
    chunks: Vec<Vec<TrieTask>>,
    is_wanted: IsWanted,
    is_open: bool,
}

impl TrieSession<'_> {
    /// Tells what the block's access list names, before anything else.
    pub(crate) fn list(&mut self, listed: &Arc<AccessListState>) {
        for worker in &self.workers.workers {
            worker.send(Message::List(listed.clone()));
        }
    }

    pub(crate) fn touch_account(&mut self, hashed_address: B256) {
        self.push(TrieTask { key: (hashed_address, None), ran: None });
    }

    pub(crate) fn touch_slot(&mut self, hashed_address: B256, hashed_slot: B256) {
        self.push(TrieTask { key: (hashed_address, Some(hashed_slot)), ran: None });
    }

    /// Tells what a transaction left of an account.
    pub(crate) fn ran(&mut self, hashed_address: B256, change: Change) {
        // Deletions are not made ahead.
        if let (Some(account), false) = (change.account, change.storage_wiped) {
            let ran = Some(Box::new((account, change.slots)));
            self.push(TrieTask { key: (hashed_address, None), ran });
        }
    }

    fn push(&mut self, task: TrieTask) {
        let shard = shard_of(&task.key.0, self.shards);
        let index = shard % self.chunks.len();
        let chunk = &mut self.chunks[index];
        chunk.push(task);
        if chunk.len() >= self.chunk_size {
            let next = Vec::with_capacity(self.chunk_size.min(limits::CHUNK_CAPACITY));
            let chunk = std::mem::replace(chunk, next);
            self.workers.affinity.keep_off();
            self.workers.workers[index].send(Message::Chunk(chunk));
        }
    }

    /// Hands over what has not filled a chunk.
    pub(crate) fn flush(&mut self) {
        for (worker, chunk) in self.workers.workers.iter().zip(&mut self.chunks) {
            if !chunk.is_empty() {
                worker.send(Message::Chunk(std::mem::take(chunk)));
            }
        }
    }

    /// Takes the shards back, in order, with the keys that the workers have not come to. Values
    /// that are not set ahead yet are forgotten.
    pub(crate) fn end(&mut self) -> Result<(Vec<Shard<NodeStore>>, Vec<StateKey>), TrieError> {
        let (mut shards, mut left, mut failure) = (Vec::new(), Vec::new(), None);
        let chunks = std::mem::take(&mut self.chunks);
        for answer in self.close() {
            match answer.recv().expect("a trie worker answers, or has met a bug") {
                Ok(done) => {
                    shards.extend(done.shards);
                    left.extend(done.left);
                }
                Err(error) => failure = Some(error),
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        left.extend(chunks.iter().flatten().filter_map(TrieTask::key));
        shards.sort_unstable_by_key(|(index, _)| *index);
        Ok((shards.into_iter().map(|(_, shard)| shard).collect(), left))
    }

    fn close(&mut self) -> Vec<Receiver<Result<DoneShards, TrieError>>> {
        self.is_open = false;
        self.is_wanted.store(true, Ordering::Relaxed);
        let end = |worker: &TrieWorker| {
            let (sender, receiver) = channel();
            worker.send(Message::End(sender));
            receiver
        };
        self.workers.workers.iter().map(end).collect()
    }

    /// Ends the block without its shards. A session must have ended before the next one begins.
    pub(crate) fn give_up(&mut self) {
        if self.is_open {
            self.close();
        }
    }
}

impl Drop for TrieSession<'_> {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// The shard of an account, when there are `count`: one, or one for each first nibble.
fn shard_of(hashed_address: &B256, count: usize) -> usize {
    if count == 1 { 0 } else { usize::from(hashed_address[0] >> 4) }
}

/// A worker's block.
#[derive(Default)]
struct WorkerBlock {
    shards: Shards,
    /// Shards of the whole block.
    count: usize,
    is_wanted: IsWanted,
    left: Vec<StateKey>,
    failure: Option<TrieError>,
}

impl WorkerBlock {
    fn shards_are_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// The shard of an account, if it is the worker's.
    fn shard(&mut self, hashed_address: &B256) -> Option<&mut Shard<NodeStore>> {
        let index = shard_of(hashed_address, self.count);
        let shard = self.shards.iter_mut().find(|(place, _)| *place == index);
        shard.map(|(_, shard)| shard)
    }

    fn do_task(&mut self, task: TrieTask) -> Result<(), TrieError> {
        if self.shards_are_wanted() {
            self.left.extend(task.key());
            return Ok(());
        }
        let TrieTask { key: (hashed_address, slot), ran } = task;
        let shard = self.shard(&hashed_address);
        let shard = shard.expect("tasks come to the worker that has the shard");
        match (ran, slot) {
            (None, None) => shard.touch(&hashed_address).map(drop),
            (None, Some(slot)) => shard.touch_slot(&hashed_address, &slot).map(drop),
            (Some(left), _) => {
                let (account, slots) = *left;
                let slots: Vec<_> =
                    slots.into_iter().map(|(slot, value)| (hashed_slot(slot), value)).collect();
                shard.set_ahead(&hashed_address, Some(account), &slots)
            }
        }
    }

    /// Loads what a list names, and sets what it leaves.
    fn do_list(&mut self, list: &AccessList) -> Result<(), TrieError> {
        let accounts = list.accounts();
        let addresses: Vec<_> = accounts.iter().map(ListedAccount::address).collect();
        for (account, hashed_address) in accounts.iter().zip(hashed_all(&addresses)) {
            let is_wanted = self.shards_are_wanted();
            let Some(shard) = self.shard(&hashed_address) else { continue };
            let hashed_slots = || {
                let slots: Vec<_> = account.slots().map(|slot| slot.to_be_bytes::<32>()).collect();
                hashed_all(&slots)
            };
            if is_wanted {
                self.left.push((hashed_address, None));
                let keys = hashed_slots().into_iter().map(|slot| (hashed_address, Some(slot)));
                self.left.extend(keys);
                continue;
            }
            let Some(before) = shard.touch(&hashed_address)? else { continue };
            let mut after = Vec::new();
            if before.storage_root != EMPTY_ROOT_HASH {
                let hashed_slots = hashed_slots();
                for hashed_slot in &hashed_slots {
                    shard.touch_slot(&hashed_address, hashed_slot)?;
                }
                // Those that change come first.
                let values = account.slots_after().map(|(_, value)| value);
                after = hashed_slots.into_iter().zip(values).collect();
            }
            let info = account.after(before.into());
            // Deletions are not made ahead.
            if info != Some(AccountInfo::EMPTY) {
                shard.set_ahead(&hashed_address, info, &after)?;
            }
        }
        Ok(())
    }

    /// Hashes a little of what has been set; whether there was anything to hash.
    fn hash_ahead(&mut self) -> bool {
        let mut hashed = 0;
        for (_, shard) in &mut self.shards {
            match shard.hash_ahead(limits::HASH_AHEAD_NODES) {
                Ok(nodes) => hashed += nodes,
                Err(error) => self.failure = Some(error),
            }
        }
        hashed > 0 && self.failure.is_none()
    }
}

fn hashed_all<T: AsRef<[u8]>>(keys: &[T]) -> Vec<B256> {
    let mut hashes = vec![B256::ZERO; keys.len()];
    let keys: Vec<_> = keys.iter().map(AsRef::as_ref).collect();
    keccak256_many(&keys, &mut hashes);
    hashes
}

fn run(messages: &Receiver<Message>) {
    let mut block = WorkerBlock::default();
    loop {
        let message = match messages.try_recv() {
            Err(TryRecvError::Empty) if !block.shards_are_wanted() && block.hash_ahead() => {
                continue;
            }
            Err(TryRecvError::Empty) => messages.recv().ok(),
            received => received.ok(),
        };
        let Some(message) = message else { return };
        match message {
            Message::Begin(shards, count, is_wanted) => {
                block = WorkerBlock { shards, count, is_wanted, ..WorkerBlock::default() };
            }
            Message::List(listed) => block.failure = block.do_list(&listed.list).err(),
            Message::Chunk(tasks) => {
                for task in tasks {
                    if block.failure.is_none() {
                        block.failure = block.do_task(task).err();
                    }
                }
            }
            Message::End(answer) => {
                let WorkerBlock { shards, left, failure, .. } = std::mem::take(&mut block);
                // The receiver is gone when the block was given up.
                let _ = answer.send(failure.map_or(Ok(DoneShards { shards, left }), Err));
            }
        }
    }
}
