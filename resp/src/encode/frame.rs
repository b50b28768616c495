//! Frames to bytes, in RESP3, with a list in place of recursion.

use core::slice;

use bytes::Bytes;

use super::number::{Decimal, Double};
use super::{Output, bulk_len, header, header_len};
use crate::frame::Frame;

/// Writes one frame.
///
/// Text that can not be a line (a [`Frame::Simple`] or [`Frame::Error`] made by hand with a CR or
/// LF inside) is written as its kin with a length, so that no text can break out of its frame.
pub fn frame<O: Output + ?Sized>(out: &mut O, frame: &Frame) {
    out.reserve(frame_len(frame));
    walk(frame, |frame| scalar_or_header(out, frame));
}

/// The length of what [`frame`] writes.
#[must_use]
pub fn frame_len(frame: &Frame) -> usize {
    let mut len: usize = 0;
    walk(frame, |frame| len = len.saturating_add(own_len(frame)));
    len
}

/// Visits `frame` and everything inside, in wire order.
fn walk<'f>(frame: &'f Frame, mut visit: impl FnMut(&'f Frame)) {
    visit(frame);
    let mut pending = Vec::new();
    descend(frame, &mut pending);
    while let Some(rest) = pending.last_mut() {
        match rest.next() {
            Some(frame) => {
                visit(frame);
                descend(frame, &mut pending);
            }
            None => {
                pending.pop();
            }
        }
    }
}

fn descend<'f>(frame: &'f Frame, pending: &mut Vec<slice::Iter<'f, Frame>>) {
    match frame {
        Frame::Array(items) | Frame::Set(items) | Frame::Push(items) => pending.push(items.iter()),
        Frame::Map(pairs) => pending.push(pairs.as_frames().iter()),
        Frame::Attributed(attributed) => {
            pending.push(slice::from_ref(attributed.value()).iter());
            pending.push(attributed.attributes().as_frames().iter());
        }
        _ => {}
    }
}

/// Writes all of a scalar, or the header of an aggregate.
fn scalar_or_header<O: Output + ?Sized>(out: &mut O, frame: &Frame) {
    match frame {
        Frame::Simple(text) => line_or_blob(out, b'+', b'$', text),
        Frame::Error(text) => line_or_blob(out, b'-', b'!', text),
        Frame::BigNumber(text) => line_or_blob(out, b'(', b'$', text),
        Frame::Integer(value) => out.put(Decimal::integer(*value).as_bytes()),
        Frame::Bulk(text) => blob(out, b'$', text),
        Frame::BulkError(text) => blob(out, b'!', text),
        Frame::Null => out.put(b"_\r\n"),
        Frame::Boolean(true) => out.put(b"#t\r\n"),
        Frame::Boolean(false) => out.put(b"#f\r\n"),
        Frame::Double(value) => line(out, b',', Double::new(*value).as_bytes()),
        Frame::Verbatim { format, text } => {
            header(out, b'=', text.len().saturating_add(4));
            out.put(format);
            out.put(b":");
            out.put(text);
            out.put(b"\r\n");
        }
        Frame::Array(items) => header(out, b'*', items.len()),
        Frame::Set(items) => header(out, b'~', items.len()),
        Frame::Push(items) => header(out, b'>', items.len()),
        Frame::Map(pairs) => header(out, b'%', pairs.len()),
        Frame::Attributed(attributed) => header(out, b'|', attributed.attributes().len()),
    }
}

/// The length of what [`scalar_or_header`] writes.
fn own_len(frame: &Frame) -> usize {
    match frame {
        Frame::Simple(text) | Frame::Error(text) | Frame::BigNumber(text) => {
            if is_line(text) {
                text.len().saturating_add(3)
            } else {
                bulk_len(text.len())
            }
        }
        Frame::Integer(value) => Decimal::integer(*value).as_bytes().len(),
        Frame::Bulk(text) | Frame::BulkError(text) => bulk_len(text.len()),
        Frame::Null => 3,
        Frame::Boolean(_) => 4,
        Frame::Double(value) => Double::new(*value).as_bytes().len().saturating_add(3),
        Frame::Verbatim { text, .. } => bulk_len(text.len().saturating_add(4)),
        Frame::Array(items) | Frame::Set(items) | Frame::Push(items) => header_len(items.len()),
        Frame::Map(pairs) => header_len(pairs.len()),
        Frame::Attributed(attributed) => header_len(attributed.attributes().len()),
    }
}

fn is_line(text: &Bytes) -> bool {
    !text.iter().any(|byte| matches!(byte, b'\r' | b'\n'))
}

fn line_or_blob<O: Output + ?Sized>(out: &mut O, kind: u8, otherwise: u8, text: &Bytes) {
    if is_line(text) { line(out, kind, text) } else { blob(out, otherwise, text) }
}

fn line<O: Output + ?Sized>(out: &mut O, kind: u8, text: &[u8]) {
    out.put(&[kind]);
    out.put(text);
    out.put(b"\r\n");
}

fn blob<O: Output + ?Sized>(out: &mut O, kind: u8, bytes: &[u8]) {
    header(out, kind, bytes.len());
    out.put(bytes);
    out.put(b"\r\n");
}
