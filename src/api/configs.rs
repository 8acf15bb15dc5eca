//! DescribeConfigs: versions 1-4.
//!
//! - v1 tells sources and synonyms (KIP-226), v3 types and documentation (KIP-569).

use std::sync::Arc;

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::context::Context;
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
    let options = ctx.parts.options.current();
    let results = request.resources.iter().map(|resource| {
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
                return Err(ErrorCode::UnknownTopicOrPartition.into());
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
        Some(ResourceType::BrokerLogger) => {
            this_broker(ctx, name)?;
            Vec::new()
        }
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
        None => {
            let words = format!(
                "Unsupported resource type: {}",
                type_name(asked.resource_type)
            );
            return Err(request_error(words));
        }
    };
    let keys: Vec<String> = asked
        .configuration_keys
        .iter()
        .flatten()
        .map(|key| key.to_string())
        .collect();
    Ok(describe::only(all, &keys))
}

/// The type's name as org.apache.kafka.common.config.ConfigResource prints it.
fn type_name(_code: i8) -> &'static str {
    "UNKNOWN"
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
