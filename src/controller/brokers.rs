//! Brokers and controllers: register, heartbeat, fence and unfence, controlled stop, forget
//! (ClusterControlManager, ReplicationControlManager).

use std::collections::BTreeSet;
use std::sync::Arc;

use tracing::info;

use crate::base::{DirectoryId, NodeId};
use crate::machine::Now;
use crate::metadata::image::brokers::Registration;
use crate::metadata::image::features::METADATA_VERSION;
use crate::metadata::image::topics::Topic;
use crate::metadata::record::{
    BrokerRegistrationChangeRecord, FeatureRange, Record, RegisterBrokerRecord,
    RegisterControllerRecord, UnregisterBrokerRecord,
};
use crate::protocol::error::{ErrorCode, Refusal};

use super::ask::{
    BrokerEpoch, Heartbeat, HeartbeatReply, RegisterBroker, RegisterController, UnregisterBroker,
};
use super::sessions::{Phase, is_caught_up};
use super::state::{State, Turn, within_limit};
use super::{Decided, Decision};

const FENCE: i8 = 1;
const UNFENCE: i8 = -1;

impl State {
    /// A broker process presents itself. Its epoch is the offset of its record, unless the same
    /// process was registered before.
    pub(super) fn register_broker(
        &mut self,
        now: Now,
        asked: RegisterBroker,
    ) -> Decided<BrokerEpoch> {
        let id = asked.broker_id;
        self.check_registration(now, &asked)?;
        let features = self.checked_features(&asked)?;
        let existing = self.image.brokers.registration(id).cloned();
        let same = existing.filter(|broker| broker.incarnation_id == asked.incarnation_id);
        let mut records = if same.is_none() {
            self.clean_up_after_shutdown(&asked)
        } else {
            Vec::new()
        };
        let position = i64::try_from(records.len()).expect("records are counted in memory");
        let record = RegisterBrokerRecord {
            broker_id: id,
            is_migrating_zk_broker: false,
            incarnation_id: asked.incarnation_id,
            broker_epoch: same.as_ref().map_or(now.end_offset + position, |b| b.epoch),
            end_points: asked.endpoints,
            features,
            rack: asked.rack,
            fenced: same.as_ref().is_none_or(|b| b.fenced),
            in_controlled_shutdown: same.as_ref().is_some_and(|b| b.in_controlled_shutdown),
            log_dirs: asked.directories,
        };
        let reply = record.broker_epoch;
        self.sessions.register(id, record.fenced, same.is_none());
        records.push(record.into());
        Ok(Decision { records, reply })
    }

    fn check_registration(&self, now: Now, asked: &RegisterBroker) -> Result<(), Refusal> {
        let refuse = |code, words: String| Err(Refusal::new(code, words));
        let ours = &self.settings.cluster_id;
        if *ours != asked.cluster_id {
            let theirs = &asked.cluster_id;
            let words = format!("Expected cluster ID {ours}, but got cluster ID {theirs}");
            return refuse(ErrorCode::InconsistentClusterId, words);
        }
        if self.is_another_alive(now, asked) {
            let words = "Another broker is registered with that broker id. If the broker was \
                         recently restarted this should self-resolve once the heartbeat manager \
                         expires the broker's session.";
            return refuse(ErrorCode::DuplicateBrokerRegistration, words.to_owned());
        }
        if asked.is_migrating_zk_broker {
            let words = "Controller does not support registering ZK brokers.";
            return refuse(ErrorCode::BrokerIdNotRegistered, words.to_owned());
        }
        self.check_directories(asked)
    }

    /// Whether another process runs under the same id, as far as can be told. A broker in our own
    /// process is proof that its former incarnation is dead.
    fn is_another_alive(&self, now: Now, asked: &RegisterBroker) -> bool {
        let id = asked.broker_id;
        let another = |b: &Registration| {
            b.incarnation_id != asked.incarnation_id && !b.in_controlled_shutdown
        };
        id != self.settings.node_id
            && self.sessions.is_valid(id, now.instant)
            && self
                .image
                .brokers
                .registration(id)
                .is_some_and(|b| another(b))
    }

