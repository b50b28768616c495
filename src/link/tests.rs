//! What a link owes its node, and in which order the node is told, byte by byte.

#[cfg(quorlock_models)]
mod flushing;
mod tracking;

use std::time::Duration;

use bytes::Bytes;
use quorlock_resp::{Frame, encode};

use super::reply::Reply;
use super::*;
use crate::clock::Moment;
use crate::options::LinkOptions;

/// What undoes a command of one key.
const SCRIPT: (&UndoScript, u16) =
    (&UndoScript { text: "UNDO", compares_and_deletes: true, for_first_key: None }, 1);

/// Has the server end the connection before.
const KILL: &str = "CLIENT KILL ID 7";

fn encoded(words: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let words: Vec<_> = words.split(' ').map(str::as_bytes).collect();
    encode::command(&mut bytes, &words);
    bytes
}

/// The key and the value that a command is about.
fn pair(words: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    words.split_whitespace().for_each(|word| encode::bulk(&mut bytes, word.as_bytes()));
    bytes
}

/// A link, its node's end of the present connection, and a time.
struct Wire {
    link: Link,
    far: Option<(memory::Reader, memory::Writer)>,
    near: Option<memory::Reader>,
    now: Moment,
    /// How many bytes a connection takes before the node reads any.
    room: usize,
    /// The next connection's server takes native commands.
    is_native: bool,
}

impl Wire {
    fn new() -> Self {
        let link = Link::new(LinkOptions::default());
        let (now, room) = (Moment::from_nanos(0), 1 << 16);
        Self { link, far: None, near: None, now, room, is_native: false }
    }

    /// A connection that has shaken hands. A process without a name hides its connections, too.
    fn open(&mut self, name: Option<RunId>) {
        let ((near, writer), far) = memory::pair(self.room);
        let run_id = name.map(|name| String::from_utf8_lossy(&name).into());
        let client = run_id.map(|run_id| Client { run_id, number: 7 });
        self.link.open(Writer::Memory(writer), (client, name), self.is_native, self.now);
        (self.far, self.near) = (Some(far), Some(near));
    }

    fn close(&mut self) {
        self.link.close(&mut Vec::new());
        (self.far, self.near) = (None, None);
    }

    /// A link that owes the undo of a `SET` which was sent and never answered, and whose new driver
    /// has not connected yet.
    fn with_pending(name: Option<RunId>) -> Self {
        let mut wire = Self::new();
        wire.open(name);
        assert_eq!(wire.send(1, ReplyKind::Status, "SET k v", "k v"), Sent::Written);
        wire.close();
        wire.link.reopen();
        wire
    }

    fn send(&self, ticket: u64, kind: ReplyKind, command: &str, undone: &str) -> Sent {
        let urgency = if kind == ReplyKind::Undo { Urgency::Undo } else { Urgency::Usual };
        let deadline = self.now.plus(Duration::from_secs(1));
        let entry = Entry { ticket: Ticket(ticket), kind, sent: self.now, deadline };
        let (bytes, pair) = (&*encoded(command), &*pair(undone));
        let needs_none = kind == ReplyKind::Script;
        let undo = if needs_none { Undo::nothing(pair) } else { Undo::delete(SCRIPT, pair) };
        let undo = if pair.is_empty() { Undo::NONE } else { undo };
        self.link.send(&Outgoing { entry, bytes, undo, urgency })
    }

    /// The commands that the node has got since it was asked last.
    async fn got(&mut self) -> String {
        self.link.flush().unwrap();
        let Some((reader, _)) = &mut self.far else { return String::new() };
        let mut text = String::new();
        let mut staging = [0; 1 << 12];
        std::future::poll_fn(|cx| {
            let mut buffer = tokio::io::ReadBuf::new(&mut staging);
            if let std::task::Poll::Ready(count) = reader.poll_read(cx, &mut buffer) {
                count.unwrap();
                text.push_str(std::str::from_utf8(buffer.filled()).unwrap());
            }
            std::task::Poll::Ready(())
        })
        .await;
        let words = |command: &str| {
            let words = command.split("\r\n").skip(1).filter(|word| !word.starts_with('$'));
            words
                .collect::<Vec<_>>()
                .join(" ")
                .replace(KILL, "KILL")
                .replace("EVAL UNDO 1", "UNDO")
                .trim_end()
                .to_owned()
        };
        text.split('*').skip(1).map(words).collect::<Vec<_>>().join("; ")
    }

