//! DescribeConfigs: versions 1-4. ListConfigResources: versions 0-1.
//!
//! - v1 tells sources and synonyms (KIP-226), v3 types and documentation (KIP-569).
//! - ListConfigResources v0 tells client metrics only (KIP-1000), v1 every kind (KIP-1142).

use std::collections::BTreeSet;
use std::collections::HashSet;
use std::sync::Arc;

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::list_config_resources_response::ConfigResource;
use kafka_protocol::messages::{
    DescribeConfigsRequest, DescribeConfigsResponse, ListConfigResourcesRequest,
    ListConfigResourcesResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use super::loggers;
use super::serve::{Refuse, Reply};
use super::topics::words;
use crate::config::describe::{self, Entry};
use crate::config::options::Effective;
use crate::config::{ConfigError, ErrorKind, Values};
use crate::metadata::image::configs::{Resource, ResourceType};
use crate::metadata::names;
use crate::protocol::error::{ErrorCode, Refusal};

impl Refuse for DescribeConfigsRequest {
    type Response = DescribeConfigsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> DescribeConfigsResponse {
        let results = self
            .resources
            .iter()
            .map(|resource| refused(resource, refusal));
        DescribeConfigsResponse::default().with_results(results.collect())
    }
}

/// Tells options with their sources.
pub(super) async fn describe(
    ctx: Context,
    request: Arc<DescribeConfigsRequest>,
) -> Result<Reply<DescribeConfigsResponse>, Refusal> {
    let known = |one: &DescribeConfigsResource| ResourceType::from_code(one.resource_type);
    if request.resources.iter().any(|one| known(one).is_none()) {
        return Err(ErrorCode::InvalidRequest.into());
    }
    let options = ctx.parts.options.current();
    // Each resource once for the same keys: its answer is much larger than its name.
    let mut answered = HashSet::new();
    let distinct = request.resources.iter().filter(|one| {
        let name = one.resource_name.as_str();
        answered.insert((one.resource_type, name, one.configuration_keys.as_deref()))
    });
    let results = distinct.map(|resource| {
        let entries = entries(&ctx, &options, resource);
        match entries {
            Ok(entries) => described(&request, ctx.version, resource, entries),
            Err(refusal) => refused(resource, &refusal),
        }
    });
    Ok(DescribeConfigsResponse::default()
        .with_results(results.collect())
        .into())
}

fn entries(
    ctx: &Context,
    options: &Effective,
    asked: &DescribeConfigsResource,
) -> Result<Vec<Entry>, Refusal> {
    let name = asked.resource_name.as_str();
    let all = match ResourceType::from_code(asked.resource_type) {
        Some(ResourceType::Topic) => {
            names::validate(name)?;
            if ctx.image().topics.by_name(name).is_none() {
                return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, ""));
            }
            describe::topic(
                &own(ctx, ResourceType::Topic, name),
                &options.layers,
                &options.config,
            )
        }
        Some(ResourceType::Broker) if name.is_empty() => describe::cluster_default(&options.layers),
        Some(ResourceType::Broker) => {
            this_broker(ctx, name)?;
            describe::node(&options.layers, &options.config)
        }
        Some(ResourceType::BrokerLogger) => loggers::describe(ctx, name)?,
        Some(ResourceType::ClientMetrics) if name.is_empty() => {
            return Err(request_error(
                "Client metrics subscription name must not be empty",
            ));
        }
        Some(ResourceType::ClientMetrics) => {
            describe::client_metrics(&own(ctx, ResourceType::ClientMetrics, name))
        }
        Some(ResourceType::Group) if name.is_empty() => {
            return Err(request_error("Group name must not be empty"));
        }
        Some(ResourceType::Group) => {
            describe::group(&own(ctx, ResourceType::Group, name), &options.config)
        }
        // Kafka refuses the whole request for it, in no words of its own.
        None => return Err(ErrorCode::InvalidRequest.into()),
    };
    let keys: Vec<String> = asked
        .configuration_keys
        .iter()
        .flatten()
        .map(|key| key.to_string())
        .collect();
    Ok(describe::only(all, &keys))
}

fn own(ctx: &Context, kind: ResourceType, name: &str) -> Values {
    let resource = Resource {
        kind,
        name: name.to_owned(),
    };
    ctx.image()
        .configs
        .of(&resource)
        .map(|own| Values::clone(own))
        .unwrap_or_default()
}

fn this_broker(ctx: &Context, name: &str) -> Result<(), Refusal> {
    let id: i32 = name
        .parse()
        .map_err(|_| request_error(format!("Broker id must be an integer, but it is: {name}")))?;
    if id == ctx.parts.node_id.0 {
        return Ok(());
    }
    let words = format!(
        "Unexpected broker id, expected {} or empty string, but received {name}",
        ctx.parts.node_id
    );
    Err(request_error(words))
}

