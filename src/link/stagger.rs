//! In which order the addresses of one name are tried, and when: pure.
//!
//! After RFC 8305. The families take turns, beginning with the one that the resolver put first; the
//! next attempt begins a little after the one before, or at once when one fails; all go on until
//! one has connected. So a family that leads nowhere, or a machine behind the name that is gone,
//! costs a quarter of a second and not the whole deadline.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use crate::clock::Moment;

/// How long an attempt has for itself: RFC 8305's figure.
const PACE: Duration = Duration::from_millis(250);

/// And at least so long, however many there are: RFC 8305's bound.
const PACE_MIN: Duration = Duration::from_millis(10);

/// The attempts to reach one name.
#[derive(Debug)]
pub(super) struct Stagger {
    waiting: VecDeque<SocketAddr>,
    under_way: usize,
    pace: Duration,
    /// When the next one may begin.
    next: Moment,
}

/// What is to be done now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Begin with this address.
    Start(SocketAddr),
    /// Nothing before this moment, unless an attempt ends.
    WaitUntil(Moment),
    /// Nothing, unless an attempt ends.
    Wait,
    /// All have failed.
    GiveUp,
}

impl Stagger {
    /// The pace is such that each address has its turn before `deadline`: otherwise the last ones
    /// would never be tried, for the next connect begins with the first again. `now` is when their
    /// name has been resolved, which may have taken most of the time.
    pub(super) fn new(
        addresses: impl IntoIterator<Item = SocketAddr>,
        now: Moment,
        deadline: Moment,
    ) -> Self {
        let waiting = interleaved(addresses);
        let share = u32::try_from(waiting.len() + 1).unwrap_or(u32::MAX);
        let pace = (deadline.since(now) / share).clamp(PACE_MIN, PACE);
        Self { waiting, under_way: 0, pace, next: Moment::default() }
    }

    pub(super) fn poll(&mut self, now: Moment) -> Step {
        if self.waiting.is_empty() {
            return if self.under_way == 0 { Step::GiveUp } else { Step::Wait };
        }
        if now < self.next {
            return Step::WaitUntil(self.next);
        }
        let Some(address) = self.waiting.pop_front() else { return Step::GiveUp };
        self.under_way += 1;
        self.next = now.plus(self.pace);
        Step::Start(address)
    }

    /// An attempt has failed.
    pub(super) fn handle_failure(&mut self, now: Moment) {
        self.under_way = self.under_way.saturating_sub(1);
        self.next = now;
    }
}

/// The families by turns, each in the resolver's order, none twice.
fn interleaved(addresses: impl IntoIterator<Item = SocketAddr>) -> VecDeque<SocketAddr> {
    let mut all = Vec::new();
    for address in addresses {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    let first_is_ipv6 = all.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (VecDeque<_>, VecDeque<_>) =
        all.into_iter().partition(|address| address.is_ipv6() == first_is_ipv6);
    let mut order = VecDeque::new();
    while !first.is_empty() || !second.is_empty() {
        order.extend(first.pop_front());
        order.extend(second.pop_front());
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(hosts: &[&str]) -> Vec<SocketAddr> {
        hosts.iter().map(|host| format!("{host}:1").parse().unwrap()).collect()
    }

    fn at(millis: u64) -> Moment {
        Moment::default().plus(Duration::from_millis(millis))
    }

    #[test]
    fn families_take_turns_and_no_address_comes_twice() {
        let cases: [(&[&str], &[&str]); 5] = [
            (&[], &[]),
            (&["1.0.0.1"], &["1.0.0.1"]),
            (&["[::1]", "[::2]", "1.0.0.1"], &["[::1]", "1.0.0.1", "[::2]"]),
            (
                &["1.0.0.1", "1.0.0.2", "1.0.0.3", "[::1]", "[::2]"],
                &["1.0.0.1", "[::1]", "1.0.0.2", "[::2]", "1.0.0.3"],
            ),
            (&["1.0.0.1", "1.0.0.1", "[::1]", "1.0.0.1"], &["1.0.0.1", "[::1]"]),
        ];
        for (given, ordered) in cases {
            assert_eq!(Vec::from(interleaved(addresses(given))), addresses(ordered));
        }
    }

    #[test]
    fn the_next_one_begins_after_a_while_or_when_one_fails() {
        let hosts = addresses(&["[::1]", "1.0.0.1", "[::2]"]);
        let mut stagger = Stagger::new(hosts.clone(), at(0), at(1_000));
        assert_eq!(stagger.poll(at(0)), Step::Start(hosts[0]));
        assert_eq!(stagger.poll(at(0)), Step::WaitUntil(at(250)));
        assert_eq!(stagger.poll(at(249)), Step::WaitUntil(at(250)));
        assert_eq!(stagger.poll(at(250)), Step::Start(hosts[1]));
        stagger.handle_failure(at(300));
        assert_eq!(stagger.poll(at(300)), Step::Start(hosts[2]));
        assert_eq!(stagger.poll(at(300)), Step::Wait);
        stagger.handle_failure(at(400));
        assert_eq!(stagger.poll(at(400)), Step::Wait);
        stagger.handle_failure(at(500));
        assert_eq!(stagger.poll(at(500)), Step::GiveUp);
    }

    #[test]
    fn each_address_has_its_turn_before_the_deadline() {
        // However long it took to resolve the name.
        for (count, resolved) in
            [(1_usize, 0), (3, 0), (4, 0), (7, 0), (50, 0), (7, 900), (40, 500)]
        {
            let hosts: Vec<_> = (0..count).map(|host| format!("1.0.0.{host}")).collect();
            let hosts: Vec<_> = hosts.iter().map(String::as_str).collect();
            let (mut now, mut begun) = (at(resolved), 0);
            let mut stagger = Stagger::new(addresses(&hosts), now, at(1_000));
            loop {
                match stagger.poll(now) {
                    Step::Start(_) => begun += 1,
                    Step::WaitUntil(next) => now = next,
                    Step::Wait => break,
                    Step::GiveUp => unreachable!("none has failed"),
                }
            }
            assert_eq!(begun, count);
            assert!(now < at(1_000), "{count}, {resolved}: {now:?}");
        }
        let pace = |now, deadline| Stagger::new(addresses(&["1.0.0.1"; 3]), now, deadline).pace;
        assert_eq!(pace(at(0), at(1_000)), PACE);
        assert_eq!(pace(at(1_000), at(1_000)), PACE_MIN);
        assert_eq!(pace(at(2_000), at(1_000)), PACE_MIN);
    }

    #[test]
    fn a_name_without_addresses_is_given_up() {
        assert_eq!(Stagger::new([], at(0), at(1_000)).poll(at(0)), Step::GiveUp);
    }
}
