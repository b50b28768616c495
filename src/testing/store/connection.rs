//! Commands about a connection: who speaks, in which protocol, about which database.

use std::time::Duration;

use bytes::Bytes;
use quorlock_resp::Frame;

use super::call::{Call, NO_SESSION, Refusal, Reply, SessionId, bulk, count, integer, lower, ok};
use super::state::{Pause, Session, Store};
use super::tracking;
use super::user::User;

/// How many databases a node has.
const DATABASES: i64 = 16;

const WRONG_LOGIN: Refusal =
    Refusal::of("WRONGPASS invalid username-password pair or user is disabled.");

pub(super) fn auth(store: &mut Store, call: &Call<'_>) -> Reply {
    match *call.arguments() {
        [password] => {
            if store.setup.users.get("default").is_some_and(User::is_open) {
                return Err(Refusal::of(
                    "ERR AUTH <password> called without any password configured for the default \
                     user. Are you sure your configuration is correct?",
                ));
            }
            store.log_in(call, b"default", password)?;
        }
        [user, password] => store.log_in(call, user, password)?,
        _ => return Err(Refusal::SYNTAX),
    }
    Ok(ok())
}

pub(super) fn hello(store: &mut Store, call: &Call<'_>) -> Reply {
    let mut words = call.arguments().iter();
    let resp3 = match words.next() {
        None => store.session(call)?.resp3,
        Some(version) => match integer(version) {
            Ok(version @ (2 | 3)) => version == 3,
            Ok(_) => return Err(Refusal::of("NOPROTO unsupported protocol version")),
            Err(_) => {
                let what = "ERR Protocol version is not an integer or out of range";
                return Err(Refusal::of(what));
            }
        },
    };
    let mut name = None;
    while let Some(word) = words.next() {
        match lower(word).as_str() {
            "auth" => {
                let (user, password) = (words.next(), words.next());
                let (user, password) = user.zip(password).ok_or_else(|| wrong_option(word))?;
                store.log_in(call, user, password)?;
            }
            "setname" => name = Some(words.next().ok_or_else(|| wrong_option(word))?),
            _ => return Err(wrong_option(word)),
        }
    }
    if !store.session(call)?.authenticated {
        return Err(store.setup.version.login_missing());
    }
    if let Some(name) = name {
        set_name(store, call, name)?;
    }
    store.session(call)?.resp3 = resp3;
    Ok(greeting(store, call.session, resp3))
}

fn wrong_option(word: &[u8]) -> Refusal {
    let word = String::from_utf8_lossy(word);
    Refusal::new(format!("ERR Syntax error in HELLO option '{word}'"))
}

/// What `HELLO` is answered.
fn greeting(store: &Store, session: SessionId, resp3: bool) -> Frame {
    let mode = if store.setup.is_cluster { "cluster" } else { "standalone" };
    let role = if store.setup.is_replica { "replica" } else { "master" };
    let fields = [
        (bulk("server"), bulk(store.setup.version.name())),
        (bulk("version"), bulk(store.setup.version.text())),
        (bulk("proto"), Frame::Integer(if resp3 { 3 } else { 2 })),
        (bulk("id"), Frame::Integer(session)),
        (bulk("mode"), bulk(mode)),
        (bulk("role"), bulk(role)),
        (bulk("modules"), Frame::Array(Vec::new().into())),
    ];
    Frame::Map(fields.into_iter().collect())
}

pub(super) fn quit(store: &mut Store, call: &Call<'_>) -> Reply {
    store.end(call.session);
    Ok(ok())
}

/// The connection is as it was when it was made.
pub(super) fn reset(store: &mut Store, call: &Call<'_>) -> Reply {
    let is_open = store.setup.users.get("default").is_some_and(User::is_open);
    *store.session(call)? = Session::new("default", is_open);
    Ok(Frame::Simple(Bytes::from_static(b"RESET")))
}

pub(super) fn ping(store: &mut Store, call: &Call<'_>) -> Reply {
    if store.session(call)?.only_listens() {
        // In the form of a message, for who reads nothing but messages.
        return Ok(Frame::Array(vec![bulk("pong"), bulk(call.argument(0))].into()));
    }
    let pong = Frame::Simple(Bytes::from_static(b"PONG"));
    Ok(call.arguments().first().map_or(pong, bulk))
}

pub(super) fn echo(_: &mut Store, call: &Call<'_>) -> Reply {
    Ok(bulk(call.argument(0)))
}

