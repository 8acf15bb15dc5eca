//! One connection of the control broker: frames as they come, answers as the socket takes them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use nix::sys::epoll::EpollFlags;
use nix::sys::sendfile::sendfile64;
use nix::sys::socket::{MsgFlags, send};

use crate::load::frames::i32_at;
use crate::load::wrong;

/// The largest frame taken.
const FRAME: usize = 100 << 20;

/// MSG_MORE: the packet goes on.
const MORE: MsgFlags = MsgFlags::from_bits_retain(0x8000);

/// A part of an answer.
pub(super) enum Piece {
    Bytes(Vec<u8>),
    File {
        file: Arc<File>,
        at: u64,
        len: usize,
    },
}

/// What is to be written.
pub(super) type Out = VecDeque<Piece>;

pub(super) struct Connection {
    stream: TcpStream,
    /// A frame of which not all has arrived; empty while there is none.
    begun: Vec<u8>,
    filled: usize,
    out: Out,
    /// Bytes of the first piece that are written.
    written: usize,
    blocked: bool,
    registered_blocked: bool,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            begun: Vec::new(),
            filled: 0,
            out: Out::new(),
            written: 0,
            blocked: false,
            registered_blocked: false,
        }
    }

    pub(super) fn stream(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub(super) fn out(&mut self) -> &mut Out {
        &mut self.out
    }

    /// Reads once and hands out the frames that are whole; false at the end of the stream.
    pub(super) fn read(
        &mut self,
        scratch: &mut [u8],
        mut each: impl FnMut(&mut [u8], &mut Out) -> io::Result<()>,
    ) -> io::Result<bool> {
        if !self.begun.is_empty() {
            return self.read_on(each);
        }
        let read = match (&self.stream).read(scratch) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            read => read?,
        };
        let mut at = 0;
        while let Some(size) = frame_size(&scratch[at..read])? {
            if read - at < size {
                break;
            }
            each(&mut scratch[at..at + size], &mut self.out)?;
            at += size;
        }
        self.keep(&scratch[at..read])?;
        Ok(read > 0)
    }

    /// Reads more of the begun frame, and no byte behind it.
    fn read_on(
        &mut self,
        mut each: impl FnMut(&mut [u8], &mut Out) -> io::Result<()>,
    ) -> io::Result<bool> {
        match (&self.stream).read(&mut self.begun[self.filled..]) {
            Ok(0) => return Ok(false),
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        }
        if self.filled < self.begun.len() {
            return Ok(true);
        }
        let size = frame_size(&self.begun)?.unwrap_or(0);
        if size > self.begun.len() {
            // Only its size had arrived.
            self.begun.resize(size, 0);
            return Ok(true);
        }
        each(&mut self.begun, &mut self.out)?;
        self.begun.clear();
        self.filled = 0;
        Ok(true)
    }

    /// Keeps the beginning of a frame, with room for all of it.
    fn keep(&mut self, rest: &[u8]) -> io::Result<()> {
        if rest.is_empty() {
            return Ok(());
        }
        // Where even the size is cut, the rest of it comes first.
        let size = frame_size(rest)?.unwrap_or(4);
        self.begun.resize(size, 0);
        self.begun[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
        Ok(())
    }

    /// Writes until all is out or the socket takes no more.
    pub(super) fn write(&mut self) -> io::Result<()> {
        self.blocked = false;
        while let Some(piece) = self.out.front() {
            let (sent, len) = match piece {
                Piece::Bytes(bytes) => {
                    let more = self.out.len() > 1;
                    let flags = if more { MORE } else { MsgFlags::empty() };
                    let flags = flags | MsgFlags::MSG_NOSIGNAL;
                    let rest = &bytes[self.written..];
                    (send(self.stream.as_raw_fd(), rest, flags), bytes.len())
                }
                Piece::File { file, at, len } => {
                    let mut offset = i64::try_from(at + self.written as u64).map_err(wrong)?;
                    let left = len - self.written;
                    (
                        sendfile64(&self.stream, file, Some(&mut offset), left),
                        *len,
                    )
                }
            };
            match sent {
                Ok(0) if len > 0 => return Err(wrong("a file is shorter than it was")),
                Ok(sent) => self.written += sent,
                Err(nix::errno::Errno::EAGAIN) => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
            if self.written == len {
                self.written = 0;
                self.out.pop_front();
            }
        }
        Ok(())
    }

    /// What the socket is to be watched for, if that has changed.
    pub(super) fn wanted(&mut self) -> Option<EpollFlags> {
        if self.blocked == self.registered_blocked {
            return None;
        }
        self.registered_blocked = self.blocked;
        Some(if self.blocked {
            EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT
        } else {
            EpollFlags::EPOLLIN
        })
    }
}

/// The size of the frame at the front, its own four bytes included.
fn frame_size(bytes: &[u8]) -> io::Result<Option<usize>> {
    if bytes.len() < 4 {
        return Ok(None);
    }
    let size = usize::try_from(i32_at(bytes, 0)).map_err(wrong)?;
    if size > FRAME {
        return Err(wrong(format!("a frame of {size} bytes")));
    }
    Ok(Some(4 + size))
}
