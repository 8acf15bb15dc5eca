//! How the binary starts, what it takes for settings, how it stops, what it finds again.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kafka_protocol::messages::MetadataRequest;
use kafka_protocol::messages::metadata_response::MetadataResponse;
use nix::sys::signal::Signal;
use protocol_tests::broker::{binary, free_port, without_settings};
use protocol_tests::process::{Output, Running, run};
use protocol_tests::tools::folder as tools;
use protocol_tests::wire::{Connection, fetch, frame, metadata};
use protocol_tests::{Broker, only_barnabas};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn help_and_version_are_told() {
    if !only_barnabas() {
        return;
    }
    let help = barnabas(&["--help"]).expect_success().text();
    assert!(help.contains("start"), "{help}");
    let help = barnabas(&["start", "--help"]).expect_success().text();
    assert!(
        help.contains("--config") && help.contains("--override"),
        "{help}"
    );
    let version = barnabas(&["--version"]).expect_success().text();
    let number = version.strip_prefix("barnabas ").unwrap_or_default().trim();
    let parts: Vec<&str> = number.split('.').collect();
    assert!(
        parts.len() == 3 && parts[0].parse::<u32>().is_ok(),
        "{version:?}"
    );
}

#[test]
fn an_unknown_argument_is_refused() {
    if !only_barnabas() {
        return;
    }
    let refused = barnabas(&["start", "--no-such-thing"]);
    assert!(!refused.status.success());
    assert!(
        refused.stderr.contains("--no-such-thing"),
        "{}",
        refused.stderr
    );
}

#[test]
fn port_0_chooses_a_port_for_each_and_tells_it() {
    if !only_barnabas() {
        return;
    }
    let (one, other) = (
        Started::new("listeners=PLAINTEXT://127.0.0.1:0"),
        Started::new("listeners=PLAINTEXT://127.0.0.1:0"),
    );
    let ports = [one.port(), other.port()];
    assert_ne!(ports[0], ports[1]);
    for port in ports {
        let mut client = Connection::open_port(port);
        assert_eq!(
            advertised(&cluster(&mut client)),
            [(1, "127.0.0.1".to_owned(), i32::from(port))]
        );
        client.create_topic("first", 1);
        assert_eq!(client.produce("first", -1, &[b"served"]), 0);
        assert_eq!(client.fetch("first", 0), [(0, "served".into())]);
    }
}

#[test]
fn without_advertised_listeners_the_address_is_the_one_that_was_asked() {
    if !only_barnabas() {
        return;
    }
    // An empty host is every address; 0.0.0.0 would be advertised as it is, which Kafka refuses.
    let broker = Started::new("listeners=PLAINTEXT://:0");
    let port = broker.port();
    for address in ["127.0.0.1", "127.0.0.2", "127.9.8.7"] {
        let mut client = Connection::open_at(address, port);
        assert_eq!(
            advertised(&cluster(&mut client)),
            [(1, address.to_owned(), i32::from(port))]
        );
    }
}

#[test]
fn advertised_listeners_are_told_as_they_are() {
    if !only_barnabas() {
        return;
    }
    let broker = Started::new(
        "listeners=PLAINTEXT://0.0.0.0:0\nadvertised.listeners=PLAINTEXT://kafka.example:19092",
    );
    let mut client = Connection::open_port(broker.port());
    assert_eq!(
        advertised(&cluster(&mut client)),
        [(1, "kafka.example".to_owned(), 19092)]
    );
}

#[test]
fn a_second_process_on_the_same_folder_is_refused() {
    if !only_barnabas() {
        return;
    }
    let first = Started::new("listeners=PLAINTEXT://127.0.0.1:0");
    let config = first.folder.path().join("server.properties");
    let second = barnabas(&["start", "--config", config.to_str().unwrap()]);
    assert_eq!(
        second.status.code(),
        Some(1),
        "{}{}",
        second.text(),
        second.stderr
    );
    let data = first.folder.path().join("data");
    let said = format!("{}{}", second.text(), second.stderr);
    assert!(
        said.contains(data.to_str().unwrap()),
        "the folder is not named:\n{said}"
    );

    let mut client = Connection::open_port(first.port());
    client.create_topic("still-served", 1);
}