    fn check_directories(&self, asked: &RegisterBroker) -> Result<(), Refusal> {
        let refuse = |words: String| Err(Refusal::new(ErrorCode::InvalidRegistration, words));
        let directories = &asked.directories;
        if directories.is_empty() {
            return refuse("No directories specified in request".to_owned());
        }
        if directories.iter().any(DirectoryId::is_reserved) {
            return refuse("Reserved directory ID in request".to_owned());
        }
        if directories.iter().collect::<BTreeSet<_>>().len() != directories.len() {
            return refuse("Duplicate directory ID in request".to_owned());
        }
        for broker in self.image.brokers.sorted() {
            let taken = directories.iter().find(|d| broker.directories.contains(d));
            if let Some(directory) = taken.filter(|_| broker.id != asked.broker_id) {
                let id = broker.id;
                return refuse(format!(
                    "Broker {id} is already registered with directory {directory}"
                ));
            }
        }
        Ok(())
    }

    /// Every finalized feature must be one that the broker supports.
    fn checked_features(&self, asked: &RegisterBroker) -> Result<Vec<FeatureRange>, Refusal> {
        let finalized = &self.image.features;
        let mut features = asked.features.clone();
        if !features.iter().any(|f| f.name == METADATA_VERSION) {
            // A broker that does not say is taken to know the first version only.
            features.push(range(METADATA_VERSION, 1));
        }
        for feature in &features {
            check_feature(feature, finalized.level(&feature.name))?;
        }
        for (name, level) in finalized.iter() {
            if !features.iter().any(|f| f.name == name) {
                check_feature(&range(name, 0), level)?;
            }
        }
        Ok(features)
    }

    /// A new incarnation without a clean stop may have lost what it had in memory, so that it
    /// leaves ISR and ELR; after a clean stop it only leaves the ISR (KIP-966).
    fn clean_up_after_shutdown(&self, asked: &RegisterBroker) -> Vec<Record> {
        let id = asked.broker_id;
        let Some(existing) = self.image.brokers.registration(id) else {
            return Vec::new();
        };
        let clean =
            !self.image.features.elr_enabled() || existing.epoch == asked.previous_broker_epoch;
        if clean {
            let turn = Turn {
                leaves: Some(id),
                ..Turn::default()
            };
            return self.leader_and_isr_updates(turn, |p| p.isr.contains(&id));
        }
        info!(broker = %id, "the broker did not stop cleanly");
        let turn = Turn {
            lost: Some(id),
            ..Turn::default()
        };
        self.leader_and_isr_updates(turn, |p| p.isr.contains(&id) || p.elr.contains(&id))
    }

    /// A controller process presents itself.
    pub(super) fn register_controller(asked: RegisterController) -> Decided<()> {
        let record = RegisterControllerRecord {
            controller_id: asked.controller_id,
            incarnation_id: asked.incarnation_id,
            zk_migration_ready: asked.zk_migration_ready,
            end_points: asked.endpoints,
            features: asked.features,
        };
        Ok(Decision {
            records: vec![record.into()],
            reply: (),
        })
    }

    /// A broker says that it is alive.
    pub(super) fn heartbeat(&mut self, now: Now, asked: &Heartbeat) -> Decided<HeartbeatReply> {
        let id = asked.broker_id;
        self.check_broker_epoch(id, asked.broker_epoch)?;
        self.sessions.heard(id, now.instant);
        let (phase, next) = self.sessions.phases(asked, || self.leads_something(id));
        let mut records = if phase == next {
            Vec::new()
        } else {
            info!(broker = %id, ?phase, ?next, "the broker's state changes");
            self.enter(next, id, asked.broker_epoch)
        };
        let offline = self.offline(id, asked.broker_epoch, &asked.offline_directories);
        records.extend(offline);
        let written = i64::try_from(records.len()).expect("records are counted in memory");
        self.sessions
            .settle(asked, next, now.end_offset + written - 1);
        let reply = HeartbeatReply {
            is_caught_up: is_caught_up(asked),
            is_fenced: next.is_fenced(),
            in_controlled_shutdown: next == Phase::ControlledShutdown,
            should_shut_down: next == Phase::ShutdownNow,
        };
        Ok(Decision { records, reply })
    }

    fn leads_something(&self, id: NodeId) -> bool {
        let leads = |topic: &Arc<Topic>| topic.partitions.values().any(|p| p.leader == id);
        self.image.topics.iter().any(leads)
    }

