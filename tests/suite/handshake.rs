//! Servers that stall, refuse or mislead while shaking hands.

use std::thread;
use std::time::Duration;

use quorlock::{Client, Locker, report::Fault};
use support::script::Command;
use support::{
    Greeting, Heard, Script, Scripted, Server, acl, eventually, eventually_async, need_process,
    need_server, reach,
};

use crate::{connected, single};

/// Long beside a handshake, also on a busy machine; each step waits for it once.
const DEADLINE: Duration = Duration::from_secs(1);

/// What a locker asks of a server while shaking hands: everything up to the first lock.
fn asked(parameters: &str) -> Vec<Command> {
    let server = Scripted::start(Script::greeting_as(greeting(parameters)));
    let url = format!("{}{parameters}", server.url().replace("//", "//:pw@"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let locker = single(url).build().unwrap();
    runtime.block_on(locker.ready(Duration::from_secs(5))).unwrap();
    server.commands()
}

fn greeting(parameters: &str) -> Greeting {
    let greeting = Greeting::default().password("pw");
    if parameters.contains("protocol=2") { greeting.without_hello() } else { greeting }
}

/// A server that answers so many commands of the handshake and then nothing more, and one that
/// answers all, on the second connection.
fn stalls_behind(answers: usize, parameters: &str) -> Scripted {
    let mut stalling = Script::greeting_as(greeting(parameters));
    let heard = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    // Takes itself for what the test expects once so many were answered, and stalls there.
    stalling = stalling
        .expect_where("the step to stall at", move |_| {
            heard.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == answers
        })
        .stall();
    let honest = Script::greeting_as(greeting(parameters)).answer_all(|_| b"+OK\r\n".to_vec());
    Scripted::start_sequence([stalling, honest])
}

#[test]
fn a_server_that_stalls_at_any_step_costs_one_deadline_and_its_connection() {
    for parameters in ["/3?name=web", "/3?name=web&protocol=2"] {
        let steps = &asked(parameters)[..];
        assert!(steps.len() > 10, "{steps:?}");
        // All at once, for each of them waits.
        thread::scope(|scope| {
            for step in 0..steps.len() {
                scope.spawn(move || stall_at(step, steps, parameters));
            }
        });
    }
}

fn stall_at(step: usize, steps: &[Command], parameters: &str) {
    let server = stalls_behind(step, parameters);
    let url = format!("{}{parameters}", server.url().replace("//", "//:pw@"));
    let builder = single(url).connect_timeout(DEADLINE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let locker = builder.build().unwrap();
        let error = locker.ready(2 * DEADLINE).await;
        let seen = locker.health();
        // A second connection does all of it again, and nothing of the first is used.
        let ready = locker.ready(Duration::from_secs(5)).await;
        assert!(ready.is_ok(), "step {step}: {ready:?}");
        let said = format!("{error:?} {seen:?}");
        assert!(said.contains("Silent") || server.accepted() > 1, "step {step}: {said}");
        assert!(locker.lock("k").try_acquire().await.unwrap().is_some());
    });
    let heard = server.heard();
    let of = |number| heard.iter().filter(move |heard| heard.connection == number);
    assert!(step > 0 || of(0).count() == 1, "nothing follows an unanswered login");
    let again: Vec<_> = of(1).take(steps.len()).map(|heard| heard.command.clone()).collect();
    assert_eq!(again, steps, "step {step}");
}

/// A locker that connects once in this test, and has been told that the server was silent for the
/// deadline.
async fn silenced(server: &Scripted) -> Locker {
    let builder = single(server.url()).connect_timeout(DEADLINE);
    let locker = builder.reconnect(Duration::from_secs(60), Duration::from_secs(60)).build();
    let locker = locker.unwrap();
    let is_silent =
        |fault: &Fault| matches!(fault, Fault::Silent { after, .. } if *after == DEADLINE);
    locker.ready(DEADLINE / 2).await.unwrap_err();
    eventually_async("it is silent", async || {
        locker.health()[0].outcome.fault().is_some_and(is_silent)
    })
    .await;
    locker
}

#[tokio::test]
async fn a_stall_is_told_with_its_time() {
    let server = Scripted::start(Script::bare().stall());
    let locker = silenced(&server).await;
    let error = locker.ready(Duration::from_millis(10)).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert!(error.to_string().contains("was silent for 1.0 s while connecting"), "{error}");
    server.wait_for_closed();
}

/// One deadline over the whole of it: a server that answers each step just in time is not usable.
#[tokio::test]
async fn a_server_that_drips_its_answers_does_not_outlast_the_deadline() {
    let mut script = Script::bare().expect("HELLO");
    for byte in b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n" {
        script = script.reply([*byte]).delay(DEADLINE / 5);
    }
    let server = Scripted::start(script.stall());
    silenced(&server).await;
}

