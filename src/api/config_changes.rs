//! IncrementalAlterConfigs: versions 0-1. AlterConfigs: versions 0-2.
//!
//! - IncrementalAlterConfigs changes options one by one (KIP-339); AlterConfigs replaces all of a
//!   resource, and knows no loggers.
//! - The broker that was asked looks first: at the request itself, at options of brokers, and at
//!   loggers, which are its own affair (ConfigAdminManager.preprocess). The controller decides on
//!   the rest. On a listener of controllers it decides on brokers' options too.

use std::collections::HashMap;
use std::sync::Arc;

use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse as ReplacedResource;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse as AlteredResource;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::configs::refusal;
use super::context::Context;
use super::loggers;
use super::serve::{Refuse, Reply};
use super::topics::own_words;
use crate::config::alter::{self, Alteration, BrokerTarget, Operation};
use crate::config::{ErrorKind, Values};
use crate::controller::Controller;
use crate::controller::ask::{
    AlterConfigs, ConfigChange, ConfigOp, IncrementalAlterConfigs, Named,
};
use crate::machine::ask::Ask;
use crate::metadata::image::configs::{Resource, ResourceType};
use crate::protocol::error::{ErrorCode, Refusal};
use crate::security::session::ListenerKind;

type Outcome = Result<(), Refusal>;

/// A resource as a request names it: the type's number and the name.
type Named2<'a> = (i8, &'a str);

/// One option of a request; only incremental ones have an operation.
struct Change<'a> {
    name: &'a str,
    operation: i8,
    value: Option<&'a str>,
}

impl Refuse for IncrementalAlterConfigsRequest {
    type Response = IncrementalAlterConfigsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> IncrementalAlterConfigsResponse {
        let refused = self.resources.iter().map(|_| Err(refusal.clone()));
        altered(self, refused)
    }
}

impl Refuse for AlterConfigsRequest {
    type Response = AlterConfigsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> AlterConfigsResponse {
        let refused = self.resources.iter().map(|_| Err(refusal.clone()));
        replaced(self, refused)
    }
}

/// Changes options one by one.
pub(super) async fn incremental_alter(
    ctx: Context,
    request: Arc<IncrementalAlterConfigsRequest>,
) -> Result<Reply<IncrementalAlterConfigsResponse>, Refusal> {
    let validate_only = request.validate_only;
    let resources = request.resources.iter().map(|one| {
        let named = (one.resource_type, one.resource_name.as_str());
        let changes = one.configs.iter().map(|one| Change {
            name: one.name.as_str(),
            operation: one.config_operation,
            value: one.value.as_deref(),
        });
        (named, changes.collect())
    });
    let look =
        |named: Named2<'_>, changes: Vec<Change<'_>>| look_at(&ctx, named, &changes, validate_only);
    let ask = |resources| IncrementalAlterConfigs {
        resources,
        validate_only,
    };
    let outcomes = settle(&ctx, resources.collect(), look, ask).await?;
    Ok(altered(&request, outcomes.into_iter()).into())
}

/// Replaces all options of resources.
pub(super) async fn alter(
    ctx: Context,
    request: Arc<AlterConfigsRequest>,
) -> Result<Reply<AlterConfigsResponse>, Refusal> {
    let resources = request.resources.iter().map(|one| {
        let named = (one.resource_type, one.resource_name.as_str());
        let options = one.configs.iter().map(|one| {
            let value = one.value.as_ref().map(ToString::to_string);
            (one.name.to_string(), value)
        });
        (named, options.collect())
    });
    let look = |named: Named2<'_>, options: Named<String>| {
        let resource = look_at_all(&ctx, named, &options)?;
        Ok(Some((resource, options)))
    };
    let ask = |resources| AlterConfigs {
        resources,
        validate_only: request.validate_only,
    };
    let outcomes = settle(&ctx, resources.collect(), look, ask).await?;
    Ok(replaced(&request, outcomes.into_iter()).into())
}

