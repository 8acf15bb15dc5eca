//! From the start of the process to the first record produced and fetched.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use protocol_tests::broker::{binary, without_settings};
use protocol_tests::only_barnabas;
use protocol_tests::process::Running;
use protocol_tests::wire::Connection;

const GOAL: Duration = Duration::from_millis(60);
const TRIES: usize = 12;

#[test]
fn a_new_broker_serves_its_first_record_in_sixty_milliseconds() {
    if !only_barnabas() {
        return;
    }
    // The machine has other things to do at times: the best of several tries tells what it takes.
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let profile = first_record();
        let steps: Vec<String> = profile
            .iter()
            .map(|(step, at)| format!("{step} {:.1}", at.as_secs_f64() * 1000.0))
            .collect();
        println!("milliseconds since the start: {}", steps.join(", "));
        best = best.min(profile[profile.len() - 1].1);
    }
    assert!(best < GOAL, "the best of {TRIES} tries took {best:?}");
}

/// When each step was done, from the moment before the process was spawned.
fn first_record() -> Vec<(&'static str, Duration)> {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("server.properties");
    let data = folder.path().join("data");
    fs::write(
        &config,
        format!(
            "process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={}\n",
            data.display()
        ),
    )
    .unwrap();
    let mut command = Command::new(binary());
    command.arg("start").arg("--config").arg(&config);

    let broker = Running::start("the broker", without_settings(&mut command));
    let start: Instant = broker.started();
    let mut profile = Vec::new();
    let mut done = |step| profile.push((step, start.elapsed()));
    const LISTENING: &str = "listening on PLAINTEXT://127.0.0.1:";
    let line = broker.wait_for_line(0, |line| line.contains(LISTENING), Duration::from_secs(20));
    let port = line.split(LISTENING).nth(1).unwrap_or_default();
    let port = port
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap_or_default();
    done("listening");
    let mut client = Connection::open_port(port.parse().unwrap());
    done("connected");
    client.api_versions();
    done("ApiVersions");
    client.create_topic("first", 1);
    done("CreateTopics");
    assert_eq!(client.produce("first", -1, &[b"the first record"]), 0);
    done("Produce");
    let fetched = client.fetch("first", 0);
    done("Fetch");
    assert_eq!(fetched, [(0, "the first record".into())]);

    broker.signal(Signal::SIGKILL);
    broker.wait_exit(Duration::from_secs(20));
    profile
}
