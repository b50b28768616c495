//! What is decoded: four streams of replies.

/// A stream of whole replies.
#[derive(Clone, Debug)]
pub struct Workload {
    /// For the tables.
    pub name: &'static str,
    /// The replies, one behind the other.
    pub bytes: Vec<u8>,
    /// Where each reply ends.
    pub ends: Vec<usize>,
    /// Bytes of the one bulk string of [`large`]; 0 otherwise.
    pub body: usize,
}

impl Workload {
    fn new(name: &'static str, replies: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for reply in replies {
            bytes.extend(reply);
            ends.push(bytes.len());
        }
        Self { name, bytes, ends, body: 0 }
    }

    /// Each reply by itself.
    pub fn replies(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

/// One `+OK`.
pub fn ok() -> Workload {
    Workload::new("one +OK", [b"+OK\r\n".to_vec()])
}

/// 10,000 replies as a busy lock's connection sees them: grants, releases, refusals.
pub fn lock_replies() -> Workload {
    let cycle: [&[u8]; 8] =
        [b"+OK\r\n", b":1\r\n", b"+OK\r\n", b":1\r\n", b"_\r\n", b"+OK\r\n", b":1\r\n", b":0\r\n"];
    let replies = cycle.iter().cycle().take(10_000).map(|reply| reply.to_vec());
    Workload::new("10,000 lock replies", replies)
}

/// 3,000 replies of RESP3's other shapes: a handshake's map, invalidation pushes, strings,
/// arrays in arrays, sets, doubles, booleans.
pub fn mixed() -> Workload {
    let cycle: [&[u8]; 12] = [
        b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n\
          $5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1024\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n\
          $4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
        b">2\r\n$10\r\ninvalidate\r\n*1\r\n$13\r\nlock:order:42\r\n",
        b"$50\r\n0123456789abcdef0123456789abcdef01234567@pay-api:7\r\n",
        b"*3\r\n*2\r\n:1\r\n$5\r\nhello\r\n*2\r\n:2\r\n$5\r\nworld\r\n_\r\n",
        b":9223372036854775807\r\n",
        b",3.141592653589793\r\n",
        b"#t\r\n",
        b"~3\r\n$3\r\none\r\n$3\r\ntwo\r\n$5\r\nthree\r\n",
        b"+QUEUED\r\n",
        b"*10\r\n:0\r\n:1\r\n:22\r\n:333\r\n:4444\r\n:55555\r\n:666666\r\n\
          :7777777\r\n:88888888\r\n:-9\r\n",
        b"$200\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
          xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\
          xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n",
        b"*2\r\n$8\r\nlock:abc\r\n%2\r\n$3\r\nttl\r\n:30000\r\n$5\r\nowner\r\n$7\r\npay-api\r\n",
    ];
    let replies = cycle.iter().cycle().take(3_000).map(|reply| reply.to_vec());
    Workload::new("3,000 mixed RESP3 replies", replies)
}

/// One bulk string of 1 MiB.
pub fn large() -> Workload {
    let body = 1 << 20;
    let mut reply = format!("${body}\r\n").into_bytes();
    reply.resize(reply.len() + body, b'x');
    reply.extend_from_slice(b"\r\n");
    Workload { body, ..Workload::new("one 1 MiB bulk", [reply]) }
}
