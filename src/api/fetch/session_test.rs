use super::*;
use crate::api::fetch::plan::{Ask, TopicKey};
use crate::os::clock;
use kafka_protocol::messages::fetch_request::ForgottenTopic;
use kafka_protocol::messages::{BrokerId, TopicName};
use kafka_protocol::protocol::StrBytes;

/// A cache, the time, and one client's talk with it.
struct Story {
    sessions: Sessions,
    image: Image,
    now: Instant,
}

fn story(slots: i32) -> Story {
    Story {
        sessions: Sessions::new(slots),
        image: Image::default(),
        now: clock::now(),
    }
}

fn asked(index: i32, fetch_offset: i64) -> Asked {
    Asked {
        key: Key {
            topic: TopicKey::Name("t".into()),
            index,
        },
        name: Some("t".into()),
        ask: Ask {
            fetch_offset,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
            max_bytes: 1000,
        },
    }
}

fn data(high_watermark: i64) -> PartitionData {
    PartitionData::default()
        .with_high_watermark(high_watermark)
        .with_log_start_offset(0)
        .with_preferred_read_replica(BrokerId(-1))
}

impl Story {
    fn sleeps(&mut self, secs: u64) {
        self.now += Duration::from_secs(secs);
    }

    /// A session of partitions 0 to `count`, all with high watermark 5.
    fn opens(&self, count: i32) -> i32 {
        self.opens_as(false, count)
    }

    fn opens_as(&self, is_follower: bool, count: i32) -> i32 {
        let told = data(5);
        let all: Vec<_> = (0..count).map(|index| (asked(index, 5), &told)).collect();
        self.sessions
            .create(is_follower, false, all.into_iter(), self.now)
    }

    fn asks(
        &self,
        id: i32,
        epoch: i32,
        changes: Vec<Asked>,
        forget: &[i32],
    ) -> Result<Opened, ErrorCode> {
        let forgotten = ForgottenTopic::default()
            .with_topic(TopicName(StrBytes::from_static_str("t")))
            .with_partitions(forget.to_vec());
        let request = FetchRequest::default()
            .with_session_id(id)
            .with_session_epoch(epoch)
            .with_forgotten_topics_data(vec![forgotten]);
        self.sessions
            .open(&request, false, changes, &self.image, self.now)
    }

    fn goes_on(&self, id: i32, epoch: i32) -> (Arc<Mutex<Session>>, Vec<i32>) {
        let opened = self.asks(id, epoch, Vec::new(), &[]).unwrap();
        let order = opened.asked.iter().map(|one| one.key.index).collect();
        match opened.turn {
            Turn::Continues { session, .. } => (session, order),
            Turn::Sessionless | Turn::Opens => panic!("the session goes on"),
        }
    }

    fn code(&self, id: i32, epoch: i32) -> Option<ErrorCode> {
        self.asks(id, epoch, Vec::new(), &[]).err()
    }
}

fn key(index: i32) -> Key {
    asked(index, 0).key
}

#[test]
fn an_epoch_is_right_once_and_a_wrong_one_changes_nothing() {
    let story = story(10);
    let id = story.opens(1);
    assert_eq!(story.code(id, 2), Some(ErrorCode::InvalidFetchSessionEpoch));
    let (session, _) = story.goes_on(id, 1);
    assert!(session.lock().answers(1));
    assert_eq!(story.code(id, 1), Some(ErrorCode::InvalidFetchSessionEpoch));
    story.goes_on(id, 2);
    assert!(!session.lock().answers(1));
    assert_eq!(
        story.code(id + 1, 1),
        Some(ErrorCode::FetchSessionIdNotFound)
    );
    assert_eq!(story.code(0, 1), Some(ErrorCode::FetchSessionIdNotFound));
    assert_eq!(story.code(0, -2), Some(ErrorCode::FetchSessionIdNotFound));
}

#[test]
fn epochs_begin_again_at_one() {
    assert_eq!(next_epoch(0), 1);
    assert_eq!(next_epoch(i32::MAX), 1);
    assert_eq!(next_epoch(-1), -1);
}

#[test]
fn names_and_ids_do_not_mix() {
    let story = story(10);
    let id = story.opens(1);
    let request = FetchRequest::default()
        .with_session_id(id)
        .with_session_epoch(1);
    let mixed = story
        .sessions
        .open(&request, true, Vec::new(), &story.image, story.now);
    assert_eq!(mixed.err(), Some(ErrorCode::FetchSessionTopicIdError));
    story.goes_on(id, 1);
}

