use std::time::Duration;

use bytes::Bytes;

use super::super::peer::Admission;
use super::*;
use crate::clock::{Moment, Stamp};
use crate::report::{Mode, Role, ServerInfo, ServerKind};

const SCRIPT: &str = "return 1";

fn at(millis: u64) -> Reading {
    let now = Moment::from_nanos(millis * 1_000_000);
    Reading { now, stamp: Stamp::from_millis(millis) }
}

fn start_with(url: &str, config: HandshakeConfig) -> Handshake {
    Handshake::new(Address::parse(url).unwrap(), config)
}

fn start(url: &str) -> Handshake {
    start_with(url, HandshakeConfig { scripts: vec![SCRIPT], ..HandshakeConfig::default() })
}

impl Handshake {
    fn hear(&mut self, frame: &Frame) -> Result<Option<Peer>, Fault> {
        self.handle_frame(frame, at(0))
    }

    fn says(&mut self) -> Vec<u8> {
        self.poll_transmit(at(0))
    }

    /// Answers what is awaited, each step by its place in the batch.
    fn hear_all(&mut self, reply: impl Fn(usize, Step) -> Frame) -> Peer {
        for place in 0.. {
            let step = self.awaited[0];
            if let Some(peer) = self.hear(&reply(place, step)).unwrap() {
                return peer;
            }
        }
        unreachable!("every batch ends")
    }
}

#[derive(Debug)]
struct Looks;

impl AdmissionPolicy for Looks {
    fn key(&self) -> &[u8] {
        b"the:epoch"
    }

    fn judge(&self, _: &Peer) -> Admission {
        Admission::Admitted
    }

    fn may_be_forgotten(&self, _: &ServerInfo) -> bool {
        false
    }

    fn explain(&self, _: Option<Duration>) -> Box<str> {
        "".into()
    }
}

fn command(args: &[&str]) -> Vec<u8> {
    let args: Vec<_> = args.iter().map(|arg| arg.as_bytes()).collect();
    let mut bytes = Vec::new();
    encode::command(&mut bytes, &args);
    bytes
}

fn commands(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| command(&line.split(' ').collect::<Vec<_>>())).collect()
}

fn bulk(text: &'static str) -> Frame {
    Frame::Bulk(Bytes::from_static(text.as_bytes()))
}

fn error(text: &'static str) -> Frame {
    Frame::Error(Bytes::from_static(text.as_bytes()))
}

fn ok() -> Frame {
    Frame::Simple(Bytes::from_static(b"OK"))
}

fn no() -> Frame {
    error("NOPERM this user has no permissions to run it")
}

fn hello(mode: &'static str, role: &'static str) -> Frame {
    let fields = [
        (bulk("server"), bulk("redis")),
        (bulk("version"), bulk("8.2.3")),
        (bulk("id"), Frame::Integer(7)),
        (bulk("mode"), bulk(mode)),
        (bulk("role"), bulk(role)),
    ];
    Frame::Map(fields.into_iter().collect())
}

const SETINFO: [&str; 2] = [
    "CLIENT SETINFO LIB-NAME quorlock",
    concat!("CLIENT SETINFO LIB-VER ", env!("CARGO_PKG_VERSION")),
];
const ASKED: [&str; 6] = [
    "TIME",
    "INFO server",
    "INFO memory",
    "INFO persistence",
    "CONFIG GET appendfsync",
    "CONFIG GET save",
];

#[test]
fn a_mark_is_asked_for_and_told_as_it_is_found() {
    let cases = [
        (bulk("held"), EpochValue::Text(b"held"[..].into())),
        (Frame::Null, EpochValue::Absent),
        (error("WRONGTYPE Operation against a key"), EpochValue::Other),
        (no(), EpochValue::Untold),
    ];
    for (reply, found) in cases {
        let config =
            HandshakeConfig { policy: Some(Arc::new(Looks)), ..HandshakeConfig::default() };
        let mut handshake = start_with("redis://h", config);
        handshake.says();
        handshake.hear(&hello("standalone", "master")).unwrap();
        let batch = [&ASKED[..], &["GET the:epoch"], &SETINFO].concat();
        assert_eq!(handshake.says(), commands(&batch));
        let peer = handshake.hear_all(|_, step| match step {
            Step::EpochValue => reply.clone(),
            _ => no(),
        });
        assert_eq!(peer.epoch, found);
    }
}

