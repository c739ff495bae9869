//! Child processes that end with this one: after an error, a panic, and an interrupt.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, PipeReader, Write, pipe};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::fault::Fault;

/// For a client to finish what it writes when it is told to stop, unless its target says otherwise.
const STOP_TIME: Duration = Duration::from_secs(600);
/// Between two looks at a process that is ending.
pub(crate) const STOP_PAUSE: Duration = Duration::from_millis(20);
/// For a process that was stopped: all its threads wake together when it goes on, whatever their
/// priority, and the system may have them go before the one that answers.
const THAWING: Duration = Duration::from_millis(5);
/// For what was measured to be written after an interrupt.
const WRITING_TIME: Duration = Duration::from_secs(10);
/// As shells have it.
pub(crate) const INTERRUPTED_STATUS: u8 = 130;
/// The longest sleep without a look whether an interrupt came.
const NAP: Duration = Duration::from_millis(100);
/// Looks at a process whose connection ended, until it has ended too.
pub(crate) const DYING_TRIES: usize = 50;
/// The end of a log that is shown.
const LAST_WORDS_BYTES: usize = 600;

/// For a client to come to rest after it was started: some read what they will need.
const SETTLE_TIME: Duration = Duration::from_secs(20);
/// Between two looks at its memory, and by how much that may differ at rest.
const SETTLE_PAUSE: Duration = Duration::from_millis(500);
const SETTLED_KIB: u64 = 1 << 10;

/// Lines of a log that are kept for a reader that waits for one; further ones go to the file alone.
const LINES_WAITING: usize = 10_000;

/// The children that run.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn with_running<T>(act: impl FnOnce(&mut Vec<Pid>) -> T) -> T {
    act(&mut RUNNING.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Whether this process was told to end.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether an interrupt came. The children are killed then; a command writes what it measured and
/// returns.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Sleeps until then, or until an interrupt comes.
pub(crate) fn sleep_until(end: Instant) {
    while !interrupted() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(NAP));
    }
}

fn kill_children() {
    with_running(|running| {
        for pid in running.drain(..) {
            kill_process_group(pid, Signal::KILL).ok();
        }
    });
}

/// From here on an interrupt ends the children, and this process when it has written what it
/// measured, or a second one comes. It needs no runtime.
pub(crate) fn end_children_on_interrupt() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupt, mut terminate) = {
        let _guard = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            INTERRUPTED.store(true, Ordering::Relaxed);
            kill_children();
            let again = async {
                tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            };
            tokio::time::timeout(WRITING_TIME, again).await.ok();
        });
        kill_children();
        std::process::exit(INTERRUPTED_STATUS.into());
    });
    Ok(())
}

/// A command that ends when we are killed, too, where `setpriv` of util-linux is there.
pub(crate) fn bound_to_us(program: &Path) -> Command {
    let known = Command::new("setpriv").arg("--version").stdout(Stdio::null()).status();
    if known.is_ok_and(|status| status.success()) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        return command;
    }
    Command::new(program)
}

/// A process whose log goes to a file, and those that it starts: a script may start the program.
/// Dropped, they are killed.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Its number, and that of its process group.
    pid: Pid,
    is_over: bool,
    is_frozen: bool,
    log: PathBuf,
    lines: Receiver<String>,
    /// The longest time that it may take to stop.
    pub(crate) stop_time: Duration,
}

impl Process {
    /// Starts `command`; what it prints is its log.
    pub(crate) fn start(mut command: Command, log: &Path) -> anyhow::Result<Self> {
        ensure!(!interrupted(), "interrupted");
        let (printed, end) = pipe()?;
        command.stdin(Stdio::null()).stdout(end.try_clone()?).stderr(end).process_group(0);
        let shown = format!("{command:?}");
        let mut file = std::fs::File::options().create(true).append(true).open(log)?;
        writeln!(file, "$ {shown}")?;
        let child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
        // The command has our copies of the pipe's end; the child alone is to keep it open.
        drop(command);
        let pid = Pid::from_child(&child);
        with_running(|running| running.push(pid));
        let lines = tee(printed, file);
        let (log, is_over, is_frozen) = (log.into(), false, false);
        Ok(Self { child, pid, is_over, is_frozen, log, lines, stop_time: STOP_TIME })
    }

