//! Every rule that a Produce request's batch is held to, with the code and the words that Kafka
//! answers.

use super::*;
use crate::protocol::records::control::ControlRecord;

const NOW: i64 = 1_800_000_000_000;

/// The partition of all these tests.
fn partition() -> &'static TopicPartition {
    static AT: std::sync::OnceLock<TopicPartition> = std::sync::OnceLock::new();
    AT.get_or_init(|| TopicPartition::new("t", 0))
}

fn rules(config: &LogConfig) -> Rules<'_> {
    Rules {
        config,
        origin: Origin::Client,
        at: partition(),
        now_ms: NOW,
        log_start_offset: 5,
    }
}

fn builder() -> BatchBuilder {
    BatchBuilder::new(0)
}

fn one(timestamp: i64, key: Option<&[u8]>) -> Bytes {
    let mut builder = builder();
    builder.append(timestamp, key, Some(b"v"), &[]);
    Bytes::from(builder.build().unwrap())
}

/// Changes a header and makes the checksum true again.
fn with(bytes: &Bytes, change: impl FnOnce(&mut Header)) -> Bytes {
    let batch = Batch::parse(bytes).unwrap();
    let mut header = batch.header;
    change(&mut header);
    header.seal(batch.records_bytes());
    let mut out = header.to_bytes().to_vec();
    out.extend(batch.records_bytes());
    Bytes::from(out)
}

fn code(bytes: &Bytes, config: &LogConfig) -> (ErrorCode, Option<i64>) {
    let rejection = check(bytes, &rules(config)).unwrap_err();
    assert_eq!(rejection.refusal.message, None);
    assert!(rejection.record_errors.is_empty());
    (rejection.refusal.code, rejection.log_start_offset)
}

fn default() -> LogConfig {
    LogConfig::default()
}

#[test]
fn a_request_holds_exactly_one_batch_of_magic_2() {
    let good = one(NOW, Some(b"k"));
    assert!(single_batch(&good).is_ok());
    let refused = |bytes: &[u8]| single_batch(&Bytes::copy_from_slice(bytes)).unwrap_err();
    for bad in [&b""[..], &[1; 10], &good[..40], &good[..good.len() - 1]] {
        let rejection = refused(bad);
        assert_eq!(rejection.refusal, ErrorCode::InvalidRecord.into());
        assert_eq!(rejection.log_start_offset, None);
    }
    let two = [&good[..], &good[..]].concat();
    assert_eq!(refused(&two).refusal.code, ErrorCode::InvalidRecord);
    let trailing = [&good[..], &good[..50]].concat();
    assert!(single_batch(&Bytes::from(trailing)).is_ok());
    let mut magic = good.to_vec();
    magic[16] = 1;
    assert_eq!(refused(&magic).refusal, ErrorCode::InvalidRecord.into());
    magic[16] = 3;
    let words = "Invalid magic found in record: 3";
    assert_eq!(
        refused(&magic).refusal,
        Refusal::new(ErrorCode::CorruptMessage, words)
    );
    let mut small = good.to_vec();
    small[11] = 10;
    let words = "Record size 10 is less than the minimum record overhead (14)";
    assert_eq!(
        refused(&small).refusal,
        Refusal::new(ErrorCode::CorruptMessage, words)
    );
}

#[test]
fn a_bad_header_is_refused_by_the_log() {
    let good = one(NOW, Some(b"k"));
    let invalid = (ErrorCode::InvalidRecord, Some(5));
    let changes: [fn(&mut Header); 8] = [
        |header| header.base_offset = 5,
        |header| header.records_count = 0,
        |header| {
            header.records_count = -3;
            header.last_offset_delta = -4;
        },
        |header| header.records_count = 2,
        |header| {
            header.records_count = 2;
            header.last_offset_delta = 1;
        },
        |header| header.set_control(true),
        |header| header.producer_id = 4,
        |header| header.last_offset_delta = -1,
    ];
    for change in changes {
        let bad = with(&good, change);
        assert!(single_batch(&bad).is_ok(), "the log is asked");
        assert_eq!(code(&bad, &default()), invalid);
    }
}

#[test]
fn what_kafka_does_not_check_passes() {
    let good = one(NOW, Some(b"k"));
    let changes: [fn(&mut Header); 4] = [
        |header| header.producer_id = -7,
        |header| header.attributes |= 0x40,
        |header| header.max_timestamp = 3,
        |header| {
            header.producer_id = 4;
            header.base_sequence = 0;
        },
    ];
    for change in changes {
        let checked = check(&with(&good, change), &rules(&default())).unwrap();
        assert_eq!(checked.header.max_timestamp, NOW);
        let whole = [&checked.header.to_bytes()[..], &checked.records].concat();
        Batch::parse(&whole).unwrap().check_crc().unwrap();
    }
}

