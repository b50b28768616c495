//! Scanning a whole frame: heads in, tape out, and a place kept between calls.

use super::Stop;
use super::head::{self, Head};
use super::stack::{Level, Levels};
use super::token::{Shape, TextKind, Token};
use crate::error::ErrorKind;
use crate::limits::Limits;

/// Tokens a tape may keep room for between frames.
const TAPE_KEPT: usize = 64;

/// A complete frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scanned {
    /// One scalar, which is not on the tape, and its length in bytes.
    Scalar(Token, usize),
    /// The tape holds it. The number is its length in bytes.
    Tape(usize),
}

/// The place in an unfinished frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    /// Position of the next head: everything before it is on the tape.
    at: usize,
    /// As in [`Stop::More`], for the head at `at`.
    searched: usize,
    /// As in [`Stop::More`].
    need: usize,
    /// Elements declared by the heads on the tape, never more than the limit.
    elements: usize,
    /// Elements that the head at `at` adds by standing in a stream: none or one. Set each time the
    /// head is read, and counted once, when it is done.
    streamed: usize,
    levels: Levels,
    tape: Vec<Token>,
    has_text: bool,
    has_chunks: bool,
}

impl Scan {
    /// The length below which a buffer is not worth scanning again.
    #[inline]
    pub(crate) fn need(&self) -> usize {
        self.need
    }

    pub(crate) fn tape(&self) -> &[Token] {
        &self.tape
    }

    pub(crate) fn tape_mut(&mut self) -> &mut [Token] {
        &mut self.tape
    }

    /// Whether the tape may refer to any bytes.
    pub(crate) fn has_text(&self) -> bool {
        self.has_text
    }

    /// Whether the tape has a streamed string.
    pub(crate) fn has_chunks(&self) -> bool {
        self.has_chunks
    }

    /// Back to the start, for the next frame.
    pub(crate) fn reset(&mut self) {
        self.at = 0;
        self.searched = 0;
        self.need = 0;
        self.elements = 0;
        self.streamed = 0;
        self.levels.clear();
        self.tape.clear();
        self.tape.shrink_to(TAPE_KEPT);
        self.has_text = false;
        self.has_chunks = false;
    }

    /// Goes on with the frame at the start of `bytes`, which must begin as it did last time.
    pub(crate) fn run(&mut self, bytes: &[u8], limits: &Limits) -> Result<Scanned, Stop> {
        loop {
            match self.step(bytes, limits) {
                Ok(None) => {}
                Ok(Some(done)) => return Ok(done),
                Err(stop) => {
                    if let Stop::More { need, searched } = stop {
                        self.need = need;
                        self.searched = searched;
                    }
                    return Err(stop);
                }
            }
        }
    }

