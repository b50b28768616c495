//! Scripted servers: what goes over the wire, in what order, and what may come back.

use std::time::Duration;

use quorlock::{Client, LockerBuilder};
use support::greeting::Greeting;
use support::{Heard, Script, Scripted, Server, eventually, eventually_async, need_server};

use crate::connected;

fn single(server: &Scripted) -> LockerBuilder {
    crate::single(server.url()).wait(Duration::ZERO)
}

#[tokio::test]
async fn the_login_goes_first_alone_and_is_awaited() {
    let server = Scripted::start(Script::bare().expect("HELLO").stall());
    let url = server.url().replace("://", "://me:pw@");
    let client = Client::new(url).unwrap();
    let asking = tokio::spawn(async move { client.command(["PING"]).await });
    eventually_async("the login is heard", async || !server.heard().is_empty()).await;
    // What else was on its way would come in no time.
    tokio::time::sleep(Duration::from_millis(100)).await;
    asking.abort();
    let heard = server.commands();
    assert_eq!(heard.len(), 1, "nothing is sent before the login is answered: {heard:?}");
    assert_eq!(heard[0], ["HELLO", "3", "AUTH", "me", "pw"].map(|word| word.as_bytes().to_vec()));
}

#[tokio::test]
async fn a_server_without_hello_is_locked_on_in_resp2() {
    let greeting = Greeting::default().without_hello();
    let server = Scripted::start(
        Script::greeting_as(greeting)
            .expect("SET")
            .reply("+OK\r\n")
            .expect("EVALSHA")
            .reply(":1\r\n"),
    );
    let locker = single(&server).build().unwrap();
    let guard = locker.lock("k").await.unwrap();
    assert!(guard.release().await.unwrap().is_released());
}

#[tokio::test]
async fn a_server_that_does_not_know_the_script_gets_it_whole() {
    let server = Scripted::start(
        Script::greeting()
            .expect("SET")
            .reply("+OK\r\n")
            .expect("EVALSHA")
            .reply("-NOSCRIPT No matching script. Please use EVAL.\r\n")
            .expect("EVAL")
            .reply(":1\r\n"),
    );
    let locker = single(&server).build().unwrap();
    let guard = locker.lock("k").await.unwrap();
    let token = guard.owner_token();
    assert!(guard.release().await.unwrap().is_released());
    let eval = &server.commands_named("EVAL")[0];
    assert_eq!(eval[3..], [b"k".to_vec(), token.as_str().as_bytes().to_vec()]);
}

