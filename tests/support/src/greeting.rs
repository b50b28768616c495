//! The replies a real server would give to a client's handshake.

use crate::sha1::sha1_hex;

/// What a scripted server says about itself.
#[derive(Clone, Debug)]
pub struct Greeting {
    resp3: bool,
    server: String,
    version: String,
    role: String,
    run_id: Option<String>,
    password: Option<String>,
}

impl Default for Greeting {
    fn default() -> Self {
        Self {
            resp3: true,
            server: "redis".into(),
            version: "7.2.5".into(),
            role: "master".into(),
            run_id: None,
            password: None,
        }
    }
}

impl Greeting {
    /// Knows no `HELLO`, as Redis 5 and some proxies.
    pub fn without_hello(mut self) -> Self {
        self.resp3 = false;
        self
    }

    /// Names this server and version: `("valkey", "9.1.2")`.
    pub fn version(mut self, server: &str, version: &str) -> Self {
        self.server = server.into();
        self.version = version.into();
        self
    }

    /// Says this role: `master` or `replica`.
    pub fn role(mut self, role: &str) -> Self {
        self.role = role.into();
        self
    }

    /// Says this run id, and not one of the server's own.
    pub fn run_id(mut self, run_id: &str) -> Self {
        self.run_id = Some(run_id.into());
        self
    }

    /// Accepts only this password, and refuses everything before it.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.into());
        self
    }
}

/// One connection's side of the handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    greeting: Greeting,
    /// The connection's number, from 1.
    id: usize,
    port: u16,
    resp3: bool,
    trusted: bool,
}

impl Handshake {
    /// A connection that has said nothing yet.
    pub(crate) fn new(greeting: Greeting, id: usize, port: u16) -> Self {
        let trusted = greeting.password.is_none();
        Self { greeting, id, port, resp3: false, trusted }
    }

    /// The reply to `command`, if it is one that clients open with.
    pub(crate) fn answer(&mut self, command: &[Vec<u8>]) -> Option<Vec<u8>> {
        let words: Vec<String> =
            command.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let upper: Vec<String> = words.iter().take(2).map(|w| w.to_ascii_uppercase()).collect();
        let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
        let reply = match *upper.as_slice() {
            ["HELLO", ..] => self.hello(&words[1..]),
            ["AUTH", ..] => self.auth(words.last().map_or("", String::as_str)),
            ["QUIT", ..] => b"+OK\r\n".to_vec(),
            ["PING"] => self.if_trusted(|_| b"+PONG\r\n".to_vec()),
            ["SELECT" | "READONLY", ..] => self.if_trusted(|_| b"+OK\r\n".to_vec()),
            ["CLIENT", "ID"] => self.if_trusted(|own| format!(":{}\r\n", own.id).into_bytes()),
            ["CLIENT", "GETNAME"] => self.if_trusted(Self::null),
            ["CLIENT", "KILL", ..] => self.if_trusted(|_| b":0\r\n".to_vec()),
            ["CLIENT", ..] => self.if_trusted(|_| b"+OK\r\n".to_vec()),
            ["INFO", ..] => self.if_trusted(Self::info),
            ["TIME"] => self.if_trusted(|_| b"*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n".to_vec()),
            ["CONFIG", "GET"] => self.if_trusted(|own| own.config(&words[2..])),
            ["ROLE"] => self.if_trusted(Self::role),
            ["GET", key] if key.ends_with("QUORLOCK:EPOCH") => self.if_trusted(Self::null),
            ["SUBSCRIBE", _] if self.resp3 => self.if_trusted(|_| {
                let channel = bulk(&words[1]);
                [b">3\r\n$9\r\nsubscribe\r\n", &channel[..], b":1\r\n"].concat()
            }),
            ["SCRIPT", "LOAD"] => {
                let digest = command.get(2).map(|script| sha1_hex(script))?;
                self.if_trusted(|_| bulk(&digest))
            }
            ["SCRIPT", "EXISTS"] => {
                let count = command.len() - 2;
                self.if_trusted(|_| format!("*{count}\r\n{}", ":1\r\n".repeat(count)).into_bytes())
            }
            _ => return None,
        };
        Some(reply)
    }