#[tokio::test]
async fn everything_behind_the_login_comes_in_one_batch() {
    let server = Scripted::start(
        Script::greeting().expect_where("TIME", |command| command[0] == b"TIME").stall(),
    );
    let locker = single(server.url()).build().unwrap();
    let waiting = tokio::spawn(async move { locker.ready(Duration::from_secs(5)).await });
    // Not one more is answered, and all of them are there.
    let is_last = |heard: &Heard| heard.name() == "SCRIPT";
    eventually_heard(&server, |heard| heard.iter().filter(|heard| is_last(heard)).count() == 9)
        .await;
    waiting.abort();
}

async fn eventually_heard(server: &Scripted, condition: impl Fn(&[Heard]) -> bool) {
    eventually_async("it was heard", async || condition(&server.heard())).await;
}

/// What a server may forbid, and the lock works all the same.
#[tokio::test]
async fn a_lock_needs_none_of_the_optional_steps() {
    need_server!();
    let forbidden = ["INFO", "CONFIG", "TIME", "CLIENT", "SCRIPT"];
    let args = forbidden.iter().flat_map(|name| ["--rename-command", name, ""]);
    let server = Server::builder().args(args).start();
    for parameter in ["protocol=3", "protocol=2"] {
        let url = reach::with(&reach::with(&server.url(), "name=web"), parameter);
        let locker = connected(single(&url)).await;
        // The server was given the scripts in another way: the first drop is as good as any.
        for _ in 0..3 {
            drop(locker.lock("k").try_acquire().await.unwrap().unwrap());
        }
        let guard = locker.lock("k").await.unwrap();
        guard.extend(Duration::from_secs(20)).await.unwrap();
        assert!(guard.release().await.unwrap().is_released());
        let health = locker.health();
        let told = health[0].server.clone().unwrap();
        assert_eq!((told.run_id, told.maxmemory_policy, told.clock), (None, None, None));
        assert_eq!(told.resp3, !url.contains("protocol=2"));
    }
}

#[tokio::test]
async fn without_a_login_resp2_is_told_that_one_is_asked_for() {
    need_server!();
    let server = Server::builder().password("right").start();
    for parameters in ["", "?protocol=2"] {
        let url = server.url_as("");
        let url = format!("{}{parameters}", url.split('?').next().unwrap());
        let locker = single(url).build().unwrap();
        let error = locker.ready(Duration::from_secs(5)).await.unwrap_err();
        assert!(error.is_authentication(), "{parameters:?}: {error}");
        assert!(error.to_string().contains("NOAUTH"), "{error}");
    }
}

#[tokio::test]
async fn the_servers_lists_name_the_library_where_they_can() {
    need_process!();
    let server = Server::start();
    let client = Client::new(reach::with(&server.url(), "name=web")).unwrap();
    let client = client.timeout(Duration::from_secs(5));
    assert!(client.command(["PING"]).await.is_ok());
    let list = server.command(&["CLIENT", "LIST"]).text();
    assert!(list.contains(" name=web "), "{list}");
    let (kind, version) = server.version();
    if !acl::is_least() && (kind == "valkey" || version >= [7, 2, 0]) {
        assert!(list.contains(" lib-name=quorlock lib-ver="), "{list}");
    }
    eventually("nothing else is connected", || {
        server.command(&["CLIENT", "LIST"]).text().matches(" name=web ").count() == 1
    });
}
