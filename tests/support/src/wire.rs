//! A tiny blocking RESP2 client.
//!
//! It shares no code with the library on purpose: what a test reads back from a server should not
//! pass through what it tests. Every socket has a timeout, so that a stopped server fails a test
//! and does not hang it.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use crate::wait::PATIENCE;

/// How deep arrays may nest; the deepest reply a test asks for has three levels.
const DEPTH_MAX: usize = 8;

/// One RESP2 reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`
    Status(String),
    /// `-ERR …`, without the dash
    Error(String),
    /// `:1`
    Int(i64),
    /// `$3` and the bytes
    Bulk(Vec<u8>),
    /// `$-1` or `*-1`
    Nil,
    /// `*2` and the elements
    Array(Vec<Self>),
}

impl Reply {
    /// A bulk of `text`, for comparisons.
    pub fn bulk(text: impl AsRef<[u8]>) -> Self {
        Self::Bulk(text.as_ref().to_vec())
    }

    /// The status `OK`, for comparisons.
    pub fn ok() -> Self {
        Self::Status("OK".into())
    }

    /// The text of a status, an error or a bulk; panics on anything else.
    #[track_caller]
    pub fn text(&self) -> String {
        match self {
            Self::Status(text) | Self::Error(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("no text in {other:?}"),
        }
    }

    /// The integer; panics on anything else.
    #[track_caller]
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            other => panic!("not an integer: {other:?}"),
        }
    }

    /// The elements of an array; panics on anything else.
    #[track_caller]
    pub fn array(self) -> Vec<Self> {
        match self {
            Self::Array(elements) => elements,
            other => panic!("not an array: {other:?}"),
        }
    }
}

/// A connection to one server.
#[derive(Debug)]
pub struct Client(BufReader<TcpStream>);

impl Client {
    /// Connects, within the patience of a test.
    pub fn connect(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends one command and reads its reply. An error reply is a reply.
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Reply> {
        self.0.get_mut().write_all(&encode(args))?;
        read_reply(&mut self.0)
    }
}

/// The bytes of a command.
pub fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Reads one reply.
fn read_reply(from: &mut impl BufRead) -> io::Result<Reply> {
    read_nested(from, 0)
}

/// Reads one command as a server does: an array of bulks. Nothing where the client has closed.
pub(crate) fn read_command(from: &mut impl BufRead) -> io::Result<Option<Vec<Vec<u8>>>> {
    if from.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let Reply::Array(elements) = read_reply(from)? else {
        return Err(malformed("a command is an array"));
    };
    let args = elements.into_iter().map(|element| match element {
        Reply::Bulk(bytes) => Ok(bytes),
        other => Err(malformed(&format!("a command's arguments are bulks, not {other:?}"))),
    });
    args.collect::<io::Result<_>>().map(Some)
}

fn read_nested(from: &mut impl BufRead, depth: usize) -> io::Result<Reply> {
    if depth > DEPTH_MAX {
        return Err(malformed("arrays nested too deep"));
    }
    let line = read_line(from)?;
    let Some((mark, rest)) = line.split_at_checked(1) else {
        return Err(malformed("an empty line"));
    };
    match mark {
        "+" => Ok(Reply::Status(rest.into())),
        "-" => Ok(Reply::Error(rest.into())),
        ":" => number(rest).map(Reply::Int),
        "$" => match usize::try_from(number(rest)?) {
            Ok(len) => read_bulk(from, len).map(Reply::Bulk),
            Err(_) => Ok(Reply::Nil),
        },
        "*" => match usize::try_from(number(rest)?) {
            Ok(len) => (0..len)
                .map(|_| read_nested(from, depth + 1))
                .collect::<io::Result<_>>()
                .map(Reply::Array),
            Err(_) => Ok(Reply::Nil),
        },
        _ => Err(malformed(&format!("a reply of an unknown type: {line:?}"))),
    }
}

fn read_bulk(from: &mut impl BufRead, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len + 2];
    from.read_exact(&mut bytes)?;
    if !bytes.ends_with(b"\r\n") {
        return Err(malformed("a bulk that does not end in CRLF"));
    }
    bytes.truncate(len);
    Ok(bytes)
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(line) => String::from_utf8(line.to_vec()).map_err(|_| malformed("not UTF-8")),
        None if line.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
        None => Err(malformed("a line that does not end in CRLF")),
    }
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| malformed(&format!("not a number: {text:?}")))
}

fn malformed(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
