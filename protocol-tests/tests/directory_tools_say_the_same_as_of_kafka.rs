//! kafka-reassign-partitions and kafka-log-dirs on a node with two log directories, side by side: the
//! same steps against our broker and against Apache Kafka, before, while and after replicas move.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use protocol_tests::stock::{Outcome, Step, hide_after, run_steps, step};
use protocol_tests::wire::{Connection, produce};
use protocol_tests::{Broker, Kind};

const LIMIT: Duration = Duration::from_secs(60);

fn start(kind: Kind) -> Broker {
    let mut broker = Broker::prepare(&[]);
    broker.switch_to(kind);
    let folder = broker.folder().display().to_string();
    broker.set("log.dirs", &format!("{folder}/data,{folder}/other"));
    broker.restart();
    broker
}

/// What may differ is hidden.
fn normal(broker: &Broker, outcome: &Outcome) -> String {
    let lines = |text: &str| -> String {
        text.lines()
            // Where in the tool's code an exception came from.
            .filter(|line| !line.starts_with("\tat ") && !line.starts_with("\t... "))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    let text = format!(
        "exit {}\n{}{}",
        outcome.status,
        lines(&outcome.stdout),
        lines(&outcome.stderr)
    );
    let text = text
        .replace(&broker.port().to_string(), "PORT")
        .replace(broker.folder().to_str().unwrap(), "FOLDER");
    // How much goes before a throttle holds is each one's own.
    let lags = (1..10).map(|digit| format!("offsetLag\":{digit}"));
    let labels = lags.chain(["\"size\":".to_owned()]);
    let text = labels.fold(text, |text, label| {
        let hidden = hide_after(&text, &label);
        hidden.replace(
            &format!("{label}*"),
            &format!("{}*", &label[..label.len() - 1]),
        )
    });
    text.lines().map(sorted_directories).collect()
}

/// The tool lists directories in the order of a hash.
fn sorted_directories(line: &str) -> String {
    const EACH: &str = "{\"partitions\":";
    let parts = line.split_once("\"logDirs\":[");
    let Some((head, (body, tail))) =
        parts.and_then(|(head, rest)| Some((head, rest.rsplit_once("]}],\"version\"")?)))
    else {
        return format!("{line}\n");
    };
    let dirs = body.split(EACH).map(|dir| dir.trim_end_matches(','));
    let mut dirs: Vec<&str> = dirs.filter(|dir| !dir.is_empty()).collect();
    dirs.sort_by_key(|dir| dir.rsplit_once("logDir").map(|(_, path)| path));
    format!("{head} {} {tail}\n", dirs.join(" "))
}

struct Both {
    ours: Broker,
    theirs: Broker,
    different: Vec<String>,
    count: usize,
}

impl Both {
    /// Runs the steps on both; `{folder}` stands for the broker's.
    fn run(&mut self, lines: &[&str]) {
        let steps = |broker: &Broker| -> Vec<Step> {
            let folder = broker.folder().to_str().unwrap();
            lines
                .iter()
                .map(|line| step(&line.replace("{folder}", folder)))
                .collect()
        };
        let (mine, yours) = std::thread::scope(|scope| {
            let mine = scope.spawn(|| run_steps(&self.ours, &steps(&self.ours)));
            let yours = run_steps(&self.theirs, &steps(&self.theirs));
            (mine.join().unwrap(), yours)
        });
        self.count += lines.len();
        for ((line, mine), yours) in lines.iter().zip(&mine).zip(&yours) {
            let (mine, yours) = (normal(&self.ours, mine), normal(&self.theirs, yours));
            if mine != yours {
                let text = format!("{line}\n--- Apache Kafka: {yours}\n--- Barnabas: {mine}\n");
                self.different.push(text);
            } else if std::env::var_os("PROTOCOL_TESTS_SHOW").is_some() {
                println!("{line}\n{mine}");
            }
        }
    }

    fn each(&self, work: impl Fn(&Broker)) {
        work(&self.ours);
        work(&self.theirs);
    }

    /// Writes what is to be moved where.
    fn plan(&self, name: &str, moves: &[(&str, i32, &str)]) {
        self.each(|broker| {
            let folder = broker.folder().to_str().unwrap();
            let moves: Vec<_> = moves
                .iter()
                .map(|(topic, partition, to)| {
                    let to = to.replace("{folder}", folder);
                    format!(
                        "{{\"topic\":\"{topic}\",\"partition\":{partition},\"replicas\":[1],\
                         \"log_dirs\":[\"{to}\"]}}"
                    )
                })
                .collect();
            let json = format!("{{\"version\":1,\"partitions\":[{}]}}", moves.join(","));
            fs::write(broker.folder().join(name), json).unwrap();
        });
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Path) -> bool) {
        self.each(|broker| {
            let end = Instant::now() + LIMIT;
            while !is_so(broker.folder()) {
                assert!(Instant::now() < end, "not within a minute: {what}");
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
    }
}

fn future_of(folder: &Path, topic: &str) -> bool {
    let entries = fs::read_dir(folder).unwrap();
    let mut names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.any(|name| name.starts_with(topic) && name.ends_with("-future"))
}

const REASSIGN: &str = "kafka-reassign-partitions --bootstrap-server {bootstrap}";
const DESCRIBE: &str = "kafka-log-dirs --bootstrap-server {bootstrap} --describe --topic-list";

#[test]
fn replicas_move_between_the_directories_of_one_node() {
    let mut both = Both {
        ours: start(Kind::chosen()),
        theirs: start(Kind::ApacheKafka),
        different: Vec::new(),
        count: 0,
    };
    let topics = "kafka-topics --bootstrap-server {bootstrap} --create --topic";
    let line = |tool: &str, rest: &str| format!("{tool} {rest}");
    both.run(&[
        &line(topics, "ta"),
        "@partitions ta 1",
        &line(topics, "tb"),
        "@partitions tb 1",
    ]);
    both.each(|broker| {
        let mut asker = Connection::open(broker);
        let value = vec![b'x'; 600_000];
        for topic in ["ta", "ta", "tb", "tb", "tb", "tb", "tb", "tb"] {
            let answer = asker.ask(9, &produce(topic, -1, &[&value]));
            assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
        }
    });
    let other = "{folder}/other";
    both.plan("ta.json", &[("ta", 0, other)]);
    both.plan("tb.json", &[("tb", 0, "{folder}/data")]);
    both.plan("any.json", &[("ta", 0, "any")]);
    both.plan("unknown.json", &[("ta", 0, "/nowhere")]);
    both.plan("relative.json", &[("ta", 0, "other")]);
    both.plan("missing.json", &[("missing", 0, other)]);
    both.plan("partition.json", &[("ta", 7, other)]);
    both.run(&[
        &line(DESCRIBE, "ta"),
        &line(DESCRIBE, "tb"),
        &line(REASSIGN, "--list"),
        &line(
            REASSIGN,
            "--verify --reassignment-json-file {folder}/ta.json",
        ),
        &line(
            REASSIGN,
            "--execute --reassignment-json-file {folder}/any.json",
        ),
        &line(
            REASSIGN,
            "--execute --reassignment-json-file {folder}/relative.json",
        ),
        &line(
            REASSIGN,
            "--execute --timeout 1500 --reassignment-json-file {folder}/unknown.json",
        ),
        &line(
            REASSIGN,
            "--execute --reassignment-json-file {folder}/missing.json",
        ),
        &line(
            REASSIGN,
            "--execute --reassignment-json-file {folder}/partition.json",
        ),
        &line(
            REASSIGN,
            "--execute --reassignment-json-file {folder}/ta.json",
        ),
    ]);
    both.wait("ta has moved", |folder| {
        folder.join("other/ta-0").exists() && !folder.join("data/ta-0").exists()
    });
    both.run(&[
        &line(REASSIGN, "--verify --reassignment-json-file {folder}/ta.json"),
        &line(REASSIGN, "--execute --reassignment-json-file {folder}/ta.json"),
        &line(DESCRIBE, "ta"),
        // As good as standing still, after the first bytes.
        &line(
            REASSIGN,
            "--execute --replica-alter-log-dirs-throttle 1 --reassignment-json-file {folder}/tb.json",
        ),
    ]);
    both.wait("tb moves", |folder| {
        future_of(&folder.join("data"), "tb-0.")
    });
    // The first piece is there when the next is not.
    std::thread::park_timeout(Duration::from_millis(1500));
    both.run(&[
        &line(DESCRIBE, "tb"),
        &line(REASSIGN, "--list"),
        &line(REASSIGN, "--verify --preserve-throttles --reassignment-json-file {folder}/tb.json"),
        "kafka-configs --bootstrap-server {bootstrap} --describe --entity-type brokers --entity-name 1",
        &line(REASSIGN, "--cancel --reassignment-json-file {folder}/tb.json"),
        &line(REASSIGN, "--cancel --reassignment-json-file {folder}/tb.json"),
        &line(REASSIGN, "--cancel --reassignment-json-file {folder}/missing.json"),
        "kafka-configs --bootstrap-server {bootstrap} --describe --entity-type brokers --entity-name 1",
    ]);
    both.run(&[
        &line(
            REASSIGN,
            "--verify --reassignment-json-file {folder}/tb.json",
        ),
        &line(DESCRIBE, "tb"),
        &line(
            REASSIGN,
            "--execute --reassignment-json-file {folder}/tb.json",
        ),
    ]);
    both.wait("tb has moved", |folder| {
        folder.join("data/tb-0").exists() && !folder.join("other/tb-0").exists()
    });
    both.run(&[
        &line(
            REASSIGN,
            "--verify --reassignment-json-file {folder}/tb.json",
        ),
        &line(DESCRIBE, "tb"),
        "kafka-get-offsets --bootstrap-server {bootstrap} --topic tb",
    ]);
    assert!(
        both.different.is_empty(),
        "{} of {} steps differ\n{}",
        both.different.len(),
        both.count,
        both.different.join("\n")
    );
}
