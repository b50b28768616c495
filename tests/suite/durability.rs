//! Servers that forget: a node that comes back without its keys gives no vote until every lock that
//! it can have forgotten has ended.

use std::time::{Duration, Instant};

use quorlock::{
    Durability, Error, Extend, Locker, LockerBuilder, Retry,
    report::{Fault, Outcome},
};
use support::greeting::Greeting;
use support::sha1::sha1_hex;
use support::{Fleet, Gate, Reply, Script, Scripted, Server, eventually_async, need_server};

use crate::{builder, connected, quorum, single};

/// Long beside a restart of a server, also on a busy machine; short for a test.
const LONGEST: Duration = Duration::from_secs(3);
const VOLATILE: Durability = Durability::Volatile { longest_ttl: LONGEST };

/// A locker's builder for nodes that forget.
fn volatile(fleet: &Fleet) -> LockerBuilder {
    builder(fleet).durability(VOLATILE).ttl(LONGEST).wait(Duration::from_secs(20))
}

/// A locker whose nodes are in service.
async fn serving(fleet: &Fleet) -> Locker {
    let locker = connected(volatile(fleet)).await;
    let nodes = locker.initialise().await.unwrap();
    assert!(nodes.iter().all(|node| node.outcome == Outcome::Granted), "{nodes:?}");
    locker
}

fn is_quarantined(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Quarantined { .. })
}

/// The keys of a fleet that live forever, without the nodes' epochs.
fn immortal(fleet: &Fleet) -> Vec<(usize, String)> {
    let mut keys = fleet.keys_left("");
    keys.retain(|(node, key)| {
        !key.ends_with("quorlock:epoch") && fleet[*node].command(&["PTTL", key]) == Reply::Int(-1)
    });
    keys
}

fn assert_quarantine(error: &Error) {
    assert!(error.is_unavailable() && error.is_retryable(), "{error}");
    let vain = error.retry_after().expect("the time left is known");
    assert!(vain > Duration::ZERO && vain <= LONGEST, "{vain:?}");
    assert!(error.to_string().contains("has lost its keys and gives no vote for "), "{error}");
    assert!(error.nodes().iter().any(|node| is_quarantined(&node.outcome)), "{error}");
}

/// How many scripts the server has run by their digests.
fn acquisitions(server: &Server) -> u64 {
    server.calls().of("evalsha")
}

/// Case 16: a majority is restarted while a lock is held.
async fn majority_restarted(durability: Durability) -> (bool, Duration) {
    let fleet = Fleet::start(3);
    let ours = connected(volatile(&fleet).durability(durability).auto_extend(Extend::Off)).await;
    let theirs = connected(volatile(&fleet).durability(durability).auto_extend(Extend::Off)).await;
    if durability != Durability::Persistent {
        ours.initialise().await.unwrap();
    }
    let guard = ours.lock("k").try_acquire().await.unwrap().unwrap();
    fleet[0].restart();
    let restarted = Instant::now();
    fleet[1].restart();
    let next = theirs.lock("k").await.unwrap();
    let (both, after) = (guard.is_valid(), restarted.elapsed());
    drop((guard, next));
    // And the nodes are of use again.
    let again = theirs.lock("k").await.unwrap();
    assert!(again.release().await.unwrap().is_released());
    assert_eq!(immortal(&fleet), []);
    (both, after)
}

#[tokio::test]
async fn case_16_a_restarted_majority_does_not_give_a_held_lock_away() {
    need_server!();
    let (both, after) = majority_restarted(VOLATILE).await;
    assert!(!both, "two holders");
    assert!(after >= LONGEST, "a vote {after:?} after the restart");
}

/// What the quarantine prevents, so that the test above is known to see it.
#[tokio::test]
async fn case_16_without_quarantine_it_does() {
    need_server!();
    for _ in 0..20 {
        if let (true, _) = majority_restarted(Durability::Persistent).await {
            return;
        }
    }
    panic!("no held lock was given away, so the test of the quarantine proves nothing");
}

