//! The folders of new partitions: what stands in their way, what a crash takes of them, and that one
//! of another topic is not mistaken for them.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use protocol_tests::wire::{Connection, produce};
use protocol_tests::{Broker, only_barnabas};

const NOT_LEADER_OR_FOLLOWER: i16 = 6;

fn produced(connection: &mut Connection, topic: &str) -> i16 {
    let answer = connection.ask(9, &produce(topic, -1, &[b"a record"]));
    answer.responses[0].partition_responses[0].error_code
}

fn identity(broker: &Broker, topic: &str) -> PathBuf {
    broker.data().join(format!("{topic}-0/partition.metadata"))
}

#[test]
fn a_log_that_cannot_be_made_is_tried_again() {
    if !only_barnabas() {
        return;
    }
    let broker = Broker::start();
    let mut connection = Connection::open(&broker);
    let in_the_way = broker.data().join("blocked-0");
    fs::write(&in_the_way, "a file").unwrap();
    connection.create_topic("blocked", 1);
    connection.create_topic("free", 1);
    // A code that clients retry.
    let error = produced(&mut connection, "blocked");
    assert_eq!(error, NOT_LEADER_OR_FOLLOWER);
    assert_eq!(produced(&mut connection, "free"), 0);
    fs::remove_file(&in_the_way).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while produced(&mut connection, "blocked") == NOT_LEADER_OR_FOLLOWER {
        assert!(Instant::now() < end, "the log is not made");
    }
    assert_eq!(connection.end_offset("blocked", 0), 1);
}

#[test]
fn what_a_crash_takes_of_a_log_without_records_is_made_again() {
    if !only_barnabas() {
        return;
    }
    let mut broker = Broker::start();
    let mut connection = Connection::open(&broker);
    for topic in ["written", "emptied", "gone"] {
        connection.create_topic(topic, 1);
    }
    assert_eq!(connection.produce("written", -1, &[b"kept"]), 0);
    let ids = ["written", "emptied", "gone"].map(|topic| {
        let path = identity(&broker, topic);
        (fs::read(&path).unwrap(), path)
    });
    broker.kill();
    // Nobody waited for the disk to have these: the machine might have lost them.
    for file in ["partition.metadata", "leader-epoch-checkpoint"] {
        fs::write(broker.data().join("emptied-0").join(file), "").unwrap();
    }
    fs::remove_dir_all(broker.data().join("gone-0")).unwrap();
    broker.restart();
    let mut connection = Connection::open(&broker);
    for (topic, offset) in [("written", 1), ("emptied", 0), ("gone", 0)] {
        assert_eq!(connection.produce(topic, -1, &[b"next"]), offset, "{topic}");
    }
    for (id, path) in &ids {
        assert_eq!(&fs::read(path).unwrap(), id, "{}", path.display());
    }
    broker.kill();
    broker.restart();
    let mut connection = Connection::open(&broker);
    for (topic, end) in [("written", 2), ("emptied", 1), ("gone", 1)] {
        assert_eq!(connection.end_offset(topic, 0), end, "{topic}");
    }
}

#[test]
fn a_log_of_another_topic_is_put_aside() {
    if !only_barnabas() {
        return;
    }
    let mut broker = Broker::start();
    let mut connection = Connection::open(&broker);
    for topic in ["mine", "other"] {
        connection.create_topic(topic, 1);
        assert_eq!(connection.produce(topic, -1, &[b"a record"]), 0);
    }
    broker.kill();
    let own = fs::read(identity(&broker, "mine")).unwrap();
    fs::copy(identity(&broker, "other"), identity(&broker, "mine")).unwrap();
    broker.restart();
    let mut connection = Connection::open(&broker);
    assert_eq!(connection.end_offset("mine", 0), 0);
    assert_eq!(connection.end_offset("other", 0), 1);
    assert_eq!(fs::read(identity(&broker, "mine")).unwrap(), own);
    let names = fs::read_dir(broker.data()).unwrap();
    let aside = names.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        let name = name.to_str().unwrap();
        name.starts_with("mine-0.") && name.ends_with("-stray")
    });
    assert_eq!(aside.count(), 1);
}
