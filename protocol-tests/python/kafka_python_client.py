"""kafka-python: kafka_python_client.py BOOTSTRAP write|read TOPICS...

write: makes a topic for each codec, writes the story, looks up offsets, changes and deletes topics.
read: reads the story of each topic named, whoever has written it.
"""

import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError

from story import CODECS, FIRST_TIME, RECORDS, compare, records, same

BOOTSTRAP, TASK = sys.argv[1:3]
NAME = "kafka-python"


def main():
    if TASK == "write":
        admin = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)
        topics = {codec: f"{NAME}-{codec}" for codec in CODECS}
        admin.create_topics([NewTopic(topic, 2, 1) for topic in topics.values()])
        for codec, topic in topics.items():
            write(codec, topic)
        look_up(admin, list(topics.values()))
        administer(admin)
        admin.close()
    else:
        read(sys.argv[3:])
    print("all is as it should be")


def write(codec, topic):
    producer = KafkaProducer(
        bootstrap_servers=BOOTSTRAP,
        compression_type=None if codec == "none" else codec,
        acks="all",
        linger_ms=20,
    )
    sent = [
        producer.send(topic, value, key, [header], 0, timestamp)
        for key, value, header, timestamp in records(topic)
    ]
    producer.flush(30)
    got = [future.get(30) for future in sent]
    same([one.offset for one in got], list(range(RECORDS)), topic, "offsets of deliveries")
    producer.close()


def read(topics):
    consumer = KafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=None, enable_auto_commit=False)
    partitions = [TopicPartition(topic, 0) for topic in topics]
    consumer.assign(partitions)
    for partition in partitions:
        consumer.seek(partition, 0)
    got = collect(consumer, {partition: RECORDS for partition in partitions})
    for partition, messages in got.items():
        compare(
            partition.topic,
            [(m.offset, m.key, m.value, list(m.headers), m.timestamp) for m in messages],
        )
    # From within a batch.
    for partition in partitions:
        consumer.seek(partition, 17)
    for partition, messages in collect(consumer, {partition: 13 for partition in partitions}).items():
        same([m.offset for m in messages], list(range(17, RECORDS)), partition.topic, "offsets from 17 on")
    consumer.close()


def collect(consumer, wanted):
    got = {partition: [] for partition in wanted}
    for _ in range(200):
        for partition, messages in consumer.poll(timeout_ms=200).items():
            got[partition].extend(messages)
        if all(len(got[partition]) >= count for partition, count in wanted.items()):
            return got
    sys.exit(f"not all came: {[(p, len(m)) for p, m in got.items()]}")


def look_up(admin, topics):
    consumer = KafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=None)
    for topic in topics:
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        same(consumer.partitions_for_topic(topic), {0, 1}, topic, "partitions")
        same(consumer.beginning_offsets([first, second]), {first: 0, second: 0}, topic, "beginnings")
        same(consumer.end_offsets([first, second]), {first: RECORDS, second: 0}, topic, "ends")
        for asked, offset in ((0, 0), (FIRST_TIME + 4_500, 5), (FIRST_TIME + 29_000, 29)):
            found = consumer.offsets_for_times({first: asked})[first]
            same((found.offset, found.timestamp), (offset, FIRST_TIME + 1000 * offset), topic, f"at {asked}")
        same(consumer.offsets_for_times({first: FIRST_TIME + 29_001}), {first: None}, topic, "after the last")
        latest = admin.list_partition_offsets({first: OffsetSpec.MAX_TIMESTAMP})
        same(latest[first].offset, RECORDS - 1, topic, "the offset of the latest time")
    consumer.close()


def administer(admin):
    topic = f"{NAME}-changed"
    admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"retention.ms": "86400001"})])
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])
        sys.exit("a topic was created twice")
    except TopicAlreadyExistsError:
        pass
    admin.create_partitions({topic: NewPartitions(3)})
    described = admin.describe_topics([topic])
    # Apache Kafka answers before its broker has heard of them.
    for _ in range(1000):
        if len(described[0]["partitions"]) == 1:
            described = admin.describe_topics([topic])
    same(len(described[0]["partitions"]), 3, topic, "partitions of its description")
    configs = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    if "86400001" not in str(configs):
        sys.exit(f"{topic}: its retention.ms is not described: {configs}")
    same(topic in admin.list_topics(), True, topic, "is listed")
    if not admin.describe_cluster()["cluster_id"]:
        sys.exit("the cluster has no id")
    admin.delete_topics([topic])
    try:
        admin.delete_topics([topic])
        sys.exit("a topic was deleted twice")
    except UnknownTopicOrPartitionError:
        pass


main()
