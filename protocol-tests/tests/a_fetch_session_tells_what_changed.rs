//! Fetch sessions (KIP-227) frame by frame: what stock clients do not show. Reports covered: B100, B101.

use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use kafka_protocol::messages::{
    BrokerId, DeleteTopicsRequest, FetchRequest, FetchResponse, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, HeaderVersion};
use protocol_tests::wire::{Connection, frame, topic_name};
use protocol_tests::{Broker, Kind};
use uuid::Uuid;

const NONE: i16 = 0;
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
const INVALID_FETCH_SESSION_EPOCH: i16 = 71;
const UNKNOWN_LEADER_EPOCH: i16 = 75;
const UNKNOWN_TOPIC_ID: i16 = 100;
const INCONSISTENT_TOPIC_ID: i16 = 103;
const FETCH_SESSION_TOPIC_ID_ERROR: i16 = 106;
const UNKNOWN_SERVER_ERROR: i16 = -1;

/// By topic id.
const IDS: i16 = 17;
/// By topic name.
const NAMES: i16 = 12;

fn partition(index: i32, offset: i64) -> FetchPartition {
    FetchPartition::default()
        .with_partition(index)
        .with_current_leader_epoch(-1)
        .with_fetch_offset(offset)
        .with_last_fetched_epoch(-1)
        .with_log_start_offset(-1)
        .with_partition_max_bytes(1 << 20)
}

fn by_id(id: Uuid, partitions: Vec<FetchPartition>) -> FetchTopic {
    FetchTopic::default()
        .with_topic_id(id)
        .with_partitions(partitions)
}

fn by_name(name: &str, partitions: Vec<FetchPartition>) -> FetchTopic {
    FetchTopic::default()
        .with_topic(topic_name(name))
        .with_partitions(partitions)
}

/// A request that waits for nothing.
fn request(session: i32, epoch: i32, topics: Vec<FetchTopic>) -> FetchRequest {
    FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(0)
        .with_min_bytes(1)
        .with_max_bytes(64 << 20)
        .with_session_id(session)
        .with_session_epoch(epoch)
        .with_topics(topics)
}

/// What a response tells: (partition, error, high watermark, bytes of records), in its order.
fn told(response: &FetchResponse) -> Vec<(i32, i16, i64, usize)> {
    let partitions = response
        .responses
        .iter()
        .flat_map(|topic| &topic.partitions);
    partitions
        .map(|one| {
            let bytes = one.records.as_ref().map_or(0, |records| records.len());
            (
                one.partition_index,
                one.error_code,
                one.high_watermark,
                bytes,
            )
        })
        .collect()
}

fn indexes(response: &FetchResponse) -> Vec<i32> {
    told(response).iter().map(|one| one.0).collect()
}

/// A broker, a connection to it, and a topic of three partitions.
fn story() -> (Broker, Connection, Uuid) {
    let broker = Broker::start();
    let mut client = Connection::open(&broker);
    let id = client.create_topic("story", 3);
    // Kafka says that a topic is there before its partitions are led.
    for index in 0..3 {
        client.end_offset("story", index);
    }
    (broker, client, id)
}

#[test]
fn only_what_changed_is_told() {
    let (_broker, mut client, id) = story();
    let all = vec![by_id(id, (0..3).map(|index| partition(index, 0)).collect())];
    let opened = client.ask(IDS, &request(0, 0, all));
    assert_eq!(opened.error_code, NONE);
    assert!(opened.session_id > 0);
    assert_eq!(indexes(&opened), [0, 1, 2]);
    let session = opened.session_id;

    let quiet = client.ask(IDS, &request(session, 1, vec![]));
    assert_eq!((quiet.error_code, quiet.session_id), (NONE, session));
    assert_eq!(told(&quiet), []);

    client.produce("story", 1, &[b"one"]);
    let news = client.ask(IDS, &request(session, 2, vec![]));
    let rows = told(&news);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].2, 1);
    assert!(rows[0].3 > 0);

    // Past the record: its partition says nothing new any more.
    let past = vec![by_id(id, vec![partition(0, 1)])];
    assert_eq!(
        told(&client.ask(IDS, &request(session, 3, past.clone()))),
        []
    );

    // An error is told each time, and the return to order once.
    let wrong = vec![by_id(id, vec![partition(0, 99)])];
    for (epoch, topics) in [(4, wrong), (5, vec![])] {
        let answer = client.ask(IDS, &request(session, epoch, topics));
        assert_eq!(told(&answer), [(0, 1, -1, 0)]);
    }
    let healed = client.ask(IDS, &request(session, 6, past));
    assert_eq!(told(&healed), [(0, NONE, 1, 0)]);
    assert_eq!(told(&client.ask(IDS, &request(session, 7, vec![]))), []);
}

