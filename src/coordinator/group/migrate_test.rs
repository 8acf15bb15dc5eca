//! Stories of groups that change their protocol, and of both kinds of member in one group.

use std::sync::Arc;

use bytes::Bytes;

use super::ask::{Client, JoinGroup, Joined, SyncGroup};
use super::consumer_story::{beat, join, read, topic_id};
use super::story::{KAFKAS, Told, arc, secs, shard};
use crate::machine::Ticket;
use crate::machine::ask::Ask;
use crate::protocol::codec;
use crate::protocol::error::ErrorCode;
use crate::protocol::subscription::{Assignment, NamedPartitions, Subscription};

fn story() -> Told {
    let group = shard(&[("group.initial.rebalance.delay.ms", "0")]);
    group.topic("t", 4);
    group
}

fn subscription(topics: &[&str], owned: &str) -> Bytes {
    let owned = read(owned).into_iter().map(|(id, partitions)| {
        let known = ["t", "u"].into_iter().find(|name| topic_id(name) == id);
        NamedPartitions {
            topic: arc(known.unwrap()),
            partitions,
        }
    });
    let value = Subscription {
        topics: topics.iter().map(|name| arc(name)).collect(),
        owned_partitions: owned.collect(),
        ..Subscription::default()
    };
    let mut out = vec![0, 1];
    codec::encode(&value, 1, false, &mut out);
    out.into()
}

fn assignment(partitions: &[i32]) -> Bytes {
    let value = Assignment {
        assigned_partitions: vec![NamedPartitions {
            topic: arc("t"),
            partitions: partitions.to_vec(),
        }],
        user_data: None,
    };
    value.encode(1).into()
}

/// A join of the classic protocol.
fn classic(member: &str, owned: &str) -> JoinGroup {
    JoinGroup {
        group: arc("g"),
        member: arc(member),
        instance: None,
        client: Client {
            id: arc("classic"),
            host: arc("/127.0.0.1"),
        },
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        protocol_type: arc("consumer"),
        protocols: vec![(arc("range"), subscription(&["t"], owned))],
        needs_member_id: true,
        may_skip_assignment: true,
    }
}

impl Told {
    /// A member of the classic protocol joins; its answer.
    fn joins_classic(&mut self, ask: JoinGroup) -> Option<Joined> {
        let ticket = self.says(ask);
        self.joined(ticket)
    }

    /// A new member of the classic protocol is given its id and comes back with it.
    fn enters_classic(&mut self) -> (Arc<str>, Ticket) {
        let told = self.joins_classic(classic("", "")).unwrap();
        assert_eq!(told.error, ErrorCode::MemberIdRequired);
        let ticket = self.says(classic(&told.member, ""));
        (told.member, ticket)
    }

    fn syncs_classic(
        &mut self,
        member: &str,
        generation: i32,
        assignments: Vec<(Arc<str>, Bytes)>,
    ) -> Ticket {
        self.says(SyncGroup {
            group: arc("g"),
            generation,
            member: arc(member),
            instance: None,
            protocol_type: Some(arc("consumer")),
            protocol: Some(arc("range")),
            assignments,
        })
    }

    /// What a member of the classic protocol is assigned: `t:0,1`.
    fn assigned_classic(&mut self, member: &str, generation: i32) -> Result<String, ErrorCode> {
        let ticket = self.syncs_classic(member, generation, Vec::new());
        self.assigned(ticket).expect("an answer at once")
    }

    fn assigned(&mut self, ticket: Ticket) -> Option<Result<String, ErrorCode>> {
        let told = SyncGroup::reply(self.story.answer(ticket)?).expect("the answer to a sync");
        Some(told.map(|synced| {
            let assignment = Assignment::decode(&synced.assignment).unwrap();
            let topics = assignment.assigned_partitions.iter().map(|topic| {
                let partitions: Vec<_> = topic.partitions.iter().map(ToString::to_string).collect();
                format!("{}:{}", topic.topic, partitions.join(","))
            });
            topics.collect::<Vec<_>>().join(" ")
        }))
    }

