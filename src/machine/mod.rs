//! The kernel of replicated state machines.
//!
//! - `ask`: what a machine may be asked, as types.
//! - `driver`: the task of a machine: queue, handle, append, replay, answer.
//! - `handle`: where a machine is asked.
//! - `journal`: where its records become durable.
//! - `testkit`: runs a machine by hand, in tests.
//!
//! A machine is a handler, a replay and a deadline. `handle` decides from hard state and may touch
//! soft state (timers, waiting tickets); only `replay` changes hard state. What fails to append
//! changed nothing; what loses leadership is dropped whole.

pub(crate) mod ask;
pub(crate) mod driver;
pub(crate) mod handle;
pub(crate) mod journal;
#[cfg(test)]
pub(crate) mod testkit;

use std::time::Instant;

/// Names one caller who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// A replicated state machine; one event at a time is handled.
pub(crate) trait Machine: Sized {
    /// What may be asked of it.
    type Event;
    /// What it writes; the same records in the same order give the same hard state.
    type Record;
    /// What a caller gets.
    type Answer;
    /// What must be done outside once the records are committed.
    type Effect;

    /// Decides about an event. `end_offset` is where the next record will be written.
    fn handle(&mut self, now: Now, ticket: Ticket, event: Self::Event) -> Outcome<Self>;

    /// Takes a record into hard state; the only place that changes it.
    fn replay(&mut self, record: &Self::Record);

    /// When `expire` wants to be called next.
    fn deadline(&self) -> Option<Instant>;

    /// Acts on deadlines that have come.
    fn expire(&mut self, now: Now) -> Outcome<Self>;
}

/// What a decision may know of time and place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// The monotonic clock, for deadlines.
    pub(crate) instant: Instant,
    /// The wall clock in milliseconds since 1970, for what is recorded.
    pub(crate) wall_ms: i64,
    /// The offset that the next record will get.
    pub(crate) end_offset: i64,
}

/// What an event leads to.
pub(crate) struct Outcome<M: Machine> {
    /// Written as one atomic batch, then replayed.
    pub(crate) records: Vec<M::Record>,
    /// Given once everything before and in this outcome is committed.
    pub(crate) answers: Vec<(Ticket, M::Answer)>,
    /// Carried out once everything before and in this outcome is committed.
    pub(crate) effects: Vec<M::Effect>,
}

impl<M: Machine> Default for Outcome<M> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            answers: Vec::new(),
            effects: Vec::new(),
        }
    }
}
