//! Requests are sent in one burst: answers come in the order of the requests, a request sees what
//! those before it did, and one that waits holds up only those that must not overtake it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::{FetchResponse, MetadataResponse, ProduceResponse, ResponseHeader};
use kafka_protocol::protocol::{Decodable, HeaderVersion};
use protocol_tests::wire::{
    Connection, create_topics, fetch, frame, list_offsets, metadata, produce,
};
use protocol_tests::{Broker, Kind, only_barnabas};

/// The correlation id of an answer, and its body.
fn answer<R: Decodable + HeaderVersion>(client: &mut Connection, version: i16) -> (i32, R) {
    let mut bytes: Bytes = client
        .receive()
        .expect("an answer in time")
        .expect("an answer");
    let header = ResponseHeader::decode(&mut bytes, R::header_version(version)).unwrap();
    let body = R::decode(&mut bytes, version).unwrap();
    (header.correlation_id, body)
}

fn base_offset(produced: &ProduceResponse) -> i64 {
    let partition = &produced.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, 0);
    partition.base_offset
}

fn fetched_bytes(fetched: &FetchResponse) -> usize {
    let partition = &fetched.responses[0].partitions[0];
    assert_eq!(partition.error_code, 0);
    partition
        .records
        .as_ref()
        .map_or(0, |records| records.len())
}

/// A broker with a topic that is led, and a connection to it.
fn story() -> (Broker, Connection) {
    let broker = Broker::start();
    let mut client = Connection::open(&broker);
    client.create_topic("story", 1);
    client.end_offset("story", 0);
    (broker, client)
}

#[test]
fn produces_and_fetches_of_a_burst_are_answered_in_turn() {
    let (_broker, mut client) = story();
    let mut burst = Vec::new();
    for n in 0..200 {
        let value = format!("value {n}");
        burst.extend(frame(9, 2 * n, &produce("story", -1, &[value.as_bytes()])));
        burst.extend(frame(12, 2 * n + 1, &fetch("story", i64::from(n))));
    }
    client.send(&burst).unwrap();
    for n in 0..200 {
        let (id, produced) = answer::<ProduceResponse>(&mut client, 9);
        assert_eq!((id, base_offset(&produced)), (2 * n, i64::from(n)));
        let (id, fetched) = answer::<FetchResponse>(&mut client, 12);
        assert_eq!(id, 2 * n + 1);
        assert!(fetched_bytes(&fetched) > 0);
    }
}

#[test]
fn metadata_sees_the_topic_created_before_it_in_the_burst() {
    let broker = Broker::start();
    let mut client = Connection::open(&broker);
    let mut burst = Vec::new();
    for n in 0..20 {
        let topic = format!("new-{n}");
        burst.extend(frame(7, 3 * n, &create_topics(&topic, 2)));
        burst.extend(frame(12, 3 * n + 1, &metadata(&topic)));
        burst.extend(frame(7, 3 * n + 2, &list_offsets(&topic, 1, -1)));
    }
    client.send(&burst).unwrap();
    for n in 0..20 {
        let created: (i32, kafka_protocol::messages::CreateTopicsResponse) = answer(&mut client, 7);
        assert_eq!((created.0, created.1.topics[0].error_code), (3 * n, 0));
        let (id, known) = answer::<MetadataResponse>(&mut client, 12);
        assert_eq!(id, 3 * n + 1);
        let (id, ends): (i32, kafka_protocol::messages::ListOffsetsResponse) =
            answer(&mut client, 7);
        assert_eq!(id, 3 * n + 2);
        // Kafka's broker learns of a new topic some time after the answer.
        if broker.kind() == Kind::Barnabas {
            assert_eq!(known.topics[0].error_code, 0);
            assert_eq!(known.topics[0].partitions.len(), 2);
            assert_eq!(ends.topics[0].partitions[0].error_code, 0);
        }
    }
}

/// Kafka reads a connection's next request only once the one before is answered; here the fetch is
/// ended by the very produce that stands behind it.
#[test]
fn a_fetch_that_waits_does_not_hold_up_a_produce_behind_it() {
    if !only_barnabas() {
        return;
    }
    let (_broker, mut client) = story();
    let waiting = fetch("story", 0).with_max_wait_ms(15_000);
    let burst = [
        frame(12, 1, &waiting),
        frame(9, 2, &produce("story", 1, &[b"one"])),
    ];
    let start = Instant::now();
    client.send(&burst.concat()).unwrap();
    let (id, fetched) = answer::<FetchResponse>(&mut client, 12);
    assert!(id == 1 && fetched_bytes(&fetched) > 0);
    let (id, produced) = answer::<ProduceResponse>(&mut client, 9);
    assert_eq!((id, base_offset(&produced)), (2, 0));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn requests_without_an_answer_leave_no_gap() {
    let (_broker, mut client) = story();
    let mut burst = Vec::new();
    for n in 0..50 {
        let acks = i16::from(n % 3 == 0);
        burst.extend(frame(9, n, &produce("story", acks, &[b"one"])));
    }
    client.send(&burst).unwrap();
    for n in (0..50).filter(|n| n % 3 == 0) {
        let (id, produced) = answer::<ProduceResponse>(&mut client, 9);
        assert_eq!((id, base_offset(&produced)), (n, i64::from(n)));
    }
    assert_eq!(client.end_offset("story", 0), 50);
}

#[test]
fn what_a_client_sent_before_it_closed_its_half_is_done_and_answered() {
    let (broker, mut client) = story();
    let burst: Vec<u8> = (0..5)
        .flat_map(|n| frame(9, n, &produce("story", 1, &[b"one"])))
        .collect();
    client.send(&burst).unwrap();
    for n in 0..5 {
        assert_eq!(answer::<ProduceResponse>(&mut client, 9).0, n);
    }
    client.finish_sending();
    client.expect_closed("the client's end");
    assert_eq!(Connection::open(&broker).end_offset("story", 0), 5);
}

#[test]
fn a_client_that_reads_nothing_does_not_keep_the_node_from_stopping() {
    let (mut broker, mut client) = story();
    let value = vec![7; 900_000];
    for _ in 0..20 {
        client.produce("story", 1, &[&value]);
    }
    let burst: Vec<u8> = (0..20)
        .flat_map(|n| frame(12, n, &fetch("story", 0)))
        .collect();
    client.send(&burst).unwrap();
    assert!(!client.is_silent(Duration::from_secs(10)));
    broker.stop();
}
