//! The least privilege: what each feature needs, found by taking one permission away after the
//! other from a user that may do everything, and compared with the table in the manual.
//!
//! On every server there is (`tests/servers all` fetches the matrix). A permission is needed when
//! the feature does not work without it, be it only on a server that has forgotten its scripts.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read real time, and a set-up that fails must fail its test on the spot"
)]

#[path = "acl/features.rs"]
mod features;

use std::path::Path;

use features::FEATURES;
use support::{Reply, Server, acl, need_process, tools};

/// Every command that the library has a use for, in the order in which they are taken away: first
/// what saves a round trip or is for people, so that what stays is what there is no way around.
const CANDIDATES: [&str; 33] = [
    "delifeq",
    "script|load",
    "time",
    "config|get",
    "client|setinfo",
    "client|setname",
    "client|id",
    "client|kill",
    "info",
    "type",
    "pttl",
    "ping",
    "select",
    "pexpire",
    "evalsha",
    "eval",
    "del",
    "get",
    "set",
    "hello",
    "subscribe",
    "publish",
    "client|tracking",
    "client|caching",
    "zadd",
    "zcard",
    "zrange",
    "zrem",
    "zremrangebyscore",
    "zscore",
    "pexpireat",
    "mget",
    "exists",
];

/// The channels on which processes are told of their locks. Before 7.0 a user has all channels.
const CHANNELS: &str = "&quorlock:wake:*";

/// So often is a feature tried whose rights are not enough: a busy machine does not fail one that
/// works so many times in a row.
const REFUSALS: usize = 3;

/// Rights to keys, the least first.
const KEYS: [&str; 5] = ["", "%R~pay:*", "%W~pay:*", "~pay:*", ALL_KEYS];

/// Those of the locks, and of their queues.
const ALL_KEYS: &str = "~pay:* ~{pay:*";

/// One server, and the user whose rights are tried.
struct Trial {
    server: Server,
    url: String,
    knows_key_rights: bool,
}

impl Trial {
    fn start(program: &Path) -> Self {
        let server = Server::builder().program(program).start();
        let knows_key_rights = server.command(&["ACL", "SETUSER", "probe", "%R~k"]) == Reply::ok();
        let url = server.url_as("tried:pw");
        Self { server, url, knows_key_rights }
    }

    /// Gives the user these rules and no others; `false` if the server does not know one of them.
    fn grant(&self, rules: &[&str]) -> bool {
        let words = ["ACL", "SETUSER", "tried", "reset", "on", ">pw"];
        let words: Vec<&str> =
            words.iter().chain(rules).filter(|w| !w.is_empty()).copied().collect();
        self.server.command(&words) == Reply::ok()
    }

    /// The rule that gives all channels, where a user has none by default.
    fn all_channels(&self) -> &'static str {
        if self.knows_key_rights { "&*" } else { "" }
    }

    /// Whether the feature works with these rules. A right that is missing fails it each time, and
    /// the server says that it has refused something; what else fails it is a busy machine's doing.
    fn works(&self, feature: &features::Feature, rules: &[&str]) -> Result<(), String> {
        let mut refused = 0;
        for _ in 0..3 * REFUSALS {
            self.server.command(&["ACL", "LOG", "RESET"]);
            let Err(why) = self.works_now(feature, rules) else { return Ok(()) };
            if self.server.command(&["ACL", "LOG"]).array().is_empty() {
                println!("{} with {rules:?}: nothing was refused: {why}", feature.name);
                continue;
            }
            refused += 1;
            if refused == REFUSALS {
                return Err(why);
            }
        }
        Err("it fails again and again, and nothing is refused".into())
    }

    /// Tries once, on a server that has nothing and knows nothing.
    fn works_now(&self, feature: &features::Feature, rules: &[&str]) -> Result<(), String> {
        assert!(self.grant(rules), "the server knows {rules:?}");
        // Connections of the last trial may not have ended yet.
        self.server.command(&["CLIENT", "KILL", "USER", "tried"]);
        self.server.command(&["FLUSHALL"]);
        self.server.command(&["SCRIPT", "FLUSH"]);
        feature.run(&self.server, &self.url)
    }

    /// What is left when everything was taken away that can be.
    fn least(&self, feature: &features::Feature) -> Vec<String> {
        self.works(feature, &["~*", "+@all", self.all_channels()])
            .unwrap_or_else(|why| panic!("{}: {why}", feature.name));
        let known = |rule: &String| self.grant(&["-@all", rule]);
        let mut rules: Vec<String> =
            CANDIDATES.iter().map(|name| format!("+{name}")).filter(known).collect();
        rules.extend(self.knows_key_rights.then(|| CHANNELS.to_owned()));
        let with = |keys: &str, rules: &[String]| {
            let rules: Vec<&str> =
                keys.split(' ').chain(["-@all"]).chain(rules.iter().map(|r| &**r)).collect();
            self.works(feature, &rules)
        };
        with(ALL_KEYS, &rules)
            .unwrap_or_else(|why| panic!("{}: a candidate is missing: {why}", feature.name));
        for rule in rules.clone() {
            let rest: Vec<String> = rules.iter().filter(|kept| **kept != rule).cloned().collect();
            if with(ALL_KEYS, &rest).is_ok() {
                rules = rest;
            }
        }
        let offered = KEYS.iter().filter(|keys| self.knows_key_rights || !keys.starts_with('%'));
        let keys = offered
            .copied()
            .find(|keys| with(keys, &rules).is_ok())
            .unwrap_or_else(|| panic!("{}: {rules:?} were enough before", feature.name));
        rules.extend(keys.split_whitespace().map(str::to_owned));
        rules.sort_unstable();
        rules
    }
}

