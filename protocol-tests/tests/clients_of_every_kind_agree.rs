//! The clients that do not stand on librdkafka: each writes in every codec, looks up offsets, makes,
//! changes and deletes topics; then each reads what all the others have written.
//!
//! Versions are pinned: `scripts/stock-tools/requirements.txt`, `node/package.json`, `go/go.mod`,
//! `rust/Cargo.lock`. What they write and read is told in `python/story.py`.

use std::thread;

use protocol_tests::Broker;
use protocol_tests::tools::{go, java_source, node, python, rskafka};

const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

#[test]
fn each_client_reads_what_the_others_wrote() {
    let mut broker = Broker::start();
    thread::scope(|scope| {
        scope.spawn(|| java_source("JavaClient.java", &broker, &["write"]));
        scope.spawn(|| {
            go(&broker, &["write"]);
            rskafka(&broker, &["write"]);
            node("client.js", &broker, &[]);
            python("kafka_python_client.py", &broker, &["write"]);
            python("aiokafka_client.py", &broker, &["write"]);
        });
    });
    read(&broker);
    broker.kill();
    broker.restart();
    read(&broker);
}

/// Everything, by every client that can read without a group.
fn read(broker: &Broker) {
    let topics: Vec<String> = [
        "java",
        "franz-go",
        "kafka-python",
        "aiokafka",
        "kafkajs",
        "rskafka",
    ]
    .iter()
        .flat_map(|client| CODECS.map(|codec| format!("{client}-{codec}")))
        // See client.js.
        .filter(|topic| topic != "kafkajs-lz4")
        .collect();
    let mut arguments = vec!["read"];
    arguments.extend(topics.iter().map(String::as_str));
    thread::scope(|scope| {
        scope.spawn(|| java_source("JavaClient.java", broker, &arguments));
        scope.spawn(|| {
            go(broker, &arguments);
            rskafka(broker, &arguments);
            python("kafka_python_client.py", broker, &arguments);
            python("aiokafka_client.py", broker, &arguments);
        });
    });
}
