//! When a connection asks for tracking, and what it makes of a refusal.

use super::super::shared::Answered;
use super::*;

const TRACKING: &str = "CLIENT TRACKING ON OPTIN";
const CACHING: &str = "CLIENT CACHING YES";

/// Until then no command costs the server more than it would without tracking.
#[tokio::test]
async fn the_first_read_that_is_tracked_switches_tracking_on_once_a_connection() {
    let mut wire = Wire::new();
    for _ in 0..2 {
        wire.open(Some(NAME));
        wire.send(1, ReplyKind::Status, "SET k v", "");
        wire.send(2, ReplyKind::Tracked, "PTTL k", "");
        wire.send(3, ReplyKind::Tracked, "PTTL l", "");
        let sent = format!("SET k v; {TRACKING}; {CACHING}; PTTL k; {CACHING}; PTTL l");
        assert_eq!(wire.got().await, sent);
        let left = Frame::Integer(9);
        let replies = [ok(), ok(), ok(), left.clone(), ok(), left];
        assert_eq!(wire.answer(replies), [1, 2, 3]);
        wire.close();
        wire.link.reopen();
    }
}

/// A server that is busy for a moment refuses it as well, and is asked again.
#[tokio::test]
async fn tracking_that_was_refused_is_asked_for_anew_and_told_unless_it_is_for_now() {
    let mut wire = Wire::new();
    wire.open(Some(NAME));
    let off = "ERR CLIENT CACHING can be called only when the client is in tracking mode";
    for (replies, refuses) in [
        (["BUSY a script runs", "BUSY a script runs"], false),
        (["BUSY a script runs", off], false),
        (["", "NOPERM no 'client|caching'"], true),
    ] {
        wire.send(1, ReplyKind::Tracked, "PTTL k", "");
        assert_eq!(wire.got().await, format!("{TRACKING}; {CACHING}; PTTL k"));
        let [on, caching] = replies.map(|text| if text.is_empty() { ok() } else { error(text) });
        let mut replies = [on, caching, Frame::Integer(9)].map(Reply::from).into();
        let answered = wire.link.answer(&mut replies, wire.now, &mut Vec::new()).unwrap();
        let nothing = Answered { is_due: false, rejected: None, refuses_tracking: false };
        assert_eq!(answered, Answered { refuses_tracking: refuses, ..nothing });
    }
}
