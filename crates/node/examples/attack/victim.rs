//! The node under attack, a process of its own.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use client::EngineClient;
use rpc::JwtSecret;
use rustix::process::{Pid, Signal, kill_process};

use crate::Payload;
use crate::bystander::heads;

/// A node that runs, and is killed when it is dropped.
pub(crate) struct Victim {
    process: Child,
    files: tempfile::TempDir,
    pub(crate) http: SocketAddr,
    pub(crate) engine: SocketAddr,
    pub(crate) ipc: PathBuf,
    pub(crate) chain_id: u64,
    secret: JwtSecret,
    /// A new connection for each call to the Engine API, as of a consensus client that comes late.
    connects: bool,
}

/// The resident memory of a node, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) before: u64,
    pub(crate) peak: u64,
    pub(crate) after: u64,
}

/// Looks at the memory of a process until it is told to end.
pub(crate) struct MemoryWatch {
    pub(crate) before: u64,
    peak: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Victim {
    /// Starts a node on a chain, whose soft limit of open files is `open_files`.
    pub(crate) async fn start(genesis: &str, open_files: Option<u64>) -> anyhow::Result<Self> {
        let files = tempfile::tempdir()?;
        let path = |name| files.path().join(name);
        std::fs::write(path("genesis.json"), genesis)?;
        let log = std::fs::File::create(path("log"))?;
        let mut command = limited(&program()?, open_files);
        command.args(["node", "--http.port", "0", "--authrpc.port", "0"]);
        command.arg("--chain").arg(path("genesis.json")).arg("--datadir").arg(path("data"));
        command.env("NO_COLOR", "1").stdout(log.try_clone()?).stderr(log).stdin(Stdio::null());
        command.process_group(0);
        let process = command.spawn().context("the node does not start")?;
        let mut victim = Self {
            process,
            http: ([127, 0, 0, 1], 0).into(),
            engine: ([127, 0, 0, 1], 0).into(),
            ipc: path("data/deponent.ipc"),
            chain_id: serde_json::from_str::<alloy_genesis::Genesis>(genesis)?.config.chain_id,
            secret: JwtSecret::random(),
            connects: open_files.is_some(),
            files,
        };
        victim.find_ports().await?;
        victim.secret = JwtSecret::load(&victim.files.path().join("data/jwt.hex"))?;
        Ok(victim)
    }

    /// Reads the ports from the log.
    async fn find_ports(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let log = self.log();
            let of = |name: &str| {
                let (_, rest) = log.split_once(name)?;
                rest.split(|sign: char| sign.is_whitespace()).next()?.parse().ok()
            };
            if let (Some(engine), Some(http)) = (of("engine="), of("http=")) {
                (self.engine, self.http) = (engine, http);
                return Ok(());
            }
            ensure!(begun.elapsed() < Duration::from_secs(20), "the node says no ports: {log}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.files.path().join("log")).unwrap_or_default()
    }

    /// Sends payloads and fork choices; the median time of the payloads, and the 99th percentile.
    pub(crate) async fn send(
        &self,
        payloads: &[Payload],
        pause: Duration,
    ) -> anyhow::Result<[Duration; 2]> {
        let connect = async || {
            let secret = Some(self.secret.clone());
            EngineClient::connect(&self.engine.to_string(), secret).await
        };
        let mut client = connect().await?;
        let mut times = Vec::new();
        for payload in payloads {
            tokio::time::sleep(pause).await;
            if self.connects {
                client = connect().await?;
            }
            let begun = Instant::now();
            let status = client.new_payload(&payload.0, &payload.1).await?;
            times.push(begun.elapsed());
            ensure!(status.is_valid(), "a payload is {status:?}");
            client.forkchoice_updated(heads(payload), None).await?;
        }
        times.sort();
        Ok([times[times.len() / 2], times[times.len() * 99 / 100]])
    }

    /// Resident memory, in bytes.
    pub(crate) fn memory(&self) -> anyhow::Result<u64> {
        resident(self.process.id())
    }

    pub(crate) fn watch_memory(&self) -> MemoryWatch {
        let (process, before) = (self.process.id(), self.memory().unwrap_or_default());
        let (peak, ended) = (Arc::new(AtomicU64::new(before)), Arc::<AtomicBool>::default());
        let watch = MemoryWatch { before, peak: Arc::clone(&peak), ended: Arc::clone(&ended) };
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                peak.fetch_max(resident(process).unwrap_or_default(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        watch
    }

    /// Asks the node to stop; how long it takes.
    pub(crate) async fn stop(mut self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let process = Pid::from_child(&self.process);
        kill_process(process, Signal::TERM)?;
        while begun.elapsed() < Duration::from_secs(40) {
            if let Some(status) = self.process.try_wait()? {
                ensure!(status.success(), "the node ends with {status}: {}", self.log());
                return Ok(begun.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(begun.elapsed())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl MemoryWatch {
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) -> Memory {
        self.ended.store(true, Ordering::Relaxed);
        Memory { before: self.before, peak: self.peak(), after: 0 }
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

fn resident(process: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: u64 = line.context("no VmRSS")?.trim_end_matches("kB").trim().parse()?;
    Ok(kib << 10)
}

/// `deponent`, beside the folder of this example.
fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(|folder| folder.parent()).context("no folder above")?;
    let program = folder.join("deponent");
    ensure!(program.is_file(), "no {}: cargo xtask attack builds it", program.display());
    Ok(program)
}

/// A program with a soft limit of open files, if one is given.
fn limited(program: &Path, open_files: Option<u64>) -> Command {
    let Some(limit) = open_files else { return Command::new(program) };
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -Sn \"$0\"; exec \"$@\"", &limit.to_string()]).arg(program);
    shell
}
