//! A node of a long run: its process, and what it has promised.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{ForkchoiceState, PayloadAttributes, PayloadStatusEnum};
use anyhow::{Context, bail, ensure};
use engine_api::NewPayload;
use rpc::rest::{HeaderMap, Method};
use rustix::process::{Signal, kill_process_group};
use serde_json::Value;

use crate::chain::format::Payload;
use crate::clients::client::{Client, call_of};
use crate::clients::target::Target;
use crate::fault::Fault;
use crate::random::Random;
use crate::soak::blocks::BlockStore;

/// For one answer, and for a process to end. On a busy machine the first blobs take minutes on the
/// public port: its threads have a low priority, and the proofs need a table first.
const PATIENCE: Duration = Duration::from_secs(600);
/// Blocks behind the head of which all are looked for after a restart, and how many older ones.
const LOOKED_FOR: u64 = 256;
const OLDER_LOOKED_FOR: u64 = 32;
/// Of their witnesses, those of the newest, and how many older ones.
const WITNESSES: u64 = 64;
const OLDER_WITNESSES: u64 = 16;
/// The oldest witness that is to be kept is deleted about now.
const WITNESS_MARGIN: u64 = 16;
/// Blocks whose answers are remembered by number: more than ever wait to be final.
const REMEMBERED: u64 = 300;

/// A way for a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// SIGTERM.
    Told,
    /// SIGKILL.
    Killed,
}

/// A process that ends within this slot, at a moment that it is not told.
#[derive(Debug)]
pub(crate) struct Doom {
    pub(crate) ending: Ending,
    /// The slot when it is started again.
    pub(crate) back: u64,
    hand: JoinHandle<()>,
}

/// A node's condition. Numbers are the slots in which it ends.
#[derive(Debug)]
pub(crate) enum Condition {
    Up,
    Doomed(Doom),
    /// Its process has ended.
    Down(u64),
    /// Its threads are stopped.
    Frozen(u64),
    /// It runs, and is told nothing.
    Absent(u64),
    /// It is on a branch of its own.
    Apart,
}

/// Blocks that a node has missed, and has to fetch by itself: it is given the newest one alone.
#[derive(Debug, Default)]
pub(crate) struct Gap {
    /// When it was first given one, since it was away last.
    pub(crate) since: Option<Instant>,
    /// How many it was given since then.
    pub(crate) given: u64,
}

/// A node's answer to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Valid,
    Syncing,
    /// Its process ended meanwhile.
    Nothing,
}

/// The blocks and witnesses that were found to be there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub(crate) blocks: u64,
    pub(crate) witnesses: u64,
}

/// A node of ours in a directory of its own.
pub(crate) struct Node {
    pub(crate) name: String,
    target: Target,
    pub(crate) folder: PathBuf,
    genesis: PathBuf,
    pub(crate) condition: Condition,
    client: Option<Client>,
    /// Blocks behind the head whose witnesses it keeps.
    kept_witnesses: u64,
    /// The blocks that it called VALID, by number.
    valid: BTreeMap<u64, Vec<B256>>,
    /// The last fork choice that it took, and those after it whose answer is not known or was
    /// SYNCING.
    chosen: B256,
    attempted: Vec<B256>,
    pub(crate) gap: Option<Gap>,
    /// Whether a doomed process gave no answer: it is asked nothing more.
    is_gone: bool,
    pub(crate) started: Instant,
    pub(crate) starts: u64,
}

impl Node {
    /// A node that is not started yet.
    pub(crate) fn new(
        name: String,
        target: Target,
        folder: &Path,
        genesis: &Path,
        kept_witnesses: u64,
    ) -> Self {
        Self {
            folder: folder.join(&name),
            name,
            target,
            genesis: genesis.into(),
            condition: Condition::Down(0),
            client: None,
            kept_witnesses,
            valid: BTreeMap::new(),
            chosen: B256::ZERO,
            attempted: Vec::new(),
            gap: None,
            is_gone: false,
            started: Instant::now(),
            starts: 0,
        }
    }

    /// Whether it is told of blocks of the canonical chain.
    const fn hears(&self) -> bool {
        matches!(self.condition, Condition::Up | Condition::Doomed(_)) && !self.is_gone
    }

    /// Whether it is given all blocks of the canonical chain.
    pub(crate) const fn follows(&self) -> bool {
        self.hears() && self.gap.is_none()
    }

    /// Whether it is told of the newest block alone.
    pub(crate) const fn fills(&self) -> bool {
        self.hears() && self.gap.is_some()
    }

