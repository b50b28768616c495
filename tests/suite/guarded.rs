//! Writes that a server refuses where their holder comes too late.

use std::time::Duration;

use quorlock::guarded::{Refused, Write, WriteError};
use quorlock::{Client, Extend, Fence, Frame};
use support::wait::PATIENCE;
use support::{Fleet, Reply, Server, need_process};

use crate::{builder, connected};

const STANDING: &str = "{stock}:quorlock:written";

fn client(server: &Server) -> Client {
    Client::new(server.url_as("")).unwrap().timeout(PATIENCE)
}

fn fence(number: u64) -> Fence {
    Fence::from_number(number).unwrap()
}

fn refused(tried: u64, stands: i64) -> Option<Refused> {
    Some(Refused::new(fence(tried), stands))
}

fn text(server: &Server, key: &str) -> String {
    server.command(&["GET", key]).text()
}

/// What became of setting `stock` under this fence.
async fn set(store: &Client, value: &str, number: u64) -> Result<Frame, WriteError> {
    Write::set("stock", value, fence(number)).unwrap().send(store).await
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
    assert_eq!(late.refused(), refused(42, Fence::MAX.number() as i64 - 1), "{late}");
    assert_eq!(text(&server, "stock"), "10");
    assert!(set(&store, "9", Fence::MAX.number()).await.unwrap().is_ok());
    assert_eq!(server.command(&["TTL", STANDING]), Reply::Int(-1));
}

#[tokio::test]
async fn who_may_write_once_is_refused_the_second_time() {
    need_process!();
    let server = Server::start();
    let store = client(&server);
    let once = |number| {
        Write::eval("return redis.call('DECR', KEYS[1])", ["stock"], ["x"; 0], fence(number))
            .unwrap()
            .once()
    };
    assert_eq!(once(42).send(&store).await.unwrap().as_integer(), Ok(-1));
    let again = once(42).send(&store).await.unwrap_err();
    assert_eq!(again.refused(), refused(42, 42), "{again}");
    assert_eq!(once(43).send(&store).await.unwrap().as_integer(), Ok(-2));
    assert_eq!(text(&server, "stock"), "-2");
}

/// A script of a user's own, behind the check, is what it would be alone.
#[tokio::test]
async fn a_script_sees_its_own_keys_and_arguments_and_nothing_of_the_check() {
    need_process!();
    let server = Server::start();
    let store = client(&server);
    let script = "local function all(of) return table.concat(of, ' ') end
        redis.call('SET', KEYS[2], all(ARGV))
        return {#KEYS, all(KEYS), #ARGV, all(ARGV)}";
    let write = Write::eval(script, ["stock", "price"], ["a", "b c"], fence(42)).unwrap();
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

    let nothing = Write::eval("local done = 1", ["stock"], ["x"; 0], fence(42)).unwrap();
    assert!(nothing.send(&store).await.unwrap().is_null());
}

/// Neither the data nor the fence changes where the server does not do the whole.
#[tokio::test]
async fn what_a_server_rejects_is_told_with_its_words() {
    need_process!();
    let server = Server::start();
    let store = client(&server);
    let rejected = async |number| match set(&store, "1", number).await {
        Err(WriteError::Rejected(error)) => error.into_string(),
        other => panic!("{other:?}"),
    };
    server.command(&["LPUSH", STANDING, "x"]);
    assert!(rejected(42).await.contains("WRONGTYPE"));
    server.command(&["DEL", STANDING]);
    for stands in ["", "x", "-1", "1.5", "12345678901234567"] {
        server.command(&["SET", STANDING, stands]);
        assert!(rejected(42).await.contains("something else than a fence"), "{stands:?}");
    }
    server.command(&["SET", STANDING, "41"]);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(rejected(42).await.contains("OOM"));
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(text(&server, STANDING), "41");
    assert_eq!(server.command(&["EXISTS", "stock"]), Reply::Int(0));
    assert!(set(&store, "1", 41).await.unwrap().is_ok());

    let broken = Write::eval("return redis.call('INCR')", ["stock"], ["x"; 0], fence(42)).unwrap();
    let broken = broken.send(&store).await.unwrap_err();
    assert!(matches!(broken, WriteError::Rejected(_)) && broken.refused().is_none(), "{broken}");
    let late = set(&store, "1", 41).await.unwrap_err();
    assert_eq!(late.refused(), refused(41, 42), "a script that fails has had its fence noted");
}

/// By its words it goes through any client.
#[tokio::test]
async fn writes_can_be_sent_in_a_pipeline() {
    need_process!();
    let server = Server::start();
    let store = client(&server);
    let writes = [43, 42, 44].map(|number| Write::set("stock", "1", fence(number)).unwrap());
    let mut pipeline = store.pipeline();
    for write in &writes {
        pipeline.command(write.words());
    }
    let replies = pipeline.run().await.unwrap();
    let outcomes: Vec<_> = writes.iter().zip(replies).map(|(w, reply)| w.outcome(reply)).collect();
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    assert_eq!(outcomes[1].as_ref().unwrap_err().refused(), refused(42, 43));
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

    let refused = set(&store, "10", late.number()).await.unwrap_err().refused().unwrap();
    assert_eq!((refused.tried(), refused.stands()), (late, second.fence().unwrap().number()));
    assert_eq!(text(&server, "stock"), "9");
    assert!(store.command(["SET", "stock", "10"]).await.unwrap().is_ok());
    assert_eq!(text(&server, "stock"), "10");
}
