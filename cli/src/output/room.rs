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

    /// The polling interval: no event says that a terminal's foreground group has changed.
    const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

    /// Waits until a non-blocking stderr has room.
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
    /// Under `stty tostop` a terminal stops a background process that writes. The thread that
    /// extends the lock would stop too, and a command in a group of its own would run on.
    pub(in super::super) fn wait_for_foreground() {
        while write_would_stop_us() {
            // It may return early, which only means an extra check.
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
