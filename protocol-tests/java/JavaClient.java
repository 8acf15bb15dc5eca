// Apache Kafka's Java client: JavaClient BOOTSTRAP write|read TOPICS...
// The story is that of python/story.py, the tasks are those of python/kafka_python_client.py.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class JavaClient {
    static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    static final int RECORDS = 30;
    static final long FIRST_TIME = 1_700_000_000_000L;
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        if (arguments[1].equals("write")) {
            write();
        } else {
            read(Arrays.asList(arguments).subList(2, arguments.length));
        }
        System.out.println("all is as it should be");
    }

    static void write() throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            List<NewTopic> topics = new ArrayList<>();
            for (String codec : CODECS) topics.add(new NewTopic("java-" + codec, 2, (short) 1));
            admin.createTopics(topics).all().get();
            for (String codec : CODECS) produce(codec);
            for (String codec : CODECS) lookUp(admin, "java-" + codec);
            lookUpByConsumer();
            administer(admin);
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** The record of this number, as every client computes it. */
    static ProducerRecord<byte[], byte[]> story(String topic, int number) {
        byte[] key = number % 10 == 7 ? null : bytes("key " + number);
        byte[] value = bytes((topic + " " + number + " ünï ").repeat(number * 7 % 40 + 1));
        if (number % 10 == 5) value = null;
        if (number % 10 == 6) value = new byte[0];
        RecordHeader header = new RecordHeader("h", bytes(Integer.toString(number)));
        return new ProducerRecord<>(topic, 0, FIRST_TIME + 1000L * number, key, value, List.of(header));
    }

    static void produce(String codec) throws Exception {
        String topic = "java-" + codec;
        Map<String, Object> options = new HashMap<>();
        options.put("bootstrap.servers", bootstrap);
        options.put("compression.type", codec);
        options.put("linger.ms", 20);
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(options, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < RECORDS; number++) sent.add(producer.send(story(topic, number)));
            producer.flush();
            for (int number = 0; number < RECORDS; number++) {
                // B034: the answer's base offset is the first record's.
                same(sent.get(number).get().offset(), (long) number, topic + ": the offset of a delivery");
            }
            same(producer.partitionsFor(topic).size(), 2, topic + ": partitions");
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer() {
        Map<String, Object> options = new HashMap<>();
        options.put("bootstrap.servers", bootstrap);
        options.put("auto.offset.reset", "none");
        return new KafkaConsumer<>(options, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void read(List<String> topics) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String topic : topics) partitions.add(new TopicPartition(topic, 0));
            consumer.assign(partitions);
            for (int from : new int[] {0, 17}) {
                for (TopicPartition partition : partitions) consumer.seek(partition, from);
                Map<String, Integer> next = new HashMap<>();
                int missing = topics.size() * (RECORDS - from);
                for (int round = 0; missing > 0; round++) {
                    if (round == 200) throw new AssertionError(missing + " records did not come");
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                        int number = next.merge(record.topic(), 1, Integer::sum) - 1 + from;
                        compare(record, number);
                        missing--;
                    }
                }
            }
        }
    }

    static void compare(ConsumerRecord<byte[], byte[]> got, int number) {
        String at = got.topic() + "@" + number;
        ProducerRecord<byte[], byte[]> wanted = story(got.topic(), number);
        same(got.offset(), (long) number, at + ": offset");
        same(got.timestamp(), wanted.timestamp(), at + ": timestamp");
        if (!Arrays.equals(got.key(), wanted.key())) throw new AssertionError(at + ": key");
        if (!Arrays.equals(got.value(), wanted.value())) throw new AssertionError(at + ": value");
        if (!Arrays.equals(got.headers().toArray(), wanted.headers().toArray())) {
            throw new AssertionError(at + ": headers " + got.headers());
        }
    }

    static void lookUp(Admin admin, String topic) throws Exception {
        TopicPartition first = new TopicPartition(topic, 0);
        TopicPartition second = new TopicPartition(topic, 1);
        same(offset(admin, first, OffsetSpec.earliest()).offset(), 0L, topic + ": earliest");
        same(offset(admin, first, OffsetSpec.latest()).offset(), (long) RECORDS, topic + ": latest");
        same(offset(admin, second, OffsetSpec.latest()).offset(), 0L, topic + "-1: latest");
        ListOffsetsResult.ListOffsetsResultInfo last = offset(admin, first, OffsetSpec.maxTimestamp());
        same(last.offset(), (long) RECORDS - 1, topic + ": the latest time's offset");
        same(last.timestamp(), FIRST_TIME + 29_000, topic + ": the latest time");
        same(offset(admin, second, OffsetSpec.maxTimestamp()).offset(), -1L, topic + "-1: no latest time");
        same(offset(admin, first, OffsetSpec.forTimestamp(FIRST_TIME + 4_500)).offset(), 5L, topic + ": by time");
        same(offset(admin, first, OffsetSpec.earliestLocal()).offset(), 0L, topic + ": earliest local");
        same(offset(admin, first, OffsetSpec.latestTiered()).offset(), -1L, topic + ": nothing is tiered");
    }

    static ListOffsetsResult.ListOffsetsResultInfo offset(Admin admin, TopicPartition partition, OffsetSpec spec)
            throws Exception {
        return admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
    }

    static void lookUpByConsumer() {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            TopicPartition partition = new TopicPartition("java-zstd", 0);
            same(consumer.partitionsFor("java-zstd").size(), 2, "partitions");
            same(consumer.listTopics().containsKey("java-none"), true, "a topic is listed");
            same(consumer.endOffsets(Set.of(partition)), Map.of(partition, 30L), "ends");
            same(consumer.beginningOffsets(Set.of(partition)), Map.of(partition, 0L), "beginnings");
            Map<TopicPartition, OffsetAndTimestamp> found = consumer.offsetsForTimes(Map.of(partition, FIRST_TIME + 11_001));
            OffsetAndTimestamp wanted = new OffsetAndTimestamp(12, FIRST_TIME + 12_000, Optional.of(0));
            same(found, Map.of(partition, wanted), "offsets for times");
            // B085: nothing is as late as that.
            found = consumer.offsetsForTimes(Map.of(partition, FIRST_TIME + 29_001));
            same(found, Collections.singletonMap(partition, null), "after the last");
            consumer.assign(Set.of(partition));
            consumer.seekToEnd(Set.of(partition));
            same(consumer.position(partition), 30L, "the position at the end");
            consumer.seekToBeginning(Set.of(partition));
            same(consumer.position(partition), 0L, "the position at the beginning");
            // B095: one past the end.
            consumer.seek(partition, 31);
            boolean refused = false;
            for (int round = 0; round < 50 && !refused; round++) {
                try {
                    consumer.poll(Duration.ofMillis(100));
                } catch (org.apache.kafka.clients.consumer.OffsetOutOfRangeException expected) {
                    refused = true;
                }
            }
            same(refused, true, "a position past the end is out of range");
        }
    }

    static void administer(Admin admin) throws Exception {
        NewTopic changed = new NewTopic("java-changed", 1, (short) 1).configs(Map.of("retention.ms", "86400001"));
        CreateTopicsOptions onlyCheck = new CreateTopicsOptions().validateOnly(true);
        admin.createTopics(List.of(changed), onlyCheck).all().get();
        // B165: to validate is not to create.
        same(admin.listTopics().names().get().contains("java-changed"), false, "a topic that was only checked");
        var created = admin.createTopics(List.of(changed));
        created.all().get();
        Uuid id = created.topicId("java-changed").get();
        same(created.numPartitions("java-changed").get(), 1, "partitions of the answer");
        same(created.replicationFactor("java-changed").get(), 1, "replicas of the answer");
        same(created.config("java-changed").get().get("retention.ms").value(), "86400001", "configs of the answer");
        refuses(TopicExistsException.class, () -> admin.createTopics(List.of(changed)).all().get());
        refuses(InvalidTopicException.class, () -> admin.createTopics(List.of(new NewTopic("a b", 1, (short) 1))).all().get());
        refuses(InvalidReplicationFactorException.class, () -> admin.createTopics(List.of(new NewTopic("three", 1, (short) 3))).all().get());
        refuses(InvalidPartitionsException.class, () -> admin.createTopics(List.of(new NewTopic("none", 0, (short) 1))).all().get());
        // B166
        NewTopic wrong = new NewTopic("wrong", 1, (short) 1).configs(Map.of("cleanup.policy", "foo"));
        refuses(InvalidConfigurationException.class, () -> admin.createTopics(List.of(wrong)).all().get());

        admin.createPartitions(Map.of("java-changed", NewPartitions.increaseTo(3))).all().get();
        refuses(InvalidPartitionsException.class, () -> admin.createPartitions(Map.of("java-changed", NewPartitions.increaseTo(2))).all().get());
        TopicDescription described;
        int tries = 0;
        do {
            // Apache Kafka answers before its broker has heard of them.
            described = admin.describeTopics(List.of("java-changed")).allTopicNames().get().get("java-changed");
        } while (described.partitions().size() == 1 && tries++ < 1000);
        same(described.partitions().size(), 3, "partitions of the description");
        same(described.topicId(), id, "the topic's id");
        TopicDescription again = admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get().get(id);
        same(again.name(), "java-changed", "the topic of that id");
        describeConfigs(admin);

        same(admin.describeCluster().nodes().get().size(), 1, "nodes");
        same(admin.describeCluster().clusterId().get().isEmpty(), false, "the cluster's id is empty");
        admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
        refuses(UnknownTopicIdException.class, () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get());
        refuses(UnknownTopicOrPartitionException.class, () -> admin.deleteTopics(List.of("java-changed")).all().get());
    }

    static void describeConfigs(Admin admin) throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "java-changed");
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        DescribeConfigsOptions all = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        Map<ConfigResource, Config> found = admin.describeConfigs(List.of(topic, broker), all).all().get();
        ConfigEntry retention = found.get(topic).get("retention.ms");
        same(retention.value(), "86400001", "retention.ms");
        same(retention.source(), ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, "its source");
        same(retention.type(), ConfigEntry.ConfigType.LONG, "its type");
        same(retention.documentation().isEmpty(), false, "it has no documentation");
        // B173
        same(found.get(topic).get("cleanup.policy").value(), "delete", "cleanup.policy");
        same(found.get(broker).get("node.id").value(), "1", "node.id");
        same(found.get(broker).get("node.id").isReadOnly(), true, "node.id can be changed");
        // B172
        ConfigResource missing = new ConfigResource(ConfigResource.Type.TOPIC, "missing");
        refuses(UnknownTopicOrPartitionException.class, () -> admin.describeConfigs(List.of(missing)).all().get());
    }

    interface Act {
        void run() throws Exception;
    }

    static void refuses(Class<?> wanted, Act act) throws Exception {
        try {
            act.run();
        } catch (ExecutionException refused) {
            same(refused.getCause().getClass(), wanted, "the refusal");
            return;
        }
        throw new AssertionError("not refused: " + wanted);
    }

    static void same(Object got, Object wanted, String what) {
        if (!Objects.equals(got, wanted)) throw new AssertionError(what + ": " + got + " in place of " + wanted);
    }
}
