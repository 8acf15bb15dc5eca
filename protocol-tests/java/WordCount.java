// Counts words with Kafka Streams: WordCount BOOTSTRAP STATE_FOLDER
// It reads the topic "lines" and writes the topic "counts", through a repartition topic and a store with a
// changelog. It says "running", and "count WORD NUMBER" for each new count. A line on its standard input ends it;
// when the line is "leave", the members leave their group as well.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;

public class WordCount {
    static synchronized void say(String words) {
        System.out.println(words);
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "word-count");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[1]);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.REPARTITION_PURGE_INTERVAL_MS_CONFIG, 100);
        // Every count is told, not only the last before a commit.
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        // Who starts again takes its old place at once: members of Streams do not leave when they are closed.
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG), "counter");
        KafkaStreams streams = new KafkaStreams(topology(), settings);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) say("running");
        });
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
            return null;
        });
        streams.start();
        String line = new BufferedReader(new InputStreamReader(System.in)).readLine();
        KafkaStreams.CloseOptions how = new KafkaStreams.CloseOptions()
            .timeout(Duration.ofSeconds(30)).leaveGroup("leave".equals(line));
        say(streams.close(how) ? "closed" : "not closed in time");
    }

    static org.apache.kafka.streams.Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream("lines");
        lines.flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count(Materialized.as("counts-store"))
            .toStream()
            .mapValues(String::valueOf)
            .peek((word, count) -> say("count " + word + " " + count))
            .to("counts");
        return builder.build();
    }
}
