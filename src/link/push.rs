//! What a server says unasked, and who hears it: what is published on one channel, and which keys
//! have changed of those that were read to be tracked.
//!
//! Only reads that ask for it are tracked (`OPTIN`). Without that every key would be that a script
//! reads, of every lock. The first such read of a connection switches tracking on, and not the
//! handshake: while it is on, each command costs the server a little more, and most connections
//! never wait for anything.

use std::fmt;

use bytes::Bytes;
use quorlock_resp::Frame;

/// What a server says unasked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Push {
    /// Published on the channel that is listened to.
    Message(Bytes),
    /// The subscription stands.
    Subscribed,
    /// This key has changed, or may have; `None` says that of all keys. It is told once.
    Changed(Option<Bytes>),
}

impl Push {
    /// What a push says; `None` for what is of no interest here.
    pub(crate) fn parse(frame: &Frame) -> Option<Self> {
        let Frame::Push(items) = frame else { return None };
        match (items.first()?.as_bytes().ok()?, &items[1..]) {
            (b"message", [_, Frame::Bulk(said)]) => Some(Self::Message(said.clone())),
            (b"subscribe", [_, Frame::Integer(_)]) => Some(Self::Subscribed),
            (b"invalidate", [Frame::Null]) => Some(Self::Changed(None)),
            // Servers tell of each key by itself, though the form has room for several.
            (b"invalidate", [Frame::Array(keys)]) => match &keys[..] {
                [Frame::Bulk(key)] => Some(Self::Changed(Some(key.clone()))),
                _ => Some(Self::Changed(None)),
            },
            _ => None,
        }
    }
}

/// What a connection has a server tell it unasked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Subscriptions {
    /// What is published on the listener's channel.
    pub(crate) channel: bool,
    /// When keys change that were read to be tracked.
    pub(crate) changes: bool,
}

/// Changes nothing on a new connection: its reply says whether the server knows the command, and
/// whether this user may send it.
pub(super) const TRACKING_OFF: [&[u8]; 3] = [b"CLIENT", b"TRACKING", b"OFF"];

/// Tracking, of the reads for which [`CACHING_YES`] asks.
pub(super) const TRACKING_ON: &[u8] =
    b"*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nOPTIN\r\n";

/// The next command's reads are tracked.
pub(super) const CACHING_YES: &[u8] = b"*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n";

/// Who hears what is published, and what has changed. To this room it is opaque.
pub(crate) trait Listener: fmt::Debug + Send + Sync {
    /// The channel that it listens to.
    fn channel(&self) -> &[u8];

    /// Something was published by a client of this node. It is called from the driver, which must
    /// not be kept.
    fn hear(&self, node: usize, said: &[u8]);

    /// A key has changed on this node that was read to be tracked, or all may have, as where the
    /// connection has ended that would tell of them. As [`hear`](Self::hear).
    fn hear_change(&self, node: usize, key: Option<&[u8]>);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &'static str) -> Frame {
        Frame::Bulk(Bytes::from_static(text.as_bytes()))
    }

    fn push(items: impl IntoIterator<Item = Frame>) -> Option<Push> {
        Push::parse(&Frame::Push(items.into_iter().collect()))
    }

    #[test]
    fn a_message_and_a_subscription_are_told_apart_from_all_else() {
        let said = push([bulk("message"), bulk("to:me"), bulk("k")]);
        assert_eq!(said, Some(Push::Message(Bytes::from_static(b"k"))));
        let stands = push([bulk("subscribe"), bulk("to:me"), Frame::Integer(1)]);
        assert_eq!(stands, Some(Push::Subscribed));
        let changed = |keys| push([bulk("invalidate"), keys]);
        let keys = |keys: &[&'static str]| Frame::Array(keys.iter().map(|key| bulk(key)).collect());
        assert_eq!(changed(keys(&["k"])), Some(Push::Changed(Some(Bytes::from_static(b"k")))));
        assert_eq!(changed(keys(&["k", "l"])), Some(Push::Changed(None)));
        assert_eq!(changed(Frame::Null), Some(Push::Changed(None)));
        assert_eq!(changed(bulk("k")), None);
        assert_eq!(push([bulk("message"), bulk("to:me"), Frame::Null]), None);
        assert_eq!(push([]), None);
        assert_eq!(Push::parse(&bulk("message")), None);
    }
}
