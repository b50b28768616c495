//! `quorlock revoke`: asking the holder of a lock, or of a slot, to let go of it.

use std::time::Duration;

use quorlock::{Locker, Revocation};

use crate::args::{RevokeArgs, SLOTS_MAX};
use crate::exit::Failure;
use crate::json::Object;
use crate::words::{self, Humane};
use crate::{nodes, output, reach};

/// How long a node may take to answer. Only the caller of this command waits for it.
const NODE_TIMEOUT: Duration = Duration::from_millis(500);

/// Asks the holder, if there is one.
pub(crate) async fn run(args: &RevokeArgs) -> Result<(), Failure> {
    let builder = nodes::locker(&args.nodes)?.node_timeout(NODE_TIMEOUT);
    let locker: Locker = nodes::build(builder)?;
    reach::every_answer(&locker).await?;
    let key = args.key.as_encoded_bytes();
    let revoked = match args.slot {
        // A slot's key does not depend on how many slots its holder knows of.
        Some(slot) => locker.slots(key, SLOTS_MAX).revoke(slot).await?,
        None => locker.revoke(key).await?,
    };
    let text = if args.json {
        json(args, revoked.as_ref())
    } else {
        format!("{}  {}", named(args), sentence(revoked.as_ref()))
    };
    output::print(text + "\n").await
}

/// `"encode"`, `"encode" slot 2`.
fn named(args: &RevokeArgs) -> String {
    let key = words::quoted(&args.key);
    args.slot.map_or_else(|| key.clone(), |slot| format!("{key} slot {slot}"))
}

fn sentence(revoked: Option<&Revocation>) -> String {
    let Some(Revocation { holder, over_in, .. }) = revoked else {
        return "free: no client holds a majority".into();
    };
    let owner = holder.owner.as_deref().unwrap_or("its holder");
    format!("{owner} is asked to let go; over in {} at most", Humane(*over_in))
}

fn json(args: &RevokeArgs, revoked: Option<&Revocation>) -> String {
    let owner = revoked.and_then(|revoked| revoked.holder.owner.as_deref());
    Object::new()
        .text("key", &*args.key.to_string_lossy())
        .number("slot", args.slot)
        .bool("revoked", revoked.is_some())
        .text("owner", owner)
        .number("over_in_ms", revoked.map(|revoked| revoked.over_in.as_millis()))
        .end()
}
