//! What the runs share: topics with options, latencies, files and the page cache, control groups.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::bench::measure::rest;
use crate::load::frames::Target;
use crate::load::wrong;
use crate::topics;
use crate::wire::Connection;

/// The bytes of one read of what is read from end to end.
const READ: usize = 1 << 20;

/// Makes a topic with these options; its partitions.
pub(super) fn topic(
    port: u16,
    name: &str,
    partitions: i32,
    options: &[(&str, &str)],
) -> Vec<Target> {
    let request = topics::request(name, partitions, options).with_timeout_ms(60_000);
    let mut connection = Connection::open_port(port);
    connection.patience(Duration::from_secs(60));
    let answer = connection.ask(7, &request);
    let made = &answer.topics[0];
    assert_eq!(made.error_code, 0, "{name}: {:?}", made.error_message);
    let topic = made.topic_id;
    (0..partitions)
        .map(|partition| Target { topic, partition })
        .collect()
}

/// A quantile of latencies, in milliseconds.
pub(super) fn ms(latencies: &Histogram<u64>, quantile: f64) -> f64 {
    latencies.value_at_quantile(quantile) as f64 / 1e6
}

/// The middle of some figures.
pub(super) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Writes everything back, and forgets what files hold.
pub(super) fn drop_caches() -> io::Result<()> {
    Command::new("sync").status()?;
    fs::write("/proc/sys/vm/drop_caches", "1")
}

/// The files below a folder with this ending.
pub(super) fn files(folder: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, ending)?);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads files one after the other and sums them up as a broker does; how long that took, and how
/// many bytes they are.
pub(super) fn read_and_sum(files: &[PathBuf]) -> io::Result<(Duration, u64)> {
    let began = Instant::now();
    let mut buffer = vec![0; READ];
    let mut bytes = 0;
    for path in files {
        let mut file = File::open(path)?;
        let mut sum = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                read => {
                    sum.update(&buffer[..read]);
                    bytes += read as u64;
                }
            }
        }
        std::hint::black_box(sum.finalize());
    }
    Ok((began.elapsed(), bytes))
}

/// A number of a process's status, in KiB there.
pub(super) fn status_bytes(pid: i32, name: &str) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    kib.and_then(|kib| kib.parse::<u64>().ok())
        .map(|kib| kib * 1024)
        .ok_or_else(|| wrong(format!("no {name} of {pid}")))
}

/// Lets the greatest resident size of a process be counted anew.
pub(super) fn reset_peak(pid: i32) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

/// How many descriptors a process has open.
pub(super) fn descriptors(pid: i32) -> io::Result<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// What each kind of thread of a process has read from the disk itself, by the thread's name.
pub(super) fn read_by_threads(pid: i32) -> io::Result<Vec<(String, u64)>> {
    let mut sums: Vec<(String, u64)> = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let folder = entry?.path();
        // A thread may end meanwhile.
        let (Ok(name), Ok(io)) = (
            fs::read_to_string(folder.join("comm")),
            fs::read_to_string(folder.join("io")),
        ) else {
            continue;
        };
        let line = io
            .lines()
            .find_map(|line| line.strip_prefix("read_bytes: "));
        let bytes = line.and_then(|line| line.parse().ok()).unwrap_or(0);
        let name = name.trim().to_owned();
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += bytes,
            None => sums.push((name, bytes)),
        }
    }
    Ok(sums)
}

/// A control group that bounds memory, the page cache of its processes included; removed when
/// dropped.
pub(super) struct MemoryBound {
    folder: PathBuf,
}

impl MemoryBound {
    /// Makes one by version 2 of the interface where that has the memory controller, else by
    /// version 1.
    pub(super) fn new(bytes: u64) -> io::Result<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let has_v2 = fs::read_to_string(root.join("cgroup.controllers"))
            .is_ok_and(|all| all.split_whitespace().any(|one| one == "memory"));
        let (parent, limit) = if has_v2 {
            (root.to_owned(), "memory.max")
        } else {
            (root.join("memory"), "memory.limit_in_bytes")
        };
        let folder = parent.join(format!("barnabas-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let bound = Self { folder };
        fs::write(bound.folder.join(limit), bytes.to_string())?;
        Ok(bound)
    }

    /// Puts a process into it.
    pub(super) fn take(&self, pid: i32) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }
}

impl Drop for MemoryBound {
    fn drop(&mut self) {
        // Its processes must have ended, which the kernel may notice a little later.
        for _ in 0..50 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            rest(Duration::from_millis(100));
        }
        eprintln!("{} is left behind", self.folder.display());
    }
}
