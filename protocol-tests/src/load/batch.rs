//! Valid record batches of an exact size (magic 2; the layout is that of DefaultRecordBatch).

use std::time::{SystemTime, UNIX_EPOCH};

/// The bytes before the first record.
const HEADER: usize = 61;
/// Where the checksum stands, and what it covers from.
const CHECKSUM: usize = 17;
const CHECKED_FROM: usize = 21;
/// What a record has besides its value: length, attributes, two deltas, no key, the value's length,
/// no headers; the variable ones at their longest here.
const RECORD_HEAD: usize = 12;
/// The shortest value, with room for a time.
const VALUE_MIN: usize = 8;

/// A batch, and where the value of its first record stands.
#[derive(Clone, Debug)]
pub struct Batch {
    pub bytes: Vec<u8>,
    pub records: u32,
    first_value: usize,
}

impl Batch {
    /// A batch of exactly `size` bytes with so many records of about the same size.
    pub fn new(size: usize, records: u32) -> Self {
        let count = records as usize;
        let share = (size - HEADER) / count;
        assert!(
            share >= RECORD_HEAD + VALUE_MIN,
            "{records} records do not fit into {size} bytes"
        );
        let now = now_ms();
        let mut bytes = header(records, now);
        let mut first_value = 0;
        for delta in 0..records {
            let left = size - bytes.len();
            let last = delta == records - 1;
            let record = record(delta, if last { left } else { share });
            if delta == 0 {
                first_value = bytes.len() + record.value_at;
            }
            bytes.extend(record.bytes);
        }
        let length = u32::try_from(bytes.len() - 12).expect("a batch is small");
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        let mut batch = Self {
            bytes,
            records,
            first_value,
        };
        seal(&mut batch.bytes);
        batch
    }

    /// A batch of one record for each key, which is written in 16 digits, with values of this size.
    pub fn keyed(keys: &[u64], value: usize) -> Self {
        let records = u32::try_from(keys.len()).expect("a batch is small");
        let mut bytes = header(records, now_ms());
        for (delta, key) in (0..).zip(keys) {
            let mut body = vec![0]; // attributes
            put_varint(&mut body, 0); // timestamp delta
            put_varint(&mut body, delta);
            put_varint(&mut body, 16);
            body.extend(format!("{key:016}").bytes());
            put_varint(&mut body, as_i64(value));
            body.resize(body.len() + value, b'v');
            put_varint(&mut body, 0); // no headers
            put_varint(&mut bytes, as_i64(body.len()));
            bytes.extend(body);
        }
        let length = u32::try_from(bytes.len() - 12).expect("a batch is small");
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        seal(&mut bytes);
        Self {
            bytes,
            records,
            // Behind the first record's lengths, key and their fields: nobody stamps these.
            first_value: HEADER,
        }
    }

    /// Where the value of the first record begins.
    pub fn first_value(&self) -> usize {
        self.first_value
    }
}

fn header(records: u32, now_ms: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(0_i64.to_be_bytes()); // base offset
    bytes.extend(0_i32.to_be_bytes()); // length
    bytes.extend((-1_i32).to_be_bytes()); // leader epoch
    bytes.push(2); // magic
    bytes.extend(0_u32.to_be_bytes()); // checksum
    bytes.extend(0_i16.to_be_bytes()); // attributes
    bytes.extend((records - 1).to_be_bytes());
    bytes.extend(now_ms.to_be_bytes());
    bytes.extend(now_ms.to_be_bytes());
    bytes.extend((-1_i64).to_be_bytes()); // producer id
    bytes.extend((-1_i16).to_be_bytes()); // producer epoch
    bytes.extend((-1_i32).to_be_bytes()); // base sequence
    bytes.extend(records.to_be_bytes());
    bytes
}

struct Record {
    bytes: Vec<u8>,
    value_at: usize,
}

