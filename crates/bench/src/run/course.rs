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
use crate::clients::process::{self, Usage};
use crate::fault::Fault;
use crate::progress;
use crate::run::busy::Watch;
use crate::run::lane::Lane;
use crate::run::plan::{Contender, Persistence, Plan, Stage, Start};
use crate::run::sample::{Block, Measured, Run};
use crate::run::session::{Server, Session, Turn};
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

/// Those who run at the same time.
#[derive(Default)]
struct Team {
    servers: Vec<Server>,
    sessions: Vec<Session>,
    /// The contender of each server.
    owners: Vec<Contender>,
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
                    self.measured.remarks.push(format!("The run ended early: {error:#}."));
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
        let team = Team { servers: vec![server], sessions: vec![session], owners: Vec::new() };
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
            let mut run = Run::of(&contender.name, round);
            match self.join(&mut team, contender) {
                Ok((lane, server, persisted)) => {
                    let place = team.sessions.iter().filter(|s| s.server == server).count();
                    let reconnect = Duration::ZERO;
                    team.sessions.push(Session { lane, server, place, reconnect, persisted, run });
                }
                Err(error) => {
                    run.fail(Fault::NotStarting, None, &error);
                    self.measured.runs.push(run);
                }
            }
        }
        team
    }

    /// Connects a contender to its server, which is started unless it is shared and runs.
    fn join(
        &mut self,
        team: &mut Team,
        contender: &Contender,
    ) -> anyhow::Result<(Lane, usize, Option<Persisted>)> {
        let is_same = |owner: &Contender| owner.target.table == contender.target.table;
        let running = team.owners.iter().position(is_same).filter(|_| self.plan.shared);
        let index = match running {
            Some(index) => index,
            None => {
                let Plan { ground, dir, shared, .. } = self.plan;
                let data = self.work.join(file_name(&contender.name));
                prepare::place(&contender.target, ground, dir, &data)?;
                let with_socket = *shared || contender.wire.is_unix();
                let client = prepare::start(&contender.target, ground, &data, with_socket)?;
                let idle = self.idle(&client);
                self.open()?;
                let client = Some(client);
                team.servers.push(Server { client, data, idle, knows_timings: true });
                team.owners.push(contender.clone());
                team.servers.len() - 1
            }
        };
        let client = team.servers[index].client.as_ref().context("it runs")?;
        let waits = self.plan.pace.persistence != Persistence::Never;
        let persisted = waits.then(|| Persisted::subscribe(&client.websocket, None)).transpose()?;
        Ok((Lane::open(contender.wire, client)?, index, persisted))
    }

    /// What a client uses that was started just now; at rest, where that is what is measured.
    fn idle(&self, client: &Client) -> Usage {
        match self.plan.pace.compares {
            true => client.settled(),
            false => client.usage().unwrap_or_default(),
        }
    }

    /// All stages, and the end of the team.
    fn stages(&mut self, mut team: Team) -> anyhow::Result<()> {
        if team.sessions.is_empty() {
            return Ok(());
        }
        let ran = self.each_stage(&mut team);
        let Team { servers, mut sessions, owners } = team;
        let mut servers: Vec<Server> = servers;
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
            let Server { client, data, .. } = server;
            let own = sessions.iter_mut().find(|session| session.server == index);
            if let (Some(Err(error)), Some(own)) = (client.map(Client::stop), own) {
                own.run.remarks.push(format!("{error:#}."));
            }
            if let Some(owner) = owners.get(index) {
                owner.target.bounds.clean_up(&data);
            }
            self.keep_log(&data, &mut sessions, index)?;
            fs::remove_dir_all(&data).or_else(absent)?;
        }
        self.measured.runs.extend(sessions.into_iter().map(|session| session.run));
        tables::write_csv(&self.measured.runs, &self.plan.results)?;
        ran
    }

    /// Keeps a client's log beside the results, and names it there.
    fn keep_log(&self, data: &Path, sessions: &mut [Session], server: usize) -> anyhow::Result<()> {
        let log = data.join("bench.log");
        let mut own = sessions.iter_mut().filter(|session| session.server == server).peekable();
        let Some(first) = own.peek() else { return Ok(()) };
        let name = format!("{}-{}.log", file_name(&first.run.client), first.run.round + 1);
        let kept = self.plan.results.join(name);
        if log.is_file() && fs::copy(&log, &kept).is_ok() {
            let log = log.canonicalize()?;
            own.for_each(|session| session.run.name_log(&log, &kept));
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
            if stage.is_fed {
                let mut files = fed.clone();
                files.extend_from_slice(&stage.files);
                for server in team.servers.iter_mut().filter_map(|s| s.client.as_mut()) {
                    server.thaw()?;
                    prepare::feed(server, &files, ground.longest_branch)?;
                }
            } else {
                self.stage(team, stage, ancestry.clone())?;
            }
            if stage.siblings == 0 {
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
        for (index, (server, owner)) in team.servers.iter_mut().zip(&team.owners).enumerate() {
            let mut own: Vec<&mut Session> =
                team.sessions.iter_mut().filter(|session| session.server == index).collect();
            if own.iter().any(|session| session.run.failure.is_some()) {
                continue;
            }
            let with_socket = self.plan.shared || owner.wire.is_unix();
            let genesis = &self.plan.ground.genesis;
            let mut client = owner.target.start(&server.data, genesis, with_socket)?;
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
    fn stage(
        &mut self,
        team: &mut Team,
        stage: &Stage,
        mut ancestry: Ancestry,
    ) -> anyhow::Result<()> {
        let disk = File::open(&self.work)?;
        let mut steps = Steps::of(self.plan, stage, team)?;
        if steps.freezes {
            team.freeze()?;
        }
        let width = stage.siblings.max(1);
        let mut payloads = payloads_of(&stage.files)?.take(steps.last.saturating_mul(width));
        let mut index = 0;
        loop {
            let step = payloads.by_ref().take(width).collect::<anyhow::Result<Vec<Payload>>>()?;
            if step.len() < width {
                break;
            }
            step.iter().for_each(|payload| ancestry.push(payload));
            index += 1;
            let Some(sent) = (index - 1usize).checked_sub(stage.skip) else { continue };
            if process::interrupted() {
                team.fail_all(step[0].number);
                break;
            }
            if self.plan.until.is_some_and(|until| Instant::now() > until) {
                let said = format!("The time was over after {sent} steps of {}.", stage.name);
                self.measured.remarks.push(said);
                break;
            }
            if !self.step(team, stage, &mut steps, &step, &ancestry, (sent, &disk))? {
                break;
            }
            steps.bar.inc(1);
        }
        team.servers.iter_mut().filter_map(|s| s.client.as_mut()).try_for_each(|c| c.thaw())
    }

    /// One block of each contender; whether any of them goes on.
    fn step(
        &mut self,
        team: &mut Team,
        stage: &Stage,
        steps: &mut Steps,
        step: &[Payload],
        ancestry: &Ancestry,
        (sent, disk): (usize, &File),
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
            let turn = Turn {
                payload,
                twin: twin.as_ref(),
                ancestry,
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
                    rustix::fs::syncfs(disk).context("what was written could not be synced")?;
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

impl Team {
    fn freeze(&mut self) -> anyhow::Result<()> {
        self.servers.iter_mut().filter_map(|s| s.client.as_mut()).try_for_each(|c| c.freeze())
    }

    fn fail_all(&mut self, block: u64) {
        for session in &mut self.sessions {
            session.failed(&mut self.servers[session.server], block, anyhow!("interrupted"), false);
        }
    }
}

/// How far a stage is.
struct Steps {
    /// Steps up to the last one, those left out included.
    last: usize,
    freezes: bool,
    writes_out: bool,
    bar: indicatif::ProgressBar,
    first_slot: Option<Instant>,
    /// The block that is head, and its number.
    head: Option<(B256, u64)>,
    hashes: Vec<B256>,
}

impl Steps {
    fn of(plan: &Plan, stage: &Stage, team: &Team) -> anyhow::Result<Self> {
        let before = stage.skip.saturating_add(stage.warm_up);
        let last = stage.count.map_or(usize::MAX, |count| before.saturating_add(count));
        let steps = count_of(&stage.files)? / stage.siblings.max(1);
        let names: Vec<&str> = team.sessions.iter().map(|it| it.run.client.as_str()).collect();
        let what = if stage.name.is_empty() { names.join(", ") } else { stage.name.clone() };
        let freezes = plan.pace.freeze && team.servers.len() > 1;
        // A throttled client's pages would be waited for at the pace of its disk.
        let is_throttled = team.owners.iter().any(|it| it.target.bounds.disk_bytes.is_some());
        Ok(Self {
            last,
            freezes,
            writes_out: freezes && !is_throttled,
            bar: progress::bar(what, steps.min(last).saturating_sub(stage.skip)),
            first_slot: None,
            head: None,
            hashes: Vec::new(),
        })
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