    pub(crate) const fn is_up(&self) -> bool {
        matches!(self.condition, Condition::Up) && self.gap.is_none()
    }

    /// Its process and ports.
    pub(crate) fn client(&mut self) -> anyhow::Result<&mut Client> {
        let name = &self.name;
        self.client.as_mut().with_context(|| format!("{name} is not running"))
    }

    /// As [`client`](Self::client), where it is there.
    pub(crate) const fn running(&mut self) -> Option<&mut Client> {
        self.client.as_mut()
    }

    /// Starts its process, and gives its head. The first time that is the first block.
    pub(crate) fn start(&mut self) -> anyhow::Result<B256> {
        let mut client = self.target.start(&self.folder, &self.genesis, false)?;
        client.engine.set_patience(PATIENCE);
        client.public.set_patience(PATIENCE);
        if let Some(process) = &mut client.process {
            process.stop_time = PATIENCE;
        }
        let (number, hash) = client.engine.head()?;
        self.client = Some(client);
        (self.started, self.condition) = (Instant::now(), Condition::Up);
        self.starts += 1;
        if self.starts == 1 {
            ensure!(number == 0, "{} begins at block {number}", self.name);
            self.chosen = hash;
            self.valid.insert(0, vec![hash]);
        }
        self.is_gone = false;
        Ok(hash)
    }

    /// Checks the head with which it came back: that of the last fork choice that it took, or one
    /// on the way to another.
    pub(crate) fn check_head(&mut self, store: &BlockStore, head: B256) -> anyhow::Result<()> {
        let is_on_way = |to: &B256| store.is_between(self.chosen, head, *to);
        ensure!(
            head == self.chosen || self.attempted.iter().any(is_on_way),
            "{} lost its head: it came back with {head}, and had answered the fork choice of {}",
            self.name,
            self.chosen
        );
        self.chosen = head;
        Ok(())
    }

    /// Whether it called the block VALID.
    pub(crate) fn has(&self, number: u64, hash: B256) -> bool {
        self.valid.get(&number).is_some_and(|hashes| hashes.contains(&hash))
    }

    /// Whether the block is its head.
    pub(crate) fn is_at(&self, hash: B256) -> bool {
        self.chosen == hash && self.attempted.is_empty()
    }

    /// The meaning of an answer; a node that is doomed may give none.
    fn said(&mut self, answer: anyhow::Result<()>) -> anyhow::Result<Said> {
        let Err(error) = answer else { return Ok(Said::Valid) };
        match Fault::of(&error) {
            Some(Fault::Behind) => Ok(Said::Syncing),
            Some(
                Fault::HungUp
                | Fault::Truncated
                | Fault::Unreachable
                | Fault::Hanging
                | Fault::Refusing,
            ) if matches!(self.condition, Condition::Doomed(_)) => {
                self.is_gone = true;
                Ok(Said::Nothing)
            }
            _ => Err(error.context(self.name.clone())),
        }
    }

    /// `engine_newPayload`, with the witness in the answer or without.
    pub(crate) fn new_payload(
        &mut self,
        payload: &Payload,
        with_witness: bool,
    ) -> anyhow::Result<Said> {
        let answer = self.client()?.engine.new_payload(payload, with_witness).map(drop);
        let said = self.said(answer)?;
        if said == Said::Valid {
            self.note_valid(payload);
        }
        Ok(said)
    }

    fn note_valid(&mut self, payload: &Payload) {
        if !self.has(payload.number, payload.hash) {
            self.valid.entry(payload.number).or_default().push(payload.hash);
            let oldest = payload.number.saturating_sub(REMEMBERED);
            self.valid = self.valid.split_off(&oldest);
        }
    }

    /// Gives it a block whose parent it may lack, and the fork choice of it. Once the answer is
    /// VALID, [`look_for_gap`](Self::look_for_gap) has to find all blocks up to it.
    pub(crate) fn tell(
        &mut self,
        newest: &Payload,
        heads: ForkchoiceState,
    ) -> anyhow::Result<Said> {
        let answer = self.client()?.engine.new_payload(newest, false).map(drop);
        let block = self.said(answer)?;
        if block == Said::Nothing {
            return Ok(block);
        }
        let head = self.choose(heads)?;
        ensure!(
            (block, head) != (Said::Valid, Said::Syncing),
            "{} calls block {} VALID, and answers SYNCING to the fork choice of it",
            self.name,
            newest.number
        );
        Ok(head)
    }

