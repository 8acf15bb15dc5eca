//! Length-prefixed frames: a four-byte size, then header and body.
//!
//! [`Frames`] collects what was read and hands out whole frames as slices of it. A size is judged
//! before anything is reserved for it; a size that is merely claimed reserves little.

use bytes::{Buf, Bytes, BytesMut};

/// The bytes of the size before each frame.
pub(crate) const SIZE_LEN: usize = 4;

/// What is reserved at once for a frame whose bytes have not arrived.
const RESERVE_AT_MOST: usize = 1 << 20;

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
        Some(self.buffer.split_to(size).freeze())
    }

    /// Where the socket's next bytes go; room for at least a small request.
    pub(crate) fn space(&mut self, at_least: usize) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < at_least / 4 {
            self.buffer.reserve(at_least);
        }
        &mut self.buffer
    }

    /// Whether no byte of a next frame has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Gives the memory back; only without bytes of a next frame.
    pub(crate) fn release(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
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
        frames.space(64).extend_from_slice(bytes);
        frames
    }

    #[test]
    fn frames_come_out_whole_and_in_order() {
        let mut frames = frames(&[0, 0, 0, 2, 7, 8, 0, 0, 0, 3, 1]);
        assert_eq!(frames.next(|_| 10).unwrap().unwrap(), &[7, 8][..]);
        assert_eq!(frames.next(|_| 10), Ok(None));
        frames.space(64).extend_from_slice(&[2, 3]);
        assert_eq!(frames.next(|_| 10).unwrap().unwrap(), &[1, 2, 3][..]);
        assert!(frames.is_empty());
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
    fn a_claimed_size_reserves_little() {
        let mut claimed = frames(&[0x06, 0, 0, 0]);
        assert_eq!(claimed.next(|_| usize::MAX), Ok(None));
        assert!(claimed.buffer.capacity() < 4 << 20);
    }
}
