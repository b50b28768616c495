//! The slots of a key: some locks that are as good as one another.
//!
//! Slot 3 of the key `k` is the lock of the key `{k}:slot:3`. Those that wait for one stand in a
//! queue that goes with the number of slots: those that use another number have another queue, and
//! neither wakes the other.

use std::sync::Arc;

use quorlock_resp::encode;

use super::super::key::{BEATS, KEYS_MAX, Key, QUEUE, no_name};
use super::super::wire::{DECIMAL_MAX, decimal};
use crate::error::Error;

/// Slots of a key.
#[derive(Clone)]
pub(super) struct Slots {
    names: Arc<Names>,
    query: SlotQuery,
    /// Those that were chosen, if any were.
    chosen: Chosen,
    /// Whether it is about the queue, too.
    has_queue: bool,
    /// Whether the user has rights to the queue's keys.
    may_queue: bool,
}

/// The key, and what stands beside it on the nodes.
struct Names {
    key: Key,
    slots: Box<[Key]>,
    queue: [Key; 2],
}

/// Which slots the node that keeps the queue is asked for.
#[derive(Clone, Copy, Debug)]
pub(in crate::lease) struct SlotQuery {
    /// How many, all or none.
    pub(in crate::lease) weight: u16,
    /// Free ones are looked for from this one on, counted from 0.
    pub(in crate::lease) start: u16,
    /// Whether it waits in the queue where there are too few.
    pub(in crate::lease) waits: bool,
}

#[derive(Clone, Default)]
struct Chosen {
    numbers: Box<[u16]>,
    keys: Box<[Key]>,
}

impl SlotQuery {
    /// How many arguments it comes to.
    pub(in crate::lease) const ARGUMENTS: usize = 3;

    pub(in crate::lease) fn put(self, out: &mut Vec<u8>) {
        encode::bulk(out, if self.waits { b"wait" } else { b"try" });
        for number in [self.weight, self.start] {
            encode::bulk(out, decimal(number.into(), &mut [0; DECIMAL_MAX]));
        }
    }
}

impl Slots {
    pub(super) fn new(key: Key, count: u16, weight: u16) -> Result<Self, Error> {
        if count == 0 || usize::from(count) > KEYS_MAX {
            return Err(Error::misuse(format!(
                "{count} slots were asked for; a key has from 1 to {KEYS_MAX}"
            )));
        }
        if weight == 0 || weight > count {
            return Err(Error::misuse(format!(
                "{weight} of {count} slots were asked for; ask for 1 at least, and at most for all"
            )));
        }
        let named = |name: String| {
            let beside = key.beside(name.as_bytes());
            beside.ok_or_else(|| no_name(&key, "slots", "lock it as a whole"))
        };
        let of_queue = |of: &[u8]| named(format!("slots:{count}:{}", String::from_utf8_lossy(of)));
        let slots = (0..count).map(|number| named(format!("slot:{number}")));
        let (slots, queue) =
            (slots.collect::<Result<_, _>>()?, [of_queue(QUEUE)?, of_queue(BEATS)?]);
        let query = SlotQuery { weight, start: 0, waits: true };
        let names = Arc::new(Names { key, slots, queue });
        Ok(Self { names, query, chosen: Chosen::default(), has_queue: false, may_queue: true })
    }

    /// The key that has slots.
    pub(super) fn key(&self) -> &Key {
        &self.names.key
    }

    pub(super) fn count(&self) -> u16 {
        self.names.slots.len() as u16
    }

    /// Those that were chosen, or all of them.
    pub(super) fn keys(&self) -> &[Key] {
        match self.chosen.keys.is_empty() {
            true => &self.names.slots,
            false => &self.chosen.keys,
        }
    }

    /// The key of the slot with this number, counted from 0.
    pub(super) fn key_of(&self, number: u16) -> Result<&Key, Error> {
        self.names.slots.get(usize::from(number)).ok_or_else(|| {
            let last = self.count() - 1;
            Error::misuse(format!(
                "there is no slot {number}: the key's slots are numbered from 0 to {last}; name \
                 one of them"
            ))
        })
    }

    /// The numbers of those that were chosen.
    pub(super) fn numbers(&self) -> &[u16] {
        &self.chosen.numbers
    }

