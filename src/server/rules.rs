//! What options the controller accepts: the option tables, asked in the controller's words.

use std::sync::Arc;

use crate::api::configs::refusal;
use crate::config::alter::{self, BrokerTarget};
use crate::config::client_metrics::plausible_pattern;
use crate::config::key::{self, ConfigType, Key};
use crate::config::options::Options;
use crate::config::{broker_keys, client_metrics, group, topic};
use crate::controller::configs::ConfigRules;
use crate::metadata::image::configs::{self, Resource, ResourceType};
use crate::protocol::error::Refusal;

/// The tables of this release, with the options in force on this node.
pub(super) struct Tables {
    pub(super) options: Arc<Options>,
}

impl ConfigRules for Tables {
    fn validate(
        &self,
        resource: &Resource,
        all: &configs::Options,
        existing: &configs::Options,
    ) -> Result<(), Refusal> {
        let current = self.options.current();
        let checked = match resource.kind {
            ResourceType::Topic => alter::check_topic(all, existing, &current.config),
            ResourceType::Group => alter::check_group(all, &current.config),
            ResourceType::ClientMetrics => {
                alter::check_client_metrics(all, &plausible_pattern).map(|_| ())
            }
            ResourceType::Broker => {
                let target = if resource.name.is_empty() {
                    BrokerTarget::Cluster
                } else {
                    BrokerTarget::Node
                };
                alter::check_broker(target, all, &current.layers, &current.config)
            }
            ResourceType::BrokerLogger => Ok(()),
        };
        checked.map_err(refusal)
    }

    fn is_list(&self, kind: ResourceType, name: &str) -> bool {
        find(kind, name).is_some_and(|key| key.kind == ConfigType::List)
    }

    fn default_value(&self, kind: ResourceType, name: &str) -> Option<String> {
        find(kind, name)?.default_text().map(str::to_owned)
    }
}

fn find(kind: ResourceType, name: &str) -> Option<&'static Key> {
    let table = match kind {
        ResourceType::Topic => topic::TOPIC_KEYS,
        ResourceType::Broker => broker_keys::BROKER_KEYS,
        ResourceType::Group => group::GROUP_KEYS,
        ResourceType::ClientMetrics => client_metrics::CLIENT_METRICS_KEYS,
        ResourceType::BrokerLogger => return None,
    };
    key::find(table, name)
}
