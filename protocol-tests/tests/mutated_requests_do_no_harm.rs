//! Valid requests of every served API and version, mutated: bits flipped, lengths blown up, bodies cut,
//! tags added. Each is answered in its layout or ends its connection; the broker lives, its memory
//! stays small, and a normal client notices nothing.
//!
//! A few thousand in the everyday run; `scripts/mutate-requests` sends as many as one likes. The seeds
//! are `fixtures/requests.txt` and `fixtures/recorded.txt`, what Apache Kafka itself has serialised.
//! The recorded requests are also sent as they are. Traps covered here: B006, B008, B052, B063.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, Request, StrBytes};
use protocol_tests::wire::{
    Connection, create_topics, fetch, list_offsets, metadata, produce, with_length,
};
use protocol_tests::{Broker, Chance, Kind};

const GROWTH_LIMIT: u64 = 64 << 20;
const CORRELATION_ID: i32 = 4711;
const TOPIC: &str = "there";

/// Bodies by API key and version.
type Seeds = BTreeMap<(i16, i16), Vec<Vec<u8>>>;

#[test]
fn what_clients_said_to_kafka_is_answered_in_the_right_layout() {
    let broker = Broker::start();
    let served = served(&broker);
    let mut answered = 0;
    for (key, version, frame, was_answered) in recorded() {
        let is_served = served
            .get(&key)
            .is_some_and(|(min, max)| (*min..=*max).contains(&version));
        if !is_served || !was_answered {
            continue;
        }
        let what = format!("api {key} v{version}: {}", hex(&frame));
        let mut connection = Connection::open(&broker);
        connection.patience(Duration::from_secs(10));
        connection.send(&with_length(&frame)).unwrap();
        match connection.receive() {
            Ok(Some(answer)) => check_layout(key, version, answer, &what),
            // A group's members wait for each other.
            Err(_) if waits(key) => {}
            other => panic!("no answer to {what}: {other:?}"),
        }
        answered += 1;
    }
    println!("{answered} recorded requests are answered");
    assert!(
        answered > 60,
        "only {answered} recorded requests are served"
    );
}

#[test]
fn mutated_requests_are_answered_or_end_their_connection() {
    let broker = Broker::start_with(&[("auto.create.topics.enable", "false")]);
    Connection::open(&broker).create_topic(TOPIC, 1);
    let each: usize = std::env::var("PROTOCOL_TESTS_MUTATIONS")
        .ok()
        .map_or(600, |count| {
            count.parse().expect("a number of requests of each API")
        });
    let mut chance = Chance::announced("mutated requests");
    let mut served = served(&broker);
    // UnregisterBroker does what it says: a bit turned in a zero names our only node, which is gone.
    served.remove(&64);
    if let Ok(only) = std::env::var("PROTOCOL_TESTS_API") {
        served.retain(|key, _| key.to_string() == only);
    }
    let seeds = seeds(&served);
    // What a first round leaves in memory is no growth.
    for key in served.keys() {
        mutate(&broker, *key, &seeds, 20, &mut chance);
    }
    let before = broker.resident_bytes();
    let mut counts = [0; 3];
    for key in served.keys() {
        let start = broker.resident_bytes();
        let of_this = mutate(&broker, *key, &seeds, each, &mut chance);
        let grown = broker.resident_bytes().saturating_sub(start) >> 10;
        println!("api {key}: {of_this:?}, {grown} KiB more resident");
        for (sum, count) in counts.iter_mut().zip(of_this) {
            *sum += count;
        }
    }
    let after = broker.resident_bytes();
    let [answered, closed, silent] = counts;
    println!("{answered} answered, {closed} closed, {silent} without an answer");
    println!("{before} bytes resident before, {after} after");
    assert!(broker.is_alive(), "the broker has ended");
    if broker.kind() == Kind::Barnabas {
        assert!(
            after < before + GROWTH_LIMIT,
            "resident memory grew from {before} to {after} bytes"
        );
        let panics = broker.process().lines();
        let panics: Vec<&String> = panics
            .iter()
            .filter(|line| line.contains("panicked"))
            .collect();
        assert!(panics.is_empty(), "{panics:#?}");
    }
    let mut connection = Connection::open(&broker);
    connection.create_topic("normal", 1);
    let at = connection.produce("normal", -1, &[b"still here"]);
    assert_eq!(connection.fetch("normal", at)[0].1, "still here");
}

