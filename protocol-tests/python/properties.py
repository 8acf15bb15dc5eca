"""Every property of a record, written and read back: properties.py BOOTSTRAP write|read

The records come from a seed, so that `read` knows in another process, and after whatever has
happened to the broker in between, what `write` has written.
"""

import random
import sys
import time

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

BOOTSTRAP, TASK = sys.argv[1:3]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PARTITIONS = 3
PER_PARTITION = 400
FIRST_TIME = 1_600_000_000_000


def main():
    topics = [(f"{codec}-{kind}", codec, kind) for codec in CODECS for kind in ("plain", "idempotent")]
    if TASK == "write":
        create([topic for topic, _, _ in topics])
        for topic, codec, kind in topics:
            write(topic, codec, kind == "idempotent")
        write_append_time()
    else:
        consumer = Consumer(
            {
                "bootstrap.servers": BOOTSTRAP,
                "group.id": "unused",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
            }
        )
        topics = [topic for topic, _, _ in topics]
        read(consumer, topics)
        for topic in topics:
            look_up(consumer, topic)
        read_append_time(consumer)
        consumer.close()
    print("all is as it should be")


def create(topics):
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    wanted = [NewTopic(topic, PARTITIONS, 1) for topic in topics]
    wanted.append(NewTopic("append-time", 1, 1, config={"message.timestamp.type": "LogAppendTime"}))
    for future in admin.create_topics(wanted).values():
        future.result(30)


def records(topic, partition):
    """(key, value, headers, timestamp) of each record of the partition."""
    chance = random.Random(f"{topic} {partition}")
    for number in range(PER_PARTITION):
        text = f"{topic}-{partition} #{number} ünïcödé 日本語 \"quoted\"\t\\ " * chance.randrange(1, 20)
        key = chance.choice([None, b"", b"key", f"ключ {number}".encode(), chance.randbytes(40)])
        value = chance.choice([None, b"", text.encode(), text.encode(), chance.randbytes(1000)])
        if number % 133 == 7:
            value = chance.randbytes(300_000)
        headers = chance.choice(
            [
                None,
                [("one", b"1")],
                [("twice", b"first"), ("other", b"x"), ("twice", b"second"), ("twice", b"first")],
                [("nothing", None), ("empty", b""), ("nothing", None)],
                [("ключ", bytes(range(256)))],
                [("", b"the header's key is empty")],
            ]
        )
        # Time goes on, but not evenly, and at times a little back.
        timestamp = FIRST_TIME + number * 1000 + chance.randrange(-1500, 1500)
        yield key, value, headers, timestamp


def write(topic, codec, idempotent):
    producer = Producer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "compression.type": codec,
            "enable.idempotence": idempotent,
            "acks": "all" if idempotent else 1,
            "linger.ms": 20,
            "batch.num.messages": 50,
        }
    )
    reports = []
    for partition in range(PARTITIONS):
        for number, (key, value, headers, timestamp) in enumerate(records(topic, partition)):
            producer.produce(
                topic,
                value,
                key,
                partition,
                timestamp=timestamp,
                headers=headers,
                on_delivery=lambda error, message, number=number: reports.append((error, message, number)),
            )
            producer.poll(0)
    left = producer.flush(60)
    same(left, 0, topic, "messages which were not delivered")
    same(len(reports), PARTITIONS * PER_PARTITION, topic, "delivery reports")
    for error, message, number in reports:
        same(error, None, topic, "the error of a delivery")
        same(message.offset(), number, topic, f"the offset of delivery {message.partition()} #{number}")


def read(consumer, topics):
    # All at once: a client takes its time to learn of each new topic.
    partitions = [(topic, partition) for topic in topics for partition in range(PARTITIONS)]
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in partitions])
    got = {of: [] for of in partitions}
    for message in until_ends(consumer, len(partitions)):
        got[message.topic(), message.partition()].append(message)
    for (topic, partition), messages in got.items():
        where = f"{topic}-{partition}"
        same(len(messages), PER_PARTITION, where, "records")
        for number, (message, wanted) in enumerate(zip(messages, records(topic, partition))):
            at = f"{where}@{number}"
            key, value, headers, timestamp = wanted
            same(message.offset(), number, at, "offset")
            same(message.timestamp(), (TIMESTAMP_CREATE_TIME, timestamp), at, "timestamp")
            same(message.key(), key, at, "key")
            same(message.value(), value, at, "value")
            same(message.headers(), headers, at, "headers")

    # From the middle: inside a batch as well as at its start.
    for start in (1, 57, 333, PER_PARTITION - 1):
        consumer.assign([TopicPartition(topic, 0, start) for topic in topics])
        offsets = {topic: [] for topic in topics}
        for message in until_ends(consumer, len(topics)):
            offsets[message.topic()].append(message.offset())
        for topic, got in offsets.items():
            same(got, list(range(start, PER_PARTITION)), topic, f"offsets from {start} on")
    consumer.unassign()


def until_ends(consumer, partitions):
    ended = set()
    deadline = time.monotonic() + 60
    while len(ended) < partitions:
        if time.monotonic() > deadline:
            sys.exit(f"no end of {partitions} partitions in a minute, {sorted(ended)} have ended")
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            same(message.error().code(), KafkaError._PARTITION_EOF, message.topic(), "error")
            ended.add((message.topic(), message.partition()))
        else:
            yield message


def look_up(consumer, topic):
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    for partition in range(PARTITIONS):
        where = f"{topic}-{partition}"
        times = [timestamp for _, _, _, timestamp in records(topic, partition)]
        watermarks = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20)
        same(watermarks, (0, PER_PARTITION), where, "watermarks")

        asked = [0, FIRST_TIME, times[0], times[-1], max(times), max(times) + 1]
        asked += [times[number] + step for number in (1, 50, 51, 199, 398) for step in (-1, 0, 1)]
        for wanted in asked:
            expected = next((offset for offset, at in enumerate(times) if at >= wanted), -1)
            found = consumer.offsets_for_times([TopicPartition(topic, partition, wanted)], timeout=20)
            same(found[0].error, None, where, f"the error of offsets_for_times({wanted})")
            same(found[0].offset, expected, where, f"offsets_for_times({wanted})")

        for spec, expected in (
            (OffsetSpec.earliest(), 0),
            (OffsetSpec.latest(), PER_PARTITION),
            (OffsetSpec.max_timestamp(), times.index(max(times))),
        ):
            futures = admin.list_offsets({TopicPartition(topic, partition): spec})
            same([future.result(20).offset for future in futures.values()], [expected], where, f"list_offsets {spec}")


def write_append_time():
    before = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": BOOTSTRAP})
    for number in range(10):
        producer.produce("append-time", f"{before}", timestamp=1000 + number)
    same(producer.flush(30), 0, "append-time", "messages which were not delivered")


def read_append_time(consumer):
    consumer.assign([TopicPartition("append-time", 0, OFFSET_BEGINNING)])
    messages = list(until_ends(consumer, 1))
    same(len(messages), 10, "append-time", "records")
    for message in messages:
        kind, at = message.timestamp()
        same(kind, TIMESTAMP_LOG_APPEND_TIME, "append-time", "the kind of timestamp")
        written = int(message.value())
        if not written <= at <= written + 60_000:
            sys.exit(f"append-time: written after {written}, appended at {at}")
    consumer.unassign()


def same(got, wanted, where, what):
    if got != wanted:
        sys.exit(f"{where}: {what}: {str(got)[:300]} in place of {str(wanted)[:300]}")


main()
