//! `Locker::elect`.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use super::{ms, pass};
use crate::clock::{Clock, Moment};
use crate::error::Error;
use crate::fence::Fence;
use crate::lock::Locker;
use crate::recipe::{Election, Term};
use crate::testing::{Nodes, Reaction, When};

const TTL: Duration = ms(3_000);

fn candidates(nodes: &Nodes) -> [Election; 2] {
    ["one", "two"].map(|owner| locker(nodes, owner).elect("role").ttl(TTL))
}

fn locker(nodes: &Nodes, owner: &str) -> Locker {
    nodes.locker().owner(owner).build().unwrap()
}

fn now() -> Moment {
    Clock::default().now()
}

/// Leads for so long, and then resigns.
async fn leads(election: &Election, time: Duration) -> (Fence, Moment) {
    let work = async |term: Term| {
        let begun = now();
        assert!(term.is_valid() && term.remaining() <= TTL);
        pass(time).await;
        assert!(term.is_valid(), "it is extended");
        Ok::<_, Error>((term.fence(), begun))
    };
    election.lead(work).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_resigns_is_followed_at_once_and_terms_rise() {
    let nodes = Nodes::new(5);
    let [one, two] = candidates(&nodes);
    let (first, second) = tokio::join!(leads(&one, ms(20_000)), async {
        pass(ms(1)).await;
        leads(&two, ms(1)).await
    });
    assert!(second.0 > first.0, "{second:?} after {first:?}");
    let gap = second.1.since(first.1);
    assert!(gap >= ms(20_000) && gap < ms(20_010), "not polled for, nor for the TTL: {gap:?}");
    pass(ms(10)).await;
    assert_eq!(nodes.holding("role"), 0);
}

/// What a leader was seen to do, and when: it leads, or was dropped.
#[derive(Default)]
struct Seen(RefCell<Vec<(&'static str, bool, Moment)>>);

struct Work<'a>(&'a Seen, &'static str);

impl<'a> Work<'a> {
    fn begin(seen: &'a Seen, who: &'static str) -> Self {
        seen.0.borrow_mut().push((who, true, now()));
        Self(seen, who)
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        self.0.0.borrow_mut().push((self.1, false, now()));
    }
}

/// A leader whose extensions fail stops before its lock ends, and the next one begins behind that.
#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_extend_stops_before_another_begins() {
    for delay in [Duration::ZERO, ms(500), ms(10_000)] {
        let nodes = Nodes::new(3);
        let seen = Seen::default();
        let [one, two] = candidates(&nodes).map(|election| election.lock_delay(delay));
        let lead = async |election: &Election, who| {
            let work = async |_term| {
                let _work = Work::begin(&seen, who);
                pending::<Result<(), Error>>().await
            };
            election.lead(work).await
        };
        let script = async {
            pass(ms(100)).await;
            nodes.add(When::before("extend").then(Reaction::Drop));
            pass(2 * (TTL + delay)).await;
        };
        tokio::select! {
            biased;
            _ = lead(&one, "one") => unreachable!(),
            _ = async { pass(ms(10)).await; lead(&two, "two").await } => unreachable!(),
            () = script => {}
        }
        let seen = seen.0.into_inner();
        let [first, stopped, next, ..] = seen[..] else { panic!("{seen:?}") };
        assert_eq!((first.0, first.1, stopped.0, stopped.1), ("one", true, "one", false));
        assert_eq!((next.0, next.1), ("two", true), "{seen:?}");
        let (led, gap) = (stopped.2.since(first.2), next.2.since(stopped.2));
        assert!(led <= TTL + ms(1), "extended no more: it led for {led:?}");
        assert!(gap >= delay && gap < delay + ms(200), "none led for {gap:?}, with {delay:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_watches_and_who_looks_learn_who_leads() {
    let nodes = Nodes::new(3);
    let [one, two] = candidates(&nodes);
    let (watch, observed) = (one.watch(), Cell::new(None));
    assert_eq!((*watch.borrow(), two.observe().await.unwrap()), (None, None));
    let work = async |term: Term| {
        assert_eq!(*watch.borrow(), Some(term.fence()));
        let leader = two.observe().await.unwrap().unwrap();
        assert_eq!(leader.term, Some(term.fence()));
        observed.set(leader.name);
        Ok::<_, Error>(())
    };
    one.lead(work).await.unwrap();
    assert!(observed.take().is_some_and(|name| name.starts_with("one@")));
    assert_eq!((*watch.borrow(), two.observe().await.unwrap()), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_dropped_resigns() {
    let nodes = Nodes::new(3);
    let [one, two] = candidates(&nodes);
    {
        let mut leading = pin!(one.lead(async |_term| pending::<Result<(), Error>>().await));
        tokio::select! {
            biased;
            _ = leading.as_mut() => unreachable!(),
            () = pass(ms(50)) => {}
        }
        assert!(one.watch().borrow().is_some());
    }
    assert!(one.watch().borrow().is_none());
    let begun = now();
    let (_, led) = leads(&two, ms(1)).await;
    assert!(led.since(begun) < ms(10), "{:?}", led.since(begun));
}

/// No quorum at first, and none for longer than any wait: it is a candidate all the same.
#[tokio::test(start_paused = true)]
async fn a_candidate_goes_on_trying_while_too_few_nodes_are_there() {
    let nodes = Nodes::new(3);
    let [one, _] = candidates(&nodes);
    nodes.iter().for_each(|node| node.stop());
    let back = async {
        pass(ms(3_600_000)).await;
        nodes.iter().for_each(|node| node.restart(true).unwrap());
    };
    let ((_, led), ()) = tokio::join!(leads(&one, ms(1)), back);
    assert!(led.since(Moment::from_nanos(0)) >= ms(3_600_000));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_get_better_ends_it() {
    let nodes = Nodes::new(1);
    let locker = locker(&nodes, "one");
    let error = locker.elect("").lead(async |_term| Ok::<_, Error>(())).await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    let failed = locker.elect("r").lead(async |_term| Err::<(), _>(Error::misuse("mine"))).await;
    assert!(failed.unwrap_err().to_string().contains("mine"));
    pass(ms(1)).await;
    assert_eq!(nodes.holding("r"), 0);
}

/// The lock lives for the delay as well, and is extended by the TTL.
#[tokio::test(start_paused = true)]
async fn a_long_delay_takes_no_lead_away() {
    let nodes = Nodes::new(3);
    let [one, _] = candidates(&nodes).map(|election| election.lock_delay(10 * TTL));
    leads(&one, 20 * TTL).await;
    pass(ms(10)).await;
    assert_eq!(nodes.holding("role"), 0, "it has resigned");
}
