//! The encoders: one `SET key value NX PX ttl`, which is what a lock sends.

use std::hint::black_box;

use bytes::BytesMut;
use quorlock_resp::encode::{self, Argument, Template};
use redis_protocol::resp3::encode::complete::extend_encode_borrowed;
use redis_protocol::resp3::types::BorrowedFrame;

/// The key that is locked.
pub const KEY: &[u8] = b"pay:order:42";
/// The owner's random value.
pub const VALUE: &[u8] = b"0123456789abcdef0123456789abcdef01234567@pay-api:7";
/// The time to live, in milliseconds.
pub const TTL: &[u8] = b"10000";

/// The arguments that change, hidden from the optimiser, which would else write the command at
/// compile time.
#[inline]
fn arguments() -> [&'static [u8]; 3] {
    black_box([KEY, VALUE, TTL])
}

/// Ours: a template, its holes filled.
pub fn template() -> Template<3> {
    use Argument::{Fixed, Hole};
    let arguments = [Fixed(b"SET"), Hole, Hole, Fixed(b"NX"), Fixed(b"PX"), Hole];
    match Template::new(&arguments) {
        Ok(template) => template,
        Err(error) => panic!("{error}"),
    }
}

/// Ours, filled.
#[inline]
pub fn ours(template: &Template<3>, out: &mut Vec<u8>) {
    template.encode(out, arguments());
}

/// Ours, without a template.
#[inline]
pub fn ours_plain(out: &mut Vec<u8>) {
    let [key, value, ttl] = arguments();
    encode::command(out, &[b"SET", key, value, b"NX", b"PX", ttl]);
}

/// `redis`: the command is built, then packed.
#[inline]
pub fn redis(out: &mut Vec<u8>) {
    let mut command = redis::cmd("SET");
    let [key, value, ttl] = arguments();
    command.arg(key).arg(value).arg("NX").arg("PX").arg(ttl);
    command.write_packed_command(out);
}

/// `redis-protocol`: a borrowed array of borrowed strings.
#[inline]
pub fn redis_protocol(out: &mut BytesMut) {
    let bulk = |data| BorrowedFrame::BlobString { data, attributes: None };
    let [key, value, ttl] = arguments();
    let args: [BorrowedFrame<'_>; 6] =
        [bulk(b"SET"), bulk(key), bulk(value), bulk(b"NX"), bulk(b"PX"), bulk(ttl)];
    let frame = BorrowedFrame::Array { data: &args, attributes: None };
    if let Err(error) = extend_encode_borrowed(out, &frame, false) {
        panic!("{error}");
    }
}

/// `rustis`: building the command encodes it.
#[inline]
pub fn rustis(out: &mut Vec<u8>) {
    // Text, because it takes bytes for a list of numbers.
    let [key, value, ttl] = arguments().map(|bytes| str::from_utf8(bytes).unwrap_or_default());
    let command: rustis::resp::Command =
        rustis::resp::cmd("SET").arg(key).arg(value).arg("NX").arg("PX").arg(ttl).into();
    out.extend_from_slice(command.bytes());
}

/// Panics unless all encode the same bytes.
pub(crate) fn check() {
    let mut expected = Vec::new();
    ours(&template(), &mut expected);
    let (mut plain, mut packed, mut rust) = (Vec::new(), Vec::new(), Vec::new());
    let mut protocol = BytesMut::new();
    ours_plain(&mut plain);
    redis(&mut packed);
    redis_protocol(&mut protocol);
    rustis(&mut rust);
    assert!(plain == expected && packed == expected && rust == expected);
    assert!(protocol == expected);
}
