//! One batch under compaction: what of it stays, as bytes
//! (org.apache.kafka.common.record.MemoryRecords.filterTo).
//!
//! A batch of which everything stays is kept byte for byte. Otherwise it is made anew with the
//! records that stay, their offsets and headers as they were, and reaches as far as before, so that
//! its producer's sequence is not lost. A batch with tombstones, or with a marker that has nothing
//! left to mark, is given a time from which on these may go (KIP-534).

use crate::protocol::records::batch::{Batch, HEADER_LEN, Header, PREFIX_LEN};
use crate::protocol::records::build::BatchBuilder;
use crate::protocol::records::compress::Codec;
use crate::protocol::records::iter::{BadRecord, Record, Records};

/// What a stored batch may inflate to: what Kafka can hold.
pub(crate) const INFLATED_BYTES_MAX: u64 = i32::MAX as u64;

/// What is known of a batch before its records are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// All records go: they were aborted, or mark what is gone for long enough.
    pub(crate) discard: bool,
    /// It is a marker without anything left to mark.
    pub(crate) is_spent_marker: bool,
    /// Its header stays though no record does.
    pub(crate) keep_empty: bool,
    /// From when on tombstones and spent markers may go that are met for the first time now.
    pub(crate) new_horizon_ms: i64,
}

/// What stays of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing.
    None,
    /// All of it, as it is.
    Whole,
    /// This.
    Rewritten(Vec<u8>),
}

/// A batch after compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filtered {
    pub(crate) kept: Kept,
    /// How many records stay.
    pub(crate) records: u64,
}

