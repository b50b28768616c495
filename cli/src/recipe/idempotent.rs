//! `quorlock idempotent`: a command that is run once for each id.

use quorlock::recipe::Done;
use quorlock::{Client, Locker};

use super::captured::{Captured, LONGEST, Outcome};
use super::{locker_and_client, named};
use crate::args::IdempotentArgs;
use crate::exit::{Cause, Failure};
use crate::{output, tied, words};

/// Runs the command, or says what it came to before; its exit code.
pub(crate) async fn run(args: &IdempotentArgs) -> Result<u8, Failure> {
    // What is found now cannot be unknown later.
    tied::check(&args.command)?;
    let (locker, client) = locker_and_client(&args.nodes, args.wait)?;
    let captured = Captured::new(&args.command, &args.id);
    captured.within(repeat(args, &locker, &client, &captured)).await
}

/// Runs it, or repeats what it came to before.
async fn repeat(
    args: &IdempotentArgs,
    locker: &Locker,
    client: &Client,
    captured: &Captured<'_>,
) -> Result<u8, Failure> {
    let done = once(args, locker, client, captured).await?;
    let is_first = matches!(done, Done::First(_));
    let id = words::quoted(&args.id);
    let outcome = done.outcome();
    let Some((code, output)) = outcome.as_deref().and_then(decode) else {
        let what = format!(
            "{id} was begun before, and whether it was done is not known; find out, and to run it \
             again delete its key with \"/outcome\" behind it on the first node"
        );
        return Err(Failure::new(Cause::Unknown, what));
    };
    match output {
        Some(output) => drop(output::write(output.to_vec()).await?),
        None if is_first => {}
        None => {
            let most = LONGEST >> 20;
            output::say(format_args!("{id}: its output was not kept, for it is above {most} MiB"));
        }
    }
    Ok(code)
}

async fn once(
    args: &IdempotentArgs,
    locker: &Locker,
    client: &Client,
    captured: &Captured<'_>,
) -> Result<Done, Failure> {
    let request = locker.idempotent(client, named(&args.nodes, &args.id, ""), args.keep);
    let done = request.wait(args.wait).run(|| async {
        let outcome = captured.run().await?;
        match outcome.ended.signal() {
            None => Ok(encode(&outcome)),
            Some(signal) => {
                output::write(outcome.output.unwrap_or_default()).await?;
                let what = format!(
                    "signal {signal} ended the command; whether it has done all of \
                                    {} is not known",
                    words::quoted(&args.id)
                );
                Err(Failure::new(Cause::Signal(u8::try_from(signal).unwrap_or(u8::MAX)), what))
            }
        }
    });
    done.await
}

/// An outcome as it is kept: the exit code, a line's end, and the output; without the line's end
/// where there is too much of that.
fn encode(outcome: &Outcome) -> Vec<u8> {
    let mut kept = outcome.ended.code().to_string().into_bytes();
    if let Some(output) = &outcome.output {
        kept.push(b'\n');
        kept.extend_from_slice(output);
    }
    kept
}

fn decode(kept: &[u8]) -> Option<(u8, Option<&[u8]>)> {
    let end = kept.iter().position(|byte| *byte == b'\n');
    let (code, output) = match end {
        Some(end) => (&kept[..end], Some(&kept[end + 1..])),
        None => (kept, None),
    };
    Some((std::str::from_utf8(code).ok()?.parse().ok()?, output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_a_code_and_an_output_if_it_is_kept() {
        assert_eq!(decode(b"0\nline\nline"), Some((0, Some(&b"line\nline"[..]))));
        assert_eq!(decode(b"7\n"), Some((7, Some(&b""[..]))));
        assert_eq!(decode(b"255"), Some((255, None)));
        for other in [&b""[..], b"256", b"x\n", b"\n"] {
            assert_eq!(decode(other), None);
        }
    }
}
