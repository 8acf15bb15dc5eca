//! The options of a broker and of a controller, in the order a reader looks for them.
//!
//! Names, types, defaults, bounds and modes are those of Apache Kafka 4.1.2, key for key; the
//! test of [`super`] holds the table to it. What the options mean together is in
//! [`super::broker`].

use std::collections::BTreeMap;

use super::broker::{Roles, Voter};
use super::key::config_keys;
use super::listeners::Endpoints;
use super::topic::{CLEANUP_POLICIES, COMPRESSION_TYPES, TIMESTAMP_TYPES};
use super::value::{Class, Password};

config_keys! {
    /// Everything a broker can be told, one field an option.
    BrokerConfig in Broker, table BROKER_KEYS, with {
        /// What was given, word for word, with the names that are not in the table.
        given: BTreeMap<String, String>,
        /// What the node does.
        roles: Roles,
        /// The controllers that elect their leader among themselves.
        voters: Vec<Voter>,
        /// Every address, read.
        endpoints: Endpoints,
    };

    /// add.partitions.to.txn.retry.backoff.max.ms
    "add.partitions.to.txn.retry.backoff.max.ms" add_partitions_to_txn_retry_backoff_max_ms: i32 =
        "100", AtLeast(0), ReadOnly;
    /// add.partitions.to.txn.retry.backoff.ms
    "add.partitions.to.txn.retry.backoff.ms" add_partitions_to_txn_retry_backoff_ms: i32 =
        "20", AtLeast(1), ReadOnly;
    /// advertised.listeners
    "advertised.listeners" advertised_listeners: Option<String> = Null, Any, ReadOnly;
    /// alter.config.policy.class.name
    "alter.config.policy.class.name" alter_config_policy_class_name: Option<Class> =
        Null, Any, ReadOnly;
    /// alter.log.dirs.replication.quota.window.num
    "alter.log.dirs.replication.quota.window.num" alter_log_dirs_replication_quota_window_num: i32 =
        "11", AtLeast(1), ReadOnly;
    /// alter.log.dirs.replication.quota.window.size.seconds
    "alter.log.dirs.replication.quota.window.size.seconds" alter_log_dirs_replication_quota_window_size_seconds: i32 =
        "1", AtLeast(1), ReadOnly;
    /// authorizer.class.name
    "authorizer.class.name" authorizer_class_name: String = "", NonNullText, ReadOnly;
    /// auto.create.topics.enable
    "auto.create.topics.enable" auto_create_topics_enable: bool = "true", Any, ReadOnly;
    /// auto.leader.rebalance.enable
    "auto.leader.rebalance.enable" auto_leader_rebalance_enable: bool = "true", Any, ReadOnly;
    /// background.threads
    "background.threads" background_threads: i32 = "10", AtLeast(1), ClusterWide;
    /// broker.heartbeat.interval.ms
    "broker.heartbeat.interval.ms" broker_heartbeat_interval_ms: i32 = "2000", Any, ReadOnly;
    /// broker.id
    "broker.id" broker_id: i32 = "-1", Any, ReadOnly;
    /// broker.rack
    "broker.rack" broker_rack: Option<String> = Null, Any, ReadOnly;
    /// broker.session.timeout.ms
    "broker.session.timeout.ms" broker_session_timeout_ms: i32 = "9000", Any, ReadOnly;
    /// client.quota.callback.class
    "client.quota.callback.class" client_quota_callback_class: Option<Class> = Null, Any, ReadOnly;
    /// compression.gzip.level
    "compression.gzip.level" compression_gzip_level: i32 = "-1", BetweenOr(1, 9, -1), ClusterWide;
    /// compression.lz4.level
    "compression.lz4.level" compression_lz4_level: i32 = "9", Between(1, 17), ClusterWide;
    /// compression.type
    "compression.type" compression_type: String = "producer", OneOf(COMPRESSION_TYPES), ClusterWide;
    /// compression.zstd.level
    "compression.zstd.level" compression_zstd_level: i32 = "3", Between(-131_072, 22), ClusterWide;
    /// connection.failed.authentication.delay.ms
    "connection.failed.authentication.delay.ms" connection_failed_authentication_delay_ms: i32 =
        "100", AtLeast(0), ReadOnly;
    /// connections.max.idle.ms
    "connections.max.idle.ms" connections_max_idle_ms: i64 = "600000", Any, ReadOnly;
    /// connections.max.reauth.ms
    "connections.max.reauth.ms" connections_max_reauth_ms: i64 = "0", Any, ReadOnly;
    /// controlled.shutdown.enable
    "controlled.shutdown.enable" controlled_shutdown_enable: bool = "true", Any, ReadOnly;
    /// controller.listener.names
    "controller.listener.names" controller_listener_names: Option<String> = Null, Any, ReadOnly;
    /// controller.performance.always.log.threshold.ms
    "controller.performance.always.log.threshold.ms" controller_performance_always_log_threshold_ms: i64 =
        "2000", AtLeast(0), ReadOnly, Internal;
    /// controller.performance.sample.period.ms
    "controller.performance.sample.period.ms" controller_performance_sample_period_ms: i64 =
        "60000", AtLeast(100), ReadOnly, Internal;
    /// controller.quorum.append.linger.ms
    "controller.quorum.append.linger.ms" controller_quorum_append_linger_ms: i32 =
        "25", AtLeast(0), ReadOnly;
    /// controller.quorum.bootstrap.servers
    "controller.quorum.bootstrap.servers" controller_quorum_bootstrap_servers: Vec<String> =
        "", NonEmptyList, ReadOnly;
    /// controller.quorum.election.backoff.max.ms
    "controller.quorum.election.backoff.max.ms" controller_quorum_election_backoff_max_ms: i32 =
        "1000", AtLeast(0), ReadOnly;
    /// controller.quorum.election.timeout.ms
    "controller.quorum.election.timeout.ms" controller_quorum_election_timeout_ms: i32 =
        "1000", AtLeast(0), ReadOnly;
    /// controller.quorum.fetch.timeout.ms
    "controller.quorum.fetch.timeout.ms" controller_quorum_fetch_timeout_ms: i32 =
        "2000", AtLeast(0), ReadOnly;
    /// controller.quorum.request.timeout.ms
    "controller.quorum.request.timeout.ms" controller_quorum_request_timeout_ms: i32 =
        "2000", AtLeast(0), ReadOnly;
    /// controller.quorum.retry.backoff.ms
    "controller.quorum.retry.backoff.ms" controller_quorum_retry_backoff_ms: i32 =
        "20", AtLeast(0), ReadOnly;
    /// controller.quorum.voters
    "controller.quorum.voters" controller_quorum_voters: Vec<String> = "", NonEmptyList, ReadOnly;
    /// controller.quota.window.num
    "controller.quota.window.num" controller_quota_window_num: i32 = "11", AtLeast(1), ReadOnly;
    /// controller.quota.window.size.seconds
    "controller.quota.window.size.seconds" controller_quota_window_size_seconds: i32 =
        "1", AtLeast(1), ReadOnly;
    /// controller.socket.timeout.ms
    "controller.socket.timeout.ms" controller_socket_timeout_ms: i32 = "30000", Any, ReadOnly;
    /// create.topic.policy.class.name
    "create.topic.policy.class.name" create_topic_policy_class_name: Option<Class> =
        Null, Any, ReadOnly;
    /// default.replication.factor
    "default.replication.factor" default_replication_factor: i32 = "1", Any, ReadOnly;
    /// delegation.token.expiry.check.interval.ms
    "delegation.token.expiry.check.interval.ms" delegation_token_expiry_check_interval_ms: i64 =
        "3600000", AtLeast(1), ReadOnly;
    /// delegation.token.expiry.time.ms
    "delegation.token.expiry.time.ms" delegation_token_expiry_time_ms: i64 =
        "86400000", AtLeast(1), ReadOnly;
    /// delegation.token.max.lifetime.ms
    "delegation.token.max.lifetime.ms" delegation_token_max_lifetime_ms: i64 =
        "604800000", AtLeast(1), ReadOnly;
    /// delegation.token.secret.key
    "delegation.token.secret.key" delegation_token_secret_key: Option<Password> =
        Null, Any, ReadOnly;
    /// delete.records.purgatory.purge.interval.requests
    "delete.records.purgatory.purge.interval.requests" delete_records_purgatory_purge_interval_requests: i32 =
        "1", Any, ReadOnly;
    /// delete.topic.enable
    "delete.topic.enable" delete_topic_enable: bool = "true", Any, ReadOnly;
    /// early.start.listeners
    "early.start.listeners" early_start_listeners: Option<String> = Null, Any, ReadOnly;
    /// fetch.max.bytes
    "fetch.max.bytes" fetch_max_bytes: i32 = "57671680", AtLeast(1024), ReadOnly;
    /// fetch.purgatory.purge.interval.requests
    "fetch.purgatory.purge.interval.requests" fetch_purgatory_purge_interval_requests: i32 =
        "1000", Any, ReadOnly;
    /// group.consumer.assignors
    "group.consumer.assignors" group_consumer_assignors: Vec<String> =
        "uniform,range", Any, ReadOnly;
    /// group.consumer.heartbeat.interval.ms
    "group.consumer.heartbeat.interval.ms" group_consumer_heartbeat_interval_ms: i32 =
        "5000", AtLeast(1), ReadOnly;
    /// group.consumer.max.heartbeat.interval.ms
    "group.consumer.max.heartbeat.interval.ms" group_consumer_max_heartbeat_interval_ms: i32 =
        "15000", AtLeast(1), ReadOnly;
    /// group.consumer.max.session.timeout.ms
    "group.consumer.max.session.timeout.ms" group_consumer_max_session_timeout_ms: i32 =
        "60000", AtLeast(1), ReadOnly;
    /// group.consumer.max.size
    "group.consumer.max.size" group_consumer_max_size: i32 = "2147483647", AtLeast(1), ReadOnly;
    /// group.consumer.migration.policy
    "group.consumer.migration.policy" group_consumer_migration_policy: String =
        "bidirectional", OneOfAnyCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"]), ReadOnly;
    /// group.consumer.min.heartbeat.interval.ms
    "group.consumer.min.heartbeat.interval.ms" group_consumer_min_heartbeat_interval_ms: i32 =
        "5000", AtLeast(1), ReadOnly;
    /// group.consumer.min.session.timeout.ms
    "group.consumer.min.session.timeout.ms" group_consumer_min_session_timeout_ms: i32 =
        "45000", AtLeast(1), ReadOnly;
    /// group.consumer.regex.refresh.interval.ms
    "group.consumer.regex.refresh.interval.ms" group_consumer_regex_refresh_interval_ms: i32 =
        "600000", AtLeast(10_000), ReadOnly, Internal;
    /// group.consumer.session.timeout.ms
    "group.consumer.session.timeout.ms" group_consumer_session_timeout_ms: i32 =
        "45000", AtLeast(1), ReadOnly;
    /// group.coordinator.append.linger.ms
    "group.coordinator.append.linger.ms" group_coordinator_append_linger_ms: i32 =
        "5", AtLeast(0), ReadOnly;
    /// group.coordinator.rebalance.protocols
    "group.coordinator.rebalance.protocols" group_coordinator_rebalance_protocols: Vec<String> =
        "classic,consumer,streams", OneOf(&["consumer", "classic", "share", "streams"]), ReadOnly;
    /// group.coordinator.threads
    "group.coordinator.threads" group_coordinator_threads: i32 = "4", AtLeast(1), ReadOnly;
    /// group.initial.rebalance.delay.ms
    "group.initial.rebalance.delay.ms" group_initial_rebalance_delay_ms: i32 =
        "3000", Any, ReadOnly;
    /// group.max.session.timeout.ms
    "group.max.session.timeout.ms" group_max_session_timeout_ms: i32 = "1800000", Any, ReadOnly;
    /// group.max.size
    "group.max.size" group_max_size: i32 = "2147483647", AtLeast(1), ReadOnly;
    /// group.min.session.timeout.ms
    "group.min.session.timeout.ms" group_min_session_timeout_ms: i32 = "6000", Any, ReadOnly;
    /// group.share.assignors
    "group.share.assignors" group_share_assignors: Vec<String> = "simple", Any, ReadOnly;
    /// group.share.delivery.count.limit
    "group.share.delivery.count.limit" group_share_delivery_count_limit: i32 =
        "5", Between(2, 10), ReadOnly;
    /// group.share.enable
    "group.share.enable" group_share_enable: bool = "false", Any, ReadOnly, Internal;
    /// group.share.heartbeat.interval.ms
    "group.share.heartbeat.interval.ms" group_share_heartbeat_interval_ms: i32 =
        "5000", AtLeast(1), ReadOnly;
    /// group.share.max.heartbeat.interval.ms
    "group.share.max.heartbeat.interval.ms" group_share_max_heartbeat_interval_ms: i32 =
        "15000", AtLeast(1), ReadOnly;
    /// group.share.max.record.lock.duration.ms
    "group.share.max.record.lock.duration.ms" group_share_max_record_lock_duration_ms: i32 =
        "60000", Between(30_000, 3_600_000), ReadOnly;
    /// group.share.max.session.timeout.ms
    "group.share.max.session.timeout.ms" group_share_max_session_timeout_ms: i32 =
        "60000", AtLeast(1), ReadOnly;
    /// group.share.max.share.sessions
    "group.share.max.share.sessions" group_share_max_share_sessions: i32 =
        "2000", AtLeast(1), ReadOnly;
    /// group.share.max.size
    "group.share.max.size" group_share_max_size: i32 = "200", Between(1, 1000), ReadOnly;
    /// group.share.min.heartbeat.interval.ms
    "group.share.min.heartbeat.interval.ms" group_share_min_heartbeat_interval_ms: i32 =
        "5000", AtLeast(1), ReadOnly;
    /// group.share.min.record.lock.duration.ms
    "group.share.min.record.lock.duration.ms" group_share_min_record_lock_duration_ms: i32 =
        "15000", Between(1000, 30_000), ReadOnly;
    /// group.share.min.session.timeout.ms
    "group.share.min.session.timeout.ms" group_share_min_session_timeout_ms: i32 =
        "45000", AtLeast(1), ReadOnly;
    /// group.share.partition.max.record.locks
    "group.share.partition.max.record.locks" group_share_partition_max_record_locks: i32 =
        "2000", Between(100, 10_000), ReadOnly;
    /// group.share.persister.class.name
    "group.share.persister.class.name" group_share_persister_class_name: String =
        "org.apache.kafka.server.share.persister.DefaultStatePersister", Any, ReadOnly, Internal;
    /// group.share.record.lock.duration.ms
    "group.share.record.lock.duration.ms" group_share_record_lock_duration_ms: i32 =
        "30000", Between(1000, 3_600_000), ReadOnly;
    /// group.share.session.timeout.ms
    "group.share.session.timeout.ms" group_share_session_timeout_ms: i32 =
        "45000", AtLeast(1), ReadOnly;
    /// group.streams.heartbeat.interval.ms
    "group.streams.heartbeat.interval.ms" group_streams_heartbeat_interval_ms: i32 =
        "5000", AtLeast(1), ReadOnly;
    /// group.streams.max.heartbeat.interval.ms
    "group.streams.max.heartbeat.interval.ms" group_streams_max_heartbeat_interval_ms: i32 =
        "15000", AtLeast(1), ReadOnly;
    /// group.streams.max.session.timeout.ms
    "group.streams.max.session.timeout.ms" group_streams_max_session_timeout_ms: i32 =
        "60000", AtLeast(1), ReadOnly;
    /// group.streams.max.size
    "group.streams.max.size" group_streams_max_size: i32 = "2147483647", AtLeast(1), ReadOnly;
    /// group.streams.max.standby.replicas
    "group.streams.max.standby.replicas" group_streams_max_standby_replicas: i32 =
        "2", AtLeast(0), ReadOnly;
    /// group.streams.min.heartbeat.interval.ms
    "group.streams.min.heartbeat.interval.ms" group_streams_min_heartbeat_interval_ms: i32 =
        "5000", AtLeast(1), ReadOnly;
    /// group.streams.min.session.timeout.ms
    "group.streams.min.session.timeout.ms" group_streams_min_session_timeout_ms: i32 =
        "45000", AtLeast(1), ReadOnly;
    /// group.streams.num.standby.replicas
    "group.streams.num.standby.replicas" group_streams_num_standby_replicas: i32 =
        "0", AtLeast(0), ReadOnly;
    /// group.streams.session.timeout.ms
    "group.streams.session.timeout.ms" group_streams_session_timeout_ms: i32 =
        "45000", AtLeast(1), ReadOnly;
    /// initial.broker.registration.timeout.ms
    "initial.broker.registration.timeout.ms" initial_broker_registration_timeout_ms: i32 =
        "60000", Any, ReadOnly;
    /// inter.broker.listener.name
    "inter.broker.listener.name" inter_broker_listener_name: Option<String> = Null, Any, ReadOnly;
    /// internal.metadata.delete.delay.millis
    "internal.metadata.delete.delay.millis" internal_metadata_delete_delay_millis: i64 =
        "60000", Any, ReadOnly, Internal;
    /// internal.metadata.log.segment.bytes
    "internal.metadata.log.segment.bytes" internal_metadata_log_segment_bytes: Option<i32> =
        Null, Any, ReadOnly, Internal;
    /// internal.metadata.max.batch.size.in.bytes
    "internal.metadata.max.batch.size.in.bytes" internal_metadata_max_batch_size_in_bytes: i32 =
        "8388608", Any, ReadOnly, Internal;
    /// internal.metadata.max.fetch.size.in.bytes
    "internal.metadata.max.fetch.size.in.bytes" internal_metadata_max_fetch_size_in_bytes: i32 =
        "8388608", Any, ReadOnly, Internal;
    /// kafka.metrics.polling.interval.secs
    "kafka.metrics.polling.interval.secs" kafka_metrics_polling_interval_secs: i32 =
        "10", AtLeast(1), ReadOnly;
    /// kafka.metrics.reporters
    "kafka.metrics.reporters" kafka_metrics_reporters: Vec<String> = "", Any, ReadOnly;
    /// leader.imbalance.check.interval.seconds
    "leader.imbalance.check.interval.seconds" leader_imbalance_check_interval_seconds: i64 =
        "300", AtLeast(1), ReadOnly;
    /// listener.security.protocol.map
    "listener.security.protocol.map" listener_security_protocol_map: String =
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", Any, PerBroker;
    /// listeners
    "listeners" listeners: String = "PLAINTEXT://:9092", Any, PerBroker;
    /// log.cleaner.backoff.ms
    "log.cleaner.backoff.ms" log_cleaner_backoff_ms: i64 = "15000", AtLeast(0), ClusterWide;
    /// log.cleaner.dedupe.buffer.size
    "log.cleaner.dedupe.buffer.size" log_cleaner_dedupe_buffer_size: i64 =
        "134217728", Any, ClusterWide;
    /// log.cleaner.delete.retention.ms
    "log.cleaner.delete.retention.ms" log_cleaner_delete_retention_ms: i64 =
        "86400000", AtLeast(0), ClusterWide;
    /// log.cleaner.enable
    "log.cleaner.enable" log_cleaner_enable: bool = "true", Any, ReadOnly;
    /// log.cleaner.io.buffer.load.factor
    "log.cleaner.io.buffer.load.factor" log_cleaner_io_buffer_load_factor: f64 =
        "0.9", Any, ClusterWide;
    /// log.cleaner.io.buffer.size
    "log.cleaner.io.buffer.size" log_cleaner_io_buffer_size: i32 =
        "524288", AtLeast(0), ClusterWide;
    /// log.cleaner.io.max.bytes.per.second
    "log.cleaner.io.max.bytes.per.second" log_cleaner_io_max_bytes_per_second: f64 =
        "1.7976931348623157E308", Any, ClusterWide;
    /// log.cleaner.max.compaction.lag.ms
    "log.cleaner.max.compaction.lag.ms" log_cleaner_max_compaction_lag_ms: i64 =
        "9223372036854775807", AtLeast(1), ClusterWide;
    /// log.cleaner.min.cleanable.ratio
    "log.cleaner.min.cleanable.ratio" log_cleaner_min_cleanable_ratio: f64 =
        "0.5", BetweenReal(0.0, 1.0), ClusterWide;
    /// log.cleaner.min.compaction.lag.ms
    "log.cleaner.min.compaction.lag.ms" log_cleaner_min_compaction_lag_ms: i64 =
        "0", AtLeast(0), ClusterWide;
    /// log.cleaner.threads
    "log.cleaner.threads" log_cleaner_threads: i32 = "1", AtLeast(0), ClusterWide;
    /// log.cleanup.policy
    "log.cleanup.policy" log_cleanup_policy: Vec<String> =
        "delete", OneOf(CLEANUP_POLICIES), ClusterWide;
    /// log.dir
    "log.dir" log_dir: String = "/tmp/kafka-logs", Any, ReadOnly;
    /// log.dir.failure.timeout.ms
    "log.dir.failure.timeout.ms" log_dir_failure_timeout_ms: i64 = "30000", AtLeast(1), ReadOnly;
    /// log.dirs
    "log.dirs" log_dirs: Option<String> = Null, Any, ReadOnly;
    /// log.flush.interval.messages
    "log.flush.interval.messages" log_flush_interval_messages: i64 =
        "9223372036854775807", AtLeast(1), ClusterWide;
    /// log.flush.interval.ms
    "log.flush.interval.ms" log_flush_interval_ms: Option<i64> = Null, Any, ClusterWide;
    /// log.flush.offset.checkpoint.interval.ms
    "log.flush.offset.checkpoint.interval.ms" log_flush_offset_checkpoint_interval_ms: i32 =
        "60000", AtLeast(0), ReadOnly;
    /// log.flush.scheduler.interval.ms
    "log.flush.scheduler.interval.ms" log_flush_scheduler_interval_ms: i64 =
        "9223372036854775807", Any, ReadOnly;
    /// log.flush.start.offset.checkpoint.interval.ms
    "log.flush.start.offset.checkpoint.interval.ms" log_flush_start_offset_checkpoint_interval_ms: i32 =
        "60000", AtLeast(0), ReadOnly;
    /// log.index.interval.bytes
    "log.index.interval.bytes" log_index_interval_bytes: i32 = "4096", AtLeast(0), ClusterWide;
    /// log.index.size.max.bytes
    "log.index.size.max.bytes" log_index_size_max_bytes: i32 = "10485760", AtLeast(4), ClusterWide;
    /// log.initial.task.delay.ms
    "log.initial.task.delay.ms" log_initial_task_delay_ms: i64 =
        "30000", AtLeast(0), ReadOnly, Internal;
    /// log.local.retention.bytes
    "log.local.retention.bytes" log_local_retention_bytes: i64 = "-2", AtLeast(-2), ClusterWide;
    /// log.local.retention.ms
    "log.local.retention.ms" log_local_retention_ms: i64 = "-2", AtLeast(-2), ClusterWide;
    /// log.message.timestamp.after.max.ms
    "log.message.timestamp.after.max.ms" log_message_timestamp_after_max_ms: i64 =
        "3600000", AtLeast(0), ClusterWide;
    /// log.message.timestamp.before.max.ms
    "log.message.timestamp.before.max.ms" log_message_timestamp_before_max_ms: i64 =
        "9223372036854775807", AtLeast(0), ClusterWide;
    /// log.message.timestamp.type
    "log.message.timestamp.type" log_message_timestamp_type: String =
        "CreateTime", OneOf(TIMESTAMP_TYPES), ClusterWide;
    /// log.preallocate
    "log.preallocate" log_preallocate: bool = "false", Any, ClusterWide;
    /// log.retention.bytes
    "log.retention.bytes" log_retention_bytes: i64 = "-1", Any, ClusterWide;
    /// log.retention.check.interval.ms
    "log.retention.check.interval.ms" log_retention_check_interval_ms: i64 =
        "300000", AtLeast(1), ReadOnly;
    /// log.retention.hours
    "log.retention.hours" log_retention_hours: i32 = "168", Any, ReadOnly;
    /// log.retention.minutes
    "log.retention.minutes" log_retention_minutes: Option<i32> = Null, Any, ReadOnly;
    /// log.retention.ms
    "log.retention.ms" log_retention_ms: Option<i64> = Null, Any, ClusterWide;
    /// log.roll.hours
    "log.roll.hours" log_roll_hours: i32 = "168", AtLeast(1), ReadOnly;
    /// log.roll.jitter.hours
    "log.roll.jitter.hours" log_roll_jitter_hours: i32 = "0", AtLeast(0), ReadOnly;
    /// log.roll.jitter.ms
    "log.roll.jitter.ms" log_roll_jitter_ms: Option<i64> = Null, Any, ClusterWide;
    /// log.roll.ms
    "log.roll.ms" log_roll_ms: Option<i64> = Null, Any, ClusterWide;
    /// log.segment.bytes
    "log.segment.bytes" log_segment_bytes: i32 = "1073741824", AtLeast(1_048_576), ClusterWide;
    /// log.segment.delete.delay.ms
    "log.segment.delete.delay.ms" log_segment_delete_delay_ms: i64 =
        "60000", AtLeast(0), ClusterWide;
    /// max.connection.creation.rate
    "max.connection.creation.rate" max_connection_creation_rate: i32 =
        "2147483647", AtLeast(0), ClusterWide;
    /// max.connections
    "max.connections" max_connections: i32 = "2147483647", AtLeast(0), ClusterWide;
    /// max.connections.per.ip
    "max.connections.per.ip" max_connections_per_ip: i32 = "2147483647", AtLeast(0), ClusterWide;
    /// max.connections.per.ip.overrides
    "max.connections.per.ip.overrides" max_connections_per_ip_overrides: String =
        "", Any, ClusterWide;
    /// max.incremental.fetch.session.cache.slots
    "max.incremental.fetch.session.cache.slots" max_incremental_fetch_session_cache_slots: i32 =
        "1000", AtLeast(0), ReadOnly;
    /// max.request.partition.size.limit
    "max.request.partition.size.limit" max_request_partition_size_limit: i32 =
        "2000", AtLeast(1), ReadOnly;
    /// message.max.bytes
    "message.max.bytes" message_max_bytes: i32 = "1048588", AtLeast(0), ClusterWide;
    /// metadata.log.dir
    "metadata.log.dir" metadata_log_dir: Option<String> = Null, Any, ReadOnly;
    /// metadata.log.max.record.bytes.between.snapshots
    "metadata.log.max.record.bytes.between.snapshots" metadata_log_max_record_bytes_between_snapshots: i64 =
        "20971520", AtLeast(1), ReadOnly;
    /// metadata.log.max.snapshot.interval.ms
    "metadata.log.max.snapshot.interval.ms" metadata_log_max_snapshot_interval_ms: i64 =
        "3600000", AtLeast(0), ReadOnly;
    /// metadata.log.segment.bytes
    "metadata.log.segment.bytes" metadata_log_segment_bytes: i32 =
        "1073741824", AtLeast(8_388_608), ReadOnly;
    /// metadata.log.segment.ms
    "metadata.log.segment.ms" metadata_log_segment_ms: i64 = "604800000", Any, ReadOnly;
    /// metadata.max.idle.interval.ms
    "metadata.max.idle.interval.ms" metadata_max_idle_interval_ms: i32 =
        "500", AtLeast(0), ReadOnly;
    /// metadata.max.retention.bytes
    "metadata.max.retention.bytes" metadata_max_retention_bytes: i64 = "104857600", Any, ReadOnly;
    /// metadata.max.retention.ms
    "metadata.max.retention.ms" metadata_max_retention_ms: i64 = "604800000", Any, ReadOnly;
    /// metric.reporters
    "metric.reporters" metric_reporters: Vec<String> =
        "org.apache.kafka.common.metrics.JmxReporter", Any, ClusterWide;
    /// metrics.num.samples
    "metrics.num.samples" metrics_num_samples: i32 = "2", AtLeast(1), ReadOnly;
    /// metrics.recording.level
    "metrics.recording.level" metrics_recording_level: String = "INFO", Any, ReadOnly;
    /// metrics.sample.window.ms
    "metrics.sample.window.ms" metrics_sample_window_ms: i64 = "30000", AtLeast(1), ReadOnly;
    /// min.insync.replicas
    "min.insync.replicas" min_insync_replicas: i32 = "1", AtLeast(1), ClusterWide;
    /// node.id
    "node.id" node_id: i32 = Required, AtLeast(0), ReadOnly;
    /// num.io.threads
    "num.io.threads" num_io_threads: i32 = "8", AtLeast(1), ClusterWide;
    /// num.network.threads
    "num.network.threads" num_network_threads: i32 = "3", AtLeast(1), ClusterWide;
    /// num.partitions
    "num.partitions" num_partitions: i32 = "1", AtLeast(1), ReadOnly;
    /// num.recovery.threads.per.data.dir
    "num.recovery.threads.per.data.dir" num_recovery_threads_per_data_dir: i32 =
        "2", AtLeast(1), ClusterWide;
    /// num.replica.alter.log.dirs.threads
    "num.replica.alter.log.dirs.threads" num_replica_alter_log_dirs_threads: Option<i32> =
        Null, Any, ReadOnly;
    /// num.replica.fetchers
    "num.replica.fetchers" num_replica_fetchers: i32 = "1", Any, ClusterWide;
    /// offset.metadata.max.bytes
    "offset.metadata.max.bytes" offset_metadata_max_bytes: i32 = "4096", Any, ReadOnly;
    /// offsets.commit.timeout.ms
    "offsets.commit.timeout.ms" offsets_commit_timeout_ms: i32 = "5000", AtLeast(1), ReadOnly;
    /// offsets.load.buffer.size
    "offsets.load.buffer.size" offsets_load_buffer_size: i32 = "5242880", AtLeast(1), ReadOnly;
    /// offsets.retention.check.interval.ms
    "offsets.retention.check.interval.ms" offsets_retention_check_interval_ms: i64 =
        "600000", AtLeast(1), ReadOnly;
    /// offsets.retention.minutes
    "offsets.retention.minutes" offsets_retention_minutes: i32 = "10080", AtLeast(1), ReadOnly;
    /// offsets.topic.compression.codec
    "offsets.topic.compression.codec" offsets_topic_compression_codec: i32 = "0", Any, ReadOnly;
    /// offsets.topic.num.partitions
    "offsets.topic.num.partitions" offsets_topic_num_partitions: i32 = "50", AtLeast(1), ReadOnly;
    /// offsets.topic.replication.factor
    "offsets.topic.replication.factor" offsets_topic_replication_factor: i16 =
        "3", AtLeast(1), ReadOnly;
    /// offsets.topic.segment.bytes
    "offsets.topic.segment.bytes" offsets_topic_segment_bytes: i32 =
        "104857600", AtLeast(1), ReadOnly;
    /// principal.builder.class
    "principal.builder.class" principal_builder_class: Class =
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", Any, PerBroker;
    /// process.roles
    "process.roles" process_roles: Vec<String> =
        Required, OneOf(&["broker", "controller"]), ReadOnly;
    /// producer.id.expiration.check.interval.ms
    "producer.id.expiration.check.interval.ms" producer_id_expiration_check_interval_ms: i32 =
        "600000", AtLeast(1), ReadOnly, Internal;
    /// producer.id.expiration.ms
    "producer.id.expiration.ms" producer_id_expiration_ms: i32 =
        "86400000", AtLeast(1), ClusterWide;
    /// producer.purgatory.purge.interval.requests
    "producer.purgatory.purge.interval.requests" producer_purgatory_purge_interval_requests: i32 =
        "1000", Any, ReadOnly;
    /// queued.max.request.bytes
    "queued.max.request.bytes" queued_max_request_bytes: i64 = "-1", Any, ReadOnly;
    /// queued.max.requests
    "queued.max.requests" queued_max_requests: i32 = "500", AtLeast(1), ReadOnly;
    /// quota.window.num
    "quota.window.num" quota_window_num: i32 = "11", AtLeast(1), ReadOnly;
    /// quota.window.size.seconds
    "quota.window.size.seconds" quota_window_size_seconds: i32 = "1", AtLeast(1), ReadOnly;
    /// remote.fetch.max.wait.ms
    "remote.fetch.max.wait.ms" remote_fetch_max_wait_ms: i32 = "500", AtLeast(1), ClusterWide;
    /// remote.list.offsets.request.timeout.ms
    "remote.list.offsets.request.timeout.ms" remote_list_offsets_request_timeout_ms: i64 =
        "30000", AtLeast(1), ClusterWide;
    /// remote.log.index.file.cache.total.size.bytes
    "remote.log.index.file.cache.total.size.bytes" remote_log_index_file_cache_total_size_bytes: i64 =
        "1073741824", AtLeast(1), ClusterWide;
    /// remote.log.manager.copier.thread.pool.size
    "remote.log.manager.copier.thread.pool.size" remote_log_manager_copier_thread_pool_size: i32 =
        "10", AtLeast(1), ClusterWide;
    /// remote.log.manager.copy.max.bytes.per.second
    "remote.log.manager.copy.max.bytes.per.second" remote_log_manager_copy_max_bytes_per_second: i64 =
        "9223372036854775807", AtLeast(1), ClusterWide;
    /// remote.log.manager.copy.quota.window.num
    "remote.log.manager.copy.quota.window.num" remote_log_manager_copy_quota_window_num: i32 =
        "11", AtLeast(1), ReadOnly;
    /// remote.log.manager.copy.quota.window.size.seconds
    "remote.log.manager.copy.quota.window.size.seconds" remote_log_manager_copy_quota_window_size_seconds: i32 =
        "1", AtLeast(1), ReadOnly;
    /// remote.log.manager.expiration.thread.pool.size
    "remote.log.manager.expiration.thread.pool.size" remote_log_manager_expiration_thread_pool_size: i32 =
        "10", AtLeast(1), ClusterWide;
    /// remote.log.manager.fetch.max.bytes.per.second
    "remote.log.manager.fetch.max.bytes.per.second" remote_log_manager_fetch_max_bytes_per_second: i64 =
        "9223372036854775807", AtLeast(1), ClusterWide;
    /// remote.log.manager.fetch.quota.window.num
    "remote.log.manager.fetch.quota.window.num" remote_log_manager_fetch_quota_window_num: i32 =
        "11", AtLeast(1), ReadOnly;
    /// remote.log.manager.fetch.quota.window.size.seconds
    "remote.log.manager.fetch.quota.window.size.seconds" remote_log_manager_fetch_quota_window_size_seconds: i32 =
        "1", AtLeast(1), ReadOnly;
    /// remote.log.manager.task.interval.ms
    "remote.log.manager.task.interval.ms" remote_log_manager_task_interval_ms: i64 =
        "30000", AtLeast(1), ReadOnly;
    /// remote.log.manager.task.retry.backoff.max.ms
    "remote.log.manager.task.retry.backoff.max.ms" remote_log_manager_task_retry_backoff_max_ms: i64 =
        "30000", AtLeast(1), ReadOnly, Internal;
    /// remote.log.manager.task.retry.backoff.ms
    "remote.log.manager.task.retry.backoff.ms" remote_log_manager_task_retry_backoff_ms: i64 =
        "500", AtLeast(1), ReadOnly, Internal;
    /// remote.log.manager.task.retry.jitter
    "remote.log.manager.task.retry.jitter" remote_log_manager_task_retry_jitter: f64 =
        "0.2", BetweenReal(0.0, 0.5), ReadOnly, Internal;
    /// remote.log.manager.thread.pool.size
    "remote.log.manager.thread.pool.size" remote_log_manager_thread_pool_size: i32 =
        "2", AtLeast(1), ReadOnly;
    /// remote.log.metadata.custom.metadata.max.bytes
    "remote.log.metadata.custom.metadata.max.bytes" remote_log_metadata_custom_metadata_max_bytes: i32 =
        "128", AtLeast(0), ReadOnly;
    /// remote.log.metadata.manager.class.name
    "remote.log.metadata.manager.class.name" remote_log_metadata_manager_class_name: String =
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", NonEmptyText, ReadOnly;
    /// remote.log.metadata.manager.class.path
    "remote.log.metadata.manager.class.path" remote_log_metadata_manager_class_path: Option<String> =
        Null, Any, ReadOnly;
    /// remote.log.metadata.manager.impl.prefix
    "remote.log.metadata.manager.impl.prefix" remote_log_metadata_manager_impl_prefix: String =
        "rlmm.config.", NonEmptyText, ReadOnly;
    /// remote.log.metadata.manager.listener.name
    "remote.log.metadata.manager.listener.name" remote_log_metadata_manager_listener_name: Option<String> =
        Null, NonEmptyText, ReadOnly;
    /// remote.log.reader.max.pending.tasks
    "remote.log.reader.max.pending.tasks" remote_log_reader_max_pending_tasks: i32 =
        "100", AtLeast(1), ReadOnly;
    /// remote.log.reader.threads
    "remote.log.reader.threads" remote_log_reader_threads: i32 = "10", AtLeast(1), ClusterWide;
    /// remote.log.storage.manager.class.name
    "remote.log.storage.manager.class.name" remote_log_storage_manager_class_name: Option<String> =
        Null, NonEmptyText, ReadOnly;
    /// remote.log.storage.manager.class.path
    "remote.log.storage.manager.class.path" remote_log_storage_manager_class_path: Option<String> =
        Null, Any, ReadOnly;
    /// remote.log.storage.manager.impl.prefix
    "remote.log.storage.manager.impl.prefix" remote_log_storage_manager_impl_prefix: String =
        "rsm.config.", NonEmptyText, ReadOnly;
    /// remote.log.storage.system.enable
    "remote.log.storage.system.enable" remote_log_storage_system_enable: bool =
        "false", Any, ReadOnly;
    /// replica.fetch.backoff.ms
    "replica.fetch.backoff.ms" replica_fetch_backoff_ms: i32 = "1000", AtLeast(0), ReadOnly;
    /// replica.fetch.max.bytes
    "replica.fetch.max.bytes" replica_fetch_max_bytes: i32 = "1048576", AtLeast(0), ReadOnly;
    /// replica.fetch.min.bytes
    "replica.fetch.min.bytes" replica_fetch_min_bytes: i32 = "1", Any, ReadOnly;
    /// replica.fetch.response.max.bytes
    "replica.fetch.response.max.bytes" replica_fetch_response_max_bytes: i32 =
        "10485760", AtLeast(0), ReadOnly;
    /// replica.fetch.wait.max.ms
    "replica.fetch.wait.max.ms" replica_fetch_wait_max_ms: i32 = "500", Any, ReadOnly;
    /// replica.high.watermark.checkpoint.interval.ms
    "replica.high.watermark.checkpoint.interval.ms" replica_high_watermark_checkpoint_interval_ms: i64 =
        "5000", Any, ReadOnly;
    /// replica.lag.time.max.ms
    "replica.lag.time.max.ms" replica_lag_time_max_ms: i64 = "30000", Any, ReadOnly;
    /// replica.selector.class
    "replica.selector.class" replica_selector_class: Option<String> = Null, Any, ReadOnly;
    /// replica.socket.receive.buffer.bytes
    "replica.socket.receive.buffer.bytes" replica_socket_receive_buffer_bytes: i32 =
        "65536", Any, ReadOnly;
    /// replica.socket.timeout.ms
    "replica.socket.timeout.ms" replica_socket_timeout_ms: i32 = "30000", Any, ReadOnly;
    /// replication.quota.window.num
    "replication.quota.window.num" replication_quota_window_num: i32 = "11", AtLeast(1), ReadOnly;
    /// replication.quota.window.size.seconds
    "replication.quota.window.size.seconds" replication_quota_window_size_seconds: i32 =
        "1", AtLeast(1), ReadOnly;
    /// request.timeout.ms
    "request.timeout.ms" request_timeout_ms: i32 = "30000", Any, ReadOnly;
    /// sasl.client.callback.handler.class
    "sasl.client.callback.handler.class" sasl_client_callback_handler_class: Option<Class> =
        Null, Any, ReadOnly;
    /// sasl.enabled.mechanisms
    "sasl.enabled.mechanisms" sasl_enabled_mechanisms: Vec<String> = "GSSAPI", Any, PerBroker;
    /// sasl.jaas.config
    "sasl.jaas.config" sasl_jaas_config: Option<Password> = Null, Any, PerBroker;
    /// sasl.kerberos.kinit.cmd
    "sasl.kerberos.kinit.cmd" sasl_kerberos_kinit_cmd: String = "/usr/bin/kinit", Any, PerBroker;
    /// sasl.kerberos.min.time.before.relogin
    "sasl.kerberos.min.time.before.relogin" sasl_kerberos_min_time_before_relogin: i64 =
        "60000", Any, PerBroker;
    /// sasl.kerberos.principal.to.local.rules
    "sasl.kerberos.principal.to.local.rules" sasl_kerberos_principal_to_local_rules: Vec<String> =
        "DEFAULT", Any, PerBroker;
    /// sasl.kerberos.service.name
    "sasl.kerberos.service.name" sasl_kerberos_service_name: Option<String> = Null, Any, PerBroker;
    /// sasl.kerberos.ticket.renew.jitter
    "sasl.kerberos.ticket.renew.jitter" sasl_kerberos_ticket_renew_jitter: f64 =
        "0.05", Any, PerBroker;
    /// sasl.kerberos.ticket.renew.window.factor
    "sasl.kerberos.ticket.renew.window.factor" sasl_kerberos_ticket_renew_window_factor: f64 =
        "0.8", Any, PerBroker;
    /// sasl.login.callback.handler.class
    "sasl.login.callback.handler.class" sasl_login_callback_handler_class: Option<Class> =
        Null, Any, ReadOnly;
    /// sasl.login.class
    "sasl.login.class" sasl_login_class: Option<Class> = Null, Any, ReadOnly;
    /// sasl.login.connect.timeout.ms
    "sasl.login.connect.timeout.ms" sasl_login_connect_timeout_ms: Option<i32> =
        Null, Any, ReadOnly;
    /// sasl.login.read.timeout.ms
    "sasl.login.read.timeout.ms" sasl_login_read_timeout_ms: Option<i32> = Null, Any, ReadOnly;
    /// sasl.login.refresh.buffer.seconds
    "sasl.login.refresh.buffer.seconds" sasl_login_refresh_buffer_seconds: i16 =
        "300", Any, PerBroker;
    /// sasl.login.refresh.min.period.seconds
    "sasl.login.refresh.min.period.seconds" sasl_login_refresh_min_period_seconds: i16 =
        "60", Any, PerBroker;
    /// sasl.login.refresh.window.factor
    "sasl.login.refresh.window.factor" sasl_login_refresh_window_factor: f64 =
        "0.8", Any, PerBroker;
    /// sasl.login.refresh.window.jitter
    "sasl.login.refresh.window.jitter" sasl_login_refresh_window_jitter: f64 =
        "0.05", Any, PerBroker;
    /// sasl.login.retry.backoff.max.ms
    "sasl.login.retry.backoff.max.ms" sasl_login_retry_backoff_max_ms: i64 = "10000", Any, ReadOnly;
    /// sasl.login.retry.backoff.ms
    "sasl.login.retry.backoff.ms" sasl_login_retry_backoff_ms: i64 = "100", Any, ReadOnly;
    /// sasl.mechanism.controller.protocol
    "sasl.mechanism.controller.protocol" sasl_mechanism_controller_protocol: String =
        "GSSAPI", Any, ReadOnly;
    /// sasl.mechanism.inter.broker.protocol
    "sasl.mechanism.inter.broker.protocol" sasl_mechanism_inter_broker_protocol: String =
        "GSSAPI", Any, PerBroker;
    /// sasl.oauthbearer.assertion.algorithm
    "sasl.oauthbearer.assertion.algorithm" sasl_oauthbearer_assertion_algorithm: String =
        "RS256", OneOfAnyCase(&["ES256", "RS256"]), ReadOnly;
    /// sasl.oauthbearer.assertion.claim.aud
    "sasl.oauthbearer.assertion.claim.aud" sasl_oauthbearer_assertion_claim_aud: Option<String> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.assertion.claim.exp.seconds
    "sasl.oauthbearer.assertion.claim.exp.seconds" sasl_oauthbearer_assertion_claim_exp_seconds: i32 =
        "300", Between(0, 86_400), ReadOnly;
    /// sasl.oauthbearer.assertion.claim.iss
    "sasl.oauthbearer.assertion.claim.iss" sasl_oauthbearer_assertion_claim_iss: Option<String> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.assertion.claim.jti.include
    "sasl.oauthbearer.assertion.claim.jti.include" sasl_oauthbearer_assertion_claim_jti_include: bool =
        "false", Any, ReadOnly;
    /// sasl.oauthbearer.assertion.claim.nbf.seconds
    "sasl.oauthbearer.assertion.claim.nbf.seconds" sasl_oauthbearer_assertion_claim_nbf_seconds: i32 =
        "60", Between(0, 3600), ReadOnly;
    /// sasl.oauthbearer.assertion.claim.sub
    "sasl.oauthbearer.assertion.claim.sub" sasl_oauthbearer_assertion_claim_sub: Option<String> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.assertion.file
    "sasl.oauthbearer.assertion.file" sasl_oauthbearer_assertion_file: Option<String> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.assertion.private.key.file
    "sasl.oauthbearer.assertion.private.key.file" sasl_oauthbearer_assertion_private_key_file: Option<String> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.assertion.private.key.passphrase
    "sasl.oauthbearer.assertion.private.key.passphrase" sasl_oauthbearer_assertion_private_key_passphrase: Option<Password> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.assertion.template.file
    "sasl.oauthbearer.assertion.template.file" sasl_oauthbearer_assertion_template_file: Option<String> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.client.credentials.client.id
    "sasl.oauthbearer.client.credentials.client.id" sasl_oauthbearer_client_credentials_client_id: Option<String> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.client.credentials.client.secret
    "sasl.oauthbearer.client.credentials.client.secret" sasl_oauthbearer_client_credentials_client_secret: Option<Password> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.clock.skew.seconds
    "sasl.oauthbearer.clock.skew.seconds" sasl_oauthbearer_clock_skew_seconds: i32 =
        "30", Any, ReadOnly;
    /// sasl.oauthbearer.expected.audience
    "sasl.oauthbearer.expected.audience" sasl_oauthbearer_expected_audience: Option<Vec<String>> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.expected.issuer
    "sasl.oauthbearer.expected.issuer" sasl_oauthbearer_expected_issuer: Option<String> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.jwks.endpoint.refresh.ms
    "sasl.oauthbearer.jwks.endpoint.refresh.ms" sasl_oauthbearer_jwks_endpoint_refresh_ms: i64 =
        "3600000", Any, ReadOnly;
    /// sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms" sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: i64 =
        "10000", Any, ReadOnly;
    /// sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms" sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: i64 =
        "100", Any, ReadOnly;
    /// sasl.oauthbearer.jwks.endpoint.url
    "sasl.oauthbearer.jwks.endpoint.url" sasl_oauthbearer_jwks_endpoint_url: Option<String> =
        Null, Any, ReadOnly;
    /// sasl.oauthbearer.jwt.retriever.class
    "sasl.oauthbearer.jwt.retriever.class" sasl_oauthbearer_jwt_retriever_class: Class =
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", Any, ReadOnly;
    /// sasl.oauthbearer.jwt.validator.class
    "sasl.oauthbearer.jwt.validator.class" sasl_oauthbearer_jwt_validator_class: Class =
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", Any, ReadOnly;
    /// sasl.oauthbearer.scope
    "sasl.oauthbearer.scope" sasl_oauthbearer_scope: Option<String> = Null, Any, ReadOnly;
    /// sasl.oauthbearer.scope.claim.name
    "sasl.oauthbearer.scope.claim.name" sasl_oauthbearer_scope_claim_name: String =
        "scope", Any, ReadOnly;
    /// sasl.oauthbearer.sub.claim.name
    "sasl.oauthbearer.sub.claim.name" sasl_oauthbearer_sub_claim_name: String =
        "sub", Any, ReadOnly;
    /// sasl.oauthbearer.token.endpoint.url
    "sasl.oauthbearer.token.endpoint.url" sasl_oauthbearer_token_endpoint_url: Option<String> =
        Null, Any, ReadOnly;
    /// sasl.server.callback.handler.class
    "sasl.server.callback.handler.class" sasl_server_callback_handler_class: Option<Class> =
        Null, Any, ReadOnly;
    /// sasl.server.max.receive.size
    "sasl.server.max.receive.size" sasl_server_max_receive_size: i32 = "524288", Any, ReadOnly;
    /// security.inter.broker.protocol
    "security.inter.broker.protocol" security_inter_broker_protocol: String =
        "PLAINTEXT", OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]), ReadOnly;
    /// security.providers
    "security.providers" security_providers: Option<String> = Null, Any, ReadOnly;
    /// server.max.startup.time.ms
    "server.max.startup.time.ms" server_max_startup_time_ms: i64 =
        "9223372036854775807", AtLeast(0), ReadOnly, Internal;
    /// share.coordinator.append.linger.ms
    "share.coordinator.append.linger.ms" share_coordinator_append_linger_ms: i32 =
        "5", AtLeast(0), ReadOnly;
    /// share.coordinator.cold.partition.snapshot.interval.ms
    "share.coordinator.cold.partition.snapshot.interval.ms" share_coordinator_cold_partition_snapshot_interval_ms: i32 =
        "300000", AtLeast(1), ReadOnly, Internal;
    /// share.coordinator.load.buffer.size
    "share.coordinator.load.buffer.size" share_coordinator_load_buffer_size: i32 =
        "5242880", AtLeast(1), ReadOnly;
    /// share.coordinator.snapshot.update.records.per.snapshot
    "share.coordinator.snapshot.update.records.per.snapshot" share_coordinator_snapshot_update_records_per_snapshot: i32 =
        "500", AtLeast(0), ReadOnly;
    /// share.coordinator.state.topic.compression.codec
    "share.coordinator.state.topic.compression.codec" share_coordinator_state_topic_compression_codec: i32 =
        "0", Any, ReadOnly;
    /// share.coordinator.state.topic.min.isr
    "share.coordinator.state.topic.min.isr" share_coordinator_state_topic_min_isr: i16 =
        "2", AtLeast(1), ReadOnly;
    /// share.coordinator.state.topic.num.partitions
    "share.coordinator.state.topic.num.partitions" share_coordinator_state_topic_num_partitions: i32 =
        "50", AtLeast(1), ReadOnly;
    /// share.coordinator.state.topic.prune.interval.ms
    "share.coordinator.state.topic.prune.interval.ms" share_coordinator_state_topic_prune_interval_ms: i32 =
        "300000", AtLeast(1), ReadOnly, Internal;
    /// share.coordinator.state.topic.replication.factor
    "share.coordinator.state.topic.replication.factor" share_coordinator_state_topic_replication_factor: i16 =
        "3", AtLeast(1), ReadOnly;
    /// share.coordinator.state.topic.segment.bytes
    "share.coordinator.state.topic.segment.bytes" share_coordinator_state_topic_segment_bytes: i32 =
        "104857600", AtLeast(1), ReadOnly;
    /// share.coordinator.threads
    "share.coordinator.threads" share_coordinator_threads: i32 = "1", AtLeast(1), ReadOnly;
    /// share.coordinator.write.timeout.ms
    "share.coordinator.write.timeout.ms" share_coordinator_write_timeout_ms: i32 =
        "5000", AtLeast(1), ReadOnly;
    /// share.fetch.purgatory.purge.interval.requests
    "share.fetch.purgatory.purge.interval.requests" share_fetch_purgatory_purge_interval_requests: i32 =
        "1000", Any, ReadOnly;
    /// socket.connection.setup.timeout.max.ms
    "socket.connection.setup.timeout.max.ms" socket_connection_setup_timeout_max_ms: i64 =
        "30000", Any, ReadOnly;
    /// socket.connection.setup.timeout.ms
    "socket.connection.setup.timeout.ms" socket_connection_setup_timeout_ms: i64 =
        "10000", Any, ReadOnly;
    /// socket.listen.backlog.size
    "socket.listen.backlog.size" socket_listen_backlog_size: i32 = "50", AtLeast(1), ReadOnly;
    /// socket.receive.buffer.bytes
    "socket.receive.buffer.bytes" socket_receive_buffer_bytes: i32 = "102400", Any, ReadOnly;
    /// socket.request.max.bytes
    "socket.request.max.bytes" socket_request_max_bytes: i32 = "104857600", AtLeast(1), ReadOnly;
    /// socket.send.buffer.bytes
    "socket.send.buffer.bytes" socket_send_buffer_bytes: i32 = "102400", Any, ReadOnly;
    /// ssl.allow.dn.changes
    "ssl.allow.dn.changes" ssl_allow_dn_changes: bool = "false", Any, ReadOnly;
    /// ssl.allow.san.changes
    "ssl.allow.san.changes" ssl_allow_san_changes: bool = "false", Any, ReadOnly;
    /// ssl.cipher.suites
    "ssl.cipher.suites" ssl_cipher_suites: Vec<String> = "", Any, PerBroker;
    /// ssl.client.auth
    "ssl.client.auth" ssl_client_auth: String =
        "none", OneOf(&["required", "requested", "none"]), PerBroker;
    /// ssl.enabled.protocols
    "ssl.enabled.protocols" ssl_enabled_protocols: Vec<String> = "TLSv1.2,TLSv1.3", Any, PerBroker;
    /// ssl.endpoint.identification.algorithm
    "ssl.endpoint.identification.algorithm" ssl_endpoint_identification_algorithm: String =
        "https", Any, PerBroker;
    /// ssl.engine.factory.class
    "ssl.engine.factory.class" ssl_engine_factory_class: Option<Class> = Null, Any, PerBroker;
    /// ssl.key.password
    "ssl.key.password" ssl_key_password: Option<Password> = Null, Any, PerBroker;
    /// ssl.keymanager.algorithm
    "ssl.keymanager.algorithm" ssl_keymanager_algorithm: String = "SunX509", Any, PerBroker;
    /// ssl.keystore.certificate.chain
    "ssl.keystore.certificate.chain" ssl_keystore_certificate_chain: Option<Password> =
        Null, Any, PerBroker;
    /// ssl.keystore.key
    "ssl.keystore.key" ssl_keystore_key: Option<Password> = Null, Any, PerBroker;
    /// ssl.keystore.location
    "ssl.keystore.location" ssl_keystore_location: Option<String> = Null, Any, PerBroker;
    /// ssl.keystore.password
    "ssl.keystore.password" ssl_keystore_password: Option<Password> = Null, Any, PerBroker;
    /// ssl.keystore.type
    "ssl.keystore.type" ssl_keystore_type: String = "JKS", Any, PerBroker;
    /// ssl.principal.mapping.rules
    "ssl.principal.mapping.rules" ssl_principal_mapping_rules: String = "DEFAULT", Any, ReadOnly;
    /// ssl.protocol
    "ssl.protocol" ssl_protocol: String = "TLSv1.3", Any, PerBroker;
    /// ssl.provider
    "ssl.provider" ssl_provider: Option<String> = Null, Any, PerBroker;
    /// ssl.secure.random.implementation
    "ssl.secure.random.implementation" ssl_secure_random_implementation: Option<String> =
        Null, Any, PerBroker;
    /// ssl.trustmanager.algorithm
    "ssl.trustmanager.algorithm" ssl_trustmanager_algorithm: String = "PKIX", Any, PerBroker;
    /// ssl.truststore.certificates
    "ssl.truststore.certificates" ssl_truststore_certificates: Option<Password> =
        Null, Any, PerBroker;
    /// ssl.truststore.location
    "ssl.truststore.location" ssl_truststore_location: Option<String> = Null, Any, PerBroker;
    /// ssl.truststore.password
    "ssl.truststore.password" ssl_truststore_password: Option<Password> = Null, Any, PerBroker;
    /// ssl.truststore.type
    "ssl.truststore.type" ssl_truststore_type: String = "JKS", Any, PerBroker;
    /// telemetry.max.bytes
    "telemetry.max.bytes" telemetry_max_bytes: i32 = "1048576", AtLeast(1), ReadOnly;
    /// transaction.abort.timed.out.transaction.cleanup.interval.ms
    "transaction.abort.timed.out.transaction.cleanup.interval.ms" transaction_abort_timed_out_transaction_cleanup_interval_ms: i32 =
        "10000", AtLeast(1), ReadOnly;
    /// transaction.max.timeout.ms
    "transaction.max.timeout.ms" transaction_max_timeout_ms: i32 = "900000", AtLeast(1), ReadOnly;
    /// transaction.partition.verification.enable
    "transaction.partition.verification.enable" transaction_partition_verification_enable: bool =
        "true", Any, ClusterWide;
    /// transaction.remove.expired.transaction.cleanup.interval.ms
    "transaction.remove.expired.transaction.cleanup.interval.ms" transaction_remove_expired_transaction_cleanup_interval_ms: i32 =
        "3600000", AtLeast(1), ReadOnly;
    /// transaction.state.log.load.buffer.size
    "transaction.state.log.load.buffer.size" transaction_state_log_load_buffer_size: i32 =
        "5242880", AtLeast(1), ReadOnly;
    /// transaction.state.log.min.isr
    "transaction.state.log.min.isr" transaction_state_log_min_isr: i32 = "2", AtLeast(1), ReadOnly;
    /// transaction.state.log.num.partitions
    "transaction.state.log.num.partitions" transaction_state_log_num_partitions: i32 =
        "50", AtLeast(1), ReadOnly;
    /// transaction.state.log.replication.factor
    "transaction.state.log.replication.factor" transaction_state_log_replication_factor: i16 =
        "3", AtLeast(1), ReadOnly;
    /// transaction.state.log.segment.bytes
    "transaction.state.log.segment.bytes" transaction_state_log_segment_bytes: i32 =
        "104857600", AtLeast(1), ReadOnly;
    /// transaction.two.phase.commit.enable
    "transaction.two.phase.commit.enable" transaction_two_phase_commit_enable: bool =
        "false", Any, ReadOnly;
    /// transactional.id.expiration.ms
    "transactional.id.expiration.ms" transactional_id_expiration_ms: i32 =
        "604800000", AtLeast(1), ReadOnly;
    /// unclean.leader.election.enable
    "unclean.leader.election.enable" unclean_leader_election_enable: bool =
        "false", Any, ClusterWide;
    /// unclean.leader.election.interval.ms
    "unclean.leader.election.interval.ms" unclean_leader_election_interval_ms: i64 =
        "300000", AtLeast(1), ReadOnly, Internal;
    /// unstable.api.versions.enable
    "unstable.api.versions.enable" unstable_api_versions_enable: bool =
        "false", Any, ReadOnly, Internal;
    /// unstable.feature.versions.enable
    "unstable.feature.versions.enable" unstable_feature_versions_enable: bool =
        "false", Any, ReadOnly, Internal;
}
