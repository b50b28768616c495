//! Each kind of command against each reply that a server, or a stream out of step, may bring.

use bytes::Bytes;

use super::*;
use crate::link::undo::{Undo, UndoScript};

/// An undo of no particular form.
const NO_UNDO: Form = Undo::NONE.form;

/// The kinds, in the order of the table's columns.
const KINDS: [ReplyKind; 11] = [
    ReplyKind::Status,
    ReplyKind::NativeUndo,
    ReplyKind::Undo,
    ReplyKind::PendingUndo,
    ReplyKind::Script,
    ReplyKind::Vote,
    ReplyKind::Adopt,
    ReplyKind::Keys,
    ReplyKind::KeysVote,
    ReplyKind::Ended,
    ReplyKind::Any,
];

/// What each reply means to each kind: `-` is a stray, and a `+` says that the frame is kept.
const VOTES: &str = "
reply   Status  Native  Undo    Pending Script  Vote      Adopt   Keys    KeysVote  Ended   Any
OK      grant   -       -       -       -       -         -       -       -         -       grant+
null    held    -       -       -       -       -         -       -       -         -       grant+
1       -       grant   grant   grant   grant   grant     -       grant   grant     grant   grant+
0       -       gone    gone    gone    gone    gone      gone    gone    gone      gone    grant+
-1      -       -       held    held    held    held      held    held+   held+     held    grant+
2       -       -       -       -       -       -         -       -       -         grant   grant+
-2      -       -       -       -       revoked revoked   revoked held+   held+     grant   grant+
-3      -       -       -       -       -       -         -       held+   held+     grant   grant+
-65535  -       -       -       -       -       -         -       held+   held+     grant   grant+
-65536  -       -       -       -       -       -         -       -       -         grant   grant+
1,9     -       -       -       -       -       grant+    grant+  -       -         -       grant+
2,9     -       -       -       -       -       waits+    -       -       waits+    -       grant+
3,9     -       -       -       -       -       mismatch+ -       -       mismatch+ -       grant+
4,0     -       -       -       -       -       mismatch+ -       -       mismatch+ -       grant+
5,0     -       -       -       -       -       mismatch+ -       -       -         -       grant+
2,      -       -       -       -       -       -         -       -       -         -       grant+
2,9,9   -       -       -       -       -       -         -       -       -         -       grant+
2,x     -       -       -       -       -       -         -       -       -         -       grant+
x,9     -       -       -       -       -       -         -       -       -         -       grant+
simple  -       -       -       -       -       -         -       -       -         -       grant+
bulk    -       -       -       -       -       -         -       -       -         -       grant+
push    -       -       -       -       -       -         -       -       -         -       -
error   failed+ failed+ failed+ failed+ failed+ failed+   failed+ failed+ failed+   failed+ grant+
refusal refuse+ refuse+ refuse+ refuse+ refuse+ refuse+   refuse+ refuse+ refuse+   refuse+ grant+
";

/// The kinds of fencing, and their table: `bare` is a lock without its fence.
const FENCING: [ReplyKind; 3] =
    [ReplyKind::Fence, ReplyKind::AcquireFenced, ReplyKind::AcquireFencedVote];

const FENCING_VOTES: &str = "
reply   Fence   AcquireFenced AcquireFencedVote
OK      -       -             -
null    -       -             -
1       grant   grant         grant
0       gone    held          held
-1      bare+   bare+         bare+
2       -       -             -
-65536  bare+   bare+         bare+
1-2^53  bare+   bare+         bare+
-2^53   -       -             -
1,9     -       -             -
2,9     -       -             waits+
3,9     -       -             mismatch+
4,0     -       -             mismatch+
5,0     -       -             -
simple  -       -             -
push    -       -             -
error   failed+ failed+       failed+
refusal refuse+ refuse+       refuse+
";

