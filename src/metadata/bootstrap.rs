//! The first records of a cluster, as Kafka 4.1 writes them when its first controller wakes up
//! (org.apache.kafka.controller.ActivationRecordsGenerator).

use super::image::Image;
use super::image::configs::Resource;
use super::image::features::{
    ELIGIBLE_LEADER_REPLICAS_VERSION, GROUP_VERSION, METADATA_VERSION, SHARE_VERSION,
    TRANSACTION_VERSION,
};
use super::record::{
    AbortTransactionRecord, BeginTransactionRecord, ConfigRecord, EndTransactionRecord,
    FeatureLevelRecord, Record,
};

/// The metadata.version of 4.1 (4.1-IV1).
pub(crate) const METADATA_VERSION_4_1: i16 = 27;

/// What 4.1 finalizes in a new cluster; features that are off are not written.
pub(crate) fn default_features() -> Vec<Record> {
    features(&[
        (METADATA_VERSION, METADATA_VERSION_4_1),
        (ELIGIBLE_LEADER_REPLICAS_VERSION, 1),
        (GROUP_VERSION, 1),
        (SHARE_VERSION, 0),
        (TRANSACTION_VERSION, 2),
    ])
}

/// The records that finalize features, metadata.version first and the others by name.
pub(crate) fn features(levels: &[(&str, i16)]) -> Vec<Record> {
    let mut levels: Vec<_> = levels.iter().filter(|(_, level)| *level != 0).collect();
    levels.sort_by_key(|(name, _)| (*name != METADATA_VERSION, *name));
    let record = |(name, feature_level): &(&str, i16)| {
        Record::from(FeatureLevelRecord {
            name: (*name).to_owned(),
            feature_level: *feature_level,
        })
    };
    levels.into_iter().map(record).collect()
}

/// The first records of a cluster, one transaction: what its folder was formatted with (features,
/// SCRAM credentials), and the least in-sync replicas for all brokers where eligible leader
/// replicas are on, as they may not depend on one broker's file (KIP-966).
pub(crate) fn records(formatted: Vec<Record>, min_insync_replicas: u32) -> Vec<Record> {
    let elr = formatted.iter().any(|record| {
        matches!(record, Record::FeatureLevel(level)
            if level.name == ELIGIBLE_LEADER_REPLICAS_VERSION && level.feature_level > 0)
    });
    let begin = BeginTransactionRecord {
        name: Some("Bootstrap records".to_owned()),
    };
    let mut records = vec![begin.into()];
    records.extend(formatted);
    if elr {
        records.push(Record::from(ConfigRecord {
            resource_type: Resource::all_brokers().kind.code(),
            resource_name: String::new(),
            name: "min.insync.replicas".to_owned(),
            value: Some(min_insync_replicas.to_string()),
        }));
    }
    records.push(EndTransactionRecord::default().into());
    records
}

/// What a controller writes first when it becomes active: the first records of an empty cluster,
/// and before them the end of a transaction that its predecessor left open.
pub(crate) fn activation(
    image: &Image,
    formatted: Vec<Record>,
    min_insync_replicas: u32,
) -> Vec<Record> {
    let mut first = Vec::new();
    let empty = image.features.level(METADATA_VERSION) == 0;
    if image.in_transaction() {
        first.push(Record::from(AbortTransactionRecord {
            reason: Some("Controller failover".to_owned()),
        }));
    }
    if empty {
        first.extend(records(formatted, min_insync_replicas));
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::image::tests::{CLEAN_LOG, rebuild};
    use crate::metadata::record::tests::unhex;

    #[test]
    fn a_cluster_begins_as_kafka_begins_it() {
        let kafka: Vec<Record> = CLEAN_LOG
            .lines()
            .take(9)
            .map(|line| Record::decode(&unhex(line)).unwrap())
            .collect();
        // That cluster was formatted with share groups and one SCRAM credential.
        let mut formatted = features(&[
            (TRANSACTION_VERSION, 2),
            (SHARE_VERSION, 1),
            (METADATA_VERSION, METADATA_VERSION_4_1),
            (GROUP_VERSION, 1),
            (ELIGIBLE_LEADER_REPLICAS_VERSION, 1),
        ]);
        formatted.push(kafka[6].clone());
        assert_eq!(records(formatted, 1), kafka);
    }

    #[test]
    fn the_defaults_make_an_image() {
        let mut image = Image::default();
        for record in records(default_features(), 1) {
            image.replay(&record).unwrap();
        }
        assert_eq!(image.features.level(SHARE_VERSION), 0);
        assert!(image.features.elr_enabled());
        rebuild(&image);
    }

    #[test]
    fn a_beginning_that_was_cut_short_begins_again() {
        let mut image = Image::default();
        let all = activation(&image, default_features(), 1);
        for record in &all[..3] {
            image.replay(record).unwrap();
        }
        let again = activation(&image, default_features(), 1);
        assert!(matches!(again[0], Record::AbortTransaction(_)));
        for record in &again {
            image.replay(record).unwrap();
        }
        assert_eq!(image.features.level(METADATA_VERSION), METADATA_VERSION_4_1);
        assert!(activation(&image, default_features(), 1).is_empty());
        rebuild(&image);
    }
}
