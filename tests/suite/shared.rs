//! One caller's commands on a connection that others share: the others get their own replies.

use std::collections::BTreeMap;
use std::time::Duration;

use quorlock::{Client, Error, Frame};
use support::wait::PATIENCE;
use support::{Reply, Server, eventually_async, need_process, need_server};

/// What no shared connection carries, with arguments that a server would take.
const REFUSED: [&[&str]; 40] = [
    &["SUBSCRIBE", "c"],
    &["PSUBSCRIBE", "c*"],
    &["SSUBSCRIBE", "c"],
    &["UNSUBSCRIBE"],
    &["PUNSUBSCRIBE"],
    &["SUNSUBSCRIBE"],
    &["MONITOR"],
    &["SYNC"],
    &["PSYNC", "?", "-1"],
    &["REPLCONF", "ACK", "0"],
    &["CLUSTER", "SYNCSLOTS", "CAPA"],
    &["SCRIPT", "DEBUG", "YES"],
    &["CLIENT", "REPLY", "OFF"],
    &["CLIENT", "REPLY", "SKIP"],
    &["QUIT"],
    &["POST", "x"],
    &["HOST:", "x"],
    &["AUTH", "wrong"],
    &["HELLO", "2"],
    &["RESET"],
    &["SELECT", "1"],
    &["MULTI"],
    &["EXEC"],
    &["DISCARD"],
    &["WATCH", "k"],
    &["UNWATCH"],
    &["ASKING"],
    &["READONLY"],
    &["READWRITE"],
    &["CLIENT", "CAPA", "redirect"],
    &["CLIENT", "TRACKING", "ON"],
    &["CLIENT", "CACHING", "YES"],
    &["CLIENT", "NO-TOUCH", "ON"],
    &["CLIENT", "IMPORT-SOURCE", "ON"],
    &["BLPOP", "k", "0"],
    &["BZMPOP", "0", "1", "k", "MIN"],
    &["WAIT", "1", "0"],
    &["WAITAOF", "1", "0", "0"],
    &["XREAD", "BLOCK", "0", "STREAMS", "s", "$"],
    &["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"],
];

