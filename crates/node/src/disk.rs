//! The disk of the data directory: its free space, and the faults for which a node stops.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tokio::sync::watch;

use crate::limits::{DISK_PAUSE, DISK_WARNING_PAUSE};

/// Why a node stops by itself. `deponent` exits with [`DiskFault::EXIT_STATUS`] then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskFault {
    /// A write of the chain or its journal has failed.
    Write {
        /// The file, the offset, and the system's reason.
        reason: String,
    },
    /// The disk has less room than it is to have.
    Full {
        /// The data directory.
        data_dir: PathBuf,
        /// Bytes that are free.
        free_bytes: u64,
        /// Bytes that were to be free.
        min_free_bytes: u64,
    },
}

impl DiskFault {
    /// The exit status of `deponent`: `EX_IOERR` of sysexits.h.
    pub const EXIT_STATUS: u8 = files::WRITE_FAILURE_STATUS;
}

impl std::error::Error for DiskFault {}

impl std::fmt::Display for DiskFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Write { reason } => write!(
                f,
                "a write has failed, so nothing more is validated: {reason}. Make room on the disk \
                 or repair it, and start the node again: it goes on from what it has answered"
            ),
            Self::Full { data_dir, free_bytes, min_free_bytes } => write!(
                f,
                "the disk of {} has {free_bytes} bytes free, fewer than --datadir.min-free \
                 {min_free_bytes}. Make room, or move the directory to a larger disk, and start \
                 the node again: nothing is lost",
                data_dir.display()
            ),
        }
    }
}

/// The first fault of a disk, for one who waits for it.
#[derive(Debug, Clone)]
pub(crate) struct Faults(watch::Sender<Option<DiskFault>>);

impl Default for Faults {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Faults {
    pub(crate) fn write_failed(&self, error: &engine::Error) {
        self.tell(DiskFault::Write { reason: error.to_string() });
    }

    fn tell(&self, fault: DiskFault) {
        self.0.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(fault);
            is_first
        });
    }

    /// Waits for the first fault.
    pub(crate) async fn next(&self) -> DiskFault {
        let mut faults = self.0.subscribe();
        let fault = faults.wait_for(Option::is_some).await.expect("this is a sender of it");
        fault.clone().expect("waited for")
    }
}

/// Refuses a data directory whose disk has too little room.
pub(crate) fn check_free(data_dir: &Path, min_free_bytes: u64) -> Result<(), DiskFault> {
    // Where it cannot be asked, opening the chain will say why.
    let Ok(free_bytes) = free_bytes(data_dir) else { return Ok(()) };
    if free_bytes >= min_free_bytes {
        return Ok(());
    }
    Err(DiskFault::Full { data_dir: data_dir.to_owned(), free_bytes, min_free_bytes })
}

/// Looks at the free space until there is too little, and warns before.
pub(crate) async fn watch_free(data_dir: PathBuf, min_free_bytes: u64, faults: Faults) {
    let mut warned = None;
    loop {
        if let Err(fault) = check_free(&data_dir, min_free_bytes) {
            return faults.tell(fault);
        }
        let free_bytes = free_bytes(&data_dir).unwrap_or(u64::MAX);
        if is_warning_due(free_bytes, min_free_bytes, &mut warned, Instant::now()) {
            tracing::warn!(
                free_bytes, min_free_bytes, directory = %data_dir.display(),
                "the disk has little room: the node stops below --datadir.min-free"
            );
        }
        tokio::time::sleep(DISK_PAUSE).await;
    }
}

/// Whether there is less than twice the room that there must be, and the last warning is long ago.
fn is_warning_due(free: u64, min_free: u64, warned: &mut Option<Instant>, now: Instant) -> bool {
    let is_due = free < min_free.saturating_mul(2)
        && warned.is_none_or(|last| now - last >= DISK_WARNING_PAUSE);
    if is_due {
        *warned = Some(now);
    }
    is_due
}

/// The bytes that this user may still write to the disk of a directory.
pub(crate) fn free_bytes(directory: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(directory)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_room_is_said_once_in_ten_minutes() {
        let (start, mut warned) = (Instant::now(), None);
        let mut at = |seconds, free| {
            let now = start + std::time::Duration::from_secs(seconds);
            is_warning_due(free, 100, &mut warned, now)
        };
        let looks = [(0, 200), (10, 199), (20, 150), (609, 120), (610, 199), (1300, 5000)];
        let due = looks.map(|(seconds, free)| at(seconds, free));
        assert_eq!(due, [false, true, false, false, true, false]);
    }

    #[tokio::test]
    async fn too_little_room_is_a_fault_and_the_first_one_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        check_free(directory.path(), 1).expect("a byte is free");
        let faults = Faults::default();
        watch_free(directory.path().to_owned(), u64::MAX, faults.clone()).await;
        faults.write_failed(&engine::Error::Storage("later".into()));
        let fault = faults.next().await;
        assert!(matches!(fault, DiskFault::Full { min_free_bytes: u64::MAX, .. }), "{fault}");
        let gone = directory.path().join("gone");
        check_free(&gone, u64::MAX).expect("what is not there has another fault");
    }
}