/// A reply, by its name in the tables.
fn reply(name: &str) -> Frame {
    let item = |item: &str| match item.parse() {
        Ok(number) => Frame::Integer(number),
        Err(_) => Frame::Bulk(Bytes::copy_from_slice(item.as_bytes())),
    };
    match name {
        "OK" => Frame::Simple("OK".into()),
        "null" => Frame::Null,
        "simple" => Frame::Simple("PONG".into()),
        "bulk" => Frame::Bulk("OK".into()),
        "push" => Frame::Push(vec![Frame::Integer(1)].into()),
        "error" => Frame::Error("ODD thing".into()),
        "refusal" => Frame::Error("OOM command not allowed".into()),
        "1-2^53" => Frame::Integer(1 - (1 << 53)),
        "-2^53" => Frame::Integer(-(1 << 53)),
        "2," => Frame::Array(vec![Frame::Integer(2)].into()),
        items if items.contains(',') => Frame::Array(items.split(',').map(item).collect()),
        number => item(number),
    }
}

/// What a reply means to a kind, in the words of the table.
fn meaning(kind: ReplyKind, frame: Frame) -> String {
    let reply = Reply::from(frame.clone());
    if !kind.accepts(&reply) {
        return "-".into();
    }
    let (vote, kept) = kind.vote_of(reply);
    assert!(kept.is_none() || kept == Some(frame), "{kept:?}");
    let word = match vote {
        NodeVote::Granted => "grant",
        NodeVote::Held => "held",
        NodeVote::Unfenced => "bare",
        NodeVote::Gone => "gone",
        NodeVote::Revoked => "revoked",
        NodeVote::Quarantined => "waits",
        NodeVote::DurabilityMismatch => "mismatch",
        NodeVote::Refused => "refuse",
        NodeVote::Failed => "failed",
        other => unreachable!("no reply means {other:?}"),
    };
    format!("{word}{}", if kept.is_some() { "+" } else { "" })
}

#[test]
fn each_kind_gives_each_reply_its_meaning() {
    check(&KINDS, VOTES);
    check(&FENCING, FENCING_VOTES);
}

fn check(kinds: &[ReplyKind], table: &str) {
    let mut rows = table.lines().filter(|row| !row.is_empty()).map(str::split_whitespace);
    let head: Vec<&str> = rows.next().unwrap().skip(1).collect();
    let shown = |kind: &ReplyKind| match kind {
        ReplyKind::PendingUndo | ReplyKind::NativeUndo => format!("{kind:?}").replace("Undo", ""),
        _ => format!("{kind:?}"),
    };
    assert_eq!(head, kinds.iter().map(shown).collect::<Vec<_>>());
    for mut row in rows {
        let name = row.next().unwrap();
        let meanings: Vec<String> = kinds.iter().map(|kind| meaning(*kind, reply(name))).collect();
        assert_eq!(meanings, row.collect::<Vec<_>>(), "{name}");
    }
}

/// Errors, and whether the first says that nothing was applied, what is to follow an undo that was
/// answered so, in the words of Redis 6.2 up to Redis 8 and Valkey 9.
const ERRORS: [(&str, NodeVote, Option<FollowUp>); 24] = {
    use FollowUp::{Later, WithScript};
    use NodeVote::{Failed, Refused};
    [
        ("OOM command not allowed when used memory > 'maxmemory'.", Refused, Some(Later)),
        ("READONLY You can't write against a read only replica.", Refused, Some(Later)),
        ("NOREPLICAS Not enough good replicas to write.", Refused, Some(Later)),
        ("LOADING Redis is loading the dataset in memory", Refused, Some(Later)),
        ("BUSY Redis is busy running a script.", Refused, Some(Later)),
        ("MISCONF Redis is configured to save RDB snapshots", Refused, Some(Later)),
        ("MASTERDOWN Link with MASTER is down", Refused, Some(Later)),
        ("CLUSTERDOWN The cluster is down", Refused, Some(Later)),
        ("NOSCRIPT No matching script.", Refused, Some(WithScript)),
        ("NOAUTH Authentication required.", Refused, None),
        ("NOPERM this user has no permissions to run 'evalsha'", Refused, None),
        ("MOVED 3999 127.0.0.1:6381", Refused, None),
        ("ASK 3999 127.0.0.1:6381", Refused, None),
        ("CROSSSLOT Keys in request don't hash to the same slot", Refused, None),
        ("TRYAGAIN Multiple keys request during rehashing of slot", Refused, None),
        // Words that leave it open.
        ("WRONGPASS invalid username-password pair", Failed, None),
        ("DENIED Redis is running in protected mode", Failed, None),
        ("ERR max number of clients reached", Failed, None),
        ("WRONGTYPE Operation against a key", Failed, None),
        ("", Failed, None),
        // A script's own error: what it did before that has been applied. Redis 6.2 wraps it, Redis
        // 7 puts the script behind it.
        ("OOM no memory. script: f_67, on @user_script:7.", Failed, Some(Later)),
        ("ERR Error running script (call to f_67): @user_script:7: -OOM no", Failed, Some(Later)),
        (
            "ERR Error running script (call to f_67): @user_script:7: @user_script: 7: \
             -READONLY You can't write against a read only replica.",
            Failed,
            Some(Later),
        ),
        ("ERR Error running script (call to f_67): @user_script:7: no such", Failed, None),
    ]
};

