//! Stories of consumer groups (KIP-848).

use super::consumer_ask::ConsumerHeartbeat;
use super::consumer_story::{beat, join, read};
use super::records::GroupRecord;
use super::story::{KAFKAS, Told, arc, secs, shard};
use crate::protocol::error::ErrorCode;

fn story() -> Told {
    let group = shard(KAFKAS);
    group.topic("t", 4);
    group
}

#[test]
fn a_lone_member_gets_everything_at_once() {
    let mut group = story();
    assert_eq!(group.enters_consumer("ann", &["t"]), "1 = t:0,1,2,3");
    assert_eq!(group.stands(), "Stable 1");
    assert_eq!(group.stays("ann", 1), "1");
    assert_eq!(group.owns("ann", 1, "t:0,1,2,3"), "1");
    let beat = group.beats_in_full(beat("ann", 1)).unwrap();
    assert_eq!(beat.interval_ms, 5000);
    assert_eq!(group.listed(), ["g consumer Stable"]);
    group.reloads();
    assert_eq!(group.stays("ann", 1), "1");
}

#[test]
fn the_records_of_a_join_are_those_of_kafka() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    let kinds: Vec<_> = group.written().iter().map(GroupRecord::kind).collect();
    // Member, group epoch, target of the member, target epoch, current assignment.
    assert_eq!(kinds, [5, 3, 7, 6, 8]);
    group.stays("ann", 1);
    assert!(group.written().is_empty());
    group.reloads();
}

#[test]
fn a_second_member_gets_what_the_first_gives_up() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    assert_eq!(group.enters_consumer("bob", &["t"]), "2 = ");
    assert_eq!(group.stands(), "Reconciling 2");
    group.reloads();
    // Ann is told what she may keep, and stays in her epoch until she has given up the rest.
    assert_eq!(group.owns("ann", 1, "t:0,1,2,3"), "1 = t:0,1");
    assert_eq!(group.stays("bob", 2), "2");
    assert_eq!(group.stays("ann", 1), "1");
    group.reloads();
    assert_eq!(group.owns("ann", 1, "t:0,1"), "2");
    assert_eq!(group.stays("bob", 2), "2 = t:2,3");
    assert_eq!(group.stands(), "Stable 2");
    group.reloads();
}

#[test]
fn a_third_member_waits_for_the_slower_of_two() {
    let mut group = story();
    group.topic("t", 6);
    group.enters_consumer("ann", &["t"]);
    group.enters_consumer("bob", &["t"]);
    group.owns("ann", 1, "t:0,1,2,3,4,5");
    group.owns("ann", 1, "t:0,1,2");
    assert_eq!(group.stays("bob", 2), "2 = t:3,4,5");
    assert_eq!(group.enters_consumer("cat", &["t"]), "3 = ");
    assert_eq!(group.owns("ann", 2, "t:0,1,2"), "2 = t:0,1");
    assert_eq!(group.owns("bob", 2, "t:3,4,5"), "2 = t:3,4");
    assert_eq!(group.owns("ann", 2, "t:0,1"), "3");
    assert_eq!(group.stays("cat", 3), "3 = t:2");
    assert_eq!(group.stands(), "Reconciling 3");
    group.reloads();
    assert_eq!(group.owns("bob", 2, "t:3,4"), "3");
    assert_eq!(group.stays("cat", 3), "3 = t:2,5");
    assert_eq!(group.stands(), "Stable 3");
    group.reloads();
}

#[test]
fn a_member_that_does_not_give_up_in_time_is_removed() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    group.enters_consumer("bob", &["t"]);
    assert_eq!(group.stays("ann", 1), "1 = t:0,1");
    for _ in 0..5 {
        group.sleeps(secs(5));
        assert_eq!(group.stays("ann", 1), "1");
        assert_eq!(group.stays("bob", 2), "2");
    }
    group.sleeps(secs(6));
    assert_eq!(group.stays("ann", 1), "UNKNOWN_MEMBER_ID");
    assert_eq!(group.stays("bob", 2), "3 = t:0,1,2,3");
    group.reloads();
}

