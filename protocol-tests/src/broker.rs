//! One broker on a folder and a port of its own: started, stopped, killed, started again.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::Chance;
use crate::process::{Running, run};
use crate::tools::java;

/// A debug build on a busy machine with a full log to check is slow; a healthy one takes far less.
const LIMIT: Duration = Duration::from_secs(60);

/// Which broker the tests run against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Barnabas,
    ApacheKafka,
}

impl Kind {
    /// `PROTOCOL_TESTS_BROKER`: `barnabas` (or nothing), or `apache-kafka`.
    pub fn chosen() -> Self {
        match std::env::var("PROTOCOL_TESTS_BROKER").as_deref() {
            Err(_) | Ok("" | "barnabas") => Self::Barnabas,
            Ok("apache-kafka") => Self::ApacheKafka,
            Ok(other) => panic!("PROTOCOL_TESTS_BROKER is barnabas or apache-kafka, not {other}"),
        }
    }
}

/// False, with a line that says so, when a test of our own binary is run against Apache Kafka.
pub fn only_barnabas() -> bool {
    let ours = Kind::chosen() == Kind::Barnabas;
    if !ours {
        println!("not run: this fact is about the binary `barnabas` alone");
    }
    ours
}

/// The binary under test: `BARNABAS_BIN`, or what cargo has built beside this test.
pub fn binary() -> PathBuf {
    if let Some(given) = std::env::var_os("BARNABAS_BIN") {
        return PathBuf::from(given);
    }
    let test = std::env::current_exe().expect("a program knows its path");
    // <target>/<profile>/deps/<test>
    let profile = test
        .ancestors()
        .nth(2)
        .expect("a test lies in a folder of its profile");
    let binary = profile.join("barnabas");
    assert!(
        binary.exists(),
        "{} is not there: run `cargo build`, or set BARNABAS_BIN",
        binary.display()
    );
    binary
}

/// A broker, running or stopped, with its folder. Killed and its folder removed when dropped; the
/// folder is kept when `PROTOCOL_TESTS_KEEP` is set.
pub struct Broker {
    kind: Kind,
    /// Our binary is given Kafka's settings, a listener of its own for the controller included.
    like_kafka: bool,
    static_voters: bool,
    folder: TempDir,
    port: u16,
    controller_port: u16,
    settings: Vec<(String, String)>,
    variables: Vec<(String, String)>,
    arguments: Vec<String>,
    process: Option<Running>,
    /// What the earlier processes on this folder said.
    earlier: Vec<String>,
}