    /// A stable classic group of one member that reads everything.
    fn classic_group(&mut self) -> Arc<str> {
        let (member, ticket) = self.enters_classic();
        self.sleeps(secs(1));
        let told = self.joined(ticket).unwrap();
        assert_eq!((told.error, told.generation), (ErrorCode::None, 1));
        let all = vec![(member.clone(), assignment(&[0, 1, 2, 3]))];
        let ticket = self.syncs_classic(&member, 1, all);
        assert_eq!(self.assigned(ticket), Some(Ok("t:0,1,2,3".into())));
        member
    }
}

#[test]
fn a_classic_group_goes_over_with_its_first_new_member() {
    let mut group = story();
    let old = group.classic_group();
    assert_eq!(group.enters_consumer("new", &["t"]), "2 = ");
    assert_eq!(group.listed(), ["g consumer Reconciling"]);
    let described = group.described_consumer().unwrap();
    let of = |id: &str| described.members.iter().find(|m| *m.member == *id).unwrap();
    assert!(of(&old).is_classic && !of("new").is_classic);
    assert_eq!((of(&old).epoch, of("new").epoch), (1, 2));
    group.reloads();
    // The old member is told to join again, says what it owns, and gets what it may keep.
    assert_eq!(group.beats(&old, 1), Err(ErrorCode::RebalanceInProgress));
    assert_eq!(group.commits(&old, 1, 5), Ok(Ok(())));
    assert_eq!(group.commits(&old, 2, 5), Err(ErrorCode::IllegalGeneration));
    let told = group.joins_classic(classic(&old, "t:0,1,2,3")).unwrap();
    assert_eq!((told.error, told.generation), (ErrorCode::None, 1));
    assert_eq!((&*told.leader, told.members.len()), ("", 0));
    assert_eq!(told.protocol.as_deref(), Some("range"));
    assert_eq!(group.assigned_classic(&old, 1), Ok("t:0,1".into()));
    group.reloads();
    // It has given up the rest, and joins again since there is an epoch ahead.
    assert_eq!(group.beats(&old, 1), Err(ErrorCode::RebalanceInProgress));
    let told = group.joins_classic(classic(&old, "t:0,1")).unwrap();
    assert_eq!(told.generation, 2);
    assert_eq!(group.assigned_classic(&old, 2), Ok("t:0,1".into()));
    assert_eq!(group.beats(&old, 2), Ok(()));
    assert_eq!(group.stays("new", 2), "2 = t:2,3");
    assert_eq!(group.listed(), ["g consumer Stable"]);
    group.reloads();
}

#[test]
fn the_group_goes_back_when_the_last_new_member_leaves() {
    let mut group = story();
    let old = group.classic_group();
    group.enters_consumer("new", &["t"]);
    group.joins_classic(classic(&old, "t:0,1,2,3"));
    group.joins_classic(classic(&old, "t:0,1"));
    assert_eq!(group.stays("new", -1), "-1");
    assert_eq!(group.stands(), "GROUP_ID_NOT_FOUND");
    assert_eq!(group.state(), "PreparingRebalance");
    group.story.reloads();
    assert_eq!(group.beats(&old, 2), Ok(()));
    group.reloads();
}

#[test]
fn those_who_stay_are_to_join_again_when_the_group_goes_back() {
    let mut group = story();
    let old = group.classic_group();
    group.enters_consumer("new", &["t"]);
    group.stays("new", -1);
    assert_eq!(group.beats(&old, 1), Err(ErrorCode::IllegalGeneration));
    assert_eq!(group.beats(&old, 2), Err(ErrorCode::RebalanceInProgress));
    let told = group.joins_classic(classic(&old, "t:0,1,2,3")).unwrap();
    assert_eq!((told.error, told.generation), (ErrorCode::None, 3));
    assert_eq!(told.leader, old);
    group.reloads();
}

