//! Whether holding one lock implies holding another.

use super::super::primitive::Holders;
use super::slots::Slots;
use super::{Keys, Resource};
use crate::error::Error;

impl Resource {
    /// Whether holding this lock implies holding the other one. An error if acquiring the other one
    /// would wait for this one.
    pub(crate) fn covers(&self, other: &Self) -> Result<bool, Error> {
        if let (Keys::Slots(own), Keys::Slots(others)) = (&self.keys, &other.keys) {
            return others.check_room_beside(own).map(|()| false);
        }
        if [self, other].iter().any(|resource| resource.primitive.holders.have_slots()) {
            return Ok(false);
        }
        let common = other.keys().iter().filter(|key| self.has(key)).count();
        match (&self.primitive.holders, &other.primitive.holders) {
            _ if common == 0 => Ok(false),
            _ if common < other.keys().len() => Err(Error::misuse(format!(
                "the guard has \"{}\" and not all of these keys, and this would wait for it; lock \
                 all of them first",
                self.given().escape_ascii()
            ))),
            (Holders::Readers, Holders::One) => Err(Error::misuse(
                "the guard has a read lock, and a write lock would wait for it; release it first",
            )),
            _ => Ok(true),
        }
    }
}

impl Slots {
    /// An error if there are not as many slots as these wanted ones beside those that are held.
    fn check_room_beside(&self, held: &Self) -> Result<(), Error> {
        let is_same = self.key().full() == held.key().full() && self.count() == held.count();
        let both = usize::from(self.query().weight) + held.numbers().len();
        match is_same && both > usize::from(self.count()) {
            true => Err(Error::misuse(
                "there are not so many slots beside those of the guard, and this would wait for \
                 it; ask for all of them at once",
            )),
            false => Ok(()),
        }
    }
}
