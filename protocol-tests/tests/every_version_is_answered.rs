//! Each API that the broker lists is answered in each version that it lists, in a form that can be
//! read to its last byte.

use std::collections::BTreeMap;

use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Request, StrBytes};
use protocol_tests::Broker;
use protocol_tests::wire::{
    Connection, create_topics, fetch, list_offsets, metadata, produce, topic_name,
};

type Ask = Box<dyn Fn(&mut Connection, i16)>;

/// One API: its lowest version in earnest, and how it is asked.
type Asks = BTreeMap<i16, (i16, Ask)>;

fn ask<R: Request + 'static>(asks: &mut Asks, lowest: i16, build: impl Fn(i16) -> R + 'static) {
    let ask = move |asker: &mut Connection, version: i16| {
        asker.ask(version, &build(version));
    };
    asks.insert(R::KEY, (lowest, Box::new(ask)));
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

#[test]
fn every_api_is_answered_in_every_version() {
    let broker = Broker::start();
    let mut asker = Connection::open(&broker);
    let topic_id = asker.create_topic("t", 1);
    assert_eq!(asker.produce("t", -1, &[b"one"]), 0);

    let mut asks = Asks::new();
    data(&mut asks, topic_id);
    topics(&mut asks, topic_id);
    options(&mut asks);
    cluster(&mut asks);
    groups(&mut asks);
    consumer_groups(&mut asks);
    offsets(&mut asks);

    let listed = asker.ask(0, &ApiVersionsRequest::default()).api_keys;
    for row in &listed {
        let Some((lowest, ask)) = asks.remove(&row.api_key) else {
            assert!(
                LATER.contains(&row.api_key),
                "nothing asks API {} here",
                row.api_key
            );
            continue;
        };
        for version in row.min_version.max(lowest)..=row.max_version {
            println!("API {} version {version}", row.api_key);
            ask(&mut asker, version);
        }
    }
    assert!(asks.is_empty(), "not listed: {:?}", asks.keys());
}

/// Asked by tests of their own.
const LATER: &[i16] = &[17, 36];

fn data(asks: &mut Asks, topic_id: uuid::Uuid) {
    ask(asks, 3, move |version| {
        let mut request = produce("t", -1, &[b"more"]);
        if version >= 13 {
            request.topic_data[0].name = Default::default();
            request.topic_data[0].topic_id = topic_id;
        }
        request
    });
    ask(asks, 4, move |version| {
        let mut request = fetch("t", 0);
        if version >= 13 {
            request.topics[0].topic = Default::default();
            request.topics[0].topic_id = topic_id;
        }
        if version < 12 {
            request.topics[0].partitions[0].last_fetched_epoch = -1;
        }
        request
    });
    ask(asks, 1, |_| list_offsets("t", 0, -1));
    ask(asks, 2, |_| {
        let partition = offset_for_leader_epoch_request::OffsetForLeaderPartition::default();
        let topic = offset_for_leader_epoch_request::OffsetForLeaderTopic::default()
            .with_topic(topic_name("t"))
            .with_partitions(vec![partition]);
        OffsetForLeaderEpochRequest::default().with_topics(vec![topic])
    });
    ask(asks, 0, |_| {
        let partition = delete_records_request::DeleteRecordsPartition::default();
        let topic = delete_records_request::DeleteRecordsTopic::default()
            .with_name(topic_name("t"))
            .with_partitions(vec![partition]);
        DeleteRecordsRequest::default().with_topics(vec![topic])
    });
    ask(asks, 0, |_| {
        InitProducerIdRequest::default().with_transaction_timeout_ms(60_000)
    });
    ask(asks, 0, |_| {
        let topic = describe_producers_request::TopicRequest::default()
            .with_name(topic_name("t"))
            .with_partition_indexes(vec![0, 7]);
        DescribeProducersRequest::default().with_topics(vec![topic])
    });
}

fn topics(asks: &mut Asks, topic_id: uuid::Uuid) {
    ask(asks, 0, |version| {
        let mut request = metadata("t");
        request.allow_auto_topic_creation = version < 4;
        request
    });
    ask(asks, 2, |version| {
        create_topics(&format!("made-{version}"), 1)
    });
    ask(asks, 1, move |version| {
        let request = DeleteTopicsRequest::default().with_timeout_ms(5_000);
        if version < 6 {
            return request.with_topic_names(vec![topic_name("made-2"), topic_name("nobody")]);
        }
        let named = delete_topics_request::DeleteTopicState::default()
            .with_name(Some(topic_name("made-3")));
        let unknown = delete_topics_request::DeleteTopicState::default()
            .with_name(None)
            .with_topic_id(uuid::Uuid::from_u128(topic_id.as_u128() ^ 1));
        request.with_topics(vec![named, unknown])
    });
    ask(asks, 0, |_| {
        let topic = |name, count| {
            create_partitions_request::CreatePartitionsTopic::default()
                .with_name(topic_name(name))
                .with_count(count)
                .with_assignments(None)
        };
        CreatePartitionsRequest::default()
            .with_topics(vec![topic("made-7", 2), topic("nobody", 2)])
            .with_timeout_ms(5_000)
            .with_validate_only(true)
    });
    ask(asks, 0, |_| {
        let topic = |name| {
            describe_topic_partitions_request::TopicRequest::default().with_name(topic_name(name))
        };
        DescribeTopicPartitionsRequest::default()
            .with_topics(vec![topic("t"), topic("nobody")])
            .with_response_partition_limit(10)
            .with_cursor(None)
    });
}

fn options(asks: &mut Asks) {
    ask(asks, 1, |_| {
        let resource = |kind, name| {
            describe_configs_request::DescribeConfigsResource::default()
                .with_resource_type(kind)
                .with_resource_name(text(name))
                .with_configuration_keys(None)
        };
        let all = [
            (2, "t"),
            (2, "nobody"),
            (4, "1"),
            (4, ""),
            (8, "1"),
            (16, "m"),
            (32, "g"),
        ];
        DescribeConfigsRequest::default()
            .with_resources(
                all.iter()
                    .map(|(kind, name)| resource(*kind, name))
                    .collect(),
            )
            .with_include_synonyms(true)
    });
    ask(asks, 0, |_| {
        let resource = |name| {
            alter_configs_request::AlterConfigsResource::default()
                .with_resource_type(2)
                .with_resource_name(text(name))
        };
        AlterConfigsRequest::default().with_resources(vec![resource("t"), resource("nobody")])
    });
    ask(asks, 0, |_| {
        let resource = |name| {
            incremental_alter_configs_request::AlterConfigsResource::default()
                .with_resource_type(2)
                .with_resource_name(text(name))
        };
        IncrementalAlterConfigsRequest::default()
            .with_resources(vec![resource("t"), resource("nobody")])
    });
    ask(asks, 0, |_| ListConfigResourcesRequest::default());
}

fn cluster(asks: &mut Asks) {
    ask(asks, 0, |version| {
        let request = ApiVersionsRequest::default();
        if version < 3 {
            return request;
        }
        request
            .with_client_software_name(text("tests"))
            .with_client_software_version(text("1"))
    });
    ask(asks, 0, |_| DescribeClusterRequest::default());
    ask(asks, 1, |_| {
        let topic = alter_replica_log_dirs_request::AlterReplicaLogDirTopic::default()
            .with_name(topic_name("t"))
            .with_partitions(vec![0]);
        let dir = alter_replica_log_dirs_request::AlterReplicaLogDir::default()
            .with_path(text("/nowhere"))
            .with_topics(vec![topic]);
        AlterReplicaLogDirsRequest::default().with_dirs(vec![dir])
    });
    ask(asks, 1, |_| {
        DescribeLogDirsRequest::default().with_topics(None)
    });
    ask(asks, 0, |_| {
        ElectLeadersRequest::default()
            .with_topic_partitions(None)
            .with_timeout_ms(5_000)
    });
    ask(asks, 0, |_| {
        let partition = alter_partition_reassignments_request::ReassignablePartition::default()
            .with_replicas(None);
        let topic = alter_partition_reassignments_request::ReassignableTopic::default()
            .with_name(topic_name("t"))
            .with_partitions(vec![partition]);
        AlterPartitionReassignmentsRequest::default().with_topics(vec![topic])
    });
    ask(asks, 0, |_| {
        ListPartitionReassignmentsRequest::default().with_topics(None)
    });
    ask(asks, 0, |_| {
        let partition = describe_quorum_request::PartitionData::default();
        let topic = describe_quorum_request::TopicData::default()
            .with_topic_name(topic_name("__cluster_metadata"))
            .with_partitions(vec![partition]);
        DescribeQuorumRequest::default().with_topics(vec![topic])
    });
    ask(asks, 0, |version| {
        let mut update = update_features_request::FeatureUpdateKey::default()
            .with_feature(text("group.version"))
            .with_max_version_level(1);
        if version >= 1 {
            update.upgrade_type = 1;
        }
        UpdateFeaturesRequest::default()
            .with_feature_updates(vec![update])
            .with_timeout_ms(5_000)
    });
    ask(asks, 0, |_| {
        UnregisterBrokerRequest::default().with_broker_id(BrokerId(77))
    });
}

fn group(name: &str) -> GroupId {
    GroupId(text(name))
}

fn groups(asks: &mut Asks) {
    ask(asks, 0, |version| {
        let request = FindCoordinatorRequest::default();
        match version {
            4.. => request.with_coordinator_keys(vec![text("one"), text("two")]),
            _ => request.with_key(text("one")),
        }
    });
    ask(asks, 0, |version| {
        let protocol = join_group_request::JoinGroupRequestProtocol::default()
            .with_name(text("range"))
            .with_metadata(vec![1, 2, 3].into());
        let mut request = JoinGroupRequest::default()
            // Of its own, so that it waits for nobody.
            .with_group_id(group(&format!("joined in v{version}")))
            .with_session_timeout_ms(6_000)
            .with_protocol_type(text("consumer"))
            .with_protocols(vec![protocol]);
        if version >= 1 {
            request.rebalance_timeout_ms = 6_000;
        }
        if version >= 5 {
            request.group_instance_id = Some(text("instance"));
        }
        request
    });
    ask(asks, 0, |version| {
        let mut request = SyncGroupRequest::default()
            .with_group_id(group("one"))
            .with_member_id(text("nobody"));
        if version >= 5 {
            request.protocol_type = Some(text("consumer"));
            request.protocol_name = Some(text("range"));
        }
        request
    });
    ask(asks, 0, |_| {
        HeartbeatRequest::default()
            .with_group_id(group("one"))
            .with_member_id(text("nobody"))
    });
    ask(asks, 0, |version| {
        let request = LeaveGroupRequest::default().with_group_id(group("one"));
        let member = leave_group_request::MemberIdentity::default().with_member_id(text("nobody"));
        match version {
            3.. => request.with_members(vec![member]),
            _ => request.with_member_id(text("nobody")),
        }
    });
    ask(asks, 0, |version| {
        let mut request =
            DescribeGroupsRequest::default().with_groups(vec![group("joined in v0"), group("x")]);
        request.include_authorized_operations = version >= 3;
        request
    });
    ask(asks, 0, |_| ListGroupsRequest::default());
    ask(asks, 0, |_| {
        DeleteGroupsRequest::default().with_groups_names(vec![group("x"), group("joined in v0")])
    });
}

fn consumer_groups(asks: &mut Asks) {
    ask(asks, 0, |version| {
        let mut request = ConsumerGroupHeartbeatRequest::default()
            .with_group_id(group(&format!("consumers in v{version}")))
            .with_member_id(text("member"))
            .with_rebalance_timeout_ms(6_000)
            .with_subscribed_topic_names(Some(vec![topic_name("t")]))
            .with_topic_partitions(Some(Vec::new()));
        if version >= 1 {
            request.subscribed_topic_regex = Some(text("t.*"));
        }
        request
    });
    ask(asks, 0, |version| {
        let member_of = group(&format!("consumers in v{version}"));
        ConsumerGroupDescribeRequest::default()
            .with_group_ids(vec![member_of, group("nobody")])
            .with_include_authorized_operations(true)
    });
}

fn offsets(asks: &mut Asks) {
    ask(asks, 2, |version| {
        let mut partition = offset_commit_request::OffsetCommitRequestPartition::default()
            .with_committed_offset(7)
            .with_committed_metadata(Some(text("metadata")));
        if version >= 6 {
            partition.committed_leader_epoch = 0;
        }
        let topic = offset_commit_request::OffsetCommitRequestTopic::default()
            .with_name(topic_name("t"))
            .with_partitions(vec![partition]);
        OffsetCommitRequest::default()
            .with_group_id(group("simple"))
            .with_generation_id_or_member_epoch(-1)
            .with_topics(vec![topic])
    });
    ask(asks, 1, |version| {
        if version >= 8 {
            let topic = offset_fetch_request::OffsetFetchRequestTopics::default()
                .with_name(topic_name("t"))
                .with_partition_indexes(vec![0, 7]);
            let one = offset_fetch_request::OffsetFetchRequestGroup::default()
                .with_group_id(group("simple"))
                .with_topics(Some(vec![topic]));
            let all = offset_fetch_request::OffsetFetchRequestGroup::default()
                .with_group_id(group("simple"))
                .with_topics(None);
            return OffsetFetchRequest::default().with_groups(vec![one, all]);
        }
        let topic = offset_fetch_request::OffsetFetchRequestTopic::default()
            .with_name(topic_name("t"))
            .with_partition_indexes(vec![0, 7]);
        OffsetFetchRequest::default()
            .with_group_id(group("simple"))
            .with_topics(Some(vec![topic]))
    });
    ask(asks, 0, |_| {
        let partition = offset_delete_request::OffsetDeleteRequestPartition::default();
        let topic = offset_delete_request::OffsetDeleteRequestTopic::default()
            .with_name(topic_name("t"))
            .with_partitions(vec![partition]);
        OffsetDeleteRequest::default()
            .with_group_id(group("simple"))
            .with_topics(vec![topic])
    });
}
