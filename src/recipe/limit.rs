//! At most so many in so much time: [`Limit`], for all processes, and [`Gate`], for one.
//!
//! Both are the generic cell rate algorithm (GCRA; ITU-T I.371): one moment is kept, at which all
//! that has passed would have passed if it had come evenly. What is asked for passes if that moment
//! lies ahead by no more than a burst takes.

use std::fmt;
use std::time::Duration;

use quorlock_resp::Frame;

use super::store_error::StoreError;
use crate::client::Client;
use crate::clock::{Clock, Moment};
use crate::error::Error;
use crate::lock::LockKey;
use crate::sync::{Mutex, lock};

const SCRIPT: &str = include_str!("script/limit.lua");
const DIGEST: &str = "d4b5429e9c5c02ea20e3b4f35a29ea93176b0eea";

/// The longest time for a whole burst: what a server counts with is exact beyond that.
const BURST_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// At most so many in so much time, over all processes that name the same key: a token bucket, kept
/// on one server and by its time.
///
/// In any time of length `t` no more pass than `burst + rate × t`. What has not been taken for a
/// while may pass at once, up to the burst. One round trip for each that asks; the key expires by
/// itself when a whole burst may pass again.
///
/// A server that has forgotten the key, as after a restart without persistence, lets at most one
/// burst more pass. Its clock is what counts: set ahead, it lets up to one burst pass early; set
/// back, it lets nothing pass for as long.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use quorlock::Client;
/// use quorlock::recipe::{Limit, Taken};
///
/// let client = Client::new("redis://a:6379")?;
/// let limit = Limit::new(client, "mail:customer:42", 10, Duration::from_secs(60))?;
/// match limit.take().await? {
///     Taken::Passed { left } => println!("go on; {left} more may follow at once"),
///     Taken::Limited { retry_after } => println!("429, Retry-After: {}", retry_after.as_secs()),
///     _ => {}
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Limit {
    client: Client,
    key: Box<[u8]>,
    rate: Rate,
}

/// What has become of what was asked for: [`Limit::take`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Taken {
    /// It may pass.
    Passed {
        /// How many more may pass at once.
        left: u32,
    },
    /// It may not, and nothing was taken.
    Limited {
        /// When to ask again. Another may have come first by then.
        retry_after: Duration,
    },
}

/// How much time one takes, and how many may come at once.
#[derive(Clone, Copy, Debug)]
struct Rate {
    interval: Duration,
    burst: u32,
}

impl Rate {
    fn new(count: u32, per: Duration) -> Result<Self, Error> {
        if count == 0 || per.as_micros() < u128::from(count) {
            return Err(Error::misuse(format!(
                "a rate of {count} in {per:?}; give at least 1, and no more than one a microsecond"
            )));
        }
        // Whole microseconds, as the server counts them, and rather one more than one less.
        let micros = per.as_nanos().div_ceil(1_000 * u128::from(count));
        let interval = Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
        Self { interval, burst: 1 }.with_burst(count)
    }

    fn with_burst(self, burst: u32) -> Result<Self, Error> {
        let rate = Self { burst, ..self };
        match burst > 0 && rate.takes(burst).is_some_and(|time| time <= BURST_MAX) {
            true => Ok(rate),
            false => Err(Error::misuse(format!(
                "a burst of {burst}; give at least 1, and no more than pass in a year"
            ))),
        }
    }

    /// How much time so many take.
    fn takes(self, count: u32) -> Option<Duration> {
        self.interval.checked_mul(count)
    }

    /// The same, and that of a burst; an error for more than can ever pass.
    fn of(self, count: u32) -> Result<[Duration; 2], Error> {
        let times = (self.takes(count), self.takes(self.burst));
        match times {
            (Some(asked), Some(burst)) if count > 0 && asked <= burst => Ok([asked, burst]),
            _ => Err(Error::misuse(format!(
                "{count} at once can never pass; the burst is {}",
                self.burst
            ))),
        }
    }
}

impl Limit {
    /// Lets `count` pass in each `per`, and as many at once: see [`burst`](Self::burst). Does no
    /// I/O. The key is used as it is, and holds nothing else.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for a rate of none, or of more than one a microsecond, for a
    /// burst that takes longer than a year, and for an empty key.
    pub fn new(
        client: Client,
        key: impl AsRef<[u8]>,
        count: u32,
        per: Duration,
    ) -> Result<Self, Error> {
        let key = key.as_ref();
        if key.is_empty() {
            return Err(Error::misuse("the key is empty; name what is limited"));
        }
        Ok(Self { client, key: key.into(), rate: Rate::new(count, per)? })
    }

