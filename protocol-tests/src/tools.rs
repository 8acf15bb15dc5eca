//! The stock clients: kcat, those of Python, Go, JavaScript, Rust and Java, Apache Kafka's own tools.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Broker;
use crate::process::{Output, Running, run};

/// How long any single tool may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Where `scripts/install-test-tools` has put the tools.
pub fn folder() -> PathBuf {
    let folder = match std::env::var_os("BARNABAS_TEST_TOOLS") {
        Some(given) => PathBuf::from(given),
        None => PathBuf::from(std::env::var_os("HOME").expect("HOME is set"))
            .join(".cache/barnabas/test-tools"),
    };
    assert!(
        ["kafka", "python", "node", "go", "rust"]
            .iter()
            .all(|part| folder.join(format!("{part}.done")).exists()),
        "the stock tools are not in {}: run scripts/install-test-tools",
        folder.display()
    );
    folder
}

/// kcat against the broker, with `input` on its standard input.
#[track_caller]
pub fn kcat_with(broker: &Broker, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new("kcat");
    command.args(["-b", &broker.bootstrap()]).args(arguments);
    run("kcat", &mut command, input, LIMIT).expect_success()
}

/// kcat against the broker; returns its standard output.
#[track_caller]
pub fn kcat(broker: &Broker, arguments: &[&str]) -> Vec<u8> {
    kcat_with(broker, arguments, b"").stdout
}

