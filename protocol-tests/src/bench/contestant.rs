//! Who takes part: this broker, Apache Kafka twice, and the control broker.
//!
//! All are started before the first sample and frozen while another is measured (SIGSTOP): a Java
//! virtual machine that was restarted would be measured cold.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kafka_protocol::messages::DeleteTopicsRequest;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use nix::sys::signal::Signal;

use super::measure::rest;
use crate::broker::{free_port, without_settings};
use crate::load::batch::Batch;
use crate::load::frames::Target;
use crate::load::produce::{self, Load};
use crate::load::wrong;
use crate::process::{Running, run};
use crate::tools::java;
use crate::wire::{Connection, topic_name};

/// How long a start may take, a recovery of some GiB included.
const LIMIT: Duration = Duration::from_secs(240);

/// So many partitions of a new topic are each asked whether they are led.
const FEW: usize = 16;

/// A broker that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Barnabas,
    /// Apache Kafka with threads, socket buffers and heap for a machine of two cores.
    KafkaTuned,
    /// Apache Kafka with the configuration that it comes with.
    Kafka,
    Control,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Barnabas, Self::KafkaTuned, Self::Kafka, Self::Control];

    pub fn name(self) -> &'static str {
        match self {
            Self::Barnabas => "barnabas",
            Self::KafkaTuned => "kafka-tuned",
            Self::Kafka => "kafka",
            Self::Control => "control",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Barnabas => "Barnabas",
            Self::KafkaTuned => "Kafka, tuned",
            Self::Kafka => "Kafka, as shipped",
            Self::Control => "control",
        }
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn is_java(self) -> bool {
        matches!(self, Self::KafkaTuned | Self::Kafka)
    }

    /// Settings besides listeners and folders.
    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Control => &[],
            Self::Barnabas => BOTH,
            Self::KafkaTuned => TUNED,
            Self::Kafka => SHIPPED,
        }
    }

    fn java_options(self) -> &'static [&'static str] {
        match self {
            Self::KafkaTuned => &[
                "-Xms1g",
                "-Xmx1g",
                "-XX:+AlwaysPreTouch",
                "-server",
                "-XX:+UseG1GC",
                "-XX:MaxGCPauseMillis=20",
                "-XX:InitiatingHeapOccupancyPercent=35",
                "-Djava.awt.headless=true",
            ],
            // What kafka-server-start.sh and kafka-run-class.sh give.
            Self::Kafka | Self::Barnabas | Self::Control => &[
                "-Xmx1G",
                "-Xms1G",
                "-server",
                "-XX:+UseG1GC",
                "-XX:MaxGCPauseMillis=20",
                "-XX:InitiatingHeapOccupancyPercent=35",
                "-XX:+ExplicitGCInvokesConcurrent",
                "-Djava.awt.headless=true",
            ],
        }
    }
}

/// A frozen broker must not be taken for a dead one. One that is killed must be: Apache Kafka lets its
/// successor in only when its session is over.
const FROZEN: (&str, &str) = ("broker.session.timeout.ms", "3600000");

