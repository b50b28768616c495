//! A directory of our own below the system's temporary one, removed when dropped.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::runtime::random;

#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("quorlock-demo-{:016x}", random()));
        // Created, never an existing one: it is ours, and only we may read it.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes it, and tells whether that worked.
    pub(crate) fn remove(&self) -> io::Result<()> {
        std::fs::remove_dir_all(&self.0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may be gone already; left behind, it does no harm.
        let _ = self.remove();
    }
}
