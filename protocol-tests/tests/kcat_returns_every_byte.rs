//! kcat (librdkafka 2.0.2) gets back every byte it streamed in, in each codec, also after a kill -9.

use protocol_tests::text::{assert_same, awkward};
use protocol_tests::tools::{kcat, kcat_with};
use protocol_tests::{Broker, Chance};

const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];
const FILE_BYTES: usize = 50 << 20;

#[test]
fn a_streamed_file_comes_back_whole_in_each_codec_and_after_kill_9() {
    let text = awkward(&mut Chance::announced("kcat"), FILE_BYTES);
    let mut broker = Broker::start();
    let streamed = separated(&text);
    let file = broker.folder().join("text");
    std::fs::write(&file, &streamed).unwrap();
    let file = file.to_str().unwrap();

    for codec in CODECS {
        // The topic is created by the first message.
        kcat(
            &broker,
            &["-P", "-t", codec, "-z", codec, "-D", SEPARATOR, "-l", file],
        );
        assert_file(&broker, codec, &streamed, "before the kill");
    }

    broker.kill();
    broker.restart();
    for codec in CODECS {
        assert_file(&broker, codec, &streamed, "after the kill");
    }
}

/// What stands between two messages: kcat takes an empty message for nothing, so that a line is sent
/// together with its own end, and the ASCII record separator parts them.
const SEPARATOR: &str = r"\x1e";

fn separated(text: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    lines.join(&0x1e)
}

fn assert_file(broker: &Broker, topic: &str, streamed: &[u8], when: &str) {
    let format = format!("%s{SEPARATOR}");
    let got = kcat(
        broker,
        &[
            "-C",
            "-t",
            topic,
            "-o",
            "beginning",
            "-e",
            "-q",
            "-f",
            &format,
        ],
    );
    let expected = [streamed, b"\x1e"].concat();
    assert_same(&got, &expected, &format!("the text in {topic}, {when}"));
}

#[test]
fn keys_headers_and_null_values_come_back_as_they_were_sent() {
    let mut broker = Broker::start();
    // Between the messages stands an end of line, between key and value a tab. -Z sends an empty
    // value as null and an empty key as null. A header without `=` has a null value.
    let headers = [
        "-H",
        "twice=one",
        "-H",
        "twice=two",
        "-H",
        "twice=one",
        "-H",
        "nothing",
        "-H",
        "empty=",
    ];
    for codec in CODECS {
        let put = ["-P", "-t", codec, "-z", codec, "-K", "\t", "-Z"];
        let input = "key\tvalue\nünï\t日本語 \"quoted\"\ntombstone\t\n\tno key\n";
        kcat_with(
            &broker,
            &[&put[..], &headers[..]].concat(),
            input.as_bytes(),
        );
    }
    let sent_headers = r#"["twice","one","twice","two","twice","one","nothing",null,"empty",""]"#;
    let rows = [
        (r#""key""#, r#""value""#),
        (r#""ünï""#, r#""日本語 \"quoted\"""#),
        (r#""tombstone""#, "null"),
        ("null", r#""no key""#),
    ];
    for attempt in ["before the kill", "after the kill"] {
        for codec in CODECS {
            let got = kcat(
                &broker,
                &["-C", "-t", codec, "-o", "beginning", "-e", "-q", "-J"],
            );
            let got = String::from_utf8(got).unwrap();
            let lines: Vec<&str> = got.lines().collect();
            assert_eq!(lines.len(), rows.len(), "{codec}, {attempt}: {got}");
            for (offset, (line, (key, value))) in lines.iter().zip(rows).enumerate() {
                let start = format!(
                    r#"{{"topic":"{codec}","partition":0,"offset":{offset},"tstype":"create","ts":"#
                );
                let end = format!(
                    r#""broker":1,"headers":{sent_headers},"key":{key},"payload":{value}}}"#
                );
                assert!(
                    line.starts_with(&start),
                    "{codec}, {attempt}: {line}\ndoes not start with {start}"
                );
                assert!(
                    line.ends_with(&end),
                    "{codec}, {attempt}: {line}\ndoes not end with {end}"
                );
            }
        }
        broker.kill();
        broker.restart();
    }
}

#[test]
fn an_offset_is_found_by_its_time() {
    let broker = Broker::start();
    // Each kcat run is a later time than the one before.
    for value in ["first", "second", "third"] {
        kcat_with(&broker, &["-P", "-t", "times"], value.as_bytes());
    }
    let rows = kcat(
        &broker,
        &[
            "-C",
            "-t",
            "times",
            "-o",
            "beginning",
            "-e",
            "-q",
            "-f",
            "%o %T %s\n",
        ],
    );
    let rows = String::from_utf8(rows).unwrap();
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(' ').collect()).collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    for (offset, row) in rows.iter().enumerate() {
        assert_eq!(row[0], offset.to_string(), "{rows:?}");
        let query = format!("times:0:{}", row[1]);
        let answer = String::from_utf8(kcat(&broker, &["-Q", "-t", &query])).unwrap();
        assert_eq!(
            answer.trim(),
            format!("times [0] offset {offset}"),
            "the offset of {}",
            row[1]
        );

        let from = format!("s@{}", row[1]);
        let got = kcat(
            &broker,
            &[
                "-C", "-t", "times", "-o", &from, "-e", "-q", "-c", "1", "-f", "%s",
            ],
        );
        assert_eq!(
            String::from_utf8_lossy(&got),
            row[2],
            "the first record from {from} on"
        );
    }
}

#[test]
fn a_listing_names_the_broker_and_the_topic() {
    let broker = Broker::start();
    kcat_with(&broker, &["-P", "-t", "listed"], b"one");
    let listing = String::from_utf8(kcat(&broker, &["-L", "-t", "listed"])).unwrap();
    let node = format!("broker 1 at 127.0.0.1:{}", broker.port());
    for wanted in [
        &node,
        r#"topic "listed" with 1 partitions:"#,
        "partition 0, leader 1, replicas: 1, isrs: 1",
    ] {
        assert!(listing.contains(wanted), "{wanted:?} is not in:\n{listing}");
    }
}
