//! The cluster's decisions: a machine whose hard state is the metadata image.
//!
//! Each subject is a file of pure functions from the image and a request to records and a reply,
//! with Kafka's rules, order of checks, codes and words. Only replay changes the image; heartbeats
//! and deadlines are soft and begin anew with each controller.
//!
//! - `ask`: what may be asked, and the replies. - `state`: the image and what is soft.
//! - `brokers`: register, heartbeat, fence, controlled stop. - `sessions`: who was heard of when.
//! - `topics`: create, delete, more partitions. - `placement`: where replicas go.
//! - `partitions`: in-sync replicas and elections. - `change`: one partition change as a record.
//! - `reassign`: moving replicas. - `directories`: which log directory holds a replica.
//! - `configs`, `features`, `producer_ids`, `security`: the subjects of those names.

pub(crate) mod ask;
mod brokers;
#[cfg(test)]
mod brokers_test;
mod change;
pub(crate) mod configs;
#[cfg(test)]
mod configs_test;
mod directories;
pub(crate) mod features;
mod partitions;
#[cfg(test)]
mod partitions_test;
mod placement;
mod producer_ids;
mod reassign;
mod security;
mod sessions;
pub(crate) mod state;
#[cfg(test)]
mod story;
mod topics;
#[cfg(test)]
mod topics_test;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use tracing::error;

use crate::machine::{Machine, Now, Outcome, Ticket};
use crate::metadata::image::Image;
use crate::metadata::record::Record;
use crate::protocol::error::Refusal;

use ask::{Answer, Event};
use sessions::Deadline;
use state::{Settings, State};

/// Records to write and what to reply once they are committed, or a refusal.
type Decided<T> = Result<Decision<T>, Refusal>;

/// Records to write and what to reply once they are committed.
#[derive(Debug, PartialEq)]
struct Decision<T> {
    records: Vec<Record>,
    reply: T,
}

/// The active controller.
pub(crate) struct Controller {
    state: State,
}

impl Controller {
    /// Takes over a cluster whose whole log was replayed into `image`. Every unfenced broker has
    /// one session timeout to be heard of.
    pub(crate) fn new(image: Image, settings: Arc<Settings>, now: Now) -> Self {
        Self {
            state: State::new(image, settings, now),
        }
    }

    /// The image with all that was decided, committed or not.
    pub(crate) fn image(&self) -> &Image {
        &self.state.image
    }

    fn decide(&mut self, now: Now, event: Event) -> (Vec<Record>, Answer) {
        let state = &mut self.state;
        match event {
            Event::RegisterBroker(e) => told(state.register_broker(now, e), Answer::RegisterBroker),
            Event::Heartbeat(e) => told(state.heartbeat(now, &e), Answer::Heartbeat),
            Event::UnregisterBroker(e) => told(state.unregister(&e), Answer::UnregisterBroker),
            Event::RegisterController(e) => {
                told(State::register_controller(e), Answer::RegisterController)
            }
            Event::CreateTopics(e) => told(state.create_topics(&e), Answer::CreateTopics),
            Event::DeleteTopics(e) => told(state.delete_topics(&e), Answer::DeleteTopics),
            Event::CreatePartitions(e) => {
                told(state.create_partitions(&e), Answer::CreatePartitions)
            }
            Event::AllocateProducerIds(e) => {
                told(state.allocate_producer_ids(&e), Answer::AllocateProducerIds)
            }
            Event::IncrementalAlterConfigs(e) => {
                let decided = state.incremental_alter_configs(&e);
                told(decided, Answer::IncrementalAlterConfigs)
            }
            Event::AlterConfigs(e) => told(state.alter_configs(&e), Answer::AlterConfigs),
            Event::UpdateFeatures(e) => told(state.update_features(&e), Answer::UpdateFeatures),
            Event::AlterPartition(e) => told(state.alter_partition(&e), Answer::AlterPartition),
            Event::ElectLeaders(e) => told(state.elect_leaders(&e), Answer::ElectLeaders),
            Event::AlterReassignments(e) => {
                told(state.alter_reassignments(&e), Answer::AlterReassignments)
            }
            Event::AssignReplicas(e) => told(state.assign_replicas(&e), Answer::AssignReplicas),
            Event::CreateAcls(e) => told(state.create_acls(&e), Answer::CreateAcls),
            Event::DeleteAcls(e) => told(state.delete_acls(&e), Answer::DeleteAcls),
            Event::AlterQuotas(e) => told(state.alter_quotas(&e), Answer::AlterQuotas),
            Event::WriteRecords(e) => told(State::write_records(e), Answer::WriteRecords),
        }
    }
}

fn told<T>(
    decided: Decided<T>,
    answer: impl FnOnce(Result<T, Refusal>) -> Answer,
) -> (Vec<Record>, Answer) {
    match decided {
        Ok(Decision { records, reply }) => (records, answer(Ok(reply))),
        Err(refusal) => (Vec::new(), answer(Err(refusal))),
    }
}

impl Machine for Controller {
    type Event = Event;
    type Record = Record;
    type Answer = Answer;
    type Effect = Infallible;

    fn handle(&mut self, now: Now, ticket: Ticket, event: Event) -> Outcome<Self> {
        let (records, answer) = self.decide(now, event);
        Outcome {
            records,
            answers: vec![(ticket, answer)],
            effects: Vec::new(),
        }
    }

    fn replay(&mut self, record: &Record) {
        if let Err(contradiction) = self.state.image.replay(record) {
            // Only a decision of ours can get here; the log itself was replayed before.
            error!(%contradiction, ?record, "the controller contradicts itself");
            debug_assert!(false, "{contradiction}");
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.state.sessions.timers.next()
    }

    /// Acts on one deadline; the next is due at once, so that each sees what the others did.
    fn expire(&mut self, now: Now) -> Outcome<Self> {
        let due = self.state.sessions.timers.pop_due(now.instant);
        let records = due.map_or_else(Vec::new, |due| match due {
            Deadline::Session(broker) => self.state.session_ended(broker),
            Deadline::Balance => self.state.balance_leaders(now),
            Deadline::UncleanElection => self.state.elect_leaderless(now),
            Deadline::Idle => self.state.write_no_op(now),
        });
        Outcome {
            records,
            ..Outcome::default()
        }
    }
}
