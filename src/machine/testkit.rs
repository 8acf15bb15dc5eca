//! Runs a machine by hand: say an event, expect an answer, let time pass, reload from its records.
//!
//! What is appended is committed at once. Time stands still until the story says otherwise.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use super::{Machine, Now, Outcome, Ticket};

/// A machine whose hard state can be compared and made again from its records.
pub(crate) trait Rehearsed: Machine {
    /// What its records decide.
    type Hard: PartialEq + Debug;

    /// The hard state.
    fn hard(&self) -> Self::Hard;

    /// A machine like this one that knows nothing but these records.
    fn reloaded(&self, records: &[Self::Record], now: Now) -> Self;
}

/// A machine and what happened to it so far.
pub(crate) struct Story<M: Machine> {
    pub(crate) machine: M,
    now: Now,
    next_ticket: u64,
    answers: HashMap<Ticket, M::Answer>,
    effects: Vec<M::Effect>,
    log: Vec<M::Record>,
    told: usize,
}

impl<M: Machine> Story<M> {
    /// Begins with what `make` builds at the story's first instant.
    pub(crate) fn new(make: impl FnOnce(Now) -> M) -> Self {
        #[expect(clippy::disallowed_methods, reason = "an arbitrary origin")]
        let instant = Instant::now();
        let now = Now {
            instant,
            wall_ms: 1_700_000_000_000,
            end_offset: 0,
        };
        Self {
            machine: make(now),
            now,
            next_ticket: 0,
            answers: HashMap::new(),
            effects: Vec::new(),
            log: Vec::new(),
            told: 0,
        }
    }

    /// Writes records that no event led to, as those of a bootstrap.
    pub(crate) fn writes(&mut self, records: Vec<M::Record>) {
        self.take(Outcome {
            records,
            ..Outcome::default()
        });
    }

    /// Says an event and gives the ticket on which its answer will come.
    pub(crate) fn says(&mut self, event: M::Event) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let outcome = self.machine.handle(self.now, ticket, event);
        self.take(outcome);
        ticket
    }

    /// The answer on a ticket, once.
    pub(crate) fn answer(&mut self, ticket: Ticket) -> Option<M::Answer> {
        self.answers.remove(&ticket)
    }

    /// The records since this was last asked.
    pub(crate) fn records(&mut self) -> Vec<M::Record>
    where
        M::Record: Clone,
    {
        let records = self.log[self.told..].to_vec();
        self.told = self.log.len();
        records
    }

    /// The effects since this was last asked.
    pub(crate) fn effects(&mut self) -> Vec<M::Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Lets time pass; every deadline on the way is met at its instant.
    pub(crate) fn sleeps(&mut self, span: Duration) {
        let end = self.now.instant + span;
        while let Some(at) = self.machine.deadline().filter(|at| *at <= end) {
            self.reach(at);
            let outcome = self.machine.expire(self.now);
            self.take(outcome);
        }
        self.reach(end);
    }

    /// Replaces the machine by one that its records make; nothing hard may change.
    pub(crate) fn reloads(&mut self)
    where
        M: Rehearsed,
    {
        let again = self.machine.reloaded(&self.log, self.now);
        assert_eq!(again.hard(), self.machine.hard());
        self.machine = again;
    }

    /// Where the next record will be written.
    pub(crate) fn end_offset(&self) -> i64 {
        self.now.end_offset
    }

    fn reach(&mut self, at: Instant) {
        let passed = at.saturating_duration_since(self.now.instant);
        self.now.wall_ms += i64::try_from(passed.as_millis()).expect("stories are short");
        self.now.instant = self.now.instant.max(at);
    }

    fn take(&mut self, outcome: Outcome<M>) {
        for record in outcome.records {
            self.machine.replay(&record);
            self.log.push(record);
            self.now.end_offset += 1;
        }
        for (ticket, answer) in outcome.answers {
            let before = self.answers.insert(ticket, answer);
            assert!(before.is_none(), "{ticket:?} was answered twice");
        }
        self.effects.extend(outcome.effects);
    }
}
