//! What Apache Kafka answered to a thousand single requests is what this broker answers.

use std::collections::BTreeMap;

use protocol_tests::probes::{Outcome, SETTINGS, Table};
use protocol_tests::{Broker, Kind};

/// Where we answer differently on purpose: the probe, and why.
const ON_PURPOSE: &[(&str, &str)] = &[
    (
        "frame-closed/negative array count below -1",
        "a count below -1 is no list; Kafka takes it for null",
    ),
    (
        "produce-shape/null records",
        "INVALID_RECORD; Kafka never answers",
    ),
    (
        "produce-shape/record length varint too long",
        "INVALID_RECORD says more than UNKNOWN_SERVER_ERROR",
    ),
    (
        "produce-codecs/compressed offsets not consecutive",
        "numbered anew, as Kafka means to and fails (KAFKA-9080); some clients count on it",
    ),
    (
        "produce-codecs/kept as sent",
        "one batch more: the one that was numbered anew",
    ),
    (
        "list-offsets/isolation 5",
        "INVALID_REQUEST says more than UNKNOWN_SERVER_ERROR",
    ),
];

/// `PROTOCOL_TESTS_PROBES=configs` runs the stories whose names contain it.
#[test]
fn single_requests_are_answered_as_kafka_does() {
    let only = std::env::var("PROTOCOL_TESTS_PROBES").unwrap_or_default();
    let table = Table::load();
    let broker = Broker::start_with(SETTINGS);
    let outcomes = table.run(broker.port(), &only);

    // Apache Kafka itself differs nowhere: that is how the table and its reader are proved.
    let on_file = match broker.kind() {
        Kind::Barnabas => ON_PURPOSE,
        Kind::ApacheKafka => &[],
    };
    let mut agree = 0;
    let mut on_purpose = 0;
    let mut skipped: BTreeMap<&str, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for (entry, outcome) in &outcomes {
        let name = entry.name();
        let reason = on_file
            .iter()
            .find(|(probe, _)| *probe == name)
            .map(|(_, why)| why);
        match (outcome, reason) {
            (Outcome::Agrees, None) => agree += 1,
            (Outcome::Agrees, Some(why)) => {
                faults.push(format!(
                    "{name}\n    agrees, though it is listed as different: {why}"
                ));
            }
            (Outcome::Differs(_), Some(_)) => on_purpose += 1,
            (Outcome::Differs(lines), None) => {
                faults.push(format!("{name}\n    {}", lines.join("\n    ")));
            }
            (Outcome::Skipped(api), _) => *skipped.entry(api).or_default() += 1,
        }
    }
    let left_out: usize = skipped.values().sum();
    println!(
        "{agree} probes agree, {on_purpose} differ on purpose, {left_out} wait for an API: {skipped:?}"
    );
    assert!(
        faults.is_empty(),
        "{} differ:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn every_difference_names_a_probe() {
    let table = Table::load();
    let names = table.names();
    for (probe, why) in ON_PURPOSE {
        assert!(names.contains(probe), "no probe is called {probe} ({why})");
    }
}
