//! Users: who may say which command about which key.

use super::glob::matches;

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
}

impl User {
    /// Who may do everything without being asked who it is.
    pub(crate) fn unlimited() -> Self {
        let (mut user, mut rules) = (Self::default(), ["on", "nopass", "~*", "+@all"].into_iter());
        rules.all(|rule| user.apply(rule).is_ok());
        user
    }

    /// Who may do everything with this password.
    pub(crate) fn with_password(password: &str) -> Self {
        let passwords = vec![password.as_bytes().to_vec()];
        Self { nopass: false, passwords, ..Self::unlimited() }
    }

    /// A user by rules as `ACL SETUSER` takes them, of which a lock needs these: `on`, `off`,
    /// `reset`, `nopass`, `resetpass`, `>password`, `~pattern`, `%RW~pattern`, `allkeys`, `+…` and
    /// `-…` with a command, `command|subcommand` or `@all`.
    pub(crate) fn by_rules(rules: &str) -> Result<Self, String> {
        let mut user = Self::default();
        rules.split_whitespace().try_for_each(|rule| user.apply(rule))?;
        Ok(user)
    }

    pub(super) fn apply(&mut self, rule: &str) -> Result<(), String> {
        match rule {
            "on" => self.is_on = true,
            "off" => self.is_on = false,
            "reset" => *self = Self::default(),
            "nopass" => {
                self.nopass = true;
                self.passwords.clear();
            }
            "resetpass" => {
                self.nopass = false;
                self.passwords.clear();
            }
            "allkeys" => self.keys.push(b"*".to_vec()),
            "allcommands" => self.commands.push((true, "@all".into())),
            _ => {
                let pattern = rule.strip_prefix("%RW~").or_else(|| rule.strip_prefix('~'));
                if let Some(pattern) = pattern {
                    self.keys.push(pattern.into());
                } else if let Some(password) = rule.strip_prefix('>') {
                    self.nopass = false;
                    self.passwords.push(password.into());
                } else if let Some(name) = rule.strip_prefix('+') {
                    self.rule_commands(true, name)?;
                } else if let Some(name) = rule.strip_prefix('-') {
                    self.rule_commands(false, name)?;
                } else {
                    return Err(format!("an in-process node knows no such ACL rule: {rule}"));
                }
            }
        }
        Ok(())
    }

    fn rule_commands(&mut self, allowed: bool, name: &str) -> Result<(), String> {
        if name.starts_with('@') && name != "@all" {
            return Err(format!("an in-process node knows no category but @all: {name}"));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rule_that_fits_decides() {
        let user = User::by_rules("on >pw ~lock:* +@all -info -client +client|kill").unwrap();
        assert!(user.admits(b"pw") && !user.admits(b"no") && !user.is_open());
        assert!(user.may_say("get", None) && !user.may_say("info", None));
        assert!(user.may_say("client", Some("kill")) && !user.may_say("client", Some("id")));
        assert!(user.may_touch(b"lock:1") && !user.may_touch(b"other"));
    }

    #[test]
    fn without_a_rule_nothing_is_allowed_and_what_is_none_is_told() {
        let powerless = User::by_rules("").unwrap();
        assert!(
            !powerless.admits(b"")
                && !powerless.may_say("ping", None)
                && !powerless.may_touch(b"k")
        );
        assert!(User::unlimited().is_open() && User::unlimited().may_say("set", None));
        assert_eq!(User::by_rules("on reset").unwrap(), powerless);
        assert!(User::by_rules("+@read").unwrap_err().contains("no category but @all"));
        assert!(User::by_rules("&channel").unwrap_err().contains("no such ACL rule"));
    }
}
