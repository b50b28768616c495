//! Commands about users: `ACL SETUSER` and `ACL WHOAMI`.

use super::call::{Call, Refusal, Reply, bulk, lower, ok};
use super::state::Store;

/// `ACL SETUSER` and `ACL WHOAMI`.
pub(super) fn command(store: &mut Store, call: &Call<'_>) -> Reply {
    match (lower(call.argument(0)).as_str(), call.arguments().get(1..).unwrap_or_default()) {
        ("whoami", []) => Ok(bulk(&*store.session(call)?.user)),
        ("setuser", [name, rules @ ..]) => {
            let name = String::from_utf8_lossy(name).into_owned();
            let mut user = store.setup.users.get(&name).cloned().unwrap_or_default();
            for rule in rules {
                let rule = String::from_utf8_lossy(rule);
                user.apply(&rule).map_err(|_| {
                    let what = format!("ERR Error in ACL SETUSER modifier '{rule}': Syntax error");
                    Refusal::new(what)
                })?;
            }
            store.setup.users.insert(name, user);
            Ok(ok())
        }
        _ => Err(Refusal::SYNTAX),
    }
}
