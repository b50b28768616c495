//! The decoders: ours, `redis`, `redis-protocol`, `rustis`.

use std::hint::black_box;

use bytes::BytesMut;
use quorlock_resp::{Decoder, Frame, Limits};
use redis_protocol::resp3::decode::complete::decode_bytes_mut;
use redis_protocol::resp3::types::BytesFrame;
use rustis::resp::bench_support::{BenchDecoder, bench_decode_chunked, bench_decode_to};
use tokio_util::codec::Decoder as _;

use crate::plain::Plain;
use crate::workload::Workload;

/// One library's decoder, with its buffer.
pub trait Peer {
    /// For the tables.
    fn name(&self) -> &'static str;

    /// Decodes all replies, each to an owned value that is looked at and dropped. Returns how
    /// many there were.
    fn drain(&mut self, workload: &Workload) -> usize;

    /// Decodes one reply that arrives in chunks of `size` bytes; returns its text's length.
    fn chunked(&mut self, workload: &Workload, size: usize) -> usize;

    /// The values, to compare.
    fn values(&mut self, workload: &Workload) -> Vec<Plain>;
}

/// Everyone, ours first.
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(Ours::default()),
        Box::new(Redis::default()),
        Box::new(RedisProtocol::default()),
        Box::new(Rustis),
    ]
}

/// Ours.
#[derive(Debug, Default)]
pub struct Ours {
    decoder: Decoder,
    buffer: BytesMut,
}

impl Peer for Ours {
    fn name(&self) -> &'static str {
        "quorlock-resp"
    }

    fn drain(&mut self, workload: &Workload) -> usize {
        self.buffer.extend_from_slice(&workload.bytes);
        let mut count = 0;
        while let Ok(Some(frame)) = self.decoder.decode(&mut self.buffer) {
            black_box(&frame);
            count += 1;
        }
        count
    }

    fn chunked(&mut self, workload: &Workload, size: usize) -> usize {
        let (mut decoder, mut buffer) = (Decoder::new(Limits::default()), BytesMut::new());
        let mut length = 0;
        for chunk in workload.bytes.chunks(size) {
            buffer.extend_from_slice(chunk);
            if let Ok(Some(frame)) = decoder.decode(&mut buffer) {
                length = frame.as_bytes().map_or(0, <[u8]>::len);
            }
        }
        length
    }

    fn values(&mut self, workload: &Workload) -> Vec<Plain> {
        self.buffer.extend_from_slice(&workload.bytes);
        let mut values = Vec::new();
        while let Ok(Some(frame)) = self.decoder.decode(&mut self.buffer) {
            values.push(ours(&frame));
        }
        values
    }
}

fn ours(frame: &Frame) -> Plain {
    match frame {
        Frame::Null => Plain::Null,
        Frame::Boolean(value) => Plain::Boolean(*value),
        Frame::Integer(value) => Plain::Integer(*value),
        Frame::Double(value) => Plain::Double(*value),
        Frame::Array(items) => Plain::list(items.iter().map(ours)),
        Frame::Set(items) => Plain::list(items.iter().map(ours)),
        Frame::Push(items) => Plain::Push(items.iter().map(ours).collect()),
        Frame::Map(pairs) => Plain::map(pairs.iter().map(|(key, value)| (ours(key), ours(value)))),
        text => Plain::Text(text.as_bytes().map(<[u8]>::to_vec).unwrap_or_default()),
    }
}

/// `redis`, by the decoder its asynchronous connections use.
#[derive(Default)]
pub struct Redis {
    decoder: redis::ValueCodec,
    buffer: BytesMut,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redis")
    }
}

impl Peer for Redis {
    fn name(&self) -> &'static str {
        "redis 1.8.1"
    }

    fn drain(&mut self, workload: &Workload) -> usize {
        self.buffer.extend_from_slice(&workload.bytes);
        let mut count = 0;
        while let Ok(Some(value)) = self.decoder.decode(&mut self.buffer) {
            black_box(&value);
            count += 1;
        }
        count
    }

    fn chunked(&mut self, workload: &Workload, size: usize) -> usize {
        let (mut decoder, mut buffer) = (redis::ValueCodec::default(), BytesMut::new());
        let mut length = 0;
        for chunk in workload.bytes.chunks(size) {
            buffer.extend_from_slice(chunk);
            if let Ok(Some(redis::Value::BulkString(text))) = decoder.decode(&mut buffer) {
                length = text.len();
            }
        }
        length
    }

    fn values(&mut self, workload: &Workload) -> Vec<Plain> {
        self.buffer.extend_from_slice(&workload.bytes);
        let mut values = Vec::new();
        while let Ok(Some(value)) = self.decoder.decode(&mut self.buffer) {
            values.push(redis(&value));
        }
        values
    }
}

fn redis(value: &redis::Value) -> Plain {
    use redis::Value;
    match value {
        Value::Nil => Plain::Null,
        Value::Boolean(value) => Plain::Boolean(*value),
        Value::Int(value) => Plain::Integer(*value),
        Value::Double(value) => Plain::Double(*value),
        Value::Okay => Plain::Text(b"OK".to_vec()),
        Value::SimpleString(text) => Plain::Text(text.clone().into_bytes()),
        Value::BulkString(text) => Plain::Text(text.clone()),
        Value::Array(items) => Plain::list(items.iter().map(redis)),
        Value::Set(items) => Plain::list(items.iter().map(redis)),
        Value::Map(pairs) => {
            Plain::map(pairs.iter().map(|(key, value)| (redis(key), redis(value))))
        }
        Value::Push { kind, data } => {
            let kind = Plain::Text(kind.to_string().into_bytes());
            Plain::Push(std::iter::once(kind).chain(data.iter().map(redis)).collect())
        }
        other => panic!("not in any workload: {other:?}"),
    }
}

