//! A cluster as seen by its controller, told through the testkit; its stories are in the
//! `_test` files.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::base::{DirectoryId, NodeId, Uuid};
use crate::machine::Now;
use crate::machine::ask::Ask;
use crate::machine::testkit::{Rehearsed, Story};
use crate::metadata::bootstrap;
use crate::metadata::image::Image;
use crate::metadata::image::configs::{Options, Resource, ResourceType};
use crate::metadata::image::topics::Partition;
use crate::metadata::record::{Endpoint, Record};
use crate::protocol::error::ErrorCode::InvalidConfig;
use crate::protocol::error::{ErrorCode, Refusal};

use super::ask::{
    AlterPartition, AlterReassignments, Assignment, ConfigChange, ConfigOp, CreateTopics,
    CreatedTopic, Heartbeat, HeartbeatReply, IncrementalAlterConfigs, NewIsr, NewTopic,
    PartitionState, Reassignment, RegisterBroker,
};
use super::configs::ConfigRules;
use super::state::Settings;
use super::{Controller, features};

/// Rules for a handful of options.
pub(super) struct FewRules;

impl ConfigRules for FewRules {
    fn validate(&self, _: &Resource, all: &Options, _: &Options) -> Result<(), Refusal> {
        let known = ["cleanup.policy", "min.insync.replicas", "retention.ms"];
        let known = [&known[..], &["unclean.leader.election.enable"]].concat();
        match all.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(Refusal::new(
                InvalidConfig,
                format!("Unknown topic config name: {name}"),
            )),
        }
    }

    fn is_list(&self, _: ResourceType, name: &str) -> bool {
        name == "cleanup.policy"
    }

    fn default_value(&self, _: ResourceType, name: &str) -> Option<String> {
        (name == "cleanup.policy").then(|| "delete".to_owned())
    }
}

pub(super) fn settings() -> Arc<Settings> {
    let next = AtomicU64::new(1000);
    Arc::new(Settings {
        node_id: NodeId(100),
        cluster_id: "a-cluster".to_owned(),
        voters: vec![NodeId(100)],
        session_timeout: secs(9),
        num_partitions: 1,
        default_replication_factor: 1,
        min_insync_replicas: 1,
        unclean_leader_election: false,
        balance_interval: Some(secs(300)),
        unclean_election_interval: secs(300),
        max_idle: None,
        rules: Box::new(FewRules),
        uuid: Box::new(move || id(next.fetch_add(1, Ordering::Relaxed))),
        below: Box::new(|_| 0),
    })
}

impl Rehearsed for Controller {
    type Hard = Image;

    fn hard(&self) -> Image {
        self.image().clone()
    }

    fn reloaded(&self, records: &[Record], now: Now) -> Self {
        let mut image = Image::default();
        for record in records {
            image.replay(record).unwrap();
        }
        Self::new(image, Arc::clone(&self.state.settings), now)
    }
}

/// A cluster as seen by its controller.
pub(super) struct Cluster {
    pub(super) story: Story<Controller>,
    incarnations: Cell<u64>,
}

/// A running broker process.
#[derive(Clone, Copy)]
pub(super) struct Process {
    pub(super) id: NodeId,
    pub(super) epoch: i64,
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(super) fn id(number: u64) -> Uuid {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Uuid(bytes)
}

pub(super) fn nodes<const N: usize>(ids: [i32; N]) -> Vec<NodeId> {
    ids.map(NodeId).to_vec()
}

/// A new cluster without brokers.
pub(super) fn cluster() -> Cluster {
    let mut story = Story::new(|now| Controller::new(Image::default(), settings(), now));
    story.writes(bootstrap::records(bootstrap::default_features(), 1));
    Cluster {
        story,
        incarnations: Cell::new(0),
    }
}

/// A cluster whose brokers are up.
pub(super) fn cluster_of<const N: usize>(ids: [i32; N]) -> (Cluster, [Process; N]) {
    let mut cluster = cluster();
    let brokers = ids.map(|id| cluster.starts(id, -1));
    cluster.story.records();
    (cluster, brokers)
}

impl Cluster {
    pub(super) fn ask<T, A>(&mut self, asked: A) -> Result<T, Refusal>
    where
        A: Ask<Controller, Reply = Result<T, Refusal>>,
    {
        let ticket = self.story.says(asked.into_event());
        let answer = self.story.answer(ticket).expect("answered at once");
        A::reply(answer).expect("answered by its own kind")
    }

    pub(super) fn registration(&self, broker: i32, previous_broker_epoch: i64) -> RegisterBroker {
        self.incarnations.set(self.incarnations.get() + 1);
        RegisterBroker {
            cluster_id: "a-cluster".to_owned(),
            broker_id: NodeId(broker),
            incarnation_id: id(self.incarnations.get()),
            endpoints: vec![Endpoint {
                name: "PLAINTEXT".to_owned(),
                host: format!("host{broker}"),
                port: 9092,
                security_protocol: 0,
            }],
            features: features::supported(),
            rack: None,
            is_migrating_zk_broker: false,
            directories: vec![directory(broker)],
            previous_broker_epoch,
        }
    }

