"""Prints what the numbered topics hold: read_numbers.py BOOTSTRAP TOPIC...

A line `record TOPIC PARTITION OFFSET NUMBER` for each record, NUMBER -1 if its bytes are wrong.
"""

import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from numbered import PARTITIONS, number_of

BOOTSTRAP, TOPICS = sys.argv[1], sys.argv[2:]


def main():
    consumer = Consumer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
        }
    )
    partitions = [(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in partitions])
    ended = set()
    lines = []
    deadline = time.monotonic() + 90
    while len(ended) < len(partitions):
        if time.monotonic() > deadline:
            sys.exit(f"only {sorted(ended)} have ended")
        for message in consumer.consume(1000, 0.2):
            topic, partition = message.topic(), message.partition()
            if message.error():
                if message.error().code() != KafkaError._PARTITION_EOF:
                    sys.exit(f"{topic}-{partition}: {message.error()}")
                ended.add((topic, partition))
                continue
            number = number_of(topic, partition, message.value())
            lines.append(f"record {topic} {partition} {message.offset()} {number}\n")
    consumer.close()
    sys.stdout.write("".join(lines))


main()
