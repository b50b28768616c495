//! Who is told that a key has changed: `CLIENT TRACKING`.
//!
//! A connection that tracks is remembered beside each key that it reads, and told once when that
//! key is next written, deleted, or ends. One that tracks by prefixes is told of every such change.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::call::{Call, Refusal, Reply, SessionId, bulk, lower, ok};
use super::state::{Store, Tracking};

/// `CLIENT TRACKING ON|OFF [NOLOOP] [BCAST] [PREFIX p]…`; the words behind `TRACKING`.
pub(super) fn track(store: &mut Store, call: &Call<'_>, words: &[&[u8]]) -> Reply {
    let mut tracking = Tracking::default();
    let (mut broadcasts, mut prefixes) = (false, Vec::new());
    let mut rest = words.iter();
    let is_on = match rest.next().map(|word| lower(word)).as_deref() {
        Some("on") => true,
        Some("off") => false,
        _ => return Err(Refusal::SYNTAX),
    };
    while let Some(word) = rest.next() {
        match lower(word).as_str() {
            "noloop" => tracking.noloop = true,
            "bcast" => broadcasts = true,
            "prefix" => {
                prefixes.push(Bytes::copy_from_slice(rest.next().ok_or(Refusal::SYNTAX)?));
            }
            _ => return Err(Refusal::SYNTAX),
        }
    }
    if !broadcasts && !prefixes.is_empty() {
        return Err(Refusal::of("ERR PREFIX option requires BCAST mode to be enabled"));
    }
    if broadcasts {
        // Without a prefix it is told of all keys.
        prefixes.extend(prefixes.is_empty().then(Bytes::new));
        tracking.prefixes = Some(prefixes);
    }
    if is_on && !store.session(call)?.resp3 {
        return Err(Refusal::of(
            "ERR Client tracking can be enabled only in RESP3 mode: this node does not redirect",
        ));
    }
    let former = store.session(call)?.tracking.as_ref();
    if is_on && former.is_some_and(|it| it.prefixes.is_some() != tracking.prefixes.is_some()) {
        return Err(Refusal::of(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, \
             and then re-enabling it with a different mode.",
        ));
    }
    store.session(call)?.tracking = is_on.then_some(tracking);
    store.forget_reader(call.session);
    Ok(ok())
}

impl Store {
    /// A connection has read a key.
    pub(super) fn remember_reader(&mut self, session: SessionId, key: &[u8]) {
        let tracking = self.sessions.get(&session).and_then(|session| session.tracking.as_ref());
        if tracking.is_some_and(|tracking| tracking.prefixes.is_none()) {
            self.readers.entry(Bytes::copy_from_slice(key)).or_default().insert(session);
        }
    }

    pub(super) fn forget_reader(&mut self, session: SessionId) {
        self.readers.retain(|_, readers| {
            readers.remove(&session);
            !readers.is_empty()
        });
    }

    /// A key has changed, by a connection or because its end has come.
    pub(super) fn invalidate(&mut self, key: &[u8], by: Option<SessionId>) {
        let readers = self.readers.remove(key).unwrap_or_default();
        let told = self.sessions.iter().filter(|(session, state)| {
            let Some(tracking) = &state.tracking else { return false };
            let concerned = match &tracking.prefixes {
                None => readers.contains(session),
                Some(prefixes) => prefixes.iter().any(|prefix| key.starts_with(prefix)),
            };
            concerned && !(tracking.noloop && by == Some(**session))
        });
        let key = Frame::Array(vec![bulk(key)].into());
        let told = told.map(|(session, _)| (*session, invalidation(key.clone())));
        self.pushes.extend(told);
    }

    /// All keys are gone: that is told without their names.
    pub(super) fn invalidate_all(&mut self) {
        self.readers.clear();
        let told = self.sessions.iter().filter(|(_, session)| session.tracking.is_some());
        self.pushes.extend(told.map(|(session, _)| (*session, invalidation(Frame::Null))));
    }
}

fn invalidation(what: Frame) -> Frame {
    Frame::Push(vec![bulk("invalidate"), what].into())
}
