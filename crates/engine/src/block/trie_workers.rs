//! Threads that tend the tries of the block that runs.
//!
//! Each has some of the block's shards for as long as the block runs. It is told in chunks what was
//! read, so that it loads the paths (which is the witness), and what each transaction left, so that
//! it sets it; with nothing else to do it hashes ahead. When the block has ended, what it has not
//! come to is left to all threads. One more thread does what is left to do after a block.

use crate::block::ahead::Listed;
use crate::limits;
use crate::threads::background::yield_to_others;
use crate::threads::helpers::Helpers;
use alloy_primitives::{B256, U256, keccak256};
use execution::{AccessList, ListedAccount};
use state::NodeStore;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use trie::keccak::keccak256_many;
use trie::versioned::{Shard, StateKey};
use trie::{AccountInfo, EMPTY_ROOT_HASH, Error as TrieError};
use witness::Change;

/// The shards of one block, all or some, each with its place among them.
type Shards = Vec<(usize, Shard<NodeStore>)>;

/// Something to do with an account.
#[derive(Debug)]
struct Task {
    hashed_address: B256,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// The block has read the account.
    Account,
    /// The block has read a slot.
    Slot(B256),
    /// A transaction has left this. In a box, as there are few of these and many of the others.
    Ran(Box<(AccountInfo, Vec<(U256, U256)>)>),
}

impl Task {
    /// What it reads.
    fn key(&self) -> Option<StateKey> {
        match &self.kind {
            Kind::Account => Some((self.hashed_address, None)),
            Kind::Slot(slot) => Some((self.hashed_address, Some(*slot))),
            Kind::Ran(_) => None,
        }
    }
}

enum Message {
    /// A block begins: these shards are the worker's, of so many in all. It is hurried at its end.
    Begin(Shards, usize, Hurry),
    /// What the block will have read and left, if its access list is right.
    List(Arc<Listed>),
    /// What the block has done, in order.
    Chunk(Vec<Task>),
    /// The block has ended, well or not: the shards go back.
    End(Sender<Result<Done, TrieError>>),
}

/// Whether a block waits for its shards: what has not been done by then is left undone.
type Hurry = Arc<AtomicBool>;

/// What a worker gives back at the end of a block.
#[derive(Default)]
struct Done {
    shards: Shards,
    /// What the block has read, and the worker has not.
    left: Vec<StateKey>,
}

/// The threads. Dropping them lets them finish what they were given.
#[derive(Debug)]
pub(crate) struct Workers {
    workers: Vec<Worker<Message>>,
    helpers: Arc<Helpers>,
}

/// The thread that does what is left to do after a block. Dropping it lets it finish.
#[derive(Debug)]
pub(crate) struct After(Worker<Box<dyn FnOnce() + Send>>);

/// A thread that does what it is sent, in order.
struct Worker<M> {
    sender: Option<Sender<M>>,
    thread: Option<JoinHandle<()>>,
}

impl<M> fmt::Debug for Worker<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("thread", &self.thread).finish_non_exhaustive()
    }
}

impl Workers {
    /// So many, and one at least; all of them are helpers.
    pub(crate) fn start(count: usize, helpers: Arc<Helpers>) -> Self {
        let start = |index| {
            let helpers = helpers.clone();
            Worker::start(&format!("trie-{index}"), move |tasks| {
                helpers.join();
                run(&tasks);
            })
        };
        let workers = (0..count.max(1)).map(start).collect();
        Self { workers, helpers }
    }

    /// Hands the shards out.
    pub(crate) fn begin(&self, shards: Vec<Shard<NodeStore>>, chunk_size: usize) -> Session<'_> {
        let (workers, count) = (self.workers.len(), shards.len());
        let mut parts: Vec<Shards> = (0..workers).map(|_| Vec::new()).collect();
        for (index, shard) in shards.into_iter().enumerate() {
            parts[index % workers].push((index, shard));
        }
        let hurry = Hurry::default();
        self.helpers.keep_off();
        for (worker, part) in self.workers.iter().zip(parts) {
            worker.send(Message::Begin(part, count, hurry.clone()));
        }
        let chunks = self.workers.iter().map(|_| Vec::new()).collect();
        Session { workers: self, shards: count, chunk_size, chunks, hurry, is_open: true }
    }
}

