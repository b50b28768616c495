//! Which undos are pending, when each is sent, and when it is over.

use super::*;
use crate::link::UndoScript;

const SCRIPT: (&UndoScript, u16) =
    (&UndoScript { text: "UNDO", compares_and_deletes: true, for_first_key: None }, 1);
const HORIZON: Duration = Duration::from_secs(21);

const KILL_7: &str = "CLIENT KILL ID 7";

fn pending_undos() -> PendingUndos {
    PendingUndos { max: 20_000, horizon: HORIZON, ..PendingUndos::default() }
}

fn client(run_id: &str, number: i64) -> Option<Client> {
    Some(Client { run_id: run_id.into(), number })
}

fn at(millis: u64) -> Moment {
    Moment::default().plus(Duration::from_millis(millis))
}

/// The encoded key and value of an undo: each attempt has a value of its own.
fn pair(key: impl ToString) -> Vec<u8> {
    let mut pair = Vec::new();
    let key = key.to_string();
    encode::bulk(&mut pair, key.as_bytes());
    encode::bulk(&mut pair, format!("v-{key}").as_bytes());
    pair
}

fn undo(key: impl ToString) -> Kept {
    Undo::delete(SCRIPT, &pair(key)).kept()
}

/// An undo of the same pair that puts a former value back.
fn put_back(key: impl ToString) -> Kept {
    let mut bytes = pair(key);
    let len = bytes.len();
    encode::bulk(&mut bytes, b"old");
    Undo::put_back(SCRIPT, &bytes, len).kept()
}

/// What a connection leaves of these keys' commands, all of which were sent.
fn sent<K: ToString>(keys: impl IntoIterator<Item = K>) -> impl Iterator<Item = LeftUndo> {
    keys.into_iter().map(|key| LeftUndo { undo: undo(key), was_sent: true })
}

/// Whether an extension of the key that an undo would delete has to wait for that.
fn concern(pending: &PendingUndos, key: impl ToString) -> bool {
    pending.concern(Undo::nothing(&pair(key)))
}

/// What a round at this moment sends.
fn round(pending: &mut PendingUndos, run_id: Option<&str>, millis: u64) -> Vec<String> {
    let mut sent = Vec::new();
    pending.settle(run_id, at(millis), |_, bytes, _| {
        let text = std::str::from_utf8(bytes).unwrap();
        let words = text.split("\r\n").filter(|word| !word.starts_with(['*', '$']));
        let words = words.map(|word| if word.starts_with("v-") { "v" } else { word });
        let command = words.collect::<Vec<_>>().join(" ").replace("EVAL UNDO 1", "UNDO");
        sent.push(command.trim_end().to_owned());
    });
    sent
}

/// One at the moment that it asks for.
fn next_round(pending: &mut PendingUndos, run_id: Option<&str>) -> Option<(u64, Vec<String>)> {
    let millis = pending.due()?.as_nanos() / 1_000_000;
    Some((millis, round(pending, run_id, millis)))
}

#[test]
fn the_old_connection_is_ended_before_its_commands_are_undone() {
    let mut pending = pending_undos();
    pending.inherit(client("one", 7), sent(["a"]));
    pending.add(undo("b").lent());
    assert_eq!(round(&mut pending, Some("one"), 0), [KILL_7, "UNDO a v", "UNDO b v"]);
    pending.handle_ended();
    pending.handle_executed(undo("a").lent());
    assert!(!pending.is_empty());
    pending.handle_executed(undo("b").lent());
    assert!(pending.is_empty());
    assert_eq!(pending.due(), None, "the server has ended it: once is enough");
}

/// When rounds take place while the server refuses everything, until there are no more.
fn refused_rounds(pending: &mut PendingUndos) -> Vec<u64> {
    let mut rounds = Vec::new();
    while let Some((millis, sent)) = next_round(pending, Some("one")) {
        sent.iter().for_each(|_| pending.handle_refused(undo("a"), at(millis)));
        rounds.push(millis);
        assert!(rounds.len() < 100, "{rounds:?}");
    }
    rounds
}

#[test]
fn an_undo_that_is_refused_backs_off_and_ends_with_the_longest_life_of_its_key() {
    let mut pending = pending_undos();
    pending.handle_refused(undo("a"), at(0));
    let rounds = refused_rounds(&mut pending);
    assert_eq!(rounds[..6], [100, 300, 700, 1_500, 2_500, 3_500]);
    assert_eq!((rounds.len(), rounds.last()), (24, Some(&21_000)), "the last one sends nothing");
    assert!(pending.is_empty() && !concern(&pending, "a"));
}

#[test]
fn a_key_that_lives_longer_is_undone_for_longer() {
    let mut pending = pending_undos();
    pending.extend_horizon(2 * HORIZON);
    pending.extend_horizon(Duration::from_secs(1));
    pending.handle_refused(undo("a"), at(0));
    assert_eq!(refused_rounds(&mut pending).last(), Some(&42_000));
}

