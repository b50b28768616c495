//! Holders that are asked to let go of their locks.
//!
//! These clients hear no channel: a holder learns of it by its next extension.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::Behaviour::{After, Grants, Hangs};
use super::{News, World, assert_due, ms, now, pass, warning};
use crate::clock::Moment;
use crate::lease::Release;
use crate::lock::LockRequest;
use crate::observe::Loss;
use crate::options::{Extend, Options};
use crate::testing::{Reaction, When};

/// The default.
const TTL: Duration = ms(10_000);

/// When the observers of this client were told of a revocation, and what remained then.
fn told(world: &World) -> Vec<(Moment, Duration)> {
    world.told.all(|news| match news {
        News::Revoked { remaining } => Some(remaining),
        _ => None,
    })
}

/// Exclusive locks of each kind, and the key that is revoked.
fn requests(world: &World) -> [(LockRequest, &'static str); 4] {
    let locker = &world.locker;
    [
        (locker.lock("one"), "one"),
        (locker.lock("fenced").fenced(), "fenced"),
        (locker.lock_all(["a", "b"]), "b"),
        (locker.slots("slot", 1).acquire(), "{slot}:slot:0"),
    ]
}

async fn revoked(world: &World, key: &str) -> Duration {
    let revocation = world.locker.revoke(key).await.unwrap().expect("it is held");
    assert!(revocation.holder.remaining <= revocation.over_in);
    revocation.over_in
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_lets_go_of_it_has_released_it() {
    let world = World::ready(3).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    for (request, key) in requests(&world) {
        let guard = request.await.unwrap();
        let asked = now();
        revoked(&other, key).await;
        assert!(!guard.is_revoked(), "it has not asked");
        guard.revoked().await;
        assert!(now().since(asked) <= TTL / 3 + TTL / 10, "by its next extension: {key}");
        assert!(guard.is_revoked() && guard.is_valid(), "{key}");
        let release = guard.release().await.unwrap();
        assert!(release.is_released(), "{key}: {release:?}");
        assert_eq!(world.keys(key), 0, "{key}");
    }
    assert_eq!(told(&world).len(), 4);
    assert_eq!(world.told.failures(), [], "that it is not extended is no failure");
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_does_not_listen_has_it_until_its_end_and_no_longer() {
    let world = World::ready(3).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    for (request, key) in requests(&world) {
        let guard = request.await.unwrap();
        pass(TTL * 2).await;
        let (asked, due) = (now(), warning(&guard, TTL));
        let over_in = revoked(&other, key).await;
        assert!(over_in >= guard.remaining() && over_in <= TTL + TTL / 20, "{key}: {over_in:?}");
        let next = other.locker.lock(key).wait_forever().await.unwrap();
        let took = now().since(asked);
        assert!(took <= over_in + ms(1_000), "{key}: {took:?}, {over_in:?}");
        assert!(!guard.is_valid());
        assert_eq!(guard.lost().await, Loss::Revoked, "{key}");
        let losses = world.told.losses();
        let (lost, why) = losses.last().unwrap();
        assert_due(*lost, due);
        assert_eq!(*why, Loss::Revoked, "{key}");
        drop(guard);
        pass(TTL / 20).await;
        assert!(next.is_valid() && !world.holders(&next).is_empty(), "{key}");
        assert!(next.release().await.unwrap().is_released());
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_not_extended_by_itself_ends_as_one_that_was_revoked_only_if_it_knows() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    revoked(&world, "k").await;
    pass(ms(100)).await;
    let refused = guard.extend(TTL).await.unwrap_err();
    assert!(refused.is_revoked() && !refused.is_retryable(), "{refused}");
    let words = r#"lock "k" was revoked: it is extended no more; release it"#;
    assert_eq!(refused.to_string(), words);
    assert!(guard.is_revoked() && guard.is_valid());
    guard.revoked().await;
    assert_eq!(guard.lost().await, Loss::Revoked);
    let [(_, remaining)] = told(&world)[..] else { panic!("{:?}", told(&world)) };
    assert!(remaining > TTL / 2, "it was told before");
    let guard = world.locker.lock("l").auto_extend(Extend::Off).await.unwrap();
    revoked(&world, "l").await;
    guard.revoked().await;
    assert_eq!(guard.lost().await, Loss::Expired);
}

#[tokio::test(start_paused = true)]
async fn where_a_minority_says_so_it_is_told_and_the_lock_goes_on() {
    let world = World::ready(3).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    let guard = world.locker.lock("k").await.unwrap();
    // One node alone hears of it: its value is marked as `revoke.lua` would.
    let value = guard.owner_token().value().to_owned() + "!";
    assert!(world.nodes[1].command(["SET", "k", &value, "KEEPTTL"]).is_ok());
    guard.revoked().await;
    assert_eq!(told(&world).len(), 1);
    pass(TTL * 3).await;
    assert!(guard.is_valid() && guard.is_revoked());
    assert_eq!(told(&world).len(), 1, "once");
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_answer_is_not_needed() {
    let world = World::ready(3).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    let guard = world.locker.lock("k").await.unwrap();
    other.set(2..3, Hangs);
    revoked(&other, "k").await;
    other.set(1..3, Hangs);
    let unknown = other.locker.revoke("k").await.unwrap_err();
    assert!(unknown.is_unavailable(), "{unknown}");
    other.set(0..3, Grants);
    guard.revoked().await;
    pass(TTL * 2).await;
    assert!(!guard.is_valid());
}

#[tokio::test(start_paused = true)]
async fn what_none_holds_and_what_others_hold_is_said() {
    let world = World::ready(3).await;
    assert_eq!(world.locker.revoke("k").await.unwrap(), None);
    let reader = world.locker.read("k").await.unwrap();
    let refused = world.locker.revoke("k").await.unwrap_err();
    assert!(refused.is_misuse(), "{refused}");
    assert!(reader.release().await.unwrap().is_released());
    world.nodes.iter().for_each(|node| node.steal("k"));
    let refused = world.locker.revoke("k").await.unwrap_err();
    assert!(refused.is_misuse(), "{refused}");
    assert_eq!(world.nodes[0].value("k").as_deref(), Some(&b"thief"[..]));
}

#[tokio::test(start_paused = true)]
async fn who_looks_at_it_sees_that_it_was_revoked_and_who_holds_it() {
    let world = World::ready(3).await;
    let _guard = world.locker.lock("k").await.unwrap();
    revoked(&world, "k").await;
    let again = revoked(&world, "k").await;
    assert!(again <= TTL + TTL / 20);
    let seen = world.locker.inspect("k").await.unwrap();
    let holder = seen.holder().expect("it is held");
    assert!(holder.is_revoked && holder.is_own && holder.owner.as_deref() == Some("test1"));
}

#[tokio::test(start_paused = true)]
async fn its_token_releases_it_and_does_not_adopt_it() {
    let world = World::ready(3).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    let token = world.locker.lock("k").await.unwrap().forget();
    revoked(&other, "k").await;
    let refused = other.locker.adopt("k", &token).await.unwrap_err();
    assert!(refused.is_revoked(), "{refused}");
    assert_eq!(world.keys("k"), 3, "the adoption has left it as it was");
    let release = other.locker.release_by_token("k", &token).await.unwrap();
    assert!(release.is_released(), "{release:?}");
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_leaves_nothing_and_a_read_lock_is_not_made_of_it() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").await.unwrap();
    revoked(&world, "k").await;
    drop(guard);
    pass(ms(100)).await;
    assert_eq!(world.keys("k"), 0);
    let guard = world.locker.lock("k").await.unwrap();
    revoked(&world, "k").await;
    let refused = guard.downgrade().await.unwrap_err();
    assert!(refused.is_lost(), "{refused}");
    pass(ms(100)).await;
    assert_eq!(world.keys("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn one_that_knows_does_not_hand_the_lock_on() {
    let world = World::with(3, Options { local_handover: TTL, ..Options::default() }).await;
    for is_revoked in [false, true] {
        let guard = world.locker.lock("k").await.unwrap();
        let value = world.nodes[0].value("k");
        let mut next = pin!(world.locker.lock("k").wait_forever().acquire());
        poll_fn(|cx| {
            assert!(next.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        if is_revoked {
            revoked(&world, "k").await;
            guard.revoked().await;
        }
        drop(guard);
        let next = next.await.unwrap();
        assert!(!next.is_revoked());
        assert_eq!(world.nodes[0].value("k") == value, !is_revoked, "it was handed on");
        assert!(next.release().await.unwrap().is_released());
    }
}

#[tokio::test(start_paused = true)]
async fn one_with_a_delay_keeps_others_out_for_it() {
    let (world, delay) = (World::ready(3).await, ms(7_000));
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    let guard = world.locker.lock("k").lock_delay(delay).await.unwrap();
    let asked = now();
    let over_in = revoked(&other, "k").await;
    assert!(over_in >= TTL + delay);
    assert_eq!(guard.lost().await, Loss::Revoked);
    drop(guard);
    pass(ms(100)).await;
    assert_eq!(world.keys("k"), 3);
    drop(other.locker.lock("k").wait_forever().await.unwrap());
    let took = now().since(asked);
    assert!(took >= TTL + delay && took <= over_in + ms(1_000), "{took:?}, {over_in:?}");
}

/// Two of three may hold it where one has nothing and one does not tell.
#[tokio::test(start_paused = true)]
async fn a_lock_that_a_silent_node_may_hold_is_not_said_to_be_free() {
    let world = World::ready(3).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    world.nodes[1].delete("k");
    other.set(2..3, Hangs);
    let unknown = other.locker.revoke("k").await.unwrap_err();
    assert!(unknown.is_unavailable(), "{unknown}");
    assert!(guard.is_valid());
    other.set(2..3, Grants);
}

#[tokio::test(start_paused = true)]
async fn what_no_lock_wrote_is_said_to_be_foreign() {
    let world = World::ready(3).await;
    for node in &world.nodes {
        assert!(node.command(["SET", "k", "theirs"]).is_ok());
    }
    let refused = world.locker.revoke("k").await.unwrap_err();
    assert!(refused.is_foreign(), "{refused}");
}

/// Of two, and of four, half of the nodes leave no majority.
#[tokio::test(start_paused = true)]
async fn half_of_an_even_number_is_enough_to_end_it() {
    for count in [2, 4] {
        let world = World::ready(count).await;
        let guard = world.locker.lock("k").await.unwrap();
        let value = guard.owner_token().value().to_owned() + "!";
        for node in &world.nodes[..count / 2] {
            assert!(node.command(["SET", "k", &value, "KEEPTTL"]).is_ok());
        }
        assert_eq!(guard.lost().await, Loss::Revoked, "{count}");
        assert_eq!(world.told.failures(), [], "{count}");
    }
}

#[tokio::test(start_paused = true)]
async fn its_time_is_shortened_and_not_made_longer_by_a_release_after_it() {
    let world = World::ready(3).await;
    let requests = || requests(&world).into_iter().filter(|(_, key)| *key != "fenced");
    for (request, key) in requests() {
        let guard = request.await.unwrap();
        revoked(&world, key).await;
        let release = guard.release_after(TTL / 2).await.unwrap();
        assert!(release.is_released(), "{key}: {release:?}");
        pass(TTL / 2 + ms(100)).await;
        assert_eq!(world.keys(key), 0, "{key}");
    }
    for (request, key) in requests() {
        let guard = request.await.unwrap();
        revoked(&world, key).await;
        let release = guard.release_after(TTL * 2).await.unwrap();
        assert!(matches!(release, Release::Unknown(_)), "{key}: {release:?}");
        pass(TTL + ms(100)).await;
        assert_eq!(world.keys(key), 0, "{key}");
    }
}

/// One node is marked late and one later or never, and the key on the third ends meanwhile. An
/// extension that finds the two others sets it anew.
#[tokio::test(start_paused = true)]
async fn an_extension_on_its_way_does_not_outlive_what_was_told() {
    let ttl = ms(300);
    let lasts = [Reaction::Answer(b"-NOPERM no permission\r\n".to_vec()), Reaction::Delay(ms(64))];
    let phases = (0..100).step_by(5);
    for (phase, last) in phases.flat_map(|phase| lasts.iter().map(move |last| (phase, last))) {
        let world = World::ready(3).await;
        let other = world.beside();
        other.locker.ready(ms(1_000)).await.unwrap();
        let guard = world.locker.lock("k").ttl(ttl).await.unwrap();
        pass(ttl + ms(phase)).await;
        let shortened = world.nodes[0].command(["PEXPIRE", "k", "30"]);
        assert_eq!(shortened.as_integer().ok(), Some(1));
        world.nodes[1].add(When::before("revoke").nth(1).then(Reaction::Delay(ms(60))));
        world.nodes[2].add(When::before("revoke").then(last.clone()));
        match other.locker.revoke("k").await {
            Ok(revocation) => {
                pass(revocation.map_or(Duration::ZERO, |it| it.over_in)).await;
                assert!(!guard.is_valid(), "after {phase} ms, {last:?}");
            }
            // Only one key is there to be marked once more: nothing is promised.
            Err(unknown) => assert!(unknown.is_unavailable(), "{unknown}"),
        }
    }
}

/// The same where the key on the third ends later, and the extension comes there later still.
#[tokio::test(start_paused = true)]
async fn nor_does_one_that_comes_late_to_a_node_whose_key_has_ended() {
    let ttl = ms(300);
    let mut promised = 0;
    for (phase, left) in
        (0..100).step_by(10).flat_map(|at| (80..150).step_by(10).map(move |n| (at, n)))
    {
        let world = World::ready(3).await;
        let other = world.beside();
        other.locker.ready(ms(1_000)).await.unwrap();
        let guard = world.locker.lock("k").ttl(ttl).await.unwrap();
        pass(ttl + ms(phase)).await;
        let left = left.to_string();
        let shortened = world.nodes[0].command(["PEXPIRE", "k", &left]);
        assert_eq!(shortened.as_integer().ok(), Some(1));
        world.nodes[0].add(When::before("extend").then(Reaction::Delay(ms(40))));
        world.nodes[1].add(When::before("revoke").nth(1).then(Reaction::Delay(ms(70))));
        let denied = Reaction::Answer(b"-NOPERM no permission\r\n".to_vec());
        world.nodes[2].add(When::before("revoke").then(denied));
        if let Ok(revocation) = other.locker.revoke("k").await {
            promised += 1;
            pass(revocation.map_or(Duration::ZERO, |it| it.over_in)).await;
            assert!(!guard.is_valid(), "{left} ms left, after {phase} ms");
        }
    }
    assert!(promised > 10, "{promised}");
}

#[tokio::test(start_paused = true)]
async fn where_a_node_has_no_mark_the_others_end_together() {
    let world = World::ready(3).await;
    let _guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    let left = |node: usize| world.nodes[node].command(["PTTL", "k"]).as_integer().unwrap();
    let shortened = world.nodes[0].command(["PEXPIRE", "k", "3000"]);
    assert_eq!(shortened.as_integer().ok(), Some(1));
    world.nodes[0].add(When::before("revoke").then(Reaction::Delay(ms(20))));
    world.set(2..3, Hangs);
    revoked(&world, "k").await;
    let [late, near] = [left(0), left(1)];
    assert!(late > 9_000 && (near - 2..=near).contains(&late), "{late} {near}");
}

/// One node has no mark, so that the marked keys are to end together.
#[tokio::test(start_paused = true)]
async fn asked_for_again_and_again_it_ends_no_later() {
    let world = World::ready(3).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    other.set(0..3, After(ms(20)));
    other.set(2..3, Hangs);
    let asked = now();
    while other.locker.revoke("k").await.unwrap().is_some_and(|it| !it.over_in.is_zero()) {
        assert!(now().since(asked) <= TTL + TTL / 20, "it is over by then");
    }
    assert!(!guard.is_valid());
}

/// From each of the two clients another node is far away.
#[tokio::test(start_paused = true)]
async fn asked_for_from_two_sides_in_turn_it_ends_no_later() {
    let world = World::ready(3).await;
    let acquired = now();
    let _guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    world.set(2..3, Hangs);
    let left = |node: usize| world.nodes[node].command(["PTTL", "k"]).as_integer().unwrap();
    while now().since(acquired) < TTL / 2 {
        for far in [1, 0] {
            world.set(0..2, Grants);
            world.nodes[far].add(When::before("revoke").then(Reaction::Delay(ms(20))));
            revoked(&world, "k").await;
        }
    }
    let end = (TTL - now().since(acquired)).as_millis() as i64;
    assert!(left(0) <= end + 1 && left(1) <= end + 1, "{} and {}, of {end}", left(0), left(1));
}

/// The lives that nodes tell are never the same where one answers later.
#[tokio::test(start_paused = true)]
async fn keys_that_end_nearly_together_are_marked_once() {
    let world = World::ready(3).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    let _guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    world.nodes[1].add(When::before("revoke").then(Reaction::Delay(ms(20))));
    world.set(2..3, Hangs);
    let asked = now();
    revoked(&other, "k").await;
    assert_eq!(now().since(asked), ms(20), "it is looked at in no time, and marked once");
}

#[tokio::test(start_paused = true)]
async fn one_that_knows_sets_no_key_anew() {
    let world = World::ready(5).await;
    let guard = world.locker.lock("k").await.unwrap();
    let denied = Reaction::Answer(b"-NOPERM no permission\r\n".to_vec());
    for node in &world.nodes[1..] {
        node.add(When::before("revoke").then(denied.clone()));
    }
    world.locker.revoke("k").await.unwrap_err();
    guard.revoked().await;
    world.nodes[4].delete("k");
    pass(TTL * 2).await;
    assert!(guard.is_valid(), "a majority extends it");
    assert_eq!(world.keys("k"), 3, "neither the marked one, which has ended, nor the lost one");
}

/// The holder's key is lost on a node between the look at it and the mark.
#[tokio::test(start_paused = true)]
async fn where_a_mark_is_all_that_is_left_it_is_waited_for() {
    let world = World::ready(3).await;
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    world.nodes[2].delete("k");
    world.nodes[1].add(When::before("revoke").nth(1).then(Reaction::Delay(ms(10))));
    let lose = async {
        pass(ms(5)).await;
        world.nodes[1].delete("k");
    };
    let (over_in, ()) = tokio::join!(revoked(&world, "k"), lose);
    pass(over_in).await;
    assert!(!guard.is_valid());
}

/// The answers take longer to come than it lives.
#[tokio::test(start_paused = true)]
async fn one_that_may_have_ended_meanwhile_is_waited_for() {
    let world = World::ready(3).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    let guard = world.locker.lock("k").auto_extend(Extend::Off).await.unwrap();
    pass(TTL - ms(80)).await;
    other.nodes.iter().for_each(|node| {
        node.add(When::after("revoke").then(Reaction::Delay(ms(90))));
    });
    let asked = now();
    let over = other.locker.revoke("k").await.unwrap();
    assert!(!guard.is_valid() && over.as_ref().is_some_and(|it| it.over_in.is_zero()), "{over:?}");
    let took = now().since(asked);
    assert!(took >= ms(90 + 80) && took <= ms(90 + 85), "{took:?}");
}