#[test]
fn partitions_that_gave_records_stand_last() {
    let (_broker, mut client, id) = story();
    client.produce("story", 1, &[b"one"]);
    let all = vec![by_id(id, (0..3).map(|index| partition(index, 0)).collect())];
    let session = client.ask(IDS, &request(0, 0, all)).session_id;
    let first = client.ask(IDS, &request(session, 1, vec![]));
    assert_eq!(indexes(&first), [0]);
    // All three have something to say: an offset that is out of range.
    let wrong = vec![by_id(id, (0..3).map(|index| partition(index, 9)).collect())];
    let order = client.ask(IDS, &request(session, 2, wrong));
    assert_eq!(indexes(&order), [1, 2, 0]);
}

#[test]
fn wrong_epochs_and_ids_change_nothing() {
    let (_broker, mut client, id) = story();
    let one = || vec![by_id(id, vec![partition(0, 0)])];
    let session = client.ask(IDS, &request(0, 0, one())).session_id;
    for (version, number, epoch, error) in [
        (IDS, session, 2, INVALID_FETCH_SESSION_EPOCH),
        (IDS, session, 7, INVALID_FETCH_SESSION_EPOCH),
        (IDS, session ^ 1, 1, FETCH_SESSION_ID_NOT_FOUND),
        // B100: who was granted none and goes on as if.
        (IDS, 0, 1, FETCH_SESSION_ID_NOT_FOUND),
        (IDS, 0, -2, FETCH_SESSION_ID_NOT_FOUND),
        (NAMES, session, 1, FETCH_SESSION_TOPIC_ID_ERROR),
    ] {
        let answer = client.ask(version, &request(number, epoch, vec![]));
        assert_eq!(answer.error_code, error, "{number} {epoch}");
        assert_eq!(answer.session_id, 0);
        assert_eq!(answer.responses, []);
    }
    let goes_on = client.ask(IDS, &request(session, 1, vec![]));
    assert_eq!((goes_on.error_code, goes_on.session_id), (NONE, session));

    // Epoch 0 opens another in its place, epoch -1 ends it.
    let another = client.ask(IDS, &request(session, 0, one())).session_id;
    assert!(another > 0 && another != session);
    let ended = client.ask(IDS, &request(another, -1, one()));
    assert_eq!((ended.error_code, ended.session_id), (NONE, 0));
    assert_eq!(indexes(&ended), [0]);
    for gone in [session, another] {
        let answer = client.ask(IDS, &request(gone, 1, vec![]));
        assert_eq!(answer.error_code, FETCH_SESSION_ID_NOT_FOUND);
    }
}

