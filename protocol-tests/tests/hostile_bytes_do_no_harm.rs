//! Bytes that no client sends: the connection is closed, the log says why, and the broker goes on.

use std::net::SocketAddr;
use std::time::Duration;

use kafka_protocol::protocol::Request;
use protocol_tests::tools::{kcat, kcat_with};
use protocol_tests::wire::{
    Connection, create_topics, fetch, frame, list_offsets, metadata, produce, raw_frame,
    with_length,
};
use protocol_tests::{Broker, Kind};

const LIMIT: Duration = Duration::from_secs(10);
const GROWTH_LIMIT: u64 = 64 << 20;

#[test]
fn what_is_no_request_closes_the_connection_and_is_logged_once() {
    let broker = Broker::start();
    let get = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let tls_hello = [
        0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03, 0x41,
    ];
    // A header that ends after its key, after its version, within its correlation id, within its
    // client id, and one whose client id is longer than the frame.
    let cut_headers: [&[u8]; 6] = [
        &[],
        &[0, 3],
        &[0, 3, 0, 9],
        &[0, 3, 0, 9, 0, 0],
        &[0, 3, 0, 9, 0, 0, 0, 1, 0, 9, b'a'],
        &[0, 3, 0, 9, 0, 0, 0, 1, 0x7f, 0xff, b'a', b'b'],
    ];
    let mut cases: Vec<(String, Vec<u8>)> = vec![
        ("an unknown api key".into(), raw_frame(999, 0, false, &[])),
        ("a negative api key".into(), raw_frame(-1, 0, false, &[])),
        (
            "a version too new".into(),
            raw_frame(3, 99, true, &[0, 0, 0, 0]),
        ),
        (
            "a version too old".into(),
            raw_frame(0, 0, false, &[0, 1, 0, 0, 0, 9, 0, 0, 0, 0]),
        ),
        (
            "a negative version".into(),
            raw_frame(3, -1, false, &[0, 0, 0, 0]),
        ),
        ("a negative length".into(), (-1_i32).to_be_bytes().to_vec()),
        (
            "the smallest length".into(),
            i32::MIN.to_be_bytes().to_vec(),
        ),
        ("the largest length".into(), i32::MAX.to_be_bytes().to_vec()),
        (
            "a length above socket.request.max.bytes".into(),
            (104_857_601_i32).to_be_bytes().to_vec(),
        ),
        ("an HTTP request".into(), get.to_vec()),
        ("a TLS greeting".into(), tls_hello.to_vec()),
    ];
    cases.extend(
        cut_headers
            .iter()
            .map(|header| (format!("the header {header:02x?}"), with_length(header))),
    );

    for (what, bytes) in cases {
        let mut connection = Connection::open(&broker);
        let peer = connection.local();
        let from = broker.process().lines().len();
        connection.send(&bytes).unwrap();
        connection.expect_closed(&what);
        logged_once(&broker, from, peer, &what);
    }
    serves(&broker);
}

/// One line that names the listener, the peer and something behind them, which is the cause.
#[track_caller]
fn logged_once(broker: &Broker, from: usize, peer: SocketAddr, what: &str) {
    if broker.kind() == Kind::ApacheKafka {
        return;
    }
    let peer = peer.to_string();
    let line = broker
        .process()
        .wait_for_line(from, |line| line.contains(&peer), LIMIT);
    assert!(
        line.contains("PLAINTEXT"),
        "after {what}: the listener is not named: {line}"
    );
    let rest = line.replace(&peer, "").replace("PLAINTEXT", "");
    let words = rest
        .split_whitespace()
        .filter(|word| word.len() > 2 && word.chars().all(char::is_alphabetic));
    assert!(
        words.count() >= 4,
        "after {what}: no cause is named: {line}"
    );
    // The next connection's end is in the log, so that a second line about this one would be there.
    let mut next = Connection::open(broker);
    let next_peer = next.local().to_string();
    next.send(&(-1_i32).to_be_bytes()).unwrap();
    next.expect_closed("a negative length");
    broker
        .process()
        .wait_for_line(from, |line| line.contains(&next_peer), LIMIT);
    let lines = broker.process().lines();
    let about: Vec<&String> = lines[from..]
        .iter()
        .filter(|line| line.contains(&peer))
        .collect();
    assert_eq!(about.len(), 1, "after {what}: {about:#?}");
}

