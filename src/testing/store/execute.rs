//! Executing a command: whether it is one, whether it may be said, and what comes of it.

use std::time::Duration;

use quorlock_resp::Frame;

use super::call::{Call, NO_SESSION, OPERATOR, Refusal, Reply, SessionId};
use super::commands::{Access, LATER, Spec, find, may_write, subcommand};
use super::pubsub;
use super::state::{Effects, Session, Store};
use super::version::Since;

impl Store {
    /// Executes a command: its first word is its name. The reply is the one message to `session`
    /// that is no push; `SUBSCRIBE` and `UNSUBSCRIBE` have none. A connection that has ended gets
    /// nothing.
    pub(crate) fn execute(
        &mut self,
        session: SessionId,
        words: &[&[u8]],
        now: Duration,
    ) -> Effects {
        let mut effects = self.advance(now);
        if !self.is_connected(session) {
            return effects;
        }
        let call = Call { session, words, now, line: None };
        let reply = self.call(&call).unwrap_or_else(Refusal::into_frame);
        self.end_exception(&call);
        effects.messages.append(&mut self.pushes_first);
        effects.messages.push((session, reply));
        self.collect(effects)
    }

    /// Executes a command with all rights and without a connection; returns the reply and what else
    /// has come of it.
    pub(crate) fn execute_as_operator(
        &mut self,
        words: &[&[u8]],
        now: Duration,
    ) -> (Frame, Effects) {
        let session = Session { resp3: true, ..Session::new(OPERATOR, true) };
        self.sessions.insert(NO_SESSION, session);
        let mut effects = self.execute(NO_SESSION, words, now);
        self.disconnect(NO_SESSION);
        let at =
            effects.messages.iter().position(|(to, frame)| *to == NO_SESSION && !frame.is_push());
        let reply = at.map_or(Frame::Null, |at| effects.messages.remove(at).1);
        (reply, effects)
    }

    /// Until when `CLIENT PAUSE` keeps a command of this name waiting.
    pub(crate) fn paused_until(&self, name: &[u8]) -> Option<Duration> {
        let pause = self.pause.filter(|pause| pause.is_of_all || may_write(name))?;
        Some(pause.until)
    }

    /// Executes one command, if it is one and may be said.
    pub(super) fn call(&mut self, call: &Call<'_>) -> Reply {
        let spec = self.recognise(call)?;
        let name = spec.name;
        let version = self.setup.version;
        let session = self.session(call)?;
        if !session.authenticated && spec.access != Access::Opens {
            return Err(Refusal::LOGIN);
        }
        let user = session.user.clone();
        let keys = spec.keys(call);
        if spec.access != Access::Opens && *user != *OPERATOR {
            self.check_rights(call, &user, spec)?;
        }
        let writes = matches!(spec.access, Access::Writes | Access::Grows);
        if writes && self.setup.is_replica {
            return Err(version.refused(Refusal::READ_ONLY, call.line));
        }
        let is_starved = match call.line {
            Some(_) => self.script_is_starved,
            None => self.is_full(),
        };
        if spec.access == Access::Grows && is_starved {
            return Err(version.refused(Refusal::MEMORY, call.line));
        }
        if self.session(call)?.only_listens() && !pubsub::ALLOWED.contains(&name) {
            return Err(version.only_listens([name, &subcommand(name, call)]));
        }
        self.script_is_starved &= !writes;
        if !version.has_subcommands() {
            spec.check_subcommand(call, version)?;
        }
        let subcommand = subcommand(name, call);
        *self.counts.calls.entry((name, subcommand)).or_default() += 1;
        let reply = (spec.run)(self, call);
        if spec.access == Access::Reads {
            self.remember_reads(call, keys);
        }
        reply
    }

    /// The command that is said, if there is one such, with so many words.
    fn recognise(&mut self, call: &Call<'_>) -> Result<&'static Spec, Refusal> {
        let version = self.setup.version;
        let is_known = |spec: &&Spec| {
            !self.setup.hidden.contains(spec.name)
                && LATER.iter().all(|(name, since)| *name != spec.name || version.knows(*since))
        };
        let said = call.words.first().copied().unwrap_or_default();
        let found = find(said).filter(is_known);
        let opens = found.is_some_and(|spec| spec.access == Access::Opens);
        if version.asks_login_first() && !opens && !self.session(call)?.authenticated {
            return Err(Refusal::LOGIN);
        }
        let Some(spec) = found else {
            return Err(match call.line {
                Some(_) => version.unknown_in_script(call.line),
                None => version.unknown_command(call.words),
            });
        };
        let [least, most] = spec.words;
        if !(least..=most).contains(&call.words.len()) {
            return Err(match call.line {
                Some(_) => version.arity_in_script(call.line),
                None => Refusal::arity(spec.name),
            });
        }
        if version.has_subcommands() {
            spec.check_subcommand(call, version)?;
        }
        Ok(spec)
    }

    /// What `redis.acl_check_cmd` answers: whether the user of this connection may say a command.
    /// It refuses what is none; `None` where servers have no such function.
    pub(super) fn may_say(
        &mut self,
        call: &Call<'_>,
        words: &[&[u8]],
    ) -> Option<Result<bool, Refusal>> {
        if !self.setup.version.knows(Since::redis([7, 0])) {
            return None;
        }
        let asked = Call { words, ..*call };
        Some(self.recognise(&asked).and_then(|spec| {
            let user = self.session(call)?.user.clone();
            Ok(*user == *OPERATOR || self.check_rights(&asked, &user, spec).is_ok())
        }))
    }

    fn check_rights(&self, call: &Call<'_>, user: &str, spec: &Spec) -> Result<(), Refusal> {
        let Some(rights) = self.setup.users.get(user) else { return Err(Refusal::LOGIN) };
        let (version, subcommand) = (self.setup.version, subcommand(spec.name, call));
        if !rights.may_say(spec.name, Some(&*subcommand).filter(|sub| !sub.is_empty())) {
            return Err(version.may_not_say(user, [spec.name, &subcommand], call.line));
        }
        if !spec.keys(call).iter().all(|key| rights.may_touch(key)) {
            return Err(version.may_not_touch(call.line));
        }
        match spec.channels(call).iter().all(|channel| rights.may_use(channel)) {
            true => Ok(()),
            false => Err(version.may_not_use(call.line)),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.memory_max > 0 && self.memory_used() > self.memory_max
    }
}