    /// Reads one element, or the head of an aggregate. `Some` when that was all of the frame.
    #[inline]
    fn step(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<Scanned>, Stop> {
        let at = self.at;
        let Some(&kind) = bytes.get(at) else { return Err(Stop::more()) };
        self.check_place(kind, at, limits)?;
        let (head, end) = head::read(kind, bytes, at, self.searched, limits)?;
        match head {
            Head::Null => Ok(self.scalar(Token::Null, end)),
            Head::Boolean(value) => Ok(self.scalar(Token::Boolean(value), end)),
            Head::Integer(value) => Ok(self.scalar(Token::Integer(value), end)),
            Head::Double(value) => Ok(self.scalar(Token::Double(value), end)),
            Head::Line(kind) => {
                let start = at.saturating_add(1);
                let len = end.saturating_sub(2).saturating_sub(start);
                self.text(kind, start, len, end)
            }
            Head::Blob(kind, len) => {
                let (len, behind) = body(bytes, at, end, len, limits)?;
                if kind == TextKind::Verbatim {
                    check_colon(bytes, end)?;
                }
                self.text(kind, end, len, behind)
            }
            Head::Open(shape, count) => self.open(shape, count, end, limits),
            Head::OpenStream(shape) => {
                self.levels.open(Level::Stream { shape, odd: false }, limits.depth, at)?;
                self.push(Token::OpenStream { shape }, end);
                Ok(None)
            }
            Head::TextStream => {
                self.levels.open(Level::Text, limits.depth, at)?;
                self.has_text = true;
                self.has_chunks = true;
                self.push(Token::TextStream, end);
                Ok(None)
            }
            Head::Chunk(0) | Head::End => {
                self.levels.close();
                self.push(Token::End, end);
                Ok(self.complete())
            }
            Head::Chunk(len) => {
                let (len, behind) = body(bytes, at, end, len, limits)?;
                let (start, len) = range(end, len)?;
                self.push(Token::Chunk { start, len }, behind);
                Ok(None)
            }
        }
    }

    /// Refuses an element that may not stand at `at` by its type, or is one too many in a stream.
    #[inline]
    fn check_place(&mut self, kind: u8, at: usize, limits: &Limits) -> Result<(), Stop> {
        match (kind, self.levels.innermost()) {
            (b';', Some(Level::Text)) => self.count_streamed(at, limits),
            (b';', _) | (_, Some(Level::Text)) => Err(Stop::fault(ErrorKind::Stream, at)),
            (b'.', Some(Level::Stream { shape, odd })) => {
                let half = odd && shape.in_pairs();
                if half { Err(Stop::fault(ErrorKind::OddMap, at)) } else { Ok(()) }
            }
            (b'.', _) => Err(Stop::fault(ErrorKind::Stream, at)),
            (b'>', _) if !self.levels.is_top() => Err(Stop::fault(ErrorKind::NestedPush, at)),
            (_, Some(Level::Stream { .. })) => self.count_streamed(at, limits),
            _ => Ok(()),
        }
    }

    /// Opens an aggregate whose head ends at `end`.
    fn open(
        &mut self,
        shape: Shape,
        count: u64,
        end: usize,
        limits: &Limits,
    ) -> Result<Option<Scanned>, Stop> {
        let head = self.at;
        let number = head.saturating_add(1);
        let too_many = Stop::fault(ErrorKind::Elements, number);
        let count = if shape.in_pairs() { count.checked_mul(2).ok_or(too_many)? } else { count };
        // Attributes count themselves too: a row of empty ones would otherwise have no end.
        let itself = u64::from(shape == Shape::Attribute);
        self.declare(count.saturating_add(itself), number, limits)?;
        let elements = u32::try_from(count).map_err(|_| too_many)?;
        let token = Token::Open { shape, elements };
        if shape == Shape::Attribute {
            self.levels.open_attribute(elements, limits.depth, head)?;
        } else if elements > 0 {
            let level = Level::Counted { shape, missing: elements };
            self.levels.open(level, limits.depth, head)?;
        } else {
            self.push(token, end);
            return Ok(self.complete());
        }
        self.push(token, end);
        Ok(None)
    }

    fn count_streamed(&mut self, at: usize, limits: &Limits) -> Result<(), Stop> {
        self.streamed = 1;
        if self.elements < limits.elements {
            return Ok(());
        }
        Err(Stop::fault(ErrorKind::Elements, at))
    }

    /// Adds the elements that an aggregate announces with the number at position `at`.
    fn declare(&mut self, count: u64, at: usize, limits: &Limits) -> Result<(), Stop> {
        self.elements = usize::try_from(count)
            .ok()
            .and_then(|count| self.elements.checked_add(count))
            .filter(|elements| elements.saturating_add(self.streamed) <= limits.elements)
            .ok_or_else(|| Stop::fault(ErrorKind::Elements, at))?;
        Ok(())
    }

    /// Takes text at `start` as an element that ends before `behind`.
    #[inline]
    fn text(
        &mut self,
        kind: TextKind,
        start: usize,
        len: usize,
        behind: usize,
    ) -> Result<Option<Scanned>, Stop> {
        let (start, len) = range(start, len)?;
        self.has_text |= len > 0;
        Ok(self.scalar(Token::Text { kind, start, len }, behind))
    }

    /// Takes a scalar that ends before `behind`.
    #[inline]
    fn scalar(&mut self, token: Token, behind: usize) -> Option<Scanned> {
        if self.levels.is_empty() {
            return Some(Scanned::Scalar(token, behind));
        }
        self.push(token, behind);
        self.complete()
    }

    #[inline]
    fn push(&mut self, token: Token, behind: usize) {
        self.tape.push(token);
        self.at = behind;
        self.searched = 0;
        self.elements = self.elements.saturating_add(self.streamed);
        self.streamed = 0;
    }

    #[inline]
    fn complete(&mut self) -> Option<Scanned> {
        self.levels.complete().then_some(Scanned::Tape(self.at))
    }
}

/// The body behind a head that starts at `at`, ends at `end` and announces `len` bytes: their
/// number, and the position behind their line end.
#[inline]
fn body(
    bytes: &[u8],
    at: usize,
    end: usize,
    len: u64,
    limits: &Limits,
) -> Result<(usize, usize), Stop> {
    let number = at.saturating_add(1);
    let len = usize::try_from(len)
        .ok()
        .filter(|&len| len <= limits.bulk_bytes)
        .ok_or_else(|| Stop::fault(ErrorKind::BulkBytes, number))?;
    let tail = end.saturating_add(len);
    let behind = tail.saturating_add(2);
    if behind > limits.frame_bytes {
        return Err(Stop::fault(ErrorKind::FrameBytes, number));
    }
    // Both bytes of the line end are awaited, so that this is looked at twice in all.
    match bytes.get(tail..behind) {
        None => Err(Stop::More { need: behind, searched: 0 }),
        Some(b"\r\n") => Ok((len, behind)),
        Some([b'\r', _]) => Err(Stop::fault(ErrorKind::Terminator, tail.saturating_add(1))),
        Some(_) => Err(Stop::fault(ErrorKind::Terminator, tail)),
    }
}

/// Checks the colon behind the format of the verbatim string whose body starts at `start`.
fn check_colon(bytes: &[u8], start: usize) -> Result<(), Stop> {
    let colon = start.saturating_add(3);
    match bytes.get(colon) {
        Some(b':') => Ok(()),
        _ => Err(Stop::fault(ErrorKind::Verbatim, colon)),
    }
}

/// A range as a token holds it. The limits keep every position within 32 bits.
#[inline]
fn range(start: usize, len: usize) -> Result<(u32, u32), Stop> {
    match (u32::try_from(start), u32::try_from(len)) {
        (Ok(start), Ok(len)) => Ok((start, len)),
        _ => Err(Stop::fault(ErrorKind::FrameBytes, start)),
    }
}