#[test]
fn resp3_logs_in_with_its_first_command_alone_and_batches_the_rest() {
    let mut handshake = start("redis://me:pw@h/2?name=web");
    assert_eq!(handshake.says(), commands(&["HELLO 3 AUTH me pw"]));
    assert_eq!(handshake.hear(&hello("standalone", "master")), Ok(None));
    let named = [&["SELECT 2"], &ASKED[..], &["CLIENT SETNAME web"], &SETINFO].concat();
    let script = command(&["SCRIPT", "LOAD", SCRIPT]);
    assert_eq!(handshake.says(), [commands(&named), script].concat());
    let replies = [
        ok(),
        Frame::Array([bulk("1700000000"), bulk("250000")].into_iter().collect()),
        bulk("# Server\r\nredis_version:8.2.3\r\nrun_id:abc\r\nserver_time_usec:1\r\n"),
        bulk("# Memory\r\nmaxmemory_policy:volatile-lru\r\n"),
        bulk("# Persistence\r\naof_enabled:1\r\n"),
        Frame::Map([(bulk("appendfsync"), bulk("always"))].into_iter().collect()),
        Frame::Map([(bulk("save"), bulk("3600 1"))].into_iter().collect()),
        ok(),
        ok(),
        error("ERR unknown subcommand 'SETINFO'"),
        bulk("digest"),
    ];
    let peer = handshake.hear_all(|place, _| replies[place].clone());
    assert_eq!((peer.client_id, peer.eviction()), (Some(7), Some("volatile-lru")));
    let server = peer.server;
    assert_eq!((server.mode, server.role), (Some(Mode::Standalone), Some(Role::Master)));
    assert_eq!(server.run_id.as_deref(), Some("abc"));
    assert_eq!(server.to_string(), "redis 8.2.3, master, standalone");
    let persistence = "appendonly yes, appendfsync always, save 3600 1";
    assert_eq!((server.persistence.to_string().as_str(), server.resp3), (persistence, true));
    let apart = server.clock.unwrap().apart;
    assert_eq!(apart, Duration::from_millis(1_700_000_000_250), "our clock stands at 0");
}

#[test]
fn the_login_and_the_clock_are_timed() {
    let mut handshake = start("redis://h");
    handshake.poll_transmit(at(1_000));
    handshake.handle_frame(&hello("standalone", "master"), at(1_030)).unwrap();
    handshake.poll_transmit(at(1_100));
    handshake.poll_transmit(at(1_190)); // nothing is left to send
    handshake.handle_frame(&no(), at(1_200)).unwrap();
    let told = bulk("server_time_usec:1250000\r\n");
    handshake.handle_frame(&told, at(1_200)).unwrap();
    let peer = handshake.hear_all(|_, _| no());
    assert_eq!(peer.rtt, Some(Duration::from_millis(30)));
    assert_eq!(peer.server.clock.unwrap().to_string(), "100 ms ahead (± 50 ms)");
}