/// Sends so many mutations of an API's requests; returns how many were answered, ended their
/// connection, or neither.
fn mutate(
    broker: &Broker,
    key: i16,
    seeds: &Seeds,
    count: usize,
    chance: &mut Chance,
) -> [usize; 3] {
    let of_this: Vec<(i16, &Vec<u8>)> = seeds
        .range((key, i16::MIN)..=(key, i16::MAX))
        .flat_map(|((_, version), bodies)| bodies.iter().map(|body| (*version, body)))
        .collect();
    assert!(!of_this.is_empty(), "api {key} has no seeds");
    let mut counts = [0; 3];
    let mut connection = None;
    for _ in 0..count {
        let (version, seed) = of_this[chance.below(of_this.len())];
        let mut body = seed.clone();
        for _ in 0..chance.between(1, 4) {
            mutate_once(&mut body, chance);
        }
        if key == 0 && chance.below(2) == 0 {
            correct_the_checksum(&mut body);
        }
        let what = format!("api {key} v{version} with {}", hex(&body));
        let open = connection.get_or_insert_with(|| Connection::open(broker));
        open.patience(match broker.kind() {
            Kind::Barnabas if !waits(key) => Duration::from_secs(20),
            Kind::Barnabas | Kind::ApacheKafka => Duration::from_millis(30),
        });
        let sent = open.send(&with_length(&whole(key, version, &body)));
        match sent.and_then(|()| open.receive()) {
            Ok(Some(answer)) => {
                counts[0] += 1;
                check_layout(key, version, answer, &what);
                continue;
            }
            Ok(None) => counts[1] += 1,
            Err(error) if is_silence(error.kind()) => {
                // Apache Kafka itself drops a request now and then, AddPartitionsToTxn for one.
                let excused = waits(key) || broker.kind() == Kind::ApacheKafka;
                assert!(excused, "neither an answer nor an end: {what}");
                counts[2] += 1;
            }
            Err(_) => counts[1] += 1,
        }
        connection = None;
        assert!(
            broker.is_alive(),
            "the broker has ended: {what}\n{}",
            broker.story()
        );
    }
    counts
}

fn is_silence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Produce without acks, long polls, and groups whose members wait for each other.
fn waits(key: i16) -> bool {
    [0, 1, 11, 14, 78].contains(&key)
}

fn mutate_once(body: &mut Vec<u8>, chance: &mut Chance) {
    const NUMBERS: [&[u8]; 12] = [
        &[0x7f, 0xff, 0xff, 0xff],
        &[0x80, 0, 0, 0],
        &[0xff; 4],
        &[0xff; 8],
        &[0, 0xff, 0xff, 0xff],
        &[0x7f, 0xff],
        &[0x80, 0],
        &[0; 4],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
        &[0xff; 10],
    ];
    let at = chance.below(body.len() + 1);
    let near = (at + chance.between(1, 12)).min(body.len());
    match chance.below(9) {
        0 if at < body.len() => body[at] ^= 1 << chance.below(8),
        1 if at < body.len() => body[at] = low_byte(chance.number()),
        2 => body.truncate(at),
        3 => drop(body.drain(at..near)),
        4 => drop(body.splice(at..at, random_bytes(chance, 16))),
        5 => {
            let slice = body[at..near].to_vec();
            body.splice(at..at, slice);
        }
        6 => {
            let number = NUMBERS[chance.below(NUMBERS.len())];
            let end = (at + number.len()).min(body.len());
            body.splice(at..end, number.iter().copied());
        }
        7 => {
            // A tag, in place of the empty list of tags that a flexible body ends with.
            body.pop();
            let value = random_bytes(chance, 100);
            let claimed = if chance.below(2) == 0 {
                value.len()
            } else {
                chance.below(128)
            };
            body.extend([
                1,
                low_byte(chance.number()) & 0x7f,
                low_byte(claimed as u64),
            ]);
            body.extend(value);
        }
        _ => body.extend(random_bytes(chance, 40)),
    }
}

fn random_bytes(chance: &mut Chance, most: usize) -> Vec<u8> {
    (0..chance.below(most))
        .map(|_| low_byte(chance.number()))
        .collect()
}

fn low_byte(number: u64) -> u8 {
    number.to_le_bytes()[0]
}

