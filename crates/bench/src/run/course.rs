//! The one loop of all commands: rounds, in them stages, in them blocks, in them contenders.
//!
//! In a round the contenders are started, each on a directory that was reset. With
//! [`Plan::together`] each block goes to all of them, one after the other, and who comes first
//! changes; otherwise one contender runs all blocks, then the next one. During a turn the others
//! are stopped (`SIGSTOP`): on few cores their background work would be in its measurements, and
//! its own in theirs. What it wrote is on the disk before the next turn begins (`syncfs`), since
//! the system writes for a stopped process too. What goes wrong ends that contender's part in the
//! round and is in its [`Run`], with all blocks until then; the others go on.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use anyhow::{Context, anyhow};

use crate::chain::format::{Ground, Payload, count_of, payloads_of};
use crate::clients::client::Client;
use crate::clients::persisted::Persisted;
use crate::clients::prepare::{self, Ancestry, absent, file_name};
use crate::clients::process::{self, Process, Usage};
use crate::fault::Fault;
use crate::progress;
use crate::run::busy::Watch;
use crate::run::lane::Lane;
use crate::run::plan::{Contender, Persistence, Plan, Stage, Start};
use crate::run::sample::{Block, Measured, Run};
use crate::run::session::{BlockTurn, Server, Session};
use crate::run::tables;
use crate::turns::whose;

/// The time that all clients rest after the page cache was dropped. A guest of a hypervisor gives
/// back what has become free, some gigabytes then, in rounds of two seconds or so; meanwhile all
/// that runs in it is slow.
const SETTLING: Duration = Duration::from_secs(30);

/// A run, and where it is.
pub(crate) struct Course<'a> {
    plan: &'a Plan,
    work: PathBuf,
    /// The samples, once something was started.
    samples: Option<File>,
    measured: Measured,
    watch: Option<Watch>,
    /// The blocks before the first stage.
    ancestry: Ancestry,
}

impl Drop for Course<'_> {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.work).or_else(absent).ok();
    }
}

/// The clients that run at the same time.
#[derive(Default)]
struct Team {
    servers: Vec<Server>,
    sessions: Vec<Session>,
}

impl<'a> Course<'a> {
    /// Says loudly if the machine is busy.
    pub(crate) fn new(plan: &'a Plan) -> anyhow::Result<Self> {
        let work = prepare::working_folder(&plan.dir, "running")?;
        let watch = (!plan.ignores_load).then(Watch::begin);
        let busy = watch.as_ref().and_then(Watch::busy_before);
        let measured = Measured { busy, ..Measured::default() };
        if let Some(busy) = &measured.busy {
            eprintln!("\nTHE MACHINE IS BUSY: {busy}\n");
        }
        let Ground { setup, longest_branch, .. } = &plan.ground;
        let ancestry = Ancestry::of(setup, *longest_branch)?;
        Ok(Self { plan, work, samples: None, measured, watch, ancestry })
    }

    /// All rounds; `after` is told what was measured so far after each part of them.
    pub(crate) fn run(
        mut self,
        contenders: &[Contender],
        mut after: impl FnMut(&Measured) -> anyhow::Result<()>,
    ) -> anyhow::Result<Measured> {
        let size = if self.plan.together { contenders.len() } else { 1 };
        for round in 0..self.plan.rounds {
            for team in contenders.chunks(size.max(1)) {
                let names: Vec<&str> = team.iter().map(|contender| &*contender.name).collect();
                eprintln!("{}, round {} of {}", names.join(", "), round + 1, self.plan.rounds);
                let team = self.start(team, round);
                let ran = self.stages(team);
                if self.samples.is_some() {
                    after(&self.measured)?;
                }
                if let Err(error) = ran {
                    self.measured.remarks.push(format!(
                        "The run ended early: {}.",
                        rpc::on_one_line(error.as_ref())
                    ));
                    return Ok(self.end());
                }
                if process::interrupted() {
                    self.measured.remarks.push("The run was interrupted.".into());
                    return Ok(self.end());
                }
            }
        }
        Ok(self.end())
    }

    /// The stages on a client that runs already.
    pub(crate) fn run_on(mut self, session: Session, server: Server) -> anyhow::Result<Measured> {
        self.open()?;
        let team = Team { servers: vec![server], sessions: vec![session] };
        self.stages(team)?;
        Ok(self.end())
    }

