//! A log file of bounded size: when it is full it is renamed, and the oldest ones are removed.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracing_subscriber::fmt::MakeWriter;

/// `FILE`, with `FILE.1` as the newest of the full ones.
#[derive(Debug)]
pub(super) struct RotatedFile {
    path: PathBuf,
    max_size: u64,
    max_files: u32,
    open: Mutex<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    size: u64,
}

impl RotatedFile {
    /// Opens the file to append to it; it is created if absent.
    pub(super) fn open(path: PathBuf, max_size: u64, max_files: u32) -> io::Result<Self> {
        let open = Mutex::new(OpenFile::at(&path)?);
        Ok(Self { path, max_size, max_files, open })
    }

    /// Appends a whole line.
    fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(|panicked| panicked.into_inner());
        let size = open.size.saturating_add(line.len() as u64);
        if open.size > 0 && size > self.max_size {
            self.rotate()?;
            *open = OpenFile::at(&self.path)?;
        }
        open.file.write_all(line)?;
        open.size += line.len() as u64;
        Ok(())
    }

    /// Renames `FILE` to `FILE.1`, `FILE.1` to `FILE.2` and so on; the oldest one is replaced.
    fn rotate(&self) -> io::Result<()> {
        if self.max_files == 0 {
            return fs::remove_file(&self.path);
        }
        for number in (1..self.max_files).rev() {
            let (from, to) = (numbered(&self.path, number), numbered(&self.path, number + 1));
            match fs::rename(from, to) {
                Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
                _ => {}
            }
        }
        fs::rename(&self.path, numbered(&self.path, 1))
    }
}

impl OpenFile {
    fn at(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { file, size })
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    name.into()
}

/// The subscriber writes each event at once.
impl Write for &RotatedFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.append(line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for RotatedFile {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_files_are_renamed_and_the_oldest_is_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("node.log");
        let log = |line: &str| {
            let file = RotatedFile::open(path.clone(), 10, 2).expect("opened");
            file.append(line.as_bytes()).expect("written");
        };
        let lines = ["1234\n", "5678\n", "a\n", "longer than a whole file\n", "b\n"];
        lines.into_iter().for_each(log);
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).ok();
        assert_eq!(read("node.log").as_deref(), Some("b\n"));
        assert_eq!(read("node.log.1").as_deref(), Some("longer than a whole file\n"));
        assert_eq!(read("node.log.2").as_deref(), Some("a\n"));
        assert_eq!(read("node.log.3"), None, "two renamed ones are kept");
    }
}