#[test]
fn the_group_goes_back_when_the_new_members_fall_silent() {
    let mut group = story();
    let old = group.classic_group();
    group.enters_consumer("new", &["t"]);
    group.enters_consumer("newer", &["t"]);
    for _ in 0..8 {
        group.sleeps(secs(5));
        let _ = group.beats(&old, 1);
        let generation = group
            .joins_classic(classic(&old, ""))
            .map_or(1, |told| told.generation);
        let _ = group.assigned_classic(&old, generation);
    }
    group.sleeps(secs(6));
    assert_eq!(group.state(), "PreparingRebalance");
    group.reloads();
}

#[test]
fn whoever_waits_in_a_classic_group_that_goes_over_is_told_to_join_again() {
    let mut group = story();
    let old = group.classic_group();
    // A second member makes the first join again; until then it waits.
    let (_, waiting) = group.enters_classic();
    assert_eq!(group.state(), "PreparingRebalance");
    assert!(group.enters_consumer("new", &["t"]).starts_with("2 = "));
    let told = group.joined(waiting).unwrap();
    assert_eq!(told.error, ErrorCode::RebalanceInProgress);
    assert_eq!(group.beats(&old, 1), Err(ErrorCode::RebalanceInProgress));
    group.reloads();
    // The same of one that waits for its assignment.
    let mut group = story();
    let (first, ticket) = group.enters_classic();
    group.sleeps(secs(1));
    let generation = group.joined(ticket).unwrap().generation;
    let (second, ticket) = group.enters_classic();
    let again = group.says(classic(&first, ""));
    assert_eq!(group.joined(again).unwrap().generation, generation + 1);
    assert_eq!(group.joined(ticket).unwrap().generation, generation + 1);
    let waiting = group.syncs_classic(&second, generation + 1, Vec::new());
    assert_eq!(group.assigned(waiting), None);
    assert!(group.enters_consumer("new", &["t"]).starts_with("3 = "));
    let told = group.assigned(waiting);
    assert_eq!(told, Some(Err(ErrorCode::RebalanceInProgress)));
    assert_eq!(group.described_consumer().unwrap().members.len(), 3);
    group.reloads();
}

#[test]
fn an_empty_group_changes_its_protocol_silently() {
    let mut group = story();
    let old = group.classic_group();
    group.commits(&old, 1, 7).unwrap().unwrap();
    assert_eq!(group.leaves(&old, None), Ok(()));
    group.sleeps(secs(1));
    assert_eq!(group.state(), "Empty");
    assert_eq!(group.enters_consumer("new", &["t"]), "1 = t:0,1,2,3");
    group.reloads();
    group.stays("new", -1);
    assert_eq!(group.stands(), "Empty 2");
    group.reloads();
    assert_eq!(
        group.joins_classic(classic("stranger", "")).unwrap().error,
        ErrorCode::UnknownMemberId
    );
    group.classic_group();
    assert_eq!(group.listed(), ["g consumer Stable"]);
    assert_eq!(group.stands(), "GROUP_ID_NOT_FOUND");
    assert_eq!(group.offset(), 7);
    group.reloads();
    assert_eq!(group.offset(), 7);
}

