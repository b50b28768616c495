//! The signals that are passed on to the command, or end the program cleanly without one.
//!
//! A signal that is ignored when we start (`nohup` does that, and a shell for background jobs)
//! stays ignored, by us and by the command.

use std::future::poll_fn;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

use crate::exit::{Cause, Failure};

const PASSED_ON: [Signal; 6] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// The signals that have arrived and are not handled yet.
#[derive(Debug)]
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Listens for the signals; from now on they do not end the program.
    pub(crate) fn listen() -> Result<Self, Failure> {
        // Only Linux has this file; elsewhere no signal counts as ignored.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut streams = Vec::with_capacity(PASSED_ON.len());
        for signal in PASSED_ON {
            if is_ignored(&status, signal) {
                continue;
            }
            let stream = unix::signal(SignalKind::from_raw(signal.as_raw()))
                .map_err(|error| Failure::internal("cannot listen for signals", &error))?;
            streams.push((signal, stream));
        }
        Ok(Self(streams))
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            let come = |(signal, stream): &mut (Signal, unix::Signal)| {
                stream.poll_recv(cx).is_ready().then_some(*signal)
            };
            self.0.iter_mut().find_map(come).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Why we end when a signal ends us.
pub(crate) fn cause(signal: Signal) -> Cause {
    Cause::Signal(u8::try_from(signal.as_raw()).unwrap_or(u8::MAX))
}

/// Whether the process whose `/proc/…/status` this is ignores the signal: `SigIgn` is a mask in
/// hexadecimal, bit 0 for signal 1.
fn is_ignored(status: &str, signal: Signal) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u128::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal.as_raw() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tx\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, Signal::HUP));
        assert!(!is_ignored(status, Signal::INT));
        assert!(!is_ignored(status, Signal::TERM));
        assert!(!is_ignored("", Signal::HUP));
    }
}