    /// How many may pass at once after a while in which none did. Default: as many as pass in the
    /// time that was given.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for none.
    pub fn burst(self, burst: u32) -> Result<Self, Error> {
        Ok(Self { rate: self.rate.with_burst(burst)?, ..self })
    }

    /// Asks whether one may pass, and takes it if so.
    ///
    /// # Errors
    ///
    /// As [`take_many`](Self::take_many).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not recall the command: one may have been taken.
    pub async fn take(&self) -> Result<Taken, StoreError> {
        self.take_many(1).await
    }

    /// Asks whether so many may pass together, all or none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Rejected`] where the server refuses it, as for a missing right (`EVALSHA`,
    /// `EVAL`, `TIME`, `GET`, `SET`) or a key that holds something else. [`StoreError::Client`]
    /// where it did not answer, and for more than can ever pass.
    ///
    /// # Cancel safety
    ///
    /// As [`take`](Self::take).
    pub async fn take_many(&self, count: u32) -> Result<Taken, StoreError> {
        let [asked, burst] = self.rate.of(count)?.map(|time| time.as_micros().to_string());
        let call = |name: &'static str, script: &'static str| {
            let words: [&[u8]; 6] = [
                name.as_bytes(),
                script.as_bytes(),
                b"1",
                &self.key,
                asked.as_bytes(),
                burst.as_bytes(),
            ];
            self.client.command(words)
        };
        let mut reply = call("EVALSHA", DIGEST).await?;
        if reply.as_error().is_some_and(|error| error.starts_with(b"NOSCRIPT")) {
            reply = call("EVAL", SCRIPT).await?;
        }
        let reply = StoreError::check(reply)?;
        let numbers = match &reply {
            Frame::Array(items) => items.iter().map(|item| item.as_integer().ok()).collect(),
            _ => None::<Vec<i64>>,
        };
        let micros = |number: i64| Duration::from_micros(u64::try_from(number).unwrap_or_default());
        match numbers.as_deref() {
            Some([1, left]) => {
                let left = micros(*left).as_nanos() / self.rate.interval.as_nanos();
                Ok(Taken::Passed { left: u32::try_from(left).unwrap_or(u32::MAX) })
            }
            Some([0, wait]) => Ok(Taken::Limited { retry_after: micros(*wait) }),
            _ => Err(StoreError::unexpected(&reply)),
        }
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = LockKey::new(self.key.to_vec());
        f.debug_struct("Limit").field("key", &key).field("rate", &self.rate).finish()
    }
}

/// At most so many in so much time, in this process, and first come first served: for what many
/// tasks ask of a server at once, as tries for one hot key. No command is sent.
///
/// It is as exact as timers are, which come up to 2 ms late: those whose time has come meanwhile
/// pass together.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), quorlock::Error> {
/// use std::time::Duration;
/// use quorlock::recipe::Gate;
///
/// let gate = Gate::new(100, Duration::from_secs(1))?; // a hundred at once, then one each 10 ms
/// gate.pass().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Gate {
    rate: Rate,
    clock: Clock,
    /// When all that has passed, or waits to, would have passed if it had come evenly.
    even: Mutex<Moment>,
}

impl Gate {
    /// Lets `count` pass in each `per`, and as many at once.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for a rate of none, or of more than one a microsecond.
    pub fn new(count: u32, per: Duration) -> Result<Self, Error> {
        let (rate, clock) = (Rate::new(count, per)?, Clock::default());
        let even = Mutex::new(clock.now());
        Ok(Self { rate, clock, even })
    }

    /// How many may pass at once after a while in which none did.
    ///
    /// # Errors
    ///
    /// [`is_misuse`](Error::is_misuse) for none.
    pub fn burst(self, burst: u32) -> Result<Self, Error> {
        Ok(Self { rate: self.rate.with_burst(burst)?, ..self })
    }

    /// Waits until one may pass. On a tokio runtime with time enabled, if it has to wait.
    ///
    /// # Cancel safety
    ///
    /// Its place is taken at the first poll, and stays taken: those behind come no sooner.
    pub async fn pass(&self) {
        let now = self.clock.now();
        let ahead = {
            let mut even = lock(&self.even);
            *even = later(*even, now).plus(self.rate.interval);
            even.since(now)
        };
        let burst = self.rate.takes(self.rate.burst).unwrap_or(BURST_MAX);
        let wait = ahead.saturating_sub(burst);
        if !wait.is_zero() {
            self.clock.sleep_until(now.plus(wait)).await;
        }
    }
}

fn later(one: Moment, other: Moment) -> Moment {
    if one > other { one } else { other }
}
