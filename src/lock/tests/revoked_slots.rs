//! Holders of slots that are asked to let go of them.
//!
//! These clients hear no channel: a holder learns of it by its next extension.

use std::time::Duration;

use super::Behaviour::Hangs;
use super::{World, ms, now, pass};
use crate::lock::{LockGuard, Slots};
use crate::observe::Loss;
use crate::testing::{Reaction, When};

/// The default.
const TTL: Duration = ms(10_000);

const COUNT: u16 = 4;

/// Two clients of the same nodes.
async fn two(nodes: usize) -> (World, World) {
    let world = World::ready(nodes).await;
    let other = world.beside();
    other.locker.ready(ms(1_000)).await.unwrap();
    (world, other)
}

fn slots(world: &World) -> Slots {
    world.locker.slots("k", COUNT)
}

/// How many of the slots' keys there are, on all nodes together.
fn keys(world: &World) -> usize {
    (0..COUNT).map(|slot| world.keys(&format!("{{k}}:slot:{slot}"))).sum()
}

async fn revoked(world: &World, slot: u16) -> Duration {
    slots(world).revoke(slot).await.unwrap().expect("it is held").over_in
}

#[tokio::test(start_paused = true)]
async fn the_holder_of_a_slot_is_asked_by_its_number_and_no_other_is() {
    let (world, other) = two(3).await;
    let mut guards = Vec::new();
    for _ in 0..COUNT {
        guards.push(slots(&world).acquire().await.unwrap());
    }
    let is_asked = |guard: &LockGuard| guard.slots() == [2];
    let (asked, others): (Vec<_>, Vec<_>) = guards.into_iter().partition(is_asked);
    let [asked] = &asked[..] else { panic!("each has a slot of its own") };
    let revocation = slots(&other).revoke(2).await.unwrap().expect("it is held");
    assert_eq!(revocation.holder.owner.as_deref(), Some("test1"));
    asked.revoked().await;
    assert!(asked.is_revoked() && asked.is_valid());
    assert_eq!(asked.lost().await, Loss::Revoked);
    pass(TTL * 2).await;
    assert!(others.iter().all(|guard| guard.is_valid() && !guard.is_revoked()));
    assert_eq!(slots(&other).revoke(2).await.unwrap(), None, "it is over");
}

#[tokio::test(start_paused = true)]
async fn a_holder_of_several_slots_is_told_and_releases_all_of_them_for_any_one() {
    let (world, other) = two(3).await;
    for place in 0..3 {
        let beside = slots(&world).acquire().await.unwrap();
        let guard = slots(&world).acquire_many(3).await.unwrap();
        revoked(&other, guard.slots()[place]).await;
        assert!(!guard.is_revoked(), "it has not asked");
        guard.revoked().await;
        assert!(guard.is_revoked() && guard.is_valid());
        let refused = guard.extend(TTL).await.unwrap_err();
        assert!(refused.is_revoked(), "{refused}");
        let release = guard.release().await.unwrap();
        assert!(release.is_released(), "{release:?}");
        assert_eq!(keys(&world), 3, "the slot beside them is on each node");
        assert!(beside.is_valid() && !beside.is_revoked());
        assert!(beside.release().await.unwrap().is_released());
    }
}

#[tokio::test(start_paused = true)]
async fn several_slots_whose_holder_does_not_listen_are_free_at_the_time_that_was_told() {
    let (world, other) = two(3).await;
    let guard = slots(&world).acquire_many(3).await.unwrap();
    pass(TTL * 2).await;
    let asked = now();
    let over_in = revoked(&other, guard.slots()[1]).await;
    assert!(over_in >= guard.remaining() && over_in <= TTL + TTL / 20, "{over_in:?}");
    let next = slots(&other).acquire_many(COUNT).wait_forever().await.unwrap();
    let took = now().since(asked);
    assert!(took >= TTL / 2 && took <= over_in + ms(1_000), "{took:?}, {over_in:?}");
    assert!(!guard.is_valid());
    assert_eq!(guard.lost().await, Loss::Revoked);
    assert_eq!(world.told.failures(), [], "that they are not extended is no failure");
    drop(guard);
    pass(ms(100)).await;
    assert!(next.is_valid());
    assert_eq!(keys(&world), 3 * usize::from(COUNT), "what the next one has is left alone");
    assert!(next.release().await.unwrap().is_released());
}

