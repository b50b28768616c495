//! Bytes that are appended at one end and taken from the other, in one piece.
//!
//! A link has two such queues, what is still to be written and what would undo it, and each command
//! passes through both. They empty again and again, and then begin anew at the front: as a rule
//! nothing is ever moved, and nothing allocated.

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    bytes: Vec<u8>,
    /// Where the bytes begin that were not taken yet; 0 when there are none.
    head: usize,
}

impl Fifo {
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.head
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(self.head..).unwrap_or_default()
    }

    pub(super) fn get_mut(&mut self, from: usize, len: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(self.head..)?.get_mut(from..)?.get_mut(..len)
    }

    pub(super) fn push(&mut self, more: &[u8]) {
        let is_full = self.bytes.capacity() - self.bytes.len() < more.len();
        // What moves is never more than what was taken since the last move: each byte moves once.
        if is_full && self.head >= self.len() {
            self.bytes.drain(..self.head);
            self.head = 0;
        }
        self.bytes.extend_from_slice(more);
    }

    /// Takes so many bytes from the front.
    pub(super) fn advance(&mut self, count: usize) {
        self.head = self.head.saturating_add(count);
        if self.head >= self.bytes.len() {
            self.clear();
        }
    }

    /// Takes all bytes.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let taken = self.as_slice().to_vec();
        self.clear();
        taken
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.head = 0;
    }

    /// Makes room for so many bytes more.
    pub(super) fn reserve(&mut self, more: usize) {
        self.bytes.reserve(more);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::Fifo;

    #[test]
    fn it_is_a_queue_of_bytes() {
        for seed in 0..50 {
            let mut rng = StdRng::seed_from_u64(seed);
            let (mut fifo, mut model, mut next) = (Fifo::default(), VecDeque::new(), 0_u8);
            for _ in 0..200 {
                for _ in 0..rng.random_range(0..40) {
                    next = next.wrapping_add(1);
                    fifo.push(&[next]);
                    model.push_back(next);
                }
                let taken = rng.random_range(0..40).min(model.len());
                fifo.advance(taken);
                model.drain(..taken);
                assert!(fifo.as_slice().iter().eq(&model), "seed {seed}");
                assert_eq!((fifo.len(), fifo.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }

    #[test]
    fn a_queue_that_never_empties_stays_small() {
        let mut fifo = Fifo::default();
        fifo.push(&[0; 100]);
        for _ in 0..10_000 {
            fifo.push(&[1; 10]);
            fifo.advance(10);
        }
        assert_eq!(fifo.len(), 100);
        assert!(fifo.bytes.capacity() <= 1_024, "{}", fifo.bytes.capacity());
    }

    #[test]
    fn what_room_was_made_for_is_taken_without_an_allocation() {
        let mut fifo = Fifo::default();
        fifo.reserve(1_000);
        let room = fifo.bytes.capacity();
        fifo.push(&[0; 1_000]);
        assert!(room >= 1_000 && fifo.bytes.capacity() == room);
    }

    #[test]
    fn a_part_can_be_changed_and_all_taken() {
        let mut fifo = Fifo::default();
        fifo.push(b"abcdef");
        fifo.advance(2);
        fifo.get_mut(1, 2).unwrap().copy_from_slice(b"--");
        assert!(fifo.get_mut(3, 2).is_none(), "it ends before");
        assert_eq!(fifo.take(), b"c--f");
        assert!(fifo.is_empty());
    }
}