#[test]
fn a_forgotten_partition_is_told_of_again_once_it_is_asked_for_again() {
    // B101
    let (_broker, mut client, id) = story();
    let two = vec![by_id(id, vec![partition(0, 0), partition(1, 0)])];
    let session = client.ask(IDS, &request(0, 0, two)).session_id;
    let forget = ForgottenTopic::default()
        .with_topic_id(id)
        .with_partitions(vec![0]);
    let less = request(session, 1, vec![]).with_forgotten_topics_data(vec![forget]);
    assert_eq!(told(&client.ask(IDS, &less)), []);
    client.produce("story", 1, &[b"one"]);
    assert_eq!(told(&client.ask(IDS, &request(session, 2, vec![]))), []);
    // An epoch that comes with it counts for it alone.
    let fenced = partition(0, 0).with_current_leader_epoch(99);
    let again = vec![by_id(id, vec![fenced])];
    let rows = told(&client.ask(IDS, &request(session, 3, again)));
    assert_eq!(rows, [(0, UNKNOWN_LEADER_EPOCH, -1, 0)]);
    let again = vec![by_id(id, vec![partition(0, 0)])];
    let rows = told(&client.ask(IDS, &request(session, 4, again)));
    assert_eq!(
        (rows.len(), rows[0].0, rows[0].1, rows[0].2),
        (1, 0, NONE, 1)
    );
    assert!(rows[0].3 > 0);
}

#[test]
fn a_session_without_partitions_ends() {
    let (_broker, mut client, _) = story();
    let one = vec![by_name("story", vec![partition(0, 0), partition(1, 0)])];
    let session = client.ask(NAMES, &request(0, 0, one)).session_id;
    let forget = |index| {
        ForgottenTopic::default()
            .with_topic(topic_name("story"))
            .with_partitions(vec![index])
    };
    let some = request(session, 1, vec![]).with_forgotten_topics_data(vec![forget(0)]);
    assert_eq!(client.ask(NAMES, &some).session_id, session);
    let none = request(session, 2, vec![]).with_forgotten_topics_data(vec![forget(1)]);
    let last = client.ask(NAMES, &none);
    assert_eq!((last.error_code, last.session_id), (NONE, 0));
    let after = client.ask(NAMES, &request(session, 3, vec![]));
    assert_eq!(after.error_code, FETCH_SESSION_ID_NOT_FOUND);

    let empty = client.ask(NAMES, &request(0, 0, vec![]));
    assert!(empty.session_id > 0);
}

#[test]
fn a_session_remembers_the_id_of_a_topic_that_was_made_anew() {
    // B101
    let (broker, mut client, id) = story();
    let one = || vec![by_id(id, vec![partition(0, 0)])];
    let session = client.ask(IDS, &request(0, 0, one())).session_id;
    let delete = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name("story")])
        .with_timeout_ms(10_000);
    assert_eq!(client.ask(5, &delete).responses[0].error_code, NONE);
    let mut epoch = 0;
    let mut await_code = |client: &mut Connection, code: i16| {
        // Kafka's broker learns of a change some answers later, ours before its first.
        for _ in 0..5000 {
            epoch += 1;
            let answer = client.ask(IDS, &request(session, epoch, vec![]));
            if told(&answer) == [(0, code, -1, 0)] {
                return;
            }
            assert!(broker.kind() == Kind::ApacheKafka, "{:?}", told(&answer));
        }
        panic!("{code} is not told");
    };
    await_code(&mut client, UNKNOWN_TOPIC_OR_PARTITION);
    client.create_topic("story", 1);
    await_code(&mut client, INCONSISTENT_TOPIC_ID);
    let sessionless = client.ask(IDS, &request(0, -1, one()));
    assert_eq!(told(&sessionless), [(0, UNKNOWN_TOPIC_ID, -1, 0)]);
}

#[test]
fn the_cache_is_bounded() {
    // B100: who comes too late is answered in full, without a session. Kafka divides them among eight parts of its cache.
    let slots = ("max.incremental.fetch.session.cache.slots", "16");
    let broker = Broker::start_with(&[slots]);
    let mut client = Connection::open(&broker);
    client.create_topic("story", 1);
    client.end_offset("story", 0);
    let ids: Vec<i32> = (0..20)
        .map(|_| {
            let one = vec![by_name("story", vec![partition(0, 0)])];
            let answer = client.ask(NAMES, &request(0, 0, one));
            assert_eq!(told(&answer), [(0, NONE, 0, 0)]);
            answer.session_id
        })
        .collect();
    assert_eq!(ids.iter().filter(|id| **id > 0).count(), 16, "{ids:?}");
}

