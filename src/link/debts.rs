//! What a dead connection may have left on its node, and how the next one settles it.
//!
//! A command that was sent and not answered may have been applied, or, worse, may be applied yet:
//! the kernels can deliver the bytes of a closed connection after the bytes of the next one. So the
//! next connection first has the server end the old one (`CLIENT KILL ID`), behind which nothing of
//! it can run any more, and then sends the undos. They are whole `EVAL`s, for a server that was
//! restarted knows no script. An undo that is wanted while there is no connection at all is kept in
//! the same way. To this file undos are bytes.

use std::time::Duration;

use quorlock_resp::encode;

use super::pipeline::{Entry, Shape, Ticket};
use crate::clock::Moment;

/// How long a settling command may take before its link is looked at as slow.
const DEADLINE: Duration = Duration::from_secs(1);

/// The debts of a link to its node.
#[derive(Debug, Default)]
pub(super) struct Debts {
    /// The ended connections' numbers at the server, as far as it told.
    old_clients: Vec<i64>,
    /// Undos without their common head.
    undos: Vec<Vec<u8>>,
}

impl Debts {
    /// A connection has ended, of which `undos` are left to be settled.
    pub(super) fn inherit(&mut self, client_id: Option<i64>, mut undos: Vec<Vec<u8>>, max: usize) {
        if undos.is_empty() {
            return;
        }
        self.old_clients.extend(client_id);
        self.undos.append(&mut undos);
        // The oldest are given up first: their keys' expiry is the nearest.
        let excess = self.undos.len().saturating_sub(max);
        self.undos.drain(..excess);
    }

    /// An undo that could not be sent.
    pub(super) fn add(&mut self, undo: &[u8], max: usize) {
        if self.undos.len() < max {
            self.undos.push(undo.to_vec());
        }
    }

    /// Gives `send` the commands that settle everything, each with its entry, its bytes, and what
    /// undoes it; they are debts no longer. Should this connection end too, its pipeline hands back
    /// what is unsettled.
    pub(super) fn settle(
        &mut self,
        undo_head: &[u8],
        now: Moment,
        mut send: impl FnMut(Entry, &[u8], &[u8]),
    ) {
        let entry = |shape| Entry {
            ticket: Ticket::NOBODY,
            shape,
            sent: now,
            deadline: now.plus(DEADLINE),
        };
        for client in self.old_clients.drain(..) {
            let mut bytes = Vec::new();
            let id = client.to_string();
            encode::command(&mut bytes, &[b"CLIENT", b"KILL", b"ID", id.as_bytes()]);
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

    fn settled(debts: &mut Debts) -> Vec<String> {
        let mut sent = Vec::new();
        debts.settle(b"HEAD ", Moment::default(), |_, bytes, _| {
            sent.push(String::from_utf8_lossy(bytes).into_owned());
        });
        sent
    }

    #[test]
    fn the_old_connection_is_ended_before_its_commands_are_undone() {
        let mut debts = Debts::default();
        debts.inherit(Some(7), vec![b"a".to_vec()], 9);
        debts.add(b"b", 9);
        let sent = settled(&mut debts);
        assert_eq!(sent[0], "*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n$1\r\n7\r\n");
        assert_eq!(sent[1..], ["HEAD a", "HEAD b"]);
        assert!(settled(&mut debts).is_empty());
    }

    #[test]
    fn a_connection_that_left_nothing_is_not_killed() {
        let mut debts = Debts::default();
        debts.inherit(Some(7), Vec::new(), 9);
        assert!(settled(&mut debts).is_empty());
    }

    #[test]
    fn debts_are_bounded_and_the_newest_are_kept() {
        let mut debts = Debts::default();
        debts.inherit(None, vec![b"a".to_vec(), b"b".to_vec(), b"c".to_vec()], 2);
        debts.add(b"d", 2);
        assert_eq!(settled(&mut debts), ["HEAD b", "HEAD c"]);
    }
}
