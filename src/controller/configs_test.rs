//! Stories: options, features and producer ids.

use crate::base::ProducerId;
use crate::metadata::image::configs::{Resource, ResourceType};
use crate::protocol::error::ErrorCode::{
    InvalidConfig, InvalidUpdateVersion, StaleBrokerEpoch, UnknownTopicOrPartition,
};

use super::ask::{
    AllocateProducerIds, AlterConfigs, ConfigChange, ConfigOp, FeatureUpdate, ProducerIdBlock,
    UpdateFeatures, UpgradeType,
};
use super::story::{Cluster, cluster_of, refused, topic};

#[test]
fn producer_ids_come_in_blocks_that_nobody_shares() {
    let (mut cluster, [one]) = cluster_of([1]);
    let asked = AllocateProducerIds {
        broker_id: one.id,
        broker_epoch: one.epoch,
    };
    let block = |first| ProducerIdBlock {
        first: ProducerId(first),
        len: 1000,
    };
    assert_eq!(cluster.ask(asked.clone()), Ok(block(0)));
    cluster.story.reloads();
    assert_eq!(cluster.ask(asked.clone()), Ok(block(1000)));
    let stale = AllocateProducerIds {
        broker_epoch: -1,
        ..asked
    };
    assert_eq!(refused(cluster.ask(stale)).0, StaleBrokerEpoch);
    cluster.ends();
}

#[test]
fn options_change_by_kafkas_rules() {
    let (mut cluster, [_]) = cluster_of([1]);
    cluster.creates(topic("t", 1, 1)).unwrap();
    cluster.story.records();
    let t = || Resource::topic("t");
    cluster.sets(t(), "retention.ms", Some("5")).unwrap();
    cluster.sets(t(), "retention.ms", Some("5")).unwrap();
    assert_eq!(cluster.story.records().len(), 1);
    cluster.sets(t(), "min.insync.replicas", Some("1")).unwrap();
    assert_eq!(cluster.story.records().len(), 2);
    let append = |name: &str, op| ConfigChange {
        name: name.to_owned(),
        op,
        value: Some("compact".to_owned()),
    };
    cluster
        .changes(t(), append("cleanup.policy", ConfigOp::Append))
        .unwrap();
    let value = |cluster: &Cluster, name: &str| {
        let configs = &cluster.story.machine.image().configs;
        configs.value(&t(), name).map(str::to_owned)
    };
    assert_eq!(
        value(&cluster, "cleanup.policy").as_deref(),
        Some("delete,compact")
    );
    cluster
        .changes(t(), append("cleanup.policy", ConfigOp::Subtract))
        .unwrap();
    assert_eq!(value(&cluster, "cleanup.policy").as_deref(), Some("delete"));
    assert_eq!(
        refused(cluster.changes(t(), append("retention.ms", ConfigOp::Append))),
        (
            InvalidConfig,
            "Can't APPEND to key retention.ms because its type is not LIST.".to_owned()
        )
    );
    assert_eq!(
        refused(cluster.sets(Resource::topic("no.such"), "retention.ms", Some("1"))),
        (
            UnknownTopicOrPartition,
            "The topic 'no.such' does not exist.".to_owned()
        )
    );
    let broker = Resource::new(ResourceType::Broker, "1");
    let min_isr = "min.insync.replicas";
    assert_eq!(
        refused(cluster.sets(broker, min_isr, Some("1"))).1,
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    );
    assert_eq!(
        refused(cluster.sets(Resource::all_brokers(), min_isr, None)).1,
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    );
    let asked = AlterConfigs {
        resources: vec![(t(), vec![("retention.ms".to_owned(), Some("7".to_owned()))])],
        validate_only: false,
    };
    cluster.ask(asked).unwrap().remove(0).1.unwrap();
    assert_eq!(value(&cluster, "retention.ms").as_deref(), Some("7"));
    assert_eq!(value(&cluster, min_isr), None);
    cluster.ends();
}

#[test]
fn features_are_refused_in_kafkas_words() {
    let (mut cluster, [_]) = cluster_of([1]);
    let mut update = |name: &str, level, kind| {
        let updates = vec![FeatureUpdate {
            name: name.to_owned(),
            level,
            kind,
        }];
        cluster.ask(UpdateFeatures {
            updates,
            validate_only: false,
        })
    };
    use UpgradeType::{SafeDowngrade, Unknown, UnsafeDowngrade, Upgrade};
    let cases = [
        (
            ("no.such", 1, Upgrade),
            "Invalid update version 1 for feature no.such. Local controller 100 does not support \
             this feature.",
        ),
        (
            ("group.version", 9, Upgrade),
            "Invalid update version 9 for feature group.version. Local controller 100 only \
             supports versions 0-1",
        ),
        (
            ("group.version", 0, Upgrade),
            "Invalid update version 0 for feature group.version. Can't downgrade the version of \
             this feature without setting the upgrade type to either safe or unsafe downgrade.",
        ),
        (
            ("group.version", 1, Unknown),
            "Invalid update version 1 for feature group.version. The controller does not support \
             the given upgrade type.",
        ),
        (
            ("metadata.version", 20, UnsafeDowngrade),
            "Invalid metadata.version 20. Unsafe metadata downgrade is not supported in this \
             version.",
        ),
    ];
    for ((name, level, kind), words) in cases {
        let prefix =
            "The update failed for all features since the following feature had an error: ";
        let (code, told) = refused(update(name, level, kind));
        assert_eq!(
            (code, told),
            (InvalidUpdateVersion, format!("{prefix}{words}"))
        );
    }
    assert_eq!(update("metadata.version", 27, Upgrade), Ok(()));
    assert_eq!(update("share.version", 1, Upgrade), Ok(()));
    assert_eq!(update("group.version", 0, SafeDowngrade), Ok(()));
    let features = &cluster.story.machine.image().features;
    assert_eq!(features.level("share.version"), 1);
    assert_eq!(features.level("group.version"), 0);
    cluster.ends();
}