    fn end(mut self) -> Measured {
        let busy = self.watch.as_ref().and_then(Watch::busy);
        if let Some(busy) = &busy {
            eprintln!("\nTHE MACHINE WAS BUSY: {busy}\n");
        }
        self.measured.busy = busy.or(self.measured.busy.take());
        std::mem::take(&mut self.measured)
    }

    /// Makes the folder of the results: something is measured.
    fn open(&mut self) -> anyhow::Result<()> {
        if self.samples.is_none() {
            let results = &self.plan.results;
            fs::create_dir_all(results)
                .with_context(|| format!("cannot make {}", results.display()))?;
            self.samples = Some(File::create(results.join("samples.jsonl"))?);
        }
        Ok(())
    }

    /// Starts the contenders; those that do not start have their runs already.
    fn start(&mut self, contenders: &[Contender], round: usize) -> Team {
        let mut team = Team::default();
        for contender in contenders {
            if let Err(error) = self.join(&mut team, contender, round) {
                let mut run = Run::of(&contender.name, round);
                run.fail(Fault::NotStarting, None, &error);
                self.measured.runs.push(run);
            }
        }
        team
    }

    /// Connects a contender to its server, which is started unless it is shared and runs.
    fn join(&mut self, team: &mut Team, contender: &Contender, round: usize) -> anyhow::Result<()> {
        let Plan { ground, dir, shared, pace, .. } = self.plan;
        let is_same = |server: &Server| {
            let owner = server.owner.as_ref();
            owner.is_some_and(|(owner, _)| owner.target.table == contender.target.table)
        };
        let running = team.servers.iter().position(is_same).filter(|_| *shared);
        let index = running.unwrap_or(team.servers.len());
        if running.is_none() {
            let data = self.work.join(file_name(&contender.name));
            prepare::place(&contender.target, ground, dir, &data)?;
            let with_socket = *shared || contender.wire.is_unix();
            let client = prepare::start(&contender.target, ground, &data, with_socket)?;
            let idle = self.idle(&client);
            self.open()?;
            let (client, owner) = (Some(client), Some((contender.clone(), data)));
            team.servers.push(Server { client, owner, idle, knows_timings: true });
        }
        let client = team.servers[index].client.as_ref().context("it runs")?;
        let waits = pace.persistence != Persistence::Never;
        let persisted = waits.then(|| Persisted::subscribe(&client.websocket, None)).transpose()?;
        team.sessions.push(Session {
            lane: Lane::open(contender.wire, client)?,
            server: index,
            place: team.sessions.iter().filter(|session| session.server == index).count(),
            reconnect: Duration::ZERO,
            persisted,
            run: Run::of(&contender.name, round),
        });
        Ok(())
    }

    /// The memory and processor time of a client that was started just now; at rest, where memory
    /// is measured.
    fn idle(&self, client: &Client) -> Usage {
        let usage = if self.plan.pace.compares { Process::settled } else { Process::usage };
        client.process.as_ref().map(usage).unwrap_or_default()
    }

    /// All stages, and the end of the team.
    fn stages(&mut self, mut team: Team) -> anyhow::Result<()> {
        if team.sessions.is_empty() {
            return Ok(());
        }
        let ran = self.each_stage(&mut team);
        let Team { mut servers, mut sessions } = team;
        for session in &mut sessions {
            let server = &mut servers[session.server];
            if let Some(client) = &mut server.client {
                client.thaw().ok();
            }
            if self.plan.pace.chooses {
                session.check_head(server);
            }
        }
        for (index, server) in servers.into_iter().enumerate() {
            let mut own: Vec<&mut Session> =
                sessions.iter_mut().filter(|session| session.server == index).collect();
            if let (Some(Err(error)), Some(first)) =
                (server.client.map(Client::stop), own.first_mut())
            {
                first.run.remarks.push(format!("{}.", rpc::on_one_line(error.as_ref())));
            }
            if let Some((owner, data)) = server.owner {
                owner.target.bounds.clean_up(&data);
                self.keep_log(&data, &mut own)?;
                fs::remove_dir_all(&data).or_else(absent)?;
            }
        }
        self.measured.runs.extend(sessions.into_iter().map(|session| session.run));
        tables::write_csv(&self.measured.runs, &self.plan.results)?;
        ran
    }