#[test]
fn a_member_that_gave_up_is_not_removed_later() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    group.enters_consumer("bob", &["t"]);
    group.stays("ann", 1);
    group.owns("ann", 1, "t:0,1");
    group.sleeps(secs(31));
    assert_eq!(group.stays("ann", 2), "2");
    group.reloads();
}

#[test]
fn the_time_to_give_up_begins_anew_after_a_reload() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    group.enters_consumer("bob", &["t"]);
    group.stays("ann", 1);
    group.sleeps(secs(20));
    group.reloads();
    group.sleeps(secs(29));
    assert_eq!(group.stays("ann", 1), "1");
    group.sleeps(secs(2));
    assert_eq!(group.stays("ann", 1), "UNKNOWN_MEMBER_ID");
    group.reloads();
}

#[test]
fn a_silent_member_is_removed_when_its_session_ends() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    group.enters_consumer("bob", &["t"]);
    group.sleeps(secs(44));
    assert_eq!(group.stays("bob", 2), "2");
    group.sleeps(secs(2));
    assert_eq!(group.stays("ann", 1), "UNKNOWN_MEMBER_ID");
    assert_eq!(group.stays("bob", 2), "3 = t:0,1,2,3");
    group.sleeps(secs(46));
    assert_eq!(group.stands(), "Empty 4");
    group.reloads();
    assert_eq!(group.enters_consumer("ann", &["t"]), "5 = t:0,1,2,3");
}

#[test]
fn members_that_fall_silent_together_leave_one_epoch_behind() {
    let mut group = story();
    for member in ["ann", "bob", "cat"] {
        group.enters_consumer(member, &["t"]);
    }
    group.sleeps(secs(46));
    assert_eq!(group.stands(), "Empty 4");
    group.reloads();
}

#[test]
fn the_last_to_leave_leaves_an_empty_group() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    group.enters_consumer("bob", &["t"]);
    assert_eq!(group.stays("ann", -1), "-1");
    assert_eq!(group.stays("ann", 1), "UNKNOWN_MEMBER_ID");
    assert_eq!(group.stays("ann", -1), "UNKNOWN_MEMBER_ID");
    assert_eq!(group.stays("bob", 2), "3 = t:0,1,2,3");
    assert_eq!(group.stays("bob", -1), "-1");
    assert_eq!(group.stands(), "Empty 4");
    group.reloads();
    assert_eq!(group.deletes(), Ok(()));
    assert_eq!(group.stands(), "GROUP_ID_NOT_FOUND");
    assert!(group.listed().is_empty());
    group.reloads();
}

#[test]
fn a_group_with_members_is_not_deleted() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    assert_eq!(group.deletes(), Err(ErrorCode::NonEmptyGroup));
    group.reloads();
}

#[test]
fn who_is_in_another_epoch_is_fenced() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    assert_eq!(group.stays("ann", 2), "FENCED_MEMBER_EPOCH");
    group.enters_consumer("bob", &["t"]);
    group.stays("ann", 1);
    group.owns("ann", 1, "t:0,1");
    assert_eq!(group.stands(), "Reconciling 2");
    // Who missed the answer comes with the epoch before, and owns no more than it should.
    assert_eq!(group.stays("ann", 1), "FENCED_MEMBER_EPOCH");
    assert_eq!(group.owns("ann", 1, "t:0,3"), "FENCED_MEMBER_EPOCH");
    assert_eq!(group.owns("ann", 1, "u:0"), "FENCED_MEMBER_EPOCH");
    assert_eq!(group.owns("ann", 1, "t:0"), "2");
    group.reloads();
}