#[test]
fn each_error_says_whether_anything_was_applied_and_what_follows_an_undo() {
    for (text, vote, follow_up) in ERRORS {
        let reply = || Reply::from(Frame::Error(text.into()));
        for kind in KINDS {
            assert!(kind.accepts(&reply()), "{kind:?}: {text}");
            let means = if kind == ReplyKind::Any { NodeVote::Granted } else { vote };
            let kept = Some(Frame::Error(text.into()));
            assert_eq!(kind.vote_of(reply()), (means, kept), "{kind:?}: {text}");
            let follows = match kind {
                ReplyKind::Undo => follow_up,
                ReplyKind::NativeUndo => continue, // below
                ReplyKind::PendingUndo => Some(follow_up.unwrap_or(FollowUp::Settled)),
                ReplyKind::Ended => Some(FollowUp::Doubt),
                _ => None,
            };
            assert_eq!(FollowUp::after(kind, NO_UNDO, &reply()), follows, "{kind:?}: {text}");
        }
    }
}

/// A user who may not touch a lock's queue, and is told that others wait, releases the lock.
#[test]
fn what_a_user_may_not_do_to_all_keys_is_done_to_the_first() {
    static FIRST: UndoScript =
        UndoScript { text: "first", compares_and_deletes: true, for_first_key: None };
    static ALL: UndoScript =
        UndoScript { text: "all", compares_and_deletes: false, for_first_key: Some(&FIRST) };
    let undo = |script| Undo::delete((script, 1), b"").form;
    let after = |kind, form, text: &'static str| {
        FollowUp::after(kind, form, &Frame::Error(text.into()).into())
    };
    let denied = "NOPERM No permissions to access a key";
    for kind in [ReplyKind::Undo, ReplyKind::PendingUndo] {
        assert_eq!(after(kind, undo(&ALL), denied), Some(FollowUp::ForFirstKey));
        assert_ne!(after(kind, undo(&FIRST), denied), Some(FollowUp::ForFirstKey));
        assert_eq!(after(kind, undo(&ALL), "BUSY a script runs"), Some(FollowUp::Later));
    }
}

#[test]
fn the_script_follows_a_native_command_whose_answer_does_not_say_enough() {
    use FollowUp::{Repeat, WithScript, WithoutNative};
    let after = |reply: Frame| FollowUp::after(ReplyKind::NativeUndo, NO_UNDO, &reply.into());
    assert_eq!(after(Frame::Integer(1)), None);
    assert_eq!(after(Frame::Integer(0)), Some(WithScript), "the value may have been revoked");
    let errors = [
        ("NOPERM User a has no permissions to run the 'delifeq' command", WithoutNative),
        ("ERR unknown command 'DELIFEQ', with args beginning with: 'k'", WithoutNative),
        ("ERR unknown command `DELIFEQ`, with args", WithoutNative),
        ("ERR unsupported command 'delifeq'", WithoutNative),
        // Nothing was applied, and the script says what there is to say of it.
        ("WRONGTYPE Operation against a key", WithScript),
        ("READONLY You can't write against a read only replica.", WithScript),
        ("BUSY running a script", WithScript),
        ("NOPERM No permissions to access a key", WithScript),
        ("MOVED 3999 127.0.0.1:6381", WithScript),
        ("ERR upstream gone", Repeat),
        ("", Repeat),
    ];
    for (text, follows) in errors {
        assert_eq!(after(Frame::Error(text.into())), Some(follows), "{text}");
    }
}

