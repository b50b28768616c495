//! An observer that passes events to the `tracing` crate.

use std::fmt;

use ::tracing::{Level, event};

use super::{Event, Observer};
use crate::fence::Fence;
use crate::report::{NodeReport, Outcome, listed};

/// Hands each [`Event`] to the `tracing` crate; needs the feature `tracing`.
///
/// ```no_run
/// # fn example() -> Result<(), quorlock::Error> {
/// use std::sync::Arc;
/// use quorlock::{Locker, TracingObserver};
///
/// let builder = Locker::single("redis://localhost")?;
/// let locker = builder.observer(Arc::new(TracingObserver)).build()?;
/// # Ok(()) }
/// ```
///
/// The target is `quorlock`. Fields have OpenTelemetry's names where it has one
/// (`db.system.name`, `db.operation.name`, `error.type`, `server.address`, `server.port`); those
/// that end in `_s` are seconds.
///
/// | level | what |
/// |---|---|
/// | `ERROR` | lost |
/// | `WARN` | an extension failed, held too long, a node is down, evicts or forgets |
/// | `INFO` | gave up, a node is up again |
/// | `DEBUG` | waiting, retrying, acquired, extended, released |
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingObserver;

impl Observer for TracingObserver {
    fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::Acquired { .. }
            | Event::Waiting { .. }
            | Event::Retrying { .. }
            | Event::GaveUp { .. } => acquiring(event),
            Event::NodeDown { .. }
            | Event::NodeUp { .. }
            | Event::Evicts { .. }
            | Event::Forgets { .. }
            | Event::NativeRejected { .. } => {
                of_a_node(event);
            }
            Event::Extended { .. }
            | Event::ExtensionFailed { .. }
            | Event::Lost { .. }
            | Event::Released { .. }
            | Event::HeldTooLong { .. }
            | Event::Revoked { .. } => holding(event),
        }
    }
}

/// One event about a lock, with the fields that all of them have.
macro_rules! of_a_lock {
    ($level:ident, $words:literal, $operation:literal, $lock:expr, {$($more:tt)*}) => {
        event!(
            target: "quorlock",
            Level::$level,
            {
                db.system.name = "redis",
                db.operation.name = $operation,
                key = %Key($lock.key),
                owner = $lock.owner,
                class = class($lock.class),
                $($more)*
            },
            $words
        )
    };
}

/// One event about a node, with the fields that all of them have.
macro_rules! of_a_node {
    ($level:ident, $words:literal, $event:expr, $node:expr, {$($more:tt)*}) => {{
        let (host, port) = address($node);
        event!(
            target: "quorlock",
            Level::$level,
            {
                db.system.name = "redis",
                server.address = host,
                server.port = port,
                class = class($event.class()),
                $($more)*
            },
            $words
        )
    }};
}

fn acquiring(event: &Event<'_>) {
    match event {
        Event::Acquired { lock, tries, waited, fence, votes } => {
            of_a_lock!(DEBUG, "lock acquired", "acquire", lock, {
                tries = *tries,
                waited_s = waited.as_secs_f64(),
                fence = fence.map(Fence::number),
                granted = granted(votes),
                nodes = votes.len(),
            });
        }
        Event::Waiting { lock, holder, waited } => {
            let name = holder.and_then(|holder| holder.owner.as_deref());
            of_a_lock!(DEBUG, "waiting for a lock", "acquire", lock, {
                waited_s = waited.as_secs_f64(),
                holder = name,
                holder_is_own = holder.map(|holder| holder.is_own),
                holder_is_shared = holder.map(|holder| holder.is_shared),
                holder_remaining_s = holder.map(|holder| holder.remaining.as_secs_f64()),
            });
        }
        Event::Retrying { lock, tries, pause, error } => {
            of_a_lock!(DEBUG, "trying for a lock again", "acquire", lock, {
                tries = *tries,
                pause_s = pause.as_secs_f64(),
                error.type = error.kind().as_str(),
                reason = %error,
            });
        }
        Event::GaveUp { lock, tries, waited, error } => {
            of_a_lock!(INFO, "lock not acquired", "acquire", lock, {
                tries = *tries,
                waited_s = waited.as_secs_f64(),
                error.type = error.kind().as_str(),
                reason = %error,
            });
        }
        _ => {}
    }
}