    fn enter(&self, next: Phase, id: NodeId, epoch: i64) -> Vec<Record> {
        match next {
            Phase::Fenced | Phase::ShutdownNow => self.fence(id, epoch),
            Phase::Unfenced => self.unfence(id, epoch),
            Phase::ControlledShutdown => self.begin_controlled_shutdown(id, epoch),
        }
    }

    /// A broker leaves every ISR, then is fenced.
    fn fence(&self, id: NodeId, epoch: i64) -> Vec<Record> {
        let mut records = self.without(id);
        records.push(change(id, epoch, |change| change.fenced = FENCE));
        records
    }

    /// A broker is unfenced, then may lead what has no leader.
    fn unfence(&self, id: NodeId, epoch: i64) -> Vec<Record> {
        let turn = Turn {
            comes: Some(id),
            ..Turn::default()
        };
        let mut records = vec![change(id, epoch, |change| change.fenced = UNFENCE)];
        records.extend(self.leader_and_isr_updates(turn, |p| !p.has_leader()));
        records
    }

    /// A broker says that it will stop: others take over what it leads.
    fn begin_controlled_shutdown(&self, id: NodeId, epoch: i64) -> Vec<Record> {
        let mut records = Vec::new();
        let broker = self.image.brokers.registration(id);
        if broker.is_some_and(|broker| !broker.in_controlled_shutdown) {
            records.push(change(id, epoch, |change| {
                change.in_controlled_shutdown = 1
            }));
        }
        records.extend(self.without(id));
        records
    }

    fn without(&self, id: NodeId) -> Vec<Record> {
        let turn = Turn {
            leaves: Some(id),
            ..Turn::default()
        };
        self.leader_and_isr_updates(turn, |p| p.isr.contains(&id))
    }

    /// A broker was not heard of for a session timeout.
    pub(super) fn session_ended(&mut self, id: NodeId) -> Vec<Record> {
        if !self.sessions.end(id) {
            return Vec::new();
        }
        let Some(broker) = self.image.brokers.registration(id) else {
            return Vec::new();
        };
        info!(broker = %id, "the broker is fenced, its session has ended");
        self.fence(id, broker.epoch)
    }

    /// A broker is forgotten, from every ISR and ELR.
    pub(super) fn unregister(&mut self, asked: &UnregisterBroker) -> Decided<()> {
        let id = asked.broker_id;
        let Some(broker) = self.image.brokers.registration(id) else {
            let words = format!("Broker ID {id} is not currently registered");
            return Err(Refusal::new(ErrorCode::BrokerIdNotRegistered, words));
        };
        let turn = Turn {
            leaves: Some(id),
            ..Turn::default()
        };
        let mut records = self.without(id);
        records.extend(self.leader_and_isr_updates(turn, |p| p.elr.contains(&id)));
        let gone = UnregisterBrokerRecord {
            broker_id: id,
            broker_epoch: broker.epoch,
        };
        records.push(gone.into());
        let records = within_limit(records)?;
        self.sessions.forget(id);
        Ok(Decision { records, reply: () })
    }
}

/// A change of a broker's registration.
pub(super) fn change(
    broker_id: NodeId,
    broker_epoch: i64,
    say: impl FnOnce(&mut BrokerRegistrationChangeRecord),
) -> Record {
    let mut record = BrokerRegistrationChangeRecord {
        broker_id,
        broker_epoch,
        ..Default::default()
    };
    say(&mut record);
    record.into()
}

fn check_feature(feature: &FeatureRange, finalized: i16) -> Result<(), Refusal> {
    let (min, max) = (feature.min_supported_version, feature.max_supported_version);
    if (min..=max).contains(&finalized) {
        return Ok(());
    }
    let words = format!(
        "Unable to register because the broker does not support finalized version {finalized} of \
         {}. The broker wants a version between {min} and {max}, inclusive.",
        feature.name
    );
    Err(Refusal::new(ErrorCode::UnsupportedVersion, words))
}

fn range(name: &str, level: i16) -> FeatureRange {
    FeatureRange {
        name: name.to_owned(),
        min_supported_version: level,
        max_supported_version: level,
    }
}
