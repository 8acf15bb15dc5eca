//! Stories of committed offsets: who may commit, what is told, what is forgotten and when.

use std::time::Duration;

use super::ask::{FetchOffsets, ForgetTopics, WantedTopic};
use super::records::{GroupRecord, NO_EXPIRY};
use super::story::{KAFKAS, TOPIC, Told, Wants, arc, secs, shard};
use crate::base::{LeaderEpoch, TopicId, Uuid};
use crate::protocol::error::ErrorCode::{
    FencedInstanceId, GroupIdNotFound, GroupSubscribedToTopic, IllegalGeneration, NonEmptyGroup,
    OffsetMetadataTooLarge, RebalanceInProgress, UnknownMemberId, UnstableOffsetCommit,
};

fn group() -> Told {
    shard(KAFKAS)
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A subscription to the topic `t` as consumers write it.
const SUBSCRIBED_TO_T: &str = "\0\0\0\0\0\u{1}\0\u{1}t\0\0\0\0";
/// And to `u`.
const SUBSCRIBED_TO_U: &str = "\0\0\0\0\0\u{1}\0\u{1}u\0\0\0\0";

// B119
#[test]
fn offsets_are_kept_without_a_group() {
    let mut it = group();
    assert_eq!(it.offset(), -1);
    assert_eq!(it.commits("whoever", -1, 7), Ok(Ok(())));
    assert_eq!(it.offset(), 7);
    assert_eq!(it.listed(), ["g  Empty"]);
    assert_eq!(it.commits("", -1, 9), Ok(Ok(())));
    let told = it.fetched(false).unwrap();
    assert_eq!(
        (told.offset, told.leader_epoch, &*told.metadata),
        (9, 3, "m")
    );
    it.reloads();
    assert_eq!(it.offset(), 9);
}

// B119
#[test]
fn a_generation_of_a_group_that_nobody_knows_is_refused() {
    let mut it = group();
    let mut ask = it.commit("m", 5, 1, None);
    assert_eq!(it.asks(ask.clone()), Err(GroupIdNotFound));
    ask.knows_epochs = false;
    assert_eq!(it.asks(ask), Err(IllegalGeneration));
    assert!(it.listed().is_empty());
    it.reloads();
}

// B125
#[test]
fn any_offset_is_kept_and_the_last_one_counts() {
    let mut it = group();
    for offset in [100, 50, -7, i64::MAX, 0] {
        it.commits("", -1, offset).unwrap().unwrap();
        assert_eq!(it.offset(), offset);
    }
    it.reloads();
    assert_eq!(it.offset(), 0);
}

#[test]
fn what_is_written_is_what_kafka_writes() {
    let mut it = group();
    it.commits("", -1, 7).unwrap().unwrap();
    let mut with_retention = it.commit("", -1, 8, None);
    with_retention.retention_ms = Some(1000);
    it.asks(with_retention).unwrap();
    let written = it.written();
    let [
        GroupRecord::OffsetCommit(key, Some(value)),
        GroupRecord::OffsetCommit(_, Some(timed)),
    ] = &written[..]
    else {
        panic!("{written:?}");
    };
    assert_eq!((&*key.group, &*key.topic, key.partition), ("g", "t", 0));
    assert_eq!((value.offset, value.leader_epoch), (7, LeaderEpoch(3)));
    assert_eq!((value.topic_id, value.expire_timestamp), (TOPIC, NO_EXPIRY));
    assert_eq!(timed.expire_timestamp, timed.commit_timestamp + 1000);
    it.reloads();
}

// B118
#[test]
fn members_commit_in_their_generation() {
    let mut it = group();
    let members = it.stable(2);
    assert_eq!(it.commits(&members[0], 1, 5), Ok(Ok(())));
    assert_eq!(it.commits(&members[0], 0, 6), Err(IllegalGeneration));
    assert_eq!(it.commits(&members[0], 2, 6), Err(IllegalGeneration));
    assert_eq!(it.commits("x", 1, 6), Err(UnknownMemberId));
    assert_eq!(it.commits("", -1, 6), Err(UnknownMemberId));
    // While members join, those of the old generation may still commit.
    let first = it.joins(&members[0]);
    assert_eq!(it.commits(&members[1], 1, 7), Ok(Ok(())));
    let second = it.joins(&members[1]);
    assert!(it.joined(first).is_some() && it.joined(second).is_some());
    assert_eq!(it.commits(&members[1], 1, 8), Err(IllegalGeneration));
    assert_eq!(it.commits(&members[1], 2, 8), Err(RebalanceInProgress));
    it.all_sync(&members);
    assert_eq!(it.commits(&members[1], 2, 8), Ok(Ok(())));
    assert_eq!(it.offset(), 8);
    it.reloads();
    assert_eq!(it.commits(&members[1], 2, 9), Ok(Ok(())));
}

// B135
#[test]
fn an_instance_without_its_member_id_is_checked_all_the_same() {
    let mut it = group();
    it.wants = Wants {
        instance: Some("i"),
        ..Wants::default()
    };
    let ticket = it.joins("");
    it.sleeps(secs(3));
    let member = it.joined(ticket).unwrap().member;
    it.all_sync(&[member]);
    let mut ask = it.commit("", -1, 1, None);
    ask.instance = Some(arc("i"));
    assert_eq!(it.asks(ask.clone()), Err(FencedInstanceId));
    ask.instance = Some(arc("other"));
    assert_eq!(it.asks(ask.clone()), Err(UnknownMemberId));
    it.leaves("", Some("i")).unwrap();
    assert_eq!(it.asks(ask), Ok(vec![vec![Ok(())]]));
    it.reloads();
}

#[test]
fn a_commit_is_a_sign_of_life() {
    let mut it = group();
    let members = it.stable(1);
    for _ in 0..5 {
        it.sleeps(secs(9));
        it.commits(&members[0], 1, 1).unwrap().unwrap();
    }
    assert_eq!(it.state(), "Stable");
    it.sleeps(secs(10));
    assert_eq!(it.state(), "Empty");
    it.reloads();
}

// B120
#[test]
fn metadata_has_a_limit_for_each_partition() {
    let mut it = group();
    let mut ask = it.commit("", -1, 1, None);
    let mut large = ask.topics[0].partitions[0].clone();
    large.partition = 1;
    large.metadata = "x".repeat(4097).into();
    let mut fits = large.clone();
    fits.partition = 2;
    fits.metadata = "\0".repeat(4096).into();
    ask.topics[0].partitions.extend([large, fits]);
    let told = it.asks(ask).unwrap();
    assert_eq!(told, [[Ok(()), Err(OffsetMetadataTooLarge), Ok(())]]);
    it.reloads();
}

#[test]
fn all_offsets_are_told_when_no_topic_is_named() {
    let mut it = group();
    let ask = FetchOffsets {
        group: it.group.clone(),
        member: None,
        epoch: -1,
        topics: None,
        require_stable: false,
    };
    assert_eq!(it.asks(ask.clone()), Ok(Vec::new()));
    it.commits("", -1, 4).unwrap().unwrap();
    let told = it.asks(ask).unwrap();
    assert_eq!((told.len(), &*told[0].name), (1, "t"));
    assert_eq!(told[0].partitions[0].1.as_ref().unwrap().offset, 4);
}

#[test]
fn an_offset_of_another_topic_of_that_name_is_not_told() {
    let mut it = group();
    it.commits("", -1, 4).unwrap().unwrap();
    let other = TopicId(Uuid([8; 16]));
    let ask = |id| FetchOffsets {
        group: arc("g"),
        member: None,
        epoch: -1,
        topics: Some(vec![WantedTopic {
            name: arc("t"),
            id,
            partitions: vec![0],
        }]),
        require_stable: false,
    };
    let mut offset = |id| {
        it.asks(ask(id)).unwrap()[0].partitions[0]
            .1
            .clone()
            .unwrap()
            .offset
    };
    assert_eq!(offset(other), -1);
    assert_eq!(offset(TopicId::ZERO), 4);
}

#[test]
fn a_transaction_s_offsets_count_from_its_end_on() {
    let mut it = group();
    it.commits("", -1, 1).unwrap().unwrap();
    it.commits_for("", -1, 5, Some(9)).unwrap().unwrap();
    assert_eq!(it.offset(), 1);
    assert_eq!(it.fetched(true), Err(UnstableOffsetCommit));
    it.reloads();
    assert_eq!(it.fetched(true), Err(UnstableOffsetCommit));
    it.ends(9, true);
    assert_eq!(it.fetched(true).unwrap().offset, 5);

    it.commits_for("", -1, 6, Some(9)).unwrap().unwrap();
    it.ends(9, false);
    assert_eq!(it.fetched(true).unwrap().offset, 5);

    // What is committed outside meanwhile is the later word.
    it.commits_for("", -1, 7, Some(9)).unwrap().unwrap();
    it.commits("", -1, 8).unwrap().unwrap();
    it.ends(9, true);
    assert_eq!(it.offset(), 8);
    it.reloads();
    assert_eq!(it.offset(), 8);
}

#[test]
fn a_group_of_nothing_but_a_transaction_s_offsets_can_be_deleted() {
    let mut it = group();
    it.commits_for("", -1, 5, Some(9)).unwrap().unwrap();
    assert_eq!(it.listed(), ["g  Empty"]);
    it.reloads();
    assert_eq!(it.deletes(), Ok(()));
    it.ends(9, true);
    assert_eq!(it.offset(), -1);
    assert_eq!(it.deletes(), Err(GroupIdNotFound));
    it.reloads();
}

// B130
#[test]
fn groups_are_deleted_when_nobody_is_in_them() {
    let mut it = group();
    assert_eq!(it.deletes(), Err(GroupIdNotFound));
    let members = it.stable(1);
    it.commits(&members[0], 1, 5).unwrap().unwrap();
    assert_eq!(it.deletes(), Err(NonEmptyGroup));
    it.leaves(&members[0], None).unwrap();
    it.written();
    assert_eq!(it.deletes(), Ok(()));
    let written = it.written();
    assert!(matches!(
        &written[..],
        [
            GroupRecord::OffsetCommit(_, None),
            GroupRecord::GroupMetadata(_, None)
        ]
    ));
    assert!(it.listed().is_empty());
    assert_eq!(it.offset(), -1);
    it.reloads();
}

// B130
#[test]
fn offsets_are_deleted_unless_somebody_reads_the_topic() {
    let mut it = group();
    assert_eq!(it.deletes_offset(), Err(GroupIdNotFound));
    it.wants.protocols = vec![("range", SUBSCRIBED_TO_T)];
    let members = it.stable(1);
    it.commits(&members[0], 1, 5).unwrap().unwrap();
    assert_eq!(it.deletes_offset(), Ok(Err(GroupSubscribedToTopic)));
    it.wants.protocols = vec![("range", SUBSCRIBED_TO_U)];
    let again = it.joins(&members[0]);
    it.joined(again).unwrap();
    it.all_sync(&members);
    assert_eq!(it.deletes_offset(), Ok(Ok(())));
    assert_eq!(it.offset(), -1);
    assert_eq!(it.deletes_offset(), Ok(Ok(())));
    it.reloads();

    let mut it = group();
    it.wants.kind = "connect";
    let members = it.stable(1);
    assert_eq!(it.deletes_offset(), Err(NonEmptyGroup));
    it.leaves(&members[0], None).unwrap();
    assert_eq!(it.deletes_offset(), Ok(Ok(())));
    it.reloads();
}

#[test]
fn a_group_whose_subscription_cannot_be_read_may_read_everything() {
    let mut it = group();
    it.wants.protocols = vec![("range", "\0")];
    it.stable(1);
    assert_eq!(it.deletes_offset(), Ok(Err(GroupSubscribedToTopic)));
}

#[test]
fn offsets_of_a_topic_that_is_gone_go_with_it() {
    let mut it = group();
    it.commits("", -1, 5).unwrap().unwrap();
    let topics = |id| ForgetTopics {
        topics: vec![(arc("t"), id)],
    };
    it.asks(topics(TopicId(Uuid([8; 16]))));
    assert_eq!(it.offset(), 5);
    it.asks(topics(TOPIC));
    assert_eq!(it.offset(), -1);
    it.reloads();
}

#[test]
fn offsets_without_a_group_expire_a_week_after_their_commit() {
    let mut it = group();
    it.commits("", -1, 5).unwrap().unwrap();
    it.sleeps(DAY * 6);
    it.reloads();
    assert_eq!(it.offset(), 5);
    it.sleeps(DAY + secs(600));
    assert_eq!(it.offset(), -1);
    assert!(it.listed().is_empty());
    it.reloads();
}

#[test]
fn those_of_an_empty_group_expire_a_week_after_it_emptied() {
    let mut it = group();
    it.wants.session = secs(1800);
    let members = it.stable(1);
    it.commits(&members[0], 1, 5).unwrap().unwrap();
    it.wants.protocols = vec![("range", "else")];
    for _ in 0..(6 * 48) {
        it.sleeps(secs(1799));
        it.beats(&members[0], 1).unwrap();
    }
    it.leaves(&members[0], None).unwrap();
    it.sleeps(DAY * 6);
    assert_eq!(it.offset(), 5);
    it.sleeps(DAY + secs(600));
    assert_eq!(it.offset(), -1);
    assert!(it.listed().is_empty());
    it.reloads();
}

#[test]
fn members_keep_the_offsets_of_what_they_read() {
    for (subscription, kept) in [(SUBSCRIBED_TO_T, 5), (SUBSCRIBED_TO_U, -1)] {
        let mut it = group();
        it.wants.session = secs(1800);
        it.wants.protocols = vec![("range", subscription)];
        let members = it.stable(1);
        it.commits(&members[0], 1, 5).unwrap().unwrap();
        for _ in 0..(8 * 48) {
            it.sleeps(secs(1799));
            it.beats(&members[0], 1).unwrap();
        }
        assert_eq!(it.offset(), kept);
        it.reloads();
    }
}

#[test]
fn a_commit_may_bring_its_own_time_to_live() {
    let mut it = group();
    let mut ask = it.commit("", -1, 5, None);
    ask.retention_ms = Some(1000);
    it.asks(ask).unwrap();
    it.sleeps(secs(599));
    assert_eq!(it.offset(), 5);
    it.sleeps(secs(1));
    assert_eq!(it.offset(), -1);
    it.reloads();
}

#[test]
fn what_an_open_transaction_may_change_does_not_expire() {
    let mut it = group();
    it.commits("", -1, 5).unwrap().unwrap();
    it.commits_for("", -1, 6, Some(9)).unwrap().unwrap();
    it.sleeps(DAY * 9);
    assert_eq!(it.offset(), 5);
    it.ends(9, false);
    it.sleeps(secs(600));
    assert_eq!(it.offset(), -1);
    it.reloads();
}

#[test]
fn a_group_with_neither_members_nor_offsets_is_forgotten_and_nothing_is_due_any_more() {
    let mut it = group();
    let members = it.stable(1);
    it.leaves(&members[0], None).unwrap();
    it.sleeps(secs(600));
    assert!(it.listed().is_empty());
    it.sleeps(secs(600));
    assert_eq!(crate::machine::Machine::deadline(&it.story.machine), None);
    it.reloads();
}