#[tokio::test]
async fn a_restarted_node_does_not_vote_and_the_others_do() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = serving(&fleet).await;
    fleet[2].restart();
    // The verdict falls with two votes.
    let third_vote = async || {
        let guard = locker.lock("k").try_acquire().await.unwrap().unwrap();
        let vote = || guard.votes()[2].outcome.clone();
        eventually_async("it has voted", async || vote() != Outcome::Pending).await;
        let vote = vote();
        assert!(guard.release().await.unwrap().is_released());
        vote
    };
    eventually_async("the node is asked and gives no vote", async || {
        is_quarantined(&third_vote().await)
    })
    .await;
    eventually_async("it votes again", async || third_vote().await == Outcome::Granted).await;
}

#[tokio::test]
async fn a_new_deployment_waits_for_the_longest_ttl_and_the_error_says_how_long() {
    need_server!();
    for size in [1, 3] {
        let fleet = Fleet::start(size);
        let locker = connected(volatile(&fleet).prefix("p:")).await;
        let began = Instant::now();
        assert_quarantine(&locker.lock("k").try_acquire().await.unwrap_err());
        // The verdict may have fallen without it.
        let asked = async || fleet[0].command(&["EXISTS", "p:quorlock:epoch"]) == Reply::Int(1);
        eventually_async("the first node has its epoch", asked).await;
        let epoch = fleet[0].command(&["GET", "p:quorlock:epoch"]).text();
        assert_eq!(epoch, format!("{} 3000", fleet[0].info("run_id").unwrap()));
        let left = fleet[0].command(&["PTTL", "p:quorlock:quarantine"]).int();
        assert!((1..=3_000).contains(&left), "{left}");
        let guard = locker.lock("k").await.unwrap();
        assert!(began.elapsed() >= LONGEST);
        assert!(guard.release().await.unwrap().is_released());
        assert_eq!(immortal(&fleet), []);
    }
}

#[tokio::test]
async fn a_flushed_node_gives_no_vote_on_the_same_connection() {
    need_server!();
    let fleet = Fleet::start(1);
    let locker = serving(&fleet).await;
    assert!(locker.lock("k").await.unwrap().release().await.unwrap().is_released());
    for command in ["FLUSHALL", "FLUSHDB"] {
        let flushed = Instant::now();
        fleet[0].command(&[command]);
        assert_quarantine(&locker.lock("k").try_acquire().await.unwrap_err());
        let guard = locker.lock("k").await.unwrap();
        assert!(flushed.elapsed() >= LONGEST);
        assert!(guard.release().await.unwrap().is_released());
    }
}

#[tokio::test]
async fn a_snapshot_of_another_process_is_not_trusted() {
    need_server!();
    let fleet = Fleet::start(1);
    let locker = connected(volatile(&fleet)).await;
    // What a restart from a snapshot finds: the epoch of the process before.
    fleet[0].command(&["SET", "quorlock:epoch", &format!("{} 3000", "0a".repeat(20))]);
    assert_quarantine(&locker.lock("k").try_acquire().await.unwrap_err());
}

#[tokio::test]
async fn a_waiter_asks_again_when_it_can_help_and_not_before() {
    need_server!();
    let fleet = Fleet::start(1);
    let pause = Duration::from_millis(1);
    let locker = connected(volatile(&fleet).retry(Retry::fixed(pause))).await;
    let guard = locker.lock("k").await.unwrap();
    let calls = acquisitions(&fleet[0]);
    assert!(calls <= 3, "{calls} tries in one quarantine");
    assert!(guard.release().await.unwrap().is_released());
}

#[tokio::test]
async fn initialise_is_for_new_deployments_only() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = connected(volatile(&fleet)).await;
    assert_quarantine(&locker.lock("k").try_acquire().await.unwrap_err());
    locker.initialise().await.unwrap();
    let guard = locker.lock("k").try_acquire().await.unwrap().unwrap();
    assert!(guard.release().await.unwrap().is_released());
    locker.initialise().await.unwrap(); // nothing to do

    fleet[1].command(&["FLUSHALL"]);
    let error = locker.initialise().await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    assert!(error.to_string().starts_with("2 of 3 nodes are in service"), "{error}");
    assert_eq!(fleet[1].command(&["DBSIZE"]), Reply::Int(0), "nothing was written");

    fleet[2].stop();
    let error = locker.initialise().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let persistent = connected(builder(&Fleet::start(1))).await;
    assert!(persistent.initialise().await.unwrap_err().is_misuse());
}

