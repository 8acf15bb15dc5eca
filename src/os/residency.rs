//! Is a range of a file in the page cache? Asked before a send that would otherwise wait for the
//! disk on a runtime thread.
//!
//! cachestat(2) tells exactly (Linux 6.5). Older kernels lack it and container profiles may hide
//! it; there preadv2(2) with RWF_NOWAIT probes the first, middle and last byte, since residency is
//! nearly always contiguous. Where neither works, every range counts as absent and is read on the
//! blocking pool.
#![expect(unsafe_code, reason = "two system calls that no crate wraps")]

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU8, Ordering};

use super::disk::File;

/// The number of cachestat(2) on every architecture.
const SYS_CACHESTAT: libc::c_long = 451;

const CACHESTAT: u8 = 0;
const NOWAIT: u8 = 1;
const BLIND: u8 = 2;

/// How far the kernel may have read ahead of one who reads from end to end: a window of 8 MiB, where
/// that is set high, and the next is on its way.
const READ_AHEAD: u64 = 16 << 20;

/// How this kernel can be asked; moves on for good when a way turns out not to exist.
static WAY: AtomicU8 = AtomicU8::new(CACHESTAT);

#[repr(C)]
struct Range {
    offset: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct Stat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Whether every page of the range is in the page cache.
pub(crate) fn is_resident(file: &File, position: u64, len: usize) -> bool {
    if len == 0 {
        return true;
    }
    if WAY.load(Ordering::Relaxed) == CACHESTAT {
        match cached_pages(file, position, len as u64) {
            Some(cached) => return cached >= pages(position, len as u64),
            None => WAY.store(NOWAIT, Ordering::Relaxed),
        }
    }
    let last = position + len as u64 - 1;
    WAY.load(Ordering::Relaxed) == NOWAIT
        && [position, position + len as u64 / 2, last]
            .into_iter()
            .all(|at| reads_at_once(file, at))
}

/// Whether also what lies far beyond `end` is in the page cache, where the file reaches so far.
///
/// If it is not, what lies before may be there only because the kernel reads ahead. Its pages count
/// from when they are asked for, so that a send would wait for the disk; and whoever comes by the mark
/// in them asks for the next ones, and makes room for those first.
pub(crate) fn is_resident_beyond(file: &File, end: u64) -> bool {
    let far = end.saturating_add(READ_AHEAD);
    is_resident(file, far, 1) || file.len().is_ok_and(|len| len <= far)
}

fn pages(position: u64, len: u64) -> u64 {
    const PAGE: u64 = 4096;
    (position + len).div_ceil(PAGE) - position / PAGE
}

fn cached_pages(file: &File, position: u64, len: u64) -> Option<u64> {
    let range = Range {
        offset: position,
        len,
    };
    let mut stat = Stat::default();
    // SAFETY: the descriptor is open for the call; `range` and `stat` are live, have the layout
    // of struct cachestat_range and struct cachestat (linux/mman.h), and the kernel only reads
    // the first and only writes the second.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_fd().as_raw_fd(),
            std::ptr::from_ref(&range),
            std::ptr::from_mut(&mut stat),
            0_u32,
        )
    };
    (result == 0).then_some(stat.cached)
}

fn reads_at_once(file: &File, position: u64) -> bool {
    let mut byte = 0_u8;
    let slice = libc::iovec {
        iov_base: std::ptr::from_mut(&mut byte).cast(),
        iov_len: 1,
    };
    let Ok(offset) = libc::off_t::try_from(position) else {
        return false;
    };
    // SAFETY: the descriptor is open for the call, `slice` names one live byte that the kernel
    // may write.
    let read = unsafe {
        libc::preadv2(
            file.as_fd().as_raw_fd(),
            std::ptr::from_ref(&slice),
            1,
            offset,
            libc::RWF_NOWAIT,
        )
    };
    if read < 0 {
        let error = std::io::Error::last_os_error().raw_os_error();
        if matches!(error, Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL)) {
            WAY.store(BLIND, Ordering::Relaxed);
        }
    }
    read == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::disk::{Disk, Open, TempDir};

    #[test]
    fn what_was_just_written_is_resident() {
        let dir = TempDir::new();
        let file = Disk.open(&dir.path().join("f"), Open::New).unwrap();
        file.write_all_at(&[1; 10_000], 0).unwrap();
        let known = is_resident(&file, 5, 9_000);
        // A kernel that cannot be asked says no, never a wrong yes.
        assert!(known || WAY.load(Ordering::Relaxed) == BLIND);
    }

    #[test]
    fn what_lies_beyond_the_end_of_a_file_is_not_missed() {
        let dir = TempDir::new();
        let file = Disk.open(&dir.path().join("f"), Open::New).unwrap();
        file.write_all_at(&[1; 10_000], 0).unwrap();
        assert!(is_resident_beyond(&file, 5));
        assert!(is_resident_beyond(&file, 10_000));
        // A hole far off is not in memory, whatever is here.
        file.set_len(4 * READ_AHEAD).unwrap();
        assert!(!is_resident_beyond(&file, 5));
    }

    #[test]
    fn a_range_covers_the_pages_it_touches() {
        assert_eq!(pages(0, 1), 1);
        assert_eq!(pages(4095, 2), 2);
        assert_eq!(pages(4096, 4096), 1);
    }
}
