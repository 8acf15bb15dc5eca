//! The session: what is known of a connection's other end.

use std::net::SocketAddr;
use std::sync::Arc;

/// One connection's identity, fixed after its handshake.
#[derive(Debug)]
pub(crate) struct Session {
    /// The listener that accepted it.
    pub(crate) listener: Arc<str>,
    /// The client's address.
    pub(crate) peer: SocketAddr,
    /// The address of ours that the client reached.
    pub(crate) local: SocketAddr,
}