    /// The tickets that these replies completed, but for those that no task waits for.
    fn answer(&self, frames: impl IntoIterator<Item = Frame>) -> Vec<u64> {
        let mut replies = frames.into_iter().map(Reply::from).collect();
        let mut completions = Vec::new();
        self.link.answer(&mut replies, self.now, &mut completions).unwrap();
        let tickets = completions.iter().map(|completion| completion.ticket);
        tickets.filter(|ticket| *ticket != Ticket::UNAWAITED).map(|ticket| ticket.0).collect()
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now.plus(Duration::from_millis(millis));
        self.link.retry(self.now);
    }

    /// What becomes of an extension of the key that is, or was, to be undone.
    fn extend(&self) -> Sent {
        self.send(9, ReplyKind::Script, "EXTEND k v 10", "k v")
    }
}

const NAME: RunId = [b'a'; 40];
const HOLE: &str = "0000000000000000000000000000000000000000";

fn ok() -> Frame {
    Frame::Simple(Bytes::from_static(b"OK"))
}

fn error(text: &'static str) -> Frame {
    Frame::Error(Bytes::from_static(text.as_bytes()))
}

#[tokio::test]
async fn a_debt_comes_before_what_was_queued_for_the_connection() {
    let mut wire = Wire::with_pending(Some(NAME));
    let vote = format!("VOTE x y {HOLE}");
    assert_eq!(wire.send(2, ReplyKind::Vote, &vote, "x y"), Sent::Queued);
    assert_eq!(wire.send(3, ReplyKind::Status, "SET a b", "a b"), Sent::Queued);
    assert_eq!(wire.send(4, ReplyKind::Undo, "RELEASE k v", "k v"), Sent::Queued);
    wire.open(Some(NAME));
    let named = vote.replace('0', "a");
    let expected = format!("KILL; UNDO k v; {named}; SET a b; RELEASE k v");
    assert_eq!(wire.got().await, expected);
    let replies = [Frame::Integer(1), Frame::Integer(1), Frame::Integer(1), ok()];
    assert_eq!(wire.answer(replies), [2, 3], "each reply finds its command");
    assert_eq!(wire.answer([Frame::Integer(0)]), [4]);
    assert!(wire.link.is_settled());
}

/// What had not been written when the connection ended again was not applied.
#[tokio::test]
async fn what_was_queued_behind_a_debt_is_told_apart_from_it_when_the_connection_ends() {
    let mut wire = Wire::with_pending(Some(NAME));
    wire.send(2, ReplyKind::Status, "SET a b", "a b");
    wire.room = encoded(KILL).len() + encoded("UNDO k v").len();
    wire.open(Some(NAME));
    assert_eq!(wire.link.flush(), Ok(true), "more does not fit");
    let mut lapsed = Vec::new();
    wire.link.close(&mut lapsed);
    let ours = lapsed.iter().find(|lapsed| lapsed.ticket == Ticket(2)).unwrap();
    assert!(!ours.sent, "no byte of it was written");
    wire.room = 1 << 16;
    wire.open(Some(NAME));
    assert_eq!(wire.got().await, "KILL; KILL; UNDO k v");
}

#[tokio::test]
async fn a_key_whose_undo_is_pending_is_not_asked_for_until_that_is_settled() {
    let mut wire = Wire::with_pending(Some(NAME));
    assert_eq!(wire.extend(), Sent::Suspect);
    assert_eq!(wire.send(2, ReplyKind::Status, "SET k w", "k w"), Sent::Queued, "another value");
    wire.open(Some(NAME));
    assert_eq!(wire.extend(), Sent::Suspect, "the old connection may still be alive");
    assert_eq!(wire.got().await, "KILL; UNDO k v; SET k w");
    wire.answer([Frame::Integer(1), Frame::Integer(1), ok()]);
    assert_eq!(wire.extend(), Sent::Queued);
    assert_eq!(wire.got().await, "EXTEND k v 10");
}

