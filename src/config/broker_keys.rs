//! The options of a broker and of a controller, in the order a reader looks for them.
//!
//! Names, types, defaults, bounds and modes are those of Apache Kafka 4.1.2, key for key; the
//! test of [`super`] holds the table to it. What the options mean together is in
//! [`super::broker`].

use super::broker::{Given, Roles, Voter};
use super::key::config_keys;
use super::listeners::Endpoints;
use super::topic::{CLEANUP_POLICIES, COMPRESSION_TYPES, TIMESTAMP_TYPES};
use super::value::{Class, Password};

config_keys! {
    /// Everything a broker can be told, one field an option.
    BrokerConfig in Broker, table BROKER_KEYS, with {
        /// What was given, word for word, with the names that are not in the table.
        given: Given,
        /// What the node does.
        roles: Roles,
        /// The controllers that elect their leader among themselves.
        voters: Vec<Voter>,
        /// Every address, read.
        endpoints: Endpoints,
    };

    // Identity, roles, listeners
    /// The number that names this node among all brokers and controllers of the cluster.
    "node.id" node_id: i32 = Required, AtLeast(0), ReadOnly;
    /// The older name of `node.id`; where both are given they must agree.
    "broker.id" broker_id: i32 = "-1", Any, ReadOnly;
    /// What this node does: serve data as a `broker`, keep the metadata as a `controller`, or both.
    "process.roles"
        process_roles: Vec<String> = Required, OneOf(&["broker", "controller"]), ReadOnly;
    /// Where this broker stands; replicas are spread over racks, and clients may read from the
    /// nearest.
    "broker.rack" broker_rack: Option<String> = Null, Any, ReadOnly;
    /// The addresses to listen on, each as `NAME://host:port`; without a host, on every interface.
    "listeners" listeners: String = "PLAINTEXT://:9092", Any, PerBroker;
    /// The addresses that clients and other brokers are told; by default those of `listeners`.
    "advertised.listeners" advertised_listeners: Option<String> = Null, Any, ReadOnly;
    /// Which security protocol each named listener speaks, as `NAME:PROTOCOL`.
    "listener.security.protocol.map"
        listener_security_protocol_map: String =
            "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
            Any, PerBroker;
    /// The listener by which brokers reach each other.
    "inter.broker.listener.name" inter_broker_listener_name: Option<String> = Null, Any, ReadOnly;
    /// The protocol between brokers, for those who do not name a listener for it.
    "security.inter.broker.protocol"
        security_inter_broker_protocol: String =
            "PLAINTEXT", OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]), ReadOnly;
    /// The listeners by which controllers are reached; a broker uses the first of them.
    "controller.listener.names" controller_listener_names: Option<String> = Null, Any, ReadOnly;
    /// Listeners that would open before the authorizer is ready; here all wait for it.
    "early.start.listeners" early_start_listeners: Option<String> = Null, Any, ReadOnly, Inert;
    /// The controllers that elect their leader, each as `id@host:port`.
    "controller.quorum.voters" controller_quorum_voters: Vec<String> = "", NonEmptyList, ReadOnly;
    /// Addresses from which a node learns who the controllers are.
    "controller.quorum.bootstrap.servers"
        controller_quorum_bootstrap_servers: Vec<String> = "", NonEmptyList, ReadOnly;
    /// How long a starting broker tries to be admitted by the controller before it gives up.
    "initial.broker.registration.timeout.ms"
        initial_broker_registration_timeout_ms: i32 = "60000", Any, ReadOnly;
    /// How often a broker tells the controller that it lives.
    "broker.heartbeat.interval.ms" broker_heartbeat_interval_ms: i32 = "2000", Any, ReadOnly;
    /// How long the controller waits for a broker's word before it counts the broker as gone.
    "broker.session.timeout.ms" broker_session_timeout_ms: i32 = "9000", Any, ReadOnly;
    /// Whether a stopping broker first hands its leaderships to others.
    "controlled.shutdown.enable" controlled_shutdown_enable: bool = "true", Any, ReadOnly;
    /// How long a starting node may wait for what it needs before it exits.
    "server.max.startup.time.ms"
        server_max_startup_time_ms: i64 = "9223372036854775807", AtLeast(0), ReadOnly, Internal;

    // Network and requests
    /// Threads that would move bytes between sockets and queues; here tasks share all cores.
    "num.network.threads" num_network_threads: i32 = "3", AtLeast(1), ClusterWide, Inert;
    /// Threads that would work on requests; here tasks share all cores.
    "num.io.threads" num_io_threads: i32 = "8", AtLeast(1), ClusterWide, Inert;
    /// Threads that would do what can wait; here tasks share all cores.
    "background.threads" background_threads: i32 = "10", AtLeast(1), ClusterWide, Inert;
    /// How many requests may wait for their turn before sockets are left unread.
    "queued.max.requests" queued_max_requests: i32 = "500", AtLeast(1), ReadOnly;
    /// How many bytes of requests may be in memory before sockets are left unread; negative for no
    /// limit.
    "queued.max.request.bytes" queued_max_request_bytes: i64 = "-1", Any, ReadOnly;
    /// The largest request that is read; a client that announces more is cut off.
    "socket.request.max.bytes" socket_request_max_bytes: i32 = "104857600", AtLeast(1), ReadOnly;
    /// The size asked for a socket's send buffer; -1 leaves it to the system.
    "socket.send.buffer.bytes" socket_send_buffer_bytes: i32 = "102400", Any, ReadOnly;
    /// The size asked for a socket's receive buffer; -1 leaves it to the system.
    "socket.receive.buffer.bytes" socket_receive_buffer_bytes: i32 = "102400", Any, ReadOnly;
    /// How many connections may wait to be accepted on a listener.
    "socket.listen.backlog.size" socket_listen_backlog_size: i32 = "50", AtLeast(1), ReadOnly;
    /// How long the first attempt to connect to another node may take.
    "socket.connection.setup.timeout.ms"
        socket_connection_setup_timeout_ms: i64 = "10000", Any, ReadOnly;
    /// The most that growing attempts to connect may each take.
    "socket.connection.setup.timeout.max.ms"
        socket_connection_setup_timeout_max_ms: i64 = "30000", Any, ReadOnly;
    /// How many connections a broker, or with a listener's prefix that listener, keeps at once.
    "max.connections" max_connections: i32 = "2147483647", AtLeast(0), ClusterWide;
    /// How many connections one address may keep at once.
    "max.connections.per.ip" max_connections_per_ip: i32 = "2147483647", AtLeast(0), ClusterWide;
    /// Other limits for single addresses or hosts, each as `address:count`.
    "max.connections.per.ip.overrides"
        max_connections_per_ip_overrides: String = "", Any, ClusterWide;
    /// How many connections a second a broker, or with a prefix a listener, takes on.
    "max.connection.creation.rate"
        max_connection_creation_rate: i32 = "2147483647", AtLeast(0), ClusterWide;
    /// After how long without a request a connection is closed.
    "connections.max.idle.ms" connections_max_idle_ms: i64 = "600000", Any, ReadOnly;
    /// How long a SASL session lasts before the client must prove itself again; zero for ever.
    "connections.max.reauth.ms" connections_max_reauth_ms: i64 = "0", Any, ReadOnly;
    /// How long a connection whose authentication failed is held before it is closed.
    "connection.failed.authentication.delay.ms"
        connection_failed_authentication_delay_ms: i32 = "100", AtLeast(0), ReadOnly;
    /// How long this node waits for another one's answer before it counts the request as lost.
    "request.timeout.ms" request_timeout_ms: i32 = "30000", Any, ReadOnly;
    /// How long a request to the controller may go without an answer.
    "controller.socket.timeout.ms" controller_socket_timeout_ms: i32 = "30000", Any, ReadOnly;
    /// The most bytes that one fetch is answered with, whatever the client asks for.
    "fetch.max.bytes" fetch_max_bytes: i32 = "57671680", AtLeast(1024), ReadOnly;
    /// How many fetch sessions are remembered; further clients send all partitions every time.
    "max.incremental.fetch.session.cache.slots"
        max_incremental_fetch_session_cache_slots: i32 = "1000", AtLeast(0), ReadOnly;
    /// The most partitions that one DescribeTopicPartitions request is answered with.
    "max.request.partition.size.limit"
        max_request_partition_size_limit: i32 = "2000", AtLeast(1), ReadOnly;
    /// The largest batch that a topic takes unless the topic says otherwise.
    "message.max.bytes" message_max_bytes: i32 = "1048588", AtLeast(0), ClusterWide;
    /// The largest token that a client may send during SASL authentication.
    "sasl.server.max.receive.size" sasl_server_max_receive_size: i32 = "524288", Any, ReadOnly;
    /// The largest push of metrics that is taken from a client.
    "telemetry.max.bytes" telemetry_max_bytes: i32 = "1048576", AtLeast(1), ReadOnly;
    /// How often finished waiting fetches would be swept out; here nothing needs sweeping.
    "fetch.purgatory.purge.interval.requests"
        fetch_purgatory_purge_interval_requests: i32 = "1000", Any, ReadOnly, Inert;
    /// How often finished waiting produces would be swept out; here nothing needs sweeping.
    "producer.purgatory.purge.interval.requests"
        producer_purgatory_purge_interval_requests: i32 = "1000", Any, ReadOnly, Inert;
    /// How often finished waiting deletions would be swept out; here nothing needs sweeping.
    "delete.records.purgatory.purge.interval.requests"
        delete_records_purgatory_purge_interval_requests: i32 = "1", Any, ReadOnly, Inert;
    /// How often finished waiting share fetches would be swept out; here nothing needs sweeping.
    "share.fetch.purgatory.purge.interval.requests"
        share_fetch_purgatory_purge_interval_requests: i32 = "1000", Any, ReadOnly, Inert;
    /// Whether clients are offered API versions that are not final.
    "unstable.api.versions.enable"
        unstable_api_versions_enable: bool = "false", Any, ReadOnly, Internal;
    /// Whether feature levels may be used that are not final.
    "unstable.feature.versions.enable"
        unstable_feature_versions_enable: bool = "false", Any, ReadOnly, Internal;

    // Topics and partitions
    /// Whether asking for an unknown topic creates it, if the client allows that.
    "auto.create.topics.enable" auto_create_topics_enable: bool = "true", Any, ReadOnly;
    /// Whether topics can be deleted.
    "delete.topic.enable" delete_topic_enable: bool = "true", Any, ReadOnly;
    /// How many partitions a topic gets that does not say.
    "num.partitions" num_partitions: i32 = "1", AtLeast(1), ReadOnly;
    /// How many replicas a partition gets where the topic does not say.
    "default.replication.factor" default_replication_factor: i32 = "1", Any, ReadOnly;
    /// How many replicas must have a record before a producer that asked for all is told so.
    "min.insync.replicas" min_insync_replicas: i32 = "1", AtLeast(1), ClusterWide;
    /// Whether a replica that lags may lead when no other is left, at the price of lost records.
    "unclean.leader.election.enable"
        unclean_leader_election_enable: bool = "false", Any, ClusterWide;
    /// How often partitions without a leader are looked at for an unclean election.
    "unclean.leader.election.interval.ms"
        unclean_leader_election_interval_ms: i64 = "300000", AtLeast(1), ReadOnly, Internal;
    /// Whether leadership returns by itself to the replica that is named first.
    "auto.leader.rebalance.enable" auto_leader_rebalance_enable: bool = "true", Any, ReadOnly;
    /// How often that return is considered.
    "leader.imbalance.check.interval.seconds"
        leader_imbalance_check_interval_seconds: i64 = "300", AtLeast(1), ReadOnly;
    /// A Java class that would have a say in the creation of topics.
    "create.topic.policy.class.name"
        create_topic_policy_class_name: Option<Class> = Null, Any, ReadOnly, Inert;
    /// A Java class that would have a say in the alteration of options.
    "alter.config.policy.class.name"
        alter_config_policy_class_name: Option<Class> = Null, Any, ReadOnly, Inert;
    /// How batches are compressed on disk: in one way for all, or as the `producer` sent them.
    "compression.type" compression_type: String = "producer", OneOf(COMPRESSION_TYPES), ClusterWide;
    /// How hard gzip tries, where the broker compresses; -1 for its own default.
    "compression.gzip.level" compression_gzip_level: i32 = "-1", BetweenOr(1, 9, -1), ClusterWide;
    /// How hard lz4 tries, where the broker compresses.
    "compression.lz4.level" compression_lz4_level: i32 = "9", Between(1, 17), ClusterWide;
    /// How hard zstd tries, where the broker compresses.
    "compression.zstd.level" compression_zstd_level: i32 = "3", Between(-131_072, 22), ClusterWide;

    // Logs
    /// The directory of the partitions' logs, for those who have just one.
    "log.dir" log_dir: String = "/tmp/kafka-logs", Any, ReadOnly;
    /// The directories of the partitions' logs, one for each disk; stands before `log.dir`.
    "log.dirs" log_dirs: Option<String> = Null, Any, ReadOnly;
    /// The size at which a log goes on in a new segment.
    "log.segment.bytes" log_segment_bytes: i32 = "1073741824", AtLeast(1_048_576), ClusterWide;
    /// The age at which a log goes on in a new segment.
    "log.roll.ms" log_roll_ms: Option<i64> = Null, Any, ClusterWide;
    /// The same age in hours, while `log.roll.ms` is unset.
    "log.roll.hours" log_roll_hours: i32 = "168", AtLeast(1), ReadOnly;
    /// How much earlier, by chance, so that not all logs roll at once.
    "log.roll.jitter.ms" log_roll_jitter_ms: Option<i64> = Null, Any, ClusterWide;
    /// The same in hours, while `log.roll.jitter.ms` is unset.
    "log.roll.jitter.hours" log_roll_jitter_hours: i32 = "0", AtLeast(0), ReadOnly;
    /// How long records are kept where old ones are deleted; -1 for ever.
    "log.retention.ms" log_retention_ms: Option<i64> = Null, Any, ClusterWide;
    /// The same in minutes, while `log.retention.ms` is unset.
    "log.retention.minutes" log_retention_minutes: Option<i32> = Null, Any, ReadOnly;
    /// The same in hours, while neither milliseconds nor minutes are set.
    "log.retention.hours" log_retention_hours: i32 = "168", Any, ReadOnly;
    /// The size above which a partition loses its oldest segments; -1 for no limit.
    "log.retention.bytes" log_retention_bytes: i64 = "-1", Any, ClusterWide;
    /// How often logs are searched for segments to delete.
    "log.retention.check.interval.ms"
        log_retention_check_interval_ms: i64 = "300000", AtLeast(1), ReadOnly;
    /// What becomes of old data: `delete` it by age and size, `compact` it by key, or both.
    "log.cleanup.policy"
        log_cleanup_policy: Vec<String> = "delete", OneOf(CLEANUP_POLICIES), ClusterWide;
    /// After how many records a log is forced to the disk.
    "log.flush.interval.messages"
        log_flush_interval_messages: i64 = "9223372036854775807", AtLeast(1), ClusterWide;
    /// How long a record may wait to be forced to the disk.
    "log.flush.interval.ms" log_flush_interval_ms: Option<i64> = Null, Any, ClusterWide;
    /// How often logs are searched for records that waited too long, and that time itself while
    /// `log.flush.interval.ms` is unset.
    "log.flush.scheduler.interval.ms"
        log_flush_scheduler_interval_ms: i64 = "9223372036854775807", Any, ReadOnly;
    /// How often it is noted up to where logs are safe on the disk.
    "log.flush.offset.checkpoint.interval.ms"
        log_flush_offset_checkpoint_interval_ms: i32 = "60000", AtLeast(0), ReadOnly;
    /// How often it is noted where logs begin.
    "log.flush.start.offset.checkpoint.interval.ms"
        log_flush_start_offset_checkpoint_interval_ms: i32 = "60000", AtLeast(0), ReadOnly;
    /// How many bytes of records go between two entries of an index.
    "log.index.interval.bytes" log_index_interval_bytes: i32 = "4096", AtLeast(0), ClusterWide;
    /// The size at which an index is full and its segment ends.
    "log.index.size.max.bytes" log_index_size_max_bytes: i32 = "10485760", AtLeast(4), ClusterWide;
    /// How long a dropped segment's files stay under another name before they are removed.
    "log.segment.delete.delay.ms"
        log_segment_delete_delay_ms: i64 = "60000", AtLeast(0), ClusterWide;
    /// Whether a new segment takes its full size on the disk at once.
    "log.preallocate" log_preallocate: bool = "false", Any, ClusterWide;
    /// Whose clock dates records: the producer's, or the broker's when it appends.
    "log.message.timestamp.type"
        log_message_timestamp_type: String = "CreateTime", OneOf(TIMESTAMP_TYPES), ClusterWide;
    /// How far in the past a producer's timestamp may lie.
    "log.message.timestamp.before.max.ms"
        log_message_timestamp_before_max_ms: i64 = "9223372036854775807", AtLeast(0), ClusterWide;
    /// How far in the future a producer's timestamp may lie.
    "log.message.timestamp.after.max.ms"
        log_message_timestamp_after_max_ms: i64 = "3600000", AtLeast(0), ClusterWide;
    /// How long a broker may fail to report a lost directory before it stops.
    "log.dir.failure.timeout.ms" log_dir_failure_timeout_ms: i64 = "30000", AtLeast(1), ReadOnly;
    /// How many logs of a directory are recovered or flushed at the same time.
    "num.recovery.threads.per.data.dir"
        num_recovery_threads_per_data_dir: i32 = "2", AtLeast(1), ClusterWide;
    /// How long after the start the regular work on logs begins.
    "log.initial.task.delay.ms"
        log_initial_task_delay_ms: i64 = "30000", AtLeast(0), ReadOnly, Internal;

    // Log cleaner
    /// Whether logs are compacted at all.
    "log.cleaner.enable" log_cleaner_enable: bool = "true", Any, ReadOnly;
    /// How many logs are compacted at the same time.
    "log.cleaner.threads" log_cleaner_threads: i32 = "1", AtLeast(0), ClusterWide;
    /// The memory in which all cleaners together remember keys.
    "log.cleaner.dedupe.buffer.size"
        log_cleaner_dedupe_buffer_size: i64 = "134217728", Any, ClusterWide;
    /// The memory through which all cleaners together read and write.
    "log.cleaner.io.buffer.size"
        log_cleaner_io_buffer_size: i32 = "524288", AtLeast(0), ClusterWide;
    /// How full the memory of keys may get: fuller takes more at once and finds keys slower.
    "log.cleaner.io.buffer.load.factor"
        log_cleaner_io_buffer_load_factor: f64 = "0.9", Any, ClusterWide;
    /// How many bytes a second all cleaners together may read and write.
    "log.cleaner.io.max.bytes.per.second"
        log_cleaner_io_max_bytes_per_second: f64 = "1.7976931348623157E308", Any, ClusterWide;
    /// How long an idle cleaner rests.
    "log.cleaner.backoff.ms" log_cleaner_backoff_ms: i64 = "15000", AtLeast(0), ClusterWide;
    /// The share of a log that must be uncompacted to make compacting worthwhile.
    "log.cleaner.min.cleanable.ratio"
        log_cleaner_min_cleanable_ratio: f64 = "0.5", BetweenReal(0.0, 1.0), ClusterWide;
    /// How long deletions stay readable in a compacted log.
    "log.cleaner.delete.retention.ms"
        log_cleaner_delete_retention_ms: i64 = "86400000", AtLeast(0), ClusterWide;
    /// The age that a record must reach to be compacted.
    "log.cleaner.min.compaction.lag.ms"
        log_cleaner_min_compaction_lag_ms: i64 = "0", AtLeast(0), ClusterWide;
    /// The age at which a record must be compacted, worthwhile or not.
    "log.cleaner.max.compaction.lag.ms"
        log_cleaner_max_compaction_lag_ms: i64 = "9223372036854775807", AtLeast(1), ClusterWide;

    // Replication
    /// How many connections a follower uses to copy from one leader.
    "num.replica.fetchers" num_replica_fetchers: i32 = "1", Any, ClusterWide;
    /// How many bytes a follower asks for of one partition.
    "replica.fetch.max.bytes" replica_fetch_max_bytes: i32 = "1048576", AtLeast(0), ReadOnly;
    /// How many bytes a follower asks for in one fetch.
    "replica.fetch.response.max.bytes"
        replica_fetch_response_max_bytes: i32 = "10485760", AtLeast(0), ReadOnly;
    /// How many bytes must be there for a follower's fetch to be answered at once.
    "replica.fetch.min.bytes" replica_fetch_min_bytes: i32 = "1", Any, ReadOnly;
    /// How long a follower's fetch waits for them.
    "replica.fetch.wait.max.ms" replica_fetch_wait_max_ms: i32 = "500", Any, ReadOnly;
    /// How long a follower rests after a failed fetch.
    "replica.fetch.backoff.ms" replica_fetch_backoff_ms: i32 = "1000", AtLeast(0), ReadOnly;
    /// How long a follower may be behind the leader's end before it leaves the in-sync set.
    "replica.lag.time.max.ms" replica_lag_time_max_ms: i64 = "30000", Any, ReadOnly;
    /// How often it is noted up to where records are committed.
    "replica.high.watermark.checkpoint.interval.ms"
        replica_high_watermark_checkpoint_interval_ms: i64 = "5000", Any, ReadOnly;
    /// How long a follower's fetch may go without an answer.
    "replica.socket.timeout.ms" replica_socket_timeout_ms: i32 = "30000", Any, ReadOnly;
    /// The receive buffer of a follower's connection.
    "replica.socket.receive.buffer.bytes"
        replica_socket_receive_buffer_bytes: i32 = "65536", Any, ReadOnly;
    /// Who chooses the replica that a consumer reads from; `RackAwareReplicaSelector` knows racks.
    "replica.selector.class" replica_selector_class: Option<String> = Null, Any, ReadOnly;
    /// Threads that would move replicas between directories; here one task a directory does.
    "num.replica.alter.log.dirs.threads"
        num_replica_alter_log_dirs_threads: Option<i32> = Null, Any, ReadOnly;
    /// How many windows of time a throttled rate of replication is measured over.
    "replication.quota.window.num" replication_quota_window_num: i32 = "11", AtLeast(1), ReadOnly;
    /// How long each of these windows is.
    "replication.quota.window.size.seconds"
        replication_quota_window_size_seconds: i32 = "1", AtLeast(1), ReadOnly;
    /// How many windows of time the rate of moves between directories is measured over.
    "alter.log.dirs.replication.quota.window.num"
        alter_log_dirs_replication_quota_window_num: i32 = "11", AtLeast(1), ReadOnly;
    /// How long each of these windows is, for moves between directories.
    "alter.log.dirs.replication.quota.window.size.seconds"
        alter_log_dirs_replication_quota_window_size_seconds: i32 = "1", AtLeast(1), ReadOnly;

    // Groups and their offsets
    /// How many partitions the topic of groups and offsets has; cannot change later.
    "offsets.topic.num.partitions" offsets_topic_num_partitions: i32 = "50", AtLeast(1), ReadOnly;
    /// How many replicas that topic has; it waits for so many brokers, unless the option is not set.
    "offsets.topic.replication.factor"
        offsets_topic_replication_factor: i16 = "3", AtLeast(1), ReadOnly;
    /// The segments' size in that topic: small ones load faster.
    "offsets.topic.segment.bytes"
        offsets_topic_segment_bytes: i32 = "104857600", AtLeast(1), ReadOnly;
    /// How batches of that topic are compressed, by the number of the codec.
    "offsets.topic.compression.codec" offsets_topic_compression_codec: i32 = "0", Any, ReadOnly;
    /// How long offsets of a group without members are kept.
    "offsets.retention.minutes" offsets_retention_minutes: i32 = "10080", AtLeast(1), ReadOnly;
    /// How often offsets are searched for those to forget.
    "offsets.retention.check.interval.ms"
        offsets_retention_check_interval_ms: i64 = "600000", AtLeast(1), ReadOnly;
    /// How long a commit may wait for the replicas.
    "offsets.commit.timeout.ms" offsets_commit_timeout_ms: i32 = "5000", AtLeast(1), ReadOnly;
    /// How many bytes are read at a time when groups are loaded.
    "offsets.load.buffer.size" offsets_load_buffer_size: i32 = "5242880", AtLeast(1), ReadOnly;
    /// The longest note that may go with a committed offset.
    "offset.metadata.max.bytes" offset_metadata_max_bytes: i32 = "4096", Any, ReadOnly;
    /// The shortest session that a member of a classic group may ask for.
    "group.min.session.timeout.ms" group_min_session_timeout_ms: i32 = "6000", Any, ReadOnly;
    /// The longest session that a member of a classic group may ask for.
    "group.max.session.timeout.ms" group_max_session_timeout_ms: i32 = "1800000", Any, ReadOnly;
    /// How long a new classic group waits for more members before its first assignment; unless it
    /// is set, until nobody new has come for 30 ms.
    "group.initial.rebalance.delay.ms"
        group_initial_rebalance_delay_ms: i32 = "3000", Any, ReadOnly;
    /// How many members a classic group may have.
    "group.max.size" group_max_size: i32 = "2147483647", AtLeast(1), ReadOnly;
    /// The group protocols that are served; `classic` always is.
    "group.coordinator.rebalance.protocols"
        group_coordinator_rebalance_protocols: Vec<String> =
            "classic,consumer,streams",
            OneOf(&["consumer", "classic", "share", "streams"]), ReadOnly;
    /// Threads that would work on groups; here each partition of groups has a task.
    "group.coordinator.threads" group_coordinator_threads: i32 = "4", AtLeast(1), ReadOnly, Inert;
    /// How long changes of groups gather before they are written together.
    "group.coordinator.append.linger.ms"
        group_coordinator_append_linger_ms: i32 = "5", AtLeast(0), ReadOnly;

    // Consumer groups
    /// How partitions are assigned in consumer groups; the first is the default.
    "group.consumer.assignors"
        group_consumer_assignors: Vec<String> = "uniform,range", Any, ReadOnly;
    /// How often a consumer is told to report.
    "group.consumer.heartbeat.interval.ms"
        group_consumer_heartbeat_interval_ms: i32 = "5000", AtLeast(1), ReadOnly;
    /// The longest heartbeat interval that a group may set.
    "group.consumer.max.heartbeat.interval.ms"
        group_consumer_max_heartbeat_interval_ms: i32 = "15000", AtLeast(1), ReadOnly;
    /// The longest session that a group may set.
    "group.consumer.max.session.timeout.ms"
        group_consumer_max_session_timeout_ms: i32 = "60000", AtLeast(1), ReadOnly;
    /// How many members a consumer group may have.
    "group.consumer.max.size" group_consumer_max_size: i32 = "2147483647", AtLeast(1), ReadOnly;
    /// Whether groups with members may turn from classic into consumer groups, back, both or
    /// neither.
    "group.consumer.migration.policy"
        group_consumer_migration_policy: String =
            "bidirectional",
            OneOfAnyCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"]), ReadOnly;
    /// The shortest heartbeat interval that a group may set.
    "group.consumer.min.heartbeat.interval.ms"
        group_consumer_min_heartbeat_interval_ms: i32 = "5000", AtLeast(1), ReadOnly;
    /// The shortest session that a group may set.
    "group.consumer.min.session.timeout.ms"
        group_consumer_min_session_timeout_ms: i32 = "45000", AtLeast(1), ReadOnly;
    /// How often subscribed patterns are matched against the topics again.
    "group.consumer.regex.refresh.interval.ms"
        group_consumer_regex_refresh_interval_ms: i32 =
            "600000", AtLeast(10_000), ReadOnly, Internal;
    /// After how long without a report a consumer leaves its group.
    "group.consumer.session.timeout.ms"
        group_consumer_session_timeout_ms: i32 = "45000", AtLeast(1), ReadOnly;

    // Share groups
    /// How partitions are assigned in share groups.
    "group.share.assignors" group_share_assignors: Vec<String> = "simple", Any, ReadOnly;
    /// How often a record is handed out before it is given up.
    "group.share.delivery.count.limit"
        group_share_delivery_count_limit: i32 = "5", Between(2, 10), ReadOnly;
    /// Whether share groups are served, apart from their feature level.
    "group.share.enable" group_share_enable: bool = "false", Any, ReadOnly, Internal;
    /// How often a share consumer is told to report.
    "group.share.heartbeat.interval.ms"
        group_share_heartbeat_interval_ms: i32 = "5000", AtLeast(1), ReadOnly;
    /// The longest heartbeat interval that a share group may set.
    "group.share.max.heartbeat.interval.ms"
        group_share_max_heartbeat_interval_ms: i32 = "15000", AtLeast(1), ReadOnly;
    /// The longest time that a share group may let a consumer hold a record.
    "group.share.max.record.lock.duration.ms"
        group_share_max_record_lock_duration_ms: i32 =
            "60000", Between(30_000, 3_600_000), ReadOnly;
    /// The longest session that a share group may set.
    "group.share.max.session.timeout.ms"
        group_share_max_session_timeout_ms: i32 = "60000", AtLeast(1), ReadOnly;
    /// How many sessions of share consumers are remembered.
    "group.share.max.share.sessions"
        group_share_max_share_sessions: i32 = "2000", AtLeast(1), ReadOnly;
    /// How many members a share group may have.
    "group.share.max.size" group_share_max_size: i32 = "200", Between(1, 1000), ReadOnly;
    /// The shortest heartbeat interval that a share group may set.
    "group.share.min.heartbeat.interval.ms"
        group_share_min_heartbeat_interval_ms: i32 = "5000", AtLeast(1), ReadOnly;
    /// The shortest time that a share group may let a consumer hold a record.
    "group.share.min.record.lock.duration.ms"
        group_share_min_record_lock_duration_ms: i32 = "15000", Between(1000, 30_000), ReadOnly;
    /// The shortest session that a share group may set.
    "group.share.min.session.timeout.ms"
        group_share_min_session_timeout_ms: i32 = "45000", AtLeast(1), ReadOnly;
    /// How many records of a partition may be out with consumers at once.
    "group.share.partition.max.record.locks"
        group_share_partition_max_record_locks: i32 = "2000", Between(100, 10_000), ReadOnly;
    /// A Java class that would keep the state of share groups; here the coordinator does.
    "group.share.persister.class.name"
        group_share_persister_class_name: String =
            "org.apache.kafka.server.share.persister.DefaultStatePersister",
            Any, ReadOnly, Internal, Inert;
    /// How long a consumer holds a record before others may have it.
    "group.share.record.lock.duration.ms"
        group_share_record_lock_duration_ms: i32 = "30000", Between(1000, 3_600_000), ReadOnly;
    /// After how long without a report a share consumer leaves its group.
    "group.share.session.timeout.ms"
        group_share_session_timeout_ms: i32 = "45000", AtLeast(1), ReadOnly;
    /// How long changes of share state gather before they are written together.
    "share.coordinator.append.linger.ms"
        share_coordinator_append_linger_ms: i32 = "5", AtLeast(0), ReadOnly;
    /// How often share partitions at rest are written whole, so that the old can go.
    "share.coordinator.cold.partition.snapshot.interval.ms"
        share_coordinator_cold_partition_snapshot_interval_ms: i32 =
            "300000", AtLeast(1), ReadOnly, Internal;
    /// How many bytes are read at a time when share state is loaded.
    "share.coordinator.load.buffer.size"
        share_coordinator_load_buffer_size: i32 = "5242880", AtLeast(1), ReadOnly;
    /// How many changes of a share partition are written before it is written whole.
    "share.coordinator.snapshot.update.records.per.snapshot"
        share_coordinator_snapshot_update_records_per_snapshot: i32 = "500", AtLeast(0), ReadOnly;
    /// How batches of the topic of share state are compressed, by the number of the codec.
    "share.coordinator.state.topic.compression.codec"
        share_coordinator_state_topic_compression_codec: i32 = "0", Any, ReadOnly;
    /// How many replicas must have a change of share state.
    "share.coordinator.state.topic.min.isr"
        share_coordinator_state_topic_min_isr: i16 = "2", AtLeast(1), ReadOnly;
    /// How many partitions the topic of share state has; cannot change later.
    "share.coordinator.state.topic.num.partitions"
        share_coordinator_state_topic_num_partitions: i32 = "50", AtLeast(1), ReadOnly;
    /// How often the topic of share state is cut at what is no longer needed.
    "share.coordinator.state.topic.prune.interval.ms"
        share_coordinator_state_topic_prune_interval_ms: i32 =
            "300000", AtLeast(1), ReadOnly, Internal;
    /// How many replicas the topic of share state has.
    "share.coordinator.state.topic.replication.factor"
        share_coordinator_state_topic_replication_factor: i16 = "3", AtLeast(1), ReadOnly;
    /// The segments' size in the topic of share state.
    "share.coordinator.state.topic.segment.bytes"
        share_coordinator_state_topic_segment_bytes: i32 = "104857600", AtLeast(1), ReadOnly;
    /// Threads that would work on share state; here each partition of it has a task.
    "share.coordinator.threads" share_coordinator_threads: i32 = "1", AtLeast(1), ReadOnly, Inert;
    /// How long a change of share state may wait for the replicas.
    "share.coordinator.write.timeout.ms"
        share_coordinator_write_timeout_ms: i32 = "5000", AtLeast(1), ReadOnly;

    // Streams groups
    /// How often a streams client is told to report.
    "group.streams.heartbeat.interval.ms"
        group_streams_heartbeat_interval_ms: i32 = "5000", AtLeast(1), ReadOnly;
    /// The longest heartbeat interval that a streams group may set.
    "group.streams.max.heartbeat.interval.ms"
        group_streams_max_heartbeat_interval_ms: i32 = "15000", AtLeast(1), ReadOnly;
    /// The longest session that a streams group may set.
    "group.streams.max.session.timeout.ms"
        group_streams_max_session_timeout_ms: i32 = "60000", AtLeast(1), ReadOnly;
    /// How many clients a streams group may have.
    "group.streams.max.size" group_streams_max_size: i32 = "2147483647", AtLeast(1), ReadOnly;
    /// The most standby copies of a task that a streams group may set.
    "group.streams.max.standby.replicas"
        group_streams_max_standby_replicas: i32 = "2", AtLeast(0), ReadOnly;
    /// The shortest heartbeat interval that a streams group may set.
    "group.streams.min.heartbeat.interval.ms"
        group_streams_min_heartbeat_interval_ms: i32 = "5000", AtLeast(1), ReadOnly;
    /// The shortest session that a streams group may set.
    "group.streams.min.session.timeout.ms"
        group_streams_min_session_timeout_ms: i32 = "45000", AtLeast(1), ReadOnly;
    /// How many standby copies each task of a streams group has.
    "group.streams.num.standby.replicas"
        group_streams_num_standby_replicas: i32 = "0", AtLeast(0), ReadOnly;
    /// After how long without a report a streams client leaves its group.
    "group.streams.session.timeout.ms"
        group_streams_session_timeout_ms: i32 = "45000", AtLeast(1), ReadOnly;

    // Transactions and producers
    /// After how long without a transaction a transactional id is forgotten.
    "transactional.id.expiration.ms"
        transactional_id_expiration_ms: i32 = "604800000", AtLeast(1), ReadOnly;
    /// The longest time that a producer may ask for its transactions.
    "transaction.max.timeout.ms" transaction_max_timeout_ms: i32 = "900000", AtLeast(1), ReadOnly;
    /// How many partitions the topic of transactions has; cannot change later.
    "transaction.state.log.num.partitions"
        transaction_state_log_num_partitions: i32 = "50", AtLeast(1), ReadOnly;
    /// How many replicas the topic of transactions has; it waits for so many brokers.
    "transaction.state.log.replication.factor"
        transaction_state_log_replication_factor: i16 = "3", AtLeast(1), ReadOnly;
    /// How many replicas must have a change of a transaction.
    "transaction.state.log.min.isr" transaction_state_log_min_isr: i32 = "2", AtLeast(1), ReadOnly;
    /// The segments' size in the topic of transactions.
    "transaction.state.log.segment.bytes"
        transaction_state_log_segment_bytes: i32 = "104857600", AtLeast(1), ReadOnly;
    /// How many bytes are read at a time when transactions are loaded.
    "transaction.state.log.load.buffer.size"
        transaction_state_log_load_buffer_size: i32 = "5242880", AtLeast(1), ReadOnly;
    /// How often transactions are searched for those that took too long.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        transaction_abort_timed_out_transaction_cleanup_interval_ms: i32 =
            "10000", AtLeast(1), ReadOnly;
    /// How often transactional ids are searched for those to forget.
    "transaction.remove.expired.transaction.cleanup.interval.ms"
        transaction_remove_expired_transaction_cleanup_interval_ms: i32 =
            "3600000", AtLeast(1), ReadOnly;
    /// Whether a partition asks the coordinator if a transaction that writes to it is open.
    "transaction.partition.verification.enable"
        transaction_partition_verification_enable: bool = "true", Any, ClusterWide;
    /// Whether producers may leave the end of their transactions to an outer coordinator.
    "transaction.two.phase.commit.enable"
        transaction_two_phase_commit_enable: bool = "false", Any, ReadOnly;
    /// After how long without a batch a partition forgets a producer's sequence.
    "producer.id.expiration.ms"
        producer_id_expiration_ms: i32 = "86400000", AtLeast(1), ClusterWide;
    /// How often partitions are searched for such producers.
    "producer.id.expiration.check.interval.ms"
        producer_id_expiration_check_interval_ms: i32 = "600000", AtLeast(1), ReadOnly, Internal;
    /// How long the first wait is before a partition that hangs on another transaction is tried
    /// again.
    "add.partitions.to.txn.retry.backoff.ms"
        add_partitions_to_txn_retry_backoff_ms: i32 = "20", AtLeast(1), ReadOnly;
    /// The most that the growing waits may each take.
    "add.partitions.to.txn.retry.backoff.max.ms"
        add_partitions_to_txn_retry_backoff_max_ms: i32 = "100", AtLeast(0), ReadOnly;

    // Authorization, principals, delegation tokens
    /// Who decides what a principal may do; empty allows everything, `StandardAuthorizer` reads
    /// ACLs.
    "authorizer.class.name" authorizer_class_name: String = "", NonNullText, ReadOnly;
    /// A Java class that would name the principal of a connection.
    "principal.builder.class"
        principal_builder_class: Class =
            "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
            Any, PerBroker, Inert;
    /// The secret that all nodes of the cluster sign delegation tokens with; without it there are
    /// none.
    "delegation.token.secret.key"
        delegation_token_secret_key: Option<Password> = Null, Any, ReadOnly;
    /// How long a delegation token can be renewed at the most.
    "delegation.token.max.lifetime.ms"
        delegation_token_max_lifetime_ms: i64 = "604800000", AtLeast(1), ReadOnly;
    /// How long a delegation token is valid until it is renewed.
    "delegation.token.expiry.time.ms"
        delegation_token_expiry_time_ms: i64 = "86400000", AtLeast(1), ReadOnly;
    /// How often delegation tokens are searched for those that are over.
    "delegation.token.expiry.check.interval.ms"
        delegation_token_expiry_check_interval_ms: i64 = "3600000", AtLeast(1), ReadOnly;
    /// Java classes that would supply security algorithms.
    "security.providers" security_providers: Option<String> = Null, Any, ReadOnly, Inert;

    // SASL
    /// The SASL mechanisms that clients may use on a listener.
    "sasl.enabled.mechanisms" sasl_enabled_mechanisms: Vec<String> = "GSSAPI", Any, PerBroker;
    /// The SASL mechanism between brokers.
    "sasl.mechanism.inter.broker.protocol"
        sasl_mechanism_inter_broker_protocol: String = "GSSAPI", Any, PerBroker;
    /// The SASL mechanism towards controllers.
    "sasl.mechanism.controller.protocol"
        sasl_mechanism_controller_protocol: String = "GSSAPI", Any, ReadOnly;
    /// The credentials of a listener and mechanism, as a JAAS entry.
    "sasl.jaas.config" sasl_jaas_config: Option<Password> = Null, Any, PerBroker;
    /// A Java class that would check credentials; the names of Kafka's own are known.
    "sasl.server.callback.handler.class"
        sasl_server_callback_handler_class: Option<Class> = Null, Any, ReadOnly;
    /// A Java class that would supply this node's credentials.
    "sasl.client.callback.handler.class"
        sasl_client_callback_handler_class: Option<Class> = Null, Any, ReadOnly, Inert;
    /// A Java class that would obtain this node's token.
    "sasl.login.callback.handler.class"
        sasl_login_callback_handler_class: Option<Class> = Null, Any, ReadOnly, Inert;
    /// A Java class that would log this node in.
    "sasl.login.class" sasl_login_class: Option<Class> = Null, Any, ReadOnly, Inert;
    /// How long connecting to an external issuer of tokens would be allowed to take.
    "sasl.login.connect.timeout.ms"
        sasl_login_connect_timeout_ms: Option<i32> = Null, Any, ReadOnly, Inert;
    /// How long an external issuer of tokens would be allowed to be silent.
    "sasl.login.read.timeout.ms"
        sasl_login_read_timeout_ms: Option<i32> = Null, Any, ReadOnly, Inert;
    /// How long before its end this node's own token would be renewed at the latest.
    "sasl.login.refresh.buffer.seconds"
        sasl_login_refresh_buffer_seconds: i16 = "300", Any, PerBroker, Inert;
    /// How long this node would leave its own token alone at the least.
    "sasl.login.refresh.min.period.seconds"
        sasl_login_refresh_min_period_seconds: i16 = "60", Any, PerBroker, Inert;
    /// At which part of its life this node's own token would be renewed.
    "sasl.login.refresh.window.factor"
        sasl_login_refresh_window_factor: f64 = "0.8", Any, PerBroker, Inert;
    /// How much that point would be moved by chance.
    "sasl.login.refresh.window.jitter"
        sasl_login_refresh_window_jitter: f64 = "0.05", Any, PerBroker, Inert;
    /// How long the first wait would be after a failed log-in at an external issuer.
    "sasl.login.retry.backoff.ms" sasl_login_retry_backoff_ms: i64 = "100", Any, ReadOnly, Inert;
    /// The most that these growing waits would each take.
    "sasl.login.retry.backoff.max.ms"
        sasl_login_retry_backoff_max_ms: i64 = "10000", Any, ReadOnly, Inert;
    /// The service name of brokers in Kerberos, which is not spoken here.
    "sasl.kerberos.service.name"
        sasl_kerberos_service_name: Option<String> = Null, Any, PerBroker, Inert;
    /// Rules that would shorten Kerberos principals to names.
    "sasl.kerberos.principal.to.local.rules"
        sasl_kerberos_principal_to_local_rules: Vec<String> = "DEFAULT", Any, PerBroker, Inert;
    /// The command that would fetch a Kerberos ticket.
    "sasl.kerberos.kinit.cmd"
        sasl_kerberos_kinit_cmd: String = "/usr/bin/kinit", Any, PerBroker, Inert;
    /// How long a Kerberos log-in would be left alone at the least.
    "sasl.kerberos.min.time.before.relogin"
        sasl_kerberos_min_time_before_relogin: i64 = "60000", Any, PerBroker, Inert;
    /// How much the renewal of a Kerberos ticket would be moved by chance.
    "sasl.kerberos.ticket.renew.jitter"
        sasl_kerberos_ticket_renew_jitter: f64 = "0.05", Any, PerBroker, Inert;
    /// At which part of its life a Kerberos ticket would be renewed.
    "sasl.kerberos.ticket.renew.window.factor"
        sasl_kerberos_ticket_renew_window_factor: f64 = "0.8", Any, PerBroker, Inert;
    /// Where the keys that signed clients' tokens are found, a file's address or a server's.
    "sasl.oauthbearer.jwks.endpoint.url"
        sasl_oauthbearer_jwks_endpoint_url: Option<String> = Null, Any, ReadOnly;
    /// How often these keys are fetched again.
    "sasl.oauthbearer.jwks.endpoint.refresh.ms"
        sasl_oauthbearer_jwks_endpoint_refresh_ms: i64 = "3600000", Any, ReadOnly;
    /// How long the first wait is after a failed attempt to fetch them.
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"
        sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: i64 = "100", Any, ReadOnly;
    /// The most that the growing waits for keys may each take.
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"
        sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: i64 = "10000", Any, ReadOnly;
    /// Audiences of which a client's token must name one.
    "sasl.oauthbearer.expected.audience"
        sasl_oauthbearer_expected_audience: Option<Vec<String>> = Null, Any, ReadOnly;
    /// The issuer that a client's token must name.
    "sasl.oauthbearer.expected.issuer"
        sasl_oauthbearer_expected_issuer: Option<String> = Null, Any, ReadOnly;
    /// How far the issuer's clock may differ from ours.
    "sasl.oauthbearer.clock.skew.seconds"
        sasl_oauthbearer_clock_skew_seconds: i32 = "30", Any, ReadOnly;
    /// Which claim of a token holds its scope.
    "sasl.oauthbearer.scope.claim.name"
        sasl_oauthbearer_scope_claim_name: String = "scope", Any, ReadOnly;
    /// Which claim of a token names the principal.
    "sasl.oauthbearer.sub.claim.name"
        sasl_oauthbearer_sub_claim_name: String = "sub", Any, ReadOnly;
    /// A Java class that would check clients' tokens.
    "sasl.oauthbearer.jwt.validator.class"
        sasl_oauthbearer_jwt_validator_class: Class =
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
            Any, ReadOnly, Inert;
    /// A Java class that would obtain this node's own token.
    "sasl.oauthbearer.jwt.retriever.class"
        sasl_oauthbearer_jwt_retriever_class: Class =
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
            Any, ReadOnly, Inert;
    /// Where this node would obtain its own token.
    "sasl.oauthbearer.token.endpoint.url"
        sasl_oauthbearer_token_endpoint_url: Option<String> = Null, Any, ReadOnly, Inert;
    /// The scope that this node would ask for.
    "sasl.oauthbearer.scope" sasl_oauthbearer_scope: Option<String> = Null, Any, ReadOnly, Inert;
    /// The client id with which this node would ask for a token.
    "sasl.oauthbearer.client.credentials.client.id"
        sasl_oauthbearer_client_credentials_client_id: Option<String> = Null, Any, ReadOnly, Inert;
    /// The secret with which this node would ask for a token.
    "sasl.oauthbearer.client.credentials.client.secret"
        sasl_oauthbearer_client_credentials_client_secret: Option<Password> =
            Null, Any, ReadOnly, Inert;
    /// How this node would sign an assertion to obtain a token.
    "sasl.oauthbearer.assertion.algorithm"
        sasl_oauthbearer_assertion_algorithm: String =
            "RS256", OneOfAnyCase(&["ES256", "RS256"]), ReadOnly, Inert;
    /// The audience of that assertion.
    "sasl.oauthbearer.assertion.claim.aud"
        sasl_oauthbearer_assertion_claim_aud: Option<String> = Null, Any, ReadOnly, Inert;
    /// How long that assertion would be valid.
    "sasl.oauthbearer.assertion.claim.exp.seconds"
        sasl_oauthbearer_assertion_claim_exp_seconds: i32 =
            "300", Between(0, 86_400), ReadOnly, Inert;
    /// The issuer of that assertion.
    "sasl.oauthbearer.assertion.claim.iss"
        sasl_oauthbearer_assertion_claim_iss: Option<String> = Null, Any, ReadOnly, Inert;
    /// Whether that assertion would carry an id of its own.
    "sasl.oauthbearer.assertion.claim.jti.include"
        sasl_oauthbearer_assertion_claim_jti_include: bool = "false", Any, ReadOnly, Inert;
    /// How long before its making that assertion would be valid.
    "sasl.oauthbearer.assertion.claim.nbf.seconds"
        sasl_oauthbearer_assertion_claim_nbf_seconds: i32 = "60", Between(0, 3600), ReadOnly, Inert;
    /// The subject of that assertion.
    "sasl.oauthbearer.assertion.claim.sub"
        sasl_oauthbearer_assertion_claim_sub: Option<String> = Null, Any, ReadOnly, Inert;
    /// A file with a ready-made assertion.
    "sasl.oauthbearer.assertion.file"
        sasl_oauthbearer_assertion_file: Option<String> = Null, Any, ReadOnly, Inert;
    /// The key that would sign that assertion.
    "sasl.oauthbearer.assertion.private.key.file"
        sasl_oauthbearer_assertion_private_key_file: Option<String> = Null, Any, ReadOnly, Inert;
    /// The passphrase of that key.
    "sasl.oauthbearer.assertion.private.key.passphrase"
        sasl_oauthbearer_assertion_private_key_passphrase: Option<Password> =
            Null, Any, ReadOnly, Inert;
    /// A file with further claims of that assertion.
    "sasl.oauthbearer.assertion.template.file"
        sasl_oauthbearer_assertion_template_file: Option<String> = Null, Any, ReadOnly, Inert;

    // TLS
    /// Whether clients must show a certificate, may, or are not asked.
    "ssl.client.auth"
        ssl_client_auth: String = "none", OneOf(&["required", "requested", "none"]), PerBroker;
    /// The versions of TLS that are spoken.
    "ssl.enabled.protocols" ssl_enabled_protocols: Vec<String> = "TLSv1.2,TLSv1.3", Any, PerBroker;
    /// The Java context's version of TLS; what is spoken is `ssl.enabled.protocols`.
    "ssl.protocol" ssl_protocol: String = "TLSv1.3", Any, PerBroker, Inert;
    /// The cipher suites that are spoken; all that are safe if empty.
    "ssl.cipher.suites" ssl_cipher_suites: Vec<String> = "", Any, PerBroker;
    /// How this node checks another's name in its certificate; empty not at all.
    "ssl.endpoint.identification.algorithm"
        ssl_endpoint_identification_algorithm: String = "https", Any, PerBroker;
    /// The form of the key and its certificates: PEM, PKCS12 or JKS.
    "ssl.keystore.type" ssl_keystore_type: String = "JKS", Any, PerBroker;
    /// The file with the key and its certificates.
    "ssl.keystore.location" ssl_keystore_location: Option<String> = Null, Any, PerBroker;
    /// The password of that file.
    "ssl.keystore.password" ssl_keystore_password: Option<Password> = Null, Any, PerBroker;
    /// The password of the key itself.
    "ssl.key.password" ssl_key_password: Option<Password> = Null, Any, PerBroker;
    /// The key in PEM form, in place of a file.
    "ssl.keystore.key" ssl_keystore_key: Option<Password> = Null, Any, PerBroker;
    /// The certificates of the key in PEM form, in place of a file.
    "ssl.keystore.certificate.chain"
        ssl_keystore_certificate_chain: Option<Password> = Null, Any, PerBroker;
    /// The form of the trusted certificates: PEM, PKCS12 or JKS.
    "ssl.truststore.type" ssl_truststore_type: String = "JKS", Any, PerBroker;
    /// The file with the certificates of those who may vouch for others.
    "ssl.truststore.location" ssl_truststore_location: Option<String> = Null, Any, PerBroker;
    /// The password that guards that file against changes.
    "ssl.truststore.password" ssl_truststore_password: Option<Password> = Null, Any, PerBroker;
    /// The trusted certificates in PEM form, in place of a file.
    "ssl.truststore.certificates"
        ssl_truststore_certificates: Option<Password> = Null, Any, PerBroker;
    /// How the name in a client's certificate becomes a principal; the first rule that fits counts.
    "ssl.principal.mapping.rules" ssl_principal_mapping_rules: String = "DEFAULT", Any, ReadOnly;
    /// Whether a new key may carry another name while the node runs.
    "ssl.allow.dn.changes" ssl_allow_dn_changes: bool = "false", Any, ReadOnly;
    /// Whether a new key may drop alternative names while the node runs.
    "ssl.allow.san.changes" ssl_allow_san_changes: bool = "false", Any, ReadOnly;
    /// A Java class that would do TLS.
    "ssl.engine.factory.class"
        ssl_engine_factory_class: Option<Class> = Null, Any, PerBroker, Inert;
    /// The Java algorithm that would choose keys.
    "ssl.keymanager.algorithm" ssl_keymanager_algorithm: String = "SunX509", Any, PerBroker, Inert;
    /// The Java algorithm that would check certificates.
    "ssl.trustmanager.algorithm" ssl_trustmanager_algorithm: String = "PKIX", Any, PerBroker, Inert;
    /// The Java provider that would do TLS.
    "ssl.provider" ssl_provider: Option<String> = Null, Any, PerBroker, Inert;
    /// The Java source of chance for TLS.
    "ssl.secure.random.implementation"
        ssl_secure_random_implementation: Option<String> = Null, Any, PerBroker, Inert;

    // Quotas and metrics
    /// How many windows of time the rates of clients are measured over.
    "quota.window.num" quota_window_num: i32 = "11", AtLeast(1), ReadOnly;
    /// How long each window of clients' rates is.
    "quota.window.size.seconds" quota_window_size_seconds: i32 = "1", AtLeast(1), ReadOnly;
    /// How many windows of time the rate of changes to topics is measured over.
    "controller.quota.window.num" controller_quota_window_num: i32 = "11", AtLeast(1), ReadOnly;
    /// How long each window of changes to topics is.
    "controller.quota.window.size.seconds"
        controller_quota_window_size_seconds: i32 = "1", AtLeast(1), ReadOnly;
    /// A Java class that would know the quotas of clients.
    "client.quota.callback.class"
        client_quota_callback_class: Option<Class> = Null, Any, ReadOnly, Inert;
    /// Java classes that would carry metrics elsewhere.
    "metric.reporters"
        metric_reporters: Vec<String> =
            "org.apache.kafka.common.metrics.JmxReporter", Any, ClusterWide, Inert;
    /// How many samples a metric would be computed of.
    "metrics.num.samples" metrics_num_samples: i32 = "2", AtLeast(1), ReadOnly, Inert;
    /// How long each sample of a metric would be.
    "metrics.sample.window.ms" metrics_sample_window_ms: i64 = "30000", AtLeast(1), ReadOnly, Inert;
    /// Which metrics would be recorded, by their detail.
    "metrics.recording.level" metrics_recording_level: String = "INFO", Any, ReadOnly, Inert;
    /// Java classes that would carry the older metrics elsewhere.
    "kafka.metrics.reporters" kafka_metrics_reporters: Vec<String> = "", Any, ReadOnly, Inert;
    /// How often these classes would look at the metrics.
    "kafka.metrics.polling.interval.secs"
        kafka_metrics_polling_interval_secs: i32 = "10", AtLeast(1), ReadOnly, Inert;

    // Quorum and metadata
    /// How long a controller stands for election before it tries again.
    "controller.quorum.election.timeout.ms"
        controller_quorum_election_timeout_ms: i32 = "1000", AtLeast(0), ReadOnly;
    /// The longest wait, drawn by chance, between two attempts to be elected.
    "controller.quorum.election.backoff.max.ms"
        controller_quorum_election_backoff_max_ms: i32 = "1000", AtLeast(0), ReadOnly;
    /// After how long without word from the leader a controller stands for election.
    "controller.quorum.fetch.timeout.ms"
        controller_quorum_fetch_timeout_ms: i32 = "2000", AtLeast(0), ReadOnly;
    /// How long metadata changes gather before they are written together.
    "controller.quorum.append.linger.ms"
        controller_quorum_append_linger_ms: i32 = "25", AtLeast(0), ReadOnly;
    /// How long a controller waits for another's answer.
    "controller.quorum.request.timeout.ms"
        controller_quorum_request_timeout_ms: i32 = "2000", AtLeast(0), ReadOnly;
    /// How long a controller rests after a failed request to another.
    "controller.quorum.retry.backoff.ms"
        controller_quorum_retry_backoff_ms: i32 = "20", AtLeast(0), ReadOnly;
    /// The directory of the metadata log; by default the first of all.
    "metadata.log.dir" metadata_log_dir: Option<String> = Null, Any, ReadOnly;
    /// How many bytes of metadata changes are written before a snapshot is taken.
    "metadata.log.max.record.bytes.between.snapshots"
        metadata_log_max_record_bytes_between_snapshots: i64 = "20971520", AtLeast(1), ReadOnly;
    /// How old the last snapshot may get while there are changes; zero for no limit.
    "metadata.log.max.snapshot.interval.ms"
        metadata_log_max_snapshot_interval_ms: i64 = "3600000", AtLeast(0), ReadOnly;
    /// The size at which the metadata log goes on in a new segment.
    "metadata.log.segment.bytes"
        metadata_log_segment_bytes: i32 = "1073741824", AtLeast(8_388_608), ReadOnly;
    /// The age at which the metadata log goes on in a new segment.
    "metadata.log.segment.ms" metadata_log_segment_ms: i64 = "604800000", Any, ReadOnly;
    /// How often a resting controller writes an empty record, so that others see it live; zero for
    /// never.
    "metadata.max.idle.interval.ms"
        metadata_max_idle_interval_ms: i32 = "500", AtLeast(0), ReadOnly;
    /// The size above which old snapshots and metadata segments are removed.
    "metadata.max.retention.bytes" metadata_max_retention_bytes: i64 = "104857600", Any, ReadOnly;
    /// The age above which old snapshots and metadata segments are removed.
    "metadata.max.retention.ms" metadata_max_retention_ms: i64 = "604800000", Any, ReadOnly;
    /// Above which time a controller event would always be logged.
    "controller.performance.always.log.threshold.ms"
        controller_performance_always_log_threshold_ms: i64 =
            "2000", AtLeast(0), ReadOnly, Internal, Inert;
    /// How often the times of controller events would be logged.
    "controller.performance.sample.period.ms"
        controller_performance_sample_period_ms: i64 =
            "60000", AtLeast(100), ReadOnly, Internal, Inert;
    /// How long dropped files of the metadata log stay under another name.
    "internal.metadata.delete.delay.millis"
        internal_metadata_delete_delay_millis: i64 = "60000", Any, ReadOnly, Internal;
    /// The size of metadata segments, for tests that need small ones.
    "internal.metadata.log.segment.bytes"
        internal_metadata_log_segment_bytes: Option<i32> = Null, Any, ReadOnly, Internal;
    /// The largest batch of the metadata log.
    "internal.metadata.max.batch.size.in.bytes"
        internal_metadata_max_batch_size_in_bytes: i32 = "8388608", Any, ReadOnly, Internal, Inert;
    /// The most of the metadata log that one fetch is answered with.
    "internal.metadata.max.fetch.size.in.bytes"
        internal_metadata_max_fetch_size_in_bytes: i32 = "8388608", Any, ReadOnly, Internal, Inert;

    // Tiered storage, which is not served here: options that only matter with it are accepted
    /// The size of what would stay on local disks of a tiered log; -2 for all that is kept.
    "log.local.retention.bytes"
        log_local_retention_bytes: i64 = "-2", AtLeast(-2), ClusterWide, Inert;
    /// The age of what would stay on local disks of a tiered log; -2 for all that is kept.
    "log.local.retention.ms" log_local_retention_ms: i64 = "-2", AtLeast(-2), ClusterWide, Inert;
    /// Whether logs would be tiered at all.
    "remote.log.storage.system.enable"
        remote_log_storage_system_enable: bool = "false", Any, ReadOnly, Inert;
    /// A Java class that would store segments elsewhere.
    "remote.log.storage.manager.class.name"
        remote_log_storage_manager_class_name: Option<String> = Null, NonEmptyText, ReadOnly, Inert;
    /// Where that class would be found.
    "remote.log.storage.manager.class.path"
        remote_log_storage_manager_class_path: Option<String> = Null, Any, ReadOnly, Inert;
    /// The prefix of the options that class would be given.
    "remote.log.storage.manager.impl.prefix"
        remote_log_storage_manager_impl_prefix: String =
            "rsm.config.", NonEmptyText, ReadOnly, Inert;
    /// A Java class that would know what is stored elsewhere.
    "remote.log.metadata.manager.class.name"
        remote_log_metadata_manager_class_name: String =
            "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
            NonEmptyText, ReadOnly, Inert;
    /// Where the class that knows would be found.
    "remote.log.metadata.manager.class.path"
        remote_log_metadata_manager_class_path: Option<String> = Null, Any, ReadOnly, Inert;
    /// The prefix of the options the class that knows would be given.
    "remote.log.metadata.manager.impl.prefix"
        remote_log_metadata_manager_impl_prefix: String =
            "rlmm.config.", NonEmptyText, ReadOnly, Inert;
    /// The listener by which the class that knows would reach brokers.
    "remote.log.metadata.manager.listener.name"
        remote_log_metadata_manager_listener_name: Option<String> =
            Null, NonEmptyText, ReadOnly, Inert;
    /// The longest note that the class that stores could leave about a segment.
    "remote.log.metadata.custom.metadata.max.bytes"
        remote_log_metadata_custom_metadata_max_bytes: i32 = "128", AtLeast(0), ReadOnly, Inert;
    /// The disk space for indexes of segments stored elsewhere.
    "remote.log.index.file.cache.total.size.bytes"
        remote_log_index_file_cache_total_size_bytes: i64 =
            "1073741824", AtLeast(1), ClusterWide, Inert;
    /// How often segments would be searched for those to move.
    "remote.log.manager.task.interval.ms"
        remote_log_manager_task_interval_ms: i64 = "30000", AtLeast(1), ReadOnly, Inert;
    /// How long the first wait would be after a failed move.
    "remote.log.manager.task.retry.backoff.ms"
        remote_log_manager_task_retry_backoff_ms: i64 =
            "500", AtLeast(1), ReadOnly, Internal, Inert;
    /// The most that growing waits after failed moves would each take.
    "remote.log.manager.task.retry.backoff.max.ms"
        remote_log_manager_task_retry_backoff_max_ms: i64 =
            "30000", AtLeast(1), ReadOnly, Internal, Inert;
    /// How much these waits would be moved by chance.
    "remote.log.manager.task.retry.jitter"
        remote_log_manager_task_retry_jitter: f64 =
            "0.2", BetweenReal(0.0, 0.5), ReadOnly, Internal, Inert;
    /// Threads that would follow the partitions of tiered logs.
    "remote.log.manager.thread.pool.size"
        remote_log_manager_thread_pool_size: i32 = "2", AtLeast(1), ReadOnly, Inert;
    /// Threads that would copy segments away.
    "remote.log.manager.copier.thread.pool.size"
        remote_log_manager_copier_thread_pool_size: i32 = "10", AtLeast(1), ClusterWide, Inert;
    /// Threads that would delete segments stored elsewhere.
    "remote.log.manager.expiration.thread.pool.size"
        remote_log_manager_expiration_thread_pool_size: i32 = "10", AtLeast(1), ClusterWide, Inert;
    /// How many bytes a second would be copied away.
    "remote.log.manager.copy.max.bytes.per.second"
        remote_log_manager_copy_max_bytes_per_second: i64 =
            "9223372036854775807", AtLeast(1), ClusterWide, Inert;
    /// How many windows of time that rate would be measured over.
    "remote.log.manager.copy.quota.window.num"
        remote_log_manager_copy_quota_window_num: i32 = "11", AtLeast(1), ReadOnly, Inert;
    /// How long each window of copying would be.
    "remote.log.manager.copy.quota.window.size.seconds"
        remote_log_manager_copy_quota_window_size_seconds: i32 = "1", AtLeast(1), ReadOnly, Inert;
    /// How many bytes a second would be read from elsewhere.
    "remote.log.manager.fetch.max.bytes.per.second"
        remote_log_manager_fetch_max_bytes_per_second: i64 =
            "9223372036854775807", AtLeast(1), ClusterWide, Inert;
    /// How many windows of time the rate of reading would be measured over.
    "remote.log.manager.fetch.quota.window.num"
        remote_log_manager_fetch_quota_window_num: i32 = "11", AtLeast(1), ReadOnly, Inert;
    /// How long each window of reading would be.
    "remote.log.manager.fetch.quota.window.size.seconds"
        remote_log_manager_fetch_quota_window_size_seconds: i32 = "1", AtLeast(1), ReadOnly, Inert;
    /// Threads that would read segments stored elsewhere.
    "remote.log.reader.threads"
        remote_log_reader_threads: i32 = "10", AtLeast(1), ClusterWide, Inert;
    /// How many such reads could wait.
    "remote.log.reader.max.pending.tasks"
        remote_log_reader_max_pending_tasks: i32 = "100", AtLeast(1), ReadOnly, Inert;
    /// How long a fetch would wait for data stored elsewhere.
    "remote.fetch.max.wait.ms"
        remote_fetch_max_wait_ms: i32 = "500", AtLeast(1), ClusterWide, Inert;
    /// How long a search for offsets stored elsewhere could take.
    "remote.list.offsets.request.timeout.ms"
        remote_list_offsets_request_timeout_ms: i64 = "30000", AtLeast(1), ClusterWide, Inert;
}
