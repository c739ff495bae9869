//! The standard error, which may have a reader that reads no more.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing_subscriber::fmt::MakeWriter;

use crate::limits::STDERR_WAIT;

/// The bytes that a pipe takes at once where it takes any: `PIPE_BUF` of Linux.
const PIPE_BYTES: usize = 4096;

/// Writes lines to the standard error. Where it takes nothing for [`STDERR_WAIT`], as a full pipe
/// whose reader has stopped, lines are dropped until it takes some again: a node that waited for
/// the reader of its log would neither answer nor stop.
#[derive(Debug, Default)]
pub(super) struct Stderr(Mutex<Lines>);

/// The lines up to now. One thread writes at a time, so that what [`poll`] says of the pipe holds.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// How many were dropped since the last that was written.
    dropped: u64,
    /// Whether the last line was cut.
    is_cut: bool,
}

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = StderrLine<'a>;

    fn make_writer(&'a self) -> StderrLine<'a> {
        StderrLine(self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// One line.
pub(super) struct StderrLine<'a>(MutexGuard<'a, Lines>);

impl Write for StderrLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write(&mut io::stderr(), line);
        // A dropped line is no error: there is nowhere to say it.
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn write(&mut self, file: &mut (impl Write + AsFd), line: &[u8]) {
        // Once it took nothing, no other line waits.
        let wait = if self.dropped == 0 { STDERR_WAIT } else { Duration::ZERO };
        if self.dropped > 0 && is_ready(file, wait) {
            let end = if self.is_cut { "\n" } else { "" };
            let dropped = self.dropped;
            let told = format!(
                "{end}{dropped} lines of the log were dropped: the standard error took none\n"
            );
            if file.write_all(told.as_bytes()).is_err() {
                return;
            }
            (self.dropped, self.is_cut) = (0, false);
        }
        for (index, part) in line.chunks(PIPE_BYTES).enumerate() {
            if !is_ready(file, wait) || file.write_all(part).is_err() {
                self.dropped += 1;
                self.is_cut |= index > 0;
                return;
            }
        }
    }
}

/// Whether a file takes bytes within a time. One that cannot be asked is written to.
fn is_ready(file: &impl AsFd, wait: Duration) -> bool {
    let mut asked = [PollFd::new(file, PollFlags::OUT)];
    let wait = Timespec::try_from(wait).expect("a second");
    !matches!(poll(&mut asked, Some(&wait)), Ok(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn lines_are_dropped_while_a_pipe_is_full_and_that_is_said_when_it_is_read() {
        let (mut reader, mut writer) = io::pipe().expect("a pipe");
        let mut lines = Lines::default();
        let line = [&[b'a'; 2 * PIPE_BYTES][..], b"\n"].concat();
        let mut written = 0;
        while lines.dropped == 0 {
            lines.write(&mut writer, &line);
            written += 1;
        }
        assert!(written > 1, "a pipe takes some");
        (0..4).for_each(|_| lines.write(&mut writer, b"dropped\n"));
        assert_eq!(lines.dropped, 5);
        let reads = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        while lines.dropped > 0 {
            lines.write(&mut writer, b"read again\n");
            std::thread::yield_now();
        }
        drop(writer);
        let text = reads.join().expect("no panic").expect("text");
        assert!(!text.contains("\ndropped"), "{text}");
        let (_, end) = text.split_once("lines of the log were dropped").expect("it is said");
        assert!(end.ends_with("\nread again\n"), "{end}");
    }
}
