//! What `scripts/storage durability` measures, in short: an acknowledgement that must wait for the
//! disk does. What kills leave is in `nothing_acknowledged_is_lost`.

use protocol_tests::bench::measure::trace;
use protocol_tests::wire::Connection;
use protocol_tests::{Broker, only_barnabas, topics};

/// Requests of each kind whose way to the disk is watched.
const WATCHED: usize = 20;

/// How often the log was made durable and an answer sent while records were produced one by one;
/// no answer may come between an append and its sync where `waits`.
fn watch(broker: &Broker, topic: &str, waits: bool) -> (usize, usize) {
    let options = ["-e", "trace=pwritev,fdatasync,sendmsg"];
    let pid = broker.process().pid();
    let mut client = Connection::open(broker);
    let work = || {
        for _ in 0..WATCHED {
            client.produce(topic, -1, &[b"v"]);
        }
        Ok(())
    };
    let (text, ()) = trace(pid, broker.folder(), &options, work).unwrap();
    let (mut syncs, mut answers, mut is_owed) = (0, 0, false);
    for line in text.lines() {
        if line.contains("pwritev(") {
            is_owed = true;
        } else if line.contains("fdatasync") && line.contains(" = 0") {
            (syncs, is_owed) = (syncs + 1, false);
        } else if line.contains("sendmsg(") {
            answers += 1;
            assert!(!(waits && is_owed), "an answer before its sync:\n{text}");
        }
    }
    (syncs, answers)
}

#[test]
fn an_acknowledgement_waits_for_the_disk_where_the_topic_asks_for_it() {
    if !only_barnabas() {
        return;
    }
    let broker = Broker::start_with(&[]);
    let mut client = Connection::open(&broker);
    topics::create(&mut client, "durable", &[("flush.messages", "1")]);
    topics::create(&mut client, "quick", &[]);
    // With its first batch the folder of a log is made durable.
    for topic in ["durable", "quick"] {
        client.produce(topic, -1, &[b"v"]);
    }
    let (syncs, answers) = watch(&broker, "durable", true);
    assert!(syncs >= WATCHED && answers >= WATCHED, "{syncs} {answers}");
    let (syncs, answers) = watch(&broker, "quick", false);
    assert!(syncs < WATCHED && answers >= WATCHED, "{syncs} {answers}");
}