    /// Keeps the log of the client of these sessions beside the results, and names it there.
    fn keep_log(&self, data: &Path, own: &mut [&mut Session]) -> anyhow::Result<()> {
        let log = data.join("bench.log");
        let Some(first) = own.first() else { return Ok(()) };
        let name = format!("{}-{}.log", file_name(&first.run.client), first.run.round + 1);
        let kept = self.plan.results.join(name);
        if log.is_file() && fs::copy(&log, &kept).is_ok() {
            let log = log.canonicalize()?;
            own.iter_mut().for_each(|session| session.run.name_log(&log, &kept));
        }
        Ok(())
    }

    fn each_stage(&mut self, team: &mut Team) -> anyhow::Result<()> {
        let Plan { ground, stages, .. } = self.plan;
        let (mut fed, mut ancestry) = (ground.setup.clone(), self.ancestry.clone());
        for stage in stages {
            if stage.start != Start::Running {
                self.restart(team, stage, &fed)?;
            }
            if stage.is_fed && stage.skip > 0 {
                send_rest(team, stage, ancestry.clone())?;
            } else if stage.is_fed {
                let files = [&fed[..], &stage.files].concat();
                for client in team.clients() {
                    client.thaw()?;
                    prepare::feed(client, &files, ground.longest_branch)?;
                }
            } else {
                self.stage(team, stage, ancestry.clone())?;
            }
            // The rest of a part of which some blocks were measured is a stage of its own.
            if stage.siblings == 0 && !fed.ends_with(&stage.files) {
                fed.extend_from_slice(&stage.files);
                for payload in payloads_of(&stage.files)? {
                    ancestry.push(&payload?);
                }
            }
        }
        Ok(())
    }

    /// Starts the clients again where they are.
    fn restart(&mut self, team: &mut Team, stage: &Stage, fed: &[PathBuf]) -> anyhow::Result<()> {
        for server in &mut team.servers {
            if let Some(mut client) = server.client.take() {
                client.thaw()?;
                client.stop()?;
            }
        }
        if stage.start == Start::Cold {
            match drop_page_cache() {
                Ok(()) => std::thread::sleep(SETTLING),
                Err(remark) => self.measured.remarks.push(remark),
            }
        }
        for (index, server) in team.servers.iter_mut().enumerate() {
            let mut own: Vec<&mut Session> =
                team.sessions.iter_mut().filter(|session| session.server == index).collect();
            let Some((owner, data)) = &server.owner else { continue };
            if own.iter().any(|session| session.run.failure.is_some()) {
                continue;
            }
            let with_socket = self.plan.shared || owner.wire.is_unix();
            let mut client = owner.target.start(data, &self.plan.ground.genesis, with_socket)?;
            let lost = prepare::feed(&mut client, fed, 0)?;
            if lost > 0 {
                let (name, stage) = (&owner.name, &stage.name);
                let said = format!("{name}: {lost} blocks were fed again before the {stage} part.");
                self.measured.remarks.push(said);
            }
            for session in &mut own {
                session.lane = Lane::open(session.lane.wire, &client)?;
            }
            (server.idle, server.client) = (self.idle(&client), Some(client));
        }
        Ok(())
    }

    /// The blocks of a stage, each to all contenders.
    fn stage(&mut self, team: &mut Team, stage: &Stage, ancestry: Ancestry) -> anyhow::Result<()> {
        let mut steps = Steps::of(self, stage, team, ancestry)?;
        if steps.freezes {
            team.clients().try_for_each(Client::freeze)?;
        }
        let width = stage.siblings.max(1);
        let mut payloads = payloads_of(&stage.files)?;
        for index in 0..steps.last {
            let step = payloads.by_ref().take(width).collect::<anyhow::Result<Vec<Payload>>>()?;
            if step.len() < width {
                break;
            }
            step.iter().for_each(|payload| steps.ancestry.push(payload));
            let Some(sent) = index.checked_sub(stage.skip) else { continue };
            if process::interrupted() {
                let (servers, block) = (&mut team.servers, step[0].number);
                for session in &mut team.sessions {
                    let server = &mut servers[session.server];
                    session.failed(server, block, anyhow!("interrupted"), false);
                }
                break;
            }
            if self.plan.until.is_some_and(|until| Instant::now() > until) {
                let said = format!("The time was over after {sent} steps of {}.", stage.name);
                self.measured.remarks.push(said);
                break;
            }
            if !self.step(team, stage, &mut steps, &step, sent)? {
                break;
            }
            steps.bar.inc(1);
        }
        team.clients().try_for_each(Client::thaw)
    }