/// What was deleted must go at once.
const BOTH: &[(&str, &str)] = &[
    ("log.segment.delete.delay.ms", "100"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
];

/// config/server.properties of Apache Kafka 4.1, with the above.
const SHIPPED: &[(&str, &str)] = &[
    ("log.segment.delete.delay.ms", "100"),
    ("num.network.threads", "3"),
    ("num.io.threads", "8"),
    ("socket.send.buffer.bytes", "102400"),
    ("socket.receive.buffer.bytes", "102400"),
    ("socket.request.max.bytes", "104857600"),
    ("num.partitions", "1"),
    ("num.recovery.threads.per.data.dir", "1"),
    ("offsets.topic.replication.factor", "1"),
    ("share.coordinator.state.topic.replication.factor", "1"),
    ("share.coordinator.state.topic.min.isr", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("log.retention.hours", "168"),
    ("log.segment.bytes", "1073741824"),
    ("log.retention.check.interval.ms", "300000"),
];

const TUNED: &[(&str, &str)] = &[
    ("log.segment.delete.delay.ms", "100"),
    ("num.network.threads", "2"),
    ("num.io.threads", "4"),
    ("socket.send.buffer.bytes", "1048576"),
    ("socket.receive.buffer.bytes", "1048576"),
    ("num.recovery.threads.per.data.dir", "2"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
];

/// Programs that are neither in PATH nor built here.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The broker under test.
    pub barnabas: PathBuf,
    /// This program itself, which is the control broker too.
    pub bench: PathBuf,
}

/// A broker on a folder and a port of its own. Killed when dropped.
pub struct Contestant {
    pub kind: Kind,
    pub port: u16,
    pub folder: PathBuf,
    programs: Programs,
    controller_port: u16,
    process: Option<Running>,
    is_shared: bool,
    topics: HashMap<String, Target>,
    made: usize,
}

impl Contestant {
    /// One that does not run yet; its folder is made.
    pub fn new(kind: Kind, programs: &Programs, folder: &Path) -> io::Result<Self> {
        let folder = folder.join(kind.name());
        fs::create_dir_all(&folder)?;
        Ok(Self {
            kind,
            port: free_port(),
            folder,
            programs: programs.clone(),
            controller_port: free_port(),
            process: None,
            is_shared: false,
            topics: HashMap::new(),
            made: 0,
        })
    }

    /// It will be frozen between samples.
    pub fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Prepares an empty folder where that is a step of its own; how long that took.
    pub fn format(&self) -> io::Result<Duration> {
        let began = Instant::now();
        let config = self.write_config()?;
        if self.kind.is_java() && !self.data().exists() {
            let arguments = ["format", "-t", "JcR5cyqYRb6uV7VINHmQ1g", "-c", &config];
            // The stock script's options.
            let mut command = java(
                "log4j2-tools.properties",
                &["-Xmx256M", "-server", "-XX:+UseG1GC"],
                "kafka.tools.StorageTool",
                &arguments,
            );
            run("kafka-storage", &mut command, b"", LIMIT).expect_success();
        }
        Ok(began.elapsed())
    }

    /// Starts it and waits for nothing; the moment before.
    pub fn launch(&mut self) -> io::Result<Instant> {
        let config = self.write_config()?;
        let mut command = match self.kind {
            Kind::Barnabas => {
                let mut command = Command::new(&self.programs.barnabas);
                command.args(["start", "--config", &config]);
                command
            }
            Kind::Control => {
                let mut command = Command::new(&self.programs.bench);
                command.arg("control").arg(self.port.to_string());
                command.arg(self.data());
                command
            }
            Kind::KafkaTuned | Kind::Kafka => java(
                "log4j2-broker.properties",
                self.kind.java_options(),
                "kafka.Kafka",
                &[&config],
            ),
        };
        let process = Running::start(self.kind.name(), without_settings(&mut command));
        let started = process.started();
        self.process = Some(process);
        Ok(started)
    }

    /// Prepares and starts it, and waits until it says that it is ready.
    pub fn start(&mut self) -> io::Result<()> {
        self.format()?;
        self.launch()?;
        let process = self.process();
        process.wait_for_line(0, |line| line.contains("Kafka Server started"), LIMIT);
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn write_config(&self) -> io::Result<String> {
        let (port, controller) = (self.port, self.controller_port);
        let mut lines = format!(
            "process.roles=broker,controller\n\
             node.id=1\n\
             log.dirs={}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             controller.listener.names=CONTROLLER\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n",
            self.data().display()
        );
        let frozen = self.is_shared.then_some(&FROZEN);
        for (key, value) in self.kind.settings().iter().chain(frozen) {
            lines += &format!("{key}={value}\n");
        }
        let path = self.folder.join("server.properties");
        fs::write(&path, lines)?;
        Ok(path.display().to_string())
    }

    pub fn process(&self) -> &Running {
        self.process.as_ref().expect("it was started")
    }

    pub fn pid(&self) -> i32 {
        self.process().pid()
    }

    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Takes the processor away from it.
    pub fn freeze(&self) {
        self.process().signal(Signal::SIGSTOP);
    }

    /// Gives it back, and waits until it answers.
    pub fn thaw(&self) {
        self.process().signal(Signal::SIGCONT);
        Connection::open_port(self.port).api_versions();
    }

    /// Ends it at once, as a crash of the process would.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.signal(Signal::SIGKILL);
            process.wait_exit(LIMIT);
        }
    }

    /// Ends it and removes its folder.
    pub fn remove(&mut self) -> io::Result<()> {
        self.kill();
        fs::remove_dir_all(&self.folder)
    }

    /// An empty topic, ready for records: its partitions, and its name.
    pub fn new_topic(&mut self, partitions: i32) -> io::Result<(String, Vec<Target>)> {
        self.made += 1;
        let name = format!("bench-{}", self.made);
        let mut connection = Connection::open_port(self.port);
        connection.patience(LIMIT);
        let topic = connection.create_topic(&name, partitions);
        let target = |partition| Target { topic, partition };
        let targets: Vec<Target> = (0..partitions).map(target).collect();
        // Of many partitions the last to be led stands for all.
        let asked = match targets.len() {
            ..=FEW => &targets[..],
            all => &targets[all - 1..],
        };
        for target in asked {
            self.until_led(*target)?;
        }
        Ok((name, targets))
    }

    /// A partition is created before its leader knows: one record is tried until it is taken.
    fn until_led(&self, target: Target) -> io::Result<()> {
        let load = Load {
            port: self.port,
            targets: vec![target],
            batch: Batch::new(200, 1),
            acks: 1,
            depth: 1,
            requests: 1,
        };
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            match produce::run(&load) {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => rest(Duration::from_millis(20)),
            }
        }
    }

    /// A topic of one partition that holds so many of this batch and nothing else; made once.
    pub fn full_topic(&mut self, batch: &Batch, batches: u64) -> io::Result<Target> {
        let name = format!("full-{}-{batches}", batch.bytes.len());
        if let Some(target) = self.topics.get(&name) {
            return Ok(*target);
        }
        let topic = Connection::open_port(self.port).create_topic(&name, 1);
        let target = Target {
            topic,
            partition: 0,
        };
        let mut load = Load {
            port: self.port,
            targets: vec![target],
            batch: batch.clone(),
            acks: 1,
            depth: 1,
            requests: 1,
        };
        let end = Instant::now() + Duration::from_secs(30);
        while let Err(error) = produce::run(&load) {
            if Instant::now() > end {
                return Err(error);
            }
            rest(Duration::from_millis(20));
        }
        load.depth = 4;
        load.requests = batches - 1;
        produce::run(&load)?;
        self.topics.insert(name, target);
        Ok(target)
    }

    pub fn delete_topic(&self, name: &str) -> io::Result<()> {
        let topic = DeleteTopicState::default().with_name(Some(topic_name(name)));
        let request = DeleteTopicsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(30_000);
        let answer = Connection::open_port(self.port).ask(6, &request);
        match answer.responses[0].error_code {
            0 => Ok(()),
            code => Err(wrong(format!("error code {code} for DeleteTopics"))),
        }
    }
}
