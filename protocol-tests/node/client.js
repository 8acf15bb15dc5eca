// KafkaJS: client.js BOOTSTRAP write
// The story is that of python/story.py. It only writes: a consumer of KafkaJS is always in a group.
"use strict";

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require("kafkajs");
const assert = require("node:assert");

const RECORDS = 30;
const FIRST_TIME = 1_700_000_000_000;
// Without lz4: what JavaScript libraries write, Apache Kafka does not read ("dependent block stream").
const CODECS = { none: 0, gzip: 1, snappy: 2, zstd: 4 };

CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
const zstd = new Promise((resolve) => require("zstd-codec").ZstdCodec.run((codec) => resolve(new codec.Simple())));
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from((await zstd).decompress(buffer)),
});

function* records(topic) {
  for (let number = 0; number < RECORDS; number++) {
    let value = `${topic} ${number} ünï `.repeat(((number * 7) % 40) + 1);
    if (number % 10 === 5) value = null;
    if (number % 10 === 6) value = "";
    yield {
      partition: 0,
      key: number % 10 === 7 ? null : `key ${number}`,
      value,
      headers: { h: `${number}` },
      timestamp: `${FIRST_TIME + 1000 * number}`,
    };
  }
}

async function refuses(type, act) {
  await assert.rejects(act, (error) => {
    const found = error.errors ? error.errors[0] : error;
    assert.strictEqual(found.type, type);
    return true;
  });
}

async function main(bootstrap) {
  const kafka = new Kafka({ clientId: "kafkajs", brokers: [bootstrap], logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  const topics = Object.keys(CODECS).map((codec) => ({ topic: `kafkajs-${codec}`, numPartitions: 2 }));
  assert.strictEqual(await admin.createTopics({ topics, waitForLeaders: true }), true);
  for (const [codec, compression] of Object.entries(CODECS)) {
    const topic = `kafkajs-${codec}`;
    // Half of them with sequence numbers.
    const producer = kafka.producer({ idempotent: compression > 1 });
    await producer.connect();
    const sent = await producer.send({ topic, compression, messages: [...records(topic)] });
    assert.deepStrictEqual(
      sent.map((row) => [row.topicName, row.partition, row.errorCode, row.baseOffset]),
      [[topic, 0, 0, "0"]],
    );
    await producer.disconnect();
  }
  await lookUp(admin, "kafkajs-zstd");
  await administer(admin);
  await admin.disconnect();
  console.log("all is as it should be");
}

async function lookUp(admin, topic) {
  const byPartition = (one, other) => one.partition - other.partition;
  const offsets = (await admin.fetchTopicOffsets(topic)).sort(byPartition);
  assert.deepStrictEqual(offsets.map((row) => [row.low, row.high]), [["0", "30"], ["0", "0"]]);
  for (const [asked, offset] of [[0, "0"], [4_500, "5"], [29_001, "30"]]) {
    const found = (await admin.fetchTopicOffsetsByTimestamp(topic, FIRST_TIME + asked)).sort(byPartition);
    // After the last one KafkaJS asks for the end itself.
    assert.strictEqual(found[0].offset, offset, `the offset at ${asked}`);
  }
}

async function administer(admin) {
  const topic = "kafkajs-changed";
  const configEntries = [{ name: "retention.ms", value: "86400001" }];
  assert.strictEqual(await admin.createTopics({ topics: [{ topic, configEntries }] }), true);
  assert.strictEqual(await admin.createTopics({ topics: [{ topic }] }), false, "a topic is created once");
  await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] });
  let described = await admin.fetchTopicMetadata({ topics: [topic] });
  // Apache Kafka answers before its broker has heard of them.
  for (let tries = 0; tries < 1000 && described.topics[0].partitions.length === 1; tries++) {
    described = await admin.fetchTopicMetadata({ topics: [topic] });
  }
  assert.strictEqual(described.topics[0].partitions.length, 3);
  const configs = await admin.describeConfigs({
    includeSynonyms: true,
    resources: [{ type: 2, name: topic, configNames: ["retention.ms"] }],
  });
  assert.strictEqual(configs.resources[0].configEntries[0].configValue, "86400001");
  assert.ok((await admin.listTopics()).includes(topic));
  const cluster = await admin.describeCluster();
  assert.strictEqual(cluster.brokers.length, 1);
  assert.ok(cluster.clusterId);
  await admin.deleteTopics({ topics: [topic] });
  await refuses("INVALID_TOPIC_EXCEPTION", admin.createTopics({ topics: [{ topic: "a b" }] }));
}

main(process.argv[2]).catch((error) => {
  console.error(error);
  process.exit(1);
});