#[tokio::test]
async fn initialise_refuses_what_is_no_epoch_of_this_deployment() {
    need_server!();
    let set: [(&[&str], &str); 4] = [
        (
            &["HSET", "quorlock:epoch", "a", "b"],
            "has an invalid value in its epoch or quarantine key",
        ),
        (&["SET", "quorlock:epoch", "mine"], "has an invalid value in its epoch or quarantine key"),
        (
            &["SET", "quorlock:quarantine", "mine"],
            "has an invalid value in its epoch or quarantine key",
        ),
        (&["SET", "quorlock:epoch", "abc 9000"], "with a longest TTL of 9.0 s"),
    ];
    for (command, words) in set {
        let fleet = Fleet::start(3);
        let locker = connected(volatile(&fleet)).await;
        fleet[1].command(command);
        for error in [locker.initialise().await.unwrap_err(), locker.lock("k").await.unwrap_err()] {
            assert!(error.is_misuse() && !error.is_retryable(), "{error}");
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.to_string().starts_with(&fleet[1].label()), "{error}");
        }
        let late = volatile(&fleet).build().unwrap();
        if command[1] == "quorlock:epoch" {
            let error = late.ready(Duration::from_secs(5)).await.unwrap_err();
            assert!(error.is_misuse() && error.to_string().contains(words), "{error}");
        }
        assert_eq!(fleet.holders("k"), []);
    }
}

#[tokio::test]
async fn a_persistent_locker_acquires_nothing_where_nodes_forget() {
    need_server!();
    let fleet = Fleet::start(3);
    let owner = serving(&fleet).await;
    let held = owner.lock("held").await.unwrap();

    let locker = builder(&fleet).build().unwrap();
    let error = locker.ready(Duration::from_secs(5)).await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    assert!(error.to_string().contains("this locker has `Durability::Persistent`"), "{error}");
    // Not without having looked first, either, and nothing is left of the try.
    let eager = builder(&fleet).build().unwrap();
    let error = eager.lock("k").await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    eventually_async("nothing is left", async || fleet.holders("k").is_empty()).await;
    // Looking is free to all.
    let seen = locker.inspect("held").await.unwrap();
    assert!(seen.holder().is_some(), "{seen:?}");
    assert!(held.release().await.unwrap().is_released());
}

#[tokio::test]
async fn another_longest_ttl_is_refused_at_the_start_and_no_ttl_is_above_it() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = serving(&fleet).await;
    let shorter = Durability::Volatile { longest_ttl: LONGEST / 2 };
    let other = volatile(&fleet).durability(shorter).ttl(LONGEST / 2).build().unwrap();
    let error = other.ready(Duration::from_secs(5)).await.unwrap_err();
    assert!(error.is_misuse() && error.to_string().contains("longest TTL of 3.0 s"), "{error}");
    assert!(other.lock("k").await.unwrap_err().is_misuse());

    let longer = LONGEST + Duration::from_millis(1);
    let before = acquisitions(&fleet[0]);
    assert!(volatile(&fleet).ttl(longer).build().unwrap_err().is_misuse());
    let error = locker.lock("k").ttl(longer).await.unwrap_err();
    assert!(error.is_misuse() && error.to_string().contains("longest TTL"), "{error}");
    let reserved = locker.lock("quorlock:epoch").try_acquire().await.unwrap_err();
    assert!(reserved.is_misuse(), "{reserved}");
    assert_eq!(acquisitions(&fleet[0]), before, "something was sent");
    let guard = locker.lock("k").await.unwrap();
    assert!(guard.extend(longer).await.unwrap_err().is_misuse());
    guard.extend(LONGEST).await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
}

