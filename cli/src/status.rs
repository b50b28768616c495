//! `quorlock status`: who holds a key, node by node, and what the majority says.

use std::ffi::OsStr;
use std::time::Duration;

use quorlock::{
    Locker,
    report::{Fault, Holder, Inspection, KeyState, NodeInspection, Outcome},
};

use crate::args::StatusArgs;
use crate::exit::{Cause, Failure};
use crate::json::Object;
use crate::{nodes, output, reach, words};

/// How long a node may take to answer. Long, because an inspection delays no client.
const NODE_TIMEOUT: Duration = Duration::from_millis(500);

/// Shows every key; the exit code is that of the first whose holder is unknown.
pub(crate) async fn run(args: &StatusArgs) -> Result<u8, Failure> {
    let builder = nodes::locker(&args.nodes)?.node_timeout(NODE_TIMEOUT);
    let locker: Locker = nodes::build(builder)?;
    match reach::every_answer(&locker).await {
        // The table shows which nodes refused us, and why.
        Err(error) if !error.is_authentication() => return Err(error.into()),
        _ => {}
    }
    let mut untold = None;
    for key in &args.keys {
        let seen = locker.inspect(key.as_encoded_bytes()).await.map_err(Failure::of_options)?;
        let verdict = Verdict::of(&seen);
        let text = if args.json {
            json(key, &seen, &verdict).end() + "\n"
        } else {
            table(key, &seen, &verdict)
        };
        output::print(text).await?;
        untold = untold.or_else(|| verdict.cause());
    }
    // Programs that read JSON ask `ping`.
    if let (false, Some(warning)) = (args.json, words::forgets(&locker.health())) {
        output::say(format!("warning: {warning}"));
    }
    // The table has said why, node by node.
    Ok(untold.map_or(0, Cause::code))
}

/// What the nodes say together.
pub(crate) enum Verdict<'a> {
    Held(&'a Holder),
    Free,
    /// Too many nodes hold a value that no lock wrote, so that no lock can be acquired.
    Foreign(&'a str),
    /// A majority answered, and no holder has a majority: several clients hold some nodes each, or
    /// a release is under way.
    Split,
    /// Fewer than a majority answered, because of our rights or for other reasons.
    Untold {
        denied: bool,
    },
}

impl<'a> Verdict<'a> {
    pub(crate) fn of(seen: &'a Inspection) -> Self {
        let unknown = seen.nodes.iter().filter_map(|node| match &node.state {
            KeyState::Unknown(outcome) => Some(outcome),
            _ => None,
        });
        let denied = unknown.clone().filter(|outcome| is_denied(outcome)).count();
        if answered(seen) < seen.majority {
            return Self::Untold { denied: denied > seen.nodes.len() - seen.majority };
        }
        let mut foreign = seen.nodes.iter().filter_map(|node| match &node.state {
            KeyState::Foreign { what, .. } => Some(&**what),
            _ => None,
        });
        match (seen.holder(), foreign.next()) {
            (Some(holder), _) => Self::Held(holder),
            _ if seen.free() >= seen.majority => Self::Free,
            (None, Some(what)) if 1 + foreign.count() > seen.nodes.len() - seen.majority => {
                Self::Foreign(what)
            }
            _ => Self::Split,
        }
    }

    fn cause(&self) -> Option<Cause> {
        match self {
            Self::Untold { denied: true } => Some(Cause::Denied),
            Self::Untold { denied: false } => Some(Cause::Unavailable),
            _ => None,
        }
    }

    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Free => "free",
            Self::Foreign(_) => "foreign",
            Self::Split => "split",
            Self::Untold { .. } => "unknown",
        }
    }

    pub(crate) fn sentence(&self, seen: &Inspection) -> String {
        let told = format!(
            "{} of {} nodes answered, {} needed",
            answered(seen),
            seen.nodes.len(),
            seen.majority
        );
        match self {
            Self::Held(holder) => format!("{} ({told})", words::held(holder)),
            Self::Free => format!("free ({told})"),
            Self::Foreign(what) => format!("no lock: holds {what}; use another key or a prefix"),
            Self::Split => format!("no client holds a majority ({told})"),
            Self::Untold { .. } => format!("no quorum: {told}"),
        }
    }
}

fn answered(seen: &Inspection) -> usize {
    seen.nodes.iter().filter(|node| !matches!(node.state, KeyState::Unknown(_))).count()
}

/// Whether a node refused our user, password or rights.
pub(crate) fn is_denied(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Down { fault: Fault::Authentication { .. }, .. } => true,
        Outcome::Refused { error, .. } => {
            ["NOAUTH", "NOPERM", "WRONGPASS"].iter().any(|code| error.starts_with(code))
        }
        _ => false,
    }
}

/// A line for each node, and the majority's below.
fn table(key: &OsStr, seen: &Inspection, verdict: &Verdict<'_>) -> String {
    const MAJORITY: &str = "majority";
    let names = seen.nodes.iter().map(|node| node.node.chars().count());
    let width = names.max().unwrap_or(0).max(MAJORITY.len());
    let mut table = format!("{}\n", words::quoted(key));
    for NodeInspection { node, state, .. } in &seen.nodes {
        let state = match state {
            KeyState::Free => "free".into(),
            KeyState::Held(holder) => words::held(holder),
            KeyState::Foreign { what, .. } => format!("no lock: holds {what}"),
            KeyState::Unknown(outcome) => outcome.to_string(),
            _ => "in a state that is not known here".into(),
        };
        table.push_str(&format!("  {node:width$}  {state}\n"));
    }
    table.push_str(&format!("  {MAJORITY:width$}  {}\n", verdict.sentence(seen)));
    if let Some(fence) = seen.fence() {
        table.push_str(&format!("  {:width$}  {fence}\n", "fence"));
    }
    table
}

fn json(key: &OsStr, seen: &Inspection, verdict: &Verdict<'_>) -> Object {
    let nodes = seen.nodes.iter().map(|NodeInspection { node, state, .. }| {
        let object = Object::new().text("node", &**node);
        match state {
            KeyState::Free => object.text("state", "free"),
            KeyState::Held(holder) => held(object.text("state", "held"), holder),
            KeyState::Foreign { what, .. } => {
                object.text("state", "foreign").text("holds", &**what)
            }
            KeyState::Unknown(outcome) => {
                object.text("state", "unknown").text("fault", &*outcome.to_string())
            }
            _ => object.text("state", "unknown"),
        }
    });
    let state = Object::new()
        .text("state", verdict.word())
        .number("answered", Some(answered(seen)))
        .number("needed", Some(seen.majority));
    let state = match verdict {
        Verdict::Held(holder) => held(state, holder),
        _ => state,
    };
    Object::new()
        .text("key", &*key.to_string_lossy())
        .array("nodes", nodes)
        .object("majority", state)
        .number("fence", seen.fence())
}

fn held(object: Object, holder: &Holder) -> Object {
    object
        .text("owner", holder.owner.as_deref())
        .number("remaining_ms", Some(holder.remaining.as_millis()))
        .bool("shared", holder.is_shared)
        .bool("revoked", holder.is_revoked)
}
