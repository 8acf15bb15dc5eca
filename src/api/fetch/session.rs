//! Fetch sessions (KIP-227): a client names its partitions once, and from then on only what
//! changes goes over the wire, in both directions.
//!
//! A session is known by an id, counts its requests by an epoch and remembers the partitions in
//! the order in which they are read. The cache is bounded by
//! `max.incremental.fetch.session.cache.slots`; nothing runs for it, a session goes when a newer
//! one needs its slot (org.apache.kafka.server.FetchSession, FetchManager).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_response::PartitionData;
use parking_lot::Mutex;

use super::plan::{self, Asked, Key};
use crate::metadata::image::Image;
use crate::os::random;
use crate::protocol::error::ErrorCode;

/// How long a session is safe: an unused one may be evicted after it, a used one by a larger one.
const EVICTION: Duration = Duration::from_secs(120);

/// The id of no session.
pub(super) const NO_SESSION: i32 = 0;
/// The epoch of a request that opens a session.
const INITIAL_EPOCH: i32 = 0;
/// The epoch of a request that ends a session, or wants none.
const FINAL_EPOCH: i32 = -1;

/// The sessions of a broker.
pub(crate) struct Sessions {
    slots: usize,
    cache: Mutex<HashMap<i32, Slot>>,
}

/// A session's slot in the cache.
struct Slot {
    session: Arc<Mutex<Session>>,
    is_follower: bool,
    created: Instant,
    last_used: Instant,
    /// Partitions, as of the last use.
    size: usize,
}

impl Slot {
    /// Whether a session that is worth more may take this one's slot. Followers' are safe from
    /// consumers for a while, and a consumer's is not safe from followers.
    fn yields_to(&self, is_follower: bool) -> bool {
        let aged = self.last_used.duration_since(self.created) > EVICTION;
        aged || (is_follower && !self.is_follower)
    }

    fn worth(&self, id: i32) -> (bool, usize, i32) {
        (self.is_follower, self.size, id)
    }
}

/// One client's partitions.
#[derive(Debug)]
pub(super) struct Session {
    id: i32,
    /// The epoch that the next request must have.
    epoch: i32,
    by_id: bool,
    places: HashMap<Key, u64>,
    /// In the order of reading; what gave records goes to the end.
    partitions: BTreeMap<u64, Remembered>,
    next_place: u64,
}

/// A partition of a session, and what its client was last told of it.
#[derive(Debug)]
struct Remembered {
    asked: Asked,
    high_watermark: i64,
    log_start_offset: i64,
}

/// What a fetch reads, and what its answer means to a session.
pub(super) struct Opened {
    pub(super) asked: Vec<Asked>,
    pub(super) turn: Turn,
}

/// What a fetch's answer means to a session.
pub(super) enum Turn {
    /// There is none.
    Sessionless,
    /// One is made with what the answer tells.
    Opens,
    /// It is the answer to the request of `epoch`.
    Continues {
        session: Arc<Mutex<Session>>,
        epoch: i32,
    },
}

impl Turn {
    /// Whether the next request counts on this one's answer.
    pub(super) fn is_in_order(&self) -> bool {
        matches!(self, Self::Continues { .. })
    }
}

impl Sessions {
    /// A cache of that many sessions.
    pub(crate) fn new(slots: i32) -> Self {
        Self {
            slots: usize::try_from(slots).unwrap_or(0),
            cache: Mutex::default(),
        }
    }

