//! What this session may see and do. There is no authorizer: everyone may do everything, and is
//! told so.

/// Every operation that a topic knows, as a bit field by operation code
/// (org.apache.kafka.common.acl.AclOperation): read, write, create, delete, alter, describe,
/// describe and alter configs.
pub(super) const ALL_TOPIC_OPERATIONS: i32 =
    1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11;

/// Every operation that the cluster knows: create, alter, describe, cluster action, describe and
/// alter configs, idempotent write.
pub(super) const ALL_CLUSTER_OPERATIONS: i32 =
    1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;

/// Every operation that a group knows: read, delete, describe, describe and alter configs.
pub(super) const ALL_GROUP_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

/// The field's value when it was not asked for.
pub(super) const NOT_ASKED: i32 = i32::MIN;
