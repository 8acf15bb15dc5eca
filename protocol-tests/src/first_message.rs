//! The way of a fresh group to its first message, with the default settings of a client: what it
//! asks, and how long that takes.

use std::time::{Duration, Instant};

use crate::Broker;
use crate::broker::{Kind, free_port};
use crate::process::Running;
use crate::tools::{java_source_at, kcat_with, python_at};
use crate::witness::{Exchange, Witness};

const LIMIT: Duration = Duration::from_secs(60);

/// A client, and the protocol of its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    Librdkafka,
    NewLibrdkafka,
    Java,
    NewJava,
}

impl Client {
    pub const ALL: [Self; 4] = [
        Self::Librdkafka,
        Self::NewLibrdkafka,
        Self::Java,
        Self::NewJava,
    ];

    fn start(self, bootstrap: &str, groups: usize) -> Running {
        let groups = groups.to_string();
        let classic = ["t", &groups];
        let new = ["t", &groups, "group.protocol=consumer"];
        match self {
            Self::Librdkafka => python_at("first_message.py", bootstrap, &classic),
            Self::NewLibrdkafka => python_at("first_message.py", bootstrap, &new),
            Self::Java => java_source_at("FirstMessage.java", bootstrap, &classic),
            Self::NewJava => java_source_at("FirstMessage.java", bootstrap, &new),
        }
    }
}

/// How a group came to its first message.
pub struct Way {
    /// From subscribe to the message, as the client says it.
    pub ms: f64,
    pub subscribed: Instant,
    /// What was asked meanwhile.
    pub asked: Vec<Exchange>,
}

/// So many fresh groups, one after the other, at a broker that has known no group before.
pub fn watch(kind: Kind, client: Client, groups: usize) -> Vec<Way> {
    let port = free_port();
    let advertised = format!("PLAINTEXT://127.0.0.1:{port}");
    let broker = Broker::start_kind(kind, &[("advertised.listeners", &advertised)]);
    let witness = Witness::stand(port, broker.port()).expect("the port is free");
    kcat_with(&broker, &["-P", "-t", "t", "-p", "0"], b"a message\n");
    let program = client.start(&witness.bootstrap(), groups);
    let mut ways = Vec::new();
    for number in 0..groups {
        let group = format!("fresh-{number}");
        let begins = format!("subscribes {group}");
        program.wait_for_line(0, |line| line == begins, LIMIT);
        let subscribed = Instant::now();
        let got = format!("got {group} ");
        let line = program.wait_for_line(0, |line| line.starts_with(&got), LIMIT);
        let ms = line[got.len()..].parse().expect("milliseconds");
        let ended = Instant::now();
        let mut asked = witness.heard();
        asked.retain(|it| it.asked >= subscribed && it.asked <= ended);
        ways.push(Way {
            ms,
            subscribed,
            asked,
        });
    }
    ways
}
