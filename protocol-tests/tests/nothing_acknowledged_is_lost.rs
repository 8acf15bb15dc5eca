//! A broker killed again and again under three busy producers keeps what it has acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use protocol_tests::tools::{python, python_beside};
use protocol_tests::wire::Connection;
use protocol_tests::{Broker, Chance};

const KILLS: usize = 22;
const TOPICS: [&str; 3] = ["acks-one", "acks-all", "idempotent"];
const LIMIT: Duration = Duration::from_secs(120);

/// A topic and a partition of it.
type Partition = (String, i32);

/// Offset to the number of the record there.
type Records = BTreeMap<i64, i64>;

#[test]
fn twenty_two_kills_lose_move_and_double_nothing() {
    let mut chance = Chance::announced("kills");
    // Small segments, so that the kills meet rolls as well.
    let mut broker = Broker::start_with(&[("log.segment.bytes", "1048576")]);
    let codec = chance.one_of(&["none", "lz4", "zstd", "snappy", "gzip"]);
    println!("the codec is {codec}");
    let mut producers = python_beside("busy_producers.py", &broker, &[codec]);

    let began = Instant::now();
    for kill in 0..KILLS {
        // So many acknowledgements, and one for each topic at least: an idempotent producer takes
        // longer to come back than the others, and would never get a word in.
        let from = producers.lines().len();
        let wanted = chance.between(1, 3000);
        let (mut acks, mut quiet) = (0, BTreeSet::from(TOPICS));
        producers.wait_for_line(
            from,
            |line| {
                assert!(!line.starts_with("failed "), "{line}");
                if let Some(acked) = line.strip_prefix("acked ") {
                    acks += 1;
                    quiet.retain(|topic| !acked.starts_with(topic));
                }
                acks >= wanted && quiet.is_empty()
            },
            LIMIT,
        );
        println!("{:>6.1} s: kill {kill}", began.elapsed().as_secs_f64());
        broker.kill();
        let acked = records("acked", producers.lines());
        if chance.below(4) == 0 {
            // Another kill while it recovers from the last one.
            broker.launch();
            broker.process().wait_for_line(0, |_| true, LIMIT);
            broker.kill();
        }
        broker.restart();
        let mut connection = Connection::open(&broker);
        for ((topic, partition), records) in &acked {
            let last = records.keys().next_back().copied().unwrap_or(-1);
            let end = connection.end_offset(topic, *partition);
            assert!(
                end > last,
                "kill {kill}: {topic}-{partition} ends at {end}, and {last} was acknowledged"
            );
        }
    }

    producers.tell("stop");
    let exit = producers.wait_exit(LIMIT);
    let lines = producers.lines();
    assert!(
        exit.success(),
        "the producers ended with {exit}:\n{}",
        producers.story()
    );
    assert_eq!(lines.iter().find(|line| line.starts_with("failed ")), None);

    let kept = records(
        "record",
        python("read_numbers.py", &broker, &TOPICS).lines(),
    );
    let acked = records("acked", &lines);
    assert_eq!(
        acked.len(),
        6,
        "all six partitions were written to: {:?}",
        acked.keys()
    );
    let total: usize = acked.values().map(BTreeMap::len).sum();
    println!("{total} acknowledged records over {KILLS} kills");
    for (partition, acked) in &acked {
        let kept = &kept[partition];
        for (offset, number) in acked {
            let got = kept.get(offset);
            assert_eq!(
                got,
                Some(number),
                "{partition:?}: offset {offset} was acknowledged as record {number}"
            );
        }
    }
    nothing_sent_is_missing(&lines, &kept);
    idempotent_records_come_once_and_in_order(&lines, &kept);
}

fn nothing_sent_is_missing(lines: &[String], kept: &BTreeMap<Partition, Records>) {
    for (partition, sent) in sent(lines) {
        let mut numbers: Vec<i64> = kept[&partition].values().copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(
            numbers,
            Vec::from_iter(0..sent),
            "{partition:?}: every record which was sent is there"
        );
    }
}

fn idempotent_records_come_once_and_in_order(
    lines: &[String],
    kept: &BTreeMap<Partition, Records>,
) {
    for (partition, sent) in sent(lines) {
        if partition.0 == "idempotent" {
            let numbers: Vec<i64> = kept[&partition].values().copied().collect();
            for (place, number) in numbers.iter().enumerate() {
                assert_eq!(
                    usize::try_from(*number),
                    Ok(place),
                    "{partition:?}: the record at place {place}"
                );
            }
            assert_eq!(
                numbers.len(),
                usize::try_from(sent).unwrap(),
                "{partition:?}"
            );
        }
    }
}

/// The lines `WORD TOPIC PARTITION OFFSET NUMBER`.
fn records<S: AsRef<str>>(
    word: &str,
    lines: impl IntoIterator<Item = S>,
) -> BTreeMap<Partition, Records> {
    let mut all = BTreeMap::<Partition, Records>::new();
    for line in lines {
        let line = line.as_ref();
        let fields: Vec<&str> = line.split(' ').collect();
        let [first, topic, partition, offset, number] = fields[..] else {
            continue;
        };
        if first != word {
            continue;
        }
        let place = (topic.to_owned(), partition.parse().unwrap());
        let (offset, number) = (offset.parse().unwrap(), number.parse().unwrap());
        assert!(offset >= 0, "an acknowledgement without its offset: {line}");
        let other = all.entry(place).or_default().insert(offset, number);
        assert_eq!(other, None, "two records have one offset: {line}");
    }
    all
}

fn sent(lines: &[String]) -> Vec<(Partition, i64)> {
    let rows: Vec<(Partition, i64)> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("sent "))
        .map(|row| {
            let fields: Vec<&str> = row.split(' ').collect();
            (
                (fields[0].to_owned(), fields[1].parse().unwrap()),
                fields[2].parse().unwrap(),
            )
        })
        .collect();
    assert_eq!(rows.len(), 6, "each partition says what it was sent");
    rows
}
