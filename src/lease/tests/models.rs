//! What the models of this room use: a locker whose one node never answers by itself.

use std::future::pending;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use super::super::claim::Claim;
use super::super::context::LeaseContext;
use super::super::key::Key;
use super::super::leases::Leases;
use super::super::notices::Notices;
use super::super::primitive::{AcquireBy, Adopt, Holders, Primitive, Script};
use super::super::resource::Resource;
use super::super::token::Kind as TokenKind;
use crate::clock::{Driven, Reading};
use crate::entropy::Entropy;
use crate::link::{Dial, Dialing, HandshakeConfig, ReplyKind, UndoScript};
use crate::options::{Address, Options};
use crate::quorum::{NodeSet, Parts};

const NO_SCRIPT: Script = Script { text: "", by_digest: "" };

/// A lock that is acquired by `SET NX PX`; no node ever runs its scripts.
static PLAIN: Primitive = Primitive {
    acquire: AcquireBy::SetIfAbsent,
    vote: NO_SCRIPT,
    vote_reply: ReplyKind::Vote,
    tells_place: false,
    extend: NO_SCRIPT,
    release: NO_SCRIPT,
    undo: UndoScript { text: "", compares_and_deletes: false, for_first_key: None },
    holders: Holders::One,
    queued: None,
    without_tickets: None,
    adopt: Adopt::Refused { token: TokenKind::Held, why: "not in a model" },
};

/// A network on which no connection is ever made.
struct Unreachable;

impl Dial for Unreachable {
    fn dial(&self, _: &Address) -> Dialing {
        Box::pin(pending())
    }
}

/// A runtime that lends its timers, and runs no task.
pub(super) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// The leases of a locker on one node, and what drives its clock.
pub(super) fn leases() -> (Arc<Leases>, Arc<Driven>) {
    let options = Options::default();
    let (clock, driven) = Driven::clock();
    let set = NodeSet::new(Parts {
        addresses: vec![Address::parse("redis://node").unwrap()],
        counted: false,
        options: options.link,
        clock,
        entropy: Arc::new(Entropy::from_seed(1)),
        dial: Arc::new(Unreachable),
        handshake: HandshakeConfig::default(),
        observers: options.observers.clone(),
    });
    let notices = Notices::new("model");
    (Leases::new(LeaseContext::new(set, options, "model".into(), notices)), driven)
}

/// What an acquisition has sent; the node has not answered.
pub(super) fn claim(leases: &Leases) -> (Claim, Reading) {
    let context = &leases.context;
    let at = context.nodes.clock().read();
    let key = Key::new(b"", b"k").unwrap();
    let resource = Resource::one(&PLAIN, key);
    (Claim::ask(context, resource, None, context.options.ttl, at.now).unwrap(), at)
}

/// Checks every interleaving with at most four preemptions: without a bound it takes minutes.
pub(super) fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    (builder.preemption_bound, builder.max_branches) = (Some(4), 10_000);
    builder.check(check);
}
