//! What a dead connection may have left on its node, and how the next one settles it.
//!
//! A command that was sent and not answered may have been applied, or, worse, may be applied yet:
//! the kernels can deliver the bytes of a closed connection after the bytes of the next one. So the
//! next connection first has the server end the old one (`CLIENT KILL ID`), behind which nothing of
//! it can run any more, and then sends the undos. They are whole `EVAL`s, for a server that was
//! restarted knows no script. An undo that is wanted while there is no connection at all is kept in
//! the same way. To this file undos are bytes.
//!
//! Where the old connection cannot be ended, because the server hides its name or forbids `CLIENT
//! KILL`, what it sent may arrive at any time. Then the undos are sent again and again, for as long
//! as a late command could matter.
//!
//! Until an undo has been answered it is *open*: the server may refuse it for the moment, and then
//! it is sent once more, behind whatever was sent meanwhile. So no command is sent that would
//! confirm the very key that an open undo deletes.

use std::collections::VecDeque;
use std::time::Duration;

use quorlock_resp::encode;

use super::pipeline::{Entry, Shape, Ticket};
use crate::clock::Moment;

/// How long a settling command may take before its link is looked at as slow.
const DEADLINE: Duration = Duration::from_secs(1);

/// How long an undo waits that the server would not execute.
const PAUSE: Duration = Duration::from_millis(100);

/// How long until an undo is sent again whose command may still arrive.
const REPEAT: Duration = Duration::from_millis(500);

/// Connections remembered at most, the latest ones.
const CLIENTS_MAX: usize = 16;

/// A connection as the server knows it. A process never gives a number twice; another process (the
/// server was restarted, or the name leads elsewhere now) gives it to a stranger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Client {
    pub(crate) run_id: Box<str>,
    pub(crate) number: i64,
}

/// The debts of a link to its node.
#[derive(Debug, Default)]
pub(super) struct Debts {
    /// The connections that have ended and may not have for the server.
    old_clients: Vec<Client>,
    /// Undos without their common head.
    undos: VecDeque<Vec<u8>>,
    /// When to settle on the present connection, if there are undos.
    due: Option<Moment>,
    /// A connection has left undos and cannot be named to the server.
    unnamed: bool,
    /// How many old connections the server was told to end, and has not answered.
    ending: usize,
    /// How many undos were sent that have not been answered.
    unanswered: usize,
    /// The undos that were sent since there was last nothing to hear; sent again if an old
    /// connection cannot be ended.
    undone: Vec<Vec<u8>>,
    /// Undos whose commands may still arrive, and until when.
    doubtful: Vec<(Vec<u8>, Moment)>,
}

impl Debts {
    /// A connection has ended and leaves `undos` to be settled.
    pub(super) fn inherit(
        &mut self,
        client: Option<Client>,
        undos: impl IntoIterator<Item = Vec<u8>>,
        max: usize,
    ) {
        let had = self.undos.len();
        for undo in undos {
            // What is in doubt is repeated anyway.
            if !self.doubtful.iter().any(|(known, _)| *known == undo) {
                self.add(undo, max);
            }
        }
        self.unnamed |= client.is_none() && self.undos.len() > had;
        (self.ending, self.unanswered, self.due) = (0, 0, None);
        self.undone.clear();
        if self.undos.is_empty() {
            // What the connections before this one left is settled, and they are ended.
            self.old_clients.clear();
            return;
        }
        self.old_clients.extend(client);
        let excess = self.old_clients.len().saturating_sub(CLIENTS_MAX);
        self.old_clients.drain(..excess);
    }

    /// An undo that could not be sent. Of too many the oldest are given up: their keys' expiry is
    /// the nearest.
    pub(super) fn add(&mut self, undo: Vec<u8>, max: usize) {
        self.undos.push_back(undo);
        if self.undos.len() > max {
            self.undos.pop_front();
        }
    }

    /// As [`Debts::add`], for an undo that the server would not execute now.
    pub(super) fn add_for_later(&mut self, undo: Vec<u8>, max: usize, now: Moment) {
        self.add(undo, max);
        self.due = Some(now.plus(PAUSE));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.undos.is_empty()
    }

    /// When there is something to settle on a connection that is open already.
    pub(super) fn due(&self) -> Option<Moment> {
        self.due
    }

    /// The server has ended an old connection.
    pub(super) fn confirm(&mut self) {
        self.ending = self.ending.saturating_sub(1);
        self.forget_undone();
    }

