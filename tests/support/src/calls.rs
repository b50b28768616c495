//! How often a server has executed each command, by its own count.

use crate::Reply;

/// The counts of all commands, of one moment: two answers of a server are of two.
#[derive(Debug)]
pub struct Calls(String);

impl Calls {
    /// Reads the answer to `INFO commandstats`.
    pub fn read(stats: &Reply) -> Self {
        Self(stats.text())
    }

    /// How often it was executed, with or without success.
    pub fn of(&self, command: &str) -> u64 {
        self.count(command, "calls")
    }

    /// How often a key with a lock's value was to be deleted, natively or by a script. Extensions
    /// count too: they are scripts as well.
    pub fn releases(&self) -> u64 {
        self.of("evalsha") + self.of("delifeq")
    }

    /// How often it failed while it was executed.
    pub fn failed(&self, command: &str) -> u64 {
        self.count(command, "failed_calls")
    }

    /// How often it was asked for, and not executed.
    pub fn rejected(&self, command: &str) -> u64 {
        self.count(command, "rejected_calls")
    }

    fn count(&self, command: &str, name: &str) -> u64 {
        let head = format!("cmdstat_{command}:");
        let counts = self.0.lines().find_map(|line| line.strip_prefix(&head)).unwrap_or_default();
        let mut counts = counts.split(',').filter_map(|count| count.split_once('='));
        let found = counts.find(|(found, _)| *found == name);
        found.map_or(0, |(_, count)| count.parse().expect("a server counts in numbers"))
    }
}
