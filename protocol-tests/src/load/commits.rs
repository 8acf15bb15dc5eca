//! Groups that commit: each has one member, on a connection of its own, which joined by the classic
//! protocol and commits one partition once a second at its intended time, whatever the answers do
//! (an open loop, see `paced`).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    FindCoordinatorRequest, GroupId, JoinGroupRequest, LeaveGroupRequest, OffsetCommitRequest,
    ResponseHeader, SyncGroupRequest,
};
use kafka_protocol::protocol::{Decodable, HeaderVersion, Request, StrBytes};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::frames::{i16_at, i32_at, set_correlation};
use super::{PATIENCE, latencies, note, wrong};
use crate::wire::{Connection, frame, topic_name};

/// How long before a commit the clock is watched without sleeping.
const SPIN: Duration = Duration::from_micros(40);

/// How long to wait before a coordinator that is not ready is asked again.
const AGAIN: Duration = Duration::from_millis(20);

/// COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR.
const NOT_YET: [i16; 3] = [14, 15, 16];

const MEMBER_ID_REQUIRED: i16 = 79;

const JOIN: i16 = 9;
const SYNC: i16 = 5;
const LEAVE: i16 = 5;
const COMMIT: i16 = 9;

/// Groups of one member each.
pub struct Groups {
    members: Vec<Member>,
    /// Where the error code of a commit's answer stands.
    code_at: usize,
}

struct Member {
    group: GroupId,
    id: StrBytes,
    stream: TcpStream,
    commit: Vec<u8>,
    offset_at: usize,
}

/// How the groups commit.
#[derive(Clone, Copy, Debug)]
pub struct Rhythm {
    /// How often each commits; the first time is not counted.
    pub times: u32,
    pub interval: Duration,
}

impl Groups {
    /// So many groups join, each to commit partition 0 of the topic.
    pub fn join(port: u16, count: usize, topic: &str) -> io::Result<Self> {
        let mut joining = Vec::with_capacity(count);
        for number in 0..count {
            let group = GroupId(StrBytes::from_string(format!("commits-{number}")));
            let mut connection = Connection::open_port(port);
            if number == 0 {
                find(&mut connection, &group)?;
            }
            let id = name(&mut connection, &group)?;
            connection.patience(PATIENCE);
            joining.push((group, connection, id));
        }
        for (group, connection, id) in &mut joining {
            connection.send(&frame(JOIN, 1, &join(group, id)))?;
        }
        let mut members = Vec::with_capacity(count);
        for (group, mut connection, id) in joining {
            let joined = take::<JoinGroupRequest>(&mut connection, JOIN)?;
            ok("JoinGroup", joined.error_code)?;
            let commit = commit(&group, joined.generation_id, &id, topic);
            connection.send(&frame(SYNC, 1, &sync(&group, joined.generation_id, &id)))?;
            ok(
                "SyncGroup",
                take::<SyncGroupRequest>(&mut connection, SYNC)?.error_code,
            )?;
            let (commit, offset_at) = patchable(&commit);
            let stream = connection.into_stream();
            stream.set_nonblocking(true)?;
            members.push(Member {
                group,
                id,
                stream,
                commit,
                offset_at,
            });
        }
        Ok(Self {
            members,
            // Size, correlation id, tags; throttle time; one topic and its name; one partition, its
            // number.
            code_at: 4 + 4 + 1 + 4 + 1 + 1 + topic.len() + 1 + 4,
        })
    }

