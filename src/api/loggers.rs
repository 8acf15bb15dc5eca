//! The loggers of this node as resources of options: Kafka's names, over the parts of this program
//! that do what those names stand for (org.apache.kafka.server.logger.RuntimeLoggerManager).

use super::context::Context;
use crate::config::describe::{Entry, Source};
use crate::config::key::ConfigType;
use crate::os::log_levels::{self, Level};
use crate::protocol::error::{ErrorCode, Refusal};

/// The logger above all others.
const ROOT: &str = "root";

/// Kafka's loggers and the modules of ours that they choose the level of.
const LOGGERS: &[(&str, &str)] = &[
    ("kafka.authorizer.logger", "barnabas::security"),
    ("kafka.log.LogManager", "barnabas::log"),
    ("kafka.network.SocketServer", "barnabas::net"),
    ("kafka.server.BrokerServer", "barnabas::server"),
    ("kafka.server.KafkaApis", "barnabas::api"),
    ("kafka.server.ReplicaManager", "barnabas::replica"),
    ("org.apache.kafka.controller", "barnabas::controller"),
    ("org.apache.kafka.image", "barnabas::metadata"),
    ("org.apache.kafka.raft", "barnabas::quorum"),
    (ROOT, ""),
];

const LEVELS: &[(&str, Level)] = &[
    ("DEBUG", Level::Debug),
    ("ERROR", Level::Error),
    ("FATAL", Level::Error),
    ("INFO", Level::Info),
    ("TRACE", Level::Trace),
    ("WARN", Level::Warn),
];

/// One logger's change; the operation's number is that of IncrementalAlterConfigs.
pub(super) struct Change<'a> {
    pub(super) logger: &'a str,
    pub(super) operation: i8,
    pub(super) level: Option<&'a str>,
}

/// The loggers with the levels in force.
pub(super) fn describe(ctx: &Context, node: &str) -> Result<Vec<Entry>, Refusal> {
    check_described(ctx, node)?;
    let entries = LOGGERS.iter().map(|(logger, target)| Entry {
        name: (*logger).to_owned(),
        value: Some(name_of(log_levels::level(target)).to_owned()),
        read_only: false,
        source: Source::DynamicBrokerLogger,
        sensitive: false,
        kind: ConfigType::Unknown,
        documentation: None,
        synonyms: Vec::new(),
    });
    Ok(entries.collect())
}

/// Changes levels, all of them or none.
pub(super) fn alter<'a>(
    ctx: &Context,
    node: &str,
    changes: impl Iterator<Item = Change<'a>>,
    validate_only: bool,
) -> Result<(), Refusal> {
    check_altered(ctx, node)?;
    let changes = changes
        .map(|change| check(&change))
        .collect::<Result<Vec<_>, _>>()?;
    if !validate_only {
        for (target, level) in changes {
            log_levels::set(target, level);
        }
    }
    Ok(())
}

/// The module and its level; without one it follows those above it.
fn check(change: &Change<'_>) -> Result<(&'static str, Option<Level>), Refusal> {
    let logger = change.logger;
    let refused = |what: String| {
        let words = format!("{what} is not allowed for the BROKER_LOGGER resource");
        Err(Refusal::new(ErrorCode::InvalidRequest, words))
    };
    match change.operation {
        0 => {
            let target = target_of(logger)?;
            let text = change.level.unwrap_or_default();
            let level = LEVELS.iter().find(|(name, _)| *name == text);
            let level = level.ok_or_else(|| bad_level(logger, text))?;
            Ok((target, Some(level.1)))
        }
        1 => {
            let target = target_of(logger)?;
            if logger == ROOT {
                let words = "Removing the log level of the root logger is not allowed";
                return Err(Refusal::new(ErrorCode::InvalidRequest, words));
            }
            Ok((target, None))
        }
        2 => refused("APPEND operation".to_owned()),
        3 => refused("SUBTRACT operation".to_owned()),
        other => refused(format!("Unknown operation type {other}")),
    }
}

fn target_of(logger: &str) -> Result<&'static str, Refusal> {
    let found = LOGGERS.iter().find(|(name, _)| *name == logger);
    found.map(|(_, target)| *target).ok_or_else(|| {
        let words = format!("Logger {logger} does not exist!");
        Refusal::new(ErrorCode::InvalidConfig, words)
    })
}

fn bad_level(logger: &str, level: &str) -> Refusal {
    let valid: Vec<&str> = LEVELS.iter().map(|(name, _)| *name).collect();
    let words = format!(
        "Cannot set the log level of {logger} to {level} as it is not a supported log level. Valid \
         log levels are {}",
        valid.join(", ")
    );
    Refusal::new(ErrorCode::InvalidConfig, words)
}

fn name_of(level: Level) -> &'static str {
    match level {
        Level::Error => "ERROR",
        Level::Warn => "WARN",
        Level::Info => "INFO",
        Level::Debug => "DEBUG",
        Level::Trace => "TRACE",
    }
}

fn check_described(ctx: &Context, node: &str) -> Result<(), Refusal> {
    let own = ctx.parts.node_id;
    let why = match node.parse::<i32>() {
        _ if node.is_empty() => "Broker id must not be empty".to_owned(),
        Ok(id) if id == own.0 => return Ok(()),
        Ok(_) => format!("Unexpected broker id, expected {own} but received {node}"),
        Err(_) => format!("Broker id must be an integer, but it is: {node}"),
    };
    Err(Refusal::new(ErrorCode::InvalidRequest, why))
}

fn check_altered(ctx: &Context, node: &str) -> Result<(), Refusal> {
    let own = ctx.parts.node_id;
    let why = match node.parse::<i32>() {
        Ok(id) if id == own.0 => return Ok(()),
        Ok(_) => format!("Unexpected node id. Expected {own}, but received {node}"),
        Err(_) => format!("Node id must be an integer, but it is: {node}"),
    };
    Err(Refusal::new(ErrorCode::InvalidRequest, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change<'a>(logger: &'a str, operation: i8, level: Option<&'a str>) -> Change<'a> {
        Change {
            logger,
            operation,
            level,
        }
    }

    #[test]
    fn a_level_is_checked_before_it_is_set() {
        let ok = check(&change("kafka.server.KafkaApis", 0, Some("FATAL")));
        assert_eq!(ok, Ok(("barnabas::api", Some(Level::Error))));
        let code = |change| check(&change).unwrap_err().code;
        assert_eq!(
            code(change("nobody", 0, Some("INFO"))),
            ErrorCode::InvalidConfig
        );
        assert_eq!(
            code(change(ROOT, 0, Some("LOUD"))),
            ErrorCode::InvalidConfig
        );
        assert_eq!(code(change(ROOT, 1, None)), ErrorCode::InvalidRequest);
        assert_eq!(
            code(change(ROOT, 2, Some("INFO"))),
            ErrorCode::InvalidRequest
        );
    }
}