#[test]
fn a_server_without_hello_is_spoken_to_in_resp2() {
    for unknown in [
        "ERR unknown command `HELLO`",
        "ERR unknown command 'HELLO', with args beginning with: '3'",
        "unsupported command 'hello'",
        "NOPROTO unsupported protocol version",
    ] {
        let mut handshake = start("redis://:pw@h");
        assert_eq!(handshake.says(), commands(&["HELLO 3 AUTH default pw"]));
        handshake.hear(&error(unknown)).unwrap();
        assert_eq!(handshake.says(), commands(&["AUTH pw"]));
        handshake.hear(&ok()).unwrap();
        let (first, last) = ASKED.split_at(4);
        let role = ["INFO replication", "CLIENT ID"];
        let script = command(&["SCRIPT", "LOAD", SCRIPT]);
        let asked = [first, &role, last, &SETINFO].concat();
        assert_eq!(handshake.says(), [commands(&asked), script].concat());
        let save = [bulk("save"), bulk("")];
        let replies = [
            no(),
            bulk(
                "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n\
                 run_id:abc\r\nserver_mode:cluster\r\nserver_time_usec:5000000\r\n",
            ),
            bulk("maxmemory_policy:noeviction\r\n"),
            bulk("aof_enabled:0\r\n"),
            bulk("role:slave\r\n"),
            Frame::Integer(9),
            no(),
            Frame::Array(save.into_iter().collect()),
            no(),
            no(),
            bulk("digest"),
        ];
        let peer = handshake.hear_all(|place, _| replies[place].clone());
        assert_eq!((peer.client_id, peer.eviction()), (Some(9), None));
        assert_eq!(peer.server.to_string(), "valkey 9.1.2, replica, cluster");
        assert_eq!(peer.server.persistence.to_string(), "appendonly no, no snapshots");
        assert_eq!(peer.server.clock.unwrap().apart, Duration::from_secs(5));
        assert!(!peer.server.resp3 && peer.is_replica());
    }
}

#[test]
fn a_refused_login_is_told_as_one() {
    for text in ["NOAUTH Authentication required.", "WRONGPASS invalid username-password pair"] {
        let fault = start("redis://:pw@h").hear(&error(text)).unwrap_err();
        assert!(matches!(fault, Fault::Authentication { .. }), "{fault:?}");
        let in_resp2 = start("redis://:pw@h?protocol=2").hear(&error(text)).unwrap_err();
        assert_eq!(in_resp2, fault);
    }
    let mut handshake = start("redis://h/99");
    handshake.hear(&hello("standalone", "master")).unwrap();
    let fault = handshake.hear(&error("ERR DB index is out of range")).unwrap_err();
    assert!(matches!(fault, Fault::Handshake { .. }), "{fault:?}");
}

#[test]
fn optional_steps_may_be_refused_or_answered_by_anything() {
    let odd = [no(), Frame::Null, Frame::Integer(-1), bulk("x"), bulk(":"), ok()];
    let odd = odd.into_iter().chain([Frame::Array([bulk("1")].into_iter().collect())]);
    for reply in odd {
        for url in ["redis://h?name=web", "redis://h?name=web&protocol=2"] {
            let mut handshake = start(url);
            if !url.ends_with('2') {
                handshake.hear(&hello("standalone", "replica")).unwrap();
            }
            let Peer { server, .. } = handshake.hear_all(|_, _| reply.clone());
            assert_eq!((&server.run_id, server.clock), (&None, None), "{reply:?}");
            assert_eq!(server.persistence.to_string(), "not told");
        }
    }
}

#[test]
fn a_script_that_may_not_be_loaded_is_brought_by_executing_it_without_a_key() {
    let mut handshake = start_with(
        "redis://h",
        HandshakeConfig { scripts: vec!["a", "b"], ..HandshakeConfig::default() },
    );
    handshake.hear(&hello("standalone", "master")).unwrap();
    handshake.says();
    while handshake.awaited.len() > 1 {
        let loaded = handshake.awaited[0] == Step::Load(0);
        assert_eq!(handshake.hear(&if loaded { bulk("digest") } else { no() }), Ok(None));
    }
    assert_eq!(handshake.hear(&no()), Ok(None), "it is not done yet");
    assert_eq!(handshake.says(), commands(&["EVAL b 0"]));
    let failed = error("ERR Lua redis lib command arguments must be strings or integers");
    assert!(handshake.hear(&failed).unwrap().is_some());
}

fn valkey(version: &'static str) -> Frame {
    let fields = [("server", "valkey"), ("version", version), ("mode", "standalone")];
    Frame::Map(fields.map(|(name, value)| (bulk(name), bulk(value))).into_iter().collect())
}

