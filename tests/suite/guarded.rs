//! Commands that a server refuses once a later holder has come.

use std::time::Duration;

use quorlock::guarded::{self, Command, Stale};
use quorlock::{Client, Extend, Fence, Frame};
use support::wait::PATIENCE;
use support::{Fleet, Reply, Server, need_process};

use crate::{builder, connected};

const ACCEPTED: &str = "{stock}:quorlock:written";

fn client(server: &Server) -> Client {
    Client::new(server.url_as("")).unwrap().timeout(PATIENCE)
}

fn fence(number: u64) -> Fence {
    Fence::from_number(number).unwrap()
}

fn stale(tried: u64, accepted: i64) -> Option<Stale> {
    Some(Stale::new(fence(tried), accepted))
}

fn text(server: &Server, key: &str) -> String {
    server.command(&["GET", key]).text()
}

/// What became of setting `stock` under this fence.
async fn set(store: &Client, value: &str, number: u64) -> Result<Frame, guarded::Error> {
    Command::set("stock", value, fence(number)).unwrap().send(store).await
}

#[tokio::test]
async fn a_late_write_is_refused_and_changes_nothing() {
    need_process!();
    let server = Server::start();
    let store = client(&server);
    for (value, number) in [("12", 42), ("11", 42), ("10", Fence::MAX.number() - 1)] {
        assert!(set(&store, value, number).await.unwrap().is_ok());
        assert_eq!(text(&server, "stock"), value);
    }
    let late = set(&store, "12", 42).await.unwrap_err();
    assert_eq!(late.stale(), stale(42, Fence::MAX.number() as i64 - 1), "{late}");
    assert_eq!(text(&server, "stock"), "10");
    assert!(set(&store, "9", Fence::MAX.number()).await.unwrap().is_ok());
    assert_eq!(server.command(&["TTL", ACCEPTED]), Reply::Int(-1));
}

#[cfg(feature = "blocking")]
#[test]
fn a_blocking_client_is_refused_a_late_write() {
    need_process!();
    let server = Server::start();
    let store = quorlock::blocking::Client::new(server.url_as("")).unwrap().timeout(PATIENCE);
    let set =
        |value: &str, number| store.send(&Command::set("stock", value, fence(number)).unwrap());
    assert!(set("12", 42).unwrap().is_ok());
    let late = set("13", 41).unwrap_err();
    assert_eq!(late.stale(), stale(41, 42), "{late}");
    assert_eq!(text(&server, "stock"), "12");
    let polling = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let refused = polling.block_on(async { set("11", 43).unwrap_err() });
    assert!(matches!(&refused, guarded::Error::Client(error) if error.is_misuse()), "{refused}");
    drop(server);
    assert!(matches!(set("11", 43).unwrap_err(), guarded::Error::Client(_)));
}

#[tokio::test]
async fn who_may_write_once_is_refused_the_second_time() {
    need_process!();
    let server = Server::start();
    let store = client(&server);
    let once = |number| {
        Command::eval("return redis.call('DECR', KEYS[1])", ["stock"], ["x"; 0], fence(number))
            .unwrap()
            .once()
    };
    assert_eq!(once(42).send(&store).await.unwrap().as_integer(), Ok(-1));
    let again = once(42).send(&store).await.unwrap_err();
    assert!(matches!(again, guarded::Error::Used(used) if used == fence(42)), "{again}");
    assert_eq!(once(43).send(&store).await.unwrap().as_integer(), Ok(-2));
    assert_eq!(text(&server, "stock"), "-2");
}

/// What a holder has read is not changed by an earlier one, if it has brought its fence with that.
/// By a plain read it has not.
#[tokio::test]
async fn who_has_read_stops_all_earlier_holders() {
    need_process!();
    let server = Server::start();
    let store = client(&server);
    server.command(&["SET", "stock", "10"]);
    assert_eq!(store.command(["GET", "stock"]).await.unwrap().as_str(), Ok("10"));
    assert!(set(&store, "9", 5).await.unwrap().is_ok(), "fence 6 has read, and told no one");

    let read = Command::get("stock", fence(6)).unwrap().send(&store).await.unwrap();
    assert_eq!(read.as_str(), Ok("9"));
    let late = set(&store, "8", 5).await.unwrap_err();
    assert_eq!(late.stale(), stale(5, 6), "{late}");
    let late = Command::get("stock", fence(5)).unwrap().send(&store).await.unwrap_err();
    assert_eq!(late.stale(), stale(5, 6), "{late}");
    assert!(set(&store, "8", 6).await.unwrap().is_ok());
    assert!(Command::get("none", fence(1)).unwrap().send(&store).await.unwrap().is_null());
}

/// Of several keys each has its own fence: who has one of them later is not written over.
#[tokio::test]
async fn a_script_is_refused_if_one_of_its_keys_has_met_a_later_fence() {
    need_process!();
    let server = Server::start();
    let store = client(&server);
    let both = |number: u64, keys: [&str; 2]| {
        let script = "redis.call('SET', KEYS[1], ARGV[1]) redis.call('SET', KEYS[2], ARGV[1])";
        Command::eval(script, keys, [number.to_string()], fence(number)).unwrap()
    };
    assert!(both(5, ["stock", "price"]).send(&store).await.unwrap().is_null());
    assert!(Command::set("price", "6", fence(6)).unwrap().send(&store).await.unwrap().is_ok());
    for keys in [["stock", "price"], ["price", "stock"]] {
        let late = both(5, keys).send(&store).await.unwrap_err();
        assert_eq!(late.stale(), stale(5, 6), "{late}");
    }
    assert_eq!((text(&server, "stock"), text(&server, "price")), ("5".into(), "6".into()));
    assert!(set(&store, "5", 5).await.unwrap().is_ok(), "what was refused has noted no fence");
    assert!(both(7, ["price", "stock"]).send(&store).await.unwrap().is_null());
    assert_eq!(set(&store, "6", 6).await.unwrap_err().stale(), stale(6, 7));
}