/// `redis-protocol`, by its decoder that shares the buffer as ours does.
#[derive(Debug, Default)]
pub struct RedisProtocol {
    buffer: BytesMut,
}

impl Peer for RedisProtocol {
    fn name(&self) -> &'static str {
        "redis-protocol 6.0.0"
    }

    fn drain(&mut self, workload: &Workload) -> usize {
        self.buffer.extend_from_slice(&workload.bytes);
        let mut count = 0;
        while let Ok(Some((frame, ..))) = decode_bytes_mut(&mut self.buffer) {
            black_box(&frame);
            count += 1;
        }
        count
    }

    fn chunked(&mut self, workload: &Workload, size: usize) -> usize {
        let mut buffer = BytesMut::new();
        let mut length = 0;
        for chunk in workload.bytes.chunks(size) {
            buffer.extend_from_slice(chunk);
            if let Ok(Some((BytesFrame::BlobString { data, .. }, ..))) =
                decode_bytes_mut(&mut buffer)
            {
                length = data.len();
            }
        }
        length
    }

    fn values(&mut self, workload: &Workload) -> Vec<Plain> {
        self.buffer.extend_from_slice(&workload.bytes);
        let mut values = Vec::new();
        while let Ok(Some((frame, ..))) = decode_bytes_mut(&mut self.buffer) {
            values.push(redis_protocol(&frame));
        }
        values
    }
}

fn redis_protocol(frame: &BytesFrame) -> Plain {
    match frame {
        BytesFrame::Null => Plain::Null,
        BytesFrame::Boolean { data, .. } => Plain::Boolean(*data),
        BytesFrame::Number { data, .. } => Plain::Integer(*data),
        BytesFrame::Double { data, .. } => Plain::Double(*data),
        BytesFrame::SimpleString { data, .. } | BytesFrame::BlobString { data, .. } => {
            Plain::Text(data.to_vec())
        }
        BytesFrame::Array { data, .. } => Plain::list(data.iter().map(redis_protocol)),
        BytesFrame::Set { data, .. } => Plain::list(data.iter().map(redis_protocol)),
        BytesFrame::Push { data, .. } => Plain::Push(data.iter().map(redis_protocol).collect()),
        BytesFrame::Map { data, .. } => {
            Plain::map(data.iter().map(|(key, value)| (redis_protocol(key), redis_protocol(value))))
        }
        other => panic!("not in any workload: {other:?}"),
    }
}

/// `rustis`, which indexes a reply and reads values out of it later: here it is made to read them.
///
/// Its benchmark door takes one whole reply at a time, so it is spared finding where they end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rustis;

impl Peer for Rustis {
    fn name(&self) -> &'static str {
        "rustis 0.27.2"
    }

    fn drain(&mut self, workload: &Workload) -> usize {
        let mut count = 0;
        for reply in workload.replies() {
            black_box(&bench_decode_to::<rustis::resp::Value>(reply).is_ok());
            count += 1;
        }
        count
    }

    fn chunked(&mut self, workload: &Workload, size: usize) -> usize {
        let chunks: Vec<&[u8]> = workload.bytes.chunks(size).collect();
        bench_decode_chunked::<rustis::resp::BulkString>(&chunks).map_or(0, |text| text.len())
    }

    fn values(&mut self, workload: &Workload) -> Vec<Plain> {
        let value = |reply| match bench_decode_to::<rustis::resp::Value>(reply) {
            Ok(value) => rustis(&value),
            Err(error) => panic!("{error} in {}", reply.escape_ascii()),
        };
        workload.replies().map(value).collect()
    }
}

fn rustis(value: &rustis::resp::Value) -> Plain {
    use rustis::resp::Value;
    match value {
        Value::Null => Plain::Null,
        Value::Boolean(value) => Plain::Boolean(*value),
        Value::Integer(value) => Plain::Integer(*value),
        Value::Double(value) => Plain::Double(*value),
        Value::SimpleString(text) => Plain::Text(text.clone().into_bytes()),
        Value::BulkString(text) => Plain::Text(text.clone()),
        Value::Array(items) => Plain::list(items.iter().map(rustis)),
        Value::Set(items) => Plain::list(items.iter().map(rustis)),
        Value::Push(items) => Plain::Push(items.iter().map(rustis).collect()),
        Value::Map(pairs) => {
            Plain::map(pairs.iter().map(|(key, value)| (rustis(key), rustis(value))))
        }
        Value::Error(error) => panic!("not in any workload: {error}"),
    }
}

/// `rustis` without reading the values: its own decoder finds and indexes each reply, and no
/// more. Less work than the others do; a bound from below.
pub struct RustisIndex(BenchDecoder);

impl RustisIndex {
    /// At the start of a stream.
    #[expect(clippy::new_without_default, reason = "as its decoder")]
    pub fn new() -> Self {
        Self(BenchDecoder::new())
    }

    /// Indexes each reply, given one at a time.
    pub fn drain(&mut self, workload: &Workload) -> usize {
        workload.replies().filter(|reply| self.0.feed(reply).is_ok()).count()
    }
}

impl std::fmt::Debug for RustisIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RustisIndex")
    }
}

/// Ours, given one reply at a time, to stand beside [`RustisIndex`].
#[derive(Debug, Default)]
pub struct OursOneByOne(Ours);

impl OursOneByOne {
    /// Decodes each reply, given one at a time.
    pub fn drain(&mut self, workload: &Workload) -> usize {
        let mut count = 0;
        for reply in workload.replies() {
            self.0.buffer.extend_from_slice(reply);
            let frame = self.0.decoder.decode(&mut self.0.buffer);
            count += usize::from(black_box(frame).is_ok());
        }
        count
    }
}