    /// `engine_forkchoiceUpdated`.
    pub(crate) fn choose(&mut self, heads: ForkchoiceState) -> anyhow::Result<Said> {
        if self.attempted.last() != Some(&heads.head_block_hash) {
            self.attempted.push(heads.head_block_hash);
        }
        let answer = self.client()?.engine.forkchoice_updated(heads).map(drop);
        let said = self.said(answer)?;
        if said == Said::Valid {
            self.chosen = heads.head_block_hash;
            self.attempted.clear();
        }
        Ok(said)
    }

    /// A block on the head, of the pool's transactions; none if the process ended meanwhile.
    pub(crate) fn build(
        &mut self,
        heads: ForkchoiceState,
        attributes: &PayloadAttributes,
        time: Duration,
    ) -> anyhow::Result<Option<NewPayload>> {
        let given = attributes.clone();
        let begun = self.client()?.engine.make(async |engine| {
            let begun = engine.forkchoice_updated(heads, Some(given)).await?;
            Ok((begun.payload_status.status, begun.payload_id))
        });
        let built = begun.and_then(|(_, (status, id))| {
            if status != PayloadStatusEnum::Valid {
                bail!(Fault::Lying.error(format!("the fork choice with attributes: {status:?}")));
            }
            let id = id.context("a fork choice with attributes has no payload id")?;
            std::thread::sleep(time);
            Ok(self.client()?.engine.make(async |engine| engine.get_payload(id).await)?.1)
        });
        match built {
            Ok(built) => Ok(Some(call_of(built, attributes.parent_beacon_block_root)?)),
            Err(error) => {
                let said = self.said(Err(error))?;
                ensure!(said == Said::Nothing, "{} is behind, and was not", self.name);
                Ok(None)
            }
        }
    }

    /// Hands a transaction to its pool; the reason where it is refused. The Engine API's port takes
    /// it at once, the public one when there is nothing else to do.
    pub(crate) fn send(
        &mut self,
        raw: &Bytes,
        is_public: bool,
    ) -> anyhow::Result<Result<(), String>> {
        let client = self.client()?;
        let port = if is_public { &mut client.public } else { &mut client.engine };
        let sent = port.read::<B256>("eth_sendRawTransaction", (raw,));
        match sent {
            Ok(_) => Ok(Ok(())),
            Err(error) if Fault::of(&error) == Some(Fault::Refusing) => {
                Ok(Err(error.root_cause().to_string()))
            }
            Err(error) => self.said(Err(error)).map(|_| Ok(())),
        }
    }

    /// Has its process end at a random moment of the next `span`, and be back in a later slot.
    pub(crate) fn doom(
        &mut self,
        ending: Ending,
        back: u64,
        span: Duration,
        random: &mut Random,
    ) -> anyhow::Result<()> {
        let process = self.client()?.process.as_ref().context("a node has a process")?;
        let (group, wait) = (process.group(), span.mul_f64(random.unit()));
        let signal = match ending {
            Ending::Told => Signal::TERM,
            Ending::Killed => Signal::KILL,
        };
        let hand = std::thread::spawn(move || {
            std::thread::sleep(wait);
            kill_process_group(group, signal).ok();
        });
        self.condition = Condition::Doomed(Doom { ending, back, hand });
        Ok(())
    }

    /// Waits until a doomed process has ended. One that was told to has to end well.
    pub(crate) fn bury(&mut self) -> anyhow::Result<()> {
        let Condition::Doomed(doom) = std::mem::replace(&mut self.condition, Condition::Up) else {
            bail!("{} is not to end", self.name);
        };
        doom.hand.join().ok();
        let mut client = self.client.take().context("it runs until it ends")?;
        let process = client.process.as_mut().context("a node has a process")?;
        let how = process.wait_ended(PATIENCE).with_context(|| self.name.clone())?;
        let expected = match doom.ending {
            Ending::Told => "exited with 0",
            Ending::Killed => "was killed by signal 9",
        };
        let words = process.last_words();
        ensure!(how == expected, "{}: told by {:?}, it {how}; {words}", self.name, doom.ending);
        self.condition = Condition::Down(doom.back);
        Ok(())
    }

    /// How its process ended, and its last words, where nobody has told it to end.
    pub(crate) fn ended_by_itself(&mut self) -> Option<String> {
        if matches!(self.condition, Condition::Doomed(_) | Condition::Down(_)) {
            return None;
        }
        let process = self.client.as_mut()?.process.as_mut()?;
        let (how, words) = (process.ended()?, process.last_words());
        Some(format!("{} ended by itself: it {how}; {words}", self.name))
    }