#[test]
fn a_group_that_may_not_go_over_does_not() {
    let refused = |options: &[(&str, &str)], kind: &str| {
        let mut group = shard(options);
        group.topic("t", 4);
        let ask = JoinGroup {
            protocol_type: arc(kind),
            needs_member_id: false,
            ..classic("", "")
        };
        group.says(ask);
        group.sleeps(secs(3));
        let (code, words) = group.refuses(join("new", &["t"]));
        assert_eq!(code, ErrorCode::GroupIdNotFound);
        group.reloads();
        words
    };
    assert_eq!(
        refused(
            &[("group.consumer.migration.policy", "disabled")],
            "consumer"
        ),
        "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
    );
    assert_eq!(
        refused(
            &[("group.consumer.migration.policy", "DOWNGRADE")],
            "consumer"
        ),
        "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
    );
    assert_eq!(
        refused(&[], "connect"),
        "Cannot upgrade classic group g to consumer group because the group does not use the \
         consumer embedded protocol."
    );
    let mut group = story();
    group.classic_group();
    let not_joining = group.refuses(beat("new", 1));
    let words = "Group g is not a consumer group.".to_owned();
    assert_eq!(not_joining, (ErrorCode::GroupIdNotFound, words));
    group.reloads();
}

#[test]
fn what_a_custom_assignor_keeps_is_not_lost() {
    for (bytes, code) in [
        (
            Assignment {
                user_data: Some(Bytes::from_static(b"mine")),
                ..Assignment::default()
            }
            .encode(1),
            ErrorCode::GroupIdNotFound,
        ),
        (vec![1], ErrorCode::UnknownServerError),
    ] {
        let mut group = story();
        let (member, ticket) = group.enters_classic();
        group.sleeps(secs(1));
        group.joined(ticket).unwrap();
        let all = vec![(member.clone(), Bytes::from(bytes))];
        group.syncs_classic(&member, 1, all);
        assert_eq!(group.refuses(join("new", &["t"])).0, code);
        // The classic group goes on as before.
        assert_eq!(group.beats(&member, 1), Ok(()));
        assert_eq!(group.state(), "Stable");
        group.reloads();
    }
}

#[test]
fn a_group_that_may_not_go_back_stays() {
    let mut group = shard(&[
        ("group.initial.rebalance.delay.ms", "0"),
        ("group.consumer.migration.policy", "upgrade"),
    ]);
    group.topic("t", 4);
    let old = group.classic_group();
    group.enters_consumer("new", &["t"]);
    group.stays("new", -1);
    assert_eq!(group.stands(), "Assigning 3");
    assert_eq!(group.beats(&old, 1), Err(ErrorCode::RebalanceInProgress));
    let told = group.joins_classic(classic(&old, "t:0,1,2,3")).unwrap();
    assert_eq!(told.generation, 3);
    assert_eq!(group.assigned_classic(&old, 3), Ok("t:0,1,2,3".into()));
    assert_eq!(group.stands(), "Stable 3");
    group.reloads();
}

#[test]
fn a_classic_member_joins_a_consumer_group() {
    let mut group = story();
    group.enters_consumer("new", &["t"]);
    let (old, ticket) = group.enters_classic();
    assert_eq!(old.len(), 22);
    let told = group.joined(ticket).unwrap();
    assert_eq!((told.error, told.generation), (ErrorCode::None, 2));
    assert_eq!(group.assigned_classic(&old, 2), Ok(String::new()));
    assert_eq!(
        group.owns("new", 1, "t:0,1,2,3").split(' ').next(),
        Some("1")
    );
    assert_eq!(group.beats(&old, 2), Ok(()));
    let kept = group.described_consumer().unwrap();
    let kept = kept.members.iter().find(|m| *m.member == *"new").unwrap();
    let kept = super::consumer_story::written(&kept.assigned);
    assert_eq!(group.owns("new", 1, &kept), "2");
    // What it waits for is free now.
    assert_eq!(group.beats(&old, 2), Err(ErrorCode::RebalanceInProgress));
    let told = group.joins_classic(classic(&old, "")).unwrap();
    assert_eq!(told.generation, 2);
    let assigned = group.assigned_classic(&old, 2).unwrap();
    assert_eq!(assigned.len(), "t:2,3".len());
    assert_eq!(group.stands(), "Stable 2");
    group.reloads();
}

