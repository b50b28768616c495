//! Waiting until stderr takes a line: in the writer's thread only.

#[cfg(unix)]
pub(super) use unix::{wait_for_foreground, wait_for_room};

#[cfg(not(unix))]
pub(super) fn wait_for_foreground() {}

#[cfg(not(unix))]
pub(super) fn wait_for_room() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(unix)]
mod unix {
    use std::io;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    use rustix::process::getpgrp;
    use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};
    use rustix::thread::nanosleep;
    use rustix::time::Timespec;

    /// Between two looks at a terminal: no event tells that the foreground has changed.
    const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

    /// Waits until a stderr that does not block has room, as one that blocks would.
    pub(in super::super) fn wait_for_room() -> io::Result<()> {
        loop {
            match poll(&mut [PollFd::new(&io::stderr(), PollFlags::OUT)], None) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits while a write would stop the whole process.
    ///
    /// A terminal under `stty tostop` does that to a process in its background: the lock's thread
    /// would stop with the others, and a command that leads a group of its own would work on.
    pub(in super::super) fn wait_for_foreground() {
        while write_would_stop_us() {
            // It may return early; then the terminal is looked at early.
            let _ = nanosleep(&LOOK_EVERY);
        }
    }

    fn write_would_stop_us() -> bool {
        let stderr = io::stderr();
        let stops = |modes: LocalModes| modes.contains(LocalModes::TOSTOP);
        tcgetattr(&stderr).is_ok_and(|terminal| stops(terminal.local_modes))
            && tcgetpgrp(&stderr).is_ok_and(|foreground| foreground != getpgrp())
    }
}