/// A refusal for good that comes behind an early verdict keeps the next lock from being given.
#[tokio::test]
async fn a_late_word_of_another_longest_ttl_is_enough() {
    let grants = || {
        let script = Script::greeting().answer_all(|_| b":1\r\n".to_vec());
        Scripted::start(script)
    };
    let gate = Gate::new();
    let late = Script::greeting().expect("EVALSHA").wait(&gate);
    let late = late.reply("*2\r\n:3\r\n:9000\r\n");
    let nodes = [grants(), Scripted::start(late.answer_all(|_| b":0\r\n".to_vec())), grants()];
    let locker = quorum(nodes.iter().map(Scripted::url));
    let locker = locker.durability(VOLATILE).ttl(LONGEST);
    let locker = connected(locker).await;
    drop(locker.lock("k").try_acquire().await.unwrap().unwrap());
    gate.open();
    eventually_async("the locker has heard of it", async || {
        let Err(error) = locker.lock("other").try_acquire().await else { return false };
        assert!(error.is_misuse(), "{error}");
        error.to_string().contains("with a longest TTL of 9.0 s")
    })
    .await;
}

#[tokio::test]
async fn a_held_lock_is_set_again_on_a_node_that_gives_no_vote() {
    need_server!();
    let fleet = Fleet::start(3);
    let locker = serving(&fleet).await;
    let guard = locker.lock("k").await.unwrap();
    eventually_async("all have it", async || fleet.holders("k").len() == 3).await;
    fleet[2].command(&["FLUSHALL"]);
    assert!(locker.lock("other").try_acquire().await.unwrap().is_some());
    eventually_async("the node is in quarantine", async || {
        fleet[2].command(&["EXISTS", "quorlock:quarantine"]) == Reply::Int(1)
    })
    .await;
    guard.extend(LONGEST).await.unwrap();
    eventually_async("it has the key again", async || fleet.holders("k").len() == 3).await;
    assert!(fleet[2].command(&["PTTL", "k"]).int() > 0);
    assert!(guard.is_valid());
    assert!(guard.release().await.unwrap().is_released());
    eventually_async("nothing is left", async || fleet.holders("k").is_empty()).await;
}

#[tokio::test]
async fn nodes_that_forgot_the_script_are_given_it_again() {
    need_server!();
    for size in [1, 3] {
        let fleet = Fleet::start(size);
        let locker = serving(&fleet).await;
        fleet.command(&["SCRIPT", "FLUSH"]);
        for _ in 0..3 {
            let guard = locker.lock("k").try_acquire().await.unwrap().unwrap();
            assert!(guard.release().await.unwrap().is_released());
        }
        fleet.command(&["SCRIPT", "FLUSH"]);
        let guard = locker.lock("k").wait(Duration::ZERO).await.unwrap();
        assert!(guard.release().await.unwrap().is_released());
    }
}

#[tokio::test]
async fn a_server_that_never_learns_the_script_is_not_asked_for_ever() {
    let no_script = |command: &[Vec<u8>]| match &command[0][..] {
        b"EVALSHA" | b"EVAL" => b"-NOSCRIPT No matching script.\r\n".to_vec(),
        _ => b"+OK\r\n".to_vec(),
    };
    let server = Scripted::start(Script::greeting().answer_all(no_script));
    let locker = single(server.url()).durability(VOLATILE).ttl(LONGEST);
    let locker = connected(locker.wait(Duration::ZERO)).await;
    assert!(locker.lock("k").try_acquire().await.unwrap_err().is_unavailable());
    assert!(locker.lock("k").await.unwrap_err().is_unavailable());
    let sent = server.commands_named("EVALSHA").len() + server.commands_named("EVAL").len();
    assert!((4..=8).contains(&sent), "{sent}");
}