    /// What a request asks for, together with what its session remembers.
    pub(super) fn open(
        &self,
        request: &FetchRequest,
        by_id: bool,
        asked: Vec<Asked>,
        image: &Image,
        now: Instant,
    ) -> Result<Opened, ErrorCode> {
        let (id, epoch) = (request.session_id, request.session_epoch);
        if epoch == INITIAL_EPOCH || epoch == FINAL_EPOCH {
            // A request for everything closes the session that it names.
            self.cache.lock().remove(&id);
            let turn = if epoch == FINAL_EPOCH {
                Turn::Sessionless
            } else {
                Turn::Opens
            };
            return Ok(Opened { asked, turn });
        }
        let session = self.find(id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
        let mut open = session.lock();
        open.check(epoch, by_id)?;
        open.update(&asked, plan::forgotten(request, by_id));
        if open.partitions.is_empty() {
            self.cache.lock().remove(&id);
            let turn = Turn::Sessionless;
            return Ok(Opened { asked, turn });
        }
        open.epoch = next_epoch(epoch);
        let asked = open.asked(image);
        self.touch(id, asked.len(), now);
        drop(open);
        let turn = Turn::Continues { session, epoch };
        Ok(Opened { asked, turn })
    }

    fn find(&self, id: i32) -> Option<Arc<Mutex<Session>>> {
        self.cache.lock().get(&id).map(|slot| slot.session.clone())
    }

    fn touch(&self, id: i32, size: usize, now: Instant) {
        if let Some(slot) = self.cache.lock().get_mut(&id) {
            slot.last_used = now;
            slot.size = size;
        }
    }

    /// Makes a session of the partitions and what the client is told of them; its id, or
    /// [`NO_SESSION`] where there is no slot for it.
    pub(super) fn create<'a>(
        &self,
        is_follower: bool,
        by_id: bool,
        told: impl ExactSizeIterator<Item = (Asked, &'a PartitionData)>,
        now: Instant,
    ) -> i32 {
        let mut cache = self.cache.lock();
        let size = told.len();
        if cache.len() >= self.slots && !evict(&mut cache, is_follower, size, now) {
            return NO_SESSION;
        }
        let id = loop {
            let id = i32::try_from(random::below(i32::MAX.unsigned_abs().into())).unwrap_or(0);
            if id != NO_SESSION && !cache.contains_key(&id) {
                break id;
            }
        };
        let mut session = Session {
            id,
            epoch: next_epoch(INITIAL_EPOCH),
            by_id,
            places: HashMap::new(),
            partitions: BTreeMap::new(),
            next_place: 0,
        };
        for (asked, data) in told {
            session.push(Remembered {
                asked,
                high_watermark: told_high_watermark(data),
                log_start_offset: data.log_start_offset,
            });
        }
        let slot = Slot {
            session: Arc::new(Mutex::new(session)),
            is_follower,
            created: now,
            last_used: now,
            size,
        };
        cache.insert(id, slot);
        id
    }
}

/// Makes room for a session of `size` partitions, if it may.
fn evict(cache: &mut HashMap<i32, Slot>, is_follower: bool, size: usize, now: Instant) -> bool {
    let stalest = cache.iter().min_by_key(|(_, slot)| slot.last_used);
    let stale = stalest.filter(|(_, slot)| now.duration_since(slot.last_used) > EVICTION);
    let victim = stale.map(|(id, _)| *id).or_else(|| {
        let yielding = cache.iter().filter(|(_, slot)| slot.yields_to(is_follower));
        let (id, slot) = yielding.min_by_key(|(id, slot)| slot.worth(**id))?;
        ((is_follower, size, 0) >= slot.worth(*id)).then_some(*id)
    });
    victim.is_some_and(|id| cache.remove(&id).is_some())
}

impl Session {
    /// Its id.
    pub(super) fn id(&self) -> i32 {
        self.id
    }

    fn check(&self, epoch: i32, by_id: bool) -> Result<(), ErrorCode> {
        if self.epoch != epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if self.by_id != by_id {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        Ok(())
    }

    /// Whether the answer to the request of `epoch` is still the next one.
    pub(super) fn answers(&self, epoch: i32) -> bool {
        self.epoch == next_epoch(epoch)
    }

    fn update(&mut self, asked: &[Asked], forgotten: impl Iterator<Item = Key>) {
        for one in asked {
            let place = self.places.get(&one.key);
            match place.and_then(|place| self.partitions.get_mut(place)) {
                Some(there) => there.asked.ask = one.ask,
                None => self.push(Remembered {
                    asked: one.clone(),
                    high_watermark: -1,
                    log_start_offset: -1,
                }),
            }
        }
        for key in forgotten {
            if let Some(place) = self.places.remove(&key) {
                self.partitions.remove(&place);
            }
        }
    }

    fn push(&mut self, one: Remembered) {
        let place = self.next_place;
        self.next_place += 1;
        self.places.insert(one.asked.key.clone(), place);
        self.partitions.insert(place, one);
    }

    fn asked(&mut self, image: &Image) -> Vec<Asked> {
        let all = self.partitions.values_mut().map(|one| {
            one.asked.resolve(image);
            one.asked.clone()
        });
        all.collect()
    }

    /// Whether the client must be told of this; notes what it is told, and moves a partition that
    /// gives `record_bytes` behind the others, so that each has its turn.
    pub(super) fn tells(&mut self, key: &Key, data: &PartitionData, record_bytes: usize) -> bool {
        let Some(place) = self.places.get(key).copied() else {
            return true;
        };
        let Some(one) = self.partitions.get_mut(&place) else {
            return true;
        };
        let moved = one.high_watermark != data.high_watermark
            || one.log_start_offset != data.log_start_offset;
        let told = moved
            || record_bytes > 0
            || data.error_code != 0
            || data.preferred_read_replica.0 >= 0
            || data.diverging_epoch.epoch >= 0;
        one.high_watermark = told_high_watermark(data);
        one.log_start_offset = data.log_start_offset;
        if record_bytes > 0
            && let Some(one) = self.partitions.remove(&place)
        {
            self.push(one);
        }
        told
    }
}

/// After an error the partition is told of again, whatever its offsets are then.
fn told_high_watermark(data: &PartitionData) -> i64 {
    if data.error_code == 0 {
        data.high_watermark
    } else {
        -1
    }
}

/// Epochs count from 1 to the largest number and begin again at 1.
fn next_epoch(epoch: i32) -> i32 {
    match epoch {
        i32::MIN..0 => FINAL_EPOCH,
        i32::MAX => 1,
        epoch => epoch + 1,
    }
}

#[cfg(test)]
#[path = "session_test.rs"]
mod tests;
