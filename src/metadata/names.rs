//! Which names a topic may have (org.apache.kafka.common.internals.Topic).

use crate::protocol::error::{ErrorCode, Refusal};

/// Where consumer groups are kept.
pub(crate) const GROUP_METADATA_TOPIC: &str = "__consumer_offsets";
/// Where transactions are kept.
pub(crate) const TRANSACTION_STATE_TOPIC: &str = "__transaction_state";
/// Where share groups' progress is kept.
pub(crate) const SHARE_GROUP_STATE_TOPIC: &str = "__share_group_state";
/// The metadata log; never a topic like others.
pub(crate) const CLUSTER_METADATA_TOPIC: &str = "__cluster_metadata";

const LONGEST: usize = 249;

/// Whether Kafka keeps its own data in a topic of this name.
pub(crate) fn is_internal(name: &str) -> bool {
    [
        GROUP_METADATA_TOPIC,
        TRANSACTION_STATE_TOPIC,
        SHARE_GROUP_STATE_TOPIC,
    ]
    .contains(&name)
}

/// Refuses what cannot be a topic's name.
pub(crate) fn validate(name: &str) -> Result<(), Refusal> {
    let why = match name {
        "" => "the empty string is not allowed".to_owned(),
        "." => "'.' is not allowed".to_owned(),
        ".." => "'..' is not allowed".to_owned(),
        // Kafka counts UTF-16 units, and refuses whatever is not ASCII anyway.
        _ if name.encode_utf16().count() > LONGEST => {
            format!("the length of '{name}' is longer than the max allowed length {LONGEST}")
        }
        _ if !name.chars().all(is_allowed) => format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' \
             and '-'"
        ),
        _ => return Ok(()),
    };
    let words = format!("Topic name is invalid: {why}");
    Err(Refusal::new(ErrorCode::InvalidTopicException, words))
}

/// Whether two names would be one as the name of a metric, where '.' becomes '_'.
pub(crate) fn collide(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().map(unified).eq(b.bytes().map(unified))
}

/// Whether a name has a character that metrics change.
pub(crate) fn may_collide(name: &str) -> bool {
    name.contains(['.', '_'])
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

fn unified(byte: u8) -> u8 {
    if byte == b'.' { b'_' } else { byte }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_refused_in_kafkas_words() {
        let words = |name: &str| validate(name).unwrap_err().words().to_owned();
        assert_eq!(
            words(""),
            "Topic name is invalid: the empty string is not allowed"
        );
        assert_eq!(words("."), "Topic name is invalid: '.' is not allowed");
        assert_eq!(
            words("a b"),
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII \
             alphanumerics, '.', '_' and '-'"
        );
        assert!(words(&"x".repeat(250)).ends_with("is longer than the max allowed length 249"));
        assert_eq!(validate(&"x".repeat(249)), Ok(()));
    }

    #[test]
    fn dots_and_underscores_collide() {
        assert!(collide("a.b", "a_b"));
        assert!(!collide("a.b", "a-b"));
        assert!(may_collide("a_b") && !may_collide("a-b"));
    }
}
