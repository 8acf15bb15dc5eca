//! Which parts of the image a batch of records touched, so that those who follow look only there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::{NodeId, TopicId};
use crate::metadata::image::configs::{Resource, ResourceType};
use crate::metadata::record::Record;

/// The ids that records touched; what became of them is in the image.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Changes {
    /// Partitions that were made or changed, by topic; a new topic is there even when empty.
    pub(crate) partitions: BTreeMap<TopicId, BTreeSet<i32>>,
    /// Topics that are gone, with the names they had.
    pub(crate) removed_topics: BTreeMap<TopicId, Arc<str>>,
    /// Resources whose options changed; a removed topic's are not listed.
    pub(crate) configs: BTreeSet<Resource>,
    pub(crate) brokers: BTreeSet<NodeId>,
    pub(crate) controllers: BTreeSet<NodeId>,
    pub(crate) features: bool,
    pub(crate) quotas: bool,
    pub(crate) producer_ids: bool,
    pub(crate) acls: bool,
    pub(crate) scram: bool,
    pub(crate) tokens: bool,
}

impl Changes {
    /// Whether nothing was touched.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Notes what a record touches, beyond what only the image can tell.
    pub(crate) fn note(&mut self, record: &Record) {
        match record {
            Record::Topic(body) => {
                self.partitions.entry(body.topic_id).or_default();
            }
            Record::Partition(body) => self.note_partition(body.topic_id, body.partition_id),
            Record::PartitionChange(body) => self.note_partition(body.topic_id, body.partition_id),
            Record::Config(body) => {
                if let Some(kind) = ResourceType::from_code(body.resource_type) {
                    let resource = Resource::new(kind, body.resource_name.as_str());
                    self.configs.insert(resource);
                }
            }
            Record::RegisterBroker(body) => self.note_broker(body.broker_id),
            Record::UnregisterBroker(body) => self.note_broker(body.broker_id),
            Record::BrokerRegistrationChange(body) => self.note_broker(body.broker_id),
            Record::FenceBroker(body) => self.note_broker(body.id),
            Record::UnfenceBroker(body) => self.note_broker(body.id),
            Record::RegisterController(body) => {
                self.controllers.insert(body.controller_id);
            }
            Record::FeatureLevel(_) => self.features = true,
            Record::ClientQuota(_) => self.quotas = true,
            Record::ProducerIds(_) => self.producer_ids = true,
            Record::AccessControlEntry(_) | Record::RemoveAccessControlEntry(_) => self.acls = true,
            Record::UserScramCredential(_) | Record::RemoveUserScramCredential(_) => {
                self.scram = true;
            }
            Record::DelegationToken(_) | Record::RemoveDelegationToken(_) => self.tokens = true,
            Record::RemoveTopic(_)
            | Record::ClearElr(_)
            | Record::NoOp(_)
            | Record::ZkMigrationState(_)
            | Record::BeginTransaction(_)
            | Record::EndTransaction(_)
            | Record::AbortTransaction(_) => {}
        }
    }

    /// Notes a partition that was made or changed.
    pub(crate) fn note_partition(&mut self, topic: TopicId, partition: i32) {
        self.partitions.entry(topic).or_default().insert(partition);
    }

    /// Notes a topic that is gone; what it had in this batch is gone with it.
    pub(crate) fn note_removed_topic(&mut self, id: TopicId, name: Arc<str>) {
        self.partitions.remove(&id);
        self.configs.remove(&Resource::topic(name.as_ref()));
        self.removed_topics.insert(id, name);
    }

    fn note_broker(&mut self, id: NodeId) {
        self.brokers.insert(id);
    }
}
