//! Leases: what is asked of the nodes, and what a grant is good for.
//!
//! This room lies between the quorum and the face. An acquisition ([`acquire`]) sends a
//! [`claim::Claim`], which owns a key and its random value from then on, and undoes itself when it
//! is dropped; [`validity`] says until when a lock is held. A held lock rests in its place among
//! the [`leases`], where the [`keeper`] extends it (an [`extension`]) and finds its loss; a
//! [`hold_ref`] is how a guard names it. Around these: [`takeover`] (locks of others, by their
//! [`token`]s), [`mod@revoke`] and [`revoked_hold`] (a holder that is asked to let go),
//! [`downgrade`] (a write lock that becomes a read lock), [`shutdown`], [`durability`] (nodes that
//! may forget), [`fence`] (numbers that rise with every holder). The wire is written in
//! [`command`].
//!
//! Those that wait for a lock stand in two orders. The tasks of one locker stand in a *line* for
//! each key ([`turns`], [`in_line`]): one at a time asks the nodes, and the one that is done with
//! the lock may hand it on without them ([`hand_on`]). Lockers, in whatever process, stand in a
//! *queue* that one node keeps for the key ([`queue_node`], [`queue`]): the release hands the lock
//! to the first and wakes that one alone ([`notices`]). When one asks next there is its
//! [`queue_plan`]; a writer that waits for readers shuts the lock's [`gate`] to others. Slots of a
//! key, of which that node chooses free ones, are [`slotted`]; where it cannot, all nodes are
//! looked at ([`search`]). Where neither is to be had, there is the [`pause`]. Where the order is
//! to survive the loss of a node, every node keeps a queue, of tickets ([`ticketed`]). A key that
//! was contended a moment ago ([`contention`]) is asked for in its queue at once. What a lock is
//! about, a key or several or slots, is its [`resource`], which also has the
//! number of its [`class`].
//!
//! ```text
//!  AcquireSpec ──▶ Acquiring: Claim ──won, time left──▶ Hold ──end──▶ Claim ──release──▶ Release
//!                     │ lost, late, dropped               ▲ extended, or lost: the keeper
//!                     ▼
//!              undone on every node that may hold the key
//! ```

mod acquire;
mod acquire_spec;
#[cfg(feature = "tokio-util")]
pub(crate) mod alarm;
mod claim;
mod class;
pub(crate) mod command;
mod contention;
mod context;
mod counters;
mod downgrade;
mod durability;
mod extension;
mod fence;
mod fencing;
mod gate;
mod hand_on;
mod hold;
mod hold_id;
mod hold_ref;
mod in_line;
pub(crate) mod initialise;
pub(crate) mod inspect;
mod keeper;
mod keeping;
mod key;
mod leases;
pub(crate) mod name_set;
mod news;
mod notices;
mod pause;
mod primitive;
mod queue;
mod queue_node;
mod queue_plan;
mod release;
mod resource;
mod retry;
pub(crate) mod revoke;
mod revoked;
mod revoked_hold;
mod round;
mod search;
mod shutdown;
mod slotted;
pub(crate) mod takeover;
#[cfg(test)]
mod tests;
mod ticketed;
mod token;
mod turns;
mod validity;
pub(crate) mod watch;
mod wire;

pub(crate) use acquire::Acquiring;
pub(crate) use acquire_spec::AcquireSpec;
pub(crate) use claim::Claim;
pub(crate) use command::{FENCE, FENCE_VOTE};
pub(crate) use context::LeaseContext;
pub(crate) use downgrade::{Downgrading, downgrade};
pub(crate) use durability::Epoch;
#[cfg(test)]
pub(crate) use durability::Volatile;
pub(crate) use hand_on::hand_on;
pub(crate) use hold::Ended;
pub(crate) use hold_ref::HoldRef;
pub(crate) use key::Key;
pub(crate) use leases::Leases;
pub(crate) use notices::Notices;
#[cfg(test)]
pub(crate) use primitive::ScriptForm;
pub(crate) use primitive::{AcquireBy, Adopt, Holders, Primitive, Script, SlotKinds, script};
pub use release::Release;
pub(crate) use release::Releasing;
pub(crate) use resource::Resource;
pub use revoke::Revocation;
pub(crate) use shutdown::{Fate, shut_down};
pub use shutdown::{LeftLock, Shutdown};
pub(crate) use token::Kind as TokenKind;
pub use token::OwnerToken;
#[cfg(test)]
pub(crate) use wire::Value;