    /// All commit: latencies from the intended times.
    pub fn commit(&mut self, rhythm: Rhythm) -> io::Result<Histogram<u64>> {
        let began = Instant::now() + Duration::from_millis(2);
        let count = u32::try_from(self.members.len()).map_err(wrong)?;
        let gap = rhythm.interval / count;
        let mut latencies = latencies();
        let mut flying: Vec<(usize, Instant, i32)> = Vec::new();
        let mut sent = 0;
        while sent < rhythm.times * count || !flying.is_empty() {
            let now = Instant::now();
            while sent < rhythm.times * count && began + gap * sent <= now {
                let member = (sent % count) as usize;
                let id = i32::try_from(sent).map_err(wrong)?;
                self.members[member].send(id)?;
                flying.push((member, began + gap * sent, id));
                sent += 1;
            }
            let before = flying.len();
            let mut answered = Vec::new();
            for (at, (member, intended, id)) in flying.iter().enumerate() {
                if self.members[*member].receive(*id, self.code_at)? {
                    answered.push(at);
                    if id >= &i32::try_from(count).map_err(wrong)? {
                        note(&mut latencies, Instant::now() - *intended);
                    }
                }
            }
            for at in answered.into_iter().rev() {
                flying.swap_remove(at);
            }
            if flying.len() < before {
                continue;
            }
            let wait = if sent < rhythm.times * count {
                (began + gap * sent).saturating_duration_since(Instant::now())
            } else {
                PATIENCE
            };
            self.wait(&flying, wait.saturating_sub(SPIN))?;
        }
        Ok(latencies)
    }

