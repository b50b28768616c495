//! The test support, tested: a suite that stands on it must be able to trust it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use support::greeting::Greeting;
use support::sha1::sha1_hex;
use support::{
    Client, Fleet, Gate, PollTimes, Port, Proxy, Reply, Script, Scripted, Server, eventually,
    eventually_async, need_process, need_python, need_redis_cli, poll_times,
};

#[test]
fn a_server_starts_answers_and_is_gone_when_dropped() {
    need_process!();
    let server = Server::start();
    let (addr, socket, pid) = (server.addr(), server.socket_path(), server.pid());
    assert_eq!(server.command(&["SET", "k", "v"]), Reply::ok());
    assert_eq!(server.command(&["GET", "k"]), Reply::bulk("v"));
    assert_eq!(server.command(&["GET", "none"]), Reply::Nil);
    assert_eq!(server.info("process_id"), Some(pid.to_string()), "the child is the server itself");
    assert!(server.version().1 > [0, 0, 0]);
    assert!(!cfg!(unix) || socket.exists());

    drop(server);
    assert!(TcpStream::connect(addr).is_err());
    assert!(!socket.parent().is_some_and(std::path::Path::exists));
}

#[test]
fn a_stopped_server_refuses_and_comes_back_empty_on_its_port() {
    need_process!();
    let server = Server::start();
    server.command(&["SET", "k", "v"]);
    let (port, run_id) = (server.port(), server.info("run_id"));

    server.stop();
    assert!(!server.is_running());
    assert!(server.try_command(&["PING"]).is_err());

    server.restart();
    assert_eq!(server.port(), port);
    assert_ne!(server.info("run_id"), run_id);
    assert_eq!(server.command(&["GET", "k"]), Reply::Nil);
}

#[cfg(unix)]
#[test]
fn a_paused_server_is_silent_until_resumed() {
    need_process!();
    let server = Server::start();
    server.pause();
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut reply = [0; 7];
    assert!(stream.read(&mut reply).is_err(), "a paused server says nothing");

    server.resume();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+PONG\r\n");

    server.pause();
    server.stop();
    assert!(!server.is_running(), "a paused server can be killed");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let program = need_process!();
    let start = || Server::builder().program(program).args(["--no-such-option", "1"]).start();
    let panic = std::panic::catch_unwind(start).expect_err("an unknown option is refused");
    let text = panic.downcast_ref::<String>().expect("a message");
    assert!(text.contains("no-such-option"), "{text}");
}

#[test]
fn passwords_users_replicas_and_cluster_nodes() {
    need_process!();
    let master = Server::builder().password("pw").user("alice", "on >secret ~* +@all").start();
    assert_eq!(master.command(&["PING"]), Reply::Status("PONG".into()));
    assert!(master.url().contains(":pw@"));
    let mut alice = Client::connect(master.addr()).unwrap();
    assert!(alice.call(&["PING"]).unwrap().text().starts_with("NOAUTH"));
    assert_eq!(alice.call(&["AUTH", "alice", "secret"]).unwrap(), Reply::ok());

    let replica = Server::builder().replica_of(&master).start();
    assert_eq!(replica.info("role").as_deref(), Some("slave"));
    let node = Server::builder().cluster().start();
    assert_eq!(node.info("cluster_enabled").as_deref(), Some("1"));
}

#[test]
fn every_server_that_was_found_runs() {
    need_process!();
    for program in support::tools::all_servers() {
        let server = Server::builder().program(&program).start();
        let (kind, version) = server.version();
        assert!(version >= [5, 0, 0], "{}: {kind} {version:?}", program.display());
    }
}

#[test]
fn a_fleet_knows_who_holds_what() {
    need_process!();
    let fleet = Fleet::start(3);
    assert_eq!(fleet.urls().len(), 3);
    fleet[0].command(&["SET", "a:1", "v"]);
    fleet[2].command(&["SET", "a:1", "v"]);
    fleet[1].command(&["SET", "b:1", "v"]);
    assert_eq!(fleet.holders("a:1"), [0, 2]);
    assert_eq!(fleet.keys_left("a:"), [(0, "a:1".into()), (2, "a:1".into())]);
    assert_eq!(fleet.keys_left("").len(), 3);

    fleet[0].stop();
    assert_eq!(fleet.holders("a:1"), [2], "a node that is down is not asked");
    fleet.command(&["FLUSHALL"]);
    assert_eq!(fleet.keys_left(""), []);
}

