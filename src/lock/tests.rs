//! Locks on nodes in memory, under a paused clock: the seams of clock and stream, in use.
//!
//! Where a promise names a time, it is exact here.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use quorlock_resp::{Decoder, Limits};

use super::command;
use super::locker::{Inner, Locker};
use crate::clock::{Clock, Driven};
use crate::entropy::Entropy;
use crate::link::{Address, Dial, Dialing, Endpoint, Greeting, Reader, Writer, memory};
use crate::options::{Extend, Options};
use crate::quorum::{NodeSet, Parts};

/// What a node in memory does with the commands of locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Behaviour {
    Grants,
    Refuses,
    Hangs,
    /// Grants so late.
    After(Duration),
    /// Nobody listens.
    Down,
}

/// Nodes by their host names, `n0` and so on.
struct InMemory(Vec<Behaviour>);

impl Dial for InMemory {
    fn dial(&self, endpoint: Endpoint) -> Dialing {
        let Endpoint::Tcp { host, .. } = endpoint else { unreachable!("tests use host names") };
        let behaviour = self.0[host[1..].parse::<usize>().unwrap()];
        Box::pin(async move {
            if behaviour == Behaviour::Down {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let ((reader, writer), (far_reader, far_writer)) = memory::pair(1 << 16);
            let far = (Reader::Memory(far_reader), Writer::Memory(far_writer));
            #[expect(clippy::disallowed_methods, reason = "the far end of a test's connection")]
            tokio::spawn(serve(behaviour, far));
            Ok((Reader::Memory(reader), Writer::Memory(writer)))
        })
    }
}

async fn serve(behaviour: Behaviour, (mut reader, writer): (Reader, Writer)) -> io::Result<()> {
    let (mut decoder, mut buffer) = (Decoder::new(Limits::default()), BytesMut::new());
    let mut staging = [0; 1_024];
    loop {
        let count = std::future::poll_fn(|cx| reader.poll_read(cx, &mut staging)).await?;
        if count == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(&staging[..count]);
        while let Some(command) = decoder.decode(&mut buffer).unwrap() {
            let name = command.as_items().unwrap()[0].as_bytes().unwrap();
            let granted = match (name, behaviour) {
                (b"SET", _) => "+OK\r\n",
                (b"EVALSHA", _) => ":1\r\n",
                _ => {
                    writer.try_write(b"-ERR unknown command\r\n")?;
                    continue;
                }
            };
            match behaviour {
                Behaviour::Grants => writer.try_write(granted.as_bytes())?,
                Behaviour::Refuses => writer.try_write(b"_\r\n")?,
                Behaviour::Hangs | Behaviour::Down => continue,
                Behaviour::After(pause) => {
                    Clock::default().sleep_until(Clock::default().now().plus(pause)).await;
                    writer.try_write(granted.as_bytes())?
                }
            };
        }
    }
}

fn locker(behaviours: &[Behaviour]) -> Locker {
    driven(behaviours).0
}

/// A locker and what drives its clocks.
fn driven(behaviours: &[Behaviour]) -> (Locker, Arc<Driven>) {
    let (clock, driven) = Driven::clock();
    let address = |index: usize| Address::parse(&format!("redis://n{index}")).unwrap();
    let options = Options::default();
    let nodes = NodeSet::new(Parts {
        addresses: (0..behaviours.len()).map(address).collect(),
        counted: true,
        options: options.link,
        clock,
        entropy: Arc::new(Entropy::from_seed(1)),
        dial: Arc::new(InMemory(behaviours.to_vec())),
        greeting: Greeting { scripts: command::SCRIPTS.to_vec(), terms: None },
        undo_head: command::undo_head(),
        observers: options.observers.clone(),
    });
    (Locker::from_inner(Inner::new(nodes, options, "test".into())), driven)
}

#[tokio::test(start_paused = true)]
async fn a_quorum_is_won_while_a_minority_hangs_in_no_time() {
    use Behaviour::{Grants, Hangs};
    let locker = locker(&[Hangs, Grants, Grants, Hangs, Grants]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let began = Clock::default().now();
    let guard = locker.lock("k").await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(Clock::default().now().since(began), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_hung_majority_costs_one_node_deadline() {
    use Behaviour::{Grants, Hangs};
    let locker = locker(&[Hangs, Grants, Grants, Hangs, Hangs]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let began = Clock::default().now();
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let cost = Clock::default().now().since(began);
    // Timers have a grain of a millisecond.
    assert!(cost >= Duration::from_millis(100) && cost <= Duration::from_millis(102), "{cost:?}");
}

#[tokio::test(start_paused = true)]
async fn suspects_are_not_waited_for_again() {
    use Behaviour::{Grants, Hangs};
    let locker = locker(&[Hangs, Grants, Grants, Hangs, Hangs]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    locker.lock("k").try_acquire().await.unwrap_err();
    let began = Clock::default().now();
    for _ in 0..10 {
        let error = locker.lock("k").try_acquire().await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
    }
    assert_eq!(Clock::default().now().since(began), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_down_vote_at_once() {
    use Behaviour::{Down, Grants};
    let locker = locker(&[Down, Grants, Down, Grants, Down]);
    // The first try waits for the connections' first attempts, which fail at once here.
    let began = Clock::default().now();
    for _ in 0..10 {
        let error = locker.lock("k").try_acquire().await.unwrap_err();
        assert!(error.to_string().contains("n0:6379 refused the connection"), "{error}");
    }
    assert_eq!(Clock::default().now().since(began), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_even_split_is_decided_without_waiting() {
    use Behaviour::{Grants, Hangs, Refuses};
    let locker = locker(&[Refuses, Grants, Hangs, Refuses]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let began = Clock::default().now();
    assert!(locker.lock("k").try_acquire().await.unwrap().is_none());
    assert_eq!(Clock::default().now().since(began), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn validity_counts_from_sending_not_from_the_reply() {
    let slow = Behaviour::After(Duration::from_millis(80));
    let locker = locker(&[slow, slow, slow]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let guard = locker.lock("k").await.unwrap();
    // 10 s, less the drift margin, less what the replies took (to a timer's millisecond).
    let whole = Duration::from_millis(10_000 - 102 - 80);
    assert!(guard.remaining() <= whole, "{:?}", guard.remaining());
    assert!(guard.remaining() >= whole - Duration::from_millis(2), "{:?}", guard.remaining());
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_too_late_for_its_ttl_is_refused() {
    let slow = Behaviour::After(Duration::from_millis(40));
    let locker = locker(&[slow, slow, slow]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let error = locker.lock("k").ttl(Duration::from_millis(30)).try_acquire().await.unwrap_err();
    assert!(error.is_too_slow(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_guard_is_invalid_from_its_deadline_on() {
    let locker = locker(&[Behaviour::Grants; 3]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let guard = locker.lock("k").extend(Extend::Off).await.unwrap();
    let (now, left) = (Clock::default().now(), guard.remaining());
    let (end, before) = (now.plus(left), now.plus(left - Duration::from_millis(5)));
    Clock::default().sleep_until(before).await;
    assert!(guard.is_valid());
    Clock::default().sleep_until(end).await;
    assert!(!guard.is_valid());
    assert_eq!(guard.remaining(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_at_the_callers_time() {
    let locker = locker(&[Behaviour::Refuses; 3]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let began = Clock::default().now();
    let error = locker.lock("k").wait(Duration::from_secs(2)).await.unwrap_err();
    assert!(error.is_contended(), "{error}");
    let waited = Clock::default().now().since(began);
    assert!(waited >= Duration::from_secs(2) && waited <= Duration::from_millis(2_010));
}

#[tokio::test(start_paused = true)]
async fn a_held_lock_is_extended_for_as_long_as_it_is_held() {
    let locker = locker(&[Behaviour::Grants; 5]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let guard = locker.lock("k").await.unwrap();
    let clock = Clock::default();
    for _ in 0..100 {
        clock.sleep_until(clock.now().plus(Duration::from_secs(1))).await;
        assert!(guard.is_valid());
        assert!(guard.remaining() > Duration::from_secs(6), "{:?}", guard.remaining());
    }
}

/// A suspension of ten TTLs: the first instruction after it knows.
#[tokio::test(start_paused = true)]
async fn after_a_suspension_the_lock_is_invalid_at_once_and_its_loss_is_told_within_a_tick() {
    let (locker, driven) = driven(&[Behaviour::Grants; 3]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let guard = locker.lock("k").await.unwrap();
    let clock = Clock::default();
    clock.sleep_until(clock.now().plus(Duration::from_secs(1))).await;
    driven.suspend(Duration::from_secs(100));
    assert!(!guard.is_valid());
    let began = clock.now();
    guard.lost().await;
    assert_eq!(clock.now(), began, "whoever asks then is told at once");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_loss_through_a_suspension_is_woken_within_a_tick() {
    let (locker, driven) = driven(&[Behaviour::Grants; 3]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let guard = locker.lock("k").await.unwrap();
    let clock = Clock::default();
    let mut lost = std::pin::pin!(guard.lost());
    let mut pause = clock.sleep_until(clock.now().plus(Duration::from_secs(1)));
    std::future::poll_fn(|cx| {
        assert!(lost.as_mut().poll(cx).is_pending(), "nothing is lost yet");
        pause.as_mut().poll(cx)
    })
    .await;
    driven.suspend(Duration::from_secs(100));
    let began = clock.now();
    lost.await;
    assert!(clock.now().since(began) <= Duration::from_millis(102));
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_back_loses_nothing_and_one_set_ahead_loses_early() {
    let (locker, driven) = driven(&[Behaviour::Grants; 3]);
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let hour = 3_600_000_000_000;
    let clock = Clock::default();
    let guard = locker.lock("k").await.unwrap();
    for _ in 0..30 {
        driven.step_wall(-hour);
        clock.sleep_until(clock.now().plus(Duration::from_secs(1))).await;
        assert!(guard.is_valid(), "a backward step loses no lock");
    }
    driven.step_wall(hour);
    assert!(!guard.is_valid(), "a forward step loses early");
    driven.step_wall(-hour);
    assert!(!guard.is_valid(), "what was lost stays lost");
}