/// The rules of a row, as this server can have them.
fn expected(trial: &Trial, rules: &[String]) -> Vec<String> {
    let adapted = |rule: &String| match rule.strip_prefix('%') {
        // Before 7.0 a right to a key is one to read and to write.
        Some(keys) if !trial.knows_key_rights => Some(keys[1..].to_owned()),
        _ if rule.starts_with('&') && !trial.knows_key_rights => None,
        _ => Some(rule.clone()),
    };
    let mut rules: Vec<String> = rules.iter().filter_map(adapted).collect();
    rules.sort_unstable();
    rules
}

fn check(program: &Path) -> Vec<String> {
    let trial = Trial::start(program);
    let (kind, version) = trial.server.version();
    let mut faults = Vec::new();
    for (feature, (what, rules)) in FEATURES.iter().zip(acl::rows()) {
        let (found, told) = (trial.least(feature), expected(&trial, &rules));
        if found != told {
            faults.push(format!("{kind} {version:?}: to {what}: {found:?}, in the table {told:?}"));
        }
    }
    faults
}

#[test]
fn what_each_feature_needs_is_what_the_manual_says() {
    need_process!();
    let rows: Vec<String> = acl::rows().into_iter().map(|(what, _)| what).collect();
    let names: Vec<&str> = FEATURES.iter().map(|feature| feature.name).collect();
    assert_eq!(rows, names, "a row for each feature, in this order");
    let programs = tools::all_servers();
    assert!(!programs.is_empty(), "there is one, or this would have been skipped");
    let faults: Vec<String> = std::thread::scope(|scope| {
        let checks: Vec<_> =
            programs.iter().map(|program| scope.spawn(move || check(program))).collect();
        checks.into_iter().flat_map(|check| check.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "the table is wrong:\n{}", faults.join("\n"));
}

/// Nothing is sent that is not among the candidates: or a permission could be needed unseen.
#[test]
fn the_candidates_are_all_that_the_library_sends() {
    need_process!();
    let trial = Trial::start(&tools::find_server().unwrap());
    trial.server.command(&["CONFIG", "RESETSTAT"]);
    for feature in &FEATURES {
        trial.works(feature, &["~*", "+@all", trial.all_channels()]).unwrap();
    }
    // What the tests themselves send, as the default user.
    let ours =
        ["acl", "flushall", "script|flush", "config|resetstat", "client|list", "client|kill"];
    let ours = [&ours[..], &["hset", "exists", "info", "set", "auth"]].concat();
    let statistics = trial.server.command(&["INFO", "commandstats"]).text();
    let sent =
        statistics.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split(':').next());
    let unknown: Vec<&str> = sent
        .filter(|name| {
            // Before 7.0 the subcommands are not told apart.
            let is = |known: &&&str| **known == *name || known.split('|').next() == Some(name);
            let known = CANDIDATES.iter().chain(&ours).find(is);
            known.is_none() && !name.starts_with("acl|")
        })
        .collect();
    assert_eq!(unknown, Vec::<&str>::new(), "{statistics}");
}

/// The manual names the fetched versions: a change of them must be tried, and told there.
#[test]
fn the_manual_names_the_servers_that_are_fetched() {
    let (manual, fetched) =
        (include_str!("../src/manual/compatibility.rs"), include_str!("servers"));
    for (variable, name) in [("valkey", "Valkey"), ("redis_old", "Redis"), ("redis_new", "Redis")] {
        let mut lines = fetched.lines().filter_map(|line| line.strip_prefix(variable));
        let version = lines.find_map(|rest| rest.strip_prefix('=')?.split(' ').next());
        let row = format!("| {name} {} |", version.unwrap());
        assert!(manual.contains(&row), "no row {row:?}");
    }
}

#[test]
fn the_least_user_of_the_suite_may_not_do_everything() {
    let rules = acl::least();
    assert!(rules.starts_with("on >pw ~* resetchannels -@all &quorlock:wake:* +"), "{rules}");
    let commands = [("+set", true), ("+client|kill", true), ("+flushall", false), (" +@", false)];
    for (rule, is_in) in commands.into_iter().chain([("&*", false), ("allchannels", false)]) {
        assert_eq!(rules.contains(rule), is_in, "{rules}");
    }
}
