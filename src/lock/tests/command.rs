//! What the locks say, byte by byte.

use std::time::Duration;

use quorlock_resp::encode;

use crate::entropy::Nonce;
use crate::fence::Fence;
use crate::lease::command::{Encoded, FENCE, FENCE_VOTE, Subject, TokenOffer};
use crate::lease::{
    AcquireBy, Adopt, Key, Primitive, Resource, Script, ScriptForm, Value, Volatile,
};
use crate::link::{ReplyKind, Undo};
use crate::lock::all::ALL;
use crate::lock::mutex::MUTEX;
use crate::lock::queued::QUEUED;
use crate::lock::reading::READ;
use crate::lock::slotted::CHOOSING;
use crate::lock::ticketed::BY_TICKET;
use crate::options::{Durability, Options};
use crate::testing::store::digest;

const NONCE: Nonce = Nonce([0xab; Nonce::BYTES]);
const DRAWN: Value<'static> = Value::Drawn { nonce: NONCE, owner: "me@h:1" };
const VALUE: &str = "abababababababababababababababababababab@me@h:1";
const TTL: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(30);
const EPOCH: &str = "p:quorlock:epoch";
const QUARANTINE: &str = "p:quorlock:quarantine";

fn key(name: &str) -> Key {
    Key::new(b"p:", name.as_bytes()).unwrap()
}

fn one() -> Resource {
    Resource::one(&MUTEX, key("k"))
}

fn two() -> Resource {
    Resource::several(&ALL, vec![key("l"), key("k")]).unwrap()
}

fn subject(resource: &Resource) -> Subject<'_> {
    Subject { resource, value: DRAWN }
}

fn volatile() -> Volatile {
    let durability = Durability::Volatile { longest_ttl: LONGEST };
    let options = Options { durability, prefix: b"p:".to_vec(), ..Options::default() };
    Volatile::new(&options).unwrap()
}

fn encoded(words: &[&str]) -> String {
    let mut bytes = Vec::new();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    encode::command(&mut bytes, &words);
    String::from_utf8(bytes).unwrap()
}

/// Checks the words of a command, the kind of its reply, and what undoes it, in words as well; none
/// if it needs no undo.
fn check(words: Vec<&str>, kind: ReplyKind, undo: Vec<&str>) -> impl FnOnce(Encoded<'_>) {
    move |found: Encoded<'_>| {
        assert_eq!(found.kind, kind);
        assert_eq!(String::from_utf8_lossy(found.bytes), encoded(&words));
        let whole = String::from_utf8(found.undo.whole()).unwrap();
        assert_eq!(whole, if undo.is_empty() { String::new() } else { encoded(&undo) });
    }
}

