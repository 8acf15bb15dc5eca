//! Options of topics, brokers, groups and client metrics (ConfigurationControlManager).
//!
//! What an option may be is asked of [`ConfigRules`]; here is decided what a request makes of the
//! options that are set, and which records say so.

use std::collections::{HashMap, HashSet};

use crate::base::NodeId;
use crate::metadata::image::configs::{Options, Resource, ResourceType};
use crate::metadata::record::{ClearElrRecord, ConfigRecord, Record};
use crate::protocol::error::{ErrorCode, Refusal};

use super::ask::{AlterConfigs, ConfigChange, ConfigOp, IncrementalAlterConfigs};
use super::state::{MIN_INSYNC_REPLICAS, State, within_limit};
use super::{Decided, Decision};

/// The longest value that the metadata log takes (Short.MAX_VALUE).
const LONGEST_VALUE: usize = 32_767;

/// What options may be set to.
pub(crate) trait ConfigRules: Send + Sync {
    /// Refuses options of a resource, with the code and words that a client gets. `all` is what
    /// would be set, `existing` what is.
    fn validate(
        &self,
        resource: &Resource,
        all: &Options,
        existing: &Options,
    ) -> Result<(), Refusal>;

    /// Whether an option is a list, which can be appended to.
    fn is_list(&self, kind: ResourceType, name: &str) -> bool;

    /// What an option is while nobody sets it.
    fn default_value(&self, kind: ResourceType, name: &str) -> Option<String>;
}

type Altered = Vec<(Resource, Result<(), Refusal>)>;

impl State {
    /// Changes options one by one.
    pub(super) fn incremental_alter_configs(
        &self,
        asked: &IncrementalAlterConfigs,
    ) -> Decided<Altered> {
        let altered = self.alter(&asked.resources, |state, resource, changes, records| {
            let records_before = records.len();
            let result = state.alter_one_by_one(resource, changes, records);
            if result.is_err() {
                records.truncate(records_before);
            }
            result
        })?;
        Ok(kept(altered, asked.validate_only))
    }

    /// Replaces all options of a resource.
    pub(super) fn alter_configs(&self, asked: &AlterConfigs) -> Decided<Altered> {
        let altered = self.alter(&asked.resources, |state, resource, options, records| {
            let all = state.replace(resource, options)?;
            records.extend(all);
            Ok(())
        })?;
        Ok(kept(altered, asked.validate_only))
    }

    /// The records that set a new topic's options.
    pub(super) fn new_topic_configs(
        &self,
        topic: &Resource,
        configs: &Options,
    ) -> Result<Vec<Record>, Refusal> {
        let records: Vec<_> = configs
            .iter()
            .map(|(name, value)| config_record(topic, name, Some(value.clone())))
            .collect();
        if !records.is_empty() {
            self.check_options(topic, &records)?;
        }
        let mut records: Vec<_> = records.into_iter().map(Record::from).collect();
        self.clear_elr_as_needed(&mut records);
        Ok(records)
    }

    fn alter<T>(
        &self,
        resources: &[(Resource, T)],
        decide: impl Fn(&Self, &Resource, &T, &mut Vec<Record>) -> Result<(), Refusal>,
    ) -> Decided<Altered> {
        let mut records = Vec::new();
        let mut reply: Altered = Vec::new();
        let mut times: HashMap<&Resource, usize> = HashMap::new();
        for (resource, _) in resources {
            *times.entry(resource).or_default() += 1;
        }
        let mut answered = HashSet::new();
        for (resource, wanted) in resources {
            if !answered.insert(resource) {
                continue;
            }
            let result = if times[resource] > 1 {
                Err(invalid("Each resource must appear at most once."))
            } else {
                decide(self, resource, wanted, &mut records)
            };
            reply.push((resource.clone(), result));
        }
        self.clear_elr_as_needed(&mut records);
        let records = within_limit(records)?;
        Ok(Decision { records, reply })
    }

