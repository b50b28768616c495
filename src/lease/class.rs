//! The classes that callers give their locks, each with a number: a number keeps a claim small.

use crate::sync::{Mutex, lock};

/// The number of a class. The first is the locker's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Class(u32);

/// The classes of a locker's locks, by their numbers.
pub(crate) struct Classes {
    own: &'static str,
    /// Those that requests have named, in that order: few, for each is a text of the program.
    named: Mutex<Vec<&'static str>>,
}

impl Classes {
    /// `own` is that of locks whose request names none.
    pub(super) fn new(own: &'static str) -> Self {
        Self { own, named: Mutex::new(Vec::new()) }
    }

    /// The number of a class, the same each time.
    pub(crate) fn number(&self, class: &'static str) -> Class {
        if class == self.own {
            return Class::default();
        }
        let mut named = lock(&self.named);
        let index = named.iter().position(|known| *known == class).unwrap_or_else(|| {
            named.push(class);
            named.len() - 1
        });
        Class(u32::try_from(index + 1).unwrap_or_default())
    }

    /// The class that has this number.
    pub(super) fn name(&self, Class(number): Class) -> &'static str {
        let Some(index) = number.checked_sub(1) else { return self.own };
        lock(&self.named).get(index as usize).copied().unwrap_or(self.own)
    }
}

#[cfg(test)]
#[cfg(not(quorlock_models))]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_one_number_and_the_lockers_own_the_first() {
        let classes = Classes::new("orders");
        let numbers = ["orders", "jobs", "", "jobs", "orders"].map(|name| classes.number(name));
        assert_eq!(numbers, [0, 1, 2, 1, 0].map(Class));
        assert_eq!(
            numbers.map(|number| classes.name(number)),
            ["orders", "jobs", "", "jobs", "orders"]
        );
    }
}