    /// One block of each contender; whether any of them goes on.
    fn step(
        &mut self,
        team: &mut Team,
        stage: &Stage,
        steps: &mut Steps,
        step: &[Payload],
        sent: usize,
    ) -> anyhow::Result<bool> {
        let (pace, clients) = (&self.plan.pace, team.sessions.len());
        let left = steps.left(&step[0]);
        let twin = stage.twins.then(|| step[0].invalid_twin()).transpose()?;
        let older = steps.older(&step[0], pace.every, &pace.depths);
        // Each client has had each place in the order when this may change. It does by the
        // Thue-Morse sequence: in half of the blocks, and in step with nothing that comes back
        // among them, as branches of one to three blocks do.
        let is_asked = !pace.alternate || (sent / clients).count_ones().is_multiple_of(2);
        let mut goes_on = false;
        for place in 0..clients {
            let session = &mut team.sessions[whose(sent, place, clients)];
            let server = &mut team.servers[session.server];
            if session.run.failure.is_some() {
                continue;
            }
            let payload = &step[session.place % step.len()];
            if server.client.is_none() {
                session.failed(server, payload.number, anyhow!("its process is over"), false);
                continue;
            }
            goes_on = true;
            let slot = steps.slot(pace.wait_time, clients, sent)?;
            process::sleep_until(slot);
            let turn = BlockTurn {
                payload,
                twin: twin.as_ref(),
                heads: steps.ancestry.heads(payload.hash),
                back: steps.back(payload, pace.reorg, sent + 1),
                pace,
                sent: sent + 1,
                slot,
                is_asked,
                older: &older,
            };
            match session.turn(server, &turn) {
                Ok(block) => {
                    let before = session.run.blocks.last().map_or(0.0, |block| block.ended);
                    let ended = match steps.first_slot {
                        Some(first) if clients == 1 => first.elapsed().as_secs_f64(),
                        _ => before + slot.elapsed().as_secs_f64(),
                    };
                    let warm_up = sent < stage.warm_up;
                    let stage = stage.name.clone();
                    let block = Block { stage, place, left, warm_up, ended, ..block };
                    self.keep(&session.run, &block)?;
                    session.run.blocks.push(block);
                }
                Err(error) => session.failed(server, payload.number, error, self.plan.shared),
            }
            if clients > 1 {
                process::sleep_until(slot + pace.wait_time.unwrap_or_default());
            }
            if let (true, Some(client)) = (steps.freezes, &mut server.client) {
                client.freeze()?;
                if steps.writes_out {
                    let synced = rustix::fs::syncfs(&steps.disk);
                    synced.context("what was written could not be synced")?;
                }
            }
        }
        Ok(goes_on)
    }

    /// Writes a sample.
    fn keep(&mut self, run: &Run, block: &Block) -> anyhow::Result<()> {
        let Run { client, round, .. } = run;
        let line = serde_json::json!({"client": client, "round": round, "block": block});
        let samples = self.samples.as_mut().context("there is a folder for results")?;
        Ok(samples.write_all(format!("{line}\n").as_bytes())?)
    }
}

/// Sends the blocks of a stage behind its first ones, in order: a client chooses each branch when
/// its turn comes, as it does where all blocks are measured.
fn send_rest(team: &mut Team, stage: &Stage, mut ancestry: Ancestry) -> anyhow::Result<()> {
    team.clients().try_for_each(Client::thaw)?;
    for (index, payload) in payloads_of(&stage.files)?.enumerate() {
        let payload = payload?;
        ancestry.push(&payload);
        if index < stage.skip {
            continue;
        }
        let heads = ancestry.heads(payload.hash);
        for client in team.clients() {
            let sent = client.new_payload_patiently(&payload);
            let chosen = sent.and_then(|()| client.engine.forkchoice_updated(heads));
            chosen.map_err(|error| client.blame(error))?;
        }
    }
    Ok(())
}