    /// All commit as often as they are answered, so many times: what a commit costs a broker that is
    /// awake.
    pub fn commit_at_once(&mut self, times: u32) -> io::Result<()> {
        let mut id = 0;
        for _ in 0..times {
            let first = id;
            for member in &mut self.members {
                member.send(id)?;
                id += 1;
            }
            for (id, member) in (first..).zip(&mut self.members) {
                while !member.receive(id, self.code_at)? {
                    let stream = PollFd::new(member.stream.as_fd(), PollFlags::POLLIN);
                    let limit = Some(TimeSpec::from_duration(PATIENCE));
                    if ppoll(&mut [stream], limit, None)? == 0 {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
            }
        }
        Ok(())
    }

    fn wait(&self, flying: &[(usize, Instant, i32)], limit: Duration) -> io::Result<()> {
        if limit.is_zero() {
            return Ok(());
        }
        let sockets = flying.iter().map(|(member, _, _)| {
            let stream = &self.members[*member].stream;
            PollFd::new(stream.as_fd(), PollFlags::POLLIN)
        });
        let mut sockets: Vec<_> = sockets.collect();
        let ready = ppoll(&mut sockets, Some(TimeSpec::from_duration(limit)), None)?;
        if ready == 0 && limit > PATIENCE / 2 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// All leave.
    pub fn leave(self) -> io::Result<()> {
        for mut member in self.members {
            member.stream.set_nonblocking(false)?;
            let identity = MemberIdentity::default().with_member_id(member.id);
            let request = LeaveGroupRequest::default()
                .with_group_id(member.group)
                .with_members(vec![identity]);
            member.stream.write_all(&frame(LEAVE, 1, &request))?;
            // Its answer says that it has been done.
            let mut first = [0];
            member.stream.read_exact(&mut first)?;
        }
        Ok(())
    }
}

impl Member {
    fn send(&mut self, id: i32) -> io::Result<()> {
        set_correlation(&mut self.commit, id);
        let offset = i64::from(id).to_be_bytes();
        self.commit[self.offset_at..self.offset_at + 8].copy_from_slice(&offset);
        // So little always has room.
        match self.stream.write(&self.commit)? {
            all if all == self.commit.len() => Ok(()),
            part => Err(wrong(format!("{part} bytes of a commit are taken"))),
        }
    }

    /// Whether the answer to this commit is there.
    fn receive(&mut self, id: i32, code_at: usize) -> io::Result<bool> {
        let mut answer = [0; 1024];
        let read = match self.stream.read(&mut answer) {
            Ok(0) => return Err(wrong("the broker closed the connection")),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        let size = usize::try_from(i32_at(&answer, 0)).map_err(wrong)?;
        if read != 4 + size || read < code_at + 2 {
            return Err(wrong(format!("an answer of {read} bytes to a commit")));
        }
        match i32_at(&answer, 4) {
            got if got == id => {}
            got => return Err(wrong(format!("answer {got} in place of {id}"))),
        }
        ok("OffsetCommit", i16_at(&answer, code_at))?;
        Ok(true)
    }
}

fn ok(what: &str, code: i16) -> io::Result<()> {
    match code {
        0 => Ok(()),
        code => Err(wrong(format!("error code {code} for {what}"))),
    }
}

/// Waits until there are coordinators.
fn find(connection: &mut Connection, group: &GroupId) -> io::Result<()> {
    let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![group.0.clone()]);
    loop {
        let found = connection.ask(4, &request).coordinators.remove(0);
        if !NOT_YET.contains(&found.error_code) {
            return ok("FindCoordinator", found.error_code);
        }
        connection.is_silent(AGAIN);
    }
}

/// The id that a new member is given.
fn name(connection: &mut Connection, group: &GroupId) -> io::Result<StrBytes> {
    loop {
        let joined = connection.ask(JOIN, &join(group, &StrBytes::default()));
        match joined.error_code {
            MEMBER_ID_REQUIRED => return Ok(joined.member_id),
            code if NOT_YET.contains(&code) => {
                connection.is_silent(AGAIN);
            }
            code => return Err(wrong(format!("error code {code} for JoinGroup"))),
        }
    }
}

fn join(group: &GroupId, member: &StrBytes) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default()
        .with_name(StrBytes::from_static_str("range"))
        // Version, no topics, no user data.
        .with_metadata(Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    JoinGroupRequest::default()
        .with_group_id(group.clone())
        .with_member_id(member.clone())
        // No one is late here, however long a broker is frozen between two samples.
        .with_session_timeout_ms(1_800_000)
        .with_rebalance_timeout_ms(60_000)
        .with_protocol_type(StrBytes::from_static_str("consumer"))
        .with_protocols(vec![protocol])
}

fn sync(group: &GroupId, generation: i32, member: &StrBytes) -> SyncGroupRequest {
    let assignment = SyncGroupRequestAssignment::default()
        .with_member_id(member.clone())
        .with_assignment(Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    SyncGroupRequest::default()
        .with_group_id(group.clone())
        .with_generation_id(generation)
        .with_member_id(member.clone())
        .with_protocol_type(Some(StrBytes::from_static_str("consumer")))
        .with_protocol_name(Some(StrBytes::from_static_str("range")))
        .with_assignments(vec![assignment])
}

/// An offset that no other field looks like.
const MARK: i64 = 0x0123_4567_89ab_cdef;

fn commit(group: &GroupId, generation: i32, member: &StrBytes, topic: &str) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition::default()
        .with_committed_offset(MARK)
        .with_committed_leader_epoch(-1)
        .with_committed_metadata(Some(StrBytes::default()));
    let topic = OffsetCommitRequestTopic::default()
        .with_name(topic_name(topic))
        .with_partitions(vec![partition]);
    OffsetCommitRequest::default()
        .with_group_id(group.clone())
        .with_generation_id_or_member_epoch(generation)
        .with_member_id(member.clone())
        .with_topics(vec![topic])
}

/// The frame of a commit, and where its offset stands.
fn patchable(commit: &OffsetCommitRequest) -> (Vec<u8>, usize) {
    let bytes = frame(COMMIT, 0, commit);
    let offset_at = bytes
        .windows(8)
        .position(|window| window == MARK.to_be_bytes())
        .expect("the offset is in the frame");
    (bytes, offset_at)
}

fn take<R: Request>(connection: &mut Connection, version: i16) -> io::Result<R::Response> {
    let answer = connection.receive()?;
    let mut answer = answer.ok_or_else(|| wrong("the broker closed the connection"))?;
    ResponseHeader::decode(&mut answer, R::Response::header_version(version)).map_err(wrong)?;
    R::Response::decode(&mut answer, version).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_takes_its_offset() {
        let group = GroupId(StrBytes::from_static_str("g"));
        let member = StrBytes::from_static_str("m");
        let (mut bytes, at) = patchable(&commit(&group, 3, &member, "t"));
        bytes[at..at + 8].copy_from_slice(&77_i64.to_be_bytes());
        let mut body = Bytes::from(bytes).slice(4..);
        let header = kafka_protocol::messages::RequestHeader::decode(&mut body, 2).unwrap();
        assert_eq!(header.request_api_version, COMMIT);
        let request = OffsetCommitRequest::decode(&mut body, COMMIT).unwrap();
        assert_eq!(request.topics[0].partitions[0].committed_offset, 77);
        assert_eq!(request.generation_id_or_member_epoch, 3);
    }
}
