//! What a dead connection may have left on its node, and how the next one settles it.
//!
//! A command that was sent and not answered may have been applied, or, worse, may be applied yet:
//! the kernels can deliver the bytes of a closed connection after the bytes of the next one. So the
//! next connection first has the server end the old one (`CLIENT KILL ID`), behind which nothing of
//! it can run any more, and then sends the undos. They are whole `EVAL`s, for a server that was
//! restarted knows no script. An undo that is wanted while there is no connection at all is kept in
//! the same way. To this file undos are bytes.

use std::collections::VecDeque;
use std::time::Duration;

use quorlock_resp::encode;

use super::pipeline::{Entry, Shape, Ticket};
use crate::clock::Moment;

/// How long a settling command may take before its link is looked at as slow.
const DEADLINE: Duration = Duration::from_secs(1);

/// How long an undo waits that the server would not execute.
const PAUSE: Duration = Duration::from_millis(100);

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
}

impl Debts {
    /// A connection has ended and leaves `undos` to be settled.
    pub(super) fn inherit(
        &mut self,
        client: Option<Client>,
        undos: impl IntoIterator<Item = Vec<u8>>,
        max: usize,
    ) {
        for undo in undos {
            self.add(undo, max);
        }
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

    /// Gives `send` the commands that settle everything, each with its entry, its bytes, and what
    /// undoes it. Should this connection, to the process `run_id`, end too, its pipeline hands back
    /// what is unsettled, and the old connections are still known.
    pub(super) fn settle(
        &mut self,
        run_id: Option<&str>,
        undo_head: &[u8],
        now: Moment,
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
            send(entry(Shape::Any), &bytes, &[]);
        }
        for undo in self.undos.drain(..) {
            let bytes = [undo_head, &undo].concat();
            send(entry(Shape::Undo), &bytes, &undo);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(run_id: &str) -> Option<Client> {
        Some(Client { run_id: run_id.into(), number: 7 })
    }

    fn settled(debts: &mut Debts, run_id: &str) -> Vec<String> {
        let mut sent = Vec::new();
        debts.settle(Some(run_id), b"HEAD ", Moment::default(), |_, bytes, _| {
            sent.push(String::from_utf8_lossy(bytes).into_owned());
        });
        sent
    }

    const KILL_7: &str = "*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n$1\r\n7\r\n";

    #[test]
    fn the_old_connection_is_ended_before_its_commands_are_undone() {
        let mut debts = Debts::default();
        debts.inherit(client("one"), [b"a".to_vec()], 9);
        debts.add(b"b".to_vec(), 9);
        assert_eq!(settled(&mut debts, "one"), [KILL_7, "HEAD a", "HEAD b"]);
        assert!(debts.is_empty());
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
    }

    #[test]
    fn a_kill_that_the_next_connection_took_with_it_is_sent_by_the_one_after() {
        let mut debts = Debts::default();
        debts.inherit(client("one"), [b"a".to_vec()], 9);
        settled(&mut debts, "one");
        debts.inherit(None, [b"a".to_vec()], 9);
        assert_eq!(settled(&mut debts, "one"), [KILL_7, "HEAD a"]);
        debts.inherit(None, [], 9);
        debts.inherit(None, [b"c".to_vec()], 9);
        assert_eq!(settled(&mut debts, "one"), ["HEAD c"]);
    }

    #[test]
    fn debts_are_bounded_and_the_newest_are_kept() {
        let mut debts = Debts::default();
        debts.inherit(None, [b"a".to_vec(), b"b".to_vec(), b"c".to_vec()], 2);
        debts.add(b"d".to_vec(), 2);
        assert_eq!(settled(&mut debts, "one"), ["HEAD c", "HEAD d"]);
    }
}
