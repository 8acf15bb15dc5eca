//! Probes: single requests whose answers by Apache Kafka are on file, sent to a broker and compared.
//!
//! The table is `fixtures/probes/probes.jsonl`; its README names the fields. A probe runs when the
//! broker says that it serves the API.
//!
//! - `template`: frames with placeholders. - `layout`: answers as JSON. - `compare`: what must agree.
//! - `socket`: one connection, with deadlines.

mod compare;
mod layout;
mod socket;
mod template;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use self::layout::Layouts;
use self::socket::{Got, Socket};
use self::template::Variables;

/// How the broker is configured that gave the answers.
pub const SETTINGS: &[(&str, &str)] = &[
    ("num.partitions", "4"),
    ("offsets.topic.num.partitions", "4"),
    ("transaction.state.log.num.partitions", "4"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("group.initial.rebalance.delay.ms", "0"),
    ("group.min.session.timeout.ms", "1000"),
    ("group.max.size", "4"),
    ("group.consumer.max.size", "4"),
    (
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "1000",
    ),
    ("socket.request.max.bytes", "2000000"),
    (
        "group.coordinator.rebalance.protocols",
        "classic,consumer,streams,share",
    ),
    (
        "authorizer.class.name",
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    ),
    ("allow.everyone.if.no.acl.found", "true"),
];

const LONGEST_WAIT: Duration = Duration::from_secs(15);
const API_VERSIONS: i16 = 18;

/// One entry of the table.
#[derive(Debug)]
pub struct Entry(Map<String, Value>);

impl Entry {
    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field)?.as_str()
    }

    fn number(&self, field: &str) -> Option<i64> {
        self.0.get(field)?.as_i64()
    }

    fn flag(&self, field: &str) -> bool {
        self.0.get(field).and_then(Value::as_bool).unwrap_or(false)
    }

    fn map(&self, field: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.0
            .get(field)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    }

    /// Its unique name: story and what.
    pub fn name(&self) -> &str {
        self.text("name").expect("an entry has a name")
    }

    fn story(&self) -> &str {
        self.text("story").expect("an entry has a story")
    }

    fn is_probe(&self) -> bool {
        self.text("kind") == Some("probe")
    }

    fn outcome(&self) -> &str {
        self.text("outcome").expect("an entry has an outcome")
    }

    fn key(&self) -> i16 {
        let key = self.number("key").expect("an entry has a key");
        key.try_into().expect("a key is an i16")
    }

    fn api(&self) -> &str {
        self.text("api").unwrap_or("?")
    }

    fn version(&self) -> i64 {
        let version = self.number("version").expect("an entry has a version");
        self.number("answer_version").unwrap_or(version)
    }

    fn millis(&self, field: &str) -> Option<Duration> {
        let millis = u64::try_from(self.number(field)?).ok()?;
        Some(Duration::from_millis(millis))
    }

    fn wait(&self) -> Duration {
        let seconds = self.0.get("wait_s").and_then(Value::as_f64);
        seconds.map_or(LONGEST_WAIT, Duration::from_secs_f64)
    }
}

/// The table and what is needed to read it.
pub struct Table {
    entries: Vec<Entry>,
    layouts: Layouts,
}

impl Table {
    /// The table on file.
    pub fn load() -> Self {
        let lines = include_str!("../../fixtures/probes/probes.jsonl").lines();
        let entries =
            lines.map(|line| Entry(serde_json::from_str(line).expect("a line is an object")));
        Self {
            entries: entries.collect(),
            layouts: Layouts::load(),
        }
    }

    /// Names of all probes.
    pub fn names(&self) -> BTreeSet<&str> {
        let probes = self.entries.iter().filter(|entry| entry.is_probe());
        probes.map(Entry::name).collect()
    }

    /// Runs every story whose name contains `only`, in the order of the table.
    pub fn run(&self, port: u16, only: &str) -> Vec<(&Entry, Outcome)> {
        let served = self.served(port);
        let mut outcomes = Vec::new();
        for story in self
            .entries
            .chunk_by(|one, next| one.story() == next.story())
        {
            if story[0].story().contains(only) {
                let teller = Teller::new(self, port, &served);
                outcomes.extend(teller.tell(story));
            }
        }
        outcomes
            .retain(|(entry, outcome)| entry.is_probe() || matches!(outcome, Outcome::Differs(_)));
        outcomes
    }

    /// The keys that a broker says it serves.
    fn served(&self, port: u16) -> BTreeSet<i16> {
        let ask: Vec<u8> = [0, 18, 0, 0, 0, 0, 0, 7, 0, 0].to_vec();
        let mut socket = Socket::open(port);
        socket.send(&ask, None);
        let Got::Frame(frame) = socket.receive(LONGEST_WAIT) else {
            panic!("the broker does not answer ApiVersions");
        };
        let answer = self
            .layouts
            .read(API_VERSIONS, 0, &frame)
            .expect("an ApiVersions answer");
        let keys = answer["ApiKeys"].as_array().expect("a list of keys").iter();
        keys.map(|key| {
            key["ApiKey"]
                .as_i64()
                .expect("a key")
                .try_into()
                .expect("an i16")
        })
        .collect()
    }
}

/// What became of an entry.
#[derive(Debug)]
pub enum Outcome {
    Agrees,
    /// Lines that say where.
    Differs(Vec<String>),
    /// The API that is missing.
    Skipped(String),
}

/// Tells one story.
struct Teller<'a> {
    table: &'a Table,
    port: u16,
    served: &'a BTreeSet<i16>,
    sockets: HashMap<String, Socket>,
    variables: Variables,
    /// The API without which the rest of the story has no ground.
    missing: Option<String>,
    /// Entries that were skipped: their answers cannot be taken.
    skipped: BTreeMap<String, String>,
}