#[test]
fn unknown_partitions_stand_last_and_do_not_end_the_wait() {
    let (_broker, mut client, id) = story();
    let stranger = Uuid::from_u128(7);
    let topics = || {
        vec![
            by_id(stranger, vec![partition(0, 0)]),
            by_id(id, vec![partition(9, 0), partition(0, 0)]),
        ]
    };
    let waiting = request(0, -1, topics()).with_max_wait_ms(700);
    let start = std::time::Instant::now();
    let answer = client.ask(IDS, &waiting);
    assert!(start.elapsed().as_millis() >= 700);
    let rows = [
        (0, NONE, 0, 0),
        (0, UNKNOWN_TOPIC_ID, -1, 0),
        (9, UNKNOWN_TOPIC_OR_PARTITION, -1, 0),
    ];
    assert_eq!(told(&answer), rows);

    // Nothing else to wait for.
    let only_unknown = request(0, -1, vec![by_id(stranger, vec![partition(0, 0)])]);
    let start = std::time::Instant::now();
    client.ask(IDS, &only_unknown.with_max_wait_ms(20_000));
    assert!(start.elapsed().as_secs() < 10);
}

#[test]
fn sizes_below_zero_fail_where_there_are_records() {
    let (_broker, mut client, id) = story();
    client.produce("story", 1, &[b"one"]);
    let small = |index, bytes| partition(index, 0).with_partition_max_bytes(bytes);
    let ask = |partitions| request(0, -1, vec![by_id(id, partitions)]);
    let zero = client.ask(IDS, &ask(vec![small(0, 0)]).with_max_bytes(0));
    assert!(told(&zero)[0].3 > 0);
    let negative = client.ask(IDS, &ask(vec![small(0, -1), small(1, -1)]));
    let rows = [(0, UNKNOWN_SERVER_ERROR, -1, 0), (1, NONE, 0, 0)];
    assert_eq!(told(&negative), rows);
    let twice = client.ask(IDS, &ask(vec![small(1, 10), small(0, 10), small(1, 10)]));
    assert_eq!(indexes(&twice), [1, 0]);
}

#[test]
fn a_level_of_isolation_that_nobody_knows_is_a_server_error() {
    let (_broker, mut client, id) = story();
    let one = vec![by_id(id, vec![partition(0, 0)])];
    let answer = client.ask(IDS, &request(0, -1, one).with_isolation_level(2));
    assert_eq!(answer.error_code, UNKNOWN_SERVER_ERROR);
    assert_eq!(answer.responses, []);
    let one = vec![by_name("story", vec![partition(0, 0)])];
    let answer = client.ask(NAMES, &request(0, -1, one).with_isolation_level(2));
    assert_eq!(answer.error_code, UNKNOWN_SERVER_ERROR);
    assert_eq!(told(&answer), [(0, UNKNOWN_SERVER_ERROR, -1, 0)]);
}

#[test]
fn a_fetch_that_waits_is_told_that_its_topic_is_deleted() {
    let (broker, mut client, id) = story();
    let mut other = Connection::open(&broker);
    let one = vec![by_id(id, vec![partition(0, 0)])];
    let waiting = request(0, -1, one).with_max_wait_ms(15_000);
    client.send(&frame(IDS, 1, &waiting)).unwrap();
    assert!(client.is_silent(std::time::Duration::from_millis(300)));
    let delete = DeleteTopicsRequest::default()
        .with_topic_names(vec![topic_name("story")])
        .with_timeout_ms(10_000);
    assert_eq!(other.ask(5, &delete).responses[0].error_code, NONE);
    let start = std::time::Instant::now();
    let mut bytes = client.receive().unwrap().expect("an answer");
    assert!(start.elapsed().as_secs() < 10);
    ResponseHeader::decode(&mut bytes, FetchResponse::header_version(IDS)).unwrap();
    let answer = FetchResponse::decode(&mut bytes, IDS).unwrap();
    assert_eq!(told(&answer), [(0, UNKNOWN_TOPIC_OR_PARTITION, -1, 0)]);
}