/// A record of exactly `size` bytes, its length included.
fn record(delta: u32, size: usize) -> Record {
    let body = |value: usize| {
        let mut body = vec![0]; // attributes
        put_varint(&mut body, 0); // timestamp delta
        put_varint(&mut body, i64::from(delta));
        put_varint(&mut body, -1); // no key
        put_varint(&mut body, as_i64(value));
        let value_at = body.len();
        body.extend((0..value).map(|at| b'a' + u8::try_from(at % 26).expect("below 26")));
        put_varint(&mut body, 0); // no headers
        (body, value_at)
    };
    // The lengths' own lengths depend on the value's: the longest that fits is searched for.
    for value in (0..size).rev() {
        let (body, value_at) = body(value);
        let mut bytes = Vec::with_capacity(size);
        put_varint(&mut bytes, as_i64(body.len()));
        if bytes.len() + body.len() <= size {
            let head = bytes.len();
            bytes.extend(body);
            // One byte short where a length grew by one: a longer way to write it does.
            if bytes.len() < size {
                bytes = widened(&bytes, head);
                return Record {
                    bytes,
                    value_at: head + 1 + value_at,
                };
            }
            return Record {
                bytes,
                value_at: head + value_at,
            };
        }
    }
    panic!("no record has {size} bytes");
}

/// The same record, its length written with one byte more than needed.
fn widened(record: &[u8], head: usize) -> Vec<u8> {
    let mut bytes = record[..head].to_vec();
    bytes[head - 1] |= 0x80;
    bytes.push(0);
    bytes.extend(&record[head..]);
    bytes
}

/// A zig-zag varint.
fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push(u8::try_from(rest & 0x7f).expect("seven bits") | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).expect("seven bits"));
}

/// Writes the checksum of a batch that begins at the front.
pub fn seal(batch: &mut [u8]) {
    let sum = checksum(&batch[CHECKED_FROM..]);
    batch[CHECKSUM..CHECKED_FROM].copy_from_slice(&sum.to_be_bytes());
}

/// Whether the checksum is right.
pub fn is_sound(batch: &[u8]) -> bool {
    batch.len() > HEADER
        && batch[CHECKSUM..CHECKED_FROM] == checksum(&batch[CHECKED_FROM..]).to_be_bytes()
}

fn checksum(bytes: &[u8]) -> u32 {
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes);
    u32::try_from(sum).expect("32 bits")
}

fn as_i64(len: usize) -> i64 {
    i64::try_from(len).expect("a length is small")
}

fn now_ms() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970");
    i64::try_from(now.as_millis()).expect("before the year 292 million")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kafka_protocol::records::RecordBatchDecoder;

    use super::*;

    #[test]
    fn a_batch_has_its_size_and_decodes() {
        for (size, records) in [
            (1024, 1),
            (16 << 10, 16),
            (256 << 10, 256),
            (1000, 7),
            (203, 1),
        ] {
            let batch = Batch::new(size, records);
            assert_eq!(batch.bytes.len(), size);
            assert!(is_sound(&batch.bytes));
            let mut bytes = Bytes::from(batch.bytes);
            let sets = RecordBatchDecoder::decode_all(&mut bytes).unwrap();
            assert_eq!(sets[0].records.len(), records as usize);
            let values = sets[0]
                .records
                .iter()
                .map(|one| one.value.as_ref().unwrap());
            assert!(values.clone().all(|value| value.starts_with(b"abcdefgh")));
        }
    }

    #[test]
    fn a_keyed_batch_has_its_keys() {
        let batch = Batch::keyed(&[7, 12_345], 100);
        assert!(is_sound(&batch.bytes));
        let mut bytes = Bytes::from(batch.bytes);
        let sets = RecordBatchDecoder::decode_all(&mut bytes).unwrap();
        let keys = sets[0].records.iter().map(|one| one.key.clone().unwrap());
        assert!(keys.eq(["0000000000000007", "0000000000012345"]));
    }

    #[test]
    fn the_first_value_is_where_it_is_said() {
        for size in 100..400 {
            let batch = Batch::new(size, 1);
            assert_eq!(batch.bytes.len(), size);
            assert_eq!(&batch.bytes[batch.first_value()..][..8], b"abcdefgh");
        }
    }

    #[test]
    fn a_changed_byte_is_unsound_until_it_is_sealed() {
        let mut batch = Batch::new(1024, 1);
        let at = batch.first_value();
        batch.bytes[at] ^= 1;
        assert!(!is_sound(&batch.bytes));
        seal(&mut batch.bytes);
        assert!(is_sound(&batch.bytes));
    }
}