    /// The server has answered an undo; if it would not execute it now, that is kept for later.
    pub(super) fn answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.forget_undone();
    }

    fn forget_undone(&mut self) {
        if self.ending == 0 && self.unanswered == 0 {
            self.undone.clear();
        }
    }

    /// The server does not end an old connection: what was undone behind it is undone again, until
    /// `until`. At most `max` are, the latest.
    pub(super) fn doubt(&mut self, now: Moment, (until, max): (Moment, usize)) {
        self.doubtful.extend(self.undone.drain(..).map(|undo| (undo, until)));
        let excess = self.doubtful.len().saturating_sub(max);
        self.doubtful.drain(..excess);
        if !self.doubtful.is_empty() {
            let again = now.plus(REPEAT);
            self.due = Some(self.due.map_or(again, |due| due.min(again)));
        }
    }

    /// The repetition waits.
    pub(super) fn put_off(&mut self, now: Moment) {
        self.due = Some(now.plus(REPEAT));
    }

    /// Whether a command is about a key and a value that are still to be undone, or may be undone
    /// again.
    pub(super) fn concern(&self, command: &[u8]) -> bool {
        let doubtful = self.doubtful.iter().map(|(undo, _)| undo);
        let mut open = self.undos.iter().chain(&self.undone).chain(doubtful);
        open.any(|undo| command.windows(undo.len().max(1)).any(|part| part == undo))
    }

    /// Gives `send` the commands that settle everything, each with its entry, its bytes, and what
    /// undoes it. Should this connection, to the process `run_id`, end too, its pipeline hands back
    /// what is unsettled, and the old connections are still known. What cannot be settled for sure
    /// is settled again, within the `bound` of [`Debts::doubt`].
    pub(super) fn settle(
        &mut self,
        run_id: Option<&str>,
        undo_head: &[u8],
        now: Moment,
        bound: (Moment, usize),
        mut send: impl FnMut(Entry, &[u8], &[u8]),
    ) {
        self.due = None;
        let entry = |shape| Entry {
            ticket: Ticket::NOBODY,
            shape,
            sent: now,
            deadline: now.plus(DEADLINE),
        };
        // Of another process none of them is left.
        self.old_clients.retain(|client| Some(&*client.run_id) == run_id);
        for client in &self.old_clients {
            let mut bytes = Vec::new();
            let number = client.number.to_string();
            encode::command(&mut bytes, &[b"CLIENT", b"KILL", b"ID", number.as_bytes()]);
            send(entry(Shape::Ended), &bytes, &[]);
            self.ending += 1;
        }
        self.doubtful.retain(|(_, until)| *until > now);
        for (again, _) in &self.doubtful {
            // It stays here, so the connection's end need not hand it back.
            send(entry(Shape::Undo), &[undo_head, again].concat(), &[]);
        }
        // Of a process that does not tell its name, nothing is known to be left or not.
        let unnamed = std::mem::take(&mut self.unnamed) || run_id.is_none();
        for undo in self.undos.drain(..) {
            let owed = if unnamed { &[][..] } else { &undo };
            send(entry(Shape::Owed), &[undo_head, &undo].concat(), owed);
            self.undone.push(undo);
            self.unanswered += 1;
        }
        if unnamed || !self.doubtful.is_empty() {
            self.doubt(now, bound);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HORIZON: Duration = Duration::from_secs(1);

    fn client(run_id: &str) -> Option<Client> {
        Some(Client { run_id: run_id.into(), number: 7 })
    }

    fn at(millis: u64) -> Moment {
        Moment::default().plus(Duration::from_millis(millis))
    }

    fn settled_at(debts: &mut Debts, run_id: Option<&str>, millis: u64) -> Vec<String> {
        let mut sent = Vec::new();
        let bound = (at(millis).plus(HORIZON), 9);
        debts.settle(run_id, b"HEAD ", at(millis), bound, |_, bytes, _| {
            sent.push(String::from_utf8_lossy(bytes).into_owned());
        });
        sent
    }

    fn settled(debts: &mut Debts, run_id: &str) -> Vec<String> {
        settled_at(debts, Some(run_id), 0)
    }

    const KILL_7: &str = "*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n$1\r\n7\r\n";

    #[test]
    fn the_old_connection_is_ended_before_its_commands_are_undone() {
        let mut debts = Debts::default();
        debts.inherit(client("one"), [b"a".to_vec()], 9);
        debts.add(b"b".to_vec(), 9);
        assert_eq!(settled(&mut debts, "one"), [KILL_7, "HEAD a", "HEAD b"]);
        debts.confirm();
        assert!(debts.is_empty());
        assert_eq!(debts.due(), None, "the server has ended it: once is enough");
    }

    #[test]
    fn what_may_still_arrive_is_undone_again_until_it_cannot_matter() {
        let mut debts = Debts::default();
        debts.inherit(client("one"), [b"a".to_vec()], 9);
        assert_eq!(settled(&mut debts, "one"), [KILL_7, "HEAD a"]);
        debts.doubt(at(10), (at(1_010), 9)); // the server forbids to end it
        assert_eq!(debts.due(), Some(at(510)));
        debts.old_clients.clear();
        assert_eq!(settled_at(&mut debts, Some("one"), 510), ["HEAD a"]);
        assert_eq!(debts.due(), Some(at(1_010)));
        assert!(settled_at(&mut debts, Some("one"), 1_010).is_empty());
        assert_eq!(debts.due(), None);
    }

    #[test]
    fn connections_that_flap_repeat_what_is_in_doubt_and_do_not_multiply_it() {
        let mut debts = Debts::default();
        debts.inherit(None, [b"a".to_vec()], 9);
        for round in 0..5 {
            assert_eq!(settled_at(&mut debts, None, round), ["HEAD a"]);
            // The connection ends; its pipeline hands nothing back, for the repetition is not owed.
            debts.inherit(None, [], 9);
        }
    }

    #[test]
    fn a_key_that_is_still_to_be_undone_is_known() {
        let mut debts = Debts::default();
        assert!(!debts.concern(b"EXTEND a"));
        debts.add(b"a".to_vec(), 9);
        assert!(debts.concern(b"EXTEND a") && !debts.concern(b"EXTEND b"));
        settled(&mut debts, "one");
        assert!(debts.concern(b"EXTEND a"), "it may be refused, and then it comes once more");
        debts.answered();
        assert!(!debts.concern(b"EXTEND a"), "what is sent now stands behind the undo");
        debts.inherit(None, [b"b".to_vec()], 9);
        settled_at(&mut debts, None, 0);
        assert!(debts.concern(b"EXTEND b"), "it will be undone again");
    }

    #[test]
    fn a_connection_without_a_name_leaves_doubt() {
        let mut debts = Debts::default();
        debts.inherit(None, [b"a".to_vec()], 9);
        assert_eq!(settled_at(&mut debts, None, 0), ["HEAD a"]);
        assert_eq!(settled_at(&mut debts, None, 500), ["HEAD a"]);
        assert_eq!(debts.due(), Some(at(1_000)));
        assert!(settled_at(&mut debts, None, 1_000).is_empty(), "it ends");
        assert_eq!(debts.due(), None);
    }

    #[test]
    fn a_connection_that_left_nothing_is_not_killed() {
        let mut debts = Debts::default();
        debts.inherit(client("one"), [], 9);
        assert!(settled(&mut debts, "one").is_empty());
    }

    #[test]
    fn another_process_has_no_connection_of_ours_to_end() {
        let mut debts = Debts::default();
        debts.inherit(client("one"), [b"a".to_vec()], 9);
        assert_eq!(settled(&mut debts, "two"), ["HEAD a"]);
        assert_eq!(debts.due(), None, "what the old process had read went with it");
    }

    #[test]
    fn a_kill_that_the_next_connection_took_with_it_is_sent_by_the_one_after() {
        let other = || Some(Client { run_id: "one".into(), number: 8 });
        let mut debts = Debts::default();
        debts.inherit(client("one"), [b"a".to_vec()], 9);
        settled(&mut debts, "one");
        debts.inherit(other(), [b"a".to_vec()], 9);
        let sent = settled(&mut debts, "one");
        assert_eq!((&*sent[0], &*sent[2]), (KILL_7, "HEAD a"));
        debts.inherit(client("one"), [], 9);
        debts.inherit(client("one"), [b"c".to_vec()], 9);
        assert_eq!(settled(&mut debts, "one"), [KILL_7, "HEAD c"]);
    }

    #[test]
    fn debts_are_bounded_and_the_newest_are_kept() {
        let mut debts = Debts::default();
        debts.inherit(client("one"), [b"a".to_vec(), b"b".to_vec(), b"c".to_vec()], 2);
        debts.add(b"d".to_vec(), 2);
        assert_eq!(settled(&mut debts, "two"), ["HEAD c", "HEAD d"]);
    }
}