/// Looks at each resource, asks the controller about those that are not settled by that, and gives
/// the outcomes in the order of the request.
async fn settle<'a, T, U, A: Ask<Controller, Reply = Result<Vec<(Resource, Outcome)>, Refusal>>>(
    ctx: &Context,
    resources: Vec<(Named2<'a>, T)>,
    look: impl Fn(Named2<'a>, T) -> Result<Option<(Resource, U)>, Refusal>,
    ask: impl FnOnce(Vec<(Resource, U)>) -> A,
) -> Result<Vec<Outcome>, Refusal> {
    let names: Vec<Named2<'_>> = resources.iter().map(|(named, _)| *named).collect();
    let times = times(&names);
    let mut outcomes = Vec::with_capacity(names.len());
    let mut asked = Vec::new();
    for (named, changes) in resources {
        outcomes.push(
            match once(&times, named).and_then(|()| look(named, changes)) {
                Ok(None) => Some(Ok(())),
                Ok(Some(open)) => {
                    asked.push(open);
                    None
                }
                Err(refusal) => Some(Err(refusal)),
            },
        );
    }
    let answers = if asked.is_empty() {
        Vec::new()
    } else {
        ctx.ask(ask(asked)).await?
    };
    Ok(together(&names, outcomes, answers))
}

/// What the broker that was asked makes of a resource: settled, or what the controller is asked.
fn look_at(
    ctx: &Context,
    (kind, name): Named2<'_>,
    changes: &[Change<'_>],
    validate_only: bool,
) -> Result<Option<(Resource, Vec<ConfigChange>)>, Refusal> {
    check_changes(changes)?;
    let resource = Resource::new(known(kind)?, name);
    match resource.kind {
        ResourceType::BrokerLogger => {
            loggers::alter(
                ctx,
                name,
                changes.iter().map(Change::of_logger),
                validate_only,
            )?;
            return Ok(None);
        }
        ResourceType::Broker if ctx.session.kind == ListenerKind::Broker => {
            check_broker(ctx, name, |own| {
                let changes = alterations(changes).map_err(refusal)?;
                alter::apply(alter::Resource::Broker, own, &changes).map_err(refusal)
            })?;
        }
        ResourceType::Broker
        | ResourceType::Topic
        | ResourceType::ClientMetrics
        | ResourceType::Group => {}
    }
    let changes = operations(resource.kind, changes)?;
    Ok(Some((resource, changes)))
}

fn look_at_all(
    ctx: &Context,
    (kind, name): Named2<'_>,
    options: &[(String, Option<String>)],
) -> Result<Resource, Refusal> {
    let mut names: Vec<&str> = options.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(invalid("Error due to duplicate config keys"));
    }
    let all = alter::replacement(options).map_err(refusal)?;
    let resource = Resource::new(known(kind)?, name);
    match resource.kind {
        ResourceType::BrokerLogger => return Err(unknown_type(kind)),
        ResourceType::Broker if ctx.session.kind == ListenerKind::Broker => {
            check_broker(ctx, name, |_| Ok(all))?;
        }
        ResourceType::Broker
        | ResourceType::Topic
        | ResourceType::ClientMetrics
        | ResourceType::Group => {}
    }
    Ok(resource)
}

impl<'a> Change<'a> {
    fn of_logger(&self) -> loggers::Change<'a> {
        loggers::Change {
            logger: self.name,
            operation: self.operation,
            level: self.value,
        }
    }
}

/// How often each resource is named.
fn times<'a>(names: &[Named2<'a>]) -> HashMap<Named2<'a>, usize> {
    let mut times = HashMap::new();
    for named in names {
        *times.entry(*named).or_default() += 1;
    }
    times
}

/// A resource is named once, or refused wherever it is named.
fn once(times: &HashMap<Named2<'_>, usize>, named: Named2<'_>) -> Outcome {
    if times.get(&named) == Some(&1) {
        return Ok(());
    }
    Err(invalid("Each resource must appear at most once."))
}

/// Refuses an option named twice and a missing value, whatever the resource.
fn check_changes(changes: &[Change<'_>]) -> Outcome {
    // Only whether it removes counts here; an operation nobody knows is looked at later.
    let removes = |id: i8| {
        if id == DELETE {
            Operation::Delete
        } else {
            Operation::Set
        }
    };
    let changes: Vec<Alteration> = changes
        .iter()
        .map(|one| one.alteration(removes(one.operation)))
        .collect();
    alter::check_request(&changes).map_err(refusal)
}

/// The number of the operation that removes an option (AlterConfigOp.OpType).
const DELETE: i8 = 1;

impl Change<'_> {
    fn alteration(&self, operation: Operation) -> Alteration {
        Alteration {
            name: self.name.to_owned(),
            operation,
            value: self.value.map(str::to_owned),
        }
    }
}

