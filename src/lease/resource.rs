//! What one lock is about: a key, several of them, or a key with what nodes keep beside it.

mod covers;
mod slots;

use std::time::Duration;

use quorlock_resp::encode;

pub(super) use self::slots::SlotQuery;
use self::slots::Slots;
use super::class::Class;
use super::key::{BEATS, FENCE, GATE, KEYS_MAX, Key, QUEUE, READERS, no_name};
use super::primitive::{Holders, Primitive};
use crate::error::Error;

/// What a lock is about: its kind, its keys, and the class that it is counted under.
#[derive(Clone)]
pub(crate) struct Resource {
    pub(crate) primitive: &'static Primitive,
    keys: Keys,
    pub(crate) class: Class,
    /// How much longer than its lease it lives on the nodes.
    lock_delay_ms: u32,
}

#[derive(Clone)]
enum Keys {
    One(Key),
    /// One key, with what nodes keep beside it that its commands touch, too.
    Beside(Box<Beside>),
    Several(Box<Several>),
    /// Slots of a key, each of which is the key of a lock.
    Slots(Box<Slots>),
}

#[derive(Clone)]
struct Beside {
    key: Key,
    /// Those of a [queue](Resource::queue) stand last.
    beside: Box<[Key]>,
}

#[derive(Clone)]
struct Several {
    /// In their order, each once.
    keys: Box<[Key]>,
    /// As the caller gave them, with commas between them.
    given: Box<[u8]>,
}

impl Resource {
    pub(crate) fn one(primitive: &'static Primitive, key: Key) -> Self {
        Self::of(primitive, Keys::One(key))
    }

    fn of(primitive: &'static Primitive, keys: Keys) -> Self {
        Self { primitive, keys, class: Class::default(), lock_delay_ms: 0 }
    }

    /// Several keys, which are sorted: the order in which they were given means nothing.
    pub(crate) fn several(
        primitive: &'static Primitive,
        mut keys: Vec<Key>,
    ) -> Result<Self, Error> {
        if keys.is_empty() {
            return Err(Error::misuse("no key was given; name what is locked"));
        }
        if keys.len() > KEYS_MAX {
            return Err(Error::misuse(format!(
                "{} keys were given; one lock takes at most {KEYS_MAX} (lock what they belong to)",
                keys.len()
            )));
        }
        keys.sort_unstable_by(|one, other| one.full().cmp(other.full()));
        let twice = keys.windows(2).find(|pair| pair[0].full() == pair[1].full());
        if let Some([key, _]) = twice {
            let key = key.given().escape_ascii();
            return Err(Error::misuse(format!("the key \"{key}\" was given twice; give it once")));
        }
        let given: Vec<&[u8]> = keys.iter().map(Key::given).collect();
        let given = given.join(&b", "[..]).into();
        let several = Several { given, keys: keys.into() };
        Ok(Self::of(primitive, Keys::Several(Box::new(several))))
    }

    /// A read lock of a key, with what is kept beside that. An error where the names could not be
    /// told to be of one slot.
    pub(crate) fn read(primitive: &'static Primitive, key: Key) -> Result<Self, Error> {
        let names = [READERS, GATE, QUEUE, BEATS];
        let beside: Option<Vec<Key>> = names.into_iter().map(|name| key.beside(name)).collect();
        let beside = beside.ok_or_else(|| no_name(&key, "readers", "lock it without readers"))?;
        Ok(Self::of(primitive, Keys::with_beside(key, beside)))
    }

    /// Some slots of a key that has `count` of them: which ones is still to be chosen. An error
    /// where there can be no such number, or their names could not be told to be of one slot of a
    /// cluster.
    pub(crate) fn slots(
        primitive: &'static Primitive,
        key: Key,
        (count, weight): (u16, u16),
    ) -> Result<Self, Error> {
        Ok(Self::of(primitive, Keys::Slots(Box::new(Slots::new(key, count, weight)?))))
    }

    /// The key of one slot of a key that has `count`, by its number from 0 on. An error as for
    /// [`slots`](Self::slots), and where there is no such slot.
    pub(super) fn slot(key: Key, count: u16, number: u16) -> Result<Key, Error> {
        Slots::new(key, count, 1)?.key_of(number).cloned()
    }