#[test]
fn sizes_and_sums_are_refused_before_the_log_is_known() {
    let good = one(NOW, Some(b"k"));
    let config = LogConfig {
        max_message_bytes: good.len() - 1,
        ..default()
    };
    assert_eq!(code(&good, &config), (ErrorCode::MessageTooLarge, None));
    let config = LogConfig {
        segment_bytes: good.len() as u64 - 1,
        ..default()
    };
    assert_eq!(code(&good, &config), (ErrorCode::RecordListTooLarge, None));
    let mut damaged = good.to_vec();
    damaged[64] ^= 4;
    assert_eq!(
        code(&Bytes::from(damaged), &default()),
        (ErrorCode::CorruptMessage, None)
    );
}

#[test]
fn a_compacted_topic_wants_keys_and_names_each_record_without() {
    let config = LogConfig {
        compact: true,
        ..default()
    };
    let mut builder = builder();
    for key in [Some(&b"k"[..]), None, Some(b""), None] {
        builder.append(NOW, key, None, &[]);
    }
    let bytes = Bytes::from(builder.build().unwrap());
    let rejection = check(&bytes, &rules(&config)).unwrap_err();
    let words = "Compacted topic cannot accept message without key in topic partition t-0";
    let error = |batch_index| RecordError {
        batch_index,
        message: words.into(),
    };
    assert_eq!(rejection.record_errors, [error(1), error(3)]);
    assert_eq!(rejection.log_start_offset, Some(5));
    let summary = format!(
        "One or more records have been rejected due to 2 record errors in total, and only showing \
         the first three errors at most: [RecordError(batchIndex=1, message='{words}'), \
         RecordError(batchIndex=3, message='{words}')]"
    );
    assert_eq!(
        rejection.refusal,
        Refusal::new(ErrorCode::InvalidRecord, summary)
    );
}

fn timestamp_error(bytes: &Bytes, config: &LogConfig) -> String {
    let rejection = check(bytes, &rules(config)).unwrap_err();
    let words = "One or more records have been rejected due to invalid timestamp";
    assert_eq!(
        rejection.refusal,
        Refusal::new(ErrorCode::InvalidTimestamp, words)
    );
    rejection.record_errors[0].message.clone()
}

#[test]
fn timestamps_lie_in_their_window() {
    let hour = 3_600_000;
    assert!(check(&one(NOW + hour, None), &rules(&default())).is_ok());
    assert_eq!(
        timestamp_error(&one(NOW + hour + 1, None), &default()),
        format!(
            "Timestamp {} of message with offset 0 is out of range. The timestamp should be \
             within [{}, {}]",
            NOW + hour + 1,
            NOW.wrapping_sub(i64::MAX),
            NOW + hour
        )
    );
    let config = LogConfig {
        timestamp_before_max_ms: 1000,
        ..default()
    };
    assert!(check(&one(NOW - 1000, None), &rules(&config)).is_ok());
    assert!(check(&one(-1, None), &rules(&config)).is_ok());
    timestamp_error(&one(NOW - 1001, None), &config);
    timestamp_error(&one(-2, None), &config);
    timestamp_error(&one(i64::MIN, None), &config);
    timestamp_error(&one(i64::MAX, None), &default());
}

#[test]
fn a_batch_that_claims_the_brokers_time() {
    let flagged = with(&one(NOW, Some(b"k")), |header| {
        header.set_timestamp_type(TimestampType::LogAppendTime);
    });
    let checked = check(&flagged, &rules(&default())).unwrap();
    assert_eq!(checked.header.timestamp_type(), TimestampType::CreateTime);
    assert_eq!(checked.log_append_time_ms, -1);
    let config = LogConfig {
        timestamp_type: TimestampType::LogAppendTime,
        ..default()
    };
    assert_eq!(
        timestamp_error(&flagged, &config),
        format!(
            "Invalid timestamp type in message DefaultRecord(offset=0, timestamp={NOW}, key=1 \
             bytes, value=1 bytes). Producer should not set timestamp type to LogAppendTime."
        )
    );
    let checked = check(&one(3, None), &rules(&config)).unwrap();
    assert_eq!(checked.header.timestamp_of(0), NOW);
    assert_eq!(checked.log_append_time_ms, NOW);
}

fn packed(codec: Codec, count: usize) -> Bytes {
    let mut builder = builder().compression(Compression::from(codec));
    for n in 0..count {
        builder.append(NOW - 1000 + n as i64, Some(b"k"), Some(&[7; 300]), &[]);
    }
    Bytes::from(builder.build().unwrap())
}