#[tokio::test]
async fn a_key_whose_undo_the_node_would_not_execute_is_not_asked_for() {
    let mut wire = Wire::with_pending(Some(NAME));
    wire.open(Some(NAME));
    wire.answer([Frame::Integer(0)]);
    assert_eq!(wire.extend(), Sent::Suspect, "the undo may be refused, and sent once more");
    wire.answer([error("BUSY running a script")]);
    assert_eq!(wire.extend(), Sent::Suspect);
    assert_eq!(wire.got().await, "KILL; UNDO k v");
    wire.pass(100);
    assert_eq!(wire.got().await, "UNDO k v", "the old connection has ended");
    wire.answer([Frame::Integer(1)]);
    assert_ne!(wire.extend(), Sent::Suspect);
}

/// The node hides its connections' names, or forbids to end them: the old `SET` may still arrive,
/// and then it is undone again.
#[tokio::test]
async fn a_key_that_may_still_arrive_is_not_asked_for_until_it_cannot_any_more() {
    for name in [None, Some(NAME)] {
        let mut wire = Wire::with_pending(name);
        wire.open(name);
        if name.is_some() {
            wire.answer([error("NOPERM this user has no permissions to run 'client|kill'")]);
        }
        wire.answer([Frame::Integer(0)]);
        let horizon = LinkOptions::default().undo_horizon;
        let mut rounds = 0;
        wire.got().await;
        while wire.extend() == Sent::Suspect {
            wire.pass(500);
            rounds += 1;
            if wire.got().await == "UNDO k v" {
                wire.answer([Frame::Integer(0)]);
            }
        }
        let took = Duration::from_millis(500) * rounds;
        assert!(took >= horizon && took <= horizon * 2, "{took:?}");
        let other = wire.send(3, ReplyKind::Status, "SET a b", "a b");
        assert_ne!(other, Sent::Suspect);
    }
}

/// A driver went, guards were dropped until the connection took no more, and a new driver came.
async fn orphaned(breaks: bool) -> Wire {
    let mut wire = Wire::new();
    wire.room = 64;
    wire.open(Some(NAME));
    wire.link.orphan(&mut Vec::new());
    if breaks {
        wire.far = None;
    }
    for _ in 0..3 {
        assert_eq!(wire.send(1, ReplyKind::Undo, "RELEASE k v", "k v"), Sent::Closed);
    }
    wire.link.reopen();
    wire.room = 1 << 16;
    wire
}

/// No entry would await its replies: each of the next connection's would go to the wrong entry.
#[tokio::test]
async fn what_an_orphaned_connection_did_not_take_is_sent_by_the_next_one_only_as_pending() {
    for breaks in [false, true] {
        let mut wire = orphaned(breaks).await;
        assert_eq!(wire.send(2, ReplyKind::Status, "SET a b", "a b"), Sent::Queued);
        wire.open(Some(NAME));
        assert_eq!(wire.got().await, "UNDO k v; SET a b", "breaks: {breaks}");
        assert_eq!(wire.answer([Frame::Integer(1), ok()]), [2]);
        assert!(wire.link.is_settled());
    }
}

/// How much the orphaned connection took is no measure of what the next one did.
#[tokio::test]
async fn what_was_written_after_an_orphaned_connection_counts_as_sent() {
    let mut wire = orphaned(false).await;
    assert_eq!(wire.send(2, ReplyKind::Status, "SET a b", "a b"), Sent::Queued);
    wire.open(Some(NAME));
    assert_eq!(wire.got().await, "UNDO k v; SET a b");
    let mut lapsed = Vec::new();
    wire.link.close(&mut lapsed);
    let told: Vec<_> = lapsed.iter().map(|lapsed| (lapsed.ticket, lapsed.sent)).collect();
    assert!(told.contains(&(Ticket(2), true)), "{told:?}");
}

/// The link's last commands are answered, though no task reads the answers any more.
#[tokio::test]
async fn what_is_queued_when_the_driver_ends_is_written_by_that() {
    let mut wire = Wire::new();
    wire.open(Some(NAME));
    let send = |ticket, key: &str| {
        wire.send(ticket, ReplyKind::Status, &format!("SET {key} v"), &format!("{key} v"))
    };
    let few = LinkOptions::default().direct_writes as u64;
    let sent: Vec<Sent> = (0..few + 3).map(|ticket| send(ticket, "k")).collect();
    assert_eq!(sent.last(), Some(&Sent::Queued), "{sent:?}");
    wire.link.orphan(&mut Vec::new());
    assert_eq!(wire.got().await.matches("SET k v").count(), sent.len());
}

