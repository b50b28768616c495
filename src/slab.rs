//! Places that are used again and again: a slab with a lock-free free list.
//!
//! A place is claimed, used and given back, and never freed: in steady state nothing is allocated.
//! What stands in a place keeps its own generation if late-comers must be told apart; the slab only
//! sees to it that a place has one holder at a time.
//!
//! The race: *a place popped from the free list while it is popped and pushed elsewhere.* The
//! list's head carries a count that changes with every operation, so that a stale head never
//! matches.

use std::fmt;
use std::sync::OnceLock;

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The first chunk's size; each further chunk is twice as large as the one before, up to the
/// largest: of many places few are idle.
const FIRST_CHUNK: usize = if cfg!(quorlock_models) { 1 } else { 64 };
/// How many chunks grow so; the last of them is of the largest size, as are those behind it.
const GROWING: usize = 7;
const LARGEST_CHUNK: usize = FIRST_CHUNK << (GROWING - 1);
/// How many places the growing chunks have.
const GROWN: usize = (FIRST_CHUNK << GROWING) - FIRST_CHUNK;
/// Shelves of chunks of the largest size, and chunks of a shelf.
const SHELVES: usize = 64;
const SHELF: usize = 64;
/// No place: the end of the free list.
const NONE: u32 = u32::MAX;

struct Place<T> {
    /// The next free place, while this one is free.
    next: AtomicU32,
    value: T,
}

type Chunk<T> = OnceLock<Box<[Place<T>]>>;
type Shelf<T> = OnceLock<Box<[Chunk<T>]>>;

/// The slab.
pub(crate) struct Slab<T> {
    growing: [Chunk<T>; GROWING],
    shelves: Box<[Shelf<T>]>,
    make: Box<dyn Fn() -> T + Send + Sync>,
    /// Head of the free list: a count of its changes, and an index.
    free: AtomicU64,
    /// How many places have ever been claimed.
    used: AtomicU32,
}

impl<T> Slab<T> {
    /// An empty slab; `make` makes what stands in a place that was never used.
    pub(crate) fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self {
            growing: [const { OnceLock::new() }; GROWING],
            shelves: (0..SHELVES).map(|_| OnceLock::new()).collect(),
            make: Box::new(make),
            free: AtomicU64::new(u64::from(NONE)),
            used: AtomicU32::new(0),
        }
    }

    /// Claims a place.
    pub(crate) fn claim(&self) -> u32 {
        self.pop().unwrap_or_else(|| self.used.fetch_add(1, Ordering::SeqCst))
    }

    /// Gives a place back; what stands in it must be ready for its next use.
    pub(crate) fn release(&self, index: u32) {
        // Ordering: release in `swap_head` publishes what the holder wrote to the next one.
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let (changes, next) = split(head);
            self.place(index).next.store(next, Ordering::Relaxed);
            match self.swap_head(head, changes, index) {
                Ok(()) => return,
                Err(found) => head = found,
            }
        }
    }

    /// What stands in a place that was claimed once.
    pub(crate) fn get(&self, index: u32) -> &T {
        &self.place(index).value
    }

    /// Every place below this index has been claimed once.
    pub(crate) fn used(&self) -> u32 {
        // Ordering: SeqCst pairs with the caller's flag: one side sees the other.
        self.used.load(Ordering::SeqCst)
    }

    #[inline]
    fn place(&self, index: u32) -> &Place<T> {
        // Counted from the first chunk's size, each chunk begins at its own.
        let position = index as usize + FIRST_CHUNK;
        let chunk = (position / FIRST_CHUNK).ilog2() as usize;
        let made = self.growing.get(chunk).and_then(OnceLock::get);
        match made.and_then(|places| places.get(position - (FIRST_CHUNK << chunk))) {
            Some(place) => place,
            None => self.place_anywhere(index as usize),
        }
    }

    #[cold]
    fn place_anywhere(&self, index: usize) -> &Place<T> {
        let Some(beyond) = index.checked_sub(GROWN) else {
            let position = index + FIRST_CHUNK;
            let chunk = (position / FIRST_CHUNK).ilog2() as usize;
            let size = FIRST_CHUNK << chunk;
            return &self.places(&self.growing[chunk], size)[position - size];
        };
        let (chunk, place) = (beyond / LARGEST_CHUNK, beyond % LARGEST_CHUNK);
        let empty = || (0..SHELF).map(|_| OnceLock::new()).collect();
        let shelf = self.shelves[chunk / SHELF].get_or_init(empty);
        &self.places(&shelf[chunk % SHELF], LARGEST_CHUNK)[place]
    }

    fn places<'a>(&self, chunk: &'a Chunk<T>, size: usize) -> &'a [Place<T>] {
        let fresh = || Place { next: AtomicU32::new(NONE), value: (self.make)() };
        chunk.get_or_init(|| (0..size).map(|_| fresh()).collect())
    }

    fn pop(&self) -> Option<u32> {
        // Ordering: acquire pairs with the release in `release`: the place's reset is visible.
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let (changes, index) = split(head);
            if index == NONE {
                return None;
            }
            let next = self.place(index).next.load(Ordering::Relaxed);
            match self.swap_head(head, changes, next) {
                Ok(()) => return Some(index),
                Err(found) => head = found,
            }
        }
    }

    fn swap_head(&self, head: u64, changes: u32, index: u32) -> Result<(), u64> {
        let new = u64::from(changes.wrapping_add(1)) << 32 | u64::from(index);
        self.free.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }
}

impl<T> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab").field("used", &self.used).finish_non_exhaustive()
    }
}

const fn split(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

#[cfg(all(test, not(quorlock_models)))]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    #[test]
    fn every_index_has_a_place_of_its_own() {
        let slab = Slab::new(|| AtomicU32::new(0));
        let count = GROWN + LARGEST_CHUNK * (SHELF + 1) + 1;
        for expected in 0..u32::try_from(count).unwrap() {
            assert_eq!(slab.claim(), expected);
            assert_eq!(slab.get(expected).swap(expected + 1, Ordering::SeqCst), 0);
        }
        for index in 0..u32::try_from(count).unwrap() {
            assert_eq!(slab.get(index).load(Ordering::SeqCst), index + 1);
        }
    }

    #[test]
    fn no_place_has_two_holders() {
        let slab = Slab::new(|| AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let held: Vec<_> = (0..80).map(|_| slab.claim()).collect();
                        assert_eq!(held.iter().collect::<HashSet<_>>().len(), held.len());
                        for index in held {
                            let before = slab.get(index).fetch_add(1, Ordering::SeqCst);
                            assert_eq!(before, 0, "the place is ours alone");
                            slab.get(index).fetch_sub(1, Ordering::SeqCst);
                            slab.release(index);
                        }
                    }
                });
            }
        });
        assert!(slab.used() <= 4 * 80);
    }
}