#[test]
fn records_that_do_not_read_are_refused() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let good = packed(codec, 4);
        let checked = check(&good, &rules(&default())).unwrap();
        assert_eq!(checked.records.as_ptr(), good[HEADER_LEN..].as_ptr());
        let batch = Batch::parse(&good).unwrap();
        let mut header = batch.header;
        let cut = &batch.records_bytes()[..batch.records_bytes().len() - 6];
        header.batch_length -= 6;
        header.seal(cut);
        let cut = Bytes::from([&header.to_bytes()[..], cut].concat());
        let unknown = (ErrorCode::UnknownServerError, Some(5));
        assert_eq!(code(&cut, &default()), unknown, "{codec:?}");
        let no_codec = with(&good, |header| header.attributes |= 7);
        assert_eq!(code(&no_codec, &default()), unknown);
    }
    let fewer = with(&packed(Codec::Lz4, 4), |header| {
        header.records_count = 3;
        header.last_offset_delta = 2;
    });
    assert_eq!(
        code(&fewer, &default()),
        (ErrorCode::InvalidRecord, Some(5))
    );
}

#[test]
fn a_compressed_batch_with_odd_offsets_is_numbered_anew() {
    let first = one(NOW, Some(b"k"));
    let batch = Batch::parse(&first).unwrap();
    let records = Records::of(&batch, 1000).unwrap();
    let record = records.iter().next().unwrap().unwrap();
    for (codec, deltas) in [(Codec::None, [0, 2]), (Codec::Gzip, [0, 1])] {
        let mut builder = builder().compression(Compression::from(codec));
        builder.append_record(0, NOW, &record);
        builder.append_record(2, NOW, &record);
        builder.reach_to(1);
        let bytes = Bytes::from(builder.build().unwrap());
        let checked = check(&bytes, &rules(&default())).unwrap();
        let whole = [&checked.header.to_bytes()[..], &checked.records].concat();
        let mut seen = Vec::new();
        let batch = Batch::parse(&whole).unwrap();
        walk(&batch, 1000, |shape| seen.push(shape.offset_delta)).unwrap();
        assert_eq!(seen, deltas);
        assert_eq!(batch.header.codec(), Ok(codec));
        assert_eq!(batch.header.last_offset_delta, 1);
    }
}

#[test]
fn a_bomb_is_refused() {
    let mut builder = builder().compression(Compression::from(Codec::Zstd));
    builder.append(NOW, None, Some(&vec![0; 2_000_000]), &[]);
    let bytes = Bytes::from(builder.build().unwrap());
    let config = LogConfig {
        inflated_bytes_max: 1_000_000,
        ..default()
    };
    assert_eq!(code(&bytes, &config), (ErrorCode::MessageTooLarge, Some(5)));
}

#[test]
fn another_codec_is_written_where_the_topic_wants_one() {
    let config = |codec| LogConfig {
        compression: Some(Compression::from(codec)),
        ..default()
    };
    let all = [
        Codec::None,
        Codec::Gzip,
        Codec::Snappy,
        Codec::Lz4,
        Codec::Zstd,
    ];
    for from in all {
        for to in all {
            let sent = with(&packed(from, 9), |header| {
                header.producer_id = 8;
                header.producer_epoch = 2;
                header.base_sequence = 40;
                header.set_transactional(true);
            });
            let checked = check(&sent, &rules(&config(to))).unwrap();
            let whole = [&checked.header.to_bytes()[..], &checked.records].concat();
            let batch = Batch::parse(&whole).unwrap();
            batch.check_crc().unwrap();
            walk(&batch, 1 << 20, |_| ()).unwrap();
            let header = batch.header;
            assert_eq!(header.codec(), Ok(to));
            assert_eq!((header.records_count, header.last_sequence()), (9, 48));
            assert_eq!(header.max_timestamp, NOW - 992);
            assert!(header.is_transactional());
        }
    }
    let tight = LogConfig {
        max_message_bytes: 400,
        ..config(Codec::None)
    };
    assert_eq!(
        code(&packed(Codec::Zstd, 9), &tight),
        (ErrorCode::MessageTooLarge, None)
    );
}

#[test]
fn a_coordinators_marker_passes_on_a_compacted_topic() {
    let record = ControlRecord::EndTransaction {
        committed: true,
        coordinator_epoch: 1,
    };
    let mut builder = builder().producer(1, 0, -1).transactional().control();
    builder.append(1, Some(&record.key()), Some(&record.value()), &[]);
    let bytes = Bytes::from(builder.build().unwrap());
    let config = LogConfig {
        compact: true,
        compression: Some(Compression::from(Codec::Gzip)),
        ..default()
    };
    let rules = Rules {
        origin: Origin::Coordinator,
        ..rules(&config)
    };
    let checked = check(&bytes, &rules).unwrap();
    assert_eq!(checked.header.codec(), Ok(Codec::None));
    assert!(checked.header.is_control());
}
