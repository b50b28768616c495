//! Users: who may say which command about which key.

use super::glob::matches;
use super::version::{Since, Version};

/// A new user has no channels; before, all.
const NO_CHANNELS: Since = Since::redis([7, 0]);

/// The pattern of all channels.
const ALL: &[u8] = b"*";

/// A user and its rights.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct User {
    is_on: bool,
    /// Any password will do.
    nopass: bool,
    passwords: Vec<Vec<u8>>,
    /// Whether commands are allowed, the last rule that fits one deciding: `@all`, `set`,
    /// `client|kill`.
    commands: Vec<(bool, String)>,
    /// Patterns of keys.
    keys: Vec<Vec<u8>>,
    /// Patterns of channels; if one is of all, it is the only one.
    channels: Vec<Vec<u8>>,
}

/// Why a rule is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum WrongRule {
    /// A node knows none such: in its own words.
    Unknown(String),
    /// All channels are allowed already.
    NoMoreChannels,
}

impl User {
    /// Who may do everything without being asked who it is.
    pub(crate) fn unlimited() -> Self {
        Self {
            is_on: true,
            nopass: true,
            passwords: Vec::new(),
            commands: vec![(true, "@all".into())],
            keys: vec![ALL.to_vec()],
            channels: vec![ALL.to_vec()],
        }
    }

    /// Who may do everything with this password.
    pub(crate) fn with_password(password: &str) -> Self {
        let passwords = vec![password.as_bytes().to_vec()];
        Self { nopass: false, passwords, ..Self::unlimited() }
    }

    /// A user as a server of this version makes one: it may do nothing.
    pub(super) fn new(version: Version) -> Self {
        let channels = if version.knows(NO_CHANNELS) { Vec::new() } else { vec![ALL.to_vec()] };
        Self { channels, ..Self::default() }
    }

    /// A user by rules as `ACL SETUSER` takes them, of which a lock needs these: `on`, `off`,
    /// `reset`, `nopass`, `resetpass`, `>password`, `~pattern`, `%RW~pattern`, `allkeys`,
    /// `&pattern`, `allchannels`, `resetchannels`, `+…` and `-…` with a command,
    /// `command|subcommand` or `@all`.
    pub(crate) fn by_rules(rules: &str, version: Version) -> Result<Self, String> {
        let mut user = Self::new(version);
        for rule in rules.split_whitespace() {
            user.apply(rule, version).map_err(|wrong| match wrong {
                WrongRule::Unknown(what) => what,
                WrongRule::NoMoreChannels => {
                    format!("all channels are allowed already, before the ACL rule {rule}")
                }
            })?;
        }
        Ok(user)
    }

    pub(super) fn apply(&mut self, rule: &str, version: Version) -> Result<(), WrongRule> {
        match rule {
            "on" => self.is_on = true,
            "off" => self.is_on = false,
            "reset" => *self = Self::new(version),
            "nopass" => {
                self.nopass = true;
                self.passwords.clear();
            }
            "resetpass" => {
                self.nopass = false;
                self.passwords.clear();
            }
            "allkeys" => self.keys.push(ALL.to_vec()),
            "allchannels" | "&*" => self.channels = vec![ALL.to_vec()],
            "resetchannels" => self.channels.clear(),
            "allcommands" => self.commands.push((true, "@all".into())),
            _ => {
                let pattern = rule.strip_prefix("%RW~").or_else(|| rule.strip_prefix('~'));
                if let Some(pattern) = pattern {
                    self.keys.push(pattern.into());
                } else if let Some(pattern) = rule.strip_prefix('&') {
                    if self.channels == [ALL] {
                        return Err(WrongRule::NoMoreChannels);
                    }
                    self.channels.push(pattern.into());
                } else if let Some(password) = rule.strip_prefix('>') {
                    self.nopass = false;
                    self.passwords.push(password.into());
                } else if let Some(name) = rule.strip_prefix('+') {
                    self.rule_commands(true, name)?;
                } else if let Some(name) = rule.strip_prefix('-') {
                    self.rule_commands(false, name)?;
                } else {
                    let what = format!("an in-process node knows no such ACL rule: {rule}");
                    return Err(WrongRule::Unknown(what));
                }
            }
        }
        Ok(())
    }

