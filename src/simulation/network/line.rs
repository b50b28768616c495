//! A connection: what is under way on it, and its two ends.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use tokio::io::ReadBuf;

use crate::link::memory;
use crate::testing::store::SessionId;
use crate::testing::wire::Requests;

/// The way from a machine to a node, or back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::simulation) enum Way {
    Up,
    Down,
}

/// What goes over a connection.
#[derive(Clone, Debug)]
pub(in crate::simulation) enum Parcel {
    Bytes(Vec<u8>),
    End,
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
pub(in crate::simulation) struct Line {
    pub(in crate::simulation) machine: usize,
    pub(in crate::simulation) node: usize,
    /// As the node knows it, while it does.
    pub(in crate::simulation) session: Option<SessionId>,
    /// What the node has read of it that is no whole command yet.
    pub(in crate::simulation) requests: Requests,
    pub(super) place: usize,
    /// The client's end.
    pub(super) reader: Option<memory::Reader>,
    pub(super) writer: Option<memory::Writer>,
    pub(super) up: Lane,
    pub(super) down: Lane,
}

impl Line {
    /// One from a machine in this place to a node; these are the client's end.
    pub(super) fn new(
        (machine, place): (usize, usize),
        node: usize,
        (reader, writer): (memory::Reader, memory::Writer),
    ) -> Self {
        Self {
            machine,
            node,
            session: None,
            requests: Requests::new(),
            place,
            reader: Some(reader),
            writer: Some(writer),
            up: Lane::default(),
            down: Lane::default(),
        }
    }

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

    /// Nothing comes to the client any more.
    pub(super) fn go_silent(&mut self) {
        self.down.clear();
        self.writer = None;
    }

    /// Whether nothing can happen on it any more.
    pub(super) fn is_over(&self) -> bool {
        self.reader.is_none() && self.session.is_none() && self.up.is_empty()
    }
}
