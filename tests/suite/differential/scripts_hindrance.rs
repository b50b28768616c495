//! What keeps a script from doing its work: a part of the table in `scripts`.

use std::sync::LazyLock;

/// What a server refuses a script while it runs, or before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hindrance {
    None,
    /// The user may not say this command, or not touch this key: its name in [`users`].
    User(&'static str),
    /// There is no memory left.
    Starved,
}

/// The commands that scripts say.
const COMMANDS: [&str; 16] = [
    "get",
    "mget",
    "exists",
    "set",
    "del",
    "pttl",
    "pexpire",
    "pexpireat",
    "publish",
    "time",
    "zadd",
    "zcard",
    "zrange",
    "zrem",
    "zremrangebyscore",
    "zscore",
];

/// The keys that scripts touch.
pub(super) const KEYS: [&str; 9] = ["e", "q", "f", "k", "l", "r", "g", "z", "b"];

/// The user who lacks the right to any channel.
const CHANNELS: &str = "channels";

/// The command that a script asks about, and does not say.
const DELIFEQ: &str = "delifeq";

/// The users who lack one right each, by what they lack, with their rules.
pub(crate) fn users() -> &'static [(&'static str, &'static str)] {
    static USERS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
        let mut users = vec![(CHANNELS, "on nopass ~* resetchannels +@all")];
        for command in COMMANDS {
            users.push((command, &*format!("on nopass ~* &* +@all -{command}").leak()));
        }
        // Not every server knows it, and so can leave it out.
        users.push((DELIFEQ, "on nopass ~* &* +evalsha"));
        for key in KEYS {
            let others = KEYS.iter().filter(|other| **other != key);
            let others: Vec<String> = others.map(|other| format!("~{other}")).collect();
            users.push((key, format!("on nopass {} &* +@all", others.join(" ")).leak()));
        }
        users
    });
    &USERS
}

/// What can hinder a script of this text, which is given these keys: want of memory, and of each
/// right that it needs.
pub(super) fn of(text: &str, keys: &[&str]) -> Vec<Hindrance> {
    let said = text.split("call('").skip(1).filter_map(|rest| rest.split('\'').next());
    let said: Vec<String> = said.map(str::to_ascii_lowercase).collect();
    let unknown = said.iter().find(|name| !COMMANDS.contains(&name.as_str()));
    assert!(unknown.is_none(), "{unknown:?} is no row of COMMANDS");
    let says = |command: &str| said.iter().any(|name| name == command);
    let needs = |right: &str| match right {
        CHANNELS => says("publish"),
        DELIFEQ => text.contains("acl_check_cmd, 'DELIFEQ'"),
        right => says(right) || keys.contains(&right),
    };
    let lacking = users().iter().filter(|(right, _)| needs(right));
    let lacking = lacking.map(|(right, _)| Hindrance::User(right));
    [Hindrance::Starved].into_iter().chain(lacking).collect()
}