#[test]
fn a_classic_member_must_fit_in() {
    let mut group = story();
    let old = group.classic_group();
    group.enters_consumer("new", &["t"]);
    let refused = |group: &mut Told, ask: JoinGroup| {
        let told = group.joins_classic(ask).unwrap();
        (told.error, told.member)
    };
    let inconsistent = (ErrorCode::InconsistentGroupProtocol, arc(""));
    let other = JoinGroup {
        protocols: vec![(arc("mine"), subscription(&["t"], ""))],
        ..classic("", "")
    };
    assert_eq!(refused(&mut group, other), inconsistent);
    let other = JoinGroup {
        protocol_type: arc("connect"),
        ..classic("", "")
    };
    assert_eq!(refused(&mut group, other), inconsistent);
    let unreadable = JoinGroup {
        protocols: vec![(arc("range"), Bytes::from_static(b"\0"))],
        ..classic(&old, "")
    };
    assert_eq!(refused(&mut group, unreadable), inconsistent);
    // Those of the new protocol have no business with the old requests.
    assert_eq!(group.beats("new", 2), Err(ErrorCode::UnknownMemberId));
    let sync = group.assigned_classic("new", 2);
    assert_eq!(sync, Err(ErrorCode::UnknownMemberId));
    let sync = group.assigned_classic(&old, 5);
    assert_eq!(sync, Err(ErrorCode::IllegalGeneration));
    assert_eq!(
        group.assigned_classic("who", 2),
        Err(ErrorCode::UnknownMemberId)
    );
    assert_eq!(group.beats(&old, 7), Err(ErrorCode::IllegalGeneration));
    group.reloads();
}

#[test]
fn a_classic_member_that_does_not_join_or_sync_is_removed() {
    let mut group = story();
    let old = group.classic_group();
    group.enters_consumer("new", &["t"]);
    for _ in 0..12 {
        assert_eq!(group.beats(&old, 1), Err(ErrorCode::RebalanceInProgress));
        group.stays("new", 2);
        group.sleeps(secs(5));
    }
    group.sleeps(secs(1));
    assert_eq!(group.beats(&old, 1), Err(ErrorCode::UnknownMemberId));
    assert_eq!(group.stays("new", 2), "3 = t:0,1,2,3");
    group.reloads();
    // One that joined and never synced.
    let mut group = story();
    group.topic("u", 1);
    group.enters_consumer("new", &["u"]);
    let (other, ticket) = group.enters_classic();
    let generation = group.joined(ticket).unwrap().generation;
    assert_eq!(group.stays("new", 1), "2");
    for _ in 0..13 {
        let _ = group.beats(&other, generation);
        group.stays("new", 2);
        group.sleeps(secs(5));
    }
    let known = group.described_consumer().unwrap().members.len();
    assert_eq!(known, 1);
    group.reloads();
}

#[test]
fn a_silent_classic_member_loses_its_own_session() {
    let mut group = story();
    let old = group.classic_group();
    group.enters_consumer("new", &["t"]);
    group.sleeps(secs(9));
    assert_eq!(group.beats(&old, 1), Err(ErrorCode::RebalanceInProgress));
    group.reloads();
    group.sleeps(secs(11));
    assert_eq!(group.stays("new", 2), "3 = t:0,1,2,3");
    group.reloads();
}

#[test]
fn a_member_may_change_its_protocol_itself() {
    let mut group = story();
    let old = group.classic_group();
    group.enters_consumer("new", &["t"]);
    assert_eq!(group.enters_consumer(&old, &["t"]), "2 = t:0,1");
    assert!(
        group
            .described_consumer()
            .unwrap()
            .members
            .iter()
            .all(|m| !m.is_classic)
    );
    assert_eq!(group.beats(&old, 2), Err(ErrorCode::UnknownMemberId));
    group.reloads();
}

