//! TLS, seen from outside: whom it trusts, what it says when it does not, and that a lock over it
//! keeps what a lock promises.
//!
//! | file | asks |
//! |---|---|
//! | `verdicts` | whatever is wrong with a certificate, a peer or a port: a line, and its cure |
//! | `midway` | what can happen to a connection that stands |
//! | `order` | locks over TLS: undone behind their command, from any thread, under a full socket |
//! | `options` | mistakes that are told before anything is sent |
//!
//! Servers that were not built with TLS get it from `support::Terminator`, which can also do what
//! no server of good will does.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests run callers as tasks, and fail on the spot"
)]

mod midway;
mod options;
mod order;
mod verdicts;

use std::time::Duration;

use quorlock::{
    Locker, LockerBuilder, Tls,
    report::{Fault, Outcome},
};
use support::{Identity, tls};

/// Options that trust the tests' authority, and no other.
fn trusting() -> Tls {
    Tls::new().ca_pem(tls::authority().pem())
}

/// With this certificate of our own.
fn showing(identity: &Identity) -> Tls {
    trusting().client_cert_pem(&identity.certificate, &identity.key)
}

fn builder(url: &str, tls: Tls) -> LockerBuilder {
    Locker::single(url).unwrap().tls(tls)
}

/// Why the only node of a locker cannot be asked.
fn fault(error: &quorlock::Error) -> Option<Fault> {
    match &error.nodes() {
        [node] => match &node.outcome {
            Outcome::Down { fault, .. } => Some(fault.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Acquires and releases.
async fn cycle(locker: &Locker) -> Result<(), quorlock::Error> {
    let guard = locker.lock("k").wait(Duration::from_secs(5)).await?;
    guard.release().await.map(drop)
}
