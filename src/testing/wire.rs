//! Bytes to commands, and replies to bytes: a server's side of the codec.

use bytes::{Bytes, BytesMut};
use quorlock_resp::{Decoder, Frame, Limits, encode};

use super::store::{Dialect, double_text};

/// Reads commands.
#[derive(Debug)]
pub(crate) struct Requests {
    decoder: Decoder,
    buffer: BytesMut,
}

/// What is no command. Servers say so and hang up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoCommand;

impl Requests {
    pub(crate) fn new() -> Self {
        Self { decoder: Decoder::new(Limits::default()), buffer: BytesMut::new() }
    }

    /// More bytes have come.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next command that is whole: its words, of which there is at least one.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<Bytes>>, NoCommand> {
        loop {
            let Some(frame) = self.decoder.decode(&mut self.buffer).map_err(|_| NoCommand)? else {
                return Ok(None);
            };
            let Frame::Array(items) = frame else { return Err(NoCommand) };
            let word = |item: Frame| match item {
                Frame::Bulk(word) => Ok(word),
                _ => Err(NoCommand),
            };
            let words: Vec<_> = items.into_iter().map(word).collect::<Result<_, _>>()?;
            // Servers pass over a command without a word.
            if !words.is_empty() {
                return Ok(Some(words));
            }
        }
    }
}

/// Writes a reply or a push, in RESP3 or in RESP2, which has neither maps nor numbers with a
/// fraction nor a null of its own.
pub(crate) fn put(out: &mut Vec<u8>, frame: &Frame, Dialect { resp3, version }: Dialect) {
    // What is still to be written, the next one last.
    let mut pending = vec![frame];
    while let Some(frame) = pending.pop() {
        match frame {
            Frame::Map(pairs) => {
                let count = if resp3 { pairs.len() } else { 2 * pairs.len() };
                header(out, if resp3 { '%' } else { '*' }, count);
                pending.extend(pairs.as_frames().iter().rev());
            }
            Frame::Array(items) | Frame::Set(items) | Frame::Push(items) => {
                let kind = match frame {
                    Frame::Set(_) if resp3 => '~',
                    Frame::Push(_) if resp3 => '>',
                    _ => '*',
                };
                header(out, kind, items.len());
                pending.extend(items.iter().rev());
            }
            // Each server writes it in its own way.
            Frame::Double(number) if resp3 => {
                out.extend_from_slice(format!(",{}\r\n", double_text(*number, version)).as_bytes());
            }
            Frame::Double(number) => encode::bulk(out, double_text(*number, version).as_bytes()),
            Frame::Null if !resp3 => out.extend_from_slice(b"$-1\r\n"),
            Frame::Verbatim { text, .. } if !resp3 => encode::bulk(out, text),
            Frame::Boolean(yes) if !resp3 => {
                encode::frame(out, &Frame::Integer((*yes).into()));
            }
            scalar => encode::frame(out, scalar),
        }
    }
}

fn header(out: &mut Vec<u8>, kind: char, count: usize) {
    out.extend_from_slice(format!("{kind}{count}\r\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_in_any_pieces_and_anything_else_is_none() {
        let mut requests = Requests::new();
        let bytes = b"*0\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n";
        let mut commands = Vec::new();
        for byte in bytes {
            requests.push(&[*byte]);
            commands.extend(requests.next().unwrap());
        }
        let words = |words: &[&str]| {
            words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
        };
        assert_eq!(commands, [words(&["GET", "k"]), words(&["PING"])] as [Vec<Bytes>; 2]);
        for wrong in ["+OK\r\n", "*1\r\n:7\r\n", "GET k\r\n"] {
            let mut requests = Requests::new();
            requests.push(wrong.as_bytes());
            assert_eq!(requests.next(), Err(NoCommand), "{wrong}");
        }
    }

    fn written(frame: &Frame, resp3: bool) -> String {
        let mut out = Vec::new();
        put(&mut out, frame, Dialect { resp3, ..Dialect::default() });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn resp2_has_neither_maps_nor_nulls_nor_doubles() {
        let text = |text: &'static str| Frame::Bulk(Bytes::from_static(text.as_bytes()));
        let info = Frame::Verbatim { format: *b"txt", text: "i".into() };
        let inner = Frame::Array(vec![Frame::Null, Frame::Integer(7)].into());
        let map = Frame::Map([(text("a"), inner), (info, text("b"))].into_iter().collect());
        let b = "$1\r\nb\r\n";
        let told = written(&map, false);
        assert_eq!(told, format!("*4\r\n$1\r\na\r\n*2\r\n$-1\r\n:7\r\n$1\r\ni\r\n{b}"));
        let told = written(&map, true);
        assert_eq!(told, format!("%2\r\n$1\r\na\r\n*2\r\n_\r\n:7\r\n=5\r\ntxt:i\r\n{b}"));
        let push = Frame::Push(vec![Frame::Double(0.1), Frame::Boolean(true)].into());
        assert_eq!(written(&push, false), "*2\r\n$3\r\n0.1\r\n:1\r\n");
        assert_eq!(written(&push, true), ">2\r\n,0.1\r\n#t\r\n");
    }
}
