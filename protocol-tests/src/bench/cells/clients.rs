//! Throughput that users see, through stock clients. They are most of the CPU time on a small
//! machine, so that this says that nothing is in their way, and little of the broker.

use std::fs;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Cell, Figure, Goal, Life, Taken, with_cpu};
use crate::bench::contestant::{Contestant, Kind};
use crate::load::wrong;
use crate::process::run;
use crate::tools::java;

pub(super) const LIBRDKAFKA: Cell = Cell {
    name: "librdkafka",
    title: "kcat (librdkafka): 300,000 records of 1 KiB",
    figures: &[
        figure("produce_mb_per_s", "produced"),
        figure("consume_mb_per_s", "consumed"),
    ],
    life: Life::Shared,
    real_time: false,
    daily: 3,
    counts: false,
    others_work: true,
    without: &[Kind::Control],
    run: librdkafka,
};

pub(super) const JAVA: Cell = Cell {
    name: "java",
    title: "kafka-producer-perf-test and kafka-console-consumer (Java): 500,000 records of 1 KiB",
    figures: &[
        figure("produce_mb_per_s", "produced"),
        figure("consume_mb_per_s", "consumed, its start included"),
    ],
    life: Life::Shared,
    real_time: false,
    daily: 3,
    counts: false,
    others_work: true,
    without: &[Kind::Control],
    run: stock_java,
};

const fn figure(key: &'static str, title: &'static str) -> Figure {
    Figure {
        key,
        title,
        unit: "MB/s, more is better",
        goal: Goal {
            not_below_tuned: true,
            ..Goal::NONE
        },
    }
}

const LIMIT: Duration = Duration::from_secs(120);
const RECORD: usize = 1024;
const KCAT_RECORDS: usize = 300_000;
const JAVA_RECORDS: usize = 500_000;

fn librdkafka(contestant: &mut Contestant) -> io::Result<Taken> {
    let (topic, _) = contestant.new_topic(1)?;
    let lines = contestant.folder.join("lines");
    fs::write(
        &lines,
        [&[b'a'; RECORD - 1][..], b"\n"]
            .concat()
            .repeat(KCAT_RECORDS),
    )?;
    let lines = lines.display().to_string();
    let server = contestant.bootstrap();
    let kcat = |arguments: &[&str]| {
        let began = Instant::now();
        let mut command = Command::new("kcat");
        command
            .args(["-b", &server, "-t", &topic, "-p", "0"])
            .args(arguments);
        run("kcat", &mut command, b"", LIMIT).expect_success();
        Ok(began.elapsed())
    };
    let count = KCAT_RECORDS.to_string();
    let (produce_cpu, produced) =
        with_cpu(contestant, || kcat(&["-P", "-l", &lines, "-X", "acks=1"]))?;
    let consume = ["-C", "-q", "-o", "1", "-c", &count, "-f", ""];
    let (consume_cpu, consumed) = with_cpu(contestant, || kcat(&consume))?;
    contestant.delete_topic(&topic)?;
    let megabytes = (KCAT_RECORDS * RECORD) as f64 / 1e6;
    Ok(Taken {
        cpu: produce_cpu + consume_cpu,
        figures: vec![
            ("produce_mb_per_s", megabytes / produced.as_secs_f64()),
            ("consume_mb_per_s", megabytes / consumed.as_secs_f64()),
            (
                "produce_s_per_gb",
                produce_cpu.as_secs_f64() / megabytes * 1e3,
            ),
            (
                "consume_s_per_gb",
                consume_cpu.as_secs_f64() / megabytes * 1e3,
            ),
        ],
    })
}

fn stock_java(contestant: &mut Contestant) -> io::Result<Taken> {
    let (topic, _) = contestant.new_topic(1)?;
    let server = contestant.bootstrap();
    let count = JAVA_RECORDS.to_string();
    let record = RECORD.to_string();
    let produce = [
        "--topic",
        &topic,
        "--num-records",
        &count,
        "--record-size",
        &record,
        "--throughput",
        "-1",
        "--producer-props",
        &format!("bootstrap.servers={server}"),
        "acks=1",
    ];
    let consume = [
        "--bootstrap-server",
        &server,
        "--topic",
        &topic,
        "--partition",
        "0",
        "--offset",
        "1",
        "--max-messages",
        &count,
        "--formatter",
        "org.apache.kafka.tools.consumer.NoOpMessageFormatter",
    ];
    let (produce_cpu, said) = with_cpu(contestant, || {
        tool("org.apache.kafka.tools.ProducerPerformance", &produce)
    })?;
    let (consume_cpu, consumed) = with_cpu(contestant, || {
        let began = Instant::now();
        tool("org.apache.kafka.tools.consumer.ConsoleConsumer", &consume)?;
        Ok(began.elapsed())
    })?;
    contestant.delete_topic(&topic)?;
    let megabytes = (JAVA_RECORDS * RECORD) as f64 / 1e6;
    let mib = produced_mib(&said).ok_or_else(|| wrong(format!("no throughput in: {said}")))?;
    Ok(Taken {
        cpu: produce_cpu + consume_cpu,
        figures: vec![
            ("produce_mb_per_s", mib * f64::from(1 << 20) / 1e6),
            ("consume_mb_per_s", megabytes / consumed.as_secs_f64()),
            (
                "produce_s_per_gb",
                produce_cpu.as_secs_f64() / megabytes * 1e3,
            ),
            (
                "consume_s_per_gb",
                consume_cpu.as_secs_f64() / megabytes * 1e3,
            ),
        ],
    })
}

fn tool(class: &str, arguments: &[&str]) -> io::Result<String> {
    let options = ["-Xms256m", "-Xmx512m", "-XX:+UseG1GC"];
    let mut command = java("log4j2-tools.properties", &options, class, arguments);
    Ok(run(class, &mut command, b"", LIMIT).expect_success().text())
}

/// The throughput of the last line of ProducerPerformance.
fn produced_mib(said: &str) -> Option<f64> {
    let line = said.lines().rev().find(|line| line.contains("MB/sec)"))?;
    let (before, _) = line.split_once(" MB/sec)")?;
    before.rsplit('(').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_throughput_of_the_last_line_counts() {
        let said = "\
100 records sent, 1.0 records/sec (0.50 MB/sec), 3 ms avg latency.
500000 records sent, 212134.068 records/sec (207.16 MB/sec), 2.11 ms avg latency, 200 ms max.
";
        assert_eq!(produced_mib(said), Some(207.16));
        assert_eq!(produced_mib("nothing"), None);
    }
}