impl After {
    pub(crate) fn start() -> Self {
        Self(Worker::start("seal", |jobs: Receiver<Box<dyn FnOnce() + Send>>| {
            yield_to_others();
            jobs.into_iter().for_each(|job| job());
        }))
    }

    /// Has this done beside the next block, in the order in which it is asked for.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.0.send(Box::new(job));
    }
}

impl<M: Send + 'static> Worker<M> {
    fn start(name: &str, run: impl FnOnce(Receiver<M>) + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || run(receiver));
        let thread = thread.expect("the system starts a thread");
        Self { sender: Some(sender), thread: Some(thread) }
    }
}

impl<M> Worker<M> {
    fn send(&self, message: M) {
        let sender = self.sender.as_ref().expect("dropped last");
        sender.send(message).expect("a worker ends only when it is dropped, or by a bug");
    }
}

impl<M> Drop for Worker<M> {
    fn drop(&mut self) {
        self.sender = None;
        let thread = self.thread.take().expect("dropped once");
        if thread.join().is_err() {
            tracing::error!("a worker panicked");
        }
    }
}

/// One block's line to the workers.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    workers: &'a Workers,
    /// How many shards the block has.
    shards: usize,
    chunk_size: usize,
    /// What has not been sent yet, for each worker.
    chunks: Vec<Vec<Task>>,
    hurry: Hurry,
    is_open: bool,
}

impl<'a> Session<'a> {
    pub(crate) const fn workers(&self) -> &'a Workers {
        self.workers
    }

    /// Tells what the block's access list names, before anything else.
    pub(crate) fn list(&mut self, listed: &Arc<Listed>) {
        for worker in &self.workers.workers {
            worker.send(Message::List(listed.clone()));
        }
    }

    pub(crate) fn touch_account(&mut self, hashed_address: B256) {
        self.push(Task { hashed_address, kind: Kind::Account });
    }

    pub(crate) fn touch_slot(&mut self, hashed_address: B256, hashed_slot: B256) {
        self.push(Task { hashed_address, kind: Kind::Slot(hashed_slot) });
    }

    /// Tells what a transaction left of an account.
    pub(crate) fn ran(&mut self, hashed_address: B256, change: Change) {
        // What is deleted or wiped is not set ahead.
        if let (Some(account), false) = (change.account, change.storage_wiped) {
            self.push(Task { hashed_address, kind: Kind::Ran(Box::new((account, change.slots))) });
        }
    }

    fn push(&mut self, task: Task) {
        let shard = shard_of(&task.hashed_address, self.shards);
        let index = shard % self.chunks.len();
        let chunk = &mut self.chunks[index];
        chunk.push(task);
        if chunk.len() >= self.chunk_size {
            let next = Vec::with_capacity(self.chunk_size.min(limits::CHUNK_CAPACITY));
            let chunk = std::mem::replace(chunk, next);
            self.workers.helpers.keep_off();
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

    /// Takes the shards back, in order, with what was read and the workers have not come to. What
    /// was to be set ahead and is not yet is forgotten.
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
        left.extend(chunks.iter().flatten().filter_map(Task::key));
        shards.sort_unstable_by_key(|(index, _)| *index);
        Ok((shards.into_iter().map(|(_, shard)| shard).collect(), left))
    }

    fn close(&mut self) -> Vec<Receiver<Result<Done, TrieError>>> {
        self.is_open = false;
        self.hurry.store(true, Ordering::Relaxed);
        let end = |worker: &Worker<Message>| {
            let (sender, receiver) = channel();
            worker.send(Message::End(sender));
            receiver
        };
        self.workers.workers.iter().map(end).collect()
    }
}

impl Session<'_> {
    /// Ends the block without its shards. A session must have ended before the next one begins.
    pub(crate) fn give_up(&mut self) {
        if self.is_open {
            self.close();
        }
    }
}

impl Drop for Session<'_> {
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
struct Block {
    shards: Shards,
    /// Shards of the whole block.
    count: usize,
    hurry: Hurry,
    left: Vec<StateKey>,
    failure: Option<TrieError>,
}