impl<'a> Teller<'a> {
    fn new(table: &'a Table, port: u16, served: &'a BTreeSet<i16>) -> Self {
        Self {
            table,
            port,
            served,
            sockets: HashMap::new(),
            variables: Variables::default(),
            missing: None,
            skipped: BTreeMap::new(),
        }
    }

    fn tell(mut self, story: &[Entry]) -> Vec<(&Entry, Outcome)> {
        story
            .iter()
            .map(|entry| (entry, self.outcome(entry)))
            .collect()
    }

    fn outcome(&mut self, entry: &Entry) -> Outcome {
        if let Some(api) = self.missing_for(entry) {
            self.skipped.insert(entry.name().to_owned(), api.clone());
            return Outcome::Skipped(api);
        }
        match self.play(entry) {
            Ok(()) => Outcome::Agrees,
            Err(lines) => Outcome::Differs(lines),
        }
    }

    /// The API that an entry needs and the broker lacks. Without what a setup does, or gives a
    /// name to, the rest of a story says nothing.
    fn missing_for(&mut self, entry: &Entry) -> Option<String> {
        if self.missing.is_some() {
            return self.missing.clone();
        }
        if let Some(taken) = entry.text("take") {
            return self.skipped.get(taken).cloned();
        }
        if entry.outcome() == "closed" || self.served.contains(&entry.key()) {
            return None;
        }
        let api = entry.api().to_owned();
        // Heartbeats make the group that the rest of their story is about.
        let is_ground = entry.api() == "ConsumerGroupHeartbeat";
        if !entry.is_probe() || entry.0.contains_key("save") || is_ground {
            self.missing = Some(api.clone());
        }
        Some(api)
    }

    fn play(&mut self, entry: &Entry) -> Result<(), Vec<String>> {
        if let Some(pause) = entry.millis("pause_ms") {
            wait(pause);
        }
        let end = Instant::now() + LONGEST_WAIT;
        loop {
            let got = self.exchange(entry);
            let Some(answer) = self.read(entry, got)? else {
                return Ok(());
            };
            if self.is_again(entry, &answer) && Instant::now() < end {
                wait(Duration::from_millis(100));
                continue;
            }
            for (name, path) in entry.map("save") {
                let value = compare::at(&answer, path.as_str().unwrap_or_default());
                self.variables
                    .set(name, value.cloned().unwrap_or(Value::Null));
            }
            return if entry.is_probe() {
                self.compare(entry, answer)
            } else {
                Ok(())
            };
        }
    }

    /// Sends what there is to send, and waits for what comes.
    fn exchange(&mut self, entry: &Entry) -> Got {
        let conn = entry
            .text("conn")
            .expect("an entry has a connection")
            .to_owned();
        let port = self.port;
        let socket = self
            .sockets
            .entry(conn.clone())
            .or_insert_with(|| Socket::open(port));
        if let Some(frame) = entry.text("frame") {
            socket.send(
                &template::fill(frame, &self.variables),
                entry.number("size"),
            );
        }
        if entry.flag("hold") {
            return Got::Nothing;
        }
        let got = socket.receive(entry.millis("quiet_ms").unwrap_or_else(|| entry.wait()));
        if matches!(got, Got::Closed) {
            self.sockets.remove(&conn);
        }
        got
    }

    /// The answer; nothing when none is to be compared.
    fn read(&self, entry: &Entry, got: Got) -> Result<Option<Value>, Vec<String>> {
        let frame = match (entry.outcome(), got) {
            ("held", Got::Nothing)
            | ("none" | "silent", Got::Nothing)
            | ("closed", Got::Closed) => {
                return Ok(None);
            }
            ("answer", Got::Frame(frame)) => frame,
            (expected, got) => return Err(vec![format!("expected {expected}, got {got}")]),
        };
        let correlation = entry
            .number("correlation")
            .expect("an entry has a correlation id");
        let got = frame.first_chunk().map(|bytes| i32::from_be_bytes(*bytes));
        if got.map(i64::from) != Some(correlation) {
            return Err(vec![format!(
                "expected the answer to {correlation}, got one to {got:?}"
            )]);
        }
        let answer = self
            .table
            .layouts
            .read(entry.key(), entry.version(), &frame);
        answer
            .map(Some)
            .map_err(|why| vec![format!("the answer cannot be read: {why}")])
    }

    fn is_again(&self, entry: &Entry, answer: &Value) -> bool {
        let Some(codes) = entry.0.get("repeat_while").and_then(Value::as_array) else {
            return false;
        };
        compare::error_codes(answer)
            .iter()
            .any(|code| codes.contains(code))
    }

    fn compare(&self, entry: &Entry, answer: Value) -> Result<(), Vec<String>> {
        let answer = compare::normal(answer, &self.variables, entry.flag("ordered"));
        let mut expected: BTreeMap<String, Value> = entry
            .map("expect")
            .map(|(path, value)| (path.clone(), value.clone()))
            .collect();
        if entry.key() == API_VERSIONS {
            compare::narrow_to(&mut expected, self.served);
        }
        let texts = entry
            .map("texts")
            .map(|(path, value)| (path.clone(), value.clone()));
        expected.extend(texts);
        let mut lines = compare::differences(&expected, &answer);
        if lines.is_empty() {
            return Ok(());
        }
        if let Some(request) = entry.0.get("request") {
            lines.insert(0, format!("{} v{} {request}", entry.api(), entry.version()));
        }
        Err(lines)
    }
}

/// The pauses are part of the stories: sessions and timeouts run out in them.
#[expect(
    clippy::disallowed_methods,
    reason = "a story says how long nothing happens"
)]
fn wait(time: Duration) {
    std::thread::sleep(time);
}
