//! An allocator that counts what the current thread allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What a piece of work did with the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heap {
    /// Calls that allocate, or move an allocation.
    pub(crate) calls: usize,
    /// Bytes held now, less those held at the start.
    pub(crate) held: isize,
    /// The most that was held at once.
    pub(crate) peak: isize,
}

thread_local! {
    static HEAP: Cell<Heap> = const { Cell::new(Heap { calls: 0, held: 0, peak: 0 }) };
}

/// Starts counting from nothing.
pub(crate) fn start() {
    HEAP.set(Heap::default());
}

/// What happened since [`start`].
pub(crate) fn now() -> Heap {
    HEAP.get()
}

/// The system's allocator, counted.
pub(crate) struct Counting;

/// No allocation is larger than `isize::MAX`.
fn signed(size: usize) -> isize {
    size as isize
}

fn count(calls: usize, bytes: isize) {
    // A thread that is going down still frees; that is not counted.
    let _ = HEAP.try_with(|heap| {
        let mut value = heap.get();
        value.calls += calls;
        value.held += bytes;
        value.peak = value.peak.max(value.held);
        heap.set(value);
    });
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, signed(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -signed(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, signed(size) - signed(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