fn request_error(words: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, words)
}

fn described(
    request: &DescribeConfigsRequest,
    version: i16,
    resource: &DescribeConfigsResource,
    entries: Vec<Entry>,
) -> DescribeConfigsResult {
    let configs = entries
        .into_iter()
        .map(|entry| config(request, version, entry));
    DescribeConfigsResult::default()
        .with_error_message(Some(StrBytes::new()))
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone())
        .with_configs(configs.collect())
}

fn config(
    request: &DescribeConfigsRequest,
    version: i16,
    entry: Entry,
) -> DescribeConfigsResourceResult {
    let mut result = DescribeConfigsResourceResult::default()
        .with_name(StrBytes::from_string(entry.name))
        .with_value(entry.value.map(StrBytes::from_string))
        .with_read_only(entry.read_only)
        .with_config_source(entry.source.id())
        .with_is_sensitive(entry.sensitive);
    if version >= 3 {
        result.config_type = entry.kind.id();
        if request.include_documentation {
            result.documentation = entry.documentation.map(StrBytes::from_static_str);
        }
    }
    if request.include_synonyms {
        let synonyms = entry.synonyms.into_iter().map(|synonym| {
            DescribeConfigsSynonym::default()
                .with_name(StrBytes::from_string(synonym.name))
                .with_value(synonym.value.map(StrBytes::from_string))
                .with_source(synonym.source.id())
        });
        result.synonyms = synonyms.collect();
    }
    result
}

fn refused(resource: &DescribeConfigsResource, refusal: &Refusal) -> DescribeConfigsResult {
    DescribeConfigsResult::default()
        .with_error_code(refusal.code.code())
        .with_error_message(words(refusal))
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone())
}

/// What the option tables refuse, as an answer.
pub(crate) fn refusal(error: ConfigError) -> Refusal {
    let code = match error.kind {
        ErrorKind::InvalidConfig => ErrorCode::InvalidConfig,
        ErrorKind::InvalidRequest => ErrorCode::InvalidRequest,
        ErrorKind::UnknownServerError => ErrorCode::UnknownServerError,
    };
    Refusal::new(code, error.message)
}

impl Refuse for ListConfigResourcesRequest {
    type Response = ListConfigResourcesResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> ListConfigResourcesResponse {
        ListConfigResourcesResponse::default().with_error_code(refusal.code.code())
    }
}

/// The kinds of resources that have options.
const ALL_TYPES: [ResourceType; 5] = [
    ResourceType::Topic,
    ResourceType::Broker,
    ResourceType::BrokerLogger,
    ResourceType::ClientMetrics,
    ResourceType::Group,
];

/// Lists what has options.
pub(super) async fn list_resources(
    ctx: Context,
    request: Arc<ListConfigResourcesRequest>,
) -> Result<Reply<ListConfigResourcesResponse>, Refusal> {
    let asked: BTreeSet<i8> = request.resource_types.iter().copied().collect();
    let known = asked.into_iter().map(ResourceType::from_code);
    let known: Option<Vec<ResourceType>> = known.collect();
    let kinds = match known.ok_or(ErrorCode::UnsupportedVersion)? {
        _ if ctx.version == 0 => vec![ResourceType::ClientMetrics],
        all if all.is_empty() => ALL_TYPES.to_vec(),
        some => some,
    };
    let resources = kinds.into_iter().flat_map(|kind| {
        let names = resource_names(&ctx, kind).into_iter();
        let version = ctx.version;
        names.map(move |name| {
            let resource =
                ConfigResource::default().with_resource_name(StrBytes::from_string(name));
            if version >= 1 {
                resource.with_resource_type(kind.code())
            } else {
                resource
            }
        })
    });
    Ok(ListConfigResourcesResponse::default()
        .with_config_resources(resources.collect())
        .into())
}

/// Topics and brokers always have options; of the others there are those that have some.
fn resource_names(ctx: &Context, kind: ResourceType) -> Vec<String> {
    let image = ctx.image();
    match kind {
        ResourceType::Topic => {
            let topics = image.topics.sorted().into_iter();
            topics.map(|topic| topic.name.to_string()).collect()
        }
        ResourceType::Broker | ResourceType::BrokerLogger => {
            let brokers = image.alive_nodes(&ctx.session.listener);
            brokers.map(|node| node.id.to_string()).collect()
        }
        ResourceType::ClientMetrics | ResourceType::Group => {
            let configs = image.configs.sorted().into_iter();
            let of_kind = configs.filter(|(resource, _)| resource.kind == kind);
            of_kind.map(|(resource, _)| resource.name.clone()).collect()
        }
    }
}
