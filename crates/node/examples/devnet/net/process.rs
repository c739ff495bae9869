//! A program of the network: a process of its own that is started, stopped and killed by its id,
//! and whose words go to one file.

use std::fs::{File, OpenOptions};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// The time that a program has to end after SIGTERM.
const ENDING: Duration = Duration::from_secs(90);
/// Between two looks at a program that is to end.
const PAUSE: Duration = Duration::from_millis(20);

/// A program, whether it runs or not. One that runs is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    path: PathBuf,
    log: PathBuf,
    process: Option<Child>,
}

impl Program {
    /// A program that does not run yet, whose log is in `folder`.
    pub(crate) fn new(name: String, path: PathBuf, folder: &Path) -> Self {
        let log = folder.join(format!("{name}.log"));
        Self { name, path, log, process: None }
    }

    /// Starts it. Its words are added to those of earlier runs.
    pub(crate) fn start(&mut self, arguments: &[String]) -> anyhow::Result<()> {
        ensure!(self.process.is_none(), "{} runs already", self.name);
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.path);
        command.args(arguments).env("NO_COLOR", "1").stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log).process_group(0);
        let started = command.spawn();
        let told = || format!("{} ({}) does not start", self.name, self.path.display());
        self.process = Some(started.with_context(told)?);
        Ok(())
    }

    /// Fails if it has ended without being told to.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        let Some(process) = &mut self.process else { return Ok(()) };
        if let Some(status) = process.try_wait()? {
            let end = self.words_from(0);
            let end: Vec<_> = end.lines().rev().take(5).collect();
            let last: String = end.into_iter().rev().map(|line| format!("\n  {line}")).collect();
            bail!("{} has ended with {status}; its last lines:{last}", self.name);
        }
        Ok(())
    }

    pub(crate) const fn runs(&self) -> bool {
        self.process.is_some()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let process = self.process.as_ref().with_context(|| format!("{} runs not", self.name))?;
        Ok(kill_process(Pid::from_child(process), signal)?)
    }

    /// Asks it to end (SIGTERM) and waits until it has; how long that took.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        self.signal(Signal::TERM)?;
        loop {
            let process = self.process.as_mut().context("it runs")?;
            if process.try_wait()?.is_some() {
                self.process = None;
                return Ok(begun.elapsed());
            }
            ensure!(begun.elapsed() < ENDING, "{} does not end within {ENDING:?}", self.name);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Ends it at once (SIGKILL).
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::KILL)?;
        if let Some(mut process) = self.process.take() {
            process.wait()?;
        }
        Ok(())
    }

    /// Bytes in its log.
    pub(crate) fn position(&self) -> u64 {
        File::open(&self.log).and_then(|log| log.metadata()).map_or(0, |found| found.len())
    }

    /// Its words from a [`position`](Self::position) on.
    pub(crate) fn words_from(&self, position: u64) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let from = usize::try_from(position).map_or(log.len(), |from| from.min(log.len()));
        String::from_utf8_lossy(&log[from..]).into_owned()
    }

    /// Resident memory now, and the most that it was since its start, in bytes.
    pub(crate) fn memory(&self) -> anyhow::Result<[u64; 2]> {
        let process = self.process.as_ref().with_context(|| format!("{} runs not", self.name))?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id()))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.with_context(|| format!("no {name}"))?.trim_end_matches("kB").trim();
            anyhow::Ok(kib.parse::<u64>()? << 10)
        };
        Ok([field("VmRSS:")?, field("VmHWM:")?])
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            process.kill().ok();
            process.wait().ok();
        }
    }
}
