//! Stories of the classic protocol: every state, every race, everybody who is late.

use std::time::Duration;

use super::ask::{Heartbeat, LeaveGroup, LeavingMember};
use super::records::GroupRecord;
use super::story::{KAFKAS, Told, Wants, arc, secs, shard};
use crate::protocol::error::ErrorCode;
use crate::protocol::error::ErrorCode::{
    FencedInstanceId, GroupMaxSizeReached, IllegalGeneration, InconsistentGroupProtocol,
    InvalidGroupId, InvalidSessionTimeout, MemberIdRequired, None as NoError, RebalanceInProgress,
    UnknownMemberId, UnknownServerError,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A group that waits three seconds for its first members, as Kafka's do.
fn group() -> Told {
    shard(KAFKAS)
}

/// Wants of a static member.
fn instance(name: &'static str) -> Wants {
    Wants {
        instance: Some(name),
        ..Wants::default()
    }
}

#[test]
fn a_new_member_comes_back_with_its_id_and_leads_alone() {
    let mut it = group();
    let first = it.joins("");
    let told = it.joined(first).unwrap();
    assert_eq!(told.error, MemberIdRequired);
    assert!(told.member.starts_with("client-"), "{}", told.member);
    assert_eq!(it.state(), "Empty");
    let again = it.joins(&told.member);
    assert_eq!(it.join_code(again), None);
    assert_eq!(it.state(), "PreparingRebalance");
    it.sleeps(secs(3));
    let joined = it.joined(again).unwrap();
    assert_eq!((joined.error, joined.generation), (NoError, 1));
    assert_eq!(joined.leader, told.member);
    assert_eq!(joined.protocol.as_deref(), Some("range"));
    assert_eq!(joined.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(joined.members.len(), 1);
    assert_eq!(&joined.members[0].metadata[..], b"of-range");
    assert_eq!(it.state(), "CompletingRebalance");
    it.all_sync(&[told.member]);
    assert_eq!(it.state(), "Stable");
    it.reloads();
    assert_eq!(it.state(), "Stable");
}

#[test]
fn nothing_is_left_of_a_group_whose_first_member_never_came_back() {
    let mut it = group();
    it.joins("");
    assert_eq!(it.state(), "Empty");
    assert!(it.written().is_empty());
    it.sleeps(secs(10));
    assert_eq!(it.state(), "Dead");
    let again = it.joins("");
    let told = it.joined(again).unwrap();
    it.leaves(&told.member, None).unwrap();
    assert_eq!(it.state(), "Dead");
    it.reloads();
}

#[test]
fn an_old_client_is_a_member_at_once() {
    let mut it = group();
    it.wants.version = 3;
    let first = it.joins("");
    assert_eq!(it.join_code(first), None);
    it.sleeps(secs(3));
    assert_eq!(it.joined(first).unwrap().generation, 1);
    it.reloads();
}

#[test]
fn what_is_written_is_what_kafka_writes() {
    let mut it = group();
    let members = it.stable(1);
    let written = it.written();
    let [
        GroupRecord::GroupMetadata(_, Some(reserved)),
        GroupRecord::GroupMetadata(key, Some(value)),
    ] = &written[..]
    else {
        panic!("{written:?}");
    };
    assert_eq!((&*reserved.protocol_type, reserved.generation), ("", 0));
    assert!(reserved.members.is_empty() && reserved.protocol.is_none());
    assert_eq!(&*key.group, "g");
    assert_eq!((&*value.protocol_type, value.generation), ("consumer", 1));
    assert_eq!(value.protocol.as_deref(), Some("range"));
    assert_eq!(value.leader.as_ref(), Some(&members[0]));
    assert_eq!(value.members.len(), 1);
    let member = &value.members[0];
    assert_eq!(
        (&*member.client_id, &*member.client_host),
        ("client", "/127.0.0.1")
    );
    assert_eq!(
        (member.session_timeout, member.rebalance_timeout),
        (10_000, 60_000)
    );
    assert_eq!(&member.subscription[..], b"of-range");
    assert_eq!(&member.assignment[..], members[0].as_bytes());

    it.leaves(&members[0], None).unwrap();
    let written = it.written();
    let [GroupRecord::GroupMetadata(_, Some(empty))] = &written[..] else {
        panic!("{written:?}");
    };
    assert_eq!((&*empty.protocol_type, empty.generation), ("consumer", 2));
    assert!(empty.members.is_empty() && empty.protocol.is_none() && empty.leader.is_none());
    it.reloads();
    assert_eq!(it.state(), "Empty");
}

#[test]
fn the_first_rebalance_is_extended_by_those_who_come() {
    let mut it = group();
    let (_, first) = it.enters();
    it.sleeps(secs(2));
    let (_, second) = it.enters();
    it.sleeps(secs(2));
    assert_eq!(it.join_code(first), None);
    it.sleeps(secs(2));
    assert_eq!(it.joined(first).unwrap().generation, 1);
    assert_eq!(it.joined(second).unwrap().generation, 1);
    it.reloads();
}

#[test]
fn the_first_rebalance_waits_no_longer_than_its_members_would() {
    let mut it = group();
    it.wants.rebalance = secs(7);
    let (_, first) = it.enters();
    for _ in 0..3 {
        it.sleeps(ms(2300));
        it.enters();
    }
    it.sleeps(ms(200));
    assert_eq!(it.joined(first).unwrap().generation, 1);
}

#[test]
fn unless_told_otherwise_a_lone_member_starts_at_once() {
    let mut it = shard(&[]);
    let (_, first) = it.enters();
    it.sleeps(ms(29));
    assert_eq!(it.join_code(first), None);
    it.sleeps(ms(1));
    assert_eq!(it.joined(first).unwrap().generation, 1);
    it.reloads();
}

#[test]
fn and_many_who_start_together_share_one_rebalance() {
    let mut it = shard(&[]);
    let mut tickets = Vec::new();
    for _ in 0..50 {
        let first = it.joins("");
        let told = it.joined(first).unwrap();
        it.sleeps(ms(20));
        tickets.push(it.joins(&told.member));
        it.sleeps(ms(15));
    }
    it.sleeps(ms(30));
    for ticket in tickets {
        assert_eq!(it.joined(ticket).unwrap().generation, 1);
    }
    it.reloads();
}

#[test]
fn but_nobody_waits_longer_than_kafkas_three_seconds() {
    let mut it = shard(&[]);
    let (_, first) = it.enters();
    for _ in 0..149 {
        it.sleeps(ms(20));
        assert_eq!(it.join_code(first), None);
        it.enters();
    }
    it.sleeps(ms(20));
    assert_eq!(it.joined(first).unwrap().generation, 1);
}

#[test]
fn the_barrier_ends_when_the_last_member_is_there() {
    let mut it = group();
    let members = it.stable(3);
    let leader = it.joins(&members[0]);
    assert_eq!(it.state(), "PreparingRebalance");
    for member in &members[1..] {
        assert_eq!(it.beats(member, 1), Err(RebalanceInProgress));
    }
    let second = it.joins(&members[1]);
    assert_eq!(it.join_code(leader), None);
    let third = it.joins(&members[2]);
    for ticket in [leader, second, third] {
        assert_eq!(it.joined(ticket).unwrap().generation, 2);
    }
    it.reloads();
}

// B114
#[test]
fn an_id_that_is_not_taken_up_holds_the_others_for_one_session() {
    let mut it = group();
    let members = it.stable(1);
    let abandoned = it.joins("");
    assert_eq!(it.join_code(abandoned), Some(MemberIdRequired));
    assert_eq!(it.state(), "Stable");
    let rejoin = it.joins(&members[0]);
    assert_eq!(it.join_code(rejoin), None);
    it.sleeps(secs(9));
    assert_eq!(it.join_code(rejoin), None);
    it.sleeps(secs(1));
    assert_eq!(it.joined(rejoin).unwrap().generation, 2);
    it.reloads();
}

// B114, B115
#[test]
fn a_new_member_that_went_away_while_it_waited_does_not_hold_the_others() {
    let mut it = group();
    it.wants.version = 3;
    it.joins("");
    it.joins("");
    it.sleeps(secs(6));
    // Two members, of which the client of one is gone: it never syncs.
    assert_eq!((it.state(), it.member_count()), ("CompletingRebalance", 2));
    let alive = it.described().unwrap().members[0].member.clone();
    let gone = it.described().unwrap().members[1].member.clone();
    assert_eq!(it.beats(&alive, 1), Ok(()));
    let leader = it.syncs(&alive, 1, &[]);
    it.sleeps(secs(5));
    assert_eq!(it.beats(&alive, 1), Ok(()));
    it.sleeps(secs(6));
    assert_eq!(it.beats(&gone, 1), Err(UnknownMemberId));
    let rejoin = it.joins(&alive);
    let told = it.joined(rejoin).unwrap();
    assert_eq!((told.generation, told.members.len()), (2, 1));
    let _ = leader;
    it.reloads();
}

#[test]
fn who_does_not_join_again_in_time_is_out() {
    let mut it = group();
    it.wants.rebalance = secs(5);
    it.wants.session = secs(30);
    let members = it.stable(3);
    let first = it.joins(&members[0]);
    let second = it.joins(&members[1]);
    it.sleeps(secs(5));
    let told = it.joined(first).unwrap();
    assert_eq!((told.generation, told.members.len()), (2, 2));
    assert_eq!(it.joined(second).unwrap().generation, 2);
    assert_eq!(it.beats(&members[2], 1), Err(UnknownMemberId));
    it.reloads();
}

#[test]
fn who_does_not_sync_in_time_is_out_and_the_others_start_over() {
    let mut it = group();
    it.wants.rebalance = secs(5);
    it.wants.session = secs(30);
    let (first, one) = it.enters();
    let (second, two) = it.enters();
    it.sleeps(secs(6));
    assert_eq!(it.joined(one).unwrap().error, NoError);
    let leads = it.joined(two).unwrap().leader;
    let follower = if leads == first { &second } else { &first };
    let waiting = it.syncs(follower, 1, &[]);
    it.sleeps(secs(5));
    assert_eq!(it.synced(waiting), Some(Err(RebalanceInProgress)));
    assert_eq!((it.state(), it.member_count()), ("PreparingRebalance", 1));
    let again = it.joins(follower);
    assert_eq!(it.joined(again).unwrap().generation, 2);
    it.reloads();
}

#[test]
fn a_leader_that_is_late_gives_way() {
    let mut it = group();
    it.wants.rebalance = secs(5);
    it.wants.session = secs(60);
    let members = it.stable(2);
    it.leaves(&members[0], None).unwrap();
    let again = it.joins(&members[1]);
    let told = it.joined(again).unwrap();
    assert_eq!((told.generation, &told.leader), (2, &members[1]));
    it.reloads();
}

#[test]
fn a_silent_member_loses_its_session_and_the_others_rebalance() {
    let mut it = group();
    let members = it.stable(2);
    it.sleeps(secs(6));
    it.beats(&members[0], 1).unwrap();
    it.sleeps(secs(5));
    assert_eq!(it.beats(&members[0], 1), Err(RebalanceInProgress));
    assert_eq!(it.beats(&members[1], 1), Err(UnknownMemberId));
    let again = it.joins(&members[0]);
    assert_eq!(it.joined(again).unwrap().members.len(), 1);
    it.reloads();
}

#[test]
fn a_group_whose_members_all_fall_silent_is_empty() {
    let mut it = group();
    it.stable(3);
    it.sleeps(secs(11));
    it.sleeps(secs(60));
    assert_eq!((it.state(), it.member_count()), ("Empty", 0));
    it.reloads();
}

#[test]
fn a_member_that_waits_for_the_others_need_not_speak() {
    let mut it = group();
    let members = it.stable(2);
    let waiting = it.joins(&members[0]);
    it.beats(&members[1], 1).unwrap_err();
    for _ in 0..4 {
        it.sleeps(secs(9));
        assert_eq!(it.beats(&members[1], 1), Err(RebalanceInProgress));
    }
    assert_eq!(it.join_code(waiting), None);
    let other = it.joins(&members[1]);
    assert_eq!(it.join_code(waiting), Some(NoError));
    assert_eq!(it.join_code(other), Some(NoError));
    it.reloads();
}

#[test]
fn who_waited_for_a_leader_that_died_is_still_a_member() {
    let mut it = group();
    let members = it.stable(3);
    let joining: Vec<_> = members.iter().map(|member| it.joins(member)).collect();
    let leader = it.joined(joining[0]).unwrap().leader;
    let followers: Vec<_> = members.iter().filter(|it| **it != leader).collect();
    // All sessions began with the answers, and so the followers' are over with the leader's.
    let generation = it.generation();
    let waiting: Vec<_> = followers
        .iter()
        .map(|member| it.syncs(member, generation, &[]))
        .collect();
    it.sleeps(secs(10));
    for ticket in waiting {
        assert_eq!(it.synced(ticket), Some(Err(RebalanceInProgress)));
    }
    assert_eq!((it.state(), it.member_count()), ("PreparingRebalance", 2));
    it.sleeps(secs(9));
    let again: Vec<_> = followers.iter().map(|member| it.joins(member)).collect();
    for ticket in again {
        assert_eq!(it.join_code(ticket), Some(NoError));
    }
    // Their sessions run again: who falls silent now is out.
    it.sleeps(secs(20));
    assert_eq!(it.member_count(), 0);
    it.reloads();
}

#[test]
fn a_follower_that_missed_its_answer_is_told_again() {
    let mut it = group();
    let members = it.stable(2);
    let again = it.joins(&members[1]);
    let told = it.joined(again).unwrap();
    assert_eq!((told.error, told.generation), (NoError, 1));
    assert!(told.members.is_empty());
    assert_eq!(it.state(), "Stable");
    let sync = it.syncs(&members[1], 1, &[]);
    assert_eq!(it.synced(sync), Some(Ok(members[1].to_string())));
    it.reloads();
}

#[test]
fn other_metadata_or_the_leader_rebalances() {
    let mut it = group();
    let members = it.stable(2);
    it.wants.protocols = vec![("range", "changed")];
    let changed = it.joins(&members[1]);
    assert_eq!(it.join_code(changed), None);
    assert_eq!(it.state(), "PreparingRebalance");
    let leader = it.joins(&members[0]);
    assert_eq!(it.joined(leader).unwrap().generation, 2);
    // Before the leader has synced, the same metadata is no news, and other metadata is.
    it.joined(changed).unwrap();
    let same = it.joins(&members[1]);
    assert_eq!(it.joined(same).unwrap().generation, 2);
    it.wants.protocols = vec![("range", "changed again")];
    let other = it.joins(&members[1]);
    assert_eq!(it.join_code(other), None);
    it.reloads();
}

// B113
#[test]
fn each_state_has_its_words_for_members_and_strangers() {
    let mut it = group();
    assert_eq!(it.beats("x", 0), Err(UnknownMemberId));
    let gone = it.syncs("x", 0, &[]);
    assert_eq!(it.synced(gone), Some(Err(UnknownMemberId)));
    assert_eq!(it.leaves("x", None), Err(UnknownMemberId));

    let members = it.stable(2);
    assert_eq!(it.beats(&members[1], 0), Err(IllegalGeneration));
    assert_eq!(it.beats(&members[1], 2), Err(IllegalGeneration));
    assert_eq!(it.beats("x", 1), Err(UnknownMemberId));
    let old = it.syncs(&members[1], 0, &[]);
    assert_eq!(it.synced(old), Some(Err(IllegalGeneration)));
    let stranger = it.syncs("x", 1, &[]);
    assert_eq!(it.synced(stranger), Some(Err(UnknownMemberId)));
    let unknown = it.joins("x");
    assert_eq!(it.join_code(unknown), Some(UnknownMemberId));

    // Preparing.
    let leader = it.joins(&members[0]);
    assert_eq!(it.beats(&members[1], 1), Err(RebalanceInProgress));
    assert_eq!(it.beats(&members[1], 0), Err(IllegalGeneration));
    let early = it.syncs(&members[1], 1, &[]);
    assert_eq!(it.synced(early), Some(Err(RebalanceInProgress)));

    // Completing.
    let other = it.joins(&members[1]);
    assert_eq!(it.join_code(leader), Some(NoError));
    assert_eq!(it.join_code(other), Some(NoError));
    assert_eq!(it.beats(&members[1], 2), Ok(()));
    assert_eq!(it.beats(&members[1], 1), Err(IllegalGeneration));
    it.all_sync(&members);

    // Empty.
    for member in &members {
        it.leaves(member, None).unwrap();
    }
    assert_eq!(it.state(), "Empty");
    assert_eq!(it.beats(&members[0], 3), Err(UnknownMemberId));
    let late = it.joins(&members[0]);
    assert_eq!(it.join_code(late), Some(UnknownMemberId));
    it.reloads();
}

#[test]
fn a_heartbeat_with_the_wrong_instance_is_refused() {
    let mut it = group();
    it.wants = instance("i");
    let ticket = it.joins("");
    it.sleeps(secs(3));
    let member = it.joined(ticket).unwrap().member;
    let mut beat = Heartbeat {
        group: it.group.clone(),
        generation: 1,
        member,
        instance: Some(arc("i")),
    };
    assert_eq!(it.asks(beat.clone()), Ok(()));
    beat.instance = Some(arc("other"));
    assert_eq!(it.asks(beat.clone()), Err(UnknownMemberId));
    beat.instance = Some(arc("i"));
    beat.member = arc("i-somebody");
    assert_eq!(it.asks(beat), Err(FencedInstanceId));
}

// B116
#[test]
fn a_static_member_comes_back_without_a_rebalance() {
    let mut it = group();
    it.wants = instance("i");
    let ticket = it.joins("");
    let (dynamic, other) = {
        it.wants = Wants::default();
        it.enters()
    };
    it.sleeps(secs(6));
    let old = it.joined(ticket).unwrap();
    assert!(old.member.starts_with("i-"), "{}", old.member);
    it.joined(other).unwrap();
    let members = match old.leader == old.member {
        true => vec![old.member.clone(), dynamic],
        false => vec![dynamic, old.member.clone()],
    };
    it.all_sync(&members);
    it.reloads();

    it.wants = instance("i");
    let back = it.joins("");
    let told = it.joined(back).unwrap();
    assert_eq!((told.error, told.generation), (NoError, 1));
    assert_ne!(told.member, old.member);
    let leads = old.leader == old.member;
    assert_eq!(told.skip_assignment, leads);
    assert_eq!(told.members.len(), if leads { 2 } else { 0 });
    assert_eq!(it.state(), "Stable");
    let sync = it.syncs(&told.member, 1, &[]);
    assert_eq!(it.synced(sync), Some(Ok(old.member.to_string())));
    // The old id is fenced where it says whose it is, and unknown where it does not.
    let beat = Heartbeat {
        group: it.group.clone(),
        generation: 1,
        member: old.member.clone(),
        instance: Some(arc("i")),
    };
    assert_eq!(it.asks(beat), Err(FencedInstanceId));
    assert_eq!(it.beats(&old.member, 1), Err(UnknownMemberId));
    let fenced = it.joins(&old.member);
    assert_eq!(it.join_code(fenced), Some(FencedInstanceId));
    it.reloads();
    assert_eq!(it.beats(&told.member, 1), Ok(()));
}

#[test]
fn a_static_leader_that_cannot_skip_is_told_of_its_old_self() {
    let mut it = group();
    it.wants = instance("i");
    it.wants.version = 8;
    let ticket = it.joins("");
    it.sleeps(secs(3));
    let old = it.joined(ticket).unwrap().member;
    it.all_sync(std::slice::from_ref(&old));
    let back = it.joins("");
    let told = it.joined(back).unwrap();
    assert_eq!((told.leader, told.skip_assignment), (old, false));
    assert!(told.members.is_empty());
}

#[test]
fn two_members_of_one_instance_fence_each_other() {
    let mut it = group();
    it.wants = instance("i");
    let first = it.joins("");
    let second = it.joins("");
    let fenced = it.joined(first).unwrap();
    assert_eq!(fenced.error, FencedInstanceId);
    it.sleeps(secs(3));
    let told = it.joined(second).unwrap();
    assert_eq!((told.error, told.members.len()), (NoError, 1));
    // While it waits for its assignment a third one takes its place.
    let third = it.joins("");
    assert_eq!(it.beats(&told.member, 1), Err(UnknownMemberId));
    assert_eq!(it.joined(third).unwrap().generation, 2);
    it.reloads();
}

#[test]
fn a_static_member_that_votes_otherwise_rebalances() {
    let mut it = group();
    it.wants = instance("i");
    it.wants.protocols = vec![("a", "1"), ("b", "2")];
    let ticket = it.joins("");
    it.sleeps(secs(3));
    let old = it.joined(ticket).unwrap();
    assert_eq!(old.protocol.as_deref(), Some("a"));
    it.all_sync(&[old.member]);
    it.wants.protocols = vec![("b", "2"), ("a", "1")];
    let back = it.joins("");
    let told = it.joined(back).unwrap();
    assert_eq!((told.generation, told.protocol.as_deref()), (2, Some("b")));
    it.reloads();
}

#[test]
fn static_members_may_be_away_during_a_rebalance() {
    let mut it = group();
    it.wants = instance("i");
    it.wants.session = secs(600);
    it.wants.rebalance = secs(5);
    let away = it.joins("");
    it.wants.instance = None;
    let (here, ticket) = it.enters();
    it.sleeps(secs(6));
    let of_static = it.joined(away).unwrap();
    it.joined(ticket).unwrap();
    let members = match of_static.leader == here {
        true => vec![here.clone(), of_static.member],
        false => vec![of_static.member, here.clone()],
    };
    it.all_sync(&members);
    it.wants.protocols = vec![("range", "changed")];
    let again = it.joins(&here);
    it.sleeps(secs(5));
    let told = it.joined(again).unwrap();
    assert_eq!((told.generation, told.members.len()), (2, 2));
    assert_eq!(told.leader, here);
    it.reloads();
}

#[test]
fn an_operator_removes_an_instance() {
    let mut it = group();
    it.wants = instance("i");
    let ticket = it.joins("");
    it.sleeps(secs(3));
    let member = it.joined(ticket).unwrap().member;
    it.all_sync(std::slice::from_ref(&member));
    assert_eq!(it.leaves("", Some("nobody")), Err(UnknownMemberId));
    assert_eq!(it.leaves("", None), Err(UnknownMemberId));
    assert_eq!(it.leaves("i-other", Some("i")), Err(FencedInstanceId));
    assert_eq!(it.leaves("", Some("i")), Ok(()));
    assert_eq!(it.state(), "Empty");
    assert_eq!(it.beats(&member, 1), Err(UnknownMemberId));
    it.reloads();
}

// B117
#[test]
fn members_leave_together_each_with_its_answer() {
    let mut it = group();
    it.wants = instance("i");
    it.joins("");
    it.wants = Wants::default();
    let (dynamic, _) = it.enters();
    it.sleeps(secs(6));
    let leaving = |member: &str, instance: Option<&str>| LeavingMember {
        member: arc(member),
        instance: instance.map(arc),
    };
    let left = it.asks(LeaveGroup {
        group: it.group.clone(),
        members: vec![
            leaving(&dynamic, None),
            leaving("x", None),
            leaving("", Some("i")),
        ],
    });
    assert_eq!(left, [Ok(()), Err(UnknownMemberId), Ok(())]);
    assert_eq!(it.state(), "Empty");
    it.reloads();
}

#[test]
fn whoever_leaves_while_it_waits_is_told() {
    let mut it = group();
    let members = it.stable(3);
    let waiting = it.joins(&members[0]);
    it.leaves(&members[0], None).unwrap();
    assert_eq!(it.join_code(waiting), Some(UnknownMemberId));
    let one = it.joins(&members[1]);
    let two = it.joins(&members[2]);
    assert_eq!(it.joined(one).unwrap().generation, 2);
    assert_eq!(it.joined(two).unwrap().generation, 2);
    let (leader, follower) = (&members[1], &members[2]);
    let syncing = it.syncs(follower, 2, &[]);
    it.leaves(leader, None).unwrap();
    assert_eq!(it.synced(syncing), Some(Err(RebalanceInProgress)));
    it.reloads();
}

#[test]
fn the_last_one_missing_leaves_and_the_others_go_on() {
    let mut it = group();
    let members = it.stable(2);
    let waiting = it.joins(&members[0]);
    it.leaves(&members[1], None).unwrap();
    assert_eq!(it.joined(waiting).unwrap().members.len(), 1);
    it.reloads();
}

// B131
#[test]
fn groups_and_sessions_have_limits() {
    let options = [
        ("group.max.size", "2"),
        ("group.initial.rebalance.delay.ms", "0"),
    ];
    let mut it = shard(&options);
    for session in [secs(5), secs(1801)] {
        it.wants.session = session;
        let refused = it.joins("");
        assert_eq!(it.join_code(refused), Some(InvalidSessionTimeout));
    }
    it.wants = Wants::default();
    it.group = arc("");
    let refused = it.joins("");
    assert_eq!(it.join_code(refused), Some(InvalidGroupId));
    assert_eq!(it.beats("x", 1), Err(InvalidGroupId));
    let refused = it.syncs("x", 1, &[]);
    assert_eq!(it.synced(refused), Some(Err(InvalidGroupId)));
    it.group = arc("g");
    let members = it.stable(2);
    let third = it.joins("");
    assert_eq!(it.join_code(third), Some(GroupMaxSizeReached));
    let generation = it.generation();
    assert_eq!(it.beats(&members[1], generation), Ok(()));
    it.reloads();
}

#[test]
fn a_static_member_gets_in_while_fewer_than_allowed_wait() {
    let options = [
        ("group.max.size", "2"),
        ("group.initial.rebalance.delay.ms", "0"),
    ];
    let mut it = shard(&options);
    let members = it.stable(2);
    let one = it.joins(&members[0]);
    it.wants = instance("i");
    let fixed = it.joins("");
    assert_eq!(it.join_code(fixed), None);
    it.wants = Wants::default();
    let late = it.joins(&members[1]);
    assert_eq!(it.join_code(late), Some(GroupMaxSizeReached));
    assert_eq!(it.joined(one).unwrap().members.len(), 2);
    assert_eq!(it.join_code(fixed), Some(NoError));
    it.reloads();
}

#[test]
fn a_group_that_is_loaded_larger_than_allowed_joins_again() {
    let mut it = group();
    it.stable(3);
    let records = it.written();
    let mut smaller = shard(&[("group.max.size", "2")]);
    let entries = records.into_iter().map(super::Entry::Record).collect();
    smaller.story.writes(entries);
    smaller.reloads();
    assert_eq!(smaller.state(), "PreparingRebalance");
}

// B132
#[test]
fn a_member_must_share_a_protocol_with_all_others() {
    let mut it = group();
    it.wants.kind = "";
    assert_refused(&mut it);
    it.wants.kind = "consumer";
    it.wants.protocols = Vec::new();
    assert_refused(&mut it);
    assert!(it.listed().is_empty());

    it.wants.protocols = vec![("a", "1"), ("b", "1")];
    it.enters();
    it.wants.protocols = vec![("c", "1")];
    assert_refused(&mut it);
    it.wants.kind = "connect";
    it.wants.protocols = vec![("a", "1")];
    assert_refused(&mut it);
    it.wants.kind = "consumer";
    it.wants.protocols = vec![("c", "1"), ("b", "2")];
    let (_, second) = it.enters();
    it.sleeps(secs(6));
    assert_eq!(it.joined(second).unwrap().protocol.as_deref(), Some("b"));
    it.reloads();
}

#[track_caller]
fn assert_refused(it: &mut Told) {
    let refused = it.joins("");
    assert_eq!(it.join_code(refused), Some(InconsistentGroupProtocol));
}

#[test]
fn the_protocol_is_voted_for() {
    let mut it = group();
    let ballots: [&[(&str, &str)]; 3] = [
        &[("a", ""), ("b", ""), ("c", "")],
        &[("c", ""), ("b", ""), ("a", "")],
        &[("c", ""), ("d", ""), ("a", ""), ("b", "")],
    ];
    let mut last = None;
    for ballot in ballots {
        it.wants.protocols = ballot.to_vec();
        last = Some(it.enters().1);
    }
    it.sleeps(secs(9));
    let told = it.joined(last.unwrap()).unwrap();
    assert_eq!(told.protocol.as_deref(), Some("c"));
}

#[test]
fn a_sync_must_name_the_group_s_protocol() {
    let mut it = group();
    let (member, ticket) = it.enters();
    it.sleeps(secs(3));
    it.joined(ticket).unwrap();
    let mut ask = super::ask::SyncGroup {
        group: it.group.clone(),
        generation: 1,
        member,
        instance: None,
        protocol_type: Some(arc("consumer")),
        protocol: Some(arc("roundrobin")),
        assignments: Vec::new(),
    };
    let refused = it.says(ask.clone());
    assert_eq!(it.synced(refused), Some(Err(InconsistentGroupProtocol)));
    ask.protocol = Some(arc("range"));
    ask.protocol_type = Some(arc("connect"));
    let refused = it.says(ask.clone());
    assert_eq!(it.synced(refused), Some(Err(InconsistentGroupProtocol)));
    ask.protocol_type = Some(arc("consumer"));
    let taken = it.says(ask);
    assert_eq!(it.synced(taken), Some(Ok(String::new())));
    it.reloads();
}

#[test]
fn an_assignment_too_large_to_write_is_refused_and_the_group_goes_on() {
    let mut it = group();
    let (member, ticket) = it.enters();
    it.sleeps(secs(3));
    it.joined(ticket).unwrap();
    let large = super::ask::SyncGroup {
        group: it.group.clone(),
        generation: 1,
        member: member.clone(),
        instance: None,
        protocol_type: None,
        protocol: None,
        assignments: vec![(member.clone(), vec![0; 20_000].into())],
    };
    let refused = it.says(large);
    assert_eq!(it.synced(refused), Some(Err(UnknownServerError)));
    let again = it.joins(&member);
    assert_eq!(it.joined(again).unwrap().generation, 2);
    it.all_sync(&[member]);
    it.reloads();
}

#[test]
fn what_was_not_written_is_lost_with_the_coordinator_and_members_start_over() {
    let mut it = group();
    let members = it.stable(2);
    let waiting = it.joins(&members[0]);
    it.reloads();
    assert_eq!(it.join_code(waiting), None);
    assert_eq!((it.state(), it.generation()), ("Stable", 1));
    assert_eq!(it.beats(&members[0], 1), Ok(()));
    it.sleeps(secs(5));
    it.reloads();
    // Each has a whole session to be heard of by the coordinator of now.
    it.sleeps(secs(9));
    assert_eq!(it.member_count(), 2);
    it.sleeps(secs(1));
    assert_eq!(it.beats(&members[0], 1), Err(UnknownMemberId));
}

#[test]
fn a_second_call_takes_the_place_of_the_first() {
    let mut it = group();
    let members = it.stable(2);
    let first = it.joins(&members[0]);
    let second = it.joins(&members[0]);
    assert_eq!(it.join_code(first), Some(RebalanceInProgress));
    let other = it.joins(&members[1]);
    assert_eq!(it.join_code(second), Some(NoError));
    assert_eq!(it.join_code(other), Some(NoError));
    let one = it.syncs(&members[1], 2, &[]);
    let two = it.syncs(&members[1], 2, &[]);
    assert_eq!(it.synced(one), Some(Err(RebalanceInProgress)));
    it.syncs(&members[0], 2, &members);
    assert_eq!(it.synced(two), Some(Ok(members[1].to_string())));
    it.reloads();
}

#[test]
fn metadata_is_shown_while_a_group_is_stable() {
    let mut it = group();
    let members = it.stable(1);
    let stable = it.described().unwrap();
    assert_eq!((stable.state, &*stable.protocol), ("Stable", "range"));
    assert_eq!(&stable.members[0].metadata[..], b"of-range");
    assert_eq!(&stable.members[0].assignment[..], members[0].as_bytes());
    it.joins("");
    it.joins(&members[0]);
    let preparing = it.described().unwrap();
    assert_eq!(
        (preparing.state, &*preparing.protocol),
        ("PreparingRebalance", "")
    );
    assert!(preparing.members[0].metadata.is_empty());
    assert_eq!(&preparing.members[0].assignment[..], members[0].as_bytes());
    it.sleeps(secs(11));
    let completing = it.described().unwrap();
    assert_eq!(completing.state, "CompletingRebalance");
    assert!(completing.members[0].assignment.is_empty());
    let unknown: ErrorCode = {
        it.group = arc("other");
        it.described().unwrap_err().code
    };
    assert_eq!(unknown, ErrorCode::GroupIdNotFound);
}