fn python_command(script: &str, bootstrap: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(folder().join("python/bin/python"));
    command
        .arg("-u")
        .arg(source("python").join(script))
        .arg(bootstrap)
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A script of `protocol-tests/python` to its end; its first argument is the bootstrap server.
#[track_caller]
pub fn python(script: &str, broker: &Broker, arguments: &[&str]) -> String {
    run(
        script,
        &mut python_command(script, &broker.bootstrap(), arguments),
        b"",
        LIMIT,
    )
    .expect_success()
    .text()
}

/// The same, running beside the test.
pub fn python_beside(script: &str, broker: &Broker, arguments: &[&str]) -> Running {
    python_at(script, &broker.bootstrap(), arguments)
}

/// The same at an address.
pub fn python_at(script: &str, bootstrap: &str, arguments: &[&str]) -> Running {
    Running::start(script, &mut python_command(script, bootstrap, arguments))
}

/// A folder of the programs that the tests run.
fn source(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(language)
}

fn go_command(broker: &Broker, arguments: &[&str]) -> Command {
    let mut command = Command::new(folder().join("go/client"));
    command.arg(broker.bootstrap()).args(arguments);
    command
}

/// The program of `protocol-tests/go`, which the installation has built.
#[track_caller]
pub fn go(broker: &Broker, arguments: &[&str]) -> String {
    run(
        "the Go client",
        &mut go_command(broker, arguments),
        b"",
        LIMIT,
    )
    .expect_success()
    .text()
}

/// The same, running beside the test.
pub fn go_beside(broker: &Broker, arguments: &[&str]) -> Running {
    Running::start("the Go client", &mut go_command(broker, arguments))
}

/// The program of `protocol-tests/rust`, which the installation has built.
#[track_caller]
pub fn rskafka(broker: &Broker, arguments: &[&str]) -> String {
    let mut command = Command::new(folder().join("rust/client"));
    command.arg(broker.bootstrap()).args(arguments);
    run("the Rust client", &mut command, b"", LIMIT)
        .expect_success()
        .text()
}

fn node_command(script: &str, broker: &Broker, arguments: &[&str]) -> Command {
    let mut command = Command::new("node");
    command
        .arg(source("node").join(script))
        .arg(broker.bootstrap())
        .args(arguments)
        .env("NODE_PATH", folder().join("node/node_modules"));
    command
}

/// A script of `protocol-tests/node`; its first argument is the bootstrap server.
#[track_caller]
pub fn node(script: &str, broker: &Broker, arguments: &[&str]) -> String {
    run(
        script,
        &mut node_command(script, broker, arguments),
        b"",
        LIMIT,
    )
    .expect_success()
    .text()
}

/// The same, running beside the test.
pub fn node_beside(script: &str, broker: &Broker, arguments: &[&str]) -> Running {
    Running::start(script, &mut node_command(script, broker, arguments))
}

/// A program of `protocol-tests/java`, compiled as it is run; its first argument is the bootstrap
/// server.
#[track_caller]
pub fn java_source(file: &str, broker: &Broker, arguments: &[&str]) -> String {
    let mut command = java_source_command(file, &broker.bootstrap(), arguments);
    run(file, &mut command, b"", LIMIT).expect_success().text()
}

/// The same, running beside the test.
pub fn java_source_beside(file: &str, broker: &Broker, arguments: &[&str]) -> Running {
    java_source_at(file, &broker.bootstrap(), arguments)
}

/// The same at an address.
pub fn java_source_at(file: &str, bootstrap: &str, arguments: &[&str]) -> Running {
    Running::start(file, &mut java_source_command(file, bootstrap, arguments))
}

/// The same without a broker.
#[track_caller]
pub fn java_source_alone(file: &str, arguments: &[&str]) -> String {
    let mut command = java_source_with(file, arguments);
    run(file, &mut command, b"", LIMIT).expect_success().text()
}

pub(crate) fn java_source_command(file: &str, bootstrap: &str, arguments: &[&str]) -> Command {
    java_source_with(file, &[&[bootstrap], arguments].concat())
}

fn java_source_with(file: &str, arguments: &[&str]) -> Command {
    let path = source("java").join(file);
    let path = path.to_str().expect("a plain path");
    java("log4j2-tools.properties", TOOL_OPTIONS, path, arguments)
}

/// A Java program from Apache Kafka's jars.
pub fn java(logging: &str, options: &[&str], class: &str, arguments: &[&str]) -> Command {
    let folder = folder();
    let mut command = Command::new("java");
    command
        .args(options)
        .arg(format!(
            "-Dlog4j2.configurationFile={}",
            folder.join(logging).display()
        ))
        .arg("-cp")
        .arg(folder.join("kafka/*"))
        .arg(class)
        .args(arguments);
    command
}

/// Starting fast matters more to a tool than running fast.
const TOOL_OPTIONS: &[&str] = &["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/// The class of a stock tool.
pub(crate) fn class(name: &str) -> &'static str {
    match name {
        "kafka-broker-api-versions" => "org.apache.kafka.tools.BrokerApiVersionsCommand",
        "kafka-cluster" => "org.apache.kafka.tools.ClusterTool",
        "kafka-configs" => "kafka.admin.ConfigCommand",
        "kafka-console-consumer" => "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "kafka-consumer-groups" => "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "kafka-groups" => "org.apache.kafka.tools.GroupsCommand",
        "kafka-streams-application-reset" => "org.apache.kafka.tools.StreamsResetter",
        "kafka-console-producer" => "org.apache.kafka.tools.ConsoleProducer",
        "kafka-delete-records" => "org.apache.kafka.tools.DeleteRecordsCommand",
        "kafka-dump-log" => "kafka.tools.DumpLogSegments",
        "kafka-features" => "org.apache.kafka.tools.FeatureCommand",
        "kafka-get-offsets" => "org.apache.kafka.tools.GetOffsetShell",
        "kafka-log-dirs" => "org.apache.kafka.tools.LogDirsCommand",
        "kafka-metadata-quorum" => "org.apache.kafka.tools.MetadataQuorumCommand",
        "kafka-metadata-shell" => "org.apache.kafka.shell.MetadataShell",
        "kafka-producer-perf-test" => "org.apache.kafka.tools.ProducerPerformance",
        "kafka-reassign-partitions" => "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        "kafka-replica-verification" => "org.apache.kafka.tools.ReplicaVerificationTool",
        "kafka-storage" => "kafka.tools.StorageTool",
        "kafka-topics" => "org.apache.kafka.tools.TopicCommand",
        "kafka-verifiable-consumer" => "org.apache.kafka.tools.VerifiableConsumer",
        "kafka-verifiable-producer" => "org.apache.kafka.tools.VerifiableProducer",
        "connect-standalone" => "org.apache.kafka.connect.cli.ConnectStandalone",
        _ => panic!("the class of {name} is not known here"),
    }
}

fn tool_command(name: &str, arguments: &[&str]) -> Command {
    let class = class(name);
    java("log4j2-tools.properties", TOOL_OPTIONS, class, arguments)
}

/// A stock tool that runs beside the test.
pub fn stock_beside(name: &str, arguments: &[&str]) -> Running {
    Running::start(name, &mut tool_command(name, arguments))
}

/// A worker of Kafka Connect, beside the test: its properties, and those of its connectors.
pub fn connect_standalone(files: &[String]) -> Running {
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    stock_beside("connect-standalone", &files)
}

/// A stock tool with its arguments as they are, whatever its exit.
#[track_caller]
pub fn stock_tool(name: &str, arguments: &[&str], input: &[u8]) -> Output {
    run(name, &mut tool_command(name, arguments), input, LIMIT)
}

/// A stock tool that speaks to the broker; returns its standard output.
#[track_caller]
pub fn stock(broker: &Broker, name: &str, arguments: &[&str]) -> String {
    let bootstrap = broker.bootstrap();
    let arguments = [&["--bootstrap-server", &bootstrap], arguments].concat();
    stock_tool(name, &arguments, b"").expect_success().text()
}
