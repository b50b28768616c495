//! A directory of our own below the system's temporary one, removed when dropped.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// How many names are tried: one that is taken was left behind by a process that was killed.
const NAMES: u32 = 100;

#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
        for number in 0..NAMES {
            let name = format!("quorlock-demo-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            // Created, never an existing one: it is ours, and only we may read it.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
                Err(error) => return Err(error),
            }
        }
        Err(taken)
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
