//! Asking the nodes in turn, and timing the answers.

use std::time::Duration;

use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use quorlock::Client;

use crate::args::PingArgs;
use crate::exit::{Cause, Failure};
use crate::latency::histogram;
use crate::signals::{self, Signals};
use crate::{clock, output};

/// How long a node may take to answer. It is not asked again before that.
const PATIENCE: Duration = Duration::from_millis(500);

/// How a node answered.
pub(super) struct Pings {
    answers: Histogram<u64>,
    pub(super) sent: u64,
}

impl Pings {
    fn new() -> Self {
        Self { answers: histogram(), sent: 0 }
    }

    fn add(&mut self, answer: Option<Duration>) {
        self.sent += 1;
        if let Some(rtt) = answer {
            self.answers.saturating_record(u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    pub(super) fn answered(&self) -> u64 {
        self.answers.len()
    }

    pub(super) fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.answered())
    }

    /// The round trip that this share of the answers did not exceed, in nanoseconds; 1 is the
    /// longest. `None` without an answer.
    pub(super) fn quantile(&self, share: f64) -> Option<u64> {
        (self.answered() > 0).then(|| self.answers.value_at_quantile(share))
    }
}

/// Asks the nodes that are connected; what they answered, and the signal that ended it early.
pub(super) async fn ask_in_turn(
    args: &PingArgs,
    clients: Vec<Client>,
    is_connected: &[bool],
) -> Result<(Vec<Option<Pings>>, Option<Cause>), Failure> {
    let mut signals = Signals::listen()?;
    let client = |(client, up): (Client, &bool)| up.then(|| client.timeout(PATIENCE));
    let clients: Vec<Option<Client>> = clients.into_iter().zip(is_connected).map(client).collect();
    let mut pings: Vec<_> =
        clients.iter().map(|client| client.as_ref().map(|_| Pings::new())).collect();
    let bar = progress(args.count);
    let asking = async {
        // The first command also makes the connection, and is not counted.
        for client in clients.iter().flatten() {
            ask(client).await;
        }
        for round in 0..args.count {
            for (client, pings) in clients.iter().zip(&mut pings) {
                if let (Some(client), Some(pings)) = (client, pings) {
                    pings.add(ask(client).await);
                }
            }
            bar.inc(1);
            if round + 1 < args.count && !args.interval.is_zero() {
                clock::sleep(args.interval).await;
            }
        }
    };
    let signal = tokio::select! {
        signal = signals.next() => Some(signals::cause(signal)),
        () = asking => None,
    };
    bar.finish_and_clear();
    Ok((pings, signal))
}

/// The round trip, or `None` without an answer. An error reply is an answer too.
async fn ask(client: &Client) -> Option<Duration> {
    let began = clock::now();
    let answer = client.command(["PING"]).await;
    let took = clock::now().saturating_duration_since(began);
    answer.is_ok().then_some(took)
}

/// A progress bar.
fn progress(count: u32) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count.into()), output::progress());
    match ProgressStyle::with_template("[{bar:24}] {pos}/{len} pings, {eta} left") {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        // If the template is invalid, the default bar is used.
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_answered_is_lost_and_not_timed() {
        let mut pings = Pings::new();
        assert_eq!((pings.quantile(0.5), pings.lost()), (None, 0));
        for micros in 1..=1_000 {
            pings.add(Some(Duration::from_micros(micros)));
        }
        pings.add(None);
        assert_eq!((pings.sent, pings.answered(), pings.lost()), (1_001, 1_000, 1));
        let about = |share: f64, micros: u64| {
            let found = pings.quantile(share).unwrap();
            assert!(found.abs_diff(micros * 1_000) <= micros, "{share}: {found}");
        };
        about(0.5, 500);
        about(0.99, 990);
        about(0.999, 999);
        about(1.0, 1_000);
    }
}
