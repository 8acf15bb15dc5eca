//! Identifiers, each its own type where a mix-up would hurt.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The id of a broker or controller; -1 on the wire means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) i32);

/// The epoch of a partition's leader; grows with each new leader, -1 when unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LeaderEpoch(pub(crate) i32);

/// The epoch of a partition's registration; grows with each change of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PartitionEpoch(pub(crate) i32);

/// The id of an idempotent or transactional producer; -1 when there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ProducerId(pub(crate) i64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for LeaderEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Sixteen bytes as Kafka prints them: URL-safe base64 without padding, 22 characters
/// (org.apache.kafka.common.Uuid).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Uuid(pub(crate) [u8; 16]);

impl Uuid {
    /// The id that means "none".
    pub(crate) const ZERO: Self = Self([0; 16]);
    /// The topic id of `__cluster_metadata` (Uuid.METADATA_TOPIC_ID).
    pub(crate) const ONE: Self = Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

    /// Makes a version 4 id of random bytes, or `None` when its text would begin with a dash, which
    /// command lines take for an option (Uuid.randomUuid).
    pub(crate) fn from_random(mut bytes: [u8; 16]) -> Option<Self> {
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let id = Self(bytes);
        (!id.to_string().starts_with('-')).then_some(id)
    }

    /// Whether this is the id that means "none".
    pub(crate) fn is_zero(self) -> bool {
        self == Self::ZERO
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text was not 22 characters of URL-safe base64.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an id is 22 characters of URL-safe base64, this is not: {0:?}")]
pub(crate) struct BadUuid(String);

impl FromStr for Uuid {
    type Err = BadUuid;

    fn from_str(text: &str) -> Result<Self, BadUuid> {
        URL_SAFE_NO_PAD
            .decode(text)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| BadUuid(text.to_owned()))
    }
}

impl From<uuid::Uuid> for Uuid {
    fn from(id: uuid::Uuid) -> Self {
        Self(id.into_bytes())
    }
}

impl From<Uuid> for uuid::Uuid {
    fn from(id: Uuid) -> Self {
        Self::from_bytes(id.0)
    }
}

/// The id of a topic; a topic made again under its old name has another one (KIP-516).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct TopicId(pub(crate) Uuid);

/// The id of a log directory (KIP-858).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct DirectoryId(pub(crate) Uuid);

impl DirectoryId {
    /// No directory was chosen yet (DirectoryId.UNASSIGNED).
    pub(crate) const UNASSIGNED: Self = Self(Uuid::ONE);
    /// The replica is known by a release that had no directory ids (DirectoryId.MIGRATING).
    pub(crate) const MIGRATING: Self = Self(Uuid::ZERO);

    /// Whether it means something and can be no directory's (DirectoryId.reserved).
    pub(crate) fn is_reserved(&self) -> bool {
        let Self(Uuid([leading @ .., last])) = self;
        *leading == [0; 15] && *last < 100
    }
}

impl TopicId {
    /// No topic, or one that is known by its name only (Uuid.ZERO_UUID).
    pub(crate) const ZERO: Self = Self(Uuid::ZERO);
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for DirectoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A partition by its topic's name, printed as its directory is named.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TopicPartition {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
}

impl TopicPartition {
    /// Names partition `partition` of `topic`.
    pub(crate) fn new(topic: impl Into<Arc<str>>, partition: i32) -> Self {
        Self {
            topic: topic.into(),
            partition,
        }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_printed_and_read_as_kafka_does() {
        assert_eq!(Uuid::ONE.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!("AAAAAAAAAAAAAAAAAAAAAQ".parse(), Ok(Uuid::ONE));
        assert!("AAAAAAAAAAAAAAAAAAAAA".parse::<Uuid>().is_err());
        assert!("notauuid".parse::<Uuid>().is_err());
    }

    #[test]
    fn a_random_id_never_begins_with_a_dash() {
        let id = Uuid::from_random([7; 16]).unwrap();
        assert_eq!(id.0[6] >> 4, 4);
        assert_eq!(Uuid::from_random([0xfb; 16]), None);
    }
}