/// The other commands that block.
const BLOCKING: [&str; 7] =
    ["BRPOP", "BRPOPLPUSH", "BLMOVE", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BLPOP"];

fn patient(server: &Server) -> Client {
    Client::new(server.url_as("")).unwrap().timeout(PATIENCE)
}

/// Whether a command is on the list above, with any arguments.
fn is_refused(command: &[String]) -> bool {
    let upper: Vec<String> = command.iter().map(|word| word.to_uppercase()).collect();
    let has_subcommand = |refused: &[&str]| ["CLIENT", "CLUSTER", "SCRIPT"].contains(&refused[0]);
    let is_it = |refused: &&[&str]| {
        let words = 1 + usize::from(has_subcommand(refused));
        !refused[0].starts_with("XREAD") && upper.iter().take(words).eq(refused.iter().take(words))
    };
    REFUSED.iter().any(is_it) || BLOCKING.contains(&&*upper[0])
}

#[tokio::test]
async fn a_command_that_would_shift_or_change_others_replies_is_refused_and_not_sent() {
    need_server!();
    let server = Server::start();
    let client = patient(&server);
    let other = client.clone();
    assert!(client.command(["SET", "secret", "s3cret"]).await.unwrap().is_ok());
    for command in REFUSED {
        let mixed: Vec<String> = command.iter().map(|word| word.to_lowercase()).collect();
        let mut pipeline = client.pipeline();
        pipeline.command(["DEL", "secret"]).command(command).command(["PING"]);
        let (said, lower, piped, secret, ping) = tokio::join!(
            client.command(command),
            client.command(&mixed),
            pipeline.run(),
            other.command(["GET", "secret"]),
            other.command(["PING"]),
        );
        for error in [said.unwrap_err(), lower.unwrap_err(), piped.unwrap_err()] {
            assert!(error.is_misuse(), "{command:?}: {error}");
            assert!(error.to_string().contains(command[0]), "{command:?}: {error}");
        }
        assert_eq!(secret.unwrap().as_str(), Ok("s3cret"), "{command:?}");
        assert_eq!(ping.unwrap().as_str(), Ok("PONG"), "{command:?}");
    }
}

/// The names of all commands that a server knows, with subcommands where it tells them.
fn commands_of(server: &Server) -> Vec<Vec<String>> {
    let mut names = Vec::new();
    for told in server.command(&["COMMAND"]).array() {
        let told = told.array();
        names.push(vec![told[0].text()]);
        for part in told.get(9).cloned().map(Reply::array).unwrap_or_default() {
            let name = part.array()[0].text();
            names.push(name.split('|').map(str::to_owned).collect());
        }
    }
    names
}

/// What a server says of the connection, as far as it matters to all of its users: that it shall
/// not be evicted (`e`) does no harm to any, and `N` is for no flag at all.
async fn standing(client: &Client) -> BTreeMap<String, String> {
    let fields = ["id", "db", "sub", "psub", "ssub", "multi", "watch", "user", "redir", "resp"];
    let info = client.command(["CLIENT", "INFO"]).await.unwrap();
    let text = info.as_str().unwrap().trim().to_owned();
    let told = text.split(' ').filter_map(|pair| pair.split_once('='));
    let kept = told.filter_map(|(field, value)| match field {
        "flags" => Some((field, value.replace(['e', 'N'], ""))),
        _ => fields.contains(&field).then(|| (field, value.to_owned())),
    });
    kept.map(|(field, value)| (field.to_owned(), value)).collect()
}

/// Sends every command that the server knows, but those that end or change the whole server, with
/// arguments of several kinds. Those of the list are refused; behind all others another caller's
/// replies are its own, and the connection is as it was.
#[tokio::test]
async fn whatever_else_a_caller_sends_the_connection_stays_in_step() {
    const OF_THE_WHOLE_SERVER: [&str; 6] =
        ["shutdown", "debug", "failover", "replicaof", "slaveof", "pfselftest"];
    need_process!();
    let server = Server::start();
    let client = patient(&server);
    let other = client.clone();
    let before = standing(&client).await;
    let (mut passed, mut refused) = (0, 0);
    for name in commands_of(&server) {
        if OF_THE_WHOLE_SERVER.contains(&&*name[0]) {
            continue;
        }
        for argument in ["1", "on", "yes", "a"] {
            for count in 0..4 {
                let command = [&name[..], &vec![argument.to_owned(); count]].concat();
                let nonce = format!("{command:?}");
                let (said, echo) =
                    tokio::join!(client.command(&command), other.command(["ECHO", &nonce]));
                assert_eq!(echo.unwrap().as_str(), Ok(&*nonce), "{said:?}");
                let is_misuse = said.as_ref().is_err_and(Error::is_misuse);
                assert_eq!(is_misuse, is_refused(&command), "{command:?}: {said:?}");
                *(if is_misuse { &mut refused } else { &mut passed }) += 1;
                assert!(is_misuse || said.is_ok(), "{command:?}: {said:?}");
            }
        }
        assert_eq!(standing(&client).await, before, "{name:?}");
    }
    assert!(passed > 3_000 && refused > 300, "{passed} passed, {refused} refused");
}

/// A server says itself which of its commands block.
#[tokio::test]
async fn every_command_that_the_server_calls_blocking_is_refused() {
    need_process!();
    let server = Server::start();
    let client = patient(&server);
    let is_blocking =
        |told: &[Reply]| told[2].clone().array().iter().any(|flag| flag.text() == "blocking");
    let mut count = 0;
    for told in server.command(&["COMMAND"]).array() {
        let told = told.array();
        let name = told[0].text();
        if is_blocking(&told) {
            // The option of those that have one, and an argument to the others.
            let error = client.command([&*name, "BLOCK", "0"]).await.unwrap_err();
            assert!(error.is_misuse() && error.to_string().contains("allow_blocking"), "{error}");
            count += 1;
        }
    }
    let (_, [major, ..]) = server.version();
    assert!(count >= 10 || major < 7, "{count} commands; before Redis 7 there is no such flag");
}

#[tokio::test]
async fn a_blocking_client_waits_on_a_connection_of_its_own() {
    need_process!();
    let server = Server::start();
    let client = patient(&server);
    let id = async |client: &Client| client.command(["CLIENT", "ID"]).await.unwrap().as_integer();
    let worker = client.clone().allow_blocking().timeout(Duration::from_secs(60));
    assert_ne!(id(&client).await, id(&worker).await);
    assert_eq!(id(&worker).await, id(&worker.clone()).await);
    for still in [&["SUBSCRIBE", "c"][..], &["SELECT", "1"], &["QUIT"]] {
        assert!(worker.command(still).await.unwrap_err().is_misuse(), "{still:?}");
    }

    let popped = tokio::spawn(async move { worker.command(["BLPOP", "jobs", "0"]).await });
    eventually_async("it waits", async || server.info("blocked_clients") == Some("1".into())).await;
    assert_eq!(client.command(["ECHO", "mine"]).await.unwrap().as_str(), Ok("mine"));
    assert_eq!(client.command(["RPUSH", "jobs", "one"]).await.unwrap(), Frame::Integer(1));
    let job = popped.await.unwrap().unwrap();
    let words: Vec<_> = job.as_items().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(words, ["jobs", "one"]);
}
