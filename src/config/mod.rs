//! Every option there is, declared once: what it is called, what it may be, what it is worth
//! unless set, and what it answers when described or altered.
//!
//! - [`key`]: what is known of an option; the macro that declares them
//! - [`value`]: texts to values and back, with Kafka's words for what is refused
//! - [`properties`]: `server.properties`, the `KAFKA_*` variables, the default node
//! - [`broker_keys`], [`topic`], [`group`], [`client_metrics`], [`quota`]: the options themselves
//! - [`broker`]: what the broker's options mean together
//! - [`start`]: what a node refuses to start with
//! - [`listeners`]: addresses and their protocols
//! - [`options`]: the options in force on a running node
//! - [`describe`]: what DescribeConfigs and CreateTopics answer
//! - [`alter`]: what AlterConfigs and IncrementalAlterConfigs accept
//! - [`order`]: the order in which Kafka lists options
//! - [`markdown`]: the reference of all options
//!
//! Everything here is a function of values: files, variables and time are the callers' business.

pub(crate) mod alter;
#[cfg(test)]
mod alter_test;
pub(crate) mod broker;
pub(crate) mod broker_keys;
#[cfg(test)]
mod broker_test;
pub(crate) mod client_metrics;
pub(crate) mod describe;
#[cfg(test)]
mod describe_test;
pub(crate) mod error;
pub(crate) mod group;
pub(crate) mod key;
pub(crate) mod listeners;
pub(crate) mod markdown;
pub(crate) mod options;
pub(crate) mod order;
pub(crate) mod properties;
pub(crate) mod quota;
mod start;
#[cfg(test)]
mod table_test;
pub(crate) mod topic;
pub(crate) mod value;

use std::collections::BTreeMap;

#[allow(
    unused_imports,
    reason = "the folder's face; callers take from it what they need"
)]
pub(crate) use self::{
    broker::{Given, Roles, Voter, Warnings},
    broker_keys::BrokerConfig,
    client_metrics::ClientMetricsConfig,
    error::{ConfigError, ErrorKind},
    group::{GroupConfig, OffsetReset},
    listeners::{Endpoint, Endpoints, SecurityProtocol},
    topic::{CleanupPolicy, CompressionType, TimestampType, TopicConfig},
    value::{Class, Password},
};

/// Options by name, as texts: a file's, or what was set on one resource.
pub(crate) type Values = BTreeMap<String, String>;