    /// The first line of the log, until `end`, that `read` finds something in.
    pub(crate) fn wait_for<T>(
        &mut self,
        what: &str,
        end: Instant,
        read: impl Fn(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    if let Some(found) = read(&line) {
                        return Ok(found);
                    }
                }
                Err(_) => bail!("it never said {what}: {}", self.last_words()),
            }
        }
    }

    /// How it ended, in words, when it has.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("exited with {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "ended".into(),
        })
    }

    /// The same when a connection to it has ended, which is before the process does.
    pub(crate) fn ended_soon(&mut self) -> Option<String> {
        (0..DYING_TRIES).find_map(|_| {
            self.ended().or_else(|| {
                std::thread::sleep(STOP_PAUSE);
                None
            })
        })
    }

    /// `error` of a connection to it, or that it has ended.
    pub(crate) fn blame(&mut self, error: anyhow::Error) -> anyhow::Error {
        match self.ended_soon() {
            Some(how) => Fault::Died.error(format!("it {how}: {}", self.last_words())),
            None => error,
        }
    }

    /// The end of its log, and where that is.
    pub(crate) fn last_words(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let end = text.len().saturating_sub(LAST_WORDS_BYTES);
        let words = String::from_utf8_lossy(&text[end..]);
        // Errors are on one line.
        let lines: Vec<&str> =
            words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        format!("see {}, which ends in: {}", self.log.display(), lines.join(" | "))
    }

    /// Its number, for `/proc`: where a script started the program, that of the largest process.
    fn id(&self) -> u32 {
        let largest = self.members().into_iter().max_by_key(|id| Usage::of(*id).resident_kib);
        largest.unwrap_or_else(|| self.child.id())
    }

    /// The processes of its group that have not ended; none where the system does not say.
    fn members(&self) -> Vec<u32> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_member = |id: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            // Behind the name in parentheses: state, parent, group.
            let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
            let has_ended = matches!(fields.next(), None | Some("Z" | "X"));
            let group = fields.nth(1).and_then(|group| group.parse().ok());
            !has_ended && group.and_then(Pid::from_raw) == Some(self.pid)
        };
        ids.filter(is_member).collect()
    }

    /// Its memory and processor time.
    pub(crate) fn usage(&self) -> Usage {
        Usage::of(self.id())
    }

    /// The same once it has started and waits: when its memory stays what it is, or after
    /// [`SETTLE_TIME`].
    pub(crate) fn settled(&self) -> Usage {
        let end = Instant::now() + SETTLE_TIME;
        let mut last = self.usage();
        loop {
            std::thread::sleep(SETTLE_PAUSE);
            let now = self.usage();
            let is_still = now.resident_kib.abs_diff(last.resident_kib) < SETTLED_KIB;
            if is_still || Instant::now() >= end {
                return now;
            }
            last = now;
        }
    }

    /// Makes the most memory that it had what it has now, where that is permitted.
    pub(crate) fn reset_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.id()), "5").ok();
    }

    /// The memory of the files that it has in memory and not mapped, in KiB: what is mapped counts
    /// as resident.
    pub(crate) fn unmapped_files_kib(&self) -> u64 {
        let id = self.id();
        let paths = std::fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        let in_memory = paths.map(|entry| entry.path()).filter(|path| {
            std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:"))
        });
        let files = in_memory.filter_map(|path| std::fs::metadata(path).ok());
        // A file may have many descriptors; a block is half a KiB.
        let sizes: BTreeMap<u64, u64> = files.map(|file| (file.ino(), file.blocks() / 2)).collect();
        sizes.values().sum::<u64>().saturating_sub(Usage::of(id).shared_kib)
    }

    /// Stops its threads where they are, until [`Process::thaw`].
    pub(crate) fn freeze(&mut self) -> anyhow::Result<()> {
        self.is_frozen = true;
        Ok(kill_process_group(self.pid, Signal::STOP)?)
    }

    /// Has them go on, if they were stopped, and leaves them a moment for it.
    pub(crate) fn thaw(&mut self) -> anyhow::Result<()> {
        if self.is_frozen {
            kill_process_group(self.pid, Signal::CONT)?;
            std::thread::sleep(THAWING);
            self.is_frozen = false;
        }
        Ok(())
    }

    /// Its process group, for signals from elsewhere.
    pub(crate) const fn group(&self) -> Pid {
        self.pid
    }

    /// The files, sockets and pipes that it has open.
    pub(crate) fn descriptors(&self) -> u64 {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.id()));
        open.map_or(0, |entries| entries.count() as u64)
    }

    /// Waits until it ends by itself, and says how it did: `exited with 0`.
    pub(crate) fn wait_ended(&mut self, within: Duration) -> anyhow::Result<String> {
        let end = Instant::now() + within;
        loop {
            if let Some(how) = self.ended().filter(|_| self.members().is_empty()) {
                self.is_over = true;
                return Ok(how);
            }
            ensure!(Instant::now() < end, "it does not end within {within:?}");
            std::thread::sleep(STOP_PAUSE);
        }
    }

    /// Tells it to stop, and waits until it has written all that it wants to keep.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        kill_process_group(self.pid, Signal::CONT)?;
        kill_process_group(self.pid, Signal::TERM)?;
        let end = Instant::now() + self.stop_time;
        while Instant::now() < end {
            if self.child.try_wait()?.is_some() && self.members().is_empty() {
                self.is_over = true;
                return Ok(());
            }
            std::thread::sleep(STOP_PAUSE);
        }
        bail!("it does not stop within {:?}: see {}", self.stop_time, self.log.display())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        with_running(|running| running.retain(|pid| *pid != self.pid));
        if !self.is_over {
            kill_process_group(self.pid, Signal::KILL).ok();
        }
        self.child.wait().ok();
    }
}