/// A script of a user's own finds its keys and arguments as it would without the check.
#[tokio::test]
async fn a_script_sees_its_own_keys_and_arguments_and_nothing_of_the_check() {
    need_process!();
    let server = Server::start();
    let store = client(&server);
    let script = "local function all(of) return table.concat(of, ' ') end
        redis.call('SET', KEYS[2], all(ARGV))
        return {#KEYS, all(KEYS), #ARGV, all(ARGV)}";
    let write = Command::eval(script, ["stock", "price"], ["a", "b c"], fence(42)).unwrap();
    let told = write.send(&store).await.unwrap().into_items().unwrap().into_vec();
    let told: Vec<String> = told
        .iter()
        .map(|frame| match frame {
            Frame::Integer(number) => number.to_string(),
            frame => frame.as_str().unwrap().to_owned(),
        })
        .collect();
    assert_eq!(told, ["2", "stock price", "2", "a b c"]);
    assert_eq!(text(&server, "price"), "a b c");

    let nothing = Command::eval("local done = 1", ["stock"], ["x"; 0], fence(42)).unwrap();
    assert!(nothing.send(&store).await.unwrap().is_null());
}

/// Neither the data nor the fence changes where the check fails. A script that fails in its middle
/// has had its fence noted.
#[tokio::test]
async fn what_a_server_rejects_is_told_with_its_words() {
    need_process!();
    let server = Server::start();
    let store = client(&server);
    let rejected = async |number| match set(&store, "1", number).await {
        Err(guarded::Error::Rejected(error)) => error.into_string(),
        other => panic!("{other:?}"),
    };
    server.command(&["LPUSH", ACCEPTED, "x"]);
    assert!(rejected(42).await.contains("WRONGTYPE"));
    server.command(&["DEL", ACCEPTED]);
    for none in ["", "x", "-1", "1.5", "9007199254740992", "12345678901234567"] {
        server.command(&["SET", ACCEPTED, none]);
        assert!(rejected(42).await.contains("something else than a fence"), "{none:?}");
    }
    server.command(&["SET", ACCEPTED, "41"]);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(rejected(42).await.contains("OOM"));
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(text(&server, ACCEPTED), "41");
    assert_eq!(server.command(&["EXISTS", "stock"]), Reply::Int(0));
    assert!(set(&store, "1", 41).await.unwrap().is_ok());

    let broken =
        Command::eval("return redis.call('INCR')", ["stock"], ["x"; 0], fence(42)).unwrap();
    let broken = broken.send(&store).await.unwrap_err();
    assert!(matches!(broken, guarded::Error::Rejected(_)) && broken.stale().is_none(), "{broken}");
    let late = set(&store, "1", 41).await.unwrap_err();
    assert_eq!(late.stale(), stale(41, 42), "a script that fails has had its fence noted");
}

/// By its words it goes through any client.
#[tokio::test]
async fn writes_can_be_sent_in_a_pipeline() {
    need_process!();
    let server = Server::start();
    let store = client(&server);
    let writes = [43, 42, 44].map(|number| Command::set("stock", "1", fence(number)).unwrap());
    let mut pipeline = store.pipeline();
    for write in &writes {
        pipeline.command(write.words());
    }
    let replies = pipeline.run().await.unwrap();
    let outcomes: Vec<_> = writes.iter().zip(replies).map(|(w, reply)| w.outcome(reply)).collect();
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    assert_eq!(outcomes[1].as_ref().unwrap_err().stale(), stale(42, 43));
}

/// A holder is stopped until its lock has ended and another has written, on a server that keeps
/// none of the locks. By a plain command its write would be done.
#[tokio::test]
async fn who_was_stopped_past_its_lock_writes_nothing() {
    need_process!();
    let (fleet, server) = (Fleet::start(3), Server::start());
    let store = client(&server);
    let [stopped, next] = [connected(builder(&fleet)).await, connected(builder(&fleet)).await];
    let lock = stopped.lock("stock").fenced().ttl(Duration::from_secs(1)).auto_extend(Extend::Off);
    let first = lock.await.unwrap();
    let late = first.fence().unwrap();
    first.lost().await;
    let second = next.lock("stock").fenced().await.unwrap();
    assert!(set(&store, "9", second.fence().unwrap().number()).await.unwrap().is_ok());

    let refused = set(&store, "10", late.number()).await.unwrap_err().stale().unwrap();
    assert_eq!((refused.tried(), refused.accepted()), (late, second.fence().unwrap().number()));
    assert_eq!(text(&server, "stock"), "9");
    assert!(store.command(["SET", "stock", "10"]).await.unwrap().is_ok());
    assert_eq!(text(&server, "stock"), "10");
}
