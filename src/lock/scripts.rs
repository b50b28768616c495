//! Which scripts a connection brings to its server.

use super::all::ALL;
use super::mutex::MUTEX;
use super::queued::QUEUED;
use super::reading::READ;
use super::slotted::CHOOSING;
use crate::lease::{AcquireBy, Primitive};

/// What every server is told on connecting, so that a digest is enough: a guard that is dropped can
/// send nothing behind its release, and a slow node's answer may come behind the verdict, when the
/// program has ended. Of the locks that few have, the releases alone: what acquires and extends
/// them is waited for, and is brought when it is missing.
pub(super) fn scripts(is_volatile: bool) -> Vec<&'static str> {
    let mut scripts = Vec::new();
    for Primitive { acquire, vote, extend, release, .. } in [&MUTEX, &ALL, &QUEUED] {
        let acquire = match acquire {
            _ if is_volatile => Some(vote.text),
            AcquireBy::Script(acquire, _) => Some(acquire.text),
            AcquireBy::SetIfAbsent => None,
        };
        let used = [release.text, extend.text].into_iter().chain(acquire);
        used.for_each(|script| {
            if !scripts.contains(&script) {
                scripts.push(script);
            }
        });
    }
    scripts.extend([&READ, &CHOOSING].map(|seldom| seldom.release.text));
    scripts
}
