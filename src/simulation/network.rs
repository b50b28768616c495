//! What carries bytes between the clients' machines and the nodes: late, in order, or not at all.
//!
//! A *path* is a machine and a node, with what befalls all bytes between the two: how long they are
//! under way, and until when each direction loses everything. What is lost is sent again, so it
//! comes when the path is whole again: packets are lost, bytes are late. A *line* is a connection
//! on a path. Each direction of a line keeps its order; lines do not wait for each other, so the
//! bytes of one that was closed may come behind those of the next.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use tokio::io::ReadBuf;

use super::chance::Chance;
use super::node::Parcel;
use crate::link::memory;
use crate::testing::store::SessionId;
use crate::testing::wire::Requests;

/// The way from a machine to a node, or back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Up,
    Down,
}

/// What befalls one direction of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    /// Bytes are under way so long at least.
    pub(super) base: u64,
    /// Nothing arrives before.
    pub(super) lost_until: u64,
    /// Until then bytes are under way for longer, by up to so much.
    pub(super) slow: (u64, u64),
}

impl Route {
    /// When something that is sent now arrives, if nothing befalls it.
    pub(super) fn arrival(&self, now: u64, latency: u64, chance: &mut Chance) -> u64 {
        let (until, by) = self.slow;
        let slower = if now < until { chance.between(0, by) } else { 0 };
        now + self.base + chance.between(0, latency) + slower
    }
}

/// A path: up and down.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    pub(super) up: Route,
    pub(super) down: Route,
}

impl Path {
    /// A way there and a way back, of which either may be the longer one.
    pub(super) fn new(latency: u64, chance: &mut Chance) -> Self {
        let mut route = || Route { base: chance.between(0, latency), ..Route::default() };
        Self { up: route(), down: route() }
    }

    /// Nothing befalls it any more.
    pub(super) fn heal(&mut self) {
        for route in [&mut self.up, &mut self.down] {
            (route.lost_until, route.slow) = (0, (0, 0));
        }
    }

    pub(super) fn route(&mut self, way: Way) -> &mut Route {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }
}

/// One direction of a line: what is under way, and when it arrives.
#[derive(Debug, Default)]
pub(super) struct Lane {
    parcels: VecDeque<(u64, Parcel)>,
    last: u64,
}

impl Lane {
    /// Sends something behind all that is under way. Returns when it arrives.
    pub(super) fn send(&mut self, parcel: Parcel, arrival: u64) -> u64 {
        self.last = self.last.max(arrival);
        self.parcels.push_back((self.last, parcel));
        self.last
    }

    /// Puts back what has not found room.
    pub(super) fn put_back(&mut self, parcel: Parcel, at: u64) {
        self.parcels.push_front((at, parcel));
    }

    /// What has arrived by now.
    pub(super) fn receive(&mut self, now: u64) -> Option<Parcel> {
        let (at, _) = self.parcels.front()?;
        if *at > now { None } else { self.parcels.pop_front().map(|(_, parcel)| parcel) }
    }

    /// What is under way never arrives.
    pub(super) fn clear(&mut self) {
        self.parcels.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }
}

/// A connection.
pub(super) struct Line {
    pub(super) machine: usize,
    pub(super) node: usize,
    /// As the node knows it, while it does.
    pub(super) session: Option<SessionId>,
    /// The client's end.
    pub(super) reader: Option<memory::Reader>,
    pub(super) writer: Option<memory::Writer>,
    pub(super) up: Lane,
    pub(super) down: Lane,
    pub(super) requests: Requests,
}

impl Line {
    pub(super) fn lane(&mut self, way: Way) -> &mut Lane {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }

    /// What the client has written since it was asked last.
    pub(super) fn written(&mut self, cx: &mut Context<'_>, staging: &mut [u8]) -> Option<Parcel> {
        let mut buffer = ReadBuf::new(staging);
        match self.reader.as_mut()?.poll_read(cx, &mut buffer) {
            Poll::Pending => None,
            Poll::Ready(Ok(count)) if count > 0 => Some(Parcel::Bytes(buffer.filled().to_vec())),
            Poll::Ready(_) => {
                self.reader = None;
                Some(Parcel::End)
            }
        }
    }

    /// Whether nothing can happen on it any more.
    pub(super) fn is_over(&self) -> bool {
        self.reader.is_none() && self.session.is_none() && self.up.is_empty()
    }
}
