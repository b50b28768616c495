//! Whether holding one lock implies holding another.

use super::super::primitive::Holders;
use super::Resource;
use crate::error::Error;

impl Resource {
    /// Whether holding this lock implies holding the other one. An error if acquiring the other one
    /// would wait for this one.
    pub(crate) fn covers(&self, other: &Self) -> Result<bool, Error> {
        let are_slots = |resource: &Self| resource.primitive.holders.have_slots();
        if are_slots(self) || are_slots(other) {
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