    /// `HELLO [3 [AUTH user password] [SETNAME name]]`
    fn hello(&mut self, args: &[String]) -> Vec<u8> {
        if !self.greeting.resp3 {
            return b"-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n".to_vec();
        }
        let auth = args.iter().position(|word| word.eq_ignore_ascii_case("AUTH"));
        if let Some(password) = auth.and_then(|at| args.get(at + 2)) {
            let reply = self.auth(password);
            if reply.starts_with(b"-") {
                return reply;
            }
        }
        if !self.trusted {
            return b"-NOAUTH HELLO must be called with the client already authenticated, \
                otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate \
                the client and select the RESP protocol version at the same time\r\n"
                .to_vec();
        }
        match args.first().map(String::as_str) {
            Some("3") => self.resp3 = true,
            Some("2") => self.resp3 = false,
            Some(_) => return b"-NOPROTO unsupported protocol version\r\n".to_vec(),
            None => {}
        }
        self.map_of_self()
    }

    fn map_of_self(&self) -> Vec<u8> {
        let own = &self.greeting;
        let mut map = if self.resp3 { b"%7\r\n".to_vec() } else { b"*14\r\n".to_vec() };
        map.extend(pair("server", &bulk(&own.server)));
        map.extend(pair("version", &bulk(&own.version)));
        map.extend(pair("proto", if self.resp3 { b":3\r\n" } else { b":2\r\n" }));
        map.extend(pair("id", format!(":{}\r\n", self.id).as_bytes()));
        map.extend(pair("mode", &bulk("standalone")));
        map.extend(pair("role", &bulk(&own.role)));
        map.extend(pair("modules", b"*0\r\n"));
        map
    }

    fn auth(&mut self, password: &str) -> Vec<u8> {
        match &self.greeting.password {
            None => b"-ERR AUTH <password> called without any password configured for the \
                default user. Are you sure your configuration is correct?\r\n"
                .to_vec(),
            Some(right) if right == password => {
                self.trusted = true;
                b"+OK\r\n".to_vec()
            }
            Some(_) => {
                b"-WRONGPASS invalid username-password pair or user is disabled.\r\n".to_vec()
            }
        }
    }

    fn if_trusted(&self, reply: impl FnOnce(&Self) -> Vec<u8>) -> Vec<u8> {
        if self.trusted { reply(self) } else { b"-NOAUTH Authentication required.\r\n".to_vec() }
    }

    fn null(&self) -> Vec<u8> {
        if self.resp3 { b"_\r\n".to_vec() } else { b"$-1\r\n".to_vec() }
    }

    fn info(&self) -> Vec<u8> {
        let own = &self.greeting;
        // Forty hex digits that differ from one scripted server to the next.
        let run_id = own.run_id.clone().unwrap_or_else(|| sha1_hex(&self.port.to_be_bytes()));
        let text = format!(
            "# Server\r\nredis_version:{}\r\nredis_mode:standalone\r\nrun_id:{run_id}\r\n\
             tcp_port:{}\r\n\
             # Replication\r\nrole:{}\r\n",
            own.version,
            self.port,
            self.info_role(),
        );
        if self.resp3 {
            format!("={}\r\ntxt:{text}\r\n", text.len() + 4).into_bytes()
        } else {
            bulk(&text)
        }
    }

    /// `CONFIG GET name`, of a server as it comes.
    fn config(&self, names: &[String]) -> Vec<u8> {
        let known = [("appendfsync", "everysec"), ("save", ""), ("appendonly", "no")];
        let name = names.first().map_or("", String::as_str);
        let found = known.iter().filter(|(known, _)| *known == name);
        let pairs: Vec<_> = found.map(|(name, value)| pair(name, &bulk(value))).collect();
        let head = match self.resp3 {
            true => format!("%{}\r\n", pairs.len()),
            false => format!("*{}\r\n", 2 * pairs.len()),
        };
        [head.into_bytes(), pairs.concat()].concat()
    }

    /// `INFO` and `ROLE` say `slave` where `HELLO` says `replica`.
    fn info_role(&self) -> &str {
        if self.greeting.role == "replica" { "slave" } else { &self.greeting.role }
    }

    fn role(&self) -> Vec<u8> {
        match self.info_role() {
            "master" => b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n".to_vec(),
            _ => {
                b"*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:1\r\n$9\r\nconnected\r\n:0\r\n".to_vec()
            }
        }
    }
}

fn bulk(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

fn pair(name: &str, value: &[u8]) -> Vec<u8> {
    [&bulk(name), value].concat()
}
