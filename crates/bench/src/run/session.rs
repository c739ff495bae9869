//! A client in a round: one connection to a process, and what it measured.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use serde_json::Value;

use crate::chain::format::Payload;
use crate::clients::client::Client;
use crate::clients::persisted::Persisted;
use crate::clients::port::{Heads, Timing};
use crate::clients::prepare::Ancestry;
use crate::clients::process::{self, Usage};
use crate::fault::Fault;
use crate::run::lane::{Lane, Ready, Wire};
use crate::run::plan::{Pace, Persistence};
use crate::run::sample::{Asked, Block, Items, Resources, Run};

/// Between two attempts to reach a client that has gone away.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);
/// Where our node says how long the last block's stages took: numbers are microseconds.
const TIMINGS: &str = "deponent_lastTimings";

/// A client that runs, or failed.
pub(crate) struct Server {
    /// `None` once it failed or was stopped.
    pub(crate) client: Option<Client>,
    /// Its directory.
    pub(crate) data: PathBuf,
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

/// One turn: what is sent, and where in the run.
pub(crate) struct Turn<'a> {
    pub(crate) payload: &'a Payload,
    pub(crate) twin: Option<&'a Payload>,
    pub(crate) ancestry: &'a Ancestry,
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

/// The calls with which a block is sent.
struct Sent {
    validated: Timing,
    witness: Option<Items>,
    forkchoice: Duration,
    interrupted: bool,
}

impl Session {
    /// One block: the payload, the fork choice, and what is waited and asked for.
    pub(crate) fn turn(&mut self, server: &mut Server, turn: &Turn<'_>) -> anyhow::Result<Block> {
        let Turn { payload, pace, sent, .. } = *turn;
        let client =
            server.client.as_mut().ok_or_else(|| Fault::Died.error("it is over".into()))?;
        let ready = self.lane.ready(payload)?;
        client.thaw()?;
        let before = client.usage();
        if pace.compares {
            client.reset_peak();
        }
        let with_witness = turn.is_asked && pace.asks && self.lane.wire.has_witness();
        let queue_wait = turn.slot.elapsed();
        let heads = turn.ancestry.heads(payload.hash);
        let calls = self.send(client, &ready, heads, turn, with_witness);
        let calls = match calls {
            Ok(calls) => calls,
            Err(error) => self.send_again(client, &ready, heads, turn, with_witness, error)?,
        };
        let mut persistence_wait = None;
        if let (Persistence::Every(blocks), Some(persisted)) =
            (pace.persistence, &mut self.persisted)
            && sent.is_multiple_of(blocks)
        {
            let began = Instant::now();
            persisted.wait_for(payload.hash, pace.persistence_timeout)?;
            persistence_wait = Some(began.elapsed().as_secs_f64());
        }
        let reorg = back_and_forth(client, turn, heads)?;
        let server_us = server_timings(client, &mut server.knows_timings);
        let asked = self.asked(client, &ready, turn, with_witness);
        std::thread::sleep(pace.pause);
        let resources = client.usage().map(|after| Resources {
            idle_kib: server.idle.resident_kib,
            before_kib: before.map_or(0, |before| before.resident_kib),
            resident_kib: after.resident_kib,
            peak_kib: after.peak_kib,
            files_kib: client.unmapped_files_kib(),
            cpu_ms: after.cpu_ms.saturating_sub(before.map_or(0, |before| before.cpu_ms)),
        });
        let Sent { validated, witness, forkchoice, interrupted } = calls;
        Ok(Block {
            number: payload.number,
            hash: payload.hash,
            state_root: payload.state_root,
            gas_limit: payload.gas_limit,
            gas_used: payload.gas_used,
            transactions: payload.transactions,
            with_witness,
            new_payload: validated.whole.as_secs_f64(),
            first_byte: validated.first_byte.as_secs_f64(),
            last_byte: validated.last_byte.as_secs_f64(),
            answer_bytes: validated.answer_bytes,
            forkchoice: forkchoice.as_secs_f64(),
            queue_wait: queue_wait.as_secs_f64(),
            persistence_wait,
            reorg,
            interrupted,
            witness,
            asked,
            resources,
            server_us,
            ..Block::default()
        })
    }