    fn rule_commands(&mut self, allowed: bool, name: &str) -> Result<(), WrongRule> {
        if name.starts_with('@') && name != "@all" {
            let what = format!("an in-process node knows no category but @all: {name}");
            return Err(WrongRule::Unknown(what));
        }
        self.commands.push((allowed, name.to_ascii_lowercase()));
        Ok(())
    }

    pub(super) fn admits(&self, password: &[u8]) -> bool {
        let knows = || self.passwords.iter().any(|known| known == password);
        self.is_on && (self.nopass || knows())
    }

    /// Whether no password is asked for.
    pub(super) fn is_open(&self) -> bool {
        self.is_on && self.nopass
    }

    /// Whether it may say the command, with the subcommand if it has one.
    pub(super) fn may_say(&self, command: &str, subcommand: Option<&str>) -> bool {
        let fits = |rule: &str| match rule.split_once('|') {
            Some((name, sub)) => name == command && Some(sub) == subcommand,
            None => rule == "@all" || rule == command,
        };
        self.commands.iter().rev().find(|(_, rule)| fits(rule)).is_some_and(|(may, _)| *may)
    }

    pub(super) fn may_touch(&self, key: &[u8]) -> bool {
        self.keys.iter().any(|pattern| matches(pattern, key))
    }

    /// Whether it may publish on a channel, and subscribe to it.
    pub(super) fn may_use(&self, channel: &[u8]) -> bool {
        self.channels.iter().any(|pattern| matches(pattern, channel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_rules(rules: &str) -> Result<User, String> {
        User::by_rules(rules, Version::default())
    }

    #[test]
    fn the_last_rule_that_fits_decides() {
        let user = by_rules("on >pw ~lock:* +@all -info -client +client|kill").unwrap();
        assert!(user.admits(b"pw") && !user.admits(b"no") && !user.is_open());
        assert!(user.may_say("get", None) && !user.may_say("info", None));
        assert!(user.may_say("client", Some("kill")) && !user.may_say("client", Some("id")));
        assert!(user.may_touch(b"lock:1") && !user.may_touch(b"other"));
    }

    #[test]
    fn without_a_rule_nothing_is_allowed_and_what_is_none_is_told() {
        let powerless = by_rules("").unwrap();
        assert!(
            !powerless.admits(b"")
                && !powerless.may_say("ping", None)
                && !powerless.may_touch(b"k")
                && !powerless.may_use(b"c")
        );
        assert!(User::unlimited().is_open() && User::unlimited().may_say("set", None));
        assert_eq!(by_rules("on allchannels reset").unwrap(), powerless);
        assert!(by_rules("+@read").unwrap_err().contains("no category but @all"));
        assert!(by_rules("channel").unwrap_err().contains("no such ACL rule"));
    }

    #[test]
    fn channels_are_allowed_by_patterns_or_all() {
        let some = by_rules("&news:* &one").unwrap();
        assert!(some.may_use(b"news:1") && some.may_use(b"one") && !some.may_use(b"two"));
        for all in ["allchannels", "&*", "&one allchannels"] {
            assert!(by_rules(all).unwrap().may_use(b"two"), "{all}");
        }
        assert!(!by_rules("allchannels resetchannels &one").unwrap().may_use(b"two"));
        assert!(by_rules("allchannels &one").unwrap_err().contains("allowed already"));
        assert!(User::unlimited().may_use(b"two"));
        let old = Version::redis("6.2.14").unwrap();
        assert!(User::by_rules("on", old).unwrap().may_use(b"two"), "as it was once");
        assert!(!User::by_rules("resetchannels", old).unwrap().may_use(b"two"));
    }
}
