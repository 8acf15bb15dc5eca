//! From committed batches to the image that everybody reads.
//!
//! In a node that votes the batches come from its own log, as openraft commits them; nothing
//! uncommitted ever reaches the image. Readers hold an `Arc<Image>`; one follower learns what
//! changed, in one piece however much was committed since it last looked.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::metadata::changes::Changes;
use crate::metadata::image::Image;
use crate::metadata::record::Record;
use crate::protocol::records::batch::Batch;
use crate::protocol::records::iter::{BadRecord, Records};

use super::control::INFLATE_MAX;
use super::fault::Fault;
use super::snapshot::{self, SnapshotId};

/// The image after a committed batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    /// The state of the cluster.
    pub(crate) image: Arc<Image>,
    /// The offset after the last record in it.
    pub(crate) end_offset: i64,
    /// The leader epoch of that record; 0 before the first.
    pub(crate) epoch: i32,
}

/// A new image and what differs from the one before.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    /// The new image.
    pub(crate) published: Published,
    /// Everything that records touched since the last update.
    pub(crate) changes: Changes,
}

/// Learns of every change, in order and without gaps.
#[derive(Debug)]
pub(crate) struct Follower {
    seen: watch::Receiver<Published>,
    changes: Arc<Mutex<Changes>>,
}

impl Follower {
    /// Waits for the next image; `None` once the quorum has stopped.
    pub(crate) async fn next(&mut self) -> Option<Update> {
        self.seen.changed().await.ok()?;
        // Both change under this lock, so that they belong together.
        let mut changes = self.changes.lock();
        Some(Update {
            published: self.seen.borrow_and_update().clone(),
            changes: std::mem::take(&mut *changes),
        })
    }
}

/// Where the newest image hangs.
#[derive(Debug)]
pub(super) struct Board {
    published: watch::Sender<Published>,
    changes: Arc<Mutex<Changes>>,
}

impl Board {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            published: watch::Sender::new(Published::default()),
            changes: Arc::default(),
        })
    }

    pub(super) fn watch(&self) -> watch::Receiver<Published> {
        self.published.subscribe()
    }

    /// What stands in the log before this follower counts as changed.
    pub(super) fn follow(&self) -> Follower {
        let mut seen = self.published.subscribe();
        seen.mark_changed();
        Follower {
            seen,
            changes: Arc::clone(&self.changes),
        }
    }
}

/// Replays batches, in order, and publishes.
#[derive(Debug)]
pub(super) struct Observer {
    image: Image,
    position: Position,
    board: Arc<Board>,
}

/// How far the image reaches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    pub(super) end_offset: i64,
    pub(super) epoch: i32,
    pub(super) last_timestamp: i64,
}

impl Position {
    /// The name of a snapshot of this image.
    pub(super) fn snapshot_id(self) -> SnapshotId {
        SnapshotId {
            end_offset: self.end_offset,
            epoch: self.epoch,
        }
    }
}

impl Observer {
    /// Begins with the empty image.
    pub(super) fn new(board: Arc<Board>) -> Self {
        Self {
            image: Image::default(),
            position: Position::default(),
            board,
        }
    }

    /// Replaces the image by a snapshot's and publishes it. What the old image had and the new
    /// one lacks is not told as changed: followers compare the images when the offset jumps.
    pub(super) fn load(
        &mut self,
        id: SnapshotId,
        content: &snapshot::Content,
    ) -> Result<(), Fault> {
        let mut changes = self.board.changes.lock();
        self.image = Image::default();
        for (offset, record) in content.records.iter().enumerate() {
            let followed = self.image.follow(record, &mut changes);
            followed.map_err(|source| Fault::Record {
                offset: i64::try_from(offset).unwrap_or(i64::MAX),
                source: source.into(),
            })?;
        }
        self.position = Position {
            end_offset: id.end_offset,
            epoch: id.epoch,
            last_timestamp: content.last_timestamp,
        };
        self.publish();
        Ok(())
    }

    /// Takes in committed batches and publishes what they add up to.
    pub(super) fn replay<'a>(
        &mut self,
        batches: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), Fault> {
        let board = Arc::clone(&self.board);
        let mut changes = board.changes.lock();
        for bytes in batches {
            self.replay_one(bytes, &mut changes)?;
        }
        self.publish();
        Ok(())
    }

    fn replay_one(&mut self, bytes: &[u8], changes: &mut Changes) -> Result<(), Fault> {
        let end = self.position.end_offset;
        let unreadable = |source: BadRecord| Fault::Record {
            offset: end,
            source: source.into(),
        };
        let batch = Batch::parse(bytes).map_err(|bad| unreadable(bad.into()))?;
        // A snapshot may end inside what is replayed after it only if the log was not ours.
        if batch.header.next_offset() <= end {
            return Ok(());
        }
        if !batch.header.is_control() {
            let records = Records::of(&batch, INFLATE_MAX).map_err(unreadable)?;
            for record in records.iter() {
                let record = record.map_err(unreadable)?;
                let offset = batch.header.base_offset + i64::from(record.offset_delta);
                self.take_in(record.value.unwrap_or_default(), offset, changes)?;
            }
        }
        self.position = Position {
            end_offset: batch.header.next_offset(),
            epoch: batch.header.partition_leader_epoch,
            last_timestamp: batch.header.max_timestamp,
        };
        Ok(())
    }

    fn take_in(&mut self, value: &[u8], offset: i64, changes: &mut Changes) -> Result<(), Fault> {
        let unreadable = |source| Fault::Record { offset, source };
        let record = Record::decode(value).map_err(|bad| unreadable(bad.into()))?;
        let followed = self.image.follow(&record, changes);
        followed.map_err(|contradiction| unreadable(contradiction.into()))
    }

    fn publish(&self) {
        self.board.published.send_replace(Published {
            image: Arc::new(self.image.clone()),
            end_offset: self.position.end_offset,
            epoch: self.position.epoch,
        });
    }

    /// How far the image reaches.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// The image for a snapshot; `None` within a transaction of records, which a snapshot cannot
    /// hold.
    pub(super) fn image(&self) -> Option<Image> {
        (!self.image.in_transaction()).then(|| self.image.clone())
    }
}