/// However often the connection is lost meanwhile, the time counts from the first refusal.
#[test]
fn a_connection_that_ends_does_not_prolong_what_was_refused() {
    let mut pending = pending_undos();
    pending.handle_refused(undo("a"), at(0));
    for second in 1..21 {
        assert_eq!(round(&mut pending, Some("one"), second * 1_000), ["UNDO a v"]);
        pending.inherit(client("one", 7), sent(["a"]));
        pending.old_clients.clear();
    }
    assert!(round(&mut pending, Some("one"), 21_000).is_empty());
    assert!(pending.is_empty());
}

#[test]
fn a_round_is_bounded_and_the_next_one_follows() {
    let mut pending = pending_undos();
    pending.inherit(client("one", 7), sent(0..2_500));
    let sent = round(&mut pending, Some("one"), 0);
    assert_eq!((sent.len(), &*sent[0], &*sent[1]), (1_001, KILL_7, "UNDO 0 v"));
    assert_eq!(pending.due(), Some(at(10)));
    let (millis, sent) = next_round(&mut pending, Some("one")).unwrap();
    assert_eq!((millis, sent.len(), &*sent[0]), (10, 1_000, "UNDO 1000 v"), "it was told once");
    pending.put_off(at(20));
    assert_eq!(pending.due(), Some(at(520)), "a node that is late is left alone");
    let (_, sent) = next_round(&mut pending, Some("one")).unwrap();
    assert_eq!((sent.len(), &*sent[499]), (500, "UNDO 2499 v"));
    assert_eq!(pending.due(), None);
    (0..2_500).for_each(|key| pending.handle_executed(undo(key).lent()));
    assert!(pending.is_empty());
}

#[test]
fn what_may_still_arrive_is_undone_again_until_it_cannot_matter() {
    let mut pending = pending_undos();
    pending.inherit(client("one", 7), sent(["a"]));
    assert_eq!(round(&mut pending, Some("one"), 0), [KILL_7, "UNDO a v"]);
    pending.handle_not_ended(at(10)); // the server forbids it
    pending.handle_executed(undo("a").lent());
    assert_eq!(
        next_round(&mut pending, Some("one")),
        Some((510, vec![KILL_7.into(), "UNDO a v".into()]))
    );
    pending.handle_not_ended(at(520));
    // Neither a refusal nor the connection's end makes it anything else.
    pending.handle_refused(undo("a"), at(520));
    pending.inherit(client("one", 8), sent(["a"]));
    let mut last = 0;
    while let Some((millis, sent)) = next_round(&mut pending, Some("one")) {
        assert!(
            sent.len() <= 2,
            "the connection that only repeated it need not be ended: {sent:?}"
        );
        pending.handle_not_ended(at(millis));
        last = millis;
    }
    assert_eq!(last, 21_010);
    assert!(pending.is_empty());
}

#[test]
fn connections_that_flap_repeat_what_is_in_doubt_and_do_not_multiply_it() {
    let mut pending = pending_undos();
    pending.inherit(None, sent(["a"]));
    for flap in 0..5 {
        assert_eq!(round(&mut pending, None, flap * 600), ["UNDO a v"]);
        pending.inherit(None, sent(["a"]));
    }
}

#[test]
fn a_key_that_is_still_to_be_undone_is_known() {
    let mut pending = pending_undos();
    assert!(!concern(&pending, "a"));
    pending.add(undo("a").lent());
    assert!(concern(&pending, "a") && !concern(&pending, "b"));
    assert!(!pending.concern(Undo::NONE));
    round(&mut pending, Some("one"), 0);
    assert!(concern(&pending, "a"), "it may be refused, and then it comes once more");
    pending.handle_executed(undo("a").lent());
    assert!(!concern(&pending, "a"), "what is sent now stands behind the undo");
    pending.inherit(None, sent(["b"]));
    round(&mut pending, None, 0);
    pending.handle_executed(undo("b").lent());
    assert!(concern(&pending, "b"), "it will be undone again");
}

#[test]
fn a_value_that_is_still_to_be_undone_is_known_by_other_keys() {
    let in_queue = |value: &str| {
        let mut pair = Vec::new();
        for word in ["k", "{k}:quorlock:queue", "{k}:quorlock:beats", value] {
            encode::bulk(&mut pair, word.as_bytes());
        }
        pair
    };
    let mut pending = pending_undos();
    pending.add(Undo::delete(
        (&UndoScript { text: "LEAVE", compares_and_deletes: false, for_first_key: None }, 3),
        &in_queue("v-k"),
    ));
    assert!(concern(&pending, "k"), "an extension of the same attempt, by its own key");
    assert!(!pending.concern(Undo::nothing(&in_queue("v-l"))), "another attempt");
    pending.add(undo("k").lent());
    pending.withdraw(&in_queue("v-k"));
    assert!(concern(&pending, "k"), "the other one is left");
    pending.withdraw(&pair("k"));
    assert!(!concern(&pending, "k"));
}

