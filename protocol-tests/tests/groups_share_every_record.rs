//! Groups of three members of each client, while records keep coming: one member is killed and
//! replaced, each is restarted in turn, the broker is killed in between. Every record is delivered,
//! what is committed never goes back, no partition is ever read by two.
//!
//! What members say is told in `python/member.py`; all is checked from their own words.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use protocol_tests::Broker;
use protocol_tests::process::Running;
use protocol_tests::tools::{
    go_beside, java_source_beside, kcat, kcat_with, node_beside, python_beside, stock,
};

const PARTITIONS: usize = 6;
const LIMIT: Duration = Duration::from_secs(60);

/// Starts a member of the group `g` that reads the topic `t`.
type Start<'a> = &'a dyn Fn(&Broker) -> Running;

#[test]
fn members_of_librdkafka() {
    let strategy = "partition.assignment.strategy=range";
    story(&|broker| python_beside("confluent_member.py", broker, &["t", "g", strategy]));
}

#[test]
fn cooperative_members_of_librdkafka() {
    let strategy = "partition.assignment.strategy=cooperative-sticky";
    story(&|broker| python_beside("confluent_member.py", broker, &["t", "g", strategy]));
}

#[test]
fn members_of_kafka_python() {
    story(&|broker| python_beside("kafka_python_member.py", broker, &["t", "g"]));
}

#[test]
fn members_of_aiokafka() {
    story(&|broker| python_beside("aiokafka_member.py", broker, &["t", "g"]));
}

#[test]
fn members_of_kafkajs() {
    story(&|broker| node_beside("member.js", broker, &["t", "g"]));
}

#[test]
fn members_of_franz_go() {
    story(&|broker| go_beside(broker, &["member", "t", "g", "eager"]));
}

#[test]
fn cooperative_members_of_franz_go() {
    story(&|broker| go_beside(broker, &["member", "t", "g", "cooperative"]));
}

#[test]
fn members_of_kafka_go() {
    story(&|broker| go_beside(broker, &["kafka-go-member", "t", "g"]));
}

#[test]
fn members_of_java() {
    story(&|broker| java_member(broker, "RangeAssignor"));
}

#[test]
fn cooperative_members_of_java() {
    story(&|broker| java_member(broker, "CooperativeStickyAssignor"));
}

/// The consumer protocol (KIP-848) with sessions as short as those of the classic one here.
const QUICK: &[(&str, &str)] = &[
    ("group.consumer.min.session.timeout.ms", "6000"),
    ("group.consumer.session.timeout.ms", "6000"),
    ("group.consumer.min.heartbeat.interval.ms", "500"),
    ("group.consumer.heartbeat.interval.ms", "500"),
];

const NEW: &str = "group.protocol=consumer";

#[test]
fn members_of_java_by_the_consumer_protocol() {
    story_with(QUICK, &new_java);
}

#[test]
fn members_of_librdkafka_by_the_consumer_protocol() {
    story_with(QUICK, &new_librdkafka);
}

#[test]
fn a_group_of_java_goes_over_to_the_consumer_protocol() {
    let classic = |broker: &Broker| java_member(broker, "CooperativeStickyAssignor");
    story_with(QUICK, &first_then(&classic, &new_java));
}

#[test]
fn a_group_of_java_goes_back_to_the_classic_protocol() {
    let classic = |broker: &Broker| java_member(broker, "RangeAssignor");
    story_with(QUICK, &first_then(&new_java, &classic));
}

#[test]
fn a_group_of_librdkafka_goes_over_to_the_consumer_protocol() {
    let strategy = "partition.assignment.strategy=range";
    let classic =
        |broker: &Broker| python_beside("confluent_member.py", broker, &["t", "g", strategy]);
    story_with(QUICK, &first_then(&classic, &new_librdkafka));
}

