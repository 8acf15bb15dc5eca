// KafkaJS: member.js BOOTSTRAP TOPIC GROUP; see python/member.py for what it says.
"use strict";

const { Kafka, logLevel } = require("kafkajs");
const readline = require("node:readline");

const [bootstrap, topic, groupId] = process.argv.slice(2);

function say(...words) {
  console.log(Math.floor((performance.timeOrigin + performance.now()) * 1000), ...words);
}

async function main() {
  const kafka = new Kafka({
    clientId: "kafkajs",
    brokers: [bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 100 },
  });
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: 6000,
    rebalanceTimeout: 20000,
    heartbeatInterval: 500,
    maxWaitTimeInMs: 100,
  });
  // KafkaJS is eager: it gives up all it has when it joins again.
  let held = [];
  const giveUp = () => {
    say("revoked", held.join(","));
    held = [];
  };
  consumer.on(consumer.events.REBALANCING, giveUp);
  consumer.on(consumer.events.CRASH, giveUp);
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    giveUp();
    held = payload.memberAssignment[topic] || [];
    say("assigned", held.join(","));
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, isRunning, isStale, commitOffsetsIfNecessary }) => {
      let end = null;
      for (const message of batch.messages) {
        if (!isRunning() || isStale()) break;
        say("got", batch.partition, message.offset, message.value.toString());
        resolveOffset(message.offset);
        end = `${BigInt(message.offset) + 1n}`;
      }
      if (end === null) return;
      await commitOffsetsIfNecessary({ topics: [{ topic, partitions: [{ partition: batch.partition, offset: end }] }] });
      say("committed", batch.partition, end);
    },
  });
  for await (const _ of readline.createInterface({ input: process.stdin })) break;
  giveUp();
  await consumer.disconnect();
  say("note", "closed");
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