#[tokio::test]
async fn each_node_is_told_its_own_name_and_before_it_is_known_nothing_is_sent() {
    let (one, two) = ("1a".repeat(20), "2b".repeat(20));
    let node = |run_id: &str| {
        let script = Script::greeting_as(Greeting::default().run_id(run_id));
        Scripted::start(script.expect("EVALSHA").reply(":1\r\n").answer_all(|_| b":1\r\n".to_vec()))
    };
    let nodes = [node(&one), node(&two)];
    let locker = quorum(nodes.iter().map(Scripted::url));
    let locker = locker.durability(VOLATILE).ttl(Duration::from_secs(1)).prefix("p:");
    // At once: the commands are queued before the nodes have said who they are.
    let locker = locker.build().unwrap();
    let guard = locker.lock("k").await.unwrap();
    let token = guard.owner_token();
    for (node, name) in nodes.iter().zip([&one, &two]) {
        let evals = node.commands_named("EVALSHA");
        let script = concat!(
            include_str!("../../src/lease/script/standing.lua"),
            include_str!("../../src/lock/script/acquire.lua")
        );
        let digest = sha1_hex(script.as_bytes());
        assert_eq!(evals[0][1], digest.into_bytes(), "by the script's right digest");
        let words: Vec<_> =
            evals[0][2..].iter().map(|word| String::from_utf8(word.clone()).unwrap()).collect();
        let expected = [
            "3",
            "p:quorlock:epoch",
            "p:quorlock:quarantine",
            "p:k",
            token.as_str(),
            "1000",
            "3000",
            name,
        ];
        assert_eq!(words, expected);
    }
    assert!(guard.release().await.unwrap().is_released());
}

/// A server that is restarted between the handshake and a command is never told the old name on a
/// new connection: what was sent went with the old one, and is not sent again.
#[tokio::test]
async fn a_restarted_server_is_told_its_new_name_and_nothing_meant_for_the_old_one() {
    let (old, new) = ("1a".repeat(20), "2b".repeat(20));
    let greeted = |run_id: &str| Script::greeting_as(Greeting::default().run_id(run_id));
    let server = Scripted::start_sequence([
        greeted(&old).expect("EVALSHA").cut(),
        greeted(&new).answer_all(|_| b":1\r\n".to_vec()),
    ]);
    let locker = single(server.url()).durability(VOLATILE).ttl(LONGEST);
    let locker = connected(locker).await;
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert_eq!(error.nodes()[0].outcome, Outcome::Disconnected, "{error}");
    let guard = locker.lock("k").wait(Duration::from_secs(5)).await.unwrap();
    let token = guard.owner_token();
    let evals = server.commands_named("EVALSHA");
    let names: Vec<_> = evals.iter().map(|eval| eval.last().unwrap().clone()).collect();
    assert_eq!(names, [old.into_bytes(), new.into_bytes()]);
    assert_ne!(evals[0][6], token.as_str().as_bytes());
    assert_eq!(evals[1][6], token.as_str().as_bytes());
    let undone = |eval: &Vec<Vec<u8>>| eval[4] == evals[0][6];
    assert!(server.commands_named("EVAL").iter().any(undone), "the old one is undone");
    assert!(guard.release().await.unwrap().is_released());
}

#[tokio::test]
async fn a_server_that_does_not_tell_its_name_gives_no_vote() {
    need_server!();
    let server = Server::builder().user("me", "on >pw ~* +@all -info").start();
    let url = server.url_as("me:pw");
    let locker = single(&url).durability(VOLATILE).ttl(LONGEST).build().unwrap();
    let error = locker.ready(Duration::from_secs(5)).await.unwrap_err();
    assert!(error.is_authentication(), "{error}");
    let fault = error.nodes()[0].outcome.fault();
    assert_eq!(fault, Some(&Fault::Anonymous), "{error}");
    assert!(error.to_string().contains("does not tell its run_id"), "{error}");
    assert!(connected(single(&url)).await.lock("k").await.is_ok());
}

/// The rights that the manual lists.
#[tokio::test]
async fn these_rights_are_enough() {
    need_server!();
    let rules = "reset on >pw ~p:* -@all +hello +auth +info +client|id +client|setname \
                 +script|load +evalsha +eval +get +set +del +pttl +pexpire";
    let server = Server::builder().user("me", rules).start();
    let url = server.url_as("me:pw");
    let locker = single(&url).durability(VOLATILE).ttl(LONGEST).prefix("p:");
    let locker = connected(locker).await;
    locker.initialise().await.unwrap();
    let guard = locker.lock("k").await.unwrap();
    guard.extend(LONGEST).await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
}
