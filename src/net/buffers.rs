//! Where bytes from sockets go: one large buffer for each thread, lent to the connection that reads.
//!
//! A connection that waits holds no more than the bytes that it was sent.

use std::cell::RefCell;

use bytes::BytesMut;

/// The size of a lent buffer: frames up to about this size are read in place.
const ROOM: usize = 512 << 10;

thread_local! {
    static SPARE: RefCell<Option<BytesMut>> = const { RefCell::new(None) };
}

/// An empty buffer with much room.
pub(super) fn lend() -> BytesMut {
    let spare = SPARE.with_borrow_mut(Option::take);
    spare.unwrap_or_else(|| BytesMut::with_capacity(ROOM))
}

/// Takes an empty buffer back. One of another size is freed, and so is one that a request still
/// points into, when the request is over.
pub(super) fn take_back(mut buffer: BytesMut) {
    if buffer.try_reclaim(ROOM) && buffer.capacity() < 4 * ROOM {
        SPARE.with_borrow_mut(|spare| *spare = Some(buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_whole_once_its_frames_are_gone() {
        let mut buffer = lend();
        let memory = buffer.as_ptr();
        buffer.extend_from_slice(&[7; 1000]);
        let frame = buffer.split_to(1000).freeze();
        drop(frame);
        take_back(buffer);
        let again = lend();
        assert_eq!(again.as_ptr(), memory);
        assert!(again.is_empty() && again.capacity() >= ROOM);
    }

    #[test]
    fn a_buffer_that_is_still_pointed_into_is_not_lent_again() {
        let mut buffer = lend();
        buffer.extend_from_slice(&[7; 1000]);
        let frame = buffer.split_to(1000).freeze();
        take_back(buffer);
        let mut other = lend();
        other.extend_from_slice(&[8; 1000]);
        assert!(frame.iter().all(|byte| *byte == 7));
    }
}