impl Broker {
    /// Starts one with default settings and waits until it is ready.
    #[track_caller]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with these settings on top and waits until it is ready.
    #[track_caller]
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let mut broker = Self::prepare(settings);
        broker.restart();
        broker
    }

    /// Starts one of this kind, whatever was chosen: for a test that compares.
    #[track_caller]
    pub fn start_kind(kind: Kind, settings: &[(&str, &str)]) -> Self {
        let mut broker = Self::prepare(settings);
        broker.kind = kind;
        broker.restart();
        broker
    }

    /// A folder and a port, and nothing running yet.
    pub fn prepare(settings: &[(&str, &str)]) -> Self {
        let mut folder = tempfile::Builder::new()
            .prefix("barnabas-test-")
            .tempdir()
            .expect("a temporary folder");
        folder.disable_cleanup(std::env::var_os("PROTOCOL_TESTS_KEEP").is_some());
        Self {
            kind: Kind::chosen(),
            like_kafka: false,
            static_voters: true,
            folder,
            port: free_port(),
            controller_port: free_port(),
            settings: settings
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            variables: Vec::new(),
            arguments: Vec::new(),
            process: None,
            earlier: Vec::new(),
        }
    }

    /// One more setting, from its next start on.
    pub fn set(&mut self, key: &str, value: &str) {
        self.settings.push((key.to_owned(), value.to_owned()));
    }

    /// One more variable of its environment, from its next start on.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// One more argument of our binary, from its next start on.
    pub fn set_argument(&mut self, argument: &str) {
        self.arguments.push(argument.to_owned());
    }

    /// From its next start on, the folder is another broker's.
    pub fn switch_to(&mut self, kind: Kind) {
        self.kind = kind;
    }

    /// Our binary starts with the settings that Kafka would be given.
    pub fn speak_like_kafka(&mut self) {
        self.like_kafka = true;
    }

    /// The voters are those that the folder names (KIP-853), and the settings only say where to
    /// look for them.
    pub fn without_static_voters(&mut self) {
        self.static_voters = false;
    }

    /// Writes `server.properties`, as each start does; its path.
    pub fn write_properties(&self) -> PathBuf {
        let config = self.folder.path().join("server.properties");
        fs::write(&config, self.properties()).expect("the folder can be written to");
        config
    }

    /// Starts it (again) on the same folder and port and waits until it is ready.
    #[track_caller]
    pub fn restart(&mut self) {
        self.launch();
        self.wait_ready();
    }

    /// Starts it and waits for nothing.
    pub fn launch(&mut self) {
        assert!(self.process.is_none(), "it runs already");
        let config = self.write_properties();
        let mut command = match self.kind {
            Kind::Barnabas => {
                let mut command = Command::new(binary());
                command.arg("start").arg("--config").arg(&config);
                command.args(&self.arguments);
                command
            }
            Kind::ApacheKafka => {
                self.format(&config);
                let options = [
                    "-Xms256m",
                    "-Xmx512m",
                    "-XX:TieredStopAtLevel=1",
                    "-XX:+UseSerialGC",
                ];
                java(
                    "log4j2-broker.properties",
                    &options,
                    "kafka.Kafka",
                    &[config.to_str().expect("a plain path")],
                )
            }
        };
        let command = without_settings(&mut command).envs(self.variables.iter().cloned());
        self.process = Some(Running::start("the broker", command));
    }

    #[track_caller]
    fn wait_ready(&self) {
        self.process()
            .wait_for_line(0, |line| line.contains("Kafka Server started"), LIMIT);
    }

    fn format(&self, config: &Path) {
        if self.data().exists() {
            return;
        }
        let config = config.to_str().expect("a plain path");
        let arguments = ["format", "-t", "JcR5cyqYRb6uV7VINHmQ1g", "-c", config];
        let options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];
        let mut command = java(
            "log4j2-tools.properties",
            &options,
            "kafka.tools.StorageTool",
            &arguments,
        );
        run("kafka-storage", &mut command, b"", LIMIT).expect_success();
    }

    fn properties(&self) -> String {
        let port = self.port;
        let mut lines = vec![
            ("process.roles".to_owned(), "broker,controller".to_owned()),
            ("node.id".to_owned(), "1".to_owned()),
            ("log.dirs".to_owned(), self.data().display().to_string()),
        ];
        let mut set = |key: &str, value: String| lines.push((key.to_owned(), value));
        match self.kind {
            Kind::Barnabas if !self.like_kafka => {
                set("listeners", format!("PLAINTEXT://127.0.0.1:{port}"));
            }
            Kind::Barnabas | Kind::ApacheKafka => {
                let controller = format!("127.0.0.1:{}", self.controller_port);
                set(
                    "listeners",
                    format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://{controller}"),
                );
                set(
                    "advertised.listeners",
                    format!("PLAINTEXT://127.0.0.1:{port}"),
                );
                if self.static_voters {
                    set("controller.quorum.voters", format!("1@{controller}"));
                } else {
                    set("controller.quorum.bootstrap.servers", controller);
                }
                set("controller.listener.names", "CONTROLLER".to_owned());
                set(
                    "listener.security.protocol.map",
                    "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT".to_owned(),
                );
                if self.kind == Kind::ApacheKafka {
                    // A killed broker may register again once its last session has ended.
                    set("broker.session.timeout.ms", "600".to_owned());
                    set("broker.heartbeat.interval.ms", "200".to_owned());
                }
                set("offsets.topic.replication.factor", "1".to_owned());
                set("offsets.topic.num.partitions", "1".to_owned());
                set("transaction.state.log.replication.factor", "1".to_owned());
                set("transaction.state.log.min.isr", "1".to_owned());
            }
        }
        lines.extend(self.settings.iter().cloned());
        lines
            .iter()
            .map(|(key, value)| format!("{key}={value}\n"))
            .collect()
    }

    /// SIGTERM, and the exit that a clean stop has.
    #[track_caller]
    pub fn stop(&mut self) {
        let exit = self.end(Signal::SIGTERM);
        let clean = match self.kind {
            Kind::Barnabas => Some(0),
            // What a Java virtual machine answers to SIGTERM.
            Kind::ApacheKafka => Some(143),
        };
        assert_eq!(
            exit.code(),
            clean,
            "a clean stop ({exit}); the broker said:\n{}",
            self.story()
        );
    }

    /// SIGKILL: what was in its memory is lost, what the kernel has is kept.
    #[track_caller]
    pub fn kill(&mut self) {
        self.end(Signal::SIGKILL);
    }

    #[track_caller]
    fn end(&mut self, signal: Signal) -> ExitStatus {
        let process = self.process.take().expect("it runs");
        assert!(
            process.exit().is_none(),
            "the broker had ended by itself:\n{}",
            process.story()
        );
        process.signal(signal);
        let exit = process.wait_exit(LIMIT);
        self.earlier.extend(process.lines());
        exit
    }

    /// Waits until it has ended by itself: its exit, and what it said. It may be started again.
    #[track_caller]
    pub fn ended(&mut self) -> (ExitStatus, String) {
        let process = self.process.take().expect("it was started");
        let exit = process.wait_exit(LIMIT);
        self.earlier.extend(process.lines());
        (exit, process.story())
    }

    /// Whether the process is there.
    pub fn is_alive(&self) -> bool {
        self.process
            .as_ref()
            .is_some_and(|process| process.exit().is_none())
    }

    pub fn process(&self) -> &Running {
        self.process.as_ref().expect("the broker runs")
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port` for a client.
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The log directory.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The last of what it said, over all its processes.
    pub fn story(&self) -> String {
        let mut lines = self.earlier.clone();
        lines.extend(self.process.iter().flat_map(Running::lines));
        let kept = lines.len().saturating_sub(60);
        lines[kept..].join("\n")
    }

    /// Resident memory of the process, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/smaps_rollup", self.process().pid());
        let rollup = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let line = rollup
            .lines()
            .find(|line| line.starts_with("Rss:"))
            .expect("a process has an Rss line");
        let kib: u64 = line
            .split_whitespace()
            .nth(1)
            .and_then(|n| n.parse().ok())
            .expect("in KiB");
        kib * 1024
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // A failing test should show what the broker had to say.
        if std::thread::panicking() {
            eprintln!("--- the broker said, last ---\n{}\n---", self.story());
        }
    }
}

/// Hides the tester's own `KAFKA_*` variables from a broker, which would take them for settings.
pub fn without_settings(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("KAFKA_") {
            command.env_remove(name);
        }
    }
    command
}

/// A port nobody listens on, below those which the kernel gives to outgoing connections: a client
/// that tries a stopped broker's port again and again could otherwise meet itself there. Each port
/// is handed out once in a process.
pub fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let ceiling = range
        .split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(32_768_usize)
        .clamp(12_000, 60_000);
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut chance = Chance::from_seed(u64::from(std::process::id()) << 32 ^ nanos());
    for _ in 0..1000 {
        let port = u16::try_from(chance.between(10_000, ceiling)).expect("below 60,000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() && given.insert(port) {
            return port;
        }
    }
    panic!("no port is free");
}

fn nanos() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970");
    u64::from(now.subsec_nanos())
}
