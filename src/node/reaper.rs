//! What a dead connection may have left on its node, and how the next one settles it.
//!
//! A command that was sent and not answered may have been applied, or, worse, may be applied yet:
//! the kernels can deliver the bytes of a closed connection after the bytes of the next one. So the
//! next connection first has the server end the old one (`CLIENT KILL ID`), behind which nothing of
//! it can run any more, and then sends the undos. They are whole `EVAL`s, for a server that was
//! restarted knows no script. To this file they are bytes.

use std::time::Duration;

use quorlock_resp::encode;

use crate::clock::Moment;
use crate::link::{Entry, Outgoing, Shape, Ticket, Urgency};

/// How long a settling command may take before its link is looked at as slow.
const DEADLINE: Duration = Duration::from_secs(1);

/// Undos kept at most: as many as a link may have commands in flight, several times over. Beyond
/// it the oldest are given up to their keys' expiry.
const UNDOS_MAX: usize = 1 << 18;

/// The debts of one connection's predecessors.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    /// The last connections' numbers at the server, as far as it told.
    old_clients: Vec<i64>,
    /// Undos without their common head.
    undos: Vec<Vec<u8>>,
}

impl Reaper {
    /// Takes over what a connection left; `undos` is empty afterwards.
    pub(crate) fn take_over(&mut self, client_id: Option<i64>, undos: &mut Vec<Vec<u8>>) {
        if undos.is_empty() {
            return;
        }
        self.old_clients.extend(client_id);
        self.undos.append(undos);
        let excess = self.undos.len().saturating_sub(UNDOS_MAX);
        self.undos.drain(..excess);
    }

    /// The commands that settle everything, for `send` one after another, in this order. They are
    /// in the reaper no longer: should this connection end too, it hands back what is unsettled.
    pub(crate) fn settle(
        &mut self,
        undo_head: &[u8],
        now: Moment,
        mut send: impl FnMut(Outgoing<'_>),
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
            send(Outgoing {
                entry: entry(Shape::Any),
                bytes: &bytes,
                undo: &[],
                urgency: Urgency::Undo,
            });
        }
        for undo in self.undos.drain(..) {
            let bytes = [undo_head, &undo].concat();
            send(Outgoing {
                entry: entry(Shape::Undo),
                bytes: &bytes,
                undo: &undo,
                urgency: Urgency::Undo,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(reaper: &mut Reaper) -> Vec<String> {
        let mut sent = Vec::new();
        reaper.settle(b"HEAD ", Moment::default(), |command| {
            sent.push(String::from_utf8_lossy(command.bytes).into_owned());
        });
        sent
    }

    #[test]
    fn the_old_connection_is_ended_before_its_commands_are_undone() {
        let mut reaper = Reaper::default();
        reaper.take_over(Some(7), &mut vec![b"a".to_vec(), b"b".to_vec()]);
        let sent = settled(&mut reaper);
        assert_eq!(sent[0], "*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n$1\r\n7\r\n");
        assert_eq!(sent[1..], ["HEAD a", "HEAD b"]);
        assert!(settled(&mut reaper).is_empty());
    }

    #[test]
    fn a_connection_that_left_nothing_is_not_killed() {
        let mut reaper = Reaper::default();
        reaper.take_over(Some(7), &mut Vec::new());
        assert!(settled(&mut reaper).is_empty());
    }
}
