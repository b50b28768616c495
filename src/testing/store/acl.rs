//! Commands about users: `ACL SETUSER` and `ACL WHOAMI`.

use super::call::{Call, Refusal, Reply, SessionId, bulk, lower, ok};
use super::state::Store;
use super::user::{User, WrongRule};

/// `ACL SETUSER` and `ACL WHOAMI`.
pub(super) fn command(store: &mut Store, call: &Call<'_>) -> Reply {
    match (lower(call.argument(0)).as_str(), call.arguments().get(1..).unwrap_or_default()) {
        ("whoami", []) => Ok(bulk(&*store.session(call)?.user)),
        ("setuser", [name, rules @ ..]) => {
            let name = String::from_utf8_lossy(name).into_owned();
            let version = store.setup.version;
            let known = store.setup.users.get(&name).cloned();
            let mut user = known.unwrap_or_else(|| User::new(version));
            for rule in rules {
                let rule = String::from_utf8_lossy(rule);
                user.apply(&rule, version).map_err(|wrong| refused(&rule, &wrong))?;
            }
            store.end_subscribers(&name, &user);
            store.setup.users.insert(name, user);
            Ok(ok())
        }
        _ => Err(Refusal::SYNTAX),
    }
}

fn refused(rule: &str, wrong: &WrongRule) -> Refusal {
    let what = match wrong {
        WrongRule::Unknown(_) => "Syntax error",
        WrongRule::NoMoreChannels => {
            "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and \
             does not have any effect. Try 'resetchannels' to start with an empty list of channels"
        }
    };
    Refusal::new(format!("ERR Error in ACL SETUSER modifier '{rule}': {what}"))
}

impl Store {
    /// Ends the connections of a user that are subscribed to what it may not use any more.
    fn end_subscribers(&mut self, name: &str, user: &User) {
        let told = self.sessions.iter().filter(|(_, session)| {
            *session.user == *name && !session.channels.iter().all(|channel| user.may_use(channel))
        });
        let told: Vec<SessionId> = told.map(|(session, _)| *session).collect();
        told.iter().for_each(|session| self.end(*session));
    }
}
