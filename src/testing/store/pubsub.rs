//! Messages on channels: `SUBSCRIBE`, `UNSUBSCRIBE`, `PUBLISH` and `PUBSUB`; no patterns.
//!
//! A message is a push to a connection that speaks RESP3, and an array to one that speaks RESP2,
//! which may say little else as long as it is subscribed. Each channel of a `SUBSCRIBE` is
//! confirmed by a push, too: there is no other reply to it.

use std::collections::BTreeSet;

use bytes::Bytes;
use quorlock_resp::Frame;

use super::call::{Call, Reply, bulk, count, lower};
use super::glob::matches;
use super::state::Store;
use super::version::Since;

/// What a connection publishes to itself comes behind the reply; before, ahead of it.
const REPLY_FIRST: Since = Since::redis([7, 2]);

/// What a connection in RESP2 may say while it is subscribed.
pub(super) const ALLOWED: [&str; 5] = ["ping", "quit", "reset", "subscribe", "unsubscribe"];

pub(super) fn subscribe(store: &mut Store, call: &Call<'_>) -> Reply {
    let mut confirmed = Vec::new();
    let session = store.session(call)?;
    for channel in call.arguments() {
        session.channels.insert(Bytes::copy_from_slice(channel));
        confirmed.push(confirmation("subscribe", bulk(channel), session.channels.len()));
    }
    Ok(store.confirm(call, confirmed))
}

/// From the channels that are named, or from all.
pub(super) fn unsubscribe(store: &mut Store, call: &Call<'_>) -> Reply {
    let mut confirmed = Vec::new();
    let session = store.session(call)?;
    let mut named: Vec<Bytes> =
        call.arguments().iter().map(|channel| Bytes::copy_from_slice(channel)).collect();
    if named.is_empty() {
        named = session.channels.iter().cloned().collect();
    }
    for channel in &named {
        session.channels.remove(channel);
        confirmed.push(confirmation("unsubscribe", bulk(channel), session.channels.len()));
    }
    if named.is_empty() {
        confirmed.push(confirmation("unsubscribe", Frame::Null, 0));
    }
    Ok(store.confirm(call, confirmed))
}

/// `left`: how many channels the connection is subscribed to behind this.
fn confirmation(what: &str, channel: Frame, left: usize) -> Frame {
    Frame::Push(vec![bulk(what), channel, count(left)].into())
}

pub(super) fn publish(store: &mut Store, call: &Call<'_>) -> Reply {
    let [channel, text] = [call.argument(0), call.argument(1)];
    let message = Frame::Push(vec![bulk("message"), bulk(channel), bulk(text)].into());
    let all = store.sessions.iter().filter(|(_, session)| session.channels.contains(channel));
    let all: Vec<_> = all.map(|(session, _)| (*session, message.clone())).collect();
    let receivers = count(all.len());
    let replies_first = store.setup.version.knows(REPLY_FIRST);
    for told in all {
        let is_early = told.0 == call.session && !replies_first;
        let pushes = if is_early { &mut store.pushes_first } else { &mut store.pushes };
        pushes.push(told);
    }
    Ok(receivers)
}

pub(super) fn pubsub(store: &mut Store, call: &Call<'_>) -> Reply {
    let words = call.arguments().get(1..).unwrap_or_default();
    let of_all = || store.sessions.values().flat_map(|session| &session.channels);
    match (lower(call.argument(0)).as_str(), words) {
        ("channels", []) => Ok(listed(of_all().collect())),
        ("channels", [pattern]) => {
            Ok(listed(of_all().filter(|channel| matches(pattern, channel)).collect()))
        }
        ("numpat", []) => Ok(Frame::Integer(0)),
        ("numsub", channels) => {
            let told = channels.iter().flat_map(|channel| {
                [bulk(channel), count(of_all().filter(|known| known == channel).count())]
            });
            Ok(Frame::Array(told.collect()))
        }
        (_, _) => Err(store.setup.version.subcommand_syntax("pubsub", call.argument(0))),
    }
}

fn listed(channels: BTreeSet<&Bytes>) -> Frame {
    Frame::Array(channels.into_iter().map(|channel| Frame::Bulk(channel.clone())).collect())
}

impl Store {
    /// Confirms each channel; the last confirmation stands in the place of a reply.
    fn confirm(&mut self, call: &Call<'_>, mut confirmed: Vec<Frame>) -> Frame {
        let last = confirmed.pop().unwrap_or(Frame::Null);
        self.pushes_first.extend(confirmed.into_iter().map(|frame| (call.session, frame)));
        last
    }
}
