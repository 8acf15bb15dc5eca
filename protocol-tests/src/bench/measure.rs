//! What is read from the machine: CPU time, memory, system calls, and who else was busy.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::time::ClockId;
use nix::unistd::{Pid, gettid};

use crate::load::wrong;
use crate::process::Running;

/// CPU time of a process, its ended threads included: the kernel's clock of that process, to the
/// nanosecond (clock_getcpuclockid).
pub fn cpu_time(pid: i32) -> io::Result<Duration> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(pid))?;
    Ok(clock.now()?.into())
}

/// Bytes that a process has read, of files and connections, from memory or not.
pub fn bytes_read(pid: i32) -> io::Result<u64> {
    let io = fs::read_to_string(format!("/proc/{pid}/io"))?;
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.and_then(|bytes| bytes.parse().ok())
        .ok_or_else(|| io::Error::other("rchar"))
}

/// Resident bytes of a process.
pub fn resident_bytes(pid: i32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| wrong("no Rss line"))
}

/// Where the time of all processors went, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ticks {
    total: u64,
    busy: u64,
    steal: u64,
}

impl Ticks {
    /// Up to now.
    pub fn now() -> io::Result<Self> {
        Ok(Self::read(&fs::read_to_string("/proc/stat")?))
    }

    fn read(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .map_while(|word| word.parse().ok())
            .collect();
        let at = |place: usize| ticks.get(place).copied().unwrap_or(0);
        // user nice system idle iowait irq softirq steal; a guest's time is within user's.
        let busy = at(0) + at(1) + at(2) + at(5) + at(6);
        Self {
            total: busy + at(3) + at(4) + at(7),
            busy,
            steal: at(7),
        }
    }
}

/// How much of the machine others had during a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Part of the time that the hypervisor kept.
    pub steal: f64,
    /// Part of the time in other processes and in the kernel's own threads.
    pub others: f64,
    pub load: f64,
}

/// Watches the machine while a sample is taken.
pub struct Watch {
    began: Instant,
    ticks: Ticks,
    own: Duration,
}

impl Watch {
    pub fn begin() -> io::Result<Self> {
        Ok(Self {
            began: Instant::now(),
            ticks: Ticks::now()?,
            own: cpu_time(0)?,
        })
    }

    /// Ends it; the contestant took so much CPU time.
    pub fn end(self, contestant: Duration) -> io::Result<Noise> {
        let ticks = Ticks::now()?;
        let own = cpu_time(0)?.saturating_sub(self.own) + contestant;
        let cores = std::thread::available_parallelism()?.get();
        let span = self.began.elapsed().as_secs_f64() * cores as f64;
        let total = (ticks.total - self.ticks.total).max(1) as f64;
        let busy = (ticks.busy - self.ticks.busy) as f64 / total;
        Ok(Noise {
            steal: (ticks.steal - self.ticks.steal) as f64 / total,
            others: (busy - own.as_secs_f64() / span).max(0.0),
            load: load_average()?,
        })
    }
}

fn load_average() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    let first = text.split_whitespace().next().unwrap_or_default();
    first.parse().map_err(wrong)
}

/// How TCP reacts to loss here, which is part of its cost.
pub fn congestion_control() -> String {
    let path = "/proc/sys/net/ipv4/tcp_congestion_control";
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The real-time priority of a process and of this thread, until dropped.
pub struct RealTime {
    pid: i32,
    /// Whether the system allowed it.
    pub granted: bool,
}

impl RealTime {
    pub fn of(pid: i32) -> Self {
        let granted = schedule(pid, &["--rr"], "5") && schedule_thread(&["--rr"], "5");
        Self { pid, granted }
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        schedule_thread(&["--other"], "0");
        schedule(self.pid, &["--other"], "0");
    }
}

fn schedule(pid: i32, policy: &[&str], priority: &str) -> bool {
    chrt(
        &[
            policy,
            &["--all-tasks", "--pid", priority, &pid.to_string()],
        ]
        .concat(),
    )
}

/// Threads that this one starts inherit it.
fn schedule_thread(policy: &[&str], priority: &str) -> bool {
    chrt(&[policy, &["--pid", priority, &gettid().to_string()]].concat())
}

fn chrt(arguments: &[&str]) -> bool {
    let output = Command::new("chrt").args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

/// Waits by the clock: what is measured here is time itself.
#[expect(
    clippy::disallowed_methods,
    reason = "an idle broker gives no event to wait for"
)]
pub fn rest(span: Duration) {
    std::thread::sleep(span);
}

