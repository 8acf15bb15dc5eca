//! Options that were set at run time, by the resource they belong to.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::metadata::record::{ConfigRecord, Record};

use super::Contradiction;

/// What kinds of things have options (ConfigResource.Type).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ResourceType {
    Topic,
    Broker,
    BrokerLogger,
    ClientMetrics,
    Group,
}

/// Something that has options; a broker of the empty name stands for all brokers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Resource {
    pub(crate) kind: ResourceType,
    pub(crate) name: String,
}

/// The options of one resource, by name.
pub(crate) type Options = BTreeMap<String, String>;

/// All options that were set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Configs(Arc<HashMap<Resource, Arc<Options>>>);

impl ResourceType {
    /// The type as it is written.
    pub(crate) const fn code(self) -> i8 {
        match self {
            Self::Topic => 2,
            Self::Broker => 4,
            Self::BrokerLogger => 8,
            Self::ClientMetrics => 16,
            Self::Group => 32,
        }
    }

    /// The type that a number stands for.
    pub(crate) const fn from_code(code: i8) -> Option<Self> {
        match code {
            2 => Some(Self::Topic),
            4 => Some(Self::Broker),
            8 => Some(Self::BrokerLogger),
            16 => Some(Self::ClientMetrics),
            32 => Some(Self::Group),
            _ => None,
        }
    }
}

impl Resource {
    /// Names a resource.
    pub(crate) fn new(kind: ResourceType, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }

    /// A topic.
    pub(crate) fn topic(name: impl Into<String>) -> Self {
        Self::new(ResourceType::Topic, name)
    }

    /// The defaults of all brokers.
    pub(crate) fn all_brokers() -> Self {
        Self::new(ResourceType::Broker, "")
    }
}

impl Configs {
    /// The options of a resource, if any was set.
    pub(crate) fn of(&self, resource: &Resource) -> Option<&Arc<Options>> {
        self.0.get(resource)
    }

    /// One option of a resource.
    pub(crate) fn value(&self, resource: &Resource, name: &str) -> Option<&str> {
        self.of(resource)?.get(name).map(String::as_str)
    }

    /// Every resource that has options, in order.
    pub(crate) fn sorted(&self) -> Vec<(&Resource, &Arc<Options>)> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(resource, _)| *resource);
        all
    }

    pub(super) fn set(&mut self, record: &ConfigRecord) -> Result<(), Contradiction> {
        let kind = ResourceType::from_code(record.resource_type).ok_or(
            Contradiction::InvalidCode(record.resource_type, "resource type"),
        )?;
        let resource = Resource::new(kind, record.resource_name.as_str());
        let configs = Arc::make_mut(&mut self.0);
        match &record.value {
            Some(value) => {
                let options = configs.entry(resource).or_default();
                Arc::make_mut(options).insert(record.name.clone(), value.clone());
            }
            None => {
                if let Some(options) = configs.get_mut(&resource) {
                    Arc::make_mut(options).remove(&record.name);
                    if options.is_empty() {
                        configs.remove(&resource);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn remove_topic(&mut self, name: &str) {
        let topic = Resource::topic(name);
        if self.0.contains_key(&topic) {
            Arc::make_mut(&mut self.0).remove(&topic);
        }
    }

    pub(super) fn records(&self, out: &mut Vec<Record>) {
        for (resource, options) in self.sorted() {
            for (name, value) in options.iter() {
                out.push(Record::Config(ConfigRecord {
                    resource_type: resource.kind.code(),
                    resource_name: resource.name.clone(),
                    name: name.clone(),
                    value: Some(value.clone()),
                }));
            }
        }
    }
}