#[test]
fn a_request_for_tracking_has_failed_unless_it_is_ok() {
    use FollowUp::{TrackingFailed, TrackingRefused};
    let after = |frame: Frame| FollowUp::after(ReplyKind::TrackingRequest, NO_UNDO, &frame.into());
    assert_eq!(after(reply("OK")), None);
    for odd in ["null", "1", "simple", "bulk", "1,9"] {
        assert_eq!(after(reply(odd)), Some(TrackingRefused), "{odd}");
    }
    let errors = [
        ("NOPERM User a has no permissions to run the 'client|caching' command", TrackingRefused),
        ("ERR Unknown subcommand or wrong number of arguments for 'tracking'.", TrackingRefused),
        ("BUSY running a script", TrackingFailed),
        ("LOADING the dataset", TrackingFailed),
    ];
    for (text, follows) in errors {
        assert_eq!(after(Frame::Error(text.into())), Some(follows), "{text}");
    }
}

#[test]
fn an_undo_that_was_executed_is_settled_whatever_it_found() {
    for number in -1..=1 {
        let reply = Reply::Integer(number);
        assert_eq!(FollowUp::after(ReplyKind::Undo, NO_UNDO, &reply), None);
        assert_eq!(
            FollowUp::after(ReplyKind::PendingUndo, NO_UNDO, &reply),
            Some(FollowUp::Settled)
        );
        assert_eq!(FollowUp::after(ReplyKind::Ended, NO_UNDO, &reply), Some(FollowUp::Ended));
        assert_eq!(FollowUp::after(ReplyKind::Script, NO_UNDO, &reply), None);
    }
}

#[test]
fn the_number_beside_a_vote_is_a_time_or_the_place_of_a_key() {
    let ms = |ms| Some(Duration::from_millis(ms));
    let times = [("2,9", ms(9), ms(9)), ("4,0", ms(0), None), ("3,-1", None, None)];
    for (name, time, refusal) in times {
        assert_eq!(time_beside(&reply(name)), time, "{name}");
        assert_eq!(time_of_refusal(&reply(name)), refusal, "{name}");
    }
    for name in ["2,", "2,x", "9", "null", "error"] {
        assert_eq!(time_beside(&reply(name)), None, "{name}");
    }
    let keys = [("-1", Some(0)), ("-7", Some(6)), ("0", None), ("1", None), ("2,9", None)];
    for (name, key) in keys {
        assert_eq!(key_in_the_way(&reply(name)), key, "{name}");
    }
    assert_eq!(key_in_the_way(&Frame::Integer(i64::MIN)), None);
}

#[test]
fn only_votes_name_the_server_and_only_undos_are_sent_for_earlier_commands() {
    let naming = KINDS.into_iter().filter(|kind| kind.names_server());
    assert_eq!(naming.collect::<Vec<_>>(), [ReplyKind::Vote, ReplyKind::KeysVote]);
    let undoing = KINDS.into_iter().filter(|kind| kind.is_undo());
    let expected =
        [ReplyKind::NativeUndo, ReplyKind::Undo, ReplyKind::PendingUndo, ReplyKind::Ended];
    assert_eq!(undoing.collect::<Vec<_>>(), expected);
}

#[test]
fn a_choice_says_which_keys_or_that_there_are_none() {
    let reply = |numbers: &[i64]| {
        Reply::from(Frame::Array(numbers.iter().copied().map(Frame::Integer).collect()))
    };
    for (numbers, of_pick, of_vote) in [
        (&[1, 3][..], true, true),
        (&[1, 64, 2], true, true),
        (&[-1, -1], true, true),
        (&[-1, 3_600_000], true, true),
        (&[2, 900], false, true),
        (&[1], false, false),
        (&[1, 0], false, false),
        (&[-1], false, false),
        (&[-2, 0], false, false),
        (&[5, 0], false, false),
    ] {
        let accepted =
            [ReplyKind::Pick, ReplyKind::PickVote].map(|kind| kind.accepts(&reply(numbers)));
        assert_eq!(accepted, [of_pick, of_vote], "{numbers:?}");
    }
    assert!(!ReplyKind::Pick.accepts(&Reply::Integer(1)), "a number alone names no key");
    assert!(ReplyKind::PickVote.names_server() && !ReplyKind::Pick.names_server());
    let votes = [&[1, 3][..], &[-1, -1], &[2, 900]]
        .map(|numbers| ReplyKind::PickVote.vote_of(reply(numbers)).0);
    assert_eq!(votes, [NodeVote::Granted, NodeVote::Held, NodeVote::Quarantined]);
}
