use std::fs;
use std::path::{Path, PathBuf};

/// A temporary directory that is removed on drop.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// An empty directory.
    ///
    /// # Panics
    /// If the system cannot make one.
    #[expect(clippy::new_without_default, reason = "it creates a directory")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// The path of the file with this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The directory's own path.
    pub fn directory(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("written");
        path
    }
}