    /// A broker process starts, registers and is unfenced.
    pub(super) fn starts(&mut self, broker: i32, previous_broker_epoch: i64) -> Process {
        let asked = self.registration(broker, previous_broker_epoch);
        let epoch = self.ask(asked).unwrap();
        let process = Process {
            id: NodeId(broker),
            epoch,
        };
        assert!(!self.beats(process).is_fenced);
        process
    }

    pub(super) fn heartbeat(&self, broker: Process) -> Heartbeat {
        Heartbeat {
            broker_id: broker.id,
            broker_epoch: broker.epoch,
            metadata_offset: self.story.end_offset() - 1,
            want_fence: false,
            want_shut_down: false,
            offline_directories: Vec::new(),
        }
    }

    pub(super) fn beats(&mut self, broker: Process) -> HeartbeatReply {
        let heartbeat = self.heartbeat(broker);
        self.ask(heartbeat).unwrap()
    }

    /// A broker wants to stop, and is told what to do.
    pub(super) fn wants_to_stop(&mut self, broker: Process) -> HeartbeatReply {
        let mut heartbeat = self.heartbeat(broker);
        heartbeat.want_shut_down = true;
        self.ask(heartbeat).unwrap()
    }

    /// A broker stops; all others learn of it.
    pub(super) fn stops(&mut self, broker: Process) {
        if self.wants_to_stop(broker).should_shut_down {
            return;
        }
        let others: Vec<_> = self
            .story
            .machine
            .image()
            .alive_brokers()
            .map(|other| Process {
                id: other.id,
                epoch: other.epoch,
            })
            .filter(|other| other.id != broker.id)
            .collect();
        for other in others {
            self.beats(other);
        }
        assert!(self.wants_to_stop(broker).should_shut_down);
    }

    pub(super) fn creates(&mut self, topic: NewTopic) -> Result<CreatedTopic, Refusal> {
        let asked = CreateTopics {
            topics: vec![topic],
            validate_only: false,
        };
        self.ask(asked).map(|mut reply| reply.remove(0).1)?
    }

    pub(super) fn partition(&self, topic: &str, index: i32) -> Arc<Partition> {
        let image = self.story.machine.image();
        Arc::clone(image.partition(topic, index).expect("it exists"))
    }

    pub(super) fn sets(
        &mut self,
        resource: Resource,
        name: &str,
        value: Option<&str>,
    ) -> Result<(), Refusal> {
        let change = ConfigChange {
            name: name.to_owned(),
            op: value.map_or(ConfigOp::Delete, |_| ConfigOp::Set),
            value: value.map(str::to_owned),
        };
        self.changes(resource, change)
    }

    pub(super) fn changes(
        &mut self,
        resource: Resource,
        change: ConfigChange,
    ) -> Result<(), Refusal> {
        let asked = IncrementalAlterConfigs {
            resources: vec![(resource, vec![change])],
            validate_only: false,
        };
        self.ask(asked).unwrap().remove(0).1
    }

    pub(super) fn alters_isr(
        &mut self,
        leader: Process,
        topic: &str,
        isr: &[(i32, i64)],
    ) -> Result<PartitionState, ErrorCode> {
        let partition = self.partition(topic, 0);
        let topic = self.story.machine.image().topics.id(topic).unwrap();
        let new = NewIsr {
            partition: 0,
            leader_epoch: partition.leader_epoch,
            isr: isr
                .iter()
                .map(|(id, epoch)| (NodeId(*id), *epoch))
                .collect(),
            leader_recovery_state: 0,
            partition_epoch: partition.partition_epoch,
        };
        let asked = AlterPartition {
            broker_id: leader.id,
            broker_epoch: leader.epoch,
            topics: vec![(topic, vec![new])],
        };
        self.ask(asked).unwrap().remove(0).1.remove(0).1
    }

    pub(super) fn reassigns(
        &mut self,
        topic: &str,
        replicas: Option<Vec<NodeId>>,
    ) -> Result<(), Refusal> {
        let asked = AlterReassignments {
            topics: vec![(
                topic.to_owned(),
                vec![Reassignment {
                    partition: 0,
                    replicas,
                }],
            )],
            allow_replication_factor_change: true,
        };
        self.ask(asked).unwrap().remove(0).1.remove(0).1
    }

    pub(super) fn ends(mut self) {
        self.story.reloads();
        crate::metadata::image::tests::rebuild(self.story.machine.image());
    }
}

pub(super) fn directory(broker: i32) -> DirectoryId {
    DirectoryId(id(500 + u64::try_from(broker).unwrap()))
}

pub(super) fn topic(name: &str, num_partitions: i32, replication_factor: i16) -> NewTopic {
    NewTopic {
        name: name.to_owned(),
        num_partitions,
        replication_factor,
        assignments: Vec::new(),
        configs: Vec::new(),
    }
}

pub(super) fn assigned<const N: usize>(name: &str, replicas: [i32; N]) -> NewTopic {
    NewTopic {
        assignments: vec![Assignment {
            partition: 0,
            replicas: nodes(replicas),
        }],
        ..topic(name, -1, -1)
    }
}

pub(super) fn refused<T: std::fmt::Debug>(result: Result<T, Refusal>) -> (ErrorCode, String) {
    let refusal = result.unwrap_err();
    (refusal.code, refusal.words().to_owned())
}

pub(super) fn changes(records: &[Record]) -> usize {
    let is_change = |record: &&Record| matches!(record, Record::PartitionChange(_));
    records.iter().filter(is_change).count()
}
