//! Reports about what transactions leave in a log, by their ids in the project's list; what is expected
//! is what Apache Kafka 4.1.2 does. The batches are written into the log of a broker that was killed,
//! so that no coordinator is needed.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::records::{
    Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use protocol_tests::Broker;
use protocol_tests::wire::{Connection, fetch, list_offsets};

const UNCOMMITTED: i8 = 0;
const COMMITTED: i8 = 1;

/// A batch of one record.
#[derive(Clone, Copy)]
enum Written {
    /// Outside of any transaction.
    Plain,
    /// In this producer's transaction.
    Data(i64),
    /// The end of it.
    Abort(i64),
    Commit(i64),
}

fn record(offset: i64, written: Written) -> Record {
    let marker = |kind: u8| {
        let key = Bytes::copy_from_slice(&[0, 0, 0, kind]);
        (Some(key), Some(Bytes::from_static(&[0; 6])))
    };
    let value = Bytes::from(format!("value {offset}"));
    let (producer_id, (key, value)) = match written {
        Written::Plain => (-1, (None, Some(value))),
        Written::Data(id) => (id, (None, Some(value))),
        Written::Abort(id) => (id, marker(0)),
        Written::Commit(id) => (id, marker(1)),
    };
    let control = matches!(written, Written::Abort(_) | Written::Commit(_));
    Record {
        transactional: producer_id >= 0,
        control,
        delete_horizon: false,
        partition_leader_epoch: 0,
        producer_id,
        producer_epoch: if producer_id >= 0 { 0 } else { -1 },
        timestamp_type: TimestampType::Creation,
        offset,
        // Markers have no sequence. Of one producer the sequence is its offset here, which nobody
        // asks a log to prove when it is read back.
        sequence: if producer_id >= 0 && !control {
            i32::try_from(offset).unwrap()
        } else {
            -1
        },
        timestamp: now_ms(),
        key,
        value,
        headers: Default::default(),
    }
}

/// Of today, so that the segment is not yet old enough to be closed.
fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

fn batches(all: &[Written]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    let options = RecordEncodeOptions {
        version: 2,
        compression: Compression::None,
    };
    for (offset, written) in (0..).zip(all) {
        let record = record(offset, *written);
        RecordBatchEncoder::encode(&mut bytes, [&record], &options).expect("a batch encodes");
    }
    bytes.to_vec()
}

/// A broker whose topic `left` has these batches, each a record long.
fn broker_with(all: &[Written]) -> (Broker, Connection) {
    let mut broker = Broker::start();
    let mut connection = Connection::open(&broker);
    connection.create_topic("left", 1);
    connection.end_offset("left", 0);
    broker.kill();
    let path = broker.data().join("left-0/00000000000000000000.log");
    let mut log = OpenOptions::new().append(true).open(path).unwrap();
    log.write_all(&batches(all)).unwrap();
    drop(log);
    broker.restart();
    let mut connection = Connection::open(&broker);
    connection.end_offset("left", 0);
    (broker, connection)
}

fn request(offset: i64, isolation: i8, max_wait_ms: i32) -> FetchRequest {
    fetch("left", offset)
        .with_isolation_level(isolation)
        .with_max_wait_ms(max_wait_ms)
}

fn ask(connection: &mut Connection, offset: i64, isolation: i8, max_wait_ms: i32) -> PartitionData {
    let answer = connection.ask(12, &request(offset, isolation, max_wait_ms));
    let row = answer.responses[0].partitions[0].clone();
    assert_eq!((answer.error_code, row.error_code), (0, 0));
    row
}

/// The base offset of each batch.
fn offsets(row: &PartitionData) -> Vec<i64> {
    let mut rest = row.records.clone().unwrap_or_default();
    let mut offsets = Vec::new();
    while !rest.is_empty() {
        offsets.push(i64::from_be_bytes(rest[..8].try_into().unwrap()));
        let length = u32::from_be_bytes(rest[8..12].try_into().unwrap());
        rest = rest.split_off(12 + length as usize);
    }
    offsets
}

