//! What is fetched goes from the segment's file to the socket by sendfile; the broker reads none of
//! it. strace tells.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use protocol_tests::process::Running;
use protocol_tests::text::{assert_same, awkward};
use protocol_tests::tools::kcat;
use protocol_tests::{Broker, Chance, Kind};

const FILE_BYTES: usize = 50 << 20;
const LIMIT: Duration = Duration::from_secs(60);

/// Every call that moves a file's bytes into the process, or from one descriptor to another.
const TRACED: &str =
    "trace=read,pread64,readv,preadv,preadv2,mmap,sendfile,splice,copy_file_range,io_uring_enter";

#[test]
fn fifty_megabytes_leave_by_sendfile_and_no_read_of_the_log() {
    let text = awkward(&mut Chance::announced("sendfile"), FILE_BYTES);
    let broker = Broker::start();
    let file = broker.folder().join("text");
    fs::write(&file, &text).unwrap();
    kcat(&broker, &["-P", "-t", "sent", "-l", file.to_str().unwrap()]);

    let trace = broker.folder().join("trace");
    let pid = broker.process().pid().to_string();
    let mut command = Command::new("strace");
    command.args([
        "-f",
        "-y",
        "-e",
        TRACED,
        "-o",
        trace.to_str().unwrap(),
        "-p",
        &pid,
    ]);
    let strace = Running::start("strace", &mut command);
    // Its first words come once it has stopped and seized every thread.
    strace.wait_for_line(0, |line| line.contains(" attached"), LIMIT);
    let got = kcat(
        &broker,
        &[
            "-C",
            "-t",
            "sent",
            "-o",
            "beginning",
            "-e",
            "-q",
            "-f",
            "%s\n",
        ],
    );
    strace.signal(Signal::SIGINT);
    strace.wait_exit(LIMIT);

    // kcat sends no empty lines.
    let lines: Vec<&[u8]> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    let expected = [&lines.join(&b'\n')[..], b"\n"].concat();
    assert_same(&got, &expected, "the fetched text");

    let moved = bytes_moved(&fs::read_to_string(&trace).unwrap());
    println!("bytes moved from .log files by each call: {moved:?}");
    let sent = moved.get("sendfile").copied().unwrap_or(0);
    assert!(
        sent >= got.len() as u64,
        "{sent} bytes by sendfile, {} fetched",
        got.len()
    );
    let read: u64 = moved
        .iter()
        .filter(|(call, _)| **call != "sendfile")
        .map(|(_, bytes)| bytes)
        .sum();
    match broker.kind() {
        Kind::Barnabas => assert_eq!(
            read, 0,
            "bytes of .log files came by another way: {moved:?}"
        ),
        // It looks at the head of the batch where a fetch begins.
        Kind::ApacheKafka => assert!(read < sent / 100, "{moved:?}"),
    }
}

/// For each traced call: how many bytes it took from a segment's `.log` file of the topic. A call on
/// io_uring counts as one byte, for there strace does not show the file.
fn bytes_moved(trace: &str) -> BTreeMap<String, u64> {
    let mut moved = BTreeMap::new();
    // A call that another thread interrupts comes in two lines: its start tells the file.
    let mut unfinished = BTreeMap::<String, String>::new();
    for line in trace.lines() {
        let Some((thread, event)) = line.split_once(char::is_whitespace) else {
            continue;
        };
        let event = event.trim_start();
        let whole = if let Some(start) = event.strip_suffix(" <unfinished ...>") {
            unfinished.insert(thread.to_owned(), start.to_owned());
            continue;
        } else if event.starts_with("<... ") {
            let rest = event.split_once("resumed>").map_or("", |(_, rest)| rest);
            match unfinished.remove(thread) {
                Some(start) => start + rest,
                None => continue,
            }
        } else {
            event.to_owned()
        };
        let Some((call, arguments)) = whole.split_once('(') else {
            continue;
        };
        if call == "io_uring_enter" {
            *moved.entry(call.to_owned()).or_default() += 1;
            continue;
        }
        if !arguments.contains("/sent-0/") || !arguments.contains(".log>") {
            continue;
        }
        let result = whole.rsplit_once(" = ").map_or("", |(_, result)| result);
        let bytes = match call {
            // The result is an address; the length stands second.
            "mmap" => arguments
                .split(", ")
                .nth(1)
                .and_then(|length| length.parse().ok()),
            _ => result
                .split(' ')
                .next()
                .and_then(|count| count.parse().ok()),
        };
        *moved.entry(call.to_owned()).or_default() += bytes.unwrap_or(0);
    }
    moved
}

#[test]
fn the_trace_is_read_right() {
    let trace = r#"
101 read(7<TCP:[127.0.0.1:1->127.0.0.1:2]>, "\0"..., 4) = 4
101 pread64(9</data/sent-0/00000000000000000000.log>, "\0"..., 17, 0) = 17
102 sendfile(7<TCP:[1]>, 9</data/sent-0/00000000000000000000.log>, [0] => [100], 4096) = 100
102 sendfile(7<TCP:[1]>, 9</data/sent-0/00000000000000000000.log>, [100], 4096 <unfinished ...>
101 read(8</data/sent-0/00000000000000000000.log>,  <unfinished ...>
102 <... sendfile resumed> => [150]) = 50
101 <... read resumed>"\0"..., 8) = 8
101 sendfile(7<TCP:[1]>, 9</data/sent-0/00000000000000000000.log>, [150], 4096) = -1 EAGAIN (Resource temporarily unavailable)
101 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 9</data/sent-0/00000000000000000000.log>, 0) = 0x7f0000000000
101 read(8</data/sent-0/00000000000000000000.index>, "\0"..., 8) = 8
101 read(8</data/other-0/00000000000000000000.log>, "\0"..., 8) = 8
"#;
    let expected = [
        ("mmap", 4096),
        ("pread64", 17),
        ("read", 8),
        ("sendfile", 150),
    ];
    assert_eq!(
        bytes_moved(trace),
        expected
            .map(|(call, bytes)| (call.to_owned(), bytes))
            .into()
    );
}
