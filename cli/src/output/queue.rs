//! Lines that wait to be written, oldest first. Pure: no thread, no I/O.
//!
//! Once a line finds no room, all further ones are dropped until the queue is empty. So there is
//! one gap, directly behind the lines that were kept, and one line there says how many are missing.

use std::collections::VecDeque;

/// How many lines wait for stderr at most, beside the one that is being written.
const LINES_MAX: usize = 16;

/// The lines, each with its end.
#[derive(Debug)]
pub(super) struct Queue {
    lines: VecDeque<String>,
    /// How many were dropped behind `lines`.
    dropped: u64,
    /// Whether a line was taken that is not written yet.
    writing: bool,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { lines: VecDeque::new(), dropped: 0, writing: false }
    }

    /// Adds a line, or drops and counts it where there is no room.
    pub(super) fn push(&mut self, line: String) {
        if self.dropped > 0 || self.lines.len() >= LINES_MAX {
            self.dropped = self.dropped.saturating_add(1);
        } else {
            self.lines.push_back(line);
        }
    }

    /// Adds a line whether there is room or not.
    pub(super) fn push_last(&mut self, line: String) {
        let gap = self.gap();
        self.lines.extend(gap);
        self.lines.push_back(line);
    }

    /// The next line to write. Calling it again means that the line before has been written.
    pub(super) fn take(&mut self) -> Option<String> {
        let next = self.lines.pop_front().or_else(|| self.gap());
        self.writing = next.is_some();
        next
    }

    /// Whether everything has been written.
    pub(super) fn is_done(&self) -> bool {
        self.lines.is_empty() && self.dropped == 0 && !self.writing
    }

    /// The line that stands for those that were dropped.
    fn gap(&mut self) -> Option<String> {
        let what = match std::mem::take(&mut self.dropped) {
            0 => return None,
            1 => "1 line was".into(),
            count => format!("{count} lines were"),
        };
        Some(format!("quorlock: {what} dropped, for stderr took none\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue in which so many lines were pushed, each its number.
    fn pushed(count: usize) -> Queue {
        let mut queue = Queue::new();
        (0..count).for_each(|number| queue.push(number.to_string()));
        queue
    }

    fn rest(mut queue: Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.take()).collect()
    }

    fn numbers(count: usize) -> Vec<String> {
        (0..count).map(|number| number.to_string()).collect()
    }

    #[test]
    fn lines_are_written_in_their_order_up_to_the_bound() {
        assert_eq!(rest(pushed(LINES_MAX)), numbers(LINES_MAX));
        assert_eq!(rest(pushed(0)), numbers(0));
    }

    #[test]
    fn lines_beyond_the_bound_are_counted_in_one_line() {
        let (one, many) = (
            "quorlock: 1 line was dropped, for stderr took none\n".to_owned(),
            "quorlock: 1001 lines were dropped, for stderr took none\n".to_owned(),
        );
        assert_eq!(rest(pushed(LINES_MAX + 1)), [numbers(LINES_MAX), vec![one]].concat());
        assert_eq!(rest(pushed(LINES_MAX + 1_001)), [numbers(LINES_MAX), vec![many]].concat());
    }

    #[test]
    fn lines_are_dropped_until_the_queue_is_empty_and_then_taken_again() {
        let mut queue = pushed(LINES_MAX + 1);
        queue.take();
        queue.push("there is room, but a gap before it".into());
        for _ in 1..LINES_MAX {
            queue.take();
        }
        assert!(queue.take().is_some_and(|line| line.contains("2 lines were dropped")));
        queue.push("next".into());
        assert_eq!(rest(queue), ["next"]);
    }

    #[test]
    fn a_last_line_comes_behind_the_gap_and_is_never_dropped() {
        let mut queue = pushed(LINES_MAX + 5);
        queue.push_last("the end".into());
        let rest = rest(queue);
        assert_eq!(rest.len(), LINES_MAX + 2);
        assert!(rest[LINES_MAX].contains("5 lines were dropped"), "{rest:?}");
        assert_eq!(rest[LINES_MAX + 1], "the end");
    }

    #[test]
    fn a_line_that_is_being_written_is_not_done() {
        let mut queue = pushed(1);
        assert!(!queue.is_done());
        queue.take();
        assert!(!queue.is_done());
        assert_eq!(queue.take(), None);
        assert!(queue.is_done());
    }
}