    /// The read lock that this lock becomes, which must be of one key and none itself.
    pub(crate) fn downgraded(&self, primitive: &'static Primitive) -> Result<Self, Error> {
        let key = match &self.keys {
            Keys::One(key) => key,
            Keys::Beside(with) if self.primitive.holders.is_one() => &with.key,
            Keys::Beside(_) => return Err(Error::misuse("it is a read lock already")),
            Keys::Several(_) => {
                return Err(Error::misuse(
                    "a lock of several keys cannot be downgraded; release it, and read each key",
                ));
            }
            Keys::Slots(_) => {
                return Err(Error::misuse("a slot is no write lock, and has no readers"));
            }
        };
        let read = Self::read(primitive, key.clone())?;
        Ok(Self { class: self.class, lock_delay_ms: self.lock_delay_ms, ..read })
    }

    /// The same lock, as one of this kind, which is acquired in the order of tickets: with its
    /// queue, which every node keeps. An error for any other than a lock of one key, and where the
    /// queue can have no name.
    pub(crate) fn by_ticket(&self, primitive: &'static Primitive) -> Result<Self, Error> {
        if self.is_by_ticket() {
            return Ok(self.clone());
        }
        let Keys::One(key) = &self.keys else {
            return Err(Error::misuse(
                "`fair_strict` is for a lock of one key, and not for read locks, slots and several \
                 keys; leave it out",
            ));
        };
        let keys = Keys::with_queue(key);
        let keys = keys.ok_or_else(|| no_name(key, "queue", "lock it without `fair_strict`"))?;
        Ok(Self { primitive, keys, ..*self })
    }

    /// Whether it is acquired in the order of tickets.
    #[inline]
    pub(super) fn is_by_ticket(&self) -> bool {
        self.primitive.without_tickets.is_some()
    }

    /// A lock that has a queue, with the keys of that: for the node that keeps it. `None` where
    /// their names could not be told to be of one slot.
    pub(super) fn queued(&self) -> Option<Self> {
        let primitive = self.primitive.queued?;
        let keys = match &self.keys {
            Keys::One(key) => Keys::with_queue(key)?,
            Keys::Slots(slots) => Keys::Slots(Box::new(slots.with_queue()?)),
            keys => keys.clone(),
        };
        Some(Self { primitive, keys, ..*self })
    }

    /// The key of each key's fence. An error where a name could not be told to be of one slot.
    pub(super) fn fences(&self) -> Result<Vec<Key>, Error> {
        self.keys().iter().map(|key| key.fenced_beside(FENCE)).collect()
    }

    /// An error where a key's fence can have no name, and for what has none.
    pub(crate) fn check_fences(&self) -> Result<(), Error> {
        match self.primitive.holders {
            Holders::One => self.fences().map(drop),
            Holders::Readers => Err(Error::misuse(
                "readers have no fence; ask for the lock as a writer, or do not fence it",
            )),
            Holders::Slots(_) => Err(Error::misuse(
                "slots have no fence: several have one at once, and a store would refuse all but \
                 the latest; do not fence them",
            )),
        }
    }

