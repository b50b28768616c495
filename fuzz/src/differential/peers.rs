//! The other decoders, each asked for one frame.

use std::panic;

use bytes::BytesMut;
use redis::{Value, ValueCodec};
use redis_protocol::resp3::decode::complete::decode_bytes_mut;
use redis_protocol::resp3::types::BytesFrame;
use tokio_util::codec::Decoder as _;

use super::Verdict;
use super::plain::Plain;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Redis,
    RedisProtocol,
}

impl Peer {
    pub(super) fn verdict(self, data: &[u8]) -> Verdict {
        let mut buffer = BytesMut::from(data);
        match self {
            Self::Redis => match ValueCodec::default().decode(&mut buffer) {
                Ok(Some(value)) => Verdict::Value(redis(&value), data.len() - buffer.len()),
                Ok(None) => Verdict::More,
                Err(_) => Verdict::Refused,
            },
            Self::RedisProtocol => match decode_bytes_mut(&mut buffer) {
                Ok(Some((frame, taken, _))) => Verdict::Value(redis_protocol(&frame), taken),
                Ok(None) => Verdict::More,
                Err(_) => Verdict::Refused,
            },
        }
    }
}

fn redis(value: &Value) -> Plain {
    match value {
        Value::Nil => Plain::Null,
        Value::Boolean(value) => Plain::Boolean(*value),
        Value::Int(value) => Plain::Integer(*value),
        Value::Double(value) => Plain::double(*value),
        Value::Okay => Plain::Text(b"OK".to_vec()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => {
            Plain::Text(text.clone().into_bytes())
        }
        Value::BulkString(text) | Value::BigNumber(text) => Plain::Text(text.clone()),
        Value::ServerError(_) => Plain::Error,
        Value::Array(items) => Plain::List(items.iter().map(redis).collect()),
        Value::Set(items) => Plain::set(items.iter().map(redis).collect()),
        Value::Map(pairs) => {
            Plain::map(pairs.iter().map(|(key, value)| (redis(key), redis(value))))
        }
        Value::Attribute { data, .. } => redis(data),
        Value::Push { kind, data } => {
            // Its first item is read as text, and kept apart.
            let kind = Plain::Text(kind.to_string().into_bytes());
            Plain::Push(std::iter::once(kind).chain(data.iter().map(redis)).collect())
        }
        other => panic!("no plain form of {other:?}"),
    }
}

fn redis_protocol(frame: &BytesFrame) -> Plain {
    match frame {
        BytesFrame::Null => Plain::Null,
        BytesFrame::Boolean { data, .. } => Plain::Boolean(*data),
        BytesFrame::Number { data, .. } => Plain::Integer(*data),
        BytesFrame::Double { data, .. } => Plain::double(*data),
        BytesFrame::SimpleString { data, .. }
        | BytesFrame::BlobString { data, .. }
        | BytesFrame::BigNumber { data, .. }
        | BytesFrame::VerbatimString { data, .. }
        | BytesFrame::ChunkedString(data) => Plain::Text(data.to_vec()),
        BytesFrame::SimpleError { .. } | BytesFrame::BlobError { .. } => Plain::Error,
        BytesFrame::Array { data, .. } => Plain::List(data.iter().map(redis_protocol).collect()),
        BytesFrame::Set { data, .. } => Plain::set(data.iter().map(redis_protocol).collect()),
        BytesFrame::Push { data, .. } => Plain::Push(data.iter().map(redis_protocol).collect()),
        BytesFrame::Map { data, .. } => {
            Plain::map(data.iter().map(|(key, value)| (redis_protocol(key), redis_protocol(value))))
        }
        BytesFrame::Hello { .. } => Plain::Text(b"HELLO".to_vec()),
    }
}
