//! Building: from a tape and the bytes it refers to, to the frame.
//!
//! The scanner has checked everything, so nothing here can fail but by our own mistake, and every
//! vector is made with the room it needs.

use core::mem;

use bytes::Bytes;

use crate::frame::{Attributed, Frame, Items, Pairs};
use crate::scan::{Shape, TextKind, Token};

/// The frames under construction, innermost last. Empty between calls; kept for its room.
#[derive(Clone, Debug, Default)]
pub(super) struct Builder {
    open: Vec<Open>,
}

/// An aggregate under construction.
#[derive(Clone, Debug)]
struct Open {
    role: Role,
    items: Vec<Frame>,
}

#[derive(Clone, Copy, Debug)]
enum Role {
    /// So many items are missing.
    Counted { shape: Shape, missing: u32 },
    /// Items until an end marker.
    Stream { shape: Shape },
    /// The items are attributes, and complete. The next value is the one they belong to.
    Owner,
}

impl Builder {
    /// The frame that `tape` describes; `None` only if it is not the tape of one whole frame.
    pub(super) fn build(&mut self, tape: &[Token], bytes: &Bytes, keep: bool) -> Option<Frame> {
        for &token in tape {
            let value = match token {
                Token::Open { shape: Shape::Attribute, elements } => {
                    self.open_attribute(elements);
                    continue;
                }
                Token::Open { shape, elements: 0 } => aggregate(shape, Vec::new()),
                Token::Open { shape, elements: missing } => {
                    let items = Vec::with_capacity(room(missing));
                    self.open.push(Open { role: Role::Counted { shape, missing }, items });
                    continue;
                }
                Token::OpenStream { shape } => {
                    self.open.push(Open { role: Role::Stream { shape }, items: Vec::new() });
                    continue;
                }
                Token::End => {
                    let Open { role: Role::Stream { shape }, items } = self.open.pop()? else {
                        return None;
                    };
                    aggregate(shape, items)
                }
                Token::TextStream | Token::Chunk { .. } | Token::Joined => continue,
                token => scalar(token, bytes),
            };
            if let Some(frame) = self.place(value, keep) {
                return Some(frame);
            }
        }
        self.open.clear();
        None
    }

    /// Opens attributes, which join those that stand directly before them.
    fn open_attribute(&mut self, elements: u32) {
        let mut items = Vec::new();
        if let Some(Open { role: Role::Owner, items: earlier }) = self.open.last_mut() {
            items = mem::take(earlier);
            self.open.pop();
        }
        items.reserve_exact(room(elements));
        let role = match elements {
            0 => Role::Owner,
            missing => Role::Counted { shape: Shape::Attribute, missing },
        };
        self.open.push(Open { role, items });
    }

    /// Puts a value where it belongs, and what it completes as well. Gives the whole frame back
    /// when that is what it completes.
    #[inline]
    fn place(&mut self, mut value: Frame, keep: bool) -> Option<Frame> {
        while let Some(Open { role, items }) = self.open.last_mut() {
            match role {
                Role::Stream { .. } => {
                    items.push(value);
                    return None;
                }
                Role::Counted { missing, .. } if *missing > 1 => {
                    items.push(value);
                    *missing = missing.saturating_sub(1);
                    return None;
                }
                Role::Counted { shape: Shape::Attribute, .. } => {
                    items.push(value);
                    *role = Role::Owner;
                    return None;
                }
                Role::Counted { shape, .. } => {
                    items.push(value);
                    value = aggregate(*shape, mem::take(items));
                }
                Role::Owner => value = with_attributes(mem::take(items), value, keep),
            }
            self.open.pop();
        }
        Some(value)
    }
}

/// Room for elements that have all been received, so that this is no promise of the peer's.
fn room(elements: u32) -> usize {
    usize::try_from(elements).unwrap_or(0)
}

fn with_attributes(attributes: Vec<Frame>, value: Frame, keep: bool) -> Frame {
    if !keep || attributes.is_empty() || matches!(value, Frame::Push(_)) {
        return value;
    }
    Frame::Attributed(Box::new(Attributed::new(Pairs::from_flat(attributes), value)))
}

#[inline]
fn aggregate(shape: Shape, items: Vec<Frame>) -> Frame {
    match shape {
        Shape::Array => Frame::Array(Items::from(items)),
        Shape::Set => Frame::Set(Items::from(items)),
        Shape::Push => Frame::Push(Items::from(items)),
        Shape::Map | Shape::Attribute => Frame::Map(Pairs::from_flat(items)),
    }
}

/// The frame of one scalar, whose text is in `bytes`.
#[inline]
pub(super) fn scalar(token: Token, bytes: &Bytes) -> Frame {
    match token {
        Token::Integer(value) => Frame::Integer(value),
        Token::Boolean(value) => Frame::Boolean(value),
        Token::Double(value) => Frame::Double(value),
        Token::Text { kind, start, len } => text(kind, slice(bytes, start, len)),
        _ => Frame::Null,
    }
}

#[inline]
fn text(kind: TextKind, text: Bytes) -> Frame {
    match kind {
        TextKind::Simple => Frame::Simple(text),
        TextKind::Error => Frame::Error(text),
        TextKind::Bulk => Frame::Bulk(text),
        TextKind::BigNumber => Frame::BigNumber(text),
        TextKind::BulkError => Frame::BulkError(text),
        TextKind::Verbatim => verbatim(text),
    }
}

/// Splits format, colon and text, which the scanner has seen there.
fn verbatim(whole: Bytes) -> Frame {
    match whole.first_chunk::<3>() {
        Some(&format) => Frame::Verbatim { format, text: slice(&whole, 4, u32::MAX) },
        None => Frame::Bulk(whole),
    }
}

/// A share in `len` bytes at `start`, or in as many as there are.
#[inline]
fn slice(bytes: &Bytes, start: u32, len: u32) -> Bytes {
    let start = room(start).min(bytes.len());
    let end = start.saturating_add(room(len)).min(bytes.len());
    bytes.slice(start..end)
}

/// Moves the chunks of each streamed string together, over their heads, and makes one text of
/// them. `bytes` is the frame; nothing else of it refers to what is overwritten.
pub(super) fn join_chunks(bytes: &mut [u8], tape: &mut [Token]) {
    let mut stream: Option<(&mut Token, usize, usize)> = None;
    for token in tape {
        match (*token, &mut stream) {
            (Token::TextStream, _) => stream = Some((token, 0, 0)),
            (Token::Chunk { start, len }, Some((_, first, total))) => {
                let (from, len) = (room(start), room(len));
                if *total == 0 {
                    *first = from;
                }
                let to = first.saturating_add(*total);
                let end = from.saturating_add(len);
                if to <= from && end <= bytes.len() {
                    bytes.copy_within(from..end, to);
                }
                *total = total.saturating_add(len);
                *token = Token::Joined;
            }
            (Token::End, Some(_)) => {
                *token = Token::Joined;
                if let Some((head, first, total)) = stream.take() {
                    let start = u32::try_from(first).unwrap_or(0);
                    let len = u32::try_from(total).unwrap_or(0);
                    *head = Token::Text { kind: TextKind::Bulk, start, len };
                }
            }
            _ => {}
        }
    }
}
