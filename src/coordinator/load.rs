//! Reading an internal partition back into its machine.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::group::offsets::{Producer, ProducerId};
use super::group::records::GroupRecord;
use super::group::{Entry, GroupMachine};
use crate::machine::Machine;
use crate::os::clock;
use crate::protocol::records::batch::{BadBatch, Batch, Batches};
use crate::protocol::records::control::ControlRecord;
use crate::protocol::records::iter::{BadRecord, Records};
use crate::replica::fault::Fault;
use crate::replica::partition::Partition;

/// Why a partition could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotLoaded {
    #[error(transparent)]
    Replica(#[from] Fault),
    #[error("a batch at offset {offset} is damaged: {source}")]
    Batch { offset: i64, source: BadBatch },
    #[error("the records at offset {offset} cannot be read: {source}")]
    Records { offset: i64, source: BadRecord },
}

/// What was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    pub(super) records: u64,
    pub(super) since: Instant,
}

/// Reads everything from the log's start to its end into the machine, so many bytes at a time.
/// Waits for the disk.
pub(super) fn load(
    machine: &mut GroupMachine,
    partition: &Arc<Partition>,
    bytes_at_once: usize,
) -> Result<Loaded, NotLoaded> {
    let since = clock::now();
    let mut records = 0;
    let mut offset = partition.offsets().log_start;
    loop {
        let bytes = partition.read_batches(offset, bytes_at_once)?;
        let before = offset;
        for batch in Batches::new(&bytes) {
            // The last batch of a read may be cut, and is read again.
            let Ok(batch) = batch else { break };
            let at = batch.header.base_offset;
            let bad = |source| NotLoaded::Batch { offset: at, source };
            batch.check_crc().map_err(bad)?;
            records += replay(machine, &batch, partition)?;
            offset = batch.header.next_offset();
        }
        if offset == before {
            break;
        }
    }
    Ok(Loaded { records, since })
}

fn replay(
    machine: &mut GroupMachine,
    batch: &Batch<'_>,
    partition: &Partition,
) -> Result<u64, NotLoaded> {
    let header = &batch.header;
    let offset = header.base_offset;
    let limit = partition.reader().config().inflated_bytes_max;
    let bad = |source| NotLoaded::Records { offset, source };
    let records = Records::of(batch, limit).map_err(bad)?;
    let producer = Producer {
        id: ProducerId(header.producer_id),
        epoch: header.producer_epoch,
    };
    let mut count = 0;
    for record in records.iter() {
        let record = record.map_err(bad)?;
        let Some(key) = record.key else { continue };
        if header.is_control() {
            let control = record
                .value
                .and_then(|value| ControlRecord::read(key, value).ok());
            if let Some(ControlRecord::EndTransaction {
                committed,
                coordinator_epoch,
            }) = control
            {
                machine.replay(&Entry::End {
                    producer,
                    coordinator_epoch,
                    committed,
                });
            }
            continue;
        }
        count += 1;
        match GroupRecord::decode(key, record.value) {
            Ok(Some(record)) if header.is_transactional() => {
                machine.replay(&Entry::Pending(producer, record));
            }
            Ok(Some(record)) => machine.replay(&Entry::Record(record)),
            // Of a kind that a later release writes.
            Ok(None) => {}
            Err(error) => {
                let key = Bytes::copy_from_slice(key);
                tracing::warn!(partition = %partition.name, offset, ?key, %error, "a record of a group cannot be read and is left out");
            }
        }
    }
    Ok(count)
}
