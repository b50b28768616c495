//! A connection whose replies are bytes: where a frame ends, and nothing of what it means.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use support::wait::PATIENCE;
use support::wire::encode;

/// What no other client says.
const NONCE: &str = "a-word-that-only-the-test-says";

pub(super) struct Raw(BufReader<TcpStream>);

impl Raw {
    pub(super) fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    pub(super) fn send<A: AsRef<[u8]>>(&mut self, words: &[A]) {
        self.send_bytes(&encode(words));
    }

    pub(super) fn send_bytes(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// The next reply's bytes, and those of the pushes before it.
    pub(super) fn reply(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let start = bytes.len();
            self.read_frame(&mut bytes).unwrap();
            if bytes[start] != b'>' {
                return bytes;
            }
        }
    }

    pub(super) fn call<A: AsRef<[u8]>>(&mut self, words: &[A]) -> Vec<u8> {
        self.send(words);
        self.reply()
    }

    /// As many replies as there are commands, which are sent all at once.
    pub(super) fn call_all(&mut self, said: &[Vec<&str>]) -> Vec<Vec<u8>> {
        let bytes: Vec<u8> = said.iter().flat_map(|words| encode(words)).collect();
        self.send_bytes(&bytes);
        said.iter().map(|_| self.reply()).collect()
    }

    /// The reply, and whatever stands behind it: what comes before the answer to another command.
    pub(super) fn call_and_drain<A: AsRef<[u8]>>(&mut self, words: &[A]) -> Vec<u8> {
        let mut bytes = self.call(words);
        self.send(&["ECHO", NONCE]);
        let mut rest = self.reply();
        let end = format!("${}\r\n{NONCE}\r\n", NONCE.len());
        assert!(rest.ends_with(end.as_bytes()), "{:?}", String::from_utf8_lossy(&rest));
        rest.truncate(rest.len() - end.len());
        bytes.append(&mut rest);
        bytes
    }

    /// Says it all at once; returns whatever comes until it has been done, or that the connection
    /// has ended.
    pub(super) fn converse(&mut self, said: &[Vec<&str>]) -> Vec<u8> {
        // Allowed to a subscriber, too, whose reply has another form.
        let end = ["PING", NONCE];
        let bytes: Vec<u8> =
            said.iter().flat_map(|words| encode(words)).chain(encode(&end)).collect();
        let mut heard = Vec::new();
        let mut result = self.0.get_mut().write_all(&bytes);
        while result.is_ok() {
            let start = heard.len();
            result = self.read_frame(&mut heard);
            let is_end = heard[start..].windows(NONCE.len()).any(|part| part == NONCE.as_bytes());
            if result.is_ok() && is_end {
                heard.truncate(start);
                return heard;
            }
        }
        let error = result.expect_err("it goes on until the end");
        let is_late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        assert!(!is_late, "{error}: {said:?}");
        heard.extend_from_slice(b"(ended)");
        heard
    }

    /// Copies one frame, however deep it goes.
    fn read_frame(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut frames_left = 1_u64;
        while frames_left > 0 {
            frames_left -= 1;
            let start = into.len();
            self.0.read_until(b'\n', into)?;
            let line = into[start..].strip_suffix(b"\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
            let count = || std::str::from_utf8(&line[1..]).unwrap().parse::<i64>().unwrap().max(0);
            match line[0] {
                b'+' | b'-' | b':' | b',' | b'#' | b'_' | b'(' => {}
                b'*' | b'~' | b'>' => frames_left += count() as u64,
                b'%' => frames_left += 2 * count() as u64,
                b'$' | b'=' if line != b"$-1" => {
                    let whole = count() as usize + 2;
                    let start = into.len();
                    into.resize(start + whole, 0);
                    self.0.read_exact(&mut into[start..])?;
                }
                b'$' => {}
                other => panic!("a frame begins with {:?}", char::from(other)),
            }
        }
        Ok(())
    }
}
