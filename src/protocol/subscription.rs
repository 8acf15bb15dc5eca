//! What clients of a "consumer" group tell each other inside JoinGroup and SyncGroup: subscriptions
//! and assignments (`ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, versions 0-3).
//!
//! The bytes are opaque to the classic protocol; the coordinator reads them to know what a group is
//! subscribed to, and where both kinds of member meet in one group (KIP-848). A version above the
//! newest is read as the newest, and what follows is left alone, as Kafka's `ConsumerProtocol` does.

use std::sync::Arc;

use bytes::Bytes;

use super::codec::{self, Field, Malformed, Reader, message};

/// The protocol type of groups whose members speak it.
pub(crate) const PROTOCOL_TYPE: &str = "consumer";

const NEWEST: i16 = 3;

message! {
    /// What a member wants, and what it owns.
    pub(crate) struct Subscription {
        topics: Vec<Arc<str>>,
        user_data: Option<Bytes>,
        [1..] owned_partitions: Vec<NamedPartitions>,
        [2..] generation_id: i32 = -1,
        [3..] rack_id: Option<Arc<str>>,
    }
}

message! {
    /// What a member may read.
    pub(crate) struct Assignment {
        assigned_partitions: Vec<NamedPartitions>,
        user_data: Option<Bytes>,
    }
}

message! {
    /// Partitions of a topic.
    pub(crate) struct NamedPartitions {
        topic: Arc<str> = Arc::from(""),
        partitions: Vec<i32>,
    }
}

impl Subscription {
    /// Reads a subscription and the version that it is written in.
    pub(crate) fn decode(input: &[u8]) -> Result<(i16, Self), Malformed> {
        decode(input)
    }
}

impl Assignment {
    /// Reads an assignment.
    pub(crate) fn decode(input: &[u8]) -> Result<Self, Malformed> {
        decode(input).map(|(_, assignment)| assignment)
    }

    /// The bytes of an assignment in a member's version.
    pub(crate) fn encode(&self, version: i16) -> Vec<u8> {
        let version = version.min(NEWEST);
        let mut out = version.to_be_bytes().to_vec();
        codec::encode(self, version, false, &mut out);
        out
    }
}

fn decode<T: Field>(input: &[u8]) -> Result<(i16, T), Malformed> {
    let (version, body) = input.split_first_chunk().ok_or(Malformed::Short)?;
    let version = i16::from_be_bytes(*version);
    if version < 0 {
        return Err(Malformed::Unknown);
    }
    let value = T::read(&mut Reader::new(body, version.min(NEWEST), false))?;
    Ok((version, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kafka 4.1.2's own encodings: name, version and the body's bytes in hex.
    const SAMPLES: &str = include_str!("testdata/subscriptions.txt");

    fn samples() -> impl Iterator<Item = (bool, i16, Vec<u8>)> {
        SAMPLES.lines().map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let version: i16 = words[1].parse().unwrap();
            let digits = |pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
            let body: Vec<u8> = words[2].as_bytes().chunks(2).map(digits).collect();
            let framed = [&version.to_be_bytes()[..], &body].concat();
            (words[0].ends_with("Subscription"), version, framed)
        })
    }

    #[test]
    fn what_kafka_writes_is_read_and_written_byte_for_byte() {
        for (is_subscription, version, bytes) in samples() {
            let mut out = version.to_be_bytes().to_vec();
            if is_subscription {
                let (read_version, subscription) = Subscription::decode(&bytes).unwrap();
                assert_eq!(read_version, version);
                codec::encode(&subscription, version, false, &mut out);
            } else {
                out = Assignment::decode(&bytes).unwrap().encode(version);
            }
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn a_later_version_is_read_as_the_newest_and_its_rest_left_alone() {
        for (is_subscription, version, mut bytes) in samples() {
            if is_subscription && version == NEWEST {
                let (_, known) = Subscription::decode(&bytes).unwrap();
                bytes[1] = 9;
                bytes.extend_from_slice(b"later");
                assert_eq!(Subscription::decode(&bytes), Ok((9, known)));
            }
        }
        let later = Assignment::default().encode(77);
        assert_eq!(later[..2], [0, 3]);
    }

    #[test]
    fn bytes_of_anything_else_are_refused_and_never_a_panic() {
        assert_eq!(Subscription::decode(&[]), Err(Malformed::Short));
        assert_eq!(Subscription::decode(&[0xff, 0xff]), Err(Malformed::Unknown));
        let claims = [0, 1, 0x7f, 0xff, 0xff, 0xff];
        assert_eq!(Subscription::decode(&claims), Err(Malformed::Short));
        for (_, _, bytes) in samples() {
            for at in 0..bytes.len() {
                for damage in [0x00, 0x7f, 0x80, 0xff] {
                    let mut bytes = bytes.clone();
                    bytes[at] = damage;
                    let _ = Subscription::decode(&bytes);
                    let _ = Assignment::decode(&bytes[..at]);
                }
            }
        }
    }
}