    /// The payload, its invalid twin, and the fork choice.
    fn send(
        &mut self,
        client: &mut Client,
        ready: &Ready<'_>,
        heads: Heads,
        turn: &Turn<'_>,
        with_witness: bool,
    ) -> anyhow::Result<Sent> {
        let in_one = with_witness && self.lane.wire != Wire::Later;
        let (validated, witness) = self.lane.new_payload(client, ready, in_one)?;
        let witness = witness.filter(|_| turn.pace.compares).map(|witness| Items::of(&witness));
        if let Some(twin) = turn.twin {
            client.engine.invalid_payload(twin)?;
        }
        let mut forkchoice = Duration::ZERO;
        if turn.pace.chooses {
            forkchoice = client.engine.forkchoice_updated(heads)?.whole;
        }
        Ok(Sent { validated, witness, forkchoice, interrupted: false })
    }

    /// The same again, to a client that went away and may come back; otherwise `error`.
    fn send_again(
        &mut self,
        client: &mut Client,
        ready: &Ready<'_>,
        heads: Heads,
        turn: &Turn<'_>,
        with_witness: bool,
        error: anyhow::Error,
    ) -> anyhow::Result<Sent> {
        let began = Instant::now();
        let mut last = error;
        while went_away(&last) && began.elapsed() < self.reconnect && !process::interrupted() {
            std::thread::sleep(RECONNECT_PAUSE);
            match self.send(client, ready, heads, turn, with_witness) {
                Ok(sent) => {
                    let (number, seconds) = (turn.payload.number, began.elapsed().as_secs_f64());
                    self.run.remarks.push(format!(
                        "It went away during block {number} and answered again after \
                         {seconds:.1} s: the block does not count."
                    ));
                    return Ok(Sent { interrupted: true, ..sent });
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
    fn asked(
        &mut self,
        client: &mut Client,
        ready: &Ready<'_>,
        turn: &Turn<'_>,
        with_witness: bool,
    ) -> Vec<Asked> {
        let Turn { payload, pace, older, .. } = *turn;
        let mut calls = Vec::new();
        if with_witness && self.lane.wire == Wire::Later {
            calls.push((payload.hash, None, false));
        }
        if with_witness && pace.repeats {
            calls.push((payload.hash, None, true));
        }
        for (hash, depth) in older {
            calls.push((*hash, Some(*depth), false));
            calls.extend(pace.repeats.then_some((*hash, Some(*depth), true)));
        }
        let asked = calls.into_iter().map(|(hash, depth, repeated)| {
            let again = depth.is_none().then_some(ready);
            let asked = Asked { hash, depth, repeated, ..Asked::default() };
            match self.lane.ask(client, hash, again) {
                Ok((timing, witness)) => Asked {
                    seconds: Some(timing.whole.as_secs_f64()),
                    first_byte: timing.first_byte.as_secs_f64(),
                    last_byte: timing.last_byte.as_secs_f64(),
                    answer_bytes: timing.answer_bytes,
                    witness: witness.map(|witness| Items::of(&witness)),
                    ..asked
                },
                Err(error) => Asked { refusal: Some(format!("{error:#}")), ..asked },
            }
        });
        asked.collect()
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
        let error = match process.and_then(process::Process::ended_soon) {
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
            Err(error) => self.run.remarks.push(format!("It does not tell its head: {error:#}.")),
        }
    }
}

/// Moves the fork choice back and forth, if that is due after this block; the seconds of both.
fn back_and_forth(
    client: &mut Client,
    turn: &Turn<'_>,
    heads: Heads,
) -> anyhow::Result<Option<[f64; 2]>> {
    let depth = turn.pace.reorg.map(|depth| depth as usize);
    let depth = depth.filter(|depth| turn.sent.is_multiple_of(*depth));
    let back = depth.map(|depth| turn.ancestry.ancestor(turn.payload.hash, depth));
    let Some(head) = back.filter(|ancestor| !ancestor.is_zero()) else { return Ok(None) };
    let there = client.engine.forkchoice_updated(Heads { head, ..heads })?;
    let and_back = client.engine.forkchoice_updated(heads)?;
    Ok(Some([there, and_back].map(|timing| timing.whole.as_secs_f64())))
}

/// What a client says of its last block, in microseconds; `known` is whether it seems to know
/// [`TIMINGS`].
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