    fn alter_one_by_one(
        &self,
        resource: &Resource,
        changes: &[ConfigChange],
        out: &mut Vec<Record>,
    ) -> Result<(), Refusal> {
        let mut names: Vec<_> = changes.iter().map(|change| change.name.as_str()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(invalid("Error due to duplicate config keys"));
        }
        let without_value = |c: &&ConfigChange| c.value.is_none() && c.op != ConfigOp::Delete;
        let nulls = changes.iter().filter(without_value);
        check_nulls(nulls.map(|change| change.name.as_str()).collect())?;
        let mut records = Vec::new();
        for change in changes {
            let before = self.image.configs.value(resource, &change.name);
            let after = self.changed(resource, change, before)?;
            // A broker reloads what an unchanged option names, as a key store.
            if after.as_deref() != before || resource.kind == ResourceType::Broker {
                records.push(config_record(resource, &change.name, after));
            }
        }
        self.check_options(resource, &records)?;
        self.check_exists(resource)?;
        out.extend(records.into_iter().map(Record::from));
        Ok(())
    }

    /// An option's value after a change.
    fn changed(
        &self,
        resource: &Resource,
        change: &ConfigChange,
        before: Option<&str>,
    ) -> Result<Option<String>, Refusal> {
        let value = change.value.as_deref().unwrap_or_default();
        let verb = match change.op {
            ConfigOp::Set => return Ok(Some(value.to_owned())),
            ConfigOp::Delete => return Ok(None),
            ConfigOp::Append => "APPEND",
            ConfigOp::Subtract => "SUBTRACT",
        };
        let rules = &self.settings.rules;
        if !rules.is_list(resource.kind, &change.name) {
            let name = &change.name;
            let words = format!("Can't {verb} to key {name} because its type is not LIST.");
            return Err(Refusal::new(ErrorCode::InvalidConfig, words));
        }
        let default = || rules.default_value(resource.kind, &change.name);
        let list = before
            .map(str::to_owned)
            .or_else(default)
            .unwrap_or_default();
        let mut parts: Vec<&str> = list.split(',').filter(|part| !part.is_empty()).collect();
        for part in value.split(',') {
            let place = parts.iter().position(|old| *old == part);
            match (change.op, place) {
                (ConfigOp::Append, None) => parts.push(part),
                (ConfigOp::Subtract, Some(place)) => {
                    parts.remove(place);
                }
                _ => {}
            }
        }
        Ok(Some(parts.join(",")))
    }

    /// The records that set these options and unset all others.
    fn replace(
        &self,
        resource: &Resource,
        options: &[(String, Option<String>)],
    ) -> Result<Vec<Record>, Refusal> {
        let nulls = options.iter().filter(|(_, value)| value.is_none());
        check_nulls(nulls.map(|(name, _)| name.as_str()).collect())?;
        let options: Options = options
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
            .collect();
        let existing = self.image.configs.of(resource);
        let existing = existing.map_or_else(Options::new, |options| options.as_ref().clone());
        let set = options
            .iter()
            .filter(|(name, value)| {
                existing.get(*name) != Some(*value) || resource.kind == ResourceType::Broker
            })
            .map(|(name, value)| config_record(resource, name, Some(value.clone())));
        let unset = existing
            .keys()
            .filter(|name| !options.contains_key(*name))
            .map(|name| config_record(resource, name, None));
        let records: Vec<_> = set.chain(unset).collect();
        self.check_options(resource, &records)?;
        self.check_exists(resource)?;
        Ok(records.into_iter().map(Record::from).collect())
    }

    /// Refuses what the options of a resource would be after these records.
    fn check_options(&self, resource: &Resource, records: &[ConfigRecord]) -> Result<(), Refusal> {
        let existing = self.image.configs.of(resource);
        let existing = existing.map_or_else(Options::new, |options| options.as_ref().clone());
        let mut all = existing.clone();
        for record in records {
            self.check_min_isr(resource, record)?;
            match &record.value {
                Some(value) if value.len() > LONGEST_VALUE => {
                    return Err(Refusal::new(
                        ErrorCode::InvalidConfig,
                        format!(
                            "The configuration value cannot be added because it exceeds the \
                             maximum value size of {LONGEST_VALUE} bytes."
                        ),
                    ));
                }
                Some(value) => {
                    all.insert(record.name.clone(), value.clone());
                }
                None => {
                    all.remove(&record.name);
                }
            }
        }
        self.settings.rules.validate(resource, &all, &existing)
    }

