//! What the locks say, byte by byte.

use std::time::Duration;

use quorlock_resp::encode;

use crate::entropy::Nonce;
use crate::lease::command::{Encoded, Standing, Subject, pair_of, with_release_of};
use crate::lease::{AcquireBy, Adopt, Key, Primitive, Resource, Script, ScriptForm, Value};
use crate::link::Undo;
use crate::lock::all::ALL;
use crate::lock::mutex::MUTEX;
use crate::testing::store::digest;

const NONCE: Nonce = Nonce([0xab; Nonce::BYTES]);
const DRAWN: Value<'static> = Value { nonce: NONCE, owner: "me@h:1" };
const VALUE: &str = "abababababababababababababababababababab@me@h:1";
const TTL: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(30);

fn key(name: &str) -> Key {
    Key::new(b"p:", name.as_bytes()).unwrap()
}

fn one() -> Resource {
    Resource::one(key("k"), "")
}

fn two() -> Resource {
    Resource::several(vec![key("l"), key("k")], "").unwrap()
}

fn subject<'a>(primitive: &'static Primitive, resource: &'a Resource) -> Subject<'a> {
    Subject { primitive, resource, value: DRAWN }
}

fn encoded(words: &[&str]) -> String {
    let mut bytes = Vec::new();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    encode::command(&mut bytes, &words);
    String::from_utf8(bytes).unwrap()
}

/// Some arguments of a command.
fn arguments(words: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    words.iter().for_each(|word| encode::bulk(&mut bytes, word.as_bytes()));
    bytes
}

/// Checks the words of a command and what undoes it, in words as well; none if it needs no undo.
fn check(words: Vec<&str>, undo: Vec<&str>) -> impl FnOnce(Encoded<'_>) {
    move |found: Encoded<'_>| {
        assert_eq!(String::from_utf8_lossy(found.bytes), encoded(&words));
        let whole = String::from_utf8(found.undo.whole()).unwrap();
        assert_eq!(whole, if undo.is_empty() { String::new() } else { encoded(&undo) });
    }
}

fn scripts(primitive: &'static Primitive) -> Vec<&'static Script> {
    let mut scripts = vec![&primitive.vote, &primitive.extend, &primitive.release];
    if let AcquireBy::Script(script) = &primitive.acquire {
        scripts.push(script);
    }
    scripts
}

#[test]
fn a_scripts_digest_is_that_of_its_text() {
    for script in scripts(&MUTEX).into_iter().chain(scripts(&ALL)) {
        assert_eq!(digest(script.text.as_bytes()), script.sha1(), "{}", script.text);
    }
}

#[test]
fn a_key_is_acquired_by_set_nx_px_and_several_by_a_script() {
    let undo = vec!["EVAL", MUTEX.release.text, "1", "p:k", VALUE];
    let set = vec!["SET", "p:k", VALUE, "NX", "PX", "10000"];
    subject(&MUTEX, &one()).with_set(TTL, check(set, undo));

    let AcquireBy::Script(script) = &ALL.acquire else { panic!("not by a script") };
    for (form, name, text) in
        [(ScriptForm::Digest, "EVALSHA", script.sha1()), (ScriptForm::Whole, "EVAL", script.text)]
    {
        let undo = vec!["EVAL", ALL.release.text, "2", "p:k", "p:l", VALUE];
        let words = vec![name, text, "2", "p:k", "p:l", VALUE, "10000"];
        subject(&ALL, &two()).with_script((script, form), TTL, None, check(words, undo));
    }
}

#[test]
fn a_vote_names_the_nodes_own_keys_first_and_ends_in_a_hole() {
    let (companions, hole) = (arguments(&["p:e", "p:q"]), "0".repeat(40));
    let standing = Some(Standing { companions: &companions, longest_ttl: LONGEST });
    let call = (&MUTEX.vote, ScriptForm::Digest);
    let words =
        vec!["EVALSHA", MUTEX.vote.sha1(), "3", "p:e", "p:q", "p:k", VALUE, "10000", "30000"];
    let words = [words, vec![&hole]].concat();
    let undo = vec!["EVAL", MUTEX.release.text, "1", "p:k", VALUE];
    subject(&MUTEX, &one()).with_script(call, TTL, standing, check(words, undo));

    let call = (&ALL.vote, ScriptForm::Whole);
    let words = vec!["EVAL", ALL.vote.text, "4", "p:e", "p:q", "p:k", "p:l", VALUE, "10000"];
    let words = [words, vec!["30000", &hole]].concat();
    let undo = vec!["EVAL", ALL.release.text, "2", "p:k", "p:l", VALUE];
    subject(&ALL, &two()).with_script(call, TTL, standing, check(words, undo));
}

#[test]
fn a_release_is_its_own_undo() {
    for (primitive, resource, keys) in
        [(&MUTEX, one(), vec!["1", "p:k"]), (&ALL, two(), vec!["2", "p:k", "p:l"])]
    {
        let of = |name, script, value| [vec![name, script], keys.clone(), vec![value]].concat();
        let (text, sha1) = (primitive.release.text, primitive.release.sha1());
        let undo = of("EVAL", text, VALUE);
        let subject = subject(primitive, &resource);
        subject.with_release(check(of("EVALSHA", sha1, VALUE), undo));
        assert_eq!(subject.pair(), pair_of(&resource, VALUE));
        let undo = of("EVAL", text, "old");
        let words = of("EVALSHA", sha1, "old");
        with_release_of(primitive, &resource, "old", check(words, undo));
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
        let subject = subject(primitive, &resource);
        let by_digest = words("EVALSHA", sha1, &["10000"]);
        subject.with_extend(ScriptForm::Digest, TTL, check(by_digest, vec![]));
        subject.with_extend(ScriptForm::Whole, TTL, |found| {
            assert_eq!(found.undo, Undo::nothing(&pair_of(&resource, VALUE)), "names its pair");
            check(words("EVAL", text, &["10000"]), vec![])(found);
        });
        subject.with_expiry(TTL, check(words("EVAL", text, &["10000", "exactly"]), vec![]));
    }
}

#[test]
fn an_adoption_carries_what_puts_the_former_value_back() {
    let Adopt::Scripts { plain, vote } = MUTEX.adopt else { panic!("not adopted") };
    let (resource, hole) = (one(), "0".repeat(40));
    let subject = subject(&MUTEX, &resource);
    let back = || vec!["EVAL", MUTEX.release.text, "1", "p:k", VALUE, "old"];
    let words = vec!["EVAL", plain, "1", "p:k", VALUE, "old", "10000"];
    subject.with_adopt(plain, "old", TTL, None, check(words, back()));
    subject.with_put_back("old", check(back(), back()));

    let companions = arguments(&["p:e", "p:q"]);
    let standing = Some(Standing { companions: &companions, longest_ttl: LONGEST });
    let words = vec!["EVAL", vote, "3", "p:e", "p:q", "p:k", VALUE, "old", "10000", "30000", &hole];
    subject.with_adopt(vote, "old", TTL, standing, check(words, back()));
    assert!(matches!(ALL.adopt, Adopt::Refused(_)));
}
