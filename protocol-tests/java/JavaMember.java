// A member of a group by Apache Kafka's Java client: JavaMember BOOTSTRAP TOPIC GROUP [OPTION=VALUE...]
// See python/member.py for what it says.

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class JavaMember {
    static synchronized void say(String words) {
        System.out.println(ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()) + " " + words);
    }

    static String list(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::partition).sorted().map(String::valueOf)
            .collect(Collectors.joining(","));
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", arguments[0],
            "group.id", arguments[2],
            "auto.offset.reset", "earliest",
            "enable.auto.commit", false,
            "max.poll.records", 20,
            "reconnect.backoff.max.ms", 200));
        boolean newProtocol = false;
        for (String option : List.of(arguments).subList(3, arguments.length)) {
            settings.put(option.split("=", 2)[0], option.split("=", 2)[1]);
            newProtocol |= option.equals("group.protocol=consumer");
        }
        if (!newProtocol) {
            settings.put("session.timeout.ms", 6000);
            settings.put("heartbeat.interval.ms", 500);
        }
        AtomicBoolean stop = new AtomicBoolean();
        Thread listener = new Thread(() -> {
            try {
                System.in.read();
            } catch (java.io.IOException closed) {
                // Then it stops as well.
            }
            stop.set(true);
        });
        listener.setDaemon(true);
        listener.start();
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            say("note subscribes");
            consumer.subscribe(List.of(arguments[1]), new ConsumerRebalanceListener() {
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    say("assigned " + list(partitions));
                }

                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    say("revoked " + list(partitions));
                }
            });
            while (!stop.get()) poll(consumer);
        }
        say("note closed");
    }

    static void poll(KafkaConsumer<String, String> consumer) {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
        for (TopicPartition partition : records.partitions()) {
            long end = 0;
            for (ConsumerRecord<String, String> record : records.records(partition)) {
                say("got " + record.partition() + " " + record.offset() + " " + record.value());
                end = record.offset() + 1;
            }
            try {
                consumer.commitSync(Map.of(partition, new OffsetAndMetadata(end)));
                say("committed " + partition.partition() + " " + end);
            } catch (KafkaException refused) {
                say("note a commit is refused: " + refused.getMessage());
            }
        }
    }
}
