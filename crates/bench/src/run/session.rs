//! A client in a round: one connection to a process, and what it measured.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use alloy_rpc_types_engine::ForkchoiceState;
use serde_json::Value;

use crate::chain::format::Payload;
use crate::clients::client::Client;
use crate::clients::persisted::Persisted;
use crate::clients::process::{self, Process, Usage};
use crate::fault::Fault;
use crate::run::lane::{Lane, Ready, Wire};
use crate::run::plan::{Contender, Pace, Persistence};
use crate::run::sample::{Block, Items, Resources, Run, WitnessCall};

/// Between two attempts to reach a client that has gone away.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);
/// The method by which our node says how long the last block's stages took: numbers are
/// microseconds.
const TIMINGS: &str = "deponent_lastTimings";

/// A client that runs, or failed.
pub(crate) struct Server {
    /// `None` once it failed or was stopped.
    pub(crate) client: Option<Client>,
    /// The contender that it was started for, and its directory; `None` if it ran already.
    pub(crate) owner: Option<(Contender, PathBuf)>,
    pub(crate) idle: Usage,
    /// Whether it still seems to know [`TIMINGS`].
    pub(crate) knows_timings: bool,
}

/// A contender in a round.
pub(crate) struct Session {
    pub(crate) lane: Lane,
    /// The index of its server.
    pub(crate) server: usize,
    /// Its place among the contenders of its server.
    pub(crate) place: usize,
    /// How long the client may be away; zero for one that was started for the run.
    pub(crate) reconnect: Duration,
    pub(crate) persisted: Option<Persisted>,
    pub(crate) run: Run,
}

/// A block that is sent to a contender, and where in the run.
pub(crate) struct BlockTurn<'a> {
    pub(crate) payload: &'a Payload,
    pub(crate) twin: Option<&'a Payload>,
    /// The fork choice for the block.
    pub(crate) heads: ForkchoiceState,
    /// The ancestor to which the fork choice goes back, if it does.
    pub(crate) back: Option<B256>,
    pub(crate) pace: &'a Pace,
    /// Blocks sent so far, this one included.
    pub(crate) sent: usize,
    /// When its slot began.
    pub(crate) slot: Instant,
    /// Whether the witness is asked for, of those that are asked.
    pub(crate) is_asked: bool,
    /// The blocks whose witnesses are asked for at a depth.
    pub(crate) older: &'a [(B256, usize)],
}

impl Session {
    /// One block: the payload, the fork choice, and what is waited and asked for.
    pub(crate) fn turn(
        &mut self,
        server: &mut Server,
        turn: &BlockTurn<'_>,
    ) -> anyhow::Result<Block> {
        let BlockTurn { payload, pace, heads, .. } = *turn;
        let client =
            server.client.as_mut().ok_or_else(|| Fault::Died.error("it is over".into()))?;
        let ready = self.lane.ready(payload)?;
        client.thaw()?;
        let before = client.process.as_ref().map(Process::usage).unwrap_or_default();
        if pace.compares {
            client.process.iter().for_each(Process::reset_peak);
        }
        let with_witness = turn.is_asked && pace.asks && self.lane.wire.has_witness();
        let queue_wait = turn.slot.elapsed().as_secs_f64();
        let mut block = match self.send(client, &ready, turn, with_witness) {
            Ok(block) => block,
            Err(error) => self.send_again(client, &ready, turn, with_witness, error)?,
        };
        block.queue_wait = queue_wait;
        if let (Persistence::Every(blocks), Some(persisted)) =
            (pace.persistence, &mut self.persisted)
            && turn.sent.is_multiple_of(blocks)
        {
            let began = Instant::now();
            persisted.wait_for(payload.hash, pace.persistence_timeout)?;
            block.persistence_wait = Some(began.elapsed().as_secs_f64());
        }
        if let Some(ancestor) = turn.back {
            let back = ForkchoiceState { head_block_hash: ancestor, ..heads };
            let there = client.engine.forkchoice_updated(back)?;
            block.reorg = Some([there, client.engine.forkchoice_updated(heads)?]);
        }
        block.server_us = server_timings(client, &mut server.knows_timings);
        block.asked = self.later_witnesses(client, &ready, turn, with_witness);
        std::thread::sleep(pace.pause);
        block.resources = client.process.as_ref().map(|process| {
            let after = process.usage();
            Resources {
                idle_kib: server.idle.resident_kib,
                before_kib: before.resident_kib,
                resident_kib: after.resident_kib,
                peak_kib: after.peak_kib,
                files_kib: process.unmapped_files_kib(),
                cpu_ms: after.cpu_ms.saturating_sub(before.cpu_ms),
            }
        });
        Ok(block)
    }

    /// The payload, its invalid twin, and the fork choice.
    fn send(
        &mut self,
        client: &mut Client,
        ready: &Ready<'_>,
        turn: &BlockTurn<'_>,
        with_witness: bool,
    ) -> anyhow::Result<Block> {
        let BlockTurn { payload, pace, .. } = *turn;
        let in_one = with_witness && self.lane.wire != Wire::Later;
        let (timing, witness) = self.lane.new_payload(client, ready, in_one)?;
        let witness = witness.filter(|_| pace.compares).map(|witness| Items::of(&witness));
        if let Some(twin) = turn.twin {
            client.engine.invalid_payload(twin)?;
        }
        let mut forkchoice = 0.0;
        if pace.chooses {
            forkchoice = client.engine.forkchoice_updated(turn.heads)?;
        }
        Ok(Block {
            number: payload.number,
            hash: payload.hash,
            state_root: payload.state_root,
            gas_limit: payload.gas_limit,
            gas_used: payload.gas_used,
            transactions: payload.transactions,
            with_witness,
            new_payload: timing.whole,
            first_byte: timing.first_byte,
            last_byte: timing.last_byte,
            answer_bytes: timing.answer_bytes,
            forkchoice,
            witness,
            ..Block::default()
        })
    }

