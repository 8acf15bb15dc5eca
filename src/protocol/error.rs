//! Error codes and refusals: what a client is told.
//!
//! The table is the whole of org.apache.kafka.common.protocol.Errors in 4.1.

use std::borrow::Cow;
use std::fmt;

macro_rules! error_codes {
    ($($code:literal $variant:ident $name:literal $message:literal;)*) => {
        /// A code of the Kafka protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i16)]
        pub(crate) enum ErrorCode {
            $(#[doc = $message] $variant = $code,)*
        }

        impl ErrorCode {
            /// The code as it is written.
            pub(crate) const fn code(self) -> i16 {
                match self { $(Self::$variant => $code,)* }
            }

            /// The code that a number stands for.
            pub(crate) const fn from_code(code: i16) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }

            /// Kafka's name of the code, as UNKNOWN_TOPIC_OR_PARTITION.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The sentence that Kafka's clients and brokers attach when nothing better is known.
            pub(crate) const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)* }
            }
        }
    };
}

error_codes! {
    -1 UnknownServerError "UNKNOWN_SERVER_ERROR" "The server experienced an unexpected error when processing the request.";
    0 None "NONE" "No error.";
    1 OffsetOutOfRange "OFFSET_OUT_OF_RANGE" "The requested offset is not within the range of offsets maintained by the server.";
    2 CorruptMessage "CORRUPT_MESSAGE" "This message has failed its CRC checksum, exceeds the valid size, has a null key for a compacted topic, or is otherwise corrupt.";
    3 UnknownTopicOrPartition "UNKNOWN_TOPIC_OR_PARTITION" "This server does not host this topic-partition.";
    4 InvalidFetchSize "INVALID_FETCH_SIZE" "The requested fetch size is invalid.";
    5 LeaderNotAvailable "LEADER_NOT_AVAILABLE" "There is no leader for this topic-partition as we are in the middle of a leadership election.";
    6 NotLeaderOrFollower "NOT_LEADER_OR_FOLLOWER" "For requests intended only for the leader, this error indicates that the broker is not the current leader. For requests intended for any replica, this error indicates that the broker is not a replica of the topic partition.";
    7 RequestTimedOut "REQUEST_TIMED_OUT" "The request timed out.";
    8 BrokerNotAvailable "BROKER_NOT_AVAILABLE" "The broker is not available.";
    9 ReplicaNotAvailable "REPLICA_NOT_AVAILABLE" "The replica is not available for the requested topic-partition. Produce/Fetch requests and other requests intended only for the leader or follower return NOT_LEADER_OR_FOLLOWER if the broker is not a replica of the topic-partition.";
    10 MessageTooLarge "MESSAGE_TOO_LARGE" "The request included a message larger than the max message size the server will accept.";
    11 StaleControllerEpoch "STALE_CONTROLLER_EPOCH" "The controller moved to another broker.";
    12 OffsetMetadataTooLarge "OFFSET_METADATA_TOO_LARGE" "The metadata field of the offset request was too large.";
    13 NetworkException "NETWORK_EXCEPTION" "The server disconnected before a response was received.";
    14 CoordinatorLoadInProgress "COORDINATOR_LOAD_IN_PROGRESS" "The coordinator is loading and hence can't process requests.";
    15 CoordinatorNotAvailable "COORDINATOR_NOT_AVAILABLE" "The coordinator is not available.";
    16 NotCoordinator "NOT_COORDINATOR" "This is not the correct coordinator.";
    17 InvalidTopicException "INVALID_TOPIC_EXCEPTION" "The request attempted to perform an operation on an invalid topic.";
    18 RecordListTooLarge "RECORD_LIST_TOO_LARGE" "The request included message batch larger than the configured segment size on the server.";
    19 NotEnoughReplicas "NOT_ENOUGH_REPLICAS" "Messages are rejected since there are fewer in-sync replicas than required.";
    20 NotEnoughReplicasAfterAppend "NOT_ENOUGH_REPLICAS_AFTER_APPEND" "Messages are written to the log, but to fewer in-sync replicas than required.";
    21 InvalidRequiredAcks "INVALID_REQUIRED_ACKS" "Produce request specified an invalid value for required acks.";
    22 IllegalGeneration "ILLEGAL_GENERATION" "Specified group generation id is not valid.";
    23 InconsistentGroupProtocol "INCONSISTENT_GROUP_PROTOCOL" "The group member's supported protocols are incompatible with those of existing members or first group member tried to join with empty protocol type or empty protocol list.";
    24 InvalidGroupId "INVALID_GROUP_ID" "The group id is invalid.";
    25 UnknownMemberId "UNKNOWN_MEMBER_ID" "The coordinator is not aware of this member.";
    26 InvalidSessionTimeout "INVALID_SESSION_TIMEOUT" "The session timeout is not within the range allowed by the broker (as configured by group.min.session.timeout.ms and group.max.session.timeout.ms).";
    27 RebalanceInProgress "REBALANCE_IN_PROGRESS" "The group is rebalancing, so a rejoin is needed.";
    28 InvalidCommitOffsetSize "INVALID_COMMIT_OFFSET_SIZE" "The committing offset data size is not valid.";
    29 TopicAuthorizationFailed "TOPIC_AUTHORIZATION_FAILED" "Topic authorization failed.";
    30 GroupAuthorizationFailed "GROUP_AUTHORIZATION_FAILED" "Group authorization failed.";
    31 ClusterAuthorizationFailed "CLUSTER_AUTHORIZATION_FAILED" "Cluster authorization failed.";
    32 InvalidTimestamp "INVALID_TIMESTAMP" "The timestamp of the message is out of acceptable range.";
    33 UnsupportedSaslMechanism "UNSUPPORTED_SASL_MECHANISM" "The broker does not support the requested SASL mechanism.";
    34 IllegalSaslState "ILLEGAL_SASL_STATE" "Request is not valid given the current SASL state.";
    35 UnsupportedVersion "UNSUPPORTED_VERSION" "The version of API is not supported.";
    36 TopicAlreadyExists "TOPIC_ALREADY_EXISTS" "Topic with this name already exists.";
    37 InvalidPartitions "INVALID_PARTITIONS" "Number of partitions is below 1.";
    38 InvalidReplicationFactor "INVALID_REPLICATION_FACTOR" "Replication factor is below 1 or larger than the number of available brokers.";
    39 InvalidReplicaAssignment "INVALID_REPLICA_ASSIGNMENT" "Replica assignment is invalid.";
    40 InvalidConfig "INVALID_CONFIG" "Configuration is invalid.";
    41 NotController "NOT_CONTROLLER" "This is not the correct controller for this cluster.";
    42 InvalidRequest "INVALID_REQUEST" "This most likely occurs because of a request being malformed by the client library or the message was sent to an incompatible broker. See the broker logs for more details.";
    43 UnsupportedForMessageFormat "UNSUPPORTED_FOR_MESSAGE_FORMAT" "The message format version on the broker does not support the request.";
    44 PolicyViolation "POLICY_VIOLATION" "Request parameters do not satisfy the configured policy.";
    45 OutOfOrderSequenceNumber "OUT_OF_ORDER_SEQUENCE_NUMBER" "The broker received an out of order sequence number.";
    46 DuplicateSequenceNumber "DUPLICATE_SEQUENCE_NUMBER" "The broker received a duplicate sequence number.";
    47 InvalidProducerEpoch "INVALID_PRODUCER_EPOCH" "Producer attempted to produce with an old epoch.";
    48 InvalidTxnState "INVALID_TXN_STATE" "The producer attempted a transactional operation in an invalid state.";
    49 InvalidProducerIdMapping "INVALID_PRODUCER_ID_MAPPING" "The producer attempted to use a producer id which is not currently assigned to its transactional id.";
    50 InvalidTransactionTimeout "INVALID_TRANSACTION_TIMEOUT" "The transaction timeout is larger than the maximum value allowed by the broker (as configured by transaction.max.timeout.ms).";
    51 ConcurrentTransactions "CONCURRENT_TRANSACTIONS" "The producer attempted to update a transaction while another concurrent operation on the same transaction was ongoing.";
    52 TransactionCoordinatorFenced "TRANSACTION_COORDINATOR_FENCED" "Indicates that the transaction coordinator sending a WriteTxnMarker is no longer the current coordinator for a given producer.";
    53 TransactionalIdAuthorizationFailed "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" "Transactional Id authorization failed.";
    54 SecurityDisabled "SECURITY_DISABLED" "Security features are disabled.";
    55 OperationNotAttempted "OPERATION_NOT_ATTEMPTED" "The broker did not attempt to execute this operation. This may happen for batched RPCs where some operations in the batch failed, causing the broker to respond without trying the rest.";
    56 KafkaStorageError "KAFKA_STORAGE_ERROR" "Disk error when trying to access log file on the disk.";
    57 LogDirNotFound "LOG_DIR_NOT_FOUND" "The user-specified log directory is not found in the broker config.";
    58 SaslAuthenticationFailed "SASL_AUTHENTICATION_FAILED" "SASL Authentication failed.";
    59 UnknownProducerId "UNKNOWN_PRODUCER_ID" "This exception is raised by the broker if it could not locate the producer metadata associated with the producerId in question. This could happen if, for instance, the producer's records were deleted because their retention time had elapsed. Once the last records of the producerId are removed, the producer's metadata is removed from the broker, and future appends by the producer will return this exception.";
    60 ReassignmentInProgress "REASSIGNMENT_IN_PROGRESS" "A partition reassignment is in progress.";
    61 DelegationTokenAuthDisabled "DELEGATION_TOKEN_AUTH_DISABLED" "Delegation Token feature is not enabled.";
    62 DelegationTokenNotFound "DELEGATION_TOKEN_NOT_FOUND" "Delegation Token is not found on server.";
    63 DelegationTokenOwnerMismatch "DELEGATION_TOKEN_OWNER_MISMATCH" "Specified Principal is not valid Owner/Renewer.";
    64 DelegationTokenRequestNotAllowed "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token authenticated channels.";
    65 DelegationTokenAuthorizationFailed "DELEGATION_TOKEN_AUTHORIZATION_FAILED" "Delegation Token authorization failed.";
    66 DelegationTokenExpired "DELEGATION_TOKEN_EXPIRED" "Delegation Token is expired.";
    67 InvalidPrincipalType "INVALID_PRINCIPAL_TYPE" "Supplied principalType is not supported.";
    68 NonEmptyGroup "NON_EMPTY_GROUP" "The group is not empty.";
    69 GroupIdNotFound "GROUP_ID_NOT_FOUND" "The group id does not exist.";
    70 FetchSessionIdNotFound "FETCH_SESSION_ID_NOT_FOUND" "The fetch session ID was not found.";
    71 InvalidFetchSessionEpoch "INVALID_FETCH_SESSION_EPOCH" "The fetch session epoch is invalid.";
    72 ListenerNotFound "LISTENER_NOT_FOUND" "There is no listener on the leader broker that matches the listener on which metadata request was processed.";
    73 TopicDeletionDisabled "TOPIC_DELETION_DISABLED" "Topic deletion is disabled.";
    74 FencedLeaderEpoch "FENCED_LEADER_EPOCH" "The leader epoch in the request is older than the epoch on the broker.";
    75 UnknownLeaderEpoch "UNKNOWN_LEADER_EPOCH" "The leader epoch in the request is newer than the epoch on the broker.";
    76 UnsupportedCompressionType "UNSUPPORTED_COMPRESSION_TYPE" "The requesting client does not support the compression type of given partition.";
    77 StaleBrokerEpoch "STALE_BROKER_EPOCH" "Broker epoch has changed.";
    78 OffsetNotAvailable "OFFSET_NOT_AVAILABLE" "The leader high watermark has not caught up from a recent leader election so the offsets cannot be guaranteed to be monotonically increasing.";
    79 MemberIdRequired "MEMBER_ID_REQUIRED" "The group member needs to have a valid member id before actually entering a consumer group.";
    80 PreferredLeaderNotAvailable "PREFERRED_LEADER_NOT_AVAILABLE" "The preferred leader was not available.";
    81 GroupMaxSizeReached "GROUP_MAX_SIZE_REACHED" "The group has reached its maximum size.";
    82 FencedInstanceId "FENCED_INSTANCE_ID" "The broker rejected this static consumer since another consumer with the same group.instance.id has registered with a different member.id.";
    83 EligibleLeadersNotAvailable "ELIGIBLE_LEADERS_NOT_AVAILABLE" "Eligible topic partition leaders are not available.";
    84 ElectionNotNeeded "ELECTION_NOT_NEEDED" "Leader election not needed for topic partition.";
    85 NoReassignmentInProgress "NO_REASSIGNMENT_IN_PROGRESS" "No partition reassignment is in progress.";
    86 GroupSubscribedToTopic "GROUP_SUBSCRIBED_TO_TOPIC" "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it.";
    87 InvalidRecord "INVALID_RECORD" "This record has failed the validation on broker and hence will be rejected.";
    88 UnstableOffsetCommit "UNSTABLE_OFFSET_COMMIT" "There are unstable offsets that need to be cleared.";
    89 ThrottlingQuotaExceeded "THROTTLING_QUOTA_EXCEEDED" "The throttling quota has been exceeded.";
    90 ProducerFenced "PRODUCER_FENCED" "There is a newer producer with the same transactionalId which fences the current one.";
    91 ResourceNotFound "RESOURCE_NOT_FOUND" "A request illegally referred to a resource that does not exist.";
    92 DuplicateResource "DUPLICATE_RESOURCE" "A request illegally referred to the same resource twice.";
    93 UnacceptableCredential "UNACCEPTABLE_CREDENTIAL" "Requested credential would not meet criteria for acceptability.";
    94 InconsistentVoterSet "INCONSISTENT_VOTER_SET" "Indicates that the either the sender or recipient of a voter-only request is not one of the expected voters.";
    95 InvalidUpdateVersion "INVALID_UPDATE_VERSION" "The given update version was invalid.";
    96 FeatureUpdateFailed "FEATURE_UPDATE_FAILED" "Unable to update finalized features due to an unexpected server error.";
    97 PrincipalDeserializationFailure "PRINCIPAL_DESERIALIZATION_FAILURE" "Request principal deserialization failed during forwarding. This indicates an internal error on the broker cluster security setup.";
    98 SnapshotNotFound "SNAPSHOT_NOT_FOUND" "Requested snapshot was not found.";
    99 PositionOutOfRange "POSITION_OUT_OF_RANGE" "Requested position is not greater than or equal to zero, and less than the size of the snapshot.";
    100 UnknownTopicId "UNKNOWN_TOPIC_ID" "This server does not host this topic ID.";
    101 DuplicateBrokerRegistration "DUPLICATE_BROKER_REGISTRATION" "This broker ID is already in use.";
    102 BrokerIdNotRegistered "BROKER_ID_NOT_REGISTERED" "The given broker ID was not registered.";
    103 InconsistentTopicId "INCONSISTENT_TOPIC_ID" "The log's topic ID did not match the topic ID in the request.";
    104 InconsistentClusterId "INCONSISTENT_CLUSTER_ID" "The clusterId in the request does not match that found on the server.";
    105 TransactionalIdNotFound "TRANSACTIONAL_ID_NOT_FOUND" "The transactionalId could not be found.";
    106 FetchSessionTopicIdError "FETCH_SESSION_TOPIC_ID_ERROR" "The fetch session encountered inconsistent topic ID usage.";
    107 IneligibleReplica "INELIGIBLE_REPLICA" "The new ISR contains at least one ineligible replica.";
    108 NewLeaderElected "NEW_LEADER_ELECTED" "The AlterPartition request successfully updated the partition state but the leader has changed.";
    109 OffsetMovedToTieredStorage "OFFSET_MOVED_TO_TIERED_STORAGE" "The requested offset is moved to tiered storage.";
    110 FencedMemberEpoch "FENCED_MEMBER_EPOCH" "The member epoch is fenced by the group coordinator. The member must abandon all its partitions and rejoin.";
    111 UnreleasedInstanceId "UNRELEASED_INSTANCE_ID" "The instance ID is still used by another member in the consumer group. That member must leave first.";
    112 UnsupportedAssignor "UNSUPPORTED_ASSIGNOR" "The assignor or its version range is not supported by the consumer group.";
    113 StaleMemberEpoch "STALE_MEMBER_EPOCH" "The member epoch is stale. The member must retry after receiving its updated member epoch via the ConsumerGroupHeartbeat API.";
    114 MismatchedEndpointType "MISMATCHED_ENDPOINT_TYPE" "The request was sent to an endpoint of the wrong type.";
    115 UnsupportedEndpointType "UNSUPPORTED_ENDPOINT_TYPE" "This endpoint type is not supported yet.";
    116 UnknownControllerId "UNKNOWN_CONTROLLER_ID" "This controller ID is not known.";
    117 UnknownSubscriptionId "UNKNOWN_SUBSCRIPTION_ID" "Client sent a push telemetry request with an invalid or outdated subscription ID.";
    118 TelemetryTooLarge "TELEMETRY_TOO_LARGE" "Client sent a push telemetry request larger than the maximum size the broker will accept.";
    119 InvalidRegistration "INVALID_REGISTRATION" "The controller has considered the broker registration to be invalid.";
    120 TransactionAbortable "TRANSACTION_ABORTABLE" "The server encountered an error with the transaction. The client can abort the transaction to continue using this transactional ID.";
    121 InvalidRecordState "INVALID_RECORD_STATE" "The record state is invalid. The acknowledgement of delivery could not be completed.";
    122 ShareSessionNotFound "SHARE_SESSION_NOT_FOUND" "The share session was not found.";
    123 InvalidShareSessionEpoch "INVALID_SHARE_SESSION_EPOCH" "The share session epoch is invalid.";
    124 FencedStateEpoch "FENCED_STATE_EPOCH" "The share coordinator rejected the request because the share-group state epoch did not match.";
    125 InvalidVoterKey "INVALID_VOTER_KEY" "The voter key doesn't match the receiving replica's key.";
    126 DuplicateVoter "DUPLICATE_VOTER" "The voter is already part of the set of voters.";
    127 VoterNotFound "VOTER_NOT_FOUND" "The voter is not part of the set of voters.";
    128 InvalidRegularExpression "INVALID_REGULAR_EXPRESSION" "The regular expression is not valid.";
    129 RebootstrapRequired "REBOOTSTRAP_REQUIRED" "Client metadata is stale. The client should rebootstrap to obtain new metadata.";
    130 StreamsInvalidTopology "STREAMS_INVALID_TOPOLOGY" "The supplied topology is invalid.";
    131 StreamsInvalidTopologyEpoch "STREAMS_INVALID_TOPOLOGY_EPOCH" "The supplied topology epoch is invalid.";
    132 StreamsTopologyFenced "STREAMS_TOPOLOGY_FENCED" "The supplied topology epoch is outdated.";
    133 ShareSessionLimitReached "SHARE_SESSION_LIMIT_REACHED" "The limit of share sessions has been reached.";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An answer that says no: a wire code and, where the API has room for it, a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {}", self.message.as_deref().unwrap_or_else(|| self.code.message()))]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    /// `None` when Kafka attaches no words of its own.
    pub(crate) message: Option<Cow<'static, str>>,
}

impl Refusal {
    /// Refuses with words for the client.
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: Some(message.into()),
        }
    }

    /// Refuses with the code alone.
    pub(crate) const fn bare(code: ErrorCode) -> Self {
        Self {
            code,
            message: None,
        }
    }

    /// The words for the client: its own, or Kafka's default ones of the code.
    pub(crate) fn words(&self) -> &str {
        self.message
            .as_deref()
            .unwrap_or_else(|| self.code.message())
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Self::bare(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_number() {
        for code in -1..=133 {
            assert_eq!(ErrorCode::from_code(code).map(ErrorCode::code), Some(code));
        }
        assert_eq!(ErrorCode::from_code(134), None);
        assert_eq!(ErrorCode::UnknownTopicId.name(), "UNKNOWN_TOPIC_ID");
    }
}
