//! Start with many partitions and segments: time, bytes read, descriptors, memory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::machine::{descriptors, drop_caches, status_bytes, topic};
use crate::Broker;
use crate::bench::measure::{bytes_read, cpu_time, rest};
use crate::load::batch::Batch;
use crate::load::produce::{self as load, Load};
use crate::wire::{Connection, produce};

const TOPICS: i32 = 10;
const PARTITIONS: i32 = 1000;
const SEGMENTS: u64 = 5;
/// The descriptors that a node may have open.
const DESCRIPTORS: u64 = 20_000;

/// Runs it.
pub fn run() -> io::Result<()> {
    let mut broker = Broker::prepare(&[]);
    broker.restart();
    println!(
        "making {} partitions of {SEGMENTS} segments",
        TOPICS * PARTITIONS
    );
    // A segment of a MiB is full after so many batches.
    let template = topic(
        broker.port(),
        "template",
        1,
        &[("segment.bytes", "1048576")],
    );
    let batch = Batch::new(300 << 10, 3);
    load::run(&Load {
        port: broker.port(),
        targets: template,
        batch,
        acks: 1,
        depth: 1,
        requests: SEGMENTS * 3,
    })?;
    for number in 0..TOPICS {
        topic(broker.port(), &format!("many-{number}"), PARTITIONS, &[]);
    }
    broker.stop();
    multiply(&broker.data())?;
    for how in [
        "after an orderly stop",
        "after kill -9",
        "after kill -9, a record in each",
    ] {
        drop_caches()?;
        let began = Instant::now();
        broker.restart();
        let took = began.elapsed();
        let pid = broker.process().pid();
        let cpu = cpu_time(pid)?;
        let read = bytes_read(pid)?;
        rest(Duration::from_secs(2));
        println!(
            "start {how}: {:.2} s, {:.2} s of CPU, {:.0} MiB read, {} descriptors open, {:.0} MiB resident, {:.0} at \
             most",
            took.as_secs_f64(),
            cpu.as_secs_f64(),
            mib(read),
            descriptors(pid)?,
            mib(status_bytes(pid, "VmRSS")?),
            mib(status_bytes(pid, "VmHWM")?),
        );
        // Whoever needed more than are allowed would not have started.
        assert!(allowed(pid)? <= DESCRIPTORS);
        if how == "after kill -9" {
            append_to_each(&broker);
        }
        broker.kill();
    }
    Ok(())
}

fn append_to_each(broker: &Broker) {
    let mut connection = Connection::open(broker);
    connection.patience(Duration::from_secs(60));
    for number in 0..TOPICS {
        let mut request = produce(&format!("many-{number}"), 1, &[b"one more"]);
        let data = &mut request.topic_data[0].partition_data;
        let one = data[0].clone();
        *data = (0..PARTITIONS)
            .map(|index| one.clone().with_index(index))
            .collect();
        let answer = connection.ask(9, &request);
        let rows = &answer.responses[0].partition_responses;
        assert!(rows.iter().all(|row| row.error_code == 0));
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The limit of descriptors of a process.
fn allowed(pid: i32) -> io::Result<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    Ok(line
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(u64::MAX))
}

/// Gives every partition of the many what the template has, closed segments by hard links.
fn multiply(data: &Path) -> io::Result<()> {
    let template = data.join("template-0");
    let mut names: Vec<PathBuf> = fs::read_dir(&template)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    names.sort();
    let last = names
        .iter()
        .rfind(|path| path.extension().is_some_and(|end| end == "log"));
    let active = last
        .and_then(|path| path.file_stem())
        .map(ToOwned::to_owned);
    for number in 0..TOPICS {
        for partition in 0..PARTITIONS {
            let folder = data.join(format!("many-{number}-{partition}"));
            for from in &names {
                let Some(name) = from
                    .file_name()
                    .filter(|name| *name != "partition.metadata")
                else {
                    continue;
                };
                let to = folder.join(name);
                let _ = fs::remove_file(&to);
                let is_closed = from.file_stem() != active.as_deref() && is_of_segment(from);
                if is_closed {
                    fs::hard_link(from, &to)?;
                } else {
                    fs::copy(from, &to)?;
                }
            }
        }
    }
    for name in [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ] {
        repeat_in(&data.join(name))?;
    }
    Ok(())
}

fn is_of_segment(path: &Path) -> bool {
    let ends = ["log", "index", "timeindex", "snapshot"];
    path.extension()
        .is_some_and(|end| ends.iter().any(|known| end == *known))
}

/// Says of every partition of the many what a checkpoint says of the template.
fn repeat_in(path: &Path) -> io::Result<()> {
    let text = fs::read_to_string(path)?;
    let lines: Vec<&str> = text
        .lines()
        .skip(2)
        .filter(|line| !line.starts_with("many-"))
        .collect();
    let offset = lines
        .iter()
        .find_map(|line| line.strip_prefix("template 0 "));
    let offset = offset.unwrap_or("0");
    let mut all: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    for number in 0..TOPICS {
        all.extend((0..PARTITIONS).map(|partition| format!("many-{number} {partition} {offset}")));
    }
    fs::write(path, format!("0\n{}\n{}\n", all.len(), all.join("\n")))
}