#[test]
fn a_group_of_librdkafka_goes_back_to_the_classic_protocol() {
    let strategy = "partition.assignment.strategy=cooperative-sticky";
    let classic =
        |broker: &Broker| python_beside("confluent_member.py", broker, &["t", "g", strategy]);
    story_with(QUICK, &first_then(&new_librdkafka, &classic));
}

fn new_java(broker: &Broker) -> Running {
    java_source_beside("JavaMember.java", broker, &["t", "g", NEW])
}

fn new_librdkafka(broker: &Broker) -> Running {
    python_beside("confluent_member.py", broker, &["t", "g", NEW])
}

/// The first three members of one kind, all who take their places of the other.
fn first_then(first: Start<'_>, then: Start<'_>) -> impl Fn(&Broker) -> Running {
    let started = Cell::new(0);
    move |broker| {
        started.set(started.get() + 1);
        if started.get() <= 3 {
            first(broker)
        } else {
            then(broker)
        }
    }
}

fn java_member(broker: &Broker, assignor: &str) -> Running {
    let strategy =
        format!("partition.assignment.strategy=org.apache.kafka.clients.consumer.{assignor}");
    java_source_beside("JavaMember.java", broker, &["t", "g", &strategy])
}

fn story(start: Start<'_>) {
    story_with(&[], start);
}

fn story_with(options: &[(&str, &str)], start: Start<'_>) {
    let partitions = PARTITIONS.to_string();
    let mut all = vec![("num.partitions", partitions.as_str())];
    all.extend(options);
    let mut broker = Broker::start_with(&all);
    kcat_with(&broker, &["-P", "-t", "t"], b"first\n");
    let mut producer = python_beside("steady_producer.py", &broker, &["t"]);
    let members = act(&mut broker, start);
    producer.tell("stop");
    let told = producer.wait_for_line(0, |line| line.starts_with("delivered"), LIMIT);
    let produced = told.split(' ').nth(1).and_then(|count| count.parse().ok());
    let produced = produced.expect("a count");
    let diaries = finish(&broker, members, produced);
    check(&broker, produced, &diaries);
}

/// A member, and when it was killed, if it was.
struct Member {
    process: Running,
    killed: Option<u64>,
}

impl Member {
    fn kill(&mut self) {
        self.process.signal(Signal::SIGKILL);
        self.process.wait_exit(LIMIT);
        self.killed = Some(now());
    }

    /// Ends it in order.
    fn stop(&mut self) {
        self.process.tell("stop");
        let exit = self.process.wait_exit(LIMIT);
        assert!(exit.success(), "{}", self.process.story());
    }
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = now.expect("after 1970").as_micros();
    micros.try_into().expect("before the year 586524")
}

/// What happens to the group.
fn act(broker: &mut Broker, start: Start<'_>) -> Vec<Member> {
    let begin = |broker: &Broker| {
        let process = start(broker);
        process.wait_for_line(0, says_assigned, LIMIT);
        Member {
            process,
            killed: None,
        }
    };
    let mut members: Vec<_> = (0..3).map(|_| begin(broker)).collect();
    everybody_reads(&members);
    members[0].kill();
    members.push(begin(broker));
    everybody_reads(&members[1..]);
    broker.kill();
    broker.restart();
    everybody_reads(&members[1..]);
    for at in 1..4 {
        members[at].stop();
        members.push(begin(broker));
    }
    everybody_reads(&members[4..]);
    members
}

fn says_assigned(line: &str) -> bool {
    line.split(' ').nth(1) == Some("assigned")
}

/// Waits until each has got something from now on.
fn everybody_reads(members: &[Member]) {
    for member in members {
        let from = member.process.lines().len();
        let gets = |line: &str| line.split(' ').nth(1) == Some("got");
        member.process.wait_for_line(from, gets, LIMIT);
    }
}

