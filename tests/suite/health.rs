//! What a locker tells of its nodes, on real servers.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quorlock::report::{Fault, Mode, Role, ServerKind};
use quorlock::{Durability, Event, Observer};
use support::{Fleet, Script, Scripted, Server, eventually_async, need_process, need_server};

use crate::{builder, connected, quorum, single};

#[tokio::test]
async fn each_node_says_what_it_is_and_how_it_is_set_up() {
    need_process!();
    let described = |number, builder: support::server::Builder| match number {
        0 => builder.args(["--appendonly", "yes", "--appendfsync", "always"]),
        1 => builder.args(["--save", "3600", "1", "--maxmemory-policy", "allkeys-lru"]),
        _ => builder,
    };
    let fleet = Fleet::start_with(3, described);
    let locker = connected(builder(&fleet)).await;
    let health = locker.health();
    for (node, server) in health.iter().zip(&fleet) {
        assert_eq!(*node.node, server.label());
        assert!(node.is_connected() && node.fault().is_none());
        assert!(node.rtt.is_some_and(|rtt| rtt > Duration::ZERO), "{node:?}");
        let told = node.server.clone().unwrap();
        let (kind, [major, minor, patch]) = server.version();
        let is_valkey = told.kind == Some(ServerKind::Valkey);
        assert_eq!(is_valkey, kind == "valkey", "{told:?}");
        assert_eq!(told.version.as_deref(), Some(&*format!("{major}.{minor}.{patch}")));
        assert_eq!((told.role, told.mode), (Some(Role::Master), Some(Mode::Standalone)));
        assert_eq!(told.run_id.as_deref(), server.info("run_id").as_deref());
        assert_eq!(told.resp3, !server.url().contains("protocol=2"));
        let clock = told.clock.unwrap();
        assert!(clock.apart <= clock.within + Duration::from_millis(50), "one clock: {clock:?}");
    }
    let told = |node: usize| health[node].server.clone().unwrap();
    let persistence = |node| told(node).persistence.to_string();
    assert_eq!(persistence(0), "appendonly yes, appendfsync always, no snapshots");
    assert_eq!(persistence(1), "appendonly no, save 3600 1");
    assert_eq!(persistence(2), "appendonly no, no snapshots");
    assert_eq!(told(0).maxmemory_policy.as_deref(), Some("noeviction"));
    assert_eq!(told(1).maxmemory_policy.as_deref(), Some("allkeys-lru"));
}

/// Which nodes may forget, as they were told of.
#[derive(Default)]
struct Forgetful(Mutex<Vec<String>>);

impl Observer for Forgetful {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::Forgets { node, persistence, .. } = event {
            self.0.lock().unwrap().push(format!("{node}: {persistence}"));
        }
    }
}

#[tokio::test]
async fn servers_that_may_forget_are_told_of_where_that_is_relied_on() {
    need_process!();
    let fleet = Fleet::start_with(3, |number, builder| match number {
        0 => builder.args(["--appendonly", "yes", "--appendfsync", "always"]),
        1 => builder.args(["--appendonly", "yes", "--appendfsync", "everysec"]),
        _ => builder,
    });
    let longest_ttl = Duration::from_secs(60);
    let told = async |durability| {
        let observer = Arc::new(Forgetful::default());
        let builder = builder(&fleet).durability(durability).observer(observer.clone());
        let locker = connected(builder).await;
        let mut told = std::mem::take(&mut *observer.0.lock().unwrap());
        told.sort();
        (told, locker.health().iter().map(|node| node.contradicts_durability).collect::<Vec<_>>())
    };
    let (events, forgets) = told(Durability::Persistent).await;
    assert_eq!(forgets, [false, true, true]);
    let words =
        ["appendonly yes, appendfsync everysec, no snapshots", "appendonly no, no snapshots"];
    let mut expected = [1, 2].map(|node| format!("{}: {}", fleet[node].label(), words[node - 1]));
    expected.sort();
    assert_eq!(events, expected);
    let (events, forgets) = told(Durability::Volatile { longest_ttl }).await;
    assert_eq!((events, forgets), (Vec::new(), vec![false; 3]));
}

#[tokio::test]
async fn a_node_that_goes_keeps_what_it_said_and_says_why_it_is_gone() {
    need_server!();
    let fleet = Fleet::start(1);
    let locker = connected(builder(&fleet)).await;
    let before = locker.health()[0].server.clone().unwrap();
    fleet[0].stop();
    eventually_async("it is known to be down", async || {
        locker.health()[0].fault() == Some(&Fault::Refused)
    })
    .await;
    let node = &locker.health()[0];
    assert_eq!((node.rtt, node.server.as_ref()), (None, Some(&before)));
    fleet[0].restart();
    eventually_async("it is back", async || locker.health()[0].is_connected()).await;
    let after = locker.health()[0].server.clone().unwrap();
    assert_ne!(after.run_id, before.run_id, "another process");
}

#[tokio::test]
async fn the_latest_answer_is_timed() {
    let server = Scripted::start(
        Script::greeting()
            .expect("SET")
            .delay(Duration::from_millis(60))
            .reply("+OK\r\n")
            .answer_all(|_| b":1\r\n".to_vec()),
    );
    // However slow the machine is, no answer takes longer than the wait for it.
    let began = Instant::now();
    let locker = connected(single(server.url())).await;
    let rtt = || locker.health()[0].rtt.unwrap();
    assert!(rtt() <= began.elapsed());
    let began = Instant::now();
    let guard = locker.lock("k").await.unwrap();
    assert!((Duration::from_millis(60)..=began.elapsed()).contains(&rtt()), "{:?}", rtt());
    let began = Instant::now();
    assert!(guard.release().await.unwrap().is_released());
    assert!(rtt() <= began.elapsed(), "{:?}", rtt());
}

#[tokio::test]
async fn a_replica_is_refused_as_what_it_is() {
    need_server!();
    let master = Server::start();
    let replica = Server::builder().replica_of(&master).start();
    let locker = quorum([master.url(), replica.url()]).build().unwrap();
    eventually_async("it is seen through", async || {
        locker.ready(Duration::from_millis(200)).await.unwrap_err();
        locker.health()[1].outcome.fault() == Some(&Fault::Replica)
    })
    .await;
    let health = locker.health();
    let told = health[1].server.as_ref().unwrap();
    assert_eq!(told.role, Some(Role::Replica));
    assert!(health[1].to_string().contains(", replica, standalone)"), "{}", health[1]);
}
