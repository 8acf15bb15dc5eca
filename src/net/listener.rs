//! A listener: accepts connections, under the limits, and gives each a task.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tracing::{debug, info, warn};

use super::Service;
use super::budget::Budget;
use super::connection::{self, Shared};
use super::connections::{Connections, Door};
use super::limits::Limits;
use crate::config::options::{Effective, Options};
use crate::os::net::Sockets;
use crate::os::tasks::{Crew, Tasks};
use crate::os::{clock, net};
use crate::security::session::{ListenerKind, Session};

/// How long accepting pauses when the process is out of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(100);

/// How often a listener without room looks whether the limits have changed.
const LOOK: Duration = Duration::from_secs(1);

/// A bound socket that does not accept yet.
pub(crate) struct Listener {
    name: Arc<str>,
    kind: ListenerKind,
    socket: TcpListener,
    address: SocketAddr,
}

/// What listeners of one kind have in common.
#[derive(Clone)]
pub(crate) struct Hall {
    pub(crate) connections: Arc<Connections>,
    pub(crate) budget: Arc<Budget>,
    /// Where connections are served.
    pub(crate) crew: Arc<Crew>,
    pub(crate) options: Arc<Options>,
    /// The listener that may take a place from the others.
    pub(crate) protected: Option<String>,
    /// The answers that may wait on one connection.
    pub(crate) replies_max: usize,
}

impl Listener {
    /// Binds the listener `name`; port 0 lets the system choose one.
    pub(crate) fn bind(
        name: &str,
        kind: ListenerKind,
        address: SocketAddr,
        sockets: Sockets,
    ) -> io::Result<Self> {
        let socket = net::listen(address, sockets)?;
        let address = socket.local_addr()?;
        Ok(Self {
            name: name.into(),
            kind,
            socket,
            address,
        })
    }

    /// Whom it serves.
    pub(crate) fn kind(&self) -> ListenerKind {
        self.kind
    }

    /// Where it listens, with the port that was chosen.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts until the group stops.
    pub(crate) fn serve<S: Service>(self, service: Arc<S>, hall: Hall, tasks: &Tasks) {
        let group = tasks.clone();
        let acceptor = Acceptor {
            is_protected: hall.protected.as_deref() == Some(&*self.name),
            shared: Arc::new(Shared {
                service,
                budget: hall.budget.clone(),
                replies_max: hall.replies_max,
                tasks: group.clone(),
            }),
            listener: self,
            hall,
        };
        tasks.spawn("acceptor", async move {
            tokio::select! {
                biased;
                () = group.stopped() => {}
                () = acceptor.run() => {}
            }
        });
    }

    async fn pause(&self, error: &io::Error) {
        warn!(listener = %self.name, %error, "a connection could not be accepted");
        clock::sleep(PAUSE).await;
    }
}

/// A listener at work.
struct Acceptor<S> {
    listener: Listener,
    hall: Hall,
    is_protected: bool,
    shared: Arc<Shared<S>>,
}

impl<S: Service> Acceptor<S> {
    async fn run(self) {
        let mut rules = Rules::of(self.hall.options.current(), &self.listener.name).await;
        loop {
            match self.listener.socket.accept().await {
                Ok((stream, peer)) => {
                    self.make_way(&mut rules).await;
                    self.admit(&rules.limits, stream, peer);
                }
                Err(error) => self.listener.pause(&error).await,
            }
        }
    }

    fn door<'a>(&'a self, limits: &'a Limits) -> Door<'a> {
        Door {
            listener: &self.listener.name,
            limits,
            is_protected: self.is_protected,
        }
    }

    /// Waits until the connection just accepted has room; those behind it wait in the backlog.
    async fn make_way(&self, rules: &mut Rules) {
        let connections = &self.hall.connections;
        rules.follow(&self.hall.options, &self.listener.name).await;
        let delay = connections.delay(self.door(&rules.limits));
        if !delay.is_zero() {
            debug!(listener = %self.listener.name, ?delay, "max.connection.creation.rate is reached");
            clock::sleep(delay).await;
        }
        let mut told = false;
        loop {
            let freed = connections.freed();
            if connections.has_room(self.door(&rules.limits)) {
                return;
            }
            if !told {
                let listener = &self.listener.name;
                info!(%listener, "max.connections is reached, the next waits until one is closed");
                told = true;
            }
            tokio::select! {
                () = freed => {}
                () = clock::sleep(LOOK) => {}
            }
            rules.follow(&self.hall.options, &self.listener.name).await;
        }
    }

    fn admit(&self, limits: &Limits, stream: TcpStream, peer: SocketAddr) {
        let listener = &self.listener.name;
        let seat = self.hall.crew.seat();
        let prepared = stream
            .set_nodelay(true)
            .and_then(|()| Ok((stream.local_addr()?, stream.into_std()?)))
            .and_then(|(local, stream)| Ok((local, seat.within(|| TcpStream::from_std(stream))?)));
        let (local, stream) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                debug!(%listener, %peer, %error, "connection lost at once");
                return;
            }
        };
        let place = self.hall.connections.enter(self.door(limits), stream, peer);
        let Some(place) = place else {
            let most = limits.of_address(peer.ip().to_canonical());
            let cause = format!("its address has {most} connections already");
            warn!(%listener, %peer, client = "unknown", cause, "connection closed");
            return;
        };
        let session = Arc::new(Session {
            listener: listener.clone(),
            kind: self.listener.kind,
            peer,
            local,
        });
        let run = connection::run(place, session, self.shared.clone());
        self.shared.tasks.spawn_alone(seat, "connection", run);
    }
}

/// The limits, and the options that they were read from.
struct Rules {
    from: Arc<Effective>,
    limits: Limits,
}

impl Rules {
    async fn of(from: Arc<Effective>, listener: &str) -> Self {
        let limits = Limits::of(&from.config, listener).await;
        Self { from, limits }
    }

    /// Reads the limits anew when options were changed.
    async fn follow(&mut self, options: &Options, listener: &str) {
        let now = options.current();
        if !Arc::ptr_eq(&now, &self.from) {
            *self = Self::of(now, listener).await;
        }
    }
}