/// Makes the checksum of the first record batch right again, so that what lies behind it is reached.
fn correct_the_checksum(body: &mut [u8]) {
    // Base offset, length, leader epoch, magic 2: the seeds' batches begin with zeros.
    let start = body
        .windows(17)
        .position(|window| window[..8] == [0; 8] && window[12..17] == [0xff, 0xff, 0xff, 0xff, 2]);
    let Some(start) = start else { return };
    let length = u32::from_be_bytes([
        body[start + 8],
        body[start + 9],
        body[start + 10],
        body[start + 11],
    ]);
    let end = start
        .saturating_add(12)
        .saturating_add(length as usize)
        .min(body.len());
    if end < start + 21 {
        return;
    }
    let checksum = crc32c(&body[start + 21..end]);
    body[start + 17..start + 21].copy_from_slice(&checksum.to_be_bytes());
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let rest = bytes.iter().fold(u32::MAX, |rest, byte| {
        (0..8).fold(rest ^ u32::from(*byte), |rest, _| {
            (rest >> 1) ^ (0x82f6_3b78 & (rest & 1).wrapping_neg())
        })
    });
    !rest
}

#[test]
fn the_checksum_is_crc_32c() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}

#[track_caller]
fn check_layout(key: i16, version: i16, mut answer: Bytes, what: &str) {
    let api = ApiKey::try_from(key).expect("a known API");
    let whole = answer.clone();
    let header = ResponseHeader::decode(&mut answer, api.response_header_version(version));
    assert!(header.is_ok(), "no header before {} to {what}", hex(&whole));
    let body = decode_response(key, version, &mut answer);
    assert!(
        body.is_ok() && answer.is_empty(),
        "{:?}, {} bytes left of {} to {what}",
        body.err(),
        answer.len(),
        hex(&whole)
    );
}

macro_rules! responses {
    ($($key:literal $response:ident)*) => {
        /// Decodes a response into nothing.
        fn decode_response(key: i16, version: i16, answer: &mut Bytes) -> Result<(), String> {
            let decoded = match key {
                $($key => kafka_protocol::messages::$response::decode(answer, version).map(drop),)*
                _ => panic!("the response to api {key} is not known here"),
            };
            decoded.map_err(|error| error.to_string())
        }
    };
}

// Every API of a broker's listener.
responses! {
    0 ProduceResponse
    1 FetchResponse
    2 ListOffsetsResponse
    3 MetadataResponse
    8 OffsetCommitResponse
    9 OffsetFetchResponse
    10 FindCoordinatorResponse
    11 JoinGroupResponse
    12 HeartbeatResponse
    13 LeaveGroupResponse
    14 SyncGroupResponse
    15 DescribeGroupsResponse
    16 ListGroupsResponse
    17 SaslHandshakeResponse
    18 ApiVersionsResponse
    19 CreateTopicsResponse
    20 DeleteTopicsResponse
    21 DeleteRecordsResponse
    22 InitProducerIdResponse
    23 OffsetForLeaderEpochResponse
    24 AddPartitionsToTxnResponse
    25 AddOffsetsToTxnResponse
    26 EndTxnResponse
    27 WriteTxnMarkersResponse
    28 TxnOffsetCommitResponse
    29 DescribeAclsResponse
    30 CreateAclsResponse
    31 DeleteAclsResponse
    32 DescribeConfigsResponse
    33 AlterConfigsResponse
    34 AlterReplicaLogDirsResponse
    35 DescribeLogDirsResponse
    36 SaslAuthenticateResponse
    37 CreatePartitionsResponse
    38 CreateDelegationTokenResponse
    39 RenewDelegationTokenResponse
    40 ExpireDelegationTokenResponse
    41 DescribeDelegationTokenResponse
    42 DeleteGroupsResponse
    43 ElectLeadersResponse
    44 IncrementalAlterConfigsResponse
    45 AlterPartitionReassignmentsResponse
    46 ListPartitionReassignmentsResponse
    47 OffsetDeleteResponse
    48 DescribeClientQuotasResponse
    49 AlterClientQuotasResponse
    50 DescribeUserScramCredentialsResponse
    51 AlterUserScramCredentialsResponse
    55 DescribeQuorumResponse
    57 UpdateFeaturesResponse
    60 DescribeClusterResponse
    61 DescribeProducersResponse
    64 UnregisterBrokerResponse
    65 DescribeTransactionsResponse
    66 ListTransactionsResponse
    68 ConsumerGroupHeartbeatResponse
    69 ConsumerGroupDescribeResponse
    71 GetTelemetrySubscriptionsResponse
    72 PushTelemetryResponse
    74 ListConfigResourcesResponse
    75 DescribeTopicPartitionsResponse
    76 ShareGroupHeartbeatResponse
    77 ShareGroupDescribeResponse
    78 ShareFetchResponse
    79 ShareAcknowledgeResponse
    80 AddRaftVoterResponse
    81 RemoveRaftVoterResponse
    83 InitializeShareGroupStateResponse
    84 ReadShareGroupStateResponse
    85 WriteShareGroupStateResponse
    86 DeleteShareGroupStateResponse
    87 ReadShareGroupStateSummaryResponse
    90 DescribeShareGroupOffsetsResponse
    91 AlterShareGroupOffsetsResponse
    92 DeleteShareGroupOffsetsResponse
}

