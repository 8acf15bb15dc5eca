//! A group that nobody has heard of gets its first message without a detour: with default settings
//! librdkafka and Java ask for each thing once, and nothing sends them into a backoff. How long that
//! takes is for `scripts/first-message` to tell; what is asked no noise moves.

use std::collections::BTreeMap;

use kafka_protocol::messages::FindCoordinatorRequest;
use protocol_tests::first_message::{Client, Way, watch};
use protocol_tests::witness::Exchange;
use protocol_tests::{Kind, only_barnabas};

/// The first has the topic of offsets made; Java is cold then.
const GROUPS: usize = 2;

fn counts(way: &Way) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for asked in &way.asked {
        *counts.entry(asked.name()).or_default() += 1;
    }
    counts
}

/// Each of these is asked just so often, and whoever asks for a coordinator is told of one.
#[track_caller]
fn check(client: Client, expected: &[(&str, usize)]) {
    if !only_barnabas() {
        return;
    }
    for way in watch(Kind::Barnabas, client, GROUPS) {
        let counts = counts(&way);
        println!("{client:?} {} ms {counts:?}", way.ms);
        for (name, expected) in expected {
            let count = counts.get(*name).copied().unwrap_or(0);
            assert_eq!(count, *expected, "{name} in {counts:?}");
        }
        let asked = way.asked.iter();
        let found: Vec<i16> = asked
            .filter_map(Exchange::answer::<FindCoordinatorRequest>)
            .map(|found| {
                found.error_code
                    + found
                        .coordinators
                        .iter()
                        .map(|it| it.error_code)
                        .sum::<i16>()
            })
            .collect();
        assert!(
            !found.is_empty() && found.iter().all(|code| *code == 0),
            "{found:?}"
        );
    }
}

/// A new member is given its id first (KIP-394), so that it joins twice.
const CLASSIC: &[(&str, usize)] = &[
    ("JoinGroup", 2),
    ("SyncGroup", 1),
    ("OffsetFetch", 1),
    ("ListOffsets", 1),
];

const NEW: &[(&str, usize)] = &[("OffsetFetch", 1), ("ListOffsets", 1)];

#[test]
fn with_librdkafka() {
    check(Client::Librdkafka, CLASSIC);
}

#[test]
fn with_librdkafka_by_the_consumer_protocol() {
    check(Client::NewLibrdkafka, NEW);
}

#[test]
fn with_java() {
    check(Client::Java, CLASSIC);
}

#[test]
fn with_java_by_the_consumer_protocol() {
    check(Client::NewJava, NEW);
}
