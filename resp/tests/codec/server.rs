//! Frames of a real server: one of each kind it can be made to send.
//!
//! The server is `$QUORLOCK_SERVER`, else the first `redis-server` or `valkey-server` on the path,
//! else each one below `target/servers` of the workspace. Without any the test says that it was
//! skipped, and fails if `$QUORLOCK_REQUIRE_SERVERS` is 1.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use quorlock_resp::{Decoder, Frame, Limits, encode};

use crate::notation;

/// What `DEBUG PROTOCOL` answers in RESP2 and in RESP3. The push and the reply to it are written
/// in this order, whichever a server sends first: 6.2 and 7.0 send the push first, 8.2 the reply.
const KINDS: &[(&str, &str, &str)] = &[
    ("string", "bulk\"Hello World\"", "bulk\"Hello World\""),
    ("integer", "int 12345", "int 12345"),
    ("double", "bulk\"3.141\"", "double 3.141"),
    ("null", "null", "null"),
    ("array", "[int 0, int 1, int 2]", "[int 0, int 1, int 2]"),
    ("set", "[int 0, int 1, int 2]", "set[int 0, int 1, int 2]"),
    (
        "map",
        "[int 0, int 0, int 1, int 1, int 2, int 0]",
        "{int 0: false, int 1: true, int 2: false}",
    ),
    (
        "attrib",
        "bulk\"Some real reply following the attribute\"",
        "attr{bulk\"key-popularity\": [bulk\"key:123\", int 90]} \
         bulk\"Some real reply following the attribute\"",
    ),
    (
        "push",
        "error\"ERR RESP2 is not supported by this command\"",
        "push[bulk\"server-cpu-usage\", int 42] \
         bulk\"Some real reply following the push reply\"",
    ),
    (
        "verbatim",
        "bulk\"This is a verbatim\\nstring\"",
        "verbatim:txt\"This is a verbatim\\nstring\"",
    ),
    ("true", "int 1", "true"),
    ("false", "int 0", "false"),
    (
        "bignum",
        "bulk\"1234567999999999999999999999999999999\"",
        "big\"1234567999999999999999999999999999999\"",
    ),
];

#[test]
fn servers_send_every_kind() {
    let programs = find_servers();
    if programs.is_empty() {
        let required = env::var_os("QUORLOCK_REQUIRE_SERVERS").is_some_and(|value| value == "1");
        assert!(!required, "no server found, and QUORLOCK_REQUIRE_SERVERS is 1");
        println!("skipped: no redis-server or valkey-server found");
    }
    for program in programs {
        check(&program);
        println!("checked {} kinds against {}", KINDS.len(), program.display());
    }
}

fn check(program: &Path) {
    let server = Server::start(program);
    for size in [1, 7, 4096] {
        let mut link = Link::new(server.connect(), size);
        for (kind, resp2, _) in KINDS {
            assert_eq!(link.ask(kind), *resp2, "{kind} in RESP2");
        }
        let hello = link.call(&[b"HELLO", b"3"]);
        let proto = hello.as_pairs().ok().and_then(|pairs| pairs.get(b"proto")).cloned();
        assert_eq!(proto, Some(Frame::Integer(3)), "HELLO 3: {hello:?}");
        for (kind, _, resp3) in KINDS {
            assert_eq!(link.ask(kind), *resp3, "{kind} in RESP3");
        }
    }
}

/// A connection that is read in pieces of one size.
struct Link {
    stream: UnixStream,
    size: usize,
    decoder: Decoder,
    buffer: BytesMut,
}

impl Link {
    fn new(stream: UnixStream, size: usize) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        let decoder = Decoder::new(Limits::default()).keep_attributes(true);
        Self { stream, size, decoder, buffer: BytesMut::new() }
    }

    /// The reply, and before it the push if one belongs to it, as the data files write them.
    fn ask(&mut self, kind: &str) -> String {
        self.send(&[b"DEBUG", b"PROTOCOL", kind.as_bytes()]);
        let mut frames = vec![self.next()];
        if kind == "push" && frames[0].as_error().is_none() {
            frames.push(self.next());
            frames.sort_by_key(|frame| !frame.is_push());
        }
        // 6.2 sends another double, with digits that are not needed.
        let text = notation::frames(&frames);
        text.replace("3.1415926535900001", "3.141").replace("3.14159265359", "3.141")
    }

    fn call(&mut self, args: &[&[u8]]) -> Frame {
        self.send(args);
        self.next()
    }

    fn send(&mut self, args: &[&[u8]]) {
        let mut out = Vec::new();
        encode::command(&mut out, args);
        self.stream.write_all(&out).expect("sent");
    }

    fn next(&mut self) -> Frame {
        loop {
            if let Some(frame) = self.decoder.decode(&mut self.buffer).expect("sound frames") {
                return frame;
            }
            let mut piece = vec![0; self.size];
            let count = self.stream.read(&mut piece).expect("bytes in time");
            assert!(count > 0, "the server closed the connection");
            self.buffer.extend_from_slice(&piece[..count]);
        }
    }
}

/// A server of our own, on a Unix socket in a directory of its own; both go with it.
struct Server {
    process: Child,
    directory: PathBuf,
}

impl Server {
    fn start(program: &Path) -> Self {
        let directory = env::temp_dir().join(format!("quorlock-resp-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let start = |options: &[&str]| {
            let mut command = Command::new(program);
            command.args(["--port", "0", "--save", "", "--appendonly", "no"]);
            command.args(["--unixsocket", "socket"]).args(options);
            command.stdout(Stdio::null()).stderr(Stdio::null()).current_dir(&directory);
            command.spawn().expect("the server starts")
        };
        let mut process = start(&["--enable-debug-command", "yes"]);
        // It listens, or it ends: before 7.0 the option is unknown, and `DEBUG` always allowed.
        while UnixStream::connect(directory.join("socket")).is_err() {
            if process.try_wait().is_ok_and(|ended| ended.is_some()) {
                process = start(&[]);
                break;
            }
            thread::sleep(Duration::from_millis(25));
        }
        Self { process, directory }
    }

    fn connect(&self) -> UnixStream {
        let socket = self.directory.join("socket");
        for _ in 0..200 {
            if let Ok(stream) = UnixStream::connect(&socket) {
                return stream;
            }
            thread::sleep(Duration::from_millis(25));
        }
        panic!("no connection to {} in 5 s", socket.display());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Whatever fails here, the test has its verdict already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn find_servers() -> Vec<PathBuf> {
    if let Some(program) = env::var_os("QUORLOCK_SERVER") {
        return vec![PathBuf::from(program)];
    }
    let names = ["redis-server", "valkey-server"].map(OsString::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places =
        env::split_paths(&path).flat_map(|place| names.clone().map(|name| place.join(name)));
    if let Some(program) = places.find(|program| program.is_file()) {
        return vec![program];
    }
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/servers"), &names, &mut found);
    found.retain(|program| runs(program));
    found.sort();
    found
}

/// Whether the program can be started: it may be there and its libraries elsewhere.
fn runs(program: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Adds every file below `directory` that has one of `names`.
fn collect(directory: &Path, names: &[OsString], found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, names, found),
            Ok(kind) if kind.is_file() && names.contains(&entry.file_name()) => found.push(path),
            _ => {}
        }
    }
}
