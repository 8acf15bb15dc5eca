"""Keyed records of every kind in compacted topics: compacted.py BOOTSTRAP write|more|read

`write` makes one topic a codec, and one with transactions, each with several closed segments, and
one that is trimmed, in which a group has committed; `more` adds to all but the one with transactions, `read` prints what
a consumer sees of each key, newest last, and of the trimmed topic and its group.
"""

import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

BOOTSTRAP, TASK = sys.argv[1:3]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
TRIMMED = TopicPartition("trimmed", 0)
TOPICS = [f"compacted-{codec}" for codec in CODECS] + ["compacted-transactions"]
# Each step of a record's time closes a segment.
CONFIG = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
    "file.delete.delay.ms": "100",
}
START = int(time.time() * 1000) - 3_600_000


def main():
    if TASK == "write":
        admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
        wanted = [NewTopic(topic, 1, 1, config=CONFIG) for topic in TOPICS]
        wanted.append(NewTopic(TRIMMED.topic, 1, 1, config={"segment.ms": "1000"}))
        for future in admin.create_topics(wanted).values():
            future.result(30)
        for codec in CODECS:
            batches(codec, 0)
        transactions()
        trimmed(admin, 0)
    elif TASK == "more":
        for codec in CODECS:
            batches(codec, 1_000_000)
        trimmed(AdminClient({"bootstrap.servers": BOOTSTRAP}), 1_000_000)
    else:
        read()


def producer(**settings):
    settings = {"linger.ms": 50, "bootstrap.servers": BOOTSTRAP, **settings}
    return Producer({name.replace("_", "."): value for name, value in settings.items()})


def batches(codec, later):
    topic = f"compacted-{codec}"
    plain = producer(compression_type=codec)
    idempotent = producer(compression_type=codec, enable_idempotence=True)
    for step in range(12):
        for to in (plain, idempotent):
            for n in range(6):
                value = None if (step + n) % 5 == 0 else f"value {step} {n} {later} ".encode() * 9
                to.produce(
                    topic,
                    partition=0,
                    key=f"key-{(step * 5 + n) % 17}".encode(),
                    value=value,
                    headers=[("h", b"1"), ("h", None), ("h", b"\xff\x00")],
                    timestamp=START + later + step * 400 + n,
                )
            assert to.flush(30) == 0
    # The last segment is never compacted.
    last = producer()
    last.produce(topic, partition=0, key=b"end", value=b"end", timestamp=START + later + 500_000)
    assert last.flush(30) == 0


def transactions():
    topic = "compacted-transactions"
    writers = [producer(transactional_id=f"writer-{n}") for n in range(3)]
    for writer in writers:
        writer.init_transactions(30)
    for step in range(9):
        for number, writer in enumerate(writers):
            writer.begin_transaction()
            for n in range(4):
                writer.produce(
                    topic,
                    partition=0,
                    key=f"key-{(step + n + number) % 7}".encode(),
                    value=f"value {step} {number} {n}".encode(),
                    timestamp=START + step * 400,
                )
            assert writer.flush(30) == 0
        for number, writer in enumerate(writers):
            if (step + number) % 3 == 1:
                writer.abort_transaction(30)
            else:
                writer.commit_transaction(30)
    last = producer()
    for n in range(2):
        # Further than the markers, whose time is the broker's.
        at = int(time.time() * 1000) + 1_800_000 + n * 10_000
        last.produce(topic, partition=0, key=b"end", value=f"end {n}".encode(), timestamp=at)
        assert last.flush(30) == 0


def trimmed(admin, later):
    for codec in CODECS:
        plain = producer(compression_type=codec)
        for n in range(8):
            at = START + later + n * 500
            plain.produce(TRIMMED.topic, f"{codec} {n} {later}".encode(), b"k", 0, timestamp=at)
        assert plain.flush(30) == 0
    offset = 9 if later == 0 else 21
    cut = TopicPartition(TRIMMED.topic, 0, offset)
    for future in admin.delete_records([cut]).values():
        future.result(30)
    consumer = reader()
    cut.offset += 4
    consumer.commit(offsets=[cut], asynchronous=False)
    consumer.close()


def reader():
    return Consumer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "group.id": "trimmers",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )


def messages(topic):
    consumer = reader()
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    while True:
        message = consumer.poll(30)
        assert message is not None, f"{topic}: no end after 30 seconds"
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            break
        yield message
    consumer.close()


def read():
    for topic in TOPICS:
        newest = {message.key(): message.value() for message in messages(topic)}
        for key in sorted(newest):
            if newest[key] is not None:
                print(topic, key.decode(), newest[key].decode())
    for message in messages(TRIMMED.topic):
        print(TRIMMED.topic, message.offset(), message.timestamp()[1], message.value().decode())
    consumer = reader()
    [committed] = consumer.committed([TRIMMED], 30)
    consumer.close()
    print("committed", committed.offset)


main()