    /// Stops its process at the end of the run.
    pub(crate) fn stop(&mut self) -> anyhow::Result<()> {
        if let Some(mut client) = self.client.take() {
            client.thaw()?;
            let mut process = client.process.take().context("a node has a process")?;
            kill_process_group(process.group(), Signal::TERM)?;
            let how = process.wait_ended(PATIENCE).with_context(|| self.name.clone())?;
            let words = process.last_words();
            ensure!(how == "exited with 0", "{}: told to stop, it {how}; {words}", self.name);
        }
        Ok(())
    }

    /// Looks for blocks that it called VALID, and for their witnesses.
    ///
    /// # Errors
    /// One is not there: it is lost.
    pub(crate) fn look(
        &mut self,
        store: &BlockStore,
        random: &mut Random,
        is_whole: bool,
    ) -> anyhow::Result<Found> {
        let head = store.height();
        let (newest, final_number) = (head.saturating_sub(LOOKED_FOR), store.finalized());
        // A side branch may be forgotten once another one is final.
        let is_kept =
            |number: u64, hash: B256| number > final_number || store.is_canonical(number, hash);
        let mut blocks: Vec<(u64, B256)> = self
            .valid
            .range(newest..)
            .flat_map(|(number, hashes)| hashes.iter().map(|hash| (*number, *hash)))
            .filter(|(number, hash)| is_kept(*number, *hash))
            .collect();
        // A node that was away lacks the newest blocks.
        let top = blocks.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let kept_from = self.kept_from(top);
        let mut witnesses: Vec<(u64, B256)> = Vec::new();
        let first = head.saturating_sub(WITNESSES).max(kept_from).max(1);
        witnesses.extend(blocks.iter().filter(|(number, _)| *number >= first));
        let canonical = |number: u64| (number, store.canonical()[number as usize]);
        if is_whole {
            blocks.extend((0..newest).map(canonical));
            witnesses.extend((kept_from.max(1)..first).map(canonical));
        } else {
            let mut draw = |low: u64, high: u64, count: u64| {
                let count = if low < high { count } else { 0 };
                (0..count).map(|_| canonical(random.between(low, high - 1))).collect::<Vec<_>>()
            };
            blocks.extend(draw(0, newest, OLDER_LOOKED_FOR));
            witnesses.extend(draw(kept_from.max(1), first.min(top), OLDER_WITNESSES));
        }
        for (number, hash) in &blocks {
            self.look_for_block(*number, *hash)?;
        }
        for (number, hash) in &witnesses {
            self.look_for_witness(*number, *hash)?;
        }
        Ok(Found { blocks: blocks.len() as u64, witnesses: witnesses.len() as u64 })
    }

    /// The lowest block whose witness it has to have, where its highest block is `top`.
    const fn kept_from(&self, top: u64) -> u64 {
        top.saturating_sub(self.kept_witnesses.saturating_sub(WITNESS_MARGIN))
    }

    /// Looks for the blocks of a gap, up to the newest, which it calls VALID, and for their
    /// witnesses. From now on it has promised them.
    ///
    /// # Errors
    /// One is not there.
    pub(crate) fn look_for_gap(&mut self, path: &[&Payload]) -> anyhow::Result<Found> {
        let mut found = Found::default();
        let kept_from = self.kept_from(path.last().map_or(0, |newest| newest.number));
        for payload in path {
            let (number, hash) = (payload.number, payload.hash);
            let of_gap = || format!("a gap of {} blocks that it has filled", path.len() - 1);
            self.look_for_block(number, hash).with_context(of_gap)?;
            found.blocks += 1;
            if number >= kept_from {
                self.look_for_witness(number, hash).with_context(of_gap)?;
                found.witnesses += 1;
            }
            self.note_valid(payload);
        }
        Ok(found)
    }

    fn look_for_block(&mut self, number: u64, hash: B256) -> anyhow::Result<()> {
        let block: Value = self.client()?.engine.read("eth_getBlockByHash", (hash, false))?;
        let name = &self.name;
        ensure!(
            block["hash"] == hash.to_string(),
            "{name} lost block {number}, {hash}, which it called VALID"
        );
        Ok(())
    }

    fn look_for_witness(&mut self, number: u64, hash: B256) -> anyhow::Result<()> {
        let path = format!("/engine/v1/witnesses/{hash}");
        let (_, reply) = self.client()?.engine.make(async |engine| {
            let connection = engine.connection();
            let none = (HeaderMap::new(), Bytes::new());
            Ok(connection.request(Method::HEAD, &path, none.0, none.1).await?)
        })?;
        let (name, status) = (&self.name, reply.status);
        ensure!(
            status.is_success(),
            "{name} lost the witness of block {number}, {hash}: {path} answers {status}"
        );
        Ok(())
    }
}