fn aborted(row: &PartitionData) -> Option<Vec<(i64, i64)>> {
    let rows = row.aborted_transactions.as_ref()?;
    let pairs = rows.iter().map(|row| (row.producer_id.0, row.first_offset));
    Some(pairs.collect())
}

#[test]
fn aborted_transactions_are_told_up_to_the_last_stable_offset() {
    use Written::{Abort, Commit, Data, Plain};
    // B102: three producers, interleaved; the last one leaves its transaction open.
    let (broker, mut connection) = broker_with(&[
        Data(1000),
        Data(1000),
        Data(1001),
        Data(1002),
        Abort(1000),
        Data(1001),
        Commit(1002),
        Data(1000),
        Abort(1001),
        Plain,
        Abort(1000),
        Data(1002),
    ]);
    for (from, wanted) in [
        (0, vec![(1000, 0), (1001, 2), (1000, 7)]),
        (5, vec![(1001, 2), (1000, 7)]),
        (9, vec![(1000, 7)]),
    ] {
        let row = ask(&mut connection, from, COMMITTED, 0);
        assert_eq!((row.high_watermark, row.last_stable_offset), (12, 11));
        assert_eq!(aborted(&row), Some(wanted), "from {from}");
        assert_eq!(offsets(&row), (from..11).collect::<Vec<_>>(), "from {from}");
        let row = ask(&mut connection, from, UNCOMMITTED, 0);
        assert_eq!(aborted(&row), None, "from {from}");
        assert_eq!(offsets(&row), (from..12).collect::<Vec<_>>(), "from {from}");
    }
    let committed = list_offsets("left", 0, -1).with_isolation_level(COMMITTED);
    let answer = connection.ask(7, &committed);
    assert_eq!(answer.topics[0].partitions[0].offset, 11);

    // B104: at the last stable offset there is nothing, and no error, for as long as asked; what comes
    // behind it wakes nobody (B102).
    let mut writer = Connection::open(&broker);
    let start = Instant::now();
    let row = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::park_timeout(Duration::from_millis(150));
            assert_eq!(writer.produce("left", -1, &[b"behind"]), 12);
        });
        ask(&mut connection, 11, COMMITTED, 700)
    });
    assert!(start.elapsed() >= Duration::from_millis(700));
    assert!(offsets(&row).is_empty());
    assert_eq!(row.last_stable_offset, 11);
    assert_eq!(aborted(&row), Some(Vec::new()));
    let row = ask(&mut connection, 11, UNCOMMITTED, 0);
    assert_eq!(offsets(&row), [11, 12]);
}

#[test]
fn aborted_transactions_stand_in_the_order_of_their_ends() {
    use Written::{Abort, Data};
    // B102: the report has them in the order of their beginnings, and Kafka does not.
    let (_broker, mut connection) =
        broker_with(&[Data(1001), Data(1000), Abort(1000), Abort(1001)]);
    let row = ask(&mut connection, 0, COMMITTED, 0);
    assert_eq!(aborted(&row), Some(vec![(1000, 1), (1001, 0)]));
    assert_eq!((row.high_watermark, row.last_stable_offset), (4, 4));
}

#[test]
fn a_lone_marker_is_a_batch_like_others() {
    // B110
    let (_broker, mut connection) = broker_with(&[Written::Abort(1003)]);
    for isolation in [UNCOMMITTED, COMMITTED] {
        let row = ask(&mut connection, 0, isolation, 0);
        assert_eq!((row.high_watermark, row.last_stable_offset), (1, 1));
        assert_eq!(offsets(&row), [0], "isolation {isolation}");
        let attributes = &row.records.as_ref().unwrap()[21..23];
        assert_eq!(attributes, [0, 0x30], "transactional, and a control batch");
        let start = Instant::now();
        let row = ask(&mut connection, 1, isolation, 200);
        assert!(start.elapsed() >= Duration::from_millis(200));
        assert!(offsets(&row).is_empty(), "isolation {isolation}");
    }
    assert_eq!(connection.produce("left", -1, &[b"next"]), 1);
}
