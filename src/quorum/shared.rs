//! What callers and the driver share: the nodes, the slots, and what is known of the driver.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::mismatches::Mismatches;
use super::slots::Slots;
use super::timer::DriverTimer;
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::link::{Dial, HandshakeConfig};
use crate::node::Node;
use crate::observe::Observers;
use crate::options::LinkOptions;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::{AtomicWaker, Mutex};

/// What callers and the driver share.
pub(super) struct Shared {
    pub(super) nodes: Box<[Node]>,
    pub(super) slots: Slots,
    pub(super) mismatches: Mismatches,
    pub(super) counted: bool,
    pub(super) options: LinkOptions,
    pub(super) clock: Clock,
    pub(super) entropy: Arc<Entropy>,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) handshake: HandshakeConfig,
    pub(super) observers: Observers,
    pub(super) driver: DriverState,
    /// A node's state changed; for tasks that wait for the nodes to be ready.
    pub(super) changed: Notify,
    /// The longest time, in nanoseconds, for which an undo may matter; the links know it.
    pub(super) undo_horizon: AtomicU64,
}

/// What is known of the driver from outside.
pub(super) struct DriverState {
    pub(super) waker: Arc<AtomicWaker>,
    /// How often the driver has run.
    pub(super) passes: AtomicU64,
    /// Guards starting.
    pub(super) starting: Mutex<()>,
    /// The runtime on which the last driver was started.
    pub(super) home: Mutex<Option<Handle>>,
    /// How many drivers have been started.
    pub(super) generation: AtomicU64,
    pub(super) running: AtomicBool,
    /// The nodes are no longer used.
    pub(super) closing: AtomicBool,
    pub(super) timer: DriverTimer,
}
