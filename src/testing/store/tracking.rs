//! Who is told that a key has changed: `CLIENT TRACKING`.
//!
//! A connection that tracks is remembered beside each key that it reads, and told once when that
//! key is next written, deleted, or ends. One that tracks by prefixes is told of every such change.
//! Which reads count can be chosen for each command, or each script (`OPTIN`, `OPTOUT`).
//!
//! A connection that speaks RESP2 can track, and is told nothing: there are no redirections here.

use bytes::Bytes;
use quorlock_resp::Frame;

use super::call::{Call, Refusal, Reply, SessionId, bulk, lower, ok};
use super::state::{Choice, Store, Tracking};
use super::version::Since;

/// A script is remembered with the keys that it reads; before, with all that it was given, if it
/// reads at all.
const READS_OF_SCRIPTS: Since = Since::redis([7, 2]);

/// `CLIENT TRACKING ON|OFF [NOLOOP] [OPTIN|OPTOUT] [BCAST] [PREFIX p]…`; `words` are those behind
/// `TRACKING`.
pub(super) fn track(store: &mut Store, call: &Call<'_>, words: &[&[u8]]) -> Reply {
    let mut tracking = Tracking::default();
    let (mut broadcasts, mut prefixes, mut choices) = (false, Vec::new(), Vec::new());
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
            "optin" => choices.push(Choice::Chosen),
            "optout" => choices.push(Choice::NotRefused),
            "prefix" => {
                prefixes.push(Bytes::copy_from_slice(rest.next().ok_or(Refusal::SYNTAX)?));
            }
            _ => return Err(Refusal::SYNTAX),
        }
    }
    if !is_on {
        store.session(call)?.tracking = None;
        return Ok(ok());
    }
    if !broadcasts && !prefixes.is_empty() {
        return Err(Refusal::of("ERR PREFIX option requires BCAST mode to be enabled"));
    }
    if broadcasts {
        // Without a prefix it is told of all keys.
        prefixes.extend(prefixes.is_empty().then(Bytes::new));
        tracking.prefixes = Some(prefixes);
    }
    tracking.choice = choices.first().copied().unwrap_or_default();
    let is_both = choices.iter().any(|choice| *choice != tracking.choice);
    let former = &mut store.session(call)?.tracking;
    check(&tracking, is_both, former.as_ref())?;
    tracking.is_excepted = former.as_ref().is_some_and(|former| former.is_excepted);
    // What it has read already is still remembered.
    *former = Some(tracking);
    Ok(ok())
}

/// Whether a connection can track in this way, if it tracks in another one now.
fn check(tracking: &Tracking, is_both: bool, former: Option<&Tracking>) -> Result<(), Refusal> {
    let broadcasts = |tracking: &Tracking| tracking.prefixes.is_some();
    let switches = |former: &Tracking| {
        let (was, is) = (former.choice, tracking.choice);
        was != Choice::All && is != Choice::All && was != is
    };
    Err(Refusal::of(match () {
        () if former.is_some_and(|former| broadcasts(former) != broadcasts(tracking)) => {
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and \
             then re-enabling it with a different mode."
        }
        () if broadcasts(tracking) && tracking.choice != Choice::All => {
            "ERR OPTIN and OPTOUT are not compatible with BCAST"
        }
        () if is_both => "ERR You can't specify both OPTIN mode and OPTOUT mode",
        () if former.is_some_and(switches) => {
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and \
             then re-enabling it with a different mode."
        }
        () => return Ok(()),
    }))
}

/// `CLIENT CACHING YES|NO`
pub(super) fn cache(store: &mut Store, call: &Call<'_>, answer: &[u8]) -> Reply {
    let Some(tracking) = &mut store.session(call)?.tracking else {
        return Err(Refusal::of(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled",
        ));
    };
    let wrong = match (lower(answer).as_str(), tracking.choice) {
        ("yes", Choice::Chosen) | ("no", Choice::NotRefused) => {
            tracking.is_excepted = true;
            return Ok(ok());
        }
        ("yes", _) => {
            "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."
        }
        ("no", _) => "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        _ => return Err(Refusal::SYNTAX),
    };
    Err(Refusal::of(wrong))
}

impl Store {
    /// A connection has read these keys by a command.
    pub(super) fn remember_reads(&mut self, call: &Call<'_>, keys: &[&[u8]]) {
        if call.line.is_none() || self.setup.version.knows(READS_OF_SCRIPTS) {
            keys.iter().for_each(|key| self.remember_reader(call.session, key));
        } else {
            let keys = self.script_keys.clone();
            keys.iter().for_each(|key| self.remember_reader(call.session, key));
        }
    }

    /// A connection has read a key.
    fn remember_reader(&mut self, session: SessionId, key: &[u8]) {
        let tracking = self.sessions.get(&session).and_then(|session| session.tracking.as_ref());
        if tracking.is_some_and(Tracking::remembers) {
            self.readers.entry(Bytes::copy_from_slice(key)).or_default().insert(session);
        }
    }

    /// `CLIENT CACHING` was for the command that is over now, unless that was a `CLIENT` itself.
    pub(super) fn end_exception(&mut self, call: &Call<'_>) {
        let session = self.sessions.get_mut(&call.session);
        if let Some(tracking) = session.and_then(|session| session.tracking.as_mut()) {
            tracking.is_excepted &= call.name() == "client";
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
            let Some(tracking) = state.tracking.as_ref().filter(|_| state.resp3) else {
                return false;
            };
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
        let told = self.sessions.iter();
        let told = told.filter(|(_, session)| session.tracking.is_some() && session.resp3);
        self.pushes.extend(told.map(|(session, _)| (*session, invalidation(Frame::Null))));
    }
}

fn invalidation(what: Frame) -> Frame {
    Frame::Push(vec![bulk("invalidate"), what].into())
}