impl Block {
    fn is_hurried(&self) -> bool {
        self.hurry.load(Ordering::Relaxed)
    }

    fn do_task(&mut self, task: Task) -> Result<(), TrieError> {
        if self.is_hurried() {
            self.left.extend(task.key());
            return Ok(());
        }
        let Task { hashed_address, kind } = task;
        let index = shard_of(&hashed_address, self.count);
        let shard = self.shards.iter_mut().find(|(place, _)| *place == index);
        let (_, shard) = shard.expect("tasks come to the worker that has the shard");
        match kind {
            Kind::Account => shard.touch(&hashed_address).map(drop),
            Kind::Slot(slot) => shard.touch_slot(&hashed_address, &slot).map(drop),
            Kind::Ran(left) => {
                let (account, slots) = *left;
                let slots: Vec<_> =
                    slots.into_iter().map(|(slot, value)| (hashed(slot), value)).collect();
                shard.set_ahead(&hashed_address, Some(account), &slots)
            }
        }
    }

    /// Has what these tasks read fetched from memory.
    fn fetch(&mut self, tasks: &[Task]) -> Result<(), TrieError> {
        for (index, shard) in &mut self.shards {
            let keys = tasks.iter().filter_map(Task::key);
            let keys: Vec<_> =
                keys.filter(|(account, _)| shard_of(account, self.count) == *index).collect();
            shard.fetch(&keys)?;
        }
        Ok(())
    }

    /// Loads what a list names, and sets what it leaves.
    fn do_list(&mut self, list: &AccessList) -> Result<(), TrieError> {
        let accounts = list.accounts();
        let addresses: Vec<_> = accounts.iter().map(ListedAccount::address).collect();
        for (account, hashed_address) in accounts.iter().zip(hashed_all(&addresses)) {
            let index = shard_of(&hashed_address, self.count);
            let shard = self.shards.iter_mut().find(|(place, _)| *place == index);
            let Some((_, shard)) = shard else { continue };
            if self.hurry.load(Ordering::Relaxed) {
                self.left.push((hashed_address, None));
                let slots: Vec<_> = account.slots().map(|slot| slot.to_be_bytes::<32>()).collect();
                let keys = hashed_all(&slots).into_iter().map(|slot| (hashed_address, Some(slot)));
                self.left.extend(keys);
                continue;
            }
            let Some(before) = shard.touch(&hashed_address)? else { continue };
            let mut after = Vec::new();
            if before.storage_root != EMPTY_ROOT_HASH {
                let slots: Vec<_> = account.slots().map(|slot| slot.to_be_bytes::<32>()).collect();
                let hashed_slots = hashed_all(&slots);
                for hashed_slot in &hashed_slots {
                    shard.touch_slot(&hashed_address, hashed_slot)?;
                }
                // Those that change come first.
                let values = account.slots_after().map(|(_, value)| value);
                after = hashed_slots.into_iter().zip(values).collect();
            }
            let info = account.after(before.into());
            // What is deleted is not set ahead.
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

fn hashed(slot: U256) -> B256 {
    keccak256(slot.to_be_bytes::<32>())
}

fn run(messages: &Receiver<Message>) {
    let mut block = Block::default();
    loop {
        let message = match messages.try_recv() {
            Ok(message) => message,
            Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) if !block.is_hurried() && block.hash_ahead() => continue,
            Err(TryRecvError::Empty) => match messages.recv() {
                Ok(message) => message,
                Err(_) => return,
            },
        };
        match message {
            Message::Begin(shards, count, hurry) => {
                block = Block { shards, count, hurry, ..Block::default() };
            }
            Message::List(listed) => block.failure = block.do_list(&listed.list).err(),
            Message::Chunk(tasks) => {
                if block.failure.is_none() && !block.is_hurried() {
                    block.failure = block.fetch(&tasks).err();
                }
                for task in tasks {
                    if block.failure.is_none() {
                        block.failure = block.do_task(task).err();
                    }
                }
            }
            Message::End(answer) => {
                let Block { shards, left, failure, .. } = std::mem::take(&mut block);
                // Nobody listens when the block was given up.
                let _ = answer.send(failure.map_or(Ok(Done { shards, left }), Err));
            }
        }
    }
}
