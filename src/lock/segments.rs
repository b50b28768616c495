//! A hot key as several locks.

use super::locker::Locker;
use super::request::LockRequest;
use crate::error::Error;
use crate::lease::Key;

/// One hot key as several locks, each for a part of what the key protects:
/// [`Locker::segments`]. Tasks that work on parts in different segments do not wait for each other.
///
/// Segment 3 of `stock:7` is the lock of the key `stock:7/3`, and nothing more: `lock("stock:7/3")`
/// excludes it and is excluded, and costs the same. **Every process must use the same number of
/// segments**: with another number a part falls into another segment. Change the number only while
/// no segment is held, or together with the key.
///
/// ```no_run
/// # async fn example(locker: quorlock::Locker) -> Result<(), quorlock::Error> {
/// // The pieces of article 7 lie on sixteen heaps, one for each segment.
/// let stock = locker.segments("stock:7", 16);
/// let guard = stock.of_part("customer:42").await?;
/// println!("sell a piece of the heap that is called as the lock is: {}", guard.key());
/// guard.release().await?;
///
/// // What concerns them all: how many are left.
/// let guard = stock.all().await?;
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Segments {
    locker: Locker,
    key: Box<[u8]>,
    count: u16,
}

impl Locker {
    /// Divides a hot key into `count` locks, each for a part of what the key protects: see
    /// [`Segments`].
    pub fn segments(&self, key: impl AsRef<[u8]>, count: u16) -> Segments {
        Segments { locker: self.clone(), key: key.as_ref().into(), count }
    }
}

impl Segments {
    /// Asks for the lock of the segment into which this hash falls: its remainder by their number,
    /// so that `of(0)`, `of(1)`, … are all of them in turn. Any number that is the same for the
    /// same part in every process will do, also one that is no hash, as an account's; that of
    /// `std`'s `RandomState` will not.
    ///
    /// The request is an error, [`is_misuse`](Error::is_misuse), where there are no segments, or
    /// where the segment's key is none that [`Locker::lock`] takes.
    pub fn of(&self, hash: u64) -> LockRequest {
        match hash.checked_rem(u64::from(self.count)) {
            Some(segment) => self.locker.lock(self.name(segment)),
            None => self.locker.refused(no_segments()),
        }
    }

    /// Asks for the lock of the segment into which this part falls, by its bytes: [`of`](Self::of)
    /// their hash, FNV-1a of 64 bits (RFC 9923), which programs in other languages have as well.
    pub fn of_part(&self, part: impl AsRef<[u8]>) -> LockRequest {
        self.of(Key::hash(part.as_ref()))
    }

    /// Asks for all segments as one lock, as [`Locker::lock_all`] does: of 64 at most.
    pub fn all(&self) -> LockRequest {
        match self.count {
            0 => self.locker.refused(no_segments()),
            count => self.locker.lock_all((0..u64::from(count)).map(|segment| self.name(segment))),
        }
    }

    /// How many segments the key has.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.count
    }

    fn name(&self, segment: u64) -> Vec<u8> {
        [&*self.key, format!("/{segment}").as_bytes()].concat()
    }
}

fn no_segments() -> Error {
    Error::misuse("there must be one segment at least; give their number")
}
