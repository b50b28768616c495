//! Which faults were in the way of whom, and when: pure.
//!
//! A fault that is over goes on disturbing for a while: connections are made again, and a kernel
//! that has sent a packet without an answer for a second waits for as long until it sends it again.

use std::collections::BTreeSet;

use crate::faults::{Fault, Kind};

/// What follows every fault: reconnecting, and undoing what was left.
const AFTERMATH: u64 = 1_000_000_000;

/// A fault as it came, in nanoseconds of the one clock.
#[derive(Clone, Debug)]
struct Disturbance {
    kind: Kind,
    clients: u32,
    nodes: u32,
    on_paths: bool,
    from: u64,
    /// When its effects are over; nothing while it goes on.
    until: Option<u64>,
    /// Names it while it goes on.
    number: u64,
}

/// The faults of the last minutes.
#[derive(Debug, Default)]
pub(crate) struct Disturbances(Vec<Disturbance>);

/// A span of time on the one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Disturbances {
    /// A fault begins.
    pub(crate) fn begin(&mut self, fault: &Fault, at: u64) {
        self.0.push(Disturbance {
            kind: fault.kind,
            clients: fault.clients,
            nodes: fault.nodes,
            on_paths: fault.path.is_some(),
            from: at,
            until: None,
            number: fault.number,
        });
    }

    /// A fault ends; its effects go on for as long as it lasted, and for a second.
    pub(crate) fn end(&mut self, fault: &Fault, at: u64) {
        let open = |known: &&mut Disturbance| known.until.is_none() && known.number == fault.number;
        for known in self.0.iter_mut().filter(open) {
            let lasted = at.saturating_sub(known.from);
            known.until = Some(at.saturating_add(lasted).saturating_add(AFTERMATH));
        }
    }

    /// Drops what was over before then.
    pub(crate) fn forget_before(&mut self, then: u64) {
        self.0.retain(|known| known.until.is_none_or(|until| until >= then));
    }

    /// The nodes that something kept a client from using in that time, and the faults' names.
    pub(crate) fn nodes(&self, client: usize, span: Span) -> (u32, BTreeSet<&'static str>) {
        let hits = self.touching(span).filter(|known| {
            let on_its_path = known.on_paths && known.clients >> client & 1 == 1;
            on_its_path || known.kind.is_of_nodes()
        });
        hits.fold((0, BTreeSet::new()), |(mask, mut names), known| {
            names.insert(known.kind.name());
            (mask | known.nodes, names)
        })
    }

    /// The fault that stopped or ended a client in that time.
    pub(crate) fn client(&self, client: usize, span: Span) -> Option<&'static str> {
        let hit =
            |known: &&Disturbance| known.kind.is_of_clients() && known.clients >> client & 1 == 1;
        self.touching(span).find(hit).map(|known| known.kind.name())
    }

    fn touching(&self, span: Span) -> impl Iterator<Item = &Disturbance> {
        self.0.iter().filter(move |known| {
            known.from <= span.to && known.until.is_none_or(|until| until >= span.from)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::paths::Path;

    const SECOND: u64 = 1_000_000_000;

    fn fault(kind: Kind, number: u64, clients: u32, nodes: u32) -> Fault {
        let is_path = matches!(kind, Kind::Partition);
        Fault {
            kind,
            number,
            at: Duration::ZERO,
            lasts: Duration::ZERO,
            clients,
            nodes,
            path: is_path.then(Path::default),
            amount: 0,
        }
    }

    #[test]
    fn a_fault_disturbs_those_it_meets_for_as_long_again_and_a_second() {
        let mut all = Disturbances::default();
        let partition = fault(Kind::Partition, 1, 0b10, 0b00110);
        all.begin(&partition, 10 * SECOND);
        let span = |from: u64, to: u64| Span { from: from * SECOND, to: to * SECOND };
        assert_eq!(all.nodes(1, span(20, 30)).0, 0b00110, "it goes on");
        all.end(&partition, 12 * SECOND);
        assert_eq!(all.nodes(1, span(5, 9)).0, 0);
        assert_eq!(all.nodes(1, span(5, 10)).0, 0b00110);
        assert_eq!(all.nodes(1, span(15, 20)).0, 0b00110);
        assert_eq!(all.nodes(1, span(16, 20)).0, 0);
        assert_eq!(all.nodes(0, span(10, 12)).0, 0, "another client's path is clear");
        all.forget_before(16 * SECOND);
        assert_eq!(all.nodes(1, span(5, 20)).0, 0);
    }

    #[test]
    fn servers_are_everyones_and_a_stopped_client_is_its_own() {
        let mut all = Disturbances::default();
        all.begin(&fault(Kind::KillServer, 1, 0b1, 0b10000), 0);
        all.begin(&fault(Kind::FreezeClient, 2, 0b100, 0b11111), 0);
        let span = Span { from: 1, to: 2 };
        let (nodes, names) = all.nodes(7, span);
        assert_eq!((nodes, names.into_iter().collect::<Vec<_>>()), (0b10000, vec!["kill-server"]));
        assert_eq!((all.client(2, span), all.client(1, span)), (Some("freeze-client"), None));
    }
}