/// Waits until all is read and committed, and ends the members.
fn finish(broker: &Broker, mut members: Vec<Member>, produced: usize) -> Vec<Diary> {
    let end = Instant::now() + LIMIT;
    let ends = ends(broker);
    loop {
        let diaries: Vec<_> = members.iter().map(Diary::of).collect();
        let is_read = values(&diaries).len() == produced + 1;
        // The tool takes its time, so that this asks about once a second.
        if (committed(broker) == ends && is_read) || Instant::now() > end {
            break;
        }
    }
    for member in &mut members[4..] {
        member.stop();
    }
    members.iter().map(Diary::of).collect()
}

/// Where each partition ends.
fn ends(broker: &Broker) -> BTreeMap<i32, i64> {
    let told = stock(broker, "kafka-get-offsets", &["--topic", "t"]);
    let parse = |line: &str| {
        let mut parts = line.rsplit(':');
        let (end, partition) = (parts.next()?, parts.next()?);
        Some((partition.parse().ok()?, end.parse().ok()?))
    };
    told.lines().filter_map(parse).collect()
}

/// What the group has committed, as the stock tool tells.
fn committed(broker: &Broker) -> BTreeMap<i32, i64> {
    let arguments = ["--describe", "--offsets", "--group", "g"];
    let told = stock(broker, "kafka-consumer-groups", &arguments);
    let parse = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        (words.first() == Some(&"g")).then_some(())?;
        Some((words.get(2)?.parse().ok()?, words.get(3)?.parse().ok()?))
    };
    told.lines().filter_map(parse).collect()
}

/// What a member said.
struct Diary {
    events: Vec<(u64, Event)>,
    /// When it had nothing any more for sure.
    ended: Option<u64>,
}

enum Event {
    Assigned(Vec<i32>),
    Revoked(Vec<i32>),
    Got(i32, String),
    Committed(i32, i64),
}

impl Diary {
    fn of(member: &Member) -> Self {
        let lines = member.process.lines();
        let events = lines.iter().filter_map(|line| parse(line)).collect();
        let closed = lines
            .iter()
            .rev()
            .find(|line| line.ends_with("note closed"));
        let closed = closed.and_then(|line| line.split(' ').next()?.parse().ok());
        Self {
            events,
            ended: member.killed.or(closed),
        }
    }
}

fn parse(line: &str) -> Option<(u64, Event)> {
    let mut words = line.split(' ');
    let at = words.next()?.parse().ok()?;
    let list = |words: &str| {
        let numbers = words.split(',').filter(|word| !word.is_empty());
        numbers
            .map(|word| word.parse().expect("a partition"))
            .collect()
    };
    let event = match words.next()? {
        "assigned" => Event::Assigned(list(words.next().unwrap_or(""))),
        "revoked" => Event::Revoked(list(words.next().unwrap_or(""))),
        "got" => {
            let partition = words.next()?.parse().ok()?;
            Event::Got(partition, words.nth(1)?.to_owned())
        }
        "committed" => Event::Committed(words.next()?.parse().ok()?, words.next()?.parse().ok()?),
        _ => return None,
    };
    Some((at, event))
}

fn values(diaries: &[Diary]) -> BTreeSet<&str> {
    let events = diaries.iter().flat_map(|diary| &diary.events);
    events
        .filter_map(|(_, event)| match event {
            Event::Got(_, value) => Some(value.as_str()),
            Event::Assigned(_) | Event::Revoked(_) | Event::Committed(..) => None,
        })
        .collect()
}

fn check(broker: &Broker, produced: usize, diaries: &[Diary]) {
    let got = values(diaries);
    let missing: Vec<_> = (0..produced)
        .filter(|number| !got.contains(number.to_string().as_str()))
        .collect();
    assert!(missing.is_empty(), "of {produced}, lost: {missing:?}");
    assert_eq!(
        committed(broker),
        ends(broker),
        "what is committed at the end"
    );
    nothing_goes_back(diaries);
    nobody_shares(diaries);
    let held = kcat(broker, &["-C", "-t", "t", "-e", "-q"]);
    let held = held.split(|byte| *byte == b'\n').count() - 1;
    println!("{produced} records, {held} held, {} members", diaries.len());
}

