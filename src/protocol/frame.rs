//! Length-prefixed frames: a four-byte size, then header and body.
//!
//! [`Frames`] collects what was read and hands out whole frames as slices of it. A size is judged
//! before anything is reserved for it; a size that is merely claimed reserves little.

use bytes::buf::Limit;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The bytes of the size before each frame.
pub(crate) const SIZE_LEN: usize = 4;

/// What is reserved at once for a frame whose bytes have not arrived.
const RESERVE_AT_MOST: usize = 1 << 20;

/// A frame from this size on is read up to its end and no further, so that the next one need not be
/// moved; while more of it is waited for, it keeps its buffer.
const LARGE: usize = 64 << 10;

/// The most bytes of smaller frames that are read at once.
const READ_AT_MOST: usize = 128 << 10;

/// A request up to this size is copied out: what a waiting request points into is its own.
const COPIED: usize = 4 << 10;

/// The key of Produce, whose requests are large and do not outlive the appends.
const PRODUCE: [u8; 2] = [0, 0];

/// Why the bytes on a connection are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadFrame {
    /// Zero or negative.
    #[error("the frame size {0} is not positive")]
    NotPositive(i32),
    /// Over the limit that holds for this frame.
    #[error("the frame size {size} is over the limit of {limit} bytes")]
    TooLarge { size: usize, limit: usize },
}

/// A buffer between a socket and its frames.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    buffer: BytesMut,
}

impl Frames {
    /// The size of the next frame, once it has arrived.
    ///
    /// `limit` tells the most bytes a frame may have, from its API key once that has arrived:
    /// a small request cannot claim the room of a Produce.
    pub(crate) fn size(
        &self,
        limit: impl Fn(Option<i16>) -> usize,
    ) -> Result<Option<usize>, BadFrame> {
        let Some(size) = self.announced()? else {
            return Ok(None);
        };
        let key = self.buffer.get(SIZE_LEN..SIZE_LEN + 2);
        let limit = limit(key.map(|key| i16::from_be_bytes([key[0], key[1]])));
        if size > limit {
            return Err(BadFrame::TooLarge { size, limit });
        }
        Ok(Some(size))
    }

    /// Takes the next frame of that size, without the size before it; makes room and gives `None`
    /// until all of it has been read.
    pub(crate) fn take(&mut self, size: usize) -> Option<Bytes> {
        if self.buffer.len() < SIZE_LEN + size {
            self.reserve_for(size);
            return None;
        }
        self.buffer.advance(SIZE_LEN);
        if size > COPIED && self.buffer.starts_with(&PRODUCE) {
            return Some(self.buffer.split_to(size).freeze());
        }
        let frame = Bytes::copy_from_slice(&self.buffer[..size]);
        self.buffer.advance(size);
        Some(frame)
    }

    /// Whether what follows should be read into a larger buffer.
    pub(crate) fn wants_room(&self) -> bool {
        let free = self.buffer.capacity() - self.buffer.len();
        free < READ_AT_MOST && self.large().is_none()
    }

    /// Goes on in another, larger, empty buffer.
    pub(crate) fn move_into(&mut self, mut buffer: BytesMut) {
        buffer.extend_from_slice(&self.buffer);
        self.buffer = buffer;
    }

    /// Where the socket's next bytes go, and how many: never none.
    pub(crate) fn space(&mut self) -> Limit<&mut BytesMut> {
        let most = match self.large() {
            Some(missing) => missing,
            None => READ_AT_MOST,
        };
        if self.buffer.capacity() == self.buffer.len() {
            self.buffer.reserve(most.min(READ_AT_MOST));
        }
        (&mut self.buffer).limit(most)
    }

    /// Gives the buffer away before a wait: what has begun and is not large is kept in as many
    /// bytes as it has. `None` when there is none to give.
    pub(crate) fn pack(&mut self) -> Option<BytesMut> {
        let len = self.buffer.len();
        if self.large().is_some() || self.buffer.capacity() == len {
            return None;
        }
        let kept = if len == 0 {
            BytesMut::new()
        } else {
            BytesMut::from(&self.buffer[..])
        };
        let mut buffer = std::mem::replace(&mut self.buffer, kept);
        buffer.clear();
        Some(buffer)
    }

    /// The missing bytes of a large frame that has begun.
    fn large(&self) -> Option<usize> {
        let size = self.announced().ok()??;
        let missing = (SIZE_LEN + size).saturating_sub(self.buffer.len());
        (size >= LARGE && missing > 0).then_some(missing)
    }

    fn announced(&self) -> Result<Option<usize>, BadFrame> {
        let Some(size) = self.buffer.first_chunk::<SIZE_LEN>() else {
            return Ok(None);
        };
        let size = i32::from_be_bytes(*size);
        match usize::try_from(size) {
            Ok(positive) if positive > 0 => Ok(Some(positive)),
            _ => Err(BadFrame::NotPositive(size)),
        }
    }

