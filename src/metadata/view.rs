//! What handlers ask of the image: who is alive, where, and who leads what.
//!
//! Nothing here knows who is asking; what a session may see is decided above.

use std::sync::Arc;

use crate::base::{NodeId, TopicId};

use super::image::Image;
use super::image::brokers::Registration;
use super::image::configs::Resource;
use super::image::topics::{Partition, Topic};
use super::record::Endpoint;

/// Where to reach a node on one listener.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Node<'a> {
    pub(crate) id: NodeId,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) rack: Option<&'a str>,
    pub(crate) fenced: bool,
}

/// Why nobody can be named as a partition's leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLeader {
    /// There is none, or it is fenced.
    NotAvailable,
    /// It lacks the listener that was asked for.
    ListenerNotFound,
}

impl Image {
    /// Brokers that are not fenced, by id; one in controlled shutdown is still alive.
    pub(crate) fn alive_brokers(&self) -> impl Iterator<Item = &Arc<Registration>> {
        self.brokers.sorted().into_iter().filter(|b| !b.fenced)
    }

    /// Whether a broker is registered and not fenced.
    pub(crate) fn is_alive(&self, id: NodeId) -> bool {
        self.brokers.registration(id).is_some_and(|b| !b.fenced)
    }

    /// The alive brokers that have a listener, and where it is.
    pub(crate) fn alive_nodes<'a>(&'a self, listener: &'a str) -> impl Iterator<Item = Node<'a>> {
        self.alive_brokers().filter_map(move |b| node(b, listener))
    }

    /// All registered brokers that have a listener, the fenced ones too.
    pub(crate) fn all_nodes<'a>(&'a self, listener: &'a str) -> impl Iterator<Item = Node<'a>> {
        let brokers = self.brokers.sorted().into_iter();
        brokers.filter_map(move |b| node(b, listener))
    }

    /// Where an alive broker is on a listener.
    pub(crate) fn alive_node<'a>(&'a self, id: NodeId, listener: &str) -> Option<Node<'a>> {
        let broker = self.brokers.registration(id)?;
        node(broker, listener).filter(|node| !node.fenced)
    }

    /// A partition by its topic's name.
    pub(crate) fn partition(&self, topic: &str, partition: i32) -> Option<&Arc<Partition>> {
        self.topics.by_name(topic)?.partitions.get(&partition)
    }

    /// A partition by its topic's id.
    pub(crate) fn partition_by_id(
        &self,
        topic: TopicId,
        partition: i32,
    ) -> Option<&Arc<Partition>> {
        self.topics.by_id(topic)?.partitions.get(&partition)
    }

    /// The leader of a partition as clients of a listener may be told.
    pub(crate) fn leader_on<'a>(
        &'a self,
        partition: &Partition,
        listener: &str,
    ) -> Result<Node<'a>, NoLeader> {
        let leader = self.brokers.registration(partition.leader);
        let leader = leader.filter(|b| !b.fenced).ok_or(NoLeader::NotAvailable)?;
        node(leader, listener).ok_or(NoLeader::ListenerNotFound)
    }

    /// The replicas that cannot serve: their broker is gone or fenced, or their directory is
    /// offline.
    pub(crate) fn offline_replicas(&self, partition: &Partition) -> Vec<NodeId> {
        let offline = |(replica, directory): (&NodeId, _)| {
            let broker = self.brokers.registration(*replica);
            broker.is_none_or(|b| b.fenced || !b.has_online_directory(directory))
        };
        let directories = partition.directories.iter().copied();
        let replicas = partition.replicas.iter().zip(directories);
        replicas
            .filter(|replica| offline(*replica))
            .map(|(id, _)| *id)
            .collect()
    }

    /// The partitions that have a replica on a node, topic by topic.
    pub(crate) fn hosted_by(
        &self,
        id: NodeId,
    ) -> impl Iterator<Item = (&Arc<Topic>, i32, &Arc<Partition>)> {
        self.topics.iter().flat_map(move |topic| {
            let partitions = topic.partitions.iter();
            partitions
                .filter(move |(_, partition)| partition.replicas.contains(&id))
                .map(move |(index, partition)| (topic, *index, partition))
        })
    }

    /// An option of a topic as it was set on it, on a broker or on all brokers, in this order.
    pub(crate) fn topic_option(&self, topic: &str, broker: NodeId, name: &str) -> Option<&str> {
        let broker = Resource::new(
            super::image::configs::ResourceType::Broker,
            broker.0.to_string(),
        );
        [Resource::topic(topic), broker, Resource::all_brokers()]
            .iter()
            .find_map(|resource| self.configs.value(resource, name))
    }
}

fn node<'a>(broker: &'a Registration, listener: &str) -> Option<Node<'a>> {
    let Endpoint { host, port, .. } = broker.endpoint(listener)?;
    Some(Node {
        id: broker.id,
        host,
        port: *port,
        rack: broker.rack.as_deref(),
        fenced: broker.fenced,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::image::tests::{CLEAN_LOG, replayed};
    use crate::metadata::record::{BrokerRegistrationChangeRecord, Record};

    #[test]
    fn a_fenced_broker_is_nowhere_to_be_found() {
        let mut image = replayed(CLEAN_LOG);
        assert_eq!(image.alive_nodes("PLAINTEXT").count(), 0);
        assert_eq!(image.all_nodes("PLAINTEXT").count(), 1);
        let partition = image.partition("keys", 0).unwrap().clone();
        assert_eq!(image.offline_replicas(&partition), [NodeId(1)]);
        assert_eq!(
            image.leader_on(&partition, "PLAINTEXT"),
            Err(NoLeader::NotAvailable)
        );

        let broker_epoch = image.brokers.registration(NodeId(1)).unwrap().epoch;
        let unfence = BrokerRegistrationChangeRecord {
            broker_id: NodeId(1),
            broker_epoch,
            fenced: -1,
            ..Default::default()
        };
        image.replay(&Record::from(unfence)).unwrap();
        let node = image.alive_node(NodeId(1), "SASL").unwrap();
        assert_eq!((node.port, node.rack), (25101, Some("rack-a")));
        assert_eq!(image.alive_node(NodeId(1), "NOWHERE"), None);
        assert!(image.offline_replicas(&partition).is_empty());
    }

    #[test]
    fn an_option_is_found_where_it_is_nearest() {
        let image = replayed(CLEAN_LOG);
        let option = |topic, name| image.topic_option(topic, NodeId(1), name);
        assert_eq!(option("keys", "retention.ms"), Some("-1"));
        assert_eq!(option("keys", "min.insync.replicas"), Some("1"));
        assert_eq!(option("keys", "max.message.bytes"), None);
    }
}
