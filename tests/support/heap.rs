//! Counts the memory that this program holds: in all, and what a thread has taken since it last asked. What a thread has ever asked for
//! is a measure of its work that is the same in each run, however fast the machine is.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// What this thread has taken less what it gave back, and the most that this ever was.
    static TAKEN: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
    /// All that this thread has ever asked for.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

fn count(more: usize, less: usize) {
    // One number for all threads: they would wait for each other at each value that comes or goes.
    if super::HELD_IS_ASKED {
        HELD.fetch_add(more, Ordering::Relaxed);
        HELD.fetch_sub(less, Ordering::Relaxed);
    }
    // A thread that ends gives back what it has after its counter is gone.
    let _ = TAKEN.try_with(|taken| {
        let (now, most) = taken.get();
        let now = now + more.cast_signed() - less.cast_signed();
        taken.set((now, most.max(now)));
    });
    let _ = ASKED.try_with(|asked| asked.set(asked.get() + more));
}

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; this one counts and leaves the work to the one that is shipped"
)]
// SAFETY: every call goes to that allocator with the arguments that it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        unsafe { MiMalloc.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        count(0, layout.size());
        unsafe { MiMalloc.dealloc(old, layout) }
    }
}

/// The bytes that the program holds now: only where the program says `HELD_IS_ASKED`.
#[allow(dead_code, reason = "programs that share this file ask for one or the other")]
pub(crate) fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// Does some work on this thread; the most bytes that it held at once beyond what was held before.
#[allow(dead_code, reason = "programs that share this file ask for one or the other")]
pub(crate) fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let start = TAKEN.with(|taken| {
        let (now, _) = taken.get();
        taken.set((now, now));
        now
    });
    let result = work();
    let most = TAKEN.with(Cell::get).1;
    (result, (most - start).cast_unsigned())
}

/// The bytes that this thread has asked for so far, given back or not.
#[allow(dead_code, reason = "programs that share this file ask for one or the other")]
pub(crate) fn asked() -> usize {
    ASKED.with(Cell::get)
}
