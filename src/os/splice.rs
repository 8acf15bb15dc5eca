//! From file to socket without a copy in this process: sendfile(2).

use std::io::{self, IoSlice};

use nix::sys::sendfile::sendfile64;
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::disk::File;

/// Sends up to `len` bytes of `file` from `position`, as many as the socket takes; waits until it
/// takes some. Zero means that the file is shorter than promised.
pub(crate) async fn send_file(
    stream: &TcpStream,
    file: &File,
    position: u64,
    len: usize,
) -> io::Result<usize> {
    let start = i64::try_from(position).map_err(|_| io::ErrorKind::InvalidInput)?;
    let sent = stream
        .async_io(Interest::WRITABLE, || {
            let mut offset = start;
            sendfile64(stream, file, Some(&mut offset), len).map_err(io::Error::from)
        })
        .await;
    // A socket that keeps up never yields by itself.
    tokio::task::coop::consume_budget().await;
    sent
}

/// Sends up to all of `slices`, as many bytes as the socket takes; waits until it takes some.
/// `more` tells the kernel that the packet goes on (MSG_MORE).
pub(crate) async fn send_bytes(
    stream: &TcpStream,
    slices: &[IoSlice<'_>],
    more: bool,
) -> io::Result<usize> {
    let flags = if more { libc::MSG_MORE } else { 0 };
    stream
        .async_io(Interest::WRITABLE, || {
            SockRef::from(stream).send_vectored_with_flags(slices, flags | libc::MSG_NOSIGNAL)
        })
        .await
}

/// The same without waiting; an error of the kind `WouldBlock` when the socket takes nothing.
pub(crate) fn send_bytes_now(stream: &TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    stream.try_io(Interest::WRITABLE, || {
        SockRef::from(stream).send_vectored_with_flags(slices, libc::MSG_NOSIGNAL)
    })
}