    /// The same again, to a client that went away and may come back; otherwise `error`.
    fn send_again(
        &mut self,
        client: &mut Client,
        ready: &Ready<'_>,
        turn: &BlockTurn<'_>,
        with_witness: bool,
        error: anyhow::Error,
    ) -> anyhow::Result<Block> {
        let began = Instant::now();
        let mut last = error;
        while went_away(&last) && began.elapsed() < self.reconnect && !process::interrupted() {
            std::thread::sleep(RECONNECT_PAUSE);
            match self.send(client, ready, turn, with_witness) {
                Ok(block) => {
                    let (number, seconds) = (block.number, began.elapsed().as_secs_f64());
                    self.run.remarks.push(format!(
                        "It went away during block {number} and answered again after \
                         {seconds:.1} s: the block does not count."
                    ));
                    return Ok(Block { interrupted: true, ..block });
                }
                Err(error) if Fault::of(&error) == Some(Fault::Behind) => {
                    return Err(error.context("it came back without its last blocks"));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The calls for witnesses after a block.
    fn later_witnesses(
        &mut self,
        client: &mut Client,
        ready: &Ready<'_>,
        turn: &BlockTurn<'_>,
        with_witness: bool,
    ) -> Vec<WitnessCall> {
        let BlockTurn { payload, pace, older, .. } = *turn;
        let own = with_witness.then_some((payload.hash, None));
        let older = older.iter().map(|(hash, depth)| (*hash, Some(*depth)));
        let mut calls = Vec::new();
        for (hash, depth) in own.into_iter().chain(older) {
            // The block's own came with its verdict already, unless the wire has it later.
            if depth.is_some() || self.lane.wire == Wire::Later {
                calls.push(WitnessCall { hash, depth, ..WitnessCall::default() });
            }
            if pace.repeats {
                calls.push(WitnessCall { hash, depth, repeated: true, ..WitnessCall::default() });
            }
        }
        for call in &mut calls {
            match self.lane.ask(client, call.hash, call.depth.is_none().then_some(ready)) {
                Ok((timing, witness)) => {
                    call.seconds = Some(timing.whole);
                    call.first_byte = timing.first_byte;
                    call.last_byte = timing.last_byte;
                    call.answer_bytes = timing.answer_bytes;
                    call.witness = witness.map(|witness| Items::of(&witness));
                }
                Err(error) => call.refusal = Some(rpc::on_one_line(error.as_ref())),
            }
        }
        calls
    }

    /// Notes that a block failed, and kills the client if it was started for the run, unless it is
    /// `shared` and runs.
    pub(crate) fn failed(
        &mut self,
        server: &mut Server,
        block: u64,
        error: anyhow::Error,
        shared: bool,
    ) {
        let client = server.client.as_mut().filter(|_| went_away(&error));
        let process = client.and_then(|client| client.process.as_mut());
        let error = match process.and_then(Process::ended_soon) {
            Some(how) => Fault::Died.error(format!("it {how}")),
            None if self.run.blocks.is_empty() && Fault::of(&error) == Some(Fault::Behind) => {
                let said = error.root_cause();
                Fault::Behind.error(format!("{said}: has it the blocks before? --setup FILES"))
            }
            None => error,
        };
        self.run.fail(Fault::Refusing, Some(block), &error);
        if let Some(process) = server.client.as_ref().and_then(|client| client.process.as_ref()) {
            self.run.remarks.push(process.last_words());
        }
        if !shared || self.run.failure.as_ref().is_some_and(|it| it.fault == Fault::Died) {
            // It is killed: nothing of it disturbs the others.
            server.client = None;
        }
    }

    /// Checks that the head is the block that was sent last.
    pub(crate) fn check_head(&mut self, server: &mut Server) {
        let (None, Some(last), Some(client)) =
            (&self.run.failure, self.run.blocks.last(), &mut server.client)
        else {
            return;
        };
        let (number, hash) = (last.number, last.hash);
        match client.engine.head() {
            Ok((_, head)) if head != hash => {
                let error = Fault::Lying.error(format!("its head is {head}, not {hash}"));
                self.run.fail(Fault::Lying, Some(number), &error);
            }
            Ok(_) => {}
            Err(error) => self
                .run
                .remarks
                .push(format!("It does not tell its head: {}.", rpc::on_one_line(error.as_ref()))),
        }
    }
}

/// The stages of the last block as a client says, in microseconds; `known` is whether it seems to
/// know [`TIMINGS`].
fn server_timings(client: &mut Client, known: &mut bool) -> BTreeMap<String, f64> {
    if !*known {
        return BTreeMap::new();
    }
    let read: Option<BTreeMap<String, Value>> = client.engine.read(TIMINGS, [(); 0]).ok();
    *known = read.is_some();
    let stages = read.into_iter().flatten();
    stages.filter_map(|(name, time)| Some((name, time.as_f64()?))).collect()
}

/// Whether an error is the end of a connection.
fn went_away(error: &anyhow::Error) -> bool {
    matches!(Fault::of(error), Some(Fault::HungUp | Fault::Truncated | Fault::Unreachable))
}
