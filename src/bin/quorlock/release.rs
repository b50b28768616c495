//! `quorlock release`: ending a lock by its token, or by force.

use std::ffi::OsStr;

use quorlock::report::{Holder, NodeReport, Outcome};
use quorlock::{Locker, OwnerToken, Release};

use crate::args::ReleaseArgs;
use crate::exit::{self, Cause, Failure};
use crate::json::Object;
use crate::{nodes, output, reach, runtime, words};

/// Releases it; the exit code says what was found.
pub(crate) fn run(args: &ReleaseArgs) -> u8 {
    match runtime::block_on(release(args)) {
        Ok(()) => 0,
        Err(failure) => exit::tell(&failure),
    }
}

async fn release(args: &ReleaseArgs) -> Result<(), Failure> {
    let locker: Locker = nodes::build(nodes::locker(&args.nodes)?)?;
    reach::every_answer(&locker).await?;
    match &args.token {
        Some(token) => by_token(args, &locker, &OwnerToken::from(token.clone())).await,
        None => by_force(args, &locker).await,
    }
}

async fn by_token(args: &ReleaseArgs, locker: &Locker, token: &OwnerToken) -> Result<(), Failure> {
    let key = args.key.as_encoded_bytes();
    let found = locker.release_by_token(key, token).await.map_err(Failure::of_options)?;
    let quoted = words::quoted(&args.key);
    let (word, failed) = match found {
        Release::Released => ("released", None),
        Release::Expired => {
            let what = format!("lock {quoted} had ended before, or has another token");
            ("expired", Some((Cause::Lost, what)))
        }
        Release::Taken => {
            let what = format!("lock {quoted} is held by another client; its key is left as it is");
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
    let nodes = locker.force_release(key).await.map_err(Failure::of_options)?;
    let deleted = nodes.iter().filter(|node| node.outcome == Outcome::Granted).count();
    let text = match args.json {
        true => forced(&args.key, seen.holder(), &nodes).end() + "\n",
        false => {
            let was = match seen.holder() {
                Some(holder) => format!("was {}", words::held(holder)),
                None => "nobody held it".to_owned(),
            };
            let quoted = words::quoted(&args.key);
            format!("{quoted}  deleted on {deleted} of {} nodes ({was})\n", nodes.len())
        }
    };
    output::print(text).await
}

fn object(key: &OsStr) -> Object {
    Object::new().text("key", &*key.to_string_lossy())
}

fn forced(key: &OsStr, holder: Option<&Holder>, nodes: &[NodeReport]) -> Object {
    let nodes = nodes.iter().map(|NodeReport { node, outcome, .. }| {
        let word = match outcome {
            Outcome::Granted => "deleted",
            Outcome::Held | Outcome::Gone => "free",
            _ => "unknown",
        };
        Object::new().text("node", &**node).text("state", word)
    });
    object(key)
        .text("release", "forced")
        .text("owner", holder.and_then(|holder| holder.owner.as_deref()))
        .array("nodes", nodes)
}

/// Too few nodes answered.
fn untold(key: &str, nodes: &[NodeReport]) -> (Cause, String) {
    let silent = nodes
        .iter()
        .filter(|node| !matches!(node.outcome, Outcome::Granted | Outcome::Held | Outcome::Gone));
    let silent: Vec<String> = silent.map(ToString::to_string).collect();
    let what = format!(
        "whether lock {key} was released is not known: {}; what is left ends with its TTL",
        silent.join(", ")
    );
    (Cause::Unavailable, what)
}
