//! Many nodes, one verdict.
//!
//! [`NodeSet`] is a locker's nodes with everything that its callers and its driver share: the
//! operation [`slots`], and the driver's waker. Callers send through [`fanout`] and wait for an
//! [`Election`]; the [`driver`], one task for all nodes, reads the replies and casts the votes;
//! [`decided`] wakes the callers, and [`handover`] keeps one that computes from holding the driver
//! up. [`tally`] says when votes make a verdict, [`ballot`] counts them without a lock, and
//! [`admission`] says which servers may vote.
//!
//! This room votes by the kinds of replies. What was asked, and what a grant is good for, is not
//! its business.

mod admission;
mod ballot;
mod decided;
mod driver;
mod fanout;
mod handover;
mod mask;
mod mismatches;
mod node_set;
mod ready_flag;
mod shared;
mod sleep;
mod slots;
mod tally;
#[cfg(test)]
#[cfg(quorlock_models)]
mod tests;
mod timer;

pub(crate) use fanout::{Command, Election, Found};
pub(crate) use mask::NodeMask;
pub(crate) use node_set::{NodeSet, Parts};
pub(crate) use tally::{Patience, Rule, Verdict};
