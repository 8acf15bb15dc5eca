//! Reading an internal partition back into its machine.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::group::offsets::{Producer, ProducerId};
use super::group::records::GroupRecord;
use super::group::{Entry, GroupMachine};
use crate::machine::Machine;
use crate::os::clock;
use crate::protocol::records::batch::{BadBatch, Batch};
use crate::protocol::records::control::ControlRecord;
use crate::protocol::records::iter::{BadRecord, Records};
use crate::protocol::records::legacy::LegacyBatch;
use crate::protocol::records::stored::{Stored, StoredBatches};
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
        for batch in StoredBatches::new(&bytes) {
            let bad = |source| NotLoaded::Batch { offset, source };
            let batch = match batch {
                Ok(batch) => batch,
                // The last batch of a read may be cut, and is read again. The first comes whole.
                Err(_) if offset > before => break,
                Err(source) => return Err(bad(source)),
            };
            batch.check_crc().map_err(bad)?;
            records += match &batch {
                Stored::Current(batch) => replay(machine, batch, partition)?,
                Stored::Legacy(batch) => replay_legacy(machine, batch, partition)?,
            };
            offset = batch.last_offset() + 1;
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
        let producer = header.is_transactional().then_some(producer);
        take(machine, (key, record.value), producer, (partition, offset));
    }
    Ok(count)
}

/// The same of a batch that an old Kafka has left.
fn replay_legacy(
    machine: &mut GroupMachine,
    batch: &LegacyBatch<'_>,
    partition: &Partition,
) -> Result<u64, NotLoaded> {
    let offset = batch.last_offset();
    let limit = partition.reader().config().inflated_bytes_max;
    let bad = |source| NotLoaded::Records { offset, source };
    let messages = batch.messages(limit).map_err(bad)?;
    let mut count = 0;
    for message in messages.iter() {
        let message = message.map_err(bad)?;
        let key = message.key().map_err(|source| bad(source.into()))?;
        let value = message.value().map_err(|source| bad(source.into()))?;
        let Some(key) = key else { continue };
        count += 1;
        take(machine, (key, value), None, (partition, offset));
    }
    Ok(count)
}

/// Takes over a record; one of a producer is pending until its transaction ends.
fn take(
    machine: &mut GroupMachine,
    (key, value): (&[u8], Option<&[u8]>),
    producer: Option<Producer>,
    (partition, offset): (&Partition, i64),
) {
    match GroupRecord::decode(key, value) {
        Ok(Some(record)) => match producer {
            Some(producer) => machine.replay(&Entry::Pending(producer, record)),
            None => machine.replay(&Entry::Record(record)),
        },
        // Of a kind that a later release writes.
        Ok(None) => {}
        Err(error) => {
            let key = Bytes::copy_from_slice(key);
            tracing::warn!(partition = %partition.name, offset, ?key, %error, "a record of a group cannot be read and is left out");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::TopicPartition;
    use crate::coordinator::group::story::empty_machine;
    use crate::log::config::LogConfig;
    use crate::log::producers::Origin;
    use crate::log::testkit::batch;
    use crate::os::disk::{Disk, Open, TempDir};
    use crate::replica::testkit::leader;

    #[tokio::test]
    async fn a_damaged_batch_does_not_end_the_reading_in_silence() {
        let dir = TempDir::new();
        let partition = leader(&dir, LogConfig::default());
        let sent = batch(1, 10);
        for _ in 0..3 {
            let done = partition
                .append(sent.clone(), false, Origin::Coordinator, true)
                .await;
            done.unwrap();
        }
        let mut machine = empty_machine();
        let read = |machine: &mut GroupMachine, bytes| load(machine, &partition, bytes);
        for at_once in [1, sent.len() + 70, 1 << 20] {
            assert_eq!(read(&mut machine, at_once).unwrap().records, 3, "{at_once}");
        }
        let of = TopicPartition::new("t", 0);
        let path = dir.path().join(of.to_string());
        let file = Disk.open(&path.join(format!("{:020}.log", 0)), Open::Write);
        let magic_of_the_second = sent.len() as u64 + 16;
        file.unwrap()
            .write_all_at(&[9], magic_of_the_second)
            .unwrap();
        for at_once in [1, sent.len() + 70, 1 << 20] {
            let found = read(&mut machine, at_once);
            assert!(
                matches!(found, Err(NotLoaded::Batch { offset: 1, .. })),
                "{at_once}: {found:?}"
            );
        }
    }
}