/// Decides what of a batch stays; `stays` judges a record of an application.
pub(crate) fn filter(
    batch: &Batch<'_>,
    verdict: Verdict,
    mut stays: impl FnMut(i64, &Record<'_>) -> bool,
) -> Result<Filtered, BadRecord> {
    let header = &batch.header;
    if verdict.discard {
        return Ok(emptied(header, verdict));
    }
    let records = Records::of(batch, INFLATED_BYTES_MAX)?;
    let mut kept = Vec::new();
    let mut count = 0_i32;
    for record in records.iter() {
        let record = record?;
        count += 1;
        let offset = header.base_offset + i64::from(record.offset_delta);
        if header.is_control() || stays(offset, &record) {
            kept.push(record);
        }
    }
    if count != header.records_count {
        return Err(BadRecord::CutShort { index: count });
    }
    if kept.is_empty() {
        return Ok(emptied(header, verdict));
    }
    let has_tombstones = kept.iter().any(|record| record.value.is_none());
    let needs_horizon =
        header.delete_horizon_ms().is_none() && (has_tombstones || verdict.is_spent_marker);
    let records = kept.len() as u64;
    if records == u64::from(count.cast_unsigned()) && !needs_horizon {
        let kept = Kept::Whole;
        return Ok(Filtered { kept, records });
    }
    let horizon = match needs_horizon {
        true => Some(verdict.new_horizon_ms),
        false => header.delete_horizon_ms(),
    };
    let mut builder = BatchBuilder::like(header, horizon)?;
    for record in kept {
        let timestamp = header.timestamp_of(record.timestamp_delta);
        builder.append_record(record.offset_delta, timestamp, &record);
    }
    builder.reach_to(header.last_offset_delta);
    let kept = Kept::Rewritten(builder.build()?);
    Ok(Filtered { kept, records })
}

/// Without records a batch is gone, or only its header is left, which keeps its producer's sequence
/// and the log's last offset.
pub(super) fn emptied(header: &Header, verdict: Verdict) -> Filtered {
    let kept = match verdict.keep_empty {
        false => Kept::None,
        true => {
            let mut empty = *header;
            empty.set_codec(Codec::None);
            empty.set_delete_horizon_bit(false);
            empty.base_timestamp = -1;
            empty.records_count = 0;
            empty.batch_length = i32::try_from(HEADER_LEN - PREFIX_LEN).unwrap_or(0);
            empty.seal(&[]);
            Kept::Rewritten(empty.to_bytes().to_vec())
        }
    };
    Filtered { kept, records: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::records::compress::Compression;

    const PLAIN: Verdict = Verdict {
        discard: false,
        is_spent_marker: false,
        keep_empty: false,
        new_horizon_ms: 5000,
    };

    fn sample(codec: Codec, values: &[Option<&[u8]>]) -> Vec<u8> {
        let mut builder = BatchBuilder::new(70)
            .leader_epoch(3)
            .producer(9, 2, 11)
            .compression(Compression::from(codec));
        for (n, value) in (0_u8..).zip(values) {
            let headers: &[(&[u8], Option<&[u8]>)] =
                &[(b"h", Some(b"1")), (b"h", None), (b"\xff\xfe", Some(b"\0"))];
            builder.append(1000 + i64::from(n), Some(&[b'k', n]), *value, headers);
        }
        builder.build().unwrap()
    }

    fn kept(bytes: &[u8], verdict: Verdict, stays: &[i64]) -> Filtered {
        let batch = Batch::parse(bytes).unwrap();
        filter(&batch, verdict, |offset, _| stays.contains(&offset)).unwrap()
    }

    fn rewritten(filtered: Filtered) -> Vec<u8> {
        match filtered.kept {
            Kept::Rewritten(bytes) => bytes,
            Kept::None | Kept::Whole => panic!("not rewritten"),
        }
    }

    #[test]
    fn a_batch_of_which_all_stays_is_kept_as_it_is() {
        for codec in [Codec::None, Codec::Zstd] {
            let bytes = sample(codec, &[Some(b"a"), Some(b"b")]);
            let all = kept(&bytes, PLAIN, &[70, 71]);
            assert_eq!((all.kept, all.records), (Kept::Whole, 2));
        }
    }

    #[test]
    fn what_stays_keeps_offset_time_and_headers() {
        for codec in [
            Codec::None,
            Codec::Gzip,
            Codec::Snappy,
            Codec::Lz4,
            Codec::Zstd,
        ] {
            let bytes = sample(codec, &[Some(b"a"), Some(b"b"), Some(b"c"), Some(b"d")]);
            let some = rewritten(kept(&bytes, PLAIN, &[71, 72]));
            let batch = Batch::parse(&some).unwrap();
            batch.check_crc().unwrap();
            let header = batch.header;
            assert_eq!((header.base_offset, header.last_offset()), (70, 73));
            assert_eq!((header.base_sequence, header.last_sequence()), (11, 14));
            assert_eq!(header.partition_leader_epoch, 3);
            assert_eq!(header.codec().unwrap(), codec);
            assert_eq!((header.base_timestamp, header.max_timestamp), (1001, 1002));
            let records = Records::of(&batch, 1 << 20).unwrap();
            let records: Vec<_> = records.iter().map(Result::unwrap).collect();
            let offsets: Vec<_> = records.iter().map(|one| one.offset_delta).collect();
            assert_eq!(offsets, [1, 2]);
            assert_eq!(records[1].headers().nth(2).unwrap().0, b"\xff\xfe");
            assert_eq!(records[1].headers_count(), 3);
        }
    }

    #[test]
    fn a_tombstone_is_given_its_horizon_once() {
        let bytes = sample(Codec::None, &[Some(b"a"), None]);
        let first = rewritten(kept(&bytes, PLAIN, &[70, 71]));
        let header = Batch::parse(&first).unwrap().header;
        assert_eq!(header.delete_horizon_ms(), Some(5000));
        assert_eq!(header.max_timestamp, 1001);
        let later = Verdict {
            new_horizon_ms: 9000,
            ..PLAIN
        };
        assert_eq!(kept(&first, later, &[70, 71]).kept, Kept::Whole);
        let second = rewritten(kept(&first, later, &[70]));
        let batch = Batch::parse(&second).unwrap();
        assert_eq!(batch.header.delete_horizon_ms(), Some(5000));
        let records = Records::of(&batch, 0).unwrap();
        let record = records.iter().next().unwrap().unwrap();
        assert_eq!(batch.header.timestamp_of(record.timestamp_delta), 1000);
    }

    #[test]
    fn an_emptied_batch_leaves_its_header_where_that_matters() {
        let bytes = sample(Codec::Lz4, &[Some(b"a"), Some(b"b")]);
        assert_eq!(kept(&bytes, PLAIN, &[]).kept, Kept::None);
        let verdict = Verdict {
            keep_empty: true,
            discard: true,
            ..PLAIN
        };
        let empty = rewritten(kept(&bytes, verdict, &[70]));
        assert_eq!(empty.len(), 61);
        let batch = Batch::parse(&empty).unwrap();
        batch.check_crc().unwrap();
        let header = batch.header;
        assert_eq!((header.records_count, header.base_timestamp), (0, -1));
        assert_eq!((header.last_sequence(), header.last_offset()), (12, 71));
        assert_eq!(header.max_timestamp, 1001);
        assert_eq!(header.codec().unwrap(), Codec::None);
        // And again: nothing is left to lose.
        assert_eq!(rewritten(kept(&empty, verdict, &[])), empty);
    }
}