#[test]
fn who_joins_again_gets_all_that_it_has() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    assert_eq!(group.enters_consumer("ann", &["t"]), "1 = t:0,1,2,3");
    group.enters_consumer("bob", &["t"]);
    group.stays("ann", 1);
    group.owns("ann", 1, "t:0,1");
    group.enters_consumer("cat", &["t"]);
    // Also when it is some epochs on, as after a fence.
    let again = group.enters_consumer("ann", &["t"]);
    assert!(again.starts_with("3 = t:0"), "{again}");
    group.reloads();
}

#[test]
fn a_full_heartbeat_is_told_the_assignment_again() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    let full = ConsumerHeartbeat {
        owned: Some(read("t:0,1,2,3")),
        epoch: 1,
        ..join("ann", &["t"])
    };
    assert_eq!(group.says_beat(full), "1 = t:0,1,2,3");
    group.reloads();
}

#[test]
fn nobody_speaks_for_a_group_or_member_that_is_not_there() {
    let mut group = story();
    let unknown = (
        ErrorCode::GroupIdNotFound,
        "Consumer group g not found.".into(),
    );
    assert_eq!(group.refuses(beat("ann", 1)), unknown);
    let unknown = (ErrorCode::GroupIdNotFound, "Group g not found.".into());
    assert_eq!(group.refuses(beat("ann", -1)), unknown);
    group.enters_consumer("ann", &["t"]);
    let unknown = (
        ErrorCode::UnknownMemberId,
        "Member bob is not a member of group g.".into(),
    );
    assert_eq!(group.refuses(beat("bob", 1)), unknown);
    assert_eq!(group.refuses(beat("bob", -1)), unknown);
    group.reloads();
}