#[tokio::test(start_paused = true)]
async fn several_slots_that_are_dropped_or_end_after_a_time_leave_nothing() {
    let (world, other) = two(3).await;
    for ends_later in [false, true] {
        let guard = slots(&world).acquire_many(2).await.unwrap();
        revoked(&other, guard.slots()[0]).await;
        let left = if ends_later { TTL / 2 } else { Duration::ZERO };
        match ends_later {
            false => drop(guard),
            true => assert!(guard.release_after(left).await.unwrap().is_released()),
        }
        pass(left + ms(100)).await;
        assert_eq!(keys(&world), 0, "{ends_later}");
    }
}

/// One of five nodes has the mark, and extends none of the keys; another has lost one of them.
#[tokio::test(start_paused = true)]
async fn where_a_minority_is_marked_the_slots_go_on_and_none_is_set_anew() {
    let (world, other) = two(5).await;
    let guard = slots(&world).acquire_many(2).await.unwrap();
    let denied = Reaction::Answer(b"-NOPERM no permission\r\n".to_vec());
    for node in &world.nodes[1..] {
        node.add(When::before("revoke").then(denied.clone()));
    }
    let [marked, beside] = guard.slots()[..] else { panic!("it has two") };
    let unknown = slots(&other).revoke(marked).await.unwrap_err();
    assert!(unknown.is_authentication(), "{unknown}");
    guard.revoked().await;
    world.nodes[4].delete(&format!("{{k}}:slot:{beside}"));
    pass(TTL * 2).await;
    assert!(guard.is_valid() && guard.is_revoked());
    let on = |node: usize, slot: u16| world.nodes[node].value(format!("{{k}}:slot:{slot}"));
    assert_eq!((on(0, marked), on(0, beside)), (None, None), "they have ended there");
    assert!(on(4, beside).is_none() && on(3, beside).is_some());
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(keys(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_free_has_no_holder_and_one_of_another_client_is_left_to_it() {
    let (world, other) = two(3).await;
    assert_eq!(slots(&world).revoke(3).await.unwrap(), None);
    world.nodes.iter().for_each(|node| node.steal("{k}:slot:3"));
    let refused = slots(&world).revoke(3).await.unwrap_err();
    assert!(refused.is_misuse() && refused.to_string().contains("not quorlock"), "{refused}");
    other.set(0..3, Hangs);
    let unknown = slots(&other).revoke(3).await.unwrap_err();
    assert!(unknown.is_unavailable(), "{unknown}");
    assert!(unknown.to_string().contains("\"{k}:slot:3\""), "{unknown}");
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_there_is_not_is_refused_before_anything_is_sent() {
    let world = World::ready(1).await;
    let before = world.nodes[0].log().len();
    for (key, count, slot, why) in [
        ("k", 4, 4, "there is no slot 4: the key's slots are numbered from 0 to 3"),
        ("k", 64, u16::MAX, "there is no slot 65535: the key's slots are numbered from 0 to 63"),
        ("k", 0, 0, "0 slots were asked for; a key has from 1 to 64"),
        ("k", 65, 64, "65 slots were asked for; a key has from 1 to 64"),
        ("a}b", 4, 0, "a brace that ends no tag"),
        ("", 4, 0, "the key is empty"),
    ] {
        let refused = world.locker.slots(key, count).revoke(slot).await.unwrap_err();
        assert!(refused.is_misuse() && refused.to_string().contains(why), "{refused}");
    }
    assert_eq!(world.nodes[0].log().len(), before);
}