/// A link whose server takes native commands.
fn native() -> Wire {
    let mut wire = Wire { is_native: true, ..Wire::new() };
    wire.open(Some(NAME));
    wire
}

const UNKNOWN: &str = "ERR unknown command 'DELIFEQ'";

const UNAWAITED: u64 = Ticket::UNAWAITED.0;

#[tokio::test]
async fn an_undo_is_a_native_command_on_a_connection_that_takes_them() {
    let mut wire = Wire { is_native: true, ..Wire::new() };
    wire.send(1, ReplyKind::Undo, "RELEASE k v", "k v");
    wire.open(Some(NAME));
    wire.send(2, ReplyKind::Undo, "RELEASE l v", "l v");
    wire.send(3, ReplyKind::Script, "EXTEND k v 10", "k v");
    let expected = "RELEASE k v; DELIFEQ l v; EXTEND k v 10";
    assert_eq!(wire.got().await, expected, "what was queued before is as it was");
    assert_eq!(wire.answer([const { Frame::Integer(1) }; 2]), [1, 2]);
    wire.close();
    wire.is_native = false;
    wire.link.reopen();
    wire.open(Some(NAME));
    wire.send(4, ReplyKind::Undo, "RELEASE k v", "k v");
    assert_eq!(wire.got().await, "RELEASE k v");
}

#[tokio::test]
async fn the_script_tells_what_a_native_command_has_found_in_the_keys_place() {
    let mut wire = native();
    wire.send(1, ReplyKind::Undo, "RELEASE k v", "k v");
    wire.send(UNAWAITED, ReplyKind::Undo, "RELEASE l v", "l v");
    assert_eq!(wire.got().await, "DELIFEQ k v; DELIFEQ l v");
    assert!(wire.answer([const { Frame::Integer(0) }; 2]).is_empty());
    assert_eq!(wire.got().await, "UNDO k v; UNDO l v", "either may stand there revoked");
    assert_eq!(wire.answer([Frame::Integer(-1), Frame::Integer(1)]), [1]);
    wire.send(2, ReplyKind::Undo, "RELEASE k w", "k w");
    assert_eq!(wire.got().await, "DELIFEQ k w", "it was rejected nowhere");
}

/// What the first of these replies asks for.
fn rejected(wire: &Wire, text: &'static str) -> Option<Box<str>> {
    let mut replies = vec![Reply::from(error(text))];
    wire.link.answer(&mut replies, wire.now, &mut Vec::new()).unwrap().rejected
}

#[tokio::test]
async fn a_native_command_that_is_rejected_is_sent_as_the_script_and_told_once() {
    let mut wire = native();
    wire.send(1, ReplyKind::Undo, "RELEASE k v", "k v");
    wire.send(UNAWAITED, ReplyKind::Undo, "RELEASE l v", "l v");
    assert_eq!(wire.got().await, "DELIFEQ k v; DELIFEQ l v");
    assert_eq!(rejected(&wire, UNKNOWN).as_deref(), Some(UNKNOWN));
    assert_eq!(rejected(&wire, UNKNOWN), None);
    assert!(!wire.link.is_settled() && wire.link.owed(wire.now) == 2);
    wire.send(2, ReplyKind::Undo, "RELEASE m v", "m v");
    assert_eq!(wire.got().await, "UNDO k v; UNDO l v; RELEASE m v");
    assert_eq!(wire.answer([const { Frame::Integer(1) }; 3]), [1, 2]);
    assert!(wire.link.is_settled());
}

/// A proxy has lost its server; the key is undone, and who awaits it is not told that it was gone.
#[tokio::test]
async fn a_native_command_that_may_have_been_executed_is_told_as_such_and_repeated() {
    let mut wire = native();
    wire.send(1, ReplyKind::Undo, "RELEASE k v", "k v");
    wire.got().await;
    assert_eq!(wire.answer([error("ERR upstream gone")]), [1]);
    assert_eq!(wire.got().await, "UNDO k v");
    assert_eq!(wire.link.owed(wire.now), 1);
    assert!(wire.answer([Frame::Integer(0)]).is_empty());
    assert!(wire.link.is_settled());
}