    /// With eligible leader replicas, the least in-sync replicas are the same for all brokers.
    fn check_min_isr(&self, resource: &Resource, record: &ConfigRecord) -> Result<(), Refusal> {
        let concerned = self.image.features.elr_enabled()
            && resource.kind == ResourceType::Broker
            && record.name == MIN_INSYNC_REPLICAS;
        let words = match (resource.name.is_empty(), &record.value) {
            (false, Some(_)) => {
                "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            }
            (true, None) => {
                "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
            }
            (true, Some(_)) | (false, None) => return Ok(()),
        };
        if concerned {
            Err(Refusal::new(ErrorCode::InvalidConfig, words))
        } else {
            Ok(())
        }
    }

    /// Topics and nodes must exist; groups and subscriptions need not
    /// (QuorumController.ConfigResourceExistenceChecker).
    fn check_exists(&self, resource: &Resource) -> Result<(), Refusal> {
        let name = &resource.name;
        match resource.kind {
            ResourceType::Topic if self.image.topics.by_name(name).is_none() => Err(Refusal::new(
                ErrorCode::UnknownTopicOrPartition,
                format!("The topic '{name}' does not exist."),
            )),
            ResourceType::Broker | ResourceType::BrokerLogger
                if !name.is_empty() && !self.is_node(name) =>
            {
                Err(Refusal::new(
                    ErrorCode::BrokerIdNotRegistered,
                    format!("No node with id {name} found."),
                ))
            }
            ResourceType::Topic
            | ResourceType::Broker
            | ResourceType::BrokerLogger
            | ResourceType::ClientMetrics
            | ResourceType::Group => Ok(()),
        }
    }

    fn is_node(&self, name: &str) -> bool {
        name.parse().map(NodeId).is_ok_and(|id| {
            self.image.brokers.registration(id).is_some()
                || self.image.controllers.registration(id).is_some()
        })
    }

    /// Who was eligible was so by the old number of in-sync replicas.
    fn clear_elr_as_needed(&self, records: &mut Vec<Record>) {
        if !self.image.features.elr_enabled() {
            return;
        }
        let clears: Vec<_> = records.iter().filter_map(clear_elr).collect();
        records.extend(clears);
    }

    /// What must hold once eligible leader replicas are kept: one number of in-sync replicas for
    /// all brokers, none for a single one.
    pub(super) fn elr_safety_records(&self) -> Vec<Record> {
        let configs = &self.image.configs;
        let all = Resource::all_brokers();
        let mut records = Vec::new();
        if configs.value(&all, MIN_INSYNC_REPLICAS).is_none() {
            let value = self.settings.min_insync_replicas.to_string();
            records.push(config_record(&all, MIN_INSYNC_REPLICAS, Some(value)).into());
        }
        for (resource, options) in configs.sorted() {
            let single = resource.kind == ResourceType::Broker && !resource.name.is_empty();
            if single && options.contains_key(MIN_INSYNC_REPLICAS) {
                records.push(config_record(resource, MIN_INSYNC_REPLICAS, None).into());
            }
        }
        records
    }
}

fn kept(mut altered: Decision<Altered>, validate_only: bool) -> Decision<Altered> {
    if validate_only {
        altered.records.clear();
    }
    altered
}

fn clear_elr(record: &Record) -> Option<Record> {
    let Record::Config(config) = record else {
        return None;
    };
    let topic_name = match ResourceType::from_code(config.resource_type)? {
        ResourceType::Topic => config.resource_name.clone(),
        ResourceType::Broker => String::new(),
        ResourceType::BrokerLogger | ResourceType::ClientMetrics | ResourceType::Group => {
            return None;
        }
    };
    (config.name == MIN_INSYNC_REPLICAS).then(|| ClearElrRecord { topic_name }.into())
}

fn config_record(resource: &Resource, name: &str, value: Option<String>) -> ConfigRecord {
    ConfigRecord {
        resource_type: resource.kind.code(),
        resource_name: resource.name.clone(),
        name: name.to_owned(),
        value,
    }
}

fn check_nulls(names: Vec<&str>) -> Result<(), Refusal> {
    if names.is_empty() {
        return Ok(());
    }
    let words = format!("Null value not supported for : {}", names.join(","));
    Err(Refusal::new(ErrorCode::InvalidRequest, words))
}

fn invalid(words: &'static str) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, words)
}