    pub(super) fn queue(&self) -> &[Key] {
        if self.has_queue { &self.names.queue } else { &[] }
    }

    pub(super) fn query(&self) -> SlotQuery {
        self.query
    }

    pub(super) fn set_query(&mut self, start: u16, waits: bool) {
        (self.query.start, self.query.waits) = (start % self.count(), waits);
    }

    pub(super) fn set_may_queue(&mut self, may_queue: bool) {
        self.may_queue = may_queue;
    }

    /// The same with the queue; `None` where the user may not have to do with that.
    pub(super) fn with_queue(&self) -> Option<Self> {
        self.may_queue.then(|| Self { has_queue: true, ..self.clone() })
    }

    /// These slots, without the queue.
    pub(super) fn choosing(&self, numbers: &[u16]) -> Self {
        let keys = numbers.iter().filter_map(|number| self.names.slots.get(usize::from(*number)));
        let chosen = Chosen { keys: keys.cloned().collect(), numbers: numbers.into() };
        Self { chosen, has_queue: false, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new(b"pay:", name.as_bytes()).unwrap()
    }

    fn named(keys: &[Key]) -> Vec<String> {
        keys.iter().map(|key| String::from_utf8_lossy(key.full()).into_owned()).collect()
    }

    #[test]
    fn each_slot_is_a_key_beside_the_one_that_has_slots() {
        let slots = Slots::new(key("k"), 3, 2).unwrap();
        assert_eq!(named(slots.keys()), ["{pay:k}:slot:0", "{pay:k}:slot:1", "{pay:k}:slot:2"]);
        assert!(slots.queue().is_empty() && slots.numbers().is_empty());
        let queued = slots.with_queue().unwrap();
        let names = ["{pay:k}:slots:3:quorlock:queue", "{pay:k}:slots:3:quorlock:beats"];
        assert_eq!(named(queued.queue()), names);
        let chosen = queued.choosing(&[2, 0]);
        assert_eq!(named(chosen.keys()), ["{pay:k}:slot:2", "{pay:k}:slot:0"]);
        assert!(chosen.queue().is_empty() && chosen.numbers() == [2, 0]);
    }

    #[test]
    fn a_slot_is_found_by_its_number_and_one_that_is_not_there_is_refused() {
        let slots = Slots::new(key("k"), 3, 1).unwrap();
        for number in 0..3 {
            let found = slots.key_of(number).unwrap().full();
            assert_eq!(found, format!("{{pay:k}}:slot:{number}").as_bytes());
        }
        for number in [3, u16::MAX] {
            let refused = slots.key_of(number).err().unwrap();
            let said = format!("no slot {number}: the key's slots are numbered from 0 to 2");
            assert!(refused.is_misuse() && refused.to_string().contains(&said), "{refused}");
        }
    }

    #[test]
    fn one_who_may_not_queue_has_no_queue() {
        let mut slots = Slots::new(key("k"), 3, 1).unwrap();
        slots.set_may_queue(false);
        assert!(slots.with_queue().is_none());
    }

    #[test]
    fn numbers_that_cannot_be_are_refused_and_say_what_can() {
        let refused =
            |count, weight| Slots::new(key("k"), count, weight).err().unwrap().to_string();
        for (count, weight, said) in [
            (0, 1, "a key has from 1 to 64"),
            (65, 1, "a key has from 1 to 64"),
            (4, 0, "ask for 1 at least"),
            (4, 5, "at most for all"),
        ] {
            assert!(refused(count, weight).contains(said), "{}", refused(count, weight));
        }
        assert!(Slots::new(key("k"), 64, 64).is_ok());
        assert!(Slots::new(key("a}b"), 2, 1).is_err(), "no name would be beside it");
    }

    #[test]
    fn a_query_says_whether_it_waits_how_many_it_wants_and_from_where() {
        let mut slots = Slots::new(key("k"), 3, 2).unwrap();
        slots.set_query(4, false);
        let mut put = Vec::new();
        slots.query().put(&mut put);
        assert_eq!(put, b"$3\r\ntry\r\n$1\r\n2\r\n$1\r\n1\r\n");
    }
}
