//! The state of the cluster: what its metadata records add up to.
//!
//! An image is cheap to clone: its maps are shared until one side changes. Only `replay` changes
//! it, and replaying [`Image::records`] into an empty image gives the same image again.
//!
//! - `topics`: topics, partitions, leaders, in-sync and eligible replicas, reassignments.
//! - `brokers`: registrations of brokers and controllers, fencing, directories.
//! - `configs`: options by resource. - `features`: finalized levels. - `quotas`.
//! - `security`: access control entries, SCRAM credentials, delegation tokens.

pub(crate) mod brokers;
pub(crate) mod configs;
pub(crate) mod features;
pub(crate) mod quotas;
pub(crate) mod security;
pub(crate) mod topics;

use crate::base::{NodeId, ProducerId, TopicId};
use crate::metadata::changes::Changes;
use crate::metadata::record::{ProducerIdsRecord, Record};

use brokers::{Brokers, Controllers};
use configs::Configs;
use features::Features;
use quotas::Quotas;
use security::{Acls, Scram, Tokens};
use topics::Topics;

/// The state of the cluster at one point of its metadata log.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Image {
    pub(crate) features: Features,
    pub(crate) brokers: Brokers,
    pub(crate) controllers: Controllers,
    pub(crate) topics: Topics,
    pub(crate) configs: Configs,
    pub(crate) quotas: Quotas,
    /// The first producer id that no block contains yet; `None` before the first block.
    pub(crate) next_producer_id: Option<ProducerId>,
    pub(crate) acls: Acls,
    pub(crate) scram: Scram,
    pub(crate) tokens: Tokens,
    /// The records of a transaction that has not ended (KIP-868); they do not count yet.
    open: Option<Vec<Record>>,
}

/// A record that does not fit what came before it: the log is not one that a controller wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Contradiction {
    /// A record names a topic id that does not exist.
    #[error("no topic has the id {0}")]
    UnknownTopic(TopicId),
    /// A topic is created under a name in use.
    #[error("a topic named {0} exists already")]
    DuplicateTopic(String),
    /// A change names a partition that does not exist.
    #[error("topic {0} has no partition {1}")]
    UnknownPartition(TopicId, i32),
    /// A record names a broker that is not registered, or another epoch of it.
    #[error("broker {0} is not registered with epoch {1}")]
    UnknownBroker(NodeId, i64),
    /// A resource type, state or direction that has no meaning.
    #[error("{0} is not a valid {1}")]
    InvalidCode(i8, &'static str),
    /// Replicas and directories differ in number.
    #[error("partition {1} of topic {0} has as many directories as replicas")]
    Directories(TopicId, i32),
    /// A transaction begins within another, or ends without one.
    #[error("a transaction of records begins or ends out of place")]
    Transaction,
}

impl Image {
    /// Takes a record in. After a contradiction the image is as it was before the record.
    pub(crate) fn replay(&mut self, record: &Record) -> Result<(), Contradiction> {
        self.follow(record, &mut Changes::default())
    }

    /// Takes a record in and notes what it touched.
    pub(crate) fn follow(
        &mut self,
        record: &Record,
        changes: &mut Changes,
    ) -> Result<(), Contradiction> {
        match record {
            Record::BeginTransaction(_) if self.open.is_none() => {
                self.open = Some(Vec::new());
                Ok(())
            }
            Record::EndTransaction(_) if self.open.is_some() => {
                let held = self.open.take().unwrap_or_default();
                held.iter().try_for_each(|held| self.apply(held, changes))
            }
            Record::AbortTransaction(_) if self.open.is_some() => {
                self.open = None;
                Ok(())
            }
            record => match &mut self.open {
                Some(held) => {
                    held.push(record.clone());
                    Ok(())
                }
                None => self.apply(record, changes),
            },
        }
    }

    /// Whether a transaction is open; its records are not in [`Image::records`].
    pub(crate) fn in_transaction(&self) -> bool {
        self.open.is_some()
    }

    /// The records that make this image, in the order of Kafka's snapshots
    /// (org.apache.kafka.image.MetadataImage).
    pub(crate) fn records(&self) -> Vec<Record> {
        let mut out = Vec::new();
        self.features.records(&mut out);
        self.brokers.records(&mut out);
        self.controllers.records(&mut out);
        self.topics.records(&mut out);
        self.configs.records(&mut out);
        self.quotas.records(&mut out);
        if let Some(next_producer_id) = self.next_producer_id {
            out.push(Record::ProducerIds(ProducerIdsRecord {
                broker_id: NodeId(-1),
                broker_epoch: -1,
                next_producer_id,
            }));
        }
        self.acls.records(&mut out);
        self.scram.records(&mut out);
        self.tokens.records(&mut out);
        out
    }