/// The APIs that the broker advertises, with their versions.
fn served(broker: &Broker) -> BTreeMap<i16, (i16, i16)> {
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("protocol-tests"))
        .with_client_software_version(StrBytes::from_static_str("1"));
    Connection::open(broker)
        .ask(4, &request)
        .api_keys
        .iter()
        // Produce is told from version 0 on and served from 3 on.
        .map(|row| (row.api_key, (row.min_version.max(if row.api_key == 0 { 3 } else { 0 }), row.max_version)))
        .collect()
}

fn seeds(served: &BTreeMap<i16, (i16, i16)>) -> Seeds {
    let mut seeds = Seeds::new();
    let mut add = |key: i16, version: i16, body: Vec<u8>| {
        let wanted = served
            .get(&key)
            .is_some_and(|(min, max)| (*min..=*max).contains(&version));
        if wanted {
            seeds.entry((key, version)).or_default().push(body);
        }
    };
    for line in lines(include_str!("../fixtures/requests.txt")) {
        let [key, version, body] = line[..] else {
            panic!("{line:?}")
        };
        add(number(key), number(version), bytes(body));
    }
    for (key, version, frame, _) in recorded() {
        let mut body = Bytes::from(frame);
        // The streams groups' two are unknown to the crate, and not served by default.
        let Ok(api) = ApiKey::try_from(key) else {
            continue;
        };
        if RequestHeader::decode(&mut body, api.request_header_version(version)).is_ok() {
            add(key, version, body.to_vec());
        }
    }
    // Those that reach a topic.
    let values: [&[u8]; 3] = [b"one", b"two", b"three"];
    for version in 0..=18 {
        add(0, version, body(version, &produce(TOPIC, -1, &values)));
        add(
            1,
            version,
            body(version, &fetch(TOPIC, 0).with_max_wait_ms(1)),
        );
        add(2, version, body(version, &list_offsets(TOPIC, 0, -1)));
        add(3, version, body(version, &metadata(TOPIC)));
        add(
            19,
            version,
            body(
                version,
                &create_topics("checked", 1).with_validate_only(true),
            ),
        );
    }
    seeds
}

/// A body in this version; empty when the request does not fit it.
fn body<R: Request>(version: i16, request: &R) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    match request.encode(&mut bytes, version) {
        Ok(()) => bytes.to_vec(),
        Err(_) => Vec::new(),
    }
}

/// Key, version, frame, and whether Apache Kafka has answered.
fn recorded() -> Vec<(i16, i16, Vec<u8>, bool)> {
    lines(include_str!("../fixtures/recorded.txt"))
        .map(|line| {
            let [key, version, frame, answer] = line[..] else {
                panic!("{line:?}")
            };
            (number(key), number(version), bytes(frame), answer != "-")
        })
        .collect()
}

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(' ').collect())
}

fn number(text: &str) -> i16 {
    text.parse().expect("a number")
}

fn bytes(text: &str) -> Vec<u8> {
    let text = if text == "-" { "" } else { text };
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn whole(key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let api = ApiKey::try_from(key).expect("a known API");
    let mut frame = BytesMut::new();
    RequestHeader::default()
        .with_request_api_key(key)
        .with_request_api_version(version)
        .with_correlation_id(CORRELATION_ID)
        .with_client_id(Some(StrBytes::from_static_str("mutant")))
        .encode(&mut frame, api.request_header_version(version))
        .expect("a header encodes");
    frame.put_slice(body);
    frame.to_vec()
}
