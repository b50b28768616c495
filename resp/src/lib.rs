//! RESP2 and RESP3, the protocol of Redis and Valkey: bytes to [`Frame`]s and back.
//!
//! [`Decoder`] reads, [`encode`] writes; neither does any I/O, and neither knows a runtime. The
//! decoder takes bytes in any pieces, hands out whole frames that share the read buffer, keeps
//! its place between calls, never recurses, and keeps nothing for what a peer only claims.
//!
//! ```
//! use bytes::BytesMut;
//! use quorlock_resp::{Decoder, Frame, Limits, encode};
//!
//! let mut request = Vec::new();
//! encode::command(&mut request, &[b"HGETALL", b"user:1"]);
//!
//! let mut decoder = Decoder::new(Limits::default());
//! let mut buffer = BytesMut::from(&b"%1\r\n$4\r\nname\r\n$3\r\nAda\r\n"[..]);
//! if let Some(reply) = decoder.decode(&mut buffer)? {
//!     let name = reply.as_pairs().ok().and_then(|pairs| pairs.get(b"name"));
//!     assert_eq!(name.map(Frame::as_str), Some(Ok("Ada")));
//! }
//! # Ok::<(), quorlock_resp::DecodeError>(())
//! ```
//!
//! # Grammar
//!
//! `␍␊` is CR LF. A *length* is `0` or digits that do not start with `0`; an *integer* is a length
//! with an optional sign, within 64 bits; a *line* is any bytes but CR and LF; a *double* is
//! `inf`, `-inf`, `nan`, `-nan`, or digits with an optional sign before them, an optional fraction
//! (`.` and digits) and an optional exponent (`e`, a sign or none, digits) behind.
//!
//! | first byte | element | frame |
//! |---|---|---|
//! | `+` | line `␍␊` | [`Simple`](Frame::Simple) |
//! | `-` | line `␍␊` | [`Error`](Frame::Error) |
//! | `:` | integer `␍␊` | [`Integer`](Frame::Integer) |
//! | `$` | length `␍␊` bytes `␍␊` | [`Bulk`](Frame::Bulk) |
//! | `$` | `?␍␊`, each chunk `;` length `␍␊` bytes `␍␊`, `;0␍␊` | [`Bulk`](Frame::Bulk) |
//! | `_`, `$-1`, `*-1` | `␍␊` | [`Null`](Frame::Null) |
//! | `#` | `t` or `f`, `␍␊` | [`Boolean`](Frame::Boolean) |
//! | `,` | double `␍␊` | [`Double`](Frame::Double) |
//! | `(` | sign? digits `␍␊` | [`BigNumber`](Frame::BigNumber) |
//! | `!` | length `␍␊` bytes `␍␊` | [`BulkError`](Frame::BulkError) |
//! | `=` | length `␍␊` three bytes `:` bytes `␍␊` | [`Verbatim`](Frame::Verbatim) |
//! | `*` | length `␍␊` elements, or `?␍␊` elements `.␍␊` | [`Array`](Frame::Array) |
//! | `~` | length `␍␊` elements, or `?␍␊` elements `.␍␊` | [`Set`](Frame::Set) |
//! | `%` | length `␍␊` pairs of elements, or `?␍␊` pairs `.␍␊` | [`Map`](Frame::Map) |
//! | `>` | length `␍␊` elements | [`Push`](Frame::Push) |
//! | `\|` | length `␍␊` pairs, then their element | [`Attributed`](Frame::Attributed) if kept |
//!
//! # Replies and pushes
//!
//! A push answers no command. It comes out as [`Frame::Push`], also when attributes stand before
//! it, so one `match` splits pushes from replies; it is refused inside another frame, where it
//! could not be split off. Which comes first is the server's choice: the reply to the command that
//! caused a push may stand before it or behind it.
//!
//! # Limits
//!
//! [`Limits`] bounds depth, elements, the length of strings and lines, and of the whole frame.
//! Each is checked when a header is read, before anything is kept for it, and capacity is only
//! ever reserved for elements that are already there. At any moment the decoder holds 16 bytes
//! (up to twice that while the list grows) for each element received of an unfinished frame, and
//! nothing beside the buffer for its text; a finished frame costs 40 bytes an element.
//!
//! The defaults suit a general client. A connection that only ever sees the replies of a few
//! commands should say so: what it will never need is what a broken or hostile peer can not use.
//!
//! # Strict, with these exceptions
//!
//! After one wrong byte every later reply could be taken for another's, so what no server sends is
//! refused. The decisions, each held by a vector in the tests:
//!
//! - **Leading zeros** are refused in integers and lengths (`:007`, `$05`), which frame the stream.
//!   They are taken in big numbers, whose digits are handed out as they came, and in doubles.
//! - **Signs:** an integer may have a plus, and `:-0` is zero. A length has none; `-1` stands for
//!   null in `$-1` and `*-1` only.
//! - **Doubles:** `-nan` is taken because servers before 7.2 send it; `+inf`, `Inf`, `.5` and `1.`
//!   are refused. What is too large for a double is infinite.
//! - **Verbatim strings:** any three bytes are a format.
//! - **Lines:** text is any bytes, UTF-8 or not; a CR without an LF behind it, and an LF without a
//!   CR before it, are refused, and `\n` alone never ends a line.
//! - **An empty push** (`>0`) is a push like any other, and so no reply.
//! - **Attributes** may stand before any value, in aggregates too. Several in a row are one list.
//!   They are checked, counted against the limits, and then dropped unless
//!   [`keep_attributes`](Decoder::keep_attributes) says otherwise; those of a push are dropped
//!   always. Attributes with no value behind them are an unfinished frame at the top, and an error
//!   before the end of a stream.
//! - **Streams** are strings, arrays, sets and maps; other types have no `?`. They come out as if
//!   they had been sent with their length.
//! - **Maps and sets** are kept as sent: in order, with repeated keys and values.
//!
//! # Errors
//!
//! [`DecodeError`] says what was wrong and at which byte of the stream. It is final: the decoder
//! gives the same error forever, and the connection is to be closed. An incomplete frame is no
//! error, but `Ok(None)`.
//!
//! # Features
//!
//! `tokio-util` adds `Codec`, for `Framed`.

#![forbid(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

/// The README's example is a test like any other.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "tokio-util")]
mod codec;
mod decode;
pub mod encode;
mod error;
mod frame;
mod limits;
mod scan;

#[cfg(feature = "tokio-util")]
pub use codec::{Codec, CodecError};
pub use decode::{Decoder, Short};
pub use error::{DecodeError, ErrorKind, UnexpectedFrame};
pub use frame::{Attributed, Frame, FrameKind, IntoPairs, Items, PairIter, Pairs};
pub use limits::Limits;