impl Team {
    fn clients(&mut self) -> impl Iterator<Item = &mut Client> {
        self.servers.iter_mut().filter_map(|server| server.client.as_mut())
    }
}

/// How far a stage is.
struct Steps {
    /// Steps up to the last one, those left out included.
    last: usize,
    freezes: bool,
    /// The disk on which the clients write, which is synced while they are stopped.
    disk: File,
    writes_out: bool,
    bar: indicatif::ProgressBar,
    first_slot: Option<Instant>,
    ancestry: Ancestry,
    /// The block that is head, and its number.
    head: Option<(B256, u64)>,
    hashes: Vec<B256>,
}

impl Steps {
    fn of(
        course: &Course<'_>,
        stage: &Stage,
        team: &Team,
        ancestry: Ancestry,
    ) -> anyhow::Result<Self> {
        let before = stage.skip.saturating_add(stage.warm_up);
        let last = stage.count.map_or(usize::MAX, |count| before.saturating_add(count));
        let steps = count_of(&stage.files)? / stage.siblings.max(1);
        let names: Vec<&str> = team.sessions.iter().map(|it| it.run.client.as_str()).collect();
        let what = if stage.name.is_empty() { names.join(", ") } else { stage.name.clone() };
        let freezes = course.plan.pace.freeze && team.servers.len() > 1;
        // A throttled client's pages would be waited for at the pace of its disk.
        let mut owners = team.servers.iter().filter_map(|server| server.owner.as_ref());
        let is_throttled = owners.any(|(owner, _)| owner.target.bounds.disk_bytes.is_some());
        Ok(Self {
            last,
            freezes,
            disk: File::open(&course.work)?,
            writes_out: freezes && !is_throttled,
            bar: progress::bar(what, steps.min(last).saturating_sub(stage.skip)),
            first_slot: None,
            ancestry,
            head: None,
            hashes: Vec::new(),
        })
    }

    /// The ancestor to which the fork choice goes back after the `sent`-th block, if it is due.
    fn back(&self, payload: &Payload, reorg: Option<u64>, sent: usize) -> Option<B256> {
        let depth =
            reorg.map(|depth| depth as usize).filter(|depth| sent.is_multiple_of(*depth))?;
        let ancestor = self.ancestry.ancestor(payload.hash, depth);
        (!ancestor.is_zero()).then_some(ancestor)
    }

    /// Blocks of the branch that is left for this one; 0 if its parent is the head.
    fn left(&mut self, payload: &Payload) -> u64 {
        match self.head.replace((payload.hash, payload.number)) {
            Some((hash, number)) if hash != payload.parent => number + 1 - payload.number,
            _ => 0,
        }
    }

    /// The blocks that are asked for once this one is the head.
    fn older(&mut self, payload: &Payload, every: usize, depths: &[usize]) -> Vec<(B256, usize)> {
        self.hashes.push(payload.hash);
        let index = self.hashes.len() - 1;
        let at = |depth: &usize| {
            let asked = index.checked_sub(*depth)?;
            asked.is_multiple_of(every).then(|| (self.hashes[asked], *depth))
        };
        depths.iter().filter_map(at).collect()
    }

    /// When the slot of this block begins: at once, unless one client is sent a block a slot.
    fn slot(
        &mut self,
        wait_time: Option<Duration>,
        clients: usize,
        sent: usize,
    ) -> anyhow::Result<Instant> {
        let first = *self.first_slot.get_or_insert_with(Instant::now);
        Ok(match wait_time {
            Some(time) if clients == 1 => first + time.saturating_mul(u32::try_from(sent)?),
            _ => Instant::now(),
        })
    }
}

/// Writes all dirty pages and forgets the clean ones; a remark when that is not permitted.
fn drop_page_cache() -> Result<(), String> {
    // Dirty pages cannot be dropped.
    std::process::Command::new("sync").status().ok();
    let dropped = fs::write("/proc/sys/vm/drop_caches", "3");
    dropped.map_err(|error| {
        format!("The page cache was not dropped ({error}): the cold part is only a restart.")
    })
}

#[cfg(test)]
mod tests;
