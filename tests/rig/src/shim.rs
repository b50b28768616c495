//! Clocks for the servers, each moved by us: a small library, built with the C compiler that there
//! is, that is loaded before the server's own and adds what stands in a file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use support::scratch::Scratch;
use support::tools::on_path;

use crate::Failure;

const SOURCE: &str = include_str!("shim.c");

/// The library, and the files.
#[derive(Debug)]
pub(crate) struct Shim {
    dir: Scratch,
    library: PathBuf,
}

impl Shim {
    /// Builds the library; an error says what is lacking.
    pub(crate) fn build() -> Result<Self, Failure> {
        let compiler = on_path("cc").ok_or("no C compiler (cc)")?;
        let dir = Scratch::new();
        let (source, library) = (dir.path().join("shim.c"), dir.path().join("shim.so"));
        std::fs::write(&source, SOURCE)?;
        let mut command = Command::new(compiler);
        command.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
        let output = command.output()?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("cc cannot build the clocks: {why}").into());
        }
        Ok(Self { dir, library })
    }

    /// A program that runs `server` by a clock of its own, and the clock.
    pub(crate) fn wrap(&self, server: &Path, number: usize) -> Result<(PathBuf, Clock), Failure> {
        let page = self.dir.path().join(format!("clock-{number}"));
        let file = File::options().read(true).write(true).create_new(true).open(&page)?;
        file.set_len(4_096)?;
        let program = self.dir.path().join(format!("server-{number}"));
        // `exec`, so that the process keeps the number that it is stopped by.
        let script = format!(
            "#!/bin/sh\nexport LD_PRELOAD='{}' QUORLOCK_RIG_CLOCK='{}'\nexec '{}' \"$@\"\n",
            self.library.display(),
            page.display(),
            server.display()
        );
        std::fs::write(&program, script)?;
        let mut rights = std::fs::metadata(&program)?.permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o755);
        std::fs::set_permissions(&program, rights)?;
        Ok((program, Clock { file, offset: 0, rate_ppm: 0 }))
    }
}

/// One server's clock.
#[derive(Debug)]
pub(crate) struct Clock {
    file: File,
    /// Nanoseconds ahead.
    offset: i64,
    /// How much it gains, in millionths.
    rate_ppm: i64,
}

/// The longest time whose gain is given at once: a supervisor that was held up must not make a
/// step out of a rate.
const ELAPSED_MAX: Duration = Duration::from_millis(100);

impl Clock {
    /// Sets the pace: how much it gains, in millionths.
    pub(crate) fn set_rate(&mut self, rate_ppm: i64) {
        self.rate_ppm = rate_ppm;
    }

    /// Jumps by so many microseconds.
    pub(crate) fn step(&mut self, micros: i64) -> Result<(), Failure> {
        self.offset += micros * 1_000;
        self.write()
    }

    /// Gains what its pace gives for the time that has passed.
    pub(crate) fn pass(&mut self, elapsed: Duration) -> Result<(), Failure> {
        if self.rate_ppm == 0 {
            return Ok(());
        }
        let nanos = i64::try_from(elapsed.min(ELAPSED_MAX).as_nanos())?;
        self.offset += nanos / 1_000 * self.rate_ppm / 1_000;
        self.write()
    }

    fn write(&self) -> Result<(), Failure> {
        Ok(self.file.write_all_at(&self.offset.to_ne_bytes(), 0)?)
    }
}