    fn reserve_for(&mut self, size: usize) {
        let missing = SIZE_LEN + size - self.buffer.len();
        let earned = RESERVE_AT_MOST.max(self.buffer.len());
        self.buffer.reserve(missing.min(earned));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Frames {
        fn next(
            &mut self,
            limit: impl Fn(Option<i16>) -> usize,
        ) -> Result<Option<Bytes>, BadFrame> {
            Ok(self.size(limit)?.and_then(|size| self.take(size)))
        }
    }

    fn frames(bytes: &[u8]) -> Frames {
        let mut frames = Frames::default();
        frames.space().put_slice(bytes);
        frames
    }

    #[test]
    fn frames_come_out_whole_and_in_order() {
        let mut frames = frames(&[0, 0, 0, 2, 7, 8, 0, 0, 0, 3, 1]);
        assert_eq!(frames.next(|_| 10).unwrap().unwrap(), &[7, 8][..]);
        assert_eq!(frames.next(|_| 10), Ok(None));
        frames.space().put_slice(&[2, 3]);
        assert_eq!(frames.next(|_| 10).unwrap().unwrap(), &[1, 2, 3][..]);
        assert!(frames.buffer.is_empty());
    }

    #[test]
    fn a_bad_size_is_refused_before_its_bytes_arrive() {
        assert_eq!(frames(&[0; 4]).next(|_| 10), Err(BadFrame::NotPositive(0)));
        assert_eq!(
            frames(&[255; 4]).next(|_| 10),
            Err(BadFrame::NotPositive(-1))
        );
        let refused = Err(BadFrame::TooLarge {
            size: 11,
            limit: 10,
        });
        assert_eq!(frames(&[0, 0, 0, 11]).next(|_| 10), refused);
    }

    #[test]
    fn the_limit_may_depend_on_the_api() {
        let limit = |key: Option<i16>| if key == Some(3) { 4 } else { 1000 };
        let mut small = frames(&[0, 0, 0, 9, 0, 3]);
        assert_eq!(
            small.next(limit),
            Err(BadFrame::TooLarge { size: 9, limit: 4 })
        );
        assert_eq!(frames(&[0, 0, 0, 9, 0, 0]).next(limit), Ok(None));
    }

    #[test]
    fn what_has_begun_is_kept_in_its_own_size_while_it_is_waited_for() {
        let mut frames = Frames::default();
        frames.move_into(BytesMut::with_capacity(1 << 20));
        frames.space().put_slice(&[0, 0, 0, 3, 1]);
        assert_eq!(frames.next(|_| 10), Ok(None));
        let lent = frames.pack().unwrap();
        assert!(lent.is_empty() && lent.capacity() > 1 << 19);
        assert!(frames.buffer.capacity() < 100);
        assert!(frames.pack().is_none(), "there is nothing more to give");
        assert!(frames.wants_room());
        frames.move_into(lent);
        frames.space().put_slice(&[2, 3]);
        assert_eq!(frames.next(|_| 10).unwrap().unwrap(), &[1, 2, 3][..]);
    }

    #[test]
    fn a_large_frame_is_read_to_its_end_and_keeps_its_buffer() {
        let mut frames = Frames::default();
        frames.move_into(BytesMut::with_capacity(1 << 20));
        let size = 200_000_u32;
        frames.space().put_slice(&size.to_be_bytes());
        assert_eq!(frames.next(|_| 1 << 20), Ok(None));
        assert_eq!(frames.space().remaining_mut(), 200_000);
        frames.space().put_slice(&[0; 150_000]);
        assert!(frames.pack().is_none());
        assert_eq!(frames.space().remaining_mut(), 50_000);
        frames.space().put_slice(&[0; 50_000]);
        let frame = frames.next(|_| 1 << 20).unwrap().unwrap();
        assert_eq!(frame.len(), 200_000);
        assert!(frames.pack().is_some());
    }

    #[test]
    fn only_a_large_produce_points_into_what_was_read() {
        let small = [&[0, 0, 0, 4][..], &[0, 0, 0, 9]].concat();
        let other = [&8000_u32.to_be_bytes()[..], &[0, 1], &[7; 7998]].concat();
        let produce = [&8000_u32.to_be_bytes()[..], &[0, 0], &[7; 7998]].concat();
        for (bytes, is_slice) in [(small, false), (other, false), (produce, true)] {
            let mut frames = frames(&bytes);
            let read = frames.buffer.as_ptr_range();
            let frame = frames.next(|_| 10_000).unwrap().unwrap();
            assert_eq!(read.contains(&frame.as_ptr()), is_slice);
            assert_eq!(frame, &bytes[4..]);
        }
    }

    #[test]
    fn a_claimed_size_reserves_little() {
        let mut claimed = frames(&[0x06, 0, 0, 0]);
        assert_eq!(claimed.next(|_| usize::MAX), Ok(None));
        assert!(claimed.buffer.capacity() < 4 << 20);
    }
}