    /// Whether it is the same lock: of the same kind, on the same keys, with the same delay.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let (own, others) = (self.keys().iter().map(Key::full), other.keys().iter().map(Key::full));
        let is_kind = std::ptr::eq(self.primitive, other.primitive);
        is_kind && self.lock_delay_ms == other.lock_delay_ms && own.eq(others)
    }

    /// For how long others are to stay out when its lease has ended without a release.
    pub(crate) fn lock_delay(&self) -> Duration {
        Duration::from_millis(self.lock_delay_ms.into())
    }

    /// Sets that: whole milliseconds, as the servers count. An error for more than 49 days.
    pub(crate) fn set_lock_delay(&mut self, delay: Duration) -> Result<(), Error> {
        self.lock_delay_ms = u32::try_from(delay.as_nanos().div_ceil(1_000_000)).map_err(|_| {
            Error::misuse(format!("a lock-delay of {delay:?}; give no more than 49 days"))
        })?;
        Ok(())
    }

    /// How long a key lives on the nodes whose lease has this TTL.
    #[inline]
    pub(crate) fn life(&self, ttl: Duration) -> Duration {
        ttl.saturating_add(self.lock_delay())
    }

    /// Each key of the lock.
    pub(crate) fn keys(&self) -> &[Key] {
        match &self.keys {
            Keys::One(key) => std::slice::from_ref(key),
            Keys::Beside(with) => std::slice::from_ref(&with.key),
            Keys::Several(several) => &several.keys,
            Keys::Slots(slots) => slots.keys(),
        }
    }

    /// What nodes keep beside the lock, and its commands touch.
    fn beside(&self) -> &[Key] {
        match &self.keys {
            Keys::Beside(with) => &with.beside,
            Keys::Slots(slots) => slots.queue(),
            Keys::One(_) | Keys::Several(_) => &[],
        }
    }

    /// How many keys its commands touch.
    pub(crate) fn count(&self) -> u16 {
        (self.keys().len() + self.beside().len()) as u16
    }

    /// The key, or all of them with commas between, as the caller gave them.
    pub(crate) fn given(&self) -> &[u8] {
        match &self.keys {
            Keys::One(key) => key.given(),
            Keys::Beside(with) => with.key.given(),
            Keys::Several(several) => &several.given,
            Keys::Slots(slots) => slots.key().given(),
        }
    }

    /// Each key as the caller gave it.
    pub(crate) fn given_each(&self) -> Vec<Vec<u8>> {
        match &self.keys {
            Keys::Slots(slots) => vec![slots.key().given().to_vec()],
            _ => self.keys().iter().map(|key| key.given().to_vec()).collect(),
        }
    }

    /// Which of a node's links carries it: of slots the same, whichever are chosen.
    #[inline]
    pub(crate) fn affinity(&self) -> u64 {
        match &self.keys {
            Keys::One(key) => key.affinity(),
            Keys::Slots(slots) => slots.key().affinity(),
            _ => self.keys().first().map(Key::affinity).unwrap_or_default(),
        }
    }

    /// Slots of which it is still to be chosen which: how many there are.
    pub(super) fn slots_to_choose(&self) -> Option<u16> {
        match &self.keys {
            Keys::Slots(slots) if slots.numbers().is_empty() => Some(slots.count()),
            _ => None,
        }
    }

    /// The numbers of the slots that were chosen, counted from 0.
    pub(crate) fn slot_numbers(&self) -> &[u16] {
        match &self.keys {
            Keys::Slots(slots) => slots.numbers(),
            _ => &[],
        }
    }

    /// What the node that keeps the queue is asked for, if it is to choose slots.
    pub(super) fn query(&self) -> Option<SlotQuery> {
        match &self.keys {
            Keys::Slots(slots) => Some(slots.query()),
            _ => None,
        }
    }

    /// The same, to be chosen as this says.
    pub(super) fn with_query(&self, start: u16, waits: bool, may_queue: bool) -> Self {
        let mut with_query = self.clone();
        if let Keys::Slots(slots) = &mut with_query.keys {
            slots.set_query(start, waits);
            slots.set_may_queue(may_queue);
        }
        with_query
    }

    /// These slots of it, counted from 0.
    pub(super) fn choosing(&self, numbers: &[u16]) -> Self {
        let (Keys::Slots(slots), Holders::Slots(kinds)) = (&self.keys, &self.primitive.holders)
        else {
            return self.clone();
        };
        let primitive = if numbers.len() == 1 { kinds.one } else { kinds.several };
        Self { primitive, keys: Keys::Slots(Box::new(slots.choosing(numbers))), ..*self }
    }

    /// The key that keeps readers out while it is there, if there is a name for it.
    pub(super) fn gate(&self) -> Option<Self> {
        let gate = self.keys().first()?.beside(GATE)?;
        let primitive = self.primitive.without_tickets.unwrap_or(self.primitive);
        Some(Self { class: self.class, ..Self::one(primitive, gate) })
    }

    /// Whether a key is one of these.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.keys().iter().any(|own| own.full() == key.full())
    }

    /// What the node keeps beside the lock, of [those keys](Self::queued): its queue and its beats.
    pub(super) fn queue(&self) -> &[Key] {
        let beside = self.beside();
        beside.get(beside.len().saturating_sub(2)..).unwrap_or_default()
    }

    /// The keys that its commands touch, encoded.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        if let Keys::One(key) = &self.keys {
            return encode::bulk(out, key.full()); // in each command of most locks
        }
        self.keys().iter().chain(self.beside()).for_each(|key| encode::bulk(out, key.full()));
    }
}

impl Keys {
    /// `None` where the names of its queue could not be told to be of one slot of a cluster.
    fn with_queue(key: &Key) -> Option<Self> {
        let beside = vec![key.beside(QUEUE)?, key.beside(BEATS)?];
        Some(Self::with_beside(key.clone(), beside))
    }

    fn with_beside(key: Key, beside: Vec<Key>) -> Self {
        Self::Beside(Box::new(Beside { key, beside: beside.into() }))
    }
}