fn probing(url: &str) -> Handshake {
    let native_probe_key = Some(b"p:probed"[..].into());
    start_with(url, HandshakeConfig { native_probe_key, ..HandshakeConfig::default() })
}

#[test]
fn a_valkey_from_9_on_is_asked_whether_native_commands_may_be_sent() {
    for (version, is_asked) in [("9.0.0", true), ("9.1.2", true), ("8.1.4", false), ("x", false)] {
        let mut handshake = probing("redis://h");
        handshake.hear(&valkey(version)).unwrap();
        let asked = String::from_utf8(handshake.says()).unwrap();
        assert_eq!(asked.ends_with("$1\r\n0\r\n$8\r\np:probed\r\n"), is_asked, "{version}");
        for answer in [Frame::Integer(1), Frame::Integer(0), no()] {
            let mut handshake = probing("redis://h");
            handshake.hear(&valkey(version)).unwrap();
            let may = |step| if step == Step::Probe { answer.clone() } else { no() };
            let peer = handshake.hear_all(|_, step| may(step));
            assert_eq!(peer.is_native, is_asked && answer == Frame::Integer(1), "{version}");
        }
    }
    let mut redis = probing("redis://h");
    redis.hear(&hello("standalone", "master")).unwrap();
    assert!(!redis.awaited.contains(&Step::Probe));
    let mut unasked = start("redis://h");
    unasked.hear(&valkey("9.1.2")).unwrap();
    assert!(!unasked.awaited.contains(&Step::Probe), "who wants none asks for none");
}

#[test]
fn by_resp2_it_is_asked_behind_what_tells_the_version() {
    let mut handshake = probing("redis://h?protocol=2");
    handshake.says();
    let info = bulk("redis_version:7.2.4\r\nvalkey_version:9.1.2\r\n");
    let told = |step| match step {
        Step::Info => info.clone(),
        Step::Probe => Frame::Integer(1),
        _ => no(),
    };
    assert!(!handshake.awaited.contains(&Step::Probe));
    assert!(handshake.hear_all(|_, step| told(step)).is_native);
}

#[test]
fn a_server_that_admits_no_client_or_answers_nothing_yet_is_not_usable() {
    let cases = [
        ("NOAUTH Authentication required.", true),
        ("DENIED Redis is running in protected mode", false),
        ("LOADING Redis is loading the dataset in memory", false),
        ("BUSY Redis is busy running a script.", false),
        ("ERR max number of clients reached", false),
    ];
    for (text, is_login) in cases {
        // Without a login, RESP2 has no first command that a server could refuse.
        let mut handshake = start("redis://h?protocol=2");
        let fault = handshake.hear(&error(text)).unwrap_err();
        assert_eq!(matches!(fault, Fault::Authentication { .. }), is_login, "{fault:?}");
        let mut handshake = start("redis://h");
        handshake.hear(&hello("standalone", "master")).unwrap();
        assert_eq!(handshake.hear(&error(text)).unwrap_err(), fault);
    }
}

#[test]
fn what_a_server_calls_itself_is_safe_to_print() {
    let mut handshake = start("redis://h");
    let fields = [(bulk("server"), bulk("drag\x1b[2Jon")), (bulk("version"), bulk("1\n2"))];
    handshake.hear(&Frame::Map(fields.into_iter().collect())).unwrap();
    let server = handshake.hear_all(|_, _| no()).server;
    assert_eq!(server.kind, Some(ServerKind::Other(r"drag\x1b[2Jon".into())));
    assert_eq!(server.version.as_deref(), Some(r"1\n2"));
}

#[test]
fn a_reply_too_many_and_a_reply_that_cannot_be_are_faults() {
    assert!(start("redis://h").hear(&ok()).is_err());
    let mut handshake = start("redis://h?protocol=2");
    handshake.awaited.clear();
    assert!(handshake.hear(&ok()).is_err());
}