pub(super) fn select(store: &mut Store, call: &Call<'_>) -> Reply {
    let database = integer(call.argument(0))?;
    let out_of_range = Refusal::of("ERR DB index is out of range");
    if !(0..DATABASES).contains(&database) {
        return Err(out_of_range);
    }
    if store.setup.is_cluster && database != 0 {
        return Err(Refusal::of("ERR SELECT is not allowed in cluster mode"));
    }
    store.session(call)?.database = u32::try_from(database).map_err(|_| out_of_range)?;
    Ok(ok())
}

pub(super) fn client(store: &mut Store, call: &Call<'_>) -> Reply {
    let words = call.arguments().get(1..).unwrap_or_default();
    match (lower(call.argument(0)).as_str(), words) {
        ("id", []) => Ok(Frame::Integer(call.session)),
        ("getname", []) => {
            let name = store.session(call)?.name.clone();
            Ok(if name.is_empty() { Frame::Null } else { Frame::Bulk(name) })
        }
        ("setname", [name]) => set_name(store, call, name),
        ("setinfo", [_, _]) => Ok(ok()),
        ("kill", _) => kill(store, call, words),
        ("caching", [answer]) => tracking::cache(store, call, answer),
        ("tracking", [_, ..]) => tracking::track(store, call, words),
        ("pause", [millis]) => pause(store, call, millis, b"all"),
        ("pause", [millis, mode]) => pause(store, call, millis, mode),
        ("unpause", []) => {
            store.pause = None;
            Ok(ok())
        }
        _ => Err(Refusal::SYNTAX),
    }
}

/// Of a pause under way and a new one the longer time counts, and the wider mode.
fn pause(store: &mut Store, call: &Call<'_>, millis: &[u8], mode: &[u8]) -> Reply {
    let is_of_all = match lower(mode).as_str() {
        "all" => true,
        "write" => false,
        _ => return Err(Refusal::of("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let wrong = |_| Refusal::of("ERR timeout is not an integer or out of range");
    let millis = integer(millis).map_err(wrong)?;
    let millis = u64::try_from(millis).map_err(|_| Refusal::of("ERR timeout is negative"))?;
    let until = call.now.saturating_add(Duration::from_millis(millis));
    let former = store.pause.filter(|former| former.until > call.now);
    let former = former.unwrap_or(Pause { until, is_of_all });
    let is_of_all = is_of_all || former.is_of_all;
    store.pause = Some(Pause { until: until.max(former.until), is_of_all });
    Ok(ok())
}

fn set_name(store: &mut Store, call: &Call<'_>, name: &[u8]) -> Reply {
    if !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err(Refusal::of(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ));
    }
    store.session(call)?.name = Bytes::copy_from_slice(name);
    Ok(ok())
}

/// `CLIENT KILL` with filters: `ID n`, `TYPE normal|pubsub`, `SKIPME yes|no`.
fn kill(store: &mut Store, call: &Call<'_>, words: &[&[u8]]) -> Reply {
    if words.is_empty() {
        return Err(Refusal::SYNTAX);
    }
    let version = store.setup.version;
    let (mut only, mut only_type, mut spares_me) = (None, None, true);
    for filter in words.chunks(2) {
        let [name, value] = filter else { return Err(Refusal::SYNTAX) };
        match (lower(name).as_str(), lower(value).as_str()) {
            ("id", _) => {
                only = match integer(value) {
                    Ok(id) if id > 0 || !version.has_subcommands() => Some(id),
                    wrong => return Err(version.wrong_client(wrong)),
                };
            }
            ("type", kind) => only_type = Some(kind.to_owned()),
            ("skipme", "yes") => spares_me = true,
            ("skipme", "no") => spares_me = false,
            _ => return Err(Refusal::SYNTAX),
        }
    }
    let doomed = store.sessions.iter().filter(|(session, state)| {
        let kind = if state.channels.is_empty() { "normal" } else { "pubsub" };
        **session != NO_SESSION
            && only_type.as_ref().is_none_or(|only| only == kind)
            && only.is_none_or(|only| only == **session)
            && !(spares_me && **session == call.session)
    });
    let doomed: Vec<SessionId> = doomed.map(|(session, _)| *session).collect();
    doomed.iter().for_each(|session| store.end(*session));
    Ok(count(doomed.len()))
}

impl Store {
    fn log_in(&mut self, call: &Call<'_>, user: &[u8], password: &[u8]) -> Result<(), Refusal> {
        let name = String::from_utf8_lossy(user).into_owned();
        let known = self.setup.users.get(&name).is_some_and(|user| user.admits(password));
        if !known {
            return Err(WRONG_LOGIN);
        }
        let session = self.session(call)?;
        (session.user, session.authenticated) = (name.into(), true);
        Ok(())
    }

    /// Ends a connection behind whatever is still to be said to it.
    pub(super) fn end(&mut self, session: SessionId) {
        self.disconnect(session);
        self.ended.push(session);
    }
}