    fn apply(&mut self, record: &Record, changes: &mut Changes) -> Result<(), Contradiction> {
        match record {
            Record::RegisterBroker(body) => self.brokers.register(body),
            Record::UnregisterBroker(body) => {
                self.brokers.unregister(body.broker_id, body.broker_epoch)?;
            }
            Record::FenceBroker(body) => self.brokers.set_fenced(body.id, body.epoch, true)?,
            Record::UnfenceBroker(body) => self.brokers.set_fenced(body.id, body.epoch, false)?,
            Record::BrokerRegistrationChange(body) => self.brokers.change(body)?,
            Record::RegisterController(body) => self.controllers.register(body),
            Record::Topic(body) => self.topics.create(body)?,
            Record::Partition(body) => self.topics.set_partition(body)?,
            Record::PartitionChange(body) => self.topics.change_partition(body)?,
            Record::RemoveTopic(body) => {
                let name = self.topics.remove(body.topic_id)?;
                self.configs.remove_topic(&name);
                changes.note_removed_topic(body.topic_id, name);
            }
            Record::ClearElr(body) => self.topics.clear_elr(&body.topic_name, changes),
            Record::Config(body) => self.configs.set(body)?,
            Record::FeatureLevel(body) => self.features.set(&body.name, body.feature_level),
            Record::ClientQuota(body) => self.quotas.change(body),
            Record::ProducerIds(body) => self.next_producer_id = Some(body.next_producer_id),
            Record::AccessControlEntry(body) => self.acls.add(body),
            Record::RemoveAccessControlEntry(body) => self.acls.remove(body.id),
            Record::UserScramCredential(body) => self.scram.set(body),
            Record::RemoveUserScramCredential(body) => {
                self.scram.remove(&body.name, body.mechanism);
            }
            Record::DelegationToken(body) => self.tokens.set(body),
            Record::RemoveDelegationToken(body) => self.tokens.remove(&body.token_id),
            Record::NoOp(_) | Record::ZkMigrationState(_) => {}
            Record::BeginTransaction(_)
            | Record::EndTransaction(_)
            | Record::AbortTransaction(_) => return Err(Contradiction::Transaction),
        }
        changes.note(record);
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::metadata::record::tests::unhex;
    use crate::metadata::record::{
        AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord, FeatureLevelRecord,
    };

    /// Replays the records of an image into an empty one; both must be equal.
    pub(crate) fn rebuild(image: &Image) {
        let mut again = Image::default();
        for record in image.records() {
            let value = record.encode();
            let record = Record::decode(&value).unwrap();
            again.replay(&record).unwrap();
        }
        assert_eq!(&again, image);
    }

    /// The image of a real cluster, from every value of its metadata log.
    pub(crate) fn replayed(log: &str) -> Image {
        let mut image = Image::default();
        for value in log.lines().map(unhex) {
            let record = Record::decode(&value).unwrap();
            assert_eq!(record.encode(), value, "{record:?}");
            image.replay(&record).unwrap();
        }
        image
    }

    /// The metadata log of a one-node Kafka 4.1.2: work, a clean stop, a start, work, a clean stop.
    pub(crate) const CLEAN_LOG: &str = include_str!("../testdata/clean-log.txt");

    #[test]
    fn the_log_of_a_real_cluster_is_replayed_and_rebuilt() {
        let image = replayed(CLEAN_LOG);
        rebuild(&image);
        assert_eq!(image.features.level("metadata.version"), 27);
        assert_eq!(image.next_producer_id, Some(ProducerId(1000)));
        let topic = image.topics.by_name("codecs").unwrap();
        assert_eq!(topic.partitions.len(), 5);
        let partition = &topic.partitions[&4];
        assert_eq!(
            (partition.leader, partition.leader_epoch.0),
            (NodeId(-1), 3)
        );
        assert_eq!(partition.elr, [NodeId(1)]);
        assert!(image.topics.by_name("to-delete").is_none());
        assert!(image.brokers.registration(NodeId(1)).unwrap().fenced);
    }

    #[test]
    fn the_records_of_a_transaction_count_at_its_end_or_never() {
        let level = |feature_level| {
            Record::from(FeatureLevelRecord {
                name: "group.version".into(),
                feature_level,
            })
        };
        let mut image = Image::default();
        let begin = Record::from(BeginTransactionRecord::default());
        let end = Record::from(EndTransactionRecord::default());
        let abort = Record::from(AbortTransactionRecord::default());
        image.replay(&begin).unwrap();
        image.replay(&level(1)).unwrap();
        assert_eq!(image.features.level("group.version"), 0);
        assert!(image.in_transaction());
        image.replay(&end).unwrap();
        assert_eq!(image.features.level("group.version"), 1);
        image.replay(&begin).unwrap();
        image.replay(&level(0)).unwrap();
        image.replay(&abort).unwrap();
        assert_eq!(image.features.level("group.version"), 1);
        assert_eq!(image.replay(&end), Err(Contradiction::Transaction));
        rebuild(&image);
    }
}
