//! Other clients on the same key, both ways. (The `rslock` crate's turn is in `benches/peers`, so
//! that its dependencies burden no tests.)

use std::process::{Command, Output};
use std::time::Duration;

use quorlock::{LockRequest, Locker};
use support::{Fleet, Server, eventually, need_process, need_python, need_redis_cli, tools};

use crate::{builder, connected, single};

/// What people write by hand: compare and delete.
const RELEASE_BY_HAND: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                               return redis.call('DEL', KEYS[1]) else return 0 end";

/// Other programs take their time to start, and the runtime of these tests is blocked meanwhile: no
/// lock is extended.
const LONG: Duration = Duration::from_secs(600);

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test]
async fn redis_cli_excludes_us_and_is_excluded_by_us() {
    need_process!();
    let cli = need_redis_cli!();
    let fleet = Fleet::start(3);
    let locker = connected(builder(&fleet).ttl(LONG)).await;
    let on = |server: &Server, words: &[&str]| {
        let port = server.port().to_string();
        stdout(&Command::new(&cli).args(["-p", &port]).args(words).output().unwrap())
    };

    let guard = locker.lock("k").await.unwrap();
    eventually("all nodes have the key", || fleet.holders("k").len() == 3);
    for server in fleet.iter() {
        assert_eq!(on(server, &["SET", "k", "by-hand", "NX", "PX", "600000"]), "");
    }
    assert!(guard.release().await.unwrap().is_released());
    eventually("released", || fleet.keys_left("").is_empty());

    for server in fleet.iter() {
        assert_eq!(on(server, &["SET", "k", "by-hand", "NX", "PX", "600000"]), "OK");
    }
    assert!(locker.lock("k").try_acquire().await.unwrap().is_none());
    for server in fleet.iter() {
        let release = ["EVAL", RELEASE_BY_HAND, "1", "k"];
        assert_eq!(on(server, &[&release[..], &["another"]].concat()), "0");
        assert_eq!(on(server, &[&release[..], &["by-hand"]].concat()), "1");
    }
    let guard = locker.lock("k").try_acquire().await.unwrap().unwrap();
    let token = guard.forget();
    eventually("all nodes have the key", || fleet.holders("k").len() == 3);
    for server in fleet.iter() {
        assert_eq!(on(server, &["EVAL", RELEASE_BY_HAND, "1", "k", token.value()]), "1");
    }
    assert!(locker.lock("k").try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn redis_pys_lock_excludes_us_and_is_excluded_by_us() {
    need_process!();
    let server = Server::start();
    let locker = connected(single(server.url()).ttl(LONG)).await;
    let run = |python: &mut Command, body: &str| {
        let script = format!(
            "import redis\nr = redis.Redis(port={})\nlock = r.lock('k', timeout=600)\n{body}",
            server.port()
        );
        stdout(&python.args(["-c", &script]).output().unwrap())
    };

    let guard = locker.lock("k").await.unwrap();
    let mut python = need_python!();
    assert_eq!(run(&mut python, "print(lock.acquire(blocking=False))"), "False");
    assert!(guard.release().await.unwrap().is_released());

    let mut python = need_python!();
    let body = "print(lock.acquire(blocking=False), lock.local.token.decode())";
    let acquired = run(&mut python, body);
    let (granted, token) = acquired.split_once(' ').unwrap();
    assert_eq!(granted, "True");
    assert!(locker.lock("k").try_acquire().await.unwrap().is_none());

    let mut python = need_python!();
    let body = format!("lock.local.token = b'{token}'\nlock.release()\nprint('released')");
    assert_eq!(run(&mut python, &body), "released");
    assert!(locker.lock("k").try_acquire().await.unwrap().is_some());
}

/// What a slot is called on the servers.
const SLOT: &str = "{k}:slot:0";

/// A request of each kind, with the key that it holds.
fn members(locker: &Locker) -> [(&'static str, &'static str, LockRequest); 8] {
    [
        ("read", "k", locker.read("k")),
        ("write", "k", locker.write("k")),
        ("fair", "k", locker.lock("k").fair()),
        ("strict", "k", locker.lock("k").fair_strict()),
        ("delayed", "k", locker.lock("k").lock_delay(Duration::from_millis(1))),
        ("fenced", "k", locker.lock("k").fenced()),
        ("several", "k", locker.lock_all(["k", "l"])),
        ("slot", SLOT, locker.slots("k", 1).acquire()),
    ]
}

/// A revoked lock excludes redis-py's, too.
#[tokio::test]
async fn redis_pys_lock_and_each_other_kind_exclude_each_other() {
    need_process!();
    drop(need_python!());
    let server = Server::start();
    let locker = connected(single(server.url()).ttl(LONG)).await;
    // Runs this for redis-py's lock of each key.
    let python = |body: &str, keys: &[&str]| {
        let script = format!(
            "import redis, sys\nr = redis.Redis(port={})\nfor key in sys.argv[1:]:\n    \
             lock = r.lock(key, timeout=600)\n    {body}",
            server.port()
        );
        let mut python = tools::find_python().unwrap();
        stdout(&python.args(["-c", &script]).args(keys).output().unwrap())
    };

    let acquire = "print(lock.acquire(blocking=False))";
    for (kind, key, request) in members(&locker) {
        let guard = request.await.unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(python(acquire, &[key]), "False", "{kind}");
        if kind == "write" {
            assert!(locker.revoke("k").await.unwrap().is_some());
            assert_eq!(python(acquire, &[key]), "False", "one that is asked to let go");
        }
        assert!(guard.release().await.unwrap().is_released(), "{kind}");
    }

    let acquire = "print(lock.acquire(blocking=False) and lock.local.token.decode())";
    let tokens = python(acquire, &["k", SLOT]);
    let tokens: Vec<&str> = tokens.lines().collect();
    assert!(tokens.len() == 2 && !tokens.contains(&"False"), "{tokens:?}");
    for (kind, _, request) in members(&locker) {
        assert!(request.try_acquire().await.unwrap().is_none(), "{kind}: both have it");
    }
    let error = locker.latch("k", 1).unwrap().arrive("a").await.unwrap_err();
    assert!(error.is_misuse(), "{error}");
    for (key, token) in ["k", SLOT].into_iter().zip(tokens) {
        // It fails where the lock is no longer its own.
        let release = format!("lock.local.token = b'{token}'; lock.release(); print('released')");
        assert_eq!(python(&release, &[key]), "released");
    }
    for (kind, _, request) in members(&locker) {
        let guard = request.try_acquire().await.unwrap().unwrap_or_else(|| panic!("{kind}"));
        assert!(guard.release().await.unwrap().is_released(), "{kind}");
    }
}
