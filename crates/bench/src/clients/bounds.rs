//! Bounds of a client's memory and disk, by cgroups of version 1, which have to be writable.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::clients::process::bound_to_us;

/// The most that a client may use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// Memory, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// Reads, and writes and syncs, in bytes a second each, of the device that its
    /// directory is on.
    pub(crate) disk_bytes: Option<u64>,
}

/// Enters as many cgroups as the first argument says, and becomes what follows them.
const ENTER: &str = r#"n=$1; shift
while [ $n -gt 0 ]; do echo $$ > "$1" || exit 1; shift; n=$((n - 1)); done
exec "$@""#;

impl Bounds {
    /// The program without arguments, in cgroups of its own if it is bounded: a shell enters them
    /// and becomes the program.
    pub(crate) fn command(&self, program: &Path, data: &Path) -> anyhow::Result<Command> {
        let groups = self.groups(data);
        if groups.is_empty() {
            return Ok(bound_to_us(program));
        }
        for group in &groups {
            std::fs::create_dir_all(group)
                .context("no cgroup: is this version 1, and are we root?")?;
        }
        if let Some(bytes) = self.memory_bytes {
            let group = cgroup("memory", data);
            std::fs::write(group.join("memory.limit_in_bytes"), bytes.to_string())?;
        }
        if let Some(bytes) = self.disk_bytes {
            let limit = format!("{} {bytes}", device(data)?);
            for file in ["read_bps_device", "write_bps_device"] {
                let file = cgroup("blkio", data).join(format!("blkio.throttle.{file}"));
                std::fs::write(file, &limit).context("the device cannot be throttled")?;
            }
        }
        let mut command = bound_to_us("sh".as_ref());
        command.args(["-c", ENTER, "sh"]).arg(groups.len().to_string());
        command.args(groups.iter().map(|group| group.join("cgroup.procs"))).arg(program);
        Ok(command)
    }

    /// The cgroups of a client on this directory.
    fn groups(&self, data: &Path) -> Vec<PathBuf> {
        let memory = self.memory_bytes.map(|_| cgroup("memory", data));
        let disk = self.disk_bytes.map(|_| cgroup("blkio", data));
        memory.into_iter().chain(disk).collect()
    }

    /// Removes the cgroups of a client on this directory, which has stopped.
    pub(crate) fn clean_up(&self, data: &Path) {
        for group in self.groups(data) {
            // It is empty, and harmless should it stay.
            std::fs::remove_dir(group).ok();
        }
    }

    /// In words, for a report.
    pub(crate) fn words(&self) -> Option<String> {
        let memory = self.memory_bytes.map(|bytes| format!("{} MiB of memory", bytes >> 20));
        let disk = self.disk_bytes.map(|bytes| format!("{bytes} bytes a second of the disk"));
        let words: Vec<String> = memory.into_iter().chain(disk).collect();
        (!words.is_empty()).then(|| format!("at most {}", words.join(" and ")))
    }
}

fn cgroup(controller: &str, data: &Path) -> PathBuf {
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!("/sys/fs/cgroup/{controller}/deponent-bench-{name}"))
}

/// The device that a directory is on, as cgroups name it; of a partition, the whole disk.
fn device(data: &Path) -> anyhow::Result<String> {
    let number = std::fs::metadata(data)?.dev();
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let entry = Path::new("/sys/dev/block").join(&number);
    match entry.join("partition").exists() {
        true => Ok(std::fs::read_to_string(entry.canonicalize()?.join("../dev"))?.trim().into()),
        false => Ok(number),
    }
}
