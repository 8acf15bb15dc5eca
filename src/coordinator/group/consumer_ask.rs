//! What members of consumer groups may ask, and those who look at such groups (KIP-848).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ask::Client;
use super::assign::Assignment;
use crate::base::TopicId;

/// A member of a consumer group joins, reports, or leaves (ConsumerGroupHeartbeat). What is `None`
/// is as before.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerHeartbeat {
    pub(crate) group: Arc<str>,
    pub(crate) member: Arc<str>,
    /// 0 joins, -1 leaves, -2 goes away for a while.
    pub(crate) epoch: i32,
    pub(crate) instance: Option<Arc<str>>,
    pub(crate) rack: Option<Arc<str>>,
    pub(crate) rebalance_timeout_ms: Option<i32>,
    pub(crate) topics: Option<Vec<Arc<str>>>,
    pub(crate) regex: Option<Arc<str>>,
    pub(crate) assignor: Option<Arc<str>>,
    /// What it owns.
    pub(crate) owned: Option<Vec<(TopicId, Vec<i32>)>>,
    pub(crate) client: Client,
    /// It makes its own id (version 1).
    pub(crate) must_have_id: bool,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConsumerBeat {
    pub(crate) member: Arc<str>,
    pub(crate) epoch: i32,
    pub(crate) interval_ms: i32,
    /// `None` when it is as before.
    pub(crate) assignment: Option<Assignment>,
}

/// Consumer groups are asked for in full (ConsumerGroupDescribe).
#[derive(Clone, Debug)]
pub(crate) struct DescribeConsumerGroups {
    pub(crate) groups: Vec<Arc<str>>,
}

/// A consumer group in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedConsumerGroup {
    pub(crate) state: &'static str,
    pub(crate) epoch: i32,
    pub(crate) assignment_epoch: i32,
    pub(crate) assignor: Arc<str>,
    pub(crate) members: Vec<DescribedConsumer>,
}

/// A member of a consumer group in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DescribedConsumer {
    pub(crate) member: Arc<str>,
    pub(crate) instance: Option<Arc<str>>,
    pub(crate) rack: Option<Arc<str>>,
    pub(crate) epoch: i32,
    pub(crate) client: Client,
    pub(crate) topics: Vec<Arc<str>>,
    pub(crate) regex: Option<Arc<str>>,
    pub(crate) assigned: Assignment,
    pub(crate) target: Assignment,
    pub(crate) is_classic: bool,
}

/// Patterns of a group were looked up.
#[derive(Clone, Debug)]
pub(crate) struct TakeResolved {
    pub(crate) group: Arc<str>,
    /// The metadata they were looked up in.
    pub(crate) version: i64,
    pub(crate) resolved: Vec<(Arc<str>, BTreeSet<Arc<str>>)>,
}
