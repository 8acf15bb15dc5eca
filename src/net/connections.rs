//! The connections of a node: how many there are, of whom, and since when each is silent.
//!
//! A connection is let in under the limits, is noted while it lives and asked to go by ending its
//! reading half: what it has sent is still served (ConnectionQuotas, Selector's idle expiry).
//! Nothing runs while there is none; with some, one task sleeps until the first may be idle for
//! too long.

use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tracing::{debug, warn};

use super::limits::Limits;
use crate::base::rate::Rate;
use crate::os::clock;
use crate::os::tasks::Tasks;

/// No single wait for the creation rate is longer.
const DELAY_MAX: Duration = Duration::from_secs(1);
/// Idle connections are looked for no more often.
const SWEEP_MIN: Duration = Duration::from_millis(10);
const SWEEP_MAX: Duration = Duration::from_secs(1);

/// All connections of a group of listeners.
#[derive(Debug)]
pub(crate) struct Connections {
    state: Mutex<State>,
    /// One ended.
    freed: Notify,
    /// The first one came.
    came: Notify,
    /// A connection's activity is told in milliseconds since then.
    since: Instant,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    live: HashMap<u64, Arc<Live>>,
    by_ip: HashMap<IpAddr, usize>,
    by_listener: HashMap<Arc<str>, usize>,
    rate: Rate,
    listener_rates: HashMap<Arc<str>, Rate>,
}

/// One connection, as its task and the others see it.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) stream: TcpStream,
    listener: Arc<str>,
    peer: SocketAddr,
    active_ms: AtomicU64,
    asked_to_go: AtomicBool,
}

/// A connection's place, given up when dropped.
#[derive(Debug)]
pub(super) struct Place {
    connections: Arc<Connections>,
    number: u64,
    live: Arc<Live>,
}

/// Who wants to be let in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Door<'a> {
    pub(super) listener: &'a Arc<str>,
    pub(super) limits: &'a Limits,
    /// Brokers come in here: it has room when others have not, at their expense.
    pub(super) is_protected: bool,
}

