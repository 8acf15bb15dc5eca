//! The network: listening sockets.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// Listens on `address`; port 0 lets the system choose.
pub(crate) fn listen(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
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
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
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