/// As many lookups as there are undos: were each a search through all of them, this would not end.
#[test]
fn ten_thousand_pending_undos_do_not_slow_a_command_down() {
    let mut pending = pending_undos();
    pending.inherit(client("one", 7), sent(0..10_000));
    for key in 0..10_000 {
        assert!(concern(&pending, key) && !concern(&pending, 10_000 + key));
    }
}

#[test]
fn a_connection_without_a_name_leaves_doubt() {
    let mut pending = pending_undos();
    pending.inherit(None, sent(["a"]));
    // The next one has a name, and cannot be told which one to end.
    assert_eq!(round(&mut pending, Some("one"), 0), ["UNDO a v"]);
    assert_eq!(pending.due(), Some(at(500)));
    // On a process without a name, no old connection is known to have ended.
    pending.inherit(client("one", 7), sent(["b"]));
    assert_eq!(round(&mut pending, None, 100), ["UNDO b v"]);
    assert_eq!(next_round(&mut pending, None), Some((500, vec!["UNDO a v".into()])));
    assert_eq!(next_round(&mut pending, None), Some((600, vec!["UNDO b v".into()])));
}

/// As where the first connection to a node does not come about, and a command that was queued for
/// it has been given up meanwhile.
#[test]
fn what_was_never_sent_is_in_no_doubt() {
    let mut pending = pending_undos();
    let unsent = |key| [LeftUndo { undo: undo(key), was_sent: false }];
    pending.inherit(None, unsent("a"));
    assert_eq!(round(&mut pending, Some("one"), 0), ["UNDO a v"]);
    assert_eq!(pending.due(), None);
    // What another connection has left, whose undo is queued for one that never comes about.
    pending.inherit(client("one", 7), sent(["b"]));
    pending.inherit(None, unsent("b"));
    assert_eq!(round(&mut pending, Some("one"), 10), [KILL_7, "UNDO b v"]);
    assert_eq!(pending.due(), None);
    // One that stands and has been sent nothing of it need not be ended.
    pending.inherit(client("one", 8), unsent("c"));
    assert_eq!(round(&mut pending, Some("two"), 20), ["UNDO c v"]);
    // What was in doubt before is in doubt.
    pending.inherit(None, sent(["d"]));
    pending.inherit(None, unsent("d"));
    assert_eq!(round(&mut pending, Some("two"), 30), ["UNDO d v"]);
    assert_eq!(pending.due(), Some(at(530)));
}

#[test]
fn a_connection_that_left_nothing_is_not_killed() {
    let mut pending = pending_undos();
    pending.inherit(client("one", 7), []);
    pending.add(undo("a").lent());
    assert_eq!(round(&mut pending, Some("one"), 0), ["UNDO a v"]);
}

#[test]
fn another_process_has_no_connection_of_ours_to_end() {
    let mut pending = pending_undos();
    pending.inherit(client("one", 7), sent(["a"]));
    assert_eq!(round(&mut pending, Some("two"), 0), ["UNDO a v"]);
    assert_eq!(pending.due(), None, "what the old process had read went with it");
}

#[test]
fn a_kill_that_the_next_connection_took_with_it_is_sent_by_the_one_after() {
    let mut pending = pending_undos();
    pending.inherit(client("one", 7), sent(["a"]));
    round(&mut pending, Some("one"), 0);
    pending.inherit(client("one", 8), sent(["a"]));
    let kill_8 = "CLIENT KILL ID 8";
    assert_eq!(round(&mut pending, Some("one"), 20), [KILL_7, kill_8, "UNDO a v"]);
    pending.handle_ended();
    pending.inherit(client("one", 9), sent(["a"]));
    assert_eq!(round(&mut pending, Some("one"), 40), [kill_8, "CLIENT KILL ID 9", "UNDO a v"]);
    (0..2).for_each(|_| pending.handle_ended());
    pending.handle_executed(undo("a").lent());
    pending.inherit(client("one", 7), []);
    pending.inherit(client("one", 7), sent(["c"]));
    assert_eq!(round(&mut pending, Some("one"), 60), [KILL_7, "UNDO c v"]);
}

#[test]
fn pending_undos_are_bounded_and_the_newest_are_kept() {
    let mut pending = PendingUndos { max: 2, ..pending_undos() };
    pending.inherit(client("one", 7), sent(["a", "b", "c"]));
    pending.add(undo("d").lent());
    pending.add(undo("d").lent());
    assert_eq!(round(&mut pending, Some("two"), 0), ["UNDO c v", "UNDO d v"]);
    assert!(!concern(&pending, "a"));
}

#[test]
fn a_deletion_takes_the_place_of_what_was_to_be_put_back_and_is_sent_anew() {
    let mut pending = pending_undos();
    pending.add(put_back("a").lent());
    assert_eq!(round(&mut pending, Some("one"), 0), ["UNDO a v old"]);
    pending.undo_instead(undo("b").lent());
    pending.undo_instead(undo("a").lent());
    pending.add(put_back("a").lent());
    pending.handle_executed(put_back("a").lent());
    assert_eq!(round(&mut pending, Some("one"), 20), ["UNDO a v"], "and the other is none");
    pending.handle_executed(undo("a").lent());
    assert!(pending.is_empty());
}