#[test]
fn tiny_bodies_that_claim_huge_arrays_cost_nothing() {
    let broker = Broker::start();
    Connection::open(&broker).create_topic("there", 1);
    serves(&broker);
    let before = broker.resident_bytes();

    let huge_compact = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let huge = [0x7f, 0xff, 0xff, 0xff];
    let produce_body = [&[0, 0, 0, 0, 0, 0, 0][..], &huge_compact].concat();
    let fetch_body = [&[0; 26][..], &huge_compact].concat();
    let families: [(i16, std::ops::RangeInclusive<i16>, bool, &[u8]); 7] = [
        (3, 9..=13, true, &huge_compact),
        (3, 0..=8, false, &huge),
        (19, 5..=7, true, &huge_compact),
        (20, 6..=6, true, &huge_compact),
        (32, 4..=4, true, &huge_compact),
        (0, 9..=12, true, &produce_body),
        (1, 12..=17, true, &fetch_body),
    ];
    for (key, versions, flexible, body) in families {
        for version in versions {
            for _ in 0..8 {
                let mut connection = Connection::open(&broker);
                connection
                    .send(&raw_frame(key, version, flexible, body))
                    .unwrap();
                connection.expect_closed(&format!("api {key} v{version} with {body:02x?}"));
            }
            assert!(
                broker.is_alive(),
                "api {key} v{version} ended the broker:\n{}",
                broker.story()
            );
        }
    }

    let after = broker.resident_bytes();
    println!("{before} bytes resident before, {after} after");
    if broker.kind() == Kind::Barnabas {
        assert!(
            after < before + GROWTH_LIMIT,
            "resident memory grew from {before} to {after} bytes"
        );
    }
    serves(&broker);
}

#[test]
fn every_prefix_of_a_request_is_refused() {
    let broker = Broker::start();
    Connection::open(&broker).create_topic("there", 1);
    let before = broker.resident_bytes();

    let values: [&[u8]; 2] = [b"one", b"two"];
    prefixes(&broker, 9, &produce("there", -1, &values));
    prefixes(&broker, 12, &fetch("there", 0));
    prefixes(&broker, 9, &metadata("there"));
    prefixes(&broker, 12, &metadata("there"));
    prefixes(&broker, 7, &create_topics("here", 1));
    prefixes(&broker, 7, &list_offsets("there", 0, -1));

    let after = broker.resident_bytes();
    println!("{before} bytes resident before, {after} after");
    if broker.kind() == Kind::Barnabas {
        assert!(
            after < before + GROWTH_LIMIT,
            "resident memory grew from {before} to {after} bytes"
        );
    }
    // None of them did half a thing.
    let mut connection = Connection::open(&broker);
    assert_eq!(connection.end_offset("there", 0), 0, "nothing was appended");
    let answer = connection.ask(12, &metadata("here"));
    assert_eq!(answer.topics[0].error_code, 3, "no topic was created");
    serves(&broker);
}

fn prefixes<R: Request>(broker: &Broker, version: i16, request: &R) {
    let whole = frame(version, 1, request);
    for length in 0..whole.len() - 4 {
        let mut connection = Connection::open(broker);
        connection
            .send(&with_length(&whole[4..4 + length]))
            .unwrap();
        connection.expect_closed(&format!(
            "{length} bytes of a request of api {} v{version}",
            R::KEY
        ));
    }
    assert!(
        broker.is_alive(),
        "prefixes of api {} ended the broker:\n{}",
        R::KEY,
        broker.story()
    );

    // The same bytes in a frame that never comes whole.
    for length in [1, 3, 4, 5, whole.len() / 2, whole.len() - 1] {
        let mut connection = Connection::open(broker);
        connection.send(&whole[..length]).unwrap();
        connection.finish_sending();
        connection.expect_closed(&format!(
            "{length} bytes and then the end, api {} v{version}",
            R::KEY
        ));
    }
}

/// A normal client finds nothing amiss.
fn serves(broker: &Broker) {
    kcat_with(broker, &["-P", "-t", "normal"], b"still here");
    let got = kcat(
        broker,
        &["-C", "-t", "normal", "-o", "-1", "-e", "-q", "-f", "%s"],
    );
    assert_eq!(String::from_utf8_lossy(&got), "still here");
    let mut connection = Connection::open(broker);
    connection.api_versions();
    assert_eq!(connection.describe("normal").1, 1);
}
