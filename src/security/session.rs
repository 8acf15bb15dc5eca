//! The session: what is known of a connection's other end.

use std::net::SocketAddr;
use std::sync::Arc;

/// Whom a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    /// Clients and brokers.
    Broker,
    /// Those who look for controllers.
    Controller,
}

/// One connection's identity, fixed after its handshake.
#[derive(Debug)]
pub(crate) struct Session {
    /// The listener that accepted it.
    pub(crate) listener: Arc<str>,
    pub(crate) kind: ListenerKind,
    /// The client's address.
    pub(crate) peer: SocketAddr,
    /// The address of ours that the client reached.
    pub(crate) local: SocketAddr,
}