fn nothing_goes_back(diaries: &[Diary]) {
    let mut commits = Vec::new();
    for (member, diary) in diaries.iter().enumerate() {
        for (at, event) in &diary.events {
            if let Event::Committed(partition, offset) = event {
                commits.push((*at, member, *partition, *offset));
            }
        }
    }
    commits.sort_unstable();
    let mut last: BTreeMap<i32, i64> = BTreeMap::new();
    for (at, member, partition, offset) in commits {
        let before = last.insert(partition, offset).unwrap_or(0);
        assert!(
            offset >= before,
            "{partition} went back from {before} to {offset} by member {member} at {at}\n{}",
            history(diaries, partition)
        );
    }
}

/// Who held a partition, and what each read and committed first and last while it did.
fn history(diaries: &[Diary], partition: i32) -> String {
    let mut lines = Vec::new();
    for (member, diary) in diaries.iter().enumerate() {
        let mut reads: Vec<(u64, String)> = Vec::new();
        for (at, event) in &diary.events {
            let (at, is_change, words) = match event {
                Event::Assigned(list) => (*at, true, format!("assigned {list:?}")),
                Event::Revoked(list) => (*at, true, format!("revoked {list:?}")),
                Event::Got(of, value) if *of == partition => (*at, false, format!("got {value}")),
                Event::Committed(of, offset) if *of == partition => {
                    (*at, false, format!("committed {offset}"))
                }
                Event::Got(..) | Event::Committed(..) => continue,
            };
            if is_change {
                lines.extend(ends_of(&mut reads, member));
                lines.push((at, member, words));
            } else {
                reads.push((at, words));
            }
        }
        lines.extend(ends_of(&mut reads, member));
        lines.extend(diary.ended.map(|at| (at, member, "ended".to_owned())));
    }
    lines.sort();
    let told = lines
        .iter()
        .map(|(at, member, words)| format!("{at} member {member} {words}"));
    told.collect::<Vec<_>>().join("\n")
}

/// The first three and the last three of what was read and committed.
fn ends_of(reads: &mut Vec<(u64, String)>, member: usize) -> Vec<(u64, usize, String)> {
    let all = std::mem::take(reads).into_iter();
    let mut lines: Vec<_> = all.map(|(at, words)| (at, member, words)).collect();
    if lines.len() > 6 {
        lines.drain(3..lines.len() - 3);
    }
    lines
}

fn nobody_shares(diaries: &[Diary]) {
    let mut held: BTreeMap<i32, Vec<(u64, u64, usize)>> = BTreeMap::new();
    for (member, diary) in diaries.iter().enumerate() {
        let mut since: BTreeMap<i32, u64> = BTreeMap::new();
        for (at, event) in &diary.events {
            match event {
                Event::Assigned(partitions) => {
                    for partition in partitions {
                        since.entry(*partition).or_insert(*at);
                    }
                }
                Event::Revoked(partitions) => {
                    for partition in partitions {
                        if let Some(from) = since.remove(partition) {
                            held.entry(*partition)
                                .or_default()
                                .push((from, *at, member));
                        }
                    }
                }
                Event::Got(partition, _) => {
                    assert!(
                        since.contains_key(partition),
                        "member {member} read {partition}"
                    );
                }
                Event::Committed(..) => {}
            }
        }
        for (partition, from) in since {
            let until = diary.ended.unwrap_or(u64::MAX);
            held.entry(partition)
                .or_default()
                .push((from, until, member));
        }
    }
    for (partition, mut spans) in held {
        spans.sort_unstable();
        for pair in spans.windows(2) {
            let ((_, until, one), (from, _, other)) = (pair[0], pair[1]);
            assert!(
                one == other || from >= until,
                "{partition} was held by {one} until {until} and by {other} from {from}"
            );
        }
    }
}
