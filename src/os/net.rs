//! The network: listening sockets.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// How a listening socket and those that it accepts are set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sockets {
    /// How many connections may wait to be accepted.
    pub(crate) backlog: i32,
    /// The size of the send buffer; `None` leaves it to the system.
    pub(crate) send_buffer: Option<usize>,
    /// The size of the receive buffer; `None` leaves it to the system.
    pub(crate) receive_buffer: Option<usize>,
}

#[cfg(test)]
impl Default for Sockets {
    fn default() -> Self {
        Self {
            backlog: 50,
            send_buffer: None,
            receive_buffer: None,
        }
    }
}

/// Listens on `address`; port 0 lets the system choose.
pub(crate) fn listen(address: SocketAddr, sockets: Sockets) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // The IPv6 wildcard takes IPv4 as well, as a Java broker's does.
        socket.set_only_v6(false)?;
    }
    // What is accepted inherits the sizes, and the window is told at the very beginning.
    if let Some(size) = sockets.send_buffer {
        socket.set_send_buffer_size(size)?;
    }
    if let Some(size) = sockets.receive_buffer {
        socket.set_recv_buffer_size(size)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(sockets.backlog)?;
    TcpListener::from_std(socket.into())
}

/// The address that a listener's host stands for; an empty host is the wildcard.
pub(crate) async fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    if host.is_empty() {
        return Ok(wildcard(port));
    }
    let mut found: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await?.collect();
    // A Java broker prefers IPv4, and so do the clients that were told to ask "localhost".
    found.sort_by_key(SocketAddr::is_ipv6);
    found
        .into_iter()
        .next()
        .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

fn wildcard(port: u16) -> SocketAddr {
    let v6 = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP)).is_ok();
    if v6 {
        (std::net::Ipv6Addr::UNSPECIFIED, port).into()
    } else {
        (std::net::Ipv4Addr::UNSPECIFIED, port).into()
    }
}