#[test]
fn a_request_for_everything_closes_the_session_it_names() {
    let story = story(10);
    for epoch in [INITIAL_EPOCH, FINAL_EPOCH] {
        let id = story.opens(1);
        let opened = story.asks(id, epoch, vec![asked(0, 0)], &[]).unwrap();
        assert_eq!(matches!(opened.turn, Turn::Opens), epoch == INITIAL_EPOCH);
        assert_eq!(story.code(id, 1), Some(ErrorCode::FetchSessionIdNotFound));
    }
}

#[test]
fn partitions_are_added_changed_and_forgotten() {
    let story = story(10);
    let id = story.opens(3);
    let changes = vec![asked(1, 77), asked(9, 1)];
    let opened = story.asks(id, 1, changes, &[0, 8]).unwrap();
    let offsets = opened
        .asked
        .iter()
        .map(|one| (one.key.index, one.ask.fetch_offset));
    assert_eq!(offsets.collect::<Vec<_>>(), [(1, 77), (2, 5), (9, 1)]);
}

#[test]
fn a_session_without_partitions_is_closed() {
    let story = story(10);
    let id = story.opens(1);
    let opened = story.asks(id, 1, Vec::new(), &[0]).unwrap();
    assert!(matches!(opened.turn, Turn::Sessionless));
    assert_eq!(story.code(id, 2), Some(ErrorCode::FetchSessionIdNotFound));
    let empty = story.opens(0);
    assert_ne!(empty, NO_SESSION);
}

#[test]
fn only_what_changed_is_told() {
    let story = story(10);
    let id = story.opens(2);
    let (session, _) = story.goes_on(id, 1);
    let mut session = session.lock();
    assert!(!session.tells(&key(0), &data(5), 0));
    assert!(session.tells(&key(0), &data(6), 0));
    assert!(!session.tells(&key(0), &data(6), 0));
    assert!(session.tells(&key(0), &data(6), 10));
    assert!(session.tells(&key(0), &data(6).with_log_start_offset(3), 0));
    let mut diverging = data(6).with_log_start_offset(3);
    diverging.diverging_epoch.epoch = 2;
    assert!(session.tells(&key(0), &diverging, 0));
}

#[test]
fn after_an_error_a_partition_is_told_of_again() {
    let story = story(10);
    let id = story.opens(1);
    let (session, _) = story.goes_on(id, 1);
    let mut session = session.lock();
    let error = data(-1).with_error_code(6);
    assert!(session.tells(&key(0), &error, 0));
    assert!(session.tells(&key(0), &error, 0));
    assert!(session.tells(&key(0), &data(5), 0));
    assert!(!session.tells(&key(0), &data(5), 0));
}

#[test]
fn who_gave_records_goes_behind_the_others() {
    let story = story(10);
    let id = story.opens(3);
    let (session, order) = story.goes_on(id, 1);
    assert_eq!(order, [0, 1, 2]);
    session.lock().tells(&key(0), &data(5), 100);
    let (session, order) = story.goes_on(id, 2);
    assert_eq!(order, [1, 2, 0]);
    session.lock().tells(&key(2), &data(5), 100);
    assert_eq!(story.goes_on(id, 3).1, [1, 0, 2]);
}

#[test]
fn a_full_cache_gives_no_session_within_two_minutes() {
    let mut story = story(2);
    let (first, second) = (story.opens(1), story.opens(1));
    story.sleeps(120);
    assert_eq!(story.opens(100), NO_SESSION);
    story.goes_on(second, 1);
    story.sleeps(1);
    // The first has not been used for longer, the second has.
    assert_ne!(story.opens(1), NO_SESSION);
    assert_eq!(
        story.code(first, 1),
        Some(ErrorCode::FetchSessionIdNotFound)
    );
    story.goes_on(second, 2);
}

#[test]
fn an_aged_session_yields_to_a_larger_one_only() {
    let mut story = story(1);
    let id = story.opens(5);
    story.sleeps(60);
    story.goes_on(id, 1);
    story.sleeps(61);
    story.goes_on(id, 2);
    assert_eq!(story.opens(4), NO_SESSION);
    assert_ne!(story.opens(6), NO_SESSION);
    assert_eq!(story.code(id, 3), Some(ErrorCode::FetchSessionIdNotFound));
}

#[test]
fn a_follower_takes_a_consumers_slot_at_once() {
    let story = story(1);
    let id = story.opens(50);
    assert_ne!(story.opens_as(true, 1), NO_SESSION);
    assert_eq!(story.code(id, 1), Some(ErrorCode::FetchSessionIdNotFound));
    assert_eq!(story.opens(1000), NO_SESSION);
}

#[test]
fn no_slots_no_sessions() {
    assert_eq!(story(0).opens(1), NO_SESSION);
}