impl Connections {
    /// No connections.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            freed: Notify::new(),
            came: Notify::new(),
            since: clock::now(),
        })
    }

    /// How long the door stays shut for the sake of the creation rate, one more having come.
    pub(super) fn delay(&self, door: Door<'_>) -> Duration {
        let now = clock::now();
        let mut state = self.state.lock();
        let mut delay = Duration::ZERO;
        if !door.is_protected {
            delay = state.rate.record(now, door.limits.all_rate);
        }
        let rates = &mut state.listener_rates;
        let own = rates.entry(door.listener.clone()).or_default();
        delay
            .max(own.record(now, door.limits.own_rate))
            .min(DELAY_MAX)
    }

    /// Whether one more has room.
    pub(super) fn has_room(&self, door: Door<'_>) -> bool {
        let state = self.state.lock();
        let own = state.by_listener.get(door.listener).copied().unwrap_or(0);
        own < door.limits.own && (door.is_protected || state.live.len() < door.limits.all)
    }

    /// Ends when a connection has ended since the call.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// Notes a connection; `None` when its address has as many as it may have.
    pub(super) fn enter(
        self: &Arc<Self>,
        door: Door<'_>,
        stream: TcpStream,
        peer: SocketAddr,
    ) -> Option<Place> {
        let live = Arc::new(Live {
            stream,
            listener: door.listener.clone(),
            peer,
            active_ms: AtomicU64::new(self.now_ms()),
            asked_to_go: AtomicBool::new(false),
        });
        let mut state = self.state.lock();
        let ip = live.ip();
        let count = state.by_ip.entry(ip).or_default();
        if *count >= door.limits.of_address(ip) {
            return None;
        }
        *count += 1;
        *state.by_listener.entry(live.listener.clone()).or_default() += 1;
        let number = state.next;
        state.next += 1;
        state.live.insert(number, live.clone());
        let (count, all) = (state.live.len(), door.limits.all);
        drop(state);
        if count == 1 {
            self.came.notify_one();
        }
        if door.is_protected && count > all {
            self.make_room(door.listener);
        }
        Some(Place {
            connections: Arc::clone(self),
            number,
            live,
        })
    }

    /// Asks the longest silent connection of the other listeners to go.
    fn make_room(&self, listener: &Arc<str>) {
        let state = self.state.lock();
        let others = state
            .live
            .iter()
            .filter(|(_, one)| one.listener != *listener);
        // Of those that were active in the same millisecond the oldest goes.
        let silent = others.min_by_key(|(number, one)| (one.active_ms(), **number));
        if let Some((_, one)) = silent {
            warn!(
                listener = %one.listener,
                peer = %one.peer,
                "connection closed, max.connections is reached and a broker needs its place"
            );
            one.ask_to_go();
        }
    }

    /// Closes connections that are silent for `idle`, until the group stops.
    pub(crate) fn close_idle(self: &Arc<Self>, idle: Duration, tasks: &Tasks) {
        let (this, group) = (Arc::clone(self), tasks.clone());
        let pause = (idle / 20).clamp(SWEEP_MIN, SWEEP_MAX);
        tasks.spawn("idle-connections", async move {
            loop {
                let came = this.came.notified();
                let due = this.sweep(idle);
                let due = due.map(|due| due.max(clock::now() + pause));
                tokio::select! {
                    biased;
                    () = group.stopped() => return,
                    () = until(due) => {}
                    () = came, if due.is_none() => {}
                }
            }
        });
    }

    /// Asks those to go that are silent for too long; when the next one may be.
    fn sweep(&self, idle: Duration) -> Option<Instant> {
        let now_ms = self.now_ms();
        let idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        let state = self.state.lock();
        let mut next: Option<u64> = None;
        for one in state.live.values() {
            let mut due = one.active_ms().saturating_add(idle_ms);
            if due <= now_ms {
                debug!(listener = %one.listener, peer = %one.peer, "connection idle for too long");
                one.ask_to_go();
                // It may take its time over what it still has to answer.
                one.active_ms.store(now_ms, Ordering::Relaxed);
                due = now_ms.saturating_add(idle_ms);
            }
            next = Some(next.map_or(due, |next| next.min(due)));
        }
        Some(self.since + Duration::from_millis(next?))
    }

    fn now_ms(&self) -> u64 {
        let since = clock::now().saturating_duration_since(self.since);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn leave(&self, number: u64) {
        let mut state = self.state.lock();
        let Some(live) = state.live.remove(&number) else {
            return;
        };
        discount(&mut state.by_ip, &live.ip());
        discount(&mut state.by_listener, &live.listener);
        if state.live.is_empty() {
            state.live.shrink_to_fit();
        }
        drop(state);
        self.freed.notify_waiters();
    }
}

/// Ends at `due`; never without one.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => clock::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

fn discount<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl Live {
    /// An IPv4 address counts as the same through an IPv6 socket.
    fn ip(&self) -> IpAddr {
        self.peer.ip().to_canonical()
    }

    fn active_ms(&self) -> u64 {
        self.active_ms.load(Ordering::Relaxed)
    }

    /// Nothing more is read; who is asked again was stuck in writing, which ends now.
    fn ask_to_go(&self) {
        let again = self.asked_to_go.swap(true, Ordering::Relaxed);
        let half = if again {
            Shutdown::Both
        } else {
            Shutdown::Read
        };
        // It may be gone already.
        let _ = SockRef::from(&self.stream).shutdown(half);
    }
}

impl Place {
    /// The socket.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.live.stream
    }

    /// Bytes went in or out.
    pub(super) fn touch(&self) {
        let now_ms = self.connections.now_ms();
        self.live.active_ms.store(now_ms, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.leave(self.number);
    }
}
