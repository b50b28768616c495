//! `quorlock release`: ending a lock by its token, or by force.

use std::ffi::OsStr;
use std::time::Duration;

use quorlock::report::{Inspection, KeyState, NodeReport, Outcome};
use quorlock::{Locker, OwnerToken, Release};

use crate::args::ReleaseArgs;
use crate::exit::{Cause, Failure};
use crate::json::Object;
use crate::status::{self, Verdict};
use crate::{nodes, output, reach, words};

/// The token's variable. Unlike the command line, other users cannot see it.
const VARIABLE: &str = "QUORLOCK_TOKEN";

/// How long a node may take to answer. Only the caller of this command waits for it.
const NODE_TIMEOUT: Duration = Duration::from_millis(500);

/// Releases the lock; a failure's cause says what was found instead.
pub(crate) async fn run(args: &ReleaseArgs) -> Result<(), Failure> {
    let token = if args.force { None } else { Some(find_token(args)?) };
    let builder = nodes::locker(&args.nodes)?.node_timeout(NODE_TIMEOUT);
    let locker: Locker = nodes::build(builder)?;
    reach::every_answer(&locker).await?;
    match token {
        Some(token) => by_token(args, &locker, &token).await,
        None => by_force(args, &locker).await,
    }
}

fn find_token(args: &ReleaseArgs) -> Result<OwnerToken, Failure> {
    let given = args.token.clone().or_else(|| std::env::var(VARIABLE).ok());
    given.filter(|token| !token.is_empty()).map(OwnerToken::from).ok_or_else(|| {
        let what = format!(
            "no token: give the lock's own, on the command line or in {VARIABLE}, or --force to \
             release the lock of any client"
        );
        Failure::new(Cause::Usage, what)
    })
}

async fn by_token(args: &ReleaseArgs, locker: &Locker, token: &OwnerToken) -> Result<(), Failure> {
    let key = args.key.as_encoded_bytes();
    let found = locker.release_by_token(key, token).await.map_err(Failure::of_options)?;
    let quoted = words::quoted(&args.key);
    let (word, failed) = match found {
        Release::Released => ("released", None),
        Release::Expired => {
            ("expired", Some((Cause::Lost, format!("lock {quoted} had ended before"))))
        }
        Release::Taken => {
            let what = format!(
                "lock {quoted} is held by another token; its key is left as it is (see quorlock \
                 status)"
            );
            ("taken", Some((Cause::Busy, what)))
        }
        Release::Unknown(nodes) => ("unknown", Some(untold(&quoted, &nodes))),
        _ => ("unknown", Some((Cause::Internal, format!("lock {quoted}: {found:?}")))),
    };
    let text = match (args.json, &failed) {
        (true, _) => object(&args.key).text("release", word).end() + "\n",
        (false, None) => format!("{quoted}  released\n"),
        (false, Some(_)) => String::new(),
    };
    output::print(text).await?;
    failed.map_or(Ok(()), |(cause, what)| Err(Failure::new(cause, what)))
}

async fn by_force(args: &ReleaseArgs, locker: &Locker) -> Result<(), Failure> {
    let key = args.key.as_encoded_bytes();
    let seen = locker.inspect(key).await.map_err(Failure::of_options)?;
    refuse_foreign(&args.key, &seen)?;
    let nodes = locker.force_release(key).await.map_err(Failure::of_options)?;
    let deleted = nodes.iter().filter(|node| node.outcome == Outcome::Granted).count();
    let before = Verdict::of(&seen);
    let text = match args.json {
        true => forced(&args.key, &seen, &before, &nodes).end() + "\n",
        false => format!(
            "{}  deleted on {deleted} of {} nodes; before: {}\n",
            words::quoted(&args.key),
            nodes.len(),
            before.sentence(&seen)
        ),
    };
    output::print(text).await
}

/// A value that no lock wrote is other data, and is not deleted.
fn refuse_foreign(key: &OsStr, seen: &Inspection) -> Result<(), Failure> {
    let foreign = seen.nodes.iter().find_map(|node| match &node.state {
        KeyState::Foreign { what, .. } => Some((&node.node, what)),
        _ => None,
    });
    let Some((node, what)) = foreign else { return Ok(()) };
    let key = words::quoted(key);
    let what = format!(
        "{key} holds a value on {node} that no lock wrote ({what}), and is left as it is; delete \
         it by another client if it is not needed"
    );
    Err(Failure::new(Cause::Configuration, what))
}

fn object(key: &OsStr) -> Object {
    Object::new().text("key", &*key.to_string_lossy())
}

fn forced(key: &OsStr, seen: &Inspection, before: &Verdict<'_>, nodes: &[NodeReport]) -> Object {
    let nodes = nodes.iter().map(|NodeReport { node, outcome, .. }| {
        let word = match outcome {
            Outcome::Granted => "deleted",
            Outcome::Held | Outcome::Gone => "free",
            _ => "unknown",
        };
        Object::new().text("node", &**node).text("state", word)
    });
    let owner = seen.holder().and_then(|holder| holder.owner.as_deref());
    object(key)
        .text("release", "forced")
        .text("before", before.word())
        .text("owner", owner)
        .array("nodes", nodes)
}

/// Too few nodes answered: why, and the cause.
fn untold(key: &str, nodes: &[NodeReport]) -> (Cause, String) {
    let has_answered = |node: &&NodeReport| {
        matches!(node.outcome, Outcome::Granted | Outcome::Held | Outcome::Gone)
    };
    let silent: Vec<&NodeReport> = nodes.iter().filter(|node| !has_answered(node)).collect();
    let denied = silent.iter().filter(|node| status::is_denied(&node.outcome)).count();
    let cause = match denied > (nodes.len() - 1) / 2 {
        true => Cause::Denied,
        false => Cause::Unavailable,
    };
    let silent: Vec<String> = silent.iter().map(ToString::to_string).collect();
    let what = format!(
        "no majority has said that it released lock {key}: {}; what is left ends with its TTL",
        silent.join(", ")
    );
    (cause, what)
}
