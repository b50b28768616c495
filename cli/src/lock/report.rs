//! The object that `--json` prints.

use std::time::Duration;

use quorlock::Fence;

use super::child::Ended;
use crate::args::LockArgs;
use crate::exit::Failure;
use crate::json::Object;

/// What is known so far; what never happened stays empty.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// From the start to the lock, or to giving up.
    pub(crate) wait: Option<Duration>,
    /// From the lock to the command's end.
    pub(crate) hold: Option<Duration>,
    pub(crate) child: Option<Ended>,
    pub(crate) fence: Option<Fence>,
    /// Which slot of the key it was, with `--slots`.
    pub(crate) slot: Option<u16>,
    /// How often the lock was extended.
    pub(crate) extensions: u64,
    /// Why the lock was lost, in a word: it expired, is gone from the nodes, or was taken.
    pub(crate) lost: Option<&'static str>,
}

impl Report {
    /// One object in one line.
    pub(crate) fn json(&self, args: &LockArgs, failure: Option<&Failure>, code: u8) -> String {
        let micros = |duration: Duration| duration.as_micros();
        let keys: Vec<String> =
            args.keys().iter().map(|key| key.to_string_lossy().into_owned()).collect();
        let only = keys.first().filter(|_| keys.len() == 1);
        Object::new()
            .text("key", only.map(String::as_str))
            .texts("keys", keys.iter().cloned())
            .text("outcome", failure.map_or("done", |failure| failure.cause.word()))
            .number("wait_us", self.wait.map(micros))
            .number("hold_us", self.hold.map(micros))
            .number("fence", self.fence.map(Fence::number))
            .number("slot", self.slot)
            .number("extensions", Some(self.extensions))
            .text("lost", self.lost)
            .number("child_code", self.child.map(Ended::code))
            .number("child_signal", self.child.and_then(Ended::signal))
            .number("exit_code", Some(code))
            .text("error", failure.map(|failure| &*failure.what))
            .end()
    }
}
