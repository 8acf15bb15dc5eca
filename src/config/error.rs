//! What is said to one who gives a value that cannot be. The texts are those that a Kafka 4.1
//! client sees (`ConfigException`, `InvalidConfigurationException`, `InvalidRequestException`).

use std::fmt;

/// A refused option: why, and in which family of error codes the client hears of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

/// The error code that a refusal becomes on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// INVALID_CONFIG: what topics, groups and most value checks answer.
    InvalidConfig,
    /// INVALID_REQUEST: what every failed check of a broker's options answers.
    InvalidRequest,
    /// UNKNOWN_SERVER_ERROR without a message: where Kafka trips over its own feet.
    UnknownServerError,
}

impl ConfigError {
    /// A refusal as INVALID_CONFIG.
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::InvalidConfig,
            message: message.into(),
        }
    }

    /// A refusal as INVALID_REQUEST.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::InvalidRequest,
            message: message.into(),
        }
    }

    /// A refusal as UNKNOWN_SERVER_ERROR; clients get no text with it.
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::UnknownServerError,
            message: message.into(),
        }
    }

    /// The refusal of one value of one option.
    pub(crate) fn value(name: &str, value: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self::config(format!(
            "Invalid value {value} for configuration {name}: {why}"
        ))
    }

    /// A broken condition among several options of a broker.
    pub(crate) fn requirement(message: impl fmt::Display) -> Self {
        Self::config(format!("requirement failed: {message}"))
    }

    /// The same refusal as a broker resource answers it: always INVALID_REQUEST.
    pub(crate) fn into_request(self) -> Self {
        Self {
            kind: ErrorKind::InvalidRequest,
            message: self.message,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}
