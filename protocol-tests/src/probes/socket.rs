//! One connection that is read with deadlines; what came before a deadline is kept for the next read.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What came.
pub(super) enum Got {
    /// A frame without its length.
    Frame(Vec<u8>),
    Closed,
    Nothing,
}

impl fmt::Display for Got {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame(frame) => write!(f, "an answer of {} bytes", frame.len()),
            Self::Closed => f.write_str("closed"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

pub(super) struct Socket {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Socket {
    pub(super) fn open(port: u16) -> Self {
        let stream =
            TcpStream::connect(("127.0.0.1", port)).expect("the broker accepts a connection");
        stream.set_nodelay(true).expect("a socket option");
        Self {
            stream,
            received: Vec::new(),
        }
    }

    /// Sends a frame under its length, or under a false one. A broker that has closed is noticed by
    /// the read.
    pub(super) fn send(&mut self, frame: &[u8], size: Option<i64>) {
        let length = size.unwrap_or_else(|| frame.len().try_into().expect("a short frame"));
        let length = i32::try_from(length).expect("lengths are i32");
        let _ = self
            .stream
            .write_all(&[&length.to_be_bytes()[..], frame].concat());
    }

    pub(super) fn receive(&mut self, wait: Duration) -> Got {
        let end = Instant::now() + wait;
        loop {
            if let Some(frame) = self.take_frame() {
                return Got::Frame(frame);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Got::Nothing;
            }
            self.stream
                .set_read_timeout(Some(left))
                .expect("a socket option");
            let mut bytes = [0; 16 << 10];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Got::Closed,
                Ok(len) => self.received.extend(&bytes[..len]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return Got::Closed,
            }
        }
    }

    fn take_frame(&mut self) -> Option<Vec<u8>> {
        let length = u32::from_be_bytes(*self.received.first_chunk()?);
        let end = 4 + usize::try_from(length).expect("a length fits");
        if self.received.len() < end {
            return None;
        }
        let rest = self.received.split_off(end);
        let mut frame = std::mem::replace(&mut self.received, rest);
        frame.drain(..4);
        Some(frame)
    }
}