/// Copies the log to its file as it is, line by line, and to the reader that waits for a line.
fn tee(printed: PipeReader, mut file: std::fs::File) -> Receiver<String> {
    let (sender, receiver) = sync_channel(LINES_WAITING);
    std::thread::spawn(move || {
        for line in BufReader::new(printed).split(b'\n').map_while(Result::ok) {
            file.write_all(&line).and_then(|()| file.write_all(b"\n")).ok();
            // Most of the log comes when no reader waits any more.
            sender.try_send(String::from_utf8_lossy(&line).into_owned()).ok();
        }
    });
    receiver
}

/// The memory and processor time of a process, as the system counts them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Memory that is resident now, in KiB.
    pub(crate) resident_kib: u64,
    /// The most that ever was, or since [`Process::reset_peak`].
    pub(crate) peak_kib: u64,
    /// Of what is resident, that of mapped files in memory.
    pub(crate) shared_kib: u64,
    /// Processor time, in milliseconds, to the kernel's 10.
    pub(crate) cpu_ms: u64,
}

impl Usage {
    /// Of the process `id`; zeros where the system does not say.
    pub(crate) fn of(id: u32) -> Self {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{id}/{file}"));
        let status = read("status").unwrap_or_default();
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let stat = read("stat").unwrap_or_default();
        // The second field is a name in parentheses, which may hold anything.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 =
            fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Self {
            resident_kib: kib("VmRSS:").unwrap_or(0),
            peak_kib: kib("VmHWM:").unwrap_or(0),
            shared_kib: kib("RssShmem:").unwrap_or(0),
            cpu_ms: ticks * 10,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// A script that starts a program and waits for it, and what it has printed is there.
    fn script(log: &Path) -> (Process, u32) {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "printf 'Ren\\351\\n'; sh -c 'echo it is $$; read x; sleep 60' </dev/zero; :",
        ]);
        let mut process = Process::start(command, log).expect("there is a shell");
        let said = |line: &str| line.strip_prefix("it is ")?.parse().ok();
        let id = process.wait_for("who it is", Instant::now() + PATIENCE, said).expect("it says");
        (process, id)
    }

    fn is_there(id: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !matches!(rest.trim().chars().next(), None | Some('Z')))
    }

    fn ends(id: u32) -> bool {
        let end = Instant::now() + PATIENCE;
        while is_there(id) && Instant::now() < end {
            std::thread::sleep(STOP_PAUSE);
        }
        !is_there(id)
    }

    #[test]
    fn what_a_script_starts_is_stopped_and_killed_with_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("log");
        let (mut process, id) = script(&log);
        assert!(is_there(id));
        process.freeze().expect("it is there");
        let state = || std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it is there");
        let end = Instant::now() + PATIENCE;
        while !state().contains(") T ") {
            assert!(Instant::now() < end, "it is not stopped: {}", state());
            std::thread::sleep(STOP_PAUSE);
        }
        process.stop().expect("it stops");
        assert!(!is_there(id));
        let (process, id) = script(&log);
        drop(process);
        assert!(ends(id));
        // The log is there as it was printed.
        let text = std::fs::read(&log).expect("a log");
        assert!(text.windows(5).any(|line| line == b"Ren\xe9\n"), "{}", text.escape_ascii());
    }
}