#[tokio::test]
async fn a_server_keeps_its_native_commands_when_it_rejects_another_one() {
    let mut wire = native();
    wire.send(1, ReplyKind::Script, "EXTEND k v 10", "k v");
    assert_eq!(rejected(&wire, "ERR unknown command 'EVALSHA'"), None);
    wire.got().await;
    wire.send(2, ReplyKind::Undo, "RELEASE k v", "k v");
    assert_eq!(wire.got().await, "DELIFEQ k v");
}

#[tokio::test]
async fn a_native_command_that_was_not_answered_is_pending_as_the_script() {
    let mut wire = native();
    wire.send(1, ReplyKind::Undo, "RELEASE k v", "k v");
    wire.got().await;
    assert_eq!(wire.link.owed(wire.now), 1);
    wire.close();
    wire.link.reopen();
    wire.open(Some(NAME));
    assert_eq!(wire.got().await, "KILL; UNDO k v");
}

#[tokio::test]
async fn a_native_command_that_is_refused_for_the_moment_is_tried_again_as_the_script() {
    let mut wire = native();
    let read_only = "READONLY You can't write against a read only replica.";
    wire.send(UNAWAITED, ReplyKind::Undo, "RELEASE k v", "k v");
    wire.answer([error(read_only)]);
    assert_eq!(wire.got().await, "DELIFEQ k v; UNDO k v");
    wire.answer([error(read_only)]);
    wire.pass(100);
    assert_eq!(wire.got().await, "UNDO k v");
}

/// It has as long for its answer as the first command had.
#[tokio::test]
async fn the_script_behind_a_native_command_has_a_deadline_of_its_own() {
    let mut wire = native();
    let expired = |wire: &Wire| {
        let mut expired = Vec::new();
        wire.link.expire(wire.now, &mut expired);
        expired
    };
    wire.send(1, ReplyKind::Undo, "RELEASE k v", "k v");
    wire.pass(900);
    assert!(wire.answer([Frame::Integer(0)]).is_empty());
    wire.pass(900);
    assert_eq!(expired(&wire), []);
    wire.pass(101);
    assert_eq!(expired(&wire), [Ticket(1)]);
}

/// A sender who has been told that no answer came wants no other one.
#[tokio::test]
async fn what_follows_a_native_command_is_not_told_to_a_sender_who_has_given_up() {
    let mut wire = native();
    wire.send(1, ReplyKind::Undo, "RELEASE k v", "k v");
    wire.send(2, ReplyKind::Undo, "RELEASE l v", "l v");
    wire.got().await;
    wire.pass(1_001);
    wire.link.expire(wire.now, &mut Vec::new());
    assert!(wire.answer([Frame::Integer(0), error(UNKNOWN)]).is_empty());
    assert_eq!(wire.got().await, "UNDO k v; UNDO l v", "the keys are undone");
    let mut expired = Vec::new();
    wire.link.expire(wire.now, &mut expired);
    assert_eq!(expired, []);
}

#[tokio::test]
async fn a_link_that_has_been_flushed_asks_for_no_flush() {
    let mut wire = Wire::new();
    wire.send(1, ReplyKind::Script, "SET a 1", "");
    wire.open(None);
    assert!(wire.link.is_dirty());
    wire.link.flush().unwrap();
    assert!(!wire.link.is_dirty());
}

#[tokio::test]
async fn a_link_takes_as_many_bytes_as_it_may_and_no_more() {
    let command = "SET k v";
    let options = LinkOptions { bytes_max: 2 * encoded(command).len(), ..LinkOptions::default() };
    let wire = Wire { link: Link::new(options), ..Wire::new() };
    wire.link.reopen();
    let send = |ticket| wire.send(ticket, ReplyKind::Status, command, "k v");
    assert_eq!([send(1), send(2), send(3)], [Sent::Queued, Sent::Queued, Sent::Full]);
}

#[tokio::test]
async fn the_oldest_command_says_for_how_long_a_node_has_been_silent() {
    let mut wire = Wire::new();
    wire.open(Some(NAME));
    assert_eq!(wire.link.oldest(), None);
    wire.now = wire.now.plus(Duration::from_millis(7));
    let first = wire.now;
    wire.send(1, ReplyKind::Status, "SET k v", "k v");
    wire.now = wire.now.plus(Duration::from_millis(7));
    wire.send(2, ReplyKind::Status, "SET l v", "l v");
    assert_eq!(wire.link.oldest(), Some(first));
    wire.answer([ok()]);
    assert_eq!(wire.link.oldest(), Some(wire.now));
}
