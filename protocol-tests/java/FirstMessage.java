// Apache Kafka's Java client: FirstMessage BOOTSTRAP TOPIC COUNT [OPTION=VALUE...]
// So many groups that nobody has heard of read their first message, one after the other, with the client's default
// settings; the first of them with a cold virtual machine. Says "subscribes GROUP" and "got GROUP MILLISECONDS".

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

public class FirstMessage {
    public static void main(String[] arguments) {
        for (int number = 0; number < Integer.parseInt(arguments[2]); number++) {
            String group = "fresh-" + number;
            Map<String, Object> settings = new HashMap<>(Map.of(
                "bootstrap.servers", arguments[0], "group.id", group, "auto.offset.reset", "earliest"));
            for (String option : List.of(arguments).subList(3, arguments.length)) {
                settings.put(option.split("=", 2)[0], option.split("=", 2)[1]);
            }
            try (KafkaConsumer<String, String> consumer =
                     new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
                System.out.println("subscribes " + group);
                long began = System.nanoTime();
                consumer.subscribe(List.of(arguments[1]));
                while (consumer.poll(Duration.ofMillis(100)).isEmpty()) { }
                System.out.println("got " + group + " " + (System.nanoTime() - began) / 100_000 / 10.0);
            }
        }
    }
}
