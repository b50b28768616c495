//! The nodes inside the process, as their users see them.

#![expect(clippy::unwrap_used, reason = "tests fail on the spot")]

use std::time::Duration;

use quorlock::testing::{Node, Nodes, Reaction, When};
use quorlock::{
    Client, Durability, Error, Extend, LockGuard, Locker, LockerBuilder, report::Outcome,
};
use tokio::time::Instant;

const TTL: Duration = Duration::from_secs(10);

async fn connected(nodes: &Nodes) -> Locker {
    let locker = nodes.locker().ttl(TTL).auto_extend(Extend::Off).build().unwrap();
    locker.ready(Duration::from_secs(1)).await.unwrap();
    locker
}

#[expect(clippy::disallowed_methods, reason = "the paused clock of the test")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the paused clock of the test")]
async fn pass(duration: Duration) {
    tokio::time::sleep(duration).await;
}

fn outcome(guard: &LockGuard, node: usize) -> Outcome {
    guard.votes()[node].outcome.clone()
}

async fn refused(locker: &Locker) -> Error {
    locker.lock("k").wait(Duration::ZERO).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn two_clients_contend_and_time_is_exact() {
    let nodes = Nodes::new(5);
    let (ours, theirs) = (connected(&nodes).await, connected(&nodes).await);
    let began = now();
    let guard = ours.lock("k").await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing takes time but what a test says");
    assert!(refused(&theirs).await.is_contended());
    assert_eq!(nodes.holding("k"), 5);
    let value = guard.owner_token().as_str().as_bytes().to_vec();
    assert_eq!(nodes[4].value("k"), Some(value));
    assert_eq!(nodes[4].remaining("k"), Some(TTL));
    guard.lost().await;
    pass(TTL - began.elapsed() - Duration::from_millis(1)).await;
    assert_eq!(nodes.holding("k"), 5);
    pass(Duration::from_millis(1)).await;
    assert_eq!(nodes.holding("k"), 0, "the keys end with their TTL");
    assert!(theirs.lock("k").await.unwrap().release().await.unwrap().is_released());
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_lost_leaves_no_key() {
    let nodes = Nodes::new(3);
    let locker = connected(&nodes).await;
    nodes[0].add(When::after("SET").nth(1).then(Reaction::Drop));
    nodes[1].add(When::before("SET").nth(1).then(Reaction::Drop));
    let error = refused(&locker).await;
    assert!(error.is_unavailable(), "{error}");
    assert_eq!(nodes[0].calls("SET"), 1, "it was executed, and its reply was lost");
    assert_eq!(nodes[1].calls("SET"), 0);
    // Two connections stay silent; it takes longer than an outage is waited for until they end.
    let guard = locker.lock("k").unavailable_wait(TTL).await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
    pass(Duration::from_secs(5)).await;
    assert_eq!(nodes.holding("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_late_is_no_vote_after_the_deadline() {
    let nodes = Nodes::new(3);
    let locker = connected(&nodes).await;
    nodes.add(When::after("SET").then(Reaction::Delay(Duration::from_millis(300))));
    let began = now();
    let error = refused(&locker).await;
    assert!(error.is_unavailable() && began.elapsed() < Duration::from_millis(110), "{error}");
    pass(Duration::from_secs(5)).await;
    assert_eq!(nodes.holding("k"), 0, "what was granted late is undone");
    nodes.iter().for_each(Node::clear_rules);
    assert!(locker.lock("k").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn cut_replies_and_wrong_bytes_end_the_connection_and_grant_nothing() {
    let wrong = Reaction::Answer(b"@nonsense\r\n".to_vec());
    for reaction in [Reaction::Cut { after_bytes: 2 }, wrong] {
        let nodes = Nodes::new(1);
        let locker = connected(&nodes).await;
        nodes[0].add(When::after("SET").key("k").nth(1).then(reaction.clone()));
        let error = refused(&locker).await;
        assert!(error.is_unavailable(), "{reaction:?}: {error}");
        let guard = locker.lock("k").await.unwrap();
        assert!(guard.release().await.unwrap().is_released(), "{reaction:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hung_node_executes_later_and_a_stopped_one_never() {
    let nodes = Nodes::new(5);
    let locker = connected(&nodes).await;
    nodes[0].hang();
    nodes[1].stop();
    assert!(!nodes[0].is_running() && !nodes[1].is_running() && nodes[2].is_running());
    let guard = locker.lock("k").await.unwrap();
    assert_eq!(outcome(&guard, 0), Outcome::Pending);
    assert!(matches!(outcome(&guard, 1), Outcome::Down { .. } | Outcome::Disconnected));
    assert_eq!(nodes[0].value("k"), None);
    nodes[0].resume();
    pass(Duration::from_millis(1)).await;
    assert!(nodes[0].value("k").is_some());
    nodes[1].restart(false).unwrap();
    pass(Duration::from_secs(1)).await;
    assert!(guard.release().await.unwrap().is_released());
    assert_eq!(nodes.holding("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_restarted_node_has_another_name_and_its_keys_if_it_keeps_them() {
    let nodes = Nodes::new(1);
    let longest_ttl = TTL;
    let builder = nodes.locker().durability(Durability::Volatile { longest_ttl });
    let locker = builder.auto_extend(Extend::Off).build().unwrap();
    locker.initialise().await.unwrap();
    assert_eq!((nodes[0].calls("initialise"), nodes[0].calls("eval")), (2, 2));
    let guard = locker.lock("k").await.unwrap();
    for keeps_data in [true, false] {
        nodes[0].restart(keeps_data).unwrap();
        assert_eq!(nodes[0].value("k").is_some(), keeps_data);
        pass(Duration::from_secs(1)).await;
        let error = refused(&locker).await;
        let is_quarantined =
            error.nodes().iter().any(|node| matches!(node.outcome, Outcome::Quarantined { .. }));
        assert!(is_quarantined, "{error}");
    }
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_stepped_or_drifts_ends_keys_early_or_late() {
    let nodes = Nodes::new(3);
    let locker = connected(&nodes).await;
    let guard = locker.lock("k").await.unwrap();
    nodes[0].step_clock(9_999);
    nodes[1].drift_clock(1_000_000);
    nodes[2].step_clock(-5_000);
    assert_eq!(nodes[0].remaining("k"), Some(Duration::from_millis(1)));
    pass(Duration::from_secs(5)).await;
    let held: Vec<bool> = nodes.iter().map(|node| node.value("k").is_some()).collect();
    assert_eq!(held, [false, false, true]);
    assert_eq!(nodes[2].remaining("k"), Some(TTL));
    assert!(guard.is_valid(), "a majority of clocks was wrong, and only a fence would help");
}

/// What can be said to a node can be a rule, too.
#[tokio::test(start_paused = true)]
async fn nodes_hang_restart_and_have_wrong_clocks_by_rule() {
    let nodes = Nodes::new(5);
    let locker = connected(&nodes).await;
    let on_key = |when: When| when.key("k").nth(1);
    nodes[0].add(on_key(When::after("SET")).then(Reaction::StepClock { millis: 4_000 }));
    nodes[1].add(on_key(When::after("SET")).then(Reaction::DriftClock { ppm: 1_000_000 }));
    nodes[2].add(on_key(When::before("SET")).then(Reaction::Restart { keeps_data: true }));
    nodes[3].add(on_key(When::after("SET")).then(Reaction::Restart { keeps_data: false }));
    nodes[4].add(on_key(When::after("SET")).then(Reaction::Hang));
    drop(locker.lock("other").await.unwrap());
    let error = refused(&locker).await;
    assert!(error.is_unavailable(), "two of five have answered: {error}");
    assert!(!nodes[4].is_running() && nodes[2].is_running() && nodes[3].is_running());
    assert_eq!((nodes[2].calls("SET"), nodes[3].calls("SET")), (0, 0), "another process");
    assert_eq!(nodes[4].calls("SET"), 2, "it had executed it");
    nodes[4].resume();
    pass(Duration::from_secs(5)).await;
    assert_eq!(nodes.holding("k"), 0, "what was executed is undone");
    let guard = locker.lock("k").await.unwrap();
    assert_eq!(nodes.holding("k"), 5);
    pass(TTL / 2).await;
    assert_eq!(nodes[0].remaining("k"), Some(TTL / 2), "a step is over when it is done");
    assert_eq!(nodes[1].remaining("k"), None, "a drift goes on");
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn connecting_can_be_refused_and_commands_can_be_late() {
    let nodes = Nodes::new(3);
    nodes[0].add(When::connecting().times(3).then(Reaction::Drop));
    nodes[1].add(When::connecting().then(Reaction::Delay(Duration::from_millis(40))));
    nodes[2].add(When::before_any().then(Reaction::Delay(Duration::from_millis(30))));
    let locker = nodes.locker().build().unwrap();
    let began = now();
    let health = locker.ready(Duration::from_secs(5)).await.unwrap();
    assert!(health.iter().all(|node| node.outcome == Outcome::Connected), "{health:?}");
    assert!(began.elapsed() >= Duration::from_millis(60));
}

/// What this panics with.
fn panic_of(work: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(work).unwrap_err();
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap()
}

#[test]
fn what_cannot_be_is_refused_at_once() {
    for count in [0, 16] {
        let told = panic_of(move || drop(Nodes::new(count)));
        assert_eq!(told, format!("a quorum takes 1 to 15 nodes, not {count}"));
    }
    assert_eq!((Nodes::new(1).len(), Nodes::new(15).len()), (1, 15));
    let told = panic_of(|| drop(Nodes::builder(3).node(3, |node| node.replica())));
    assert_eq!(told, "there is no node 3 among 3: they are counted from 0");
    let told = panic_of(|| drop(Nodes::builder(2).node(1, |node| node.valkey("nine")).build()));
    assert_eq!(told, "node 1: a version is three numbers, such as 8.2.3: \"nine\"");
    let told = panic_of(|| drop(Nodes::builder(1).each(|node| node.user("a", "+@read")).build()));
    assert!(told.starts_with("node 0: an in-process node knows no category"), "{told}");
    let told = panic_of(|| drop(Nodes::builder(1).each(|node| node.appendonly("daily")).build()));
    assert!(told.contains("always, everysec or no: \"daily\""), "{told}");
    let told = panic_of(|| drop(When::after("relase")));
    assert!(told.starts_with("\"relase\" is no command or script of an in-process node"), "{told}");
    let told = panic_of(|| assert_eq!(Nodes::new(1)[0].calls("GTE"), 0));
    assert!(told.starts_with("\"GTE\" is no command"), "{told}");
    let told = panic_of(|| drop(Nodes::builder(1).each(|node| node.without("release"))));
    assert!(told.starts_with("\"release\" is no command"), "{told}");
    let told = panic_of(|| drop(When::connecting().then(Reaction::Answer(b"+OK\r\n".to_vec()))));
    assert!(told.starts_with("who connects is answered nothing"), "{told}");
    let told = panic_of(|| drop(When::connecting().key("k").then(Reaction::Drop)));
    assert!(told.starts_with("who connects has named no key"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn nodes_are_what_their_builder_says() {
    let nodes = Nodes::builder(5)
        .each(|node| node.password("pw").user("app", "on >secret ~app:* +@all"))
        .each(|node| node.valkey("9.1.2").appendonly("always").snapshots("3600 1"))
        .node(3, |node| node.redis("6.2.14").maxmemory_policy("allkeys-lru"))
        .node(2, |node| node.without("CONFIG").without("time"))
        .node(4, |node| node.replica())
        .build();
    let locker = nodes.locker().build().unwrap();
    locker.ready(Duration::from_secs(1)).await.unwrap();
    let health = locker.health();
    let told = |number: usize| health[number].server.as_ref().unwrap();
    assert_eq!(told(0).to_string(), "valkey 9.1.2, master, standalone");
    assert_eq!(told(0).persistence.to_string(), "appendonly yes, appendfsync always, save 3600 1");
    let hidden = told(2);
    assert_eq!(
        (&hidden.persistence.appendfsync, hidden.clock),
        (&None, None),
        "the node tells neither"
    );
    assert_eq!(told(3).to_string(), "redis 6.2.14, master, standalone");
    assert_eq!(told(3).maxmemory_policy.as_deref(), Some("allkeys-lru"));
    assert!(health[4].to_string().contains("replica"), "{}", health[4]);
    let guard = locker.lock("k").await.unwrap();
    assert_eq!(nodes.holding("k"), 4, "a replica has no vote");
    assert!(guard.release().await.unwrap().is_released());

    let app = nodes.locker_as("app", "secret").build().unwrap();
    let error = refused(&app).await;
    assert!(error.to_string().contains("NOPERM"), "{error}");
    assert!(app.lock("app:k").await.is_ok());
    let stranger = nodes.locker_as("app", "guess").build().unwrap();
    assert!(refused(&stranger).await.is_authentication());
    let plain = Nodes::new(1);
    let locker = connected(&plain).await;
    let health = locker.health();
    let told = health[0].server.as_ref().unwrap().persistence.to_string();
    assert_eq!(told, "appendonly no, no snapshots");
}

/// The network is late, and not the node: what was sent together arrives together.
#[tokio::test(start_paused = true)]
async fn what_is_late_is_late_together_and_in_order() {
    let nodes = Nodes::new(1);
    let locker = connected(&nodes).await;
    let late = Duration::from_millis(40);
    for when in [When::before("SET"), When::after("SET")] {
        nodes[0].clear_rules();
        nodes[0].add(when.then(Reaction::Delay(late)));
        let began = now();
        let (a, b, c) = tokio::join!(locker.lock("a"), locker.lock("b"), locker.lock("c"));
        let took = began.elapsed();
        assert!(took >= late && took < 2 * late, "{took:?}");
        drop((a.unwrap(), b.unwrap(), c.unwrap()));
        pass(late).await;
        assert_eq!(nodes[0].keys().len(), 0);
    }
    // A connection that ends takes along what is still under way.
    nodes[0].clear_rules();
    nodes[0].add(When::after("SET").then(Reaction::Delay(late)));
    let (tried, ()) = tokio::join!(refused(&locker), async {
        pass(late / 2).await;
        assert_eq!(nodes.holding("k"), 1, "it was executed");
        nodes[0].cut();
    });
    assert!(tried.is_unavailable(), "{tried}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_writes_lets_others_read() {
    let nodes = Nodes::new(1);
    let locker = connected(&nodes).await;
    nodes[0].command(["CLIENT", "PAUSE", "60", "WRITE"]);
    let began = now();
    assert!(locker.inspect("k").await.is_ok());
    assert_eq!(began.elapsed(), Duration::ZERO);
    let guard = locker.lock("k").await.unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(60) && took < Duration::from_millis(62), "{took:?}");
    drop(guard);
}

/// A node over TCP keeps its keys by the clock of the runtime that asks; a locker of a URL measures
/// its leases by the machine's, unless it is told otherwise.
#[tokio::test(start_paused = true)]
async fn over_tcp_keys_end_by_tokios_clock_and_leases_if_asked() {
    let node = Node::listen().await.unwrap();
    let url = node.url().unwrap();
    let locker =
        |builder: LockerBuilder| builder.ttl(TTL).auto_extend(Extend::Off).build().unwrap();
    let ours = locker(Locker::single(&url).unwrap().tokio_clock());
    let guard = ours.lock("k").await.unwrap();
    guard.lost().await;
    assert!(guard.remaining() <= TTL / 100, "ten seconds have passed for both");
    let left = node.remaining("k").unwrap();
    assert!(left < TTL / 30, "{left:?}: what the margin for drift leaves");
    pass(left).await;
    assert_eq!(node.value("k"), None);

    let machines = locker(Locker::single(&url).unwrap());
    let guard = machines.lock("k").await.unwrap();
    pass(TTL).await;
    assert_eq!(node.value("k"), None, "the key has ended");
    assert!(guard.is_valid(), "and the machine's clock has not gone on");
}

#[tokio::test]
async fn a_node_that_listens_is_a_server_like_any_other() {
    let node = Node::builder().password("pw").user("me", "on >p ~* +@all -del").listen().await;
    let node = node.unwrap();
    let url = node.url().unwrap();
    assert!(url.starts_with("redis://:pw@127.0.0.1:"), "{url}");
    // With deadlines that a busy machine keeps: this one test does not drive its clock.
    let patience = Duration::from_secs(5);
    let client = Client::new(&url).unwrap().timeout(patience);
    assert!(client.command(["SET", "k", "v", "PX", "60000"]).await.unwrap().is_ok());
    assert_eq!(client.command(["GET", "k"]).await.unwrap().as_str(), Ok("v"));
    let me = Client::new(url.replace(":pw@", "me:p@")).unwrap().timeout(patience);
    let denied = me.command(["DEL", "k"]).await.unwrap();
    assert_eq!(denied.error_word(), Some(&b"NOPERM"[..]));
    let locker = Locker::single(&url).unwrap().node_timeout(patience).build().unwrap();
    let guard = locker.lock("lock").await.unwrap();
    assert!(node.value("lock").is_some());
    assert!(guard.release().await.unwrap().is_released());

    node.stop();
    let error = locker.lock("lock").wait(Duration::ZERO).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    node.restart(true).unwrap();
    let guard = locker.lock("lock").wait(patience).await.unwrap();
    assert_eq!(node.value("k").as_deref(), Some(&b"v"[..]));
    drop((guard, node));
    let error = Client::new(&url).unwrap().command(["PING"]).await.unwrap_err();
    assert!(error.is_unavailable(), "its last handle is gone: {error}");
}
