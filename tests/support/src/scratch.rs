//! A directory of a test's own, removed when dropped.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty directory under the system's temporary one.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one.
    #[expect(clippy::new_without_default, reason = "it makes a directory: no default value does")]
    pub fn new() -> Self {
        // Ordering: a counter and nothing else; no memory is published through it.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let name =
                format!("quorlock-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            match std::fs::create_dir(&path) {
                Ok(()) => return Self(path),
                // Left behind by a killed process that had our number.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("cannot make {}: {error}", path.display()),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: a directory left in the temporary one does no harm, a panic here would.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