#[test]
fn sigterm_stops_cleanly_and_leaves_the_mark_of_it() {
    let mut broker = Broker::start();
    let mark = broker.data().join(".kafka_cleanshutdown");
    Connection::open(&broker).create_topic("kept", 1);
    assert!(!mark.exists(), "no mark while it runs");
    // Clients that hang on do not hold it up.
    let idle = Connection::open(&broker);
    broker.stop();
    assert!(
        mark.exists(),
        "{} is there after a clean stop",
        mark.display()
    );
    drop(idle);
    broker.restart();
    assert!(!mark.exists(), "the mark is taken away by the next start");
    broker.kill();
    assert!(!mark.exists(), "no mark after a kill");
}

#[test]
fn topics_and_ids_outlive_a_stop_and_a_kill() {
    let mut broker = Broker::start();
    let mut client = Connection::open(&broker);
    let ids = [("one", 1), ("twelve", 12)]
        .map(|(topic, partitions)| client.create_topic(topic, partitions));
    let cluster_id = cluster(&mut client).cluster_id;
    assert!(cluster_id.is_some());
    for last in 0..5 {
        if last % 2 == 0 {
            broker.stop()
        } else {
            broker.kill()
        }
        broker.restart();
        let mut client = Connection::open(&broker);
        assert_eq!(
            cluster(&mut client).cluster_id,
            cluster_id,
            "the cluster's id"
        );
        assert_eq!(client.describe("one"), (ids[0], 1));
        assert_eq!(client.describe("twelve"), (ids[1], 12));
        // The log goes on where it was.
        client.end_offset("one", 0);
        assert_eq!(client.produce("one", -1, &[b"one more"]), last);
        // What is created after a start is found after the next one.
        let topic = format!("after-{last}");
        let id = client.create_topic(&topic, 2);
        assert_eq!(client.describe(&topic), (id, 2));
        for earlier in 0..last {
            assert_eq!(client.describe(&format!("after-{earlier}")).1, 2);
        }
    }
}

#[test]
fn a_key_that_is_unknown_or_without_effect_is_named_once() {
    if !only_barnabas() {
        return;
    }
    let broker = Started::new(
        "listeners=PLAINTEXT://127.0.0.1:0\nno.such.key=1\nnum.partitions=2\nnum.network.threads=9",
    );
    let lines = broker.process.lines();
    for (key, level) in [("no.such.key", "WARN"), ("num.network.threads", "INFO")] {
        let about: Vec<&String> = lines.iter().filter(|line| line.contains(key)).collect();
        assert_eq!(about.len(), 1, "{lines:#?}");
        assert!(about[0].contains(level), "{}", about[0]);
    }
    assert!(!lines.iter().any(|line| line.contains("num.partitions")));
}