fn alterations(changes: &[Change<'_>]) -> Result<Vec<Alteration>, crate::config::ConfigError> {
    changes
        .iter()
        .map(|one| {
            let operation = Operation::from_id(alter::Resource::Broker, one.operation)?;
            Ok(one.alteration(operation))
        })
        .collect()
}

/// Checks the options that this broker, or all, would have; `change` makes them from those it has.
fn check_broker(
    ctx: &Context,
    name: &str,
    change: impl FnOnce(&Values) -> Result<Values, Refusal>,
) -> Outcome {
    let options = ctx.parts.options.current();
    let (target, own) = if name.is_empty() {
        (BrokerTarget::Cluster, &options.layers.cluster)
    } else {
        check_this_broker(ctx, name)?;
        (BrokerTarget::Node, &options.layers.node)
    };
    let after = change(&own.0)?;
    alter::check_broker(target, &after, &options.layers, &options.config).map_err(refusal)
}

fn check_this_broker(ctx: &Context, name: &str) -> Outcome {
    let id: i32 = name
        .parse()
        .map_err(|_| request_error(format!("Node id must be an integer, but it is: {name}")))?;
    if id == ctx.parts.node_id.0 {
        return Ok(());
    }
    let own = ctx.parts.node_id;
    Err(request_error(format!(
        "Unexpected broker id, expected {own}, but received {name}"
    )))
}

/// The changes as the controller takes them.
fn operations(kind: ResourceType, changes: &[Change<'_>]) -> Result<Vec<ConfigChange>, Refusal> {
    let of = match kind {
        ResourceType::Broker | ResourceType::BrokerLogger => alter::Resource::Broker,
        ResourceType::Topic => alter::Resource::Topic,
        ResourceType::ClientMetrics => alter::Resource::ClientMetrics,
        ResourceType::Group => alter::Resource::Group,
    };
    changes
        .iter()
        .map(|one| {
            let operation = Operation::from_id(of, one.operation).map_err(|error| {
                match error.kind {
                    // Kafka's controller fails over it, and its words are for its own log.
                    ErrorKind::UnknownServerError => ErrorCode::UnknownServerError.into(),
                    ErrorKind::InvalidConfig | ErrorKind::InvalidRequest => refusal(error),
                }
            })?;
            Ok(ConfigChange {
                name: one.name.to_owned(),
                op: match operation {
                    Operation::Set => ConfigOp::Set,
                    Operation::Delete => ConfigOp::Delete,
                    Operation::Append => ConfigOp::Append,
                    Operation::Subtract => ConfigOp::Subtract,
                },
                value: one.value.map(str::to_owned),
            })
        })
        .collect()
}

fn known(kind: i8) -> Result<ResourceType, Refusal> {
    ResourceType::from_code(kind).ok_or_else(|| unknown_type(kind))
}

fn unknown_type(kind: i8) -> Refusal {
    request_error(format!("Unknown resource type {kind}"))
}

fn invalid(words: &'static str) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, words)
}

fn request_error(words: String) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, words)
}

/// What was settled here and what the controller said, in the order of the request.
fn together(
    names: &[Named2<'_>],
    outcomes: Vec<Option<Outcome>>,
    answers: Vec<(Resource, Outcome)>,
) -> Vec<Outcome> {
    let mut answers: HashMap<Resource, Outcome> = answers.into_iter().collect();
    let outcomes = names.iter().zip(outcomes).map(|((kind, name), outcome)| {
        outcome.unwrap_or_else(|| {
            let answer = ResourceType::from_code(*kind)
                .and_then(|kind| answers.remove(&Resource::new(kind, *name)));
            answer.unwrap_or_else(|| Err(ErrorCode::UnknownServerError.into()))
        })
    });
    outcomes.collect()
}

fn altered(
    request: &IncrementalAlterConfigsRequest,
    outcomes: impl Iterator<Item = Outcome>,
) -> IncrementalAlterConfigsResponse {
    let responses = request
        .resources
        .iter()
        .zip(outcomes)
        .map(|(one, outcome)| {
            let (code, message) = told(&outcome);
            AlteredResource::default()
                .with_error_code(code)
                .with_error_message(message)
                .with_resource_type(one.resource_type)
                .with_resource_name(one.resource_name.clone())
        });
    IncrementalAlterConfigsResponse::default().with_responses(responses.collect())
}

fn replaced(
    request: &AlterConfigsRequest,
    outcomes: impl Iterator<Item = Outcome>,
) -> AlterConfigsResponse {
    let responses = request
        .resources
        .iter()
        .zip(outcomes)
        .map(|(one, outcome)| {
            let (code, message) = told(&outcome);
            ReplacedResource::default()
                .with_error_code(code)
                .with_error_message(message)
                .with_resource_type(one.resource_type)
                .with_resource_name(one.resource_name.clone())
        });
    AlterConfigsResponse::default().with_responses(responses.collect())
}

fn told(outcome: &Outcome) -> (i16, Option<StrBytes>) {
    match outcome {
        Ok(()) => (0, None),
        Err(refusal) => (refusal.code.code(), own_words(refusal)),
    }
}