fn scripts(primitive: &'static Primitive) -> Vec<&'static Script> {
    let mut scripts = vec![&primitive.vote, &primitive.extend, &primitive.release];
    if let AcquireBy::Script(script, _) = &primitive.acquire {
        scripts.push(script);
    }
    scripts
}

#[test]
fn a_scripts_digest_is_that_of_its_text() {
    let of_locks =
        [&MUTEX, &ALL, &QUEUED, &READ, &CHOOSING, &BY_TICKET].into_iter().flat_map(scripts);
    for script in of_locks.chain([&FENCE, &FENCE_VOTE]) {
        assert_eq!(digest(script.text.as_bytes()), script.sha1(), "{}", script.text);
    }
}

#[test]
fn a_key_is_acquired_by_set_nx_px_and_several_by_a_script() {
    let undo = vec!["EVAL", MUTEX.release.text, "1", "p:k", VALUE];
    let set = vec!["SET", "p:k", VALUE, "NX", "PX", "10000"];
    let check_set = check(set, ReplyKind::Status, undo);
    subject(&one()).with_acquire(ScriptForm::Digest, TTL, None, check_set);

    let AcquireBy::Script(script, _) = &ALL.acquire else { panic!("not by a script") };
    for (form, name, text) in
        [(ScriptForm::Digest, "EVALSHA", script.sha1()), (ScriptForm::Whole, "EVAL", script.text)]
    {
        let undo = vec!["EVAL", ALL.release.text, "2", "p:k", "p:l", VALUE];
        let words = vec![name, text, "2", "p:k", "p:l", VALUE, "10000"];
        let check = check(words, ReplyKind::Keys, undo);
        subject(&two()).with_acquire(form, TTL, None, check);
    }
}

#[test]
fn a_vote_names_the_nodes_own_keys_first_and_ends_in_a_hole() {
    let (volatile, hole) = (volatile(), "0".repeat(40));
    let own = [EPOCH, QUARANTINE];
    let words = [&["EVALSHA", MUTEX.vote.sha1(), "3"][..], &own, &["p:k", VALUE]].concat();
    let words = [&words[..], &["10000", "30000", &hole]].concat();
    let undo = vec!["EVAL", MUTEX.release.text, "1", "p:k", VALUE];
    let check_one = check(words, ReplyKind::Vote, undo);
    subject(&one()).with_acquire(ScriptForm::Digest, TTL, Some(&volatile), check_one);

    let words = [&["EVAL", ALL.vote.text, "4"][..], &own, &["p:k", "p:l", VALUE]].concat();
    let words = [&words[..], &["10000", "30000", &hole]].concat();
    let undo = vec!["EVAL", ALL.release.text, "2", "p:k", "p:l", VALUE];
    let check_all = check(words, ReplyKind::KeysVote, undo);
    subject(&two()).with_acquire(ScriptForm::Whole, TTL, Some(&volatile), check_all);
}

#[test]
fn a_fence_stands_before_its_lock_and_is_acquired_with_it() {
    let (fence, token) = ("{p:k}:quorlock:fence", Fence::from_number(1_234).unwrap());
    let fences = [key("k").fence().unwrap()];
    let offer = TokenOffer { fences: &fences, token, ahead: 10_000_000, step: 1_000 };
    let risen = ["2", fence, "p:k", VALUE, "1234", "10000000", "1000"];
    let words = [&["EVALSHA", FENCE.sha1()][..], &risen].concat();
    let check_fence = check(words, ReplyKind::Fence, vec![]);
    subject(&one()).with_fence(&offer, ScriptForm::Digest, check_fence);

    let undo = vec!["EVAL", MUTEX.release.text, "1", "p:k", VALUE];
    let words = [&["EVAL", FENCE.text][..], &risen, &["10000"]].concat();
    let check_one = check(words, ReplyKind::AcquireFenced, undo.clone());
    subject(&one()).with_acquire_fenced(&offer, ScriptForm::Whole, TTL, None, check_one);

    let (volatile, hole) = (volatile(), "0".repeat(40));
    let own = ["EVALSHA", FENCE_VOTE.sha1(), "4", EPOCH, QUARANTINE];
    let words = [&own[..], &risen[1..], &["10000", "30000", &hole]].concat();
    let check_vote = check(words, ReplyKind::AcquireFencedVote, undo);
    subject(&one()).with_acquire_fenced(
        &offer,
        ScriptForm::Digest,
        TTL,
        Some(&volatile),
        check_vote,
    );
}

#[test]
fn a_ticket_stands_before_the_ttl_and_what_is_beside_the_lock_has_no_fence() {
    let resource = one().by_ticket(&BY_TICKET).unwrap();
    let (queue, beats) = ("{p:k}:quorlock:queue", "{p:k}:quorlock:beats");
    let keys = ["3", "p:k", queue, beats, VALUE];
    let undo = [&["EVAL", BY_TICKET.release.text][..], &keys].concat();
    let AcquireBy::Script(script, _) = &BY_TICKET.acquire else { panic!("not by a script") };
    for (ticket, told) in [(0, "0"), (7, "7")] {
        let words = [&["EVALSHA", script.sha1()][..], &keys, &[told, "10000"]].concat();
        let check = check(words, ReplyKind::Queue, undo.clone());
        subject(&resource).with_acquire_at(ticket, ScriptForm::Digest, TTL, None, check);
    }
    let (volatile, hole) = (volatile(), "0".repeat(40));
    let words = [&["EVALSHA", BY_TICKET.vote.sha1(), "5", EPOCH, QUARANTINE], &keys[1..]].concat();
    let words = [&words[..], &["0", "10000", "30000", &hole]].concat();
    let check_vote = check(words, ReplyKind::Vote, undo);
    subject(&resource).with_acquire(ScriptForm::Digest, TTL, Some(&volatile), check_vote);

    let (fence, token) = ("{p:k}:quorlock:fence", Fence::from_number(1_234).unwrap());
    let fences = [key("k").fence().unwrap()];
    let offer = TokenOffer { fences: &fences, token, ahead: 10_000_000, step: 1_000 };
    let risen = ["2", fence, "p:k", VALUE, "1234", "10000000", "1000"];
    let words = [&["EVALSHA", FENCE.sha1()][..], &risen].concat();
    let check_fence = check(words, ReplyKind::Fence, vec![]);
    subject(&resource).with_fence(&offer, ScriptForm::Digest, check_fence);
}

#[test]
fn a_reader_says_before_the_ttl_in_which_queue_its_turn_has_come() {
    let read = Resource::read(&READ, key("k")).unwrap();
    let names =
        ["readers", "gate", "queue", "beats"].map(|name| format!("{{p:k}}:quorlock:{name}"));
    let keys = [&["5", "p:k"][..], &names.each_ref().map(|name| &**name), &[VALUE]].concat();
    let undo = [&["EVAL", READ.undo.text][..], &keys].concat();
    let AcquireBy::Script(script, _) = &READ.acquire else { panic!("not by a script") };
    for (place, told) in [(0, "0"), (u64::MAX, "18446744073709551615")] {
        let words = [&["EVALSHA", script.sha1()][..], &keys, &[told, "10000"]].concat();
        let check = check(words, ReplyKind::Keys, undo.clone());
        subject(&read).with_acquire_at(place, ScriptForm::Digest, TTL, None, check);
    }
    // Its question in the queue does not say it.
    let queued = Resource::read(READ.queued.unwrap(), key("k")).unwrap();
    let AcquireBy::Script(ask, _) = &queued.primitive.acquire else { panic!("not by a script") };
    let words = [&["EVALSHA", ask.sha1()][..], &keys, &["10000"]].concat();
    let check = check(words, ReplyKind::Queue, undo);
    subject(&queued).with_acquire(ScriptForm::Digest, TTL, None, check);
}

#[test]
fn a_release_is_its_own_undo() {
    for (primitive, resource, keys) in
        [(&MUTEX, one(), vec!["1", "p:k"]), (&ALL, two(), vec!["2", "p:k", "p:l"])]
    {
        let of = |name, script, value| [vec![name, script], keys.clone(), vec![value]].concat();
        let (text, sha1) = (primitive.release.text, primitive.release.sha1());
        let undo = of("EVAL", text, VALUE);
        let subject = subject(&resource);
        subject.with_release(check(of("EVALSHA", sha1, VALUE), ReplyKind::Undo, undo));
        let told = Subject { value: Value::Told(VALUE), ..subject };
        assert_eq!(subject.pair(), told.pair());
        let (words, undo) = (of("EVALSHA", sha1, "old"), of("EVAL", text, "old"));
        let old = Subject { value: Value::Told("old"), ..subject };
        old.with_release(check(words, ReplyKind::Undo, undo));
    }
}

#[test]
fn an_extension_is_not_undone() {
    for (primitive, resource, keys) in
        [(&MUTEX, one(), vec!["1", "p:k"]), (&ALL, two(), vec!["2", "p:k", "p:l"])]
    {
        let (text, sha1) = (primitive.extend.text, primitive.extend.sha1());
        let words = |name, script, more: &[&'static str]| {
            [vec![name, script], keys.clone(), vec![VALUE], more.to_vec()].concat()
        };
        let subject = subject(&resource);
        let check = |words| check(words, ReplyKind::Script, vec![]);
        let by_digest = words("EVALSHA", sha1, &["10000"]);
        subject.with_extend(ScriptForm::Digest, TTL, check(by_digest));
        subject.with_extend(ScriptForm::Whole, TTL, |found| {
            assert_eq!(found.undo, Undo::nothing(&subject.pair()), "names its pair");
            check(words("EVAL", text, &["10000"]))(found);
        });
        subject.with_expiry(TTL, check(words("EVAL", text, &["10000", "exactly"])));
    }
}

#[test]
fn an_adoption_carries_what_puts_the_former_value_back() {
    let Adopt::Scripts { plain, vote } = MUTEX.adopt else { panic!("not adopted") };
    let (resource, hole) = (one(), "0".repeat(40));
    let subject = subject(&resource);
    let back = || vec!["EVAL", MUTEX.release.text, "1", "p:k", VALUE, "old"];
    let words = vec!["EVAL", plain, "1", "p:k", VALUE, "old", "10000"];
    subject.with_adopt("old", TTL, None, check(words, ReplyKind::Adopt, back())).unwrap();
    subject.with_put_back("old", check(back(), ReplyKind::Undo, back()));

    let words = [&["EVAL", vote, "3", EPOCH, QUARANTINE, "p:k", VALUE][..], &["old", "10000"]];
    let words = [&words.concat()[..], &["30000", &hole]].concat();
    let check_vote = check(words, ReplyKind::Vote, back());
    subject.with_adopt("old", TTL, Some(&volatile()), check_vote).unwrap();
    let refused = Subject { resource: &two(), ..subject }.with_adopt("old", TTL, None, |_| ());
    assert!(refused.unwrap_err().is_misuse());
}