#[test]
fn a_bad_value_ends_the_start_and_is_named() {
    if !only_barnabas() {
        return;
    }
    let bad = [
        ("num.partitions", "0"),
        ("num.partitions", "many"),
        ("log.segment.bytes", "-1"),
        ("listeners", "PLAINTEXT//nowhere"),
    ];
    for (key, value) in bad {
        let folder = tempfile::tempdir().unwrap();
        let config = configure(folder.path(), "listeners=PLAINTEXT://127.0.0.1:0");
        let setting = format!("{key}={value}");
        let refused = barnabas(&["start", "--config", &config, "--override", &setting]);
        let said = format!("{}{}", refused.text(), refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{setting}: {said}");
        assert!(said.contains(key), "{setting}: {said}");
    }
    let missing = barnabas(&["start", "--config", "/no/such/file.properties"]);
    let said = format!("{}{}", missing.text(), missing.stderr);
    assert_eq!(missing.status.code(), Some(1), "{said}");
    assert!(said.contains("/no/such/file.properties"), "{said}");
}

#[test]
fn a_taken_port_ends_the_start_and_is_named() {
    if !only_barnabas() {
        return;
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let config = configure(folder.path(), &format!("listeners=PLAINTEXT://{address}"));
    let refused = barnabas(&["start", "--config", &config]);
    let said = format!("{}{}", refused.text(), refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains(&address), "{said}");
}

#[test]
fn overrides_win_over_the_file() {
    if !only_barnabas() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = configure(
        folder.path(),
        "listeners=PLAINTEXT://127.0.0.1:0\nnum.partitions=2\nnode.id=3",
    );
    let mut command = Command::new(binary());
    command.args(["start", "--config", &config]);
    command.args(["--override", "num.partitions=5", "--override", "node.id=4"]);
    let broker = Started::run(folder, &mut command);
    assert_eq!(broker.partitions_of_a_new_topic(), 5);
    assert_eq!(
        advertised(&cluster(&mut Connection::open_port(broker.port())))[0].0,
        4
    );
}

/// What a release of Kafka has in `config/server.properties`, but for the ports and the folder.
#[test]
fn a_stock_file_of_settings_starts_a_node() {
    if !only_barnabas() {
        return;
    }
    let (port, controller_port) = (free_port(), free_port());
    let settings = format!(
        "# A comment, and then as many blank lines as the stock file has.\n\n\
         node.id=1\n\
         controller.quorum.bootstrap.servers=localhost:{controller_port}\n\
         listeners=PLAINTEXT://:{port},CONTROLLER://:{controller_port}\n\
         inter.broker.listener.name=PLAINTEXT\n\
         advertised.listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller_port}\n\
         controller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL\n\
         num.network.threads=3\nnum.io.threads=8\n\
         socket.send.buffer.bytes=102400\nsocket.receive.buffer.bytes=102400\n\
         socket.request.max.bytes=104857600\n\
         num.partitions=1\nnum.recovery.threads.per.data.dir=1\n\
         offsets.topic.replication.factor=1\n\
         share.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         log.retention.hours=168\nlog.segment.bytes=1073741824\n\
         log.retention.check.interval.ms=300000\n"
    );
    let broker = Started::new(&settings);
    let mut client = Connection::open_port(port);
    assert_eq!(
        advertised(&cluster(&mut client)),
        [(1, "localhost".to_owned(), i32::from(port))]
    );
    assert_eq!(broker.partitions_of_a_new_topic(), 1);
    let lines = broker.process.lines();
    assert!(
        !lines
            .iter()
            .any(|line| line.contains("WARN") || line.contains("ERROR")),
        "{lines:#?}"
    );
}

#[test]
fn variables_are_settings_without_a_file() {
    if !only_barnabas() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    without_settings(&mut command)
        .current_dir(folder.path())
        .env("KAFKA_LISTENERS", "PLAINTEXT://127.0.0.1:0")
        .env("KAFKA_LOG_DIRS", folder.path().join("data"))
        .env("KAFKA_NUM_PARTITIONS", "3")
        .env("KAFKA_NODE_ID", "7")
        // One underscore is a dot, two are an underscore, three are a dash.
        .env("KAFKA_NO_SUCH__KEY___AT_ALL", "1")
        // These are for a Java virtual machine.
        .env("KAFKA_HEAP_OPTS", "-Xmx1g")
        .env("KAFKA_VERSION", "4.1.2");
    let broker = Started::run_as_is(folder, &mut command);
    assert_eq!(broker.partitions_of_a_new_topic(), 3);
    assert_eq!(
        advertised(&cluster(&mut Connection::open_port(broker.port())))[0].0,
        7
    );
    let lines = broker.process.lines();
    assert!(
        lines.iter().any(|line| line.contains("no.such_key-at.all")),
        "{lines:#?}"
    );
    assert!(
        !lines.iter().any(|line| line.contains("heap.opts")),
        "{lines:#?}"
    );
    assert!(
        broker.folder.path().join("data/meta.properties").exists(),
        "the data is where log.dirs says"
    );
}

#[test]
fn variables_win_over_the_file() {
    if !only_barnabas() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = configure(
        folder.path(),
        "listeners=PLAINTEXT://127.0.0.1:0\nnum.partitions=2",
    );
    let mut command = Command::new(binary());
    without_settings(&mut command)
        .args(["start", "--config", &config])
        .env("KAFKA_NUM_PARTITIONS", "6");
    let broker = Started::run_as_is(folder, &mut command);
    assert_eq!(broker.partitions_of_a_new_topic(), 6);
}

/// In a network of its own, where nobody else has port 9092.
#[test]
fn alone_it_is_a_node_on_localhost_9092() {
    if !only_barnabas() {
        return;
    }
    let probe = run(
        "unshare",
        Command::new("unshare").args(["-rn", "true"]),
        b"",
        LIMIT,
    );
    if !probe.status.success() {
        println!(
            "not run: this machine lets nobody make a network of his own: {}",
            probe.stderr
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    without_settings(&mut command)
        .arg("-rn")
        .arg(tools().join("python/bin/python"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/alone.py"))
        .arg(binary())
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env("KAFKA_LOG_DIRS", folder.path().join("data"));
    let said = run("alone.py", &mut command, b"", 2 * LIMIT)
        .expect_success()
        .text();
    assert_eq!(
        said.lines().last(),
        Some("a record came back from localhost:9092"),
        "{said}"
    );
}

#[test]
fn a_clean_stop_does_not_wait_for_those_who_wait_for_records() {
    let mut broker = Broker::start();
    let mut waiting = Connection::open(&broker);
    waiting.create_topic("empty", 1);
    let minute = fetch("empty", 0)
        .with_max_wait_ms(60_000)
        .with_min_bytes(1 << 20);
    waiting.send(&frame(12, 1, &minute)).unwrap();
    // By the answer to another client, the broker has had the time to take the fetch up.
    Connection::open(&broker).api_versions();
    let asked = Instant::now();
    broker.stop();
    assert!(
        asked.elapsed() < Duration::from_secs(20),
        "the stop took {:?}",
        asked.elapsed()
    );
}

/// The binary with these arguments, to its end.
fn barnabas(arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    run(
        "barnabas",
        without_settings(command.args(arguments)),
        b"",
        LIMIT,
    )
}

/// Writes a file of settings for a node with its data in the folder; returns its path.
fn configure(folder: &Path, settings: &str) -> String {
    let config = folder.join("server.properties");
    let data = folder.join("data");
    let mut text = format!(
        "process.roles=broker,controller\nlog.dirs={}\n{settings}\n",
        data.display()
    );
    if !settings.contains("node.id=") {
        text.push_str("node.id=1\n");
    }
    fs::write(&config, text).unwrap();
    config.to_str().unwrap().to_owned()
}

/// A ready broker that was started in a way of its own.
struct Started {
    process: Running,
    folder: TempDir,
}

impl Started {
    #[track_caller]
    fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = configure(folder.path(), settings);
        let mut command = Command::new(binary());
        command.args(["start", "--config", &config]);
        Self::run(folder, &mut command)
    }

    #[track_caller]
    fn run(folder: TempDir, command: &mut Command) -> Self {
        Self::run_as_is(folder, without_settings(command))
    }

    #[track_caller]
    fn run_as_is(folder: TempDir, command: &mut Command) -> Self {
        let process = Running::start("barnabas", command);
        process.wait_for_line(0, |line| line.contains("Kafka Server started"), LIMIT);
        Self { process, folder }
    }

    /// The port that it has told.
    #[track_caller]
    fn port(&self) -> u16 {
        let told = "listening on PLAINTEXT://";
        let line = self
            .process
            .wait_for_line(0, |line| line.contains(told), LIMIT);
        let address = line
            .split(told)
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next())
            .unwrap_or_default();
        let port = address
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok());
        port.unwrap_or_else(|| panic!("no port in {line:?}"))
    }

    fn partitions_of_a_new_topic(&self) -> usize {
        let mut client = Connection::open_port(self.port());
        client.create_topic("new", -1);
        client.ask(12, &metadata("new")).topics[0].partitions.len()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.process.signal(Signal::SIGKILL);
        if std::thread::panicking() {
            eprintln!(
                "--- the broker said, last ---\n{}\n---",
                self.process.story()
            );
        }
    }
}

fn cluster(client: &mut Connection) -> MetadataResponse {
    client.ask(
        12,
        &MetadataRequest::default().with_topics(Some(Vec::new())),
    )
}

fn advertised(cluster: &MetadataResponse) -> Vec<(i32, String, i32)> {
    cluster
        .brokers
        .iter()
        .map(|broker| (*broker.node_id, broker.host.to_string(), broker.port))
        .collect()
}
