//! The bytes of a producer snapshot: what is known of a log's producers as of an offset, so that
//! opening need not read what lies below (ProducerStateManager.writeSnapshot).

use std::path::{Path, PathBuf};

use super::fault::{At, Fault};
use super::layout::{self, Kind};
use super::producers::Producers;
use crate::os::disk::{Disk, Open};
use crate::protocol::records::checksum;

/// A producer as it is stored: its last batch only, and its open transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredProducer {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    pub(crate) last_sequence: i32,
    pub(crate) last_offset: i64,
    pub(crate) offset_delta: i32,
    pub(crate) timestamp: i64,
    pub(crate) coordinator_epoch: i32,
    /// -1 when no transaction is open.
    pub(crate) txn_first_offset: i64,
}

const VERSION: i16 = 1;
/// Version and checksum; the checksum covers what follows.
const PREFIX: usize = 6;
const ENTRY: usize = 46;

/// Stores the producers as of `offset`, in the place of what was there; says where, for that is not
/// durable yet. There is never a snapshot of nothing.
pub(super) fn write(
    disk: Disk,
    folder: &Path,
    offset: i64,
    producers: &Producers,
) -> Result<Option<PathBuf>, Fault> {
    if offset == 0 {
        return Ok(None);
    }
    let bytes = encode(&producers.store());
    put(disk, folder, offset, &bytes).map(Some)
}

/// Stores these bytes as the snapshot at `offset`; says where.
pub(super) fn put(disk: Disk, folder: &Path, offset: i64, bytes: &[u8]) -> Result<PathBuf, Fault> {
    let path = layout::path(folder, offset, Kind::Snapshot);
    let file = disk.open(&path, Open::Write).at(&path)?;
    file.set_len(bytes.len() as u64).at(&path)?;
    file.write_all_at(bytes, 0).at(&path)?;
    Ok(path)
}

/// The bytes of a snapshot.
pub(crate) fn encode(producers: &[StoredProducer]) -> Vec<u8> {
    let count = i32::try_from(producers.len()).unwrap_or(i32::MAX);
    let mut body = count.to_be_bytes().to_vec();
    for one in producers {
        body.extend(one.producer_id.to_be_bytes());
        body.extend(one.epoch.to_be_bytes());
        body.extend(one.last_sequence.to_be_bytes());
        body.extend(one.last_offset.to_be_bytes());
        body.extend(one.offset_delta.to_be_bytes());
        body.extend(one.timestamp.to_be_bytes());
        body.extend(one.coordinator_epoch.to_be_bytes());
        body.extend(one.txn_first_offset.to_be_bytes());
    }
    let mut out = Vec::with_capacity(PREFIX + body.len());
    out.extend(VERSION.to_be_bytes());
    out.extend(checksum::crc32c(&body).to_be_bytes());
    out.extend(body);
    out
}

/// Reads a snapshot; `None` when it is not whole or of another version.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<StoredProducer>> {
    let (version, rest) = bytes.split_first_chunk()?;
    let (crc, body) = rest.split_first_chunk()?;
    let intact = checksum::crc32c(body) == u32::from_be_bytes(*crc);
    if i16::from_be_bytes(*version) != VERSION || !intact {
        return None;
    }
    let (count, entries) = body.split_first_chunk()?;
    let (entries, left) = entries.as_chunks::<ENTRY>();
    let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
    if entries.len() != count || !left.is_empty() {
        return None;
    }
    entries.iter().map(|entry| decode_entry(entry)).collect()
}

fn decode_entry(mut rest: &[u8]) -> Option<StoredProducer> {
    Some(StoredProducer {
        producer_id: i64::from_be_bytes(take(&mut rest)?),
        epoch: i16::from_be_bytes(take(&mut rest)?),
        last_sequence: i32::from_be_bytes(take(&mut rest)?),
        last_offset: i64::from_be_bytes(take(&mut rest)?),
        offset_delta: i32::from_be_bytes(take(&mut rest)?),
        timestamp: i64::from_be_bytes(take(&mut rest)?),
        coordinator_epoch: i32::from_be_bytes(take(&mut rest)?),
        txn_first_offset: i64::from_be_bytes(take(&mut rest)?),
    })
}

fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_without_producers_has_ten_bytes() {
        let bytes = encode(&[]);
        assert_eq!(bytes.len(), 10);
        assert_eq!(decode(&bytes), Some(vec![]));
    }

    #[test]
    fn a_snapshot_survives_the_round_trip_and_damage_is_seen() {
        let one = StoredProducer {
            producer_id: 7,
            epoch: 1,
            last_sequence: 9,
            last_offset: 100,
            offset_delta: 4,
            timestamp: 1234,
            coordinator_epoch: -1,
            txn_first_offset: 96,
        };
        let bytes = encode(&[one, one]);
        assert_eq!(decode(&bytes), Some(vec![one, one]));
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x40;
            assert_eq!(decode(&bad), None, "{at}");
            assert_eq!(decode(&bytes[..at]), None, "{at}");
        }
    }
}
