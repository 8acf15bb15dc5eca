//! Which brokers were heard of, when, and how far they are (BrokerHeartbeatManager): all soft.
//!
//! ```text
//!            caught up                    wants to stop, leads something
//! fenced ───────────────> unfenced ──────────────────────────────────────> controlled shutdown
//!   │  ^    wants fence      │ │ ^                                            │          │
//!   │  └─────────────────────┘ │ └── (a new incarnation begins fenced)        │          │
//!   │         session ends     │ wants to stop, leads nothing                 │          │
//!   └───────── wants to stop ──┴──────────> may stop now <────────────────────┘          │
//!   ^                        leads nothing and all live brokers know it                  │
//!   └──────────────────────────────── session ends ─────────────────────────────────────┘
//! ```

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::base::NodeId;
use crate::base::timers::Timers;

use super::ask::Heartbeat;

/// What the controller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Deadline {
    /// A broker was not heard of.
    Session(NodeId),
    /// Leaders are to be brought back to the preferred replicas.
    Balance,
    /// Partitions without a leader are looked at again.
    UncleanElection,
    /// The log has been still for long.
    Idle,
}

/// What a broker is or may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Fenced,
    Unfenced,
    ControlledShutdown,
    ShutdownNow,
}

/// What was heard of each registered broker.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) timers: Timers<Deadline>,
    timeout: Duration,
    brokers: HashMap<NodeId, Session>,
}

#[derive(Debug)]
struct Session {
    fenced: bool,
    metadata_offset: i64,
    /// Once set, the broker is on its way out; it may go when all others know this offset.
    shutdown_offset: Option<i64>,
    /// Until when it counts as alive; `None` when it never was heard of.
    valid_until: Option<Instant>,
}

impl Session {
    fn phase(&self) -> Phase {
        if self.shutdown_offset.is_some() {
            Phase::ControlledShutdown
        } else if self.fenced {
            Phase::Fenced
        } else {
            Phase::Unfenced
        }
    }
}

impl Phase {
    pub(super) fn is_fenced(self) -> bool {
        matches!(self, Self::Fenced | Self::ShutdownNow)
    }
}

impl Sessions {
    /// Nobody was heard of yet.
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timers: Timers::default(),
            timeout,
            brokers: HashMap::new(),
        }
    }

    /// A broker is registered; a new incarnation is not the one that was heard of.
    pub(super) fn register(&mut self, id: NodeId, fenced: bool, new_incarnation: bool) {
        if new_incarnation {
            self.forget(id);
        }
        let session = self.brokers.entry(id).or_insert(Session {
            fenced,
            metadata_offset: -1,
            shutdown_offset: None,
            valid_until: None,
        });
        session.fenced = fenced;
    }

    /// A broker is gone.
    pub(super) fn forget(&mut self, id: NodeId) {
        self.timers.cancel(&Deadline::Session(id));
        self.brokers.remove(&id);
    }

    /// A broker was heard of.
    pub(super) fn heard(&mut self, id: NodeId, now: Instant) {
        if let Some(session) = self.brokers.get_mut(&id) {
            let until = now + self.timeout;
            session.valid_until = Some(until);
            self.timers.set(Deadline::Session(id), until);
        }
    }

    /// Whether a broker was heard of within the session timeout.
    pub(super) fn is_valid(&self, id: NodeId, now: Instant) -> bool {
        let until = self
            .brokers
            .get(&id)
            .and_then(|session| session.valid_until);
        until.is_some_and(|until| now < until)
    }

    /// A broker's session has ended; says whether it was unfenced.
    pub(super) fn end(&mut self, id: NodeId) -> bool {
        let Some(session) = self.brokers.get_mut(&id) else {
            return false;
        };
        let was_unfenced = !session.fenced;
        session.valid_until = None;
        session.fenced = true;
        session.shutdown_offset = None;
        was_unfenced
    }

    /// What a broker is and what its heartbeat makes of it
    /// (BrokerHeartbeatManager.calculateNextBrokerState).
    pub(super) fn phases(
        &self,
        heartbeat: &Heartbeat,
        leads_something: impl FnOnce() -> bool,
    ) -> (Phase, Phase) {
        let Some(session) = self.brokers.get(&heartbeat.broker_id) else {
            return (Phase::Fenced, Phase::Fenced);
        };
        let phase = session.phase();
        let stop_or = |leads| {
            if leads {
                Phase::ControlledShutdown
            } else {
                Phase::ShutdownNow
            }
        };
        let next = match phase {
            Phase::Fenced if heartbeat.want_shut_down => Phase::ShutdownNow,
            Phase::Fenced if !heartbeat.want_fence && is_caught_up(heartbeat) => Phase::Unfenced,
            Phase::Fenced => Phase::Fenced,
            Phase::Unfenced if heartbeat.want_fence && heartbeat.want_shut_down => {
                Phase::ShutdownNow
            }
            Phase::Unfenced if heartbeat.want_fence => Phase::Fenced,
            Phase::Unfenced if heartbeat.want_shut_down => stop_or(leads_something()),
            Phase::Unfenced => Phase::Unfenced,
            Phase::ControlledShutdown => {
                let unknown = session.shutdown_offset > Some(self.lowest_active_offset());
                stop_or(leads_something() || unknown)
            }
            Phase::ShutdownNow => Phase::ShutdownNow,
        };
        (phase, next)
    }

    /// Takes a heartbeat's consequence in. `written_up_to` is the last offset once it is written.
    pub(super) fn settle(&mut self, heartbeat: &Heartbeat, next: Phase, written_up_to: i64) {
        let Some(session) = self.brokers.get_mut(&heartbeat.broker_id) else {
            return;
        };
        session.fenced = next.is_fenced();
        session.metadata_offset = heartbeat.metadata_offset;
        match next {
            Phase::ControlledShutdown => {
                session.shutdown_offset.get_or_insert(written_up_to);
            }
            Phase::Fenced | Phase::ShutdownNow => session.shutdown_offset = None,
            Phase::Unfenced => {}
        }
    }

    /// How far the slowest active broker is; without active brokers all know everything.
    fn lowest_active_offset(&self) -> i64 {
        let active = self
            .brokers
            .values()
            .filter(|s| s.phase() == Phase::Unfenced);
        active.map(|s| s.metadata_offset).min().unwrap_or(i64::MAX)
    }
}

/// Whether a broker has seen its own registration, whose offset is its epoch.
pub(super) fn is_caught_up(heartbeat: &Heartbeat) -> bool {
    heartbeat.metadata_offset >= heartbeat.broker_epoch
}