#[test]
fn a_request_that_no_group_could_take_is_refused() {
    let mut group = story();
    let long = "x".repeat(40_000);
    let asks: Vec<(ConsumerHeartbeat, &str)> = vec![
        (join("", &["t"]), "MemberId can't be empty."),
        (join(" ", &["t"]), "MemberId can't be empty."),
        (
            ConsumerHeartbeat {
                group: arc(""),
                ..join("ann", &["t"])
            },
            "GroupId can't be empty.",
        ),
        (
            ConsumerHeartbeat {
                instance: Some(arc("")),
                ..join("ann", &["t"])
            },
            "InstanceId can't be empty.",
        ),
        (
            ConsumerHeartbeat {
                rack: Some(arc("")),
                ..join("ann", &["t"])
            },
            "RackId can't be empty.",
        ),
        (
            ConsumerHeartbeat {
                rebalance_timeout_ms: None,
                ..join("ann", &["t"])
            },
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (
            ConsumerHeartbeat {
                owned: None,
                ..join("ann", &["t"])
            },
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            ConsumerHeartbeat {
                owned: Some(read("t:0")),
                ..join("ann", &["t"])
            },
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            ConsumerHeartbeat {
                topics: None,
                ..join("ann", &["t"])
            },
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when \
             (re-)joining.",
        ),
        (beat("ann", -2), "InstanceId can't be null."),
        (beat("ann", -3), "MemberEpoch is invalid."),
        (
            join(&long, &["t"]),
            "GroupId, MemberId, InstanceId or SubscribedTopicRegex is too long.",
        ),
    ];
    for (ask, words) in asks {
        let refused = group.refuses(ask);
        assert_eq!(refused, (ErrorCode::InvalidRequest, words.to_owned()));
    }
    assert!(group.listed().is_empty());
    group.reloads();
}

#[test]
fn a_member_of_the_first_version_is_given_an_id() {
    let mut group = story();
    let ask = ConsumerHeartbeat {
        must_have_id: false,
        ..join("", &["t"])
    };
    let told = group.beats_in_full(ask).unwrap();
    assert_eq!(told.member.len(), 22);
    assert_eq!(group.stays(&told.member, 1), "1");
    group.reloads();
}

#[test]
fn nothing_to_read_is_no_error() {
    let mut group = story();
    assert_eq!(group.enters_consumer("ann", &[]), "1 = ");
    assert_eq!(group.enters_consumer("bob", &["no.such", "a b"]), "2 = ");
    let patterned = ConsumerHeartbeat {
        topics: None,
        regex: Some(arc("")),
        ..join("cat", &[])
    };
    assert_eq!(group.says_beat(patterned), "2 = ");
    assert!(!group.looks_up());
    group.reloads();
}

#[test]
fn a_full_group_takes_nobody_new() {
    let mut group = shard(&[("group.consumer.max.size", "2")]);
    group.topic("t", 4);
    group.enters_consumer("ann", &["t"]);
    group.enters_consumer("bob", &["t"]);
    let (code, words) = group.refuses(join("cat", &["t"]));
    assert_eq!(code, ErrorCode::GroupMaxSizeReached);
    assert_eq!(
        words,
        "The consumer group has reached its maximum capacity of 2 members."
    );
    assert_eq!(group.enters_consumer("bob", &["t"]), "2 = ");
    group.stays("ann", -1);
    assert!(group.enters_consumer("cat", &["t"]).starts_with("4 = "));
    group.reloads();
}

#[test]
fn most_members_decide_who_assigns() {
    let mut group = story();
    let wants = |member: &str, assignor: &str| ConsumerHeartbeat {
        assignor: Some(arc(assignor)),
        ..join(member, &["t"])
    };
    let (code, words) = group.refuses(wants("ann", "nope"));
    assert_eq!(code, ErrorCode::UnsupportedAssignor);
    assert_eq!(
        words,
        "ServerAssignor nope is not supported. Supported assignors: uniform, range."
    );
    let assignor = |group: &mut Told| group.described_consumer().unwrap().assignor;
    group.enters_consumer("ann", &["t"]);
    assert_eq!(&*assignor(&mut group), "uniform");
    group.says_beat(wants("bob", "range"));
    assert_eq!(&*assignor(&mut group), "range");
    group.says_beat(wants("cat", "uniform"));
    group.says_beat(wants("dan", "uniform"));
    assert_eq!(&*assignor(&mut group), "uniform");
    group.reloads();
}

#[test]
fn a_topic_that_grows_is_assigned_anew() {
    let mut group = story();
    group.enters_consumer("ann", &["t", "u"]);
    assert_eq!(group.stays("ann", 1), "1");
    group.topic("t", 6);
    assert_eq!(group.stays("ann", 1), "2 = t:0,1,2,3,4,5");
    group.topic("u", 1);
    assert_eq!(group.stays("ann", 2), "3 = t:0,1,2,3,4,5 u:0");
    group.topic("other", 1);
    assert_eq!(group.stays("ann", 3), "3");
    group.reloads();
    // A new coordinator compares anew and finds nothing changed.
    assert_eq!(group.stays("ann", 3), "3");
    group.topic_goes("t");
    assert_eq!(group.stays("ann", 3), "3 = u:0");
    assert_eq!(group.owns("ann", 3, "u:0"), "4");
    group.reloads();
}

#[test]
fn a_subscription_may_change() {
    let mut group = story();
    group.topic("u", 2);
    group.enters_consumer("ann", &["t"]);
    let wants = |epoch: i32, owned: &str, topics: &[&str]| ConsumerHeartbeat {
        topics: Some(topics.iter().map(|name| arc(name)).collect()),
        owned: Some(read(owned)),
        ..beat("ann", epoch)
    };
    assert_eq!(
        group.says_beat(wants(1, "t:0,1,2,3", &["t", "u"])),
        "2 = t:0,1,2,3 u:0,1"
    );
    assert_eq!(
        group.says_beat(wants(2, "t:0,1,2,3 u:0,1", &["u"])),
        "2 = u:0,1"
    );
    assert_eq!(group.owns("ann", 2, "u:0,1"), "3");
    assert_eq!(group.says_beat(wants(3, "u:0,1", &["u"])), "3");
    group.reloads();
}

#[test]
fn members_that_want_different_topics_get_those() {
    let mut group = story();
    group.topic("u", 2);
    group.enters_consumer("ann", &["t"]);
    assert_eq!(group.enters_consumer("bob", &["u"]), "2 = u:0,1");
    assert_eq!(group.stays("ann", 1), "2");
    assert_eq!(group.enters_consumer("cat", &["t", "u"]), "3 = ");
    assert_eq!(group.stands(), "Reconciling 3");
    group.reloads();
}

// Static members.

fn of(instance: &str, ask: ConsumerHeartbeat) -> ConsumerHeartbeat {
    ConsumerHeartbeat {
        instance: Some(arc(instance)),
        ..ask
    }
}

#[test]
fn a_static_member_that_comes_back_keeps_its_assignment() {
    let mut group = story();
    group.says_beat(of("i", join("ann", &["t"])));
    group.enters_consumer("bob", &["t"]);
    group.says_beat(of("i", beat("ann", 1)));
    let owns = ConsumerHeartbeat {
        owned: Some(read("t:0,1")),
        ..beat("ann", 1)
    };
    assert_eq!(group.says_beat(of("i", owns)), "2");
    assert_eq!(group.says_beat(of("i", beat("ann", -2))), "-2");
    assert_eq!(group.stays("bob", 2), "2 = t:2,3");
    assert_eq!(group.stands(), "Reconciling 2");
    group.reloads();
    // Under another id, in the same epoch, with nothing moved.
    assert_eq!(group.says_beat(of("i", join("ann-2", &["t"]))), "2 = t:0,1");
    assert_eq!(group.stands(), "Stable 2");
    let old = group.refuses(of("i", beat("ann", 2)));
    let words = "Static member ann with instance id i was fenced by member ann-2.";
    assert_eq!(old, (ErrorCode::FencedInstanceId, words.into()));
    assert_eq!(group.says_beat(of("i", beat("ann-2", 2))), "2");
    group.reloads();
}

#[test]
fn an_instance_in_use_is_not_given_away() {
    let mut group = story();
    group.says_beat(of("i", join("ann", &["t"])));
    let (code, words) = group.refuses(of("i", join("bob", &["t"])));
    assert_eq!(code, ErrorCode::UnreleasedInstanceId);
    assert_eq!(
        words,
        "Static member bob with instance id i cannot join the group because the instance id is \
         owned by ann member."
    );
    let unknown = (
        ErrorCode::UnknownMemberId,
        "Instance id j is unknown.".into(),
    );
    assert_eq!(group.refuses(of("j", beat("ann", 1))), unknown);
    assert_eq!(group.refuses(of("j", beat("ann", -2))), unknown);
    let fenced = group.refuses(of("i", beat("bob", -2)));
    assert_eq!(fenced.0, ErrorCode::FencedInstanceId);
    group.reloads();
}

#[test]
fn a_static_member_that_stays_away_is_removed() {
    let mut group = story();
    group.says_beat(of("i", join("ann", &["t"])));
    group.enters_consumer("bob", &["t"]);
    group.says_beat(of("i", beat("ann", -2)));
    group.sleeps(secs(30));
    assert_eq!(group.stays("bob", 2), "2");
    group.sleeps(secs(16));
    assert_eq!(group.stays("bob", 2), "3 = t:0,1,2,3");
    assert_eq!(group.says_beat(of("i", join("ann-2", &["t"]))), "4 = ");
    group.reloads();
}

#[test]
fn a_static_member_may_leave_for_good() {
    let mut group = story();
    group.says_beat(of("i", join("ann", &["t"])));
    assert_eq!(group.says_beat(of("i", beat("ann", -1))), "-1");
    assert_eq!(group.stands(), "Empty 2");
    assert_eq!(
        group.says_beat(of("i", join("bob", &["t"]))),
        "3 = t:0,1,2,3"
    );
    group.reloads();
}

#[test]
fn an_operator_removes_members_of_a_consumer_group() {
    let mut group = story();
    group.says_beat(of("i", join("ann", &["t"])));
    group.enters_consumer("bob", &["t"]);
    assert_eq!(group.leaves("", Some("j")), Err(ErrorCode::UnknownMemberId));
    assert_eq!(
        group.leaves("bob", Some("i")),
        Err(ErrorCode::FencedInstanceId)
    );
    assert_eq!(group.leaves("", Some("i")), Ok(()));
    assert_eq!(group.leaves("bob", None), Ok(()));
    assert_eq!(group.stands(), "Empty 4");
    group.reloads();
}

// Patterns.

fn by_pattern(member: &str, regex: &str) -> ConsumerHeartbeat {
    ConsumerHeartbeat {
        topics: None,
        regex: Some(arc(regex)),
        ..join(member, &[])
    }
}

#[test]
fn a_pattern_is_looked_up_after_the_join_is_answered() {
    let mut group = story();
    group.topic("t2", 1);
    group.topic("u", 1);
    assert_eq!(group.says_beat(by_pattern("ann", "t.*")), "1 = ");
    assert!(group.looks_up());
    assert_eq!(group.stays("ann", 1), "2 = t:0,1,2,3 t2:0");
    assert!(!group.looks_up());
    group.reloads();
    // Who comes with a known pattern has its topics at once.
    assert_eq!(group.says_beat(by_pattern("bob", "t.*")), "3 = ");
    assert_eq!(group.stands(), "Reconciling 3");
    group.reloads();
}

#[test]
fn new_topics_are_found_within_ten_seconds() {
    let mut group = story();
    group.says_beat(by_pattern("ann", "t.*"));
    group.looks_up();
    group.stays("ann", 1);
    group.topic("t2", 1);
    group.sleeps(secs(5));
    assert_eq!(group.stays("ann", 2), "2");
    assert!(!group.looks_up());
    group.sleeps(secs(6));
    assert_eq!(group.stays("ann", 2), "2");
    assert!(group.looks_up());
    assert_eq!(group.stays("ann", 2), "3 = t:0,1,2,3 t2:0");
    group.sleeps(secs(11));
    group.stays("ann", 3);
    assert!(!group.looks_up());
    // A topic that the pattern does not mean changes nothing and is not written.
    group.topic("other", 1);
    group.written();
    group.stays("ann", 3);
    assert!(group.looks_up());
    assert!(group.written().is_empty());
    assert_eq!(group.stays("ann", 3), "3");
    group.reloads();
}

#[test]
fn a_pattern_that_nobody_has_any_more_is_forgotten() {
    let mut group = story();
    group.topic("u", 1);
    group.says_beat(by_pattern("ann", "t"));
    group.looks_up();
    group.stays("ann", 1);
    let other = ConsumerHeartbeat {
        regex: Some(arc("u")),
        ..beat("ann", 2)
    };
    group.sleeps(secs(1));
    group.written();
    assert_eq!(group.says_beat(other), "2");
    let gone = |record: &GroupRecord| record.kind() == 16 && record.is_tombstone();
    assert!(group.written().iter().any(gone));
    assert!(group.looks_up());
    assert_eq!(group.stays("ann", 2), "2 = ");
    assert_eq!(group.owns("ann", 2, ""), "3 = u:0");
    let none = ConsumerHeartbeat {
        regex: Some(arc("")),
        topics: Some(vec![arc("t")]),
        ..beat("ann", 3)
    };
    assert_eq!(group.says_beat(none), "3 = ");
    group.reloads();
    group.says_beat(by_pattern("bob", "t"));
    group.looks_up();
    group.stays("bob", -1);
    group.stays("ann", -1);
    assert!(group.written().iter().any(gone));
    group.reloads();
}

#[test]
fn names_and_a_pattern_may_go_together() {
    let mut group = story();
    group.topic("u", 1);
    let both = ConsumerHeartbeat {
        topics: Some(vec![arc("u")]),
        ..by_pattern("ann", "t")
    };
    assert_eq!(group.says_beat(both), "1 = u:0");
    group.looks_up();
    assert_eq!(group.stays("ann", 1), "2 = t:0,1,2,3 u:0");
    group.reloads();
}

#[test]
fn a_pattern_that_cannot_be_read_is_refused() {
    let mut group = story();
    let (code, words) = group.refuses(by_pattern("ann", "("));
    assert_eq!(code, ErrorCode::InvalidRegularExpression);
    assert_eq!(
        words,
        "SubscribedTopicRegex `(` is not a valid regular expression: missing closing )."
    );
    assert_eq!(group.stands(), "GROUP_ID_NOT_FOUND");
    group.reloads();
}

#[test]
fn what_was_looked_up_for_a_group_that_is_gone_is_dropped() {
    let mut group = story();
    group.says_beat(by_pattern("ann", "t"));
    group.stays("ann", -1);
    assert!(group.looks_up());
    assert_eq!(group.stands(), "Empty 2");
    assert_eq!(group.deletes(), Ok(()));
    group.says_beat(by_pattern("ann", "t"));
    group.stays("ann", -1);
    assert_eq!(group.deletes(), Ok(()));
    assert!(group.looks_up());
    assert_eq!(group.stands(), "GROUP_ID_NOT_FOUND");
    group.reloads();
}

// Options of the group.

#[test]
fn options_of_the_group_hold_over_those_of_the_broker() {
    let mut group = story();
    group.sets("consumer.heartbeat.interval.ms", "6000");
    group.sets("consumer.session.timeout.ms", "50000");
    group.enters_consumer("ann", &["t"]);
    assert_eq!(
        group.beats_in_full(beat("ann", 1)).unwrap().interval_ms,
        6000
    );
    group.sleeps(secs(49));
    assert_eq!(group.stays("ann", 1), "1");
    group.sleeps(secs(51));
    assert_eq!(group.stands(), "Empty 2");
    group.reloads();
}

// Offsets.

#[test]
fn a_member_commits_in_its_epoch() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    assert_eq!(group.commits("ann", 1, 7), Ok(Ok(())));
    assert_eq!(group.offset(), 7);
    assert_eq!(group.commits("ann", 0, 8), Err(ErrorCode::StaleMemberEpoch));
    assert_eq!(group.commits("ann", 2, 8), Err(ErrorCode::StaleMemberEpoch));
    assert_eq!(group.commits("bob", 1, 8), Err(ErrorCode::UnknownMemberId));
    assert_eq!(group.commits("", -1, 8), Err(ErrorCode::UnknownMemberId));
    let mut old = group.commit("ann", 1, 8, None);
    old.knows_epochs = false;
    assert_eq!(group.asks(old), Err(ErrorCode::UnsupportedVersion));
    // An operator commits once nobody is there.
    group.stays("ann", -1);
    assert_eq!(group.commits("", -1, 9), Ok(Ok(())));
    assert_eq!(group.offset(), 9);
    group.reloads();
}

#[test]
fn offsets_of_a_topic_that_is_read_stay() {
    let mut group = story();
    group.enters_consumer("ann", &["t"]);
    group.commits("ann", 1, 7).unwrap().unwrap();
    let kept = Ok(Err(ErrorCode::GroupSubscribedToTopic));
    assert_eq!(group.deletes_offset(), kept);
    // For a good week.
    for _ in 0..15_200 {
        group.sleeps(secs(40));
        group.stays("ann", 1);
    }
    assert_eq!(group.offset(), 7);
    group.stays("ann", -1);
    assert_eq!(group.deletes_offset(), Ok(Ok(())));
    assert_eq!(group.offset(), -1);
    group.reloads();
}

#[test]
fn a_simple_group_becomes_a_consumer_group_and_keeps_its_offsets() {
    let mut group = story();
    group.commits("", -1, 7).unwrap().unwrap();
    assert_eq!(group.enters_consumer("ann", &["t"]), "1 = t:0,1,2,3");
    assert_eq!(group.offset(), 7);
    group.reloads();
    assert_eq!(group.offset(), 7);
    assert_eq!(group.stands(), "Stable 1");
}