#[test]
fn programs_beside_the_server_are_found() {
    let cli = need_redis_cli!();
    assert!(cli.is_file());
    let python = need_python!().args(["-c", "import redis"]).status().unwrap();
    assert!(python.success());
}

#[test]
fn the_macros_know_the_name_of_their_test() {
    assert_eq!(support::test_name!(), "support_check::the_macros_know_the_name_of_their_test");
}

#[tokio::test]
async fn the_macros_know_the_name_of_an_async_test() {
    let name = "support_check::the_macros_know_the_name_of_an_async_test";
    assert_eq!(support::test_name!(), name);
}

#[test]
fn a_claimed_port_refuses_connections() {
    let ports = [Port::claim(), Port::claim()];
    assert_ne!(ports[0].number(), ports[1].number());
    assert!(TcpStream::connect(ports[0].addr()).is_err());

    let taken = std::net::TcpListener::bind(ports[0].addr()).expect("it is free for its owner");
    assert!(TcpStream::connect(ports[0].addr()).is_ok());
    drop(taken);
}

#[test]
fn a_script_is_played_and_what_it_hears_is_kept() {
    let gate = Gate::new();
    let script = Script::greeting().expect("set").wait(&gate).reply("+OK\r\n").expect("GET");
    let node = Scripted::start(script.reply_in_pieces("$3\r\nabc\r\n", 1));
    let mut client = Client::connect(node.addr()).unwrap();
    assert_eq!(client.call(&["CLIENT", "ID"]).unwrap(), Reply::Int(1));

    let setter = std::thread::spawn(move || {
        let reply = client.call(&["SET", "k", "v"]).unwrap();
        (client, reply)
    });
    node.wait_for_command("SET", 1);
    assert!(!setter.is_finished(), "the gate is still closed");
    gate.open();
    let (mut client, reply) = setter.join().unwrap();
    assert_eq!(reply, Reply::ok());
    assert_eq!(client.call(&["GET", "k"]).unwrap(), Reply::bulk("abc"));

    assert_eq!(node.names(), ["CLIENT", "SET", "GET"]);
    let words = [b"SET".to_vec(), b"k".to_vec(), b"v".to_vec()];
    assert_eq!(node.commands_named("SET"), [words]);
    node.wait_for_played(1);
    drop(client);
    node.wait_for_closed();
}

#[test]
fn connections_can_be_cut_reset_and_counted() {
    let second = Script::bare().expect_any().reset();
    let node = Scripted::start_sequence([Script::bare().expect_any().cut(), second]);
    let mut first = Client::connect(node.addr()).unwrap();
    let error = first.call(&["PING"]).expect_err("it is cut");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);

    let mut second = Client::connect(node.addr()).unwrap();
    let error = second.call(&["PING"]).expect_err("it is reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    node.wait_for_closed();
    assert_eq!(node.accepted(), 2);
    assert_eq!(node.heard()[1].connection, 1);
}

#[test]
fn a_stalled_connection_listens_and_a_deaf_one_does_not() {
    let node = Scripted::start_sequence([Script::greeting().stall(), Script::greeting().deaf()]);
    let ping = support::wire::encode(&["PING"]);
    let mut stalled = TcpStream::connect(node.addr()).unwrap();
    stalled.write_all(&ping).unwrap();
    node.wait_for_command("PING", 1);

    let mut deaf = TcpStream::connect(node.addr()).unwrap();
    node.wait_for_accepted(2);
    deaf.write_all(&ping).unwrap();
    node.wait_for_played(2);
    assert_eq!(node.heard().len(), 1);

    node.cut_all();
    assert_eq!(stalled.read(&mut [0; 1]).unwrap(), 0, "closed, and no byte said");
}

#[test]
fn a_script_that_is_not_followed_fails_the_test() {
    let dropped = std::panic::catch_unwind(|| {
        let node = Scripted::start(Script::greeting().expect("SET"));
        let mut client = Client::connect(node.addr()).unwrap();
        client.call(&["DEL", "k"]).expect_err("it is hung up");
        node.wait_for_closed();
    });
    let panic = dropped.expect_err("the drop says so");
    let text = panic.downcast_ref::<String>().expect("a message");
    assert!(text.contains("expected SET, heard DEL k"), "{text}");
}