#[tokio::test]
async fn a_reply_that_cannot_be_ends_the_connection_and_grants_nothing() {
    let strays = [":1\r\n", "$2\r\nOK\r\n", "+PONG\r\n", "*0\r\n", "#t\r\n", "@what\r\n", "+O"];
    for stray in strays {
        let server = Scripted::start_sequence([
            Script::greeting().expect("SET").reply(stray).stall(),
            Script::greeting().answer_all(|_| b":0\r\n".to_vec()),
        ]);
        let locker = connected(single(&server)).await;
        let error = locker.lock("k").try_acquire().await.unwrap_err();
        assert!(error.is_unavailable(), "{stray:?}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_too_many_ends_the_connection() {
    let server = Scripted::start_sequence([
        Script::greeting().expect("SET").reply("+OK\r\n+OK\r\n").stall(),
        Script::greeting().answer_all(|_| b":0\r\n".to_vec()),
    ]);
    let locker = connected(single(&server)).await;
    let guard = locker.lock("k").try_acquire().await;
    server.wait_for_accepted(2);
    // The first reply was the command's own; the second belonged to no command.
    drop(guard);
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.is_unavailable(), "`:0` is no reply to SET: {error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_connection_left_is_settled_by_the_next_in_order() {
    let server = Scripted::start_sequence([
        Script::greeting().expect("SET").reset(),
        Script::greeting().answer_all(|_| b":1\r\n".to_vec()),
    ]);
    let locker = connected(single(&server)).await;
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    server.wait_for_command("EVAL", 1);
    let names = server.names();
    let second = names.iter().rposition(|name| name == "HELLO").unwrap();
    let heard = server.heard();
    let is_settling = |heard: &&Heard| heard.word(1) == "KILL" || heard.name() == "EVAL";
    let settling: Vec<_> = heard[second..].iter().filter(is_settling).map(Heard::name).collect();
    assert_eq!(settling[..2], ["CLIENT", "EVAL"], "{names:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_that_finds_no_connection_is_sent_by_the_next() {
    need_server!();
    let server = Server::start();
    let locker = connected(crate::single(server.url())).await;
    let guard = locker.lock("k").await.unwrap();
    server.pause();
    // The connection is cut while the guard is held, and the guard is dropped meanwhile.
    server.resume();
    server.cut_clients();
    let cut = async || locker.lock("other").try_acquire().await.is_err();
    eventually_async("the locker has noticed", cut).await;
    drop(guard);
    eventually("the key is released", || server.command(&["EXISTS", "k"]).int() == 0);
}

#[tokio::test]
async fn an_error_that_says_no_is_a_no_and_any_other_is_undone() {
    for (reply, undone) in [("-OOM command not allowed\r\n", 0), ("-WEIRD thing\r\n", 1)] {
        let server = Scripted::start(
            Script::greeting().expect("SET").reply(reply).answer_all(|_| b":0\r\n".to_vec()),
        );
        let locker = connected(single(&server)).await;
        let error = locker.lock("k").try_acquire().await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        // Asked over the same link: what was sent before this has been heard when this has.
        locker.inspect("k").await.unwrap();
        server.wait_for_command("GET", 1);
        assert_eq!(server.commands_named("EVALSHA").len(), undone, "{reply:?}");
    }
}

/// The release is queued behind others' commands when the connection ends: the next one sends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_that_was_queued_when_the_connection_ended_is_sent_by_the_next() {
    let server = Scripted::start_sequence([
        Script::greeting().expect("SET").reply("+OK\r\n").deaf(),
        Script::greeting().answer_all(|_| b":1\r\n".to_vec()),
    ]);
    // The others are given up, soon.
    let builder = single(&server).link_bytes_max(64 << 20).node_timeout(Duration::from_secs(1));
    let locker = connected(builder).await;
    let guard = locker.lock("k").try_acquire().await.unwrap().unwrap();
    let token = guard.owner_token();
    // The server no longer reads, so the kernel's buffers fill up and the rest stays with us.
    let fillers: Vec<_> = (0..4_000)
        .map(|index| {
            let key = format!("{index}-{}", "x".repeat(4_000));
            let locker = locker.clone();
            tokio::spawn(async move { locker.lock(key).try_acquire().await.map(drop) })
        })
        .collect();
    for filler in fillers {
        filler.await.unwrap().unwrap_err();
    }
    drop(guard);
    server.cut_all();
    let released = || {
        let evals = server.commands_named("EVAL");
        evals.iter().any(|eval| eval[3] == b"k" && eval[4] == token.as_str().as_bytes())
    };
    eventually("the next connection releases it", released);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_that_the_server_refuses_for_now_is_tried_again() {
    let server = Scripted::start(
        Script::greeting()
            .expect("SET")
            .reply("+OK\r\n")
            .expect("EVALSHA")
            .reply("-BUSY Redis is busy running a script.\r\n")
            .expect("EVAL")
            .reply("-BUSY Redis is busy running a script.\r\n")
            .expect("EVAL")
            .reply(":1\r\n"),
    );
    let locker = connected(single(&server)).await;
    drop(locker.lock("k").await.unwrap());
    server.wait_for_command("EVAL", 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_became_a_replica_is_left_and_looked_up_again() {
    let server = Scripted::start_sequence([
        Script::greeting().expect("SET").reply("-READONLY You can't write.\r\n").stall(),
        Script::greeting().answer_all(|_| b"+OK\r\n".to_vec()),
    ]);
    let locker = connected(single(&server)).await;
    let error = locker.lock("k").try_acquire().await.unwrap_err();
    assert!(error.to_string().contains("READONLY"), "{error}");
    server.wait_for_accepted(2);
    let guard = locker.lock("k").wait(Duration::from_secs(5)).await.unwrap();
    let _ = guard.forget(); // this server answers nothing but OK
}
