//! A listener: accepts connections and gives each a task.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tracing::{debug, warn};

use super::{Service, connection};
use crate::os::tasks::Tasks;
use crate::os::{clock, net};
use crate::security::session::{ListenerKind, Session};

/// How long accepting pauses when the process is out of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(100);

/// A bound socket that does not accept yet.
pub(crate) struct Listener {
    name: Arc<str>,
    kind: ListenerKind,
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds the listener `name`; port 0 lets the system choose one.
    pub(crate) fn bind(
        name: &str,
        kind: ListenerKind,
        address: SocketAddr,
        backlog: i32,
    ) -> io::Result<Self> {
        let socket = net::listen(address, backlog)?;
        let address = socket.local_addr()?;
        Ok(Self {
            name: name.into(),
            kind,
            socket,
            address,
        })
    }

    /// Where it listens, with the port that was chosen.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts until the group stops; `replies_max` bounds the answers waiting per connection.
    pub(crate) fn serve<S: Service>(self, service: Arc<S>, replies_max: usize, tasks: &Tasks) {
        let group = tasks.clone();
        tasks.spawn("acceptor", async move {
            loop {
                tokio::select! {
                    biased;
                    () = group.stopped() => return,
                    accepted = self.socket.accept() => match accepted {
                        Ok((stream, peer)) => {
                            self.admit(stream, peer, &service, replies_max, &group);
                        }
                        Err(error) => self.pause(&error).await,
                    },
                }
            }
        });
    }

    fn admit<S: Service>(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        service: &Arc<S>,
        replies_max: usize,
        tasks: &Tasks,
    ) {
        let prepared = stream.set_nodelay(true).and_then(|()| stream.local_addr());
        let local = match prepared {
            Ok(local) => local,
            Err(error) => {
                debug!(listener = %self.name, %peer, %error, "connection lost at once");
                return;
            }
        };
        let session = Arc::new(Session {
            listener: self.name.clone(),
            kind: self.kind,
            peer,
            local,
        });
        let run = connection::run(stream, session, service.clone(), replies_max, tasks.clone());
        tasks.spawn_alone("connection", run);
    }

    async fn pause(&self, error: &io::Error) {
        warn!(listener = %self.name, %error, "a connection could not be accepted");
        clock::sleep(PAUSE).await;
    }
}