#[test]
fn a_greeting_is_a_plausible_server() {
    let greeting = Greeting::default().password("pw").role("replica").version("valkey", "9.1.2");
    let node = Scripted::start(Script::greeting_as(greeting).answer_all(|_| b":7\r\n".to_vec()));
    let mut client = Client::connect(node.addr()).unwrap();
    assert!(client.call(&["PING"]).unwrap().text().starts_with("NOAUTH"));
    assert!(client.call(&["AUTH", "wrong"]).unwrap().text().starts_with("WRONGPASS"));
    assert_eq!(client.call(&["AUTH", "default", "pw"]).unwrap(), Reply::ok());
    let hello = client.call(&["HELLO", "2"]).unwrap().array();
    let value = |name| {
        let at = hello.iter().position(|word| *word == Reply::bulk(name));
        hello[at.expect("the field is there") + 1].clone()
    };
    assert_eq!(value("role"), Reply::bulk("replica"));
    assert_eq!(value("version"), Reply::bulk("9.1.2"));
    assert_eq!(value("id"), Reply::Int(1));
    assert!(client.call(&["INFO", "server"]).unwrap().text().contains("run_id:"));
    let digest = client.call(&["SCRIPT", "LOAD", "return 1"]).unwrap();
    assert_eq!(digest, Reply::bulk("e0e1f9fabfc9d4800c877a703b823ac0578ff8db"));
    assert_eq!(client.call(&["INCR", "k"]).unwrap(), Reply::Int(7));
}

#[test]
fn digests_are_those_of_the_standard() {
    assert_eq!(sha1_hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_eq!(sha1_hex(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    // 56 bytes: the length no longer fits into the first block.
    let long = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    assert_eq!(sha1_hex(long), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

#[tokio::test]
async fn poll_times_drops_after_the_last_pending_poll() {
    struct Falls<'a>(&'a std::cell::Cell<bool>);
    impl Drop for Falls<'_> {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let fallen = std::cell::Cell::new(false);
    let polls = std::cell::Cell::new(0);
    let work = || async {
        let _falls = Falls(&fallen);
        polls.set(polls.get() + 1);
        tokio::task::yield_now().await;
        polls.set(polls.get() + 1);
        tokio::task::yield_now().await;
        "done"
    };
    assert_eq!(poll_times(work(), 0).await, PollTimes::Dropped);
    assert_eq!(polls.get(), 0, "no poll at all");
    assert_eq!(poll_times(work(), 2).await, PollTimes::Dropped);
    assert_eq!((polls.get(), fallen.replace(false)), (2, true));
    assert_eq!(poll_times(work(), 3).await.completed(), Some("done"));
    assert!(fallen.get());
}

#[tokio::test]
async fn conditions_are_waited_for() {
    let gate = Gate::new();
    let opener = gate.clone();
    std::thread::spawn(move || opener.open());
    eventually("the gate to open", || gate.wait_for(Duration::ZERO));

    let mut looks = 0;
    let third_look = async || {
        looks += 1;
        looks == 3
    };
    eventually_async("the third look", third_look).await;
    assert_eq!(looks, 3);
}

#[test]
#[should_panic(expected = "waiting for: the impossible")]
fn a_watchdog_barks_with_the_name_of_its_wait() {
    support::Watchdog::with_patience("the impossible", Duration::ZERO).pause();
}

#[test]
fn a_frozen_network_delivers_nothing_until_it_thaws_and_loses_nothing() {
    need_process!();
    let server = Server::start();
    let proxy = Proxy::start(server.addr());
    let addr = proxy.addr();
    let mut client = Client::connect(addr).unwrap();
    assert_eq!(client.call(&["SET", "k", "1"]).unwrap(), Reply::ok());
    proxy.freeze();
    let asking = std::thread::spawn(move || client.call(&["INCR", "k"]).unwrap());
    eventually("the command waits in the network", || proxy.waiting() > 0);
    assert_eq!(server.command(&["GET", "k"]), Reply::bulk("1"));
    proxy.thaw();
    assert_eq!(asking.join().unwrap(), Reply::Int(2));
    assert_eq!(proxy.waiting(), 0);
}