fn holding(event: &Event<'_>) {
    match event {
        Event::Extended { lock, held, remaining, votes } => {
            of_a_lock!(DEBUG, "lock extended", "extend", lock, {
                held_s = held.as_secs_f64(),
                remaining_s = remaining.as_secs_f64(),
                granted = granted(votes),
                nodes = votes.len(),
            });
        }
        Event::ExtensionFailed { lock, held, remaining, votes } => {
            of_a_lock!(WARN, "lock not extended", "extend", lock, {
                held_s = held.as_secs_f64(),
                remaining_s = remaining.as_secs_f64(),
                granted = granted(votes),
                nodes = votes.len(),
                reason = %missing(votes),
            });
        }
        Event::Lost { lock, held, reason, stalled } => {
            of_a_lock!(ERROR, "lock lost", "hold", lock, {
                held_s = held.as_secs_f64(),
                reason = %reason,
                stalled_s = stalled.map(|stalled| stalled.as_secs_f64()),
            });
        }
        Event::Released { lock, held } => {
            of_a_lock!(DEBUG, "lock released", "release", lock, {
                held_s = held.as_secs_f64(),
            });
        }
        Event::HeldTooLong { lock, held, remaining } => {
            of_a_lock!(WARN, "lock held for too long", "hold", lock, {
                held_s = held.as_secs_f64(),
                remaining_s = remaining.as_secs_f64(),
            });
        }
        Event::Revoked { lock, held, remaining } => {
            of_a_lock!(INFO, "lock revoked", "hold", lock, {
                held_s = held.as_secs_f64(),
                remaining_s = remaining.as_secs_f64(),
            });
        }
        _ => {}
    }
}

fn of_a_node(event: &Event<'_>) {
    match event {
        Event::NodeDown { node, fault, .. } => {
            of_a_node!(WARN, "node down", event, node, { reason = %fault });
        }
        Event::Evicts { node, policy, .. } => {
            of_a_node!(WARN, "node deletes keys when its memory is full", event, node, {
                policy = *policy
            });
        }
        Event::Forgets { node, persistence, .. } => {
            of_a_node!(WARN, "node may forget its locks when it stops", event, node, {
                persistence = %persistence
            });
        }
        Event::NativeRejected { node, error, .. } => {
            of_a_node!(WARN, "node rejects the native delete", event, node, { error = *error });
        }
        Event::NodeUp { node, .. } => {
            of_a_node!(INFO, "node up again", event, node, {});
        }
        _ => {}
    }
}

/// A node's host and port, or the path of its socket.
fn address(node: &str) -> (&str, Option<u16>) {
    let split = node.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    split.map_or((node, None), |(host, port)| (host, Some(port)))
}

fn granted(votes: &[NodeReport]) -> usize {
    votes.iter().filter(|vote| vote.outcome == Outcome::Granted).count()
}

/// No field for an empty class.
fn class(class: &'static str) -> Option<&'static str> {
    Some(class).filter(|class| !class.is_empty())
}

/// A key with its special bytes escaped, so that it fits one line.
struct Key<'a>(&'a [u8]);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) => text.escape_debug().fmt(f),
            Err(_) => self.0.escape_ascii().fmt(f),
        }
    }
}

