//! The end of a locker: nothing new, what is held let go or left, everything sent delivered.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use super::hand_on;
use super::leases::Leases;
use super::news::What;
use super::release::Releasing;
use super::token::OwnerToken;
use crate::error::Error;
use crate::link::ReplyKind;
use crate::observe::Loss;
use crate::quorum::{Election, NodeMask};
use crate::report::{NodeReport, Outcome};
use crate::sync::atomic::Ordering;

/// What a shutdown found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shutdown {
    /// Locks that were held and have been released; a majority of the nodes said so.
    pub released: usize,
    /// Locks that were held and that a majority no longer had: they had expired, or were taken.
    pub lost: usize,
    /// Locks that were held and were left to their expiry, as asked, in no particular order.
    pub left: Vec<LeftLock>,
    /// Locks that were held and of which too few nodes told in time what became of them, and those
    /// whose [`downgrade`](crate::LockGuard::downgrade) has neither ended nor been dropped.
    pub unknown: usize,
    /// Deletions that the nodes have not confirmed, each node's counted by itself: they were sent
    /// and not answered, or wait until the node is connected again. A key that is left because of
    /// that ends with its TTL.
    pub owed: usize,
    /// Each node: [`Granted`](Outcome::Granted) where everything that was ever sent on its present
    /// connections has been executed.
    pub nodes: Vec<NodeReport>,
}

impl Shutdown {
    /// Whether nothing is owed: every node has confirmed every deletion, of these locks and of all
    /// earlier ones, and holds nothing but what was to be left.
    ///
    /// Futures that acquire must have ended by then, or have been dropped: one that a node has
    /// granted, and that is neither polled nor dropped, still has its keys.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unknown == 0 && self.owed == 0
    }
}

/// A lock that was left behind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LeftLock {
    /// The key, as it was asked for, without the locker's prefix; of a lock of several keys all of
    /// them, with commas between.
    pub key: Vec<u8>,
    /// Each of its keys.
    pub keys: Vec<Vec<u8>>,
    /// What it takes to [`adopt`](crate::Locker::adopt) the lock, if it is not one of several keys.
    pub token: OwnerToken,
}

/// What a shutdown does with the locks that are held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Release,
    Leave,
}

/// The pause between two looks at what is still under way: short beside a reconnection.
const SETTLING: Duration = Duration::from_millis(10);

/// Ends the locker's work within `timeout`. See [`Locker::shutdown`](crate::Locker::shutdown).
pub(crate) async fn shut_down(
    leases: &Leases,
    fate: Fate,
    timeout: Duration,
) -> Result<Shutdown, Error> {
    let context = &*leases.context;
    let clock = context.nodes.clock();
    let mut timer = context.nodes.sleep_until(clock.now().plus(timeout))?;
    context.close();
    hand_on::release_untaken(context);
    let (releases, mut found) = take_all(leases, fate);
    // Behind everything that was ever sent.
    let connections = context.options.link.connections as u64;
    let ping = |affinity| {
        let rule = context.nodes.rule_of_all();
        context.ask(&[b"PING"], ReplyKind::Any, affinity, NodeMask::ALL, rule)
    };
    let pings = (0..connections).map(ping).collect::<Result<Vec<_>, _>>()?;
    let downgrading = || context.downgrading.load(Ordering::SeqCst);
    let mut settled = pin!(async {
        for release in &releases {
            poll_fn(|cx| release.election.poll_verdict(cx)).await;
        }
        for ping in &pings {
            poll_fn(|cx| ping.poll_verdict(cx)).await;
        }
        // A node that hangs or is away has answered nothing, and an undo may be pending there. No
        // other process will send it.
        while !context.nodes.is_settled() || downgrading() > 0 {
            // The runtime of the driver may have ended meanwhile, or its task. Where no other one
            // can be started now, it is tried again.
            let _ = context.nodes.ensure_driver();
            if let Ok(pause) = context.nodes.sleep_until(clock.now().plus(SETTLING)) {
                pause.await;
            }
        }
    });
    poll_fn(|cx| match settled.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => Pin::new(&mut timer).poll(cx),
    })
    .await;
    for release in &releases {
        match release.found() {
            Some(release) if release.is_released() => found.released += 1,
            Some(_) => found.lost += 1,
            None => found.unknown += 1,
        }
    }
    found.unknown += downgrading();
    found.owed = context.nodes.owed();
    found.nodes = worst_of(pings.iter().map(Election::report));
    Ok(found)
}

/// Each node's report, of its connection that did worst.
fn worst_of(reports: impl Iterator<Item = Vec<NodeReport>>) -> Vec<NodeReport> {
    let worse = |worst: NodeReport, next: NodeReport| match worst.outcome {
        Outcome::Granted => next,
        _ => worst,
    };
    let both = |worst: Vec<_>, next: Vec<_>| {
        worst.into_iter().zip(next).map(|(worst, next)| worse(worst, next)).collect()
    };
    reports.reduce(both).unwrap_or_default()
}

/// Takes the locks from their guards, which find them lost.
fn take_all(leases: &Leases, fate: Fate) -> (Vec<Releasing>, Shutdown) {
    let context = &*leases.context;
    let mut found =
        Shutdown { released: 0, lost: 0, left: Vec::new(), unknown: 0, owed: 0, nodes: Vec::new() };
    let (mut releases, mut lost, mut turns) = (Vec::new(), Vec::new(), Vec::new());
    let now = context.nodes.clock().now();
    leases.close_all(|hold| {
        let untold = hold.take_loss(); // told here
        let is_delayed = hold.has_expired_to_delay();
        // What an earlier shutdown released or left stays so.
        let Some(claim) = hold.claim.as_mut().filter(|claim| !claim.has_ended()) else { return };
        turns.extend(claim.take_turn()); // passed on below: that wakes tasks
        match fate {
            // It is still being taken over; who asked for that finds the locker closed.
            _ if !claim.was_owned() => claim.let_go(),
            Fate::Leave => {
                let token = claim.leave();
                let (key, keys) = (claim.resource.given().to_vec(), claim.resource.given_each());
                found.left.push(LeftLock { key, keys, token });
            }
            Fate::Release if is_delayed => {
                drop(claim.leave());
                found.lost += 1;
            }
            Fate::Release => match claim.release() {
                Ok(release) => releases.push(release),
                Err(_) => found.unknown += 1, // its guard's drop tells the nodes
            },
        }
        if untold.is_some() {
            let what = What::Lost { reason: Loss::Closed, stalled: None };
            lost.extend(hold.news(context, now, what));
        }
    });
    turns.into_iter().for_each(|turn| context.turns().pass(turn));
    lost.into_iter().for_each(|news| news.tell(context));
    (releases, found)
}
