//! rskafka: client BOOTSTRAP write|read TOPICS...
//!
//! The story is that of python/story.py, the tasks are those of python/kafka_python_client.py.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::process::exit;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;

const RECORDS: i64 = 30;
const FIRST_TIME: i64 = 1_700_000_000_000;
const CODECS: [(&str, Compression); 5] = [
    ("none", Compression::NoCompression),
    ("gzip", Compression::Gzip),
    ("snappy", Compression::Snappy),
    ("lz4", Compression::Lz4),
    ("zstd", Compression::Zstd),
];
const LIMIT_MS: i32 = 10_000;

type Outcome = Result<(), Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, task, topics @ ..] = &arguments[..] else {
        fail("client BOOTSTRAP write|read TOPICS...");
    };
    let work = async {
        let client = ClientBuilder::new(vec![bootstrap.clone()]).build().await?;
        match task.as_str() {
            "write" => write(&client).await,
            _ => read(&client, topics).await,
        }
    };
    match tokio::time::timeout(Duration::from_secs(60), work).await {
        Ok(Ok(())) => println!("all is as it should be"),
        Ok(Err(error)) => fail(&error.to_string()),
        Err(_) => fail("it takes too long"),
    }
}

fn record(topic: &str, number: i64) -> Record {
    let times = usize::try_from(number * 7 % 40 + 1).expect("a small number");
    let text = format!("{topic} {number} ünï ").repeat(times).into_bytes();
    let key = format!("key {number}").into_bytes();
    let (key, value) = match number % 10 {
        5 => (Some(key), None),
        6 => (Some(key), Some(Vec::new())),
        7 => (None, Some(text)),
        _ => (Some(key), Some(text)),
    };
    Record {
        key,
        value,
        headers: BTreeMap::from([("h".to_owned(), number.to_string().into_bytes())]),
        timestamp: time(FIRST_TIME + 1000 * number),
    }
}

fn time(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).expect("a time of our century")
}

async fn partition(client: &Client, topic: &str, index: i32) -> Result<PartitionClient, Error> {
    // Apache Kafka answers before its broker has heard of a new topic.
    client
        .partition_client(topic, index, UnknownTopicHandling::Retry)
        .await
}

async fn write(client: &Client) -> Outcome {
    let controller = client.controller_client()?;
    for (codec, compression) in CODECS {
        let topic = format!("rskafka-{codec}");
        controller.create_topic(&topic, 2, 1, LIMIT_MS).await?;
        let first = partition(client, &topic, 0).await?;
        let records = (0..RECORDS).map(|number| record(&topic, number));
        let offsets = first.produce(records.collect(), compression).await?;
        let wanted: Vec<i64> = (0..RECORDS).collect();
        same(&offsets, &wanted, &topic, "offsets of deliveries");
        look_up(client, &first, &topic).await?;
    }
    administer(client).await
}

async fn look_up(client: &Client, first: &PartitionClient, topic: &str) -> Outcome {
    let second = partition(client, topic, 1).await?;
    let by_time = |ms: i64| OffsetAt::Timestamp(time(ms));
    for (at, wanted) in [
        (OffsetAt::Earliest, 0),
        (OffsetAt::Latest, RECORDS),
        (by_time(0), 0),
        (by_time(FIRST_TIME + 4_500), 5),
        (by_time(FIRST_TIME + 29_000), 29),
        (by_time(FIRST_TIME + 29_001), -1),
    ] {
        let found = first.get_offset(at).await?;
        same(&found, &wanted, topic, &format!("the offset at {at:?}"));
    }
    let end = second.get_offset(OffsetAt::Latest).await?;
    same(&end, &0, topic, "the end of its second partition");
    Ok(())
}

async fn administer(client: &Client) -> Outcome {
    let controller = client.controller_client()?;
    let topic = "rskafka-changed";
    controller.create_topic(topic, 3, 1, LIMIT_MS).await?;
    let twice = controller.create_topic(topic, 1, 1, LIMIT_MS).await;
    refused(
        twice,
        ProtocolError::TopicAlreadyExists,
        "a second creation",
    );
    let last = partition(client, topic, 2).await?;
    let records = (0..RECORDS).map(|number| record(topic, number));
    last.produce(records.collect(), Compression::Zstd).await?;
    last.delete_records(7, LIMIT_MS).await?;
    let start = last.get_offset(OffsetAt::Earliest).await?;
    same(&start, &7, topic, "its start after records were deleted");
    let topics = client.list_topics().await?;
    let found = topics.iter().find(|found| found.name == topic);
    let partitions = found.map(|found| found.partitions.len());
    same(&partitions, &Some(3), topic, "its partitions as listed");
    controller.delete_topic(topic, LIMIT_MS).await?;
    let twice = controller.delete_topic(topic, LIMIT_MS).await;
    refused(
        twice,
        ProtocolError::UnknownTopicOrPartition,
        "a second deletion",
    );
    Ok(())
}

async fn read(client: &Client, topics: &[String]) -> Outcome {
    for topic in topics {
        let first = partition(client, topic, 0).await?;
        // The second time from within a batch.
        for from in [0, 17] {
            let mut next = from;
            while next < RECORDS {
                let (records, end) = first.fetch_records(next, 1..1_000_000, 5_000).await?;
                same(&end, &RECORDS, topic, "its high watermark");
                if records.is_empty() {
                    fail(&format!("{topic}: nothing at {next}"));
                }
                for got in records {
                    same(&got.offset, &next, topic, "an offset");
                    same(&got.record, &record(topic, next), topic, "a record");
                    next += 1;
                }
            }
        }
    }
    Ok(())
}

fn refused(outcome: Outcome, wanted: ProtocolError, what: &str) {
    match outcome {
        Err(Error::ServerError { protocol_error, .. }) if protocol_error == wanted => {}
        other => fail(&format!("{what}: {other:?} in place of {wanted:?}")),
    }
}

fn same<T: PartialEq + Debug>(got: &T, wanted: &T, topic: &str, what: &str) {
    if got != wanted {
        fail(&format!("{topic}: {what}: {got:?} in place of {wanted:?}"));
    }
}

fn fail(why: &str) -> ! {
    eprintln!("{why}");
    exit(1);
}