/// The nodes that did not do what was asked, each with its reason.
fn missing(votes: &[NodeReport]) -> String {
    listed(votes.iter().filter(|vote| vote.outcome != Outcome::Granted))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use ::tracing::field::{Field, Visit};
    use ::tracing::span::{Attributes, Id, Record};
    use ::tracing::{Metadata, Subscriber, subscriber};

    use super::*;
    use crate::error::{Error, Kind};
    use crate::observe::{Loss, Subject};
    use crate::report::{Fault, Holder, Persistence};

    /// Keeps each event as its level, and its fields as one line.
    #[derive(Clone, Default)]
    struct Collector(Arc<Mutex<Vec<(Level, String)>>>);

    impl Subscriber for Collector {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &::tracing::Event<'_>) {
            assert_eq!(event.metadata().target(), "quorlock");
            let mut line = Line(String::new());
            event.record(&mut line);
            self.0.lock().unwrap().push((*event.metadata().level(), line.0));
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    struct Line(String);

    impl Visit for Line {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            self.0.push_str(&format!("{}={value:?} ", field.name()));
        }
    }

    /// What one event becomes.
    fn told(event: &Event<'_>) -> (Level, String) {
        let collector = Collector::default();
        subscriber::with_default(collector.clone(), || TracingObserver.on_event(event));
        let mut told = std::mem::take(&mut *collector.0.lock().unwrap());
        assert_eq!(told.len(), 1, "one event makes one: {told:?}");
        told.remove(0)
    }

    /// The event has this level, this message, and these fields behind those that all have.
    fn check(event: &Event<'_>, level: Level, words: &str, operation: &str, more: &str) {
        let common = format!(
            "message={words} db.system.name=\"redis\" db.operation.name=\"{operation}\" \
             key=a\\nb owner=\"me\" class=\"orders\" "
        );
        assert_eq!(told(event), (level, format!("{common}{more}")));
    }

    const S: Duration = Duration::from_secs(1);

    const LOCK: Subject<'static> = Subject::new(b"a\nb", "me", "orders");
    const CLASS: &str = "orders";

    fn vote(outcome: Outcome) -> NodeReport {
        NodeReport { node: "a:6379".into(), outcome, rtt: None }
    }

    #[test]
    fn each_event_of_acquiring_arrives_with_its_level_and_its_fields() {
        let (lock, waited) = (LOCK, S);
        let holder = Holder {
            owner: Some("you".into()),
            remaining: 2 * S,
            is_shared: false,
            is_own: false,
            is_revoked: false,
        };
        let own = Holder { owner: None, is_own: true, ..holder.clone() };
        let error = &Error::new(Kind::Contended { holder: None }).with_key(b"k");
        let why = "error.type=\"contended\" reason=lock \"k\" is held by another client ";
        let votes = vec![vote(Outcome::Granted), vote(Outcome::Pending)];
        for (fence, told) in [(None, ""), (Fence::from_number(42), "fence=42 ")] {
            let votes = votes.clone();
            let event = Event::Acquired { lock, tries: 2, waited, fence, votes };
            let more = format!("tries=2 waited_s=1.0 {told}granted=1 nodes=2 ");
            check(&event, Level::DEBUG, "lock acquired", "acquire", &more);
        }
        let event = Event::Waiting { lock, holder: Some(&holder), waited };
        let more = "waited_s=1.0 holder=\"you\" holder_is_own=false holder_is_shared=false \
                    holder_remaining_s=2.0 ";
        check(&event, Level::DEBUG, "waiting for a lock", "acquire", more);
        let event = Event::Waiting { lock, holder: Some(&own), waited };
        let more = "waited_s=1.0 holder_is_own=true holder_is_shared=false holder_remaining_s=2.0 ";
        check(&event, Level::DEBUG, "waiting for a lock", "acquire", more);
        let event = Event::Waiting { lock, holder: None, waited };
        check(&event, Level::DEBUG, "waiting for a lock", "acquire", "waited_s=1.0 ");
        let event = Event::Retrying { lock, tries: 1, pause: S / 2, error };
        let more = format!("tries=1 pause_s=0.5 {why}");
        check(&event, Level::DEBUG, "trying for a lock again", "acquire", &more);
        let event = Event::GaveUp { lock, tries: 3, waited, error };
        let more = format!("tries=3 waited_s=1.0 {why}");
        check(&event, Level::INFO, "lock not acquired", "acquire", &more);
    }

    #[test]
    fn each_event_of_a_held_lock_arrives_with_its_level_and_its_fields() {
        let (lock, held, remaining) = (LOCK, S, 2 * S);
        let times = "held_s=1.0 remaining_s=2.0 ";
        let votes = vec![vote(Outcome::Granted)];
        let event = Event::Extended { lock, held, remaining, votes };
        let more = format!("{times}granted=1 nodes=1 ");
        check(&event, Level::DEBUG, "lock extended", "extend", &more);
        let votes = vec![vote(Outcome::Suspect), vote(Outcome::Granted), vote(Outcome::NotAsked)];
        let event = Event::ExtensionFailed { lock, held, remaining, votes };
        let more = format!(
            "{times}granted=1 nodes=3 reason=a:6379 has not answered an earlier command yet, \
             a:6379 was not asked "
        );
        check(&event, Level::WARN, "lock not extended", "extend", &more);
        let event = Event::HeldTooLong { lock, held, remaining };
        check(&event, Level::WARN, "lock held for too long", "hold", times);
        let event = Event::Revoked { lock, held, remaining };
        check(&event, Level::INFO, "lock revoked", "hold", times);
        let event = Event::Released { lock, held };
        check(&event, Level::DEBUG, "lock released", "release", "held_s=1.0 ");
        let (reason, stalled) = (Loss::Expired, Some(3 * S));
        let event = Event::Lost { lock, held, reason, stalled };
        let more = "held_s=1.0 reason=its time ran out stalled_s=3.0 ";
        check(&event, Level::ERROR, "lock lost", "hold", more);
    }

    #[test]
    fn each_event_of_a_node_arrives_with_its_level_and_its_address() {
        let fault = &Fault::Refused;
        let (level, line) = told(&Event::NodeDown { node: "[::1]:6379", class: CLASS, fault });
        let words = "message=node down db.system.name=\"redis\" server.address=\"[::1]\" \
                     server.port=6379 class=\"orders\" reason=refused the connection ";
        assert_eq!((level, &*line), (Level::WARN, words));
        let evicts = Event::Evicts { node: "a:6379", class: "", policy: "allkeys-lru" };
        let (level, line) = told(&evicts);
        assert_eq!(level, Level::WARN);
        assert!(line.contains("policy=\"allkeys-lru\""), "{line}");

        let persistence = &Persistence { appendonly: Some(false), ..Persistence::default() };
        let (level, line) = told(&Event::Forgets { node: "a:6379", class: "", persistence });
        assert_eq!(level, Level::WARN);
        assert!(line.contains("persistence=appendonly no"), "{line}");

        let error = "NOPERM no";
        let (level, line) = told(&Event::NativeRejected { node: "a:6379", class: "", error });
        assert_eq!(level, Level::WARN);
        assert!(line.contains("error=\"NOPERM no\""), "{line}");

        let (level, line) = told(&Event::NodeUp { node: "/run/redis.sock", class: "" });
        let words = "message=node up again db.system.name=\"redis\" \
                     server.address=\"/run/redis.sock\" ";
        assert_eq!((level, &*line), (Level::INFO, words));
    }

    #[test]
    fn keys_of_any_bytes_stay_in_one_line() {
        assert_eq!(Key("🐉\r\n".as_bytes()).to_string(), "🐉\\r\\n");
        assert_eq!(Key(b"\0\xff").to_string(), "\\x00\\xff");
    }
}
