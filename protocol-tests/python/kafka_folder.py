"""Compares a broker with what Kafka's own clients read from its folder before: kafka_folder.py
BOOTSTRAP check FILE.json.gz [appended], or adds to it: kafka_folder.py BOOTSTRAP append FILE.json.gz
"""

import gzip
import json
import sys
import time

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    IsolationLevel,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

BOOTSTRAP, MODE, FILE = sys.argv[1:4]
APPENDED = "appended" in sys.argv[4:]

# What is appended, three records to each.
GROWN = [("keys", 0), ("codecs", 1), ("codecs", 4), ("empty", 2), ("grp", 3), ("made-here", 0)]
T1 = 1_700_001_000_000

faults = []


def expect(what, got, wanted):
    if got != wanted:
        faults.append(f"{what}: got {got!r}, wanted {wanted!r}")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def crc_table():
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        yield n


CRC_TABLE = list(crc_table())


def field(row, name, value):
    """Bytes as the file has them: text, or length and checksum where they are many."""
    if value is not None and len(value) > 2000:
        row[f"{name}_len"] = len(value)
        row[f"{name}_crc32c"] = crc32c(value)
    else:
        row[name] = None if value is None else value.decode()


def row_of(message):
    kind, timestamp = message.timestamp()
    row = {
        "offset": message.offset(),
        "timestamp": timestamp,
        "timestamp_type": "LogAppendTime" if kind == TIMESTAMP_LOG_APPEND_TIME else "CreateTime",
    }
    if message.offset() >= 0:
        row["leader_epoch"] = message.leader_epoch()
    field(row, "key", message.key())
    field(row, "value", message.value())
    headers = message.headers()
    if headers:
        row["headers"] = [[key, None if value is None else value.decode()] for key, value in headers]
    return row


def read(topic, partition, isolation):
    consumer = Consumer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "check.crcs": True,
            "fetch.wait.max.ms": 20,
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    rows = []
    while True:
        message = consumer.poll(20)
        if message is None:
            faults.append(f"{topic}-{partition}: no end is reached")
            break
        if message.error():
            if message.error().name() != "_PARTITION_EOF":
                faults.append(f"{topic}-{partition}: {message.error()}")
            break
        rows.append(row_of(message))
    consumer.close()
    return rows


def appended(first):
    return [(first + n, T1 + n, f"k{n}".encode(), f"appended {n}".encode()) for n in range(3)]


def offsets(admin, partitions, spec, isolation=IsolationLevel.READ_UNCOMMITTED):
    asked = {TopicPartition(topic, partition): spec for topic, partition in partitions}
    for _ in range(100):
        futures = admin.list_offsets(asked, isolation_level=isolation)
        try:
            return {(tp.topic, tp.partition): future.result() for tp, future in futures.items()}
        except KafkaException as error:
            # Apache Kafka tells of a new leader epoch before its partitions have taken it.
            if error.args[0].name() != "UNKNOWN_LEADER_EPOCH":
                raise
            time.sleep(0.1)
    sys.exit("the leader epochs stay unknown")


def check(expected):
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    expect("cluster id", admin.describe_cluster().result().cluster_id, expected["cluster_id"])
    topics = {topic["name"]: topic for topic in expected["topics"]}
    names = set(admin.list_topics(timeout=10).topics)
    expect("topics", names, set(topics) | ({"made-here"} if APPENDED else set()))
    described = admin.describe_topics(TopicCollection(list(topics)))
    for name, future in described.items():
        found, topic = future.result(), topics[name]
        # librdkafka prints ids in the other alphabet of base64.
        topic_id = str(found.topic_id).replace("+", "-").replace("/", "_")
        expect(f"{name}: id", topic_id, topic["topic_id"])
        expect(f"{name}: internal", found.is_internal, topic["internal"])
        partitions = [partition["partition"] for partition in topic["partitions"]]
        expect(f"{name}: partitions", sorted(one.id for one in found.partitions), partitions)
    for name, topic in topics.items():
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        entries = admin.describe_configs([resource])[resource].result().values()
        own = {entry.name: entry.value for entry in entries if entry.source == 1}
        expect(f"{name}: options", own, topic["configs"])

    all_partitions = [(name, one["partition"]) for name in topics for one in topics[name]["partitions"]]
    earliest = offsets(admin, all_partitions, OffsetSpec.earliest())
    latest = offsets(admin, all_partitions, OffsetSpec.latest())
    stable = offsets(admin, all_partitions, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
    newest = offsets(admin, all_partitions, OffsetSpec.max_timestamp())
    for name, topic in topics.items():
        for partition in topic["partitions"]:
            check_partition(name, partition, earliest, latest, stable, newest)
    if APPENDED:
        check_appended("made-here", 0, read("made-here", 0, "read_uncommitted"), 0)


def check_partition(name, partition, earliest, latest, stable, newest):
    at = (name, partition["partition"])
    what = f"{name}-{at[1]}"
    grown = 3 if APPENDED and at in GROWN else 0
    expect(f"{what}: start", earliest[at].offset, partition["log_start"])
    if name.startswith("__"):
        # A coordinator notes there that sessions of members have ended since.
        expect(f"{what}: end kept", latest[at].offset >= partition["high_watermark"], True)
        return
    expect(f"{what}: end", latest[at].offset, partition["high_watermark"] + grown)
    expect(f"{what}: stable", stable[at].offset, partition["last_stable_offset"] + grown)
    if not grown:
        expect(f"{what}: newest", newest[at].offset, partition["max_timestamp_offset"])
        expect(f"{what}: newest time", newest[at].timestamp, partition["max_timestamp"])
    if "records" not in partition:
        return
    rows = read(name, at[1], "read_uncommitted")
    if grown:
        rows, last = rows[:-3], rows[-3:]
        check_appended(name, at[1], last, partition["high_watermark"])
    for got, wanted in zip(rows, partition["records"]):
        expect(f"{what}: a record", got, wanted)
    expect(f"{what}: records", len(rows), len(partition["records"]))
    if "records_committed" in partition:
        committed = [row["offset"] for row in read(name, at[1], "read_committed")]
        expect(f"{what}: committed", committed, [row["offset"] for row in partition["records_committed"]])


def check_appended(name, partition, rows, first):
    got = [(row["offset"], row["timestamp"], row["key"].encode(), row["value"].encode()) for row in rows]
    expect(f"{name}-{partition}: appended", got, appended(first))


def append():
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    admin.create_topics([NewTopic("made-here", 1, 1)])["made-here"].result()
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "enable.idempotence": True, "linger.ms": 0})
    for topic, partition in GROWN:
        for _, timestamp, key, value in appended(0):
            producer.produce(topic, value, key, partition, timestamp=timestamp)
    left = producer.flush(20)
    expect("records not delivered", left, 0)


with gzip.open(FILE) as file:
    expected = json.load(file)
if MODE == "append":
    append()
else:
    check(expected)
if faults:
    sys.exit("\n".join(faults[:40]))
print("as it should be")