/// Touches up to so many bytes of free memory, and gives them back: a virtual machine gets its pages
/// from the host at their first touch, which would be charged to whoever comes first, and some hosts
/// take back what is free for a second or two.
pub fn prefault(most: u64) -> io::Result<u64> {
    const PIECE: usize = 64 << 20;
    // What is left for everybody else meanwhile.
    const SPARED: u64 = 1 << 30;
    let info = fs::read_to_string("/proc/meminfo")?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemFree:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let free = (kib.unwrap_or(0) * 1024).min(most + SPARED);
    let mut held = Vec::new();
    while (held.len() * PIECE) as u64 + SPARED < free {
        held.push(vec![1_u8; PIECE]);
    }
    Ok((held.len() * PIECE) as u64)
}

/// System calls by name, counted by strace while `work` runs.
pub fn count_calls<T>(
    pid: i32,
    folder: &Path,
    work: impl FnOnce() -> io::Result<T>,
) -> io::Result<(BTreeMap<String, u64>, T)> {
    let (text, result) = trace(pid, folder, &["-c"], work)?;
    Ok((read_counts(&text), result))
}

/// What strace writes about a process and its threads while `work` runs.
pub fn trace<T>(
    pid: i32,
    folder: &Path,
    options: &[&str],
    work: impl FnOnce() -> io::Result<T>,
) -> io::Result<(String, T)> {
    const LIMIT: Duration = Duration::from_secs(30);
    let file = folder.join("strace");
    let mut command = Command::new("strace");
    command.arg("-f").args(options).arg("-o").arg(&file);
    command.args(["-p", &pid.to_string()]);
    let strace = Running::start("strace", &mut command);
    // Its first words come once it has stopped and seized every thread.
    strace.wait_for_line(0, |line| line.contains(" attached"), LIMIT);
    let result = work();
    strace.signal(Signal::SIGINT);
    strace.wait_exit(LIMIT);
    Ok((fs::read_to_string(&file)?, result?))
}

fn read_counts(table: &str) -> BTreeMap<String, u64> {
    let rows = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = *words.last()?;
        let calls = words.get(3)?.parse().ok()?;
        (name != "total").then(|| (name.to_owned(), calls))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read() {
        let ticks = Ticks::read("cpu  10 1 5 100 7 2 3 4 0 0\ncpu0 1 1 1\n");
        let expected = Ticks {
            total: 132,
            busy: 21,
            steal: 4,
        };
        assert_eq!(ticks, expected);
    }

    #[test]
    fn counts_of_calls_are_read() {
        let table = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000060           1        40         2 recvfrom
 40.00    0.000040           1        20           sendto
------ ----------- ----------- --------- --------- ----------------
100.00    0.000100           1        60         2 total
";
        let expected = [("recvfrom".to_owned(), 40), ("sendto".to_owned(), 20)];
        assert_eq!(read_counts(table), expected.into());
    }

    #[test]
    fn the_cpu_clock_of_a_process_runs() {
        let before = cpu_time(0).unwrap();
        let mut sum = 0_u64;
        while cpu_time(0).unwrap() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(cpu_time(1).is_ok());
        assert!(resident_bytes(i32::try_from(std::process::id()).unwrap()).unwrap() > 100_000);
    }
}
