"""aiokafka: aiokafka_client.py BOOTSTRAP write|read TOPICS... ; the tasks are those of kafka_python_client."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from story import CODECS, FIRST_TIME, RECORDS, compare, records, same

BOOTSTRAP, TASK = sys.argv[1:3]
NAME = "aiokafka"


async def main():
    if TASK == "write":
        admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
        await admin.start()
        topics = {codec: f"{NAME}-{codec}" for codec in CODECS}
        answer = await admin.create_topics([NewTopic(topic, 2, 1) for topic in topics.values()])
        codes(answer.topic_errors, [0] * len(topics), "creating")
        for codec, topic in topics.items():
            await write(codec, topic)
        await look_up(list(topics.values()))
        await administer(admin)
        await admin.close()
    else:
        await read(sys.argv[3:])
    print("all is as it should be")


def codes(rows, wanted, what):
    same([row[1] for row in rows], wanted, what, "error codes")


async def write(codec, topic):
    producer = AIOKafkaProducer(
        bootstrap_servers=BOOTSTRAP,
        compression_type=None if codec == "none" else codec,
        # Half of them with sequence numbers.
        enable_idempotence=codec in ("none", "lz4"),
        acks="all",
        linger_ms=20,
    )
    await producer.start()
    sent = [
        await producer.send(topic, value, key, 0, timestamp, [header])
        for key, value, header, timestamp in records(topic)
    ]
    got = [await future for future in sent]
    same([one.offset for one in got], list(range(RECORDS)), topic, "offsets of deliveries")
    await producer.stop()


async def read(topics):
    consumer = AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=None, enable_auto_commit=False)
    await consumer.start()
    partitions = [TopicPartition(topic, 0) for topic in topics]
    consumer.assign(partitions)
    for partition in partitions:
        consumer.seek(partition, 0)
    got = await collect(consumer, {partition: RECORDS for partition in partitions})
    for partition, messages in got.items():
        compare(
            partition.topic,
            [(m.offset, m.key, m.value, list(m.headers), m.timestamp) for m in messages],
        )
    for partition in partitions:
        consumer.seek(partition, 17)
    got = await collect(consumer, {partition: 13 for partition in partitions})
    for partition, messages in got.items():
        same([m.offset for m in messages], list(range(17, RECORDS)), partition.topic, "offsets from 17 on")
    await consumer.stop()


async def collect(consumer, wanted):
    got = {partition: [] for partition in wanted}
    for _ in range(200):
        for partition, messages in (await consumer.getmany(timeout_ms=200)).items():
            got[partition].extend(messages)
        if all(len(got[partition]) >= count for partition, count in wanted.items()):
            return got
    sys.exit(f"not all came: {[(p, len(m)) for p, m in got.items()]}")


async def look_up(topics):
    # Its questions queue behind its fetches.
    consumer = AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=None, fetch_max_wait_ms=10)
    await consumer.start()
    # All at once: with each topic that it meets it takes a second to learn of it.
    consumer.assign([TopicPartition(topic, partition) for topic in topics for partition in (0, 1)])
    for topic in topics:
        first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
        same(await consumer.beginning_offsets([first, second]), {first: 0, second: 0}, topic, "beginnings")
        same(await consumer.end_offsets([first, second]), {first: RECORDS, second: 0}, topic, "ends")
        for asked, offset in ((0, 0), (FIRST_TIME + 4_500, 5), (FIRST_TIME + 29_000, 29)):
            found = (await consumer.offsets_for_times({first: asked}))[first]
            same((found.offset, found.timestamp), (offset, FIRST_TIME + 1000 * offset), topic, f"at {asked}")
        after = await consumer.offsets_for_times({first: FIRST_TIME + 29_001})
        same(after, {first: None}, topic, "after the last")
    await consumer.stop()


async def administer(admin):
    topic = f"{NAME}-changed"
    new = NewTopic(topic, 1, 1, topic_configs={"retention.ms": "86400001"})
    codes((await admin.create_topics([new])).topic_errors, [0], "creating")
    codes((await admin.create_topics([new])).topic_errors, [36], "creating again")
    codes((await admin.create_partitions({topic: NewPartitions(3)})).topic_errors, [0], "more partitions")
    described = await admin.describe_topics([topic])
    # Apache Kafka answers before its broker has heard of them.
    for _ in range(1000):
        if len(described[0]["partitions"]) == 1:
            described = await admin.describe_topics([topic])
    same(len(described[0]["partitions"]), 3, topic, "partitions of its description")
    configs = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    if "86400001" not in str(configs):
        sys.exit(f"{topic}: its retention.ms is not described: {configs}")
    same(topic in await admin.list_topics(), True, topic, "is listed")
    codes((await admin.delete_topics([topic])).topic_error_codes, [0], "deleting")
    codes((await admin.delete_topics([topic])).topic_error_codes, [3], "deleting again")


asyncio.run(main())
