//! The allocator: jemalloc, except for what is too large to be meant.
//!
//! A count on the wire may ask for more memory than there is, and the decoder makes room for it
//! before it finds that the elements are missing. Most allocators end the process then. jemalloc
//! reserves the addresses, but remembers something about each for ever, so that counts by chance cost
//! hundreds of MiB in the end. The kernel gives addresses and takes them back for nothing.
#![expect(unsafe_code, reason = "to be an allocator is unsafe by itself")]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{self, NonNull};

use tikv_jemallocator::Jemalloc;

/// Larger than any frame, and than what a frame within its limits decodes to.
const LARGE: usize = 256 << 20;
/// What the kernel aligns to, at least.
const PAGE: usize = 4096;

/// The allocator of the whole process.
pub(crate) struct Allocator;

/// Decided by the layout alone, so that a block is freed by whom it came from.
fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

// SAFETY: both halves keep the contract, `Jemalloc` by its own, `reserve` and `release` as told
// there; which half a block belongs to follows from its layout, which the caller must repeat.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return reserve(layout.size());
        }
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { Jemalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            // Fresh pages are zero.
            return reserve(layout.size());
        }
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { Jemalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: a block of this layout was given out by `reserve` with this size.
            unsafe { release(block, layout.size()) };
        } else {
            // SAFETY: a block of this layout was given out by jemalloc.
            unsafe { Jemalloc.dealloc(block, layout) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size is valid with this alignment.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if !is_large(layout) && !is_large(new) {
            // SAFETY: the caller's promises are passed on, and both blocks are jemalloc's.
            return unsafe { Jemalloc.realloc(block, layout, new_size) };
        }
        // SAFETY: `new` is a valid layout of a size that is not zero, as the caller promises.
        let moved = unsafe { self.alloc(new) };
        if !moved.is_null() {
            // SAFETY: both blocks are live, apart, and at least so long; the old one was given out
            // for `layout`.
            unsafe {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}

/// Fresh zero pages that cost nothing until they are touched; null when there are no addresses.
fn reserve(size: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing that exists.
    let pages = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, -1, 0) };
    let pages = (pages != libc::MAP_FAILED).then_some(pages);
    pages
        .and_then(NonNull::new)
        .map_or(ptr::null_mut(), |pages| pages.as_ptr().cast())
}

/// Gives pages back.
///
/// # Safety
/// `reserve` has given out `block` for this size, and nobody uses it any more.
unsafe fn release(block: *mut u8, size: usize) {
    // SAFETY: as promised by the caller; the kernel rounds up to whole pages as it did before.
    let result = unsafe { libc::munmap(block.cast(), size) };
    debug_assert_eq!(result, 0, "a mapping of our own is given back");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_larger_than_memory_is_reserved_and_its_ends_can_be_used() {
        let size = 64 << 30;
        let mut block: Vec<u8> = Vec::with_capacity(size);
        block.push(7);
        let spare = block.spare_capacity_mut();
        let last = spare.len() - 1;
        spare[last].write(9);
        assert_eq!((block[0], block.capacity()), (7, size));
    }

    #[test]
    fn a_block_keeps_its_bytes_as_it_grows_and_shrinks_across_the_border() {
        let wanted: Vec<u8> = (0..=255).collect();
        let mut block: Vec<u8> = Vec::with_capacity(LARGE - 1);
        block.extend(&wanted);
        block.reserve_exact(LARGE + 2 * PAGE);
        assert_eq!(block, wanted);
        for capacity in [LARGE + PAGE + 1, LARGE, LARGE - 1, 1000] {
            block.shrink_to(capacity);
            assert_eq!((block.capacity(), &block), (capacity, &wanted));
        }
        assert!(
            vec![0_u8; LARGE + 1]
                .iter()
                .step_by(PAGE)
                .all(|byte| *byte == 0)
        );
    }
}