#[test]
fn texts_that_no_record_has_room_for_are_refused() {
    let long: Arc<str> = "x".repeat(33_000).into();
    let asks = [
        JoinGroup {
            instance: Some(long.clone()),
            ..classic("", "")
        },
        JoinGroup {
            client: Client {
                id: long.clone(),
                host: arc("/127.0.0.1"),
            },
            ..classic("", "")
        },
        JoinGroup {
            protocol_type: long.clone(),
            ..classic("", "")
        },
        JoinGroup {
            protocols: vec![(long.clone(), subscription(&["t"], ""))],
            ..classic("", "")
        },
        classic(&long, ""),
    ];
    let mut group = story();
    for ask in asks {
        let told = group.joins_classic(ask).unwrap();
        assert_eq!(told.error, ErrorCode::InvalidRequest);
    }
    assert!(group.listed().is_empty());
    group.reloads();
}

#[test]
fn a_group_that_would_not_fit_its_record_does_not_change() {
    let mut group = story();
    // More topics than a record of these stories may have.
    let names: Vec<String> = (0..900).map(|n| format!("topic-{n:06}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let refused = group.refuses(join("big", &names));
    assert_eq!(refused.0, ErrorCode::UnknownServerError);
    assert!(group.listed().is_empty());
    // Each fits, all together do not: the group stays one of the new protocol.
    group.enters_consumer("new", &["t"]);
    for _ in 0..3 {
        let ask = JoinGroup {
            needs_member_id: false,
            protocols: vec![(arc("range"), subscription(&names[..250], ""))],
            ..classic("", "")
        };
        assert_eq!(group.joins_classic(ask).unwrap().error, ErrorCode::None);
    }
    assert_eq!(group.stays("new", -1), "-1");
    assert_eq!(group.listed(), ["g consumer Assigning"]);
    group.reloads();
}

#[test]
fn a_static_member_goes_over_and_back_in_its_place() {
    let mut group = story();
    let fixed = |member: &str| JoinGroup {
        instance: Some(arc("i")),
        ..classic(member, "")
    };
    let ticket = group.says(fixed(""));
    group.sleeps(secs(1));
    let old = group.joined(ticket).unwrap().member;
    let all = vec![(old.clone(), assignment(&[0, 1, 2, 3]))];
    let ticket = group.syncs_classic(&old, 1, all);
    assert!(group.assigned(ticket).unwrap().is_ok());
    // Rolled to the new protocol: the same place, the same partitions.
    let mut ask = join("new", &["t"]);
    ask.instance = Some(arc("i"));
    let told = group.says_beat(ask);
    assert!(told.ends_with("= t:0,1,2,3"), "{told}");
    assert_eq!(group.described_consumer().unwrap().members.len(), 1);
    group.reloads();
    // And back: the group is classic again, and nothing moves.
    let told = group.joins_classic(fixed("")).unwrap();
    assert_eq!(told.error, ErrorCode::None);
    assert_eq!(group.state(), "Stable");
    let sync = group.says(SyncGroup {
        group: arc("g"),
        generation: told.generation,
        member: told.member,
        instance: Some(arc("i")),
        protocol_type: Some(arc("consumer")),
        protocol: Some(arc("range")),
        assignments: Vec::new(),
    });
    assert_eq!(group.assigned(sync), Some(Ok("t:0,1,2,3".into())));
    group.reloads();
}

#[test]
fn a_classic_group_of_kafkas_delay_goes_over_before_its_first_rebalance_ends() {
    let mut group = shard(KAFKAS);
    group.topic("t", 4);
    let (old, ticket) = group.enters_classic();
    assert_eq!(group.enters_consumer("new", &["t"]), "1 = t:2,3");
    let told = group.joined(ticket).unwrap();
    assert_eq!(told.error, ErrorCode::RebalanceInProgress);
    let told = group.joins_classic(classic(&old, "")).unwrap();
    assert_eq!(told.generation, 1);
    assert_eq!(group.assigned_classic(&old, 1), Ok("t:0,1".into()));
    group.reloads();
}
