//! Other clients on the same key, both ways. (The `rslock` crate's turn is in `benches/peers`, so
//! that its dependencies burden no tests.)

use std::process::{Command, Output};
use std::time::Duration;

use support::{Fleet, Server, eventually, need_process, need_python, need_redis_cli};

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
